/**
 * The writing end of a pipe. See `spec/pipe.md`.
 *
 * @module
 */

import { detach, makePayload, NO_BYTES, takeBytes } from "../codec/codec.ts";
import {
  cannot,
  ClosedError,
  outOfRange,
  PeerClosedError,
  PeerFailedError,
  raise,
  requireOptions,
} from "../error.ts";
import * as layout from "../memory/layout.ts";
import { findRing, Link, type Message, type WaitOptions } from "./pipe.ts";
import { deadlineOfCall, requireWait, requireWriterOptions, type WriterOptions } from "./pipe.ts";
import { Place } from "./lend.ts";
import { Pack } from "./many.ts";
import { Outlet } from "./outlet.ts";
import { begin, sendAll, timedOut, tryBegin, waitRoom, waitRoomAsync } from "./room.ts";
import { ENDED } from "../memory/gate.ts";
import type { Segment } from "../memory/segment.ts";
import { type Channel, requireInteger } from "../memory/segment_geometry.ts";
import { Endpoint, type Stats } from "../wait/endpoint.ts";

const DATA = layout.FRAME_KIND_DATA;

/**
 * What message is claimed, and how long the call may wait.
 *
 * @example
 * ```ts
 * import { type ClaimOptions, Port } from "@millrace/millrace";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach(here.memory); // usually in another thread
 * const image: ClaimOptions = { codec: 128, tag: 7, timeout: 1000 };
 * here.claim(640, image).payload.fill(255);
 * here.publish();
 * const { codec, tag, payload } = there.readMessage()!;
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
 * Writes messages into a ring. Only the thread that attached it may call its methods.
 *
 * @typeParam T The values that it writes.
 *
 * @example
 * ```ts
 * import { Reader, Segment, Writer } from "@millrace/millrace";
 *
 * const segment = Segment.allocate({
 *   endpoints: 2,
 *   channels: [{ writer: 0, reader: 1, capacity: 4096 }],
 * });
 * using writer = Writer.attach<{ n: number }>(segment);
 * using reader = Reader.attach<{ n: number }>(segment); // usually in another thread
 * writer.write({ n: 1 });
 * writer.end();
 * for (let m; (m = reader.read()) !== undefined;) console.log(m.n); // 1
 * ```
 */
export class Writer<T = unknown> {
  readonly #outlet: Outlet;
  /** The `end` that waits for its turn. */
  #ending: Promise<void> | undefined;
  #pack: Pack | undefined;
  #place: Place | undefined;

  /**
   * Makes the writer of an attached endpoint; for ports. Use `Writer.attach`.
   *
   * @internal
   */
  constructor(link: Link, channel: Channel, options: WriterOptions<never> = {}) {
    requireWriterOptions(options);
    this.#outlet = new Outlet(link, channel, options);
  }

  /**
   * Attaches to the writing endpoint of a ring: the channel with index `channel`, or by default the
   * first ring.
   *
   * @throws {SegmentError} `segment.channel` if there is no such ring; `segment.endpoint` if its
   * endpoint is not vacant.
   */
  static attach<T = unknown>(
    segment: Segment,
    options: WriterOptions<T> & { readonly channel?: number | undefined } = {},
  ): Writer<T> {
    requireWriterOptions(options);
    const channel = findRing(segment, options.channel, () => true);
    const endpoint = Endpoint.attach(segment, channel.writer, options);
    return new Writer<T>(new Link(endpoint, channel.reader), channel, options);
  }

