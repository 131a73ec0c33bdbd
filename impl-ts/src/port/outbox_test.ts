import { assert, assertEquals, assertThrows } from "@std/assert";
import { assertCode, codeOf, pattern, printedApart, watched } from "../testing/fixture.ts";
import { ClosedError, MillraceError, OverflowError } from "../error.ts";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";
import { Port } from "./port.ts";
import type { PortCreateOptions } from "./options.ts";
import { fate, fill, until } from "./fixture.ts";
import { Segment } from "../memory/segment.ts";
import { nextTask } from "../wait/loop.ts";
import { claim, publish, release, tryPeek } from "../more/lend.ts";
import { writeMessage } from "../more/raw.ts";
import { waitForPeer } from "../more/peer.ts";
import { writeMany } from "../more/many.ts";
import { statsOf } from "../pipe/ends.ts";

// deno-lint-ignore no-explicit-any
function ports(options: PortCreateOptions<any, any> = {}): [Port<any>, Port<any>] {
  const here = Port.create(options);
  return [here, Port.attach(here.memory, { side: "b" })];
}

/** Reads everything that can be read now. */
function drain(b: Port<unknown>): unknown[] {
  const values: unknown[] = [];
  for (let value; (value = b.tryRead()) !== undefined;) {
    if (value !== "fill") values.push(value);
  }
  return values;
}

Deno.test("postMessage sends in order, at the end of the job", async () => {
  const [a, b] = ports();
  const sent = [a.postMessage(1), a.postMessage({ two: 2 }), a.postMessage(null)];
  assertEquals(b.tryRead(), undefined);
  await Promise.all(sent);
  assertEquals([b.tryRead(), b.tryRead(), b.tryRead(), b.tryRead()], [
    1,
    { two: 2 },
    null,
    undefined,
  ]);
  a.close();
});

Deno.test("what one job posts is packed into batches and published once", async () => {
  const [a, b] = ports();
  const values: unknown[] = Array.from({ length: 40 }, (_, i) => i);
  values.splice(20, 0, pattern(5), "é".repeat(5000));
  const before = statsOf(a);
  for (const value of values) a.postMessage(value);
  await new Promise<void>((resolve) => nextTask(resolve));
  const after = statsOf(a);
  assertEquals(after.wakes + after.wakesElided - before.wakes - before.wakesElided, 1);
  const codecs: [number, number][] = [];
  for (let message; (message = tryPeek(b)) !== undefined;) {
    const { codec, payload } = message;
    const count = codec === 3 ? JSON.parse(new TextDecoder().decode(payload.slice())).length : 1;
    codecs.push([codec, count]);
    release(b);
  }
  assertEquals(codecs, [[3, 20], [0, 1], [3, 21]]);
  for (const value of values) a.postMessage(value);
  await new Promise<void>((resolve) => nextTask(resolve));
  assertEquals(drain(b), values);
  a.close();
});

Deno.test("with batch false, each post and each value of writeMany is a message", async () => {
  for (const batch of [true, undefined, false]) {
    const [a, b] = ports({ batch });
    const before = statsOf(a);
    const sent = [1, { two: 2 }, null].map((value) => a.postMessage(value));
    await Promise.all(sent);
    const after = statsOf(a);
    // They go out together all the same.
    assertEquals(after.wakes + after.wakesElided - before.wakes - before.wakesElided, 1);
    writeMany(a, [4, 5]);
    const read: [number, string][] = [];
    for (let message; (message = tryPeek(b)) !== undefined; release(b)) {
      read.push([message.codec, new TextDecoder().decode(message.payload.slice())]);
    }
    const single = ["1", '{"two":2}', "null", "4", "5"].map((text) => [2, text]);
    assertEquals(read, batch === false ? single : [[3, '[1,{"two":2},null]'], [3, "[4,5]"]]);
    a.close();
  }
  assertThrows(() => Port.create({ batch: 0 as never }), TypeError, "batch must be");
});

