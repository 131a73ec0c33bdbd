import { assert, assertEquals, assertThrows } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import { decodeFromCompressedBase64 } from "hdr-histogram-js";
import { Hub } from "../more/hub.ts";
import { layout } from "../memory/layout.ts";
import { meter, snapshotSchema } from "./meter.ts";
import { Metered, stopClock } from "./fixture.ts";
import { Reader, statsOf, Writer } from "../pipe/ends.ts";
import { claim, finish, peek, publish, release, tryClaim, tryPeek } from "../more/lend.ts";
import { writeMany } from "../more/many.ts";
import { tryReadInto, tryReadMessage } from "../more/raw.ts";
import { Port } from "../port/port.ts";
import { openStream } from "../stream/stream.ts";
import { pipeSegment } from "../testing/fixture.ts";
import { look } from "../wait/endpoint.ts";

/** The `time` and the kind of each frame in the ring. */
function framesOf(
  { here: { link: { outgoing, endpoint } } }: { here: Pick<Port, "link"> },
): [number, number][] {
  const { words, base, cursor, capacity } = outgoing!;
  const found: [number, number][] = [];
  let at = endpoint.segment.channels[0]!.start | 0;
  while (at !== cursor) {
    const index = (base + (at & (capacity - 1))) >> 2;
    found.push([words[index + 3]! >>> 0, words[index + 1]! & 0xff]);
    at += (words[index]! + 31) & ~15;
  }
  return found;
}

Deno.test("a message is counted when it is published, and when it is given back", () => {
  using pipe = new Metered<string>();
  pipe.here.write("hello");
  pipe.here.write("you");
  assertEquals([pipe.outgoing.messages, pipe.outgoing.bytes], [2, 12]);
  assertEquals(pipe.outgoing.queue, { messages: 2, bytes: 64 });
  assertEquals(pipe.incoming.queue, { messages: 2, bytes: 64 });
  assertEquals(pipe.incoming.messages, 0);
  assertEquals(pipe.there.read(), "hello");
  const { messages, bytes, values, queue } = pipe.incoming;
  assertEquals([messages, bytes, values, queue], [1, 7, 1, { messages: 1, bytes: 32 }]);
  pipe.there.read();
  assertEquals(pipe.outgoing.queue, { messages: 0, bytes: 0 });
});

Deno.test("a batch is one message, and each of its values waits for itself [meter.batch]", () => {
  using clock = stopClock();
  using pipe = new Metered<number>();
  writeMany(pipe.here, [1, 2, 3]);
  assertEquals([pipe.outgoing.messages, pipe.outgoing.queue.messages], [1, 1]);
  for (const wait of [100, 200, 300]) {
    clock.pass(wait);
    pipe.there.read();
  }
  const { messages, values, waiting } = pipe.incoming;
  assertEquals([messages, values, waiting.count], [1, 3, 3]);
  assertEquals([waiting.least, waiting.mean, waiting.most], [100, 1000 / 3, 600]);
});

Deno.test("the values of the next batch have the time of that one", () => {
  using clock = stopClock();
  using pipe = new Metered<number>();
  writeMany(pipe.here, [1, 2]);
  clock.pass(1000);
  writeMany(pipe.here, [3, 4]);
  for (let n = 0; n < 4; n++) {
    clock.pass(50);
    pipe.there.tryRead();
  }
  const { mean, least, most } = pipe.incoming.waiting;
  assertEquals([least, mean, most], [150, (1050 + 1100 + 150 + 200) / 4, 1100]);
});

Deno.test("a message after one that was dropped in parts has no time of that one", async () => {
  using clock = stopClock();
  const segment = pipeSegment({ capacity: 1024 });
  using writer = Writer.attach<Uint8Array>(segment);
  using reader = Reader.attach<Uint8Array>(segment, { maxMessageSize: 600 });
  using _writing = meter(writer);
  using reading = meter(reader);
  await writer.writeAsync(new Uint8Array(700));
  clock.pass(5000);
  assertThrows(() => reader.read());
  await writer.writeAsync(new Uint8Array(9));
  assertEquals(reader.read()?.length, 9);
  const { values, messages, waiting } = reading.snapshot().incoming!;
  assertEquals([values, messages, waiting.most], [1, 1, 0]);
});

