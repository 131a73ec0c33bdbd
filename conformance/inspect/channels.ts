/**
 * A ring: its control words, what follows from them, and its frames.
 *
 * @module
 */

import { get } from "../reference/decode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "../reference/layout.ts";
import { walkFrames } from "./frames.ts";
import type { Channel, Endpoint, Findings, Property, PropertySlot, Ring } from "./inspection.ts";
import type { Wants } from "./inspection.ts";
import { codecName, fieldsOf, toCount, toEnd, toIndexes, toPlural } from "./names.ts";
import { quote, toPayload, undecodable } from "./payload.ts";

const ALIGN = limitOf("frame_align");
const RESERVE = limitOf("ring_reserve");
const ARMED = limitOf("wants_armed");

/** What the rings of a segment have in common. */
interface RingSetting {
  endpoints: readonly Endpoint[];
  limit: number;
  now: number;
}

/** Where the owner of an end is: there, or still to come, for the first time or once more. */
type Owner = "there" | "first" | "again";

function ownerOf(endpoint: Endpoint | undefined): Owner {
  if (endpoint?.state_name !== "vacant") return "there";
  return endpoint.generation === 0 ? "first" : "again";
}

/** Reads a ring whose descriptor is in order. */
export function lookAtRing(
  bytes: Uint8Array,
  channel: Channel,
  { endpoints, limit, now }: RingSetting,
  findings: Findings,
): Ring {
  const { control_offset: control, data_size: capacity, start, index } = channel;
  const load = (field: string) => get(bytes, control, "ring_control", field);
  const tail = load("tail");
  const head = load("head");
  const reads = ownerOf(endpoints[channel.reader]);
  const writes = ownerOf(endpoints[channel.writer]);
  // Whoever attaches begins at `start`, whatever the cursors say, or, where somebody has been there
  // before, at its own. [ring.start], [ring.start_again]
  const from = reads === "first" ? start : reads === "again" ? aligned(head) : head;
  const place = (position: number) => capacity === 0 ? 0 : position % capacity;
  const fault = checkCursors(channel, { tail, head, from, reads, writes });
  if (fault !== undefined) {
    const offset = control + fieldOf("ring_control", fault.word).offset;
    findings.fault("ring.cursor", fault.fact, { offset, channel: index });
  }
  noteCursors(channel, { tail, head, reads, writes }, findings);
  noteControl(bytes, channel, findings);
  const used = fault === undefined ? (tail - head) >>> 0 : null;
  const walked = fault === undefined
    ? walkFrames(bytes, {
      channel,
      from,
      tail: writes === "again" ? aligned(tail) : tail,
      head,
      isFresh: from === start || reads !== "there",
      limit,
      now,
    }, findings)
    : { frames: [], frameCount: 0, messageCount: 0, ended: false, progress: undefined };
  const reader = toWants(load("reader_wants"), channel.reader, tail);
  const writer = toWants(load("writer_wants"), channel.writer, head);
  noteWants(channel, { reader, writer, tail }, findings);
  return {
    tail,
    head,
    tail_place: place(tail),
    head_place: place(head),
    used,
    free: used === null ? null : capacity - used,
    room: used === null ? null : Math.max(0, capacity - RESERVE - used),
    wraps: used !== null && place(head) + used > capacity,
    from: reads === "first" ? "start" : "head",
    reader_wants: reader,
    writer_wants: writer,
    frame_count: walked.frameCount,
    message_count: walked.messageCount,
    ended: walked.ended,
    ...(walked.progress !== undefined && { in_progress: walked.progress }),
    frames: walked.frames,
  };
}

interface Cursors {
  tail: number;
  head: number;
  /** Where the reader goes on. */
  from: number;
  reads: Owner;
  writes: Owner;
}

/** A position without its low bits. */
function aligned(cursor: number): number {
  return cursor - cursor % ALIGN;
}

/** As much of the table of [ring.cursor] as one look can show. */
function checkCursors(
  { data_size: capacity, start }: Channel,
  { tail: foundTail, head: foundHead, from, reads, writes }: Cursors,
): { word: string; fact: string } | undefined {
  // The owner that comes back clears the low bits of its own.
  const tail = writes === "again" ? aligned(foundTail) : foundTail;
  const head = reads === "again" ? aligned(foundHead) : foundHead;
  if (tail % ALIGN !== 0) return { word: "tail", fact: `tail ${tail} is no multiple of ${ALIGN}` };
  if (head % ALIGN !== 0) return { word: "head", fact: `head ${head} is no multiple of ${ALIGN}` };
  const bounds = `only 0 to ${capacity} ahead can be`;
  if ((tail - from) >>> 0 > capacity) {
    const where = from === head ? `head ${head}` : `start ${start}, where its reader will begin`;
    return { word: "tail", fact: `tail ${tail} is ${distance(tail, from)} ${where}; ${bounds}` };
  }
  if ((tail - head) >>> 0 > capacity) {
    return {
      word: "head",
      fact: `tail ${tail} is ${distance(tail, head)} head ${head}; ${bounds}`,
    };
  }
  const begin = writes === "again" ? tail : start;
  if (writes !== "there" && head !== begin) {
    const where = writes === "again" ? `tail ${tail}` : `start ${start}`;
    return { word: "head", fact: `head is ${head}, but its writer will begin at ${where}` };
  }
  return undefined;
}

