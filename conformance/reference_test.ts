// The kit's own reader finds what a writer must not do and no reader has to check.

import { assertEquals, assertThrows } from "@std/assert";
import {
  endFrame,
  firstOf,
  pad,
  part,
  pattern,
  pipe,
  text,
  utf8,
  whole,
} from "./reference/builder.ts";
import { RingTaker } from "./reference/decode.ts";
import type { FramePlan } from "./reference/encode.ts";

function taker(frames: FramePlan[], start = 0): RingTaker {
  const { bytes, control, data } = pipe({ frames, start });
  return new RingTaker(bytes, { control, data, capacity: 256 });
}

Deno.test("RingTaker takes what is in order, and gives room without losing anything", () => {
  const ring = taker([whole("one"), whole(pattern(80)), endFrame()], 0xffffff80);
  ring.room(208);
  const { items, end } = ring.take();
  assertEquals(end, "ended");
  const { kind, codec, tag } = text("");
  assertEquals(items[0], { kind, codec, tag, hex: "6f 6e 65" });
  assertEquals(items.length, 2);
});

const wrong: [string, FramePlan[], number][] = [
  ["pipe.owed_end", [firstOf(9, utf8("abc")), endFrame()], 0],
  ["ring.room", [whole(pattern(112)), whole(pattern(96)), whole("")], 0],
  ["pipe.end", [endFrame(), whole("more")], 0],
  ["frame.end", [{ ...endFrame(), tag: 1 }], 0],
  ["frame.pad", [{ kind: 6, payload: new Uint8Array(48), time: 7 }], 192],
  ["ring.pad", [pad(64), whole(pattern(48))], 192],
  ["frame.extent", [whole(pattern(113))], 0],
  ["frame.contiguous", [firstOf(9, utf8("abc")), whole("inside")], 0],
  ["frame.preamble", [firstOf(9, utf8("abc")), part(utf8("d"))], 0],
  ["frame.part", [firstOf(3, utf8("abc")), part(utf8(""))], 0],
  ["frame.batch_whole", [firstOf(3, utf8("abc"), { codec: 3 })], 0],
];

for (const [clause, frames, start] of wrong) {
  Deno.test(`RingTaker finds a writer that breaks [${clause}]`, () => {
    assertThrows(() => taker(frames, start).take(), Error, `[${clause}]`);
  });
}