Deno.test("what is left of a batch is in the queue", () => {
  using pipe = new Metered<number>();
  writeMany(pipe.here, [1, 2, 3]);
  pipe.there.read();
  assertEquals(pipe.incoming.queue, { messages: 2, bytes: 0 });
});

Deno.test("a message of several frames is one, with the time of the first", async () => {
  using clock = stopClock();
  using pipe = new Metered<Uint8Array>(256);
  const written = pipe.here.writeAsync(new Uint8Array(600));
  clock.pass(50);
  assertEquals((await pipe.there.readAsync())?.length, 600);
  await written;
  const { messages, bytes, waiting } = pipe.incoming;
  assertEquals([messages, bytes, waiting.count, waiting.most], [1, 600, 1, 50]);
  assertEquals([pipe.outgoing.messages, pipe.outgoing.bytes], [1, 600]);
});

Deno.test("a writer that meters stores when each message was finished [meter.time]", () => {
  using clock = stopClock();
  using pipe = new Metered<string>(512);
  clock.beforeWrap(2);
  pipe.here.write("a");
  clock.pass(2); // the low 32 bits of the clock are 0 now
  claim(pipe.here, 4);
  finish(pipe.here);
  clock.pass(5);
  publish(pipe.here);
  pipe.here.end();
  assertEquals(framesOf(pipe), [
    [2 ** 32 - 2, layout.FRAME_KIND_DATA],
    [1, layout.FRAME_KIND_DATA],
    [0, layout.FRAME_KIND_END],
  ]);
});

Deno.test("of several frames the first has a time, and a pad has none", () => {
  using pipe = new Metered<Uint8Array>(512);
  const sent = pipe.here.writeAsync(new Uint8Array(350));
  const times = framesOf(pipe).map(([time]) => time > 0);
  assert(times.length > 1, "one frame took it");
  assertEquals(times, times.map((_, index) => index === 0));
  pipe.there.read();
  pipe.here.write(new Uint8Array(200));
  const { words, base } = pipe.here.link.outgoing!;
  let at = base >> 2;
  for (let kind = 0; kind !== layout.FRAME_KIND_PAD; at += 4) kind = words[at + 1]! & 0xff;
  assertEquals(words[at - 4 + 3], 0);
  return sent;
});

Deno.test("waiting is the difference of two clocks, across their wrap [meter.waiting]", () => {
  using clock = stopClock();
  using pipe = new Metered<string>();
  clock.beforeWrap(200);
  pipe.here.write("hello");
  clock.pass(300);
  pipe.there.read();
  assertEquals(pipe.incoming.waiting.most, 300);
});

Deno.test("a message from a clock that is ahead has not waited [frame.time]", () => {
  using clock = stopClock();
  using pipe = new Metered<string>();
  clock.beforeWrap(200);
  pipe.here.write("hello");
  clock.pass(-100);
  pipe.there.read();
  const { count, most } = pipe.incoming.waiting;
  assertEquals([count, most], [1, 0]);
});

Deno.test("a message without a time is counted, and has not waited [meter.untimed]", () => {
  using pipe = new Metered<string>();
  pipe.writing.close();
  pipe.here.write("hello");
  pipe.there.read();
  const { values, untimed, waiting } = pipe.incoming;
  assertEquals([values, untimed, waiting.count], [1, 1, 0]);
});

Deno.test("what a port took into its inbox has waited since it was written", async () => {
  using clock = stopClock();
  using pipe = new Metered<string>(256);
  pipe.here.write("hello");
  while (pipe.there.tryWrite("full"));
  clock.pass(100);
  void pipe.there.writeAsync("more").catch(() => {}); // waits for room, and takes in what comes
  await Promise.resolve(); // at the end of the job
  assertEquals(pipe.incoming.queue, { messages: 1, bytes: 7 });
  clock.pass(100);
  assertEquals(pipe.there.tryRead(), "hello");
  const { values, waiting, queue } = pipe.incoming;
  assertEquals([values, waiting.most, queue], [1, 200, { messages: 0, bytes: 0 }]);
});

