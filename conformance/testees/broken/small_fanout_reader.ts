/**
 * The small port: reading a fanout.
 *
 * @module
 */

import { has, hold } from "./faults.ts";
import type { Endpoint } from "./small_endpoint.ts";
import { attach, ENDED, ERA, ERA_SIZE, EXTENSION, type Fanout, FLOOR } from "./small_fanout.ts";
import { HEAD, recordOf, TAIL, wishOf, WRITER_WANTS } from "./small_fanout.ts";
import { checkFrame, DATA, END, EXTENSION as KIND_EXTENSION } from "./small_frame.ts";
import { type Frame, HEADER, PAD, WHOLE } from "./small_frame.ts";
import { Memory, minus, PortError, Refused } from "./small_memory.ts";
import type { Taken } from "./small_reader.ts";
import type { Segment } from "./small_segment.ts";

const JOINING = 2;
const NUMBER = 1;
const WORD = 2 ** 32;
/** Looks that a writer may spoil before a call looks at its deadline. */
const TRIES = 8;

/** The reading end. */
export class FanoutReader {
  readonly endpoint: Endpoint;
  readonly #fanout: Fanout;
  readonly #memory: Memory;
  readonly #record: number;
  readonly #limit: number;
  /** Positions that count on, and do not wrap: where it reads, and the tail that was accepted. */
  #position = 0;
  #known = 0;
  #era: number;
  #isJoined = false;
  #hasEnded = false;
  #fault: PortError | undefined;
  /** The number of the next message; nothing where any will do. */
  #expected: number | undefined;
  #isOverrun = false;