  /** Whether `end` was called. */
  get ended(): boolean {
    return (this.#outlet.bits & ENDED) !== 0;
  }

  /**
   * The outgoing direction; for ports.
   *
   * @internal
   */
  get outlet(): Outlet {
    return this.#outlet;
  }

  /** What this endpoint has counted since it attached. */
  get stats(): Stats {
    return this.#outlet.endpoint.stats;
  }

  /**
   * Writes one message. Blocks while there is no room for it.
   *
   * @throws {TimeoutError} at the timeout; the reader drops the part of the message that was
   * written.
   * @throws {PeerClosedError} if the reader has closed.
   * @throws {PeerFailedError} if the reader is marked failed.
   * @throws {ClosedError} if this end is closed, marked failed, or has ended its stream.
   * @throws {CorruptError} if the reader broke the ring.
   * @throws {TypeError} if the codec cannot carry the value.
   */
  write(value: T, options?: WaitOptions): void {
    const outlet = this.#outlet;
    const deadline = this.#begin(options);
    outlet.encode(value, outlet);
    outlet.start(DATA, 0);
    if (!outlet.send()) sendAll(outlet, options, deadline);
  }

  /**
   * Writes one message if there is room for all of it. Returns whether it did. Never waits.
   *
   * @throws {RangeError} if the message is too large to be written at once even to an empty ring.
   */
  tryWrite(value: T): boolean {
    const outlet = this.#outlet;
    if (outlet.bits !== 0 && !tryBegin(outlet)) return false;
    outlet.encode(value, outlet);
    outlet.start(DATA, 0);
    return outlet.send() || outlet.trySend();
  }

  /**
   * Writes one message without blocking. Messages keep the order of the calls. The promise resolves
   * when the whole message is in the ring; until then, bytes that were passed in must not change.
   *
   * Rejects with what `write` throws, and with a `TypeError` if bytes that were passed in are
   * detached or become fewer while it waits. That message alone is then lost.
   */
  async writeAsync(value: T, options?: WaitOptions): Promise<void> {
    const outlet = this.#outlet;
    outlet.check();
    const signal = options?.signal;
    const deadline = deadlineOfCall(options);
    // The value is encoded at the call, into a payload of its own if another message is under way.
    // This comes before the turn is taken, because a value that cannot be encoded must not keep the
    // turn.
    const payload = outlet.isTaken ? makePayload() : outlet;
    outlet.encode(value, payload);
    if (payload !== outlet) detach(payload);
    outlet.asked++;
    const { turns } = outlet;
    if (!turns.tryTake() && !await turns.take(deadline, signal)) throw timedOut();
    try {
      outlet.restore(payload);
      outlet.start(DATA, 0);
      const turn = outlet.link.giveWay();
      if (turn !== undefined) {
        detach(outlet);
        await turn;
      }
      outlet.check(true);
      while (!outlet.advance()) await waitRoomAsync(outlet, deadline, signal);
      outlet.store();
    } finally {
      turns.give();
    }
  }

  /**
   * Writes many messages, and makes them visible together as far as there is room. With codec
   * `json`, runs of short values are packed into batches, which takes half the time; the reader
   * unpacks them.
   *
   * Blocks and throws as `write` does. The values before the one that failed are then written, and
   * `written` says how many they are.
   */
  writeMany(values: readonly T[], options?: WaitOptions): void {
    const pack = this.#pack ??= new Pack(this.#outlet);
    pack.written = 0;
    requireWait(options);
    pack.write(values, options);
  }

  /**
   * How many values the last `writeMany` has written: all of them, or, if it threw, those before
   * the one that failed. Nothing of that value is delivered.
   *
   * @example
   * ```ts
   * import { Port, TimeoutError } from "@millrace/millrace";
   *
   * using here = Port.create<number>({ capacity: 256 });
   * using there = Port.attach<number>(here.memory); // usually in another thread
   * let values = Array.from({ length: 1000 }, (_, index) => index);
   * while (values.length > 0) {
   *   try {
   *     here.writeMany(values, { timeout: 1 });
   *   } catch (error) {
   *     if (!(error instanceof TimeoutError)) throw error;
   *   }
   *   values = values.slice(here.writer.written); // the rest, later
   *   while (there.tryRead() !== undefined);
   * }
   * ```
   */
  get written(): number {
    return this.#pack?.written ?? 0;
  }

  /** Writes one message whose payload is encoded already. Blocks while there is no room for it. */
  writeMessage(message: MessageInit, options?: WaitOptions): void {
    const deadline = this.#begin(options);
    this.#startMessage(message);
    if (!this.#outlet.send()) sendAll(this.#outlet, options, deadline);
  }

  /**
   * Writes one message whose payload is encoded already, if there is room for all of it. Returns
   * whether it did. Never waits.
   */
  tryWriteMessage(message: MessageInit): boolean {
    const outlet = this.#outlet;
    if (outlet.bits !== 0 && !tryBegin(outlet)) return false;
    this.#startMessage(message);
    return outlet.send() || outlet.trySend();
  }

  /**
   * Lends the place of one message of up to `size` bytes, which is at most half the capacity less
   * 16. Blocks while there is no room for it. Fill the place, then call `publish` or `abandon`.
   *
   * @throws {RangeError} if no frame can be so large.
   */
  claim(size: number, options?: ClaimOptions): Place {
    requireWait(options);
    const outlet = this.#outlet;
    let deadline = begin(outlet, options);
    this.#startClaim(size, options);
    for (let waits = 0;; waits++) {
      const place = this.#claim(size);
      if (place !== undefined) return place;
      waitRoom(outlet, deadline ??= deadlineOfCall(options), waits);
    }
  }

  /**
   * Lends the place of a message if there is room for it; otherwise returns `undefined`. Never
   * waits.
   */
  tryClaim(size: number, options?: ClaimOptions): Place | undefined {
    requireOptions(options);
    if (!tryBegin(this.#outlet)) return undefined;
    this.#startClaim(size, options);
    return this.#claim(size);
  }

  /**
   * Finishes the claimed message with `size` bytes, by default all that were claimed. The message
   * becomes visible at the next publish.
   *
   * @throws {ClosedError} if this end was closed meanwhile, which drops the claim.
   * @throws {PeerClosedError} and {PeerFailedError} if another call has found the reader gone.
   */
  finish(size?: number): void {
    const outlet = this.#outlet;
    // [pipe.close] has dropped the claim, or [pipe.peer_gone] forbids to place the message.
    raise(outlet.link.knownError("finish"));
    if (!outlet.isLent) cannot("finish: nothing is claimed");
    if (size !== undefined) requireInteger("size", size, 0, outlet.claimed);
    outlet.finish(size ?? outlet.claimed);
  }

  /**
   * Finishes the claimed message, if a claim is open, and makes all finished messages visible.
   * After the own `close`, which has dropped them, a call without `size` does nothing.
   * [pipe.publish_none]
   */
  publish(size?: number): void {
    if (this.#outlet.isLent || size !== undefined) this.finish(size);
    this.#outlet.store();
  }

  /**
   * Gives the claimed place back unused.
   *
   * @throws {ClosedError} if this end was closed meanwhile, which drops the claim.
   */
  abandon(): void {
    raise(this.#outlet.link.closedError("abandon")); // [pipe.claim_one]
    if (!this.#outlet.isLent) cannot("abandon: nothing is claimed");
    this.#outlet.abandon();
  }

  /**
   * Ends the stream: the reader gets everything that was written, and then the end. The call never
   * waits: while posts or asynchronous writes are under way, the end is placed after them. From now
   * on nothing can be written, and a second call does nothing, whatever has happened since.
   *
   * If the reader has closed or failed, or somebody else has closed this end or marked it failed,
   * there is nobody to tell, and the call does nothing. [pipe.end_closed] So in a `finally` block
   * it does not hide an error that was thrown before. It throws what `tryWrite` throws after this
   * end's own `close`, after a fault in what the reader wrote, and while a claim is open or a value
   * is being encoded.
   */
  end(): void {
    if (this.ended) return;
    this.#ending = this.#tryEnd() ? undefined : this.#endLater();
    // A caller that needs the outcome uses `endAsync`; others learn it from the state of the pipe.
    this.#ending?.catch(() => {});
  }

  /**
   * Ends the stream as `end` does, and waits until the end is in the ring, after everything that
   * was posted and written before. Rejects with the reason if posts before it are lost. The options
   * can give up the wait, but not the end.
   */
  async endAsync(options?: WaitOptions): Promise<void> {
    const deadline = deadlineOfCall(options);
    this.end();
    if (this.#ending === undefined) return;
    const { turns } = this.#outlet;
    if (!await turns.take(deadline, options?.signal)) throw timedOut();
    turns.give();
    return this.#ending;
  }

  /** Ends the stream, after what was posted. Returns false if it is not yet its turn. */
  #tryEnd(): boolean {
    const outlet = this.#outlet;
    try {
      if (!tryBegin(outlet)) return false;
      outlet.placeEnd();
    } catch (error) {
      if (!this.#mayEnd(error)) throw error;
      if (outlet.isTaken) return false; // the end comes after the posts, which are lost
      outlet.bits |= ENDED;
    }
    return true;
  }

  /** Whether an `end` that failed with this error does nothing instead. [pipe.end_closed] */
  #mayEnd(error: unknown): boolean {
    if (error instanceof PeerClosedError || error instanceof PeerFailedError) return true;
    return error instanceof ClosedError && !this.#outlet.link.closed;
  }

  async #endLater(): Promise<void> {
    const outlet = this.#outlet;
    outlet.bits |= ENDED;
    const { lostCount, round } = outlet;
    await outlet.turns.take(Infinity, undefined);
    try {
      // The stream that was to end went to a reader that is gone.
      if (outlet.round !== round) return;
      outlet.check(true);
      outlet.placeEnd();
    } catch (error) {
      if (outlet.lostCount !== lostCount || !this.#mayEnd(error)) throw error;
    } finally {
      outlet.turns.give();
    }
  }

  /**
   * Closes this endpoint now. What is published stays readable; its waits end with `pipe.closed`.
   */
  close(): void {
    this.#outlet.link.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * The first step of a blocking call. Returns its deadline if anything posted had to be written
   * first.
   */
  #begin(options: WaitOptions | undefined): number | undefined {
    // Checked here and not only at the first wait: a call that is refused must store nothing.
    requireWait(options);
    return this.#outlet.bits === 0 ? undefined : begin(this.#outlet, options);
  }

  #start(kind: number, codec: number, tag: number, payload: Uint8Array): void {
    requireInteger("kind", kind, 0, 255);
    const isCall = kind >= layout.FRAME_KIND_CALL && kind <= layout.FRAME_KIND_THROW;
    if (kind !== DATA && !isCall) outOfRange(`kind must be 1, 3, 4 or 5: ${kind}`);
    requireInteger("codec", codec, 0, 255);
    requireInteger("tag", tag, 0, 0xffffffff);
    if (codec === layout.CODEC_JSON_BATCH && payload.length > this.#outlet.largest) {
      outOfRange(`Cannot write a batch of ${payload.length} bytes: it takes one frame`);
    }
    takeBytes(payload, codec, this.#outlet);
    this.#outlet.start(kind, tag);
  }

  #startMessage({ kind = DATA, codec = layout.CODEC_BYTES, tag = 0, payload }: MessageInit): void {
    this.#start(kind, codec, tag, payload);
  }

  #startClaim(size: number, options: ClaimOptions | undefined): void {
    requireInteger("size", size, 0, this.#outlet.largest);
    this.#start(DATA, options?.codec ?? layout.CODEC_BYTES, options?.tag ?? 0, NO_BYTES);
  }

  #claim(size: number): Place | undefined {
    const offset = this.#outlet.claim(size);
    if (offset < 0) return undefined;
    const place = this.#place ??= new Place(this.#outlet.bytes);
    place.offset = offset;
    place.size = size;
    return place;
  }
}

/**
 * A message to write, its payload encoded already.
 *
 * @example
 * ```ts
 * import { type MessageInit, Port } from "@millrace/millrace";
 *
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * const init: MessageInit = { payload: Uint8Array.of(1, 2), tag: 42 };
 * here.writeMessage(init);
 * console.log(there.readMessage()?.tag); // 42
 * ```
 */
export interface MessageInit extends Partial<Omit<Message, "payload">> {
  /** The payload. */
  readonly payload: Uint8Array;
}
