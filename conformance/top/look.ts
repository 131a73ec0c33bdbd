/**
 * One look at the figures of a segment that others use, from outside: see `spec/meter.md`.
 *
 * It reads the file and does not map it, as the inspector does: no right to write is needed, and
 * nothing is stored. [meter.outside]
 *
 * @module
 */

import { Findings } from "../inspect/inspection.ts";
import { InputError } from "../inspect/input.ts";
import type { LiveMemory } from "../inspect/live.ts";
import { nameOf } from "../inspect/names.ts";
import { lookAtSegment } from "../inspect/segment.ts";
import { number } from "../reference/bytes.ts";
import { get } from "../reference/decode.ts";
import { descriptorAt, extentOf } from "../reference/encode.ts";
import { fieldOf, flagOf, limitOf, sizeOf, valueOf } from "../reference/layout.ts";

/** An endpoint at one moment. */
export interface EndpointLook {
  index: number;
  state: string;
  /** Why it failed; null where it has not. */
  reason: string | null;
  generation: number;
  bell: number;
  agent: number;
}

/** A ring at one moment. */
export interface RingLook {
  capacity: number;
  tail: number;
  head: number;
  /** Bytes that wait to be read; null where the cursors cannot be right. */
  used: number | null;
  /** Messages among them, and how long the first has waited; null where that was not looked at. */
  messages: number | null;
  oldest_us: number | null;
  /** Whether an end asks to be woken. */
  reader_asks: boolean;
  writer_asks: boolean;
}

/** A channel at one moment. */
export interface ChannelLook {
  index: number;
  kind: string;
  /** Endpoints; null where there is none, or any. */
  writer: number | null;
  reader: number | null;
  /** What is wrong with its descriptor. */
  fault: string | null;
  /** Null for channels of other kinds, and for those that are wrong. */
  ring: RingLook | null;
}

/** A segment at one moment. */
export interface Look {
  /** Milliseconds since the Unix epoch. */
  at: number;
  shape: string;
  size: number;
  endpoints: EndpointLook[];
  channels: ChannelLook[];
}

/** Queues of more bytes than this are not walked through. */
const WALK_MAX = 1 << 20;
const ALIGN = limitOf("frame_align");
const NONE = limitOf("endpoint_none");
const HEADER = sizeOf("frame_header");
const LAST = flagOf("frame_flag", "last");
const CANCEL = flagOf("frame_flag", "cancel");
const MESSAGES = ["data", "call", "return", "throw"].map((name) => valueOf("frame_kind", name));

/** @throws {InputError} if the memory holds no segment. */
export function look(memory: LiveMemory, now: number): Look {
  const size = memory.size();
  // The tables alone are read: the rest, which may be a gigabyte, stays blank.
  const bytes = new Uint8Array(size);
  bytes.set(memory.read(0, Math.min(size, sizeOf("segment_header"))));
  const load = (field: string) => get(bytes, 0, "segment_header", field);
  if (size >= limitOf("segment_size_min")) {
    const counts = [load("endpoint_count"), load("channel_count")] as const;
    const isSound = counts[0] <= limitOf("endpoint_count_max") &&
      counts[1] <= limitOf("channel_count_max");
    if (isSound) bytes.set(memory.read(0, Math.min(size, descriptorAt(...counts))));
  }
  const findings = new Findings(0);
  const options = { channel: -1, limit: 0, now };
  // [meter.outside_check]
  const { shape, header, endpoints } = lookAtSegment(bytes, options, findings);
  const fault = findings.faults.find(({ channel, endpoint }) =>
    channel === undefined && endpoint === undefined
  );
  if (fault !== undefined) throw new InputError(`it is no segment: ${fault.fact} (${fault.code})`);
  const faults = new Map(findings.faults.map(({ channel, fact }) => [channel, fact]));
  return {
    at: now,
    shape,
    size,
    endpoints: endpoints.map(({ index, state_name: state, reason, generation, bell, agent }) => {
      return { index, state, reason: reason ?? null, generation, bell, agent };
    }),
    channels: Array.from({ length: header.channel_count ?? 0 }, (_, index) => {
      const at = descriptorAt(header.endpoint_count!, index);
      return lookAtChannel(memory, bytes, { index, at, fault: faults.get(index) ?? null, now });
    }),
  };
}

