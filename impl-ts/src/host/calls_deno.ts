/**
 * The calls of a host by Deno's foreign functions, through the system's C library.
 *
 * @module
 */

import { now } from "../memory/clock.ts";
import type { HostCalls } from "./calls.ts";
import { ENOSYS, SystemError } from "./system_error.ts";

// `syscall` and `fcntl` are variadic. In the calling conventions of Linux on both processors,
// variadic integers and pointers are passed like ordinary ones.
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
  // Called through `syscall`, because older C libraries have no `statx`.
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

/** The numbers of system calls, which differ between processors. */
const MACHINES: Readonly<Record<string, { FUTEX: bigint; STATX: bigint }>> = {
  x86_64: { FUTEX: 202n, STATX: 332n },
  aarch64: { FUTEX: 98n, STATX: 291n },
};

// The same on both processors.
const O_CLOEXEC = 0o2000000;
const MFD_CLOEXEC = 1;
const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;
const STATX_SIZE = 256;
const STATX_BASIC_STATS = 0x7ff;
const F_OFD_GETLK = 36;
const F_OFD_SETLK = 37;
const F_ADD_SEALS = 1033;
const F_GET_SEALS = 1034;
const F_WRLCK = 1;
const F_UNLCK = 2;
const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE = 0x2 | 0x20 | 0x10 | 0x4000;
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;
// Without the PRIVATE flag, because the sleepers may be in other processes.
const FUTEX_WAIT = 0;
const FUTEX_WAKE = 1;
const EVERYBODY = 0x7fffffff;
/** The names of the two C libraries of Linux. */
const LIBRARIES = ["libc.so.6", `libc.musl-${globalThis.Deno?.build.arch}.so.1`];

/**
 * The most asynchronous sleeps of a thread at one time. Each occupies one of the 32 threads that
 * Deno has for the whole process, and which asynchronous file access needs as well: with 32 sleeps,
 * a `Deno.stat` took as long as they slept (measured, Deno 2.9).
 */
const ASLEEP_MAX = 8;

/** The address and the size of a mapping. */
interface Place {
  readonly address: bigint;
  readonly size: number;
}

/**
 * Opens the system's C library.
 *
 * @throws {SystemError} `ENOSYS` on a system without it.
 */
