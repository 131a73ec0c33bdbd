import { assert, assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../error.ts";
import { assertCode, codeOf } from "../testing/fixture.ts";
import { MailboxReader, MailboxWriter } from "./mailbox.ts";
import { COUNT, INDEX, LENGTH, Original, SIGNAL, STATUS, withSteps } from "./fixture.ts";
import { agentMechanism, type Mechanism } from "../wait/mechanism.ts";

const SOON = { timeout: 2_000 };
const NOW = { timeout: 0 };

interface Options {
  capacity?: number;
  maxMessageSize?: number;
  mechanism?: Mechanism;
  spin?: number;
}

// deno-lint-ignore no-explicit-any
function mailbox<T = any>({ capacity = 16, ...options }: Options = {}) {
  const memory = new SharedArrayBuffer(32 + capacity);
  const writer = MailboxWriter.attach<T>(memory, options);
  const reader = MailboxReader.attach<T>(memory, options);
  return { memory, writer, reader, peer: new Original(memory) };
}

/** A reader, and a peer that has written a part with these words. */
function partAt(words: Record<number, number>, options: Options = {}) {
  const { reader, peer } = mailbox(options);
  const part = { [LENGTH]: 3, [COUNT]: 1, [INDEX]: 0, [SIGNAL]: 1, ...words };
  peer.bytes.set(new TextEncoder().encode("[7]"));
  for (const [word, value] of Object.entries(part)) peer.words[Number(word)] = value;
  return { reader, peer };
}

function verdict(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error instanceof MillraceError ? error.code : error;
  }
}

Deno.test("[mailbox.section] a section is aligned to 4 and has 33 bytes at least", () => {
  const memory = new SharedArrayBuffer(128);
  const cases = [[0, 33, true], [0, 32, false], [0, 0, false], [4, 33, true], [2, 40, false]];
  for (const [byteOffset, byteLength, valid] of cases as [number, number, boolean][]) {
    const region = { buffer: memory, byteOffset, byteLength };
    for (const attach of [MailboxReader.attach, MailboxWriter.attach]) {
      if (valid) attach(region).closed;
      else assertCode(() => attach(region), "mailbox.size");
    }
  }
  assertThrows(() => MailboxReader.attach({} as SharedArrayBuffer), TypeError);
  assertThrows(() => MailboxReader.attach(memory, { maxMessageSize: -1 }), RangeError);
  assertThrows(() => MailboxReader.attach(memory, { spin: -1 }), RangeError);
});

Deno.test("the example of the specification, word for word", () => {
  const { memory, writer, reader } = mailbox();
  const words = (count: number) =>
    [...new Uint8Array(memory, 0, 20)].map((byte) => byte.toString(16).padStart(2, "0")).join("")
      .match(/.{8}/g)!.join(" ") +
    "  " + new TextDecoder().decode(new Uint8Array(memory, 32, count).slice());
  assertEquals(words(0), "00000000 00000000 00000000 00000000 00000000  ");
  assertCode(() => writer.writeMany(["hello", [1, 2, 3]], NOW), "wait.timeout");
  assertEquals(words(16), "00000000 01000000 10000000 02000000 00000000  " + `["hello",[1,2,3]`);
  assertEquals([reader.tryRead(), writer.owes], [undefined, true]);
  assertEquals(words(0), "00000000 00000000 10000000 02000000 00000000  ");
  writer.writeMany([], NOW);
  assertEquals(words(1), "00000000 01000000 01000000 02000000 01000000  ]");
  assertEquals([reader.tryRead(), reader.tryRead()], ["hello", [1, 2, 3]]);
  assertEquals(words(0), "00000000 00000000 01000000 02000000 01000000  ");
  writer.close();
  assertEquals(words(0), "ffffffff ffffffff 01000000 02000000 01000000  ");
});

Deno.test("values of JSON come back, one by one and many at once", () => {
  const { writer, reader } = mailbox({ capacity: 1000 });
  const values = [null, 0, false, "", "é€😀\ud800", [], [[]], { a: { b: [1] } }];
  for (const value of values) {
    assertEquals(writer.tryWrite(value), true);
    assertEquals(reader.read(NOW), value);
  }
  writer.writeMany(values);
  assertEquals(values.map(() => reader.tryRead()), values);
  writer.writeMany([]);
  assertEquals(reader.tryRead(), undefined);
});

Deno.test("what is not JSON is refused, and nothing of it is written", async () => {
  const { writer, reader, peer } = mailbox();
  const circle: unknown[] = [];
  circle.push(circle);
  for (const value of [undefined, () => 1, Symbol("x"), new Uint8Array(2), circle, 1n]) {
    assertThrows(() => writer.write(value), TypeError);
    assertThrows(() => writer.tryWrite(value), TypeError);
    assertThrows(() => writer.writeMany([1, value]), TypeError);
    assertEquals(
      await codeOf(writer.writeAsync(value)).then((code) => code.slice(0, 9)),
      "TypeError",
    );
  }
  assertEquals([peer.words[SIGNAL], reader.tryRead()], [0, undefined]);
  assertThrows(() => writer.write(1, { timeout: -1 }), RangeError);
  assertThrows(() => reader.read({ timeout: NaN }), RangeError);
});

