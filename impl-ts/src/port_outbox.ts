/**
 * What is posted on a port: messages that go out together at the end of the job, or when they are
 * many, in the background where there is no room. See `spec/port.md`.
 *
 * @module
 */

import { detach, encodeText, makePayload, type Payload } from "./codec.ts";
import { OverflowError } from "./error.ts";
import { CODEC_JSON, CODEC_JSON_BATCH, FRAME_KIND_DATA } from "./layout.ts";
import { RUN_COUNT, RUN_SIZE } from "./pipe_many.ts";
import type { Outlet, Posts } from "./pipe_outlet.ts";
import { roomOf, waitRoomAsync } from "./pipe_room.ts";
import { requireInteger } from "./segment_geometry.ts";
import { type Duty, type Waitable, withLook } from "./wait.ts";

/**
 * How messages are posted.
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
export interface PostingOptions<Out = never> {
  /**
   * Most messages that are posted and not in the ring yet, from 1; one of which a part is there
   * does not count. Default 1,024.
   */
  readonly queueLimit?: number | undefined;
  /**
   * What becomes of a message that is posted when so many are. Default `wait`.
   *
   * - `wait`: it is taken all the same; whoever awaits the promises does not get so far.
   * - `reject`: its promise rejects with an `OverflowError`.
   * - `drop-oldest`: it is taken, and the oldest one dropped, whose promise rejects with an
   *   `OverflowError`.
   */
  readonly overflow?: "wait" | "reject" | "drop-oldest" | undefined;
  /** Is told each value that `drop-oldest` drops, at the end of the job. */
  readonly onOverflow?: ((value: Out) => void) | undefined;
}

/**
 * How one message is posted.
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
  /** Takes the message back while it is not in the ring: the promise rejects with the reason. */
  readonly signal?: AbortSignal | undefined;
}

const DEFAULT_QUEUE_LIMIT = 1024;
const NO_TRANSFER =
  "Cannot post message: nothing is transferred, values are copied; write a Uint8Array as it is";

/**
 * Values that go out as one message, and the promise of all of them, which is settled once. An
 * object and a promise for each value took a fifth of a burst (measured: Deno 2.9, Node 24).
 */
interface Run {
  /** JSON texts with a comma between any two, or a payload; undefined when it is settled. */
  payload: string | Payload | undefined;
  /** 0 for a message of a call, which is never dropped and counts for nothing. */
  count: number;
  /** How many UTF-16 units more it may have, commas among them. */
  room: number;
  readonly value: unknown;
  readonly kind: number;
  readonly tag: number;
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
  /** Lets go of the signal. */
  release: (() => void) | undefined;
  /** The one behind it in its group. */
  next: Run | undefined;
}

/** Runs that are written in one turn. */
interface Group {
  /** The first one that the encoder has not taken and that may not be settled, if there is one. */
  first: Run | undefined;
  last: Run;
  /** The outlet's count behind the request for the turn. */
  readonly asked: number;
}

/** Throws for what an outbox cannot work with. */
export function requirePostingOptions(options: PostingOptions): void {
  const { queueLimit = DEFAULT_QUEUE_LIMIT, overflow = "wait" } = options;
  requireInteger("queueLimit", queueLimit, 1);
  if (overflow === "wait" || overflow === "reject" || overflow === "drop-oldest") return;
  throw new TypeError(`overflow must be "wait", "reject" or "drop-oldest": ${overflow}`);
}

/** The messages posted on one port. */
export class Outbox implements Posts, Duty {
  readonly #outlet: Outlet;
  readonly #limit: number;
  readonly #overflow: PostingOptions["overflow"];
  readonly #onOverflow: PostingOptions["onOverflow"];
  /** In the order of their turns. */
  readonly #groups: Group[] = [];
  /** The one that has the turn: the first, if any. */
  #active: Group | undefined;
  /**
   * What the encoder holds: taken out of the active group, in the ring in part at most. Settled, it
   * was taken back, and the encoder has to go on with the next one.
   */
  #run: Run | undefined;
  /** Posts that are not settled. */
  #count = 0;
  /** UTF-16 units of texts, and bytes, that were posted since room was last looked for. */
  #gathered = 0;
  /** Whether a flush is under way, which may wait for room and so be asked for another. */
  #isFlushing = false;
  /** Waits of the background for room, or until a message is taken back or all are written. */
  #sleepCount = 0;
  readonly #room: Waitable;

