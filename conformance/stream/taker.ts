/**
 * The strict peer of a stream: reads what the endpoint under test has sent, and finds what no
 * reader has to check. Of what it has sent itself it keeps what the endpoint must go by: the
 * preface and the credits.
 *
 * @module
 */

import { fromHex, toHex } from "../reference/bytes.ts";
import { extentOf, FIRST, kindOf, LAST } from "../reference/encode.ts";
import { fieldOf, limitOf, reasonName, sizeOf, valueOf } from "../reference/layout.ts";
import { get } from "../reference/decode.ts";
import type { Sent, Sizes, Taken } from "./case.ts";

const HEADER = sizeOf("frame_header");
const PREFACE = sizeOf("stream_preface");
const CANCEL = 4;
export const CREDIT = valueOf("stream_kind", "credit");
export const CLOSE = valueOf("stream_kind", "close");
export const FAIL = valueOf("stream_kind", "fail");
export const START = limitOf("stream_start");
export const MAGIC = "4d 49 4c 4c ff 0d 0a 0a";

interface Frame {
  size: number;
  kind: number;
  flags: number;
  codec: number;
  tag: number;
}

/** Bytes in a stream, and frames among them. */
class Walk {
  bytes: Uint8Array = new Uint8Array(0);

  add(more: Uint8Array): void {
    const all = new Uint8Array(this.bytes.length + more.length);
    all.set(this.bytes);
    all.set(more, this.bytes.length);
    this.bytes = all;
  }

  take(count: number): Uint8Array {
    const taken = this.bytes.subarray(0, count);
    this.bytes = this.bytes.subarray(count);
    return taken;
  }

  /** The next header, if it is there. */
  header(): Frame | undefined {
    if (this.bytes.length < HEADER) return undefined;
    const load = (field: string) => get(this.bytes, 0, "frame_header", field);
    const [size, kind, flags] = [load("size"), load("kind"), load("flags")];
    return { size, kind, flags, codec: load("codec"), tag: load("tag") };
  }
}

/** The other side of the endpoint under test. */
export class StreamPeer {
  /** What the endpoint sends, and what it gets. */
  readonly #in = new Walk();
  readonly #out = new Walk();
  /** What this peer has stated and told; its position, in frames that count. */
  #stated: Sizes | undefined;
  #head = START;
  #position = START;
  /** The same of the endpoint. */
  #hasPreface = false;
  #sentPosition = START;
  #told = START;
  #credits = 0;
  #isOver = false;
  #hasEnded = false;
  #first: Frame | undefined;
  #parts = new Walk();
  #total: number | undefined;

