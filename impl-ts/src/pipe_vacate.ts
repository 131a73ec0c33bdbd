/**
 * Giving a peer's endpoint back, whose owner is dead, so that another can take it. See
 * `spec/segment.md`, "An endpoint that comes back".
 *
 * @module
 */

import { CHANNEL_KIND_RING, ENDPOINT_STATE_CLOSED, ENDPOINT_STATE_FAILED } from "./layout.ts";
import { ENDPOINT_AGENT_WORD, ENDPOINT_FEATURES_WORD, ENDPOINT_GENERATION_WORD } from "./layout.ts";
import { ENDPOINT_RECORD_SIZE, ENDPOINT_STATE_WORD, ENDPOINT_WAKES_WORD } from "./layout.ts";
import { RING_HEAD_WORD, RING_READER_WANTS_WORD, RING_TAIL_WORD } from "./layout.ts";
import { RING_WRITER_WANTS_WORD } from "./layout.ts";
import { PeerFailedError, raise } from "./error.ts";
import { ASIDE, ENCODING, ENDED, GONE, LENT, OWED, RENEWED, STOPPED } from "./gate.ts";
import type { Link } from "./pipe.ts";
import { IN_RING, type Inlet, LOOK } from "./pipe_inlet.ts";
import type { Outlet } from "./pipe_outlet.ts";
import type { Reader } from "./pipe_reader.ts";
import type { Writer } from "./pipe_writer.ts";
import type { Lane } from "./ring.ts";
import { fanoutRecord } from "./segment_fanout.ts";
import { ringAround, stateOf, vacantWord } from "./wait_state.ts";

/**
 * An end whose peer can be given back: a reader, a writer, or a port, one of a hub's for instance.
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
 * Gives the endpoint of the peer back, whose owner is dead, so that another thread or process can
 * attach to it: a worker that has crashed is started again, and goes on in the same memory. What
 * it had published must have been read; what it had not read is dropped. Messages written from now
 * on are for the next owner, also before that has come, and nothing is left of what the last one
 * did: no fault, no end. What is taken out of the ring already, of a batch for instance, still
 * comes first.
 *
 * The peer must have closed, or be marked failed, by `supervise` or `failEndpoint`; and the caller
 * must know that its thread has ended, or will not touch the memory any more: two owners would
 * write to one ring. In a file the lock of its process shows that. Never waits.
 *
 * A port that is listened to goes on delivering; its `closed` is then a new promise, and its
 * streams are new ones. In a hub, give a client's endpoint back by its port, in place of closing
 * that. A hub itself, which has many peers, cannot be given back.
 *
 * @throws {TypeError} if it may not be given back, or not now: the peer is not gone, what it has
 * published is not read, it has other peers, or channels that this end does not use.
 * @throws {ClosedError} if this end is closed, failed or replaced itself.
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
  // [segment.vacate_read] Before the look at what it has published.
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
  if (incoming !== undefined && !isRead(incoming)) {
    throw refusal("what it has published is not read");
  }
  giveBack(link, word);
  endpoint.watch.look(); // who waits here waits for the next owner
}

/**
 * Skips what nobody reads, and returns whether nothing else of what the peer has published is left
 * in the ring. [segment.vacate_read]
 */
function isRead(inlet: Inlet): boolean {
  if ((inlet.bits & (ENDED | STOPPED)) !== 0) return true;
  if (inlet.isLent && inlet.isLentInRing) return false;
  try {
    inlet.load();
    return inlet.pull(LOOK, undefined, false) !== IN_RING;
  } catch (thrown) {
    if (thrown === inlet.fault) return true;
    throw thrown;
  }
}

/** Gives the peer's endpoint back, whose final state word is the one given. */
function giveBack(link: Link, final: number): void {
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
  // [segment.vacate_state] Last: whoever finds it vacant finds the rest as it is to be.
  const state = record + ENDPOINT_STATE_WORD;
  Atomics.compareExchange(words, state, final, vacantWord(generation));
  ringAround(segment, words, peer, mechanism);
}

/**
 * Begins anew with the next reader. Of a message that was begun it gets nothing, and who goes on
 * with it is told; one that was not begun is its own. [pipe.vacated]
 */
function renewOutlet(outlet: Outlet): void {
  const why = "Cannot write: the peer's endpoint was given back in the middle of the message";
  if (outlet.sent >= 0) outlet.cut = new PeerFailedError(why, 0);
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

/** Makes both cursors equal, and takes the wish of the peer back. [segment.vacate_words] */
function renewControl({ control, own }: Lane, wants: number): void {
  Atomics.store(control, RING_TAIL_WORD, own);
  Atomics.store(control, RING_HEAD_WORD, own);
  Atomics.store(control, wants, 0);
}

function linkOf(end: VacatingEnd): Link {
  if ("outlet" in end) return end.outlet.link;
  return ("reader" in end ? end.reader : end).inlet.link;
}

/** Whether all channels that name the peer are the rings of this end. [segment.vacate_peer] */
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
