/**
 * What scripts are written with: one end that a testee has opened, and the kit as the other one,
 * which does every step by itself.
 *
 * @module
 */

import { ATTACHED, drained, message, pad, type Pipe, VACANT } from "../../reference/builder.ts";
import { whole } from "../../reference/builder.ts";
import { CANCELS, frame, MORE } from "../../reference/builder_call.ts";
import { little, number, type Run, toHex, toImage, word } from "../../reference/bytes.ts";
import type { Drained, Item, Optional, Result as Came, Setting } from "../../reference/case.ts";
import type { Settled, Value } from "../../reference/case.ts";
import { buildFrame, buildSegment, type ChannelPlan } from "../../reference/encode.ts";
import { type FramePlan, recordAt, type Segment } from "../../reference/encode.ts";
import { type SegmentPlan } from "../../reference/encode.ts";
import { fieldOf, valueOf } from "../../reference/layout.ts";
import { compare, type Problem, within } from "../../static/difference.ts";
import { type PeerMemory, perform, type Read, Taker } from "../../static/driver.ts";
import { answerOf, openRemote, packRuns, RemoteMemory } from "../../static/remote.ts";
import { RemoteSession } from "../../static/remote.ts";
import type { Arena, Field } from "../arena.ts";
import type { Connection } from "../connection.ts";
import type { Hello, Offer, Opening } from "../protocol.ts";
import type { Order } from "../race/orders.ts";
import { lacksCarrier, lacksNoun, lacksOption, lacksRole } from "../static_level.ts";
import { type KitCase, PASS, type Result, Wrong } from "../verdict.ts";

/** A script, as it is written down. */
export interface Script {
  id: string;
  about: string;
  clauses: string[];
  role: Setting["role"];
  /** The chapter that a testee must offer; where none is said, that of the role. */
  noun?: string;
  /** Whether it is played with calls that block. */
  blocks?: true;
  /** Names of `may_decline`, as in the static cases. */
  mayDecline?: Optional[];
  /** Parts of the protocol that may be left out, and that it takes. */
  offers?: Offer[];
  /** Whether a file is opened as memory. */
  isMapped?: boolean;
  /** Plays it, or says why the kit cannot here; throws `Wrong` where other comes than must. */
  play(arena: Arena): Promise<string | void>;
}

/** A script on memory that only commands reach. */
export function scriptCase(script: Script): KitCase<Arena> {
  const { id, about, clauses } = script;
  return {
    id,
    about,
    clauses,
    declinedBy: (hello) => lacksScript(hello, script) ?? lacksCarrier(hello, "bytes"),
    async run(arena) {
      return played(await script.play(arena));
    },
  };
}

/** What came of a script that has not failed. */
export function played(why: string | void): Result {
  return why === undefined ? PASS : { status: "unshown", why: [why] };
}

/** What a script takes. */
type Needs = Pick<Script, "role" | "noun" | "blocks" | "mayDecline" | "offers" | "isMapped">;

/** Why a testee need not play a script. */
export function lacksScript(
  hello: Hello,
  { role, noun: named, blocks, mayDecline = [], offers = [], isMapped = false }: Needs,
): string | undefined {
  const noun = named ?? (role.startsWith("mailbox") ? "mailbox" : "pipe");
  const missing = offers.find((each) => !hello.offers?.includes(each));
  return lacksNoun(hello, noun) ?? lacksRole(hello, role) ?? lacksOption(hello, mayDecline) ??
    (blocks ? lacksBlocking(hello) : undefined) ??
    (isMapped ? lacksCarrier(hello, "mapped") : undefined) ??
    (missing === undefined ? undefined : `does not offer ${missing}`);
}

/** Why a testee need not play a script in which it waits in a call. */
export function lacksBlocking({ waits }: Hello): string | undefined {
  return waits.includes("block") ? undefined : "does not block";
}

/** One end, opened by the testee on memory of its own; the kit is the peer. */
export class Stage {
  readonly session: RemoteSession;
  readonly memory: PeerMemory;
  readonly pipe: Pipe;
  /** Where the kit, as the writer, goes on. */
  tail: number;
  /** What stands in error messages: where in the script this is. */
  step = "";
  #taker: Taker | undefined;

  private constructor(session: RemoteSession, memory: PeerMemory, pipe: Pipe) {
    this.session = session;
    this.memory = memory;
    this.pipe = pipe;
    this.tail = number(pipe.bytes.slice(pipe.control, pipe.control + 4));
  }