export function openDeno(): HostCalls {
  const { os, arch } = Deno.build;
  const machine = os === "linux" ? MACHINES[arch] : undefined;
  if (machine === undefined) {
    const needs = "it takes Linux on x86-64 or aarch64";
    throw new SystemError(`Cannot map file: ${needs}, this is ${os} on ${arch}`, ENOSYS, "dlopen");
  }
  const { symbols: c } = openLibrary();
  const errno = new Deno.UnsafePointerView(c.errnoLocation()!); // constant for this thread
  /** The result of a call that returns -1 if it fails. */
  const answer = (result: number) => result < 0 ? -errno.getInt32() : result;
  const { FUTEX, STATX } = machine;
  let asleep = 0;

  function statx(fd: number, path: string, flags: number): ArrayBuffer | number {
    const status = new DataView(new ArrayBuffer(STATX_SIZE));
    const result = c.statx(STATX, fd, toBytes(path), flags, STATX_BASIC_STATS, status);
    return result === 0 ? status.buffer : answer(result);
  }

  return {
    processor: arch,
    pid: Deno.pid,
    requireAccess,
    open: (path, flags, mode) => answer(c.open(toBytes(path), flags | O_CLOEXEC, mode)),
    openMemory: (name, flags) => answer(c.memfd_create(toBytes(name), flags | MFD_CLOEXEC)),
    close: (fd) => answer(c.close(fd)),
    link: (from, to, flags) =>
      answer(c.linkat(AT_FDCWD, toBytes(from), AT_FDCWD, toBytes(to), flags)),
    unlink: (path) => answer(c.unlink(toBytes(path))),
    setMode: (fd, mode) => answer(c.fchmod(fd, mode)),
    addSeals: (fd, seals) => answer(c.fcntlOfNumber(fd, F_ADD_SEALS, seals)),
    getSeals: (fd) => answer(c.fcntlOfNumber(fd, F_GET_SEALS, 0)),
    reserve: (fd, size) => -c.posix_fallocate(fd, 0n, BigInt(size)),
    lock: (fd, start, size) => answer(c.fcntl(fd, F_OFD_SETLK, toLock(F_WRLCK, start, size))),
    unlock: (fd, start, size) => answer(c.fcntl(fd, F_OFD_SETLK, toLock(F_UNLCK, start, size))),
    isLocked(fd, start, size) {
      const record = toLock(F_WRLCK, start, size);
      const result = c.fcntl(fd, F_OFD_GETLK, record);
      return result === 0 ? Number(record.getInt16(0, true) !== F_UNLCK) : answer(result);
    },
    user: () => c.geteuid(),
    statusOf: (fd) => statx(fd, "", AT_EMPTY_PATH),
    statusAt: (path, flags) => statx(AT_FDCWD, path, flags),
    read(fd, size) {
      const bytes = new Uint8Array(size);
      const read = Number(c.pread(fd, bytes, BigInt(size), 0n));
      return read < 0 ? answer(read) : bytes.buffer.slice(0, read);
    },
    map(fd, size) {
      const address = c.mmap(0n, BigInt(size), PROT_READ_WRITE, MAP_SHARED, fd, 0n);
      if (address === MAP_FAILED) return answer(-1);
      const memory: Place = { address, size };
      const pointer = Deno.UnsafePointer.create(address)!;
      const buffer = Deno.UnsafePointerView.getArrayBuffer(pointer, size);
      places.register(buffer, { ...memory, unmap: c.munmap });
      return { memory, buffer };
    },
    release(memory) {
      const { address, size } = memory as Place;
      const flags = MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE;
      const result = c.mmap(address, BigInt(size), PROT_READ_WRITE, flags, -1, 0n);
      return result === MAP_FAILED ? answer(-1) : 0;
    },
    sleep(memory, offset, expected, ms) {
      const address = (memory as Place).address + BigInt(offset);
      return answer(c.futexWait(FUTEX, address, FUTEX_WAIT, expected, setSpan(ownSpan, ms)));
    },
    sleepAsync(memory, offset, expected, ms, keeps) {
      // The sleeping thread would keep the process alive; a caller that must not do that polls
      // instead.
      if (!keeps || asleep >= ASLEEP_MAX) return undefined;
      const address = (memory as Place).address + BigInt(offset);
      const span = setSpan(new Uint32Array(4), ms);
      const end = now() + ms;
      asleep++;
      return c.futexWaitAsync(FUTEX, address, FUTEX_WAIT, expected, span).then(() => {
        asleep--;
        span.fill(0); // used here, so that it lives until the call has read it on its thread
        return now() < end;
      });
    },
    wake: (memory, offset) =>
      answer(
        c.futexWake(FUTEX, (memory as Place).address + BigInt(offset), FUTEX_WAKE, EVERYBODY),
      ),
  };
}

/** Unmaps the memory of a buffer that was collected: nothing can touch it any more. */
const places = new FinalizationRegistry<
  Place & { unmap(address: bigint, size: bigint): number }
>(({ address, size, unmap }) => unmap(address, BigInt(size)));

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

/** Asks for the permissions that Deno cannot check itself, because it sees only a native call. */
function requireAccess(path: string): void {
  for (const kind of ["read", "write"] as const) {
    if (Deno.permissions.requestSync({ name: kind, path }).state === "granted") continue;
    const how = `run again with the --allow-${kind} flag`;
    throw new Deno.errors.NotCapable(`Requires ${kind} access to "${path}", ${how}`);
  }
}

/** Encodes a path for C, with a NUL at the end. */
function toBytes(path: string): Uint8Array<ArrayBuffer> {
  if (path.includes("\0")) throw new TypeError("path must not hold a NUL");
  return new TextEncoder().encode(`${path}\0`);
}

/** `struct flock`: type, whence, start, length, process. One for all calls of this thread. */
const lockRecord = new DataView(new ArrayBuffer(32));

function toLock(type: number, start: number, size: number): DataView<ArrayBuffer> {
  lockRecord.setInt16(0, type, true);
  lockRecord.setInt16(2, 0, true);
  lockRecord.setBigInt64(8, BigInt(start), true);
  lockRecord.setBigInt64(16, BigInt(size), true);
  lockRecord.setInt32(24, 0, true); // these locks require the process id 0
  return lockRecord;
}

/** `struct timespec` for the sleeps that block this thread. */
const ownSpan = new Uint32Array(4);

/** Sets the nanoseconds of two 64-bit numbers: seconds, which stay 0, and nanoseconds. */
function setSpan(span: Uint32Array<ArrayBuffer>, ms: number): Uint32Array<ArrayBuffer> {
  span[2] = ms * 1e6;
  return span;
}
