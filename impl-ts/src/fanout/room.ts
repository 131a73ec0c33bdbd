/**
 * Where the writer of a fanout may write: up to what the slowest reader holds, or over the oldest
 * messages. See `spec/fanout.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { fanoutReader } from "../memory/fanout.ts";
import type { Waitable } from "../wait/waitable.ts";
import type { Endpoint } from "../wait/endpoint.ts";
import { markFailed, stateOf, stateWord } from "../wait/state.ts";

// V8 compiles constants of this module into the machine code, but looks up imported ones each time.
const FLOOR = layout.FANOUT_FLOOR_WORD;
const ERA = layout.FANOUT_ERA_WORD;
const HEAD = layout.FANOUT_READER_HEAD_WORD;
const WRITER_WANTS = layout.FANOUT_READER_WRITER_WANTS_WORD;
const RECORDS = layout.FANOUT_CONTROL_SIZE >> 2;
const RECORD_WORDS = layout.FANOUT_READER_SIZE >> 2;
const JOINED = layout.FANOUT_JOINED;
const ATTACHED = layout.ENDPOINT_STATE_ATTACHED;
const ALIGN = layout.FRAME_ALIGN;

/** The readers that hold the writer back, as it has seen them last. Positions are signed. */
export class SlowReaders implements Waitable {
  readonly #endpoint: Endpoint;
  readonly #control: Int32Array;
  /** The first byte that each reader holds. */
  readonly #held: Int32Array;
  /** The `head` of each reader, as it was loaded last. */
  readonly #heads: Int32Array;
  /** Whether the state of a reader's endpoint was found final. [fanout.gone] */
  readonly #gone: boolean[];
  /** The smallest position that a reader holds, as it was found last. */
  #least: number;
  /** The record of the reader that holds it, and the position at which there will be room. */
  #holder = 0;
  #need = 0;
  /** The record whose `writer_wants` is armed; -1 if none is. */
  #armed = -1;

  /** Begins with the start of the fanout, which is the least that a reader that joins can hold. */
  constructor(endpoint: Endpoint, control: Int32Array, readers: number, start: number) {
    this.#endpoint = endpoint;
    this.#control = control;
    this.#held = new Int32Array(readers).fill(start);
    this.#heads = new Int32Array(readers);
    this.#gone = Array(readers).fill(false);
    this.#least = start;
  }

  /**
   * Returns whether all readers have passed `need`, so that there is room for a frame. Looks at all
   * readers again only if, as far as known, one of them has not passed it. [fanout.count]
   */
  findRoom(need: number, published: number): boolean {
    if (((need - this.#least) | 0) <= 0) return true;
    this.#need = need;
    this.#look(published);
    return ((need - this.#least) | 0) <= 0;
  }

  #look(published: number): void {
    const held = this.#held;
    this.#least = published;
    for (let record = 0; record < held.length; record++) {
      if (this.#gone[record]) continue;
      const state = stateOf(stateWord(this.#endpoint, this.#readerOf(record)));
      if (state > ATTACHED) {
        this.#gone[record] = true;
        continue;
      }
      if (state < ATTACHED) held[record] = published;
      else if (!this.#lookAt(record, published)) continue;
      if (((held[record]! - this.#least) | 0) < 0) {
        this.#least = held[record]!;
        this.#holder = record;
      }
    }
  }

  /**
   * Looks at a reader that is attached. Returns false if it broke the rules, and counts no more.
   */
  #lookAt(record: number, published: number): boolean {
    const held = this.#held;
    const head = Atomics.load(this.#control, RECORDS + record * RECORD_WORDS + HEAD);
    this.#heads[record] = head;
    if (head === 0) held[record] = published;
    if (head === 0 || head === layout.FANOUT_JOINING) return true;
    const at = head - JOINED | 0;
    const step = (at - held[record]!) | 0;
    const most = (published - held[record]!) | 0;
    if ((at & (ALIGN - 1)) === 0 && step >= 0 && step <= most) { // [fanout.head]
      held[record] = at;
      return true;
    }
    // [fanout.head_fault]
    const { segment, mechanism } = this.#endpoint;
    markFailed(segment, this.#readerOf(record), layout.REASON_RING_CURSOR, mechanism);
    this.#gone[record] = true;
    return false;
  }

  #readerOf(record: number): number {
    const { index, segment } = this.#endpoint;
    return fanoutReader(index, segment.endpointCount, record);
  }

  /** The slowest reader. As long as it holds the writer back, it does not matter what others do. */
  get peer(): number {
    return this.#readerOf(this.#holder);
  }

  look(): boolean {
    const at = RECORDS + this.#holder * RECORD_WORDS + HEAD;
    return Atomics.load(this.#control, at) !== this.#heads[this.#holder];
  }

  /** Asks the slowest reader to ring when it has passed `need`. [fanout.writer_asks] */
  arm(): void {
    this.#armed = this.#holder;
    this.#storeWants(this.#need | layout.WANTS_ARMED);
  }

  stayArmed(): void {
    this.#storeWants(this.#need | layout.WANTS_ARMED);
  }

  disarm(): void {
    this.#storeWants(0);
    this.#armed = -1;
  }

  #storeWants(wants: number): void {
    if (this.#armed < 0) return;
    const at = RECORDS + this.#armed * RECORD_WORDS + WRITER_WANTS;
    Atomics.store(this.#control, at, wants);
  }
}

/** Mode `lose`: the position of the oldest message that the writer has not overwritten yet. */
export class Floor {
  readonly #control: Int32Array;
  readonly #words: Int32Array;
  readonly #capacity: number;
  /** The position, signed, and how often it has passed a multiple of 2^31. */
  #at: number;
  #era: number;

  /** Begins with the start of the fanout. */
  constructor(control: Int32Array, words: Int32Array, start: number) {
    this.#control = control;
    this.#words = words;
    this.#capacity = words.byteLength;
    this.#at = start;
    this.#era = start >>> 31;
  }

  /** Moves the floor over whole frames until it is at least `need`. [fanout.floor_step] */
  raise(need: number, published: number): void {
    const before = this.#at;
    let at = before;
    while (((need - at) | 0) > 0) {
      const place = at & (this.#capacity - 1);
      // [fanout.floor_check] Loaded once, and not added up in 32 bits: it may be any value at all.
      const size = this.#words[place >> 2]! >>> 0;
      const extent = ALIGN + Math.ceil(size / ALIGN) * ALIGN;
      const most = Math.min((published - at) | 0, this.#capacity - place);
      at = extent > most ? published : (at + extent) | 0;
    }
    if (at === before) return;
    this.#at = at;
    const control = this.#control;
    Atomics.store(control, FLOOR, at);
    if ((at ^ before) < 0) Atomics.store(control, ERA, ++this.#era | 0);
    // [fanout.floor] This load keeps the writes of the next frame after these stores.
    Atomics.load(control, FLOOR);
  }
}
