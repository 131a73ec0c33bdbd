/**
 * The reference reader of a fanout: takes what its writer publishes, as the reader of record 0, and
 * finds what no reader has to check.
 *
 * @module
 */

import { toHex } from "./bytes.ts";
import type { Drained, Item } from "./case.ts";
import { get, ringPlace } from "./decode.ts";
import { EXTENDED, extentOf, kindOf, put, WHOLE } from "./encode.ts";
import { limitOf, sizeOf, valueOf } from "./layout.ts";

const RESERVE = limitOf("ring_reserve");

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

function expect(good: boolean, clause: string, fact: string): asserts good {
  if (!good) throw new Error(`[${clause}] ${fact}`);
}
