/**
 * What segments in files do with files, by the calls of the host. A number below 0 that is answered
 * is that of the system's error, with its sign turned.
 *
 * @module
 */

import { hostCalls } from "./calls.ts";
import { EINVAL, SystemError } from "./system_error.ts";

/** What a file is. */
export interface FileStatus {
  /** The type of the file and who may access it, as in `st_mode`. */
  readonly mode: number;
  /** Who it belongs to. */
  readonly user: number;
  /** Bytes. */
  readonly size: number;
  /** The same for two descriptors, or paths, exactly if they are of one file. */
  readonly identity: string;
}

/** The flags that differ between processors. */
interface Flags {
  readonly O_DIRECTORY: number;
  readonly O_NOFOLLOW: number;
}

const FLAGS: Readonly<Record<string, Flags>> = {
  x86_64: { O_DIRECTORY: 0o200000, O_NOFOLLOW: 0o400000 },
  aarch64: { O_DIRECTORY: 0o40000, O_NOFOLLOW: 0o100000 },
};

// The same on both.
const O_RDWR = 2;
const O_CREAT = 0o100;
const O_EXCL = 0o200;
const O_NOCTTY = 0o400;
const O_NONBLOCK = 0o4000;
const O_TMPFILE = 0o20000000;
const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_SYMLINK_FOLLOW = 0x400;
const F_SEAL_SEAL = 1;
const F_SEAL_SHRINK = 2;
const F_SEAL_GROW = 4;
const MFD_ALLOW_SEALING = 2;
const MFD_NOEXEC_SEAL = 8;

function flags(): Flags {
  return FLAGS[hostCalls().processor]!;
}

/**
 * Opens a file that exists, for both directions and without any waiting. `follows` says whether it
 * may be reached through a link in the last part of the path.
 */
export function openExisting(path: string, follows: boolean = false): number {
  // Neither a pipe nor a terminal at the path may hold us up or take us over.
  const wanted = O_RDWR | O_NONBLOCK | O_NOCTTY;
  return hostCalls().open(path, follows ? wanted : wanted | flags().O_NOFOLLOW, 0);
}

/** Makes a file that has no name and lies in memory. */
export function openMemory(): number {
  const calls = hostCalls();
  const name = "millrace"; // shown in lists of mappings only
  const fd = calls.openMemory(name, MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  // Before Linux 6.3 the flag means nothing; later ones may insist on it.
  return fd === -EINVAL ? calls.openMemory(name, MFD_ALLOW_SEALING) : fd;
}

/** Takes a file that nobody else has opened yet away from all but its owner. */
export function makePrivate(fd: number): void {
  requireDone(hostCalls().setMode(fd, 0o600), "Cannot make memory private", "fchmod");
}

/** Keeps the size of a file in memory as it is, for ever and for everybody. */
export function seal(fd: number): void {
  const seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  requireDone(hostCalls().addSeals(fd, seals), "Cannot seal memory", "fcntl");
}

/** Whether a file can never be made shorter. */
export function isSealed(fd: number): boolean {
  const seals = hostCalls().getSeals(fd);
  return seals >= 0 && (seals & F_SEAL_SHRINK) !== 0; // below 0: of a kind that has no seals
}

/** Makes a file of mode 0600 without a name in a folder. */
export function openUnnamed(folder: string): number {
  return hostCalls().open(folder, O_RDWR | O_TMPFILE | flags().O_DIRECTORY, 0o600);
}

/** Makes a file of mode 0600 at a path where there is none. */
export function openNew(path: string): number {
  return hostCalls().open(path, O_RDWR | O_CREAT | O_EXCL | flags().O_NOFOLLOW, 0o600);
}

/** Closes a descriptor. */
export function close(fd: number): void {
  hostCalls().close(fd);
}

/** Gives the open file without a name, or the one at `from`, the name `to`. */
export function link(from: number | string, to: string): number {
  const calls = hostCalls();
  if (typeof from === "string") return calls.link(from, to, 0);
  return calls.link(`/proc/self/fd/${from}`, to, AT_SYMLINK_FOLLOW);
}

/** Removes a name. */
export function unlink(path: string): number {
  return hostCalls().unlink(path);
}

/**
 * What a descriptor, or a path, stands for. `follows` says whether a link in the last part of the
 * path is followed.
 */
export function status(of: number | string, follows: boolean = false): FileStatus | number {
  const calls = hostCalls();
  const result = typeof of === "number"
    ? calls.statusOf(of)
    : calls.statusAt(of, follows ? 0 : AT_SYMLINK_NOFOLLOW);
  if (typeof result === "number") return result;
  const view = new DataView(result); // struct statx
  const [major, minor] = [view.getUint32(136, true), view.getUint32(140, true)];
  return {
    user: view.getUint32(20, true),
    mode: view.getUint16(28, true),
    size: Number(view.getBigUint64(40, true)),
    identity: `${major}:${minor}:${view.getBigUint64(32, true)}`,
  };
}

/** The user as whom this process acts. */
export function effectiveUser(): number {
  return hostCalls().user();
}

/** The first bytes of a file, as many as there are. */
export function readStart(fd: number, size: number): Uint8Array {
  const bytes = hostCalls().read(fd, size);
  if (typeof bytes !== "number") return new Uint8Array(bytes);
  throw new SystemError("Cannot read file", -bytes, "pread");
}

/** Makes a file `size` bytes long, with a place for each on its device. [segment.file_space] */
export function reserve(fd: number, size: number): void {
  requireDone(hostCalls().reserve(fd, size), "Cannot reserve file", "fallocate");
}

/** Locks bytes for this open file description; does not wait. */
export function lock(fd: number, start: number, size: number): number {
  return hostCalls().lock(fd, start, size);
}

/** Gives such a lock back. */
export function unlock(fd: number, start: number, size: number): void {
  hostCalls().unlock(fd, start, size);
}

/** Whether another open file description has a lock on one of these bytes. */
export function isLocked(fd: number, start: number, size: number): boolean {
  const answer = hostCalls().isLocked(fd, start, size);
  requireDone(answer, "Cannot look for locks", "fcntl");
  return answer !== 0;
}

function requireDone(answer: number, message: string, call: string): void {
  if (answer < 0) throw new SystemError(message, -answer, call);
}
