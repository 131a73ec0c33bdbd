/** What the cases of fanouts have in common. @module */

import { ATTACHED, endFrame, imageIs, utf8, VACANT, whole } from "./builder.ts";
import { fromHex, little, type Run, toHex, toImage, word } from "./bytes.ts";
import type { Drained, Expected, MessageCase, Operation, Setting } from "./case.ts";
import { buildExtension, buildFrame, buildSegment, type ChannelPlan, EXTENDED } from "./encode.ts";
import { type FramePlan, NOBODY, put, type RecordPlan, type Segment } from "./encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "./layout.ts";

/** A fanout of three endpoints: by default the first writes, and the others have a record each. */
interface FanoutPlan {
  capacity?: number;
  /** Where it begins, and whether its mode is `lose`. */
  start?: number;
  lose?: boolean;
  endpoints?: number;
  readers?: number;
  states?: number[];
  records?: RecordPlan[];
  /** Frames that are there, from a position on, and the number of the first. */
  frames?: FramePlan[];
  from?: number;
  floor?: number;
  era?: number;
  ended?: number;
  /** The `head` of each record; 0 where it is left out. */
  heads?: number[];
  writerWants?: number[];
  readersWant?: number;
  channel?: Partial<ChannelPlan>;
}

/** A fanout as bytes. */
export interface Fanout extends Segment {
  control: number;
  data: number;
  capacity: number;
  /** Where each frame begins. */
  at: number[];
}

const CONTROL = "fanout_control";

/** Builds a fanout. */
export function fanout(plan: FanoutPlan = {}): Fanout {
  const { capacity = 256, start = 0, lose = false, endpoints = 3, records } = plan;
  const { readers = endpoints - 1, states = [ATTACHED, VACANT, VACANT], frames = [] } = plan;
  const mode = lose ? limitOf("fanout_lose") : 0;
  const channel = { writer: 0, reader: NOBODY, capacity, readers, start: start + mode };
  const segment = buildSegment({
    endpoints,
    channels: [{ ...channel, ...plan.channel }],
    states,
    ...(records && { records }),
  });
  const { control, data } = segment.channels[0]!;
  const { bytes } = segment;
  let position = plan.from ?? start;
  const at = frames.map((frame) => {
    const begin = data + position % capacity;
    for (const byte of buildFrame(frame)) {
      bytes[data + position % capacity] = byte;
      position = (position + 1) % 2 ** 32;
    }
    return begin;
  });
  put(bytes, control, CONTROL, "tail", position);
  if (plan.floor !== undefined) put(bytes, control, CONTROL, "floor", plan.floor);
  if (plan.era !== undefined) put(bytes, control, CONTROL, "era", plan.era);
  if (plan.ended !== undefined) put(bytes, control, CONTROL, "ended", plan.ended);
  const want = little(plan.readersWant ?? 0, fieldOf(CONTROL, "readers_want").size);
  put(bytes, control, CONTROL, "readers_want", want);
  (plan.heads ?? []).forEach((head, index) =>
    put(bytes, recordOf({ control }, index), "fanout_reader", "head", head)
  );
  (plan.writerWants ?? []).forEach((wants, index) =>
    put(bytes, recordOf({ control }, index), "fanout_reader", "writer_wants", wants)
  );
  return { ...segment, control, data, capacity, at };
}

/** Where the record of a reader begins. */
export function recordOf({ control }: { control: number }, index: number): number {
  return control + sizeOf(CONTROL) + index * sizeOf("fanout_reader");
}

/** A position of a reader that has joined. */
export function joined(position: number): number {
  return position + limitOf("fanout_joined");
}

export const JOINING: number = limitOf("fanout_joining");

/** A message with a number, as in mode `lose`. */
export function numbered(
  content: string | Uint8Array,
  number: number,
  more: Partial<FramePlan> = {},
): FramePlan {
  const frame = whole(content, more);
  const extension = buildExtension(valueOf("extension_kind", "number"), little(number, 8));
  return { ...frame, flags: (frame.flags ?? 0) + EXTENDED, extension };
}

/** Texts with numbers from 0 on. */
export function texts(...contents: string[]): FramePlan[] {
  return contents.map((content, index) => numbered(utf8(content), index, { codec: 1 }));
}

/** The setting in which endpoint 1 reads a fanout. */
export function reads({ bytes }: Segment, more: Partial<Setting> = {}): Setting {
  const image = toImage(bytes);
  const operations: Operation[] = [{ read: true }];
  return { kind: "read", image, role: "fanout_reader", channel: 0, operations, ...more };
}

