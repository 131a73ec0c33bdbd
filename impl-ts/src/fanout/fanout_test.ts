import { assert, assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import { MillraceError, PeerFailedError, TimeoutError } from "../error.ts";
import { fanoutChannel, FanoutReader, FanoutWriter, LostError } from "./fanout.ts";
import { assertCode, codeOf, NEAR_WRAP, unsliced } from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { revive } from "../more/revive.ts";
import { Reader } from "../pipe/ends.ts";
import { Segment } from "../memory/segment.ts";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";

const SMALL = { capacity: 256, start: NEAR_WRAP } as const;
/** Four of these fill a ring of 256 bytes in mode `hold`, in which 16 bytes stay free. */
const TEXT = "x".repeat(30);
const NOW = { timeout: 0 };
/** Shorter than the sleep of `unsliced`, which only a ring ends. */
const SOON_MS = 10_000;

/** Fails if a call has slept to the end of its sleep. */
function soon<R>(call: () => R): R {
  const start = performance.now();
  const result = call();
  assert(performance.now() - start < SOON_MS, "it was not woken");
  return result;
}

Deno.test("FanoutReader.read: every reader gets every message, and the end", () => {
  using writer = FanoutWriter.create<unknown>({ readers: 3, ...SMALL });
  const readers = [0, 1, 2].map((index) => FanoutReader.from(writer.handoff(index)));
  for (let round = 0; round < 40; round++) {
    writer.write({ round });
    writer.write(Uint8Array.of(round));
    for (const reader of readers) {
      assertEquals(reader.read(NOW), { round });
      assertEquals(reader.read(NOW), Uint8Array.of(round));
      assertEquals(reader.read(NOW), undefined);
    }
  }
  writer.end();
  writer.end();
  assertCode(() => writer.write(1), "pipe.ended");
  for (const reader of readers) {
    assertEquals([reader.read(), reader.ended], [undefined, true]);
    reader.close();
    assertCode(() => reader.read(), "pipe.closed");
  }
});

Deno.test("FanoutWriter.tryWrite: mode hold, the slowest reader holds it back", () => {
  using writer = FanoutWriter.create<string>({ readers: 2, ...SMALL });
  using fast = FanoutReader.from<string>(writer.handoff(0));
  using slow = FanoutReader.from<string>(writer.handoff(1));
  let count = 0;
  while (writer.tryWrite(TEXT)) {
    assertEquals(fast.tryRead(), TEXT);
    assert(++count < 100);
  }
  assertEquals(count, 4);
  assertThrows(() => writer.write(TEXT, { timeout: 5 }), TimeoutError);
  assertEquals(slow.tryRead(), TEXT);
  assertEquals(slow.tryRead(), TEXT);
  writer.write(TEXT, NOW);
  while (slow.tryRead() !== undefined) count--;
  assertEquals(count, 1);
});

Deno.test("FanoutReader.join: what is written before, or while it is away, is not read", () => {
  using writer = FanoutWriter.create<string>({ readers: 2, ...SMALL });
  for (let n = 0; n < 20; n++) writer.write("nobody has joined");
  using late = FanoutReader.from<string>(writer.handoff(1));
  writer.write("first");
  assertEquals(late.read(NOW), "first");
  late.leave();
  for (let n = 0; n < 20; n++) writer.write("it has left");
  assertThrows(() => late.read(NOW), TypeError, "left");
  late.join();
  late.join();
  writer.write("second");
  assertEquals(late.read(NOW), "second");
  assertEquals(late.read(NOW), undefined);
});

/** Lets a writer sleep once, waiting for a reader, which meanwhile does something. */
function whileItSleeps(does: (reader: FanoutReader<string>, segment: Segment) => void): void {
  const segment = Segment.allocate({
    endpoints: 2,
    channels: [fanoutChannel({ readers: 1, ...SMALL })],
  });
  let sleeps = 0;
  const reader = FanoutReader.attach<string>(segment);
  const mechanism = unsliced(() => {
    assert(++sleeps === 1, "it slept twice");
    does(reader, segment);
  });
  using writer = FanoutWriter.attach<string>(segment, { spin: 0, mechanism });
  while (writer.tryWrite(TEXT));
  soon(() => writer.write(TEXT, { timeout: 30_000 }));
  assertEquals(sleeps, 1);
  // The writer's request to the reader is withdrawn.
  const { controlOffset, controlSize } = segment.channels[0]!;
  const wants = (layout.FANOUT_CONTROL_SIZE + layout.FANOUT_READER_WRITER_WANTS_OFFSET) >> 2;
  assertEquals(segment.words(controlOffset, controlSize)[wants], 0);
}

Deno.test("FanoutReader.join: a reader that begins after the end is told of it", () => {
  for (const mode of ["hold", "lose"] as const) {
    using writer = FanoutWriter.create<string>({ readers: 3, mode, ...SMALL });
    using first = FanoutReader.from<string>(writer.handoff(0));
    writer.write("one");
    if (mode === "hold") first.leave();
    writer.end();
    if (mode === "hold") first.join();
    else assertEquals(first.tryRead(), "one");
    using second = FanoutReader.from<string>(writer.handoff(1));
    for (const reader of [first, second]) {
      assertEquals([soon(() => reader.read()), reader.ended], [undefined, true]);
    }
    if (mode === "hold") continue;
    using third = FanoutReader.from<string>(writer.handoff(2), { oldest: true });
    assertEquals([third.read(), third.read(), third.ended], ["one", undefined, true]);
  }
});

Deno.test("FanoutWriter.write: a reader that reads, leaves, closes or dies wakes it", () => {
  whileItSleeps((reader) => {
    while (reader.tryRead() !== undefined);
  });
  whileItSleeps((reader) => reader.leave());
  whileItSleeps((reader) => reader.close());
  whileItSleeps((_, segment) => failEndpoint(segment, 1, "peer.terminated"));
});

Deno.test("FanoutReader.read: a message, the end and the death of the writer wake it", () => {
  const wakes = (does: (writer: FanoutWriter<string>) => void) => {
    using writer = FanoutWriter.create<string>({ readers: 1, ...SMALL });
    let sleeps = 0;
    const mechanism = unsliced(() => {
      assert(++sleeps === 1, "it slept twice");
      does(writer);
    });
    using reader = FanoutReader.from<string>(writer.handoff(0), { spin: 0, mechanism });
    try {
      return soon(() => reader.read({ timeout: 30_000 })) ?? `ended: ${reader.ended}`;
    } catch (error) {
      return (error as MillraceError).code;
    }
  };
  assertEquals(wakes((writer) => writer.write("here")), "here");
  assertEquals(wakes((writer) => writer.end()), "ended: true");
  assertEquals(wakes((writer) => writer.close()), "peer.closed");
  assertEquals(wakes(({ segment }) => failEndpoint(segment, 0)), "peer.failed");
});

Deno.test("FanoutReader.read: the writer never waits, and it is told how many it lost", () => {
  using writer = FanoutWriter.create<number>({ readers: 2, mode: "lose", ...SMALL });
  using reader = FanoutReader.from<number>(writer.handoff(0));
  for (let n = 0; n < 1000; n++) writer.write(n);
  const error = assertThrows(() => reader.read(), LostError);
  assertEquals([error.code, error.count, reader.lost], ["message.lost", 996, 996]);
  for (let n = 996; n < 1000; n++) assertEquals(reader.read(NOW), n);
  assertEquals(reader.read(NOW), undefined);
  writer.write(1000);
  assertEquals(reader.read(NOW), 1000);
  using oldest = FanoutReader.from<number>(writer.handoff(1), { oldest: true });
  assertEquals([oldest.read(), oldest.lost], [997, 0]);
  assertThrows(() => oldest.leave(), TypeError, "lose");
});

/** Does something after a reader has made its copy, and before it checks that the copy is whole. */
function behindTheCopy<R>(reads: () => R, does: () => void): R {
  const { store } = Atomics;
  const head = (layout.FANOUT_CONTROL_SIZE + layout.FANOUT_READER_HEAD_OFFSET) >> 2;
  try {
    Atomics.store = ((words: Int32Array, at: number, value: number) => {
      const stored = store(words, at, value);
      if (at === head) {
        Atomics.store = store;
        does();
      }
      return stored;
    }) as typeof store;
    return reads();
  } finally {
    Atomics.store = store;
  }
}

Deno.test("FanoutReader.read: mode lose, what is overwritten while it is copied is dropped", () => {
  for (const into of [false, true]) {
    using writer = FanoutWriter.create<Uint8Array>({ readers: 1, mode: "lose", ...SMALL });
    using reader = FanoutReader.from<Uint8Array>(writer.handoff(0));
    const target = new Uint8Array(32);
    const read = () => into ? target.slice(0, reader.tryReadInto(target)) : reader.tryRead();
    writer.write(new Uint8Array(32).fill(1));
    const overrun = () => {
      for (let n = 2; n < 12; n++) writer.write(new Uint8Array(32).fill(n));
    };
    const error = assertThrows(() => behindTheCopy(read, overrun), LostError);
    assertEquals(error.count, 8);
    for (const n of [9, 10, 11]) assertEquals(read(), new Uint8Array(32).fill(n));
  }
});

Deno.test("FanoutReader.read: one that was marked while it copied delivers nothing", () => {
  using writer = FanoutWriter.create<string>({ readers: 1, ...SMALL });
  using reader = FanoutReader.from<string>(writer.handoff(0));
  writer.write("one");
  const marks = () => failEndpoint(writer.segment, 1, "peer.lost");
  const error = assertThrows(() => behindTheCopy(() => reader.tryRead(), marks), MillraceError);
  assertEquals(error.code, "pipe.failed");
});

Deno.test("FanoutReader.tryRead: a writer that spoils every look does not hold it", () => {
  using writer = FanoutWriter.create<Uint8Array>({ readers: 1, mode: "lose", ...SMALL });
  using reader = FanoutReader.from<Uint8Array>(writer.handoff(0));
  const { load } = Atomics;
  const spoils = (index: number, spoil: () => void) => {
    let count = 0;
    let isInside = false;
    Atomics.load = ((words: Int32Array, at: number) => {
      if (at === index && !isInside && words.length === 96) {
        isInside = true;
        assert(++count < 50, "it goes on and on");
        spoil();
        isInside = false;
      }
      return load(words, at);
    }) as typeof load;
    try {
      assertEquals(reader.tryRead(), undefined);
    } finally {
      Atomics.load = load;
    }
    return count;
  };
  const bytes = new Uint8Array(32);
  writer.write(bytes);
  const overruns = spoils(layout.FANOUT_FLOOR_WORD, () => {
    for (let n = 0; n < 8; n++) writer.write(bytes);
  });
  assert(overruns >= 8 && overruns <= 10, `${overruns} looks`);
  assertThrows(() => reader.tryRead(), LostError);
  assertEquals(reader.tryRead(), bytes); // and the reader knows of further messages
  const { controlOffset, controlSize } = writer.segment.channels[0]!;
  const control = writer.segment.words(controlOffset, controlSize);
  const changes = spoils(layout.FANOUT_ERA_WORD, () => {
    control[layout.FANOUT_ERA_WORD]!++;
  });
  assert(changes >= 8 && changes <= 10, `${changes} changes`);
});

Deno.test("FanoutWriter.writeAsync, FanoutReader: asynchronous calls keep the order", async () => {
  using writer = FanoutWriter.create<string>({ readers: 2, ...SMALL });
  const readers = [0, 1].map((index) => FanoutReader.from<string>(writer.handoff(index)));
  const texts = Array.from({ length: 40 }, (_, n) => `${n} ${TEXT}`);
  const reading = readers.map(async (reader) => {
    const read: string[] = [];
    for await (const text of reader) read.push(text);
    return read;
  });
  const writing = texts.map((text) => writer.writeAsync(text));
  assertEquals(writer.tryWrite("not before them"), false);
  assertThrows(() => writer.write("nor this"), TypeError, "under way");
  await Promise.all(writing);
  writer.end();
  assertEquals(await Promise.all(reading), [texts, texts]);
  for (const reader of readers) reader.close();
});

Deno.test("FanoutReader.readAsync: a deadline, a signal, leaving and closing end it", async () => {
  using writer = FanoutWriter.create<string>({ readers: 1, ...SMALL });
  using reader = FanoutReader.from<string>(writer.handoff(0));
  assertEquals(await reader.readAsync({ timeout: 2 }), undefined);
  const signal = AbortSignal.timeout(2);
  assertEquals(await reader.readAsync({ signal }).catch(({ name }) => name), "TimeoutError");
  const left = reader.readAsync().catch((error) => error);
  setTimeout(() => reader.leave());
  assertInstanceOf(await left, TypeError);
  reader.join();
  const closed = codeOf(reader.readAsync());
  setTimeout(() => reader.close());
  assertEquals(await closed, "pipe.closed");
});

Deno.test("FanoutWriter.writeAsync: mode hold, a deadline, and a reader that closes", async () => {
  using writer = FanoutWriter.create<string>({ readers: 1, ...SMALL });
  using reader = FanoutReader.from<string>(writer.handoff(0));
  while (writer.tryWrite(TEXT));
  assertEquals(await codeOf(writer.writeAsync(TEXT, { timeout: 2 })), "wait.timeout");
  const writing = writer.writeAsync(TEXT);
  setTimeout(() => reader.close());
  await writing;
});

Deno.test("FanoutReader.readInto: a target that is too small leaves the message", () => {
  using writer = FanoutWriter.create<Uint8Array>({ readers: 1, codec: "bytes", ...SMALL });
  using reader = FanoutReader.from(writer.handoff(0));
  writer.writeMessage({ payload: Uint8Array.of(1, 2, 3), tag: 7 });
  assertThrows(() => reader.readInto(new Uint8Array(2)), RangeError);
  const target = new Uint8Array(4);
  assertEquals([reader.readInto(target), [...target]], [3, [1, 2, 3, 0]]);
  assertEquals([reader.kind, reader.codec, reader.tag], [1, 0, 7]);
  assertEquals(reader.tryReadInto(target), undefined);
});

Deno.test("[fanout.first_answer] the own state, what is left of a batch, and then the end", () => {
  using writer = FanoutWriter.create<number>({ readers: 2, ...SMALL });
  const readers = [0, 1].map((index) => FanoutReader.from<number>(writer.handoff(index)));
  const payload = new TextEncoder().encode("[1,2,3]");
  writer.writeMessage({ payload, codec: layout.CODEC_JSON_BATCH });
  writer.end();
  for (const reader of readers) assertEquals(reader.read(NOW), 1);
  failEndpoint(writer.segment, 2, "peer.terminated");
  assertEquals([2, 3, undefined], Array.from({ length: 3 }, () => readers[0]!.read(NOW)));
  assertCode(() => readers[1]!.read(NOW), "pipe.failed");
  for (const reader of readers) reader.close();
});

Deno.test("FanoutReader.read: a batch is as many messages as it has elements", () => {
  using writer = FanoutWriter.create({ readers: 1, ...SMALL });
  using reader = FanoutReader.from(writer.handoff(0));
  const payload = new TextEncoder().encode("[1,null,[2]]");
  writer.writeMessage({ payload, codec: layout.CODEC_JSON_BATCH });
  writer.end();
  assertEquals([reader.read(), reader.read(), reader.ended], [1, null, false]);
  const last = reader.readMessage()!;
  assertEquals([last.codec, new TextDecoder().decode(last.payload)], [layout.CODEC_JSON, "[2]"]);
  assertEquals([reader.read(), reader.ended], [undefined, true]);
});

Deno.test("FanoutWriter: messages that are too large, or cannot be encoded, leave no trace", () => {
  for (const mode of ["hold", "lose"] as const) {
    using writer = FanoutWriter.create<unknown>({ readers: 1, mode, ...SMALL });
    using reader = FanoutReader.from(writer.handoff(0), { maxMessageSize: 8 });
    assertEquals(writer.largest, mode === "hold" ? 112 : 32);
    assertCode(() => writer.write(new Uint8Array(writer.largest + 1)), "message.size");
    assertThrows(() => writer.write(() => {}), TypeError);
    const toJSON = () => writer.tryWrite(1);
    assertThrows(() => writer.write({ toJSON }), TypeError, "encoded");
    writer.write(new Uint8Array(writer.largest));
    writer.write(1);
    assertCode(() => reader.read(NOW), "message.size");
    assertEquals(reader.read(NOW), 1);
  }
});

Deno.test("FanoutWriter.create: two creators with different modes find out", () => {
  const memory = new SharedArrayBuffer(4096);
  const options = { readers: 2, capacity: 1024, memory };
  using writer = FanoutWriter.create<number>({ ...options, mode: "lose" });
  assertEquals([writer.mode, writer.readers, writer.endpoint], ["lose", 2, 0]);
  assertCode(() => FanoutWriter.create(options), "segment.geometry");
  assertCode(() => FanoutWriter.create({ ...options, mode: "lose" }), "segment.endpoint");
  assertThrows(() => writer.handoff(2), RangeError);
  assertThrows(() => FanoutWriter.create({ readers: 256 }), RangeError);
  assertThrows(() => FanoutReader.from({} as never), TypeError);
});

Deno.test("FanoutReader: the largest fanout, of 255 readers, rings those that wait", async () => {
  using writer = FanoutWriter.create<number>({ readers: 255, capacity: 1024 });
  const readers = [0, 31, 32, 254].map((n) => FanoutReader.from<number>(writer.handoff(n)));
  const waits = readers.map((reader) => reader.readAsync());
  await new Promise((resolve) => setTimeout(resolve)); // the reads go to sleep in this turn
  const { wakes } = writer.stats;
  writer.write(1);
  assertEquals(writer.stats.wakes - wakes, 4);
  assertEquals(await Promise.all(waits), [1, 1, 1, 1]);
  for (const reader of readers) reader.close();
});

Deno.test("revive: an endpoint that takes part in a fanout is not given back", () => {
  const segment = Segment.allocate({
    endpoints: 3,
    channels: [{ writer: 1, reader: 0, capacity: 256 }, fanoutChannel({ writer: 2, readers: 2 })],
  });
  using reader = Reader.attach(segment, { channel: 0 });
  closeEndpoint(segment, 1);
  failEndpoint(segment, 1);
  assertThrows(() => revive(reader), TypeError, "Cannot revive");
});

Deno.test("FanoutWriter: a reader that was marked is not counted, and its peers are told", () => {
  using writer = FanoutWriter.create<number>({ readers: 1, capacity: 256 });
  using reader = FanoutReader.from<number>(writer.handoff(0));
  failEndpoint(writer.segment, 0, "peer.lost");
  const error = assertThrows(() => reader.read(), PeerFailedError);
  assertEquals(error.reason, "peer.lost");
  assertCode(() => writer.write(1), "pipe.failed");
  assertCode(() => writer.end(), "pipe.failed");
});
