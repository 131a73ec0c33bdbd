import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { cbor } from "../codec/cbor.ts";
import {
  ClosedError,
  MessageError,
  MillraceError,
  PeerFailedError,
  SegmentError,
} from "../error.ts";
import { unsliced, withoutSlices } from "../testing/fixture.ts";
import {
  propertyChannel,
  PropertyError,
  PropertyReader,
  PropertyWriter,
  SharedProperties,
} from "./property.ts";
import { Segment } from "../memory/segment.ts";
import { until } from "../port/fixture.ts";
import { failEndpoint } from "../wait/state.ts";

const SOON = { timeout: 20 };
const LONG = { timeout: 5_000 };

/** A property in a segment of its own, and both its ends. */
function pair<T = unknown>(size?: number, options = {}) {
  const channels = [propertyChannel({ writer: 0, name: "p", size })];
  const segment = Segment.allocate({ endpoints: 3, channels });
  const writer = PropertyWriter.attach<T>(segment, options);
  const reader = PropertyReader.attach<T>(segment, { codecs: [cbor], ...options });
  return { segment, writer, reader };
}

function codeOf(call: () => unknown): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    if (error instanceof MillraceError) return error.code;
    throw error;
  }
}

Deno.test("PropertyReader.get gives what was set last, as often as it is asked", () => {
  const { writer, reader } = pair();
  assertEquals([reader.get(), reader.version, reader.seen], [null, 0, 0]);
  for (const value of [0, -1.5, "", "text", true, { a: [null] }, [], "ü\u{1f600}"]) {
    writer.set(value);
    assertEquals([reader.get(), reader.get()], [value, value]);
  }
  assertEquals([reader.version, reader.seen, writer.version], [8, 8, 8]);
  writer.set(Uint8Array.of(1, 2));
  assertEquals([reader.get(), reader.codec], [Uint8Array.of(1, 2), 0]);
  writer.set(null);
  assertEquals([reader.get(), reader.version], [null, 10]);
});

Deno.test("PropertyWriter.set writes by its codec, which the reader need not know", () => {
  const text = pair<string>(undefined, { codec: "text" });
  text.writer.set("not JSON");
  assertEquals([text.reader.get(), text.reader.codec], ["not JSON", 1]);
  assertThrows(() => text.writer.set("\ud800"), TypeError, "lone surrogate");
  assertEquals(text.reader.version, 1); // a refused value is not counted
  const values = pair<Map<number, string>>(undefined, { codec: cbor });
  values.writer.set(new Map([[1, "one"]]));
  assertEquals(values.reader.get(), new Map([[1, "one"]]));
  const { writer, segment } = pair(undefined, { codec: cbor });
  using stranger = PropertyReader.attach(segment, { endpoint: 2 });
  writer.set(1n);
  assertThrows(() => stranger.get(), MessageError, "message.codec");
  assertEquals(stranger.wait({ timeout: 0 }), false); // its version counts as seen nevertheless
});

Deno.test("PropertyWriter.set of what JSON cannot carry, or within itself, is refused", () => {
  const { writer, reader } = pair();
  assertThrows(() => writer.set(undefined), TypeError);
  assertThrows(() => writer.set(1n), TypeError);
  const within = {
    toJSON() {
      writer.set(1);
    },
  };
  assertThrows(() => writer.set(within), TypeError, "is being encoded");
  writer.set(2);
  assertEquals([reader.get(), reader.version], [2, 1]);
});

Deno.test("PropertyWriter.set of too much changes nothing [property.size]", () => {
  const { writer, reader } = pair<unknown>(200);
  assertEquals([writer.capacity, reader.capacity], [240, 240]);
  writer.set("kept");
  for (const value of [new Uint8Array(241), "x".repeat(239)]) {
    assertEquals(codeOf(() => writer.set(value)), "property.size");
  }
  assertEquals([reader.get(), reader.version], ["kept", 1]);
  writer.set("x".repeat(238));
  writer.set(new Uint8Array(240).fill(7));
  assertEquals(reader.get(), new Uint8Array(240).fill(7));
});

