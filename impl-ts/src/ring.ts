/**
 * One writer, one reader, and two cursors over a byte area. See `spec/ring.md`.
 *
 * Positions are kept as signed 32-bit integers (`| 0`), which V8 holds in registers, and which
 * wrap around where the specification wraps.
 *
 * @module
 */

import type { Endpoint } from "./wait_endpoint.ts";
import { assert } from "./error.ts";
import { Gate, STOPPED } from "./gate.ts";
import { extentOf, type FrameReader, packKind, writeHeader } from "./frame.ts";
import type { Channel } from "./segment_geometry.ts";
import * as layout from "./layout.ts";
import type { Holder, Waitable } from "./wait.ts";

// Constants of this module are part of the machine code; V8 looks imported ones up each time.
const TAIL = layout.RING_TAIL_WORD;
const HEAD = layout.RING_HEAD_WORD;
const READER_WANTS = layout.RING_READER_WANTS_WORD;
const WRITER_WANTS = layout.RING_WRITER_WANTS_WORD;
const RESERVE = layout.RING_RESERVE;
const ARMED = layout.WANTS_ARMED;
const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const KIND_PAD = layout.FRAME_KIND_PAD;
const MISALIGNED = layout.FRAME_ALIGN - 1;
/** [frame.pad] [frame.end] All of their fields but the kind, and a pad's size, are 0. */
const PAD = packKind(KIND_PAD, 0, 0);
const END = packKind(layout.FRAME_KIND_END, 0, 0);

/** Bytes of a cache line, and how many of a frame are taken before it is written: short ones. */
const LINE_SIZE = 64;
const WARM_SIZE = 256;

/** Up to this size, copying words in a loop is faster than a call of `set` (V8 13 and 15). */
export const SHORT_SIZE = 256;

/** Returned by `claim` when the ring has no room. */
export const NO_ROOM = -1;

/** What `take` returns in place of a size: nothing is there yet; or what has to be judged. */
export const NONE_YET = -1;
export const OTHER = -2;

/** The writer's side. Its methods belong to the endpoint's thread. */
export class RingWriter implements Waitable, Holder {
  readonly capacity: number;
  /** Index of the reader's endpoint. */
  readonly peer: number;
  /** The byte area, as bytes and as words. */
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  /** What stands in the way of a write: see `isClear`. */
  readonly gate: Gate = new Gate();
  readonly #endpoint: Endpoint;
  readonly #control: Int32Array;
  /** Most bytes of a message that `put` places. */
  readonly #short: number;
  /** Behind the last finished frame; `#published` is what the reader can see of it. */
  #tail: number;
  #published: number;
  /** The last `head` that was loaded and checked. */
  #head: number;
  #place = 0;
  #claimed = 0;
  /** Extent of the last frame. */
  #extent = 0;
  /** What was published at the last `expectsAnswer`. */
  #asked: number;
  #need = 0;
  #arms = 0;
  #mayLoad = true;
  /** Whether it has begun anew, and who waited for room is to look. */
  #isRenewed = false;
  #isHeld = false;

  /** Begins where `firstPosition` says. */
  constructor(endpoint: Endpoint, channel: Channel) {
    this.#endpoint = endpoint;
    this.peer = channel.reader;
    this.capacity = channel.dataSize;
    // Of `min`, V8 makes a number with a point.
    this.#short = Math.min((channel.dataSize >> 1) - HEADER_SIZE, SHORT_SIZE) | 0;
    this.#control = endpoint.segment.words(channel.controlOffset, layout.RING_CONTROL_SIZE);
    this.words = endpoint.segment.words(channel.dataOffset, channel.dataSize);
    this.bytes = endpoint.segment.bytes(channel.dataOffset, channel.dataSize);
    this.#tail = this.#published = this.#head = firstPosition(endpoint, channel, TAIL);
    this.#asked = this.#tail;
  }

