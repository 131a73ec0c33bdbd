/**
 * A segment: the header, the endpoint records and the channel descriptors, with the checks of
 * `spec/segment.md` in their order.
 *
 * @module
 */

import { get } from "../reference/decode.ts";
import { descriptorAt, recordAt } from "../reference/encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "../reference/layout.ts";
import { lookAtProperty, lookAtRing } from "./channels.ts";
import { type Channel, type Endpoint, Findings, type Header } from "./inspection.ts";
import { bitsOf, fieldsOf, nameOf, toCount, toEnd, toHexNumber, toIndexes } from "./names.ts";
import { toPlural, toState } from "./names.ts";
import { quote } from "./payload.ts";

// What no endpoint refuses in a segment, and somebody may want to know: reserved bytes that are not
// 0, states that nobody may store, bytes that belong to nothing.

const ALIGN = limitOf("segment_align");
const RING = valueOf("channel_kind", "ring");

/** The header. */
function noteHeader(bytes: Uint8Array, header: Header, findings: Findings): void {
  noteReserved(bytes, 0, "segment_header", header, findings, "the header");
  if (header.version_minor !== 0) {
    const { offset } = fieldOf("segment_header", "version_minor");
    findings.note(`minor version ${header.version_minor}, newer than 0`, { offset });
  }
  if (header.optional_features !== 0) {
    const { offset } = fieldOf("segment_header", "optional_features");
    const bits = toHexNumber(header.optional_features ?? 0);
    findings.note(`optional feature bits ${bits}, of which none is defined`, { offset });
  }
}

/** The records and the descriptors. */
function noteRecords(
  bytes: Uint8Array,
  header: Header,
  endpoints: Endpoint[],
  channels: Channel[],
  findings: Findings,
): void {
  for (const endpoint of endpoints) {
    const { index, offset } = endpoint;
    const spot = { endpoint: index };
    noteReserved(bytes, offset, "endpoint_record", header, findings, `endpoint ${index}`, spot);
    noteRecord(endpoint, endpoints.length, findings);
  }
  for (const { index, offset, kind, start } of channels) {
    const spot = { channel: index };
    noteReserved(bytes, offset, "channel_descriptor", header, findings, `channel ${index}`, spot);
    if (kind !== RING && start !== 0) {
      const at = offset + fieldOf("channel_descriptor", "start").offset;
      findings.note(`start is ${start}, but the channel is no ring`, { offset: at, ...spot });
    }
  }
}

/** The words of one record. */
function noteRecord(endpoint: Endpoint, count: number, findings: Findings): void {
  const { index, offset, state, state_name: name, wakes, wakes_names, features } = endpoint;
  const note = (field: string, fact: string, clause?: string) => {
    const at = offset + fieldOf("endpoint_record", field).offset;
    findings.note(fact, { offset: at, endpoint: index }, clause);
  };
  const { bits } = toState(state);
  const generation = endpoint.generation % 2 ** 24;
  // Whoever vacates adds to the generation, and changes the final state after it.
  const isUnderWay = name === "closed" && (bits + 1) % 2 ** 24 === generation;
  const isOdd = bits !== generation && !isUnderWay;
  if (isOdd && name !== "failed" && !name.startsWith("invalid")) {
    const fact = `the upper bits of state ${toHexNumber(state)} are not those of generation`;
    note("state", `${fact} ${endpoint.generation}`, "segment.state_reason");
  }
  if (wakes !== 0 && name === "vacant") note("wakes", "wakes is set, but the endpoint is vacant");
  const unknown = wakes_names.find((bit) => bit.startsWith("0x"));
  if (unknown !== undefined) note("wakes", `wakes has bits that are not defined: ${unknown}`);
  if (features !== 0) {
    note("features", `features has bits that are not defined: ${toHexNumber(features)}`);
  }
  const nobody = endpoint.rung.find((each) => each >= count);
  if (nobody !== undefined) {
    note("rung", `rung has the bit of endpoint ${nobody}, of ${count}`, "wait.rung");
  }
}

function noteReserved(
  bytes: Uint8Array,
  at: number,
  structure: string,
  header: Header,
  findings: Findings,
  name: string,
  spot: { endpoint?: number; channel?: number } = {},
): void {
  const { offset, size } = fieldsOf(structure).find((field) => field.name === "reserved")!;
  const { count, first } = countSet(bytes, at + offset, at + offset + size);
  if (count === 0) return;
  const fact = `${toPlural(count, "reserved byte")} of ${name} not 0`;
  // A later minor version may use them.
  const clause = header.version_minor === 0 ? "segment.write" : undefined;
  findings.note(fact, { offset: first, ...spot }, clause);
}