  /** Opens an end of a pipe, lets the script go on with it, and drops it. */
  static async with(
    arena: Arena,
    role: "reader" | "writer",
    pipe: Pipe,
    more: Partial<Setting>,
    play: (stage: Stage) => Promise<void>,
  ): Promise<void> {
    const image = toImage(pipe.bytes);
    const setting: Setting = { kind: "read", image, role, channel: 0, ...more };
    const opened = await openRemote(await arena.connect(0), setting, pipe.bytes);
    if (opened.session === undefined) throw new Wrong(`attaching gave ${opened.result}, not ok`);
    try {
      await play(new Stage(opened.session as RemoteSession, opened.memory, pipe));
      await opened.drop();
    } catch (error) {
      await arena.kill(0); // in whatever state that is
      throw error;
    }
  }

  /** Throws unless a call gave what it must. */
  expect(got: Came, must: Came, what: string): void {
    throwProblems(`${this.step}${what}`, compare(got, must));
  }

  /** Throws unless a fact holds; the text begins with a clause, in brackets. */
  demand(holds: boolean, fact: string, got?: Uint8Array): void {
    if (!holds) throw new Wrong(`${this.step}${fact}`, got);
  }

  /** A word of the ring's control area. */
  async control(name: string): Promise<number> {
    return number(await this.memory.dump(this.#controlAt(name), 4));
  }

  /** Throws unless a word of the ring's control area is this; the clause comes in brackets. */
  async controlIs(clause: string, name: string, must: number): Promise<void> {
    await this.#wordIs(`${clause} ${name}`, this.#controlAt(name), must);
  }

  /** Throws unless the state of an endpoint is this. */
  async stateIs(clause: string, endpoint: number, must: number): Promise<void> {
    const { offset } = fieldOf("endpoint_record", "state");
    await this.#wordIs(`${clause} state of ${endpoint}`, recordAt(endpoint) + offset, must);
  }

  async #wordIs(what: string, offset: number, must: number): Promise<void> {
    requireWord(`${this.step}${what}`, await this.memory.dump(), offset, must);
  }

  #controlAt(name: string): number {
    return this.pipe.control + fieldOf("ring_control", name).offset;
  }

  /** A word of an endpoint's record. */
  async record(endpoint: number, name: string): Promise<number> {
    const { offset } = fieldOf("endpoint_record", name);
    return number(await this.memory.dump(recordAt(endpoint) + offset, 4));
  }

  async setControl(name: string, value: number): Promise<void> {
    const { offset } = fieldOf("ring_control", name);
    await this.memory.patch([{ offset: this.pipe.control + offset, hex: word(value) }]);
  }

  async setState(endpoint: number, state: number): Promise<void> {
    const { offset } = fieldOf("endpoint_record", "state");
    await this.memory.patch([{ offset: recordAt(endpoint) + offset, hex: word(state) }]);
  }

  /** Places frames, with pads where they are needed; nobody sees them before `publish`. */
  async place(...frames: FramePlan[]): Promise<void> {
    const { capacity } = this.pipe.channels[0]!;
    const runs: Run[] = [];
    const add = (bytes: Uint8Array) => {
      const offset = this.pipe.data + this.tail % capacity;
      runs.push({ offset, hex: toHex(bytes) });
      this.tail = (this.tail + bytes.length) % 2 ** 32;
    };
    for (const frame of frames) {
      const bytes = buildFrame(frame);
      const toEnd = capacity - this.tail % capacity;
      if (bytes.length > toEnd) add(buildFrame(pad(toEnd)));
      add(bytes);
    }
    await this.memory.patch(runs);
  }

  /** Stores `tail`. */
  async publish(): Promise<void> {
    await this.setControl("tail", this.tail);
  }

  /** The strict reader of what the testee writes; `clause`, in brackets, is what it may find. */
  async take(clause?: string): Promise<Came> {
    this.#taker ??= await Taker.make({ role: "writer", channel: 0 }, this.memory);
    return await strictly(() => this.#taker!.take(), clause);
  }

  /** Gives back so much that `size` bytes are free. */
  async room(size: number): Promise<void> {
    this.#taker ??= await Taker.make({ role: "writer", channel: 0 }, this.memory);
    await strictly(() => this.#taker!.room(size));
  }
}

/** Throws what differs, if anything does; `where` may name the clause, in brackets. */
export function throwProblems(where: string, problems: Problem[]): void {
  if (problems.length > 0) throw new Wrong(within(where, problems));
}

/** Throws unless a word of a memory is this, with both memories. */
export function requireWord(what: string, memory: Uint8Array, offset: number, must: number): void {
  const got = number(memory.slice(offset, offset + 4));
  if (got === must) return;
  const wanted = memory.slice();
  wanted.set(little(must, 4), offset);
  throw new Wrong(`${what}: expected ${must}, got ${got}`, memory, wanted);
}

/** What a strict reader finds is what the testee did wrong: it names its own clause, too. */
export async function strictly<T>(call: () => Promise<T>, clause?: string): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const { message } = error as Error;
    if (!message.startsWith("[")) throw error;
    throw new Wrong(clause === undefined ? message : `${clause} what was written: ${message}`);
  }
}