Deno.test("service lasts from a read to the next call that reads", () => {
  using clock = stopClock();
  using pipe = new Metered<string>();
  pipe.here.write("a");
  pipe.here.write("b");
  for (const work of [1000, 3000]) {
    pipe.there.tryRead();
    clock.pass(work);
  }
  assertEquals(pipe.incoming.service.count, 1);
  assertEquals(pipe.there.tryRead(), undefined);
  clock.pass(5000); // while no value is being handled
  pipe.there.tryRead();
  const { count, least, most } = pipe.incoming.service;
  assertEquals([count, least, most], [2, 1000, 3000]);
});

Deno.test("service of a listener ends when it returns", async () => {
  using clock = stopClock();
  using pipe = new Metered<number>();
  writeMany(pipe.here, [100.5, 200]);
  pipe.here.end();
  pipe.there.onmessage = ({ data }) => clock.pass(data);
  await pipe.there.closed;
  clock.pass(5000);
  const { values, service, waiting } = pipe.incoming;
  assertEquals([values, service.count, service.least, service.most], [2, 2, 100.5, 200]);
  // The second value has waited while the first was served.
  assertEquals([waiting.least, waiting.most], [0, 100]);
});

Deno.test("messages that are served at once share a look at the clock, and none is lost", () => {
  using clock = stopClock();
  using pipe = new Metered<number>(64 * 1024);
  for (let n = 0; n < 1000; n++) pipe.here.write(n);
  const looks = clock.looks;
  for (let n = 0; n < 1000; n++) {
    pipe.there.tryRead();
    clock.pass(1);
  }
  assert(clock.looks - looks < 100, `${clock.looks - looks} looks`);
  pipe.there.tryRead();
  const { values, waiting, service } = pipe.incoming;
  assertEquals([values, waiting.count, service.count], [1000, 1000, 1000]);
  assertEquals([service.least, service.mean, service.most], [1, 1, 1]);
  assertEquals([waiting.least, waiting.mean, waiting.most], [0, 499.5, 999]);
});

Deno.test("one slow service among many that share a look at the clock stays one", () => {
  using clock = stopClock();
  using pipe = new Metered<number>(64 * 1024);
  for (let n = 0; n < 100; n++) pipe.here.write(n);
  for (let n = 0; n < 100; n++) {
    pipe.there.tryRead();
    clock.pass(n === 50 ? 5000 : 1);
  }
  pipe.there.tryRead();
  const { count, least, p90, most } = pipe.incoming.service;
  assertEquals([count, least, Math.round(p90), most], [100, 1, 1, 5000]);
});

Deno.test("what passes between two messages is not service of a listener", async () => {
  using clock = stopClock();
  using pipe = new Metered<number>();
  for (const work of [100, 200]) {
    const served = new Promise((resolve) => {
      pipe.there.onmessage = ({ data }) => {
        clock.pass(data);
        setTimeout(resolve);
      };
    });
    pipe.here.write(work);
    await served;
    clock.pass(5000);
  }
  const { count, least, most } = pipe.incoming.service;
  assertEquals([count, least, most], [2, 100, 200]);
});

Deno.test("decoding belongs to the service, and not to the waiting", () => {
  using clock = stopClock();
  const segment = pipeSegment();
  const codec = {
    code: 128,
    encode: (text: string) => new TextEncoder().encode(text),
    decode: (bytes: Uint8Array) => {
      clock.pass(70);
      return new TextDecoder().decode(bytes);
    },
  };
  using writer = Writer.attach<string>(segment, { codec });
  using reader = Reader.attach<string>(segment, { codec });
  using _writing = meter(writer);
  using reading = meter(reader);
  writer.write("hello");
  clock.pass(30);
  assertEquals(reader.read(), "hello");
  reader.tryRead();
  const { waiting, service } = reading.snapshot().incoming!;
  assertEquals([waiting.most, service.most], [30, 70]);
});

Deno.test("tryWrite that finds no room is no stall, and a write that waits is one", async () => {
  using clock = stopClock();
  using pipe = new Metered<string>(256);
  while (pipe.here.tryWrite("x".repeat(50)));
  assertEquals(pipe.outgoing.stalls, 0);
  const written = pipe.here.writeAsync("y".repeat(50));
  // Each wake of a writer that waits for room makes it look again.
  for (let looks = 0; looks < 5; looks++) {
    clock.pass(100);
    look(pipe.here.link.endpoint);
    await new Promise((resolve) => setTimeout(resolve));
  }
  assertEquals([pipe.outgoing.stalls, pipe.outgoing.stall.count], [1, 0]);
  while (pipe.there.tryRead() !== undefined);
  await written;
  const { stalls, stall } = pipe.outgoing;
  assertEquals([stalls, stall.count, stall.most], [1, 1, 500]);
});