function lookAtChannel(
  memory: LiveMemory,
  bytes: Uint8Array,
  { index, at, fault, now }: { index: number; at: number; fault: string | null; now: number },
): ChannelLook {
  const load = (field: string) => get(bytes, at, "channel_descriptor", field);
  const endOf = (end: number) => end === NONE ? null : end;
  const kind = load("kind");
  const isRing = kind === valueOf("channel_kind", "ring");
  const place = {
    control: load("control_offset"),
    data: load("data_offset"),
    capacity: load("data_size"),
  };
  return {
    index,
    kind: nameOf("channel_kind", kind) ?? `kind ${kind}`,
    writer: endOf(load("writer")),
    reader: endOf(load("reader")),
    fault,
    ring: isRing && fault === null ? lookAtRing(memory, place, now) : null,
  };
}

/** Where a ring lies. */
interface Place {
  control: number;
  data: number;
  capacity: number;
}

/** [meter.outside_queue] [meter.outside_frames] */
function lookAtRing(memory: LiveMemory, place: Place, now: number): RingLook {
  const { capacity } = place;
  const load = (field: string) =>
    number(memory.read(place.control + fieldOf("ring_control", field).offset, 4));
  const before = load("head");
  const tail = load("tail");
  const length = (tail - before) >>> 0;
  const copied = length <= Math.min(capacity, WALK_MAX)
    ? copy(memory, place, before, length)
    : null;
  const head = load("head");
  const isEmpty = ((tail - head) | 0) < 0;
  const distance = isEmpty ? 0 : (tail - head) >>> 0;
  const isValid = tail % ALIGN === 0 && head % ALIGN === 0 && distance <= capacity;
  const passed = (head - before) >>> 0;
  const known = isValid && copied !== null && passed <= copied.length
    ? count(copied.subarray(passed), now)
    : isValid && isEmpty
    ? { messages: 0, oldest: null }
    : undefined;
  return {
    capacity,
    tail,
    head,
    used: isValid ? distance : null,
    messages: known?.messages ?? null,
    oldest_us: known?.oldest ?? null,
    reader_asks: load("reader_wants") !== 0,
    writer_asks: load("writer_wants") !== 0,
  };
}

/** Bytes of the byte area from a position on, across its end. */
function copy(memory: LiveMemory, { data, capacity }: Place, from: number, size: number) {
  const at = from % capacity;
  const first = Math.min(size, capacity - at);
  const bytes = new Uint8Array(size);
  bytes.set(memory.read(data + at, first));
  bytes.set(memory.read(data, size - first), first);
  return bytes;
}

/** The messages that end among these frames, and how long the first has waited. */
function count(bytes: Uint8Array, now: number): { messages: number; oldest: number | null } {
  let messages = 0;
  let oldest: number | null = null;
  for (let at = 0; at + HEADER <= bytes.length;) {
    const load = (field: string) => get(bytes, at, "frame_header", field);
    const [kind, flags, time, extent] = [
      load("kind"),
      load("flags"),
      load("time"),
      extentOf(load("size")),
    ];
    if (extent > bytes.length - at) break;
    if (MESSAGES.includes(kind)) {
      if (oldest === null && time !== 0) oldest = waited(time, now);
      if ((flags & (LAST | CANCEL)) === LAST) messages++;
    }
    at += extent;
  }
  return { messages, oldest };
}

/** [frame.time] */
function waited(time: number, now: number): number {
  return Math.max(0, Number(BigInt.asIntN(32, BigInt(Math.trunc(now * 1000)) - BigInt(time))));
}
