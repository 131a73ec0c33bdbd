/**
 * A small side of a stream, written from the chapters to be broken on purpose: what arrives, what
 * goes out, and how it stops. It is slow, has no ring, and shares nothing with the implementations.
 *
 * @module
 */

import type { Opening, Outgoing, Taken, Transport } from "../../kit/protocol.ts";
import { concat, fromHex } from "../../reference/bytes.ts";
import { type Adapter, packHex, type Session } from "../server.ts";
import { small } from "./adapter.ts";
import { has } from "./faults.ts";
import { PortError } from "./small_memory.ts";

// The small side of a stream: what stands in its bytes, and the checks of what arrives.

export const [DATA, END, THROW, EXTENSION] = [1, 2, 5, 128] as const;
export const [CREDIT, CLOSE, FAIL] = [16, 17, 18] as const;
export const [HEADER, PREFACE] = [16, 32] as const;
const START = 2 ** 32 - 256;
const MAGIC = [0x4d, 0x49, 0x4c, 0x4c, 0xff, 0x0d, 0x0a, 0x0a];
const MOST = 2 ** 30;
const LEAST = 128;

/** What a side states. */
interface Sizes {
  largest: number;
  window: number;
}

/** A header. */
interface Header {
  size: number;
  kind: number;
  flags: number;
  codec: number;
  reserved: number;
  tag: number;
}

/** A frame that has come. */
interface Frame extends Header {
  extent: number;
  payload: Uint8Array;
}

/** What is wrong with what has come. */
interface Fault {
  code: string;
}

function fault(code: string): Fault {
  return { code };
}

const NUMBERS: Readonly<Record<string, number>> = {
  "frame.kind": 32,
  "frame.flags": 33,
  "frame.reserved": 34,
  "frame.size": 35,
  "frame.sequence": 37,
  "frame.total": 38,
  "frame.extension": 39,
  "stream.magic": 104,
  "stream.version": 105,
  "stream.feature": 106,
  "stream.preface": 107,
  "stream.credit": 108,
};

/** The number of a reason code. */
function numberOf(code: string): number {
  return NUMBERS[code]!;
}

function nameOf(number: number): string | number {
  return Object.keys(NUMBERS).find((name) => NUMBERS[name] === number) ?? number;
}

function roundUp(size: number): number {
  return Math.ceil(size / 16) * 16;
}

/** Whether a frame of this kind takes credit. */
function counts(kind: number): boolean {
  const isSkipped = kind >= EXTENSION;
  if (isSkipped && has("extension_free")) return false;
  return kind !== END && !isControl(kind);
}

function isControl(kind: number): boolean {
  return kind >= CREDIT && kind <= FAIL;
}

function prefaceBytes({ largest, window }: Sizes): Uint8Array {
  const bytes = new Uint8Array(PREFACE);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint16(8, 1, true);
  view.setUint32(12, has("preface_swapped") ? window : largest, true);
  view.setUint32(16, has("preface_swapped") ? largest : window, true);
  if (has("preface_reserved")) bytes[28] = 1;
  return bytes;
}

function controlBytes(kind: number, tag: number): Uint8Array {
  const bytes = new Uint8Array(HEADER);
  const view = new DataView(bytes.buffer);
  bytes[4] = kind;
  if (has("control_flagged")) bytes[5] = 3;
  view.setUint32(8, tag, true);
  return bytes;
}

/** What the peer states, or what is wrong with it, or nothing yet. [stream.preface_check] */
function checkPreface(bytes: Uint8Array): Sizes | Fault | undefined {
  if (bytes.length < 8 || has("magic_late") && bytes.length < PREFACE) return undefined;
  const isMagic = MAGIC.every((byte, index) => bytes[index] === byte);
  if (!isMagic && !has("magic_ignored")) return fault("stream.magic");
  if (bytes.length < PREFACE) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  if (view.getUint16(8, true) !== 1) return fault("stream.version");
  const minor = view.getUint16(10, true);
  if (has("minor_judged") && minor !== 0) return fault("stream.version");
  const required = view.getUint32(20, true);
  if (required !== 0 && !has("features_ignored")) return fault("stream.feature");
  const sizes = { largest: view.getUint32(12, true), window: view.getUint32(16, true) };
  const isGood = (size: number, least: number) => size % 16 === 0 && size >= least && size <= MOST;
  if (isGood(sizes.largest, LEAST) && isGood(sizes.window, sizes.largest)) return sizes;
  if (has("window_ignored")) return { largest: LEAST, window: 256 };
  return fault("stream.preface");
}