Deno.test("PropertyReader.getInto copies into arrays of any type and place", () => {
  const { writer, reader } = pair(4000);
  const memory = new Uint8Array(9000);
  for (const size of [0, 1, 3, 4, 5, 63, 64, 65, 128, 512, 513, 2047, 2048, 2049, 3999, 4000]) {
    const value = Uint8Array.from({ length: size }, (_, i) => i * 31 + size);
    for (const from of [0, 1, 2]) {
      // At any offset, aligned or not, in the source and in the target.
      const source = memory.subarray(from, from + size);
      source.set(value);
      writer.set(source);
      for (const to of [4500, 4501]) {
        const target = memory.subarray(to, to + size);
        target.fill(0);
        assertEquals(reader.getInto(target), size);
        assertEquals(target, value, `${size} from ${from} to ${to}`);
      }
    }
  }
  writer.set(Float32Array.of(0.5, NaN, -0));
  const floats = new Float64Array(2);
  assertEquals(reader.getInto(floats), 12);
  assertEquals(new Float32Array(floats.buffer, 0, 2), Float32Array.of(0.5, NaN));
  assertThrows(() => reader.getInto(new Uint8Array(11)), RangeError, "12 bytes");
  writer.set(null);
  assertEquals(reader.getInto(new DataView(memory.buffer)), null);
});

Deno.test("PropertyReader.getInto sees that an array has another size than before", () => {
  const { writer, reader } = pair();
  const buffer = new ArrayBuffer(4, { maxByteLength: 64 });
  const array = new Uint8Array(buffer);
  writer.set(array);
  buffer.resize(8);
  writer.set(array.fill(9));
  const target = new Uint8Array(112);
  assertEquals(reader.getInto(target), 8);
});

Deno.test("a version crosses 2^32, and 4 follows [property.next]", () => {
  const channels = [propertyChannel({ writer: 0 })];
  const segment = Segment.allocate({ endpoints: 2, channels });
  segment.words(segment.channels[0]!.controlOffset, 4)[0] = -3;
  using writer = PropertyWriter.attach<number>(segment);
  using reader = PropertyReader.attach<number>(segment);
  const versions: number[] = [];
  for (let n = 0; n < 9; n++) {
    writer.set(n);
    assertEquals(reader.get(), n);
    versions.push(reader.version);
  }
  assertEquals(versions, [2 ** 32 - 2, 2 ** 32 - 1, 4, 5, 6, 7, 8, 9, 10]);
});

Deno.test("PropertyReader.attach refuses what is none, and takes no endpoint", () => {
  const ring = { writer: 0, reader: 1, capacity: 256 };
  const channels = [ring, propertyChannel({ writer: 1, name: "größe" })];
  const segment = Segment.allocate({ endpoints: 2, channels });
  for (const property of [0, 2, -1, "", "größ", "größer"]) {
    assertThrows(() => PropertyReader.attach(segment, { property }), PropertyError);
    assertThrows(() => PropertyWriter.attach(segment, { property }), PropertyError);
  }
  assertThrows(() => PropertyWriter.attach(segment, { endpoint: 0 }), PropertyError, "endpoint 1");
  assertThrows(() => PropertyReader.attach(segment, { endpoint: 2 }), SegmentError);
  using reader = PropertyReader.attach(segment, { property: "größe", endpoint: 0 });
  using writer = PropertyWriter.attach(segment, { property: 1 });
  assertEquals([reader.name, writer.name], ["größe", "größe"]);
});

Deno.test("propertyChannel refuses what no property is", () => {
  for (const plan of [{ writer: -1 }, { writer: 256 }, { writer: 0, size: -1 }, { writer: 0.5 }]) {
    assertThrows(() => propertyChannel(plan), RangeError);
  }
  assertThrows(() => propertyChannel({ writer: 0, name: "ü".repeat(63) }), RangeError, "126");
  assertThrows(() => propertyChannel({ writer: 0, name: "\udc00" }), TypeError);
  const channels = [propertyChannel({ writer: 2, name: "ü".repeat(62) })];
  assertThrows(() => Segment.allocate({ endpoints: 2, channels }), RangeError);
});

Deno.test("Segment.create with properties of other names fails [property.same_name]", () => {
  const memory = new SharedArrayBuffer(4096);
  const of = (name: string) => ({ endpoints: 2, channels: [propertyChannel({ writer: 0, name })] });
  Segment.create(memory, of("a"));
  Segment.create(memory, of("a"));
  assertThrows(() => Segment.create(memory, of("b")), SegmentError, "segment.geometry");
});

Deno.test("PropertyReader.wait ends with a change, its deadline, or its writer's end", () => {
  const { writer, reader, segment } = pair();
  assertEquals(reader.wait(SOON), false);
  writer.set(1);
  assert(reader.wait(LONG) && reader.wait(LONG)); // true until the value is got
  reader.get();
  assertEquals(reader.wait({ timeout: 0 }), false);
  writer.set(null);
  assertEquals(reader.wait(LONG), true);
  writer.close();
  assertEquals(reader.wait(LONG), true); // the value set before the close comes first
  assertEquals(reader.get(), null);
  assertEquals(codeOf(() => reader.wait(LONG)), "peer.closed");
  const watchers = segment.words(segment.channels[0]!.controlOffset + 128, 32);
  assertEquals(watchers, new Int32Array(8)); // no watcher is left to be rung
  reader.close();
  assertEquals(codeOf(() => reader.get()), "pipe.closed");
  assertEquals(codeOf(() => reader.wait(LONG)), "pipe.closed");
});

