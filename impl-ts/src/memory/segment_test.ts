import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { attachEndpoint } from "../wait/endpoint.ts";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";
import { SegmentError } from "../error.ts";
import { assertCode, codeOf } from "../testing/fixture.ts";
import { type Geometry, segmentSize } from "./plan.ts";
import { layout } from "./layout.ts";
import { Segment } from "./segment.ts";

const PIPE: Geometry = {
  endpoints: 2,
  channels: [{ writer: 0, reader: 1, capacity: 256, label: 7 }],
};
const PORT: Geometry = {
  endpoints: 2,
  channels: [{ writer: 0, reader: 1, capacity: 256 }, { writer: 1, reader: 0, capacity: 1024 }],
};
const FIRST = 128 + 2 * 128;

function formatted(geometry = PORT): Uint32Array {
  const memory = new SharedArrayBuffer(segmentSize(geometry));
  Segment.format(memory, geometry);
  return new Uint32Array(memory);
}

/** Attaches to a port in which one word was replaced. */
function attachWith(offset: number, value: number): Segment {
  const words = formatted();
  words[offset >> 2] = value;
  return Segment.attach(words.buffer as SharedArrayBuffer, { timeout: 0 });
}

Deno.test("Segment.format writes the example of the specification", () => {
  const words = formatted(PIPE);
  const bytes = new Uint8Array(words.buffer);
  const expected = new Uint8Array(1280);
  expected.set(new TextEncoder().encode("MILLRACE"));
  const wide = new Uint32Array(expected.buffer);
  wide.set([2, 1, 1280, 0, 0, 2, 1], 2);
  wide.set([1, 0, 1, 512, 512, 1024, 256, 7], 0x180 >> 2);
  assertEquals(bytes, expected);
  attachEndpoint(Segment.attach(words.buffer as SharedArrayBuffer), 0);
  wide.set([1, 1, 1], 0x80 >> 2);
  wide[0x100 >> 2] = 1;
  wide[0x98 >> 2] = wide[0x118 >> 2] = 1; // rung by endpoint 0
  assertEquals(bytes, expected);
});

Deno.test("segmentSize agrees with the example of the port chapter", () => {
  assertEquals(segmentSize(PORT), 2816);
  const { channels } = Segment.allocate(PORT);
  assertEquals(channels.map((channel) => channel.dataOffset), [1024, 1792]);
});

Deno.test("a geometry outside the limits is the caller's mistake", () => {
  const channel = { writer: 0, reader: 1, capacity: 256 };
  const wrong: Geometry[] = [
    { endpoints: 0, channels: [] },
    { endpoints: 257, channels: [] },
    { endpoints: 1.5, channels: [] },
    { endpoints: 2, channels: new Array(1025).fill(channel) },
    { endpoints: 2, channels: [{ ...channel, reader: 2 }] },
    { endpoints: 2, channels: [{ ...channel, reader: 0 }] },
    { endpoints: 2, channels: [{ ...channel, capacity: 128 }] },
    { endpoints: 2, channels: [{ ...channel, capacity: 384 }] },
    { endpoints: 2, channels: [{ ...channel, capacity: 2 ** 31 }] },
    { endpoints: 2, channels: [{ ...channel, start: 8 }] },
    { endpoints: 2, channels: [{ ...channel, label: -1 }] },
  ];
  for (const geometry of wrong) assertThrows(() => segmentSize(geometry), RangeError);
  assertEquals(segmentSize({ endpoints: 256, channels: new Array(1024).fill(channel) }) > 0, true);
});

Deno.test("a segment above 4,294,967,168 bytes is refused", () => {
  const channel = { writer: 0, reader: 1, capacity: 2 ** 30 };
  segmentSize({ endpoints: 2, channels: [channel, channel, channel] });
  const four = { endpoints: 2, channels: [channel, channel, channel, channel] };
  assertCode(() => segmentSize(four), "segment.size");
});

