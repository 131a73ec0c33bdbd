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
 * So there are few functions, and the texts about faults are made elsewhere.
 *
 * @throws as `segmentSize` does.
 */
export function place({ endpoints: endpointCount, channels: given }: Geometry): Plan {
  const end = tablesEnd(endpointCount, given.length);
  if (!end) throwRangeError("a segment has 1 to 256 endpoints, and at most 1024 channels");
  const channels: Channel[] = [];
  // Rounded up once, as the areas of rings are whole multiples of 128. Not by a mask, as offsets go
  // beyond 2^31.
  let size = Math.ceil(end / layout.SEGMENT_ALIGN) * layout.SEGMENT_ALIGN;
  for (const { writer, reader, capacity, label = 0, start = 0, form } of given) {
    const kind = form?.kind ?? layout.CHANNEL_KIND_RING;
    const controlSize = form?.control.byteLength ?? layout.RING_CONTROL_SIZE;
    const data = size + controlSize;
    const words: Words = [kind, writer, reader, size, controlSize, data, capacity, label, start];
    if (!form) requireCapacity(capacity);
    if (form ? writer >= endpointCount : !isSound(words, endpointCount)) {
      throwRangeError(
        `channel ${channels.length} takes two of ${endpointCount} endpoints, and a start that is ` +
          "a multiple of 16",
      );
    }
    channels.push(toChannel(words));
    size = data + capacity;
  }
  if (size > layout.SEGMENT_SIZE_MAX) throwSegmentError("size", "place segment: it is too large");
  return { size, endpointCount, channels };
}

/** The words of a descriptor, in their order, which is that of the properties of a `Channel`. */
type Words = [number, number, number, number, number, number, number, number, number];

const toChannel = (
  [kind, writer, reader, controlOffset, controlSize, dataOffset, dataSize, label, start]: Words,
): Channel => ({
  kind,
  writer,
  reader,
  controlOffset,
  controlSize,
  dataOffset,
  dataSize,
  label,
  start,
});

/**
 * Formats memory by a plan that `place` has made of these channels, if it is blank, or has no other
 * owner than the caller; false if it is neither. [segment.claim]
 *
 * Memory that is blank has 0 in `ready`, and may have anything elsewhere, so the header, the
 * records, the descriptors and the control words are zeroed first. The byte areas need no zeros,
 * because nothing in them counts before a cursor covers it. [segment.write]
 */
export function writePlan(
  { size, endpointCount, channels }: Plan,
  given: readonly ChannelGeometry[],
  words: Int32Array,
  isOwner: boolean,
): boolean {
  const ready = layout.SEGMENT_READY_WORD;
  // Blank is 0.
  if (isOwner) Atomics.store(words, ready, 0);
  if (Atomics.compareExchange(words, ready, 0, layout.SEGMENT_READY_FORMATTING)) return false;
  words.fill(0, ready + 1, (channels[0]?.controlOffset ?? size) / 4);
  words[0] = Magic.LOW;
  words[1] = Magic.HIGH;
  words[layout.SEGMENT_VERSION_MAJOR_OFFSET >> 2] = layout.VERSION_MAJOR |
    (layout.VERSION_MINOR << 16);
  words[layout.SEGMENT_SIZE_OFFSET >> 2] = size;
  words[layout.SEGMENT_ENDPOINT_COUNT_OFFSET >> 2] = endpointCount;
  words[layout.SEGMENT_CHANNEL_COUNT_OFFSET >> 2] = channels.length;
  channels.forEach((channel, index) => {
    words.set(Object.values(channel), tablesEnd(endpointCount, index) / 4);
    const control = channel.controlOffset / 4;
    words.fill(0, control, control + channel.controlSize / 4);
    // [ring.start]
    words[control + layout.RING_TAIL_WORD] =
      words[control + layout.RING_HEAD_WORD] =
        channel.start;
    const { form } = given[index]!;
    if (form) words.set(form.control, control); // [property.name]
  });
  // [segment.publish] Last: whoever loads 2 must see everything else.
  Atomics.store(words, ready, layout.SEGMENT_READY_READY);
  Atomics.notify(words, ready);
  return true;
}

/**
 * Loads the header and the descriptors once, and checks them in the order of the specification's
 * table, from `magic` to the overlaps. Allocates little before the counts are checked.
 * [segment.check]
 *
 * @throws {SegmentError} with the code of the first check that fails.
 */
