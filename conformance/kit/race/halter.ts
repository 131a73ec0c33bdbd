/**
 * Halts another process right after an instruction that touches a word of its memory: what the
 * kit's second thread does then stands between two accesses of the testee, however close they are.
 * By `ptrace` and the debug registers of x86-64, in Linux.
 *
 * @module
 */

const SYMBOLS = {
  ptrace: { parameters: ["i64", "i32", "usize", "usize"], result: "i64" },
  waitid: { parameters: ["i32", "u32", "buffer", "i32"], result: "i32" },
  waitpid: { parameters: ["i32", "buffer", "i32"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

type Calls = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

const [PEEK_USER, POKE_USER, CONTINUE, DETACH, TO_SYSCALL] = [3n, 6n, 7n, 17n, 24n];
const [SEIZE, INTERRUPT] = [0x4206n, 0x4207n];
/** Threads that a thread begins are taken hold of as well, from their first instruction on. */
const TRACE_CLONE = 8n;
/** Threads too, and only what this very thread has seized; without waiting. */
const MINE = 0x4000_0000 | 0x2000_0000 | 1;
/** Only stops: the end of the process is for others to hear of. */
const STOPPED = 2;
const [ANY, ONE] = [0, 1];
const SIGTRAP = 5;
/** Elements of `siginfo_t` as words. */
const [PID, STATUS] = [4, 6];
/** Where the debug registers stand in `struct user`. */
const DEBUG_AT = 848n;
const REGISTERS = 4;
/** Within which a thread must stop when it is told to. */
const STOP_MS = 2_000;

/** A word to be halted at. */
export interface Halting {
  /** Offset in the file, in bytes; a multiple of 4. */
  offset: number;
  /** At a load or a store, or only at a store. */
  access: "load" | "store";
}

/** The kit cannot do that here, or not to this testee. */
export class CannotHalt extends Error {}

let calls: Calls | undefined;

function open(): Calls {
  if (Deno.build.os !== "linux" || Deno.build.arch !== "x86_64") {
    throw new CannotHalt("the kit halts a testee in Linux on x86-64 only");
  }
  return calls ??= Deno.dlopen("libc.so.6", SYMBOLS).symbols;
}

/** A process that is halted whenever it touches certain words of a file that it has mapped. */
export class Halter {
  readonly #calls: Calls;
  readonly #pid: number;
  readonly #path: string;
  readonly #words: readonly Halting[];
  readonly #threads: number[];
  /** Threads that are not watched yet: each goes on to its next call only. */
  readonly #unwatched = new Set<number>();
  /** Where the file is mapped, once it is. */
  #address: bigint | undefined;
  readonly #info: Int32Array<ArrayBuffer> = new Int32Array(32);

  /**
   * Takes hold of the process of a group that has mapped a file, and lets it go on; where `isLate`
   * is true, of one that maps it within its next call. Only the thread that calls this can use it.
   */
  constructor(group: number, path: string, words: readonly Halting[], isLate: boolean) {
    if (words.length > REGISTERS) throw new RangeError("a processor watches four words");
    this.#calls = open();
    this.#path = path;
    this.#words = words;
    const found = isLate ? undefined : findMapping(group, path);
    this.#pid = found?.pid ?? group;
    this.#threads = [];
    for (const { name } of Deno.readDirSync(`/proc/${this.#pid}/task`)) {
      const thread = Number(name);
      if (this.#try(SEIZE, thread, 0n, TRACE_CLONE) !== 0) {
        this.release();
        throw new CannotHalt("this system does not let the kit halt a testee");
      }
      this.#threads.push(thread);
      this.#interrupt(thread);
      if (found !== undefined) this.#set(thread, this.#address = found.address);
      else this.#unwatched.add(thread);
    }
    for (const thread of this.#threads) this.go(thread);
  }

  /**
   * Which of the words a thread has touched that stands there now, until `go`; nothing where none
   * does.
   */
  poll(): { thread: number; word: number } | undefined {
    const stop = this.#stop(ANY, 0);
    if (stop === undefined) return undefined;
    const { thread, signal } = stop;
    if (!this.#threads.includes(thread)) {
      // It has just begun. A language may read in a thread that it begins when it reads.
      this.#threads.push(thread);
      if (this.#address === undefined) this.#unwatched.add(thread);
      else this.#set(thread, this.#address);
    }
    if (signal !== SIGTRAP) {
      this.go(thread, signal);
      return undefined;
    }
    if (this.#unwatched.has(thread)) {
      // The thread that has mapped the file touches it after this call. Another one may be heard
      // before it.
      this.#address ??= mappingIn(this.#pid, this.#path);
      if (this.#address !== undefined) this.#set(thread, this.#address);
    }
    const found = Number(this.#try(PEEK_USER, thread, DEBUG_AT + 6n * 8n)) & 15;
    this.#try(POKE_USER, thread, DEBUG_AT + 6n * 8n, 0n);
    const word = [0, 1, 2, 3].findIndex((index) => (found >> index & 1) !== 0);
    if (word >= 0) return { thread, word };
    this.go(thread);
    return undefined;
  }

  /** Lets a thread go on, with the signal that it was stopped for. */
  go(thread: number, signal: number = 0): void {
    this.#try(this.#unwatched.has(thread) ? TO_SYSCALL : CONTINUE, thread, 0n, BigInt(signal));
  }

  /** Lets go of the process. */
  release(): void {
    for (const thread of this.#threads) {
      if (this.#interrupt(thread)) {
        this.#try(POKE_USER, thread, DEBUG_AT + 7n * 8n, 0n);
        this.#try(DETACH, thread);
      } else if (thread !== this.#pid) {
        // A thread that has ended stays until it is heard; without that, the process does as well.
        this.#calls.waitpid(thread, this.#info, MINE);
      }
    }
    this.#threads.length = 0;
    // Threads that have begun meanwhile stand still until somebody lets go of them.
    for (let stop; (stop = this.#stop(ANY, 0)) !== undefined;) this.#try(DETACH, stop.thread);
  }

  /** Stops a thread, wherever it is; returns whether it is still there. */
  #interrupt(thread: number): boolean {
    if (this.#try(INTERRUPT, thread) !== 0) return false;
    const deadline = performance.now() + STOP_MS;
    while (performance.now() < deadline) {
      const stop = this.#stop(ONE, thread);
      // Stopped at a word, or because it was told to: both will do. A signal goes on its way.
      if (stop?.signal === SIGTRAP) return true;
      if (stop !== undefined) this.#try(CONTINUE, thread, 0n, BigInt(stop.signal));
    }
    return false;
  }

  /** A thread that has stopped, and why. */
  #stop(kind: number, id: number): { thread: number; signal: number } | undefined {
    this.#info.fill(0);
    if (this.#calls.waitid(kind, id, this.#info, MINE | STOPPED) !== 0) return undefined;
    const thread = this.#info[PID]!;
    return thread === 0 ? undefined : { thread, signal: this.#info[STATUS]! & 255 };
  }

  #set(thread: number, address: bigint): void {
    this.#unwatched.delete(thread);
    let control = 0;
    this.#words.forEach(({ offset, access }, index) => {
      this.#try(POKE_USER, thread, DEBUG_AT + BigInt(index * 8), address + BigInt(offset));
      const [four, kind] = [3, access === "load" ? 3 : 1];
      control |= 1 << 2 * index | (kind | four << 2) << 16 + 4 * index;
    });
    this.#try(POKE_USER, thread, DEBUG_AT + 7n * 8n, BigInt(control >>> 0));
  }

  #try(request: bigint, thread: number, at = 0n, data = 0n): number {
    return Number(this.#calls.ptrace(request, thread, at, data));
  }
}

/** The process of a group in which a file is mapped, and where. */
function findMapping(group: number, path: string): { pid: number; address: bigint } {
  for (const pid of processesOf(group)) {
    const address = mappingIn(pid, path);
    if (address !== undefined) return { pid, address };
  }
  throw new CannotHalt("no process of the testee has mapped the file as a whole");
}

/** Where a process has mapped a file, from its first byte on. */
function mappingIn(pid: number, path: string): bigint | undefined {
  const line = read(`/proc/${pid}/maps`).split("\n").find((each) => each.endsWith(` ${path}`));
  return line === undefined ? undefined : BigInt(`0x${line.slice(0, line.indexOf("-"))}`);
}

function* processesOf(group: number): Generator<number> {
  yield group; // nearly always it leads, and is alone
  for (const { name } of Deno.readDirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === group) continue;
    // After the name, which may hold anything: state, parent, group.
    const fields = read(`/proc/${pid}/stat`).split(") ").at(-1)!.split(" ");
    if (Number(fields[2]) === group) yield pid;
  }
}

function read(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return ""; // it is gone
  }
}
