/**
 * Keeps the kit and a testee on different processors: two threads that share one never run at the
 * same time, and on a busy machine whoever wakes another one often gets it onto its own. And tells
 * who sleeps from who waits for a processor.
 *
 * @module
 */

const SYMBOLS = {
  sched_getaffinity: { parameters: ["i32", "usize", "buffer"], result: "i32" },
  sched_setaffinity: { parameters: ["i32", "usize", "buffer"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The processors of a set that fits 1,024 of them. */
type Set = Uint8Array<ArrayBuffer>;
const SET_SIZE = 128;
const SIZE = BigInt(SET_SIZE);

let opened: Deno.DynamicLibrary<typeof SYMBOLS>["symbols"] | null | undefined;

/**
 * Keeps this thread on one processor and others off it; returns what takes that back. Does nothing
 * where there is one processor, or no such call.
 */
export function setApart(others: readonly number[]): () => void {
  const calls = opened === undefined ? opened = open() : opened;
  if (calls === null) return () => {};
  const before: [number, Set][] = [];
  const restore = () => {
    for (const [thread, set] of before) calls.sched_setaffinity(thread, SIZE, set);
  };
  const own: Set = new Uint8Array(SET_SIZE);
  if (calls.sched_getaffinity(0, SIZE, own) < 0) return restore;
  const [mine, rest] = split(own);
  if (rest === undefined) return restore;
  for (const thread of others) {
    const set: Set = new Uint8Array(SET_SIZE);
    if (calls.sched_getaffinity(thread, SIZE, set) >= 0) before.push([thread, set]);
    calls.sched_setaffinity(thread, SIZE, rest);
  }
  before.push([0, own]);
  calls.sched_setaffinity(0, SIZE, mine);
  return restore;
}

/**
 * The threads of a process; without one, all threads of this process except the calling one, which
 * in a test is not the first.
 */
export function threadsOf(process?: number): number[] {
  try {
    const path = `/proc/${process ?? "self"}/task`;
    const threads = [...Deno.readDirSync(path)].map(({ name }) => Number(name));
    if (process !== undefined) return threads;
    const own = Number(Deno.readLinkSync("/proc/thread-self").split("/").at(-1));
    return threads.filter((thread) => thread !== own);
  } catch {
    return []; // another system, or it has just ended
  }
}

/**
 * Whether threads sleep, all of them: none runs, or would if it got a processor. Also true where
 * that cannot be told.
 */
export function sleep(threads: readonly number[]): boolean {
  return threads.every((thread) => {
    try {
      const stat = Deno.readTextFileSync(`/proc/${thread}/stat`);
      return stat[stat.lastIndexOf(")") + 2] === "S";
    } catch {
      return true; // another system, or it has ended
    }
  });
}

/** The first processor of a set, and the others, if there are any. */
function split(set: Set): [Set, Set | undefined] {
  const first = set.findIndex((byte) => byte !== 0);
  const bit = set[first]! & -set[first]!;
  const mine: Set = new Uint8Array(SET_SIZE);
  mine[first] = bit;
  const rest = set.slice();
  rest[first]! ^= bit;
  return [mine, rest.some((byte) => byte !== 0) ? rest : undefined];
}

function open(): Deno.DynamicLibrary<typeof SYMBOLS>["symbols"] | null {
  if (globalThis.Deno?.build.os !== "linux") return null;
  for (const name of ["libc.so.6", `libc.musl-${Deno.build.arch}.so.1`]) {
    try {
      return Deno.dlopen(name, SYMBOLS).symbols;
    } catch {
      // The other one, or none.
    }
  }
  return null;
}
