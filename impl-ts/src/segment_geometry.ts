/**
 * What a segment consists of, where its parts stand, and the checks of a header that anybody may
 * have written.
 *
 * @module
 */

import { SegmentError } from "./error.ts";
import * as layout from "./layout.ts";

/**
 * One channel, as its creator chooses it. Sizes in bytes.
 *
 * @example
 * ```ts
 * import { type ChannelGeometry, Segment } from "@millrace/millrace";
 *
 * const orders: ChannelGeometry = { writer: 0, reader: 1, capacity: 4096, label: 1 };
 * const notes: ChannelGeometry = { writer: 0, reader: 2, capacity: 256, label: 2 };
 * const segment = Segment.allocate({ endpoints: 3, channels: [orders, notes] });
 * const found = segment.channels.find(({ label }) => label === 2);
 * console.log(found?.reader, found?.dataSize); // 2 256
 * ```
 */
export interface ChannelGeometry {
  /** Index of the endpoint that writes. */
  readonly writer: number;
  /** Index of the endpoint that reads. */
  readonly reader: number;
  /** Capacity of the ring: a power of two from 256 to 2^30. */
  readonly capacity: number;
  /** The application's own number for the channel, a `u32`. Default 0. */
  readonly label?: number;
  /** Position at which both cursors begin: a `u32`, a multiple of 16. Default 0. */
  readonly start?: number;
}

/**
 * What a creator chooses: how many endpoints, and the channels between them.
 *
 * @example
 * ```ts
 * import { type Geometry, Reader, Segment, Writer } from "@millrace/millrace";
 *
 * // A ring of three threads, each of which writes to the next one.
 * const geometry: Geometry = {
 *   endpoints: 3,
 *   channels: [0, 1, 2].map((i) => ({ writer: i, reader: (i + 1) % 3, capacity: 1024 })),
 * };
 * const segment = Segment.allocate(geometry);
 * using writer = Writer.attach<string>(segment, { channel: 1 });
 * using reader = Reader.attach<string>(segment, { channel: 1 }); // usually in another thread
 * writer.write("from 1 to 2");
 * console.log(reader.read()); // "from 1 to 2"
 * ```
 */
export interface Geometry {
  /** From 1 to 256. */
  readonly endpoints: number;
  /** At most 1,024. */
  readonly channels: readonly ChannelGeometry[];
}

/**
 * A channel as it stands in a segment. Offsets count bytes from the start of the segment.
 *
 * @example
 * ```ts
 * import { type Channel, Segment } from "@millrace/millrace";
 *
 * const describe = ({ writer, reader, dataSize }: Channel) =>
 *   `${writer} to ${reader}: ${dataSize}`;
 * const channels = [{ writer: 0, reader: 1, capacity: 256 }];
 * const segment = Segment.allocate({ endpoints: 2, channels });
 * console.log(segment.channels.map(describe).join()); // "0 to 1: 256"
 * ```
 */
export interface Channel {
  /** The kind: 1 is a ring. Channels of other kinds are range-checked and left alone. */
  readonly kind: number;
  /** Index of the endpoint that writes; of another kind than a ring, it may name nobody. */
  readonly writer: number;
  /** Index of the endpoint that reads; of another kind than a ring, it may name nobody. */
  readonly reader: number;
  /** Where the control words stand. */
  readonly controlOffset: number;
  /** Bytes of the control area. */
  readonly controlSize: number;
  /** Where the byte area stands. */
  readonly dataOffset: number;
  /** Bytes of the byte area: the capacity of a ring. */
  readonly dataSize: number;
  /** The application's own number. */
  readonly label: number;
  /** Position at which both cursors began. */
  readonly start: number;
}

/** The private copy of a segment's header and descriptors, made once and never read again. */
export interface Plan {
  readonly size: number;
  readonly endpointCount: number;
  readonly channels: readonly Channel[];
}

/**
 * Returns the bytes that a segment of this geometry takes, a multiple of 128.
 *
 * @throws {RangeError} if the geometry is outside the limits of the specification.
 * @throws {SegmentError} `segment.size`, if the segment would be larger than 4,294,967,168 bytes.
 *
 * @example
 * ```ts
 * import { segmentSize } from "@millrace/millrace";
 *
 * // One ring of 256 bytes between two endpoints.
 * segmentSize({ endpoints: 2, channels: [{ writer: 0, reader: 1, capacity: 256 }] }); // 1280
 * ```
 */
