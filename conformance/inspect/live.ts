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
/** Looks at a mailbox whose part changes meanwhile. */
const TRIES = 8;

/** A copy of a segment or a mailbox, as good as it can be had. */
export function snapshot(memory: LiveMemory): Uint8Array {
  const magic = String.fromCharCode(...memory.read(0, 8));
  return magic === "MILLRACE" ? snapshotSegment(memory) : snapshotMailbox(memory);
}

/** A copy in which the frames of each ring are whole, as they were at one moment each. */
export function snapshotSegment(memory: LiveMemory): Uint8Array {
  const size = memory.size();
  const { rings, end } = findTables(memory, size);
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
  // At last the states: a reader that is vacant even now has not moved its head.
  bytes.set(memory.read(0, Math.min(bytes.length, end)));
  return bytes;
}

/** Where the tables end, and where the rings' control words are; nowhere if they are wrong. */
function findTables(memory: LiveMemory, size: number): { rings: number[]; end: number } {
  const none = { rings: [], end: 0 };
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
  for (let index = 0; index < channels; index++) {
    const at = descriptorAt(endpoints, index);
    const kind = get(tables, at, "channel_descriptor", "kind");
    const control = get(tables, at, "channel_descriptor", "control_offset");
    if (kind !== valueOf("channel_kind", "ring")) continue;
    if (control >= end && control + sizeOf("ring_control") <= size) rings.push(control);
  }
  return { rings, end };
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