/** Where the areas lie, and what lies between and after them. */
function notePlaces(
  bytes: Uint8Array,
  header: Header,
  channels: Channel[],
  findings: Findings,
): void {
  const size = Math.min(header.size!, bytes.length);
  const tables = descriptorAt(header.endpoint_count!, channels.length);
  const areas = channels.flatMap((channel) => [
    [channel.control_offset, channel.control_size],
    [channel.data_offset, channel.data_size],
  ]).filter(([, length]) => length! > 0).sort(([a], [b]) => a! - b!) as [number, number][];
  let at = tables;
  for (const [offset, length] of [...areas, [size, 0] as const]) {
    noteGap(bytes, at, offset, findings);
    at = Math.max(at, offset + length);
  }
  const elsewhere = channels.find((channel) => !isPlaced(header, channels, channel));
  if (elsewhere !== undefined) {
    const spot = { offset: elsewhere.offset, channel: elsewhere.index };
    const fact = "its areas are not where version 1.0 places them; readers accept that";
    findings.note(fact, spot, "segment.place");
  }
  if (bytes.length === size) return;
  const { count } = countSet(bytes, size, bytes.length);
  const fact = `${toPlural(bytes.length - size, "byte")} of memory behind the segment`;
  findings.note(`${fact}, ${count} of them not 0`, { offset: size });
}

/** Bytes that no endpoint reads: what is more than alignment, or not 0. */
function noteGap(bytes: Uint8Array, begin: number, end: number, findings: Findings): void {
  if (end <= begin) return;
  const { count } = countSet(bytes, begin, end);
  if (count === 0 && end - begin < ALIGN) return;
  const fact = `${toPlural(end - begin, "byte")} that belong to nothing, ${count} of them not 0`;
  findings.note(fact, { offset: begin });
}

/** Whether the areas of a channel stand where `place` of the chapter puts them. */
function isPlaced(header: Header, channels: Channel[], wanted: Channel): boolean {
  const up = (offset: number) => Math.ceil(offset / ALIGN) * ALIGN;
  let offset = recordAt(header.endpoint_count!) + channels.length * sizeOf("channel_descriptor");
  for (const channel of channels) {
    const control = up(offset);
    const data = control + up(channel.control_size);
    offset = data + up(channel.data_size);
    if (channel === wanted) {
      return channel.control_offset === control && channel.data_offset === data;
    }
  }
  return true;
}

/** How many bytes of a range are not 0, and where the first of them is. */
function countSet(bytes: Uint8Array, begin: number, end: number): { count: number; first: number } {
  let count = 0;
  let first = begin;
  for (let at = begin; at < Math.min(end, bytes.length); at++) {
    if (bytes[at] === 0) continue;
    if (count === 0) first = at;
    count += 1;
  }
  return { count, first };
}

const MAGIC = "MILLRACE";
const HEADER = "segment_header";
const PROPERTY = valueOf("channel_kind", "property");

/** What stands in a segment. */
interface SegmentFound {
  shape: string;
  header: Header;
  endpoints: Endpoint[];
  channels: Channel[];
}

/** What is looked at, and how much of it. */
interface SegmentOptions {
  channel: number | undefined;
  limit: number;
  now: number;
}

