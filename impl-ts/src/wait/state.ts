/**
 * The state of an endpoint: who may change it, for which owner a change is meant, and whose bells
 * are rung after it. See `spec/segment.md`.
 *
 * @module
 */

import type { SharedReason } from "../error.ts";
import { layout, reasonValue } from "../memory/layout.ts";
import { type Segment, throwGone } from "../memory/segment.ts";
import { peersOf, recordAt, requireInteger } from "../memory/plan.ts";
import type { Endpoint, Waiter } from "./endpoint.ts";
import { defaultMechanism, type Mechanism } from "./mechanism.ts";

/**
 * Closes an endpoint on behalf of its owner, from any thread: the owner's waits end with
 * `pipe.closed`. Returns whether it closed the endpoint; false if the endpoint is vacant or its
 * state is final. `mechanism` wakes the sleepers; the default suits the memory. If `generation` is
 * given, only the owner of that generation is closed, and a later owner of the endpoint is left
 * alone: see `generationOf`.
 *
 * @throws {RangeError} if there is no endpoint with this index.
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
  return changeState(segment, index, 0, mechanism, generation);
}

/**
 * Marks an endpoint failed. A supervisor calls it when it knows that the endpoint's thread is gone:
 * the peers then get `peer.failed` with this reason. Any thread may call it. [pipe.supervisor]
 *
 * Returns whether it marked the endpoint; false if the state is final. `mechanism` wakes the
 * sleepers; the default suits the memory. If `generation` is given, only the owner of that
 * generation is marked, and a later owner of the endpoint is left alone: see `generationOf`.
 *
 * @throws {RangeError} if there is no endpoint with this index.
 * @throws {TypeError} if `reason` is not a reason code.
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

/** Does what `failEndpoint` does, with the number of an existing reason. [segment.state_reason] */
export function markFailed(
  segment: Segment,
  index: number,
  reason: number,
  mechanism?: Mechanism,
  generation?: number,
): boolean {
  const failed = layout.ENDPOINT_STATE_FAILED | (reason << layout.REASON_SHIFT);
  return changeState(segment, index, failed, mechanism, generation);
}

/**
 * Returns how many times an endpoint was given back by `revive`. A supervisor notes this number
 * when it starts the owner, and passes it to `failEndpoint` when that owner has died. The endpoint
 * may have another owner by then, which must not be marked for the death of the first.
 * [segment.state_owner]
 *
 * @throws {RangeError} if there is no endpoint with this index.
 *
 * @example
 * ```ts
 * import { failEndpoint, generationOf, Port } from "@millrace/millrace";
 * import { revive } from "@millrace/millrace/revive";
 *
 * using port = Port.create<string>();
 * const first = generationOf(port.segment, 1); // of the worker that is started now
 * failEndpoint(port.segment, 1, "peer.terminated", undefined, first);
 * using again = revive(port);
 * using next = Port.attach<string>(port.memory); // usually in another worker
 * // Told once more that the first one is gone:
 * console.log(failEndpoint(port.segment, 1, "peer.terminated", undefined, first)); // false
 * ```
 */
export function generationOf(segment: Segment, index: number): number {
  requireInteger("index", index, 0, segment.endpointCount - 1);
  return generationAt(segment, index);
}

/** The same of an endpoint that there is. */
export const generationAt = (segment: Segment, index: number): number =>
  Atomics.load(segment.control, recordAt(index) + layout.ENDPOINT_GENERATION_WORD) >>> 0;

/** The `cause` for errors about a failed owner, if a supervisor in this thread has noted one. */
export function causeOf(segment: Segment, index: number): ErrorOptions | undefined {
  const known = segment.causes?.get(index);
  // A cause that was noted for an earlier owner says nothing about this one.
  return known?.generation === generationAt(segment, index) ? known : undefined;
}

/** The state that a state word holds in its low bits. [segment.state_low] */
export const stateOf = (word: number): number => word & layout.STATE_MASK;

/** Whether a state is final, or has a value that no endpoint may store. */
export const isFinal = (state: number): boolean => state > layout.ENDPOINT_STATE_ATTACHED;

/** The vacant state word of a generation, with the low bits of that. [segment.vacate_state] */
export const vacantWord = (generation: number): number =>
  generation << layout.REASON_SHIFT | layout.ENDPOINT_STATE_VACANT;

