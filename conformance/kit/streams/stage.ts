/**
 * What scripts of streams are written with: a port that a testee has opened over a transport, and
 * the kit as its peer, byte by byte.
 *
 * @module
 */

import { fromHex } from "../../reference/bytes.ts";
import type { Item, MessageCase, Payload, Reason, Result as Came } from "../../reference/case.ts";
import { compare } from "../../static/difference.ts";
import type { Answer, Read } from "../../static/driver.ts";
import { answerOf, RemoteSession } from "../../static/remote.ts";
import { bytes, chunks, END, HI, message, preface, SMALL, text } from "../../stream/builder.ts";
import type { Sent, Sizes, Taken } from "../../stream/case.ts";
import { differences } from "../../stream/driver.ts";
import { StreamPeer } from "../../stream/taker.ts";
import type { Arena } from "../arena.ts";
import { type Connection, patience as ofReplies } from "../connection.ts";
import { Random } from "../live/workload.ts";
import type { Hello, Opening, TransportKind } from "../protocol.ts";
import { played, strictly, throwProblems } from "../scripts/stage.ts";
import { type KitCase, Trouble, Wrong } from "../verdict.ts";
import { openDock, type Wire } from "./dock.ts";
import { lacksStreams } from "./static.ts";

// Waits that end.

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** What a promise gives, or nothing where that takes too long. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Has a testee break down in public: it was to do this. */
export async function during<T>(what: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Trouble) error.during ??= what;
    throw error;
  }
}

/** Far longer than anything takes that comes at all, also on a machine that does other things. */
export const patience: { longMs: number; soonMs: number } = { longMs: 3_000, soonMs: 1_500 };
/** How long the kit waits for what must not come. */
const QUIET_MS = 15;
/** After which a testee that takes nothing in between its calls is given one. */
const NUDGE_MS = 10;
/** Ends of reads that only gave a turn; nobody asks for more of them. */
const STASH_MAX = 64;

/** How a testee's side is opened. */
interface StageOrder extends Partial<Opening> {
  transport?: TransportKind;
  /** What the testee is to state, and what the kit states; nothing where it states nothing yet. */
  own?: Sizes;
  peer?: Sizes | undefined;
}

/** A side of a stream, opened by the testee, and the kit as its peer. */
export class StreamStage {
  readonly session: RemoteSession;
  readonly wire: Wire;
  /** What has come of opening it. */
  readonly opened: Promise<Answer>;
  /** What stands in error messages: where in the script this is. */
  step = "";
  readonly #connection: Connection;
  readonly #handle: number;
  readonly #peer = new StreamPeer();
  /** What the testee has sent and no script has taken. */
  #sent: Sent[] = [];
  #credit: Taken["credit"];
  #hasEnded = false;
  #isReading = false;
  #broken: unknown;
  #wake = () => {};
  #isOpen = false;
  #isDropped = false;
  /** A call under way, which the script goes on beside. */
  #call: Promise<Answer> | undefined;
  #isCalling = false;
  /** What reads gave that only gave the testee a turn. */
  readonly #stash: Read[] = [];

  private constructor(
    connection: Connection,
    handle: number,
    wire: Wire,
    opened: Promise<Answer>,
  ) {
    this.#connection = connection;
    this.#handle = handle;
    this.session = new RemoteSession(connection, handle, "port");
    this.wire = wire;
    this.opened = opened;
    opened.then((answer) => this.#isOpen = answer === "ok", () => {});
  }

  /** Has a side opened, lets the script go on with it, and drops it. */
  static async with(
    arena: Arena,
    order: StageOrder,
    play: (stage: StreamStage) => Promise<void>,
  ): Promise<void> {
    const connection = await arena.connect(0);
    const { own = SMALL, peer = order.peer === undefined && "peer" in order ? undefined : SMALL } =
      order;
    const stage = await StreamStage.#open(arena, connection, own, order);
    try {
      stage.resume();
      if (peer !== undefined) await stage.sends(preface(peer));
      await play(stage);
      await stage.#leave();
    } catch (error) {
      stage.wire.kill();
      await arena.kill(0); // in whatever state that is
      throw error;
    }
  }

  static async #open(
    arena: Arena,
    connection: Connection,
    { largest, window }: Sizes,
    order: StageOrder,
  ): Promise<StreamStage> {
    const { transport, own: _own, peer: _peer, ...more } = order;
    const kind = transport ?? connection.hello.streams!.transports[0]!;
    const dock = await openDock(kind, arena.folder!);
    const handle = connection.newHandle();
    const opening = {
      kind: "attach",
      role: "port",
      largest,
      window,
      limit: 4096,
      calls: false,
      values: false,
      timeout_ms: patience.longMs,
      ...more,
    } as const;
    const opened = connection.send({
      command: "open",
      handle,
      carrier: "stream",
      ...dock.transport,
      ...opening,
    }, ofReplies.replyMs + opening.timeout_ms).then(answerOf);
    opened.catch(() => {}); // a script may fail before it comes to that
    try {
      const wire = await within(dock.wire, patience.longMs);
      if (wire === undefined) throw new Wrong(`it does not connect by ${kind}`);
      return new StreamStage(connection, handle, wire, opened);
    } finally {
      if (kind !== "fifo") dock.close();
    }
  }

