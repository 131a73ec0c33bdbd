/**
 * The small port: one thread's place in a segment, and how it waits.
 *
 * @module
 */

import { reasonName, reasonNames, reasonOf } from "../../reference/layout.ts";
import { has, hold } from "./faults.ts";
import { minus, pause, PortError } from "./small_memory.ts";
import { recordAt, type Segment } from "./small_segment.ts";

const [VACANT, ATTACHED, CLOSED, FAILED] = [0, 1, 2, 3];
const [STATE, WAKES, GENERATION, FEATURES] = [4, 8, 16, 20];
const LOW = 255;
const AGENT = 1;
const SLICE_MS = 100;
const SLICE_ATTACHED_MS = 1_000;
const POLL_MS = 4;

/** How a sleeper asks for its ring, and takes that back. */
export interface Ask {
  arm(): void;
  disarm(): void;
}

/** What an endpoint does with each of its ends before it waits. */
export interface End {
  settle(): void;
}

/** One thread's place in a segment. */
export class Endpoint {
  readonly segment: Segment;
  readonly index: number;
  readonly peer: number;
  readonly ends: End[] = [];
  /** The word by which it attached: the generation stands above the state. [segment.own_state] */
  readonly word: number;
  /** How often it was vacated: where it is not 0, it begins at the cursors as they stand. */
  readonly generation: number;
  /** The peer's state, once it was final or invalid. */
  #final: PortError | undefined;
  closed = false;

  private constructor(segment: Segment, index: number, peer: number, word: number) {
    this.segment = segment;
    this.index = index;
    this.peer = peer;
    this.word = word;
    this.generation = segment.memory.load(recordAt(index) + GENERATION);
  }

  /** [segment.attach], [segment.again] */
  static attach(segment: Segment, index: number, peer: number): Endpoint {
    const vacant = segment.requireVacant(index);
    const { memory } = segment;
    const at = recordAt(index);
    const word = has("bits_lost") ? ATTACHED : (vacant & ~LOW | ATTACHED) >>> 0;
    const isOurs = memory.change(at + STATE, vacant, word);
    if (isOurs) {
      if (!has("wakes_left_out")) memory.store(at + WAKES, AGENT);
      if (!has("features_left")) memory.store(at + FEATURES, 0); // [segment.features]
    }
    segment.ringAround(index);
    if (!isOurs) throw new PortError("segment.endpoint");
    return new Endpoint(segment, index, peer, word);
  }

  /** Where an end begins: where its cursor stands, when somebody had it before. */
  begin(start: number, cursor: number): number {
    const generation = has("again_by_state") ? this.word >>> 8 : this.generation;
    if (generation === 0 || has("again_at_start")) return start;
    // [ring.start_again]
    const found = this.segment.memory.load(cursor);
    return has("again_unaligned") ? found : (found & ~15) >>> 0;
  }

  /** What the own state says: nothing while it is the word by which it attached. */
  ownState(): PortError | undefined {
    const state = this.segment.memory.load(recordAt(this.index) + STATE);
    if (has("own_ignored") || state === this.word) return undefined;
    if (has("own_low") && (state & LOW) === ATTACHED) return undefined;
    if ((state & LOW) === CLOSED) return new PortError("pipe.closed");
    // [segment.own_state] A state that nobody may store has no reason.
    const reason = (state & LOW) === FAILED ? nameOf(state >>> 8) : "none";
    return new PortError("pipe.failed", reason);
  }

  /** What every call answers first: this endpoint was closed, or its state says so. */
  answer(): void {
    if (this.closed) throw new PortError("pipe.closed");
    const own = this.ownState();
    if (own !== undefined) throw own;
  }

