/** What the tests of ports share: both ends in one thread, and bounded waits. */

import { assert } from "@std/assert";
import { codeOf } from "../testing/fixture.ts";
import { Port } from "./port.ts";
import type { PortCreateOptions } from "./options.ts";

// deno-lint-ignore no-explicit-any
export function ports(options: PortCreateOptions<any, any> = {}): [Port<any>, Port<any>] {
  const here = Port.create(options);
  return [here, Port.attach(here.memory, { ...options, side: "b" })];
}

/** Lets the event loop turn until a condition is true; fails after 15 s. */
export async function until(condition: () => boolean): Promise<void> {
  // Not by `performance`, because some tests stop its clock.
  for (const end = Date.now() + 15_000; !condition() && Date.now() < end;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert(condition());
}

/** Waits for a promise that keeps no process alive, with a timer that does; fails after 60 s. */
export async function held<T>(promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const hung = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("Nothing came for 60 s")), 60_000);
  });
  try {
    return await Promise.race([promise, hung]);
  } finally {
    clearTimeout(timer);
  }
}

/** Fills the ring from a port. Returns how many messages that took. */
export function fill(port: Port<unknown>): number {
  let count = 0;
  while (port.tryWrite("fill")) count++;
  return count;
}

/** The outcome of a promise: "sent", an error's code, or what another error says. */
export async function fate(promise: Promise<void>): Promise<string> {
  const code = await codeOf(promise);
  return code === "no error" ? "sent" : code;
}
