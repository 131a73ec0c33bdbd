/**
 * The outgoing direction of a metered pipe. See `spec/meter.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import type { Link } from "../pipe/link.ts";
import { For } from "../pipe/tend.ts";
import { type Outgoing, place, type Send } from "../pipe/outgoing.ts";
import { microseconds, timeOf } from "./clock.ts";
import { countBetween, type Passed, walk } from "./frames.ts";
import { Tally } from "./tally.ts";

const TIME = layout.FRAME_TIME_OFFSET >> 2;
const END = layout.FRAME_KIND_END;

/** The figures of one outgoing direction. */
export class OutgoingGauge implements Passed {
  messages = 0;
  bytes = 0;
  begun = 0;
  /** The number of messages that had to wait for room, and how long each of them waited. */
  stalls = 0;
  readonly stall: Tally = new Tally(1);
  readonly #outgoing: Outgoing;
  /** What waits for room: a message of the queue, or a claim; since when, and until when. */
  #waiting: Send | "claim" | undefined;
  #since = 0;
  #last = 0;

  /** Makes the gauge of an outgoing side, for what it writes from now on. */
  constructor(outgoing: Outgoing) {
    this.#outgoing = outgoing;
  }

  /** Takes the place of `place`, and counts what that has placed, before it is published. */
  readonly place: typeof place = (out, message) => {
    const before = out.cursor;
    const isPlaced = place(out, message);
    // A claim is not finished yet.
    if (message.count > 0) walk(out, before, out.cursor, this, this.#stamp);
    if (!isPlaced && out.first === message) this.#noteWait(message);
    return isPlaced;
  };

  /** Sets the `time` of a message at its first frame. [meter.time] */
  readonly #stamp = (index: number): void => {
    this.#outgoing.words[index + TIME] = timeOf(microseconds());
  };

  /** Notes that a message of the queue finds no room, so that it has to wait. */
  #noteWait(message: Send): void {
    if (message.kind === END || message.flags !== 0 || this.#waiting === message) return;
    const { settle } = message;
    this.#begin(message);
    message.settle = (failure) => {
      message.settle = settle;
      this.#last = microseconds();
      this.#end();
      settle?.(failure);
    };
  }

  /** Notes that a claim waits, which it does inside of its call only. */
  noteClaim(): void {
    if (this.#outgoing.first === undefined && this.#waiting !== "claim") this.#begin("claim");
  }

  /** Notes that a sleep is over. */
  noteWake(): void {
    this.#last = microseconds();
  }

  /** Records the wait of a claim, of which nothing else tells that it is over. */
  settleClaim(): void {
    if (this.#waiting === "claim") this.#end();
  }

  #begin(what: Send | "claim"): void {
    this.settleClaim();
    this.#waiting = what;
    this.#since = this.#last = microseconds();
    this.stalls++;
  }

  #end(): void {
    this.#waiting = undefined;
    this.stall.record(Math.max(0, this.#last - this.#since), 1);
  }

  /** What is published and not given back: messages, and bytes including headers. */
  queue(): { messages: number; bytes: number } {
    const outgoing = this.#outgoing;
    const { published, peerCursor, words, other } = outgoing;
    const head = Atomics.load(words, other);
    const isValid = ((published - head) >>> 0) <= ((published - peerCursor) >>> 0);
    const from = isValid ? head : peerCursor;
    const messages = countBetween(outgoing, from, published);
    return { messages, bytes: (published - from) >>> 0 };
  }

  /** Begins to count again from 0. */
  clear(): void {
    this.settleClaim();
    this.messages = this.bytes = this.stalls = 0;
    this.stall.clear();
  }
}

/** Has a link report to a gauge when its claims sleep. Returns what ends that. */
export function noteSleeps(link: Link, gauge: OutgoingGauge): () => void {
  const { arm, disarm } = link;
  link.arm = (asks) => {
    if ((asks & For.ROOM) !== 0) gauge.noteClaim();
    arm.call(link, asks);
  };
  link.disarm = (asks) => {
    if ((asks & For.ROOM) !== 0) gauge.noteWake();
    disarm.call(link, asks);
  };
  return () => Object.assign(link, { arm, disarm });
}
