/**
 * The direction in of a pipe that is metered. See `spec/meter.md`.
 *
 * @module
 */

import type { MessageError } from "./error.ts";
import { WHOLE } from "./frame.ts";
import { FRAME_FLAG_FIRST, RING_TAIL_WORD } from "./layout.ts";
import { microseconds, waitedSince } from "./meter_clock.ts";
import { isMessage, type Passed, timeAt, walk } from "./meter_frames.ts";
import { Tally } from "./meter_tally.ts";
import type { Message } from "./pipe.ts";
import { Inlet, KEEP, LOOK, type Mode } from "./pipe_inlet.ts";

/** Units of a microsecond in which service is counted: many a handler takes less than one. */
const SERVICE_SCALE = 10;

/** What was read and not handed out, and what that is an element of. */
type Kept = Inlet["queue"][number];

/** What a meter knows of one direction in. */
export class InletGauge {
  messages = 0;
  bytes = 0;
  values = 0;
  untimed = 0;
  readonly waiting: Tally = new Tally(1);
  readonly service: Tally = new Tally(SERVICE_SCALE);
  /** `time` of the message that was found or taken last, and of one whose frames still come. */
  #time = 0;
  #begunTime = 0;
  /** Of what stands in the queue of the inlet; a batch is asked for once for each value. */
  readonly #times = new WeakMap<object, number>();
  #last: Kept | undefined;
  #lastTime = 0;
  /** Where the frame stands that was found to be for the reader. */
  #admitted = -1;
  /** Whether it is lent, and continues a message. */
  #isRest = false;
  /** When the message came that is being served; -1 where none is. */
  #since = -1;

  /** A message, or a part of it, is handed out, or found: by its frame, or from the queue. */
  note(inlet: Inlet, what: object): void {
    const { frame, own } = inlet;
    this.#isRest = false;
    if (what !== frame) return this.#noteKept(what as Kept);
    if (frame.flags === WHOLE) {
      this.#time = timeAt(inlet, own);
      this.#admitted = own;
    } else if (frame.isLast && !frame.inProgress) { // put together: its last frame is given back
      this.#time = this.#begunTime;
      this.messages++;
      this.bytes += frame.received;
    } else { // a part is lent
      this.#isRest = !frame.isFirst;
      this.#time = frame.isFirst ? timeAt(inlet, own) : this.#begunTime;
      this.#admitted = own;
    }
  }

  /** [meter.batch] */
  #noteKept(what: Kept): void {
    // Others tell what was read last once more.
    if (!("values" in what || "payload" in what)) return;
    if (what !== this.#last) {
      this.#last = what;
      // A batch that has just been taken apart has the time of its message.
      this.#lastTime = this.#times.get(what) ?? this.#time;
      if (!this.#times.has(what)) this.#times.set(what, this.#time);
    }
    this.#time = this.#lastTime;
  }

  /** What was taken comes into the queue. */
  keep(what: Message | MessageError): void {
    this.#times.set(what, this.#time);
  }

  /** The frame at the own cursor is about to be given back, behind which it may be overwritten. */
  release(inlet: Inlet): void {
    const { frame, own } = inlet;
    const { flags } = frame;
    if (!isMessage(frame.kind)) return;
    const isWhole = flags === WHOLE;
    if (!isWhole && (flags & FRAME_FLAG_FIRST) !== 0) this.#begunTime = timeAt(inlet, own);
    if (this.#admitted !== own || !frame.isLast) return;
    this.#admitted = -1;
    this.messages++;
    this.bytes += isWhole ? frame.size : frame.received + frame.size;
  }

  /** A value is handed out that was asked for at that moment. [meter.waiting] [meter.untimed] */
  begin(now: number): void {
    this.#since = now;
    if (this.#isRest) return;
    this.values++;
    if (this.#time === 0) this.untimed++;
    else this.waiting.record(waitedSince(this.#time, now));
  }

  /** Whether somebody has a value and has not come back. */
  get isServing(): boolean {
    return this.#since >= 0;
  }

  /** The application is done with the value that it has. */
  end(now: number): void {
    if (this.#since < 0) return;
    this.service.record(Math.max(0, now - this.#since));
    this.#since = -1;
  }

  /** What is published and not handed out: messages, and bytes with their headers. */
  queue(inlet: Inlet): { messages: number; bytes: number } {
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

  /** Begins to count anew. */
  clear(): void {
    this.messages =
      this.bytes =
      this.values =
      this.untimed =
        0;
    this.waiting.clear();
    this.service.clear();
  }
}

/** An inlet that tells its gauge what it does; any inlet is made one, and an inlet again. */
export class MeteredInlet extends Inlet {
  /** Set by the meter. */
  declare gauge: InletGauge;

  override take(mode: Mode, target: Uint8Array | undefined, mayLoad: boolean): unknown {
    if (mode === KEEP || mode === LOOK) return super.take(mode, target, mayLoad);
    // One look at the clock for the end of one service and the begin of the next: it takes as long
    // as everything else that is metered.
    const { gauge } = this;
    const now = microseconds();
    gauge.end(now);
    const taken = super.take(mode, target, mayLoad);
    if (taken !== undefined) gauge.begin(now);
    return taken;
  }

  override note(what: Pick<Message, "kind" | "codec" | "tag">): void {
    this.gauge.note(this, what);
    super.note(what);
  }

  override keep(arrival: Message | MessageError): void {
    this.gauge.keep(arrival);
    super.keep(arrival);
  }

  override release(): void {
    this.gauge.release(this);
    super.release();
  }
}