/** What is wrong with a header, in the order of the table. [stream.check] */
function headerFault(
  { size, kind, flags, codec, reserved }: Header,
  largest: number,
  hasEnded: boolean,
  left: number,
): Fault | undefined {
  const isSkipped = kind >= EXTENSION;
  const isMessage = kind >= DATA && kind <= THROW && kind !== END;
  const isBare = kind === END || isControl(kind);
  if (!isSkipped && !isMessage && !isBare && !has("kinds_skipped")) {
    return fault("frame.kind");
  }
  if (has("extension_refused") && isSkipped) return fault("frame.kind");
  if (!isSkipped && reserved !== 0) return fault("frame.reserved");
  const isFlagged = isBare ? flags !== 0 : isMessage && !areFlags(flags, codec);
  if (isFlagged && !has("flags_ignored")) return fault("frame.flags");
  if (isBare && size !== 0) return fault("frame.size");
  if (HEADER + size > largest && !has("largest_trusted")) return fault("frame.size");
  const isBehind = hasEnded && (isMessage || kind === END);
  if (isBehind && !has("behind_end_read")) return fault("frame.sequence");
  const isTooMuch = counts(kind) && roundUp(HEADER + size) > left;
  return isTooMuch && !has("flood_taken") ? fault("stream.credit") : undefined;
}

function areFlags(flags: number, codec: number): boolean {
  const plain = flags & ~8;
  const isKnown = plain <= 3 || plain === 6 && plain === flags;
  return isKnown && (codec !== 3 || plain === 3);
}

/** Nobody looks at the fill of what is skipped. */
function isFillGood({ kind }: Header, fill: Uint8Array): boolean {
  return kind >= EXTENSION || has("fill_ignored") || fill.every((byte) => byte === 0);
}

const LINGER_MS = 2_000;
/** Bytes that wait for the transport, except the frame that goes beyond. */
const QUEUE_SIZE = 65_536;
/** How often it looks again, where nothing tells it. */
const TICK_MS = 1;

/** Two byte streams. */
interface Bytes {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  closeWrite(): Promise<void>;
  close(): void;
}

/** What the peer is: here, or gone, for a reason. */
type State = { code: "here" } | { code: "peer.closed" } | {
  code: "peer.failed" | "pipe.failed";
  reason: number | string;
};

/** One side, which takes in what arrives as long as it lives. */
class SmallStream {
  readonly #own: Sizes;
  readonly #bytes: Bytes;
  #peer: Sizes | undefined;
  /** What has come and is not used yet; whole frames that nobody has read. */
  #in = new Uint8Array(0);
  readonly frames: Frame[] = [];
  #state: State = { code: "here" };
  #isStopped = false;
  #hasEnded = false;
  /** Whether the `end` of the peer was given back. */
  #isPast = false;
  /** Positions: received, given back, told; sent, and told by the peer. */
  #received = START;
  #given = START;
  #told = START;
  #sent = START;
  #head = START;
  /** Frames for the transport, what waits for credit first of the two. */
  readonly #queue: Uint8Array[] = [];
  #isSending = false;
  #isHungUp = false;
  #isOver = false;
  #isClosed = false;

  constructor(bytes: Bytes, own: Sizes) {
    this.#bytes = bytes;
    this.#own = own;
    if (!has("preface_waits")) this.#send(prefaceBytes(own));
    void this.#pump();
  }