  /** Bytes of frames that the endpoint has got and that it has not told to be given back. */
  get ahead(): number {
    return from(this.#told, this.#position);
  }

  /** Bytes of frames that the endpoint has sent and that count. */
  get taken(): number {
    return from(START, this.#sentPosition);
  }

  /** How many credits have come. */
  get credits(): number {
    return this.#credits;
  }

  /** Notes what the endpoint gets. What is not well made ends that. */
  sends(bytes: Uint8Array): void {
    const out = this.#out;
    out.add(bytes);
    if (this.#stated === undefined) {
      if (out.bytes.length < PREFACE) return;
      const load = (field: string) => get(out.bytes, 0, "stream_preface", field);
      this.#stated = { largest: load("largest"), window: load("window") };
      out.take(PREFACE);
    }
    for (let frame; (frame = out.header()) !== undefined;) {
      const extent = extentOf(frame.size);
      if (extent > out.bytes.length) return;
      out.take(extent);
      if (frame.kind === CREDIT) this.#head = frame.tag;
      else if (counts(frame.kind)) this.#position = after(this.#position, extent);
    }
  }

  /**
   * Reads what the endpoint has sent. Throws where it broke a rule. What is `partial` is not all of
   * it: a transport has cut it, or has taken it in several pieces.
   */
  take(bytes: Uint8Array, ends: boolean, partial = false): Taken {
    this.#in.add(bytes);
    const sent: Sent[] = [];
    let credit: number | undefined;
    if (!this.#hasPreface && this.#in.bytes.length > 0) {
      if (partial && this.#in.bytes.length < PREFACE) return { sent };
      sent.push({ preface: this.#preface(this.#in.take(PREFACE)) });
    }
    for (let frame; (frame = this.#in.header()) !== undefined;) {
      expect(!this.#isOver, "stream.close", "a frame stands behind the last one");
      if (partial && extentOf(frame.size) > this.#in.bytes.length) break;
      if (frame.kind === CREDIT) {
        const isOne = partial || credit === undefined;
        expect(isOne, "stream.one_credit", "two credits at once");
        credit = this.#credit(frame);
        this.#in.take(HEADER);
        continue;
      }
      const item = this.#frame(frame);
      if (item !== undefined) sent.push(item);
    }
    const isWhole = partial || this.#in.bytes.length === 0;
    expect(isWhole, "stream.frames", "a frame is sent in part");
    const isOver = partial || !this.#isOver || ends;
    expect(isOver, "stream.close", "the byte stream goes on behind the last frame");
    return { sent, ...credit !== undefined && { credit }, ...ends && { ends } };
  }

  #preface(bytes: Uint8Array): Sizes {
    this.#hasPreface = true;
    expect(bytes.length === PREFACE, "stream.preface", "it is sent in part");
    const load = (field: string) => get(bytes, 0, "stream_preface", field);
    const { offset, size } = fieldOf("stream_preface", "magic");
    const magic = toHex(bytes.slice(offset, offset + size));
    expect(magic === toHex(fromHex(MAGIC)), "stream.preface", `its magic is ${magic}`);
    const version = [load("version_major"), load("version_minor")].join(".");
    expect(version === "1.0", "stream.preface", `its version is ${version}`);
    const others = load("required_features") + load("optional_features") + load("reserved");
    expect(others === 0, "stream.preface", "features, or the reserved bytes, are not 0");
    const sizes = { largest: load("largest"), window: load("window") };
    const { largest, window } = sizes;
    const isGood = largest % 16 === 0 && largest >= limitOf("stream_largest_min") &&
      window % 16 === 0 && window >= largest && window <= limitOf("stream_window_max");
    expect(isGood, "stream.preface", `largest ${largest} and window ${window}`);
    return sizes;
  }

  #credit(frame: Frame): number {
    const { size, flags, codec, tag } = frame;
    expect(size + flags + codec === 0, "stream.control", "a credit is not all 0");
    expect(tag % 16 === 0, "stream.credit_told", `a credit of ${tag}`);
    const more = from(this.#told, tag);
    expect(more > 0, "stream.credit_told", `a credit of ${tag} once more`);
    const isSent = more <= from(this.#told, this.#position);
    expect(isSent, "stream.credit_told", `${tag} is more than was sent`);
    this.#credits++;
    return this.#told = tag;
  }

  #frame(frame: Frame): Sent | undefined {
    const { size, kind, flags, codec, tag } = frame;
    const extent = extentOf(size);
    expect(this.#in.bytes.length >= extent, "stream.frames", "a frame is sent in part");
    const bytes = this.#in.take(extent);
    expect(get(bytes, 0, "frame_header", "reserved") === 0, "frame.header", "reserved is not 0");
    const fill = bytes.slice(HEADER + size).every((byte) => byte === 0);
    expect(fill, "stream.frames", "the fill is not 0");
    const time = get(bytes, 0, "frame_header", "time");
    if (kind === CLOSE || kind === FAIL) {
      expect(size + flags + codec + time === 0, "stream.control", "a last frame is not all 0");
      expect(kind === FAIL || tag === 0, "stream.control", "a close has a tag");
      this.#isOver = true;
      return kind === CLOSE ? { close: true } : { fail: reasonName(tag) };
    }
    expect(kind !== kindOf("pad"), "stream.frames", "a pad");
    expect(!this.#hasEnded, "pipe.end", "a frame stands behind `end`");
    if (kind === kindOf("end")) {
      expect(size + flags + codec + tag + time === 0, "frame.end", "`end` is not all 0");
      this.#hasEnded = true;
      if (this.#first === undefined) return { end: true };
      this.#first = undefined;
      return { report: "message.truncated" };
    }
    const stated = this.#stated;
    expect(stated !== undefined, "stream.credit_kept", "a frame before the peer's preface");
    expect(extent <= stated.largest, "stream.largest", `a frame of ${extent}`);
    this.#sentPosition = after(this.#sentPosition, extent);
    const ahead = from(this.#head, this.#sentPosition);
    expect(ahead <= stated.window, "stream.credit_kept", `${ahead} ahead of the credit`);
    return this.#message(frame, bytes.slice(HEADER, HEADER + size));
  }

  #message(frame: Frame, payload: Uint8Array): Sent | undefined {
    const { kind, flags, codec, tag } = frame;
    const first = this.#first;
    const isOne = flags === FIRST + LAST;
    expect(isOne || flags === FIRST === (first === undefined), "frame.multipart", "out of order");
    if (isOne) {
      expect(first === undefined, "frame.contiguous", "a message stands inside another");
      return { kind, codec, tag, hex: toHex(payload) };
    }
    if (flags === FIRST) {
      this.#first = frame;
      const isKnown = payload.slice(0, 8).some((byte) => byte !== 0xff);
      this.#total = isKnown ? get(payload, 0, "message_preamble", "total") : undefined;
      this.#parts = new Walk();
      this.#parts.add(payload.slice(sizeOf("message_preamble")));
      return undefined;
    }
    const isSame = first!.kind === kind && first!.codec === codec && first!.tag === tag;
    expect(isSame, "frame.multipart", "kind, codec or tag differ from those of the first frame");
    if ((flags & LAST) !== 0) this.#first = undefined;
    if (flags === LAST + CANCEL) return { report: "message.cancelled" };
    expect(payload.length > 0, "frame.part", "a part is empty");
    this.#parts.add(payload);
    if (flags !== LAST) return undefined;
    const isSum = this.#total === undefined || this.#total === this.#parts.bytes.length;
    expect(isSum, "frame.preamble", "`total` is not the sum");
    return { kind, codec, tag, hex: toHex(this.#parts.bytes) };
  }
}

/** A position so many bytes after another one. */
export function after(position: number, size: number): number {
  return (position + size) % 2 ** 32;
}

/** Bytes from a position to another one. */
function from(before: number, behind: number): number {
  return (behind - before + 2 ** 32) % 2 ** 32;
}

/** Whether a frame of this kind takes credit. */
function counts(kind: number): boolean {
  return ![kindOf("end"), CREDIT, CLOSE, FAIL].includes(kind);
}

function expect(good: boolean, clause: string, fact: string): asserts good {
  if (!good) throw new Error(`[${clause}] ${fact}`);
}
