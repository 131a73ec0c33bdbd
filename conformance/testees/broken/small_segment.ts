/**
 * The small port: segments, their checks, and whose bells are rung.
 *
 * @module
 */

import { has } from "./faults.ts";
import { beginOther, isCapacity, nameOf, otherKind, PROPERTY, readersOf } from "./small_frame.ts";
import { type Memory, PortError, Refused, roundUp } from "./small_memory.ts";

/** A channel, as its descriptor says. */
export interface Channel {
  kind: number;
  writer: number;
  reader: number;
  control: number;
  controlSize: number;
  data: number;
  capacity: number;
  label: number;
  start: number;
}

/** What a creator chooses. */
export interface Geometry {
  endpoints: number;
  channels: {
    writer: number;
    reader: number;
    capacity: number;
    label?: number;
    start?: number;
    kind?: number;
    name?: string;
    readers?: number;
  }[];
}

const [BLANK, FORMATTING, READY] = [0, 1, 2];
const VACANT = 0;
const READY_AT = 8;
const [STATE, RUNG] = [4, 24];
const RING = 1;
const RING_CONTROL_SIZE = 512;

/** A segment that was checked; its geometry is a copy. */
export class Segment {
  readonly memory: Memory;
  readonly endpoints: number;
  readonly channels: readonly Channel[];

  private constructor(memory: Memory, endpoints: number, channels: Channel[]) {
    this.memory = memory;
    this.endpoints = endpoints;
    this.channels = channels;
  }

  /** Makes all checks of the table, in its order. [segment.check] */
  static attach(memory: Memory): Segment {
    const refuse = (condition: boolean, code: string) => {
      if (condition) throw new PortError(code);
    };
    const { bytes } = memory;
    refuse(bytes.byteOffset % 128 !== 0 || bytes.length < 256, "segment.size");
    const ready = memory.load(READY_AT);
    refuse(ready > READY, "segment.magic");
    refuse(ready !== READY, "segment.unready");
    refuse(String.fromCharCode(...bytes.slice(0, 8)) !== "MILLRACE", "segment.magic");
    const isKnown = memory.view.getUint16(12, true) === 1 || has("version_ignored");
    refuse(!isKnown, "segment.version");
    refuse(memory.u32(20) !== 0 && !has("feature_ignored"), "segment.feature");
    const size = memory.u32(16);
    refuse(size % 128 !== 0 || size > bytes.length, "segment.size");
    const [endpoints, count] = [memory.u32(28), memory.u32(32)];
    const tables = 128 + 128 * endpoints + 64 * count;
    const isTable = endpoints >= 1 && endpoints <= 256 && count <= 1024 && tables <= size;
    refuse(!isTable, "segment.table");
    const channels = Array.from(
      { length: count },
      (_, index) => readChannel(memory, 128 + 128 * endpoints + 64 * index),
    );
    refuse(!channels.every((each) => isChannel(each, endpoints, tables, size)), "segment.channel");
    refuse(overlap(channels) && !has("overlap_ignored"), "segment.channel");
    return new Segment(memory, endpoints, channels);
  }

  /** Makes a segment, or finds that somebody has made the same one. */
  static create(memory: Memory, geometry: Geometry, isOwner: boolean): void {
    const { places, size } = place(geometry);
    const isLarge = size <= memory.bytes.length && size <= 4_294_967_168;
    if (memory.bytes.byteOffset % 128 !== 0 || !isLarge) throw new PortError("segment.size");
    if (isOwner || has("claim_skipped")) memory.store(READY_AT, FORMATTING);
    else if (!memory.change(READY_AT, BLANK, FORMATTING)) return compare(memory, geometry);
    write(memory, geometry, places, size);
  }

