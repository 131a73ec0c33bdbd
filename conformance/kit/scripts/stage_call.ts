/**
 * What scripts of calls are written with: a port that a testee has opened, which serves the methods
 * of the protocol, and the kit as its peer, frame by frame.
 *
 * @module
 */

import { ATTACHED, drained, message, VACANT, whole } from "../../reference/builder.ts";
import { CANCELS, frame, MORE } from "../../reference/builder_call.ts";
import { recordAt } from "../../reference/encode.ts";
import { word } from "../../reference/bytes.ts";
import type { Drained, Item, Settled, Value } from "../../reference/case.ts";
import type { FramePlan } from "../../reference/encode.ts";
import { fieldOf } from "../../reference/layout.ts";
import type { RemoteSession } from "../../static/remote.ts";
import type { Arena } from "../arena.ts";
import type { Opening } from "../protocol.ts";
import { counted, type Script } from "./stage.ts";
import { PortStage } from "./stage_port.ts";

/** The ring to the testee, and that from it. */
export const [IN, OUT] = [0, 1];
/** Long enough to take in what is there, also where a thread stands still for a while. */
export const MOMENT_MS = 20;
/** Bytes of a plain message. */
const SIZE = 20;
/** More messages than the smallest ring holds. */
const FULL_MAX = 64;

/** How a port of calls is opened. */
export interface Wanted extends Partial<Opening> {
  /** Capacities of the ring to it and of that from it. */
  inward?: number;
  outward?: number;
}

/** A port that offers calls, and the kit as its peer. */
export class CallStage {
  readonly port: PortStage;
  readonly session: RemoteSession;

  private constructor(port: PortStage) {
    this.port = port;
    this.session = port.session();
  }

  /** Opens it, lets the script go on with it, and drops it. */
  static async with(
    arena: Arena,
    { inward = 4096, outward = 4096, ...more }: Wanted,
    play: (stage: CallStage) => Promise<void>,
  ): Promise<void> {
    const plan = {
      endpoints: 2,
      channels: [
        { writer: 0, reader: 1, capacity: inward },
        { writer: 1, reader: 0, capacity: outward },
      ],
      states: [ATTACHED, VACANT],
    };
    const opening = { calls: true, values: true, serves: true, ...more };
    const order = { role: "port", endpoint: 1, ...opening } as const;
    await PortStage.with(arena, plan, order, (port) => play(new CallStage(port)));
  }

  set step(text: string) {
    this.port.step = text;
  }

  /** The kit writes frames. */
  send(...frames: FramePlan[]): Promise<void> {
    return this.port.send(IN, ...frames);
  }

  /** The testee reads until nothing comes, which must be these; so it serves. */
  async drains(what: string, items: Item[] = [], end = "nothing"): Promise<void> {
    const must = end === "peer.failed" ? { items, end, reason: "peer.lost" } : drained(items, end);
    this.port.expect(await this.port.drain(), must, what);
  }

  /** The kit takes what the testee has written, which must be this. */
  async takes(what: string, ...items: Item[]): Promise<void> {
    const clause = /^(?:\[[^\]]*\] ?)+/.exec(what)?.[0].trim();
    this.port.expect(await this.port.take(OUT, clause), drained(items), what);
  }

  /** The kit takes what the testee has written, whatever that is. */
  async taken(): Promise<Drained> {
    return await this.port.take(OUT);
  }

  /** The testee makes a call, and does not wait. */
  async calls(name = "far", values: Value[] = [], items = false): Promise<void> {
    const got = await this.session.calls.call({ name, values }, items);
    this.port.expect(got, "ok", "call");
  }

  /** The testee gives a call up. */
  async givesUp(call: number): Promise<void> {
    const what = "[call.cancel_owed] to give a call up";
    this.port.expect(await this.session.calls.giveUp(call), "ok", what);
  }

  /** What has come of a call must be this. */
  async outcome(call: number, must: Settled | string, what: string): Promise<void> {
    const settled = typeof must === "string" ? { outcome: must } : must;
    this.port.expect(await this.session.calls.settled(call, false), settled, what);
  }

  /** The testee makes a call and waits, and this must come of it. */
  async asks(what: string, must: Settled | string, timeoutMs: number = LONG_MS): Promise<void> {
    const settled = typeof must === "string" ? { outcome: must } : must;
    const got = await this.session.ask({ name: "far", values: [] }, timeoutMs);
    this.port.expect(got, settled, what);
  }

  /** The testee writes a plain message, which must have room. */
  async writes(tag: number, what = "write"): Promise<void> {
    const got = await this.session.write({ tag, hex: counted(SIZE, tag) }, false);
    this.port.expect(got, "ok", what);
  }

  /** The testee waits for room that does not come. */
  async waitsForRoom(size: number = SIZE): Promise<void> {
    const payload = { tag: 99, hex: counted(size, 9) };
    const got = await this.session.write(payload, true, MOMENT_MS);
    this.port.expect(got, "wait.timeout", "a write without room");
  }

  /** Fills what the testee writes: there is no room for a frame of any size. */
  async fills(): Promise<void> {
    for (const size of [SIZE, 0]) {
      let got = await this.session.write({ hex: counted(size, 0) }, false);
      for (let count = 0; got === "ok" && count < FULL_MAX; count++) {
        got = await this.session.write({ hex: counted(size, 0) }, false);
      }
      this.port.expect(got, "full", "[ring.room] a write into a full ring");
    }
  }

  demand(holds: boolean, fact: string): void {
    this.port.demand(holds, fact);
  }

  /** The kit's endpoint comes to another state. */
  async setState(state: number): Promise<void> {
    const { offset } = fieldOf("endpoint_record", "state");
    await this.port.memory.patch([{ offset: recordAt(0) + offset, hex: word(state) }]);
  }
}

/** Far longer than anything takes that is there already. */
const LONG_MS = 2_000;

/** A script of this chapter. */
export function callScript(
  id: string,
  about: string,
  clauses: string,
  play: (arena: Arena) => Promise<string | void>,
  more: Partial<Script> = {},
): Script {
  const cited = clauses.split(" ");
  return { id: `scripted/${id}`, about, clauses: cited, role: "port", noun: "call", play, ...more };
}

/** A plain message of the kit, and how it is read. */
export function plain(tag: number): FramePlan {
  return whole(Uint8Array.from({ length: SIZE }, (_, index) => index + tag), { tag });
}

export function plainItem(tag: number): Item {
  return message({ tag, hex: counted(SIZE, tag) });
}

/** What the kit writes of calls: of its own, and of those of the testee. */
export const write = {
  cancel: (id: number): FramePlan => frame("call", id + CANCELS),
  more: (id: number): FramePlan => frame("call", id + MORE),
  item: (id: number, value: unknown): FramePlan => frame("return", id + MORE, { json: value }),
  answer: (id: number, ...values: Value[]): FramePlan => frame("return", id, ...values),
};
