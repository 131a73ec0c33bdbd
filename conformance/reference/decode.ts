/**
 * The reference reader: takes everything out of a ring or a mailbox, as strictly as the chapters
 * allow. It is the peer of a writer under test, and finds what no reader would: fields that a
 * writer must leave 0, pads where none is needed.
 *
 * @module
 */

import { number, toHex, word } from "./bytes.ts";
import type { Drained, Item, MessageCase } from "./case.ts";
import { CANCEL, EXTENDED, extentOf, FIRST, kindOf, LAST, put, WHOLE } from "./encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "./layout.ts";

const RESERVE = limitOf("ring_reserve");

/** Where a ring lies. */
interface RingPlace {
  control: number;
  data: number;
  capacity: number;
}

/** A value of a structure in memory. */
export function get(bytes: Uint8Array, at: number, structure: string, field: string): number {
  const { offset, size } = fieldOf(structure, field);
  return number(bytes.subarray(at + offset, at + offset + size));
}

/** Reads the descriptor of a ring. */
export function ringPlace(bytes: Uint8Array, at: number): RingPlace {
  const load = (field: string) => get(bytes, at, "channel_descriptor", field);
  return {
    control: load("control_offset"),
    data: load("data_offset"),
    capacity: load("data_size"),
  };
}

interface Frame {
  at: number;
  size: number;
  kind: number;
  flags: number;
  codec: number;
  tag: number;
  time: number;
}

/** Reads a ring that one writer fills, from where its `head` stands. */
export class RingTaker {
  readonly #bytes: Uint8Array;
  readonly #place: RingPlace;
  #head: number;
  #first: Frame | undefined;
  /** What the parts must add up to; nothing where the writer did not know it. */
  #total: number | undefined;
  #parts: number[] = [];
  #ended = false;
  /** The extent of the pad before the next frame; 0 where there is none. */
  #pad = 0;
  /** What was parsed for `room`, and not handed out yet. */
  #items: Item[] = [];

  constructor(bytes: Uint8Array, place: RingPlace) {
    this.#bytes = bytes;
    this.#place = place;
    this.#head = get(bytes, place.control, "ring_control", "head");
  }

