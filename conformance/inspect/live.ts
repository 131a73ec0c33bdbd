/**
 * A look at memory that others are writing.
 *
 * The inspector reads the file and does not map it: what is read that way is what the mappings
 * hold, no right to write is needed, and a file that becomes shorter ends a read and not the
 * process. What it reads is older at its beginning than at its end, so the words that say which
 * bytes count are read in an order in which these bytes stay as they are.
 *
 * @module
 */

import { number } from "../reference/bytes.ts";
import { get } from "../reference/decode.ts";
import { descriptorAt } from "../reference/encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "../reference/layout.ts";
import { checkSize } from "./input.ts";

/** Memory that changes while it is read. */
export interface LiveMemory {
  /** Bytes now. */
  size(): number;
  /** These bytes, or as many of them as there are. */
  read(offset: number, size: number): Uint8Array;
}

const WORD = 4;
const TAIL = fieldOf("ring_control", "tail").offset;
const HEAD = fieldOf("ring_control", "head").offset;
const SLOT_COUNT = limitOf("property_slot_count");
/** Looks at a mailbox whose part changes meanwhile, or at a property that is set meanwhile. */
const TRIES = 8;

/** A copy of a segment or a mailbox, as good as it can be had. */
function snapshot(memory: LiveMemory): Uint8Array {
  const magic = String.fromCharCode(...memory.read(0, 8));
  return magic === "MILLRACE" ? snapshotSegment(memory) : snapshotMailbox(memory);
}

/**
 * A copy in which the frames of each ring are whole, and so is the last value of each property, as
 * they were at one moment each.
 */
export function snapshotSegment(memory: LiveMemory): Uint8Array {
  const size = memory.size();
  const { rings, properties, end } = findTables(memory, size);
  // The frames up to this tail are written, and they stay until a head moves over them. So the
  // tail comes before the frames, and the head after them.
  const tails = rings.map((control) => memory.read(control + TAIL, WORD));
  const bytes = memory.read(0, size);
  rings.forEach((control, index) => {
    const tail = tails[index]!;
    const head = memory.read(control + HEAD, WORD);
    if (control + HEAD + WORD > bytes.length || head.length < WORD || tail.length < WORD) return;
    const isEmptied = ((number(tail) - number(head)) | 0) < 0;
    bytes.set(isEmptied ? head : tail, control + TAIL);
    bytes.set(head, control + HEAD);
  });
  for (const place of properties) copyProperty(memory, bytes, place);
  // At last the states: a reader that is vacant even now has not moved its head.
  bytes.set(memory.read(0, Math.min(bytes.length, end)));
  return bytes;
}

/** Where a property's areas are. */
interface PropertyPlace {
  control: number;
  data: number;
  /** Bytes of each of its slots. */
  slot: number;
}

/** The last value and its version, as one moment had them, if they hold still for long enough. */
function copyProperty(
  memory: LiveMemory,
  bytes: Uint8Array,
  { control, data, slot }: PropertyPlace,
): void {
  for (let tries = 0; tries < TRIES; tries++) {
    const version = memory.read(control, WORD);
    if (version.length < WORD) return;
    const at = data + number(version) % SLOT_COUNT * slot;
    const value = memory.read(at, slot);
    // A writer that begins this slot anew says so before it changes anything else there.
    const sequence = memory.read(at, WORD);
    if (Math.max(control + WORD, at + value.length) > bytes.length) return;
    bytes.set(version, control);
    bytes.set(value, at);
    if (number(version) === 0 || number(version) === number(sequence)) return;
  }
}