Deno.test("a claim that finds no room and is not waited for is no stall", () => {
  using pipe = new Metered<string>(256);
  while (tryClaim(pipe.here, 50) !== undefined) publish(pipe.here);
  assertEquals([pipe.outgoing.stalls, pipe.outgoing.stall.count], [0, 0]);
  const { parks } = statsOf(pipe.here);
  assertThrows(() => claim(pipe.here, 50, { timeout: 50 }));
  assert(statsOf(pipe.here).parks > parks, "it slept");
  assertEquals([pipe.outgoing.stalls, pipe.outgoing.stall.count], [1, 1]);
  while (tryReadMessage(pipe.there) !== undefined);
  claim(pipe.here, 50);
  assertEquals([pipe.outgoing.stalls, pipe.outgoing.stall.count], [1, 1]);
});

Deno.test("a write that gives up has stalled, and the next one stalls for itself", () => {
  using pipe = new Metered<string>(256);
  while (pipe.here.tryWrite("x".repeat(50)));
  for (let tries = 0; tries < 2; tries++) {
    // Long enough for the writer to wait at all, even if other programs use the processors.
    assertThrows(() => pipe.here.write("y".repeat(50), { timeout: 50 }));
  }
  assertEquals(pipe.outgoing.stalls, 2);
});

Deno.test("posts that wait for room are one stall for each message", async () => {
  using pipe = new Metered<Uint8Array>(256);
  for (let n = 0; n < 4; n++) pipe.here.postMessage(new Uint8Array(100));
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals([pipe.outgoing.messages, pipe.outgoing.stalls], [1, 1]);
  const read: unknown[] = [];
  while (read.length < 4) read.push(await pipe.there.readAsync());
  assertEquals([pipe.outgoing.messages, pipe.incoming.values], [4, 4]);
  assert(pipe.outgoing.stalls <= 3, `${pipe.outgoing.stalls}`);
});

Deno.test("wakes, elided wakes and sleeps count from the last reset on", async () => {
  using pipe = new Metered<string>();
  pipe.here.write("nobody sleeps");
  await pipe.there.readAsync();
  const { wakes, elidedWakes } = pipe.writing.snapshot().endpoint;
  assertEquals([wakes, elidedWakes], [0, 1]);
  const read = pipe.there.readAsync();
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(pipe.reading.snapshot().endpoint.sleeps, 1);
  pipe.here.write("wake up");
  assertEquals(pipe.writing.snapshot().endpoint.wakes, 1);
  assertEquals(await read, "wake up");
  pipe.writing.reset();
  pipe.reading.reset();
  const { endpoint } = pipe.writing.snapshot();
  assertEquals(endpoint, { index: 0, wakes: 0, elidedWakes: 0, sleeps: 0 });
  const { values, waiting } = pipe.incoming;
  assertEquals([pipe.outgoing.messages, values, waiting.count], [0, 0, 0]);
  assertEquals(decodeFromCompressedBase64(pipe.reading.histogram("waiting")!).totalCount, 0);
});

Deno.test("a snapshot is plain data by its schema, and nothing changes it later", () => {
  const validate = new Ajv2020({ strict: true }).compile(snapshotSchema);
  using pipe = new Metered<string>();
  for (const text of ["a", "b", "c"]) pipe.here.write(text);
  pipe.there.read();
  const before = pipe.reading.snapshot();
  const text = JSON.stringify(before);
  assert(validate(JSON.parse(text)), JSON.stringify(validate.errors));
  assertEquals(JSON.parse(text), before);
  pipe.there.read();
  pipe.reading.reset();
  assertEquals(JSON.stringify(before), text);
  for (const end of [new Metered().writing, meter(Writer.attach(pipeSegment()))]) {
    assert(validate(end.snapshot()), JSON.stringify(validate.errors));
  }
  const { incoming, ...rest } = before;
  assert(!validate(rest));
  assert(!validate({ ...before, incoming: { ...incoming, values: -1 } }));
  assert(!validate({ ...before, more: 1 }));
});