  /** Bytes from the next frame to the end of the byte area. */
  get toEnd(): number {
    return this.capacity - (this.#tail & (this.capacity - 1));
  }

  /** Behind the last finished frame. */
  get tail(): number {
    return this.#tail;
  }

  /** Whether nothing is known against a write: one load of each state, and no error made. */
  get isClear(): boolean {
    return this.gate.bits === 0 && this.#endpoint.isLinked(this.peer);
  }

  /** Lets the next claim that needs it load `head`, once until the next call. [ring.one_load] */
  allowLoad(): void {
    this.#mayLoad = true;
    this.#isRenewed = false;
  }

  /**
   * Takes the place for a frame of up to `size` bytes and returns where its payload begins in the
   * byte area, or `NO_ROOM`. Nothing is visible before `finish` and `publish`.
   */
  claim(size: number): number {
    const extent = extentOf(size);
    const toEnd = this.toEnd;
    const pad = extent > toEnd ? toEnd : 0;
    if (!this.#hasRoom(pad + extent + RESERVE)) return NO_ROOM;
    if (pad > 0) this.#writePad(pad);
    this.#place = (this.#tail + pad) | 0;
    this.#claimed = extent;
    return (this.#place & (this.capacity - 1)) + HEADER_SIZE;
  }

  /**
   * Claims, fills and finishes the frame of a short message in one step, if that takes neither a
   * pad nor a look at `head`; returns whether it did. A claim, a copy and a finish of their own
   * cost half as much again. `sourceWords` are the whole words of `source`.
   */
  put(
    source: Uint8Array,
    sourceWords: Int32Array,
    size: number,
    kindWord: number,
    tag: number,
  ): boolean {
    const { capacity, words } = this;
    const tail = this.#tail;
    const at = tail & (capacity - 1);
    const extent = extentOf(size);
    const room = capacity - ((tail - this.#head) | 0);
    if (size > this.#short || extent > capacity - at || extent + RESERVE > room) return false;
    writeHeader(words, at >> 2, size, kindWord, tag);
    const to = (at + HEADER_SIZE) >> 2;
    const count = size >> 2;
    // By words, 64 bytes take 14 ns; `set`, and the view that it may need, 30 to 90 (V8 14, 15).
    for (let i = 0; i < count; i++) words[to + i] = sourceWords[i]!;
    for (let i = count << 2; i < size; i++) this.bytes[at + HEADER_SIZE + i] = source[i]!;
    this.#tail = (tail + extent) | 0;
    this.#extent = extent;
    return true;
  }

  /** The same, and publishes it, if nothing is known against a write. */
  send(
    source: Uint8Array,
    sourceWords: Int32Array,
    size: number,
    kindWord: number,
    tag: number,
  ): boolean {
    if (!this.isClear || !this.put(source, sourceWords, size, kindWord, tag)) return false;
    this.publish();
    return true;
  }

  /** [ring.pad] */
  #writePad(extent: number): void {
    const at = (this.#tail & (this.capacity - 1)) >> 2;
    writeHeader(this.words, at, extent - HEADER_SIZE, PAD, 0);
  }

  /** Completes the frame that was claimed, with at most the size claimed. Not visible yet. */
  finish(size: number, kindWord: number, tag: number): void {
    const extent = extentOf(size);
    assert(extent <= this.#claimed, "a frame is finished within its claim");
    const at = (this.#place & (this.capacity - 1)) >> 2;
    writeHeader(this.words, at, size, kindWord, tag);
    this.#tail = (this.#place + extent) | 0;
    this.#claimed = 0;
    this.#extent = extent;
  }

  /** Gives back all frames behind `tail`, which is not before what is published. */
  rewind(tail: number): void {
    this.#tail = tail;
    this.#claimed = 0;
  }

  /** Gives back everything that is not published. */
  drop(): void {
    this.rewind(this.#published);
  }

  /**
   * Reads and stores nothing more in this ring, `wants` included: a wait under way ends, and leaves
   * the word as it is. [ring.fault]
   */
  stop(): void {
    this.drop();
    this.gate.set(STOPPED, true);
  }

  /** Takes its wish back, and stores nothing in this ring any more. [pipe.close] [wait.disarm] */
  close(): void {
    if (this.#arms > 0) this.#unwish();
    this.stop();
  }

  /** Begins anew behind what is published, for the next reader. [segment.vacate_words] */
  renew(): void {
    this.drop();
    this.gate.set(STOPPED, false);
    this.#isRenewed = true;
    const tail = this.#head = this.#published;
    renewControl(this.#control, tail, READER_WANTS);
  }

  /** Places an `end`, for which room is always left. [pipe.end_now] */
  finishEnd(): void {
    writeHeader(this.words, (this.#tail & (this.capacity - 1)) >> 2, 0, END, 0);
    this.#tail = (this.#tail + HEADER_SIZE) | 0;
  }

  /**
   * Makes every finished frame visible to the reader, and wakes it if it sleeps. [ring.batch]
   * Nothing else but `renew` stores `tail`, and it stands between frames. [ring.tail_owner]
   */
  publish(): void {
    const tail = this.#tail;
    if (tail === this.#published) return;
    this.#published = tail;
    // [ring.publish] Behind the last payload byte: a reader that sees this must see that too.
    Atomics.store(this.#control, TAIL, tail);
    // [wait.store_order] The cursor first, then the wish: one side sees the other.
    const wants = Atomics.load(this.#control, READER_WANTS);
    if (wants === 0) this.#endpoint.wakesElided++;
    else wake(this.#endpoint, this.peer, this.#control, READER_WANTS, wants, tail);
  }

  /**
   * Whether anything was published since the last call: then whoever waits now may wait for an
   * answer. Takes the cache lines of the next frame, if it is like the last one, away from the
   * reader, who has read what stood there a lap ago: while the thread waits, that costs nothing,
   * but when it writes, the store of `tail` would wait for it, a twentieth of an echo of 64 bytes.
   */
  expectsAnswer(): boolean {
    if (this.#published === this.#asked) return false;
    this.#asked = this.#published;
    const size = Math.min(this.#extent, WARM_SIZE);
    const free = this.capacity - ((this.#tail - this.#head) | 0);
    if (this.#claimed > 0 || this.gate.has(STOPPED) || free < size + LINE_SIZE) return true;
    const mask = (this.capacity - 1) >> 2;
    const at = this.#tail >> 2;
    // Behind the tail, bytes mean nothing.
    const end = at + (size >> 2);
    for (let word = at; word < end; word += LINE_SIZE >> 2) this.words[word & mask] = 0;
    return true;
  }

  look(): boolean {
    return this.gate.has(STOPPED) || this.#isRenewed ||
      Atomics.load(this.#control, HEAD) !== this.#head;
  }

  arm(): void {
    this.#arms++;
    if (this.gate.has(STOPPED)) return;
    Atomics.store(this.#control, WRITER_WANTS, this.#need | ARMED);
  }

  stayArmed(): void {
    const wants = this.#need | ARMED;
    if (this.gate.has(STOPPED) || Atomics.load(this.#control, WRITER_WANTS) === wants) return;
    Atomics.store(this.#control, WRITER_WANTS, wants);
  }

  disarm(): void {
    if (--this.#arms === 0) this.#unwish();
  }

  #unwish(): void {
    if (!this.gate.has(STOPPED)) Atomics.store(this.#control, WRITER_WANTS, 0);
  }

  /** Has what is finished published before the endpoint waits, whatever for. [ring.publish_all] */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#endpoint.hold(this);
  }

  letGo(): void {
    this.#isHeld = false;
    this.publish();
  }

  /** Whether so many bytes, the reserve included, are free; loads `head` only if need be. */
  #hasRoom(size: number): boolean {
    return size <= this.capacity - ((this.#tail - this.#head) | 0) || this.#lookForRoom(size);
  }

  #lookForRoom(size: number): boolean {
    if (this.#mayLoad) this.#loadHead();
    if (size <= this.capacity - ((this.#tail - this.#head) | 0)) return true;
    // [wait.writer_asks] The head at which it fits.
    this.#need = (this.#tail + size - this.capacity) | 0;
    return false;
  }

  /** [ring.cursor] One load into a local: the peer may change the word between two. */
  #loadHead(): void {
    this.#mayLoad = false;
    const head = Atomics.load(this.#control, HEAD);
    const used = (this.#published - head) | 0;
    if (
      (head & MISALIGNED) !== 0 || used < 0 || used > ((this.#published - this.#head) | 0)
    ) {
      throw new Fault(
        layout.REASON_RING_CURSOR,
        `head ${head >>> 0}, tail ${this.#published >>> 0}`,
      );
    }
    this.#head = head;
  }
}

/** The reader's side. Its methods belong to the endpoint's thread. */
export class RingReader implements Waitable, Holder {
  readonly capacity: number;
  /** Index of the writer's endpoint. */
  readonly peer: number;
  /** The byte area, as bytes and as words. */
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  /** The frame that `next` found. */
  readonly frame: FrameReader;
  readonly #endpoint: Endpoint;
  readonly #control: Int32Array;
  /** The next frame to read; `#stored` is what the writer can see of it. */
  #head: number;
  #stored: number;
  /** The last `tail` that was loaded and checked. */
  #tail: number;
  #arms = 0;
  #stopped = false;
  #isHeld = false;

  /** Begins where `firstPosition` says. */
  constructor(endpoint: Endpoint, channel: Channel, frame: FrameReader) {
    this.#endpoint = endpoint;
    this.peer = channel.writer;
    this.frame = frame;
    this.capacity = channel.dataSize;
    this.#control = endpoint.segment.words(channel.controlOffset, layout.RING_CONTROL_SIZE);
    this.words = endpoint.segment.words(channel.dataOffset, channel.dataSize);
    this.bytes = endpoint.segment.bytes(channel.dataOffset, channel.dataSize);
    this.#head = this.#stored = this.#tail = firstPosition(endpoint, channel, HEAD);
  }

  /** Where the frame's piece of a message begins in the byte area. */
  get payload(): number {
    return (this.#head & (this.capacity - 1)) + HEADER_SIZE + this.frame.lead;
  }

  /**
   * Goes to the next frame that the last load of `tail` showed, over pads and extensions; false if
   * there is none. The frame stays where it is until `release`.
   */
  next(): boolean {
    while (this.#head !== this.#tail) {
      const { frame, capacity } = this;
      const at = this.#head & (capacity - 1);
      const available = (this.#tail - this.#head) | 0;
      const fault = frame.check(this.words, at >> 2, available, capacity - at, capacity >> 1);
      if (fault !== 0) throw this.#frameFault(fault);
      if (frame.kind < KIND_PAD) return true;
      this.release(); // [frame.skip]
    }
    return false;
  }

  /** Whether everything that the loads of `tail` have shown is read. */
  get isRead(): boolean {
    return this.#head === this.#tail;
  }

  /**
   * Copies a message out and gives its frame back, in one step, if it is a whole one of data and of
   * at most `most` bytes, which is for short ones; returns its size. `targetWords` are the whole
   * words of `target`.
   *
   * Where everything is read it loads the tail up to `looks` times, until something shows; if
   * nothing does, the answer is `NONE_YET`. Anything else, a tail that is none included, is left to
   * `load` and `next`, and the answer is `OTHER`.
   */
  take(target: Uint8Array, targetWords: Int32Array, most: number, looks: number): number {
    const { capacity, words, frame } = this;
    const head = this.#head;
    let tail = this.#tail;
    if (tail === head) {
      const control = this.#control;
      while (tail === head && looks-- > 0) tail = Atomics.load(control, TAIL);
      if (tail === head) return NONE_YET;
      if (!this.#accept(tail)) return OTHER;
    }
    const at = head & (capacity - 1);
    // [frame.check] One load of each word, and all that there is to check of such a frame.
    const size = words[at >> 2]! >>> 0;
    if (size > most) return OTHER;
    const extent = extentOf(size);
    if (
      extent > ((tail - head) | 0) || extent > capacity - at || !frame.isWholeData(words, at >> 2)
    ) return OTHER;
    const from = (at + HEADER_SIZE) >> 2;
    const count = size >> 2;
    for (let i = 0; i < count; i++) targetWords[i] = words[from + i]!;
    for (let i = count << 2; i < size; i++) target[i] = this.bytes[at + HEADER_SIZE + i]!;
    this.#advance(extent);
    return size;
  }

  /** Loads `tail` and checks it; false if it shows nothing beyond the frame to read. */
  load(): boolean {
    const tail = Atomics.load(this.#control, TAIL);
    if (!this.#accept(tail)) throw this.#cursorFault(tail);
    return tail !== this.#head;
  }

  /**
   * The same so many times, until something shows. False also for a tail that is none: the next
   * load finds that out.
   */
  tryLoad(looks: number): boolean {
    const known = this.#tail;
    for (; looks > 0; looks--) {
      const tail = Atomics.load(this.#control, TAIL);
      if (tail !== known) return this.#accept(tail);
    }
    return false;
  }

  /** [ring.cursor] Whether a tail can be one; it then is the known one. */
  #accept(tail: number): boolean {
    const used = (tail - this.#head) | 0;
    if (
      (tail & MISALIGNED) !== 0 || used > this.capacity || used < ((this.#tail - this.#head) | 0)
    ) return false;
    this.#tail = tail;
    return true;
  }

  /** Gives the frame back; stored when a quarter is, or nothing is left. [ring.release_early] */
  release(): void {
    this.frame.accept();
    this.#advance(this.frame.extent);
  }

  #advance(extent: number): void {
    const head = this.#head = (this.#head + extent) | 0;
    if (head === this.#tail || ((head - this.#stored) | 0) >= this.capacity >> 2) this.flush();
    else if (!this.#isHeld) this.#hold();
  }

  /** Has it stored before the endpoint waits, whatever for. [ring.release_all] */
  #hold(): void {
    this.#isHeld = true;
    this.#endpoint.hold(this);
  }

  letGo(): void {
    this.#isHeld = false;
    this.flush();
  }

  /**
   * Reads and stores nothing more in this ring, `wants` included: what was released and not stored
   * stays, and a wait under way ends. [ring.fault]
   */
  stop(): void {
    this.#stored = this.#head;
    this.#stopped = true;
  }

  /** Takes its wish back, and stores nothing in this ring any more. [pipe.close] [wait.disarm] */
  close(): void {
    if (this.#arms > 0) this.#unwish();
    this.stop();
  }

  /** Begins anew behind what was taken, for the next writer. [segment.vacate_words] */
  renew(): void {
    this.#stopped = false;
    this.frame.renew();
    const head = this.#stored = this.#tail = this.#head;
    renewControl(this.#control, head, WRITER_WANTS);
  }

  /**
   * Stores `head` for all that was released, and wakes the writer if it waits for that. Nothing
   * else but `renew` stores `head`, and it stands between frames. [ring.head_owner]
   */
  flush(): void {
    const head = this.#head;
    if (head === this.#stored) return;
    this.#stored = head;
    // [ring.release] Behind the last access to the bytes that it gives back.
    Atomics.store(this.#control, HEAD, head);
    const wants = Atomics.load(this.#control, WRITER_WANTS);
    if (wants === 0) this.#endpoint.wakesElided++;
    else wake(this.#endpoint, this.peer, this.#control, WRITER_WANTS, wants, head);
  }

  look(): boolean {
    return this.#stopped || Atomics.load(this.#control, TAIL) !== this.#tail;
  }

  arm(): void {
    this.#arms++;
    if (this.#stopped) return;
    Atomics.store(this.#control, READER_WANTS, this.#wish());
  }

  stayArmed(): void {
    const wants = this.#wish();
    if (this.#stopped || Atomics.load(this.#control, READER_WANTS) === wants) return;
    Atomics.store(this.#control, READER_WANTS, wants);
  }

  /** [wait.reader_asks] */
  #wish(): number {
    return (this.#head + layout.FRAME_ALIGN) | ARMED;
  }

  disarm(): void {
    if (--this.#arms === 0) this.#unwish();
  }

  #unwish(): void {
    if (!this.#stopped) Atomics.store(this.#control, READER_WANTS, 0);
  }

  // Apart, for the functions that throw them are short for the sake of speed.

  #frameFault(reason: number): Fault {
    const { kind, flags, size } = this.frame;
    return new Fault(reason, `kind ${kind}, flags ${flags}, size ${size}`);
  }

  #cursorFault(tail: number): Fault {
    return new Fault(layout.REASON_RING_CURSOR, `tail ${tail >>> 0}, head ${this.#head >>> 0}`);
  }
}

/**
 * Where an end of a ring begins: at the start of its channel [ring.start]; or, if somebody has had
 * the endpoint before, where its own cursor stands, of which no bits count that it cannot have.
 * [ring.start_again]
 */
function firstPosition(endpoint: Endpoint, channel: Channel, cursor: number): number {
  if (!endpoint.isAgain) return channel.start | 0;
  const control = endpoint.segment.words(channel.controlOffset, layout.RING_CONTROL_SIZE);
  return Atomics.load(control, cursor) & ~MISALIGNED;
}

/** Makes both cursors equal, and takes the wish of the peer that is gone back. */
function renewControl(control: Int32Array, position: number, wants: number): void {
  Atomics.store(control, TAIL, position);
  Atomics.store(control, HEAD, position);
  Atomics.store(control, wants, 0);
}

/** Wakes a peer that waits, if what it waits for is there now. */
function wake(
  endpoint: Endpoint,
  peer: number,
  control: Int32Array,
  word: number,
  wants: number,
  cursor: number,
): void {
  const isMet = ((cursor - (wants & ~ARMED)) | 0) >= 0;
  if (isMet && Atomics.exchange(control, word, 0) !== 0) endpoint.ring(peer);
  else endpoint.wakesElided++;
}

/** A fault of the peer; the pipe marks the peer and tells the caller. */
export class Fault {
  /** The number of the reason code. */
  readonly reason: number;
  /** What was seen. */
  readonly what: string;

  /** Makes a fault. */
  constructor(reason: number, what: string) {
    this.reason = reason;
    this.what = what;
  }
}
