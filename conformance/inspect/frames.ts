/**
 * Walks the frames of a ring, with the checks of `spec/frame.md` in their order, and finds what a
 * writer must not do and no reader checks.
 *
 * A saved ring may begin in the middle of a message whose first frames were read and given back.
 * So the walk takes what comes first as it is, unless nothing was ever read.
 *
 * @module
 */

import { concat } from "../reference/bytes.ts";
import { CANCEL, EXTENDED, extentOf, FIRST, kindOf, LAST, WHOLE } from "../reference/encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "../reference/layout.ts";
import type { Channel, Extension, Findings, Frame, Progress } from "./inspection.ts";
import { bitsOf, codecName, kindName, toHexNumber, toPlural } from "./names.ts";
import { DECODE_MAX, toDate, toPayload, undecodable } from "./payload.ts";

const HEADER = sizeOf("frame_header");
const PREAMBLE = sizeOf("message_preamble");
const EXTENSION = sizeOf("header_extension");
const RESERVE = limitOf("ring_reserve");
const SKIPPED_MIN = limitOf("frame_kind_extension_min");
const PAD = kindOf("pad");
const END = kindOf("end");
const BATCH = valueOf("codec", "json_batch");
const GIVEN_UP = LAST + CANCEL;
const WORD = 0xffff_ffff;

// A ring can hold millions of frames: their fields are not looked up by name each time.
const KIND = fieldOf("frame_header", "kind").offset;
const FLAGS = fieldOf("frame_header", "flags").offset;
const CODEC = fieldOf("frame_header", "codec").offset;
const RESERVED = fieldOf("frame_header", "reserved").offset;
const TAG = fieldOf("frame_header", "tag").offset;
const TIME = fieldOf("frame_header", "time").offset;

/** What is walked: the channel, and the positions from which and up to which it is published. */
export interface Walk {
  channel: Channel;
  from: number;
  tail: number;
  /** What the reader has given back, for the room that the writer may have had. */
  head: number;
  /** Whether the first frame must begin a message. */
  isFresh: boolean;
  /** Most frames to keep. */
  limit: number;
  now: number;
}

/** What the walk gives. */
export interface Walked {
  frames: Frame[];
  frameCount: number;
  messageCount: number;
  ended: boolean;
  progress: Progress | undefined;
}

/** The message in progress. */
interface Message extends Progress {
  kind: number;
  codec: number;
  tag: number;
  offset: number;
  /** Its parts, as long as all are there and they are not too many to be decoded. */
  parts: Uint8Array[] | undefined;
}

/** The header of a frame, and where it stands. */
interface Head {
  offset: number;
  position: number;
  size: number;
  /** Bytes of its header extension; 0 where it has none, or none that can be right. */
  skipped: number;
  kind: number;
  flags: number;
  /** Its flags as they would be without a header extension. */
  plain: number;
  codec: number;
  reserved: number;
  tag: number;
  time: number;
  extent: number;
}

/** Looks at every frame until `tail`, `end`, or the first one with a fault. */
export function walkFrames(bytes: Uint8Array, walk: Walk, findings: Findings): Walked {
  return new Walker(bytes, walk, findings).run();
}

class Walker {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #walk: Walk;
  readonly #findings: Findings;
  readonly #frames: Frame[] = [];
  /** `unknown`: a message may have begun before the first frame here. */
  #message: Message | undefined | "unknown";
  /** The extent of the pad right before the next frame. */
  #padBefore = 0;
  #messageCount = 0;
  #ended = false;

