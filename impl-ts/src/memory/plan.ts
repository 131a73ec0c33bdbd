/**
 * The parts of a segment, where they stand, and the checks of a header that anybody may have
 * written.
 *
 * @module
 */

import { throwRangeError, throwSegmentError } from "../error.ts";
import { layout } from "./layout.ts";

/**
 * One channel, as its creator chooses it. Sizes are in bytes.
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
  /** A number that the application chooses for the channel, a `u32`. Default 0. */
  readonly label?: number;
  /** The position at which both cursors begin: a `u32`, a multiple of 16. Default 0. */
  readonly start?: number;
  /**
   * Only for a channel that is not a ring: made and checked by a function of that channel kind.
   *
   * @internal
   */
  readonly form?: Form;
}

/** What a channel of another kind than a ring has besides its ends and its byte area. */
export interface Form {
  readonly kind: number;
  /** The control area as it is when the segment becomes ready. */
  readonly control: Int32Array;
  /** Whether a control area that was found in a ready segment is that of the same channel. */
  matches(control: Int32Array): boolean;
}

/**
 * What a creator chooses: the number of endpoints, and the channels between them.
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
  /** How many endpoints, from 1 to 256. */
  readonly endpoints: number;
  /** The channels, at most 1,024. */
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
  /** The kind; 1 is a ring. Channels of other kinds are range-checked and left alone. */
  readonly kind: number;
  /** Index of the endpoint that writes. In a channel that is not a ring it may name no endpoint. */
  readonly writer: number;
  /** Index of the endpoint that reads. In a channel that is not a ring it may name no endpoint. */
  readonly reader: number;
  /** Where the control words stand. */
  readonly controlOffset: number;
  /** Bytes of the control area. */
  readonly controlSize: number;
  /** Where the byte area stands. */
  readonly dataOffset: number;
  /** Bytes of the byte area: the capacity of a ring. */
  readonly dataSize: number;
  /** A number that the application chooses. */
  readonly label: number;
  /** The position at which both cursors began. */
  readonly start: number;
}

/** The private copy of a segment's header and descriptors. The segment is not read again for it. */
export interface Plan {
  readonly size: number;
  readonly endpointCount: number;
  readonly channels: readonly Channel[];
  /** Of a plan that is to be written, the forms by channel index; rings have none. */
  readonly forms?: readonly (Form | undefined)[];
}

/**
 * Returns how many bytes a segment of this geometry takes, a multiple of 128.
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

/**
 * Computes where everything of a geometry stands. [segment.place]
 *
 * A fresh thread runs this, `writePlan` and `readPlan` once, and spends its time on compiling them.
 * So there are few functions, loops go by index, and the texts about faults are made elsewhere.
 *
 * @throws as `segmentSize` does.
 */
export function place({ endpoints: endpointCount, channels: given }: Geometry): Plan {
  if (!areCounts(endpointCount, given.length)) {
    throwRangeError("Cannot place segment: it takes 1 to 256 endpoints, and at most 1024 channels");
  }
  const channels: Channel[] = [];
  // Rounded up once, as the areas of rings are whole multiples of 128. Not by a mask, as offsets go
  // beyond 2^31.
  let size = Math.ceil(tablesEnd(endpointCount, given.length) / layout.SEGMENT_ALIGN) *
    layout.SEGMENT_ALIGN;
  for (const { writer, reader, capacity, label = 0, start = 0, form } of given) {
    const controlSize = form?.control.byteLength ?? layout.RING_CONTROL_SIZE;
    const dataOffset = size + controlSize;
    const kind = form?.kind ?? layout.CHANNEL_KIND_RING;
    const words = [kind, writer, reader, size, controlSize, dataOffset, capacity, label, start];
    const channel = toChannel(words);
    if (form === undefined) requireCapacity(capacity);
    if (form === undefined ? !isRing(channel, endpointCount) : writer >= endpointCount) {
      throwRangeError(
        `Cannot place channel ${channels.length}: it takes two of ${endpointCount} endpoints, ` +
          "and a start that is a multiple of 16",
      );
    }
    channels.push(channel);
    size = dataOffset + capacity;
  }
  if (size > layout.SEGMENT_SIZE_MAX) throwSegmentError("size", "place segment: it is too large");
  return { size, endpointCount, channels, forms: given.map(({ form }) => form) };
}

