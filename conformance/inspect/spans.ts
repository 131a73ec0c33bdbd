/**
 * What each byte of a memory is: fields of structures, payloads, and what lies between them.
 *
 * @module
 */

import { number } from "../reference/bytes.ts";
import { sizeOf } from "../reference/layout.ts";
import { look } from "./inspect.ts";
import type { Channel, Extension, Frame, Inspection, InspectOptions } from "./inspection.ts";
import type { PropertySlot } from "./inspection.ts";
import {
  bitsOf,
  codecName,
  fieldsOf,
  kindName,
  nameOf,
  stateName,
  toCount,
  toEnd,
  toHexNumber,
  toIndexes,
} from "./names.ts";
import { quote, toDate, toPayload } from "./payload.ts";

/** A run of bytes with one meaning. */
export interface Span {
  offset: number;
  size: number;
  /** The structure: `header`, `endpoint 1`, `channel 0, frame at 0x400`. */
  place: string;
  /** The field in it, or what else the bytes are. */
  field: string;
  /** What the field says; empty where it is mere bytes. */
  value: string;
  /** Whether every line of it is worth its own text, as a payload's is. */
  isText: boolean;
}

/** Frames of a channel that are told apart, unless the caller wants more. */
const FRAMES = 64;

/** All bytes, in the order of the memory, each in one span. Nobody else may change them. */
export function spansOf(bytes: Uint8Array, options: InspectOptions): Span[] {
  const { channel: _, ...all } = options;
  const found = look(bytes, { ...all, limit: options.limit ?? FRAMES });
  const now = options.now ?? Date.now();
  const fields = found.as === "mailbox"
    ? mailboxSpans(bytes, found, now)
    : segmentSpans(bytes, found, now);
  return fill(bytes.length, fields, areasOf(found, bytes.length));
}

function structure(
  bytes: Uint8Array,
  at: number,
  name: string,
  place: string,
  now: number,
): Span[] {
  return fieldsOf(name).map(({ name: field, offset, size }) => {
    const from = at + offset;
    const there = Math.max(0, Math.min(size, bytes.length - from));
    const value = there < size
      ? "the memory ends here"
      : valueOf(name, field, bytes.slice(from, from + size), now);
    return { offset: from, size: there, place, field, value, isText: false };
  });
}

/** What the bytes of a field say. */
function valueOf(structure: string, field: string, bytes: Uint8Array, now: number): string {
  if (field === "magic") return quote(String.fromCharCode(...bytes));
  if (field === "rung" || field === "watchers") return toIndexes(bytes).join(" ") || "nobody";
  if (bytes.length > 8 || field === "reserved") return "";
  const value = number(bytes);
  if (structure === "header_extension") {
    return field === "kind" ? toHexNumber(value) : field === "size" ? toCount(value) : "";
  }
  if (field === "total" && bytes.every((byte) => byte === 0xff)) return "not known yet";
  const enums: Record<string, string> = {
    "segment_header.ready": "segment_ready",
    "channel_descriptor.kind": "channel_kind",
    "mailbox_header.status": "mailbox_status",
    "mailbox_header.signal": "mailbox_signal",
  };
  const group = enums[`${structure}.${field}`];
  if (group !== undefined) return `${value | 0} ${nameOf(group, value) ?? "unknown"}`;
  if (field === "state") return stateName(value);
  if (field === "features") return toHexNumber(value);
  if (structure === "channel_descriptor" && (field === "writer" || field === "reader")) {
    return toEnd(value);
  }
  if (field === "wakes") return bitsOf("wake_mechanism", value).join(" ") || "none";
  if (structure === "property_slot" && field === "codec") return codecName(value);
  if (structure === "frame_header") {
    if (field === "kind") return kindName(value);
    if (field === "flags") return bitsOf("frame_flag", value).join("|") || "none";
    if (field === "codec") return codecName(value);
    if (field === "time") return toDate(value, now) ?? "none";
  }
  if (field.endsWith("_wants")) {
    return value === 0 ? "not asking" : `asks for ${(value & ~1) >>> 0}`;
  }
  return toCount(value);
}

function segmentSpans(bytes: Uint8Array, found: Inspection, now: number): Span[] {
  const spans = structure(bytes, 0, "segment_header", "header", now);
  for (const { index, offset } of found.endpoints ?? []) {
    spans.push(...structure(bytes, offset, "endpoint_record", `endpoint ${index}`, now));
  }
  for (const channel of found.channels ?? []) {
    const place = `channel ${channel.index}`;
    spans.push(...structure(bytes, channel.offset, "channel_descriptor", place, now));
    if (channel.property !== undefined) {
      spans.push(...structure(bytes, channel.control_offset, "property_control", place, now));
      for (const slot of channel.property.slots) {
        spans.push(...slotSpans(bytes, `${place}, slot ${slot.index}`, slot, now));
      }
    }
    if (channel.ring === undefined) continue;
    spans.push(...structure(bytes, channel.control_offset, "ring_control", place, now));
    for (const frame of channel.ring.frames) {
      if (frame.fault === undefined) spans.push(...frameSpans(bytes, channel, frame, now));
      else spans.push(...headerSpans(bytes, channel, frame, now));
    }
  }
  return spans;
}

/** The header of a frame that is not in order: how far it reaches is not known. */
function headerSpans(bytes: Uint8Array, channel: Channel, frame: Frame, now: number): Span[] {
  const place = `channel ${channel.index}, frame at ${toHexNumber(frame.offset)} with a fault`;
  return structure(bytes, frame.offset, "frame_header", place, now);
}

