/**
 * The small port: writing a fanout.
 *
 * @module
 */

import { has, hold } from "./faults.ts";
import type { Endpoint } from "./small_endpoint.ts";
import { attach, ENDED, ERA, ERA_SIZE, EXTENSION, type Fanout, FLOOR } from "./small_fanout.ts";
import { HEAD, READERS_WANT, recordOf, TAIL, WRITER_WANTS } from "./small_fanout.ts";
import { END, HEADER, PAD, WHOLE } from "./small_frame.ts";
import { type Memory, minus, PortError, roundUp } from "./small_memory.ts";
import type { Message } from "./small_reader.ts";
import { recordAt, type Segment } from "./small_segment.ts";

const STATE = 4;
const LOW = 255;
const [VACANT, ATTACHED, FAILED] = [0, 1, 3];
const JOINING = 2;
const EXTENDED = 8;
const NUMBER = 1;
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

  /** Stores a header, and goes behind its frame. */
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
