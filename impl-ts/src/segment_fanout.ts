/**
 * Which channels of a segment are sound fanouts, and whose their records are: what a port has to
 * know to find the peers of an endpoint. See `spec/fanout.md`.
 *
 * @module
 */

import * as layout from "./layout.ts";
import type { Channel } from "./segment_geometry.ts";

const CONTROL_SIZE = layout.FANOUT_CONTROL_SIZE;
const RECORD_SIZE = layout.FANOUT_READER_SIZE;

/** Bytes of the control area of a fanout with so many records. */
export function fanoutControlSize(readers: number): number {
  return CONTROL_SIZE + readers * RECORD_SIZE;
}

/** How many readers a fanout has; 0 for a channel that is none, or fails a check. [fanout.find] */
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

/** The record of an endpoint in a sound fanout, -1 where it has none. [fanout.record_owner] */
export function fanoutRecord(channel: Channel, endpointCount: number, endpoint: number): number {
  const readers = fanoutReaders(channel, endpointCount);
  const record = (endpoint - channel.writer - 1 + endpointCount) % endpointCount;
  return readers > 0 && record < readers ? record : -1;
}

/** The endpoint that has a record. */
export function fanoutReader(writer: number, endpointCount: number, record: number): number {
  return (writer + 1 + record) % endpointCount;
}

/** Adds the peers that an endpoint has by sound fanouts, where they are new. [fanout.peers] */
export function addFanoutPeers(
  channels: readonly Channel[],
  endpointCount: number,
  index: number,
  peers: number[],
): void {
  for (const channel of channels) {
    const { kind, writer } = channel;
    // Most are rings, and each attach comes by here.
    if (kind !== layout.CHANNEL_KIND_FANOUT) continue;
    const isWriter = index === writer;
    const readers = isWriter ? fanoutReaders(channel, endpointCount) : 0;
    for (let record = 0; record < readers; record++) {
      const peer = fanoutReader(writer, endpointCount, record);
      if (!peers.includes(peer)) peers.push(peer);
    }
    const isReader = !isWriter && fanoutRecord(channel, endpointCount, index) >= 0;
    if (isReader && !peers.includes(writer)) peers.push(writer);
  }
}
