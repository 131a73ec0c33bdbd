/**
 * Messages without a copy: places in the ring to write into, and frames to read where they lie. For
 * peers that are trusted: what is lent is memory that the peer can write. See `spec/pipe.md`,
 * "Lending".
 *
 * @module
 */

import { NO_BYTES } from "../codec/codec.ts";
import { requireOptions, throwCannot } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { requireInteger } from "../memory/plan.ts";
import { isPast } from "../memory/segment.ts";
import { type Incoming, Mode, read, releaseFrame, tryRead } from "../pipe/incoming.ts";
import type { Link } from "../pipe/link.ts";
import {
  deadlineOfCall,
  type ReadingEnd,
  timeoutError,
  type WaitOptions,
  type WritingEnd,
} from "../pipe/options.ts";
import { closedError, For, stateError, tendSoon } from "../pipe/tend.ts";
import { isFree, makeSend, type Outgoing, pump, requireWritable } from "../pipe/outgoing.ts";
import { extentOf } from "../ring/frame.ts";
import { Bit, hasMoved, placeOf, store } from "../ring/side.ts";
import { type Endpoint, wait, type Waiter } from "../wait/endpoint.ts";

const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
/** What is claimed or finished, while it is placed: its payload is in the ring already. */
const claimed = /* @__PURE__ */ makeSend(layout.FRAME_KIND_DATA);

/**
 * What message is claimed, and how long the call may wait.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { claim, type ClaimOptions, publish } from "@millrace/millrace/lend";
 * import { readMessage } from "@millrace/millrace/raw";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach(here.memory); // usually in another thread
 * const image: ClaimOptions = { codec: 128, tag: 7, timeout: 1000 };
 * claim(here, 640, image).payload.fill(255);
 * publish(here);
 * const { codec, tag, payload } = readMessage(there)!;
 * console.log(codec, tag, payload.length); // 128 7 640
 * ```
 */
export interface ClaimOptions extends WaitOptions {
  /**
   * The number of the payload's codec. Default 0: bytes. 3, a batch, and codecs of your own, from
   * 128 on, are allowed as well.
   */
  readonly codec?: number | undefined;
  /** A number that the application chooses, a `u32`. Default 0. */
  readonly tag?: number | undefined;
}

/**
 * The place of a claimed message, for the caller to fill. Valid until the claim is finished or
 * abandoned.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { claim, type Place, publish } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * const { area, offset, size }: Place = claim(here, 4); // no view is made
 * for (let i = 0; i < size; i++) area[offset + i] = i;
 * publish(here);
 * console.log(there.read()); // Uint8Array(4) [ 0, 1, 2, 3 ]
 * ```
 */
export class Place {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "Place";

  /** The memory that holds the payload: that of the segment, or a private copy. */
  area: Uint8Array;
  /** Where the payload begins in `area`; in a ring, a multiple of 16 from the segment's start. */
  offset = 0;
  /** Bytes of the payload: those that are claimed, or those that are lent. */
  size = 0;
  /** The codec of the message. */
  codec = 0;
  /** The tag of the message. */
  tag = 0;

  /**
   * Each end of a pipe has its own.
   *
   * @internal
   */
  constructor(area: Uint8Array) {
    this.area = area;
  }

  /** The payload as a `Uint8Array`; a new view each time. */
  get payload(): Uint8Array {
    return this.area.subarray(this.offset, this.offset + this.size);
  }
}

/**
 * A frame that is lent to be read: a whole message, or one chunk of it. Valid until `release`.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type Lent, peek, release } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * here.write(Uint8Array.of(1, 2, 3));
 * const lent: Lent | undefined = peek(there);
 * let sum = 0;
 * for (let i = 0; i < lent!.size; i++) sum += lent!.area[lent!.offset + i]!;
 * release(there);
 * console.log(sum); // 6
 * ```
 */
export class Lent extends Place {
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "Lent";