Deno.test("the value of a writer that has died stays [property.stays]", () => {
  const { writer, reader, segment } = pair();
  writer.set("last words");
  failEndpoint(segment, 0, "peer.terminated");
  assertEquals([reader.get(), reader.get()], ["last words", "last words"]);
  const error = assertThrows(() => reader.wait(LONG), PeerFailedError);
  assertEquals(error.reason, "peer.terminated");
  assertThrows(() => writer.set("more"), ClosedError, "pipe.failed");
  assertEquals(reader.get(), "last words");
});

Deno.test("PropertyReader.waitAsync loses no wake, however the two meet", async () => {
  const { writer, reader } = pair(undefined, { mechanism: unsliced(), spin: 0 });
  await withoutSlices(async () => {
    for (let n = 1; n <= 200; n++) {
      let isWoken = false;
      reader.waitAsync().then(() => isWoken = true);
      if (n % 2 === 0) await Promise.resolve();
      if (n % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
      writer.set(n);
      await until(() => isWoken);
      assertEquals(reader.get(), n);
    }
  });
  const controller = new AbortController();
  const aborted = reader.waitAsync({ signal: controller.signal });
  controller.abort(new Error("enough"));
  await assertRejects(() => aborted, Error, "enough");
});

Deno.test("PropertyReader.watch gives the last value, and ends with its writer", async () => {
  const { writer, reader } = pair<number>();
  const seen: (number | null)[] = [];
  const done = (async () => {
    for await (const value of reader.watch()) seen.push(value);
  })();
  for (const value of [1, 2, 3, null]) {
    writer.set(value);
    writer.set(value); // no watcher misses the change, even if it sees one of the two only
    await until(() => seen.at(-1) === value);
  }
  writer.close();
  await done;
  assertEquals(seen, [1, 2, 3, null]);
});

Deno.test("SharedProperties: each sets its own, and all get all", async () => {
  type State = { a: number; b: string; c: Uint8Array };
  const properties = { a: { writer: 0 }, b: { writer: 1 }, c: { writer: 1, size: 1000 } };
  using first = SharedProperties.create<State>({ properties, endpoints: 3 });
  using second = SharedProperties.attach<State>(first.memory);
  using third = SharedProperties.attach<State>(first.memory, { endpoint: 2 });
  assertEquals(third.names, ["a", "b", "c"]);
  first.set("a", 1);
  second.set("b", "two");
  second.set("c", new Uint8Array(1000).fill(3));
  for (const each of [first, second, third]) {
    assertEquals([each.get("a"), each.get("b")], [1, "two"]);
    assertEquals(each.get("c"), new Uint8Array(1000).fill(3));
  }
  assertEquals(codeOf(() => third.set("a", 2)), "property.channel");
  assertEquals(codeOf(() => third.get("d" as "a")), "property.channel");
  assertEquals(third.wait(undefined, SOON), undefined);
  const waiting = third.waitAsync(["c", "a"], LONG);
  first.set("a", 2);
  assertEquals([await waiting, third.get("a"), third.version("a")], ["a", 2, 2]);
  first.close();
  second.set("b", "still here");
  assertEquals(third.wait(undefined, LONG), "b"); // only one of the writers is gone
  third.get("b");
  second.close();
  assertEquals(codeOf(() => third.wait(undefined, LONG)), "peer.closed");
  assertEquals(third.get("c"), new Uint8Array(1000).fill(3));
});

Deno.test("SharedProperties.create: whoever comes first in memory that both know", () => {
  const memory = new SharedArrayBuffer(1 << 16);
  const plan = { properties: { x: { writer: 0 }, y: { writer: 1 } }, memory };
  using first = SharedProperties.create(plan);
  using second = SharedProperties.create({ ...plan, endpoint: 1 });
  first.set("x", 1);
  second.set("y", 2);
  assertEquals([second.get("x"), first.get("y")], [1, 2]);
  const other = { properties: { x: { writer: 0 }, z: { writer: 1 } }, memory };
  assertThrows(() => SharedProperties.create(other), SegmentError, "segment.geometry");
});
