/** Calls end at their deadlines, and hold nothing back, whatever the peer does meanwhile. */

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { assertCode, codeOf, pattern, pipe, Scribe, scribed } from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { Port } from "../port/port.ts";
import { Segment } from "../memory/segment.ts";
import { failEndpoint } from "../wait/state.ts";
import { claim, finish, peek, publish, release, tryClaim } from "../more/lend.ts";
import { tryReadMessage, writeMessage } from "../more/raw.ts";
import { writeMany } from "../more/many.ts";

/** More loads of one cursor than any call makes that keeps to its deadline. */
const ENDLESS = 200_000;

/**
 * Lets a peer publish a frame of an unknown extension kind before every load of its `tail`, as a
 * peer on another processor could. The peer goes by the head that our side has stored.
 */
function flooded<R>(segment: Segment, index: number, run: () => R): R {
  const scribe = new Scribe(segment, index);
  const { load } = Atomics;
  let count = 0;
  let sync = true;
  scribe.tail = scribe.control[layout.RING_TAIL_WORD]! >>> 0;
  Atomics.load = ((words: Int32Array, at: number) => {
    if (at === layout.RING_TAIL_WORD && words.byteOffset === scribe.control.byteOffset) {
      if (++count > ENDLESS) throw new Error("the call does not end");
      const head = load(scribe.control, layout.RING_HEAD_WORD);
      if (((scribe.tail - head) | 0) < 128) scribe.frame({ kind: 128 }).publish();
    }
    return load(words, at);
  }) as typeof load;
  const restore = () => Atomics.load = load;
  try {
    const result = run();
    if (result instanceof Promise) {
      sync = false;
      return result.finally(restore) as R;
    }
    return result;
  } finally {
    if (sync) restore();
  }
}

Deno.test("a peer that is gone and floods does not hold a read beyond its deadline", async () => {
  const { segment, reader } = scribed();
  failEndpoint(segment, 0);
  // [pipe.look_again] The call looks once more and then reports the state, whatever still arrives.
  flooded(segment, 0, () => {
    assertCode(() => reader.tryRead(), "peer.failed");
    assertCode(() => reader.read({ timeout: 0 }), "peer.failed");
    assertCode(() => reader.read({ timeout: 5 }), "peer.failed");
    assertCode(() => reader.read(), "peer.failed");
  });
  await flooded(segment, 0, async () => {
    assertEquals(await codeOf(reader.readAsync({ timeout: 5 })), "peer.failed");
  });
  assertCode(() => reader.tryRead(), "peer.failed");
});

Deno.test("a flood of frames that are no message does not hold a read", async () => {
  const { segment, reader } = scribed();
  flooded(segment, 0, () => assertEquals(reader.read({ timeout: 20 }), undefined));
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  const control = new AbortController();
  await flooded(segment, 0, async () => {
    // If a busy machine holds this thread up for all of one call, the next call shows it.
    for (let calls = 0; ticks === 0 && calls < 10; calls++) {
      assertEquals(await reader.readAsync({ timeout: 30 }), undefined);
    }
    assert(ticks > 0, "the event loop turned");
    setTimeout(() => control.abort(), 5);
    await assertRejects(() => reader.readAsync({ signal: control.signal }), DOMException);
  });
  clearInterval(timer);
});

Deno.test("a flood into a port does not hold a write beyond its deadline", async () => {
  const port = Port.create({ capacity: 256, codec: "bytes", inboxCount: Number.MAX_SAFE_INTEGER });
  Port.attach(port.memory);
  flooded(port.segment, 1, () => {
    assertCode(() => port.write(pattern(400), { timeout: 5 }), "wait.timeout");
  });
  await flooded(port.segment, 1, async () => {
    assertEquals(await codeOf(port.writeAsync(pattern(400), { timeout: 5 })), "wait.timeout");
  });
});

Deno.test("a call that does not wait loads the peer's cursor once", () => {
  const { segment, writer, reader } = pipe({ codec: "bytes", start: 0 });
  const control = segment.words(512, 512).byteOffset;
  for (let i = 0; i < 15; i++) writer.write(pattern(0));
  const { load } = Atomics;
  let loads = 0;
  // At each load, the reader has given back the room for one more chunk.
  Atomics.load = ((words: Int32Array, at: number) => {
    if (words.byteOffset + 4 * at === control + layout.RING_HEAD_OFFSET) {
      Atomics.load = load;
      for (let i = 0; i < 4; i++) reader.tryRead();
      loads++;
      Atomics.load = counting;
    }
    return load(words, at);
  }) as typeof load;
  const counting = Atomics.load;
  try {
    assertEquals([writer.tryWrite(pattern(130)), loads], [false, 1]);
    assertEquals([tryClaim(writer, 112), loads], [undefined, 2]);
  } finally {
    Atomics.load = load;
  }
});

Deno.test("a port publishes what is finished before it waits to read", async () => {
  const a = Port.create({ codec: "bytes" });
  const b = Port.attach<Uint8Array>(a.memory, { codec: "bytes" });
  const place = (size: number) => {
    claim(a, size);
    finish(a);
  };
  place(1);
  assertEquals(b.tryRead(), undefined);
  assertEquals(a.read({ timeout: 1 }), undefined);
  assertEquals(b.tryRead()?.length, 1);
  place(2);
  assertEquals(await a.readAsync({ timeout: 1 }), undefined);
  assertEquals(b.tryRead()?.length, 2);
});

