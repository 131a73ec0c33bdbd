/**
 * The small port: what both ends of a fanout know of it.
 *
 * @module
 */

import { has, hold } from "./faults.ts";
import { checkFrame, DATA, END, EXTENSION as KIND_EXTENSION, type Frame } from "./small_frame.ts";
import { HEADER, PAD, readersOf, WHOLE } from "./small_frame.ts";
import { Memory, minus, PortError, Refused, roundUp } from "./small_memory.ts";
import { Endpoint } from "./small_port.ts";
import type { Message, Taken } from "./small_reader.ts";
import { type Channel, recordAt, type Segment } from "./small_segment.ts";

/** Where the words of the control area stand, and those of a record. */
export const [TAIL, FLOOR, ERA, ENDED, READERS_WANT, RECORDS] = [0, 4, 8, 12, 128, 256] as const;
export const [HEAD, WRITER_WANTS, RECORD_SIZE] = [0, 64, 128] as const;
const EXTENSION = 16;
/** Bytes from one `era` to the next. */
const ERA_SIZE = 2 ** 31;

/** A fanout, as an endpoint has attached to it. */
interface Fanout {
  endpoint: Endpoint;
  channel: Channel;
  /** The endpoints that read it, in the order of their records. */
  readers: number[];
  isLossy: boolean;
}

/** Attaches to the fanout of a channel, or to the first that fits. [fanout.find] */
function attach(
  segment: Segment,
  which: number | undefined,
  index: number,
  writes: boolean,
): Fanout {
  segment.requireVacant(index);
  const fits = (each: Channel | undefined): each is Channel => {
    if (each === undefined) return false;
    const readers = readersOf(each, segment.endpoints);
    return readers.length > 0 && (writes ? each.writer === index : readers.includes(index));
  };
  const channel = which === undefined ? segment.channels.find(fits) : segment.channels[which];
  if (!fits(channel)) throw new PortError("segment.channel"); // [fanout.find_none]
  return {
    endpoint: Endpoint.attach(segment, index, channel.writer),
    channel,
    readers: readersOf(channel, segment.endpoints),
    isLossy: channel.start % 2 === 1,
  };
}

/** Where the record of a reader begins. */
function recordOf({ channel }: Fanout, record: number): number {
  return channel.control + RECORDS + RECORD_SIZE * record;
}

/** The word and the bit by which a reader asks to be rung. */
function wishOf({ channel }: Fanout, record: number): { at: number; bit: number } {
  return { at: channel.control + READERS_WANT + 4 * (record >> 5), bit: 1 << (record & 31) };
}

// The small port: reading a fanout.

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
    // An operation that others see stands between the copy and the look after it.
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

  /** Goes past a frame; a message that may not be handed out is a report. */
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

// The small port: writing a fanout.

const STATE = 4;
const LOW = 255;
const [VACANT, ATTACHED, FAILED] = [0, 1, 3];
const EXTENDED = 8;
/** What only `end` may take. */
const RESERVE = 16;
/** The reason with which a reader is marked. */
const CURSOR = "ring.cursor";

/** The writing end. */
export class FanoutWriter {
  readonly endpoint: Endpoint;
  readonly #fanout: Fanout;
  readonly #memory: Memory;
  /** Positions that count on, and do not wrap. */
  #tail: number;
  #published: number;
  #floor: number;
  /** Of each reader: the first byte that it holds; nothing once it was found gone. */
  readonly #held: (number | undefined)[];
  #number = 0;
  #hasEnded = false;

  constructor(segment: Segment, which: number | undefined, index: number) {
    this.#fanout = attach(segment, which, index, true);
    this.endpoint = this.#fanout.endpoint;
    this.#memory = segment.memory;
    const { start } = this.#fanout.channel;
    this.#tail = this.#published = this.#floor = start - start % 2;
    this.#held = this.#fanout.readers.map(() => this.#tail);
  }

  /** Writes a message; without a time, says whether there was room. */
  write(message: Message, timeoutMs: number | undefined): boolean {
    const deadline = performance.now() + (timeoutMs ?? 0);
    this.#answer();
    const { capacity } = this.#fanout.channel;
    const { isLossy } = this.#fanout;
    const most = isLossy ? capacity / 4 - HEADER - EXTENSION : capacity / 2 - HEADER;
    // [fanout.size]
    if (message.payload.length > most && !has("fanout_large")) throw new PortError("message.size");
    const size = message.payload.length + (isLossy && !has("fanout_unnumbered") ? EXTENSION : 0);
    const { pad, extent } = this.#spanOf(size);
    if (isLossy) this.#makeRoom(pad + extent);
    else if (!this.#hasRoom(pad + extent)) {
      if (timeoutMs === undefined) return false;
      this.#waitRoom(pad + extent, deadline);
    }
    if (pad > 0) this.#frame({ size: pad - HEADER, kind: PAD, flags: 0, codec: 0, tag: 0 }, pad);
    this.#place(message, size, extent);
    hold("publish");
    if (has("fanout_floor_late")) this.#storeFloor();
    this.#publish();
    return true;
  }

