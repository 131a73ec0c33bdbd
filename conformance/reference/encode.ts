/**
 * The reference encoder: builds the bytes of a segment, of frames in a ring, and of a mailbox from
 * a description. It checks nothing, so that it can also build what nobody may write.
 *
 * @module
 */

import { concat, little } from "./bytes.ts";
import { fieldOf, flagOf, limitOf, reasonOf, sizeOf, valueOf } from "./layout.ts";

/** The end of a channel that names no endpoint. */
export const NOBODY: number = limitOf("endpoint_none");

/** A channel as its creator chooses it, and, for odd placements, what `place` would compute. */
export interface ChannelPlan {
  writer: number;
  reader: number;
  capacity: number;
  label?: number;
  start?: number;
  /** Makes it a fanout with so many records, and its reader nobody. */
  readers?: number;
  kind?: number;
  /** Of a property. */
  name?: string;
  control_offset?: number;
  control_size?: number;
  data_offset?: number;
}

/** The fields of an endpoint record that a plan states, by their names. */
export type RecordPlan = Record<string, number | Uint8Array>;

/** A segment to build. */
export interface SegmentPlan {
  endpoints: number;
  channels: ChannelPlan[];
  /** The `state` words, by endpoint; the rest are vacant. */
  states?: number[];
  /** Other fields of the records, by endpoint; the rest are 0. */
  records?: RecordPlan[];
  /** Bytes beyond what `place` computes. */
  extra?: number;
}

/** Where the areas of a channel stand. */
export interface Placed extends Required<Omit<ChannelPlan, "readers">> {
  control: number;
  data: number;
}

/** A segment as bytes. */
export interface Segment {
  bytes: Uint8Array;
  channels: Placed[];
}

/**
 * A frame as a case states it; what is left out is 0, and `size` that of all that stands after
 * the header.
 */
export interface FramePlan {
  kind: number;
  flags?: number;
  codec?: number;
  reserved?: number;
  tag?: number;
  time?: number;
  size?: number;
  payload?: Uint8Array;
  /** A header extension before the payload; whoever states one states the flag as well. */
  extension?: Uint8Array;
}

/** Writes a field of a structure that begins at `at`. */
export function put(
  bytes: Uint8Array,
  at: number,
  structure: string,
  field: string,
  value: number | Uint8Array,
): void {
  const { offset, size } = fieldOf(structure, field);
  bytes.set(typeof value === "number" ? little(value, size) : value, at + offset);
}

/** Where the record of an endpoint begins. */
export function recordAt(index: number): number {
  return limitOf("endpoint_table_offset") + index * sizeOf("endpoint_record");
}

/** Where a channel descriptor begins. */
export function descriptorAt(endpoints: number, index: number): number {
  return recordAt(endpoints) + index * sizeOf("channel_descriptor");
}

/** The `state` word of a failed endpoint. */
export function failed(reason: string): number {
  return valueOf("endpoint_state", "failed") + 2 ** limitOf("reason_shift") * reasonOf(reason);
}

/** Builds a ready segment, its areas where `place` puts them unless the plan says otherwise. */
export function buildSegment(plan: SegmentPlan): Segment {
  const { channels, size } = place(plan);
  const bytes = new Uint8Array(size + (plan.extra ?? 0));
  put(bytes, 0, "segment_header", "magic", new TextEncoder().encode("MILLRACE"));
  put(bytes, 0, "segment_header", "ready", valueOf("segment_ready", "ready"));
  put(bytes, 0, "segment_header", "version_major", 1);
  put(bytes, 0, "segment_header", "size", bytes.length);
  put(bytes, 0, "segment_header", "endpoint_count", plan.endpoints);
  put(bytes, 0, "segment_header", "channel_count", channels.length);
  (plan.states ?? []).forEach((state, index) =>
    put(bytes, recordAt(index), "endpoint_record", "state", state)
  );
  (plan.records ?? []).forEach((record, index) => {
    for (const [field, value] of Object.entries(record)) {
      put(bytes, recordAt(index), "endpoint_record", field, value);
    }
  });
  channels.forEach((channel, index) => {
    const at = descriptorAt(plan.endpoints, index);
    put(bytes, at, "channel_descriptor", "kind", channel.kind);
    put(bytes, at, "channel_descriptor", "writer", channel.writer);
    put(bytes, at, "channel_descriptor", "reader", channel.reader);
    put(bytes, at, "channel_descriptor", "control_offset", channel.control);
    put(bytes, at, "channel_descriptor", "control_size", channel.control_size);
    put(bytes, at, "channel_descriptor", "data_offset", channel.data);
    put(bytes, at, "channel_descriptor", "data_size", channel.capacity);
    put(bytes, at, "channel_descriptor", "label", channel.label);
    put(bytes, at, "channel_descriptor", "start", channel.start);
    if (channel.name !== "") {
      const name = new TextEncoder().encode(channel.name);
      put(bytes, channel.control, "property_control", "name_size", name.length);
      put(bytes, channel.control, "property_control", "name", name);
    }
    if (channel.kind === valueOf("channel_kind", "fanout")) {
      const position = channel.start - channel.start % 16;
      put(bytes, channel.control, "fanout_control", "tail", position);
      put(bytes, channel.control, "fanout_control", "floor", position);
      put(bytes, channel.control, "fanout_control", "era", Math.floor(position / 2 ** 31));
    }
    if (channel.kind !== valueOf("channel_kind", "ring")) return;
    put(bytes, channel.control, "ring_control", "tail", channel.start);
    put(bytes, channel.control, "ring_control", "head", channel.start);
  });
  return { bytes, channels };
}

