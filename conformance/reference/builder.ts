/**
 * What the files of cases are made with: short ways to say what most cases have in common.
 *
 * @module
 */

import { fromHex, toHex, toImage, word } from "./bytes.ts";
import type {
  Case,
  Change,
  Drained,
  Expectation,
  Expected,
  Item,
  MessageCase,
  Operation,
  Payload,
  Reason,
  Setting,
} from "./case.ts";
import {
  buildExtension,
  buildSegment,
  type ChannelPlan,
  EXTENDED,
  failed,
  fillRing,
  type FramePlan,
  kindOf,
  put,
  recordAt,
  type RecordPlan,
  type Segment,
  type SegmentPlan,
  WHOLE,
  withPreamble,
} from "./encode.ts";
import { fieldOf, limitOf, valueOf } from "./layout.ts";

/** What a case says of itself, and what must come of it. Clauses are separated by spaces. */
export interface Row extends Expectation {
  name: string;
  about: string;
  clauses: string;
}

/** Collects the cases of one noun. */
export class Cases {
  readonly noun: string;
  readonly list: Case[] = [];

  constructor(noun: string) {
    this.noun = noun;
  }

  /** A case of its own. */
  valid(setting: Setting, { name, about, clauses, ...expect }: Row): string {
    const id = `${this.noun}/${name}`;
    this.list.push({ id, about, clauses: clauses.split(" "), ...setting, expect });
    return id;
  }

  /** A case that differs from another in one thing. */
  invalid(from: string, change: Change, { name, about, clauses, ...expect }: Row): void {
    const id = `${this.noun}/${name}`;
    this.list.push({ id, about, clauses: clauses.split(" "), from, change, expect });
  }
}

export const VACANT = valueOf("endpoint_state", "vacant");
export const ATTACHED = valueOf("endpoint_state", "attached");
export const CLOSED = valueOf("endpoint_state", "closed");

/** A change of a field to a number. */
export function field(at: number, structure: string, name: string, value: number): Change {
  const { size } = fieldOf(structure, name);
  const bytes = Uint8Array.from({ length: size }, (_, i) => Math.floor(value / 256 ** i) % 256);
  return { at, structure, field: name, hex: toHex(bytes) };
}

/** A change of the first bytes of a frame's payload. */
export function payload(at: number, bytes: Uint8Array): Change {
  return { at, structure: "frame_header", field: "payload", hex: toHex(bytes) };
}

/** A change of something that is not in the bytes. */
export function member(name: string, value: unknown): Change {
  return { member: name, value };
}

/** A pipe whose one end is attached, by default the writer, endpoint 0. */
export interface PipePlan {
  capacity?: number;
  start?: number;
  /** Where both cursors stand before the frames; at `start` where it is left out. */
  from?: number;
  states?: number[];
  frames?: FramePlan[];
  channel?: Partial<ChannelPlan>;
  segment?: Partial<SegmentPlan>;
}

/** A pipe as bytes; `at` says where each frame begins. */
export interface Pipe extends Segment {
  at: number[];
  control: number;
  data: number;
}

/** Builds a pipe. */
export function pipe(plan: PipePlan = {}): Pipe {
  const { capacity = 256, start = 0, states = [ATTACHED, VACANT], frames = [] } = plan;
  const { from = start } = plan;
  const channel = { writer: 0, reader: 1, capacity, start, ...plan.channel };
  const segment = buildSegment({ endpoints: 2, channels: [channel], states, ...plan.segment });
  const at = fillRing(segment, 0, frames, from);
  const { control, data } = segment.channels[0]!;
  put(segment.bytes, control, "ring_control", "head", from);
  return { ...segment, at, control, data };
}

/** The setting in which endpoint 1 reads a pipe. */
export function reading({ bytes }: Segment, more: Partial<Setting> = {}): Setting {
  return {
    kind: "read",
    image: toImage(bytes),
    role: "reader",
    channel: 0,
    limit: 4096,
    operations: [{ read: true }],
    ...more,
  };
}

/** The setting in which endpoint 0 writes into a pipe. */
export function writing({ bytes }: Segment, more: Partial<Setting> = {}): Setting {
  return { kind: "write", image: toImage(bytes), role: "writer", channel: 0, ...more };
}

/** A pipe in which the reader is attached and the writer is the endpoint under test. */
export function writersPipe(plan: PipePlan = {}): Pipe {
  return pipe({ states: [VACANT, ATTACHED], ...plan });
}

/** What one read gives. */
export function drained(items: Item[], end = "nothing", reason?: Reason): Drained {
  return reason === undefined ? { items, end } : { items, end, reason };
}

/** The expectation of a single read. */
export function reads(items: Item[], end = "nothing", bytes?: Expected[]): Expectation {
  return { results: [drained(items, end)], ...(bytes && { bytes }) };
}

/** The expectation of a read that finds a fault: the writer, endpoint 0, is marked. */
export function faults(items: Item[], code: string): Expectation {
  return reads(items, code, [stateIs(0, failed(code))]);
}

/** The `state` word of an endpoint must be this. */
export function stateIs(index: number, value: number): Expected {
  const { offset } = fieldOf("endpoint_record", "state");
  return { offset: recordAt(index) + offset, hex: word(value), about: `state of ${index}` };
}