  /** Whether this is the first frame of its message. */
  first = true;
  /** Whether this is the last frame of its message. */
  last = true;
  /** Bytes of the whole message; undefined if its writer did not know them when it began. */
  total: number | undefined = 0;
  /** The kind of the message; 1 is data. */
  kind = 0;
}

/** What an end has claimed, and what it has lent; made once for each. */
const places: WeakMap<Link, Place> = new WeakMap();
const lents: WeakMap<Link, Lent> = new WeakMap();

/**
 * Lends the place of one message of up to `size` bytes, which is at most half the capacity less 16.
 * Blocks while there is no room for it. Fill the place, then call `publish` or `abandon`.
 *
 * @throws {RangeError} if no frame can be so large; and what `write` throws.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { claim, publish } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * claim(here, 640).payload.fill(255);
 * publish(here);
 * console.log(there.read()!.length); // 640
 * ```
 */
export function claim(end: WritingEnd, size: number, options?: ClaimOptions): Place {
  const deadline = deadlineOfCall(options);
  const out = outgoingOf(end);
  requireWritable(out);
  requireSize(out, size, options);
  for (let waits = 0;; waits++) {
    const place = isFree(out) ? claimNow(end.link, out, size, options) : undefined;
    if (place !== undefined) return place;
    const waiter = new ClaimWaiter(end.link, out);
    const isLate = waits > 0 && isPast(deadline);
    if (isLate || !wait(waiter, For.ROOM, deadline, waits)) {
      throw timeoutError("claim");
    }
    requireWritable(out); // [pipe.peer_gone] A state may have ended the wait.
  }
}

/**
 * Waits for the room of a claim, which is not in the queue: until the queue is empty if it is not,
 * and otherwise for anything that the peer gives back.
 */
class ClaimWaiter implements Waiter {
  readonly endpoint: Endpoint;
  readonly peerStates: readonly number[];
  readonly isKeeping: boolean;
  readonly asks = 0;
  readonly #link: Link;
  readonly #out: Outgoing;
  readonly #isQueued: boolean;

  constructor(link: Link, out: Outgoing) {
    this.endpoint = link.endpoint;
    this.peerStates = link.peerStates;
    this.isKeeping = link.isKeeping;
    this.#link = link;
    this.#out = out;
    this.#isQueued = out.first !== undefined;
  }

  prepare(asks: number): number {
    return this.#link.prepare(asks);
  }