/**
 * Changes the state word of an endpoint to `failed`, unless it is final; with 0, to closed, if it
 * is attached, and the upper bits stay. Returns false if the change was dropped. It applies to the
 * owner of `generation`, or, without one, to the owner that the first attempt finds.
 * [segment.state_change] [segment.state_owner] [segment.state_reason]
 */
export function changeState(
  segment: Segment,
  index: number,
  failed: number,
  mechanism: Mechanism = defaultMechanism(segment),
  generation?: number,
): boolean {
  const words = segment.control;
  const at = recordAt(index) + layout.ENDPOINT_STATE_WORD;
  let owner = generation === undefined ? undefined : generation << layout.REASON_SHIFT;
  let changed = false;
  for (let attempt = 0; attempt < layout.STATE_TRIES && !changed; attempt++) {
    const seen = Atomics.load(words, at);
    const state = stateOf(seen);
    const bits = seen & ~layout.STATE_MASK;
    const isLeft = state > layout.ENDPOINT_STATE_ATTACHED || !(failed || state) ||
      (owner ??= bits) !== bits;
    if (isLeft) break;
    const to = failed || bits | layout.ENDPOINT_STATE_CLOSED;
    // The exchange expects the exact word that was loaded, so it never overwrites a final state.
    changed = Atomics.compareExchange(words, at, seen, to) === seen;
  }
  // Ring even if the change was dropped: the thread that changed the state may have died before its
  // own ring.
  ringAround(segment, index, mechanism);
  return changed;
}

/** The state word of an endpoint, own or peer's, loaded once. */
export function stateWord({ words }: Endpoint, index: number): number {
  if (!words.length) throwGone();
  return Atomics.load(words, recordAt(index) + layout.ENDPOINT_STATE_WORD);
}

/** Whether an endpoint is no longer this owner's. [segment.own_state] */
export const hasLeft = (endpoint: Endpoint): boolean =>
  stateWord(endpoint, endpoint.index) !== endpoint.attached;

/** An endpoint, and the one at the other end of a pipe. */
interface Joined {
  readonly endpoint: Endpoint;
  readonly peerState: number;
}

/** Where the state word of an endpoint stands. */
export const stateAt = (index: number): number => recordAt(index) + layout.ENDPOINT_STATE_WORD;

/** Whether an endpoint and its peer are both attached. */
export function isLinked({ endpoint: { words, state, attached }, peerState }: Joined): boolean {
  // [segment.state_relaxed] Two calls of `Atomics.load` took a tenth of a short write.
  return words[state] === attached &&
    (words[peerState]! & layout.STATE_MASK) === layout.ENDPOINT_STATE_ATTACHED;
}

/** Whether a state ends a wait: the own one has changed, or that of a peer is final. */
export function hasChanged(
  { endpoint: { words, state, attached }, peerStates }: Pick<Waiter, "endpoint" | "peerStates">,
): boolean {
  try {
    if (Atomics.load(words, state) !== attached) return true;
    for (const at of peerStates) {
      if ((Atomics.load(words, at) & layout.STATE_MASK) > layout.ENDPOINT_STATE_ATTACHED) {
        return true;
      }
    }
    return false;
  } catch {
    return true; // the memory is gone
  }
}

/** Rings the bell of an endpoint and the bells of all its peers. [segment.state_ring] */
export function ringAround(segment: Segment, index: number, mechanism: Mechanism): void {
  const from = { words: segment.control, index, mechanism, wakes: 0 };
  ring(from, index);
  for (const peer of peersOf(segment, index)) ring(from, peer);
}

/**
 * Wakes an endpoint. It first sets the bit of the one that rings in the endpoint's `rung`, then
 * adds to the bell. [wait.rung] [wait.ring]
 */
export function ring(
  from: Pick<Endpoint, "words" | "index" | "mechanism" | "wakes">,
  index: number,
): void {
  const { words, index: who, mechanism } = from;
  const record = recordAt(index);
  from.wakes++;
  Atomics.or(words, record + layout.ENDPOINT_RUNG_WORD + (who >> 5), 1 << (who & 31));
  const bell = record + layout.ENDPOINT_BELL_WORD;
  Atomics.add(words, bell, 1);
  mechanism.notify(words, bell);
}