/** The setting in which endpoint 0 writes to one. */
export function writes(
  { bytes }: Segment,
  operations: Operation[],
  more: Partial<Setting> = {},
): Setting {
  const image = toImage(bytes);
  return { kind: "write", image, role: "fanout_writer", channel: 0, operations, ...more };
}

/** The writer places frames from a position on, and publishes; or the kit does, in its place. */
export function publishes(plan: Fanout, from: number, ...frames: FramePlan[]): Operation {
  const runs: Run[] = [];
  let tail = from;
  for (const frame of frames) {
    const bytes = buildFrame(frame);
    runs.push({ offset: plan.data + tail % plan.capacity, hex: toHex(bytes) });
    tail = (tail + bytes.length) % 2 ** 32;
  }
  return { set: [...runs, wordRun(plan, "tail", tail)] };
}

/** The same, and then `end`. */
export function ends(plan: Fanout, from: number, ...frames: FramePlan[]): Operation {
  const { set } = publishes(plan, from, ...frames, endFrame()) as { set: Run[] };
  const tail = new DataView(fromHex(set.at(-1)!.hex).buffer).getUint32(0, true);
  return { set: [...set.slice(0, -1), wordRun(plan, "ended", tail + 1), set.at(-1)!] };
}

/** Stores words of the control area. */
export function stores(plan: Fanout, words: Record<string, number>): Operation {
  return { set: Object.entries(words).map(([name, value]) => wordRun(plan, name, value)) };
}

/** Stores the `head` of a record. */
export function storesHead(plan: Fanout, index: number, value: number): Operation {
  return { set: [{ offset: recordOf(plan, index), hex: word(value) }] };
}

function wordRun({ control }: Fanout, name: string, value: number): Run {
  return { offset: control + fieldOf(CONTROL, name).offset, hex: word(value) };
}

/** A word of the control area must be this; of `readers_want`, its first. */
export function controlIs(plan: Fanout, name: string, value: number): Expected {
  return { ...wordRun(plan, name, value), about: name };
}

/** A word of a record must be this. */
export function recordIs(plan: Fanout, index: number, name: string, value: number): Expected {
  const { offset } = fieldOf("fanout_reader", name);
  return { offset: recordOf(plan, index) + offset, hex: word(value), about: `${name} of ${index}` };
}

// What the cases of `spec/property.md` are made with.

const PROPERTY = valueOf("channel_kind", "property");
export const SLOT_COUNT = limitOf("property_slot_count");
const HEADER = sizeOf("property_slot");

/** A slot as a case states it; what is left out follows from the value, or is 0. */
export interface SlotPlan {
  sequence?: number;
  size?: number;
  present?: number;
  codec?: number;
  reserved?: Uint8Array;
  value?: string | Uint8Array;
}

/** A segment whose first channel is a property. */
export interface PropertyPlan {
  endpoints?: number;
  /** By default the endpoint under test is 1, which reads, and the writer is attached. */
  states?: number[];
  records?: RecordPlan[];
  channel?: Partial<ChannelPlan>;
  /** Channels before and after it. */
  before?: ChannelPlan[];
  behind?: ChannelPlan[];
  version?: number;
  watchers?: number[];
  /** By the number of the slot. */
  slots?: Record<number, SlotPlan>;
}

/** A property as bytes, and where its parts stand. */
export interface Property extends Segment {
  /** The index of its channel. */
  channel: number;
  descriptor: number;
  control: number;
  data: number;
  /** Where each slot begins. */
  slots: number[];
}

/** A property as its creator chooses it. */
export function propertyOf(more: Partial<ChannelPlan> = {}): ChannelPlan {
  return { kind: PROPERTY, writer: 0, reader: NOBODY, capacity: 512, ...more };
}

/** Builds one. */
export function property(plan: PropertyPlan = {}): Property {
  const { endpoints = 2, states = [ATTACHED, VACANT], before = [], behind = [] } = plan;
  const channels = [...before, propertyOf(plan.channel), ...behind];
  const { records } = plan;
  const segment = buildSegment({ endpoints, channels, states, ...(records && { records }) });
  const channel = before.length;
  const { control, data, capacity } = segment.channels[channel]!;
  const size = Math.floor(capacity / SLOT_COUNT);
  const slots = Array.from({ length: SLOT_COUNT }, (_, index) => data + index * size);
  const { bytes } = segment;
  put(bytes, control, "property_control", "version", plan.version ?? 0);
  const { offset } = fieldOf("property_control", "watchers");
  for (const index of plan.watchers ?? []) {
    bytes[control + offset + (index >> 3)]! |= 1 << (index & 7);
  }
  for (const [index, slot] of Object.entries(plan.slots ?? {})) {
    fillSlot(bytes, slots[Number(index)]!, slot);
  }
  const descriptor = limitOf("endpoint_table_offset") + endpoints * sizeOf("endpoint_record") +
    channel * sizeOf("channel_descriptor");
  return { bytes, channels: segment.channels, channel, descriptor, control, data, slots };
}