/** A channel, of the words of its descriptor in their order. */
function toChannel(words: ArrayLike<number>): Channel {
  const [kind, writer, reader, controlOffset, controlSize, dataOffset, dataSize, label, start] =
    Array.from(words, (word) => word) as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
  return {
    kind,
    writer,
    reader,
    controlOffset,
    controlSize,
    dataOffset,
    dataSize,
    label,
    start,
  };
}

/**
 * Writes the header except `ready`, the records, the descriptors and the control words of a plan
 * that `place` has made. Memory that is blank has 0 in `ready`, and may have anything elsewhere, so
 * these parts are zeroed first. The byte areas need no zeros, because nothing in them counts before
 * a cursor covers it. [segment.write]
 */
export function writePlan(
  { size, endpointCount, channels, forms }: Plan,
  words: Int32Array,
): void {
  words.fill(0, layout.SEGMENT_READY_WORD + 1, (channels[0]?.controlOffset ?? size) >>> 2);
  words[0] = MAGIC_LOW;
  words[1] = MAGIC_HIGH;
  words[layout.SEGMENT_VERSION_MAJOR_OFFSET >> 2] = layout.VERSION_MAJOR |
    (layout.VERSION_MINOR << 16);
  words[layout.SEGMENT_SIZE_OFFSET >> 2] = size;
  words[layout.SEGMENT_ENDPOINT_COUNT_OFFSET >> 2] = endpointCount;
  words[layout.SEGMENT_CHANNEL_COUNT_OFFSET >> 2] = channels.length;
  let at = recordOffset(endpointCount) >> 2;
  for (let index = 0; index < channels.length; index++) {
    const channel = channels[index]!;
    words.set(Object.values(channel), at);
    at += layout.CHANNEL_DESCRIPTOR_SIZE >> 2;
    const control = channel.controlOffset >>> 2;
    words.fill(0, control, control + (channel.controlSize >>> 2));
    // [ring.start]
    words[control + layout.RING_TAIL_WORD] = channel.start;
    words[control + layout.RING_HEAD_WORD] = channel.start;
    const form = forms?.[index];
    if (form !== undefined) words.set(form.control, control); // [property.name]
  }
}

/**
 * Loads the header and the descriptors once, and checks them in the order of the specification's
 * table, from `magic` to the overlaps. Allocates nothing before the counts are checked.
 * [segment.check]
 *
 * @throws {SegmentError} with the code of the first check that fails.
 */
export function readPlan(words: Int32Array): Plan {
  const load = (offset: number) => words[offset >>> 2]! >>> 0;
  const version = load(layout.SEGMENT_VERSION_MAJOR_OFFSET) & 0xffff;
  const required = load(layout.SEGMENT_REQUIRED_FEATURES_OFFSET);
  const size = load(layout.SEGMENT_SIZE_OFFSET);
  const endpointCount = load(layout.SEGMENT_ENDPOINT_COUNT_OFFSET);
  const channelCount = load(layout.SEGMENT_CHANNEL_COUNT_OFFSET);
  const first = tablesEnd(endpointCount, channelCount);
  if (words[0] !== MAGIC_LOW || words[1] !== MAGIC_HIGH) refuse("magic");
  if (version !== layout.VERSION_MAJOR) refuse("version");
  if (required !== 0) refuse("feature");
  if (size % layout.SEGMENT_ALIGN !== 0 || size > words.byteLength) refuse("size");
  if (!areCounts(endpointCount, channelCount) || first > size) refuse("table");
  const channels: Channel[] = [];
  const areas: number[] = [];
  for (let at = recordOffset(endpointCount); at < first; at += layout.CHANNEL_DESCRIPTOR_SIZE) {
    const channel = toChannel(new Uint32Array(words.subarray(at >>> 2, (at >>> 2) + 9)));
    if (
      !tryAddArea(areas, channel.controlOffset, channel.controlSize, first, size) ||
      !tryAddArea(areas, channel.dataOffset, channel.dataSize, first, size) ||
      // Channels of other kinds may name anybody. [segment.unknown_kind]
      channel.kind === layout.CHANNEL_KIND_RING && !isRing(channel, endpointCount)
    ) refuse("channel");
    channels.push(channel);
  }
  return { size, endpointCount, channels };
}

/** Where an endpoint's record begins, in bytes. */
export function recordOffset(index: number): number {
  return layout.ENDPOINT_TABLE_OFFSET + index * layout.ENDPOINT_RECORD_SIZE;
}