/** `place` of segment.md. */
function place(plan: SegmentPlan): { channels: Placed[]; size: number } {
  const up = (offset: number) => Math.ceil(offset / 128) * 128;
  let offset = descriptorAt(plan.endpoints, plan.channels.length);
  const channels = plan.channels.map(({ readers, ...stated }) => {
    const records = (readers ?? 0) * sizeOf("fanout_reader");
    const channel = readers === undefined ? stated : {
      kind: valueOf("channel_kind", "fanout"),
      control_size: sizeOf("fanout_control") + records,
      ...stated,
    };
    const isProperty = channel.kind === valueOf("channel_kind", "property");
    const own = sizeOf(isProperty ? "property_control" : "ring_control");
    const size = channel.control_size ?? own;
    offset = up(offset);
    const control = channel.control_offset ?? offset;
    offset = up(offset + size);
    const data = channel.data_offset ?? offset;
    offset += up(channel.capacity);
    return {
      label: 0,
      start: 0,
      name: "",
      kind: valueOf("channel_kind", "ring"),
      ...channel,
      control_size: size,
      control_offset: control,
      data_offset: data,
      control,
      data,
    };
  });
  return { channels, size: up(offset) };
}

/** The bytes of a frame: header, header extension, payload, fill of 0. */
export function buildFrame(frame: FramePlan): Uint8Array {
  const { extension = new Uint8Array(), payload: content = new Uint8Array() } = frame;
  const payload = concat([extension, content]);
  const bytes = new Uint8Array(extentOf(payload.length));
  put(bytes, 0, "frame_header", "size", frame.size ?? payload.length);
  put(bytes, 0, "frame_header", "kind", frame.kind);
  put(bytes, 0, "frame_header", "flags", frame.flags ?? 0);
  put(bytes, 0, "frame_header", "codec", frame.codec ?? 0);
  put(bytes, 0, "frame_header", "reserved", frame.reserved ?? 0);
  put(bytes, 0, "frame_header", "tag", frame.tag ?? 0);
  put(bytes, 0, "frame_header", "time", frame.time ?? 0);
  bytes.set(payload, sizeOf("frame_header"));
  return bytes;
}

/** Bytes that a frame takes in the ring. */
export function extentOf(size: number): number {
  return Math.ceil((sizeOf("frame_header") + size) / 16) * 16;
}

/**
 * Puts frames into a ring one after the other, from a position on, and stores `tail`. The bytes go
 * around the end of the byte area wherever it comes: pads are up to the caller. Returns where each
 * frame begins in the segment.
 */
export function fillRing(
  segment: Segment,
  index: number,
  frames: FramePlan[],
  from: number = segment.channels[index]!.start,
): number[] {
  const { control, data, capacity } = segment.channels[index]!;
  let position = from;
  const places = frames.map((frame) => {
    const at = data + position % capacity;
    for (const byte of buildFrame(frame)) {
      segment.bytes[data + position % capacity] = byte;
      position = (position + 1) % 2 ** 32;
    }
    return at;
  });
  put(segment.bytes, control, "ring_control", "tail", position);
  return places;
}

/** The `total` of a message whose size is not known when it begins: 2^64 - 1. */
export const TOTAL_UNKNOWN: Uint8Array = new Uint8Array(fieldOf("message_preamble", "total").size)
  .fill(0xff);

/** The first payload of a multipart message: the preamble and a part. */
export function withPreamble(total: number | Uint8Array, part: Uint8Array): Uint8Array {
  const head = new Uint8Array(sizeOf("message_preamble"));
  put(head, 0, "message_preamble", "total", total);
  return Uint8Array.of(...head, ...part);
}

/** A header extension: its size and kind, and `content`, at least the eight bytes that all have. */
export function buildExtension(kind: number, content: Uint8Array, size?: number): Uint8Array {
  const begin = fieldOf("header_extension", "content").offset;
  const bytes = new Uint8Array(Math.ceil((begin + Math.max(8, content.length)) / 16) * 16);
  put(bytes, 0, "header_extension", "size", size ?? bytes.length);
  put(bytes, 0, "header_extension", "kind", kind);
  bytes.set(content, begin);
  return bytes;
}

/** The words of a mailbox that a case states; the rest are 0. */
export interface MailboxPlan {
  size: number;
  status?: number;
  signal?: number;
  length?: number;
  part_count?: number;
  part_index?: number;
  reserved?: Uint8Array;
  part?: Uint8Array;
}

/** Builds the section of a mailbox. */
export function buildMailbox({ size, part, ...words }: MailboxPlan): Uint8Array {
  const bytes = new Uint8Array(size);
  for (const [field, value] of Object.entries(words)) {
    const isNegative = typeof value === "number" && value < 0;
    put(bytes, 0, "mailbox_header", field, isNegative ? value + 2 ** 32 : value);
  }
  bytes.set(part ?? [], sizeOf("mailbox_header"));
  return bytes;
}

/** `data`, `end` and the like. */
export function kindOf(name: string): number {
  return valueOf("frame_kind", name);
}

/** `first` and `last`: the only frame of a message. */
export const FIRST = flagOf("frame_flag", "first");
export const LAST = flagOf("frame_flag", "last");
export const CANCEL = flagOf("frame_flag", "cancel");
export const EXTENDED = flagOf("frame_flag", "extended");
export const WHOLE = FIRST + LAST;
