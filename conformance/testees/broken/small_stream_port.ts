/**
 * Messages over a small side of a stream.
 *
 * @module
 */

import type { Outgoing, Taken } from "../../kit/protocol.ts";
import { concat, fromHex } from "../../reference/bytes.ts";
import { packHex } from "../server.ts";
import { has } from "./faults.ts";
import { PortError } from "./small_memory.ts";
import type { SmallStream } from "./small_stream.ts";
import { DATA, END, EXTENSION, type Frame, HEADER, roundUp } from "./small_stream_wire.ts";

const [FIRST, LAST, CANCEL, EXTENDED] = [1, 2, 4, 8] as const;
const WHOLE = FIRST | LAST;
const PREAMBLE = 16;
const UNKNOWN = 2n ** 64n - 1n;

/** A message that is read part by part. */
interface Progress {
  kind: number;
  codec: number;
  tag: number;
  total: bigint;
  sum: bigint;
  parts: Uint8Array[];
  /** It was reported, and is only skipped. */
  isDropped: boolean;
}

/** Both directions. */
export class SmallStreamPort {
  readonly #stream: SmallStream;
  readonly #limit: number;
  #progress: Progress | undefined;
  #fault: string | undefined;
  #hasReadEnd = false;
  #hasEnded = false;
  /** A message that was given up in the middle, whose cancel is owed. */
  #owed: Outgoing | undefined;

  constructor(stream: SmallStream, limit: number) {
    this.#stream = stream;
    this.#limit = limit;
  }

  async read(timeoutMs: number): Promise<Taken> {
    const deadline = performance.now() + (has("deadline_long") ? 60_000 : timeoutMs);
    for (;;) {
      const taken = this.#take();
      if (taken !== undefined) return taken;
      if (performance.now() >= deadline) return { end: "nothing" };
      await this.#stream.tick();
    }
  }

  /** What can be read now. Throws what is to be reported. [pipe.first_answer] */
  #take(): Taken | undefined {
    if (this.#fault !== undefined) throw new PortError(this.#fault);
    if (this.#hasReadEnd) return { end: "ended" };
    const { frames } = this.#stream;
    const first = has("gone_first") ? this.#stream.gone : undefined;
    if (first !== undefined) throw first;
    for (let frame; (frame = frames.shift()) !== undefined;) {
      try {
        const taken = this.#frame(frame);
        if (taken !== undefined) return taken;
      } finally {
        if (!has("given_at_once")) this.#stream.giveBack(frame);
      }
    }
    if (this.#stream.isClosed) throw new PortError("pipe.closed");
    const { gone } = this.#stream;
    if (gone !== undefined) throw gone;
    return undefined;
  }

  #frame(frame: Frame): Taken | undefined {
    const { kind } = frame;
    if (kind >= EXTENSION) return undefined;
    if (kind === END) {
      this.#hasReadEnd = true;
      const isTruncated = this.#progress?.isDropped === false;
      this.#progress = undefined;
      if (isTruncated) throw new PortError("message.truncated");
      return { end: "ended" };
    }
    return this.#message(frame);
  }

  #message(frame: Frame): Taken | undefined {
    const { kind, codec, tag } = frame;
    const flags = frame.flags & ~EXTENDED;
    const payload = this.#withoutExtension(frame);
    const isCancel = (flags & CANCEL) !== 0;
    const isFirst = (flags & FIRST) !== 0;
    const least = flags === FIRST ? PREAMBLE : flags === WHOLE ? 0 : 1;
    if (isCancel ? payload.length > 0 : payload.length < least) this.#fail("frame.size");
    const before = this.#progress;
    if (isFirst !== (before === undefined)) this.#fail("frame.sequence");
    if (before !== undefined) {
      const isSame = before.kind === kind && before.codec === codec && before.tag === tag;
      if (!isSame) this.#fail("frame.sequence");
    }
    if (isFirst) return this.#first(frame, flags, payload);
    const progress = before!;
    if (isCancel) {
      this.#progress = undefined;
      if (!progress.isDropped) throw new PortError("message.cancelled");
      return undefined;
    }
    return this.#part(progress, flags, payload);
  }

