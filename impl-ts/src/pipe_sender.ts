/**
 * Places messages in a ring, whole or in chunks, without ever waiting. The writer's lower half.
 * See `spec/pipe.md`.
 *
 * @module
 */

import { Encoder } from "./codec.ts";
import { PeerFailedError } from "./error.ts";
import { packKind, WHOLE } from "./frame.ts";
import { OWED } from "./gate.ts";
import type { Channel } from "./segment_geometry.ts";
import * as layout from "./layout.ts";
import { FRAME_ALIGN, FRAME_HEADER_SIZE, MESSAGE_PREAMBLE_SIZE, RING_RESERVE } from "./layout.ts";
import type { Link } from "./pipe.ts";
import { NO_ROOM, RingWriter } from "./ring.ts";

/** Smallest extent of a chunk: a header and one byte, or a header and the preamble. */
const LEAST_CHUNK = 2 * layout.FRAME_ALIGN;

/**
 * Sends the message that its encoder holds; one for each writer. One message after the other, and
 * nothing between the frames of one. [pipe.order] [frame.contiguous]
 */
export class Sender {
  readonly ring: RingWriter;
  readonly encoder: Encoder;
  /** Largest payload of one frame. */
  readonly largestFrame: number;
  readonly #link: Link;
  readonly #chunk: number;
  /** The message under way: `#sent` is -1 before its first frame. */
  #kind = 0;
  #tag = 0;
  #sent = -1;
  /**
   * The message of which a first frame is placed, and the last one is not; its kind is 0 for none.
   * Whatever keeps it from going on, its cancel comes before any other frame. [frame.cancel]
   */
  #openKind = 0;
  #openCodec = 0;
  #openTag = 0;
  #fault: unknown = undefined;
  /** Why the message under way cannot go on: it was begun for a reader that is gone. */
  #cut: unknown = undefined;

  constructor(link: Link, channel: Channel) {
    this.#link = link;
    this.ring = link.outgoing = new RingWriter(link.endpoint, channel);
    this.encoder = new Encoder(this.ring.gate);
    this.largestFrame = (channel.dataSize >> 1) - FRAME_HEADER_SIZE;
    // A quarter, so that writing the next chunk overlaps with reading the last.
    this.#chunk = channel.dataSize >> 2;
  }

  /** Whether the message could be placed at once in an empty ring, at whatever position. */
  get fitsAtOnce(): boolean {
    const { size } = this.encoder;
    return size <= this.largestFrame || this.#worstCost(size) <= this.ring.capacity - RING_RESERVE;
  }

