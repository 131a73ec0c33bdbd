/**
 * A ring: its control words, what follows from them, and its frames.
 *
 * @module
 */

import { get } from "../reference/decode.ts";
import { fieldOf, limitOf, sizeOf } from "../reference/layout.ts";
import type { Findings } from "./findings.ts";
import { walkFrames } from "./frames.ts";
import type { Channel, Endpoint, Ring, Wants } from "./inspection.ts";
import { fieldsOf, toPlural } from "./names.ts";

const ALIGN = limitOf("frame_align");
const RESERVE = limitOf("ring_reserve");
const ARMED = limitOf("wants_armed");

/** What the rings of a segment have in common. */
export interface RingSetting {
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