/** Reads everything that can be read, whatever is wrong with it. */
export function lookAtSegment(
  bytes: Uint8Array,
  { channel: only, limit, now }: SegmentOptions,
  findings: Findings,
): SegmentFound {
  const header = readHeader(bytes);
  const isLayout = checkHeader(bytes, header, findings);
  const isSound = findings.faults.length === 0;
  // Where the header does not even promise this layout, what follows is shown, and blamed on
  // nobody.
  const behind = isLayout ? findings : new Findings(0);
  const endpoints = readEndpoints(bytes, header);
  const channels = readChannels(bytes, header);
  const good = checkChannels(bytes, header, channels, behind);
  for (const { index, writer, reader } of channels) {
    if (!good.has(index)) continue;
    addPeer(endpoints, writer, reader);
    addPeer(endpoints, reader, writer);
  }
  for (const channel of channels) {
    if (only !== undefined && channel.index !== only) continue;
    if (!good.has(channel.index)) continue;
    if (channel.kind === RING) {
      channel.ring = lookAtRing(bytes, channel, { endpoints, limit, now }, behind);
    } else if (channel.kind === PROPERTY) {
      const property = lookAtProperty(bytes, channel, endpoints.length, behind);
      if (property !== undefined) channel.property = property;
    }
  }
  // After the channels: what still stands in a ring comes before its owner's state.
  // [pipe.first_answer]
  for (const { index, offset, state, state_name } of endpoints) {
    if (nameOf("endpoint_state", state & limitOf("state_mask")) !== undefined) continue;
    const at = offset + fieldOf("endpoint_record", "state").offset;
    const fact = `the state of endpoint ${index} is ${toHexNumber(state)}, ${state_name}`;
    behind.fault("segment.state", fact, { offset: at, endpoint: index });
  }
  if (isSound) {
    noteHeader(bytes, header, findings);
    noteRecords(bytes, header, endpoints, channels, findings);
    if (good.size === channels.length) notePlaces(bytes, header, channels, findings);
  }
  return {
    shape: shapeOf(header, channels),
    header,
    endpoints,
    channels: channels.filter(({ index }) => only === undefined || index === only),
  };
}

function readHeader(bytes: Uint8Array): Header {
  const load = (field: string): number | null => {
    const { offset, size } = fieldOf(HEADER, field);
    return offset + size > bytes.length ? null : get(bytes, 0, HEADER, field);
  };
  const ready = load("ready");
  return {
    magic: quote(String.fromCharCode(...bytes.slice(0, MAGIC.length))),
    ready,
    ready_name: ready === null ? "" : nameOf("segment_ready", ready) ?? "unknown",
    version_major: load("version_major"),
    version_minor: load("version_minor"),
    size: load("size"),
    required_features: load("required_features"),
    optional_features: load("optional_features"),
    endpoint_count: load("endpoint_count"),
    channel_count: load("channel_count"),
  };
}

/** The rows of the table of [segment.check] on the header. Says whether this layout is promised. */
function checkHeader(bytes: Uint8Array, header: Header, findings: Findings): boolean {
  const at = (field: string) => ({ offset: fieldOf(HEADER, field).offset });
  const least = limitOf("segment_size_min");
  if (bytes.length < least) {
    const fact = `the memory has ${toPlural(bytes.length, "byte")}, fewer than ${least}`;
    findings.fault("segment.size", fact);
    return false;
  }
  const field = header as { [Name in keyof Header]: Exclude<Header[Name], null> };
  if (field.ready_name === "unknown") {
    findings.fault("segment.magic", `ready is ${field.ready}, not 0, 1 or 2`, at("ready"));
    return false;
  }
  if (field.ready_name !== "ready") {
    const fact = `ready is ${field.ready}, ${field.ready_name}, not 2`;
    findings.fault("segment.unready", fact, at("ready"));
    return false;
  }
  if (field.magic !== `"${MAGIC}"`) {
    findings.fault("segment.magic", `the magic is ${field.magic}, not "${MAGIC}"`, at("magic"));
    return false;
  }
  if (field.version_major !== 1) {
    const fact = `the major version is ${field.version_major}, not 1`;
    findings.fault("segment.version", fact, at("version_major"));
    return false;
  }
  if (field.required_features !== 0) {
    const fact = `feature bits ${toHexNumber(field.required_features)} are required`;
    findings.fault("segment.feature", `${fact}, and none is defined`, at("required_features"));
  } else if (field.size % ALIGN !== 0 || field.size > bytes.length) {
    const wrong = field.size % ALIGN !== 0
      ? `no multiple of ${ALIGN}`
      : `more than the memory's ${toCount(bytes.length)}`;
    findings.fault("segment.size", `the size is ${toCount(field.size)}, ${wrong}`, at("size"));
  } else checkCounts(field, findings);
  return true;
}