export function segmentSize(geometry: Geometry): number {
  return place(geometry).size;
}

/** Computes where everything of a geometry stands. [segment.place] */
export function place(geometry: Geometry): Plan {
  const { endpoints, channels } = geometry;
  requireInteger("endpoints", endpoints, 1, layout.ENDPOINT_COUNT_MAX);
  requireInteger("channels.length", channels.length, 0, layout.CHANNEL_COUNT_MAX);
  let offset = tablesEnd(endpoints, channels.length);
  const placed: Channel[] = [];
  for (const channel of channels) {
    const { writer, reader, capacity, label = 0, start = 0 } = channel;
    requireInteger("writer", writer, 0, endpoints - 1);
    requireInteger("reader", reader, 0, endpoints - 1);
    if (writer === reader) throw new RangeError(`Cannot place channel: both ends are ${writer}`);
    requireCapacity(capacity);
    requireInteger("label", label, 0, 0xffffffff);
    requireInteger("start", start, 0, 0xffffffff);
    if (start % layout.FRAME_ALIGN !== 0) {
      throw new RangeError(`Cannot place channel: start ${start} is not a multiple of 16`);
    }
    const controlOffset = roundUp(offset);
    const dataOffset = controlOffset + layout.RING_CONTROL_SIZE;
    offset = dataOffset + roundUp(capacity);
    placed.push({
      kind: layout.CHANNEL_KIND_RING,
      writer,
      reader,
      controlOffset,
      controlSize: layout.RING_CONTROL_SIZE,
      dataOffset,
      dataSize: capacity,
      label,
      start,
    });
  }
  const size = roundUp(offset);
  if (size > layout.SEGMENT_SIZE_MAX) {
    throw new SegmentError("segment.size", `Cannot place segment: ${size} bytes are too many`);
  }
  return { size, endpointCount: endpoints, channels: placed };
}

/**
 * Writes the header but `ready`, the records, the descriptors and the control words. Blank says
 * only that `ready` is 0: whatever else stands there is zeroed. The byte areas need no zeroes, as
 * nothing in them counts before a cursor covers it. [segment.write]
 */
export function writePlan(plan: Plan, words: Int32Array, bytes: Uint8Array): void {
  bytes.fill(0, 0, layout.SEGMENT_READY_OFFSET);
  bytes.fill(0, layout.SEGMENT_READY_OFFSET + 4, plan.channels[0]?.controlOffset ?? plan.size);
  for (let i = 0; i < layout.SEGMENT_MAGIC_SIZE; i++) bytes[i] = MAGIC.charCodeAt(i);
  words[layout.SEGMENT_VERSION_MAJOR_OFFSET >> 2] = layout.VERSION_MAJOR |
    (layout.VERSION_MINOR << 16);
  words[layout.SEGMENT_SIZE_OFFSET >> 2] = plan.size;
  words[layout.SEGMENT_ENDPOINT_COUNT_OFFSET >> 2] = plan.endpointCount;
  words[layout.SEGMENT_CHANNEL_COUNT_OFFSET >> 2] = plan.channels.length;
  let at = recordOffset(plan.endpointCount);
  for (const channel of plan.channels) {
    const { controlOffset, start } = channel;
    bytes.fill(0, controlOffset, controlOffset + channel.controlSize);
    // Member by member: a loop over their names takes a fresh thread four times as long.
    words[(at + layout.CHANNEL_KIND_OFFSET) >>> 2] = channel.kind;
    words[(at + layout.CHANNEL_WRITER_OFFSET) >>> 2] = channel.writer;
    words[(at + layout.CHANNEL_READER_OFFSET) >>> 2] = channel.reader;
    words[(at + layout.CHANNEL_CONTROL_OFFSET_OFFSET) >>> 2] = controlOffset;
    words[(at + layout.CHANNEL_CONTROL_SIZE_OFFSET) >>> 2] = channel.controlSize;
    words[(at + layout.CHANNEL_DATA_OFFSET_OFFSET) >>> 2] = channel.dataOffset;
    words[(at + layout.CHANNEL_DATA_SIZE_OFFSET) >>> 2] = channel.dataSize;
    words[(at + layout.CHANNEL_LABEL_OFFSET) >>> 2] = channel.label;
    words[(at + layout.CHANNEL_START_OFFSET) >>> 2] = start;
    // [ring.start]
    const control = controlOffset >>> 2;
    Atomics.store(words, control + layout.RING_TAIL_WORD, start);
    Atomics.store(words, control + layout.RING_HEAD_WORD, start);
    at += layout.CHANNEL_DESCRIPTOR_SIZE;
  }
}