Deno.test("what one job posts goes out before its end where it is much", async () => {
  const [a, b] = ports({ capacity: 4096 });
  const text = "x".repeat(100);
  const values = Array.from({ length: 18 }, (_, i) => `${i} ${text}`);
  const sent = values.map((value) => a.postMessage(value));
  const seen = drain(b); // in the same job as the posts
  assert(seen.length >= 8 && seen.length < 18, `${seen.length} of 18`);
  await Promise.all(sent);
  assertEquals([...seen, ...drain(b)], values);
  a.close();
});

Deno.test("a post that may be taken back shares its fate with no other", async () => {
  {
    const [a, b] = ports();
    const changing = new AbortController();
    const sent = [
      a.postMessage(1),
      a.postMessage(2, { signal: changing.signal }),
      a.postMessage(3),
      a.postMessage(4),
    ].map(fate);
    changing.abort("back");
    assertEquals(await Promise.all(sent), ["sent", "back", "sent", "sent"]);
    assertEquals(drain(b), [1, 3, 4]);
    a.close();
  }
});

Deno.test("a batch is never larger than one frame", async () => {
  const [a, b] = ports({ capacity: 256 });
  const values = Array.from({ length: 30 }, (_, i) => "ü".repeat(i));
  const seen: unknown[] = [];
  b.onmessage = ({ data }) => seen.push(data);
  await Promise.all(values.map((value) => a.postMessage(value)));
  await until(() => seen.length === values.length);
  assertEquals(seen, values);
  a.close();
  b.close();
});

Deno.test("a value is encoded when it is posted, and refused then if it cannot be", async () => {
  const [a, b] = ports();
  const list = [1];
  const bytes = Uint8Array.of(1, 2);
  a.postMessage(list);
  a.postMessage(bytes);
  list.push(2);
  bytes[0] = 9;
  for (const value of [undefined, () => {}, Symbol("s"), 1n]) {
    assertThrows(() => a.postMessage(value), TypeError);
  }
  const circular: unknown[] = [];
  circular.push(circular);
  assertThrows(() => a.postMessage(circular), TypeError);
  await new Promise<void>((resolve) => nextTask(resolve));
  assertEquals(drain(b), [[1], Uint8Array.of(1, 2)]);
  a.close();
});

Deno.test("every codec can be posted, also while a message waits for room", async () => {
  const scratch = new Uint8Array(1);
  const own = {
    code: 200,
    encode: (value: number) => (scratch[0] = value, scratch), // the same bytes for each value
    decode: (payload: Uint8Array) => payload[0]!,
  };
  for (
    const [codec, values] of [
      ["text", ["a", "b", "x".repeat(300), "c"]],
      ["bytes", [pattern(3), pattern(300), pattern(4)]],
      [own, [1, 2, 3]],
    ] as const
  ) {
    const a = Port.create<unknown, unknown>({ capacity: 256, codec: codec as "text" });
    const b = Port.attach<unknown>(a.memory, { codec: codec as "text" });
    const sent = values.map((value) => a.postMessage(value));
    const seen: unknown[] = [];
    for (const _ of values) seen.push(await b.readAsync({ timeout: 1000 }));
    await Promise.all(sent);
    assertEquals(seen, [...values]);
    a.close();
  }
  const text = Port.create<string>({ codec: "text" });
  assertThrows(() => text.postMessage(7 as never), TypeError);
});

Deno.test("posts keep their order among all kinds of writes", async () => {
  const [a, b] = ports({ capacity: 1024 });
  a.postMessage(1);
  a.write(2);
  a.postMessage(3);
  writeMany(a, [4, 5]);
  a.postMessage(6);
  assert(a.tryWrite(7));
  a.postMessage(8);
  const written = a.writeAsync(9);
  const posted = [a.postMessage(10), a.postMessage(11)];
  const again = a.writeAsync(12);
  a.postMessage(13);
  await Promise.all([written, again, ...posted]);
  a.postMessage(14);
  claim(a, 1).payload[0] = 15;
  assertThrows(() => a.postMessage(0), TypeError, "claim is open");
  publish(a);
  a.postMessage(16);
  writeMessage(a, { payload: Uint8Array.of(17) });
  await new Promise<void>((resolve) => nextTask(resolve));
  const values = drain(b).map((value) => value instanceof Uint8Array ? value[0] : value);
  assertEquals(values, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]);
  a.close();
});