function checkCounts(
  header: { [Name in keyof Header]: Exclude<Header[Name], null> },
  findings: Findings,
): void {
  const { endpoint_count: endpoints, channel_count: channels, size } = header;
  const at = (field: string) => ({ offset: fieldOf(HEADER, field).offset });
  const [endpointsMost, channelsMost] = [
    limitOf("endpoint_count_max"),
    limitOf("channel_count_max"),
  ];
  if (endpoints < 1 || endpoints > endpointsMost) {
    const fact = `${toPlural(endpoints, "endpoint")}, not 1 to ${endpointsMost}`;
    return findings.fault("segment.table", fact, at("endpoint_count"));
  }
  if (channels > channelsMost) {
    const fact = `${toPlural(channels, "channel")}, more than ${toCount(channelsMost)}`;
    return findings.fault("segment.table", fact, at("channel_count"));
  }
  const end = descriptorAt(endpoints, channels);
  if (end <= size) return;
  const fact = `the tables end at ${toCount(end)}, behind the segment's ${toCount(size)} bytes`;
  findings.fault("segment.table", fact, at("channel_count"));
}

/** The records that the header states and that the memory has. */
function readEndpoints(bytes: Uint8Array, header: Header): Endpoint[] {
  const count = Math.min(header.endpoint_count ?? 0, limitOf("endpoint_count_max"));
  const endpoints: Endpoint[] = [];
  for (let index = 0; index < count && recordAt(index + 1) <= bytes.length; index++) {
    const offset = recordAt(index);
    const load = (field: string) => get(bytes, offset, "endpoint_record", field);
    const state = load("state");
    const { name, reason } = toState(state);
    const wakes = load("wakes");
    const rung = fieldOf("endpoint_record", "rung");
    endpoints.push({
      index,
      offset,
      bell: load("bell"),
      state,
      state_name: name,
      reason,
      wakes,
      wakes_names: bitsOf("wake_mechanism", wakes),
      agent: load("agent"),
      generation: load("generation"),
      features: load("features"),
      rung: toIndexes(bytes.slice(offset + rung.offset, offset + rung.offset + rung.size)),
      peers: [],
    });
  }
  return endpoints;
}

/** The descriptors that are there; none where the number of endpoints cannot be right. */
function readChannels(bytes: Uint8Array, header: Header): Channel[] {
  const endpoints = header.endpoint_count ?? 0;
  if (endpoints < 1 || endpoints > limitOf("endpoint_count_max")) return [];
  const count = Math.min(header.channel_count ?? 0, limitOf("channel_count_max"));
  const channels: Channel[] = [];
  for (let index = 0; index < count; index++) {
    const offset = descriptorAt(endpoints, index);
    if (offset + sizeOf("channel_descriptor") > bytes.length) break;
    const load = (field: string) => get(bytes, offset, "channel_descriptor", field);
    const kind = load("kind");
    channels.push({
      index,
      offset,
      kind,
      kind_name: nameOf("channel_kind", kind) ?? `unknown ${kind}`,
      writer: load("writer"),
      reader: load("reader"),
      control_offset: load("control_offset"),
      control_size: load("control_size"),
      data_offset: load("data_offset"),
      data_size: load("data_size"),
      label: load("label"),
      start: load("start"),
    });
  }
  return channels;
}

/** An area, and whose it is. */
interface Area {
  begin: number;
  end: number;
  channel: number;
  field: "control_offset" | "data_offset";
}

/** The rows of the table on channels. Returns the channels that are in order on their own. */
function checkChannels(
  bytes: Uint8Array,
  header: Header,
  channels: Channel[],
  findings: Findings,
): Set<number> {
  const good = new Set<number>();
  const areas: Area[] = [];
  for (const channel of channels) {
    const found = checkChannel(bytes, header, channel);
    const { index, offset } = channel;
    if (found !== undefined) {
      const at = offset + fieldOf("channel_descriptor", found.field).offset;
      findings.fault("segment.channel", `channel ${index}: ${found.fact}`, {
        offset: at,
        channel: index,
      });
      continue;
    }
    good.add(index);
    areas.push(...areasOf(channel));
  }
  areas.sort((a, b) => a.begin - b.begin);
  let last: Area | undefined;
  for (const area of areas) {
    if (last !== undefined && area.begin < last.end) {
      const owner = channels[area.channel]!;
      const fact = `channel ${area.channel}: an area overlaps one of channel ${last.channel}`;
      const at = owner.offset + fieldOf("channel_descriptor", area.field).offset;
      findings.fault("segment.channel", fact, { offset: at, channel: area.channel });
    }
    if (last === undefined || area.end > last.end) last = area;
  }
  return good;
}