/** Where an endpoint's record begins, in words. */
export function recordAt(index: number): number {
  return recordOffset(index) >> 2;
}

/** Add the peers that an endpoint has by other channels than rings; set by those who use them. */
export const peerFinders: ((plan: Plan, index: number, peers: number[]) => void)[] = [];

/**
 * The peers of an endpoint: the others at the ends of all channels that name it. [segment.peers]
 */
export function peersOf(plan: Plan, index: number): number[] {
  const { endpointCount, channels } = plan;
  const peers: number[] = [];
  for (const { writer, reader } of channels) {
    const peer = writer === index ? reader : reader === index ? writer : index;
    // An index beyond the table names no endpoint.
    if (peer !== index && peer < endpointCount && !peers.includes(peer)) peers.push(peer);
  }
  for (const find of peerFinders) find(plan, index, peers);
  return peers;
}

/** Whether two plans agree in everything that a creator chooses. [segment.same_geometry] */
export function samePlan(a: Plan, b: Plan): boolean {
  return shapeOf(a) === shapeOf(b);
}

/**
 * All but the offsets: those follow from the sizes, or were the choice of the segment's creator.
 */
function shapeOf({ endpointCount, channels }: Plan): string {
  const others = { controlOffset: 0, dataOffset: 0 };
  return JSON.stringify([endpointCount, channels.map((channel) => ({ ...channel, ...others }))]);
}

/** Throws unless the value is a capacity that a ring may have. */
export function requireCapacity(value: number): void {
  if (isCapacity(value)) return;
  throwRangeError(`capacity must be a power of two from 256 to 2^30: ${value}`);
}

/** Throws unless the value is an integer within the bounds, both included. */
export function requireInteger(
  name: string,
  value: number,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throwRangeError(`${name} must be an integer from ${min} to ${max}: ${value}`);
  }
}

// `MILLRACE`, as words.
const MAGIC_LOW = 0x4c4c494d;
const MAGIC_HIGH = 0x45434152;

function tablesEnd(endpointCount: number, channelCount: number): number {
  return recordOffset(endpointCount) + channelCount * layout.CHANNEL_DESCRIPTOR_SIZE;
}

function areCounts(endpointCount: number, channelCount: number): boolean {
  return isIndex(endpointCount - 1, layout.ENDPOINT_COUNT_MAX) &&
    channelCount <= layout.CHANNEL_COUNT_MAX;
}

/** Whether a value is an integer, at least 0 and below a limit. */
function isIndex(value: number, limit: number): boolean {
  return value >= 0 && value < limit && Math.floor(value) === value;
}

/** Whether a value is a power of two within the limits. A number with a fraction is not. */
function isCapacity(value: number): boolean {
  return value >= layout.RING_CAPACITY_MIN && value <= layout.RING_CAPACITY_MAX &&
    (value & -value) === value;
}

/** Whether the fields of a ring's descriptor are valid, apart from where its areas stand. */
function isRing(ring: Channel, endpointCount: number): boolean {
  return isIndex(ring.writer, endpointCount) && isIndex(ring.reader, endpointCount) &&
    ring.writer !== ring.reader && ring.controlSize >= layout.RING_CONTROL_SIZE &&
    isCapacity(ring.dataSize) && isIndex(ring.label, 2 ** 32) &&
    isIndex(ring.start / layout.FRAME_ALIGN, 2 ** 32 / layout.FRAME_ALIGN);
}

/**
 * Adds an area of a channel to `areas`, if it lies within the bounds and overlaps none of them.
 * Returns whether the area is valid. `areas` holds the begin and the end of each one, in order. If
 * the creator placed the areas as `place` does, each new one comes last.
 */
function tryAddArea(
  areas: number[],
  begin: number,
  size: number,
  least: number,
  most: number,
): boolean {
  const end = begin + size; // a double holds the sum of two u32 exactly: it cannot overflow
  if (begin % layout.SEGMENT_ALIGN !== 0 || begin < least || end > most) return false;
  if (size === 0) return true;
  let at = areas.length;
  while (areas[at - 2]! > begin) at -= 2;
  if (areas[at - 1]! > begin || areas[at]! < end) return false;
  areas.splice(at, 0, begin, end);
  return true;
}

function refuse(checked: "magic" | "version" | "feature" | "size" | "table" | "channel"): never {
  throwSegmentError(checked, `attach segment: its ${checked} is wrong`);
}
