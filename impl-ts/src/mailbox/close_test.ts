import { assert, assertEquals } from "@std/assert";
import { MillraceError } from "../error.ts";
import { assertCode, codeOf } from "../testing/fixture.ts";
import { MailboxReader, MailboxWriter } from "./mailbox.ts";
import { agentMechanism, type Mechanism } from "../wait/mechanism.ts";
import { Original, SIGNAL, STATUS, withSteps } from "./fixture.ts";

const NOW = { timeout: 0 };
const SOON = { timeout: 2_000 };
const VALUES = ["long enough", 2];

function mailbox(capacity = 8) {
  const memory = new SharedArrayBuffer(32 + capacity);
  const writer = MailboxWriter.attach(memory);
  const reader = MailboxReader.attach(memory);
  return { writer, reader, peer: new Original(memory) };
}

/** Sends the values in parts and reads them, step by step; calls `at(n)` before step n. */
function exchange({ writer, reader }: ReturnType<typeof mailbox>, at: (step: number) => void) {
  const seen: unknown[] = [];
  let step = 0;
  const take = (call: () => unknown) => {
    at(step++);
    try {
      const value = call();
      if (value !== undefined) seen.push(value);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      if (error.code !== "wait.timeout") seen.push(error.code);
    }
  };
  take(() => writer.writeMany(VALUES, NOW));
  for (let round = 0; round < 5; round++) {
    take(() => reader.read(NOW));
    take(() => writer.writeMany([], NOW));
  }
  return { seen, step };
}

Deno.test("a close at every step of an exchange releases every waiter", async () => {
  const { step: steps } = exchange(mailbox(), () => {});
  for (let at = 0; at <= steps; at++) {
    for (const side of ["writer", "reader"] as const) {
      const both = mailbox();
      const { writer, reader } = both;
      const pending: Promise<string>[] = [];
      const stop = () => {
        // One read and one write wait now; the other two are called after them.
        for (let i = 0; i < 2; i++) pending.push(codeOf(forever(reader)), codeOf(flood(writer)));
        both[side].close();
      };
      if (at === steps) exchange(both, () => {});
      else {
        assertEquals(stopped(() => exchange(both, (step) => step === at && halt())), true);
      }
      await Promise.resolve();
      stop();
      const codes = await Promise.all(pending);
      const [read, write] = side === "writer"
        ? ["peer.closed", "pipe.closed"]
        : ["pipe.closed", "peer.closed"];
      assertEquals(codes, [read, write, read, write], `${side} closes at ${at}`);
      assertCode(() => reader.read(SOON), read!);
      assertCode(() => writer.write(1, SOON), write!);
      assertEquals([reader.closed, writer.closed, writer.owes], [true, true, false]);
    }
  }
});

async function forever(reader: MailboxReader): Promise<void> {
  for (;;) await reader.readAsync();
}

async function flood(writer: MailboxWriter): Promise<void> {
  for (;;) await writer.writeManyAsync(VALUES);
}

class Halt extends Error {}

function halt(): never {
  throw new Halt();
}

function stopped(run: () => unknown): boolean {
  try {
    run();
    return false;
  } catch (error) {
    if (error instanceof Halt) return true;
    throw error;
  }
}

/** The speed of a close: so many stores of the original come before each operation of this side. */
for (const burst of [1, 2, 3, 8]) {
  Deno.test(`a reader meets the original's close at every operation, ${burst} stores each`, () => {
    let delivered = 0;
    let closes = 0;
    for (let at = 0, ran = true; ran; at++) {
      const { reader, peer } = mailbox(40);
      let operations = 0;
      const close = peer.close();
      const seen: unknown[] = [];
      const write = peer.write(VALUES);
      peer.poll(write);
      withSteps(() => {
        if (operations++ >= at) { for (let i = 0; i < burst; i++) close.next(); }
      }, () => collect(seen, () => reader.tryRead(), 4));
      ran = operations > at;
      peer.block(close);
      collect(seen, () => reader.read({ timeout: 5 }), 4);
      const values = seen.filter((value) => value !== "peer.closed");
      assert(seen.at(-1) === "peer.closed", `${at}: ${seen}`);
      // All of the payload or none: if its last part was copied, it is delivered.
      assert(values.length === 0 || `${values}` === `${VALUES}`, `${at}: ${seen}`);
      if (values.length > 0) delivered++;
      closes++;
    }
    assert(delivered > 0 && closes > delivered);
  });

  Deno.test(`a writer meets the original's close at every operation, ${burst} stores each`, () => {
    for (let at = 0, ran = true; ran; at++) {
      const { writer, peer } = mailbox(8);
      let operations = 0;
      const close = peer.close();
      const seen: unknown[] = [];
      withSteps(() => {
        if (operations++ >= at) { for (let i = 0; i < burst; i++) close.next(); }
      }, () => collect(seen, () => writer.writeMany(VALUES, NOW), 1));
      ran = operations > at;
      peer.block(close);
      collect(seen, () => writer.write(1, SOON), 1);
      assertEquals(seen.at(-1), "peer.closed", `${at}`);
      assertEquals(seen.filter((code) => code !== "peer.closed" && code !== "wait.timeout"), []);
      // No store of this library has overwritten the close.
      assertEquals([peer.words[STATUS], peer.words[SIGNAL]], [-1, -1]);
    }
  });
}