  constructor(
    segment: Segment,
    which: number | undefined,
    index: number,
    limit: number,
    fromOldest: boolean,
  ) {
    this.#fanout = attach(segment, which, index, false);
    this.endpoint = this.#fanout.endpoint;
    this.#memory = segment.memory;
    this.#record = this.#fanout.readers.indexOf(index);
    this.#limit = limit;
    this.#era = Math.floor(this.#fanout.channel.start / ERA_SIZE);
    if (this.#fanout.isLossy) this.#begin(fromOldest);
    else this.join();
  }

  /** [fanout.join] */
  join(): void {
    this.endpoint.answer();
    if (this.#fanout.isLossy || this.#isJoined) throw new Refused("it has joined");
    this.#memory.store(this.#at(HEAD), JOINING);
    this.#position = this.#known = this.#tail();
    if (this.#position % 16 !== 0) throw this.#fail("ring.cursor");
    this.#isJoined = true;
    this.#release();
    this.#hasEnded = this.#isAfterEnd();
  }

  /** [fanout.leave] */
  leave(): void {
    this.endpoint.answer();
    if (!this.#isJoined) throw new Refused("it has not joined");
    this.#isJoined = false;
    this.#memory.store(this.#at(HEAD), 0);
    const isAsked = this.#memory.exchange(this.#at(WRITER_WANTS), 0) !== 0;
    if (isAsked && !has("fanout_leaves_silently")) this.#ringWriter();
  }

  close(): void {
    this.endpoint.close();
  }

  /** Reads one message; nothing at the deadline. Throws the report of what is lost. */
  read(timeoutMs: number): Taken {
    const deadline = performance.now() + timeoutMs;
    let isAsked = false;
    for (;;) {
      const taken = this.#poll();
      if (taken !== undefined) return taken;
      if (performance.now() >= deadline) return undefined;
      const { at, bit } = wishOf(this.#fanout, this.#record);
      const ask = {
        // [fanout.ask]
        arm: () => {
          if (has("fanout_bits_stored")) return this.#memory.store(at, bit);
          if (!has("fanout_bit_once") || !isAsked) this.#memory.set(at, bit);
          isAsked = true;
        },
        disarm: () => {
          if (!has("fanout_bit_left")) this.#memory.clear(at, bit);
        },
      };
      const look = () => this.#tail() !== this.#known % WORD || this.#final() !== undefined;
      this.endpoint.rest(this.#fanout.channel.writer, ask, look, deadline);
    }
  }

  /** [fanout.first_answer] The rows of the table, from the top. */
  #poll(): Taken {
    if (this.endpoint.closed) throw new PortError("pipe.closed");
    if (this.#fault !== undefined) throw this.#fault;
    const own = this.endpoint.ownState();
    if (own !== undefined) throw own;
    if (this.#hasEnded) return "ended";
    if (!this.#fanout.isLossy && !this.#isJoined) throw new Refused("it has not joined");
    const isDropped = has("fanout_undrained") && this.endpoint.peerState() !== undefined;
    const taken = isDropped ? undefined : this.#take();
    if (taken !== undefined) return taken;
    const final = this.endpoint.peerState();
    if (final === undefined) return undefined;
    // [pipe.look_again]
    const last = isDropped ? undefined : this.#take();
    if (last !== undefined) return last;
    throw final;
  }

  #take(): Taken {
    for (let tries = 0; tries < TRIES; tries++) {
      if (this.#position === this.#known && !this.#load()) continue;
      if (this.#position === this.#known) return undefined;
      const taken = this.#fanout.isLossy ? this.#takeLossy() : this.#takeHeld();
      if (taken === "again") continue;
      if (taken !== undefined) return taken;
      tries = -1; // a pad, which nobody has spoilt
    }
    return undefined;
  }

  /** In mode `hold`, nobody overwrites what this reader holds. */
  #takeHeld(): Taken {
    const { channel } = this.#fanout;
    const cursors = { head: this.#position % WORD, known: this.#known % WORD };
    const frame = checkFrame(this.#memory, channel, cursors, undefined, this.#refuse);
    this.#checkMessage(frame);
    hold("fetch");
    const payload = this.#memory.bytes.slice(frame.at, frame.at + frame.size);
    // [fanout.held]
    const own = has("fanout_held_unlooked") ? undefined : this.endpoint.ownState();
    if (own !== undefined) throw own;
    this.#position += frame.extent;
    this.#release();
    return this.#told(frame, payload);
  }

  /** In mode `lose`, it looks at a copy, once that is known to be whole. [fanout.validate] */
  #takeLossy(): Taken | "again" {
    const { channel } = this.#fanout;
    const { data, capacity } = channel;
    const copy = new Memory(this.#memory.bytes.slice(data, data + capacity));
    // An operation that others see stands between the copy and the look behind it.
    this.#memory.store(this.#at(HEAD), 0);
    if (!has("fanout_unvalidated")) {
      const floor = this.#floor();
      if (floor === undefined) return "again";
      if (floor > this.#position) return this.#overrun(floor);
    }
    const cursors = { head: this.#position % WORD, known: this.#known % WORD };
    const frame = checkFrame(copy, { ...channel, data: 0 }, cursors, undefined, this.#refuse);
    const isMessage = this.#checkMessage(frame);
    if (isMessage) {
      const lost = this.#checkNumber(copy, frame);
      if (lost > 0) {
        this.#isOverrun = false;
        if (!has("fanout_untold")) {
          const count = has("fanout_lost_less") && lost > 1 ? lost - 1 : lost;
          throw new PortError("message.lost", undefined, count);
        }
      }
      this.#isOverrun = false;
      if (this.#expected !== undefined) this.#expected++;
    }
    const payload = copy.bytes.slice(frame.at, frame.at + frame.size);
    this.#position += frame.extent;
    return this.#told(frame, payload);
  }

  #overrun(floor: number): "again" {
    // [fanout.overrun]
    this.#position = floor;
    this.#known = Math.max(this.#known, floor);
    this.#isOverrun = true;
    return "again";
  }

  /** Goes behind a frame; a message that may not be handed out is a report. */
  #told({ kind, codec, tag, size }: Frame, payload: Uint8Array): Taken {
    if (kind === PAD || kind >= KIND_EXTENSION) return undefined;
    if (kind === END) {
      this.#hasEnded = true;
      return "ended";
    }
    if (kind !== DATA) throw new PortError("message.kind");
    if (size > this.#limit && !has("fanout_limit_ignored")) throw new PortError("message.size");
    return { kind, codec, tag, payload };
  }

  /** Whether it is one; each is one whole frame. [fanout.frame_check] */
  #checkMessage(frame: Frame): boolean {
    if (frame.kind === PAD || frame.kind === END || frame.kind >= KIND_EXTENSION) return false;
    this.#refuse(frame.flags !== WHOLE, "frame.flags");
    if (this.#fanout.isLossy) {
      const { capacity } = this.#fanout.channel;
      this.#refuse(frame.extent > capacity / 4 && !has("fanout_quarter_free"), "frame.size");
    }
    return true;
  }

  /** How many messages were lost before this one. */
  #checkNumber(copy: Memory, { at }: Frame): number {
    const { capacity } = this.#fanout.channel;
    const begin = this.#position % capacity + HEADER;
    const isExtended = at - begin === EXTENSION && copy.u32(begin + 4) === NUMBER;
    this.#refuse(!isExtended, "frame.extension");
    const number = Number(copy.view.getBigUint64(begin + 8, true));
    const expected = this.#expected ?? number;
    const isGood = this.#isOverrun ? number >= expected : number === expected;
    this.#refuse(!isGood && !has("fanout_number_free"), "fanout.number");
    this.#expected = has("fanout_number_free") ? number : Math.max(number, expected);
    return this.#expected - expected;
  }

  /** Looks for more; whether that came to anything. */
  #load(): boolean {
    const tail = this.#tail();
    if (this.#fanout.isLossy) {
      const floor = this.#floor();
      if (floor === undefined) return false;
      if (floor > this.#position) return this.#overrun(floor), false;
    }
    this.#accept(tail);
    return true;
  }

  /** [fanout.tail] */
  #accept(tail: number): void {
    const ahead = minus(tail, this.#position % WORD);
    const isWithin = ahead <= this.#fanout.channel.capacity;
    const isBack = this.#position + ahead < this.#known;
    const isGood = tail % 16 === 0 && isWithin && !isBack;
    this.#refuse(!isGood && !has("fanout_tail_trusted"), "ring.cursor");
    this.#known = this.#position + ahead;
  }

  /** [fanout.begin] */
  #begin(fromOldest: boolean): void {
    for (let floor = undefined as number | undefined; floor === undefined;) {
      const tail = this.#tail();
      floor = this.#floor();
      if (floor === undefined) continue;
      const end = floor + minus(tail, floor % WORD);
      this.#position = this.#known = fromOldest ? floor : end;
      // [fanout.expected]
      if (end === floor || has("fanout_expects_first")) this.#expected = 0;
    }
    this.#hasEnded = !fromOldest && this.#isAfterEnd();
  }

  /** [fanout.late] */
  #isAfterEnd(): boolean {
    const ended = this.#memory.load(this.#fanout.channel.control + ENDED);
    if (has("fanout_ended_any")) return ended !== 0;
    return ended === this.#position % WORD + 1 && !has("fanout_late_untold");
  }

  /** The position of the oldest frame; nothing where `era` has changed meanwhile. */
  #floor(): number | undefined {
    const { control } = this.#fanout.channel;
    const floor = this.#memory.load(control + FLOOR);
    const era = this.#memory.load(control + ERA);
    if (era !== this.#era) {
      this.#era = era;
      return undefined;
    }
    this.#refuse(floor % 16 !== 0, "ring.cursor");
    const isBehind = era % 2 !== Math.floor(floor / ERA_SIZE) && !has("fanout_era_believed");
    return (era + (isBehind ? 1 : 0)) * ERA_SIZE + floor % ERA_SIZE;
  }

  #tail(): number {
    return this.#memory.load(this.#fanout.channel.control + TAIL);
  }

  #at(word: number): number {
    return recordOf(this.#fanout, this.#record) + word;
  }

  #final(): PortError | undefined {
    return this.endpoint.ownState() ?? this.endpoint.peerState();
  }

  /** [fanout.release] */
  #release(): void {
    if (has("fanout_unreleased")) return;
    this.#memory.store(this.#at(HEAD), this.#position % WORD + 1);
    if (!has("fanout_release_silent")) {
      this.endpoint.wake(this.#at(WRITER_WANTS), this.#position % WORD);
    }
  }

  #ringWriter(): void {
    this.endpoint.segment.ring(this.#fanout.channel.writer, this.endpoint.index);
  }

  readonly #refuse = (condition: boolean, code: string): void => {
    if (condition) throw this.#fail(code);
  };

  #fail(code: string): PortError {
    return this.#fault = this.endpoint.failPeer(code);
  }
}