  /** Ends the stream; never waits. */
  end(): void {
    if (this.#hasEnded && !this.endpoint.closed) return;
    this.#answer();
    if (this.#fanout.isLossy) this.#makeRoom(0);
    this.#frame({ size: 0, kind: END, flags: 0, codec: 0, tag: 0 }, HEADER);
    this.#hasEnded = true;
    // [fanout.ended]
    const { control } = this.#fanout.channel;
    if (!has("fanout_ended_left")) this.#memory.store(control + ENDED, this.#tail % 2 ** 32 + 1);
    this.#publish();
  }

  close(): void {
    this.endpoint.close();
  }

  /** [fanout.first_answer] */
  #answer(): void {
    this.endpoint.answer();
    if (this.#hasEnded) throw new PortError("pipe.ended");
    if (!has("fanout_needs_readers")) return;
    const isGone = (index: number) => (this.#stateOf(index) & LOW) > ATTACHED;
    if (this.#fanout.readers.some(isGone)) throw new PortError("peer.closed");
  }

  /** Whether so many bytes are free for each reader that counts. [fanout.room] */
  #hasRoom(need: number): boolean {
    const fits = () => {
      const { capacity } = this.#fanout.channel;
      const held = this.#held.filter((each) => each !== undefined);
      const first = held.length > 0 ? Math.min(...held) : this.#published;
      return this.#tail - first + need <= capacity - (has("fanout_reserve") ? 0 : RESERVE);
    };
    if (fits()) return true;
    for (const record of this.#held.keys()) this.#look(record);
    return fits() || has("fanout_overwrites");
  }

  /** Finds out what a reader holds. [fanout.count] */
  #look(record: number): void {
    const again = has("fanout_back_from_gone") ? 0 : undefined;
    const before = this.#held[record] ?? (has("fanout_back_later") ? this.#published : again);
    if (before === undefined) return; // [fanout.gone]
    const reader = this.#fanout.readers[record]!;
    const low = this.#stateOf(reader) & LOW;
    if (low > ATTACHED && !has("fanout_dead_counted")) {
      this.#held[record] = undefined;
      return;
    }
    const head = this.#memory.load(recordOf(this.#fanout, record) + HEAD);
    const isOut = head === 0 || has("fanout_joining_ignored") && head === JOINING;
    if (low === VACANT || isOut) this.#held[record] = this.#published;
    else if (head !== JOINING) this.#held[record] = this.#check(record, head, before);
  }

  /** The position in a `head`, or nothing where that is a fault of its reader. [fanout.head] */
  #check(record: number, head: number, before: number): number | undefined {
    const behind = minus(this.#published, head - 1);
    const isGood = head % 16 === 1 && behind <= this.#published - before;
    if (isGood || has("fanout_head_trusted")) return this.#published - behind;
    // [fanout.head_fault]
    const reader = this.#fanout.readers[record]!;
    const failed = this.endpoint.failedBy(CURSOR);
    const mayChange = (state: number) => (state & LOW) <= ATTACHED;
    this.endpoint.segment.changeState(reader, mayChange, failed);
    if (has("fanout_fault_thrown")) throw new PortError(CURSOR);
    return (failed & LOW) === FAILED ? undefined : before;
  }

  /** Waits until there is room, asking the reader that holds most. [fanout.writer_asks] */
  #waitRoom(need: number, deadline: number): void {
    const { capacity } = this.#fanout.channel;
    while (!this.#hasRoom(need)) {
      this.endpoint.answer();
      if (performance.now() >= deadline) throw new PortError("wait.timeout");
      const holds = this.#held.map((each) => each ?? Infinity);
      const first = Math.min(...holds);
      const record = has("fanout_asks_first") ? 0 : holds.indexOf(first);
      const reader = this.#fanout.readers[record]!;
      const at = recordOf(this.#fanout, record);
      const spare = has("fanout_asks_less") ? 0 : RESERVE;
      const wanted = (this.#tail + need + spare - capacity) % 2 ** 32;
      const ask = {
        arm: () => this.#memory.store(at + WRITER_WANTS, wanted + 1),
        disarm: () => this.#memory.store(at + WRITER_WANTS, 0),
      };
      const look = () => {
        const head = this.#memory.load(at + HEAD);
        return head !== (first + 1) % 2 ** 32 || this.endpoint.ownState() !== undefined ||
          (this.#stateOf(reader) & LOW) !== ATTACHED;
      };
      this.endpoint.rest(reader, ask, look, deadline);
    }
  }

  /** Moves the floor over the oldest frames. [fanout.floor_step] */
  #makeRoom(need: number): void {
    const { capacity, data } = this.#fanout.channel;
    while (this.#tail - this.#floor + need > capacity - RESERVE) {
      const place = this.#floor % capacity;
      const extent = roundUp(HEADER + this.#memory.u32(data + place), 16);
      const isBeyond = this.#floor + extent > this.#published || place + extent > capacity;
      const isStopped = isBeyond && !has("fanout_floor_believed"); // [fanout.floor_check]
      this.#floor = isStopped ? this.#published : this.#floor + extent;
    }
    if (!has("fanout_floor_late")) this.#storeFloor();
  }

  /** [fanout.floor] */
  #storeFloor(): void {
    if (has("fanout_floor_left")) return;
    const { control } = this.#fanout.channel;
    this.#memory.store(control + FLOOR, this.#floor);
    const era = Math.floor(this.#floor / ERA_SIZE) % 2 ** 32;
    if (!has("fanout_era_left")) this.#memory.store(control + ERA, era);
  }

  /** Bytes that a frame takes, and the pad before it. */
  #spanOf(size: number): { pad: number; extent: number } {
    const { capacity } = this.#fanout.channel;
    const extent = roundUp(HEADER + size, 16);
    const toEnd = capacity - this.#tail % capacity;
    return { pad: extent > toEnd ? toEnd : 0, extent };
  }

  #place({ kind, codec, tag, payload }: Message, size: number, extent: number): void {
    const isExtended = size > payload.length;
    const flags = WHOLE | (isExtended ? EXTENDED : 0);
    const { data, capacity } = this.#fanout.channel;
    let at = data + this.#tail % capacity + HEADER;
    if (isExtended) {
      // [fanout.number]
      const extension = new DataView(new ArrayBuffer(EXTENSION));
      extension.setUint32(0, EXTENSION, true);
      extension.setUint32(4, NUMBER, true);
      extension.setBigUint64(8, BigInt(this.#number), true);
      this.#memory.bytes.set(new Uint8Array(extension.buffer), at);
      at += EXTENSION;
    }
    this.#number++;
    this.#memory.bytes.set(payload, at);
    this.#frame({ size, kind, flags, codec, tag }, extent);
  }

  /** Stores a header, and goes past its frame. */
  #frame(
    { size, kind, flags, codec, tag }: {
      size: number;
      kind: number;
      flags: number;
      codec: number;
      tag: number;
    },
    extent: number,
  ): void {
    const { data, capacity } = this.#fanout.channel;
    const header = new DataView(new ArrayBuffer(HEADER));
    header.setUint32(0, size, true);
    new Uint8Array(header.buffer).set([kind, flags, codec], 4);
    header.setUint32(8, tag, true);
    this.#memory.bytes.set(new Uint8Array(header.buffer), data + this.#tail % capacity);
    this.#tail += extent;
  }

  /** [fanout.wake] */
  #publish(): void {
    this.#published = this.#tail;
    const { control } = this.#fanout.channel;
    this.#memory.store(control + TAIL, this.#tail);
    const { readers, endpoint } = this.#fanout;
    if (has("fanout_silent")) return;
    for (let word = 0; word < Math.ceil(readers.length / 32); word++) {
      const at = control + READERS_WANT + 4 * word;
      let bits = this.#memory.load(at);
      if (bits === 0) continue;
      if (!has("fanout_bits_kept")) bits = this.#memory.exchange(at, 0);
      for (let bit = 0; bit < 32; bit++) {
        const reader = readers[32 * word + bit];
        const isAsked = (bits >>> bit & 1) !== 0 || has("fanout_rings_all");
        if (isAsked && reader !== undefined) endpoint.segment.ring(reader, endpoint.index);
      }
    }
  }

  #stateOf(index: number): number {
    return this.#memory.load(recordAt(index) + STATE);
  }
}
