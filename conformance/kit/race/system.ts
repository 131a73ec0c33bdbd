/**
 * The calls of Linux by which the kit is another process at a file: locks of open file
 * descriptions, mappings, and the futex. Through the C library, and without a line of an
 * implementation.
 *
 * @module
 */

import type { Slept } from "../arena.ts";

// `open`, `fcntl` and `syscall` are variadic. In the calling conventions of Linux for both
// processors, whole numbers and pointers that are variadic travel as others do.
const SLEEP = {
  name: "syscall",
  parameters: ["isize", "usize", "i32", "i32", "buffer"],
  result: "i32",
} as const;
const SYMBOLS = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  pread: { parameters: ["i32", "buffer", "usize", "i64"], result: "isize" },
  fcntl: { parameters: ["i32", "i32", "buffer"], result: "i32" },
  memfd_create: { parameters: ["buffer", "u32"], result: "i32" },
  addSeals: { name: "fcntl", parameters: ["i32", "i32", "i32"], result: "i32" },
  mkfifo: { parameters: ["buffer", "u32"], result: "i32" },
  mmap: { parameters: ["usize", "usize", "i32", "i32", "i32", "i64"], result: "usize" },
  inotify_init1: { parameters: ["i32"], result: "i32" },
  inotify_add_watch: { parameters: ["i32", "buffer", "u32"], result: "i32" },
  sched_getaffinity: { parameters: ["i32", "usize", "buffer"], result: "i32" },
  sched_setaffinity: { parameters: ["i32", "usize", "buffer"], result: "i32" },
  futex: {
    name: "syscall",
    parameters: ["isize", "usize", "i32", "i32"],
    result: "i32",
  },
  futexWait: SLEEP,
  futexWaitElsewhere: { ...SLEEP, nonblocking: true },
} as const satisfies Deno.ForeignLibraryInterface;

/** The two C libraries of Linux. */
const LIBRARIES = ["libc.so.6", `libc.musl-${Deno.build.arch}.so.1`];
/** Number of the system call `futex`. */
const FUTEX: Readonly<Record<string, bigint>> = { x86_64: 202n, aarch64: 98n };

// The same on both processors.
const O_RDWR = 2;
const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
const IN_CREATE = 0x100;
const F_OFD_GETLK = 36;
const F_OFD_SETLK = 37;
const F_ADD_SEALS = 1033;
const F_WRLCK = 1;
const F_UNLCK = 2;
const MFD_CLOEXEC_ALLOW_SEALING = 1 | 2;
const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE = 0x2 | 0x20 | 0x10 | 0x4000;
// Without the PRIVATE flag: the others are in other processes.
const FUTEX_WAIT = 0;
const FUTEX_WAKE = 1;
const EVERYBODY = 0x7fff_ffff;
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;

type Calls = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

let opened: Calls | undefined;

/** Whether this system has these calls. */
export const hasCalls: boolean = Deno.build.os === "linux" && Deno.build.arch in FUTEX;

