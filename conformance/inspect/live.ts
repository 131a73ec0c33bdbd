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
export function snapshot(memory: LiveMemory): Uint8Array {
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
  // tail comes before the frames, and the head behind them.
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
