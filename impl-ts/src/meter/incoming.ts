/**
 * The incoming direction of a metered pipe. See `spec/meter.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { Incoming, Mode } from "../pipe/incoming.ts";
import type { Message } from "../pipe/options.ts";
import { FrameReader, Head } from "../ring/frame.ts";
import { countBetween } from "./frames.ts";
import { Laps } from "./laps.ts";
import { Tally } from "./tally.ts";

/** Units per microsecond of service times: many handlers take less than one microsecond. */
const SERVICE_SCALE = 10;
const TIME = layout.FRAME_TIME_OFFSET >> 2;

/** An entry of the queue: taken out of the ring, and not handed out yet. */
type Kept = Incoming["queue"][number];

/** The figures of one incoming direction. */
export class IncomingGauge {
  messages = 0;
  bytes = 0;
  values = 0;
  untimed = 0;
  readonly waiting: Tally = new Tally(1);
  readonly service: Tally = new Tally(SERVICE_SCALE);
  readonly laps: Laps = new Laps(this.waiting, this.service);
  /** The `time` of the message whose first frame was looked at last. */
  time = 0;
  readonly #incoming: Incoming;
  /** The `time` of each entry of the queue. The last lookup is kept, as a batch has many values. */
  readonly #times = new WeakMap<object, number>();
  #last: Kept | undefined;
  #lastTime = 0;
  /** What was shown last, and may still be there: its position, or its entry of the queue. */
  #shown: number | unknown;

  /** Makes the gauge of an incoming side, for what it reads from now on. */
  constructor(incoming: Incoming) {
    this.#incoming = incoming;
  }

  /**
   * Whether what is taken next was counted already: `readInto` leaves a message where it is that
   * does not fit.
   */
  isShown(): boolean {
    const { queue, cursor } = this.#incoming;
    return this.#shown !== undefined && this.#shown === (queue[0] ?? cursor);
  }

  /** Counts a message, a value or a part: `kept` was in the queue, others were in the ring. */
  countTaken(kept: Kept | undefined, taken: unknown, mode: Mode, isAgain: boolean): void {
    const incoming = this.#incoming;
    const { frame, queue, cursor } = incoming;
    const isInRing = taken === incoming;
    const time = kept === undefined ? this.time : this.#timeOf(kept);
    this.#shown = mode !== Mode.SHOW ? undefined : isInRing ? cursor : taken;
    if (mode === Mode.SHOW && !isInRing) this.#times.set(taken as object, time);
    if (isAgain) return;
    let isRest = false;
    if (kept === undefined) {
      const isLent = mode === Mode.LEND && isInRing;
      isRest = isLent && !frame.isFirst && frame.flags !== Head.WHOLE;
      if (!isLent || frame.isLast) {
        this.messages++;
        this.bytes += frame.flags === Head.WHOLE
          ? frame.size
          : frame.received + (isLent ? frame.size : 0);
      }
    }
    const [first] = queue;
    // [meter.batch] What is left of a batch that has just been decoded.
    if (first !== undefined && first !== kept && "values" in first) this.#times.set(first, time);
    this.laps.noteHandedOut(isRest ? 0 : time);
    if (isRest) return;
    this.values++;
    if (time === 0) this.untimed++; // [meter.untimed]
  }

  #timeOf(kept: Kept): number {
    if (kept === this.#last) return this.#lastTime;
    this.#last = kept;
    return this.#lastTime = this.#times.get(kept) ?? 0;
  }

  /** Counts a message that was taken out of the ring before anybody asked for it. */
  countKept(message: Message): void {
    this.#times.set(message, this.time);
    this.messages++;
    this.bytes += message.payload.length;
  }

  /** What is published and not handed out: messages, and bytes including headers. */
  queue(): { messages: number; bytes: number } {
    const incoming = this.#incoming;
    const { cursor, capacity, words, other, peerCursor, keptSize } = incoming;
    const tail = Atomics.load(words, other);
    const to = ((tail - cursor) >>> 0) <= capacity ? tail : peerCursor;
    const bytes = ((to - cursor) >>> 0) + keptSize;
    let messages = countBetween(incoming, cursor, to);
    for (const each of incoming.queue) {
      if ("values" in each) messages += each.values.length - each.next;
      else if ("payload" in each) messages++;
    }
    return { messages, bytes };
  }

  /** Begins to count again from 0. */
  clear(): void {
    this.laps.settle();
    this.messages =
      this.bytes =
      this.values =
      this.untimed =
        0;
    this.waiting.clear();
    this.service.clear();
  }
}

/** An incoming side that reports to its gauge. The meter turns a side into one, and back. */
export class MeteredIncoming extends Incoming {
  /** Set by the meter. */
  declare gauge: IncomingGauge;

  override take(mode: Mode, mayLoad: boolean): unknown {
    const { gauge, queue } = this;
    gauge.laps.noteAsked();
    const isAgain = gauge.isShown();
    const kept = queue[0];
    const taken = super.take(mode, mayLoad);
    if (taken === undefined) gauge.laps.endLap();
    else gauge.countTaken(kept, taken, mode, isAgain);
    return taken;
  }

  override keep(message: Message): void {
    this.gauge.countKept(message);
    super.keep(message);
  }
}

/** The frame reader of such a side: it remembers the `time` of each message. */
export class MeteredFrame extends FrameReader {
  /** Set by the meter. */
  declare gauge: IncomingGauge;

  override check(
    words: Int32Array,
    index: number,
    known: number,
    end: number,
    half: number,
  ): number {
    const reason = super.check(words, index, known, end, half);
    const isFirst = (this.flags & layout.FRAME_FLAG_FIRST) !== 0;
    if (isFirst && this.kind < layout.FRAME_KIND_PAD) this.gauge.time = words[index + TIME]!;
    return reason;
  }
}