  /** Takes all that is published and stores `head`. Throws where the writer broke a rule. */
  take(): Drained {
    this.#parse();
    put(this.#bytes, this.#place.control, "ring_control", "head", this.#head);
    const items = this.#items;
    this.#items = [];
    return { items, end: this.#ended ? "ended" : "nothing" };
  }

  /** Gives back what makes `size` bytes free, where they are not. */
  room(size: number): void {
    this.#parse();
    const { capacity, control } = this.#place;
    const more = size - (capacity - this.#used(this.#head));
    if (more <= 0) return;
    const head = (get(this.#bytes, control, "ring_control", "head") + more) % 2 ** 32;
    put(this.#bytes, control, "ring_control", "head", head);
  }

  /** Bytes from the head that the writer sees to a position. */
  #used(position: number): number {
    const head = get(this.#bytes, this.#place.control, "ring_control", "head");
    return (position - head + 2 ** 32) % 2 ** 32;
  }

  #parse(): void {
    const tail = get(this.#bytes, this.#place.control, "ring_control", "tail");
    while (this.#head !== tail) {
      if (this.#ended) throw new Error("[pipe.end] a frame stands behind `end`");
      const item = this.#frame((tail - this.#head + 2 ** 32) % 2 ** 32);
      if (item !== undefined) this.#items.push(item);
    }
  }

  #frame(available: number): Item | undefined {
    const { data, capacity } = this.#place;
    const place = this.#head % capacity;
    const at = data + place;
    const load = (field: string) => get(this.#bytes, at, "frame_header", field);
    const frame: Frame = {
      at,
      size: load("size"),
      kind: load("kind"),
      flags: load("flags"),
      codec: load("codec"),
      tag: load("tag"),
      time: load("time"),
    };
    const extent = extentOf(frame.size);
    const toEnd = capacity - place;
    expect(load("reserved") === 0, "frame.header", "the reserved byte is not 0");
    expect(extent <= available, "ring.publish", "a frame reaches beyond `tail`");
    expect(extent <= toEnd, "frame.extent", "a frame reaches beyond the byte area");
    const usedBefore = this.#used(this.#head);
    this.#head = (this.#head + extent) % 2 ** 32;
    const mayUse = frame.kind === kindOf("end") ? capacity : capacity - RESERVE;
    expect(usedBefore + extent <= mayUse, "ring.room", "the reserve was taken");
    const { flags, codec, tag, time } = frame;
    if (frame.kind === kindOf("pad")) {
      expect(flags + codec + tag + time === 0, "frame.pad", "a pad has fields that are not 0");
      expect(extent === toEnd, "frame.pad", "a pad does not reach the end of the byte area");
      this.#pad = extent;
      return undefined;
    }
    // A claim may be finished smaller than the pad before it; no case does that after a pad.
    expect(extent > this.#pad, "ring.pad", "a pad stands where the next frame would have fitted");
    this.#pad = 0;
    expect(extent <= capacity / 2, "frame.extent", "a frame is above half the capacity");
    if (frame.kind === kindOf("end")) {
      expect(frame.size + flags + codec + tag + time === 0, "frame.end", "`end` is not all 0");
      this.#ended = true;
      if (this.#first === undefined) return undefined;
      const hadRoom = usedBefore + extent <= capacity - RESERVE;
      expect(!hadRoom, "pipe.owed_end", "there was room for the cancel before `end`");
      return { report: "message.truncated" };
    }
    return this.#message(frame);
  }

  #message(extended: Frame): Item | undefined {
    const first = this.#first;
    const skipped = this.#extension(extended);
    const flags = extended.flags & ~EXTENDED;
    // As it would be without its header extension.
    const frame = { ...extended, at: extended.at + skipped, size: extended.size - skipped, flags };
    const payload = [...this.#bytes.subarray(frame.at + 16, frame.at + 16 + frame.size)];
    if (frame.flags === WHOLE) {
      expect(first === undefined, "frame.contiguous", "a message stands inside another");
      return toMessage(frame, payload);
    }
    expect(frame.codec !== valueOf("codec", "json_batch"), "frame.batch_whole", "a batch is cut");
    if (frame.flags === FIRST) {
      expect(first === undefined, "frame.multipart", "`first` inside a message");
      expect(frame.size >= sizeOf("message_preamble"), "frame.preamble", "it is missing");
      const [total, end] = [frame.at + 16, frame.at + 24];
      const isKnown = this.#bytes.subarray(total, end).some((byte) => byte !== 0xff);
      this.#total = isKnown ? get(this.#bytes, total, "message_preamble", "total") : undefined;
      const reserved = get(this.#bytes, frame.at + 16, "message_preamble", "reserved");
      expect(reserved === 0, "frame.preamble", "its reserved bytes are not 0");
      this.#parts = payload.slice(sizeOf("message_preamble"));
      this.#first = frame;
      return undefined;
    }
    expect(first !== undefined, "frame.multipart", "a message begins without `first`");
    const same = first.kind === frame.kind && first.codec === frame.codec &&
      first.tag === frame.tag;
    expect(same, "frame.multipart", "kind, codec or tag differ from those of the first frame");
    if (frame.flags === LAST + CANCEL) {
      expect(extended.size === 0, "frame.cancel", "a cancel has a payload");
      this.#first = undefined;
      return { report: "message.cancelled" };
    }
    expect(frame.flags === 0 || frame.flags === LAST, "frame.multipart", "impossible flags");
    expect(frame.size > 0, "frame.part", "a part is empty");
    this.#parts.push(...payload);
    if (frame.flags === 0) return undefined;
    const isSum = this.#total === undefined || this.#parts.length === this.#total;
    expect(isSum, "frame.preamble", "`total` is not the sum");
    this.#first = undefined;
    return toMessage(frame, this.#parts);
  }

  /** Bytes of a frame's header extension, 0 where it has none. */
  #extension({ at, size, flags }: Frame): number {
    if ((flags & EXTENDED) === 0) return 0;
    expect(flags !== LAST + CANCEL + EXTENDED, "frame.extension", "a cancel is extended");
    expect(size >= sizeOf("header_extension"), "frame.extension", "it is missing");
    const own = get(this.#bytes, at + 16, "header_extension", "size");
    const isGood = own >= 16 && own % 16 === 0 && own <= size;
    expect(isGood, "frame.extension", `its size is ${own}, of a frame of ${size}`);
    return own;
  }
}

/** Reads a mailbox that one writer fills: its payloads, whole. */
export class MailboxTaker {
  readonly #bytes: Uint8Array;
  #parts: number[] = [];
  #count = 0;
  #index = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** A mailbox gives room by parts. */
  room(): never {
    throw new Error("a mailbox has no room to give");
  }

  /** Takes the part that is there, if there is one. */
  take(): Drained {
    const load = (field: string) => get(this.#bytes, 0, "mailbox_header", field);
    const signal = load("signal");
    if (signal === 0) return { items: [], end: "nothing" };
    expect(signal === 1, "mailbox.signal_exchange", `signal is ${word(signal)}`);
    const [length, count, index] = [load("length"), load("part_count"), load("part_index")];
    expect(length >= 1 && length <= this.#bytes.length - 32, "mailbox.parts", "bad length");
    expect(index === this.#index, "mailbox.parts", `part ${index}, not ${this.#index}`);
    if (index === 0) this.#count = count;
    expect(count === this.#count && index < count, "mailbox.parts", `part_count is ${count}`);
    this.#parts.push(...this.#bytes.subarray(32, 32 + length));
    put(this.#bytes, 0, "mailbox_header", "signal", 0);
    this.#index = (index + 1) % count;
    if (this.#index > 0) return { items: [], end: "nothing" };
    const values = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(
      Uint8Array.from(this.#parts),
    ));
    this.#parts = [];
    expect(Array.isArray(values) && values.length > 0, "mailbox.payload", "no array of messages");
    const items = values.map((json: unknown) => ({ kind: 1, codec: 2, tag: 0, json }));
    return { items, end: "nothing" };
  }
}

function toMessage({ kind, codec, tag }: Frame, payload: number[]): MessageCase {
  return { kind, codec, tag, hex: toHex(Uint8Array.from(payload)) };
}

function expect(good: boolean, clause: string, fact: string): asserts good {
  if (!good) throw new Error(`[${clause}] ${fact}`);
}

// The reference reader of a fanout: takes what its writer publishes, as the reader of record 0, and
// finds what no reader has to check.

/** Reads a fanout: in mode `hold` from where record 0 stands, which has joined, or else `floor`. */
export class FanoutTaker {
  readonly #bytes: Uint8Array;
  readonly #control: number;
  readonly #data: number;
  readonly #capacity: number;
  readonly #loses: boolean;
  #position: number;
  #number = 0;
  #ended = false;
  #pad = 0;

  /** The descriptor stands at `at`. */
  constructor(bytes: Uint8Array, at: number) {
    const { control, data, capacity } = ringPlace(bytes, at);
    [this.#bytes, this.#control, this.#data, this.#capacity] = [bytes, control, data, capacity];
    const lose = limitOf("fanout_lose");
    this.#loses = get(bytes, at, "channel_descriptor", "start") % 16 === lose;
    this.#position = this.#loses ? this.#word("floor") : this.#head();
  }

  /** A writer of a fanout gets its room otherwise. */
  room(): never {
    throw new Error("the room of a fanout is not given back in pieces");
  }

  /** Takes all that is published, and gives it back. Throws where the writer broke a rule. */
  take(): Drained {
    const items: Item[] = [];
    const floor = this.#word("floor");
    const tail = this.#word("tail");
    const isBehind = (floor - this.#position + 2 ** 32) % 2 ** 32 <= 2 ** 31;
    if (this.#loses && isBehind && floor !== this.#position) {
      this.#position = floor;
      this.#number = -1; // The next one says.
    }
    const used = (tail - (this.#loses ? floor : this.#head()) + 2 ** 32) % 2 ** 32;
    expect(
      used <= this.#capacity,
      this.#loses ? "fanout.floor" : "fanout.room",
      "too much is used",
    );
    while (this.#position !== tail) {
      expect(!this.#ended, "pipe.end", "a frame stands behind `end`");
      const item = this.#frame((tail - this.#position + 2 ** 32) % 2 ** 32);
      if (item !== undefined) items.push(item);
    }
    const isReserved = used <= this.#capacity - RESERVE || this.#ended;
    expect(isReserved, "fanout.room", "the reserve was taken");
    const ended = this.#ended ? tail + 1 : 0;
    expect(this.#word("ended") === ended, "fanout.ended", `\`ended\` is not ${ended}`);
    if (!this.#loses) put(this.#bytes, this.#record(), "fanout_reader", "head", tail + 1);
    return { items, end: this.#ended ? "ended" : "nothing" };
  }

  #record(): number {
    return this.#control + sizeOf("fanout_control");
  }

  #head(): number {
    return get(this.#bytes, this.#record(), "fanout_reader", "head") - 1;
  }

  #word(field: string): number {
    return get(this.#bytes, this.#control, "fanout_control", field);
  }

  #frame(available: number): Item | undefined {
    const place = this.#position % this.#capacity;
    const at = this.#data + place;
    const load = (field: string) => get(this.#bytes, at, "frame_header", field);
    const [size, kind, flags] = [load("size"), load("kind"), load("flags")];
    const [codec, tag, time] = [load("codec"), load("tag"), load("time")];
    const extent = extentOf(size);
    const toEnd = this.#capacity - place;
    expect(load("reserved") === 0, "frame.header", "the reserved byte is not 0");
    expect(extent <= available, "ring.publish", "a frame reaches beyond `tail`");
    expect(extent <= toEnd, "frame.extent", "a frame reaches beyond the byte area");
    this.#position = (this.#position + extent) % 2 ** 32;
    if (kind === kindOf("pad")) {
      expect(flags + codec + tag + time === 0, "frame.pad", "a pad has fields that are not 0");
      expect(extent === toEnd, "frame.pad", "a pad does not reach the end of the byte area");
      this.#pad = extent;
      return undefined;
    }
    expect(extent > this.#pad, "ring.pad", "a pad stands where the next frame would have fitted");
    this.#pad = 0;
    if (kind === kindOf("end")) {
      expect(size + flags + codec + tag + time === 0, "frame.end", "`end` is not all 0");
      this.#ended = true;
      return undefined;
    }
    const most = this.#capacity / (this.#loses ? 4 : 2);
    expect(extent <= most, "fanout.size", "a frame is above the largest of its mode");
    expect((flags & ~EXTENDED) === WHOLE, "fanout.whole", "a message is cut");
    const begin = this.#loses ? this.#extension(at + 16, size, flags) : 0;
    if (!this.#loses) expect(flags === WHOLE, "fanout.number", "mode `hold` has no numbers");
    const payload = this.#bytes.slice(at + 16 + begin, at + 16 + size);
    return { kind, codec, tag, hex: toHex(payload) };
  }

  /** Bytes of the header extension, which must state the next number. */
  #extension(at: number, size: number, flags: number): number {
    const length = sizeOf("header_extension");
    const load = (field: string) => get(this.#bytes, at, "header_extension", field);
    const isThere = (flags & EXTENDED) !== 0 && size >= length && load("size") === length &&
      load("kind") === valueOf("extension_kind", "number");
    expect(isThere, "fanout.number", "a message has no number");
    const number = load("content");
    if (this.#number < 0) this.#number = number;
    expect(number === this.#number, "fanout.number", `number ${number}, not ${this.#number}`);
    this.#number += 1;
    return length;
  }
}