  /** What opening gave, which must be `ok`. */
  async ready(): Promise<void> {
    this.expect(await this.opened, "ok", "[stream.preface_check] open");
    this.#isOpen = true;
  }

  /** The kit sends bytes. */
  async sends(...hexes: string[]): Promise<void> {
    const bytes = fromHex(hexes.join(""));
    this.#peer.sends(bytes);
    await this.wire.write(bytes);
  }

  /** The same, in pieces of so many bytes, between which the testee may read. */
  async sendsPieces(size: number, ...hexes: string[]): Promise<void> {
    const bytes = fromHex(hexes.join(""));
    this.#peer.sends(bytes);
    for (let at = 0; at < bytes.length; at += size) {
      await this.wire.write(bytes.subarray(at, at + size));
      await sleep(1);
    }
  }

  /** Bytes that the kit has sent and the testee has not told to be given back. */
  get ahead(): number {
    return this.#peer.ahead;
  }

  /** Bytes of frames that the kit has taken and that count. */
  get taken(): number {
    return this.#peer.taken;
  }

  /** How many credits the testee has sent. */
  get credits(): number {
    return this.#peer.credits;
  }

  /** Whether something comes to hold by what the testee sends. */
  async comesTo(holds: () => boolean, ms: number): Promise<boolean> {
    await this.#until(holds, ms);
    await this.judge("what was sent");
    return holds();
  }

  /** Goes on taking in what the testee sends; it is judged as it comes. */
  resume(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    void this.#pump();
  }

  /** Takes one more piece, and then nothing, until `resume`. */
  pause(): void {
    this.#isReading = false;
  }

