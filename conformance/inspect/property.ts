/**
 * A property: its name, its last version, who watches, and what stands in its slots, with the
 * checks of `spec/property.md`.
 *
 * Nobody who attaches to a segment looks at its properties, so that none of this is a fault of the
 * segment: a channel that no endpoint would open as a property is a note, and a value that no
 * endpoint would get is a report.
 *
 * @module
 */

import { get } from "../reference/decode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "../reference/layout.ts";
import type { Findings } from "./findings.ts";
import type { Channel, Property, PropertySlot } from "./inspection.ts";
import { codecName, toCount, toEnd, toIndexes, toPlural } from "./names.ts";
import { quote, toPayload, undecodable } from "./payload.ts";

const CONTROL = "property_control";
const SLOT = "property_slot";
const SLOT_COUNT = limitOf("property_slot_count");
const UNIT = limitOf("property_data_unit");
const HEADER = sizeOf(SLOT);
/** Codecs of several values, which no property has. */
const LISTS = [valueOf("codec", "json_batch"), valueOf("codec", "values")];

/** Reads a property whose areas are in the segment; `undefined` where no endpoint would open it. */
export function lookAtProperty(
  bytes: Uint8Array,
  channel: Channel,
  endpointCount: number,
  findings: Findings,
): Property | undefined {
  const { index, control_offset: control, data_offset, data_size } = channel;
  const wrong = checkAreas(channel, endpointCount);
  if (wrong !== undefined) {
    const at = channel.offset + fieldOf("channel_descriptor", wrong.field).offset;
    const fact = `${wrong.fact}: nobody opens it`;
    findings.note(fact, { offset: at, channel: index }, "property.areas");
    return undefined;
  }
  const version = get(bytes, control, CONTROL, "version");
  const { offset, size } = fieldOf(CONTROL, "watchers");
  const watchers = toIndexes(bytes.slice(control + offset, control + offset + size));
  const nobody = watchers.find((each) => each >= endpointCount);
  if (nobody !== undefined) {
    const fact = `watchers has the bit of endpoint ${nobody}, of ${endpointCount}`;
    findings.note(fact, { offset: control + offset, channel: index }, "property.watch");
  }
  const slotSize = data_size / SLOT_COUNT;
  const slots = Array.from(
    { length: SLOT_COUNT },
    (_, slot) => readSlot(bytes, data_offset + slot * slotSize, { slot, slotSize, version }),
  );
  const last = slots.find(({ holds }) => holds === "last");
  if (last !== undefined) judge(bytes, { channel, last, version, slotSize }, findings);
  return { name: readName(bytes, channel, findings), version, watchers, slots };
}

/** The rows of the table of [property.open]. */
function checkAreas(
  { control_size, data_size, writer, reader }: Channel,
  endpoints: number,
): { field: string; fact: string } | undefined {
  const fail = (field: string, fact: string) => ({ field, fact });
  const control = sizeOf(CONTROL);
  if (control_size < control) {
    return fail("control_size", `${control_size} bytes of control words, not ${control}`);
  }
  if (data_size === 0 || data_size % UNIT !== 0) {
    const fact = `the byte area has ${toPlural(data_size, "byte")}, no multiple of ${UNIT}`;
    return fail("data_size", data_size === 0 ? "it has no byte area" : fact);
  }
  if (writer >= endpoints) {
    return fail("writer", `the writer is ${toEnd(writer)}, of ${toPlural(endpoints, "endpoint")}`);
  }
  if (reader === limitOf("endpoint_none")) return undefined;
  return fail("reader", `the reader is ${reader}, not nobody`);
}

/** The name, in quotes; null where it has none, or what stands there is none. */
function readName(
  bytes: Uint8Array,
  { index, control_offset: control }: Channel,
  findings: Findings,
): string | null {
  const { offset, size: room } = fieldOf(CONTROL, "name");
  const size = get(bytes, control, CONTROL, "name_size");
  const note = (fact: string, field: string) => {
    const spot = { offset: control + fieldOf(CONTROL, field).offset, channel: index };
    findings.note(fact, spot, "property.name");
  };
  if (size > room) {
    note(`name_size is ${toCount(size)}, above ${room}: it has no name`, "name_size");
    return null;
  }
  const name = bytes.slice(control + offset, control + offset + room);
  if (name.subarray(size).some((byte) => byte !== 0)) note("bytes behind the name not 0", "name");
  if (size === 0) return null;
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return quote(decoder.decode(name.subarray(0, size)));
  } catch {
    note("the name is not well-formed UTF-8: it has none", "name");
    return null;
  }
}

/** The version that is set behind another one. */
function following(version: number): number {
  return version === 2 ** 32 - 1 ? SLOT_COUNT : version + 1;
}

/** What the last version and the number of a slot say about what it holds. */
function holdsOf(slot: number, sequence: number, version: number): PropertySlot["holds"] {
  if (version !== 0 && slot === version % SLOT_COUNT) return "last";
  const next = following(version);
  if (sequence === next && slot === next % SLOT_COUNT) return "begun";
  // Behind 2^32 - 1 comes 4, so that those before a small version may be the largest numbers.
  let later = sequence;
  for (let turn = 1; turn < SLOT_COUNT; turn++) {
    later = following(later);
    if (later === version && sequence !== 0 && slot === sequence % SLOT_COUNT) return "older";
  }
  return "nothing";
}

function readSlot(
  bytes: Uint8Array,
  offset: number,
  { slot, slotSize, version }: { slot: number; slotSize: number; version: number },
): PropertySlot {
  const sequence = get(bytes, offset, SLOT, "sequence");
  const size = get(bytes, offset, SLOT, "size");
  const present = get(bytes, offset, SLOT, "present");
  const codec = get(bytes, offset, SLOT, "codec");
  const holds = holdsOf(slot, sequence, version);
  const isShown = holds !== "nothing" && present === 1 && size <= slotSize - HEADER;
  return {
    index: slot,
    offset,
    holds,
    sequence,
    size,
    present,
    codec,
    codec_name: codecName(codec),
    value: toPayload(bytes, offset + HEADER, isShown ? size : 0, codec),
  };
}

/** Reports why nobody gets the last value, or nobody can decode it. */
function judge(
  bytes: Uint8Array,
  { channel, last, version, slotSize }: {
    channel: Channel;
    last: PropertySlot;
    version: number;
    slotSize: number;
  },
  findings: Findings,
): void {
  const { offset, sequence, size, present, codec, value } = last;
  const report = (code: string, fact: string) =>
    findings.report(code, fact, { offset, channel: channel.index });
  const reserved = fieldOf(SLOT, "reserved");
  const from = offset + reserved.offset;
  const refuse = (fact: string) => report("property.slot", fact);
  if (sequence !== version) return refuse(`sequence is ${sequence}, but version ${version}`);
  if (present > 1) return refuse(`present is ${present}, not 0 or 1`);
  if (bytes.subarray(from, from + reserved.size).some((byte) => byte !== 0)) {
    return refuse("reserved bytes not 0");
  }
  if (present === 0) {
    if (size === 0 && codec === 0) return;
    return refuse(`there is no value, but the size is ${size} and the codec ${codec}`);
  }
  const most = slotSize - HEADER;
  if (size > most) return refuse(`the size is ${toCount(size)}, above ${toCount(most)}`);
  if (LISTS.includes(codec)) {
    return report("message.codec", `codec ${codecName(codec)} is none of a single value`);
  }
  const found = undecodable(bytes.subarray(value.offset, value.offset + size), codec);
  if (found !== undefined) report(found.code, found.fact);
}