Deno.test("either side of ours meets the other's close at every operation", () => {
  for (const side of ["writer", "reader"] as const) {
    for (let at = 0, ran = true; ran; at++) {
      const both = mailbox();
      const other = side === "writer" ? "reader" : "writer";
      let operations = 0;
      let acts = "writer";
      const { seen } = withSteps(() => {
        // The other side closes only while this side acts: a side cannot close inside its own call.
        if (acts === side && operations++ === at) both[other].close();
      }, () => exchange(both, (step) => acts = step % 2 === 0 ? "writer" : "reader"));
      ran = operations > at;
      both[other].close();
      const codes = { [side]: "peer.closed", [other]: "pipe.closed" };
      const values = seen.filter((value) => value !== "peer.closed" && value !== "pipe.closed");
      assertEquals(values, VALUES.slice(0, values.length), `${side}, ${at}`);
      // A payload that was taken before the close is still read to its end.
      collect(seen, () => both.reader.read(SOON), 3);
      assertEquals(seen.at(-1), codes.reader);
      assertCode(() => both.writer.write(1, SOON), codes.writer!);
    }
  }
});

Deno.test("[mailbox.recheck] a close that only status still says ends every wait", async () => {
  for (const signal of [0, 1]) {
    for (const notify of [false, true]) {
      const { writer, reader, peer } = mailbox();
      peer.words[SIGNAL] = signal;
      const wait = codeOf(signal === 0 ? forever(reader) : flood(writer));
      setTimeout(() => {
        // The original has stored its signal over the -1, and wakes one sleeper or none.
        Atomics.store(peer.words, STATUS, -1);
        if (notify) Atomics.notify(peer.words, SIGNAL, 1);
      }, 5);
      const start = performance.now();
      assertEquals(await wait, "peer.closed");
      assert(performance.now() - start < 15_000);
      assertCode(() => reader.read(SOON), "peer.closed");
      assertCode(() => writer.write(1, SOON), "peer.closed");
    }
  }
});

Deno.test("a blocked side finds a close that only status still says", () => {
  const agent = agentMechanism();
  for (const spin of [0, 50]) {
    const memory = new SharedArrayBuffer(64);
    let sleeps = 0;
    const mechanism: Mechanism = {
      rings: agent.rings,
      sleeps: agent.sleeps,
      blocks: true,
      notify: agent.notify.bind(agent),
      sleepAsync: agent.sleepAsync.bind(agent),
      sleep(words) {
        if (++sleeps % 3 === 0) Atomics.store(words, STATUS, -1);
      },
    };
    const reader = MailboxReader.attach(memory, { mechanism, spin });
    assertCode(() => reader.read(SOON), "peer.closed");
    assertEquals(sleeps, 3);
    new Int32Array(memory).fill(0);
    const writer = MailboxWriter.attach(memory, { mechanism, spin });
    writer.write(1);
    assertCode(() => writer.write(2, SOON), "peer.closed");
    assertEquals(sleeps, 6);
  }
});

Deno.test("[mailbox.signal_exchange] a turn that somebody else passed is a close", () => {
  const { writer, peer } = mailbox();
  let operations = 0;
  withSteps(() => {
    // Just before the exchange, after the loads of signal and status and the three words of a part.
    if (++operations === 8) peer.words[SIGNAL] = 1;
  }, () => assertCode(() => writer.write(1, NOW), "peer.closed"));
  assertEquals([peer.words[STATUS], peer.words[SIGNAL]], [-1, -1]);
});

Deno.test("[mailbox.close] stores status, then signal, and leaves the other words alone", () => {
  const { writer, reader, peer } = mailbox();
  peer.words.set([5, 6, 7, 8, 9, 10], 2);
  const seen: string[] = [];
  withSteps(() => seen.push(`${peer.words[STATUS]} ${peer.words[SIGNAL]}`), () => writer.close());
  assertEquals(seen, ["0 0", "-1 0", "-1 -1"]);
  assertEquals([...peer.words], [-1, -1, 5, 6, 7, 8, 9, 10]);
  withSteps(() => assert(false, "closes once"), () => writer.close());
  assertCode(() => reader.read(), "peer.closed");
  reader[Symbol.dispose]();
  assertCode(() => reader.read(), "pipe.closed");
  assertCode(() => reader.tryRead(), "pipe.closed");
  assertCode(() => writer.tryWrite(1), "pipe.closed");
});

Deno.test("a close drops the queue of its own reader, and not that of the other side", () => {
  for (const own of [true, false]) {
    const { writer, reader } = mailbox(40);
    writer.writeMany([1, 2]);
    assertEquals(reader.read(NOW), 1);
    (own ? reader : writer).close();
    const seen: unknown[] = [];
    collect(seen, () => reader.tryRead(), 2);
    assertEquals(seen, own ? ["pipe.closed", "pipe.closed"] : [2, "peer.closed"]);
  }
});

/** Adds the values and error codes of some calls to `seen`; an error does not stop it. */
function collect(seen: unknown[], call: () => unknown, times: number): void {
  for (let i = 0; i < times; i++) {
    try {
      const value = call();
      if (value !== undefined) seen.push(value);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      seen.push(error.code);
    }
  }
}