  async #pump(): Promise<void> {
    while (this.#isReading && !this.#hasEnded) {
      const bytes = await this.wire.read();
      try {
        const { sent, credit } = this.#peer.take(bytes ?? new Uint8Array(0), false, true);
        this.#sent.push(...sent);
        this.#credit = credit ?? this.#credit;
      } catch (error) {
        this.#broken ??= error;
      }
      this.#hasEnded = bytes === undefined;
      this.#wake();
    }
  }

  /** What the testee has sent since this was last asked for. */
  #taken(): Taken {
    const taken = {
      sent: this.#sent,
      ...this.#credit !== undefined && { credit: this.#credit },
      ...this.#hasEnded && { ends: true } as const,
    };
    this.#sent = [];
    this.#credit = undefined;
    return taken;
  }

  /**
   * Throws unless the testee sends this, and nothing else. `what` may begin with a clause in
   * brackets. Where it must send nothing, that is waited for.
   */
  async takes(what: string, sent: Sent[], more: Omit<Taken, "sent"> = {}): Promise<void> {
    const must = { sent, ...more };
    const needsCredit = typeof more.credit === "number";
    const isThere = () =>
      this.#sent.length >= sent.length && (!needsCredit || this.#credit !== undefined) &&
      (more.ends === undefined || this.#hasEnded);
    const isQuiet = sent.length === 0 && !needsCredit && more.ends === undefined;
    if (isQuiet) await this.#until(() => false, QUIET_MS);
    else await this.#untilNudged(isThere);
    await this.judge(what);
    const got = this.#taken();
    if (must.ends === undefined) delete got.ends;
    const problems = differences(got, must);
    throwProblems(`${this.step}${what}`, problems.map((text) => ({ text, clauses: [] })));
  }

  /** Takes what was sent up to now, whatever it is. */
  async collects(
    isEnough: (taken: Sent[]) => boolean,
    ms = patience.longMs,
    what = "what was sent",
  ): Promise<Taken> {
    await this.#until(() => isEnough(this.#sent), ms);
    await this.judge(what);
    return this.#taken();
  }

  /** Throws what the strict reader has found. */
  async judge(what: string): Promise<void> {
    const clause = /^(?:\[[^\]]*\] ?)+/.exec(what)?.[0].trim();
    if (this.#broken === undefined) return;
    await strictly(() => Promise.reject(this.#broken), clause);
  }

  /** Waits for something, and lets a testee have a turn that takes nothing in by itself. */
  async #untilNudged(isThere: () => boolean): Promise<void> {
    const deadline = performance.now() + patience.longMs;
    do {
      await this.#until(isThere, NUDGE_MS);
      const isFree = this.#isOpen && !this.#isCalling && !this.#isDropped;
      if (!isThere() && isFree) this.#stash.push(await this.session.read(1));
      if (this.#stash.length > STASH_MAX) this.#stash.splice(0, STASH_MAX / 2);
    } while (!isThere() && this.#broken === undefined && performance.now() < deadline);
  }

  async #until(isThere: () => boolean, ms: number): Promise<void> {
    const deadline = performance.now() + ms;
    while (!isThere() && this.#broken === undefined) {
      const left = deadline - performance.now();
      if (left <= 0) return;
      const woken = new Promise<void>((resolve) => this.#wake = resolve);
      await within(woken, left);
    }
  }

  /** Reads once; what an earlier turn of the testee gave comes first. */
  async read(timeoutMs: number): Promise<Read> {
    const index = this.#stash.findIndex((each) => !("end" in each && each.end === "nothing"));
    const stashed = index < 0 ? undefined : this.#stash[index];
    this.#stash.splice(0, index < 0 ? Infinity : index + 1);
    if (stashed !== undefined) return stashed;
    const opened = this.#isOpen ? "ok" : await this.opened;
    if (opened === "ok") return await this.session.read(timeoutMs);
    if (typeof opened === "string") return { end: opened };
    return { end: opened.code, reason: opened.reason };
  }

  /** Reads what must come, and then how that ends, again and again the same. */
  async reads(what: string, items: Item[], end: string, reason?: Reason): Promise<void> {
    const got: Item[] = [];
    let last: Read | undefined;
    while (got.length < items.length) {
      last = await this.read(patience.longMs);
      if ("end" in last) break;
      got.push(last.item);
      last = undefined;
    }
    const ms = end === "nothing" ? QUIET_MS : patience.longMs;
    for (let left = end === "nothing" ? 1 : 2; left > 0; left--) {
      last = last !== undefined && "end" in last ? last : await this.read(ms);
      if ("item" in last) got.push(last.item);
      const ending = "end" in last
        ? { end: last.end, ...last.reason !== undefined && { reason: last.reason } }
        : {};
      const must = { items, end, ...reason !== undefined && { reason } };
      this.expect({ items: got, ...ending }, must, what);
      last = undefined;
    }
  }

  /** Throws unless a call gave what it must. */
  expect(got: Came, must: Came, what: string): void {
    throwProblems(`${this.step}${what}`, compare(got, must));
  }

  /** Throws unless a fact holds; the text begins with a clause, in brackets. */
  demand(holds: boolean, fact: string): void {
    if (!holds) throw new Wrong(`${this.step}${fact}`);
  }

  /**
   * The testee writes without waiting. What must be accepted is tried again where there is no room:
   * a side that waits for nothing when it is opened may not have seen what its peer has stated.
   */
  async writes(what: string, payload: Payload, must: Came = "ok"): Promise<void> {
    const deadline = performance.now() + patience.longMs;
    let got = await this.session.write(payload, false);
    while (got === "full" && must === "ok" && performance.now() < deadline) {
      await sleep(2);
      got = await this.session.write(payload, false);
    }
    this.expect(got, must, what);
  }

  /** The testee begins to write and waits for credit, while the script goes on. */
  posts(payload: Payload, timeoutMs = patience.longMs): Promise<Answer> {
    return this.#begins(this.session.write(payload, true, timeoutMs));
  }

  /** The testee begins to close, while the script goes on. */
  leaves(): Promise<Answer> {
    return this.#begins(this.session.close());
  }

  /** Notes a call that is under way: until it returns, the testee gets no other command. */
  #begins(call: Promise<Answer>): Promise<Answer> {
    this.#isCalling = true;
    this.#call = call;
    const returned = call.finally(() => this.#isCalling = false);
    returned.catch(() => {}); // the script may fail before it looks
    return returned;
  }

  /**
   * The testee closes: this goes out, and the end of its byte stream. Then the kit ends as well:
   * who has no thread to linger in may wait for that in the call.
   */
  async closes(what: string, sent: Sent[]): Promise<void> {
    const closing = this.leaves();
    await this.takes(what, sent, { ends: true });
    await this.wire.end();
    this.expect(await closing, "ok", "close");
  }

  /**
   * Whether the last call still waits, after a while; where it has come back with `ok`, it was
   * accepted into a queue, and shows nothing.
   */
  async isWaiting(ms: number): Promise<boolean> {
    return !await this.hasReturned(ms) || await this.#call !== "ok";
  }

  /** Whether the last call has come back, after a while. */
  async hasReturned(ms: number): Promise<boolean> {
    if (this.#call !== undefined) await within(this.#call.catch(() => {}), ms);
    return !this.#isCalling;
  }

  /** Whether the testee gives the transport up, so that nobody reads what the kit writes. */
  async goneWithin(ms: number): Promise<boolean> {
    const deadline = performance.now() + ms;
    while (performance.now() < deadline) {
      if (!await this.wire.write(new Uint8Array(16))) return true;
      await sleep(20);
    }
    return false;
  }

  /** The testee lets go of the port. */
  async drop(): Promise<void> {
    this.#isDropped = true;
    await this.#connection.must({ command: "drop", handle: this.#handle });
  }

  /** Lets go of everything; what is still wrong then is thrown. */
  async #leave(): Promise<void> {
    await this.judge("what was sent");
    this.wire.kill();
    await this.#call?.catch(() => {});
    if (await this.opened === "ok" && !this.#isDropped) await this.drop();
  }
}

// What a script of streams is, and what several of them use.

/** A script, as it is written down. */
export interface StreamScript {
  id: string;
  about: string;
  clauses: string[];
  /** What carries it, where that matters. */
  transport?: TransportKind;
  /** Why else a testee need not play it. */
  declinedBy?(hello: Hello): string | undefined;
  /** Plays it, or says why the kit cannot here. */
  play(arena: Arena): Promise<string | void>;
}

/** A script, of these clauses, separated by spaces. */
export function streamScript(
  id: string,
  about: string,
  clauses: string,
  play: StreamScript["play"],
  more: Partial<StreamScript> = {},
): StreamScript {
  return { id: `scripted/stream_${id}`, about, clauses: clauses.split(" "), play, ...more };
}

export function streamCase(script: StreamScript): KitCase<Arena> {
  const { id, about, clauses, transport, declinedBy, play } = script;
  return {
    id,
    about,
    clauses,
    declinedBy: (hello) =>
      lacksStreams(hello) ?? (transport && lacksTransport(hello, transport)) ??
        declinedBy?.(hello),
    run: async (arena) => played(await play(arena)),
  };
}

/** Why a testee need not do what takes a transport. */
export function lacksTransport(hello: Hello, kind: TransportKind): string | undefined {
  return hello.streams?.transports.includes(kind) ? undefined : `has no transport ${kind}`;
}

/** Whether sweeps go to every place, and not only to some of a seed. */
export function isAll(): boolean {
  return Deno.env.get("MILLRACE_TEST_ALL") === "1";
}

/** Places below `count`: all of them where that is wanted, otherwise so many of a seed. */
export function places(count: number, some: number, seed: number): number[] {
  const all = Array.from({ length: count }, (_, index) => index);
  if (isAll() || some >= count) return all;
  const random = new Random(seed);
  const found = new Set([0, count - 1]);
  while (found.size < some) found.add(random.next() % count);
  return all.filter((each) => found.has(each));
}

/** A part of what the kit sends, and what the testee can read when all of it has come. */
interface Part {
  hex: string;
  items: Item[];
  ends?: true;
}

const [FIRST, MIDDLE, LAST] = chunks(40, 20, 6);
/** Messages of one frame and of several, an extension between them, and the end. */
export const TRACK: readonly Part[] = [
  { hex: text("hi", 5), items: [HI] },
  { hex: FIRST!, items: [] },
  { hex: MIDDLE!, items: [] },
  { hex: LAST!, items: [message({ count: 66 })] },
  { hex: bytes(0, 9), items: [message({ tag: 9, count: 0 })] },
  { hex: bytes(20, 7), items: [message({ tag: 7, count: 20 })] },
  { hex: END, items: [], ends: true },
];

/** Bytes of a part. */
export function sizeOfPart({ hex }: Part): number {
  return hex.replaceAll(" ", "").length / 2;
}

/** What can be read when so many bytes of a track have come, and whether it has ended. */
export function readBefore(size: number, track: readonly Part[] = TRACK) {
  const items: Item[] = [];
  let at = 0;
  for (const part of track) {
    at += sizeOfPart(part);
    if (at > size) break;
    items.push(...part.items);
    if (part.ends) return { items, hasEnded: true };
  }
  return { items, hasEnded: false };
}

/** A message of bytes that count up from its number on, written and read. */
export function numbered(index: number, size: number): MessageCase {
  const payload = Array.from({ length: size }, (_, at) => (index + at) & 255);
  const hex = payload.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return message({ hex });
}
