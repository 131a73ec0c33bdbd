/** Timers of calls whose time is up. Node prints a warning for one of less than 0 milliseconds. */

import { assert, assertEquals } from "@std/assert";

/** The delays of the timers that the library has set. */
const set: unknown[] = [];
const { setTimeout } = globalThis;
// The library takes its timers when it is loaded.
globalThis.setTimeout = ((run: () => void, ms?: number) => {
  set.push(ms);
  return setTimeout(run, ms);
}) as typeof setTimeout;
const { SABPipe } = await import("../compat/sab_message_port.ts");
const { codeOf, pipe } = await import("../testing/fixture.ts");
const { MailboxReader, MailboxWriter } = await import("../mailbox/mailbox.ts");
const { readManyAsync } = await import("../more/many.ts");
const { readMessageAsync } = await import("../more/raw.ts");
const { ports } = await import("../port/fixture.ts");
globalThis.setTimeout = setTimeout;

const NOW = { timeout: 0 };

/** Calls of which the first waits, and those after it must not. */
const calls: Record<string, () => Promise<unknown>[]> = {
  "reads of a port": () => {
    const [a] = ports();
    const waiting = a.readAsync();
    const others = [a.readAsync(NOW), readMessageAsync(a, NOW), readManyAsync(a, 3, NOW)];
    return [...others, close(a, waiting)];
  },
  "writes of a pipe": () => {
    const { writer } = pipe();
    const waiting = writer.writeAsync(new Uint8Array(1000));
    const others = [writer.writeAsync(1, NOW), writer.endAsync(NOW)].map(codeOf);
    return [...others, close(writer, waiting)];
  },
  "both sides of a mailbox": () => {
    const memory = new SharedArrayBuffer(64);
    const reader = MailboxReader.attach(memory);
    const reading = reader.readAsync();
    const reads = [reader.readAsync(NOW)];
    const writer = MailboxWriter.attach(new SharedArrayBuffer(64));
    const writing = writer.writeAsync("x".repeat(100));
    const writes = [writer.writeAsync(1, NOW), writer.writeManyAsync([1], NOW)].map(codeOf);
    return [...reads, ...writes, close(reader, reading), close(writer, writing)];
  },
  "reads of the drop-in": () => {
    const reader = new SABPipe("r");
    const waiting = reader.asyncRead();
    const others = [reader.asyncRead(0), reader.asyncRead(-1), reader.asyncRead(1)];
    return [...others, close(reader, waiting)];
  },
};

/** Closes an end when the calls after the one that waits are through; that is then through too. */
async function close(end: { close(): void }, waiting: Promise<unknown>): Promise<void> {
  const outcome = codeOf(waiting);
  await new Promise((resolve) => setTimeout(resolve, 20));
  end.close();
  assert(await outcome !== "no error");
}

for (const [name, begin] of Object.entries(calls)) {
  Deno.test(`no timer is set for less than no time: ${name}`, async () => {
    set.length = 0;
    await Promise.all(begin());
    assert(set.length > 0);
    assertEquals(set.filter((ms) => !((ms as number) >= 0)), []);
  });
}
