/**
 * The small port: reading a ring.
 *
 * @module
 */

import { has, hold } from "./faults.ts";
import { type Memory, minus, PortError, roundUp } from "./small_memory.ts";
import type { End, Endpoint } from "./small_endpoint.ts";
import type { Channel } from "./small_segment.ts";

/** A message as it stands in the ring. */
export interface Message {
  kind: number;
  codec: number;
  tag: number;
  payload: Uint8Array;
}

/** What a read gives; a report of a lost message is thrown. */
export type Taken = Message | "ended" | undefined;

const [TAIL, HEAD, READER_WANTS, WRITER_WANTS] = [0, 128, 256, 384];
const [DATA, END, CALL, THROW, PAD, EXTENSION] = [1, 2, 3, 5, 6, 128];
const [FIRST, LAST, CANCEL, EXTENDED] = [1, 2, 4, 8];
const WHOLE = FIRST | LAST;
const BATCH = 3;
const HEADER = 16;
const WORD = 0xffffffff;

/** A frame, as it would be without its header extension. */
interface Frame {
  size: number;
  kind: number;
  flags: number;
  codec: number;
  tag: number;
  /** Where its payload begins in the memory. */
  at: number;
  extent: number;
}

/** The message in progress. */
interface Progress {
  kind: number;
  codec: number;
  tag: number;
  /** Nothing where the writer does not know it. */
  total: number | undefined;
  sum: number;
  parts: Uint8Array[];
  /** It was reported already, and is only skipped. */
  isDropped: boolean;
  /** It was dropped at its first frame: its parts are not added up. [frame.check_total] */
  isUncounted: boolean;
}

/** The reading end of a ring. */
export class Reader implements End {
  readonly endpoint: Endpoint;
  readonly #memory: Memory;
  readonly #ring: Channel;
  readonly #limit: number;
  readonly #offersCalls: boolean;
  #head: number;
  #known: number;
  #progress: Progress | undefined;
  #fault: PortError | undefined;
  #hasEnded = false;

  constructor(endpoint: Endpoint, ring: Channel, limit: number, offersCalls: boolean) {
    this.endpoint = endpoint;
    this.#memory = endpoint.segment.memory;
    this.#ring = ring;
    this.#limit = limit;
    this.#offersCalls = offersCalls;
    this.#head = this.#known = endpoint.begin(ring.start, ring.control + HEAD);
    endpoint.ends.push(this);
  }

