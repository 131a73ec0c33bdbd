/**
 * The messages that are posted on a port. They go out together, at the end of the job or as soon as
 * they are many; those that find no room go out in the background. See `spec/port.md`.
 *
 * @module
 */

import { detach, encodeText, jsonOf, makePayload, type Payload } from "../codec/codec.ts";
import { mistake, OverflowError, requireOptions } from "../error.ts";
import { RENEWED } from "../memory/gate.ts";
import { CODEC_JSON, CODEC_JSON_BATCH, FRAME_KIND_DATA } from "../memory/layout.ts";
import { RUN_COUNT, RUN_SIZE } from "../pipe/many.ts";
import type { Outlet, Posts } from "../pipe/outlet.ts";
import { roomOf, waitRoomAsync } from "../pipe/room.ts";
import { isBytes } from "../memory/realm.ts";
import { requireInteger } from "../memory/segment_geometry.ts";
import type { Duty, Waitable } from "../wait/wait.ts";

/**
 * Options of the queue of posted messages.
 *
 * @example
 * ```ts
 * import { Port, type PostingOptions } from "@millrace/millrace";
 *
 * const latest: PostingOptions<number> = {
 *   queueLimit: 1,
 *   overflow: "drop-oldest",
 *   onOverflow: (value) => console.log("dropped", value), // dropped 1
 * };
 * using port = Port.create<number>({ capacity: 256, ...latest });
 * while (port.tryWrite(0)); // nobody reads
 * for (const value of [1, 2]) port.postMessage(value);
 * ```
 */
export interface PostingOptions<Out = unknown> {
  /**
   * The most messages that are posted and not in the ring yet, from 1. A message of which a part is
   * in the ring does not count. Default 1,024.
   */
  readonly queueLimit?: number | undefined;
  /**
   * What becomes of a message that is posted when the queue is full. Default `wait`.
   *
   * - `wait`: it is queued all the same. A caller that awaits each promise never fills it.
   * - `reject`: its promise rejects with an `OverflowError`.
   * - `drop-oldest`: it is queued, and the oldest one is dropped, whose promise rejects with an
   *   `OverflowError`.
   */
  readonly overflow?: "wait" | "reject" | "drop-oldest" | undefined;
  /** Called with each value that `drop-oldest` drops, at the end of the job. */
  readonly onOverflow?: ((value: Out) => void) | undefined;
}

/**
 * Options of one posted message.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * using port = Port.create<string>({ capacity: 256 });
 * while (port.tryWrite("nobody reads"));
 * const changing = new AbortController();
 * const posted = port.postMessage("take me back", { signal: changing.signal });
 * changing.abort("changed my mind");
 * console.log(await posted.catch((reason) => reason)); // "changed my mind"
 * ```
 */
export interface PostOptions {
  /**
   * Takes back the message if it is not in the ring yet: its promise rejects with the signal's
   * reason.
   */
  readonly signal?: AbortSignal | undefined;
}

const DEFAULT_QUEUE_LIMIT = 1024;
const NO_TRANSFER =
  "Cannot post message: nothing is transferred, values are copied; write a Uint8Array as it is";

/**
 * Values that go out as one message, with one promise for all of them, which is settled once. An
 * object and a promise for each value took a fifth of a burst (measured: Deno 2.9, Node 24).
 */
export class Run {
  /** JSON texts with a comma between any two, or a payload; undefined when the run is settled. */
  payload: string | Payload | undefined;
  /** The number of values; 0 for a message of a call, which is never dropped and does not count. */
  count = 1;
  /** How many UTF-16 units more the payload may have, commas among them. */
  room = 0;
  /** The value that `onOverflow` gets. */
  value: unknown;
  kind: number = FRAME_KIND_DATA;
  tag = 0;
  promise: Promise<void> | undefined;
  /** Called when the message is in the ring, or with the reason why it will not come there. */
  resolve!: () => void;
  reject!: (reason: unknown) => void;
  /** Removes the listener from the signal. */
  release: (() => void) | undefined;
  /** The turn in which it is written: the outlet's `asked` after the request for that turn. */
  turn = 0;
  /** The next run in the queue. */
  next: Run | undefined;

