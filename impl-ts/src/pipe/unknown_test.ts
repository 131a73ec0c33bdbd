// Messages whose size their writer does not know when it begins.

import { assert, assertEquals, assertThrows } from "@std/assert";
import { MessageError } from "../error.ts";
import {
  assertCode,
  pattern,
  type RawFrame,
  type Scribe,
  scribed,
  UNKNOWN,
} from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { release, tryPeek } from "../more/lend.ts";
import { lastRead, tryReadInto, tryReadMessage } from "../more/raw.ts";

/** Bytes of each chunk. */
const PART = 32;

/** Places a message in chunks, and publishes each alone; `between` is called after each. */
function place(scribe: Scribe, payload: Uint8Array, codec = 0, between = () => {}): void {
  for (let at = 0; at < payload.length; at += PART) {
    const isLast = at + PART >= payload.length;
    const chunk: RawFrame = { codec, payload: [...payload.subarray(at, at + PART)] };
    if (at === 0) scribe.frame({ ...chunk, flags: 1, total: UNKNOWN });
    else scribe.frame({ ...chunk, flags: isLast ? 2 : 0 });
    scribe.publish();
    between();
  }
}

Deno.test("[pipe.limit_unknown] grows as the parts come, up to the limit", () => {
  const whole = pattern(3000);
  for (const limit of [3000, 2999]) {
    const { reader, scribe } = scribed({ capacity: 8192, maxMessageSize: limit });
    place(scribe, whole);
    scribe.frame({ payload: [1] }).publish();
    if (limit === whole.length) assertEquals(reader.tryRead(), whole);
    else {
      const error = assertThrows(() => reader.tryRead(), MessageError, "3000 bytes or more");
      assertEquals(error.code, "message.size");
    }
    assertEquals(reader.tryRead(), Uint8Array.of(1)); // and no message comes twice
    assertEquals(reader.tryRead(), undefined);
  }
});

Deno.test("[pipe.limit_unknown] drops in the middle, and checks what it drops", () => {
  const { reader, scribe } = scribed({ capacity: 1024, maxMessageSize: 2 * PART });
  place(scribe, pattern(5 * PART));
  assertCode(() => reader.tryRead(), "message.size");
  assertEquals(reader.tryRead(), undefined);
  place(scribe, pattern(3 * PART - 1));
  scribe.frame({ flags: 6 }).publish();
  assertCode(() => reader.tryRead(), "message.size");
  assertCode(() => reader.tryRead(), "frame.sequence"); // no message is in progress any more
});

Deno.test("[pipe.total_trust] memory is bounded by what has come, not by what may come", () => {
  const { reader, scribe } = scribed({ capacity: 1024 });
  const { Uint8Array: Real } = globalThis;
  let most = 0;
  const Counting = new Proxy(Real, {
    construct(target, given, self) {
      if (typeof given[0] === "number") most = Math.max(most, given[0]);
      return Reflect.construct(target, given, self);
    },
  });
  globalThis.Uint8Array = Counting;
  try {
    place(scribe, pattern(10 * PART, 0));
    assertEquals(tryReadMessage(reader)?.payload.length, 10 * PART);
  } finally {
    globalThis.Uint8Array = Real;
  }
  assert(most < 20 * PART, `${most}`);
});

Deno.test("a message of unknown size is decoded like any, and has memory of its own", () => {
  const { reader, scribe } = scribed({ capacity: 1024 });
  place(scribe, new TextEncoder().encode("ä".repeat(100)), layout.CODEC_TEXT);
  place(scribe, new TextEncoder().encode(JSON.stringify(["b".repeat(100)])), layout.CODEC_JSON);
  place(scribe, pattern(100));
  assertEquals([reader.tryRead(), lastRead(reader).codec], ["ä".repeat(100), layout.CODEC_TEXT]);
  assertEquals(reader.tryRead(), ["b".repeat(100)]);
  const { payload } = tryReadMessage(reader)!;
  assertEquals([payload, payload.buffer.byteLength], [pattern(100), 100]);
});

Deno.test("readInto of a message of unknown size, in calls that find a part each", () => {
  const { reader, scribe } = scribed({ capacity: 1024 });
  const target = new Uint8Array(100).fill(0xee);
  const found: unknown[] = [];
  place(scribe, pattern(90), 0, () => found.push(tryReadInto(reader, target)));
  assertEquals(found, [undefined, undefined, 90]);
  assertEquals(target.subarray(0, 90), pattern(90));
  assertEquals(target[90], 0xee);
});

Deno.test("readInto of what turns out larger than its target leaves it to be read again", () => {
  const whole = pattern(3 * PART + 1);
  const places = [
    // Either all of it is there, or it comes chunk by chunk and outgrows the target with the third.
    (scribe: Scribe, _look: () => void) => place(scribe, whole),
    (scribe: Scribe, look: () => void) => place(scribe, whole, 0, look),
  ];
  for (const placed of places) {
    const { reader, scribe } = scribed({ capacity: 1024 });
    const small = new Uint8Array(2 * PART);
    let refused = 0;
    placed(scribe, () => {
      try {
        assertEquals(tryReadInto(reader, small), undefined);
      } catch (error) {
        assert(error instanceof RangeError, `${error}`);
        refused++;
      }
    });
    scribe.frame({ payload: [1] }).publish();
    for (let again = 0; again < 2; again++) {
      assertThrows(() => tryReadInto(reader, small), RangeError, "Cannot read message of 9");
    }
    assert(refused < 2, `${refused}`);
    small.fill(0); // the array is the caller's again
    const target = new Uint8Array(whole.length);
    assertEquals([tryReadInto(reader, target), target], [whole.length, whole]);
    assertEquals(reader.tryRead(), Uint8Array.of(1));
  }
});

Deno.test("what peek lends of a message of unknown size has no total, and no limit", () => {
  const { reader, scribe } = scribed({ capacity: 1024, maxMessageSize: 1 });
  place(scribe, pattern(2 * PART));
  for (const first of [true, false]) {
    const lent = tryPeek(reader)!;
    assertEquals([lent.first, lent.last, lent.size, lent.total], [first, !first, PART, undefined]);
    release(reader);
  }
  assertEquals(tryPeek(reader), undefined);
});
