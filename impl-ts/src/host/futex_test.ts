import { assertEquals, assertThrows } from "@std/assert";
import { SEGMENT_READY_WORD } from "../layout.ts";
import { Port } from "../mod.ts";
import { GEOMETRY, Place, test } from "./host_fixture.ts";
import { SegmentFile } from "./mod.ts";

const A = { endpoint: 0 };

test("the ninth asynchronous sleep of a thread, and one that must not hold it, poll", async () => {
  using place = new Place();
  using file = SegmentFile.create(place.path, GEOMETRY, A);
  const words = file.segment.words(0, 128);
  const [ready, ms] = [words[SEGMENT_READY_WORD]!, 20];
  const sleep = (keep?: boolean) =>
    file.mechanism.sleepAsync(words, SEGMENT_READY_WORD, ready, ms, keep);
  assertEquals(sleep(false), undefined);
  const sleeps = Array.from({ length: 9 }, () => sleep());
  assertEquals(sleeps.map((each) => each !== undefined), [...Array(8).fill(true), false]);
  await Promise.all(sleeps);
  await sleep();
});

test("the mechanism of a file refuses to sleep on other memory", () => {
  using place = new Place();
  using file = SegmentFile.create(place.path, GEOMETRY, A);
  const { mechanism } = file;
  assertThrows(() => mechanism.sleep(new Int32Array(4), 0, 0, 1), TypeError, "in that file");
  assertThrows(() => Port.create({ mechanism }), TypeError, "in that file");
});
