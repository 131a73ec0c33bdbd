/**
 * The state of an endpoint: who may change it, on whose account, and who is rung for it. See
 * `spec/segment.md`.
 *
 * @module
 */

import type { SharedReason } from "./error.ts";
import * as layout from "./layout.ts";
import { reasonValue } from "./layout.ts";
import type { Segment } from "./segment.ts";
import { peersOf, requireInteger } from "./segment_geometry.ts";
import { defaultMechanism, type Mechanism } from "./wait.ts";

const RECORD_WORDS = layout.ENDPOINT_RECORD_SIZE >> 2;
const STATE_WORD = layout.ENDPOINT_STATE_WORD;
const VACANT = layout.ENDPOINT_STATE_VACANT;
const ATTACHED = layout.ENDPOINT_STATE_ATTACHED;

/**
 * Closes an endpoint on behalf of its owner, from any thread: its owner's waits end with
 * `pipe.closed`. Returns whether it did; false if the endpoint is vacant or its state is final.
 * `mechanism` wakes the sleepers, by default what suits the memory. With the `generation` of an
 * owner, the next one that has the endpoint is left alone: see `generationOf`.
 *
 * @throws {RangeError} if there is no endpoint with this index.
 *
 * @example
 * ```ts
 * import { closeEndpoint, Port, Segment } from "@millrace/millrace";
 *
 * const port = Port.create();
 * closeEndpoint(Segment.attach(port.memory), 0);
 * // port.read() now throws a ClosedError with the code "pipe.closed".
 * ```
 */
export function closeEndpoint(
  segment: Segment,
  index: number,
  mechanism?: Mechanism,
  generation?: number,
): boolean {
  requireInteger("index", index, 0, segment.endpointCount - 1);
  const change = (word: number) =>
    stateOf(word) === ATTACHED ? withState(word, layout.ENDPOINT_STATE_CLOSED) : undefined;
  return changeState(segment, index, change, mechanism, generation);
}

/**
 * Marks an endpoint failed, as a supervisor that knows that its thread is gone: its peers get
 * `peer.failed` with this reason. Any thread may call it. [pipe.supervisor]
 *
 * Returns whether it did; false if the state is final. `mechanism` wakes the sleepers, by default
 * what suits the memory. With the `generation` of an owner, the next one that has the endpoint is
 * left alone: see `generationOf`.
 *
 * @throws {RangeError} if there is no endpoint with this index.
 * @throws {TypeError} if `reason` is no reason code.
 *
 * @example
 * ```ts
 * import { failEndpoint, Port } from "@millrace/millrace";
 *
 * const port = Port.create();
 * // The worker that had side b is gone:
 * failEndpoint(port.segment, 1, "peer.terminated");
 * ```
 */
export function failEndpoint(
  segment: Segment,
  index: number,
  reason: SharedReason = "peer.terminated",
  mechanism?: Mechanism,
  generation?: number,
): boolean {
  requireInteger("index", index, 0, segment.endpointCount - 1);
  const value = reasonValue(reason);
  if (value === undefined) throw new TypeError(`reason must be a reason code: ${reason}`);
  return markFailed(segment, index, value, mechanism, generation);
}

/** `failEndpoint` by the value of a reason, of one that there is. [segment.state_reason] */
export function markFailed(
  segment: Segment,
  index: number,
  reason: number,
  mechanism?: Mechanism,
  generation?: number,
): boolean {
  const failed = layout.ENDPOINT_STATE_FAILED | (reason << layout.REASON_SHIFT);
  const change = (word: number) => isFinal(stateOf(word)) ? undefined : failed;
  return changeState(segment, index, change, mechanism, generation);
}

