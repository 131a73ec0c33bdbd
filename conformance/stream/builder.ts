/**
 * What the cases of streams are made with: prefaces, frames, and short ways to say what most cases
 * have in common.
 *
 * @module
 */

import { fromHex, little, toHex } from "../reference/bytes.ts";
import type { Drained, Item, MessageCase, Reason } from "../reference/case.ts";
import { buildFrame, FIRST, type FramePlan, kindOf, LAST, put } from "../reference/encode.ts";
import { WHOLE, withPreamble } from "../reference/encode.ts";
import { sizeOf } from "../reference/layout.ts";
import type { Change, Operation, Sent, Sizes, StreamCase } from "./case.ts";
import type { StreamResult, Taken } from "./case.ts";
import { after, CLOSE, CREDIT, FAIL, MAGIC, START } from "./taker.ts";

/** The least that a side may state, and a window of two frames of it. */
export const SMALL: Sizes = { largest: 128, window: 256 };

/** An operation and its result. */
export type Step = [Operation, StreamResult];

/** Collects the cases. */
export class StreamCases {
  readonly list: StreamCase[] = [];

  /** A case of its own. Clauses are separated by spaces. */
  valid(name: string, about: string, clauses: string, own: Sizes, steps: Step[]): StreamCase {
    const operations = steps.map(([operation]) => operation);
    const expect = { results: steps.map(([, result]) => result) };
    const id = `stream/${name}`;
    const entry = { id, about, clauses: clauses.split(" "), own, operations, expect };
    this.list.push(entry);
    return entry;
  }

  /** A case that differs from another in one thing, and what comes of it from `at` on. */
  invalid(
    name: string,
    about: string,
    clauses: string,
    from: StreamCase,
    change: Change,
    at: number,
    ...results: StreamResult[]
  ): void {
    const all = from.expect.results.with(at, results[0]!);
    results.forEach((result, index) => all[at + index] = result);
    const id = `stream/${name}`;
    const expect = { results: all };
    this.list.push({ id, about, clauses: clauses.split(" "), from: from.id, change, expect });
  }
}

export function preface({ largest, window }: Sizes = SMALL): string {
  const bytes = new Uint8Array(sizeOf("stream_preface"));
  put(bytes, 0, "stream_preface", "magic", fromHex(MAGIC));
  put(bytes, 0, "stream_preface", "version_major", 1);
  put(bytes, 0, "stream_preface", "largest", largest);
  put(bytes, 0, "stream_preface", "window", window);
  return toHex(bytes);
}

export function frame(plan: FramePlan): string {
  return toHex(buildFrame(plan));
}

/** The first bytes of several. */
export function upTo(size: number, ...parts: string[]): string {
  return toHex(fromHex(parts.join("")).slice(0, size));
}

/** 00 01 02 and so on. */
export function count(size: number, from = 0): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => from + index);
}

const DATA = kindOf("data");

/** A whole message of bytes that count up. */
export function bytes(size: number, tag = 0): string {
  return frame({ kind: DATA, flags: WHOLE, tag, payload: count(size) });
}

export function text(payload: string, tag = 0): string {
  const encoded = new TextEncoder().encode(payload);
  return frame({ kind: DATA, flags: WHOLE, codec: 1, tag, payload: encoded });
}

/** The chunks of a message of bytes that count up, whose parts have these sizes. */
export function chunks(...sizes: number[]): string[] {
  const total = sizes.reduce((sum, size) => sum + size);
  let from = 0;
  return sizes.map((size, index) => {
    const part = count(size, from);
    from += size;
    if (index === 0) {
      return frame({ kind: DATA, flags: FIRST, payload: withPreamble(total, part) });
    }
    return frame({ kind: DATA, flags: index === sizes.length - 1 ? LAST : 0, payload: part });
  });
}

export const END: string = frame({ kind: kindOf("end") });
export const CLOSED: string = frame({ kind: CLOSE });

/** The position after so many bytes. */
export function at(size: number): number {
  return after(START, size);
}

/** A credit of so many bytes from the beginning on. */
export function credit(size: number): string {
  return frame({ kind: CREDIT, tag: at(size) });
}

export function fail(reason: number): string {
  return frame({ kind: FAIL, tag: reason });
}

/** Bytes that arrive. */
export function arrive(...parts: (string | string[])[]): Step {
  return [{ arrive: parts.flat() }, "ok"];
}

/** A read until nothing comes. */
export function read(items: Item[], end: string = "nothing", reason?: Reason): Step {
  return [{ read: true }, drained(items, end, reason)];
}

export function drained(items: Item[], end: string = "nothing", reason?: Reason): Drained {
  return { items, end, ...reason !== undefined && { reason } };
}

/** Everything that the endpoint has to send. */
export function take(...sent: Sent[]): Step {
  return [{ take: true }, { sent }];
}

/** What was sent, a credit and the end of the byte stream among it. */
export function taken(sent: Sent[], more: Omit<Taken, "sent"> = {}): Taken {
  return { sent, ...more };
}

/** The preface as the endpoint has to send it. */
export function stated(own: Sizes = SMALL): Sent {
  return { preface: own };
}

export function message(payload: Partial<MessageCase>): MessageCase {
  return { kind: DATA, codec: 0, tag: 0, ...payload };
}

/** What `text("hi", 5)` is read as. */
export const HI: MessageCase = message({ codec: 1, tag: 5, text: "hi" });

export function report(code: string): Item {
  return { report: code };
}

/** A change of a field to a number, of as many bytes as are given. */
export function field(
  operation: number,
  at: number,
  structure: string,
  name: string,
  value: number,
  size = 4,
): Change {
  return { operation, at, structure, field: name, hex: toHex(little(value, size)) };
}

/** Where the frames begin after a preface. */
export const BEHIND: number = sizeOf("stream_preface");
