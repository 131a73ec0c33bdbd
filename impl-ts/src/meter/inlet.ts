/**
 * The incoming direction of a metered pipe. See `spec/meter.md`.
 *
 * @module
 */

import type { MessageError } from "../error.ts";
import { FrameReader, packKind, WHOLE } from "../ring/frame.ts";
import {
  FRAME_FLAG_CANCEL,
  FRAME_KIND_DATA,
  FRAME_TIME_OFFSET,
  RING_TAIL_WORD,
} from "../memory/layout.ts";
import { nextMessage, type Passed, timeAt, walk } from "./frames.ts";
import { Laps } from "./laps.ts";
import { Tally } from "./tally.ts";
import type { Message } from "../pipe/pipe.ts";
import { Inlet, KEEP, LEND, LOOK, type Mode } from "../pipe/inlet.ts";

/** Units per microsecond of service times: many handlers take less than one microsecond. */
const SERVICE_SCALE = 10;
/** The second header word of a whole data message, without its codec; and the index of `time`. */
const USUAL = /* @__PURE__ */ packKind(FRAME_KIND_DATA, WHOLE, 0);
const CODEC_MASK = /* @__PURE__ */ packKind(0, 0, 0xff);
const TIME = FRAME_TIME_OFFSET >> 2;

/** An entry of the inlet's queue: read from the ring, and not handed out yet. */
type Kept = Inlet["queue"][number];

/** The figures of one incoming direction. */
export class InletGauge {
  messages = 0;
  bytes = 0;
  values = 0;
  untimed = 0;
  readonly waiting: Tally = new Tally(1);
  readonly service: Tally = new Tally(SERVICE_SCALE);
  readonly laps: Laps = new Laps(this.waiting, this.service);
  readonly #inlet: Inlet;
  /** The position of the frame that comes next, and its `time`. */
  #found = 0;
  #foundTime = 0;
  /** The `time` of the message whose frames are arriving, and of the message taken last. */
  #begunTime = 0;
  #time = 0;
  /** The `time` of each queue entry. The last lookup is kept, as a batch has one for each value. */
  readonly #times = new WeakMap<object, number>();
  #last: Kept | undefined;
  #lastTime = 0;

  /** Makes the gauge of an inlet, for what it reads from now on. */
  constructor(inlet: Inlet) {
    this.#inlet = inlet;
  }

  /**
   * Notes the next frame in the ring before the inlet gives it back, after which it may be
   * overwritten. Returns whether the tail may still be loaded: one load a call is allowed.
   * [ring.one_load]
   */
  noteNext(mayLoad: boolean): boolean {
    const inlet = this.#inlet;
    if (!inlet.isOpen) return mayLoad;
    let at = nextMessage(inlet, inlet.own);
    if (at === inlet.other && mayLoad) {
      mayLoad = false;
      if (inlet.load()) at = nextMessage(inlet, at);
    }
    this.#found = at;
    if (at !== inlet.other) this.#foundTime = timeAt(inlet, at);
    return mayLoad;
  }

  /**
   * Notes the time of a whole message that is next in the ring, with nothing before it. Returns
   * false if the next one is not such. Most messages are, and metering them takes half as long.
   */
  noteUsual(): boolean {
    const { own, other, words, capacity, queue, taker } = this.#inlet;
    const index = (own & (capacity - 1)) >> 2;
    const kind = words[index + 1]! & ~CODEC_MASK;
    if (own === other || kind !== USUAL || queue.length > 0 || taker !== undefined) return false;
    this.#time = words[index + TIME]!;
    return true;
  }

  /** Counts such a message after it was taken. */
  countUsual(): void {
    const { frame, queue } = this.#inlet;
    const time = this.#time;
    this.laps.noteHandedOut(time);
    this.messages++;
    this.values++;
    this.bytes += frame.size;
    if (time === 0) this.untimed++;
    if (queue.length > 0) this.#noteBatch(undefined);
  }

