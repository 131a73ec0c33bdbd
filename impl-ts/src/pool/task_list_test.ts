/**
 * Lists of tasks: the items of one message, and what becomes of the others if one of them fails.
 */

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { MessageError } from "../error.ts";
import { Port } from "../port/port.ts";
import { makeSend } from "../pipe/outgoing.ts";
import { tryReadMessage } from "../more/raw.ts";
import { Pool, PoolError } from "./pool.ts";
import { countingPool, eventually, poolOf } from "./fixture.ts";
import { Line, type LineUser } from "./worker_line.ts";
import { LIST_SIZE, ListReader, ListWriter, partOf } from "./task_list.ts";

const JSON_ALONE = { codec: "json" } as const;
const MANY = { ahead: 20 };
const TWICE = { name: "twice" } as const;

/** Writes values as a list. */
function listOf(values: readonly unknown[]): Uint8Array {
  const writer = new ListWriter(LIST_SIZE);
  for (const value of values) writer.add(partOf(value, JSON_ALONE));
  const payload = makeSend(1);
  writer.take(payload);
  return payload.source.slice();
}

/** Opens a list for reading. */
function readerOf(bytes: Uint8Array, width = 1, limit = Infinity): ListReader {
  const reader = new ListReader(width, limit, undefined);
  reader.open(bytes, new Int32Array(bytes.buffer, 0, bytes.length >> 2), bytes.length);
  return reader;
}

/** A user that does nothing, for lines whose messages are read by the test itself. */
const IDLE_USER: LineUser = {
  width: 2,
  isDue: false,
  take: () => {},
  takeMarked: () => {},
  lose: () => {},
  go: () => {},
  finish: () => {},
};

Deno.test("a list gives back the values that were added, of each kind", () => {
  const values = [0, 7, 4294967295, -1, 0.5, 4294967296, undefined, null, true, "", "text", "é\n"];
  values.push("x".repeat(40), { a: [1] } as never, Uint8Array.of(1, 2, 3) as never, -0, 10);
  const reader = readerOf(listOf(values));
  assertEquals(reader.itemCount, values.length);
  const read = values.map((_, item) => (reader.goTo(item), reader.read()));
  assertEquals(read, values.map((value) => Object.is(value, -0) ? 0 : value));
});

Deno.test("a list of many values is found whole, and one more has no room", () => {
  const writer = new ListWriter(LIST_SIZE);
  let count = 0;
  for (; writer.hasRoom(1, 2); count++) writer.add(count % 100);
  assertEquals(count, 255); // of 16 bytes each, after a header of 8
  const payload = makeSend(1);
  writer.take(payload);
  assert(payload.size <= LIST_SIZE && writer.isEmpty);
  assertEquals(readerOf(payload.source.slice()).itemCount, count);
});

Deno.test("an item that is too large is lost, and those before and after it are read", () => {
  const reader = readerOf(listOf(["name", "a", undefined, "x".repeat(77), undefined, "b"]), 2, 100);
  const item = (index: number) => (reader.goTo(index), [reader.read(), reader.read()]);
  assertEquals(item(0), ["name", "a"]);
  assertEquals(assertThrows(() => item(1), MessageError).code, "message.size");
  assertEquals(item(2), [undefined, "b"]);
  const just = readerOf(listOf([undefined, "x".repeat(76)]), 2, 100); // and 24 bytes before it
  just.goTo(0);
  assertEquals([just.read(), just.read()], [undefined, "x".repeat(76)]);
});

Deno.test("a list is refused that is none", () => {
  const good = listOf([1, "two"]);
  readerOf(good);
  const bad = [
    good.slice(0, 4),
    good.slice(0, good.length - 1),
    Uint8Array.of(...good, 0),
    good.with(0, 3),
    good.with(4, 1),
    good.with(8, 200),
    good.with(12, 3), // the codec of a batch
    good.with(13, 1),
    good.with(0, 0),
  ];
  for (const bytes of bad) {
    assertEquals(assertThrows(() => readerOf(bytes), MessageError).code, "message.values");
  }
  assertThrows(() => readerOf(listOf([1, 2, 3]), 2), MessageError);
});

Deno.test("tasks of one go are one message, and their names are in it once", () => {
  using here = Port.create<unknown>();
  using there = Port.attach<unknown>(here.memory);
  const line = new Line(here, IDLE_USER);
  for (const number of [5, 6, 7]) line.add(number, "twice", number);
  assertEquals(tryReadMessage(there), undefined);
  line.flush();
  line.flush();
  const { tag, payload } = tryReadMessage(there)!;
  assertEquals([tag, tryReadMessage(there)], [5, undefined]);
  const reader = readerOf(payload, 2);
  const read = [0, 1, 2].map((item) => (reader.goTo(item), [reader.read(), reader.read()]));
  assertEquals(read, [["twice", 5], [undefined, 6], [undefined, 7]]);
});

Deno.test("what is not numbered after the last item, or too large, is a list of its own", () => {
  using here = Port.create<unknown>();
  using there = Port.attach<unknown>(here.memory);
  const line = new Line(here, IDLE_USER);
  const long = "x".repeat(LIST_SIZE);
  for (const number of [1, 2, 4]) line.add(number, undefined, number);
  line.add(5, "name", line.encode(long));
  line.add(6, undefined, 6);
  line.sendMark(2);
  const tags = [];
  for (let message; (message = tryReadMessage(there)) !== undefined;) tags.push(message.tag);
  assertEquals(tags, [1, 4, 5, 6, 2 + 2 ** 31]);
});

