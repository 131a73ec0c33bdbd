/**
 * Gives the endpoint of a peer whose owner is dead to the next owner, and makes a new end for it.
 * See `spec/segment.md`, "An endpoint that comes back".
 *
 * @module
 */

import { raise, throwCannot } from "../error.ts";
import { fanoutRecord } from "../memory/fanout.ts";
import { layout } from "../memory/layout.ts";
import { type Channel, recordAt } from "../memory/plan.ts";
import type { Segment } from "../memory/segment.ts";
import { Reader, Writer } from "../pipe/ends.ts";
import { Found, Incoming, Mode, pull } from "../pipe/incoming.ts";
import { discard, Link } from "../pipe/link.ts";
import { findRing, type WriterOptions } from "../pipe/options.ts";
import { ownError, peerError } from "../pipe/tend.ts";
import { accept, append, drop, giveUp, Outgoing, type Send } from "../pipe/outgoing.ts";
import { Port } from "../port/port.ts";
import { Bit, load, type Side } from "../ring/side.ts";
import { generationAt, ringAround, stateOf, stateWord, vacantWord } from "../wait/state.ts";
import { look } from "../wait/endpoint.ts";

/**
 * Vacates the endpoint of a peer whose owner is dead, so that another thread or process can attach
 * to it, and returns a new end for that owner, with the options of the old one. In this way a
 * worker that has crashed can be started again and go on in the same memory. The old end is closed:
 * its listeners, streams and calls are not those of the new one.
 *
 * Everything that the peer published must have been read; what it had not read is dropped. Messages
 * written from now on are for the endpoint's next owner, even before that owner attaches; so are
 * those that the old end has accepted, if nothing of them is in the ring yet. Nothing remains of
 * what the last owner did, neither a fault nor an `end`. What was taken out of the ring already,
 * the elements of a batch for instance, is delivered first.
 *
 * The peer must have closed, or be marked failed, by `supervise` or `failEndpoint`. The caller must
 * also know that the peer's thread has ended or will not touch the memory any more; otherwise two
 * owners would write to one ring. In a file, the lock of the peer's process shows that. The call
 * never waits.
 *
 * In a hub, revive the port of a client, and do not close that port; the new one takes its place in
 * `hub.ports`. A hub itself has many peers and cannot be revived.
 *
 * @throws {TypeError} if the peer may not be vacated, or not now: it is not gone, something that it
 * published is not read, a frame is lent, it has other peers, or channels that this end does not
 * use.
 * @throws {ClosedError} if this end itself was closed, marked failed or replaced.
 *
 * @example
 * ```ts
 * import { failEndpoint, Port } from "@millrace/millrace";
 * import { revive } from "@millrace/millrace/revive";
 *
 * const old = Port.create<string>();
 * const first = Port.attach<string>(old.memory); // usually in a worker
 * first.write("the last words");
 * failEndpoint(old.segment, 1); // it has crashed: `supervise` says so
 *
 * console.log(old.read()); // "the last words"
 * using port = revive(old);
 * port.write("welcome");
 * using next = Port.attach<string>(port.memory); // in the next worker
 * console.log(next.read()); // "welcome"
 * ```
 */
export function revive<In, Out>(port: Port<In, Out>): Port<In, Out>;
/** The same for the end of a pipe that goes one way. */
export function revive<T>(reader: Reader<T>): Reader<T>;
/** The same for the end of a pipe that goes one way. `options` are those of the new writer. */
export function revive<T>(writer: Writer<T>, options?: WriterOptions<T>): Writer<T>;
export function revive(
  end: Port | Reader | Writer,
  options?: WriterOptions<never>,
): Port | Reader | Writer {
  const { link } = end;
  const { endpoint, peer, outgoing, incoming } = link;
  raise(ownError(link, "revive")); // [segment.vacate_peer]
  // [segment.vacate_read] The state is loaded before the ring is searched for unread messages.
  const word = stateWord(endpoint, peer);
  const state = stateOf(word);
  if (state !== layout.ENDPOINT_STATE_CLOSED && state !== layout.ENDPOINT_STATE_FAILED) {
    throwCannot("revive: its peer has not closed, and is not marked failed");
  }
  if (!isOurs(link)) throwCannot("revive: its peer has channels that this end does not use");
  // [segment.vacate_dead]
  if (endpoint.mechanism.isAlive?.(peer)) throwCannot("revive: the owner of its peer lives");
  if (outgoing !== undefined && (outgoing.bits & Bit.ENCODING) !== 0) {
    throwCannot("revive: a value is being encoded");
  }
  if (incoming !== undefined && isUnread(incoming)) {
    throwCannot("revive: what its peer has published is not read");
  }
  const before = generationAt(endpoint.segment, peer);
  if (before === 0xffffffff) throwCannot("revive: its peer was given back too often");
  const accepted = outgoing === undefined ? [] : takeAccepted(outgoing);
  const next = renew(link, end, options);
  vacate(next, word, before);
  for (const message of accepted) handOn(outgoing!, message, next.link.outgoing!);
  look(endpoint); // waits of this endpoint go on, for the next owner
  return next;
}