/** The tables' end, and where what they describe is; nowhere if they are wrong. */
function findTables(
  memory: LiveMemory,
  size: number,
): { rings: number[]; properties: PropertyPlace[]; end: number } {
  const none = { rings: [], properties: [], end: 0 };
  const header = memory.read(0, sizeOf("segment_header"));
  if (header.length < sizeOf("segment_header")) return none;
  const load = (field: string) => get(header, 0, "segment_header", field);
  const [endpoints, channels] = [load("endpoint_count"), load("channel_count")];
  const isSound = load("ready") === valueOf("segment_ready", "ready") &&
    endpoints <= limitOf("endpoint_count_max") && channels <= limitOf("channel_count_max");
  if (!isSound) return none;
  const end = descriptorAt(endpoints, channels);
  const tables = memory.read(0, Math.min(end, size));
  if (tables.length < end) return none;
  const rings: number[] = [];
  const properties: PropertyPlace[] = [];
  for (let index = 0; index < channels; index++) {
    const at = descriptorAt(endpoints, index);
    const kind = get(tables, at, "channel_descriptor", "kind");
    const control = get(tables, at, "channel_descriptor", "control_offset");
    if (kind === valueOf("channel_kind", "property")) {
      const data = get(tables, at, "channel_descriptor", "data_offset");
      const data_size = get(tables, at, "channel_descriptor", "data_size");
      const isSound = data_size % limitOf("property_data_unit") === 0 && data_size > 0 &&
        control >= end && data >= end && data + data_size <= size;
      if (isSound) properties.push({ control, data, slot: data_size / SLOT_COUNT });
    }
    if (kind !== valueOf("channel_kind", "ring")) continue;
    if (control >= end && control + sizeOf("ring_control") <= size) rings.push(control);
  }
  return { rings, properties, end };
}

/** A copy in which the part and the words belong together, if it holds still for long enough. */
export function snapshotMailbox(memory: LiveMemory): Uint8Array {
  const size = memory.size();
  let bytes = memory.read(0, size);
  for (let tries = 1; tries < TRIES; tries++) {
    const again = memory.read(0, Math.min(size, sizeOf("mailbox_header")));
    const isSame = again.every((byte, index) => byte === bytes[index]);
    if (isSame) break;
    bytes = memory.read(0, size);
  }
  return bytes;
}

// Looks at a file again and again, and draws what it holds.

/** What is watched, and how. */
interface WatchOptions {
  path: string;
  intervalMs: number;
  /** Turns what was read into text, and says whether it is sound. */
  draw(bytes: Uint8Array): { text: string; code: number };
  /** Whether to draw over what was drawn before. */
  isTerminal: boolean;
  write(text: string): void;
  signal: AbortSignal;
}

/** The other screen, no cursor, and no line that goes on in the next row; and back. */
export const ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l";
export const LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/** To the beginning of an empty screen. */
export const HOME = "\x1b[H\x1b[J";

/** Draws until the signal comes. Returns the code of the last look, 2 where there was no file. */
export async function watch(options: WatchOptions): Promise<number> {
  const { path, intervalMs, draw, isTerminal, write, signal } = options;
  let code = 2;
  let last: string | undefined;
  if (isTerminal) write(ENTER);
  try {
    while (!signal.aborted) {
      let text: string;
      try {
        ({ text, code } = draw(look(path)));
      } catch (error) {
        // It may come back: whoever creates a segment replaces the file that is left.
        [text, code] = [`${path}: ${(error as Error).message}\n`, 2];
      }
      // A pipe or a file gets what has changed, and no more.
      if (isTerminal) write(HOME + clip(`${statusOf(intervalMs)}\n\n${text.trimEnd()}`));
      else if (text !== last) write(`${last === undefined ? "" : "\n"}${text}`);
      last = text;
      await sleep(intervalMs, signal);
    }
  } finally {
    if (isTerminal) write(LEAVE);
  }
  return code;
}

/** The file as it is now, opened anew each time: it may have been replaced. */
function look(path: string): Uint8Array {
  using file = Deno.openSync(path, { read: true });
  const memory: LiveMemory = {
    size: () => {
      const { size } = file.statSync();
      checkSize(size);
      return size;
    },
    read: (offset, size) => {
      file.seekSync(offset, Deno.SeekMode.Start);
      const bytes = new Uint8Array(size);
      let count = 0;
      while (count < size) {
        const got = file.readSync(bytes.subarray(count));
        if (got === null) break;
        count += got;
      }
      return bytes.subarray(0, count);
    },
  };
  return snapshot(memory);
}

function statusOf(intervalMs: number): string {
  const time = new Date().toISOString().slice(11, 19);
  return `${time} UTC, every ${intervalMs} ms; Ctrl-C ends`;
}

/** As many lines as the terminal shows: what scrolls cannot be drawn over. */
export function clip(text: string): string {
  let rows = Infinity;
  try {
    rows = Deno.consoleSize().rows;
  } catch {
    // No terminal after all, so nothing scrolls.
  }
  const lines = text.split("\n");
  if (lines.length <= rows) return text;
  const rest = lines.length - rows + 1;
  return [...lines.slice(0, rows - 1), `… ${rest} lines more: use --channel`].join("\n");
}

/** Waits so long, or until the signal comes. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}