function distance(position: number, from: number): string {
  const bytes = (position - from) | 0;
  return `${toPlural(Math.abs(bytes), "byte")} ${bytes < 0 ? "behind" : "ahead of"}`;
}

/** What an endpoint that nobody owns, or has ever owned, cannot have stored. */
function noteCursors(
  { index, start, control_offset, writer, reader }: Channel,
  { tail, head, reads, writes }: { tail: number; head: number; reads: Owner; writes: Owner },
  findings: Findings,
): void {
  const note = (word: string, value: number, owner: number, state: Owner) => {
    const offset = control_offset + fieldOf("ring_control", word).offset;
    const isGood = state === "again" ? value % ALIGN === 0 : value === start;
    if (state === "there" || isGood) return;
    const wrong = state === "again" ? `no multiple of ${ALIGN}` : `not start ${start}`;
    const fact = `${word} is ${value} and ${wrong}, but endpoint ${owner} is vacant`;
    findings.note(fact, { offset, channel: index }, `ring.${word}_owner`);
  };
  note("tail", tail, writer, writes);
  note("head", head, reader, reads);
}

/** Bytes of the control area that nobody has a reason to write. */
function noteControl(
  bytes: Uint8Array,
  { index, control_offset, control_size }: Channel,
  findings: Findings,
): void {
  let count = 0;
  let first: number | undefined;
  let word = 0;
  const words = fieldsOf("ring_control");
  for (let at = 0; at < Math.min(control_size, sizeOf("ring_control")); at++) {
    while (word < words.length && at >= words[word]!.offset + 4) word += 1;
    if (word < words.length && at >= words[word]!.offset) continue;
    if (bytes[control_offset + at] === 0) continue;
    count += 1;
    first ??= control_offset + at;
  }
  if (first === undefined) return;
  const fact = `${toPlural(count, "byte")} between the control words not 0`;
  findings.note(fact, { offset: first, channel: index });
}

function toWants(value: number, owner: number, cursor: number): Wants {
  if (value === 0) return { value, owner, target: null, missing: null };
  const target = (value & ~ARMED) >>> 0;
  return { value, owner, target, missing: (target - cursor) | 0 };
}

/** Requests that no endpoint makes. They count all the same. */
function noteWants(
  { index, control_offset }: Channel,
  { reader, writer, tail }: { reader: Wants; writer: Wants; tail: number },
  findings: Findings,
): void {
  const note = (word: string, fact: string, clause?: string) => {
    const offset = control_offset + fieldOf("ring_control", word).offset;
    findings.note(`${word} ${fact}`, { offset, channel: index }, clause);
  };
  for (const [word, { value }] of [["reader_wants", reader], ["writer_wants", writer]] as const) {
    if (value !== 0 && value % ALIGN !== ARMED) note(word, "is no position with bit 0 set");
  }
  if (reader.missing !== null && reader.missing > ALIGN) {
    note("reader_wants", `asks for more than the next ${ALIGN} bytes`, "wait.reader_asks");
  }
  if (writer.target !== null && ((writer.target - tail) | 0) > 0) {
    note(
      "writer_wants",
      "asks for a position beyond tail, which no reader reaches",
      "wait.writer_more",
    );
  }
}

// A property: its name, its last version, who watches, and what stands in its slots, with the
// checks of `spec/property.md`.
//
// Nobody who attaches to a segment looks at its properties, so that none of this is a fault of the
// segment: a channel that no endpoint would open as a property is a note, and a value that no
// endpoint would get is a report.

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

/** The version that is set after another one. */
function following(version: number): number {
  return version === 2 ** 32 - 1 ? SLOT_COUNT : version + 1;
}

/** What the last version and the number of a slot say about what it holds. */
function holdsOf(slot: number, sequence: number, version: number): PropertySlot["holds"] {
  if (version !== 0 && slot === version % SLOT_COUNT) return "last";
  const next = following(version);
  if (sequence === next && slot === next % SLOT_COUNT) return "begun";
  // After 2^32 - 1 comes 4, so that those before a small version may be the largest numbers.
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