  /** Counts a message, a value or a part: `kept` was taken from the queue, others from the ring. */
  countTaken(kept: Kept | undefined, mode: Mode): void {
    const inlet = this.#inlet;
    const { frame } = inlet;
    let isRest = false;
    if (kept !== undefined) this.#time = this.#timeOf(kept);
    else if (frame.flags === WHOLE) {
      const at = mode === LEND ? inlet.own : (inlet.own - frame.extent) | 0;
      this.#time = at === this.#found ? this.#foundTime : 0;
      this.messages++;
      this.bytes += frame.size;
    } else if (mode === LEND && inlet.isLentInRing) {
      isRest = !frame.isFirst;
      this.#time = isRest ? 0 : this.#foundTime;
    } else this.#time = this.#begunTime;
    if (mode === KEEP) return;
    if (inlet.queue.length > 0) this.#noteBatch(kept);
    this.laps.noteHandedOut(this.#time);
    if (isRest) return;
    this.values++;
    if (this.#time === 0) this.untimed++; // [meter.untimed]
  }

  #timeOf(kept: Kept): number {
    if (kept === this.#last) return this.#lastTime;
    this.#last = kept;
    return this.#lastTime = this.#times.get(kept) ?? 0;
  }

  /** Gives a batch that has just been decoded the time of its message. [meter.batch] */
  #noteBatch(kept: Kept | undefined): void {
    const [first] = this.#inlet.queue;
    if (first !== kept && "values" in first!) this.#times.set(first, this.#time);
  }

  /** Notes the time of a message that was taken and is put into the queue. */
  keep(what: Message | MessageError): void {
    const { flags } = this.#inlet.frame;
    this.#times.set(what, flags === WHOLE ? this.#time : this.#begunTime);
  }

  /** Notes the time of the first frame of several, before that frame is given back. */
  begin(): void {
    this.#begunTime = timeAt(this.#inlet, this.#inlet.own);
  }

  /** Counts a message of several frames when its last frame is given back. */
  end(size: number): void {
    this.messages++;
    this.bytes += size;
  }

  /** What is published and not handed out: messages, and bytes including headers. */
  queue(): { messages: number; bytes: number } {
    const inlet = this.#inlet;
    const { own, capacity } = inlet;
    const tail = Atomics.load(inlet.control, RING_TAIL_WORD);
    const to = ((tail - own) >>> 0) <= capacity ? tail : inlet.other;
    const passed: Passed = { messages: 0, bytes: 0, begun: 0 };
    walk(inlet, own, to, passed, 0);
    const bytes = ((to - own) >>> 0) + inlet.keptSize;
    let { messages } = passed;
    for (const each of inlet.queue) {
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

/** An inlet that reports to its gauge. The meter turns an inlet into one, and back. */
export class MeteredInlet extends Inlet {
  /** Set by the meter. */
  declare gauge: InletGauge;

  // Only this method reports each message: a call of the gauge from another method of the inlet
  // took 50 ns more (measured: Deno 2.9).
  override take(mode: Mode, target: Uint8Array | undefined, mayLoad: boolean): unknown {
    if (mode === LOOK) return super.take(mode, target, mayLoad);
    const { gauge } = this;
    if (mode < LEND && gauge.noteUsual()) {
      gauge.laps.noteAsked();
      const value = super.take(mode, target, mayLoad);
      if (value !== undefined) gauge.countUsual();
      else gauge.laps.endLap();
      return value;
    }
    if (mode !== KEEP) {
      gauge.laps.noteAsked();
      if (this.taker !== undefined && !this.isLent) { // it may put messages into the queue
        this.taker.serve(mayLoad);
        mayLoad = false;
      }
    }
    const kept = mode === KEEP ? undefined : this.queue[0];
    if (kept === undefined) mayLoad = gauge.noteNext(mayLoad);
    const taken = super.take(mode, target, mayLoad);
    if (taken !== undefined) gauge.countTaken(kept, mode);
    else if (mode !== KEEP) gauge.laps.endLap();
    return taken;
  }

  override keep(arrival: Message | MessageError): void {
    this.gauge.keep(arrival);
    super.keep(arrival);
  }
}

/** The frame reader of such an inlet. It reports messages of several frames only. */
export class MeteredFrame extends FrameReader {
  /** Set by the meter. */
  declare gauge: InletGauge;

  override accept(): void {
    if (this.isFirst) this.gauge.begin();
    super.accept();
    if (!this.isLast || this.dropped || (this.flags & FRAME_FLAG_CANCEL) !== 0) return;
    this.gauge.end(this.received);
  }
}
