/**
 * One thread's place in a segment: its bell, its state, and how it waits. See `spec/segment.md`
 * and `spec/wait.md`.
 *
 * @module
 */

import { ForbiddenError, SegmentError } from "../error.ts";
import * as layout from "../memory/layout.ts";
import { memoryGone, now, type Segment } from "../memory/segment.ts";
import { defaultMechanism, type Duty, type Holder, type Mechanism } from "./wait.ts";
import { found, Several, type Waitable } from "./wait.ts";
import type { Loop, LoopSpinner } from "./loop_spinner.ts";
import { requireTime, Spinner } from "./spinner.ts";
import { changeState, ring, ringAround, stateOf, withState } from "./state.ts";
import { giveWay, remove } from "./task.ts";
import { Watch } from "./watch.ts";

/**
 * What an endpoint has counted since it attached.
 *
 * @example
 * ```ts
 * import { Port, type Stats } from "@millrace/millrace";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory);
 * for (let n = 0; n < 100; n++) here.write(n);
 * const { wakes, wakesElided }: Stats = here.stats;
 * console.log(wakes, wakesElided >= 100); // 0 true
 * ```
 */
export interface Stats {
  /** Bells rung: a system call each. */
  readonly wakes: number;
  /** Publishes and releases that rang no bell, because nobody slept. */
  readonly wakesElided: number;
  /** Times that this endpoint went to sleep. */
  readonly parks: number;
  /**
   * Sleeps of blocking and asynchronous calls that nothing ended but their slice, although there
   * was something to be done. A peer that rings as it should makes none, but for one that comes at
   * the very end of a slice: more than a few are wakes that were lost.
   */
  readonly lateWakes: number;
}

/**
 * How an endpoint waits.
 *
 * @example
 * ```ts
 * import { pollingMechanism, Port } from "@millrace/millrace";
 *
 * // Leaves the processor to others, and needs nobody who wakes it.
 * using port = Port.create({ spin: 0, mechanism: pollingMechanism() });
 * console.log(port.read({ timeout: 10 })); // undefined
 * ```
 */
export interface EndpointOptions {
  /**
   * Microseconds to spin before sleeping in a blocking call. Default 50 with two or more
   * processors, where a fresh end sleeps at once in its first eight waits; otherwise 0. An event
   * loop that waits for an answer spins for 20 of them at most, and now and then for up to 400,
   * where that finds a peer awake.
   */
  readonly spin?: number | undefined;
  /**
   * Milliseconds for which an event loop that waits for an answer may stand still, asleep, before
   * it turns: an answer that comes meanwhile costs half as much. Nothing else happens on the thread
   * then. 4 is a good choice for a thread with one conversation, and less than a tick of the
   * system's clock, 1 to 4 ms, may cost as much as it saves. A thread that must not block does not
   * nap, and one whose naps find nothing soon naps less.
   *
   * Without it, a loop naps for 4 ms at most once two answers in a row, which no spin has found,
   * have come within 0.1 ms, or with one processor within a millisecond; and one nap for 128
   * answers may be in vain. 0 turns that off.
   */
  readonly nap?: number | undefined;
  /** How to sleep and to wake; by default what suits the memory. */
  readonly mechanism?: Mechanism | undefined;
}

const VACANT = layout.ENDPOINT_STATE_VACANT;
const ATTACHED = layout.ENDPOINT_STATE_ATTACHED;
const STATE_WORD = layout.ENDPOINT_STATE_WORD;
const STATE_MASK = layout.STATE_MASK;
const WAKES_WORD = layout.ENDPOINT_WAKES_WORD;
const RECORD_WORDS = layout.ENDPOINT_RECORD_SIZE >> 2;
/** What this version understands beyond itself. [segment.features] */
const FEATURES = 0;

/** What a peer demands of a sleep: short slices, as it is vacant; that one polls; or neither. */
export const SHORT = 1;
export const DEAF = 2;
const ABLE = 4;

/** One endpoint, owned by the thread that made this object. */
export class Endpoint implements Loop {
  /** The one that is lent, while something attaches to it. */
  static #lent: Endpoint | undefined;

