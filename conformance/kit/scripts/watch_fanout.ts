/**
 * What scripts of fanouts are written with: the kit has all endpoints but one, and sees the memory
 * while the testee is in a call.
 *
 * @module
 */

import { type Fanout, joined, recordOf } from "../../reference/builder_fanout.ts";
import { buildFrame, type FramePlan } from "../../reference/encode.ts";
import { fieldOf, limitOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { ring } from "../peer.ts";
import type { Opening } from "../protocol.ts";
import { Watch } from "./watch.ts";

const WRITER = 0;
const ARMED = limitOf("wants_armed");

/** The end of a fanout that a testee has opened, and the kit at all others. */
export class FanoutWatch {
  readonly watch: Watch;
  readonly plan: Fanout;

  private constructor(watch: Watch, plan: Fanout) {
    this.watch = watch;
    this.plan = plan;
  }

  /** Opens it as endpoint 0, which writes, or as endpoint 1; goes on with it, and drops it. */
  static async with(
    arena: Arena,
    role: "fanout_reader" | "fanout_writer",
    plan: Fanout,
    play: (watch: FanoutWatch) => Promise<void>,
    more: Partial<Opening> & { wakes?: number } = {},
  ): Promise<void> {
    const { wakes, ...rest } = more;
    const endpoint = role === "fanout_writer" ? WRITER : 1;
    const opening = { role, endpoint, channel: 0, ...rest };
    const go = (watch: Watch) => play(new FanoutWatch(watch, plan));
    await Watch.on(arena, plan, opening, go, wakes);
  }

  /** Index of a word of the control area. */
  control(name: string): number {
    return this.plan.control + fieldOf("fanout_control", name).offset >> 2;
  }

  /** Index of a word of a reader's record. */
  record(reader: number, name: string): number {
    return recordOf(this.plan, reader) + fieldOf("fanout_reader", name).offset >> 2;
  }

  /** Index of the word of the byte area so many bytes behind its beginning. */
  area(offset: number): number {
    return this.plan.data + offset >> 2;
  }

  load(index: number): number {
    return Atomics.load(this.watch.field.words(), index) >>> 0;
  }

  store(index: number, value: number): void {
    Atomics.store(this.watch.field.words(), index, value | 0);
  }

  /** Places frames from a position on, without publishing them; returns the position behind. */
  place(position: number, ...frames: FramePlan[]): number {
    for (const frame of frames) {
      const bytes = buildFrame(frame);
      this.watch.bytes().set(bytes, this.plan.data + position % this.plan.capacity);
      position = (position + bytes.length) % 2 ** 32;
    }
    return position;
  }

  /** The writer publishes, and rings the readers that ask for it. [fanout.wake] */
  publish(tail: number): void {
    this.store(this.control("tail"), tail);
    const { field } = this.watch;
    const bits = Atomics.exchange(field.words(), this.control("readers_want"), 0);
    for (let bit = 0; bit < 32; bit++) {
      if ((bits >>> bit & 1) !== 0) ring(field, WRITER + 1 + bit, WRITER);
    }
  }

  /** A reader gives back what stands before a position, and rings the writer that asks for it. */
  release(reader: number, position: number): void {
    this.store(this.record(reader, "head"), joined(position));
    const wants = this.load(this.record(reader, "writer_wants"));
    const isMet = wants !== 0 && (position - (wants & ~ARMED) | 0) >= 0;
    if (isMet) this.#take(reader);
  }

  /** A reader leaves. [fanout.leave] */
  leave(reader: number): void {
    this.store(this.record(reader, "head"), 0);
    this.#take(reader);
  }

  #take(reader: number): void {
    const { field } = this.watch;
    const wants = Atomics.exchange(field.words(), this.record(reader, "writer_wants"), 0);
    if (wants !== 0) ring(field, WRITER, WRITER + 1 + reader);
  }
}