Deno.test("in a full ring, asynchronous writes and posts take turns in their order", async () => {
  const [a, b] = ports({ capacity: 256 });
  fill(a);
  const sent = [
    a.postMessage("x".repeat(300)),
    a.postMessage(1),
    a.writeAsync(2),
    a.postMessage(3),
    a.writeAsync(4),
    a.writeAsync(5),
    a.postMessage(6),
  ];
  await new Promise<void>((resolve) => nextTask(resolve));
  sent.push(a.writeAsync("z".repeat(300)), a.postMessage(7)); // the first write is under way
  assertThrows(() => a.write(8, { timeout: 0 }));
  assertEquals(a.tryWrite(8), false);
  const seen: unknown[] = [];
  while (seen.length < 9) {
    const value = await b.readAsync({ timeout: 1000 });
    if (value !== "fill") seen.push(value);
  }
  await Promise.all(sent);
  assertEquals(seen, ["x".repeat(300), 1, 2, 3, 4, 5, 6, "z".repeat(300), 7]);
  a.close();
});

Deno.test("a blocking write first writes what waits, and gives up only itself", async () => {
  const [a, b] = ports({ capacity: 256 });
  fill(a);
  const sent = [a.postMessage("y".repeat(300)), a.postMessage(1)];
  await new Promise<void>((resolve) => nextTask(resolve)); // the posts wait in the background
  b.read();
  b.read();
  assertCode(() => a.write(2, { timeout: 5 }), "wait.timeout");
  const seen: unknown[] = [];
  while (seen.length < 2) {
    const value = await b.readAsync({ timeout: 1000 });
    if (value !== "fill") seen.push(value);
  }
  await Promise.all(sent);
  a.write(3);
  assertEquals([...seen, ...drain(b)], ["y".repeat(300), 1, 3]);
  a.close();
});

Deno.test("a post ends as the port does: closed, failed, gone or ended", async () => {
  const stops: [string, (a: Port, b: Port) => void][] = [
    ["pipe.closed", (a) => a.close()],
    ["pipe.closed", (a) => closeEndpoint(Segment.attach(a.memory), 0)],
    ["pipe.failed", (a) => failEndpoint(Segment.attach(a.memory), 0)],
    ["peer.closed", (_, b) => b.close()],
    ["peer.failed", (a) => failEndpoint(a.segment, 1)],
  ];
  for (const [code, stop] of stops) {
    const [a, b] = ports({ capacity: 256 });
    fill(a);
    const waiting = [a.postMessage("x".repeat(300)), a.postMessage(2)].map(fate);
    await new Promise<void>((resolve) => nextTask(resolve));
    waiting.push(fate(a.postMessage(3)));
    stop(a, b);
    waiting.push(fate(a.postMessage(4)));
    assertEquals(await Promise.all(waiting), [code, code, code, code]);
    a.close();
  }
  const [a] = ports();
  a.end();
  assertEquals(await fate(a.postMessage(1)), "pipe.ended");
  a.close();
});

Deno.test("posts of several turns all end with the port", async () => {
  for (const end of [(a: Port) => a.close(), (_: Port, b: Port) => b.close()]) {
    const [a, b] = ports({ capacity: 256 });
    fill(a);
    const sent = [a.postMessage(1), a.writeAsync(2), a.postMessage(3), a.writeAsync(4)].map(fate);
    await new Promise<void>((resolve) => nextTask(resolve)); // the first waits in the background
    sent.push(fate(a.postMessage(5)), fate(a.postMessage(pattern(9))));
    end(a, b);
    const codes = await Promise.all(sent.map((fate) => Promise.race([fate, late(300)])));
    assertEquals(new Set(codes).size, 1, `${codes}`);
    assert(codes[0]!.endsWith(".closed"), codes[0]);
    a.close();
  }
});

