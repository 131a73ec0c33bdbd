/**
 * The kit's own sleep in the futex of Linux, on memory that it has mapped: as any thread of another
 * process sleeps there.
 *
 * @module
 */

import type { Slept } from "../arena.ts";

const SYSCALL = {
  name: "syscall",
  parameters: ["isize", "usize", "i32", "i32", "buffer"],
  result: "i32",
} as const;
const SYMBOLS = {
  wait: SYSCALL,
  waitElsewhere: { ...SYSCALL, nonblocking: true },
} as const satisfies Deno.ForeignLibraryInterface;

/** The number of the call, by processor. */
const FUTEX: Record<string, bigint> = { x86_64: 202n, aarch64: 98n };
// Without the PRIVATE flag: who wakes is another process.
const WAIT = 0;
const LIBRARIES = ["libc.so.6", `libc.musl-${Deno.build.arch}.so.1`];

let opened: Deno.DynamicLibrary<typeof SYMBOLS>["symbols"] | undefined;

/** Sleeps on the word at an address in this thread, at most `ms` below 1,000. */
export function sleepHere(address: bigint, value: number, ms: number): Slept {
  const begun = performance.now();
  const result = open().wait(FUTEX[Deno.build.arch]!, address, WAIT, value | 0, spanOf(ms));
  return toSlept(result, performance.now() - begun, ms);
}

/** The same in a thread of its own; Deno has 32 of them. */
export async function sleepElsewhere(address: bigint, value: number, ms: number): Promise<Slept> {
  const begun = performance.now();
  const span = spanOf(ms);
  const number = FUTEX[Deno.build.arch]!;
  const result = await open().waitElsewhere(number, address, WAIT, value | 0, span);
  span.fill(0n); // the call reads it when its thread comes to that: it must have lived till here
  return toSlept(result, performance.now() - begun, ms);
}

function open(): NonNullable<typeof opened> {
  for (const name of opened === undefined ? LIBRARIES : []) {
    try {
      opened = Deno.dlopen(name, SYMBOLS).symbols;
      break;
    } catch (error) {
      if (name === LIBRARIES.at(-1)) throw error;
    }
  }
  return opened!;
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