  /** Makes a run of one message. */
  constructor(payload: string | Payload) {
    this.payload = payload;
  }
}

/** Throws for options that an outbox cannot use. */
export function requirePostingOptions(options: PostingOptions<never>): void {
  const { queueLimit = DEFAULT_QUEUE_LIMIT, overflow = "wait" } = options;
  requireInteger("queueLimit", queueLimit, 1);
  requireName("overflow", overflow, ["wait", "reject", "drop-oldest"]);
}

/** Throws unless a name is one of `names`. */
export function requireName(what: string, name: string, names: readonly string[]): void {
  if (names.includes(name)) return;
  mistake(`${what} must be one of ${names.join(", ")}: ${name}`);
}

/** What is chained to this promise runs as a microtask. */
const SETTLED: Promise<void> = /* @__PURE__ */ Promise.resolve();

/** The messages posted on one port. */
export class Outbox implements Posts, Duty {
  readonly #outlet: Outlet;
  readonly #options: PostingOptions<never>;
  /** The queue: the first run that may not be settled yet, and the last run. */
  #first: Run | undefined;
  #last: Run | undefined;
  /** Whether the outlet holds the first run, of which a part may be in the ring. */
  #isBegun = false;
  /** The turn that the posts have, and the last one asked for and not given back; -1 for none. */
  #turn = -1;
  #asked = -1;
  /** The number of posts that are not settled. */
  #count = 0;
  /**
   * UTF-16 units of texts, and bytes of payloads, that were posted since the last look for room.
   */
  #gathered = 0;
  /** Whether a flush is under way. It may wait for room, and meanwhile be asked for again. */
  #isFlushing = false;
  /**
   * Whether the background waits: for room, or until a message is taken back or all are written.
   */
  #isWaiting = false;
  // Made once, because a conversation takes a turn for each message.
  readonly #writeRest = (): void => {
    // Mostly, a call that waits, or this flush, has written everything.
    this.flushLast();
    if (this.#turn >= 0) this.#write();
  };

  /** Makes an empty outbox. */
  constructor(outlet: Outlet, options: PostingOptions<never>) {
    this.#outlet = outlet;
    this.#options = options;
    outlet.posts = this;
  }