/**
 * How often an endpoint was given back, by `vacatePeer`. A supervisor notes it when it
 * starts the owner, and hands it to `failEndpoint` when that has died: by then the endpoint may
 * have another owner, which must not be marked for it. [segment.state_owner]
 *
 * @throws {RangeError} if there is no endpoint with this index.
 *
 * @example
 * ```ts
 * import { failEndpoint, generationOf, Port } from "@millrace/millrace";
 * import { vacatePeer } from "@millrace/millrace/supervise";
 *
 * using port = Port.create<string>();
 * const first = generationOf(port.segment, 1); // of the worker that is started now
 * failEndpoint(port.segment, 1, "peer.terminated", undefined, first);
 * vacatePeer(port);
 * using next = Port.attach<string>(port.memory); // usually in another worker
 * // Told once more that the first one is gone:
 * console.log(failEndpoint(port.segment, 1, "peer.terminated", undefined, first)); // false
 * ```
 */
export function generationOf(segment: Segment, index: number): number {
  requireInteger("index", index, 0, segment.endpointCount - 1);
  const at = index * RECORD_WORDS + layout.ENDPOINT_GENERATION_WORD;
  return Atomics.load(segment.records, at) >>> 0;
}

/** The cause of the error of an owner that failed, where a supervisor in this thread knows it. */
export function causeOf(segment: Segment, index: number): ErrorOptions | undefined {
  const known = segment.causes?.get(index);
  // Of the owner before, it says nothing of this one.
  return known?.generation === generationOf(segment, index) ? known : undefined;
}

/** The state in a state word. [segment.state_low] */
export function stateOf(word: number): number {
  return word & layout.STATE_MASK;
}

/** Whether a state is final, or none that there is. */
export function isFinal(state: number): boolean {
  return state > ATTACHED;
}

/** A state word with another state, and the upper bits as they were. [segment.state_reason] */
export function withState(word: number, state: number): number {
  return word & ~layout.STATE_MASK | state;
}

/** The vacant state word of a generation, of which it has the low bits. [segment.vacate_state] */
export function vacantWord(generation: number): number {
  return generation << layout.REASON_SHIFT | VACANT;
}

/**
 * Changes a state to what `change` makes of the word; undefined where the table has no change from
 * that. False: the change was dropped. It concerns the owner of that generation, or who has the
 * endpoint at the first attempt. [segment.state_change] [segment.state_owner]
 */
export function changeState(
  segment: Segment,
  index: number,
  change: (word: number) => number | undefined,
  mechanism: Mechanism = defaultMechanism(segment),
  generation?: number,
): boolean {
  const words = segment.records;
  const at = index * RECORD_WORDS + STATE_WORD;
  let owner = generation === undefined ? undefined : vacantWord(generation);
  let changed = false;
  for (let attempt = 0; attempt < layout.STATE_TRIES && !changed; attempt++) {
    const seen = Atomics.load(words, at);
    const to = change(seen);
    const bits = withState(seen, VACANT);
    if (to === undefined || (owner ??= bits) !== bits) break;
    // From the exact value: a final state is never overwritten.
    changed = Atomics.compareExchange(words, at, seen, to) === seen;
  }
  // Also when the change was dropped: who came first may have died before its ring.
  ringAround(segment, words, index, mechanism);
  return changed;
}

/** Rings the bell of an endpoint and those of all its peers. [segment.state_ring] */
export function ringAround(
  segment: Segment,
  words: Int32Array,
  index: number,
  mechanism: Mechanism,
): void {
  ring(words, index, index, mechanism);
  for (const peer of peersOf(segment, index)) ring(words, peer, index, mechanism);
}

/** Wakes an endpoint, and says for whom: a bit, before the bell. [wait.rung] [wait.ring] */
export function ring(words: Int32Array, index: number, who: number, mechanism: Mechanism): void {
  const record = index * RECORD_WORDS;
  Atomics.or(words, record + layout.ENDPOINT_RUNG_WORD + (who >> 5), 1 << (who & 31));
  const bell = record + layout.ENDPOINT_BELL_WORD;
  Atomics.add(words, bell, 1);
  mechanism.notify(words, bell);
}
