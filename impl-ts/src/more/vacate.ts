/**
 * Vacates the endpoint of a peer whose owner is dead, so that another owner can attach to it. See
 * `spec/segment.md`, "An endpoint that comes back".
 *
 * @module
 */

import {
  CHANNEL_KIND_RING,
  ENDPOINT_STATE_CLOSED,
  ENDPOINT_STATE_FAILED,
} from "../memory/layout.ts";
import {
  ENDPOINT_AGENT_WORD,
  ENDPOINT_FEATURES_WORD,
  ENDPOINT_GENERATION_WORD,
} from "../memory/layout.ts";
import {
  ENDPOINT_RECORD_SIZE,
  ENDPOINT_STATE_WORD,
  ENDPOINT_WAKES_WORD,
} from "../memory/layout.ts";
import { RING_HEAD_WORD, RING_READER_WANTS_WORD, RING_TAIL_WORD } from "../memory/layout.ts";
import { RING_WRITER_WANTS_WORD } from "../memory/layout.ts";
import { PeerFailedError, raise } from "../error.ts";
import { ASIDE, ENCODING, ENDED, GONE, LENT, OWED, RENEWED, STOPPED } from "../memory/gate.ts";
import type { Link } from "../pipe/pipe.ts";
import { IN_RING, type Inlet, LOOK } from "../pipe/inlet.ts";
import type { Outlet } from "../pipe/outlet.ts";
import type { Reader } from "../pipe/reader.ts";
import type { Writer } from "../pipe/writer.ts";
import type { Lane } from "../ring/ring.ts";
import { fanoutRecord } from "../memory/segment_fanout.ts";
import { ringAround, stateOf, vacantWord } from "../wait/state.ts";

/**
 * An end whose peer can be vacated: a reader, a writer, or a port, one of a hub's included.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { vacatePeer, type VacatingEnd } from "@millrace/millrace/supervise";
 *
 * const isGivenBack = (end: VacatingEnd): boolean => {
 *   try {
 *     vacatePeer(end);
 *     return true;
 *   } catch (error) {
 *     if (!(error instanceof TypeError)) throw error;
 *     return false; // not now: its peer is there, or was not read to the end
 *   }
 * };
 * using port = Port.create<string>();
 * const peer = Port.attach<string>(port.memory); // usually in another thread
 * console.log(isGivenBack(port)); // false
 * peer.close();
 * console.log(isGivenBack(port)); // true
 * ```
 */
export type VacatingEnd =
  // deno-lint-ignore no-explicit-any
  Reader<any> | Writer<any> | { readonly reader: Reader<any> };

/**
 * Vacates the endpoint of a peer whose owner is dead, so that another thread or process can attach
 * to it. In this way a worker that has crashed can be started again and go on in the same memory.
 * Everything that the peer published must have been read; what it had not read is dropped. Messages
 * written from now on are for the endpoint's next owner, even before that owner attaches. Nothing
 * remains of what the last owner did, neither a fault nor an `end`. What was taken out of the ring
 * already, the elements of a batch for instance, is still delivered first.
 *
 * The peer must have closed, or be marked failed, by `supervise` or `failEndpoint`. The caller must
 * also know that the peer's thread has ended or will not touch the memory any more; otherwise two
 * owners would write to one ring. In a file, the lock of the peer's process shows that. The call
 * never waits.
 *
 * A port with a listener goes on delivering messages; its `closed` is then a new promise, and its
 * streams are new ones. In a hub, vacate a client's endpoint through its port, and do not close
 * that port. A hub itself has many peers and cannot be vacated.
 *
 * @throws {TypeError} if the peer may not be vacated, or not now: it is not gone, something that it
 * published is not read, it has other peers, or channels that this end does not use.
 * @throws {ClosedError} if this end itself was closed, marked failed or replaced.
 *
 * @example
 * ```ts
 * import { failEndpoint, Port } from "@millrace/millrace";
 * import { vacatePeer } from "@millrace/millrace/supervise";
 *
 * using port = Port.create<string>();
 * const first = Port.attach<string>(port.memory); // usually in a worker
 * first.write("the last words");
 * failEndpoint(port.segment, port.peerIndex); // it has crashed: `supervise` says so
 *
 * console.log(port.read()); // "the last words"
 * vacatePeer(port);
 * port.write("welcome");
 * using next = Port.attach<string>(port.memory); // in the next worker
 * console.log(next.read()); // "welcome"
 * ```
 */
export function vacatePeer(end: VacatingEnd): void {
  const link = linkOf(end);
  const { endpoint, peer, outgoing, incoming } = link;
  raise(link.ownError("vacate peer")); // [segment.vacate_peer]
  // [segment.vacate_read] The state is loaded before the ring is searched for unread messages.
  const word = endpoint.state(peer);
  const state = stateOf(word);
  if (state !== ENDPOINT_STATE_CLOSED && state !== ENDPOINT_STATE_FAILED) {
    throw refusal("it has not closed, and is not marked failed");
  }
  if (!isOurs(link)) throw refusal("it has channels that this end does not use");
  if (endpoint.mechanism.isAlive?.(peer)) throw refusal("its owner lives"); // [segment.vacate_dead]
  if (outgoing !== undefined && (outgoing.bits & ENCODING) !== 0) {
    throw refusal("a value is being encoded");
  }
  if (incoming !== undefined && skipToUnread(incoming)) {
    throw refusal("what it has published is not read");
  }
  vacate(link, word);
  endpoint.watch.look(); // waits of this endpoint go on, for the next owner
}