Deno.test("[mailbox.check] each word has values that are taken and values that are not", () => {
  const cases: [Record<number, number>, unknown][] = [
    [{}, 7],
    [{ [SIGNAL]: 0 }, undefined],
    [{ [SIGNAL]: 2 }, "mailbox.signal"],
    [{ [SIGNAL]: -2 }, "mailbox.signal"],
    [{ [SIGNAL]: -1 }, "peer.closed"],
    [{ [STATUS]: 1 }, "mailbox.signal"],
    [{ [STATUS]: -2 }, "mailbox.signal"],
    [{ [STATUS]: -1 }, "peer.closed"],
    [{ [STATUS]: 1, [SIGNAL]: 0 }, "mailbox.signal"],
    [{ [STATUS]: -1, [SIGNAL]: 0 }, "peer.closed"],
    [{ [STATUS]: 5, [LENGTH]: 0 }, "mailbox.signal"],
    [{ [LENGTH]: 0 }, "mailbox.length"],
    [{ [LENGTH]: 1, [COUNT]: 2 }, undefined],
    [{ [LENGTH]: 16 }, "message.text"],
    [{ [LENGTH]: 17 }, "mailbox.length"],
    [{ [LENGTH]: -1 }, "mailbox.length"],
    [{ [LENGTH]: 0, [COUNT]: 0 }, "mailbox.length"],
    [{ [COUNT]: 0 }, "mailbox.part"],
    [{ [COUNT]: -1 }, "mailbox.part"],
    [{ [COUNT]: -0x80000000 }, "mailbox.part"],
    [{ [COUNT]: 2 }, undefined],
    [{ [COUNT]: 0x7fffffff }, undefined],
    [{ [INDEX]: 1 }, "mailbox.part"],
    [{ [INDEX]: 1, [COUNT]: 2 }, "mailbox.part"],
    [{ [INDEX]: -1 }, "mailbox.part"],
    [{ [LENGTH]: -1, [COUNT]: -1, [INDEX]: -1, [STATUS]: -1 }, "peer.closed"],
  ];
  for (const [words, expected] of cases) {
    const { reader, peer } = partAt(words);
    if (expected === "message.text") peer.bytes.fill(0xff);
    assertEquals(verdict(() => reader.tryRead()), expected, JSON.stringify(words));
    if (!`${expected}`.startsWith("mailbox.")) continue;
    assertEquals(verdict(() => reader.read()), expected);
    assertEquals([reader.closed, peer.words[STATUS], peer.words[SIGNAL]], [true, -1, -1]);
  }
});

Deno.test("[mailbox.check] later parts have the next index and the same count", () => {
  const cases: [number, number, unknown][] = [
    [1, 3, undefined],
    [0, 3, "mailbox.part"],
    [2, 3, "mailbox.part"],
    [3, 3, "mailbox.part"],
    [1, 2, "mailbox.part"],
    [1, 4, "mailbox.part"],
  ];
  for (const [index, count, expected] of cases) {
    const { reader, peer } = partAt({ [COUNT]: 3 });
    assertEquals(reader.tryRead(), undefined);
    peer.words[COUNT] = count;
    peer.words[INDEX] = index;
    peer.words[SIGNAL] = 1;
    assertEquals(verdict(() => reader.tryRead()), expected, `${index} of ${count}`);
  }
});

Deno.test("a writer refuses a control word that no endpoint stores", () => {
  for (const [word, value] of [[SIGNAL, 2], [SIGNAL, -2], [STATUS, 1]] as const) {
    const { writer, peer } = mailbox();
    peer.words[word] = value;
    for (let i = 0; i < 2; i++) assertCode(() => writer.write(1, SOON), "mailbox.signal");
    assertEquals(writer.closed, true);
  }
});

Deno.test("[mailbox.parts] a payload comes whole from every cut, also inside a character", () => {
  const values = ["é€😀", { "ключ": "значение" }];
  const payload = new TextEncoder().encode(JSON.stringify(values));
  for (let most = 1; most <= payload.length; most++) {
    const { reader, peer } = mailbox({ capacity: payload.length });
    const write = peer.writeBytes(payload, most);
    const seen: unknown[] = [];
    for (let parts = Math.ceil(payload.length / most); parts > 0; parts--) {
      assertEquals(seen, []);
      peer.poll(write);
      const value = reader.tryRead();
      if (value !== undefined) seen.push(value, reader.tryRead());
    }
    assertEquals(seen, values);
  }
});

