/**
 * Finds and checks the file at a path, and takes the locks that tell which owners are alive. See
 * `spec/file.md`.
 *
 * @module
 */

import { now } from "../memory/clock.ts";
import { failure, type SegmentError, throwSegmentError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { sleepBlind } from "../memory/segment.ts";
import { recordOffset } from "../memory/plan.ts";
import * as files from "./files.ts";
import { EACCES, EAGAIN, ENOENT, SystemError } from "./system_error.ts";

const S_IFMT = 0o170000;
const S_IFREG = 0o100000;
/** The access rights of the group and of all others. */
const OTHERS = 0o077;
/**
 * Milliseconds between two tries for a lock that another process holds during a few system calls.
 */
const RETRY_MS = 1;

/** An opened file that belongs to this user, and that no other user can access. */
export interface OwnFile {
  readonly fd: number;
  readonly status: files.FileStatus;
}

/**
 * The path of a descriptor that a process has open. Such a link is followed, because it leads to
 * the open file, and to no path that others could change. [segment.file_handed]
 */
const HANDED = /^\/proc\/(?:self|\d+)\/fd\/\d+$/;

/** Makes the error for a path at which there is no file. [segment.file_missing] */
export function missing(path: string): SegmentError {
  const why = HANDED.test(path)
    ? "its process has closed it, or is gone"
    : "nobody has created it yet";
  const what = `open "${path}": there is no file at this path: ${why}`;
  return failure("segment.missing", what) as SegmentError;
}

/** Does what `findOwn` does. @throws {SegmentError} also if there is no file. */
export function openOwn(path: string): OwnFile {
  const file = findOwn(path);
  if (file !== undefined) return file;
  throw missing(path);
}

/**
 * Opens the file at a path, and refuses it if another user could have put it there.
 * [segment.file_own] Returns undefined if there is no file.
 *
 * @throws {SegmentError} `segment.file`.
 * @throws {SystemError} for other errors of the system.
 */
export function findOwn(path: string): OwnFile | undefined {
  const isHanded = HANDED.test(path);
  const fd = files.openExisting(path, isHanded);
  if (fd < 0) {
    if (fd === -ENOENT) return undefined;
    // A link, a folder and a socket each refuse to be opened in a way of their own.
    const status = files.status(path, isHanded);
    if (typeof status !== "number") requireOwn(path, status);
    throw new SystemError(`Cannot open ${path}`, -fd, "open");
  }
  try {
    const status = files.status(fd);
    if (typeof status === "number") {
      throw new SystemError(`Cannot open ${path}`, -status, "statx");
    }
    requireOwn(path, status);
    if (isHanded && !files.isSealed(fd)) throw untrusted(path, "its size is not sealed");
    return { fd, status };
  } catch (error) {
    files.close(fd);
    throw error;
  }
}

function requireOwn(path: string, { mode, user }: files.FileStatus): void {
  if ((mode & S_IFMT) !== S_IFREG) throw untrusted(path, "it is no regular file");
  if (user !== files.effectiveUser()) throw untrusted(path, `it belongs to user ${user}`);
  if ((mode & OTHERS) !== 0) throw untrusted(path, "others than its owner may access it");
}

/** Makes the error for a file that is neither used nor replaced. */
export function untrusted(path: string, why: string): SegmentError {
  return failure("segment.file", `open ${path}: ${why}`) as SegmentError;
}

/**
 * Locks the header, and waits while another process holds that lock. Returns whether the file is
 * still the one at the path: in a file that is being replaced, an endpoint would wait in vain.
 * [segment.file_open]
 *
 * @throws {TimeoutError} at the deadline.
 */
export function lockHeader(path: string, { fd, status }: OwnFile, deadline: number): boolean {
  while (!tryLock(fd, 0, layout.SEGMENT_HEADER_SIZE)) {
    requireTimeLeft(path, deadline);
    sleepBlind(RETRY_MS);
  }
  const there = files.status(path, HANDED.test(path));
  if (typeof there !== "number") return there.identity === status.identity;
  if (there === -ENOENT) return false;
  throw new SystemError(`Cannot open ${path}`, -there, "statx");
}

/** @throws {TimeoutError} at the deadline. */
export function requireTimeLeft(path: string, deadline: number): void {
  if (now() < deadline) return;
  throw failure("wait.timeout", `open ${path}: others are opening or replacing it`);
}

/** Releases the lock on the header. */
export function unlockHeader(fd: number): void {
  files.unlock(fd, 0, layout.SEGMENT_HEADER_SIZE);
}

/**
 * Takes the lock which tells that the owner of an endpoint is alive. [segment.file_lock]
 *
 * @throws {SegmentError} `segment.endpoint` if another owner has it.
 */
export function lockRecord(fd: number, index: number): void {
  if (tryLock(fd, recordOffset(index), layout.ENDPOINT_RECORD_SIZE)) return;
  throwSegmentError("endpoint", `attach endpoint ${index}: it is locked`);
}

/**
 * Releases that lock explicitly: a child process or the mapping may keep the file open for longer.
 */
export function unlockRecord(fd: number, index: number): void {
  files.unlock(fd, recordOffset(index), layout.ENDPOINT_RECORD_SIZE);
}

/** Whether the owner of another endpoint is alive. */
export function isRecordLocked(fd: number, index: number): boolean {
  return files.isLocked(fd, recordOffset(index), layout.ENDPOINT_RECORD_SIZE);
}

/** Whether any endpoint record that a file can have is locked. The file need not hold a segment. */
export function isAnyRecordLocked(fd: number): boolean {
  return files.isLocked(
    fd,
    layout.ENDPOINT_TABLE_OFFSET,
    layout.ENDPOINT_COUNT_MAX * layout.ENDPOINT_RECORD_SIZE,
  );
}

function tryLock(fd: number, start: number, size: number): boolean {
  const answer = files.lock(fd, start, size);
  if (answer === 0) return true;
  if (answer === -EAGAIN || answer === -EACCES) return false; // POSIX allows either
  throw new SystemError("Cannot lock file", -answer, "fcntl");
}