/** A promise that resolves with "never" after `ms` milliseconds. */
function late(ms: number): Promise<string> {
  return new Promise((resolve) => setTimeout(resolve, ms, "never"));
}

Deno.test("a signal takes a post back, until it is in the ring", async () => {
  const [a, b] = ports({ capacity: 256 });
  assertEquals(await fate(a.postMessage(0, { signal: AbortSignal.abort("early") })), "early");
  const first = new AbortController();
  const second = new AbortController();
  const sent = [
    a.postMessage("x".repeat(600), { signal: first.signal }),
    a.postMessage(1, { signal: second.signal }),
    a.postMessage(2, { signal: second.signal }),
    a.postMessage(3),
  ].map(fate);
  await new Promise<void>((resolve) => nextTask(resolve)); // a part of the long one is in the ring
  first.abort("long");
  second.abort("short");
  assertEquals(await codeOf(b.readAsync({ timeout: 1000 })), "message.cancelled");
  assertEquals(await b.readAsync({ timeout: 1000 }), 3);
  assertEquals(await Promise.all(sent), ["long", "short", "short", "sent"]);
  a.close();
});

Deno.test("overflow: reject refuses the newest, and wait none", async () => {
  for (const overflow of ["reject", "wait"] as const) {
    const [a, b] = ports({
      capacity: 256,
      queueLimit: 2,
      overflow,
    });
    fill(a);
    const sent = [1, 2, 3, 4].map((value) => fate(a.postMessage(value)));
    await new Promise<void>((resolve) => nextTask(resolve));
    const seen = drain(b);
    for (let value; (value = await b.readAsync({ timeout: 20 })) !== undefined;) seen.push(value);
    const over = "port.overflow";
    assertEquals(
      [await Promise.all(sent), seen],
      {
        reject: [["sent", "sent", over, over], [1, 2]],
        wait: [["sent", "sent", "sent", "sent"], [1, 2, 3, 4]],
      }[overflow],
    );
    a.close();
  }
});

Deno.test("a limit counts what waits for room, and not what one job posts", async () => {
  const [a, b] = ports({ queueLimit: 1, overflow: "reject" });
  const sent = Array.from({ length: 100 }, (_, i) => a.postMessage(i));
  await Promise.all(sent);
  assertEquals(drain(b).length, 100);
  a.close();
});

Deno.test("a rejection that nobody handles is no unhandled one", async () => {
  const unhandled: unknown[] = [];
  const note = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(event.reason);
  };
  addEventListener("unhandledrejection", note);
  try {
    const [a, b] = ports({ capacity: 256, queueLimit: 1, overflow: "reject" });
    fill(a);
    for (let i = 0; i < 5; i++) a.postMessage(i);
    b.close();
    await new Promise<void>((resolve) => nextTask(resolve));
    a.postMessage(0);
    a.close();
    a.postMessage(0);
    await new Promise<void>((resolve) => nextTask(resolve));
    await new Promise<void>((resolve) => nextTask(resolve));
    assertEquals(unhandled, []);
  } finally {
    removeEventListener("unhandledrejection", note);
  }
});

