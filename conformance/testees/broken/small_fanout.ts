/**
 * The small port: what both ends of a fanout know of it.
 *
 * @module
 */

import { Endpoint } from "./small_endpoint.ts";
import { readersOf } from "./small_kinds.ts";
import { PortError } from "./small_memory.ts";
import type { Channel, Segment } from "./small_segment.ts";

/** Where the words of the control area stand, and those of a record. */
export const [TAIL, FLOOR, ERA, ENDED, READERS_WANT, RECORDS] = [0, 4, 8, 12, 128, 256] as const;
export const [HEAD, WRITER_WANTS, RECORD_SIZE] = [0, 64, 128] as const;
export const EXTENSION = 16;
/** Bytes from one `era` to the next. */
export const ERA_SIZE = 2 ** 31;

/** A fanout, as an endpoint has attached to it. */
export interface Fanout {
  endpoint: Endpoint;
  channel: Channel;
  /** The endpoints that read it, in the order of their records. */
  readers: number[];
  isLossy: boolean;
}

/** Attaches to the fanout of a channel, or to the first that fits. [fanout.find] */
export function attach(
  segment: Segment,
  which: number | undefined,
  index: number,
  writes: boolean,
): Fanout {
  segment.requireVacant(index);
  const fits = (each: Channel | undefined): each is Channel => {
    if (each === undefined) return false;
    const readers = readersOf(each, segment.endpoints);
    return readers.length > 0 && (writes ? each.writer === index : readers.includes(index));
  };
  const channel = which === undefined ? segment.channels.find(fits) : segment.channels[which];
  if (!fits(channel)) throw new PortError("segment.channel"); // [fanout.find_none]
  return {
    endpoint: Endpoint.attach(segment, index, channel.writer),
    channel,
    readers: readersOf(channel, segment.endpoints),
    isLossy: channel.start % 2 === 1,
  };
}

/** Where the record of a reader begins. */
export function recordOf({ channel }: Fanout, record: number): number {
  return channel.control + RECORDS + RECORD_SIZE * record;
}

/** The word and the bit by which a reader asks to be rung. */
export function wishOf({ channel }: Fanout, record: number): { at: number; bit: number } {
  return { at: channel.control + READERS_WANT + 4 * (record >> 5), bit: 1 << (record & 31) };
}
