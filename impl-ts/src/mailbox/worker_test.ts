import { assertEquals } from "@std/assert";
import { MillraceError } from "../error.ts";
import { random } from "../testing/fixture.ts";
import { MailboxReader, MailboxWriter } from "./mailbox.ts";
import { type MailboxTask, secondOffset } from "./worker_fixture.ts";

const WAIT = { timeout: 60_000 };

interface Ends {
  writer: MailboxWriter;
  reader: MailboxReader;
}

/** Starts the other thread, and ends it in any case. Returns its last message. */
async function withWorker(
  { capacity, ...options }: Omit<MailboxTask, "memory" | "size"> & { capacity: number },
  run: (ends: Ends) => void | Promise<void>,
): Promise<string> {
  const size = 32 + capacity;
  const memory = new SharedArrayBuffer(secondOffset(size) + size);
  const { spin } = options;
  const at = (byteOffset: number) => ({ buffer: memory, byteOffset, byteLength: size });
  const writer = MailboxWriter.attach(at(0), { spin });
  const reader = MailboxReader.attach(at(secondOffset(size)), { spin });
  const url = new URL("./worker_fixture.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  const said = new Promise<string>((resolve) => worker.onmessage = ({ data }) => resolve(data));
  try {
    worker.postMessage({ memory, size, ...options } satisfies MailboxTask);
    await run({ writer, reader });
    return await said;
  } finally {
    writer.close(); // ends the waits of the worker, which then ends by itself
    reader.close();
    worker.terminate();
  }
}

function message(next: () => number, most: number): unknown {
  if (next() % 3 === 0) return "é€😀".repeat(next() % 8);
  return { id: next(), list: [1, null, "x".repeat(next() % most)] };
}

/** Sends `count` messages one by one, and gets each of them back. */
async function exchange({ writer, reader }: Ends, most: number, count: number, blocking: boolean) {
  const next = random(count + most);
  for (let i = 0; i < count; i++) {
    const value = message(next, most);
    if (blocking) {
      writer.write(value, WAIT);
      assertEquals(reader.read(WAIT), value);
    } else {
      const [back] = await Promise.all([reader.readAsync(WAIT), writer.writeAsync(value, WAIT)]);
      assertEquals(back, value);
    }
  }
}

const PEERS = ["blocking", "async", "original", "original async"] as const;

for (const peer of PEERS) {
  for (const spin of [50, 0]) {
    Deno.test(`mailbox: messages come back from a worker, ${peer}, spin ${spin}`, async () => {
      const capacity = 7 + spin * 5;
      const task = { capacity, peer, spin, closeAfter: 60 };
      const said = await withWorker(task, async (ends) => {
        await exchange(ends, 2 * capacity, 30, true);
        await exchange(ends, 2 * capacity, 30, false);
        ends.writer.write("close", WAIT);
        assertEquals(codeOf(() => ends.reader.read(WAIT)), "peer.closed");
      });
      assertEquals(said, "done");
    });
  }

  Deno.test(`mailbox: a close in the middle frees a worker, ${peer}`, async () => {
    for (const blocking of [true, false]) {
      const task = { capacity: 16, peer, spin: 50, closeAfter: Infinity };
      const said = await withWorker(task, async (ends) => {
        await exchange(ends, 40, 5, blocking);
        ends.writer.close();
        ends.reader.close();
      });
      assertEquals(said, peer.startsWith("original") ? "disposed" : "peer.closed");
    }
  });

  Deno.test(`mailbox: a close by a worker frees a flood of writes, ${peer}`, async () => {
    const task = { capacity: 5, peer, spin: 0, closeAfter: 10 };
    await withWorker(task, async ({ writer, reader }) => {
      const seen: unknown[] = [];
      const read = async () => {
        for (;;) seen.push(await reader.readAsync(WAIT));
      };
      const write = async () => {
        for (let n = 0;; n++) await writer.writeAsync(`message ${n}`, WAIT);
      };
      const codes = (await Promise.allSettled([read(), write()])).map((result) =>
        (result as PromiseRejectedResult).reason.code
      );
      assertEquals(codes, ["peer.closed", "peer.closed"]);
      assertEquals(seen, seen.map((_, n) => `message ${n}`));
    });
  });
}

function codeOf(call: () => unknown): string {
  try {
    return `value: ${call()}`;
  } catch (error) {
    return error instanceof MillraceError ? error.code : String(error);
  }
}
