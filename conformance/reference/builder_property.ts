/**
 * What the cases of `spec/property.md` are made with.
 *
 * @module
 */

import { ATTACHED, imageIs, VACANT } from "./builder.ts";
import { type Run, toHex, toImage, word } from "./bytes.ts";
import type { Drained, Expected, MessageCase, Operation, Setting } from "./case.ts";
import { buildSegment, type ChannelPlan, NOBODY, put, type RecordPlan } from "./encode.ts";
import type { Segment } from "./encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "./layout.ts";

export const PROPERTY = valueOf("channel_kind", "property");
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
  /** Channels before and behind it. */
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
