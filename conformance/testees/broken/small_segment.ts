/**
 * The small port: segments, endpoints, and how they wait.
 *
 * @module
 */

import { reasonName, reasonNames, reasonOf } from "../../reference/layout.ts";
import { has, hold } from "./faults.ts";
import { type Memory, minus, pause, PortError, Refused, roundUp } from "./small_memory.ts";

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
  }[];
}

const [BLANK, FORMATTING, READY] = [0, 1, 2];
const [VACANT, ATTACHED, CLOSED, FAILED] = [0, 1, 2, 3];
const READY_AT = 8;
const [STATE, WAKES] = [4, 8];
const RING = 1;
const RING_CONTROL_SIZE = 512;
const AGENT = 1;
const SLICE_MS = 100;
const SLICE_ATTACHED_MS = 1_000;
const POLL_MS = 4;

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

  /** The endpoints at the other ends of an endpoint's channels. */
  peersOf(endpoint: number): Set<number> {
    const peers = new Set<number>();
    for (const { writer, reader } of this.channels) {
      if (writer === endpoint) peers.add(reader);
      if (reader === endpoint) peers.add(writer);
    }
    return peers;
  }

  /** The ring that was named, or the first that fits. [pipe.find] */
  findRing(channel: number | undefined, fits: (ring: Channel) => boolean): Channel {
    const isRing = (each: Channel) => each.kind === RING && fits(each);
    const found = channel === undefined ? this.channels.find(isRing) : this.channels[channel];
    if (found === undefined || !isRing(found)) throw new PortError("segment.channel");
    return found;
  }

  requireVacant(endpoint: number): void {
    if (endpoint >= this.endpoints) throw new PortError("segment.endpoint");
    const state = this.memory.load(recordAt(endpoint) + STATE);
    if ((state & 255) !== VACANT && !has("vacancy_ignored")) {
      throw new PortError("segment.endpoint");
    }
  }

  /** Rings an endpoint and all its peers. [segment.state_ring] */
  ringAround(endpoint: number): void {
    if (has("state_silent")) return;
    this.ring(endpoint);
    for (const peer of this.peersOf(endpoint)) this.ring(peer);
  }

  /** [wait.ring] */
  ring(endpoint: number): void {
    this.memory.add(recordAt(endpoint));
    this.memory.notify(recordAt(endpoint), has("wakes_one") ? 1 : Infinity);
  }

  /** Changes a state along the table, where it can. [segment.state_change] */
  changeState(endpoint: number, from: readonly number[], to: number): void {
    const at = recordAt(endpoint) + STATE;
    for (let tries = 0; tries < 3; tries++) {
      const state = this.memory.load(at);
      const mayChange = from.includes(state & 255) || has("mark_overwritten");
      if (!mayChange || this.memory.change(at, state, to)) break;
    }
    this.ringAround(endpoint);
  }
}

/** One thread's place in a segment. */
export class Endpoint {
  readonly segment: Segment;
  readonly index: number;
  readonly peer: number;
  /** The peer's state, once it was final or invalid. */
  #final: PortError | undefined;
  closed = false;

  private constructor(segment: Segment, index: number, peer: number) {
    this.segment = segment;
    this.index = index;
    this.peer = peer;
  }

  /** [segment.attach] */
  static attach(segment: Segment, index: number, peer: number): Endpoint {
    segment.requireVacant(index);
    const { memory } = segment;
    const at = recordAt(index);
    const isOurs = memory.change(at + STATE, memory.load(at + STATE), ATTACHED);
    if (isOurs && !has("wakes_left_out")) memory.store(at + WAKES, AGENT);
    segment.ringAround(index);
    if (!isOurs) throw new PortError("segment.endpoint");
    return new Endpoint(segment, index, peer);
  }

  /** What the own state says: nothing while it is attached. */
  ownState(): PortError | undefined {
    const state = this.segment.memory.load(recordAt(this.index) + STATE);
    if (has("own_ignored") || (state & 255) === ATTACHED) return undefined;
    if ((state & 255) === CLOSED) return new PortError("pipe.closed");
    // [segment.own_state] A state that nobody may store has no reason.
    const reason = (state & 255) === FAILED ? nameOf(state >>> 8) : "none";
    return new PortError("pipe.failed", reason);
  }