Deno.test("a port gives back what it released before it waits for room, also when lending", () => {
  const a = Port.create({ capacity: 1024, codec: "bytes" });
  Port.attach(a.memory, { codec: "bytes" });
  const scribe = new Scribe(a.segment, 1);
  scribe.frame({ flags: 1, total: 3, payload: [1] }).frame({ flags: 0, payload: [2] });
  scribe.publish();
  assertEquals(peek(a)?.last, false);
  release(a);
  assertCode(() => a.write(pattern(3000), { timeout: 1 }), "wait.timeout");
  assertEquals(scribe.control[layout.RING_HEAD_WORD], 48);
});

Deno.test("a value that cannot be written asynchronously keeps no turn", async () => {
  const { writer, reader } = pipe();
  await assertRejects(() => writer.writeAsync(undefined), TypeError);
  await assertRejects(() => writer.writeAsync(1n), TypeError);
  assertEquals(writer.tryWrite(1), true);
  await writer.writeAsync(2);
  // While another message is under way, which the failed write leaves alone.
  const under = writer.writeAsync("x".repeat(1000));
  await assertRejects(() => writer.writeAsync(1n), TypeError);
  assertEquals([reader.read(), reader.read()], [1, 2]);
  assertEquals(await reader.readAsync(), "x".repeat(1000));
  await under;
});

Deno.test("writeMany writes and publishes what stands before a value it cannot write", () => {
  const { writer, reader } = pipe();
  for (const bad of [undefined, 1n]) {
    assertThrows(() => writeMany(writer, [1, 2, bad, 3]), TypeError);
    assertEquals([reader.tryRead(), reader.tryRead(), reader.tryRead()], [1, 2, undefined]);
  }
});

Deno.test("options that are refused leave the endpoint vacant", () => {
  const a = Port.create();
  const { memory, segment } = a;
  for (const wrong of [{ maxMessageSize: -1 }, { codec: "xml" as "json" }, { spin: -1 }]) {
    assertThrows(() => Port.attach(memory, wrong));
    assertEquals(segment.words(128, 256)[33], 0);
  }
  Port.attach(memory).close();
});

Deno.test("a batch element that is nested too deeply costs that message alone", () => {
  const { writer, reader } = pipe({ capacity: 1 << 20 });
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  const payload = new TextEncoder().encode(`[1,${deep},2]`);
  writeMessage(writer, { payload, codec: layout.CODEC_JSON_BATCH });
  assertEquals(reader.read(), 1);
  try {
    // An engine whose `JSON.stringify` does not recurse may carry it.
    assertEquals(tryReadMessage(reader)?.payload.length, deep.length);
  } catch (error) {
    assertEquals((error as { code: string }).code, "message.json");
  }
  assertEquals(tryReadMessage(reader)?.payload, Uint8Array.of(50));
});

Deno.test("a message that no memory can hold costs that message alone", () => {
  const { reader, scribe } = scribed({ maxMessageSize: 2 ** 32 });
  const whole = globalThis.Uint8Array;
  scribe.frame({ flags: 1, total: 2 ** 32 - 1 }).frame({ flags: 6 }).frame({ payload: [7] });
  scribe.publish();
  try {
    globalThis.Uint8Array = new Proxy(whole, {
      construct(target, args, self) {
        if (args[0] === 2 ** 32 - 1) throw new RangeError("Array buffer allocation failed");
        return Reflect.construct(target, args, self);
      },
    });
    assertCode(() => reader.tryRead(), "message.size");
  } finally {
    globalThis.Uint8Array = whole;
  }
  assertEquals(reader.tryRead(), Uint8Array.of(7));
});

Deno.test("closing by either half of a port drops its inbox", async () => {
  const a = Port.create({ capacity: 256, codec: "bytes" });
  const b = Port.attach(a.memory, { codec: "bytes" });
  b.write(pattern(3));
  assertEquals(await codeOf(a.writeAsync(pattern(900), { timeout: 1 })), "wait.timeout");
  a.close();
  assertCode(() => a.tryRead(), "pipe.closed");
});

Deno.test("after a fault of its reader, a writer stores nothing more in the ring", () => {
  const { segment, writer } = pipe({ codec: "bytes", start: 0 });
  const control = segment.words(512, 512);
  writer.write(pattern(100));
  claim(writer, 48);
  finish(writer);
  control[layout.RING_HEAD_WORD] = 8;
  assertCode(() => writer.tryWrite(pattern(112)), "ring.cursor");
  publish(writer);
  assertEquals(control[layout.RING_TAIL_WORD], 128);
  segment.words(256, 128)[layout.ENDPOINT_STATE_WORD] = layout.ENDPOINT_STATE_ATTACHED;
  control[layout.RING_HEAD_WORD] = 0;
  assertCode(() => writer.tryWrite(pattern(1)), "ring.cursor");
});

Deno.test("payloads of 2^31 bytes and more are refused by tryWrite, not retried for ever", () => {
  const { writer } = pipe({ codec: "bytes" });
  const payload = new Uint8Array(1);
  for (const size of [2 ** 31 - 32, 2 ** 31, 2 ** 32 - 32, 2 ** 32]) {
    Object.defineProperty(payload, "length", { value: size, configurable: true });
    assertThrows(() => writer.tryWrite(payload), RangeError, `${size}`);
  }
});
