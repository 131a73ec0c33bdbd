// The dumps: every byte once, and named for what it is.

import { assert, assertEquals } from "@std/assert";
import { pipe, whole } from "../reference/builder.ts";
import { buildMailbox, put } from "../reference/encode.ts";
import { brokenPort, twoPipes, waitingPipe } from "./golden_fixture.ts";
import { annotate, diff, differences, formatLines } from "./mod.ts";

Deno.test("annotate gives every byte to one line, in order", () => {
  for (
    const bytes of [waitingPipe(), brokenPort(), buildMailbox({ size: 40 }), new Uint8Array(0)]
  ) {
    let at = 0;
    for (const { offset, size } of annotate(bytes)) {
      assertEquals(offset, at);
      assert(size > 0);
      at += size;
    }
    assertEquals(at, bytes.length);
  }
});

Deno.test("annotate shows only a channel when asked, and short what is long", () => {
  const places = new Set(annotate(brokenPort(), { channel: 1 }).map(({ place }) => place));
  assertEquals([...places], ["channel 1", "channel 1, frame at 0x740"]);
  const { bytes } = pipe({ capacity: 1024, frames: [whole(new Uint8Array(480).fill(7))] });
  const lines = (most: number) =>
    annotate(bytes, { lines: most }).filter(({ field }) => field === "payload");
  assertEquals(lines(3).map(({ size }) => size), [16, 16, 16, 432]);
  assertEquals(lines(3).at(-1)!.hex, "… 432 bytes more");
  assertEquals(lines(30).length, 30);
});

Deno.test("formatLines aligns the offsets of a large memory", () => {
  const { bytes } = pipe({ capacity: 2 ** 17 });
  assert(formatLines(annotate(bytes)).startsWith("header\n00000  4d 49"));
});

Deno.test("diff says nothing of memories that are equal", () => {
  assertEquals(diff(waitingPipe(), waitingPipe()), "");
  assertEquals(differences(new Uint8Array(0), new Uint8Array(0)), []);
});

Deno.test("diff names fields by what either memory has there", () => {
  const [must, is] = twoPipes();
  const names = (a: Uint8Array, b: Uint8Array) =>
    differences(a, b).map(({ expected, got }) => [expected.field, got.field]);
  assertEquals(names(must, is), [["tail", "tail"], ["tag", "free"]]);
  assertEquals(names(is, must), [["tail", "tail"], ["free", "tag"]]);
  const text = diff(is, must);
  assert(text.includes("got       05 00 00 00  5  (channel 0, frame at 0x400: tag)"), text);
});

Deno.test("diff says that one memory is longer, and stops after 64 differences", () => {
  assertEquals(diff(new Uint8Array(4), new Uint8Array(5)), "4 bytes expected, got 5\n");
  const { bytes, data } = pipe({ capacity: 2048 });
  const other = bytes.slice();
  other.fill(1, data);
  const text = diff(bytes, other);
  assertEquals(text.match(/^0x/gm)?.length, 64);
  assert(text.endsWith("… 64 more differences\n"), text);
});

Deno.test("diff shows states by their names", () => {
  const { bytes } = pipe({ states: [1, 1] });
  const other = bytes.slice();
  put(other, 128, "endpoint_record", "state", 0x1003);
  const [found] = differences(bytes, other);
  assertEquals(found!.expected.value, "attached");
  assertEquals(found!.got.value, "failed: ring.cursor");
});