function fillSlot(bytes: Uint8Array, at: number, slot: SlotPlan): void {
  const { value = "", sequence = 0, codec = 0, reserved } = slot;
  const payload = typeof value === "string" ? new TextEncoder().encode(value) : value;
  put(bytes, at, "property_slot", "sequence", sequence);
  put(bytes, at, "property_slot", "size", slot.size ?? payload.length);
  put(bytes, at, "property_slot", "present", slot.present ?? 1);
  put(bytes, at, "property_slot", "codec", codec);
  if (reserved !== undefined) put(bytes, at, "property_slot", "reserved", reserved);
  bytes.set(payload, at + HEADER);
}

/** The bytes of a slot that a set must leave: its header, and the value. */
export function slotIs(
  { slots }: Property,
  index: number,
  { value = "", sequence = 0, codec = 0, present = 1 }: SlotPlan,
): Expected[] {
  const payload = typeof value === "string" ? new TextEncoder().encode(value) : value;
  const bytes = new Uint8Array(HEADER + payload.length);
  fillSlot(bytes, 0, { value: payload, sequence, codec, present });
  return [{ offset: slots[index]!, hex: toHex(bytes), about: `slot ${index}` }];
}

/** Nothing may stand in a slot. */
export function slotIsBlank({ slots }: Property, index: number): Expected {
  return { offset: slots[index]!, zero: slots[1]! - slots[0]!, about: `slot ${index}` };
}

/** The version must be this. */
export function versionIs({ control }: Property, version: number): Expected {
  return { offset: control, hex: word(version), about: "version" };
}

/** These endpoints must have their bits in `watchers`, and no others. */
export function watchersAre({ control }: Property, ...endpoints: number[]): Expected {
  return { ...watch({ control }, ...endpoints), about: "watchers" };
}

/** The bits of these endpoints, and of no others, for somebody to store. */
export function watch({ control }: { control: number }, ...endpoints: number[]): Run {
  const { offset, size } = fieldOf("property_control", "watchers");
  const bytes = new Uint8Array(size);
  for (const index of endpoints) bytes[index >> 3]! |= 1 << (index & 7);
  return { offset: control + offset, hex: toHex(bytes) };
}

/** The writer, which is the kit, stores a version and the slot of that. */
export function sets({ control, slots }: Property, version: number, slot: SlotPlan): Operation {
  const { value = "" } = slot;
  const payload = typeof value === "string" ? new TextEncoder().encode(value) : value;
  const bytes = new Uint8Array(HEADER + payload.length);
  fillSlot(bytes, 0, { sequence: version, ...slot });
  return {
    set: [
      { offset: slots[version % SLOT_COUNT]!, hex: toHex(bytes) },
      { offset: control, hex: word(version) },
    ],
  };
}

/** The setting in which endpoint 1 gets. */
export function getting(
  { bytes, channel }: Property,
  operations: Operation[] = [{ get: true }],
  more: Partial<Setting> = {},
): Setting {
  const image = toImage(bytes);
  return { kind: "read", image, role: "property_reader", channel, operations, ...more };
}

/** The setting in which endpoint 0 sets. */
export function setting(
  { bytes, channel }: Property,
  operations: Operation[],
  more: Partial<Setting> = {},
): Setting {
  const image = toImage(bytes);
  return { kind: "write", image, role: "property_writer", channel, operations, ...more };
}

/** What a get must give: a value, by its codec, or none. */
export function gives(version: number, value?: Partial<MessageCase>): Drained {
  const item = { kind: valueOf("frame_kind", "data"), codec: 0, tag: 0, ...value };
  return { items: value === undefined ? [] : [item], version };
}

/** A text as a value. */
export function text(content: string): Partial<MessageCase> {
  return { codec: valueOf("codec", "text"), text: content };
}

/** The areas of a property must be as they were. */
export function areasAre({ bytes, control, data, slots }: Property): Expected[] {
  const size = SLOT_COUNT * (slots[1]! - slots[0]!);
  const areas: [number, number, string][] = [
    [control, sizeOf("property_control"), "control area"],
    [data, size, "byte area"],
  ];
  return areas.flatMap(([from, length, about]) => imageIs(bytes, from, from + length, about));
}