Deno.test("every check of a header refuses with its code, and its neighbour passes", () => {
  const control = FIRST + 12, data = FIRST + 20, second = FIRST + 64;
  const rows: [string, number, number][] = [
    ["segment.magic", 8, 3],
    ["segment.unready", 8, 1],
    ["segment.unready", 8, 0],
    ["segment.magic", 0, 0x4c4c494e],
    ["segment.magic", 4, 0x46434152],
    ["segment.version", 12, 2],
    ["segment.version", 12, 0],
    ["ok", 12, 1 | (9 << 16)],
    ["segment.feature", 20, 1],
    ["segment.feature", 20, 0x80000000],
    ["ok", 24, 0xffffffff],
    ["segment.size", 16, 2816 + 128],
    ["segment.size", 16, 2816 - 64],
    ["segment.channel", 16, 2816 - 128],
    ["segment.table", 16, 384],
    ["segment.size", 16, 0xffffff80],
    ["segment.table", 28, 0],
    ["segment.table", 28, 257],
    ["segment.table", 28, 0xffffffff],
    ["segment.table", 32, 1025],
    ["segment.table", 32, 100],
    ["segment.table", 32, 0xffffffff],
    ["ok", 32, 1],
    ["ok", 32, 0],
    ["segment.channel", FIRST + 4, 2],
    ["segment.channel", FIRST + 4, 0xffffffff],
    ["segment.channel", FIRST + 4, 1],
    ["segment.channel", FIRST + 8, 0],
    ["segment.channel", FIRST + 8, 2],
    ["segment.channel", control, 384],
    ["segment.channel", control, 520],
    ["segment.channel", control, 0xffffff80],
    ["segment.channel", data, 256],
    ["segment.channel", data, 1028],
    ["segment.channel", data, 2816],
    ["segment.channel", data, 0xffffff80],
    ["segment.channel", FIRST + 16, 384],
    ["segment.channel", FIRST + 16, 640],
    ["segment.channel", FIRST + 16, 0xfffffe00],
    ["segment.channel", FIRST + 24, 128],
    ["segment.channel", FIRST + 24, 272],
    ["segment.channel", FIRST + 24, 0],
    ["segment.channel", FIRST + 24, 512],
    ["segment.channel", FIRST + 24, 0x80000000],
    ["segment.channel", FIRST + 32, 8],
    ["ok", FIRST + 32, 0xfffffff0],
    ["ok", FIRST + 28, 99],
    ["ok", FIRST, 77],
    ["ok", 36, 1],
    ["segment.channel", second + 12, 512],
    ["segment.channel", second + 20, 1024],
    ["segment.channel", second + 20, 1152],
  ];
  for (const [code, offset, value] of rows) {
    let found = "ok";
    try {
      attachWith(offset, value);
    } catch (error) {
      found = (error as SegmentError).code;
    }
    assertEquals(found, code, `0x${offset.toString(16)} = 0x${value.toString(16)}`);
  }
});

Deno.test("the checks come in the order of the table", () => {
  // Each row breaks one check more, from the last check to the first.
  const words = formatted();
  const rows: [string, number, number][] = [
    ["segment.channel", FIRST + 64 + 20, 1024],
    ["segment.channel", FIRST + 24, 272],
    ["segment.channel", FIRST + 12, 8],
    ["segment.channel", FIRST + 4, 2],
    ["segment.table", 28, 0],
    ["segment.size", 16, 100],
    ["segment.feature", 20, 1],
    ["segment.version", 12, 2],
    ["segment.magic", 0, 0],
    ["segment.unready", 8, 0],
    ["segment.magic", 8, 9],
  ];
  for (const [code, offset, value] of rows) {
    words[offset >> 2] = value;
    assertCode(() => Segment.attach(words.buffer as SharedArrayBuffer, { timeout: 0 }), code);
  }
});

Deno.test("an unknown kind is range-checked and left alone, and may have areas of 0 bytes", () => {
  const words = formatted();
  words[FIRST >> 2] = 1000;
  words[(FIRST + 16) >> 2] = 0;
  words[(FIRST + 24) >> 2] = 0;
  assertEquals(Segment.attach(words.buffer as SharedArrayBuffer).channels[0]!.kind, 1000);
  words[(FIRST + 12) >> 2] = 8;
  assertCode(() => Segment.attach(words.buffer as SharedArrayBuffer), "segment.channel");
});

Deno.test("memory too small or not aligned is refused, and a region is not", () => {
  assertCode(() => Segment.attach(new SharedArrayBuffer(255), { timeout: 0 }), "segment.size");
  assertCode(() => Segment.attach(new SharedArrayBuffer(256), { timeout: 0 }), "segment.unready");
  assertCode(() => Segment.format(new SharedArrayBuffer(1279), PIPE), "segment.size");
  const memory = new SharedArrayBuffer(4096);
  const at = (offset: number) => new Uint8Array(memory, offset, 1280);
  assertCode(() => Segment.format(at(64), PIPE), "segment.size");
  const segment = Segment.format(at(256), PIPE);
  assertEquals(Segment.attach(at(256)).size, segment.size);
  assertCode(() => Segment.attach(memory, { timeout: 0 }), "segment.unready");
});

Deno.test("a segment lies in WebAssembly memory and in an ArrayBuffer as well", () => {
  const shared = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  assertEquals(Segment.format(shared, PIPE).shared, true);
  assertEquals(Segment.format(new ArrayBuffer(1280), PIPE).shared, false);
});

Deno.test("format zeroes what it needs on memory that is not blank", () => {
  const memory = new SharedArrayBuffer(1280);
  new Uint8Array(memory).fill(0xff);
  const segment = Segment.format(memory, PIPE);
  assertEquals(segment.words(512, 512).every((word) => word === 0), true);
  assertEquals(segment.words(128, 256).every((word) => word === 0), true);
});