  /** Reads one message; nothing at the deadline. */
  read(timeoutMs: number): Taken {
    const deadline = performance.now() + timeoutMs;
    // [pipe.first_answer] The rows of the table, from the top.
    if (this.endpoint.closed) throw new PortError("pipe.closed");
    if (this.#fault !== undefined && !has("fault_forgotten")) throw this.#fault;
    if (this.#hasEnded && !has("after_end")) return "ended";
    for (;;) {
      const taken = this.#take() ?? (this.#load(), this.#take());
      if (taken !== undefined) return taken;
      this.endpoint.settle();
      const final = this.endpoint.ownState() ?? this.endpoint.peerState();
      if (final !== undefined) return this.#takeLast(final);
      if (performance.now() >= deadline) {
        if (has("parts_dropped")) this.#progress = undefined;
        return undefined;
      }
      const wanted = minus(this.#head, -16);
      const { control } = this.#ring;
      this.endpoint.sleep(control + READER_WANTS, wanted, () => this.#look(), deadline);
    }
  }

  /** [ring.release_all] */
  settle(): void {
    if (this.#fault === undefined) this.#release(0);
  }

  /** What was published before the peer, or this end, was gone. [pipe.look_again] */
  #takeLast(final: PortError): Taken {
    if (!has("drain_skipped")) this.#load();
    const taken = has("drain_skipped") ? undefined : this.#take();
    if (taken !== undefined) return taken;
    // [pipe.keep_parts] The message in progress counts as reported with it.
    if (this.#progress !== undefined) {
      this.#progress.isDropped = true;
      this.#progress.parts = [];
    }
    throw final;
  }

  /** Whether there may be something to do. */
  #look(): boolean {
    return this.#memory.load(this.#ring.control + TAIL) !== this.#known ||
      (this.endpoint.ownState() ?? this.endpoint.peerState()) !== undefined;
  }

  /** Loads the peer's cursor and checks it. [ring.cursor] */
  #load(): void {
    const tail = this.#memory.load(this.#ring.control + TAIL);
    const [used, known] = [minus(tail, this.#head), minus(this.#known, this.#head)];
    const isBehind = has("wrap_ignored") ? tail < this.#head : used > this.#ring.capacity;
    const isBack = used < known && !has("cursor_back");
    if ((tail % 16 !== 0 || isBehind || isBack) && !has("cursor_trusted")) {
      throw this.#fail("ring.cursor");
    }
    this.#known = tail;
  }

  #fail(code: string): PortError {
    this.#fault = this.endpoint.failPeer(code);
    if (has("head_after_fault")) this.#memory.store(this.#ring.control + HEAD, this.#head);
    return this.#fault;
  }

  /** Takes frames up to the tail that is known, until one of them is to be told of. */
  #take(): Taken {
    if (has("drain_skipped") && this.endpoint.peerState() !== undefined) return undefined;
    while (this.#head !== this.#known) {
      const frame = this.#check();
      const taken = this.#judge(frame);
      if (taken !== undefined) return taken;
    }
    return undefined;
  }

  /** Makes all checks of a frame's header, in the order of the table. [frame.check] */
  #check(): Frame {
    const { capacity, data } = this.#ring;
    const place = this.#head % capacity;
    const at = data + place;
    const refuse = (condition: boolean, code: string) => {
      if (condition) throw this.#fail(code);
    };
    const [size, second, tag] = [
      this.#memory.u32(at),
      this.#memory.u32(at + 4),
      this.#memory.u32(at + 8),
    ];
    const [kind, flags, codec, reserved] = [0, 8, 16, 24].map((shift) =>
      second >>> shift & 255
    ) as [number, number, number, number];
    const isMessage = kind === DATA || kind >= CALL && kind <= THROW;
    const isSpecial = kind === END || kind === PAD;
    const extent = roundUp(HEADER + size, 16);
    const [available, toEnd] = [minus(this.#known, this.#head), capacity - place];
    refuse(kind === 0 || kind > PAD && kind < EXTENSION, "frame.kind");
    const isReserved = kind < EXTENSION && reserved !== 0 && !has("reserved_ignored");
    refuse(isReserved, "frame.reserved");
    const isLarge = !has("size_trusted") && (extent > available || extent > toEnd) ||
      kind !== PAD && extent > capacity / 2 && !has("half_ignored");
    if (has("checks_swapped")) refuse(isLarge, "frame.size");
    refuse(isSpecial && flags !== 0, "frame.flags");
    const plain = flags & ~EXTENDED;
    const isKnown = [0, FIRST, LAST, WHOLE, LAST | CANCEL].includes(plain) &&
      (plain === flags || plain !== (LAST | CANCEL) || has("cancel_extended"));
    refuse(isMessage && (!isKnown || codec === BATCH && plain !== WHOLE), "frame.flags");
    refuse(isLarge, "frame.size");
    refuse(kind === PAD && extent !== toEnd && !has("pad_loose"), "frame.pad");
    refuse(kind === END && size !== 0, "frame.size");
    hold("fetch");
    // [frame.check] A header is loaded once; whoever loads it again uses what it has not checked.
    const used = has("fetched_twice") ? this.#memory.u32(at) : size;
    const skipped = isMessage && flags !== plain ? this.#checkExtension(at, used, refuse) : 0;
    const frame = { kind, flags: plain, codec, tag, extent };
    const message = { ...frame, size: used - skipped, at: at + HEADER + skipped };
    if (isMessage) this.#checkMessage(message, refuse);
    return message;
  }

  /** The bytes of a frame's header extension. [frame.extension] */
  #checkExtension(
    at: number,
    size: number,
    refuse: (condition: boolean, code: string) => void,
  ): number {
    refuse(size < 16, "frame.extension");
    const extension = this.#memory.u32(at + HEADER);
    const isGood = extension % 16 === 0 && extension >= 16 &&
      (extension <= size || has("extension_trusted"));
    refuse(!isGood, "frame.extension");
    return has("extension_handed_out") ? 0 : extension;
  }

  #checkMessage(frame: Frame, refuse: (condition: boolean, code: string) => void): void {
    const { size, flags, kind, codec, tag, at } = frame;
    const isCancel = (flags & CANCEL) !== 0;
    const isSize = isCancel
      ? size === 0
      : flags === FIRST
      ? size >= 16
      : flags === WHOLE || size >= 1;
    refuse(!isSize, "frame.size");
    const progress = this.#progress;
    const isFirst = (flags & FIRST) !== 0;
    const isExpected = isFirst === (progress === undefined) || has("sequence_ignored");
    refuse(!isExpected, "frame.sequence");
    if (!isFirst && progress !== undefined) {
      const isSame = kind === progress.kind && codec === progress.codec && tag === progress.tag;
      refuse(!isSame, "frame.sequence");
    }
    if (flags === FIRST) {
      refuse(this.#memory.u32(at + 8) !== 0 || this.#memory.u32(at + 12) !== 0, "frame.reserved");
      const total = totalAt(this.#memory, at) ?? Infinity;
      refuse(size - 16 > total && !has("total_trusted"), "frame.total");
      return;
    }
    if (isFirst || isCancel || progress === undefined || progress.isUncounted) return;
    if (progress.total === undefined) return;
    const sum = progress.sum + size;
    const isLast = (flags & LAST) !== 0;
    const isTotal = isLast ? sum === progress.total : sum <= progress.total;
    refuse(!isTotal && !has("total_trusted"), "frame.total");
  }

  /** Goes behind a frame that was checked, and says what came of it. */
  #judge(frame: Frame): Taken {
    const { kind, flags, size, at, extent } = frame;
    if (kind >= EXTENSION || kind === PAD && !has("pad_unread")) {
      this.#head = (this.#head + extent) >>> 0; // given back with what follows
      return undefined;
    }
    if (kind === END) {
      this.#release(extent);
      this.#hasEnded = true;
      const progress = this.#progress;
      this.#progress = undefined;
      if (progress !== undefined && !progress.isDropped && !has("truncated_silent")) {
        throw new PortError("message.truncated");
      }
      return "ended";
    }
    if (has("payload_back")) this.#release(extent);
    hold("fetch");
    // A copy: the peer may write there as soon as it is given back. [ring.release]
    const copy = this.#memory.bytes.slice(at, at + size);
    if (!has("payload_back")) this.#release(extent);
    if (flags === WHOLE || kind === PAD) return this.#judgeWhole(frame, copy);
    if (flags === FIRST) return this.#begin(frame, copy);
    return this.#continue(frame, copy);
  }

  #judgeWhole({ kind, codec, tag, size }: Frame, payload: Uint8Array): Taken {
    if (!this.#isOffered(kind)) throw new PortError("message.kind");
    if (this.#isAbove(size)) throw new PortError("message.size");
    return { kind, codec, tag, payload };
  }

  #begin({ kind, codec, tag }: Frame, copy: Uint8Array): undefined {
    const part = copy.subarray(16);
    const total = totalIn(copy);
    // [pipe.limit_unknown] Of a message whose size is not known, what has come of it counts.
    const isLarge = this.#isAbove(total ?? (has("limit_known_only") ? 0 : part.length));
    const why = !this.#isOffered(kind) ? "message.kind" : isLarge ? "message.size" : undefined;
    const isDropped = why !== undefined;
    const parts = isDropped ? [] : [part];
    const sum = part.length;
    this.#progress = { kind, codec, tag, total, sum, parts, isDropped, isUncounted: isDropped };
    if (isDropped) throw new PortError(why);
  }

  #continue({ kind, codec, tag, flags }: Frame, part: Uint8Array): Taken {
    const progress = this.#progress;
    if (progress === undefined) return { kind, codec, tag, payload: part };
    progress.sum += part.length;
    if (!progress.isDropped) progress.parts.push(part);
    const isLast = (flags & LAST) !== 0;
    if (progress.total === undefined && !progress.isDropped && this.#isAbove(progress.sum)) {
      const isLate = has("limit_unknown_late") && !isLast || has("limit_known_only");
      if (!isLate) {
        if (isLast) this.#progress = undefined;
        progress.isDropped = true;
        progress.parts = [];
        throw new PortError("message.size");
      }
    }
    if (!isLast) return undefined;
    this.#progress = undefined;
    if ((flags & CANCEL) !== 0) {
      if (progress.isDropped && !has("report_twice")) return undefined;
      throw new PortError("message.cancelled");
    }
    if (progress.isDropped) return undefined;
    const payload = new Uint8Array(progress.parts.reduce((sum, each) => sum + each.length, 0));
    let at = 0;
    for (const each of progress.parts) {
      payload.set(each, at);
      at += each.length;
    }
    return { kind, codec, tag, payload };
  }

  #isAbove(size: number): boolean {
    return size > this.#limit && !has("limit_ignored");
  }

  #isOffered(kind: number): boolean {
    return kind === DATA || this.#offersCalls || has("calls_taken");
  }

  #release(extent: number): undefined {
    this.#head = (this.#head + extent) >>> 0;
    this.#memory.store(this.#ring.control + HEAD, this.#head);
    this.endpoint.wake(this.#ring.control + WRITER_WANTS, this.#head);
  }
}

function totalAt(memory: Memory, at: number): number | undefined {
  return totalOf(memory.u32(at), memory.u32(at + 4));
}

function totalIn(copy: Uint8Array): number | undefined {
  const view = new DataView(copy.buffer, copy.byteOffset);
  return totalOf(view.getUint32(0, true), view.getUint32(4, true));
}

/** Nothing where it is 2^64 - 1: not known yet. */
function totalOf(low: number, high: number): number | undefined {
  const isUnknown = low === WORD && high === WORD && !has("unknown_ignored");
  return isUnknown ? undefined : low + high * 2 ** 32;
}
