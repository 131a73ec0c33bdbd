/**
 * Memory in which the testee makes a segment, or finds one: what the scripts for creating and
 * attaching are written with.
 *
 * @module
 */

import { type ChannelPlan } from "../../reference/encode.ts";
import { fieldOf, valueOf } from "../../reference/layout.ts";
import { answerOf } from "../../static/remote.ts";
import type { Arena, Field } from "../arena.ts";
import type { Connection } from "../connection.ts";
import type { Opening } from "../protocol.ts";
import type { Order } from "../race_orders.ts";

const state = (name: string) => valueOf("segment_ready", name);

export const BLANK: number = state("blank");
export const FORMATTING: number = state("formatting");
export const READY: number = state("ready");
export const READY_AT: number = fieldOf("segment_header", "ready").offset >> 2;
/** What stands in memory that nobody has formatted: blank is what `ready` says. */
export const LEFT_OVER = 0xee;
/** What the kit stores as a rival: no bits that anybody gives out. */
export const RIVAL_WAKES = 0x40_0000;
export const RIVAL_AGENT = 4_711;

const RING: ChannelPlan = { writer: 0, reader: 1, capacity: 256, start: 64, label: 7 };
export const GEOMETRY = { endpoints: 2, channels: [RING] };
/** It takes a while to be written. */
export const LARGE = {
  endpoints: 4,
  channels: Array.from({ length: 40 }, (_, index): ChannelPlan => ({
    writer: index % 2,
    reader: 1 - index % 2,
    capacity: 256,
    label: index + 1,
    start: 16 * (index + 1),
  })),
};

/** A field without a segment in it, and what a testee answers that opens it. */
export class Ground {
  readonly field: Field;
  readonly #connection: Connection;
  #handle: number | undefined;

  private constructor(field: Field, connection: Connection) {
    this.field = field;
    this.#connection = connection;
  }

  static async with(arena: Arena, image: Uint8Array, play: (ground: Ground) => Promise<void>) {
    const field = await arena.field({ size: image.length, image });
    try {
      const ground = new Ground(field, await arena.connect(0));
      await play(ground);
      await ground.drop();
    } catch (error) {
      await field.halt();
      await arena.kill(0);
      throw error;
    } finally {
      await field.halt();
      field.release();
    }
  }

  /**
   * Has the testee open it, while the kit's thread is at something; where the memory is a file, as
   * memory if that is wanted.
   */
  async open(opening: Opening, order?: Order, isMapped = false) {
    const { field } = this;
    await this.drop();
    const handle = this.#handle = this.#connection.newHandle();
    const racing = order && field.race(order);
    await racing?.begun;
    const usual = { limit: 4096, calls: false, values: false, spin_us: 0 };
    const reply = await this.#connection.send({
      command: "open",
      handle,
      ...isMapped ? field.mapped!() : field.place(0),
      ...usual,
      ...opening,
    });
    const found = await racing?.stop();
    return { answer: answerOf(reply), found: found ?? [] };
  }

  /** Has the testee let go of what it has opened, or tried to. */
  async drop(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    if (handle !== undefined) await this.#connection.must({ command: "drop", handle });
  }

  load(index: number): number {
    return Atomics.load(this.field.words(), index);
  }
}
