/**
 * A small side of a stream, written from the chapters to be broken on purpose: what arrives, what
 * goes out, and how it stops. It is slow, has no ring, and shares nothing with the implementations.
 *
 * @module
 */

import { has } from "./faults.ts";
import { PortError } from "./small_memory.ts";
import { checkPreface, type Frame, headerFault, isFillGood, PREFACE } from "./small_stream_wire.ts";
import { controlBytes, counts, HEADER, prefaceBytes, roundUp } from "./small_stream_wire.ts";
import {
  CLOSE,
  CREDIT,
  END,
  FAIL,
  nameOf,
  numberOf,
  type Sizes,
  START,
} from "./small_stream_wire.ts";

const LINGER_MS = 2_000;
/** Bytes that wait for the transport, but for the frame that goes beyond. */
const QUEUE_SIZE = 65_536;
/** How often it looks again, where nothing tells it. */
const TICK_MS = 1;

/** Two byte streams. */
export interface Bytes {
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
export class SmallStream {
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

  /** Gives a frame back that was read, and what nobody reads behind `end`. [stream.credit_told] */
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

  /** Writes a close behind what was accepted, and stops. [stream.close] */
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

  /** Ends the own byte stream behind all that is queued. */
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