Deno.test("the figures of a snapshot fit one another", () => {
  using clock = stopClock();
  using pipe = new Metered<number>();
  for (let n = 0; n < 60; n++) {
    pipe.here.tryWrite(n);
    clock.pass(n % 7);
    if (n % 3 === 0) pipe.there.tryRead();
    const { values, untimed, waiting, messages, queue } = pipe.incoming;
    assertEquals([values, messages], [waiting.count + untimed, values]);
    assertEquals(queue.messages, pipe.outgoing.messages - messages);
    // The reader tells the writer later what it has released.
    assert(pipe.outgoing.queue.messages >= queue.messages);
    assertEquals(waiting.buckets.at(-1), [10_000_000, waiting.count]);
  }
  const { p50, p90, p99, p999, least, most, mean } = pipe.incoming.waiting;
  const inOrder = [least, p50, p90, p99, p999, most];
  assertEquals(inOrder, inOrder.toSorted((a, b) => a - b));
  assert(mean >= least && mean <= most);
});

Deno.test("rates are counts by the time that has passed", () => {
  using clock = stopClock();
  using pipe = new Metered<string>();
  for (let n = 0; n < 10; n++) pipe.here.write("ab");
  clock.pass(500_000);
  const { messageRate, byteRate } = pipe.outgoing;
  assertEquals([messageRate, byteRate], [20, 80]);
  assertEquals(pipe.writing.snapshot().elapsed, 500_000);
});

Deno.test("times are counted to two digits, from nothing to minutes", () => {
  using clock = stopClock();
  using pipe = new Metered<string>();
  const times = [0, 1, 2, 2047, 2048, 2049, 123_456, 59_000_000, 2_000_000_000];
  for (const time of times) {
    pipe.here.write("x");
    clock.pass(time);
    pipe.there.tryRead();
    pipe.there.tryRead(); // finds nothing, so that the next message is timed alone
    const { most, p999 } = pipe.incoming.waiting;
    assertEquals(most, time);
    assert(Math.abs(p999 - time) <= time / 100, `${p999} of ${time}`);
  }
  const { buckets, count } = pipe.incoming.waiting;
  assertEquals([count, buckets[0], buckets.at(-1)], [9, [1, 2], [10_000_000, 7]]);
  const histogram = decodeFromCompressedBase64(pipe.reading.histogram("waiting")!);
  assertEquals(histogram.totalCount, 9);
  assert(Math.abs(histogram.maxValue - 2e12) <= 2e10, `${histogram.maxValue} ns`);
});

Deno.test("a port that has no meter is as ever, beside one that has, and after its close", () => {
  const kinds = ({ link }: Port) =>
    [link, link.outgoing, link.incoming, link.incoming!.frame, link.delivery]
      .map((part) => Object.getPrototypeOf(part));
  using before = Port.create();
  const plain = kinds(before);
  using other = Port.create();
  using pipe = new Metered();
  assertEquals(kinds(other).map((each, index) => each === plain[index]), plain.map(() => true));
  assert(!("gauge" in other.link.incoming!));
  assertThrows(() => meter(pipe.here), TypeError, "has a meter already");
  pipe.writing.close();
  pipe.writing.close();
  assertEquals(kinds(pipe.here).map((each, index) => each === plain[index]), plain.map(() => true));
  pipe.here.write("not metered");
  assertEquals(framesOf(pipe)[0]![0], 0);
  assertEquals(pipe.outgoing.messages, 0);
  using again = meter(pipe.here);
  pipe.here.write("metered");
  assertEquals(again.snapshot().outgoing?.messages, 1);
});

Deno.test("a reader and a writer can be metered alone", () => {
  const segment = pipeSegment();
  using writer = Writer.attach<string>(segment);
  using reader = Reader.attach<string>(segment);
  using writing = meter(writer);
  using reading = meter(reader);
  writer.write("hello");
  reader.read();
  assertEquals([writing.snapshot().incoming, reading.snapshot().outgoing], [null, null]);
  assertEquals(reading.snapshot().incoming?.waiting.count, 1);
  assertEquals([writing.histogram("waiting"), reading.histogram("stall")], [undefined, undefined]);
});

