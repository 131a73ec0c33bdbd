/**
 * What the cases of `spec/call.md` are made with.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, setRecord, setState, stateAt, store } from "./builder.ts";
import { VACANT } from "./builder.ts";
import { type Run, toHex, toImage, word } from "./bytes.ts";
import type { Expectation, Item, Operation, Setting, Value } from "./case.ts";
import { buildFrame, buildSegment, type ChannelPlan, fillRing, FIRST } from "./encode.ts";
import { type FramePlan, kindOf, LAST, type Placed, type Segment, WHOLE } from "./encode.ts";
import { withPreamble } from "./encode.ts";
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

/** The peer writes frames after those that are there, at `from`. */
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

// What the cases of endpoints that are given back have in common.

/** How often the endpoint of the kit was vacated before. */
export const GENERATION = 6;
/** Its state when it has closed. */
export const DEAD: number = stateAt(CLOSED, GENERATION);

export const vacate: Operation = { vacate: true };
export const read: Operation = { read: true };
export const take: Operation = { take: true };
/** Stores what nobody looks at: the place where the changed cases do something. */
export const still: Operation = setRecord(1, { agent: 0 });

/** A port of which endpoint 1 is under test, and endpoint 0 the kit, which was vacated before. */
export function portOf(frames: FramePlan[], more: ChannelPlan[] = [], endpoints = 2) {
  const segment = buildSegment({
    endpoints,
    channels: [
      { writer: 0, reader: 1, capacity: 256 },
      { writer: 1, reader: 0, capacity: 256, start: 0x40 },
      ...more,
    ],
    states: [stateAt(ATTACHED, GENERATION), VACANT],
    records: [{ wakes: 3, agent: 77, features: 5, generation: GENERATION }],
  });
  const at = fillRing(segment, 0, frames);
  const [inward, outward] = segment.channels as [Placed, Placed];
  return { ...segment, at, inward, outward };
}

/** The setting in which endpoint 1 uses such a port; the kit takes from channel 1. */
export function using({ bytes }: { bytes: Uint8Array }, operations: Operation[]): Setting {
  const image = toImage(bytes);
  return { kind: "read", image, role: "port", endpoint: 1, channel: 1, limit: 4096, operations };
}

/** Endpoint 0 leaves. */
export function leaves(state = DEAD): Operation {
  return setState(0, state);
}

/** The next owner of endpoint 0 attaches, once it was given back so often. */
export function attaches(times = 1): Operation {
  return setRecord(0, { state: stateAt(ATTACHED, GENERATION + times), wakes: 1 });
}

/** Its first frames, which it places where the ring goes on, and publishes. */
export function next(ring: Placed, position: number, frames: FramePlan[]): Operation {
  const runs: Run[] = [];
  let tail = position;
  for (const frame of frames) {
    const bytes = buildFrame(frame);
    runs.push({ offset: ring.data + tail % ring.capacity, hex: toHex(bytes) });
    tail = (tail + bytes.length) % 2 ** 32;
  }
  return { set: [...runs, { offset: ring.control, hex: word(tail) }] };
}