  #withoutExtension({ flags, payload }: Frame): Uint8Array {
    if ((flags & EXTENDED) === 0) return payload;
    const view = new DataView(payload.buffer, payload.byteOffset);
    const size = payload.length >= 16 ? view.getUint32(0, true) : 0;
    const isGood = size % 16 === 0 && size >= 16 && size <= payload.length;
    if (!isGood) this.#fail("frame.extension");
    return payload.slice(size);
  }

  #first({ kind, codec, tag }: Frame, flags: number, payload: Uint8Array): Taken | undefined {
    const isWhole = flags === WHOLE;
    const view = new DataView(payload.buffer, payload.byteOffset);
    if (!isWhole && view.getBigUint64(8, true) !== 0n) this.#fail("frame.reserved");
    const total = isWhole ? BigInt(payload.length) : view.getBigUint64(0, true);
    const progress = { kind, codec, tag, total, sum: 0n, parts: [], isDropped: false };
    if (!isWhole) this.#progress = progress;
    const isLarge = total !== UNKNOWN && total > this.#limit && !has("limit_open");
    const report = kind !== DATA ? "message.kind" : isLarge ? "message.size" : undefined;
    if (report !== undefined) {
      progress.isDropped = true;
      throw new PortError(report);
    }
    if (isWhole) return item(kind, codec, tag, payload);
    return this.#part(progress, flags, payload.slice(PREAMBLE));
  }

  #part(progress: Progress, flags: number, payload: Uint8Array): Taken | undefined {
    const { kind, codec, tag, total } = progress;
    progress.sum += BigInt(payload.length);
    const isLast = (flags & LAST) !== 0;
    const isSum = total === UNKNOWN || (isLast ? progress.sum === total : progress.sum <= total);
    if (!isSum && !progress.isDropped) this.#fail("frame.total");
    if (isLast) this.#progress = undefined;
    if (progress.isDropped) return undefined;
    if (progress.sum > this.#limit) {
      progress.isDropped = true;
      throw new PortError("message.size");
    }
    progress.parts.push(payload);
    if (has("parts_delivered")) return item(kind, codec, tag, payload);
    return isLast ? item(kind, codec, tag, concat(progress.parts)) : undefined;
  }

  #fail(code: string): never {
    this.#fault = code;
    this.#stream.fault(code);
    throw new PortError(code);
  }

  /** Writes a message; without a time, if all of it can be sent now. */
  async write(message: Outgoing, timeoutMs: number | undefined): Promise<boolean> {
    const deadline = performance.now() + (timeoutMs ?? 0);
    this.#requireOpen();
    while (this.#stream.largest === 0) {
      if (timeoutMs === undefined) return false;
      await this.#await(deadline);
    }
    const frames = [...this.#cancels(), ...this.#cut(message)];
    const sum = frames.reduce((size, { length }) => size + length, 0);
    const fits = this.#stream.hasCredit(sum) && !this.#stream.isFull;
    if (timeoutMs === undefined && !fits) return false;
    for (const [index, frame] of frames.entries()) {
      while (!this.#stream.hasCredit(frame.length) || this.#stream.isFull) {
        await this.#await(deadline, () => {
          if (index > 0 && !has("owed_forgotten")) this.#owed = message;
        });
      }
      this.#requireOpen();
      this.#stream.frame(frame, frame[4]!);
      this.#owed = undefined;
    }
    return true;
  }

  async #await(deadline: number, late: () => void = () => {}): Promise<void> {
    this.#requireOpen();
    if (performance.now() >= deadline && !has("deadline_ignored")) {
      late();
      throw new PortError("wait.timeout");
    }
    await this.#stream.tick();
  }

  #requireOpen(): void {
    if (this.#stream.isClosed) throw new PortError("pipe.closed");
    if (this.#fault !== undefined) throw new PortError(this.#fault);
    if (this.#hasEnded) throw new PortError("pipe.ended");
    const { gone } = this.#stream;
    if (gone !== undefined) throw gone;
  }

  /** The cancel that is owed. [pipe.owed] */
  #cancels(): Uint8Array[] {
    return this.#owed === undefined ? [] : [frameOf(this.#owed, LAST | CANCEL, [])];
  }

  /** Frames that the peer takes. [stream.largest] */
  #cut(message: Outgoing): Uint8Array[] {
    const payload = fromHex(message.hex);
    const most = this.#stream.largest - HEADER;
    if (payload.length <= most) return [frameOf(message, WHOLE, payload)];
    const all = new Uint8Array(PREAMBLE + payload.length);
    new DataView(all.buffer).setBigUint64(0, BigInt(payload.length), true);
    all.set(payload, PREAMBLE);
    const frames: Uint8Array[] = [];
    for (let at = 0; at < all.length; at += most) {
      const flags = (at === 0 ? FIRST : 0) | (at + most >= all.length ? LAST : 0);
      frames.push(frameOf(message, flags, all.subarray(at, at + most)));
    }
    return frames;
  }

  end(): void {
    if (this.#hasEnded || this.#stream.isClosed) return;
    this.#hasEnded = true;
    const { gone } = this.#stream;
    if (gone?.code === "peer.closed") return;
    if (gone !== undefined) throw gone;
    const end = { kind: END, codec: 0, tag: 0, hex: "" };
    for (const frame of [...this.#cancels(), frameOf(end, 0, [])]) {
      this.#stream.frame(frame, frame[4]!);
    }
    if (has("end_closes")) this.#stream.close();
  }

  close(): void {
    this.#stream.close();
  }
}

/** A frame as it is sent. [stream.frames] */
function frameOf(
  { kind, codec, tag }: Outgoing,
  flags: number,
  payload: ArrayLike<number>,
): Uint8Array {
  const extent = roundUp(HEADER + payload.length);
  const bytes = new Uint8Array(has("fill_missing") ? HEADER + payload.length : extent);
  const view = new DataView(bytes.buffer);
  if (has("fill_odd")) bytes.fill(0xee, HEADER);
  view.setUint32(0, payload.length, true);
  bytes.set([kind, flags, codec], 4);
  view.setUint32(8, tag, true);
  bytes.set(payload, HEADER);
  return bytes;
}

function item(kind: number, codec: number, tag: number, payload: Uint8Array): Taken {
  return { item: { kind, codec, tag, hex: packHex(payload) } };
}
