/**
 * What the cases of the mailbox have in common.
 *
 * @module
 */

import { field, utf8 } from "./builder.ts";
import { type Run, toHex, toImage, word } from "./bytes.ts";
import type { Change, Expected, Item, Operation, Setting } from "./case.ts";
import { buildMailbox, type MailboxPlan } from "./encode.ts";
import { fieldOf, sizeOf, valueOf } from "./layout.ts";

export const HEADER = "mailbox_header";
export const AREA = sizeOf(HEADER);
export const DISPOSED = valueOf("mailbox_status", "disposed");
export const MAY_READ = valueOf("mailbox_signal", "may_read");

/** Messages of a mailbox in an expectation. */
export function json(...values: unknown[]): Item[] {
  return values.map((value) => ({ kind: 1, codec: 2, tag: 0, json: value }));
}

/** The setting in which the reading side is under test. */
export function reading(plan: MailboxPlan, operations: Operation[] = [{ read: true }]): Setting {
  const image = toImage(buildMailbox(plan));
  return { kind: "read", image, role: "mailbox_reader", limit: 4096, operations };
}

/** The setting in which the writing side is under test. */
export function writing(plan: MailboxPlan, operations: Operation[]): Setting {
  const image = toImage(buildMailbox(plan));
  return { kind: "write", image, role: "mailbox_writer", operations };
}

/** A payload of one part. */
export function whole(content: string | Uint8Array, size = 48): MailboxPlan {
  const part = typeof content === "string" ? utf8(content) : content;
  return { size, signal: MAY_READ, length: part.length, part_count: 1, part };
}

/** A word must be this. */
export function wordIs(name: string, value: number): Expected {
  return { offset: fieldOf(HEADER, name).offset, hex: word(value), about: name };
}

/** The peer stores a word. */
export function store(name: string, value: number): Run {
  return { offset: fieldOf(HEADER, name).offset, hex: word(value) };
}

/** A change of a word. */
export function set(name: string, value: number): Change {
  return field(0, HEADER, name, value < 0 ? value + 2 ** 32 : value);
}

/** What the writer stores for a later part. */
export function nextPart(content: string, index: number, count: number): Operation {
  return {
    set: [
      { offset: AREA, hex: toHex(utf8(content)) },
      store("length", utf8(content).length),
      store("part_count", count),
      store("part_index", index),
      store("signal", MAY_READ),
    ],
  };
}