/** A slot of a property; one that holds nothing is mere bytes, which nobody has cleared. */
function slotSpans(bytes: Uint8Array, place: string, slot: PropertySlot, now: number): Span[] {
  if (slot.holds === "nothing") return [];
  const spans = structure(bytes, slot.offset, "property_slot", place, now);
  const { offset, size, form, preview } = slot.value;
  const isText = form === "text";
  const value = { offset, size, place, field: "value", value: isText ? preview : "", isText };
  return [...spans, value];
}

function frameSpans(bytes: Uint8Array, channel: Channel, frame: Frame, now: number): Span[] {
  const place = `channel ${channel.index}, frame at ${toHexNumber(frame.offset)}`;
  const spans = structure(bytes, frame.offset, "frame_header", place, now);
  const { offset, size } = frame.payload;
  let begin = frame.offset + sizeOf("frame_header");
  if (frame.extension !== undefined) {
    spans.push(...extensionSpans(bytes, frame.extension, place, now));
    begin += frame.extension.size;
  }
  if (offset > begin) spans.push(...structure(bytes, begin, "message_preamble", place, now));
  const isText = frame.payload.form === "text";
  if (size > 0) {
    const codec = isText ? frame.codec : 0;
    const { preview } = toPayload(bytes, offset, size, codec);
    const value = isText ? preview : "";
    spans.push({ offset, size, place, field: "payload", value, isText });
  }
  const end = frame.offset + frame.extent;
  const rest = end - offset - size;
  // All that a pad holds is fill.
  const fill = {
    offset: offset + size,
    size: rest,
    place,
    field: "fill",
    value: "",
    isText: false,
  };
  return rest > 0 ? [...spans, fill] : spans;
}

function extensionSpans(
  bytes: Uint8Array,
  { offset, size }: Extension,
  place: string,
  now: number,
): Span[] {
  const own = structure(bytes, offset, "header_extension", `${place}, extension`, now);
  const [at, rest] = [offset + sizeOf("header_extension"), size - sizeOf("header_extension")];
  if (rest === 0) return own;
  const field = "content goes on";
  const more = { offset: at, size: rest, place: `${place}, extension`, field };
  return [...own, { ...more, value: "", isText: false }];
}

function mailboxSpans(bytes: Uint8Array, { mailbox }: Inspection, now: number): Span[] {
  const spans = structure(bytes, 0, "mailbox_header", "mailbox", now);
  const part = mailbox?.part;
  if (part === undefined) return spans;
  const { offset, size, preview: value } = part;
  return [...spans, { offset, size, place: "mailbox", field: "part", value, isText: true }];
}

/** A range that holds spans, and what the rest of it is. */
interface Area {
  begin: number;
  end: number;
  place: string;
  rest: string;
}

/** The areas in the order of the memory, without any bytes twice. */
function areasOf(found: Inspection, size: number): Area[] {
  if (found.as === "mailbox") {
    return [{ begin: 0, end: size, place: "mailbox", rest: "byte area, not in use" }];
  }
  const areas: Area[] = [];
  for (const channel of found.channels ?? []) {
    const { index, control_offset, control_size, data_offset, data_size, ring } = channel;
    const place = `channel ${index}`;
    if (control_offset + control_size > size || data_offset + data_size > size) continue;
    const area = (begin: number, end: number, rest: string) => {
      if (end > begin) areas.push({ begin, end, place, rest });
    };
    const control = ring === undefined ? "control area" : "between the control words";
    area(control_offset, control_offset + control_size, control);
    const data = (from: number, to: number, rest: string) =>
      area(data_offset + from, data_offset + to, rest);
    if (ring === undefined || ring.used === null) {
      data(0, data_size, "byte area");
      continue;
    }
    const { head_place: head, used } = ring;
    const end = head + used;
    const published = "published, not looked at";
    data(0, Math.max(0, end - data_size), published);
    data(Math.max(0, end - data_size), head, "free");
    data(head, Math.min(end, data_size), published);
    data(Math.min(end, data_size), data_size, "free");
  }
  const stated = found.header?.size ?? 0;
  if (stated > 0 && stated < size) {
    areas.push({ begin: stated, end: size, place: "memory", rest: "behind the segment" });
  }
  areas.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let at = 0;
  return areas.flatMap((area) => {
    const begin = Math.max(at, area.begin);
    at = Math.max(at, area.end);
    return begin < area.end ? [{ ...area, begin }] : [];
  });
}

/** Gives every byte to one span: what is broken may claim some twice, and leaves others out. */
function fill(size: number, fields: Span[], areas: Area[]): Span[] {
  const spans: Span[] = [];
  let at = 0;
  let area = 0;
  const gap = (to: number) => {
    while (at < to) {
      while (area < areas.length && areas[area]!.end <= at) area += 1;
      const next = areas[area];
      const isInside = next !== undefined && next.begin <= at;
      const end = Math.min(to, isInside ? next.end : next?.begin ?? to);
      const place = isInside ? next.place : "segment";
      const field = isInside ? next.rest : "belongs to nothing";
      spans.push({ offset: at, size: end - at, place, field, value: "", isText: false });
      at = end;
    }
  };
  const sorted = fields.filter((span) => span.size > 0).sort((a, b) => a.offset - b.offset);
  for (const span of sorted) {
    gap(Math.min(span.offset, size));
    const cut = at - span.offset;
    const end = Math.min(span.offset + span.size, size);
    if (cut > 0 && at >= end) continue;
    spans.push({ ...span, offset: at, size: end - at });
    at = end;
  }
  gap(size);
  return spans;
}
