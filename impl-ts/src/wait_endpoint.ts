/**
 * One thread's place in a segment: its bell, its state, and how it waits. See `spec/segment.md`
 * and `spec/wait.md`.
 *
 * @module
 */

import { ForbiddenError, SegmentError } from "./error.ts";
import * as layout from "./layout.ts";
import { now, type Segment } from "./segment.ts";
import { defaultMechanism, type Duty, type Holder, type Mechanism } from "./wait.ts";
import type { Waitable } from "./wait.ts";
import { Several } from "./wait_several.ts";
import { Naps, requireNap } from "./wait_naps.ts";
import { LoopSpinner, requireSpin, type Sight, Spinner } from "./wait_spinner.ts";
import { changeState, isFinal, ring, ringAround, stateOf, withState } from "./wait_state.ts";
import { Watch } from "./wait_watch.ts";

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
   * loop that waits for an answer spins for 20 of them at most, and in one wait of eight for up to
   * 400, where that finds a peer awake.
   */
  readonly spin?: number | undefined;
  /**
   * Milliseconds for which an event loop that waits for an answer may stand still, asleep, before
   * it turns: an answer that comes meanwhile costs half as much. Nothing else happens on the thread
   * then. 4 is a good choice for a thread with one conversation, and less than a tick of the
   * system's clock, 1 to 4 ms, may cost as much as it saves. A thread that must not block does not
   * nap, and one whose naps find nothing soon naps less.
   *
   * Default 0 with two or more processors. With one, 4, once two answers in a row have come within
   * a millisecond, and one nap of 128 may be in vain; 0 turns that off.
   */
  readonly nap?: number | undefined;
  /** How to sleep and to wake; by default what suits the memory. */
  readonly mechanism?: Mechanism | undefined;
}

const ATTACHED = layout.ENDPOINT_STATE_ATTACHED;
const STATE_WORD = layout.ENDPOINT_STATE_WORD;
const STATE_MASK = layout.STATE_MASK;
const RECORD_WORDS = layout.ENDPOINT_RECORD_SIZE >> 2;
/** What this version understands beyond itself. [segment.features] */
const FEATURES = 0;

/** One endpoint, owned by the thread that made this object. Its spins look at what it waits for. */
export class Endpoint implements Sight {
  readonly segment: Segment;
  readonly index: number;
  readonly mechanism: Mechanism;
  /** Publishes and releases without a ring; counted by the rings, which sit on the hot path. */
  wakesElided = 0;
  #wakes = 0;
  #parks = 0;
  #lateWakes = 0;
  /** Of `#wakes`, at the last wait that could spin. */
  #wakesBefore = 0;
  readonly #words: Int32Array;
  readonly #bell: number;
  readonly #state: number;
  /** The own state word while this object has the endpoint. [segment.own_state] */
  readonly #attached: number;
  #isAgain = false;
  readonly #spin: number | undefined;
  readonly #nap: number | undefined;
  // What waits is made when the first wait needs it: most of it a thread never does.
  #spinner: Spinner | undefined;
  #loopSpinner: LoopSpinner | undefined;
  #naps: Naps | undefined;
  #watch: Watch | undefined;
  /** What may hold something back. */
  readonly #holders: Holder[] = [];
  /** What has accepted something and not placed all of it. */
  readonly #duties: Duty[] = [];
  /** What the blocking wait under way waits for, the last of them to attend to its duties. */
  #what: Waitable | undefined;
  #other: Waitable | undefined;
  #owed: Waitable | undefined;

  private constructor(
    segment: Segment,
    index: number,
    attached: number,
    options: EndpointOptions,
  ) {
    requireSpin(options.spin);
    requireNap(options.nap);
    this.segment = segment;
    this.index = index;
    this.#attached = attached;
    this.#spin = options.spin;
    this.#nap = options.nap;
    this.mechanism = options.mechanism ?? defaultMechanism(segment);
    this.#words = segment.records;
    this.#bell = index * RECORD_WORDS + layout.ENDPOINT_BELL_WORD;
    this.#state = index * RECORD_WORDS + STATE_WORD;
  }

  /** How the blocking waits of this endpoint spin. */
  get spinner(): Spinner {
    return this.#spinner ??= new Spinner(this.#spin, this.mechanism.blocks);
  }

  /** Its asynchronous waits. */
  get watch(): Watch {
    return this.#watch ??= new Watch(this, this.#words, this.#bell);
  }