  /** Makes an outbox that is empty. */
  constructor(outlet: Outlet, options: PostingOptions) {
    this.#outlet = outlet;
    this.#limit = options.queueLimit ?? DEFAULT_QUEUE_LIMIT;
    this.#overflow = options.overflow;
    this.#onOverflow = options.onOverflow;
    outlet.posts = this;
    const look = () => outlet.look() || isSettled(this.#run) || this.#active === undefined;
    this.#room = withLook(outlet, look);
  }

  /**
   * Posts one value. The promise settles when the message is in the ring, or will not come there;
   * nobody has to listen to it.
   *
   * @throws {TypeError} if the value cannot be encoded, or a claim is open.
   */
  post(value: unknown, options: PostOptions | undefined): Promise<void> {
    const outlet = this.#outlet;
    // As callers of a `MessagePort` write it.
    if (options && (Array.isArray(options) || "transfer" in options)) {
      throw new TypeError(NO_TRANSFER);
    }
    const signal = options?.signal;
    outlet.requireFree();
    const payload = this.#encode(value);
    try {
      signal?.throwIfAborted();
      outlet.check();
      this.#makeRoom();
    } catch (error) {
      return handled(Promise.reject(error));
    }
    this.#count++;
    const group = this.#groups.at(-1);
    const mayJoin = group?.asked === outlet.asked && signal === undefined;
    let run = mayJoin ? join(group.last, payload) : undefined;
    if (run === undefined) this.#add(run = this.#makeRun(payload, value, signal));
    // So that the peer reads while more is posted, and of many texts few are alive: in a thread
    // that has just started, every collection of garbage takes as long as hundreds of posts.
    if (this.#gathered > outlet.capacity >> 2) this.flushLast();
    return run.promise;
  }

  /**
   * Accepts a message of a call, with its payload, which is copied; in order with what is posted.
   * `settle` is called when it is in the ring, or with the reason why it will not come there.
   * Returns what takes it back while it is not there, for a reason or without one.
   */
  accept(
    kind: number,
    tag: number,
    { source, size, code, isKept }: Payload,
    settle: (reason?: unknown) => void,
  ): (reason?: unknown) => void {
    const payload = { source, size, code, isKept };
    detach(payload);
    const what = { payload, count: 0, room: 0, value: undefined, kind, tag, promise: SETTLED };
    const resolve = () => settle();
    const run: Run = { ...what, resolve, reject: settle, release: undefined, next: undefined };
    this.#add(run);
    return (reason) => this.#takeBack(run, reason);
  }

  /** Whether it has the turn: what is accepted then goes out without the event loop. */
  get isActive(): boolean {
    return this.#active !== undefined;
  }

  #add(run: Run): void {
    const group = this.#groups.at(-1);
    // Behind an asynchronous write that was called meanwhile, it needs a turn of its own.
    if (group === undefined || group.asked !== this.#outlet.asked) return this.#send(run);
    group.last = group.last.next = run;
    group.first ??= run;
  }

  flush(wait?: () => void): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    try {
      for (let group; (group = this.#active) !== undefined; this.#finish()) {
        while (!this.#advance(group)) {
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
    // Where a flush is under way, that is what waits.
    if (this.#isFlushing || !this.flushLast()) return undefined;
    return this.#active === undefined ? undefined : roomOf(this.#outlet);
  }

  /** Before a close, or a wait for something else: writes what there is room for. */
  flushLast(): boolean {
    try {
      this.flush();
      return true;
    } catch {
      return false; // the promises say why
    }
  }

  /** Has a run, and what is posted behind it meanwhile, written when its turn comes. */
  #send(run: Run): void {
    const { link, turns } = this.#outlet;
    const group: Group = { first: run, last: run, asked: ++this.#outlet.asked };
    this.#groups.push(group);
    // Mostly, a call that waits, or the wait for the next event, has written them.
    const write = () => void (this.#active === group && this.#write(group));
    if (turns.tryTake()) {
      this.#activate(group);
      // The rest of the job may post more, which becomes visible at once.
      (link.giveWay() ?? Promise.resolve()).then(write);
    } else {
      // At once, so that a verb that is called next finds the posts, and writes them.
      turns.take(Infinity, undefined, () => this.#activate(group)).then(write);
    }
  }

  /** It has the turn. */
  #activate(group: Group): void {
    this.#active = group;
    this.#outlet.endpoint.owe(this);
  }

  /** Writes the group that has the turn, in the background where there is no room. */
  async #write(group: Group): Promise<void> {
    try {
      while (this.#active === group && !this.#advance(group)) {
        this.#sleepCount++;
        await waitRoomAsync(this.#outlet, Infinity, undefined, this.#room)
          .finally(() => this.#sleepCount--);
      }
    } catch (reason) {
      if (this.#active !== group) return;
      this.#outlet.lostCount++;
      this.#settle(this.#run, { reason });
      for (let run; (run = peek(group)) !== undefined;) this.#settle(run, { reason });
      this.#run = undefined;
    }
    // Unless a blocking call, or an end, has done it.
    if (this.#active === group) this.#finish();
  }

  #finish(): void {
    const { endpoint } = this.#outlet;
    this.#groups.shift();
    this.#active = undefined;
    endpoint.discharge(this);
    this.#outlet.turns.give();
    if (this.#sleepCount > 0) endpoint.watch.look(); // for room that is not needed any more
  }

  /** Places and publishes what there is room for; true when nothing is left. */
  #advance(group: Group): boolean {
    const outlet = this.#outlet;
    this.#gathered = 0;
    outlet.check(true);
    let run: Run | undefined;
    while ((run = this.#start(group)) !== undefined && outlet.advance()) {
      this.#settle(run); // published before anybody can look
      this.#run = undefined;
    }
    if (run !== undefined) detach(outlet);
    outlet.store();
    return run === undefined;
  }

  /** Returns the run that is under way, or else begins the next one of the group. */
  #start(group: Group): Run | undefined {
    if (!isSettled(this.#run)) return this.#run;
    const outlet = this.#outlet;
    const run = this.#run = peek(group);
    if (run === undefined) return undefined;
    group.first = run.next;
    run.room = 0;
    const payload = run.payload!;
    if (typeof payload !== "string") outlet.restore(payload);
    else if (run.count === 1) encodeText(payload, CODEC_JSON, outlet);
    else encodeText(`[${payload}]`, CODEC_JSON_BATCH, outlet); // [codec.batch]
    outlet.start(run.kind, run.tag);
    return run;
  }

  /** A copy of the value as it is now: a JSON text, from which batches are made, or the payload. */
  #encode(value: unknown): string | Payload {
    const outlet = this.#outlet;
    if (outlet.codec === "json" && !(value instanceof Uint8Array)) {
      outlet.vet?.(value as never);
      const text = JSON.stringify(value);
      if (text !== undefined) {
        this.#gathered += text.length;
        return text;
      }
    }
    const payload = makePayload();
    outlet.encode(value, payload);
    payload.isKept = false; // nor are the caller's bytes, which may change at once
    detach(payload);
    this.#gathered += payload.size;
    return payload;
  }

  #makeRun(payload: Run["payload"], value: unknown, signal: AbortSignal | undefined): Run {
    let resolve!: () => void;
    let reject!: (reason: unknown) => void;
    const promise = new Promise<void>((fulfil, refuse) => {
      resolve = fulfil;
      reject = refuse;
    });
    // What may be taken back stays alone.
    const isOpen = typeof payload === "string" && signal === undefined &&
      this.#overflow !== "drop-oldest";
    // [frame.batch_whole] One UTF-16 unit takes at most three bytes; there are two brackets.
    const most = Math.min(RUN_SIZE, this.#outlet.largest / 3) - 2;
    const run: Run = {
      payload,
      count: 1,
      room: isOpen ? most - payload.length : 0,
      value: this.#onOverflow && value,
      kind: FRAME_KIND_DATA,
      tag: 0,
      promise,
      resolve,
      reject,
      release: undefined,
      next: undefined,
    };
    if (signal !== undefined) {
      const abort = () => this.#takeBack(run, signal.reason);
      signal.addEventListener("abort", abort);
      run.release = () => signal.removeEventListener("abort", abort);
    }
    return run;
  }

  /** Settles the promise, once, and lets go of what the run holds. */
  #settle(run: Run | undefined, error?: { readonly reason: unknown }): void {
    if (run?.payload === undefined) return;
    run.payload = undefined;
    run.room = 0;
    this.#count -= run.count;
    run.release?.();
    if (error === undefined) return run.resolve();
    handled(run.promise);
    run.reject(error.reason);
  }

  /** Settles a run that is not in the ring. */
  #takeBack(run: Run, reason: unknown): void {
    this.#settle(run, { reason });
    // What comes behind it may have room.
    if (run === this.#run) this.#outlet.endpoint.watch.look();
  }

  /** Sees to it that one more can be posted, as `overflow` says. */
  #makeRoom(): void {
    const overflow = this.#overflow ?? "wait";
    if (overflow === "wait" || !this.#isFull()) return;
    this.flush();
    if (!this.#isFull()) return;
    if (overflow === "reject") {
      throw new OverflowError(`Cannot post: ${this.#limit} messages wait for room`);
    }
    const oldest = this.#oldest();
    this.#takeBack(oldest, new OverflowError("Cannot send: dropped for a newer message"));
    const told = this.#onOverflow;
    // An audio worklet has no `queueMicrotask`.
    if (told !== undefined) Promise.resolve().then(() => told(oldest.value as never));
  }

  #isFull(): boolean {
    const { sent } = this.#outlet;
    const begun = sent < 0 || isSettled(this.#run) ? 0 : this.#run!.count;
    return this.#count - begun >= this.#limit;
  }

  /** The oldest message that may be dropped: nothing of it is in the ring, and no call needs it. */
  #oldest(): Run {
    if (this.#outlet.sent < 0 && isDroppable(this.#run)) return this.#run!;
    let run: Run | undefined;
    for (const group of this.#groups) {
      run = peek(group);
      while (run !== undefined && !isDroppable(run)) run = run.next;
      if (run !== undefined) break;
    }
    // There is one: it is asked for where there are too many.
    return run!;
  }
}

/** The promise of what nobody waits for by one. */
const SETTLED: Promise<void> = /* @__PURE__ */ Promise.resolve();

/** Whether there is no such run any more. */
function isSettled(run: Run | undefined): boolean {
  return run?.payload === undefined;
}

/** Whether it may be dropped for a newer one. */
function isDroppable(run: Run | undefined): boolean {
  return !isSettled(run) && run!.count > 0;
}

/** Has a text go out with a run, if that takes more; returns the run then. */
function join(run: Run, payload: Run["payload"]): Run | undefined {
  if (typeof payload !== "string" || run.room <= payload.length) return undefined;
  run.payload += `,${payload}`;
  run.room = ++run.count < RUN_COUNT ? run.room - payload.length - 1 : 0;
  return run;
}

/** The first run of a group that is not settled. */
function peek(group: Group): Run | undefined {
  while (group.first !== undefined && isSettled(group.first)) group.first = group.first.next;
  return group.first;
}

/** A promise whose rejection nobody has to handle: the close event says it too. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