  /** The other endpoints at the ends of an endpoint's channels. [segment.peers] */
  peersOf(endpoint: number): Set<number> {
    const peers = new Set<number>();
    for (const channel of this.channels) {
      const { kind, writer, reader } = channel;
      if (kind !== RING && has("peers_of_rings")) continue;
      const readers = readersOf(channel, this.endpoints);
      if (writer === endpoint) { for (const each of readers) peers.add(each); }
      if (readers.includes(endpoint)) peers.add(writer); // [fanout.peers]
      if (writer === endpoint) peers.add(reader);
      if (reader === endpoint) peers.add(writer);
    }
    return new Set([...peers].filter((peer) => peer < this.endpoints && peer !== endpoint));
  }

  /** The ring that was named, or the first that fits. [pipe.find] */
  findRing(channel: number | undefined, fits: (ring: Channel) => boolean): Channel {
    const isRing = (each: Channel) => each.kind === RING && fits(each);
    const found = channel === undefined ? this.channels.find(isRing) : this.channels[channel];
    if (found === undefined || !isRing(found)) throw new PortError("segment.channel");
    return found;
  }

  /** The word of an endpoint that is vacant. */
  requireVacant(endpoint: number): number {
    if (endpoint >= this.endpoints) throw new PortError("segment.endpoint");
    const state = this.memory.load(recordAt(endpoint) + STATE);
    if ((state & 255) !== VACANT && !has("vacancy_ignored")) {
      throw new PortError("segment.endpoint");
    }
    return state;
  }

  /** Rings an endpoint whose state was to change, and all its peers. [segment.state_ring] */
  ringAround(endpoint: number): void {
    if (has("state_silent")) return;
    for (const each of [endpoint, ...this.peersOf(endpoint)]) {
      this.ring(each, has("rung_own") ? each : endpoint);
    }
  }

  /** Rings an endpoint's bell with the bit of another. [wait.ring], [wait.rung] */
  ring(endpoint: number, who: number): void {
    const bit = has("rung_one_word") ? who & 31 : who;
    const word = recordAt(endpoint) + RUNG + 4 * (bit >> 5);
    if (has("rung_stored")) this.memory.store(word, 1 << (bit & 31));
    else if (!has("rung_forgotten")) this.memory.set(word, 1 << (bit & 31));
    this.memory.add(recordAt(endpoint));
    this.memory.notify(recordAt(endpoint), has("wakes_one") ? 1 : Infinity);
  }

  /** Changes a state where it may be changed, along the table. [segment.state_change] */
  changeState(endpoint: number, mayChange: (state: number) => boolean, to: number): void {
    const at = recordAt(endpoint) + STATE;
    for (let tries = 0; tries < 3; tries++) {
      const state = this.memory.load(at);
      if (!mayChange(state) && !has("mark_overwritten")) break;
      if (this.memory.change(at, state, to)) break;
    }
    this.ringAround(endpoint);
  }
}

/** Where an endpoint's record begins; its bell is the first word. */
export function recordAt(index: number): number {
  return 128 + 128 * index;
}

function readChannel(memory: Memory, at: number): Channel {
  const [kind, writer, reader, control, controlSize, data, capacity, label, start] = Array.from(
    { length: 9 },
    (_, index) => memory.u32(at + 4 * index),
  ) as [number, number, number, number, number, number, number, number, number];
  return { kind, writer, reader, control, controlSize, data, capacity, label, start };
}

function isChannel(channel: Channel, endpoints: number, tables: number, size: number): boolean {
  const { kind, writer, reader, control, controlSize, data, capacity, start } = channel;
  const isPlaced = (offset: number, length: number) =>
    offset % 128 === 0 && offset >= tables && offset + length <= size;
  const isPair = writer < endpoints && reader < endpoints && writer !== reader;
  if (!isPlaced(control, controlSize) || !isPlaced(data, capacity)) return false;
  if (kind !== RING) return isPair || !has("kinds_strict"); // [segment.unknown_kind]
  return isPair && controlSize >= RING_CONTROL_SIZE && isCapacity(capacity) && start % 16 === 0;
}