/**
 * Skips frames that nobody reads. Returns whether anything that somebody has to read is left in the
 * ring. [segment.vacate_read]
 */
function skipToUnread(inlet: Inlet): boolean {
  if ((inlet.bits & (ENDED | STOPPED)) !== 0) return false;
  if (inlet.isLent && inlet.isLentInRing) return true;
  try {
    inlet.load();
    return inlet.pull(LOOK, undefined, false) === IN_RING;
  } catch (thrown) {
    if (thrown === inlet.fault) return false;
    throw thrown;
  }
}

/** Vacates the peer's endpoint, whose final state word is `final`. */
function vacate(link: Link, final: number): void {
  const { endpoint, peer, outgoing, incoming } = link;
  const { segment, mechanism } = endpoint;
  const words = segment.records;
  const record = peer * (ENDPOINT_RECORD_SIZE >> 2);
  const before = Atomics.load(words, record + ENDPOINT_GENERATION_WORD);
  if (before === -1) throw refusal("it was given back too often"); // 2^32 - 1
  if (outgoing !== undefined) renewOutlet(outgoing);
  if (incoming !== undefined) renewInlet(incoming);
  link.renew();
  // [segment.vacate_words]
  for (const word of [ENDPOINT_WAKES_WORD, ENDPOINT_AGENT_WORD, ENDPOINT_FEATURES_WORD]) {
    Atomics.store(words, record + word, 0);
  }
  const generation = (before + 1) | 0;
  Atomics.store(words, record + ENDPOINT_GENERATION_WORD, generation);
  // [segment.vacate_state] Last: a thread that finds the endpoint vacant finds all else in place.
  const state = record + ENDPOINT_STATE_WORD;
  Atomics.compareExchange(words, state, final, vacantWord(generation));
  ringAround(segment, words, peer, mechanism);
}

/**
 * Begins anew with the next reader. That reader gets nothing of a message that was begun, and the
 * call or the post that still writes it fails; a message that was not begun goes to that reader.
 * [pipe.vacated]
 */
function renewOutlet(outlet: Outlet): void {
  const why = "Cannot write: the peer's endpoint was given back in the middle of the message";
  if (outlet.sent >= 0) outlet.cutError = new PeerFailedError(why, 0);
  outlet.sent = -1;
  outlet.round++;
  outlet.fault = undefined;
  outlet.own = outlet.other = outlet.stored;
  outlet.bits &= ~(STOPPED | ENDED | LENT | GONE | OWED | ASIDE);
  outlet.asides.length = 0;
  outlet.bits |= RENEWED;
  renewControl(outlet, RING_READER_WANTS_WORD);
}

/** Begins anew with the next writer; what is in the queue is still delivered. [pipe.vacated] */
function renewInlet(inlet: Inlet): void {
  const { frame } = inlet;
  frame.inProgress = frame.dropped = frame.unsummed = false;
  inlet.bits &= ~(ENDED | STOPPED | GONE);
  inlet.fault = undefined;
  inlet.drop();
  inlet.other = inlet.stored = inlet.own;
  renewControl(inlet, RING_WRITER_WANTS_WORD);
}

/** Makes both cursors equal, and clears the `wants` word of the peer. [segment.vacate_words] */
function renewControl({ control, own }: Lane, wants: number): void {
  Atomics.store(control, RING_TAIL_WORD, own);
  Atomics.store(control, RING_HEAD_WORD, own);
  Atomics.store(control, wants, 0);
}

function linkOf(end: VacatingEnd): Link {
  if ("outlet" in end) return end.outlet.link;
  return ("reader" in end ? end.reader : end).inlet.link;
}

/** Whether every channel that names the peer is a ring of this end. [segment.vacate_peer] */
function isOurs({ endpoint, peer, outgoing, incoming }: Link): boolean {
  const { index, segment } = endpoint;
  let [outCount, inCount] = [outgoing === undefined ? 0 : 1, incoming === undefined ? 0 : 1];
  for (const channel of segment.channels) {
    const { kind, writer, reader } = channel;
    if (fanoutRecord(channel, segment.endpointCount, peer) >= 0) return false;
    if (writer !== peer && reader !== peer) continue;
    if (kind !== CHANNEL_KIND_RING) return false;
    if (writer === index) outCount--;
    else if (reader === index) inCount--;
    else return false;
  }
  return outCount === 0 && inCount === 0;
}

function refusal(why: string): TypeError {
  return new TypeError(`Cannot vacate peer: ${why}`);
}