/** The areas of a channel that hold any byte. */
function areasOf(channel: Channel): Area[] {
  const { index, control_offset, control_size, data_offset, data_size } = channel;
  const all: Area[] = [
    {
      begin: control_offset,
      end: control_offset + control_size,
      channel: index,
      field: "control_offset",
    },
    { begin: data_offset, end: data_offset + data_size, channel: index, field: "data_offset" },
  ];
  return all.filter(({ begin, end }) => end > begin);
}

function checkChannel(
  bytes: Uint8Array,
  header: Header,
  channel: Channel,
): { field: string; fact: string } | undefined {
  const { kind } = channel;
  const endpoints = header.endpoint_count!;
  const fail = (field: string, fact: string) => ({ field, fact });
  const tables = descriptorAt(endpoints, header.channel_count!);
  // Of a segment that states more than there is, what is there.
  const most = Math.min(bytes.length, header.size ?? 0);
  for (const area of ["control", "data"] as const) {
    const [offset, size] = [channel[`${area}_offset`], channel[`${area}_size`]];
    const name = area === "control" ? "the control area" : "the byte area";
    const field = `${area}_offset`;
    if (offset % ALIGN !== 0) {
      return fail(field, `${name} begins at ${toHexNumber(offset)}, no multiple of ${ALIGN}`);
    }
    if (offset < tables) {
      return fail(field, `${name} begins at ${toHexNumber(offset)}, within the tables`);
    }
    if (offset + size > most) {
      const fact = `${name} ends at ${toCount(offset + size)}, behind the segment's`;
      return fail(field, `${fact} ${toCount(most)} bytes`);
    }
  }
  return kind === RING ? checkRing(endpoints, channel) : undefined;
}

/** What only a ring must be: channels of other kinds may have any ends. [segment.unknown_kind] */
function checkRing(
  endpoints: number,
  channel: Channel,
): { field: string; fact: string } | undefined {
  const { writer, reader, start } = channel;
  const fail = (field: string, fact: string) => ({ field, fact });
  for (const [field, index] of [["writer", writer], ["reader", reader]] as const) {
    if (index < endpoints) continue;
    return fail(field, `the ${field} is ${toEnd(index)}, of ${toPlural(endpoints, "endpoint")}`);
  }
  if (writer === reader) return fail("reader", `endpoint ${writer} writes to itself`);
  const control = sizeOf("ring_control");
  if (channel.control_size < control) {
    return fail("control_size", `${channel.control_size} bytes of control words, not ${control}`);
  }
  const capacity = channel.data_size;
  const [smallest, largest] = [limitOf("ring_capacity_min"), limitOf("ring_capacity_max")];
  // A power of two has one bit: without its lowest one, none is left.
  if (capacity < smallest || capacity > largest || (capacity & (capacity - 1)) !== 0) {
    const fact = `the capacity is ${toCount(capacity)}, no power of two from 256 to 2^30`;
    return fail("data_size", fact);
  }
  if (start % limitOf("frame_align") === 0) return undefined;
  return fail("start", `start ${start} is no multiple of ${limitOf("frame_align")}`);
}

/** [segment.peers] */
function addPeer(endpoints: Endpoint[], index: number, peer: number): void {
  const { peers } = endpoints[index] ?? {};
  if (peers === undefined || peer >= endpoints.length || peer === index) return;
  if (!peers.includes(peer)) peers.push(peer);
}

/** What the channels make of it. */
function shapeOf({ endpoint_count, channel_count }: Header, channels: Channel[]): string {
  const endpoints = endpoint_count ?? 0;
  if (endpoints === 0) return "memory without endpoints";
  const counts = `${toPlural(endpoints, "endpoint")}, ${toPlural(channel_count ?? 0, "channel")}`;
  const leads = (index: number, writer: number, reader: number) => {
    const channel = channels[index];
    return channel?.kind === RING && channel.writer === writer && channel.reader === reader;
  };
  if (channels.length !== channel_count) return counts;
  if (endpoints === 2 && channels.length === 1) {
    return leads(0, 0, 1) || leads(0, 1, 0) ? "a pipe" : counts;
  }
  const clients = endpoints - 1;
  const isHub = clients > 0 && channels.length === 2 * clients &&
    Array.from({ length: clients }, (_, client) => client).every((client) =>
      leads(2 * client, 0, client + 1) && leads(2 * client + 1, client + 1, 0)
    );
  if (!isHub) return counts;
  return clients === 1 ? "a port" : `a hub of ${clients} clients`;
}