/** What one read gave, as a list. */
export function listed(got: Read): Drained {
  return "item" in got ? { items: [got.item] } : { items: [], ...got };
}

/** Bytes that count up from a number, as hexadecimal. */
export function counted(size: number, from: number): string {
  return toHex(Uint8Array.from({ length: size }, (_, index) => from + index & 255));
}

// What scripts for ports and hubs are written with: one endpoint that the testee has opened on
// memory of its own, and the kit as all the others.

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

// What scripts of calls are written with: a port that a testee has opened, which serves the methods
// of the protocol, and the kit as its peer, frame by frame.

/** The ring to the testee, and that from it. */
export const [IN, OUT] = [0, 1];
/** Long enough to take in what is there, also where a thread stands still for a while. */
export const MOMENT_MS = 20;
/** Bytes of a plain message. */
const SIZE = 20;
/** More messages than the smallest ring holds. */
const FULL_MAX = 64;

/** How a port of calls is opened. */
interface Wanted extends Partial<Opening> {
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

// Memory in which the testee makes a segment, or finds one: what the scripts for creating and
// attaching are written with.

const state = (name: string) => valueOf("segment_ready", name);

export const BLANK: number = state("blank");
export const FORMATTING: number = state("formatting");
export const READY: number = state("ready");
export const READY_AT: number = fieldOf("segment_header", "ready").offset >> 2;
/** What stands in memory that nobody has formatted: blank is what `ready` says. */
export const LEFT_OVER = 0xee;
/** What the kit stores as a rival: no bits that anybody gives out. */
export const RIVAL_WAKES = 0x40_0000;
export const RIVAL_AGENT = 4_711;

const RING: ChannelPlan = { writer: 0, reader: 1, capacity: 256, start: 64, label: 7 };
export const GEOMETRY = { endpoints: 2, channels: [RING] };
/** It takes a while to be written. */
export const LARGE = {
  endpoints: 4,
  channels: Array.from({ length: 40 }, (_, index): ChannelPlan => ({
    writer: index % 2,
    reader: 1 - index % 2,
    capacity: 256,
    label: index + 1,
    start: 16 * (index + 1),
  })),
};

/** A field without a segment in it, and what a testee answers that opens it. */
export class Ground {
  readonly field: Field;
  readonly #connection: Connection;
  #handle: number | undefined;

  private constructor(field: Field, connection: Connection) {
    this.field = field;
    this.#connection = connection;
  }

  static async with(arena: Arena, image: Uint8Array, play: (ground: Ground) => Promise<void>) {
    const field = await arena.field({ size: image.length, image });
    try {
      const ground = new Ground(field, await arena.connect(0));
      await play(ground);
      await ground.drop();
    } catch (error) {
      await field.halt();
      await arena.kill(0);
      throw error;
    } finally {
      await field.halt();
      field.release();
    }
  }

  /**
   * Has the testee open it, while the kit's thread is at something; where the memory is a file, as
   * memory if that is wanted.
   */
  async open(opening: Opening, order?: Order, isMapped = false) {
    const { field } = this;
    await this.drop();
    const handle = this.#handle = this.#connection.newHandle();
    const racing = order && field.race(order);
    await racing?.begun;
    const usual = { limit: 4096, calls: false, values: false, spin_us: 0 };
    const reply = await this.#connection.send({
      command: "open",
      handle,
      ...isMapped ? field.mapped!() : field.place(0),
      ...usual,
      ...opening,
    });
    const found = await racing?.stop();
    return { answer: answerOf(reply), found: found ?? [] };
  }

  /** Has the testee let go of what it has opened, or tried to. */
  async drop(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    if (handle !== undefined) await this.#connection.must({ command: "drop", handle });
  }

  load(index: number): number {
    return Atomics.load(this.field.words(), index);
  }
}
