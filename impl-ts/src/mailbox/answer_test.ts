/** What calls on a mailbox answer, and in which state that leaves the mailbox. */

import { assertEquals, assertThrows } from "@std/assert";
import { TimeoutError } from "../error.ts";
import { assertCode } from "../testing/fixture.ts";
import { MailboxReader, MailboxWriter } from "./mailbox.ts";
import { SIGNAL, STATUS } from "./fixture.ts";
import type { Mechanism } from "../wait/mechanism.ts";

const polling = { rings: 0, sleeps: 0, sleepAsync: () => undefined, notify: () => {} };

Deno.test("[mailbox.begun] a timeout says whether the message is begun, and of what", () => {
  const memory = new SharedArrayBuffer(32 + 16);
  const reader = MailboxReader.attach<string>(memory);
  const { now } = performance;
  let late = 0;
  performance.now = () => late;
  // The reader takes a part during the first sleep; the second sleep lasts beyond the deadline.
  const reads: unknown[] = [];
  const sleep = () => {
    if (reads.length > 0) late += 100;
    else reads.push(reader.tryRead());
  };
  const mechanism: Mechanism = { ...polling, blocks: true, sleep };
  const writer = MailboxWriter.attach<string>(memory, { spin: 0, mechanism });
  try {
    const begun = (call: () => void) => assertThrows(call, TimeoutError).begun;
    assertEquals(begun(() => writer.write("one, in parts", { timeout: 0 })), true);
    // The rest of the first message must be written before the second can begin.
    assertEquals(begun(() => writer.write("two, in parts", { timeout: 0 })), false);
    assertEquals(begun(() => writer.writeMany([], { timeout: 0 })), false);
    assertEquals(reader.tryRead(), undefined);
    // This call completes the first message and begins the second: `owes` is true before and after.
    assertEquals(begun(() => writer.write("two, in parts", { timeout: 50 })), true);
    assertEquals([reads, writer.owes], [["one, in parts"], true]);
    assertEquals(reader.tryRead(), undefined);
    writer.writeMany([], { timeout: 0 });
    assertEquals([reader.tryRead(), writer.owes], ["two, in parts", false]);
  } finally {
    performance.now = now;
  }
});

Deno.test("[mailbox.turn] status counts in calls that do not wait, signal before it", () => {
  for (
    const [signal, status, code] of [
      [0, 7, "mailbox.signal"],
      [0, -1, "peer.closed"],
      [9, -1, "mailbox.signal"],
      [-1, 7, "peer.closed"],
    ] as const
  ) {
    for (const verb of ["read", "write"]) {
      const memory = new SharedArrayBuffer(32 + 8);
      const words = new Int32Array(memory);
      const call = verb === "read" ? () => reader.tryRead() : () => writer.tryWrite(1);
      const reader = MailboxReader.attach(memory);
      const writer = MailboxWriter.attach(memory);
      words[SIGNAL] = signal;
      words[STATUS] = status;
      assertCode(call, code);
      assertCode(call, code);
      // A fault closes the mailbox.
      if (code === "mailbox.signal") assertEquals([words[SIGNAL], words[STATUS]], [-1, -1]);
    }
  }
});

Deno.test("a mailbox refuses a value whose toJSON leaves nothing", () => {
  const memory = new SharedArrayBuffer(64);
  const writer = MailboxWriter.attach(memory);
  assertThrows(() => writer.write({ toJSON: () => undefined }), TypeError);
  assertEquals(new Uint8Array(memory).every((byte) => byte === 0), true);
});

Deno.test("a write whose value writes asynchronously is refused, and breaks nothing", async () => {
  const memory = new SharedArrayBuffer(64);
  const writer = MailboxWriter.attach<unknown>(memory);
  const reader = MailboxReader.attach<unknown>(memory);
  const text = "y".repeat(100);
  let inner: Promise<void> | undefined;
  const outer = {
    toJSON() {
      inner ??= writer.writeAsync(text);
      return "outer";
    },
  };
  assertEquals(writer.tryWrite(outer), false);
  assertThrows(() => writer.write(outer, { timeout: 0 }), TypeError, "under way");
  assertEquals(await reader.readAsync({ timeout: 5000 }), text);
  await inner;
  writer.write(1);
  assertEquals(reader.read({ timeout: 5000 }), 1);
});
