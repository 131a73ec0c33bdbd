/**
 * What the cases of `spec/call.md` are made with.
 *
 * @module
 */

import { ATTACHED, drained, store, VACANT } from "./builder.ts";
import { toHex, toImage } from "./bytes.ts";
import type { Expectation, Item, Operation, Setting, Value } from "./case.ts";
import { buildFrame, buildSegment, fillRing, FIRST, kindOf, LAST } from "./encode.ts";
import { type FramePlan, type Segment, WHOLE, withPreamble } from "./encode.ts";
import { flagOf, valueOf } from "./layout.ts";
import { buildValues } from "./values.ts";

export const VALUES = valueOf("codec", "values");
export const CANCELS = flagOf("call_mark", "cancel");
export const MORE = flagOf("call_mark", "more");

/** A message of these kinds as a frame; a call by its name and arguments. */
export function frame(kind: "call" | "return" | "throw", tag: number, ...values: Value[]) {
  const list = buildValues(values);
  return { kind: kindOf(kind), flags: WHOLE, codec: VALUES, tag, payload: list };
}

/** A call. */
export function calls(tag: number, name: string, ...values: Value[]): FramePlan {
  return frame("call", tag, { text: name }, ...values);
}

/** A message in what the kit reads. */
export function wrote(kind: "call" | "return" | "throw", tag: number, ...values: Value[]): Item {
  return { kind: kindOf(kind), codec: VALUES, tag, values };
}

/** An answer with this value. */
export function returns(tag: number, ...values: Value[]): Item {
  return wrote("return", tag, ...values);
}

/** A refusal, whose text is the callee's choice. */
export function refuses(tag: number, code: string): Item {
  return wrote("throw", tag, { text: code }, { any: true });
}

/** A port of which endpoint 1 is under test, with these frames in the ring to it. */
export function port(frames: FramePlan[] = [], capacity = 2048): Segment {
  const channels = [
    { writer: 0, reader: 1, capacity },
    { writer: 1, reader: 0, capacity },
  ];
  const segment = buildSegment({ endpoints: 2, channels, states: [ATTACHED, VACANT] });
  fillRing(segment, 0, frames);
  return segment;
}

/** The setting in which endpoint 1 offers calls; the kit takes what it writes. */
export function serving(
  { bytes }: Segment,
  operations: Operation[] = [{ read: true }, { take: true }],
  more: Partial<Setting> = {},
): Setting {
  const ends = { role: "port", endpoint: 1, channel: 1, limit: 4096 } as const;
  return { kind: "call", image: toImage(bytes), ...ends, operations, ...more };
}

/** What a case of one read and one take expects. */
export function answers(items: Item[], reports: string[] = []): Expectation {
  const read = drained(reports.map((report) => ({ report })));
  return { results: [read, drained(items)] };
}

/** Where the first frame begins in the ring to endpoint 1. */
export const FIRST_AT = port().channels[0]!.data;

/** The peer writes frames behind those that are there, at `from`. */
export function sends(frames: FramePlan[], from = 0): Operation {
  const { channels: [ring] } = port();
  const bytes = frames.flatMap((each) => [...buildFrame(each)]);
  const hex = toHex(Uint8Array.from(bytes));
  const tail = store({ control: ring!.control }, "tail", from + bytes.length);
  return { set: [{ offset: ring!.data + from, hex }, tail] };
}

/** A message in frames of this many bytes each. */
export function cut({ payload: list, ...header }: FramePlan, size: number): FramePlan[] {
  const whole = list as Uint8Array;
  const parts: Uint8Array[] = [];
  for (let at = 0; at < whole.length; at += size) parts.push(whole.slice(at, at + size));
  return parts.map((part, index) => ({
    ...header,
    flags: (index === 0 ? FIRST : 0) + (index === parts.length - 1 ? LAST : 0),
    payload: index === 0 ? withPreamble(whole.length, part) : part,
  }));
}
