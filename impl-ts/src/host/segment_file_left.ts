/**
 * Whether somebody still needs the file at a path. See `spec/segment.md`, "Segments in a file".
 *
 * @module
 */

import { SegmentError } from "../error.ts";
import * as layout from "../layout.ts";
import { Segment } from "../segment.ts";
import { peersOf, recordOffset } from "../segment_geometry.ts";
import { stateOf } from "../wait_state.ts";
import { Mapping } from "./mapping.ts";
import { isAnyRecordLocked, isRecordLocked, type OwnFile } from "./segment_file_lock.ts";

/** What has become of an endpoint. */
const HERE = 0;
const EXPECTED = 1;
const GONE = 2;

/** Bytes of a file that are to be mapped. @throws {SegmentError} if they are too few. */
export function sizeToMap(path: string, { status }: OwnFile): number {
  if (status.size >= layout.SEGMENT_SIZE_MIN) {
    return Math.min(status.size, layout.SEGMENT_SIZE_MAX);
  }
  throw new SegmentError(
    "segment.size",
    `Cannot attach segment: ${path} has ${status.size} bytes`,
  );
}

/**
 * Whether a file whose header we have locked is in use, for one who wants an endpoint of it; any
 * other is left over. [segment.file_left]
 *
 * @throws {SegmentError} if somebody has a record of what is no segment.
 */
export function isInUse(path: string, file: OwnFile, endpoint: number): boolean {
  const { fd } = file;
  if (!isAnyRecordLocked(fd)) return false;
  const mapping = new Mapping(fd, sizeToMap(path, file));
  try {
    const segment = Segment.attach(mapping.buffer, { timeout: 0 });
    const found = Array.from(
      { length: segment.endpointCount },
      (_, index) => standing(segment, fd, index),
    );
    return found[endpoint] === HERE || canMeet(segment, found);
  } finally {
    mapping.release();
  }
}

/** Whether somebody is here who has no peers, or one that has not gone. */
function canMeet(segment: Segment, found: readonly number[]): boolean {
  return found.some((each, index) => {
    if (each !== HERE) return false;
    const peers = peersOf(segment, index);
    return peers.length === 0 || peers.some((peer) => found[peer] !== GONE);
  });
}

function standing(segment: Segment, fd: number, index: number): number {
  const words = segment.words(recordOffset(index), layout.ENDPOINT_RECORD_SIZE);
  const state = stateOf(Atomics.load(words, layout.ENDPOINT_STATE_WORD));
  if (state > layout.ENDPOINT_STATE_ATTACHED) return GONE;
  if (isRecordLocked(fd, index)) return HERE;
  return state === layout.ENDPOINT_STATE_VACANT ? EXPECTED : GONE;
}
