/** Shared by the tests of this folder. */

import { assert, assertEquals } from "@std/assert";
import type { WireName } from "./sab_message_port.ts";
import { SABMessagePort, SABPipe } from "./sab_message_port.ts";

export const WIRES: readonly WireName[] = ["ring", "mailbox"];

/** The original waits without limit; in a test every wait has a limit. */
export const WAIT_MS = 60_000;

/** A section that holds a ring of 512 bytes. */
export const SMALL = 1024 + 512;

export interface PipeSetup {
  wire: WireName;
  size?: number;
  queueLimit?: number | null;
}

/** Both ends of a pipe in one thread. */
// deno-lint-ignore no-explicit-any
export function pipe<T = any>({ wire, size = SMALL, queueLimit = null }: PipeSetup) {
  const writer = new SABPipe<T>("w", size, 0, null, queueLimit, { wire });
  const reader = new SABPipe<T>("r", writer.buffer, 0, null, null, { wire });
  assertEquals([writer.wire, reader.wire], [wire, wire]);
  return { writer, reader };
}

/** Both sides of a port in one thread. */
export function ports(wire: WireName, size = 2 * SMALL) {
  const sab = new SharedArrayBuffer(size);
  const a = new SABMessagePort("a", sab, null, { wire });
  const b = new SABMessagePort("b", sab, null, { wire });
  return { a, b };
}

/** Posts a burst, and waits until it is written. */
export async function post<T>(writer: SABPipe<T>, ...messages: T[]): Promise<void> {
  await within(Promise.all(messages.map((message) => writer.postMessage(message))));
}

/** Settles as the promise does, or rejects if that takes too long. */
export function within<T>(promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("it takes too long")), WAIT_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits until a condition holds. */
export async function until(condition: () => boolean): Promise<void> {
  for (let left = WAIT_MS; !condition(); left--) {
    assert(left > 0, "it takes too long");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Lets the event loop run all that is due, and a few of the tasks that follow from it. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}

/** Returns the message of the error that a call throws, or with which its promise is rejected. */
export async function messageOf(call: () => unknown): Promise<string> {
  try {
    await within(Promise.resolve(call()));
    return "no error";
  } catch (error) {
    return (error as Error).message;
  }
}