  /**
   * Posts one value. The promise resolves when the message is in the ring, and rejects when it will
   * not come there; the caller need not handle it.
   *
   * @throws {TypeError} if the value cannot be encoded, or a claim is open.
   */
  post(value: unknown, options: PostOptions | undefined): Promise<void> {
    const outlet = this.#outlet;
    // Callers of a `MessagePort` pass their transfers like this.
    if (options !== null) requireOptions(options);
    if (options && (Array.isArray(options) || "transfer" in options)) {
      mistake(NO_TRANSFER);
    }
    const signal = options?.signal;
    outlet.requireFree();
    const payload = this.#encode(value);
    try {
      signal?.throwIfAborted();
      outlet.check();
      this.#makeRoom();
    } catch (error) {
      return markHandled(Promise.reject(error));
    }
    this.#count++;
    this.#gathered += typeof payload === "string" ? payload.length : payload.size;
    const mayJoin = this.#asked === outlet.asked && signal === undefined;
    const run = mayJoin && join(this.#last!, payload) || this.#begin(payload, value, signal);
    // So that the peer reads while more is posted, and that of many texts few are alive: in a
    // thread that has just started, every garbage collection takes as long as hundreds of posts.
    if (this.#gathered > outlet.capacity >> 2) this.flushLast();
    return run.promise!;
  }

  /** Whether the posts have the turn: what is accepted then goes out without the event loop. */
  get isActive(): boolean {
    return this.#turn >= 0;
  }

  flush(wait?: () => void): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    try {
      for (; this.#turn >= 0; this.#finish()) {
        while (!this.#advance()) {
          if (wait === undefined) return;
          wait();
        }
      }
    } finally {
      this.#isFlushing = false;
    }
  }

  /** [port.posted] */
  attend(): Waitable | undefined {
    // If a flush is under way, that flush itself waits for the room.
    if (this.#isFlushing || !this.flushLast()) return undefined;
    return this.#turn < 0 ? undefined : roomOf(this.#outlet);
  }

  /**
   * Writes what there is room for, before a close or a wait for something else. Returns false if
   * that failed.
   */
  flushLast(): boolean {
    try {
      this.flush();
      return true;
    } catch {
      return false; // the promises say why
    }
  }

  /** Appends a run, and has it written when its turn comes. */
  add(run: Run): void {
    // After an asynchronous write that was called meanwhile, the run needs a turn of its own.
    if (this.#asked !== this.#outlet.asked) this.#askForTurn();
    run.turn = this.#asked;
    if (this.#first === undefined) this.#first = run;
    else this.#last!.next = run;
    this.#last = run;
  }

  #askForTurn(): void {
    const { link, turns } = this.#outlet;
    this.#asked = ++this.#outlet.asked;
    if (turns.tryTake()) {
      this.#takeTurn(this.#asked);
      // The rest of the job may post more, all of which becomes visible at once.
      (link.giveWay() ?? SETTLED).then(this.#writeRest);
    } else {
      const turn = this.#asked;
      // At once, so that the next call that writes finds the posts, and writes them first.
      turns.take(Infinity, undefined, () => this.#takeTurn(turn)).then(this.#writeRest);
    }
  }

  #takeTurn(turn: number): void {
    this.#turn = turn;
    this.#outlet.endpoint.owe(this);
  }

  #finish(): void {
    const { endpoint, turns } = this.#outlet;
    if (this.#asked === this.#turn) this.#asked = -1;
    this.#turn = -1;
    endpoint.discharge(this);
    turns.give();
    if (this.#isWaiting) this.#rouse(); // it waits for room that is not needed any more
  }

  /** Writes the posts that have the turn, in the background: waits where there is no room. */
  async #write(): Promise<void> {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    while (this.#turn >= 0) {
      try {
        this.flush();
        if (this.#turn < 0) break;
        await waitRoomAsync(this.#outlet, Infinity, undefined);
      } catch (reason) {
        // Unless a blocking call, or an `end`, has written the posts meanwhile.
        if (this.#turn >= 0) this.#lose(reason);
      }
    }
    this.#isWaiting = false;
  }

  /** Settles the posts that have the turn, because they will not come into the ring. */
  #lose(reason: unknown): void {
    this.#outlet.lostCount++;
    this.#isBegun = false;
    let run = this.#first;
    // Runs of earlier turns are settled.
    for (; run !== undefined && run.turn <= this.#turn; run = run.next) this.#settle(run, reason);
    this.#first = run;
    this.#finish();
  }

  /** Places and publishes what there is room for. Returns true when nothing of the turn is left. */
  #advance(): boolean {
    const outlet = this.#outlet;
    this.#gathered = 0;
    outlet.check(true);
    let hasRoom = true;
    let run = this.#first;
    for (; run !== undefined; run = run.next) {
      if (run.payload === undefined) continue; // settled
      if (run.turn !== this.#turn) break;
      this.#first = run;
      if (!this.#isBegun) this.#start(run);
      hasRoom = outlet.advance();
      if (!hasRoom) break;
      this.#isBegun = false;
      this.#settle(run); // published before anybody can look
    }
    this.#first = run;
    if (!hasRoom) detach(outlet);
    outlet.store();
    return hasRoom;
  }

  /** Begins a run, whose payload the outlet then holds. */
  #start(run: Run): void {
    this.#isBegun = true;
    const outlet = this.#outlet;
    const payload = run.payload!;
    run.room = 0;
    if (typeof payload !== "string") outlet.restore(payload);
    else if (run.count === 1) encodeText(payload, CODEC_JSON, outlet);
    else encodeText(`[${payload}]`, CODEC_JSON_BATCH, outlet); // [codec.batch]
    outlet.start(run.kind, run.tag);
  }

  /** Encodes the value as it is now: as a JSON text, of which batches are made, or as a payload. */
  #encode(value: unknown): string | Payload {
    const outlet = this.#outlet;
    if (outlet.codec === "json" && !isBytes(value)) {
      outlet.vet?.(value as never);
      const text = jsonOf(value);
      if (text !== undefined) return text;
    }
    const payload = makePayload();
    outlet.encode(value, payload);
    payload.isKept = false; // the caller's bytes may change at once, so they are copied as well
    detach(payload);
    return payload;
  }

  /** Makes a run of one post, and appends it. */
  #begin(payload: string | Payload, value: unknown, signal: AbortSignal | undefined): Run {
    const { overflow, onOverflow } = this.#options;
    const { largest, mayBatch } = this.#outlet;
    const run = new Run(payload);
    run.promise = new Promise<void>((resolve, reject) => {
      run.resolve = resolve;
      run.reject = reject;
    });
    if (onOverflow) run.value = value;
    if (signal !== undefined) {
      const abort = () => this.takeBack(run, signal.reason);
      signal.addEventListener("abort", abort);
      run.release = () => signal.removeEventListener("abort", abort);
    } else if (typeof payload === "string" && mayBatch && overflow !== "drop-oldest") {
      // A message that may be taken back stays alone. [frame.batch_whole] A batch has to fit one
      // frame: one UTF-16 unit takes at most three bytes, and there are two brackets.
      run.room = Math.floor(Math.min(RUN_SIZE, largest / 3)) - 2 - payload.length;
    }
    this.add(run);
    return run;
  }

  /** Settles the promise of a run, once, and lets go of what the run holds. */
  #settle(run: Run, reason?: unknown): void {
    if (run.payload === undefined) return;
    run.payload = undefined;
    run.room = 0;
    this.#count -= run.count;
    run.release?.();
    if (reason === undefined) return run.resolve();
    if (run.promise !== undefined) markHandled(run.promise);
    run.reject(reason);
  }

  /** Takes back a run that is not in the ring, and settles it. */
  takeBack(run: Run, reason: unknown): void {
    const wasBegun = this.#isBegun && run === this.#first;
    if (wasBegun) this.#isBegun = false;
    this.#settle(run, reason);
    if (wasBegun) this.#rouse(); // the runs after it may have room
  }

  /** Has the background look again, whether or not there is room. */
  #rouse(): void {
    this.#outlet.bits |= RENEWED;
    this.#outlet.endpoint.watch.look();
  }

  /** Makes sure that one more message can be posted, as `overflow` says. */
  #makeRoom(): void {
    const { overflow = "wait", onOverflow, queueLimit = DEFAULT_QUEUE_LIMIT } = this.#options;
    if (overflow === "wait" || this.#waitingCount < queueLimit) return;
    this.flush();
    if (this.#waitingCount < queueLimit) return;
    if (overflow === "reject") {
      throw new OverflowError(`Cannot post: ${queueLimit} messages wait for room`);
    }
    // Of this run nothing is in the ring, and no call needs it. There is one, since there are too
    // many.
    let oldest = this.#first!;
    while (oldest.payload === undefined || oldest.count === 0 || this.#isInRing(oldest)) {
      oldest = oldest.next!;
    }
    this.takeBack(oldest, new OverflowError("Cannot send: dropped for a newer message"));
    // An audio worklet has no `queueMicrotask`.
    if (onOverflow) Promise.resolve().then(() => onOverflow(oldest.value as never));
  }

  /** The number of posts of which nothing is in the ring. */
  get #waitingCount(): number {
    const first = this.#first;
    return this.#count - (first !== undefined && this.#isInRing(first) ? first.count : 0);
  }

  /** Whether a part of a run is in the ring. */
  #isInRing(run: Run): boolean {
    return this.#isBegun && run === this.#first && this.#outlet.sent >= 0;
  }
}

/** Lets a text go out with a run, if the run takes more; returns the run then. */
function join(run: Run, payload: Run["payload"]): Run | undefined {
  if (typeof payload !== "string" || run.room <= payload.length) return undefined;
  run.payload += `,${payload}`;
  run.room = ++run.count < RUN_COUNT ? run.room - payload.length - 1 : 0;
  return run;
}

/** Marks the rejection of a promise as handled: the close event tells of the failure too. */
function markHandled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
