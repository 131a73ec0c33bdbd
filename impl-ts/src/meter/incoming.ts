/**
 * The incoming direction of a metered pipe. See `spec/meter.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { type Incoming, keep, Mode, pull } from "../pipe/incoming.ts";
import { Head } from "../ring/frame.ts";
import { countBetween } from "./frames.ts";
import { Laps } from "./laps.ts";
import { Tally } from "./tally.ts";

/** Units per microsecond of service times: many handlers take less than one microsecond. */
const SERVICE_SCALE = 10;

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

  /** Takes the place of `pull` where values are read, and counts what that takes. */
  readonly take: typeof pull = (inc, mode, mayLoad) => {
    this.laps.noteAsked();
    const isAgain = this.#isShown();
    const kept = inc.queue[0];
    const taken = pull(inc, mode, mayLoad);
    if (taken === undefined) this.laps.endLap();
    else this.#countTaken(kept, taken, mode, isAgain);
    return taken;
  };

  /** Takes the place of `keep`: counts a message that was taken before anybody asked for it. */
  readonly keep: typeof keep = (inc, message) => {
    this.#times.set(message, inc.frame.time);
    this.messages++;
    this.bytes += message.payload.length;
    keep(inc, message);
  };

  /**
   * Whether what is taken next was counted already: `readInto` leaves a message where it is that
   * does not fit.
   */
  #isShown(): boolean {
    const { queue, cursor } = this.#incoming;
    return this.#shown !== undefined && this.#shown === (queue[0] ?? cursor);
  }

  /** Counts a message, a value or a part: `kept` was in the queue, others were in the ring. */
  #countTaken(kept: Kept | undefined, taken: unknown, mode: Mode, isAgain: boolean): void {
    const incoming = this.#incoming;
    const { frame, queue, cursor } = incoming;
    const isInRing = taken === incoming;
    const time = kept === undefined ? frame.time : this.#timeOf(kept);
    this.#shown = mode !== Mode.SHOW ? undefined : isInRing ? cursor : taken;
    if (mode === Mode.SHOW && !isInRing) this.#times.set(taken as object, time);
    if (isAgain) return;
    let isRest = false;
    if (kept === undefined) {
      const isLent = mode === Mode.LEND && isInRing;
      isRest = isLent && !(frame.flags & layout.FRAME_FLAG_FIRST);
      if (!isLent || frame.flags & layout.FRAME_FLAG_LAST) {
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
