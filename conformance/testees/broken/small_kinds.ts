/**
 * The small port: the channels that are no rings.
 *
 * @module
 */

import { has } from "./faults.ts";
import { type Memory, Refused } from "./small_memory.ts";
import type { Channel, Geometry } from "./small_segment.ts";

export const [PROPERTY, FANOUT] = [2, 3] as const;
export const NOBODY = 0xffffffff;
/** Where the name of a property stands: its size first. */
const [NAME_SIZE, NAME, NAME_MOST] = [256, 260, 124];
const PROPERTY_CONTROL_SIZE = 384;
const [FANOUT_CONTROL_SIZE, RECORD_SIZE] = [256, 128];
const ERA_SIZE = 2 ** 31;

/** The kind and the size of the control area of what is no ring. Refuses what cannot be made. */
export function otherKind(
  { kind, readers, writer, reader, capacity, name = "", start = 0 }: Geometry["channels"][number],
  endpoints: number,
): { kind: number; controlSize: number } | undefined {
  const isWritten = Number.isInteger(writer) && writer >= 0 && writer < endpoints &&
    reader === NOBODY;
  if (readers !== undefined) {
    const isCounted = readers >= 1 && readers < endpoints;
    const isPlaced = isCapacity(capacity) && (start - start % 2) % 16 === 0;
    if (!isWritten || !isCounted || !isPlaced) throw new Refused("no fanout");
    return { kind: FANOUT, controlSize: FANOUT_CONTROL_SIZE + RECORD_SIZE * readers };
  }
  if (kind !== PROPERTY) return undefined;
  // [property.areas], [property.name]
  const isArea = capacity > 0 && capacity % 512 === 0 && start === 0;
  const isNamed = new TextEncoder().encode(name).length <= NAME_MOST;
  if (!isWritten || !isArea || !isNamed) throw new Refused("no property");
  return { kind, controlSize: PROPERTY_CONTROL_SIZE };
}

/** Fills in a control area in which all bytes are 0. */
export function beginOther(
  memory: Memory,
  kind: number,
  control: number,
  start: number,
  name: string,
): void {
  if (kind === PROPERTY) {
    const bytes = new TextEncoder().encode(has("property_unnamed") ? "" : name);
    memory.setU32(control + NAME_SIZE, bytes.length);
    memory.bytes.set(bytes, control + NAME);
    return;
  }
  // [fanout.start]
  const position = start - start % 2;
  memory.store(control, position);
  memory.store(control + 4, position);
  memory.store(control + 8, Math.floor(position / ERA_SIZE));
}

/** The name of a property; empty where it has none that is in order. */
export function nameOf(memory: Memory, control: number): string {
  const size = memory.u32(control + NAME_SIZE);
  if (size > NAME_MOST) return "";
  const bytes = memory.bytes.slice(control + NAME, control + NAME + size);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return "";
  }
}

/** Whether a channel passes the checks of a property. [property.open] */
export function isProperty(
  { kind, writer, reader, controlSize, capacity }: Channel,
  endpoints: number,
): boolean {
  if (kind !== PROPERTY) return false;
  const isArea = capacity >= 512 && capacity % 512 === 0;
  return controlSize >= PROPERTY_CONTROL_SIZE && isArea && writer < endpoints && reader === NOBODY;
}

/** The endpoints that read a fanout, in the order of their records; none where it fails a check. */
export function readersOf(
  { kind, writer, reader, controlSize, capacity, start }: Channel,
  endpoints: number,
): number[] {
  const count = (controlSize - FANOUT_CONTROL_SIZE) / RECORD_SIZE;
  const isFanout = kind === FANOUT && writer < endpoints && reader === NOBODY &&
    Number.isInteger(count) && count >= 1 && count < endpoints && isCapacity(capacity) &&
    (start - start % 2) % 16 === 0;
  if (!isFanout) return [];
  return Array.from({ length: count }, (_, index) => (writer + 1 + index) % endpoints);
}

export function isCapacity(capacity: number): boolean {
  return Number.isInteger(Math.log2(capacity)) && capacity >= 256 && capacity <= 2 ** 30;
}
