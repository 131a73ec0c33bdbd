/**
 * Which channels of a segment are sound fanouts, and which endpoints their records belong to: a
 * port has to know this to find the peers of an endpoint. See `spec/fanout.md`.
 *
 * @module
 */

import { layout } from "./layout.ts";
import type { Channel } from "./plan.ts";

const CONTROL_SIZE = layout.FANOUT_CONTROL_SIZE;
const RECORD_SIZE = layout.FANOUT_READER_SIZE;

/** How many bytes the control area of a fanout with this number of readers has. */
export function fanoutControlSize(readers: number): number {
  return CONTROL_SIZE + readers * RECORD_SIZE;
}

/** How many readers a fanout has; 0 if the channel is none, or fails a check. [fanout.find] */
export function fanoutReaders(channel: Channel, endpointCount: number): number {
  const { kind, writer, reader, controlSize, dataSize, start } = channel;
  const readers = (controlSize - CONTROL_SIZE) / RECORD_SIZE;
  const isSound = kind === layout.CHANNEL_KIND_FANOUT && writer < endpointCount &&
    reader === layout.ENDPOINT_NONE && Number.isInteger(readers) &&
    readers > 0 && readers < endpointCount &&
    dataSize >= layout.RING_CAPACITY_MIN && dataSize <= layout.RING_CAPACITY_MAX &&
    (dataSize & -dataSize) === dataSize && (start & ~layout.FANOUT_LOSE) % layout.FRAME_ALIGN === 0;
  return isSound ? readers : 0;
}

/** The index of an endpoint's record in a sound fanout; -1 if it has none. [fanout.record_owner] */
export function fanoutRecord(channel: Channel, endpointCount: number, endpoint: number): number {
  const readers = fanoutReaders(channel, endpointCount);
  const record = (endpoint - channel.writer - 1 + endpointCount) % endpointCount;
  return readers > 0 && record < readers ? record : -1;
}

/** The index of the endpoint that a record belongs to. */
export function fanoutReader(writer: number, endpointCount: number, record: number): number {
  return (writer + 1 + record) % endpointCount;
}