  readonly segment: Segment;
  readonly index: number;
  readonly mechanism: Mechanism;
  /** The options of these names. */
  readonly spin: number | undefined;
  readonly nap: number | undefined;
  /** Whether the endpoint was vacated before: its rings begin where they stand. [segment.again] */
  readonly isAgain: boolean;
  /** What `stats` tells. The rings count what they elide, on the hot path. */
  wakes = 0;
  wakesElided = 0;
  parks = 0;
  lateWakes = 0;
  /** Of `wakes`, at the last wait that could spin. */
  #wakesBefore = 0;
  readonly #words: Int32Array;
  readonly #bell: number;
  readonly #state: number;
  /** The own state word while this object has the endpoint. [segment.own_state] */
  readonly #attached: number;
  // What waits is made when the first wait needs it: most of it a thread never does.
  #spinner: Spinner | undefined;
  loopSpinner: LoopSpinner | undefined;
  #watch: Watch | undefined;
  /** What may hold something back. */
  readonly #holders: Holder[] = [];
  /** What has accepted something and not placed all of it. */
  readonly #duties: Duty[] = [];

  private constructor(segment: Segment, index: number, options: EndpointOptions) {
    const vacant = Endpoint.requireVacant(segment, index);
    const { spin, nap, mechanism = defaultMechanism(segment) } = options;
    requireTime("spin", spin);
    requireTime("nap", nap);
    const { records } = segment;
    const record = index * RECORD_WORDS;
    this.segment = segment;
    this.index = index;
    this.mechanism = mechanism;
    this.spin = spin;
    this.nap = nap;
    this.#words = records;
    this.#bell = record + layout.ENDPOINT_BELL_WORD;
    this.#state = record + STATE_WORD;
    this.#attached = vacant | ATTACHED; // [segment.again] The upper bits stay.
    const seen = Atomics.compareExchange(records, this.#state, vacant, this.#attached);
    if (seen === vacant) {
      // Behind the state: until then the record is not ours. Peers that look in between poll, and
      // the ring sends them to look again.
      Atomics.store(records, record + WAKES_WORD, mechanism.rings);
      Atomics.store(records, record + layout.ENDPOINT_FEATURES_WORD, FEATURES);
    }
    this.isAgain = seen === vacant &&
      Atomics.load(records, record + layout.ENDPOINT_GENERATION_WORD) !== 0;
    // Also where somebody came first, who may have died before its ring.
    ringAround(segment, records, index, mechanism);
    if (seen !== vacant) throw taken(index);
  }

  /**
   * Takes a vacant endpoint for this thread. [segment.attach]
   *
   * @throws {SegmentError} `segment.endpoint` if it does not exist or is not vacant.
   */
  static attach(segment: Segment, index: number, options: EndpointOptions = {}): Endpoint {
    const lent = Endpoint.#lent;
    if (lent === undefined || !lent.#is(segment, index)) {
      return new Endpoint(segment, index, options);
    }
    Endpoint.#lent = undefined;
    return lent;
  }

  /**
   * Calls what attaches to this endpoint, which was taken already, and has it find it vacant.
   *
   * @throws {TypeError} if it attaches to nothing, or elsewhere.
   */
  lend<T>(attach: () => T): T {
    Endpoint.#lent = this;
    try {
      const user = attach();
      if (Endpoint.#lent === undefined) return user;
    } finally {
      Endpoint.#lent = undefined;
    }
    throw new TypeError(`Cannot lend endpoint ${this.index}: nothing has attached to it`);
  }

  #is(segment: Segment, index: number): boolean {
    return this.segment === segment && this.index === index;
  }

  /**
   * Returns the state word of a vacant endpoint; changes nothing.
   *
   * @throws {SegmentError} `segment.endpoint` if it does not exist or is not vacant.
   */
  static requireVacant(segment: Segment, index: number): number {
    if (!Number.isInteger(index) || index < 0 || index >= segment.endpointCount) {
      throw new SegmentError("segment.endpoint", `Cannot attach endpoint ${index}: no such one`);
    }
    const word = Atomics.load(segment.records, index * RECORD_WORDS + STATE_WORD);
    const isLent = Endpoint.#lent !== undefined && Endpoint.#lent.#is(segment, index);
    if (stateOf(word) !== VACANT && !isLent) throw taken(index);
    return word;
  }

  /** How the blocking waits of this endpoint spin. */
  get spinner(): Spinner {
    return this.#spinner ??= new Spinner(this.spin, this.mechanism.blocks);
  }

  /** Its asynchronous waits. */
  get watch(): Watch {
    return this.#watch ??= new Watch(this, this.#words, this.#bell);
  }

  /** A copy of the counters. */
  get stats(): Stats {
    const { wakes, wakesElided, parks, lateWakes } = this;
    return { wakes, wakesElided, parks, lateWakes };
  }

  /** Whether the memory is gone, as that of a `WebAssembly.Memory` that has grown. */
  get isDetached(): boolean {
    return this.#words.length === 0;
  }

  /** The state word of an endpoint, own or peer's, loaded once. */
  state(index: number): number {
    if (this.isDetached) memoryGone();
    return Atomics.load(this.#words, index * RECORD_WORDS + STATE_WORD);
  }

  /** Whether an own state word is that of this owner. [segment.own_state] */
  isOwn(word: number): boolean {
    return word === this.#attached;
  }

  /** Whether this endpoint and a peer are both attached. */
  isLinked(peer: number): boolean {
    // [segment.state_relaxed] Two calls of `Atomics.load` took a tenth of a short write.
    return this.#words[this.#state] === this.#attached &&
      (this.#words[peer * RECORD_WORDS + STATE_WORD]! & STATE_MASK) === ATTACHED;
  }

  /** Whether this endpoint is no longer attached, or is another's. */
  hasEnded(): boolean {
    if (this.isDetached) memoryGone();
    return Atomics.load(this.#words, this.#state) !== this.#attached;
  }

  /** Whether the state of a peer is final. */
  isGone(peer: number): boolean {
    return (this.state(peer) & STATE_MASK) > ATTACHED;
  }

  /** Whether a state ends a wait for this peer: the own one no longer attached, or its final. */
  hasChanged(peer: number): boolean {
    // In one function: a wait asks for it several times, and a thread that has just started has no
    // machine code for it.
    const words = this.#words;
    try {
      return Atomics.load(words, this.#state) !== this.#attached ||
        (Atomics.load(words, peer * RECORD_WORDS + STATE_WORD) & STATE_MASK) > ATTACHED;
    } catch {
      return true; // the memory is gone
    }
  }

  /** Wakes an endpoint. */
  ring(index: number): void {
    this.wakes++;
    ring(this.#words, index, this.index, this.mechanism);
  }

  /** The bell, loaded once. */
  bell(): number {
    return Atomics.load(this.#words, this.#bell);
  }

  /** Ends this endpoint, and every wait of it. [pipe.close] */
  close(): void {
    const closed = withState(this.#attached, layout.ENDPOINT_STATE_CLOSED);
    const { segment, index, mechanism } = this;
    if (!this.isDetached) {
      changeState(segment, index, (word) => this.isOwn(word) ? closed : undefined, mechanism);
    }
    this.#watch?.look();
  }

  /** Has something let go of what it may hold back before anything is waited for. */
  hold(holder: Holder): void {
    this.#holders.push(holder);
  }

  /** Attends to a duty in every wait, until `discharge`. [port.posted] */
  owe(duty: Duty): void {
    this.#duties.push(duty);
  }

  /** Takes a duty away. */
  discharge(duty: Duty): void {
    remove(this.#duties, duty);
  }

  /**
   * Publishes everything finished and gives back everything released, in whichever ring: held back,
   * either can keep a peer from what is waited for. [port.publish_both] [port.hub_publish]
   */
  settle(): void {
    for (let holder; (holder = this.#holders.pop()) !== undefined;) holder.letGo();
  }

  /**
   * Before a wait that keeps the event loop from turning: settles, and places what was accepted.
   * Returns what to wait for, with what shows that there is room for the rest. [port.posted]
   */
  prepare(what: Waitable): Waitable {
    this.settle();
    const duties = this.#duties;
    if (duties.length === 0) return what;
    let parts: Waitable[] | undefined;
    // From the last one: each may take itself away.
    for (let index = duties.length - 1; index >= 0; index--) {
      const owed = duties[index]!.attend();
      if (owed !== undefined) (parts ??= [what]).push(owed);
    }
    return parts === undefined ? what : new Several(parts);
  }

  /**
   * Blocks until a cursor or a state may have changed; false at the deadline. `deadline` is in
   * milliseconds of `now`. The caller has looked for everything before, without
   * success. `waits` are those of its call before this one.
   *
   * What it runs is in few functions: in the first waits of a thread nothing is compiled yet, and
   * each call of a function takes half a microsecond (measured: Node 24).
   *
   * @throws {ForbiddenError} on a thread that must not block, after a few looks. [wait.no_block]
   */
  wait(what: Waitable, deadline: number, waits = 0): boolean {
    let all = this.prepare(what);
    const rang = this.noteRings();
    const spinner = this.#spinner ?? this.spinner;
    // Who has not attached takes longer than a spin, and says nothing of those to come.
    const isAtOnce = spinner.skip() || (spinner.blocks && this.demands(what) === SHORT);
    if (!isAtOnce && spinner.spin(all, deadline, waits) && (all === what || found(what))) {
      return true;
    }
    if (!spinner.blocks) {
      throw new ForbiddenError("Cannot wait: this thread must not block; use the async call");
    }
    // A first look at the clock takes a worker of Node 0.7 ms.
    const { learns } = spinner;
    const isTimed = deadline < Infinity || learns;
    const start = isTimed ? now() : 0;
    for (let time = start;; all = this.prepare(what)) {
      const slept = this.doze(all, deadline - time);
      if ((!slept && all === what) || what.look() || what.lookAround()) {
        if (slept && learns) spinner.slept(now() - start, rang);
        return true;
      }
      if (isTimed) time = now();
      if (deadline <= time) return false;
    }
  }

  /** Looks for it as long as there is no need of a deadline. False: `wait` goes on. */
  waitBriefly(what: Waitable): boolean {
    const spinner = this.#spinner ?? this.spinner;
    return spinner.dips && spinner.dip(this.prepare(what));
  }

  /**
   * Waits without blocking: the sleep is a promise. It sleeps once at most, and the caller looks
   * after every sleep. Throws the reason of an aborted signal.
   */
  waitAsync(
    what: Waitable,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    return this.watch.wait(what, deadline, signal);
  }

  /** Lets the event loop turn if it has not for a while: a flood must not starve it. */
  giveWay(): Promise<void> | undefined {
    return giveWay();
  }

  /** What the peers of a wait demand of its sleeps. */
  demands({ peer, parts }: Pick<Waitable, "peer" | "parts">): number {
    if (parts !== undefined) return parts.reduce((all, part) => all | this.demands(part), 0);
    // [wait.vacant] Its attach will ring us, or a slice will end.
    const words = this.#words;
    const record = peer * RECORD_WORDS;
    if (words.length === 0) return SHORT;
    if ((Atomics.load(words, record + STATE_WORD) & STATE_MASK) === VACANT) return SHORT;
    // [wait.mechanism] It has to ring the mechanism by which this endpoint sleeps.
    const wakes = Atomics.load(words, record + WAKES_WORD);
    return (wakes & this.mechanism.sleeps) === 0 ? DEAF : ABLE;
  }

  /** The longest sleep, in milliseconds. [wait.slice] */
  sliceMs(demands: number): number {
    const isShort = (demands & SHORT) !== 0 || this.mechanism.checkPeers !== undefined;
    return isShort ? layout.WAIT_SLICE_MS : layout.WAIT_SLICE_ATTACHED_MS;
  }

  /** Notes the rings so far. Returns whether a peer has been rung since the last call. */
  noteRings(): boolean {
    const before = this.#wakesBefore;
    this.#wakesBefore = this.wakes;
    return before !== this.wakes;
  }

  /**
   * Sleeps once, for so many milliseconds and no longer than a slice. Returns whether it did: not
   * where something was there already.
   */
  doze(what: Waitable, ms: number): boolean {
    const { mechanism } = this;
    const words = this.#words;
    // [wait.bell_first] What rings after this load keeps us from sleeping.
    const bell = Atomics.load(words, this.#bell);
    what.arm();
    try {
      // [wait.recheck] Without this look, a cursor stored just before the arming is missed.
      if (what.look() || what.lookAround()) return false;
      if (ms > 0) {
        this.parks++;
        const demands = this.demands(what);
        const slice = this.sliceMs(demands);
        const polls = (demands & DEAF) !== 0;
        // [wait.poll] On the own bell all the same: a close by another thread still wakes it.
        const most = Math.min(ms, polls ? layout.WAIT_POLL_MS : slice);
        const isOver = mechanism.sleep(words, this.#bell, bell, most) === false;
        if (isOver && !polls && slice <= ms && found(what)) this.lateWakes++;
        mechanism.checkPeers?.();
      }
      return true;
    } finally {
      what.disarm();
    }
  }
}

function taken(index: number): SegmentError {
  return new SegmentError(
    "segment.endpoint",
    `Cannot attach endpoint ${index}: it is taken; a port has two ends, and a Hub has more`,
  );
}
