// The memories of `golden/`, and, when it is run, what the inspector prints of them.

import { extended, firstOf, part, pattern, pipe, rungBits } from "../reference/builder.ts";
import { property } from "../reference/builder_many.ts";
import { stateAt, utf8, whole } from "../reference/builder.ts";
import {
  buildFrame,
  buildMailbox,
  buildSegment,
  failed,
  fillRing,
  NOBODY,
  put,
  recordAt,
  type Segment,
  TOTAL_UNKNOWN,
} from "../reference/encode.ts";
import { annotate, diff, format, formatLines, inspect } from "./mod.ts";

/** The moment up to which the times of these frames are reckoned. */
export const NOW = Date.parse("2026-02-03T04:05:06Z");
/** A second before it, as a frame says it. */
const TIME = Number((BigInt(NOW - 1000) * 1000n + 42n) & 0xffff_ffffn);

function record(
  { bytes }: Segment,
  index: number,
  fields: { bell: number; state: number; wakes: number; agent?: number },
): void {
  for (const [name, value] of Object.entries(fields)) {
    put(bytes, recordAt(index), "endpoint_record", name, value);
  }
}

function control({ bytes, channels }: Segment, index: number, words: Record<string, number>): void {
  for (const [name, value] of Object.entries(words)) {
    put(bytes, channels[index]!.control, "ring_control", name, value);
  }
}

/** A writer that waits for room, at work on a message of 300 bytes; its reader has taken a part. */
export function waitingPipe(): Uint8Array {
  const segment = pipe({
    capacity: 256,
    start: 640,
    channel: { label: 7 },
    states: [1, 1],
    frames: [
      whole("taken already", { tag: 1, time: TIME }),
      whole("grün \u001b[31m", { tag: 2, time: TIME }),
      { kind: 6, payload: new Uint8Array(48) },
      firstOf(300, pattern(40), { tag: 3, time: TIME }),
      part(pattern(40, 40), { tag: 3, flags: 0, time: TIME }),
    ],
  });
  record(segment, 0, { bell: 4, state: 1, wakes: 1, agent: 4711 });
  record(segment, 1, { bell: 9, state: 1, wakes: 3 });
  control(segment, 0, { head: 672, writer_wants: 0x321 });
  return segment.bytes;
}

/** A port whose side b was lost in the middle of a message, and found side a at fault before. */
export function brokenPort(): Uint8Array {
  const segment = buildSegment({
    endpoints: 2,
    channels: [
      { writer: 0, reader: 1, capacity: 256 },
      { writer: 1, reader: 0, capacity: 256, start: 64 },
    ],
    states: [failed("frame.kind"), failed("peer.lost")],
  });
  const [, second] = fillRing(segment, 0, [
    whole('{"a":1}', { codec: 2 }),
    whole('{"a":', { codec: 2 }),
  ]);
  put(segment.bytes, second! + 32, "frame_header", "kind", 9);
  control(segment, 0, { tail: 96, reader_wants: 0x31 });
  fillRing(segment, 1, [firstOf(100, utf8("abc"))]);
  segment.bytes[0xff] = 1;
  return segment.bytes;
}

/**
 * A port whose side b was vacated three times, and is awaited: it will find a message that nobody
 * knows the end of. Beside it a channel of another kind, for everybody.
 */
export function awaitedPort(): Uint8Array {
  const segment = buildSegment({
    endpoints: 3,
    channels: [
      { writer: 0, reader: 1, capacity: 256 },
      { writer: 1, reader: 0, capacity: 256, start: 64 },
      { writer: 2, reader: NOBODY, capacity: 64, kind: 2, control_size: 64 },
    ],
    states: [1, stateAt(0, 3), stateAt(1, 1)],
    records: [
      { bell: 40, wakes: 1, rung: rungBits(1, 2) },
      { bell: 12, generation: 3 },
      { bell: 1, wakes: 2, generation: 2, features: 0x10 },
    ],
  });
  fillRing(segment, 0, [
    extended(whole("next")),
    firstOf(TOTAL_UNKNOWN, utf8("and "), { codec: 1 }),
    part(utf8("so on"), { codec: 1, flags: 0 }),
  ], 96);
  control(segment, 0, { head: 96 });
  control(segment, 1, { tail: 192, head: 192 });
  return segment.bytes;
}

/** A property that two endpoints watch, while its writer is at work on the next value. */
export function watchedProperty(): Uint8Array {
  const { bytes } = property({
    endpoints: 3,
    states: [1, 1, 1],
    channel: { name: "gain", label: 3 },
    behind: [{ kind: 2, writer: 2, reader: NOBODY, capacity: 512, name: "größe" }],
    version: 7,
    watchers: [1, 2],
    slots: {
      0: { sequence: 8, value: "half of wh", codec: 1 },
      1: { sequence: 5, value: new Uint8Array([1, 2, 3]) },
      2: { sequence: 6, present: 0 },
      3: { sequence: 7, value: '{"gain":', codec: 2 },
    },
  });
  return bytes;
}

/** A reader that wrote its writer's word. */
export function wrongHead(): Uint8Array {
  const segment = pipe({ states: [1, 1], frames: [whole("hi")] });
  control(segment, 0, { head: 48 });
  return segment.bytes;
}

/** The second of three parts. */
export function partOfMailbox(): Uint8Array {
  return buildMailbox({
    size: 48,
    signal: 1,
    length: 16,
    part_count: 3,
    part_index: 1,
    part: utf8('lo",[1,2,3],"wor'),
  });
}

/** What a write must leave behind, and what one did that had another tag and no `publish`. */
export function twoPipes(): [Uint8Array, Uint8Array] {
  const [must, is] = [pipe({ states: [1, 1] }), pipe({ states: [1, 1] })];
  must.bytes.set(buildFrame(whole("hello", { tag: 5 })), must.data);
  control(must, 0, { tail: 32 });
  is.bytes.set(buildFrame(whole("hello", { tag: 6 })), is.data);
  return [must.bytes, is.bytes];
}

/** Every golden file and what it must hold. */
export function makeGolden(): Map<string, string> {
  const look = (bytes: Uint8Array, name: string) => format(inspect(bytes, { now: NOW }), { name });
  return new Map([
    ["waiting_pipe.txt", look(waitingPipe(), "pipe.bin")],
    ["broken_port.txt", look(brokenPort(), "port.bin")],
    ["awaited_port.txt", look(awaitedPort(), "port.bin")],
    ["awaited_raw.txt", formatLines(annotate(awaitedPort(), { now: NOW }))],
    ["property.txt", look(watchedProperty(), "state.bin")],
    ["property_raw.txt", formatLines(annotate(watchedProperty(), { now: NOW, channel: 0 }))],
    ["wrong_head.txt", look(wrongHead(), "pipe.bin")],
    ["mailbox.txt", look(partOfMailbox(), "box.bin")],
    ["raw.txt", formatLines(annotate(brokenPort(), { now: NOW, channel: 0 }))],
    ["diff.txt", diff(...twoPipes(), { now: NOW })],
  ]);
}

if (import.meta.main) {
  const folder = new URL("golden/", import.meta.url);
  Deno.mkdirSync(folder, { recursive: true });
  for (const [name, text] of makeGolden()) Deno.writeTextFileSync(new URL(name, folder), text);
}