export function readPlan(words: Int32Array): Plan {
  const copy = (at: number) => [...new Uint32Array(words.subarray(at, at + 9))] as Words;
  const [low, high, , version, size, required, , endpointCount, channelCount] = copy(0);
  const first = tablesEnd(endpointCount, channelCount);
  refuse(low !== Magic.LOW || high !== Magic.HIGH, "magic");
  refuse((version & 0xffff) !== layout.VERSION_MAJOR, "version");
  refuse(required, "feature");
  refuse(size % layout.SEGMENT_ALIGN || size > words.byteLength, "size");
  refuse(!first || first > size, "table");
  const channels: Channel[] = [];
  // The begin and the end of each area, in order: no two overlap. If the creator placed them as
  // `place` does, each new one comes last.
  const areas: number[] = [];
  while (channels.length < channelCount) {
    const descriptor = copy(tablesEnd(endpointCount, channels.length) / 4);
    for (
      const part of [
        layout.CHANNEL_CONTROL_OFFSET_OFFSET >> 2,
        layout.CHANNEL_DATA_OFFSET_OFFSET >> 2,
      ]
    ) {
      const begin = descriptor[part]!;
      const end = begin + descriptor[part + 1]!; // exactly, as doubles
      refuse(begin % layout.SEGMENT_ALIGN || begin < first || end > size, "channel");
      if (begin === end) continue;
      let at = areas.length;
      while (areas[at - 2]! > begin) at -= 2;
      refuse(areas[at - 1]! > begin || areas[at]! < end, "channel");
      areas.splice(at, 0, begin, end);
    }
    // Channels of other kinds may name anybody. [segment.unknown_kind]
    const isRing = descriptor[0] === layout.CHANNEL_KIND_RING;
    refuse(isRing && !isSound(descriptor, endpointCount), "channel");
    channels.push(toChannel(descriptor));
  }
  return { size, endpointCount, channels };
}

/** Where an endpoint's record begins, in bytes. */
export const recordOffset = (index: number): number =>
  layout.ENDPOINT_TABLE_OFFSET + index * layout.ENDPOINT_RECORD_SIZE;

/** Where an endpoint's record begins, in words. */
export const recordAt = (index: number): number => recordOffset(index) / 4;

/** Add the peers that an endpoint has by other channels than rings; set by those who use them. */
export const peerFinders: ((plan: Plan, index: number, peers: number[]) => void)[] = [];

/**
 * The peers of an endpoint: the others at the ends of all channels that name it. [segment.peers]
 */
export function peersOf(plan: Plan, index: number): number[] {
  const peers: number[] = [];
  for (const { writer, reader } of plan.channels) {
    const peer = writer === index ? reader : reader === index ? writer : index;
    // An index beyond the table names no endpoint.
    if (peer !== index && peer < plan.endpointCount && !peers.includes(peer)) peers.push(peer);
  }
  for (const find of peerFinders) find(plan, index, peers);
  return peers;
}

/**
 * Whether two plans agree in everything that a creator chooses: in all but the offsets, which
 * follow from the sizes, or were the choice of the segment's creator. [segment.same_geometry]
 */
export function samePlan(...plans: [Plan, Plan]): boolean {
  const [a, b] = plans.map(({ endpointCount, channels }) =>
    JSON.stringify(
      [endpointCount, channels],
      (key, value) => key.endsWith("Offset") ? undefined : value,
    )
  );
  return a === b;
}

/** Throws unless the value is a capacity that a ring may have. */
export function requireCapacity(value: number): void {
  if (isCapacity(value)) return;
  throwRangeError(`capacity must be a power of two from 256 to 2^30: ${value}`);
}

/** Throws unless the value is a number from 0 on. */
export function requireAmount(name: string, value: number): void {
  if (!(typeof value === "number" && value >= 0)) {
    throwRangeError(`${name} must be a number from 0 on: ${value}`);
  }
}

/** Throws unless the value is an integer within the bounds, both included. */
export function requireInteger(
  name: string,
  value: number,
  min: number,
  max: number = 2 ** 53 - 1,
): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throwRangeError(`${name} must be an integer from ${min} to ${max}: ${value}`);
  }
}

/** `MILLRACE`, as words. */
const enum Magic {
  LOW = 0x4c4c494d,
  HIGH = 0x45434152,
}

/** Where so many descriptors end, in bytes; 0 if the counts are not allowed. */
const tablesEnd = (endpointCount: number, channelCount: number): number =>
  isIndex(endpointCount - 1, layout.ENDPOINT_COUNT_MAX) && channelCount <= layout.CHANNEL_COUNT_MAX
    ? recordOffset(endpointCount) + channelCount * layout.CHANNEL_DESCRIPTOR_SIZE
    : 0;

/** Whether a value is an integer, at least 0 and below a limit. */
export const isIndex = (value: number, limit: number): boolean =>
  value >= 0 && value < limit && Math.floor(value) === value;

/** Whether a value is a power of two within the limits. A number with a fraction is not. */
const isCapacity = (value: number): boolean =>
  value >= layout.RING_CAPACITY_MIN && value <= layout.RING_CAPACITY_MAX &&
  (value & -value) === value;

/** Whether the words of a ring's descriptor are valid, apart from where its areas stand. */
const isSound = (
  [, writer, reader, , controlSize, , dataSize, label, start]: Words,
  endpointCount: number,
): boolean =>
  isIndex(writer, endpointCount) && isIndex(reader, endpointCount) && writer !== reader &&
  controlSize >= layout.RING_CONTROL_SIZE && isCapacity(dataSize) && isIndex(label, 2 ** 32) &&
  isIndex(start / layout.FRAME_ALIGN, 2 ** 28);

function refuse(
  isWrong: boolean | number,
  what: "magic" | "version" | "feature" | "size" | "table" | "channel",
): void {
  if (isWrong) throwSegmentError(what);
}
