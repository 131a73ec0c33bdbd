/**
 * Whether the file at a path is still needed. See `spec/file.md`.
 *
 * @module
 */

import { throwSegmentError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { Segment } from "../memory/segment.ts";
import { peersOf, recordOffset } from "../memory/plan.ts";
import { stateOf } from "../wait/state.ts";
import { Mapping } from "./mapping.ts";
import { isAnyRecordLocked, isRecordLocked, type OwnFile } from "./segment_file_lock.ts";

/** The standing of an endpoint, as the chapter defines it. */
const HERE = 0;
const EXPECTED = 1;
const GONE = 2;

/** The number of bytes of a file to map. @throws {SegmentError} if the file is too small. */
export function sizeToMap(path: string, { status }: OwnFile): number {
  if (status.size >= layout.SEGMENT_SIZE_MIN) {
    return Math.min(status.size, layout.SEGMENT_SIZE_MAX);
  }
  throwSegmentError("size", `attach segment: ${path} has ${status.size} bytes`);
}

/**
 * Whether a file, whose header is locked by this process, is in use, from the view of a creator
 * that wants this endpoint. Any other file is left over. [segment.file_left]
 *
 * @throws {SegmentError} if a process holds a record's lock in a file that is not a segment.
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

/** Whether any endpoint is here that has no peers, or has a peer that is not gone. */
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