Deno.test("a task that fails in the middle of a list leaves the others alone", async () => {
  await using pool = poolOf({ ...MANY, maxMessageSize: 100 });
  // The tasks wait until the worker has started, and are then given to it at one time.
  const tasks = [
    pool.run(1, TWICE),
    pool.run("thrown", { name: "fail" }),
    pool.run(2, TWICE),
    pool.run(undefined, { name: "unsendable" }),
    pool.run(3, TWICE),
    pool.run(200, { name: "long" }),
    pool.run("x".repeat(200), { name: "fail" }), // its error is too large
    pool.run(4, TWICE),
    pool.run(1n, { name: "echo" }),
    pool.run(5, { name: "none" as "twice" }),
    pool.run(3, { name: "each" }),
    pool.run(6, TWICE),
    pool.run("x", { name: "\ud800" as "echo" }), // a name without UTF-8, although a handler has it
  ];
  const outcomes = await Promise.allSettled(tasks);
  const shown = outcomes.map((outcome) =>
    outcome.status === "fulfilled" ? outcome.value : outcome.reason.code ?? outcome.reason.name
  );
  const [size, thrown] = ["message.size", "call.thrown"];
  const [items, method, result] = ["call.items", "call.method", "call.result"];
  assertEquals(shown.slice(0, 6), [2, thrown, 4, result, 6, size]);
  assertEquals(shown.slice(6), [size, 8, "TypeError", method, items, 12, "found"]);
  assertEquals([pool.stats().running, pool.stats().done, pool.stats().failed], [0, 6, 7]);
});

Deno.test("a value that is larger than the worker takes is refused, and no other", async () => {
  const library = import.meta.resolve("./pool.ts");
  const source = `
    import { work } from "${library}";
    work((text) => text.length, { maxMessageSize: 100 });`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  await using pool = new Pool<{ handlers: (text: string) => number }>(url, { most: 1, ...MANY });
  const sizes = [1, 70, 90, 5, 70, 5000, 6];
  const tasks = sizes.map((size) => pool.run("x".repeat(size)));
  const codes = await Promise.all(tasks.map((task) => task.catch(({ code }) => code)));
  // 32 bytes come before each value: header, entries, and "run" or nothing, aligned to 8.
  assertEquals(codes, [1, 70, "message.size", 5, 70, "message.size", 6]);
});

Deno.test("a worker that dies in the middle of a list has lost the task that it ran", async () => {
  const { pool, counts } = countingPool(20, MANY);
  await using _ = pool;
  const before = [1, 2, 3].map((id) => pool.run(id, { name: "count" }));
  const dying = pool.run(0, { name: "crash" });
  const behind = [4, 5, 6].map((id) => pool.run(id, { name: "count" }));
  assertEquals(pool.stats().waiting, 7);
  assertEquals(await Promise.all(before), [1, 2, 3]);
  const error = await assertRejects(() => dying, PoolError);
  assertEquals(error.code, "pool.died");
  assertEquals(await Promise.all(behind), [4, 5, 6]);
  assertEquals([...counts.slice(0, 8)], [0, 1, 1, 1, 1, 1, 1, 0]);
  assertEquals([pool.stats().running, pool.stats().restarted], [0, 1]);
});

Deno.test("a task of a list is given up by its signal or a deadline, and no other", async () => {
  const { pool, counts } = countingPool(4, MANY);
  await using _ = pool;
  await pool.run(3, { name: "count" });
  const stop = new AbortController();
  const gate = new AbortController();
  // Encoding the first task holds all of these back, so that they go together.
  const first = pool.run(0, { name: "hang", signal: gate.signal });
  const nested: Promise<unknown>[] = [];
  const given = pool.run({
    toJSON() {
      nested.push(pool.run(1, { name: "count" }));
      nested.push(pool.run(2, { name: "count", signal: stop.signal }));
      nested.push(pool.run(2, { name: "count", signal: AbortSignal.timeout(20) }));
      nested.push(pool.run(9, TWICE));
      return "value";
    },
  }, { name: "echo" });
  stop.abort();
  await assertRejects(() => nested[1]!, DOMException, "abort");
  const late = await assertRejects(() => nested[2]!, DOMException);
  assertEquals([late.name, pool.stats().running], ["TimeoutError", 6]);
  gate.abort();
  await assertRejects(() => first, DOMException);
  assertEquals([await given, await nested[0], await nested[3]], ["value", 1, 18]);
  await eventually(() => pool.stats().running === 0);
  assertEquals([...counts], [0, 1, 0, 1]);
});

Deno.test("tasks that wait are shared out among the workers that have come", async () => {
  const { pool, counts } = countingPool(2, { least: 2, most: 2, ahead: 9 });
  await using _ = pool;
  await eventually(() => pool.stats().workers.every(({ state }) => state === "ready"));
  const blocked = [0, 1].map(() => pool.run(0, { name: "gate" }));
  const nested: Promise<unknown>[] = [];
  const value = () => nested.push(...[1, 2, 3, 4, 5].map((n) => pool.run(n, TWICE)));
  const task = pool.run({ toJSON: value }, { name: "echo" });
  assertEquals(pool.stats().workers.map(({ running }) => running), [4, 4]);
  Atomics.store(counts, 0, 1); // from here on, tasks that come to the gate do not wait
  Atomics.notify(counts, 0);
  assertEquals((await Promise.all([...nested, task, ...blocked])).slice(0, 6), [2, 4, 6, 8, 10, 5]);
});