/**
 * Loads the header and the descriptors once and checks them in the order of the specification's
 * table, from `magic` to the overlaps. Nothing is allocated before its count is checked.
 * [segment.check]
 *
 * @throws {SegmentError} with the code of the first check that fails.
 */
export function readPlan(words: Int32Array, bytes: Uint8Array, memorySize: number): Plan {
  for (let i = 0; i < layout.SEGMENT_MAGIC_SIZE; i++) {
    if (bytes[i] !== MAGIC.charCodeAt(i)) refuse("segment.magic", "the magic is missing");
  }
  const major = words[layout.SEGMENT_VERSION_MAJOR_OFFSET >> 2]! & 0xffff;
  if (major !== layout.VERSION_MAJOR) refuse("segment.version", `it has version ${major}`);
  const required = load(words, layout.SEGMENT_REQUIRED_FEATURES_OFFSET);
  if (required !== 0) refuse("segment.feature", `it requires features 0x${required.toString(16)}`);
  const size = load(words, layout.SEGMENT_SIZE_OFFSET);
  if (size % layout.SEGMENT_ALIGN !== 0 || size > memorySize) {
    refuse("segment.size", `it states ${size} bytes, the memory has ${memorySize}`);
  }
  const endpointCount = load(words, layout.SEGMENT_ENDPOINT_COUNT_OFFSET);
  const channelCount = load(words, layout.SEGMENT_CHANNEL_COUNT_OFFSET);
  if (
    endpointCount < 1 || endpointCount > layout.ENDPOINT_COUNT_MAX ||
    channelCount > layout.CHANNEL_COUNT_MAX || tablesEnd(endpointCount, channelCount) > size
  ) {
    refuse("segment.table", `${endpointCount} endpoints, ${channelCount} channels, ${size} bytes`);
  }
  const channels: Channel[] = [];
  const areas: number[] = [];
  const first = tablesEnd(endpointCount, channelCount);
  let at = recordOffset(endpointCount);
  for (; channels.length < channelCount; at += layout.CHANNEL_DESCRIPTOR_SIZE) {
    const channel = readChannel(words, at);
    addArea(areas, channel.controlOffset, channel.controlSize, first, size);
    addArea(areas, channel.dataOffset, channel.dataSize, first, size);
    checkRing(channel, endpointCount); // others may be anything [segment.unknown_kind]
    channels.push(channel);
  }
  return { size, endpointCount, channels };
}

/** Offset of an endpoint's record. */
export function recordOffset(index: number): number {
  return layout.ENDPOINT_TABLE_OFFSET + index * layout.ENDPOINT_RECORD_SIZE;
}

/** The other endpoints at the ends of all channels that name this one. [segment.peers] */
export function peersOf({ endpointCount, channels }: Plan, index: number): number[] {
  const peers: number[] = [];
  for (const { writer, reader } of channels) {
    const peer = writer === index ? reader : reader === index ? writer : index;
    // An index beyond the table names nobody.
    if (peer !== index && peer < endpointCount && !peers.includes(peer)) peers.push(peer);
  }
  return peers;
}

/** Whether two plans agree in everything that a geometry chooses. [segment.same_geometry] */
export function samePlan(a: Plan, b: Plan): boolean {
  return a.endpointCount === b.endpointCount && a.channels.length === b.channels.length &&
    a.channels.every((channel, index) => {
      const other = b.channels[index]!;
      // Where the areas stand follows from their sizes, or is the business of who made it.
      return channel.kind === other.kind && channel.writer === other.writer &&
        channel.reader === other.reader && channel.controlSize === other.controlSize &&
        channel.dataSize === other.dataSize && channel.label === other.label &&
        channel.start === other.start;
    });
}