Deno.test("a writer cuts at every capacity from 1, and the original reads it", async () => {
  const values = ["é€😀", [1, 2], "x".repeat(9)];
  for (let capacity = 1; capacity < 40; capacity++) {
    const { writer, reader, peer } = mailbox({ capacity });
    const many = writer.writeManyAsync(values, SOON);
    assertEquals(await peer.turn(peer.read()), values);
    await many;
    const one = writer.writeAsync(values, SOON);
    assertEquals(await reader.readAsync(SOON), values);
    await one;
  }
});

Deno.test("[mailbox.keep_parts] [mailbox.write_all] both sides go on where a deadline left", () => {
  const { writer, reader } = mailbox({ capacity: 4 });
  assertCode(() => writer.write("0123456789", NOW), "wait.timeout");
  for (let round = 0; round < 3; round++) {
    assertEquals(reader.read(NOW), undefined);
    assertEquals(reader.read({ timeout: 2 }), undefined);
    assertEquals([writer.owes, writer.tryWrite(1)], [true, false]);
  }
  assertEquals([writer.owes, reader.read(NOW)], [false, "0123456789"]);
  assertEquals([writer.tryWrite(1), writer.tryWrite(2)], [true, false]);
  assertCode(() => writer.write(3, { timeout: 2 }), "wait.timeout");
  assertEquals([writer.owes, reader.read(NOW), reader.read(NOW)], [false, 1, undefined]);
  assertThrows(() => writer.tryWrite("long"), RangeError, "too small");
});

Deno.test("what is under way does not change when the next value is encoded", async () => {
  const { writer, reader } = mailbox({ capacity: 8 });
  assertCode(() => writer.write("first of all", NOW), "wait.timeout");
  assertCode(() => writer.write("SECOND TO COME", NOW), "wait.timeout");
  const rest = writer.writeManyAsync([], SOON);
  assertEquals(await reader.readAsync(SOON), "first of all");
  await rest;
  const writes = ["a", "b", "c", "d"].map((value) => writer.writeAsync(value, SOON));
  for (const value of ["a", "b", "c", "d"]) assertEquals(await reader.readAsync(SOON), value);
  await Promise.all(writes);
});

Deno.test("a flood of parts does not keep a call beyond its deadline", async () => {
  for (const blocking of [true, false]) {
    const { reader, peer } = mailbox({ maxMessageSize: 4 });
    const { words } = peer;
    const start = performance.now();
    words[COUNT] = 0x7fffffff;
    words[INDEX] = -1;
    // Before each load of the reader, the next part is there; for at most half a minute.
    const feed = () => {
      if (words[SIGNAL] !== 0 || performance.now() - start > 30_000) return;
      words[LENGTH] = 4;
      words[INDEX]!++;
      words[SIGNAL] = 1;
    };
    assertEquals(verdict(() => withSteps(feed, () => reader.read(SOON))), "message.size");
    const late = withSteps(feed, () => blocking ? reader.read({ timeout: 5 }) : undefined);
    assertEquals(late, undefined);
    assert(performance.now() - start < 15_000);
    if (blocking) continue;
    const timer = setInterval(feed, 0);
    assertEquals(await reader.readAsync({ timeout: 5 }), undefined);
    clearInterval(timer);
    assert(performance.now() - start < 15_000);
  }
});

Deno.test("[mailbox.limit] a payload above the limit is dropped and reported once", () => {
  for (const capacity of [1, 3, 7, 100]) {
    for (const [size, fits] of [[12, true], [13, false], [60, false]] as const) {
      const { reader, peer } = mailbox({ capacity, maxMessageSize: 12 });
      const seen: unknown[] = [];
      for (const value of ["x".repeat(size - 4), 7]) {
        const write = peer.write([value]);
        for (let done = false; !done;) {
          done = peer.poll(write);
          const found = verdict(() => reader.tryRead());
          if (found !== undefined) seen.push(found);
        }
      }
      assertEquals(seen, [fits ? "x".repeat(8) : "message.size", 7], `${capacity}, ${size}`);
    }
  }
});

Deno.test("[mailbox.bad_payload] is dropped and reported once, the next one comes", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const cases: [Uint8Array, unknown][] = [
    [bytes(" [1] "), 1],
    [bytes("[]"), "message.json"],
    [bytes("1"), "message.json"],
    [bytes('{"0":1}'), "message.json"],
    [bytes("[1"), "message.json"],
    [bytes("\ufeff[1]"), "message.json"],
    [Uint8Array.of(0x5b, 0x22, 0xff, 0x22, 0x5d), "message.text"],
    [Uint8Array.of(0x5b, 0x22, 0xc3, 0xa9, 0x22, 0x5d), "é"],
    [Uint8Array.of(0x5b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x5d), "message.text"],
  ];
  for (const [payload, expected] of cases) {
    const { reader, writer, peer } = mailbox();
    peer.poll(peer.writeBytes(payload, 16));
    assertEquals(verdict(() => reader.tryRead()), expected);
    writer.write(2, NOW);
    assertEquals(reader.read(NOW), 2);
  }
});