function calls(): Calls {
  if (opened !== undefined) return opened;
  let last: unknown;
  for (const name of LIBRARIES) {
    try {
      return opened = Deno.dlopen(name, SYMBOLS).symbols;
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

function toPath(path: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${path}\0`);
}

/** Opens a file that is there, for both directions; -1 where that fails. Waits for nothing. */
export function open(path: string | Uint8Array<ArrayBuffer>): number {
  const bytes = typeof path === "string" ? toPath(path) : path;
  return calls().open(bytes, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

/** A path as `open` takes it most quickly, again and again. */
export function pathBytes(path: string): Uint8Array<ArrayBuffer> {
  return toPath(path);
}

/** Closes a descriptor; with the last of an open file description, its locks go. */
export function close(fd: number): void {
  calls().close(fd);
}

/** Reads the beginning of a file into these bytes, and returns how many there were. */
export function readStart(fd: number, into: Uint8Array<ArrayBuffer>): number {
  return Number(calls().pread(fd, into, BigInt(into.length), 0n));
}

/** What nobody may do any more to memory without a name. */
export const SEALS = { seal: 1, shrink: 2, grow: 4 } as const;

/** Makes memory without a name, whose mode is the system's choice; returns its descriptor. */
export function makeMemory(): number {
  const fd = calls().memfd_create(toPath("kit"), MFD_CLOEXEC_ALLOW_SEALING);
  if (fd < 0) throw new Error("cannot make memory without a name");
  return fd;
}

/** Seals it; the numbers are those of `SEALS`, added. */
export function seal(fd: number, seals: number): void {
  if (calls().addSeals(fd, F_ADD_SEALS, seals) !== 0) throw new Error("cannot seal the memory");
}

/** Makes a named pipe of mode 0600. */
export function makePipe(path: string): void {
  if (calls().mkfifo(toPath(path), 0o600) !== 0) throw new Error(`cannot make a pipe at ${path}`);
}

/** Has the system tell of each new name in a folder; -1 where it has no more such listeners. */
export function listen(folder: string): number {
  const fd = calls().inotify_init1(O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) calls().inotify_add_watch(fd, toPath(folder), IN_CREATE);
  return fd;
}

/** `struct flock`: type, whence, start, length, process, which is 0 for these locks. */
const flock = new DataView(new ArrayBuffer(32));

function toLock(type: number, start: number, size: number): DataView<ArrayBuffer> {
  flock.setInt16(0, type, true);
  flock.setInt16(2, 0, true);
  flock.setBigInt64(8, BigInt(start), true);
  flock.setBigInt64(16, BigInt(size), true);
  flock.setInt32(24, 0, true);
  return flock;
}

/** Locks bytes for this open file description; returns whether it could, and does not wait. */
export function lock(fd: number, start: number, size: number): boolean {
  return calls().fcntl(fd, F_OFD_SETLK, toLock(F_WRLCK, start, size)) === 0;
}

/** Gives such a lock back. */
export function unlock(fd: number, start: number, size: number): void {
  calls().fcntl(fd, F_OFD_SETLK, toLock(F_UNLCK, start, size));
}

/** Whether another open file description has a lock on one of these bytes. */
export function isLocked(fd: number, start: number, size: number): boolean {
  const record = toLock(F_WRLCK, start, size);
  if (calls().fcntl(fd, F_OFD_GETLK, record) !== 0) throw new Error("cannot look for locks");
  return flock.getInt16(0, true) !== F_UNLCK;
}

/** Bytes of a set of processors: the kernel takes no fewer than it has processors. */
const CPU_SET_SIZE = 1024;

/** The processors on which a thread may run: 0 is this one. None where that cannot be found out. */
export function processorsOf(thread: number): number[] {
  const set = new Uint8Array(CPU_SET_SIZE);
  if (calls().sched_getaffinity(thread, BigInt(set.length), set) < 0) return [];
  return Array.from({ length: 8 * set.length }, (_, index) => index)
    .filter((index) => set[index >> 3]! & 1 << index % 8);
}

/** Lets a thread run on these processors only. Returns whether it could. */
export function setProcessors(thread: number, processors: readonly number[]): boolean {
  const set = new Uint8Array(CPU_SET_SIZE);
  for (const index of processors) set[index >> 3]! |= 1 << index % 8;
  return calls().sched_setaffinity(thread, BigInt(set.length), set) === 0;
}

/** The bytes of a file as memory. */
export class Mapping {
  readonly address: bigint;
  readonly buffer: ArrayBuffer;

  constructor(fd: number, size: number) {
    this.address = calls().mmap(0n, BigInt(size), PROT_READ_WRITE, MAP_SHARED, fd, 0n);
    if (this.address === MAP_FAILED) throw new Error(`cannot map ${size} bytes`);
    const pointer = Deno.UnsafePointer.create(this.address)!;
    this.buffer = Deno.UnsafePointerView.getArrayBuffer(pointer, size);
  }

  /** Puts empty memory into its place, for ever: whatever still looks there must find something. */
  release(): void {
    const flags = MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE;
    const size = BigInt(this.buffer.byteLength);
    calls().mmap(this.address, size, PROT_READ_WRITE, flags, -1, 0n);
  }
}

/** Wakes all that sleep on the word at an address, in any process, and returns their number. */
export function futexWake(address: bigint): number {
  return calls().futex(FUTEX[Deno.build.arch]!, address, FUTEX_WAKE, EVERYBODY);
}

/** Sleeps on the word at an address, in this thread, at most `ms` below 1,000. */
export function sleepHere(address: bigint, value: number, ms: number): Slept {
  const begun = performance.now();
  const number = FUTEX[Deno.build.arch]!;
  const result = calls().futexWait(number, address, FUTEX_WAIT, value | 0, spanOf(ms));
  return toSlept(result, performance.now() - begun, ms);
}

/** The same in a thread of its own; Deno has 32 of them. */
export async function sleepElsewhere(address: bigint, value: number, ms: number): Promise<Slept> {
  const begun = performance.now();
  const span = spanOf(ms);
  const { futexWaitElsewhere } = calls();
  const number = FUTEX[Deno.build.arch]!;
  const result = await futexWaitElsewhere(number, address, FUTEX_WAIT, value | 0, span);
  span.fill(0n); // the call reads it when its thread comes to that: it must have lived till here
  return toSlept(result, performance.now() - begun, ms);
}

/** `struct timespec`. */
function spanOf(ms: number): BigInt64Array<ArrayBuffer> {
  return BigInt64Array.of(0n, BigInt(Math.floor(ms * 1e6)));
}

/** There is no errno here: the clock tells time-outs from words that had changed. */
function toSlept(result: number, spentMs: number, ms: number): Slept {
  if (result === 0) return "ok";
  return spentMs < ms ? "not-equal" : "timed-out";
}
