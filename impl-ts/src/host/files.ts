/**
 * The file operations that segments in files need, by the calls of the host. A result below 0 is
 * the negated number of a system error.
 *
 * @module
 */

import { hostCalls } from "./calls.ts";
import { EINVAL, SystemError } from "./system_error.ts";

/** The status of a file. */
export interface FileStatus {
  /** The type of the file and its access rights, as in `st_mode`. */
  readonly mode: number;
  /** The user to whom the file belongs. */
  readonly user: number;
  /** The size in bytes. */
  readonly size: number;
  /** Equal for two descriptors or paths exactly if they are of the same file. */
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

// The same on both processors.
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
 * Opens an existing file to read and write, without waiting. `follows` says whether a symbolic link
 * in the last part of the path may be followed.
 */
export function openExisting(path: string, follows: boolean = false): number {
  // A pipe at the path must not block this call, nor a terminal become the process's own.
  const wanted = O_RDWR | O_NONBLOCK | O_NOCTTY;
  return hostCalls().open(path, follows ? wanted : wanted | flags().O_NOFOLLOW, 0);
}

/** Creates a file in memory, without a name in any folder. */
export function openMemory(): number {
  const calls = hostCalls();
  const name = "millrace"; // shown in lists of mappings only
  const fd = calls.openMemory(name, MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  // Before Linux 6.3 the flag is unknown; later kernels may require it.
  return fd === -EINVAL ? calls.openMemory(name, MFD_ALLOW_SEALING) : fd;
}

/** Leaves access only to the owner of a file, which nobody else has opened yet. */
export function makePrivate(fd: number): void {
  requireDone(hostCalls().setMode(fd, 0o600), "Cannot make memory private", "fchmod");
}

/** Fixes the size of a file in memory for ever, for every process. */
export function seal(fd: number): void {
  const seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  requireDone(hostCalls().addSeals(fd, seals), "Cannot seal memory", "fcntl");
}

/** Whether a file can never be made shorter. */
export function isSealed(fd: number): boolean {
  const seals = hostCalls().getSeals(fd);
  return seals >= 0 && (seals & F_SEAL_SHRINK) !== 0; // below 0: this kind of file has no seals
}

/** Creates a file of mode 0600 in a folder, without a name. */
export function openUnnamed(folder: string): number {
  return hostCalls().open(folder, O_RDWR | O_TMPFILE | flags().O_DIRECTORY, 0o600);
}

/** Creates a file of mode 0600 at a path where there is no file. */
export function openNew(path: string): number {
  return hostCalls().open(path, O_RDWR | O_CREAT | O_EXCL | flags().O_NOFOLLOW, 0o600);
}

/** Closes a descriptor. */
export function close(fd: number): void {
  hostCalls().close(fd);
}

/** Gives the name `to` to an open file without a name, or to the file at `from`. */
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
 * Returns the status of a descriptor or of a path. `follows` says whether a symbolic link in the
 * last part of the path is followed.
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

/** The effective user of this process. */
export function effectiveUser(): number {
  return hostCalls().user();
}

/** Returns the first bytes of a file; fewer than `size` if the file is shorter. */
export function readStart(fd: number, size: number): Uint8Array {
  const bytes = hostCalls().read(fd, size);
  if (typeof bytes !== "number") return new Uint8Array(bytes);
  throw new SystemError("Cannot read file", -bytes, "pread");
}

/**
 * Makes a file `size` bytes long, with space for all of them on its device. [segment.file_space]
 */
export function reserve(fd: number, size: number): void {
  requireDone(hostCalls().reserve(fd, size), "Cannot reserve file", "fallocate");
}

/** Locks bytes for this open file description. Does not wait. */
export function lock(fd: number, start: number, size: number): number {
  return hostCalls().lock(fd, start, size);
}

/** Releases such a lock. */
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
