/**
 * The calls of Linux that segments in files need, through its C library. Each is thin: numbers in,
 * and numbers or a `SystemError` out.
 *
 * @module
 */

import { EINVAL, ENOSYS, ETIMEDOUT, SystemError } from "./system_error.ts";

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

// `syscall` and `fcntl` are variadic. In the calling conventions of Linux for both processors,
// whole numbers and pointers that are variadic travel as others do.
const SYMBOLS = {
  errnoLocation: { name: "__errno_location", parameters: [], result: "pointer" },
  open: { parameters: ["buffer", "i32", "u32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  linkat: { parameters: ["i32", "buffer", "i32", "buffer", "i32"], result: "i32" },
  unlink: { parameters: ["buffer"], result: "i32" },
  pread: { parameters: ["i32", "buffer", "usize", "i64"], result: "isize" },
  fcntl: { parameters: ["i32", "i32", "buffer"], result: "i32" },
  fcntlOfNumber: { name: "fcntl", parameters: ["i32", "i32", "i32"], result: "i32" },
  fchmod: { parameters: ["i32", "u32"], result: "i32" },
  memfd_create: { parameters: ["buffer", "u32"], result: "i32" },
  posix_fallocate: { parameters: ["i32", "i64", "i64"], result: "i32" },
  geteuid: { parameters: [], result: "u32" },
  mmap: { parameters: ["usize", "usize", "i32", "i32", "i32", "i64"], result: "usize" },
  munmap: { parameters: ["usize", "usize"], result: "i32" },
  // Not by its own name, which older C libraries lack.
  statx: {
    name: "syscall",
    parameters: ["isize", "i32", "buffer", "i32", "u32", "buffer"],
    result: "i32",
  },
  futexWait: {
    name: "syscall",
    parameters: ["isize", "usize", "i32", "i32", "buffer"],
    result: "i32",
  },
  futexWaitAsync: {
    name: "syscall",
    parameters: ["isize", "usize", "i32", "i32", "buffer"],
    result: "i32",
    nonblocking: true,
  },
  futexWake: { name: "syscall", parameters: ["isize", "usize", "i32", "i32"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

/** What differs between processors. */
interface Machine {
  readonly FUTEX: bigint;
  readonly STATX: bigint;
  readonly O_DIRECTORY: number;
  readonly O_NOFOLLOW: number;
}

const MACHINES: Readonly<Record<string, Machine>> = {
  x86_64: { FUTEX: 202n, STATX: 332n, O_DIRECTORY: 0o200000, O_NOFOLLOW: 0o400000 },
  aarch64: { FUTEX: 98n, STATX: 291n, O_DIRECTORY: 0o40000, O_NOFOLLOW: 0o100000 },
};

// The same on both.
const O_RDWR = 2;
const O_CREAT = 0o100;
const O_EXCL = 0o200;
const O_NOCTTY = 0o400;
const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
const O_TMPFILE = 0o20000000;
const AT_FDCWD = -100;
const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_SYMLINK_FOLLOW = 0x400;
const AT_EMPTY_PATH = 0x1000;
const STATX_BASIC_STATS = 0x7ff;
const F_OFD_GETLK = 36;
const F_OFD_SETLK = 37;
const F_ADD_SEALS = 1033;
const F_GET_SEALS = 1034;
const F_SEAL_SEAL = 1;
const F_SEAL_SHRINK = 2;
const F_SEAL_GROW = 4;
const MFD_CLOEXEC = 1;
const MFD_ALLOW_SEALING = 2;
const MFD_NOEXEC_SEAL = 8;
const F_WRLCK = 1;
const F_UNLCK = 2;
const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE = 0x2 | 0x20 | 0x10 | 0x4000;
// Without the PRIVATE flag: the sleepers are in other processes.
const FUTEX_WAIT = 0;
const FUTEX_WAKE = 1;
const EVERYBODY = 0x7fffffff;
/** The two C libraries of Linux. */
const LIBRARIES = ["libc.so.6", `libc.musl-${globalThis.Deno?.build.arch}.so.1`];

type Calls = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

let opened: { calls: Calls; machine: Machine } | undefined;
let errnoView: Deno.UnsafePointerView | undefined;

/**
 * Opens the C library of this system, once.
 *
 * @throws {SystemError} `ENOSYS` on a system without it.
 */
function host(): { calls: Calls; machine: Machine } {
  if (opened !== undefined) return opened;
  const build = globalThis.Deno?.build;
  const machine = build?.os === "linux" ? MACHINES[build.arch] : undefined;
  if (machine === undefined) {
    const here = build === undefined ? "another runtime" : `${build.os} on ${build.arch}`;
    const needs = "it takes Deno in Linux on x86-64 or aarch64";
    throw new SystemError(`Cannot map file: ${needs}, this is ${here}`, ENOSYS, "dlopen");
  }
  const { symbols: calls } = openLibrary();
  errnoView = new Deno.UnsafePointerView(calls.errnoLocation()!); // of this thread, for its life
  return opened = { calls, machine };
}

function openLibrary(): Deno.DynamicLibrary<typeof SYMBOLS> {
  let last: unknown;
  for (const name of LIBRARIES) {
    try {
      return Deno.dlopen(name, SYMBOLS);
    } catch (error) {
      if (error instanceof Deno.errors.NotCapable) throw error;
      last = error;
    }
  }
  throw last;
}

/** The error of the call that was made last on this thread. */
export function lastErrno(): number {
  return errnoView!.getInt32();
}

/** Ends a path as C wants it. */
export function toPathBytes(path: string): Uint8Array<ArrayBuffer> {
  if (path.includes("\0")) throw new TypeError("path must not hold a NUL");
  return new TextEncoder().encode(`${path}\0`);
}

/**
 * Opens a file that exists, for both directions and without any waiting; -1: see `lastErrno`.
 * `follows` says whether it may be reached through a link in the last part of the path.
 */
export function openExisting(path: string, follows: boolean = false): number {
  const { calls, machine } = host();
  // Neither a pipe nor a terminal at the path may hold us up or take us over.
  const flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  return calls.open(toPathBytes(path), follows ? flags : flags | machine.O_NOFOLLOW, 0);
}

/** Makes a file that has no name and lies in memory; -1: see `lastErrno`. */
export function openMemory(): number {
  const { calls } = host();
  const name = toPathBytes("millrace"); // shown in lists of mappings only
  const flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const fd = calls.memfd_create(name, flags | MFD_NOEXEC_SEAL);
  // Before Linux 6.3 the flag means nothing; later ones may insist on it.
  return fd < 0 && lastErrno() === EINVAL ? calls.memfd_create(name, flags) : fd;
}

/** Takes a file that nobody else has opened yet away from all but its owner. */
export function makePrivate(fd: number): void {
  if (host().calls.fchmod(fd, 0o600) === 0) return;
  throw new SystemError("Cannot make memory private", lastErrno(), "fchmod");
}

/** Keeps the size of a file in memory as it is, for ever and for everybody. */
export function seal(fd: number): void {
  const seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (host().calls.fcntlOfNumber(fd, F_ADD_SEALS, seals) === 0) return;
  throw new SystemError("Cannot seal memory", lastErrno(), "fcntl");
}

/** Whether a file can never be made shorter. */
export function isSealed(fd: number): boolean {
  const seals = host().calls.fcntlOfNumber(fd, F_GET_SEALS, 0);
  return seals >= 0 && (seals & F_SEAL_SHRINK) !== 0; // -1: of a kind that has no seals
}

/** Makes a file of mode 0600 without a name in a folder; -1: see `lastErrno`. */
export function openUnnamed(folder: string): number {
  const { calls, machine } = host();
  const flags = O_RDWR | O_CLOEXEC | O_TMPFILE | machine.O_DIRECTORY;
  return calls.open(toPathBytes(folder), flags, 0o600);
}

/** Makes a file of mode 0600 at a path where there is none; -1: see `lastErrno`. */
export function openNew(path: string): number {
  const { calls, machine } = host();
  const flags = O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL | machine.O_NOFOLLOW;
  return calls.open(toPathBytes(path), flags, 0o600);
}

/** Closes a descriptor. */
export function close(fd: number): void {
  host().calls.close(fd);
}

/** Gives the open file without a name, or the one at `from`, the name `to`; -1: see `lastErrno`. */
export function link(from: number | string, to: string): number {
  const source = typeof from === "number" ? `/proc/self/fd/${from}` : from;
  const flags = typeof from === "number" ? AT_SYMLINK_FOLLOW : 0;
  return host().calls.linkat(AT_FDCWD, toPathBytes(source), AT_FDCWD, toPathBytes(to), flags);
}

/** Removes a name; -1: see `lastErrno`. */
export function unlink(path: string): number {
  return host().calls.unlink(toPathBytes(path));
}

/**
 * What a descriptor, or a path, stands for; undefined: see `lastErrno`. `follows` says whether a
 * link in the last part of the path is followed.
 */
export function status(of: number | string, follows: boolean = false): FileStatus | undefined {
  const { calls, machine } = host();
  const [fd, path, flags] = typeof of === "number"
    ? [of, "", AT_EMPTY_PATH]
    : [AT_FDCWD, of, follows ? 0 : AT_SYMLINK_NOFOLLOW];
  const result = new DataView(new ArrayBuffer(256)); // struct statx
  const { STATX } = machine;
  if (calls.statx(STATX, fd, toPathBytes(path), flags, STATX_BASIC_STATS, result) !== 0) {
    return undefined;
  }
  const [major, minor] = [result.getUint32(136, true), result.getUint32(140, true)];
  return {
    user: result.getUint32(20, true),
    mode: result.getUint16(28, true),
    size: Number(result.getBigUint64(40, true)),
    identity: `${major}:${minor}:${result.getBigUint64(32, true)}`,
  };
}

/** The user as whom this process acts. */
export function effectiveUser(): number {
  return host().calls.geteuid();
}

/** The first bytes of a file, as many as there are. */
export function readStart(fd: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  const read = Number(host().calls.pread(fd, bytes, BigInt(size), 0n));
  if (read < 0) throw new SystemError("Cannot read file", lastErrno(), "pread");
  return bytes.subarray(0, read);
}

/** Makes a file `size` bytes long, with a place for each on its device. [segment.file_space] */
export function reserve(fd: number, size: number): void {
  const errno = host().calls.posix_fallocate(fd, 0n, BigInt(size));
  if (errno !== 0) throw new SystemError("Cannot reserve file", errno, "posix_fallocate");
}

/** Locks bytes for this open file description; does not wait. -1: see `lastErrno`. */
export function lock(fd: number, start: number, size: number): number {
  return host().calls.fcntl(fd, F_OFD_SETLK, toLock(F_WRLCK, start, size));
}

/** Gives such a lock back. */
export function unlock(fd: number, start: number, size: number): void {
  host().calls.fcntl(fd, F_OFD_SETLK, toLock(F_UNLCK, start, size));
}

/** Whether another open file description has a lock on one of these bytes. */
export function isLocked(fd: number, start: number, size: number): boolean {
  const record = toLock(F_WRLCK, start, size);
  if (host().calls.fcntl(fd, F_OFD_GETLK, record) !== 0) {
    throw new SystemError("Cannot look for locks", lastErrno(), "fcntl");
  }
  return lockRecord.getInt16(0, true) !== F_UNLCK;
}

/** `struct flock`: type, whence, start, length, process. One for all calls of this thread. */
const lockRecord = new DataView(new ArrayBuffer(32));

function toLock(type: number, start: number, size: number): DataView<ArrayBuffer> {
  lockRecord.setInt16(0, type, true);
  lockRecord.setInt16(2, 0, true);
  lockRecord.setBigInt64(8, BigInt(start), true);
  lockRecord.setBigInt64(16, BigInt(size), true);
  lockRecord.setInt32(24, 0, true); // what these locks demand
  return lockRecord;
}

/** Maps the first bytes of a file and returns their address. */
export function map(fd: number, size: number): bigint {
  const address = host().calls.mmap(0n, BigInt(size), PROT_READ_WRITE, MAP_SHARED, fd, 0n);
  if (isRefused(address)) throw new SystemError("Cannot map file", lastErrno(), "mmap");
  return address;
}

/** Puts private, empty memory into the place of a mapping. Returns whether it could. */
export function mapEmpty(address: bigint, size: number): boolean {
  const flags = MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE;
  return !isRefused(host().calls.mmap(address, BigInt(size), PROT_READ_WRITE, flags, -1, 0n));
}

/** Gives a mapping back: nothing may touch it any more. */
export function unmap(address: bigint, size: number): void {
  host().calls.munmap(address, BigInt(size));
}

/** The memory at an address, as a buffer. */
export function viewMemory(address: bigint, size: number): ArrayBuffer {
  const pointer = Deno.UnsafePointer.create(address)!;
  return Deno.UnsafePointerView.getArrayBuffer(pointer, size);
}

function isRefused(address: bigint): boolean {
  return address === 0xffff_ffff_ffff_ffffn; // MAP_FAILED
}

/**
 * Sleeps while the word at an address holds `expected`, at most `ms`, which is below 1,000. Returns
 * false if nothing but the time has ended it.
 */
export function futexWait(address: bigint, expected: number, ms: number): boolean {
  const { calls, machine } = host();
  const span = setSpan(ownSpan, ms);
  const result = calls.futexWait(machine.FUTEX, address, FUTEX_WAIT, expected, span);
  return result === 0 || lastErrno() !== ETIMEDOUT;
}

/** The same on another thread, of which Deno has 32 for all such calls and for files. */
export async function futexWaitAsync(address: bigint, expected: number, ms: number): Promise<void> {
  const { calls, machine } = host();
  const span = setSpan(new Uint32Array(4), ms);
  await calls.futexWaitAsync(machine.FUTEX, address, FUTEX_WAIT, expected, span);
  span.fill(0); // the call reads it whenever its thread comes to that: it must have lived till here
}

/** Wakes all that sleep on the word at an address, in any process, and returns their number. */
export function futexWake(address: bigint): number {
  const { calls, machine } = host();
  return calls.futexWake(machine.FUTEX, address, FUTEX_WAKE, EVERYBODY);
}

/** `struct timespec`, for the sleeps that block this thread. */
const ownSpan = new Uint32Array(4);

/** Two 64-bit numbers: seconds, none of them, and nanoseconds. */
function setSpan(span: Uint32Array<ArrayBuffer>, ms: number): Uint32Array<ArrayBuffer> {
  span[2] = ms * 1e6;
  return span;
}