  constructor(bytes: Uint8Array, walk: Walk, findings: Findings) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#walk = walk;
    this.#findings = findings;
    this.#message = walk.isFresh ? undefined : "unknown";
  }

  run(): Walked {
    const { from, tail, limit, channel } = this.#walk;
    let position = from;
    let frameCount = 0;
    while (position !== tail && !this.#ended) {
      const head = this.#load(position);
      frameCount += 1;
      const fault = this.#check(head, (tail - position) >>> 0);
      if (fault !== undefined) {
        const spot = { offset: head.offset, channel: channel.index };
        this.#findings.fault(fault.code, fault.fact, spot);
        // The frame that is wrong is always shown.
        this.#frames.push({ ...this.#show(head), fault: fault.code });
        break;
      }
      const progress = isChunk(head) ? this.#after(head) : undefined;
      const report = this.#take(head);
      this.#judge(head);
      position = (position + head.extent) >>> 0;
      if (frameCount > limit) continue;
      this.#frames.push({
        ...this.#show(head),
        ...(progress !== undefined && { progress }),
        ...(report !== undefined && { report }),
      });
    }
    if (this.#ended && position !== tail) {
      const fact = `${
        toPlural((tail - position) >>> 0, "byte")
      } behind \`end\`, which nobody reads`;
      this.#findings.note(fact, this.#spot(position), "pipe.end");
    }
    const message = this.#message;
    const isOpen = typeof message === "object";
    return {
      frames: this.#frames,
      frameCount,
      messageCount: this.#messageCount,
      ended: this.#ended,
      progress: isOpen ? { received: message.received, total: message.total } : undefined,
    };
  }

  #spot(position: number): { offset: number; channel: number } {
    const { data_offset, data_size, index } = this.#walk.channel;
    return { offset: data_offset + position % data_size, channel: index };
  }

  #load(position: number): Head {
    const { offset } = this.#spot(position);
    const size = this.#view.getUint32(offset, true);
    const kind = this.#view.getUint8(offset + KIND);
    const flags = this.#view.getUint8(offset + FLAGS);
    const isExtended = isMessageKind(kind) && (flags & EXTENDED) !== 0;
    const stated = isExtended ? this.#extension(offset)?.size ?? 0 : 0;
    return {
      offset,
      position,
      size,
      skipped: stated >= EXTENSION && stated % EXTENSION === 0 && stated <= size ? stated : 0,
      kind,
      flags,
      plain: isExtended ? flags - EXTENDED : flags,
      codec: this.#view.getUint8(offset + CODEC),
      reserved: this.#view.getUint8(offset + RESERVED),
      tag: this.#view.getUint32(offset + TAG, true),
      time: this.#view.getUint32(offset + TIME, true),
      extent: extentOf(size),
    };
  }

  /** What the header extension of the frame at an offset states, where there are bytes for one. */
  #extension(frame: number): Extension | undefined {
    const offset = frame + HEADER;
    const { data_offset, data_size } = this.#walk.channel;
    if (offset + EXTENSION > data_offset + data_size) return undefined;
    const size = this.#view.getUint32(offset, true);
    return { offset, size, kind: this.#view.getUint32(offset + 4, true) };
  }

  /** The rows of the table of [frame.check], in its order. */
  #check(head: Head, available: number): { code: string; fact: string } | undefined {
    const { kind, flags, plain, codec, size, extent, reserved } = head;
    const fail = (code: string, fact: string) => ({ code, fact });
    const isExtension = kind >= SKIPPED_MIN;
    if (!isExtension && (kind < 1 || kind > PAD)) {
      return fail("frame.kind", `the kind is ${kind}; frames have 1 to 6, or 128 to 255`);
    }
    if (!isExtension && reserved !== 0) {
      return fail("frame.reserved", `the reserved byte is ${reserved}, not 0`);
    }
    const isMessage = isMessageKind(kind);
    if (!isMessage && !isExtension && flags !== 0) {
      return fail("frame.flags", `the flags of ${kindName(kind)} are ${flags}, not 0`);
    }
    const isKnown = [0, FIRST, LAST, WHOLE].includes(plain) || flags === GIVEN_UP;
    if (isMessage && !isKnown) {
      return fail("frame.flags", `the flags are ${flags}, which no message has`);
    }
    if (isMessage && codec === BATCH && plain !== WHOLE) {
      return fail("frame.flags", `the flags are ${flags}, but a batch is one whole frame`);
    }
    const { data_size } = this.#walk.channel;
    const toEnd = data_size - head.position % data_size;
    const states = `the size is ${size}, so the extent ${extent}`;
    if (extent > available) {
      return fail("frame.size", `${states}, but only ${toPlural(available, "byte")} are published`);
    }
    if (extent > toEnd) {
      return fail("frame.size", `${states}, but the byte area ends in ${toPlural(toEnd, "byte")}`);
    }
    if (kind !== PAD && extent > data_size / 2) {
      return fail("frame.size", `${states}, above half the capacity, ${data_size / 2}`);
    }
    if (kind === PAD && extent !== toEnd) {
      return fail("frame.pad", `the extent is ${extent}, but the byte area ends in ${toEnd} bytes`);
    }
    if (kind === END && size !== 0) return fail("frame.size", `the size of \`end\` is ${size}`);
    if (flags !== plain && head.skipped === 0) {
      const stated = size < EXTENSION ? undefined : this.#extension(head.offset);
      const fact = stated === undefined
        ? `the frame is extended, and has only ${toPlural(size, "byte")}`
        : `the header extension has ${toPlural(stated.size, "byte")}, of a frame of ${size}`;
      return fail("frame.extension", fact);
    }
    return isMessage ? this.#checkMessage(head) : undefined;
  }

  #checkMessage(head: Head): { code: string; fact: string } | undefined {
    const { plain: flags } = head;
    const size = head.size - head.skipped;
    const fail = (code: string, fact: string) => ({ code, fact });
    if (flags === GIVEN_UP && size !== 0) {
      return fail("frame.size", `the size of a cancel is ${size}, not 0`);
    }
    if (flags === FIRST && size < PREAMBLE) {
      return fail("frame.size", `the size is ${size}, too small for the preamble`);
    }
    if ((flags === 0 || flags === LAST) && size === 0) {
      return fail("frame.size", "a part behind the first is empty");
    }
    const message = this.#message;
    const begins = (flags & FIRST) !== 0;
    if (begins && typeof message === "object") {
      const fact = `a message begins inside the one that began at ${toHexNumber(message.offset)}`;
      return fail("frame.sequence", fact);
    }
    if (!begins && message === undefined) {
      return fail("frame.sequence", "the frame goes on with a message that never began");
    }
    if (!begins && typeof message === "object") {
      for (const field of ["kind", "codec", "tag"] as const) {
        if (head[field] === message[field]) continue;
        const fact = `the ${field} is ${head[field]}, that of its message ${message[field]}`;
        return fail("frame.sequence", fact);
      }
    }
    if (flags === FIRST) {
      const preamble = head.offset + HEADER + head.skipped;
      const at = preamble + fieldOf("message_preamble", "reserved").offset;
      const isBlank = this.#bytes.subarray(at, at + 8).every((byte) => byte === 0);
      if (!isBlank) return fail("frame.reserved", "the last eight bytes of the preamble are not 0");
    }
    if (flags === WHOLE || flags === GIVEN_UP) return undefined;
    const { received, total } = this.#after(head);
    if (typeof total !== "number") return undefined;
    const ends = flags === LAST;
    if (received <= total && (!ends || received === total)) return undefined;
    const fact = `${toPlural(received, "byte")} ${ends ? "in all" : "so far"}, total ${total}`;
    return fail("frame.total", fact);
  }

  /** How far a message is after this chunk. */
  #after(head: Head): Progress {
    const size = head.size - head.skipped;
    if (head.plain === FIRST) {
      const at = head.offset + HEADER + head.skipped;
      const [low, high] = [this.#view.getUint32(at, true), this.#view.getUint32(at + 4, true)];
      const total = low === WORD && high === WORD ? "unknown" : low + high * 2 ** 32;
      return { received: size - PREAMBLE, total };
    }
    const message = this.#message;
    if (typeof message !== "object") return { received: size, total: null };
    return { received: message.received + size, total: message.total };
  }

  /** Goes on with what a frame in order means. Returns what a reader would report. */
  #take(head: Head): string | undefined {
    const { kind, codec, tag, plain: flags, offset, size, skipped } = head;
    if (kind === PAD || kind >= SKIPPED_MIN) return undefined;
    const message = this.#message;
    if (kind === END) {
      this.#ended = true;
      this.#message = undefined;
      if (typeof message !== "object") return undefined;
      return this.#report(head, "message.truncated", "`end` in the middle of a message");
    }
    if (flags === GIVEN_UP) {
      this.#message = undefined;
      return this.#report(head, "message.cancelled", "the writer gave this message up");
    }
    const before = HEADER + skipped + (flags === FIRST ? PREAMBLE : 0);
    const part = this.#bytes.subarray(offset + before, offset + HEADER + size);
    if (flags === WHOLE) {
      this.#message = undefined;
      return this.#complete(head, size > DECODE_MAX ? undefined : [part]);
    }
    const { received, total } = this.#after(head);
    let parts = typeof message === "object" ? message.parts : flags === FIRST ? [] : undefined;
    if (received > DECODE_MAX) parts = undefined;
    parts?.push(part);
    if (flags === LAST) {
      this.#message = undefined;
      return this.#complete(head, parts);
    }
    const began = typeof message === "object" ? message.offset : offset;
    this.#message = { kind, codec, tag, offset: began, received, total, parts };
    return undefined;
  }

  #complete(head: Head, parts: Uint8Array[] | undefined): string | undefined {
    this.#messageCount += 1;
    const found = parts && undecodable(concat(parts), head.codec);
    return found && this.#report(head, found.code, found.fact);
  }

  #report(head: Head, code: string, fact: string): string {
    this.#findings.report(code, fact, this.#spot(head.position));
    return code;
  }

  /** The duties of a writer that no reader checks. */
  #judge(head: Head): void {
    const { kind, codec, tag, time, extent, position } = head;
    const spot = this.#spot(position);
    const { channel, head: given } = this.#walk;
    const isPadOrEnd = kind === PAD || kind === END;
    if (isPadOrEnd && codec + tag + time !== 0) {
      const fact = `the codec, the tag or the time of ${kindName(kind)} is not 0`;
      this.#findings.note(fact, spot, kind === PAD ? "frame.pad" : "frame.end");
    }
    if (this.#padBefore >= extent) {
      const fact = `the frame behind a pad of ${this.#padBefore} bytes would have fitted before it`;
      this.#findings.note(fact, spot, "ring.pad");
    }
    this.#padBefore = kind === PAD ? extent : 0;
    const used = (position + extent - given) >>> 0;
    if (kind !== END && used > channel.data_size - RESERVE) {
      const fact = `the last ${RESERVE} bytes of room are taken by a frame that is not \`end\``;
      this.#findings.note(fact, spot, "ring.room");
    }
  }

  #show(head: Head): Frame {
    const { offset, size, skipped, kind, flags, plain, codec, time } = head;
    const isMessage = isMessageKind(kind);
    const preamble = isMessage && plain === FIRST && size - skipped >= PREAMBLE ? PREAMBLE : 0;
    const begin = offset + HEADER + skipped + preamble;
    const { data_offset, data_size } = this.#walk.channel;
    // What a broken size states may reach beyond the byte area, and is not looked at there.
    const rest = data_offset + data_size - begin;
    const there = Math.max(0, Math.min(size - skipped - preamble, rest));
    const shown = kind === PAD ? 0 : there;
    return {
      offset,
      position: head.position,
      extent: head.extent,
      size,
      kind,
      kind_name: kindName(kind),
      flags,
      flags_names: bitsOf("frame_flag", flags),
      codec,
      codec_name: codecName(codec),
      tag: head.tag,
      time,
      date: toDate(time, this.#walk.now),
      ...(skipped > 0 && { extension: this.#extension(offset)! }),
      payload: toPayload(this.#bytes, begin, shown, isMessage ? codec : 0),
    };
  }
}

function isMessageKind(kind: number): boolean {
  return kind < SKIPPED_MIN && kind !== PAD && kind !== END;
}

/** Whether a frame holds a part of a multipart message. */
function isChunk({ kind, plain }: Head): boolean {
  return isMessageKind(kind) && (plain === 0 || plain === FIRST || plain === LAST);
}