function overlap(channels: readonly Channel[]): boolean {
  const areas = channels.flatMap(({ control, controlSize, data, capacity }) => [
    { from: control, to: control + controlSize },
    { from: data, to: data + capacity },
  ]).filter(({ from, to }) => to > from).sort((a, b) => a.from - b.from);
  return areas.some(({ from }, index) => index > 0 && from < areas[index - 1]!.to);
}

/** `place` of segment.md. Refuses what no geometry may be. */
function place({ endpoints, channels }: Geometry) {
  const isWhole = (value: number, least: number, most: number) =>
    Number.isInteger(value) && value >= least && value <= most;
  if (!isWhole(endpoints, 1, 256) || channels.length > 1024) throw new Refused("counts");
  let offset = 128 + 128 * endpoints + 64 * channels.length;
  const placed = (kind: number, given: Geometry["channels"][number], controlSize: number) => {
    const { writer, reader, capacity, label = 0, start = 0 } = given;
    const control = roundUp(offset, 128);
    const data = control + controlSize;
    offset = data + capacity;
    return [kind, writer, reader, control, controlSize, data, capacity, label, start];
  };
  const places = channels.map((given) => {
    const { writer, reader, capacity, label = 0, start = 0 } = given;
    const other = otherKind(given, endpoints);
    if (other !== undefined) return placed(other.kind, given, other.controlSize);
    const isPair = isWhole(writer, 0, endpoints - 1) && isWhole(reader, 0, endpoints - 1);
    const isStart = isWhole(start, 0, 2 ** 32 - 16) && start % 16 === 0;
    const isRing = isCapacity(capacity) && isStart && isWhole(label, 0, 2 ** 32 - 1);
    if (!isPair || writer === reader || !isRing) throw new Refused("channel");
    return placed(RING, given, RING_CONTROL_SIZE);
  });
  return { places, size: roundUp(offset, 128) };
}

/** [segment.write] */
function write(memory: Memory, geometry: Geometry, places: number[][], size: number): void {
  const { endpoints } = geometry;
  const end = places.length > 0 ? places[0]![3]! : size;
  memory.bytes.fill(0, 12, end);
  for (const [index, place] of places.entries()) {
    const at = 128 + 128 * endpoints + 64 * index;
    place.forEach((value, word) => memory.setU32(at + 4 * word, value));
    const [kind, control, size, start] = [place[0]!, place[3]!, place[4]!, place[8]!];
    memory.bytes.fill(0, control, control + size);
    if (kind === RING) {
      memory.store(control, start);
      memory.store(control + 128, start);
    } else beginOther(memory, kind, control, start, geometry.channels[index]!.name ?? "");
  }
  memory.bytes.set(new TextEncoder().encode("MILLRACE"));
  memory.view.setUint16(12, 1, true);
  memory.setU32(16, size);
  memory.setU32(28, endpoints);
  memory.setU32(32, places.length);
  memory.store(READY_AT, READY);
  memory.notify(READY_AT);
}

/** [segment.same_geometry] */
function compare(memory: Memory, geometry: Geometry): void {
  const { endpoints, channels } = Segment.attach(memory);
  const key = ({ writer, reader, capacity, label = 0, start = 0 }: Geometry["channels"][number]) =>
    [writer, reader, capacity, label, start].join();
  const isForm = ({ kind, controlSize, control }: Channel, index: number) => {
    const wanted = geometry.channels[index]!;
    const other = otherKind(wanted, geometry.endpoints);
    if (other === undefined) {
      return kind === RING && (controlSize === RING_CONTROL_SIZE || has("control_size_free"));
    }
    // [property.same_name]
    const isNamed = kind !== PROPERTY || has("property_names_free") ||
      nameOf(memory, control) === (wanted.name ?? "");
    return kind === other.kind && controlSize === other.controlSize && isNamed;
  };
  const isSame = endpoints === geometry.endpoints && channels.length === geometry.channels.length &&
    channels.every((each, index) =>
      isForm(each, index) && key(each) === key(geometry.channels[index]!)
    );
  if (!isSame) throw new PortError("segment.geometry");
}