Deno.test("what is lent is counted once", () => {
  using clock = stopClock();
  using pipe = new Metered<Uint8Array>(256);
  pipe.here.write(new Uint8Array(32));
  clock.pass(10);
  assertEquals(peek(pipe.there)?.size, 32);
  assertEquals([pipe.incoming.messages, pipe.incoming.values], [1, 1]);
  release(pipe.there);
  const { messages, bytes, waiting } = pipe.incoming;
  assertEquals([messages, bytes, waiting.most], [1, 32, 10]);
});

Deno.test("a message that does not fit the caller's memory, and is read again, is one", () => {
  using pipe = new Metered<Uint8Array>(256);
  const small = new Uint8Array(8);
  pipe.here.write(new Uint8Array(32));
  assertThrows(() => tryReadInto(pipe.there, small), RangeError);
  assertThrows(() => tryReadInto(pipe.there, small), RangeError);
  assertEquals(pipe.there.read()?.length, 32);
  pipe.here.write(new Uint8Array(8));
  assertEquals(tryReadInto(pipe.there, small), 8);
  const { messages, bytes, values, untimed } = pipe.incoming;
  assertEquals([messages, bytes, values, untimed], [2, 40, 2, 0]);
});

Deno.test("a message that is lent in parts is one", () => {
  using pipe = new Metered<Uint8Array>(256);
  void pipe.here.writeAsync(new Uint8Array(150));
  for (let parts = 0; parts < 10; parts++) {
    if (tryPeek(pipe.there) !== undefined) release(pipe.there);
  }
  const { messages, bytes, values, waiting } = pipe.incoming;
  assertEquals([messages, bytes, values, waiting.count], [1, 150, 1, 1]);
});

Deno.test("a message that is dropped is none", () => {
  const segment = pipeSegment({ capacity: 1024 });
  using writer = Writer.attach<Uint8Array>(segment);
  using reader = Reader.attach<Uint8Array>(segment, { maxMessageSize: 10 });
  using reading = meter(reader);
  writer.write(new Uint8Array(11));
  writer.write(new Uint8Array(9));
  assertThrows(() => reader.read());
  assertEquals(reader.read()?.length, 9);
  const { messages, bytes, values } = reading.snapshot().incoming!;
  assertEquals([messages, bytes, values], [1, 9, 1]);
});

Deno.test("the queue ends where a peer has written what is no frame", () => {
  using pipe = new Metered<string>();
  for (const text of ["a", "b", "c"]) pipe.here.write(text);
  const { words, base, own, other } = pipe.here.link.outgoing!;
  const second = ((base + (pipe.there.link.incoming!.cursor & 4095)) >> 2) + 8;
  for (const size of [-1, 0x7fffffff, 0x7ffffff0, -16, 4096]) {
    words[second] = size;
    assertEquals([pipe.incoming.queue.messages, pipe.outgoing.queue.messages], [1, 1]);
  }
  Atomics.store(words, own, -16);
  Atomics.store(words, other, 0x7ffffff0);
  assertEquals([pipe.incoming.queue.bytes, pipe.outgoing.queue.bytes], [0, 96]);
});

Deno.test("each port of a hub has a meter of its own", () => {
  using hub = Hub.create<string>(2);
  using client = Port.attach<string>(hub.memory, { endpoint: 2 });
  using _writing = meter(client);
  const meters = hub.ports.map((port) => meter(port));
  client.write("hello");
  hub.ports[1]!.read();
  assertEquals(meters.map((each) => each.snapshot().incoming!.waiting.count), [0, 1]);
});

Deno.test("a port over a stream has a meter, and its messages carry their time", async () => {
  const [there, back] = [1, 2].map(() => new TransformStream<Uint8Array, Uint8Array>());
  const [a, b] = await Promise.all([
    openStream<string>({ readable: back!.readable, writable: there!.writable }),
    openStream<string>({ readable: there!.readable, writable: back!.writable }),
  ]);
  using writing = meter(a);
  using reading = meter(b);
  a.postMessage("hello");
  assertEquals(await b.readAsync(), "hello");
  assertEquals(writing.snapshot().outgoing?.messages, 1);
  assertEquals(reading.snapshot().incoming?.waiting.count, 1);
  a.close();
  b.close();
});