Deno.test("[mailbox.one_waiter] one sleep is outstanding, of 100 ms at most", async () => {
  const agent = agentMechanism();
  let sleepers = 0;
  let most = 0;
  let parks = 0;
  const mechanism: Mechanism = {
    rings: agent.rings,
    sleeps: agent.sleeps,
    blocks: true,
    notify: agent.notify.bind(agent),
    sleep(words, index, expected, ms) {
      assert(ms <= 100 && sleepers === 0);
      parks++;
      agent.sleep(words, index, expected, ms);
    },
    sleepAsync(words, index, expected, ms) {
      assert(ms <= 100);
      most = Math.max(most, ++sleepers);
      const over = () => sleepers--;
      // Only a wake ends this sleep while the test lasts.
      const promise = agent.sleepAsync(words, index, expected, 20_000)!;
      promise.then(over, over);
      return promise;
    },
  };
  const { reader, peer } = mailbox({ mechanism, spin: 0 });
  const given = new AbortController();
  const first = reader.readAsync({ signal: given.signal }).catch((error) => error.name);
  const second = reader.readAsync({ timeout: 1 });
  given.abort();
  assertEquals([await first, await second], ["AbortError", undefined]);
  assertEquals([most, sleepers], [1, 1]);
  assertEquals([reader.read({ timeout: 12 }), parks, sleepers], [undefined, 0, 1]);
  const third = reader.readAsync(SOON);
  await new Promise((resolve) => setTimeout(resolve, 2));
  peer.poll(peer.write([3])); // notifies one sleeper, which must not be one that has given up
  assertEquals([await third, most], [3, 1]);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(sleepers, 0);
  assertEquals(reader.read({ timeout: 3 }), undefined);
  assertEquals(parks, 1);
});

Deno.test("a thread that must not block has the asynchronous verbs", async () => {
  const agent = agentMechanism();
  const mechanism: Mechanism = {
    rings: agent.rings,
    sleeps: agent.sleeps,
    blocks: false,
    notify: agent.notify.bind(agent),
    sleep: agent.sleep.bind(agent),
    sleepAsync: () => undefined, // as in a runtime without waitAsync
  };
  const { reader, writer } = mailbox({ mechanism });
  assertCode(() => reader.read(), "wait.forbidden");
  const value = reader.readAsync(SOON);
  writer.write(1);
  assertCode(() => writer.write(2), "wait.forbidden");
  assertEquals(await value, 1);
});

Deno.test("memory that is not shared is polled", async () => {
  const memory = new ArrayBuffer(64);
  const writer = MailboxWriter.attach(memory);
  const reader = MailboxReader.attach(memory, { spin: 0 });
  assertEquals(reader.read({ timeout: 3 }), undefined);
  const value = reader.readAsync(SOON);
  writer.write(1);
  assertEquals(await value, 1);
});

Deno.test("asynchronous calls keep their order, their deadlines and their signals", async () => {
  const { writer, reader } = mailbox({ capacity: 4 });
  const values = Array.from({ length: 20 }, (_, n) => `value ${n}`);
  const writes = values.map((value) => writer.writeAsync(value, SOON));
  assertThrows(() => writer.write("sync"), TypeError, "under way");
  assertEquals(writer.tryWrite(1), false);
  const reads = await Promise.all(values.map(() => reader.readAsync(SOON)));
  await Promise.all(writes);
  assertEquals(reads, values);

  assertEquals(await reader.readAsync({ timeout: 1 }), undefined);
  const aborted = { signal: AbortSignal.abort("stop") };
  assertEquals(await codeOf(reader.readAsync(aborted)), "stop");
  assertEquals(await codeOf(writer.writeAsync(1, aborted)), "stop");
  assertEquals(reader.tryRead(), undefined);

  const given = new AbortController();
  const [begun, queued, late] = [
    writer.writeAsync("begun and completed", { signal: given.signal }),
    writer.writeAsync("never begun", { signal: given.signal }),
    writer.writeAsync("late", { timeout: 1 }),
  ].map(codeOf);
  setTimeout(() => given.abort("stop"), 5);
  assertEquals([await begun, await queued, await late], ["stop", "stop", "wait.timeout"]);
  assertEquals(writer.owes, true);
  const next = writer.writeAsync("next", SOON);
  assertEquals([await reader.readAsync(SOON), await reader.readAsync(SOON)], [
    "begun and completed",
    "next",
  ]);
  await next;
});