/** The peer, or somebody else, stores the `state` word of an endpoint. */
export function setState(index: number, value: number): Operation {
  return { set: [{ offset: recordAt(index) + 4, hex: word(value) }] };
}

/** A `state` word: the generation stands above all states but failed. */
export function stateAt(state: number, generation: number): number {
  return state + 2 ** limitOf("reason_shift") * (generation % 2 ** 24);
}

/** The peer, or somebody else, stores fields of an endpoint's record. */
export function setRecord(index: number, fields: RecordPlan): Operation {
  return {
    set: Object.entries(fields).map(([name, value]) => ({
      offset: recordAt(index) + fieldOf("endpoint_record", name).offset,
      hex: typeof value === "number" ? word(value) : toHex(value),
    })),
  };
}

/** A word of an endpoint's record must be this. */
export function recordIs(index: number, name: string, value: number): Expected {
  const { offset } = fieldOf("endpoint_record", name);
  return { offset: recordAt(index) + offset, hex: word(value), about: `${name} of ${index}` };
}

/** The bytes of `rung` in which the bits of these endpoints are set. */
export function rungBits(...endpoints: number[]): Uint8Array {
  const bytes = new Uint8Array(fieldOf("endpoint_record", "rung").size);
  for (const index of endpoints) bytes[index >> 3]! |= 1 << (index & 7);
  return bytes;
}

/** Nobody but these must have their bits in an endpoint's `rung`. */
export function rungIs(index: number, ...endpoints: number[]): Expected {
  const offset = recordAt(index) + fieldOf("endpoint_record", "rung").offset;
  return { offset, hex: toHex(rungBits(...endpoints)), about: `rung of ${index}` };
}

/** The bell of an endpoint must be as it was. */
export function bellIs(index: number, value: number): Expected {
  return recordIs(index, "bell", value);
}

/** The bell of an endpoint must have moved on from this. */
export function bellIsNot(index: number, value: number): Expected {
  return { offset: recordAt(index), not: word(value), about: `bell of ${index}` };
}

/** These bytes must stand in the memory: lines of sixteen, and between them nothing but 0. */
export function imageIs(bytes: Uint8Array, from: number, to: number, about: string): Expected[] {
  const list: Expected[] = [];
  let at = from;
  for (const { offset, hex } of toImage(bytes.slice(from, to)).bytes) {
    const begin = from + offset;
    if (begin > at) list.push({ offset: at, zero: begin - at, about });
    list.push({ offset: begin, hex, about });
    at = begin + fromHex(hex).length;
  }
  if (to > at) list.push({ offset: at, zero: to - at, about });
  return list;
}

/** A cursor or a `wants` word of a ring must be this. */
export function controlIs({ control }: { control: number }, name: string, value: number): Expected {
  return { offset: control + fieldOf("ring_control", name).offset, hex: word(value), about: name };
}

/** A control word must be one of these. */
export function controlIsOneOf(
  { control }: { control: number },
  name: string,
  values: number[],
): Expected {
  const { offset } = fieldOf("ring_control", name);
  return { offset: control + offset, one_of: values.map(word), about: name };
}

/** Bytes that the peer stores in a control word. */
export function store({ control }: { control: number }, name: string, value: number) {
  return { offset: control + fieldOf("ring_control", name).offset, hex: word(value) };
}

/** A message in an expectation. */
export function message(content: Partial<MessageCase>): MessageCase {
  return { kind: kindOf("data"), codec: 0, tag: 0, ...content };
}

/** A text message in an expectation. */
export function text(content: string, tag = 0): MessageCase {
  return message({ codec: valueOf("codec", "text"), tag, text: content });
}

/** A whole message as a frame. */
export function whole(content: string | Uint8Array, more: Partial<FramePlan> = {}): FramePlan {
  const isText = typeof content === "string";
  return {
    kind: kindOf("data"),
    flags: WHOLE,
    codec: isText ? valueOf("codec", "text") : 0,
    payload: isText ? utf8(content) : content,
    ...more,
  };
}

/** The first frame of a multipart message. */
export function firstOf(
  total: number | Uint8Array,
  part: Uint8Array,
  more: Partial<FramePlan> = {},
): FramePlan {
  return { kind: kindOf("data"), flags: 1, payload: withPreamble(total, part), ...more };
}

/** A later frame of one; the last unless `more` says otherwise. */
export function part(content: Uint8Array, more: Partial<FramePlan> = {}): FramePlan {
  return { kind: kindOf("data"), flags: 2, payload: content, ...more };
}

/** The same frame with a header extension: by default a small one, of a kind of the application. */
export function extended(
  frame: FramePlan,
  extension: Uint8Array = buildExtension(limitOf("extension_application_min") + 1, pattern(8)),
): FramePlan {
  return { ...frame, flags: (frame.flags ?? 0) + EXTENDED, extension };
}

export function endFrame(): FramePlan {
  return { kind: kindOf("end") };
}

/** A pad of this extent. */
export function pad(extent: number): FramePlan {
  return { kind: kindOf("pad"), payload: new Uint8Array(extent - 16) };
}

/** A message of bytes that count up. */
export function bytesOf(size: number): Payload {
  return { count: size };
}

/** Bytes that count up. */
export function pattern(size: number, from = 0): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => (from + index) & 255);
}

export function utf8(content: string): Uint8Array {
  return new TextEncoder().encode(content);
}
