/**
 * What no endpoint refuses in a segment, and somebody may want to know: reserved bytes that are not
 * 0, states that nobody may store, bytes that belong to nothing.
 *
 * @module
 */

import { descriptorAt, recordAt } from "../reference/encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "../reference/layout.ts";
import type { Findings } from "./findings.ts";
import type { Channel, Endpoint, Header } from "./inspection.ts";
import { fieldsOf, toHexNumber, toPlural, toState } from "./names.ts";

const ALIGN = limitOf("segment_align");
const RING = valueOf("channel_kind", "ring");

/** The header. */
export function noteHeader(bytes: Uint8Array, header: Header, findings: Findings): void {
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
export function noteRecords(
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
  // Whoever vacates adds to the generation, and changes the final state behind it.
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

/** Where the areas lie, and what lies between and behind them. */
export function notePlaces(
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