  #spinnerOfLoop(): LoopSpinner {
    return this.#loopSpinner ??= new LoopSpinner(this.#spin);
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
    const at = index * RECORD_WORDS + layout.ENDPOINT_STATE_WORD;
    const word = Atomics.load(segment.records, at);
    if (stateOf(word) !== layout.ENDPOINT_STATE_VACANT) throw taken(index);
    return word;
  }

  /**
   * Takes a vacant endpoint for this thread. [segment.attach]
   *
   * @throws {SegmentError} `segment.endpoint` if it does not exist or is not vacant.
   */
  static attach(segment: Segment, index: number, options: EndpointOptions = {}): Endpoint {
    const vacant = Endpoint.requireVacant(segment, index);
    const attached = vacant | ATTACHED; // [segment.again] The upper bits stay.
    const endpoint = new Endpoint(segment, index, attached, options);
    const words = endpoint.#words;
    const record = index * RECORD_WORDS;
    const won = Atomics.compareExchange(words, record + STATE_WORD, vacant, attached) === vacant;
    if (won) {
      // Behind the state: until then the record is not ours. Peers that look in between poll, and
      // the ring sends them to look again.
      const { rings } = endpoint.mechanism;
      Atomics.store(words, record + layout.ENDPOINT_WAKES_WORD, rings);
      Atomics.store(words, record + layout.ENDPOINT_FEATURES_WORD, FEATURES);
      endpoint.#isAgain = Atomics.load(words, record + layout.ENDPOINT_GENERATION_WORD) !== 0;
    }
    // Also where somebody came first, who may have died before its ring.
    ringAround(segment, words, index, endpoint.mechanism);
    if (won) return endpoint;
    throw taken(index);
  }

  /** A copy of the counters. */
  get stats(): Stats {
    const { wakesElided } = this;
    return { wakes: this.#wakes, wakesElided, parks: this.#parks, lateWakes: this.#lateWakes };
  }

  /** Whether the endpoint was vacated before: its rings begin where they stand. [segment.again] */
  get isAgain(): boolean {
    return this.#isAgain;
  }

  /** The state word of an endpoint, own or peer's, loaded once. */
  state(index: number): number {
    return Atomics.load(this.#words, index * RECORD_WORDS + layout.ENDPOINT_STATE_WORD);
  }

  /** Whether an own state word is that of this owner. [segment.own_state] */
  isOwn(word: number): boolean {
    return word === this.#attached;
  }

  /** The state in that word, loaded once. */
  stateOf(index: number): number {
    return stateOf(Atomics.load(this.#words, index * RECORD_WORDS + STATE_WORD));
  }

  /** Whether this endpoint and a peer are both attached. */
  isLinked(peer: number): boolean {
    // [segment.state_relaxed] Two calls of `Atomics.load` took a tenth of a short write.
    return this.#words[this.#state] === this.#attached &&
      (this.#words[peer * RECORD_WORDS + STATE_WORD]! & STATE_MASK) === ATTACHED;
  }

  /** Wakes an endpoint. */
  ring(index: number): void {
    this.#wakes++;
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
    changeState(segment, index, (word) => this.isOwn(word) ? closed : undefined, mechanism);
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
    this.#duties.splice(this.#duties.indexOf(duty), 1);
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
   * Returns what to wait for as well, to place the rest. [port.posted]
   */
  prepare(): Waitable | undefined {
    this.settle();
    const duties = this.#duties;
    if (duties.length === 0) return undefined;
    const owed: Waitable[] = [];
    // From the last one: each may take itself away.
    for (let index = duties.length - 1; index >= 0; index--) {
      const what = duties[index]!.attend();
      if (what !== undefined) owed.push(what);
    }
    return owed.length > 0 ? new Several(this, owed) : undefined;
  }

  /**
   * Blocks until a cursor or a state may have changed; false at the deadline. `deadline` is in
   * milliseconds of `performance.now()`. The caller has looked for everything before, without
   * success. `waits` are those of its call before this one.
   *
   * @throws {ForbiddenError} on a thread that must not block, after a few looks. [wait.no_block]
   */
  wait(what: Waitable, other: Waitable | undefined, deadline: number, waits = 0): boolean {
    this.#show(what, other);
    const rang = this.#noteRings();
    const { spinner } = this;
    if (!this.#sleepsAtOnce(spinner, what) && spinner.spin(this, deadline, waits)) {
      if (this.#owed === undefined || this.#found(what, other)) return true;
    }
    if (!spinner.blocks) {
      throw new ForbiddenError("Cannot wait: this thread must not block; use the async call");
    }
    // A first look at the clock takes a worker of Node 0.7 ms.
    const isTimed = deadline < Infinity || spinner.learns;
    for (let start = -1;;) {
      const time = isTimed ? now() : 0;
      if (start < 0) start = time;
      const slept = this.#doze(what, other, deadline - time);
      if ((!slept && this.#owed === undefined) || this.#found(what, other)) {
        if (slept && spinner.learns) spinner.slept(now() - start, rang);
        return true;
      }
      if (this.#owed !== undefined && this.#owed.look()) this.#owed = this.prepare();
      if (deadline <= time) return false;
    }
  }

  /**
   * Whether the wait begins with its sleep, before which it looks anyway: by the record, or since
   * the peer has not attached, which takes longer than a spin, and says nothing of those to come.
   */
  #sleepsAtOnce(spinner: Spinner, what: Waitable): boolean {
    return spinner.skip() ||
      (spinner.blocks && what.parts === undefined && this.isVacant(what.peer));
  }

  /**
   * Sleeps once, for so many milliseconds and no longer than a slice. Returns whether it did: not
   * where something was there already.
   */
  #doze(what: Waitable, other: Waitable | undefined, ms: number): boolean {
    const owed = this.#owed;
    // [wait.bell_first] What rings after this load keeps us from sleeping.
    const bell = this.bell();
    what.arm();
    other?.arm();
    owed?.arm();
    try {
      // [wait.recheck] Without this look, a cursor stored just before the arming is missed.
      if (this.#found(what, other) || (owed !== undefined && owed.look())) return false;
      if (ms > 0) {
        this.#parks++;
        const isSlice = this.#sleep(bell, ms, what.peer, owed?.peer);
        const isLate = isSlice &&
          (this.#found(what, other) || (owed !== undefined && owed.look()));
        if (isLate) this.#lateWakes++;
        this.mechanism.checkPeers?.();
      }
      return true;
    } finally {
      owed?.disarm();
      other?.disarm();
      what.disarm();
    }
  }

  /** The same for so short that there is no need of a deadline. False: `wait` goes on. */
  waitBriefly(what: Waitable): boolean {
    const { spinner } = this;
    if (!spinner.dips) return false;
    this.#show(what, undefined);
    return spinner.dip(this);
  }

  /**
   * The same for an event loop: the sleep is a promise. It sleeps once at most, and the caller
   * looks after every sleep. Throws the reason of an aborted signal.
   */
  async waitAsync(
    what: Waitable,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    signal?.throwIfAborted();
    const left = deadline < Infinity ? deadline - now() : Infinity;
    if (!(left > 0)) return this.#found(what, undefined);
    await (this.watch.wait(what, left, signal) ?? this.giveWay());
    signal?.throwIfAborted();
    return true;
  }

  /**
   * Looks for answers for a short while, as far as that has paid before; for an event loop, which
   * does not turn meanwhile. `sight` may show more than this endpoint has.
   */
  spin(sight: Sight): boolean {
    const spinner = this.#spinnerOfLoop();
    return spinner.learns && spinner.spin(sight, this.#noteRings());
  }

  #napsOfLoop(): Naps {
    return this.#naps ??= new Naps(this.#nap, this.mechanism.blocks);
  }

  /**
   * Sleeps once as a blocking call does, if it may; `owed` is what `prepare` has returned. Returns
   * whether something is there.
   */
  nap(what: Waitable, owed: Waitable | undefined): boolean {
    const naps = this.#napsOfLoop();
    if (!naps.isDue) return false;
    const start = performance.now();
    this.#owed = owed;
    if (!this.#doze(what, undefined, naps.ms)) return true;
    if (!this.#found(what, undefined)) {
      // A ring for another port of this endpoint, which sleeps on the loop, ended it too early to
      // say anything.
      if (!this.watch.isRung) naps.missed();
      return false;
    }
    const spent = performance.now() - start;
    naps.found(spent);
    // As behind a sleep: two that only nap would not find one another awake either.
    this.#loopSpinner?.slept(spent);
    return true;
  }

  /** Whether it is of use to tell how long the event loop slept for an answer. */
  get learns(): boolean {
    return this.#spinnerOfLoop().learns || this.#napsOfLoop().ms > 0;
  }

  /** How long it slept. */
  slept(ms: number): void {
    this.#loopSpinner?.slept(ms);
    this.#naps?.answered(ms);
  }

  /** Settles, places what was accepted, and says what a spin looks at. */
  #show(what: Waitable, other: Waitable | undefined): void {
    this.#owed = this.prepare();
    this.#what = what;
    this.#other = other;
  }

  /** Notes the rings so far. Returns whether a peer has been rung since the last call. */
  #noteRings(): boolean {
    const before = this.#wakesBefore;
    this.#wakesBefore = this.#wakes;
    return before !== this.#wakes;
  }

  /** Lets the event loop turn if it has not for a while: a flood must not starve it. */
  giveWay(): Promise<void> | undefined {
    return this.watch.giveWay();
  }

  /** Whether what the blocking wait under way waits for may be there. */
  look(): boolean {
    return this.#what!.look() || (this.#other !== undefined && this.#other.look()) ||
      (this.#owed !== undefined && this.#owed.look());
  }

  /** Whether a state ends that wait. */
  lookAround(): boolean {
    return this.hasChanged(this.#what!.peer);
  }

  /** Counts a sleep. */
  countPark(): void {
    this.#parks++;
  }

  /** Counts one that ended late. */
  countLateWake(): void {
    this.#lateWakes++;
  }

  #found(what: Waitable, other: Waitable | undefined): boolean {
    return what.look() || (other !== undefined && other.look()) || this.hasChanged(what.peer);
  }

  /** Whether a state ends a wait for this peer: the own one no longer attached, or its final. */
  hasChanged(peer: number): boolean {
    // In one function: a wait asks for it several times, and a thread that has just started has no
    // machine code for it.
    const words = this.#words;
    return Atomics.load(words, this.#state) !== this.#attached ||
      (Atomics.load(words, peer * RECORD_WORDS + STATE_WORD) & STATE_MASK) > ATTACHED;
  }

  /** Whether this endpoint is no longer attached, or is another's. */
  hasEnded(): boolean {
    return Atomics.load(this.#words, this.#state) !== this.#attached;
  }

  /** Whether the state of a peer is final. */
  isGone(peer: number): boolean {
    return isFinal(this.stateOf(peer));
  }

  /**
   * Sleeps no longer than a slice, for a peer or two. Returns whether nothing but a slice's end has
   * ended it.
   */
  #sleep(bell: number, ms: number, peer: number, other: number | undefined): boolean {
    const isVacant = this.isVacant(peer);
    const slice = this.sliceMs(isVacant || (other !== undefined && this.isVacant(other)));
    const isRung = (isVacant || this.#rings(peer)) && (other === undefined || this.wakeable(other));
    // [wait.poll] On the own bell all the same: a close by another thread of ours still wakes it.
    const most = Math.min(ms, isRung ? slice : layout.WAIT_POLL_MS);
    const isOver = this.mechanism.sleep(this.#words, this.#bell, bell, most) === false;
    return isOver && isRung && slice <= ms;
  }

  /** The longest sleep, in milliseconds; `isVacant` says whether a peer is. [wait.slice] */
  sliceMs(isVacant: boolean): number {
    const isShort = isVacant || this.mechanism.checkPeers !== undefined;
    return isShort ? layout.WAIT_SLICE_MS : layout.WAIT_SLICE_ATTACHED_MS;
  }

  /** Whether the peer can ring the mechanism by which this endpoint sleeps. [wait.mechanism] */
  wakeable(peer: number): boolean {
    // [wait.vacant] Its attach will ring us, or a slice will end.
    return this.isVacant(peer) || this.#rings(peer);
  }

  #rings(peer: number): boolean {
    const wakes = Atomics.load(this.#words, peer * RECORD_WORDS + layout.ENDPOINT_WAKES_WORD);
    return (wakes & this.mechanism.sleeps) !== 0;
  }

  /** Whether nobody has attached to the peer's endpoint yet. */
  isVacant(peer: number): boolean {
    const word = Atomics.load(this.#words, peer * RECORD_WORDS + STATE_WORD);
    return (word & STATE_MASK) === layout.ENDPOINT_STATE_VACANT;
  }
}

function taken(index: number): SegmentError {
  return new SegmentError("segment.endpoint", `Cannot attach endpoint ${index}: it is not vacant`);
}