  /**
   * Begins the message that the encoder holds; one that is under way is given up.
   *
   * @throws {ClosedError} if this end was closed while the value was encoded. [pipe.close]
   */
  start(kind: number, tag: number): void {
    if (this.#link.closed) throw this.#link.closedError("write");
    this.#kind = kind;
    this.#tag = tag;
    this.#sent = -1;
    this.#cut = undefined;
  }

  /**
   * Writes the message that the encoder holds if it is short and nothing stands in its way; false
   * leaves it to `start` and `advance`. Most messages are such, and take two thirds of the time.
   */
  send(kind: number, tag: number): boolean {
    const { encoder } = this;
    const { source, size, codec } = encoder;
    const words = encoder.words();
    return words !== undefined &&
      this.ring.send(source, words, size, packKind(kind, WHOLE, codec), tag);
  }

  /** Whether a part of the message under way is placed already. */
  get begun(): boolean {
    return this.#sent >= 0;
  }

  /** The fault that was found in the reader's cursor; nothing is written any more. [ring.fault] */
  get fault(): unknown {
    return this.#fault;
  }

  /**
   * Places what there is room for of the message under way; true when all of it is placed.
   *
   * @throws {TypeError} if the caller has taken its bytes away.
   */
  advance(): boolean {
    try {
      if (this.#cut !== undefined) throw this.#cut;
      if (this.#sent < 0 && !this.#placeCancel()) return false;
      const { encoder } = this;
      encoder.requireWhole();
      const { size, codec } = encoder;
      const words = encoder.words();
      const kindWord = packKind(this.#kind, WHOLE, codec);
      const ring = this.ring;
      ring.hold(); // the caller may place more, and run code of the application's in between
      if (words !== undefined && ring.put(encoder.source, words, size, kindWord, this.#tag)) {
        return true;
      }
      if (size > this.largestFrame) return this.#advanceChunks();
      const at = ring.claim(size);
      if (at === NO_ROOM) return false;
      encoder.copy(0, size, ring.bytes, at);
      ring.finish(size, kindWord, this.#tag);
      return true;
    } catch (thrown) {
      throw this.#keepFault(thrown);
    }
  }

  /** Places all of the message under way, or nothing of it. [pipe.try_write] */
  tryAdvance(): boolean {
    if (!this.placeCancel()) return false;
    const before = this.ring.tail;
    if (this.advance()) return true;
    // Nothing of it is visible yet.
    this.ring.rewind(before);
    this.#open(0);
    this.#sent = -1;
    return false;
  }

  /**
   * Begins anew with the next reader. Of a message that was begun it gets nothing, and who goes on
   * with it is told; one that was not begun is its own. [pipe.vacated]
   */
  renew(): void {
    if (this.begun) {
      const why = "Cannot write: the peer's endpoint was given back in the middle of the message";
      this.#cut = new PeerFailedError(why, 0);
    }
    this.#fault = undefined;
    this.#open(0);
    this.#sent = -1;
    this.ring.renew();
  }

  /** Claims a frame for the caller to fill: where its payload begins, or `NO_ROOM`. */
  claim(size: number): number {
    try {
      return this.#placeCancel() ? this.ring.claim(size) : NO_ROOM;
    } catch (thrown) {
      throw this.#keepFault(thrown);
    }
  }

  /** Places and publishes the cancel of an open message. False: no room. [pipe.owed] */
  placeCancel(): boolean {
    try {
      return this.#placeCancel();
    } catch (thrown) {
      throw this.#keepFault(thrown);
    }
  }

  #keepFault(thrown: unknown): unknown {
    const error = this.#link.fault("write", thrown);
    if (error !== thrown) {
      this.#fault = error;
      this.ring.stop();
    }
    return error;
  }

  /** Cuts the message into chunks, and places those for which there is room. [frame.multipart] */
  #advanceChunks(): boolean {
    const ring = this.ring;
    const { size, codec } = this.encoder;
    for (;;) {
      const first = this.#sent < 0;
      const from = first ? 0 : this.#sent;
      const head = FRAME_HEADER_SIZE + (first ? MESSAGE_PREAMBLE_SIZE : 0);
      // [frame.part] Only a first chunk can be left without room for more than its preamble.
      const part = Math.min(size - from, this.#chunkExtent() - head);
      const payload = part + head - FRAME_HEADER_SIZE;
      let at = ring.claim(payload);
      if (at === NO_ROOM) return false;
      if (first) {
        const word = at >> 2; // [frame.preamble]
        ring.words[word] = size;
        ring.words[word + 1] = size / 2 ** 32;
        ring.words[word + 2] = 0;
        ring.words[word + 3] = 0;
        at += MESSAGE_PREAMBLE_SIZE;
      }
      this.encoder.copy(from, part, ring.bytes, at);
      this.#sent = from + part;
      const last = this.#sent === size;
      const flags = first ? layout.FRAME_FLAG_FIRST : last ? layout.FRAME_FLAG_LAST : 0;
      ring.finish(payload, packKind(this.#kind, flags, codec), this.#tag);
      if (first) this.#open(this.#kind);
      else if (last) this.#open(0);
      if (last) return true;
    }
  }

  /** Extent of the next chunk: up to the end of the byte area where that spares a pad. */
  #chunkExtent(): number {
    const { toEnd } = this.ring;
    return toEnd >= LEAST_CHUNK && toEnd < this.#chunk ? toEnd : this.#chunk;
  }

  /** Most bytes that a multipart message can take, whatever the position it begins at. */
  #worstCost(size: number): number {
    const bytes = size + MESSAGE_PREAMBLE_SIZE;
    // Full chunks, and one more: where the end of the byte area cuts one in two, or a pad of 16.
    const chunks = Math.ceil(bytes / (this.#chunk - FRAME_HEADER_SIZE)) + 1;
    // The last chunk's extent is rounded up; not by `extentOf`, as bytes go beyond 2^31 here.
    return Math.ceil(bytes / FRAME_ALIGN) * FRAME_ALIGN + chunks * FRAME_HEADER_SIZE;
  }

  #placeCancel(): boolean {
    if (this.#openKind === 0) return true;
    if (this.ring.claim(0) === NO_ROOM) return false;
    const flags = layout.FRAME_FLAG_LAST | layout.FRAME_FLAG_CANCEL;
    this.ring.finish(0, packKind(this.#openKind, flags, this.#openCodec), this.#openTag);
    this.#open(0);
    this.#sent = -1;
    // [pipe.owed] At once: whatever becomes of the message behind it.
    this.ring.publish();
    return true;
  }

  #open(kind: number): void {
    this.#openKind = kind;
    this.#openCodec = this.encoder.codec;
    this.#openTag = this.#tag;
    this.ring.gate.set(OWED, kind !== 0);
  }
}