Deno.test("create formats once, and refuses another geometry", () => {
  const memory = new SharedArrayBuffer(4096);
  Segment.create(memory, PIPE);
  const bytes = new Uint8Array(memory).slice();
  Segment.create(memory, PIPE);
  assertEquals(new Uint8Array(memory).slice(), bytes);
  const [channel] = PIPE.channels;
  const others: Geometry[] = [
    { ...PIPE, endpoints: 3 },
    { ...PIPE, channels: [] },
    { ...PIPE, channels: [{ ...channel!, label: 8 }] },
    { ...PIPE, channels: [{ ...channel!, start: 16 }] },
    { ...PIPE, channels: [{ ...channel!, capacity: 512 }] },
    { ...PIPE, channels: [{ ...channel!, writer: 1, reader: 0 }] },
  ];
  for (const other of others) assertCode(() => Segment.create(memory, other), "segment.geometry");
  // A segment that somebody else has made, with a larger control area.
  const foreign = Segment.allocate(PIPE);
  const words = new Uint32Array(new SharedArrayBuffer(foreign.size + 128));
  words.set(foreign.words(0, foreign.size));
  words.set([640, 1152], (FIRST + 16) >> 2);
  words[4] = foreign.size + 128;
  const large = words.buffer as SharedArrayBuffer;
  assertEquals(Segment.attach(large).channels[0]!.controlSize, 640);
  assertCode(() => Segment.create(large, PIPE), "segment.geometry");
});

Deno.test("attach waits for the creator, and gives up at its deadline", async () => {
  const memory = new SharedArrayBuffer(1280);
  const begin = performance.now();
  assertCode(() => Segment.attach(memory, { timeout: 20 }), "segment.unready");
  assertEquals(performance.now() - begin >= 19, true);
  assertEquals(await codeOf(Segment.attachAsync(memory, { timeout: 5 })), "segment.unready");
  const attached = Segment.attachAsync(memory);
  Segment.format(memory, PIPE);
  assertEquals((await attached).size, 1280);
  const blank = new SharedArrayBuffer(1280);
  const control = new AbortController();
  const aborted = Segment.attachAsync(blank, { signal: control.signal });
  control.abort(new Error("enough"));
  await assertRejects(() => aborted, Error, "enough");
  assertThrows(() => Segment.attach(memory, { timeout: -1 }), RangeError);
});

Deno.test("an endpoint is attached once, and states change along the table only", () => {
  const segment = Segment.allocate(PIPE);
  const state = segment.words(128 + layout.ENDPOINT_STATE_OFFSET, 4);
  for (const index of [-1, 2, 0.5]) {
    assertCode(() => attachEndpoint(segment, index), "segment.endpoint");
  }
  assertEquals(closeEndpoint(segment, 0), false);
  attachEndpoint(segment, 0);
  assertEquals(state[0], 1);
  assertCode(() => attachEndpoint(segment, 0), "segment.endpoint");
  assertEquals(closeEndpoint(segment, 0), true);
  assertEquals(failEndpoint(segment, 0), false);
  assertEquals(state[0], 2);
  assertCode(() => attachEndpoint(segment, 0), "segment.endpoint");
  assertEquals(failEndpoint(segment, 1, "peer.lost"), true);
  assertEquals(closeEndpoint(segment, 1), false);
  assertCode(() => attachEndpoint(segment, 1), "segment.endpoint");
  assertEquals(segment.words(256 + 4, 4)[0], 3 | (67 << 8));
  assertThrows(() => failEndpoint(segment, 1, "no.such" as "peer.lost"), TypeError);
  assertThrows(() => closeEndpoint(segment, 2), RangeError);
});

Deno.test("a seeded scribble over the header never does more than refuse", async () => {
  const { random } = await import("../testing/fixture.ts");
  const next = random(1);
  for (let round = 0; round < 20_000; round++) {
    const words = formatted();
    for (let i = next() % 3; i >= 0; i--) {
      const value = [next(), next() % 4096, (next() % 64) * 128, 1 << (next() % 32)][next() % 4]!;
      words[next() % (512 >> 2)] = value;
    }
    try {
      Segment.attach(words.buffer as SharedArrayBuffer, { timeout: 0 });
    } catch (error) {
      if (!(error instanceof SegmentError)) throw error;
    }
  }
});

Deno.test("create zeroes what stands in memory whose ready word is blank", () => {
  const geometry = { endpoints: 2, channels: [{ writer: 0, reader: 1, capacity: 256, start: 32 }] };
  const memory = new SharedArrayBuffer(segmentSize(geometry));
  const words = new Uint32Array(memory).fill(0xa5a5a5a5);
  words[2] = 0;
  Segment.create(memory, geometry);
  const clean = new Uint32Array(Segment.allocate(geometry).memory as SharedArrayBuffer);
  // All but the byte area, in which nothing counts.
  assertEquals(words.slice(0, 256), clean.slice(0, 256));
});
