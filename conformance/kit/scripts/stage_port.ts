/**
 * What scripts for ports and hubs are written with: one endpoint that the testee has opened on
 * memory of its own, and the kit as all the others.
 *
 * @module
 */

import { compare } from "../../static/difference.ts";
import { perform, Taker } from "../../static/driver.ts";
import { answerOf, packRuns, RemoteMemory, RemoteSession } from "../../static/remote.ts";
import { number, toHex, word } from "../../reference/bytes.ts";
import type { Drained, Result as Came } from "../../reference/case.ts";
import { buildFrame, buildSegment, type FramePlan, recordAt } from "../../reference/encode.ts";
import type { Segment, SegmentPlan } from "../../reference/encode.ts";
import { fieldOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import type { Connection } from "../connection.ts";
import type { Opening } from "../protocol.ts";
import { Wrong } from "../verdict.ts";
import { strictly, throwProblems } from "./stage.ts";

/** An endpoint of several rings. */
export class PortStage {
  readonly memory: RemoteMemory;
  readonly segment: Segment;
  step = "";
  readonly #connection: Connection;
  readonly #handle: number;
  readonly #role: Opening["role"];
  /** Where the kit goes on in the rings that it writes. */
  readonly #tails: number[];
  readonly #takers = new Map<number, Taker>();

  private constructor(
    connection: Connection,
    handle: number,
    role: Opening["role"],
    segment: Segment,
  ) {
    this.#connection = connection;
    this.#handle = handle;
    this.#role = role;
    this.segment = segment;
    this.memory = new RemoteMemory(connection, handle);
    this.#tails = segment.channels.map(({ start }) => start);
  }

  /** Opens it, lets the script go on with it, and drops it. */
  static async with(
    arena: Arena,
    plan: SegmentPlan,
    opening: Partial<Opening> & Pick<Opening, "role" | "endpoint">,
    play: (stage: PortStage) => Promise<void>,
  ): Promise<void> {
    const segment = buildSegment(plan);
    const connection = await arena.connect(0);
    const handle = connection.newHandle();
    const usual = { kind: "attach", limit: 4096, calls: false, values: false } as const;
    const memory = { size: segment.bytes.length, bytes: packRuns(segment.bytes) };
    const place = { carrier: "bytes", memory } as const;
    const order = { ...usual, ...opening };
    const opened = answerOf(await connection.send({ command: "open", handle, ...place, ...order }));
    if (opened !== "ok") throw new Wrong(`attaching gave ${JSON.stringify(opened)}, not ok`);
    try {
      await play(new PortStage(connection, handle, order.role, segment));
      await connection.must({ command: "drop", handle });
    } catch (error) {
      await arena.kill(0); // in whatever state that is
      throw error;
    }
  }

  /** The port, or that to a client. */
  session(client?: number): RemoteSession {
    return new RemoteSession(this.#connection, this.#handle, this.#role, client);
  }

  /** Everything that a port reads until nothing comes. */
  drain(client?: number): Promise<Came> {
    return perform({ read: true }, this.session(client), this.memory, undefined);
  }

  expect(got: Came, must: Came, what: string): void {
    throwProblems(`${this.step}${what}`, compare(got, must));
  }

  demand(holds: boolean, fact: string): void {
    if (!holds) throw new Wrong(`${this.step}${fact}`);
  }

  async control(channel: number, name: string): Promise<number> {
    const { offset } = fieldOf("ring_control", name);
    return number(await this.memory.dump(this.segment.channels[channel]!.control + offset, 4));
  }

  async record(endpoint: number, name: string): Promise<number> {
    const { offset } = fieldOf("endpoint_record", name);
    return number(await this.memory.dump(recordAt(endpoint) + offset, 4));
  }

  /** Places frames in a ring that the kit writes, as far as its end, and publishes them. */
  async send(channel: number, ...frames: FramePlan[]): Promise<void> {
    const { data, capacity, control } = this.segment.channels[channel]!;
    const runs = frames.map((frame) => {
      const bytes = buildFrame(frame);
      const offset = data + this.#tails[channel]! % capacity;
      this.#tails[channel] = (this.#tails[channel]! + bytes.length) % 2 ** 32;
      return { offset, hex: toHex(bytes) };
    });
    await this.memory.patch([...runs, { offset: control, hex: word(this.#tails[channel]!) }]);
  }

  /** Begins a ring anew where its cursors stand, as the next owner of the kit's endpoint. */
  async restart(channel: number): Promise<void> {
    this.#tails[channel] = await this.control(channel, "tail");
    await this.#takers.get(channel)?.restart();
  }

  /** Where the kit has published up to. */
  sent(channel: number): number {
    return this.#tails[channel]!;
  }

  /** The strict reader of what the testee writes. */
  async take(channel: number, clause?: string): Promise<Drained> {
    let taker = this.#takers.get(channel);
    if (taker === undefined) {
      taker = await Taker.make({ role: "writer", channel }, this.memory);
      this.#takers.set(channel, taker);
    }
    return await strictly(() => taker.take(), clause);
  }
}
