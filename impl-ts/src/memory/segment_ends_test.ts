// Channels whose ends are not two endpoints, and which endpoints are peers.

import { assertEquals } from "@std/assert";
import { assertCode } from "../testing/fixture.ts";
import { layout } from "./layout.ts";
import { Reader, Writer } from "../pipe/ends.ts";
import { Segment } from "./segment.ts";
import { failEndpoint } from "../wait/state.ts";

const NOBODY = layout.ENDPOINT_NONE;
/** Where the first descriptor stands, after two endpoint records. */
const FIRST = 128 + 2 * 128;

/** A segment of two rings, both from endpoint 0 to 1. */
function formatted(): Uint32Array {
  const ring = { writer: 0, reader: 1, capacity: 256 };
  const segment = Segment.allocate({ endpoints: 2, channels: [ring, { ...ring, label: 1 }] });
  return new Uint32Array(segment.memory as SharedArrayBuffer);
}

Deno.test("[segment.unknown_kind] its ends may name anybody, or nobody", () => {
  for (const [writer, reader] of [[NOBODY, NOBODY], [0, NOBODY], [NOBODY, 1], [0, 0], [2, 256]]) {
    const words = formatted();
    words[(FIRST + 4) >> 2] = writer!;
    words[(FIRST + 8) >> 2] = reader!;
    const memory = words.buffer as SharedArrayBuffer;
    assertCode(() => Segment.attach(memory), "segment.channel");
    words[FIRST >> 2] = layout.CHANNEL_KIND_PROPERTY; // a kind that this version does not know
    words[(FIRST + 32) >> 2] = 3; // `start`
    const segment = Segment.attach(memory);
    assertEquals([segment.channels[0]!.writer, segment.channels[0]!.reader], [writer!, reader!]);
    // The ring beside that channel works.
    const [writing, reading] = [Writer.attach(segment, { channel: 1 }), Reader.attach(segment)];
    writing.write("hello");
    assertEquals(reading.tryRead(), "hello");
    assertCode(() => Writer.attach(segment, { channel: 0 }), "segment.channel");
  }
});

Deno.test("[segment.peers] a change of a state rings the ends of all channels, no others", () => {
  const ring = { writer: 0, reader: 1, capacity: 256 };
  const others = new Array(4).fill({ ...ring, writer: 6 });
  const segment = Segment.allocate({ endpoints: 7, channels: [ring, ...others] });
  const words = segment.words(0, segment.size);
  const ends = [[2, 0], [0, 3], [0, NOBODY], [7, 0]]; // channels of kinds that nobody knows
  for (const [index, [writer, reader]] of ends.entries()) {
    const at = (128 + 7 * 128 + (index + 1) * 64) >> 2;
    words.set([99, writer!, reader!], at);
  }
  const bells = () => [0, 1, 2, 3, 4, 5, 6].map((index) => words[(128 + index * 128) >> 2]);
  const again = Segment.attach(segment.memory);
  failEndpoint(again, 0);
  assertEquals(bells(), [1, 1, 1, 1, 0, 0, 0]);
  failEndpoint(again, 2);
  assertEquals(bells(), [2, 1, 2, 1, 0, 0, 0]);
  failEndpoint(again, 4);
  assertEquals(bells(), [2, 1, 2, 1, 1, 0, 0]);
});