/** Throws unless the value is a capacity that a ring may have. */
export function requireCapacity(value: number): void {
  requireInteger("capacity", value, layout.RING_CAPACITY_MIN, layout.RING_CAPACITY_MAX);
  if (!isPowerOfTwo(value)) throw new RangeError(`capacity must be a power of two: ${value}`);
}

/** Throws unless the value is an integer within the bounds, both included. */
export function requireInteger(
  name: string,
  value: number,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`${name} must be an integer from ${min} to ${max}: ${value}`);
  }
}

const MAGIC = "MILLRACE";

function tablesEnd(endpointCount: number, channelCount: number): number {
  return recordOffset(endpointCount) + channelCount * layout.CHANNEL_DESCRIPTOR_SIZE;
}

function roundUp(offset: number): number {
  // Division and not a mask: offsets go beyond 2^31.
  return Math.ceil(offset / layout.SEGMENT_ALIGN) * layout.SEGMENT_ALIGN;
}

function isPowerOfTwo(value: number): boolean {
  return value > 0 && (value & (value - 1)) === 0;
}

function load(words: Int32Array, offset: number): number {
  return words[offset >>> 2]! >>> 0;
}

function readChannel(words: Int32Array, at: number): Channel {
  return {
    kind: load(words, at + layout.CHANNEL_KIND_OFFSET),
    writer: load(words, at + layout.CHANNEL_WRITER_OFFSET),
    reader: load(words, at + layout.CHANNEL_READER_OFFSET),
    controlOffset: load(words, at + layout.CHANNEL_CONTROL_OFFSET_OFFSET),
    controlSize: load(words, at + layout.CHANNEL_CONTROL_SIZE_OFFSET),
    dataOffset: load(words, at + layout.CHANNEL_DATA_OFFSET_OFFSET),
    dataSize: load(words, at + layout.CHANNEL_DATA_SIZE_OFFSET),
    label: load(words, at + layout.CHANNEL_LABEL_OFFSET),
    start: load(words, at + layout.CHANNEL_START_OFFSET),
  };
}

function refuse(code: SegmentError["code"], what: string): never {
  throw new SegmentError(code, `Cannot attach segment: ${what}`);
}

/**
 * Checks an area, and puts it among those before: pairs of where one begins and ends, in order. It
 * comes last where a creator has placed them as `place` does.
 */
function addArea(areas: number[], offset: number, size: number, first: number, most: number): void {
  const end = offset + size; // Doubles hold the sum of two u32 exactly: it cannot overflow.
  if (offset % layout.SEGMENT_ALIGN !== 0 || offset < first || end > most) {
    refuse("segment.channel", `an area of ${size} bytes at ${offset}`);
  }
  if (size === 0) return;
  let at = areas.length;
  while (at > 0 && areas[at - 2]! > offset) at -= 2;
  if ((at > 0 && areas[at - 1]! > offset) || (at < areas.length && areas[at]! < end)) {
    refuse("segment.channel", `areas overlap at ${offset}`);
  }
  areas.splice(at, 0, offset, end);
}

function checkRing(channel: Channel, endpointCount: number): void {
  const { kind, writer, reader, controlSize, dataSize, start } = channel;
  if (kind !== layout.CHANNEL_KIND_RING) return;
  if (writer >= endpointCount || reader >= endpointCount || writer === reader) {
    refuse("segment.channel", `a ring from endpoint ${writer} to ${reader}`);
  }
  const valid = controlSize >= layout.RING_CONTROL_SIZE && isPowerOfTwo(dataSize) &&
    dataSize >= layout.RING_CAPACITY_MIN && dataSize <= layout.RING_CAPACITY_MAX &&
    start % layout.FRAME_ALIGN === 0;
  if (!valid) {
    refuse("segment.channel", `a ring of ${controlSize} and ${dataSize} bytes from ${start}`);
  }
}
