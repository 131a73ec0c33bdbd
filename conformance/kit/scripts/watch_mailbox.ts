/**
 * What watched scripts of a mailbox are written with: the kit sees the memory while the testee is
 * in a call, and is the other side meanwhile.
 *
 * @module
 */

import { fieldOf, sizeOf } from "../../reference/layout.ts";
import type { Result as Came } from "../../reference/case.ts";
import { compare } from "../../static/difference.ts";
import { answerOf, RemoteSession } from "../../static/remote.ts";
import type { Arena, Field } from "../arena.ts";
import type { Opening } from "../protocol.ts";
import type { Store } from "../race_orders.ts";
import { Wrong } from "../verdict.ts";
import { throwProblems } from "./stage.ts";

export const AREA = sizeOf("mailbox_header");
/** What closes a mailbox, as a number and as its bytes say. */
export const DISPOSED = -1;

/** Index of a word. */
export function wordOf(name: string): number {
  return fieldOf("mailbox_header", name).offset >> 2;
}

/** A close as a chapter says, or as the original does it: in all eight words. */
export function closeStores(isOriginal: boolean): Store[] {
  const names = ["status", "signal"];
  const indices = isOriginal ? Array.from({ length: AREA >> 2 }, (_, at) => at) : names.map(wordOf);
  return indices.map((index): Store => [index, DISPOSED]);
}

/** One side of a mailbox that a testee has opened on memory which the kit has in view. */
export class MailboxWatch {
  readonly session: RemoteSession;
  readonly field: Field;
  readonly capacity: number;
  step = "";

  private constructor(session: RemoteSession, field: Field, capacity: number) {
    this.session = session;
    this.field = field;
    this.capacity = capacity;
  }

  /** Opens a side of a blank mailbox, lets the script go on with it, and drops it. */
  static async with(
    arena: Arena,
    role: "mailbox_reader" | "mailbox_writer",
    capacity: number,
    play: (watch: MailboxWatch) => Promise<void>,
    opening: Partial<Opening> = {},
  ): Promise<void> {
    const image = new Uint8Array(AREA + capacity);
    const field = await arena.field({ size: image.length, image });
    try {
      const connection = await arena.connect(0);
      const handle = connection.newHandle();
      const usual = { kind: "attach", role, limit: 2 * capacity, calls: false } as const;
      const order = { ...usual, values: true, spin_us: 0, ...opening };
      const place = field.place(0);
      const opened = answerOf(
        await connection.send({ command: "open", handle, ...place, ...order }),
      );
      if (opened !== "ok") throw new Wrong(`attaching gave ${JSON.stringify(opened)}, not ok`);
      await play(new MailboxWatch(new RemoteSession(connection, handle, role), field, capacity));
      await connection.must({ command: "drop", handle });
    } catch (error) {
      await field.halt();
      await arena.kill(0); // it may still be in a call
      throw error;
    } finally {
      await field.halt();
      field.release();
    }
  }

  expect(got: Came, must: Came, what: string): void {
    throwProblems(`${this.step}${what}`, compare(got, must));
  }

  demand(holds: boolean, fact: string): void {
    if (!holds) throw new Wrong(`${this.step}${fact}`);
  }

  load(name: string): number {
    return Atomics.load(this.field.words(), wordOf(name));
  }

  /** Stores a part, and `signal` last; nobody is woken. */
  put(part: Uint8Array, index = 0, count = 1): void {
    this.prepare(part, index, count);
    Atomics.store(this.field.words(), wordOf("signal"), 1);
  }

  /** The same but for `signal`. */
  prepare(part: Uint8Array, index = 0, count = 1): void {
    this.area().set(part);
    const words = this.field.words();
    Atomics.store(words, wordOf("length"), part.length);
    Atomics.store(words, wordOf("part_count"), count);
    Atomics.store(words, wordOf("part_index"), index);
  }

  /** Stores words in their order, and wakes whoever sleeps. */
  store(stores: Store[]): void {
    for (const [index, value] of stores) Atomics.store(this.field.words(), index, value);
    this.field.notify(wordOf("signal"));
  }

  /** The byte area, live. */
  area(): Uint8Array {
    const words = this.field.words();
    return new Uint8Array(words.buffer, words.byteOffset + AREA, this.capacity);
  }

  /** Throws unless the mailbox is closed, and stays so. */
  demandClosed(): void {
    for (const name of ["status", "signal"]) {
      const found = this.load(name);
      this.demand(found === DISPOSED, `[mailbox.signal_exchange] ${name} is ${found}, not -1`);
    }
  }
}