Deno.test("end comes at once where it can, and otherwise after what was accepted", async () => {
  const [a, b] = ports({ capacity: 256 });
  a.postMessage(1);
  a.end();
  assertEquals([b.tryRead(), b.tryRead(), b.ended], [1, undefined, true]);
  await a.endAsync();

  const [c, d] = ports({ capacity: 256 });
  fill(c);
  const sent = [c.postMessage("x".repeat(300)), c.writeAsync(2), c.postMessage(3)];
  c.end();
  c.end();
  assertEquals(await fate(c.postMessage(4)), "pipe.ended");
  assertThrows(() => c.write(5), ClosedError);
  assertEquals(await codeOf(c.endAsync({ timeout: 5 })), "wait.timeout");
  assertEquals(await codeOf(c.endAsync({ signal: AbortSignal.abort("no") })), "no");
  const ended = c.endAsync();
  const seen: unknown[] = [];
  for (let value; (value = await d.readAsync({ timeout: 1000 })) !== undefined;) {
    if (value !== "fill") seen.push(value);
  }
  await Promise.all([...sent, ended]);
  assertEquals([seen, d.ended], [["x".repeat(300), 2, 3], true]);

  const [e, f] = ports({ capacity: 256 });
  fill(e);
  e.postMessage("x".repeat(300));
  const never = codeOf(e.endAsync());
  f.close();
  assertEquals(await never, "peer.closed");
});

Deno.test("close sends what the job has posted, and asyncDispose all that was posted", async () => {
  const [a, b] = ports();
  const sent = a.postMessage(1);
  a.close();
  await sent;
  assertEquals(b.tryRead(), 1);
  assertEquals(await codeOf(b.readAsync()), "peer.closed");

  const [c, d] = ports({ capacity: 256 });
  const seen: unknown[] = [];
  d.onmessage = ({ data }) => seen.push(data.length);
  d.onclose = ({ error }) => seen.push(error);
  {
    await using port = c;
    port.postMessage("x".repeat(300));
    port.postMessage("y");
  }
  await until(() => seen.length === 3);
  assertEquals(seen, [300, 1, undefined]);

  const [e, f] = ports({ capacity: 256 });
  f.close();
  await e[Symbol.asyncDispose]();
});

Deno.test("postings that make no sense are refused", () => {
  for (
    const [options, kind] of [
      [{ queueLimit: 0 }, RangeError],
      [{ queueLimit: 1.5 }, RangeError],
      [{ overflow: "drop" }, TypeError],
    ] as const
  ) assertThrows(() => Port.create(options as PortCreateOptions), kind);
  const error = new MillraceError("port.overflow", "x");
  assertEquals([error.name, error instanceof OverflowError], ["OverflowError", true]);
});

Deno.test("a call that blocks first writes what was posted, and goes on with it", async () => {
  const drained: unknown[] = [];
  let sleeps = 0;
  const mechanism = watched(() => {
    // Room comes while the call sleeps.
    if (++sleeps === 1) drained.push(...drain(b));
  });
  const a: Port = Port.create({ capacity: 256, spin: 0, mechanism });
  const b: Port = Port.attach(a.memory);
  const sent = [a.postMessage("one"), a.postMessage("two")];
  assertEquals(a.read({ timeout: 3 }), undefined);
  assertEquals(drained, ["one", "two"]);
  await Promise.all(sent);
  fill(a);
  sleeps = 0;
  const last = a.postMessage("x".repeat(100));
  assertEquals(a.read({ timeout: 20 }), undefined);
  assertEquals(drain(b), ["x".repeat(100)]);
  await last;
  a.close();
  const alone = Port.create<string>();
  alone.postMessage("early");
  assertEquals(waitForPeer(alone, { timeout: 1 }), false);
  assertEquals(Port.attach<string>(alone.memory).tryRead(), "early");
});

Deno.test("a text of JSON that is no UTF-16 costs no other message", async () => {
  const [a, b] = ports();
  const { rawJSON } = JSON as { rawJSON?(text: string): unknown };
  const raw = rawJSON?.('"\ud800"') ?? "\ufffd";
  await Promise.all([1, raw, 2].map((value) => a.postMessage(value)));
  assertEquals(drain(b), [1, "\ufffd", 2]);
  a.close();
});

Deno.test("what is sent is let go of, though the queue is never empty", async () => {
  const printed = await printedApart("port/release_fixture.ts", { flags: ["--expose-gc"] });
  assert(Number(printed) < 20, `${printed} of 400`);
});