  /** What the peer's state says: nothing while it is vacant or attached. */
  peerState(): PortError | undefined {
    if (this.#final !== undefined) return this.#final;
    const state = this.segment.memory.load(recordAt(this.peer) + STATE);
    const low = state & LOW;
    if (has("bits_judged") ? state <= ATTACHED : low <= ATTACHED) return undefined;
    if (low === CLOSED) return this.#final = new PortError("peer.closed");
    const reason = low === FAILED ? nameOf(state >>> 8) : "segment.state";
    return this.#final = new PortError("peer.failed", reason);
  }

  /** Looks at the peer's state anew, which is another's from now on. */
  forgetFinal(): void {
    this.#final = undefined;
  }

  /** Marks the peer for a fault in its words, and returns what to report. [ring.fault] */
  failPeer(code: string): PortError {
    if (!has("fault_silent")) {
      const isAlive = (state: number) => (state & LOW) <= ATTACHED;
      this.segment.changeState(this.peer, isAlive, this.failedBy(code));
    }
    return new PortError(code);
  }

  /** The state of who has failed for that. */
  failedBy(code: string): number {
    return FAILED | reasonOf(code) << 8;
  }

  /** Rings the peer if it has asked for what a cursor has reached. [wait.exchange] */
  wake(wants: number, cursor: number): void {
    const { memory } = this.segment;
    if (has("rings_never")) return;
    if (has("rings_always")) return this.segment.ring(this.peer, this.index);
    const wanted = memory.load(wants);
    if (wanted === 0) return;
    const position = minus(wanted, wanted & 1);
    const isReached = has("wants_unsigned")
      ? cursor >= position
      : has("rings_early") || (cursor - position | 0) >= 0;
    if (!isReached) return;
    if (has("wants_left") || memory.exchange(wants, 0) !== 0) {
      this.segment.ring(this.peer, this.index);
    }
  }

  /** Publishes and gives back all that is finished and released. [port.publish_both] */
  settle(): void {
    for (const end of this.ends) end.settle();
  }

  /** Sleeps until something may have changed; `look` says whether it has. Not beyond a slice. */
  sleep(wants: number, position: number, look: () => boolean, deadline: number): void {
    const { memory } = this.segment;
    const wanted = (has("asks_wrong") ? position - 16 : position) | 1;
    const ask: Ask = {
      arm: () => memory.store(wants, wanted),
      disarm: () => {
        if (!has("wants_armed")) memory.store(wants, 0);
      },
    };
    this.rest(this.peer, ask, look, deadline);
  }

  /** The same, whatever it is that a peer is asked by. */
  rest(peer: number, ask: Ask, look: () => boolean, deadline: number): void {
    const { memory } = this.segment;
    const bellAt = recordAt(this.index);
    hold("arm");
    let bell = memory.load(bellAt);
    ask.arm();
    const found = !has("recheck_forgotten") && look();
    hold("sleep");
    if (has("bell_late")) bell = memory.load(bellAt);
    const left = deadline - performance.now();
    if (!found && left > 0) {
      // [wait.mechanism] A peer that is attached and cannot ring this is not waited for.
      const state = memory.load(recordAt(peer) + STATE) & LOW;
      const isRung = state === VACANT || (memory.load(recordAt(peer) + WAKES) & AGENT) !== 0;
      // [wait.slice] One that is vacant may come and not ring.
      const isShort = state === VACANT && !has("slice_long");
      const slice = has("slice_forgotten") ? left : isShort ? SLICE_MS : SLICE_ATTACHED_MS;
      if (isRung) memory.sleep(bellAt, bell, Math.min(left, slice));
      else pause(Math.min(left, POLL_MS));
    }
    ask.disarm();
  }

  /** [pipe.close] */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    const isOwn = (state: number) =>
      has("close_of_any") ? (state & LOW) === ATTACHED : state === this.word;
    const bits = has("bits_lost_at_close") ? 0 : this.word & ~LOW; // [segment.state_reason]
    this.segment.changeState(this.index, isOwn, (bits | CLOSED) >>> 0);
  }
}

/** A reason as it is reported: a number where it has no name. [pipe.failed_reason] */
function nameOf(reason: number): string | number {
  if (reason === 0) return "none";
  const name = reasonName(reason);
  return reasonNames().includes(name) ? name : reason;
}