  /** What the peer's state says: nothing while it is vacant or attached. */
  peerState(): PortError | undefined {
    if (this.#final !== undefined) return this.#final;
    const state = this.segment.memory.load(recordAt(this.peer) + STATE);
    const low = state & 255;
    if (low === VACANT || low === ATTACHED) return undefined;
    if (low === CLOSED) return this.#final = new PortError("peer.closed");
    const reason = low === FAILED ? nameOf(state >>> 8) : "segment.state";
    return this.#final = new PortError("peer.failed", reason);
  }

  /** Marks the peer for a fault in its words, and returns what to report. [ring.fault] */
  failPeer(code: string): PortError {
    if (!has("fault_silent")) {
      this.segment.changeState(this.peer, [VACANT, ATTACHED], FAILED | reasonOf(code) << 8);
    }
    return new PortError(code);
  }

  /** Rings the peer if it has asked for what a cursor has reached. [wait.exchange] */
  wake(wants: number, cursor: number): void {
    const { memory } = this.segment;
    if (has("rings_never")) return;
    if (has("rings_always")) return this.segment.ring(this.peer);
    const wanted = memory.load(wants);
    if (wanted === 0) return;
    const position = minus(wanted, wanted & 1);
    const isReached = has("wants_unsigned")
      ? cursor >= position
      : has("rings_early") || (cursor - position | 0) >= 0;
    if (!isReached) return;
    if (has("wants_left") || memory.exchange(wants, 0) !== 0) this.segment.ring(this.peer);
  }

  /** Sleeps until something may have changed; `look` says whether it has. Not beyond a slice. */
  sleep(wants: number, position: number, look: () => boolean, deadline: number): void {
    const { memory } = this.segment;
    const bellAt = recordAt(this.index);
    hold("arm");
    let bell = memory.load(bellAt);
    memory.store(wants, (has("asks_wrong") ? position - 16 : position) | 1);
    const found = !has("recheck_forgotten") && look();
    hold("sleep");
    if (has("bell_late")) bell = memory.load(bellAt);
    const left = deadline - performance.now();
    if (!found && left > 0) {
      // [wait.mechanism] A peer that is attached and cannot ring this is not waited for.
      const state = memory.load(recordAt(this.peer) + STATE) & 255;
      const isRung = state === VACANT || (memory.load(recordAt(this.peer) + WAKES) & AGENT) !== 0;
      // [wait.slice] One that is vacant may come and not ring.
      const isShort = state === VACANT && !has("slice_long");
      const slice = has("slice_forgotten") ? left : isShort ? SLICE_MS : SLICE_ATTACHED_MS;
      if (isRung) memory.sleep(bellAt, bell, Math.min(left, slice));
      else pause(Math.min(left, POLL_MS));
    }
    if (!has("wants_armed")) memory.store(wants, 0);
  }

  /** [pipe.close] */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.segment.changeState(this.index, [ATTACHED], CLOSED);
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
  if (!isPair || !isPlaced(control, controlSize) || !isPlaced(data, capacity)) return false;
  return kind !== RING ||
    controlSize >= RING_CONTROL_SIZE && isCapacity(capacity) && start % 16 === 0;
}

function isCapacity(capacity: number): boolean {
  return Number.isInteger(Math.log2(capacity)) && capacity >= 256 && capacity <= 2 ** 30;
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
  const places = channels.map(({ writer, reader, capacity, label = 0, start = 0 }) => {
    const isPair = isWhole(writer, 0, endpoints - 1) && isWhole(reader, 0, endpoints - 1);
    const isStart = isWhole(start, 0, 2 ** 32 - 16) && start % 16 === 0;
    const isRing = isCapacity(capacity) && isStart && isWhole(label, 0, 2 ** 32 - 1);
    if (!isPair || writer === reader || !isRing) throw new Refused("channel");
    const control = roundUp(offset, 128);
    const data = control + RING_CONTROL_SIZE;
    offset = data + capacity;
    return [RING, writer, reader, control, RING_CONTROL_SIZE, data, capacity, label, start];
  });
  return { places, size: roundUp(offset, 128) };
}

/** [segment.write] */
function write(memory: Memory, { endpoints }: Geometry, places: number[][], size: number): void {
  const end = places.length > 0 ? places[0]![3]! : size;
  memory.bytes.fill(0, 12, end);
  for (const [index, place] of places.entries()) {
    const at = 128 + 128 * endpoints + 64 * index;
    place.forEach((value, word) => memory.setU32(at + 4 * word, value));
    const [control, start] = [place[3]!, place[8]!];
    memory.bytes.fill(0, control, control + RING_CONTROL_SIZE);
    memory.store(control, start);
    memory.store(control + 128, start);
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
    [RING, writer, reader, capacity, label, start].join();
  const isSame = endpoints === geometry.endpoints && channels.length === geometry.channels.length &&
    channels.every((each, index) =>
      each.kind === RING && key(each) === key(geometry.channels[index]!)
    );
  if (!isSame) throw new PortError("segment.geometry");
}

/** A reason as it is reported: a number where it has no name. [pipe.failed_reason] */
function nameOf(reason: number): string | number {
  if (reason === 0) return "none";
  const name = reasonName(reason);
  return reasonNames().includes(name) ? name : reason;
}