  /** What it has found of its peer; nothing as long as that is here. */
  get gone(): PortError | undefined {
    const state = this.#state;
    if (state.code === "here") return undefined;
    return new PortError(state.code, "reason" in state ? state.reason : undefined);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The largest frame that may be sent now; 0 where none may. */
  get largest(): number {
    return has("largest_own") ? this.#own.largest : this.#peer?.largest ?? 0;
  }

  /** Whether the transport is to take something before more is given to it. */
  get isFull(): boolean {
    return this.#queue.reduce((sum, { length }) => sum + length, 0) > QUEUE_SIZE;
  }

  /** Whether there is credit for so many bytes of frames. */
  hasCredit(extent: number): boolean {
    if (this.#peer === undefined) return false;
    if (has("credit_ignored")) return true;
    const { window } = this.#peer;
    const free = has("credit_signed")
      ? window - (this.#sent - this.#head)
      : window - distance(this.#head, this.#sent);
    return extent <= free + (has("credit_over") ? 16 : 0);
  }

  /** Sends a frame, for which there is credit. */
  frame(bytes: Uint8Array, kind: number): void {
    if (counts(kind)) this.#sent = after(this.#sent, bytes.length);
    if (has("close_drops")) return void setTimeout(() => this.#isClosed || this.#send(bytes), 3);
    if (kind !== END || !has("end_held_back") || this.hasCredit(bytes.length)) this.#send(bytes);
  }

  /** Gives a frame back that was read, and what nobody reads after `end`. [stream.credit_told] */
  giveBack({ extent, kind }: Frame): void {
    if (counts(kind)) {
      this.#given = after(this.#given, extent);
      this.#tell();
    }
    if (kind !== END) return;
    this.#isPast = true;
    for (let behind; (behind = this.frames.shift()) !== undefined;) this.giveBack(behind);
  }

  #tell(): void {
    const { window, largest } = this.#own;
    const due = distance(this.#told, this.#given);
    const limit = has("credit_stingy") ? window : window - largest;
    if (has("credit_never") || !(due > limit || has("credit_always") && due > 0)) return;
    this.#told = this.#given;
    const position = has("credit_unaligned") ? after(this.#told, 8) : this.#told;
    this.#send(controlBytes(CREDIT, position));
  }

  /** A fault of the peer: says so, and stops. [stream.fail] */
  fault(code: string): void {
    if (this.#state.code !== "here") return;
    this.#state = { code: "peer.failed", reason: code };
    this.#isStopped = true;
    const isHeldBack = has("fail_held_back") && this.#sent !== this.#head;
    if (!has("fail_silent") && !isHeldBack) {
      this.#send(controlBytes(FAIL, has("fail_anything") ? 1 : numberOf(code)));
    }
    if (!has("fail_goes_on")) this.#finish();
  }

  /** Writes a close after what was accepted, and stops. [stream.close] */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#state.code !== "here") return this.#giveUp();
    if (!has("close_silent")) this.#send(controlBytes(CLOSE, has("close_tagged") ? 1 : 0));
    this.#finish();
  }

  /** Waits for whatever may have changed. */
  async tick(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }

  /** Ends the own byte stream after all that is queued. */
  #finish(): void {
    this.#isOver = true;
    if (has("no_linger")) void this.#drained().then(() => this.#giveUp());
    else {
      const lingerMs = has("lingers_long") ? 10_000 : LINGER_MS;
      this.#timers.push(setTimeout(() => this.#giveUp(), lingerMs));
    }
    if (!this.#isSending) void this.#flush();
  }

  readonly #timers: ReturnType<typeof setTimeout>[] = [];

  async #drained(): Promise<void> {
    while (this.#isSending) await this.tick();
  }

  #giveUp(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    try {
      this.#bytes.close();
    } catch {
      // It is closed already.
    }
  }

  #send(bytes: Uint8Array): void {
    if (this.#isOver) return;
    const isCredit = bytes[4] === CREDIT && bytes.length === HEADER;
    const last = this.#queue.at(-1);
    // [stream.one_credit] The later one takes the place of one that waits.
    const replaces = isCredit && last?.[4] === CREDIT && last.length === HEADER;
    if (replaces && this.#queue.length > 1 && !has("credit_queued")) {
      this.#queue[this.#queue.length - 1] = bytes;
    } else this.#queue.push(bytes);
    if (has("credit_twice") && isCredit) this.#queue.push(bytes);
    if (!this.#isSending) void this.#flush();
  }

  async #flush(): Promise<void> {
    this.#isSending = true;
    try {
      for (let bytes; (bytes = this.#queue[0]) !== undefined;) {
        for (let at = 0; at < bytes.length && !this.#isHungUp;) {
          at += await this.#bytes.write(bytes.subarray(at));
        }
        this.#queue.shift();
      }
      if (this.#isOver) {
        this.#isSending = false;
        await this.#bytes.closeWrite();
      }
    } catch {
      // [stream.broken] What arrives says why, for a while.
      this.#queue.length = 0;
      if (has("broken_lost")) this.#lose();
      if (!has("broken_for_ever")) this.#timers.push(setTimeout(() => this.#lose(), LINGER_MS));
    }
    this.#isSending = false;
  }

  /** The peer is lost. [stream.lost] */
  #lose(): void {
    if (this.#state.code === "here") this.#state = { code: "peer.failed", reason: "peer.lost" };
    if (has("lost_as_closed")) this.#state = { code: "peer.closed" };
    this.#isStopped = true;
    this.#isOver = true;
    this.#giveUp();
  }

  async #pump(): Promise<void> {
    const into = new Uint8Array(65_536);
    for (;;) {
      if (has("takes_in_idle") && this.#isSending) await this.#drained();
      const size = await this.#bytes.read(into).catch(() => null);
      if (size === null) break;
      if (this.#isStopped) continue;
      const all = new Uint8Array(this.#in.length + size);
      all.set(this.#in);
      all.set(into.subarray(0, size), this.#in.length);
      this.#in = all;
      this.#takeIn();
    }
    if (has("part_delivered")) this.#deliverPart();
    if (this.#state.code === "here" && !has("lost_silent")) this.#lose();
    else if (this.#isClosed || this.#state.code !== "here") this.#giveUp();
  }

  /** Makes frames of what has come. [stream.pieces] */
  #takeIn(): void {
    if (this.#peer === undefined) {
      const found = checkPreface(this.#in);
      if (found === undefined) return;
      if ("code" in found) return this.fault(found.code);
      this.#peer = found;
      this.#in = this.#in.slice(PREFACE);
      if (has("preface_waits")) this.#send(prefaceBytes(this.#own));
    }
    while (this.#in.length >= HEADER && !this.#isStopped) {
      const frame = this.#next();
      if (frame === undefined) return;
      this.#in = this.#in.slice(frame.extent);
      this.#use(frame);
    }
    if (has("pieces_dropped")) this.#in = new Uint8Array(0);
  }

  /** The next frame, if it is there, whole. */
  #next(): Frame | undefined {
    const view = new DataView(this.#in.buffer, this.#in.byteOffset);
    const size = view.getUint32(0, true);
    const [kind, flags, codec, reserved] = this.#in.subarray(4, 8) as unknown as [
      number,
      number,
      number,
      number,
    ];
    const header = { size, kind, flags, codec, reserved, tag: view.getUint32(8, true) };
    const left = this.#own.window - distance(this.#told, this.#received);
    const fault = headerFault(header, this.#own.largest, this.#hasEnded, left);
    if (fault !== undefined) return void this.fault(fault.code);
    const extent = roundUp(HEADER + size);
    const isWhole = this.#in.length >= (has("fill_early") ? HEADER + size : extent);
    if (!isWhole) return undefined;
    const payload = this.#in.slice(HEADER, HEADER + size);
    const frame = { ...header, extent, payload };
    const fill = this.#in.subarray(HEADER + size, extent);
    if (!isFillGood(frame, fill)) return void this.fault("frame.reserved");
    return frame;
  }

  #use(frame: Frame): void {
    const { kind, tag } = frame;
    if (kind === CREDIT) return this.#credit(tag);
    if (kind === CLOSE || kind === FAIL) return this.#stop(kind, tag);
    if (counts(kind)) this.#received = after(this.#received, frame.extent);
    if (kind === END) this.#hasEnded = true;
    if (this.#isClosed || this.#isPast) return this.giveBack(frame);
    this.frames.push(frame);
    if (has("given_at_once")) this.giveBack(frame);
  }

  /** [stream.credit_check] */
  #credit(position: number): void {
    const isOdd = position % 16 !== 0 && !has("credit_odd_taken");
    const isFar = distance(position, this.#sent) > distance(this.#head, this.#sent) &&
      !has("credit_trusted");
    if (isOdd || isFar) return this.fault("stream.credit");
    if (has("credit_middle_ignored") && this.frames.length > 0) return;
    this.#head = position;
  }

  #stop(kind: number, reason: number): void {
    this.#isStopped = !has("behind_read");
    this.#state = kind === CLOSE
      ? { code: "peer.closed" }
      : has("fail_as_closed")
      ? { code: "peer.closed" }
      : { code: "pipe.failed", reason: nameOf(reason) };
    if (has("closed_drops")) this.frames.length = 0;
    // [stream.hang_up] Nothing more goes out, not even what was begun.
    if (has("hang_up_never")) return;
    this.#queue.length = 0;
    this.#isHungUp = !has("hang_up_answers") && !has("hang_up_credits");
    if (has("hang_up_answers")) this.#send(controlBytes(CLOSE, 0));
    if (has("hang_up_credits")) setTimeout(() => this.#finish(), 30);
    else this.#finish();
  }

  /** A fault only: what has come of a frame is handed out as if it were all. */
  #deliverPart(): void {
    if (this.#in.length < HEADER) return;
    const size = this.#in.length - HEADER;
    const [kind = 0, flags = 0, codec = 0] = this.#in.subarray(4, 7);
    const payload = this.#in.slice(HEADER);
    this.frames.push({ size, kind, flags, codec, reserved: 0, tag: 0, extent: 16, payload });
  }
}

function after(position: number, size: number): number {
  return (position + size) % 2 ** 32;
}

/** Bytes from one position to another one. */
function distance(from: number, to: number): number {
  return (to - from + 2 ** 32) % 2 ** 32;
}

// Messages over a small side of a stream.

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
class SmallStreamPort {
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

// The small side of a stream as a testee.

/** The stream, with whatever fault it was given; it waits for no preface when it is opened. */
export const smallStream: Adapter = {
  ...small,
  hello: {
    ...small.hello,
    name: "Small stream",
    nouns: ["stream"],
    roles: ["port"],
    carriers: ["stream"],
    waits: ["event"],
    lacks: ["values"],
    streams: { transports: ["unix", "tcp", "fifo"], waits: ["event"] },
  },
  open: () => undefined,
  openStream,
};

async function openStream(transport: Transport, opening: Opening): Promise<Session> {
  const { largest, window, limit } = opening;
  const stream = new SmallStream(await connect(transport), { largest: largest!, window: window! });
  const port = new SmallStreamPort(stream, limit ?? 4096);
  return {
    read: (timeoutMs) => port.read(timeoutMs),
    write: (message, timeoutMs) => port.write(message, timeoutMs),
    end: () => port.end(),
    close: () => port.close(),
  };
}

async function connect(transport: Transport) {
  if (transport.transport === "unix") {
    return await Deno.connect({ transport: "unix", path: transport.path });
  }
  if (transport.transport === "tcp") {
    return await Deno.connect({ hostname: "127.0.0.1", port: transport.tcp_port });
  }
  const reads = await Deno.open(transport.path);
  const writes = await Deno.open(transport.path_out, { write: true });
  let isEnded = false;
  return {
    read: (into: Uint8Array) => reads.read(into),
    write: (bytes: Uint8Array) => writes.write(bytes),
    closeWrite: () => Promise.resolve(isEnded || (isEnded = true, writes.close())).then(() => {}),
    close() {
      if (!isEnded) writes.close();
      isEnded = true;
      reads.close();
    },
  };
}