/** Takes the messages out of the queue that are not in the ring, not even in part. */
function takeAccepted(out: Outgoing): Send[] {
  const accepted: Send[] = [];
  let { first } = out;
  out.first = out.last = undefined;
  for (let message; (message = first) !== undefined;) {
    first = message.next;
    message.next = undefined;
    const isWhole = message.sent < 0 && message.flags === 0;
    if (isWhole && message.kind === layout.FRAME_KIND_DATA) accepted.push(message);
    else append(out, message);
  }
  return accepted;
}

/** Puts a message into the queue to the next owner. Who waits for it goes on waiting. */
function handOn(from: Outgoing, message: Send, to: Outgoing): void {
  const heir = { ...message };
  const tell = message.settle;
  // Its options take back the one that can still be placed.
  message.settle = (reason) => giveUp(to, heir, reason);
  from.pendingCount--;
  accept(to, heir, (reason) => {
    from.pendingCount++;
    tell?.(reason);
  });
}

/** Whether something that the peer has published is not read. Skips what is to be skipped. */
function isUnread(incoming: Incoming): boolean {
  if ((incoming.bits & (Bit.ENDED | Bit.STOPPED)) !== 0) return false;
  if ((incoming.bits & Bit.LENT) !== 0) return true;
  try {
    load(incoming);
    let found: unknown;
    do found = pull(incoming, Mode.LOOK, false); while (found === Found.TAKEN);
    return found === Found.IN_RING;
  } catch (thrown) {
    if (thrown === incoming.fault) return false;
    throw thrown;
  }
}

/** Makes the new end, and closes the old one without telling anybody. */
function renew(
  link: Link,
  end: Port | Reader | Writer,
  options: WriterOptions<never> = {},
): Port | Reader | Writer {
  const { outgoing, incoming, endpoint } = link;
  const { waiters } = endpoint;
  const place = waiters.indexOf(link);
  incoming?.route?.finish(peerError(link, "call")); // [call.vacated]
  if (outgoing !== undefined) drop(outgoing, peerError(link, "write"));
  const kept = incoming?.queue.splice(0);
  const keptSize = incoming?.keptSize;
  const given = incoming?.options ?? { codec: outgoing?.codec, ...options };
  discard(link);
  const fresh = link.again();
  // The endpoint looks at its waiters in their order.
  waiters.splice(waiters.indexOf(fresh), 1);
  waiters.splice(place, 1, fresh);
  const out = outgoing === undefined ? undefined : channelOf(endpoint.segment, outgoing);
  const inn = incoming === undefined ? undefined : channelOf(endpoint.segment, incoming);
  const next = end instanceof Port
    ? new Port(fresh, out!, inn!, given)
    : end instanceof Writer
    ? Writer.of(fresh, new Outgoing(fresh, out!, given as WriterOptions<never>))
    : Reader.of(fresh, new Incoming(fresh, inn!, given));
  if (kept !== undefined) { // [pipe.vacated_rest]
    fresh.incoming!.queue.push(...kept);
    fresh.incoming!.keptSize = keptSize!;
  }
  for (const [old, side] of [[outgoing, fresh.outgoing], [incoming, fresh.incoming]] as const) {
    if (old === undefined || side === undefined) continue;
    side.cursor = side.published = side.peerCursor = old.isOut ? old.published : old.cursor;
  }
  if (next instanceof Port) link.replace?.(end as Port, next);
  return next;
}

/** The ring of a side. */
function channelOf(segment: Segment, side: Side): Channel {
  return findRing(segment, undefined, ({ dataOffset }) => dataOffset === side.base);
}

/** Vacates the peer's endpoint, whose final state word is `final`. */
function vacate({ link }: { readonly link: Link }, final: number, generation: number): void {
  const { endpoint, peer } = link;
  const { segment, mechanism } = endpoint;
  const words = segment.control;
  const record = recordAt(peer);
  // [segment.vacate_words]
  for (const side of [link.outgoing, link.incoming]) {
    if (side === undefined) continue;
    Atomics.store(words, side.own, side.cursor);
    Atomics.store(words, side.other, side.cursor);
    Atomics.store(words, side.otherWants, 0);
  }
  for (
    const word of [
      layout.ENDPOINT_WAKES_WORD,
      layout.ENDPOINT_AGENT_WORD,
      layout.ENDPOINT_FEATURES_WORD,
    ]
  ) Atomics.store(words, record + word, 0);
  const next = (generation + 1) | 0;
  Atomics.store(words, record + layout.ENDPOINT_GENERATION_WORD, next);
  // [segment.vacate_state] Last: a thread that finds the endpoint vacant finds all else in place.
  const state = record + layout.ENDPOINT_STATE_WORD;
  Atomics.compareExchange(words, state, final, vacantWord(next));
  ringAround(segment, peer, mechanism);
}

/** Whether every channel that names the peer is a ring of this end. [segment.vacate_peer] */
function isOurs({ endpoint, peer, outgoing, incoming }: Link): boolean {
  const { index, segment } = endpoint;
  let [outCount, inCount] = [outgoing === undefined ? 0 : 1, incoming === undefined ? 0 : 1];
  for (const channel of segment.channels) {
    const { kind, writer, reader } = channel;
    if (fanoutRecord(channel, segment.endpointCount, peer) >= 0) return false;
    if (writer !== peer && reader !== peer) continue;
    if (kind !== layout.CHANNEL_KIND_RING) return false;
    if (writer === index) outCount--;
    else if (reader === index) inCount--;
    else return false;
  }
  return outCount === 0 && inCount === 0;
}