  sees(asks: number): boolean {
    const isFirst = this.#isQueued && this.#out.first === undefined;
    const others = asks & ~For.ROOM;
    return isFirst || hasMoved(this.#out) || (others !== 0 && this.#link.sees(others));
  }

  arm(asks: number): void {
    this.#link.arm(asks);
  }

  disarm(asks: number): void {
    this.#link.disarm(asks);
  }

  tend(): void {} // It only blocks.
}

/**
 * Lends the place of a message if there is room for it; otherwise returns undefined. Never waits.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { publish, tryClaim } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * const place = tryClaim(here, 4);
 * if (place !== undefined) {
 *   place.payload.fill(1);
 *   publish(here);
 * }
 * console.log(there.read()); // Uint8Array(4) [ 1, 1, 1, 1 ]
 * ```
 */
export function tryClaim(end: WritingEnd, size: number, options?: ClaimOptions): Place | undefined {
  const out = outgoingOf(end);
  requireWritable(out);
  requireSize(out, size, options);
  return isFree(out) ? claimNow(end.link, out, size, options) : undefined;
}

function requireSize(out: Outgoing, size: number, options: ClaimOptions | undefined): void {
  requireOptions(options);
  requireInteger("size", size, 0, out.largest);
  requireInteger("codec", options?.codec ?? 0, 0, 255);
  requireInteger("tag", options?.tag ?? 0, 0, 0xffffffff);
}

function claimNow(
  link: Link,
  out: Outgoing,
  size: number,
  options: ClaimOptions | undefined,
): Place | undefined {
  let place = places.get(link);
  if (place === undefined) places.set(link, place = new Place(out.bytes));
  place.size = size;
  place.codec = options?.codec ?? layout.CODEC_BYTES;
  place.tag = options?.tag ?? 0;
  const { cursor } = out;
  out.mayLoad = true;
  if (!begin(out, place)) return undefined;
  place.offset = placeOf(out) + HEADER_SIZE;
  out.cursor = cursor; // the pad is placed only with the frame, as the claim may be abandoned
  out.bits |= Bit.LENT;
  return place;
}

/** Goes to where the frame begins, after a pad if it needs one. Returns false if it has no room. */
function begin(out: Outgoing, place: Place): boolean {
  const { size } = place;
  if (!placeHeader(out, place, size, 0)) return false;
  out.cursor = (out.cursor - extentOf(size)) | 0;
  return true;
}

/** Places a frame whose payload stands there, and which counts as so many messages. */
function placeHeader(out: Outgoing, { codec, tag }: Place, size: number, count: number): boolean {
  claimed.source = out.bytes;
  claimed.size = size;
  claimed.code = codec;
  claimed.tag = tag;
  claimed.count = count;
  const isPlaced = out.place(out, claimed);
  claimed.source = NO_BYTES;
  return isPlaced;
}

/**
 * Finishes the claimed message with `size` bytes, by default all that were claimed. The message
 * becomes visible at the next publish.
 *
 * @throws {ClosedError} if this end was closed meanwhile, which drops the claim.
 * @throws {PeerClosedError} and {PeerFailedError} if another call has found the reader gone.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { claim, finish, publish } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * for (const n of [1, 2]) {
 *   claim(here, 16).payload[0] = n;
 *   finish(here, 1); // one of the 16 bytes
 * }
 * publish(here); // both at once
 * console.log(there.read(), there.read()); // Uint8Array(1) [ 1 ] Uint8Array(1) [ 2 ]
 * ```
 */
export function finish(end: WritingEnd, size?: number): void {
  const out = outgoingOf(end);
  // [pipe.close] has dropped the claim, or [pipe.peer_gone] forbids to place the message.
  const failure = closedError(end.link, "finish") ?? out.fault ??
    ((out.bits & Bit.GONE) === 0 ? undefined : stateError(end.link, "finish"));
  if (failure !== undefined) throw failure;
  if ((out.bits & Bit.LENT) === 0) throwCannot("finish: nothing is claimed");
  const place = places.get(end.link)!;
  if (size !== undefined) requireInteger("size", size, 0, place.size);
  out.bits &= ~Bit.LENT;
  begin(out, place); // there is room
  placeHeader(out, place, size ?? place.size, 1);
}

/**
 * Finishes the claimed message, if a claim is open, and makes all finished messages visible. After
 * the own `close`, which has dropped them, a call without `size` does nothing. [pipe.publish_none]
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { claim, publish } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * claim(here, 16).payload.set([1, 2]);
 * publish(here, 2);
 * console.log(there.read()); // Uint8Array(2) [ 1, 2 ]
 * ```
 */
export function publish(end: WritingEnd, size?: number): void {
  const out = outgoingOf(end);
  if ((out.bits & Bit.LENT) !== 0 || size !== undefined) finish(end, size);
  store(out);
  goOn(end.link, out);
}

/**
 * Gives the claimed place back unused.
 *
 * @throws {ClosedError} if this end was closed meanwhile, which drops the claim.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { abandon, claim } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * claim(here, 640);
 * abandon(here);
 * here.write(Uint8Array.of(1));
 * console.log(there.read()); // Uint8Array(1) [ 1 ]
 * ```
 */
export function abandon(end: WritingEnd): void {
  const out = outgoingOf(end);
  const failure = closedError(end.link, "abandon"); // [pipe.claim_one]
  if (failure !== undefined) throw failure;
  if ((out.bits & Bit.LENT) === 0) throwCannot("abandon: nothing is claimed");
  out.bits &= ~Bit.LENT;
  goOn(end.link, out);
}

/** Places what was accepted while the claim was open. */
function goOn(link: Link, out: Outgoing): void {
  const isLeft = out.first !== undefined && !pump(out);
  if (isLeft || link.incoming?.route !== undefined) tendSoon(link); // [call.whole_first]
}

/**
 * Lends the payload of the next frame where it lies: a whole message, or a chunk of a long one.
 * Blocks until there is one; undefined at the timeout and at the end of the stream. Nothing else
 * can be read until `release`. A message that was taken out of the ring before is lent as a copy.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { peek, release } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * here.write(Uint8Array.of(1, 2, 3));
 * console.log(peek(there)!.payload[2]); // 3
 * release(there);
 * ```
 */
export function peek(end: ReadingEnd, options?: WaitOptions): Lent | undefined {
  const inc = incomingOf(end);
  return show(inc, read(inc, Mode.LEND, options));
}

/**
 * `peek` if there is a frame; otherwise returns undefined. Never waits.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { release, tryPeek } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * console.log(tryPeek(there)); // undefined
 * here.write(Uint8Array.of(1, 2, 3));
 * console.log(tryPeek(there)!.size); // 3
 * release(there);
 * ```
 */
export function tryPeek(end: ReadingEnd): Lent | undefined {
  const inc = incomingOf(end);
  return show(inc, tryRead(inc, Mode.LEND));
}

/** Shows what was lent: the frame at the own cursor, or a message that is in private memory. */
function show(inc: Incoming, taken: unknown): Lent | undefined {
  if (taken === undefined) return undefined;
  const { link, frame } = inc;
  inc.bits |= Bit.LENT;
  let lent = lents.get(link);
  if (lent === undefined) lents.set(link, lent = new Lent(inc.bytes));
  lent.kind = inc.kind;
  lent.codec = inc.codec;
  lent.tag = inc.tag;
  if (taken === inc) {
    lent.area = inc.bytes;
    lent.offset = frame.at;
    lent.size = frame.size;
    lent.first = (frame.flags & layout.FRAME_FLAG_FIRST) !== 0;
    lent.last = (frame.flags & layout.FRAME_FLAG_LAST) !== 0;
    lent.total = frame.total === Infinity ? undefined : frame.total;
  } else {
    lent.area = (taken as { payload: Uint8Array }).payload;
    lent.offset = 0;
    lent.size = lent.total = lent.area.length;
    lent.first = lent.last = true;
  }
  return lent;
}

/**
 * Gives back what is lent. Its memory may change at once.
 *
 * @throws {ClosedError} if this end was closed meanwhile.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { peek, release } from "@millrace/millrace/lend";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * for (const n of [1, 2]) here.write(Uint8Array.of(n));
 * for (const _ of [1, 2]) {
 *   console.log(peek(there)!.payload[0]); // 1, then 2
 *   release(there);
 * }
 * ```
 */
export function release(end: ReadingEnd): void {
  const inc = incomingOf(end);
  const failure = closedError(end.link, "release"); // [pipe.lend_one]
  if (failure !== undefined) throw failure;
  if ((inc.bits & Bit.LENT) === 0) throwCannot("release: nothing is lent");
  inc.bits &= ~Bit.LENT;
  const { area, last } = lents.get(end.link)!;
  if (area === inc.bytes) {
    if (last) inc.bits &= ~Bit.IN_PARTS;
    releaseFrame(inc);
  }
  tendSoon(end.link); // listeners wait for that
}

function outgoingOf(end: WritingEnd): Outgoing {
  return end.link.outgoing!;
}

function incomingOf(end: ReadingEnd): Incoming {
  return end.link.incoming!;
}
