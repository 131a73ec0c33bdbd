import { assertEquals } from "@std/assert";
import {
  assertCode,
  NEAR_WRAP,
  pattern,
  type RawFrame,
  Scribe,
  scribed,
  UNKNOWN,
} from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { Port } from "../port/port.ts";
import { Head, packKind } from "./frame.ts";
import { attachEndpoint } from "../wait/endpoint.ts";
import { release, tryPeek } from "../more/lend.ts";
import { tryReadInto, tryReadMessage } from "../more/raw.ts";

const bytes = (size: number) => [...pattern(size)];

/** Reads frames until none is left. Returns an error's code, or how many messages came. */
function outcome(frames: RawFrame[], capacity = 256): string | number {
  const { reader, scribe } = scribed({ capacity });
  for (const frame of frames) scribe.frame(frame);
  scribe.publish();
  let count = 0;
  try {
    while (tryReadMessage(reader) !== undefined) count++;
    return count;
  } catch (error) {
    const { code } = error as { code: string };
    // [pipe.fault] Every later call reports the same, and the peer is marked.
    if (!code.startsWith("message.")) assertCode(() => tryReadMessage(reader), code);
    return code;
  }
}

const first = { flags: 1, total: 5, payload: bytes(3) };
const last = { flags: 2, payload: bytes(2) };

Deno.test("every check of a frame has its code, and its neighbour passes", () => {
  const rows: [string | number, RawFrame[]][] = [
    ["frame.kind", [{ kind: 0 }]],
    ["frame.kind", [{ kind: 7 }]],
    ["frame.kind", [{ kind: 127 }]],
    [0, [{ kind: 128 }]],
    [0, [{ kind: 255, flags: 0xff, codec: 9, reserved: 7, payload: bytes(20) }]],
    [1, [{ kind: 1 }]],
    ["message.kind", [{ kind: 3 }]],
    ["message.kind", [{ kind: 5 }]],
    ["frame.reserved", [{ reserved: 1 }]],
    ["frame.reserved", [{ kind: 2, flags: 0, reserved: 1 }]],
    ["frame.reserved", [{ kind: 6, flags: 0, reserved: 128, payload: bytes(240) }]],
    ["frame.flags", [{ kind: 2, flags: 1 }]],
    ["frame.flags", [{ kind: 6, flags: 3, payload: bytes(240) }]],
    ["frame.flags", [{ flags: 4 }]],
    ["frame.flags", [{ flags: 5 }]],
    ["frame.flags", [{ flags: 7 }]],
    ["frame.flags", [{ flags: 16 }]],
    ["frame.flags", [{ kind: 2, flags: 8 }]],
    ["frame.flags", [{ kind: 6, flags: 8, payload: bytes(240) }]],
    ["frame.flags", [first, { flags: 14, extension: 16 }]],
    ["frame.flags", [{ flags: 131 }]],
    ["frame.flags", [{ codec: 3, flags: 1, total: 5 }]],
    ["frame.flags", [{ codec: 3, flags: 6 }]],
    [1, [{ codec: 3, flags: 3, payload: [0x5b, 0x31, 0x5d] }]],
    ["frame.size", [{ size: 1 }]],
    ["frame.size", [{ size: 0xffffffff }]],
    ["frame.size", [{ size: 0xfffffff0 }]],
    ["frame.size", [{ size: 0x7fffffff }]],
    [1, [{ payload: bytes(112) }]],
    ["frame.size", [{ payload: bytes(113) }]],
    ["frame.size", [{ kind: 130, payload: bytes(113) }]],
    ["frame.pad", [{ kind: 6, flags: 0 }]],
    ["frame.pad", [{ kind: 6, flags: 0, payload: bytes(224) }]],
    [0, [{ kind: 6, flags: 0, payload: bytes(240) }]],
    [0, [{ kind: 6, flags: 0, payload: bytes(225) }]],
    [0, [{ kind: 6, flags: 0, codec: 9, tag: 9, payload: bytes(240) }]],
    ["frame.size", [{ kind: 2, flags: 0, payload: bytes(1) }]],
    [0, [{ kind: 2, flags: 0, codec: 7, tag: 9 }]],
    [1, [first, last]],
    ["message.cancelled", [first, { flags: 6 }]],
    ["frame.size", [first, { flags: 6, payload: [1] }]],
    ["frame.size", [{ flags: 1, payload: bytes(15) }]],
    ["frame.size", [first, { flags: 0 }]],
    ["frame.size", [first, { flags: 2 }]],
    ["frame.sequence", [last]],
    ["frame.sequence", [{ flags: 0, payload: [1] }]],
    ["frame.sequence", [{ flags: 6 }]],
    ["frame.sequence", [first, first]],
    ["frame.sequence", [first, {}]],
    ["frame.sequence", [first, { ...last, codec: 1 }]],
    ["frame.sequence", [first, { ...last, tag: 1 }]],
    ["frame.sequence", [first, { ...last, kind: 3 }]],
    ["frame.sequence", [first, { flags: 6, tag: 1 }]],
    ["frame.reserved", [{ flags: 1, payload: [...bytes(8).fill(0), 1, 0, 0, 0, 0, 0, 0, 0] }]],
    ["frame.reserved", [{ flags: 1, payload: [...bytes(15).fill(0), 1] }]],
    ["frame.total", [{ flags: 1, total: 2, payload: bytes(3) }]],
    ["frame.total", [first, { flags: 0, payload: bytes(3) }]],
    ["frame.total", [first, { flags: 2, payload: bytes(1) }]],
    ["frame.total", [first, { flags: 2, payload: bytes(3) }]],
    [1, [first, { kind: 200 }, { flags: 0, payload: [1] }, { flags: 2, payload: [2] }]],
    ["message.cancelled", [{ flags: 1, total: 5 }, { flags: 6 }]],
    ["message.size", [{ flags: 1, total: 0xffffffff, payload: bytes(3) }]],
    [1, [{ flags: 11, extension: 16 }]],
    [1, [{ flags: 11, extension: 48, payload: bytes(5) }]],
    [1, [{ codec: 3, flags: 11, extension: 16, payload: [0x5b, 0x31, 0x5d] }]],
    ["frame.extension", [{ flags: 11 }]],
    ["frame.extension", [{ flags: 11, payload: [15, 0, 0, 0, ...bytes(11)] }]],
    ["frame.extension", [{ flags: 11, extension: 0, payload: bytes(40) }]],
    ["frame.extension", [{ flags: 11, extension: 8, payload: bytes(40) }]],
    ["frame.extension", [{ flags: 11, extension: 24 }]],
    ["frame.extension", [{ flags: 11, extension: 0x80000000 }]],
    ["frame.extension", [{ flags: 11, payload: [32, 0, 0, 0, ...bytes(12)] }]],
    [1, [{ ...first, flags: 9, extension: 32 }, { ...last, flags: 10, extension: 16 }]],
    ["frame.size", [{ flags: 9, extension: 16, payload: bytes(15) }]],
    ["frame.size", [first, { flags: 10, extension: 16 }]],
    ["frame.total", [first, { flags: 8, extension: 16, payload: bytes(3) }]],
    [1, [{ ...first, total: UNKNOWN }, { ...last, payload: bytes(9) }]],
    ["message.cancelled", [{ ...first, total: UNKNOWN }, { flags: 6 }]],
    ["frame.size", [{ ...first, total: UNKNOWN }, { flags: 2 }]],
  ];
  for (const [expected, frames] of rows) {
    assertEquals(outcome(frames), expected, JSON.stringify(frames));
  }
});

Deno.test("a frame must end within the byte area, and within what is published", () => {
  const before = (): RawFrame[] => [{ payload: bytes(112) }, { payload: bytes(80) }];
  assertEquals(outcome([...before(), { payload: bytes(16) }]), 3);
  assertEquals(outcome([...before(), { kind: 6, flags: 0, payload: bytes(16) }]), 2);
  const { reader, scribe } = scribed();
  scribe.frame({ payload: bytes(112) }).frame({ payload: bytes(80) }).publish();
  tryReadMessage(reader);
  tryReadMessage(reader);
  scribe.frame({ payload: bytes(17) }).publish(); // it goes around the end of the area
  assertCode(() => tryReadMessage(reader), "frame.size");
});

Deno.test("the checks come in the order of the table", () => {
  const all: RawFrame = { kind: 7, reserved: 1, flags: 16, size: 0xffff, tag: 1 };
  assertEquals(outcome([all]), "frame.kind");
  assertEquals(outcome([{ ...all, kind: 1 }]), "frame.reserved");
  assertEquals(outcome([{ ...all, kind: 1, reserved: 0 }]), "frame.flags");
  assertEquals(outcome([{ ...all, kind: 1, reserved: 0, flags: 2 }]), "frame.size");
  assertEquals(outcome([{ ...all, kind: 1, reserved: 0, flags: 2, size: 0 }]), "frame.size");
  assertEquals(outcome([{ kind: 6, flags: 0, size: 0xffff }]), "frame.size");
  // Also with the flags of a later frame: no message is in progress.
  const extended: RawFrame = { flags: 8, extension: 8 };
  assertEquals(outcome([{ ...extended, size: 0xffff }]), "frame.size");
  assertEquals(outcome([extended]), "frame.extension");
  assertEquals(outcome([{ ...extended, extension: 16 }]), "frame.size");
  assertEquals(outcome([{ ...extended, extension: 16, payload: [1] }]), "frame.sequence");
});

Deno.test("[frame.skip_extension] counts to no size, whichever call takes the message", () => {
  const { reader, scribe } = scribed({ capacity: 1024, maxMessageSize: 4 });
  const whole: RawFrame = { flags: 11, extension: 32, payload: [1, 2, 3, 4] };
  for (let index = 0; index < 4; index++) scribe.frame(whole);
  scribe.frame({ flags: 9, extension: 16, total: 3, payload: [5] });
  scribe.frame({ flags: 10, extension: 48, payload: [6, 7] });
  scribe.frame(whole).publish();
  const target = new Uint8Array(4);
  assertEquals(reader.tryRead(), Uint8Array.of(1, 2, 3, 4));
  assertEquals(tryReadMessage(reader)?.payload, Uint8Array.of(1, 2, 3, 4));
  assertEquals([tryReadInto(reader, target), target], [4, Uint8Array.of(1, 2, 3, 4)]);
  for (const [total, ...part] of [[4, 1, 2, 3, 4], [3, 5], [3, 6, 7]]) {
    const lent = tryPeek(reader)!;
    assertEquals([lent.payload, lent.size, lent.total], [
      Uint8Array.from(part),
      part.length,
      total,
    ]);
    release(reader);
  }
  assertEquals(reader.tryRead(), Uint8Array.of(1, 2, 3, 4));
  assertEquals(reader.tryRead(), undefined);
});

Deno.test("[frame.skip_extension] so do the inbox and the events of a port", async () => {
  const here = Port.create<Uint8Array>({ capacity: 256, codec: "bytes" });
  attachEndpoint(here.segment, 1);
  const scribe = new Scribe(here.segment, 1);
  const extended: RawFrame = { flags: 11, extension: 16, payload: [1, 2] };
  while (here.tryWrite(pattern(100)));
  scribe.frame(extended).publish();
  // While the write waits for room, it takes the message into the inbox.
  assertCode(() => here.write(pattern(100), { timeout: 1 }), "wait.timeout");
  assertEquals(here.tryRead(), Uint8Array.of(1, 2));
  scribe.frame(extended).publish();
  const came = await new Promise((resolve) => here.onmessage = ({ data }) => resolve(data));
  assertEquals(came, Uint8Array.of(1, 2));
  here.close();
});

Deno.test("an oversized message is skipped without its sum, and the next one arrives", () => {
  const { reader, scribe } = scribed({ maxMessageSize: 4 });
  scribe.frame(first).frame({ flags: 0, payload: bytes(40) }).frame({ flags: 2, payload: [1] });
  scribe.frame({ payload: [1, 2, 3, 4] }).frame({ payload: bytes(5) });
  scribe.publish();
  assertCode(() => tryReadMessage(reader), "message.size");
  assertEquals(tryReadMessage(reader)?.payload, Uint8Array.of(1, 2, 3, 4));
  assertCode(() => tryReadMessage(reader), "message.size");
  scribe.frame(first).frame({ flags: 6 }).frame({ payload: [9] }).publish();
  assertCode(() => tryReadMessage(reader), "message.size");
  assertEquals(tryReadMessage(reader)?.payload, Uint8Array.of(9)); // the cancel is not reported
});

Deno.test("nothing after an end is read", () => {
  const { reader, scribe } = scribed({ start: NEAR_WRAP });
  scribe.frame({ payload: [1] }).frame({ kind: 2, flags: 0 }).frame({ kind: 0 }).publish();
  assertEquals(tryReadMessage(reader)?.payload, Uint8Array.of(1));
  for (let i = 0; i < 3; i++) {
    assertEquals([tryReadMessage(reader), reader.ended], [undefined, true]);
  }
});

Deno.test("an end inside a message reports it as truncated, once, and then the end", () => {
  const { reader, scribe } = scribed();
  scribe.frame(first).frame({ kind: 2, flags: 0 }).publish();
  assertCode(() => tryReadMessage(reader), "message.truncated");
  assertEquals([tryReadMessage(reader), reader.ended], [undefined, true]);
});

Deno.test("the second word of a header has its fields where the layout has them", () => {
  const offsets = [
    layout.FRAME_KIND_OFFSET,
    layout.FRAME_FLAGS_OFFSET,
    layout.FRAME_CODEC_OFFSET,
    layout.FRAME_RESERVED_OFFSET,
  ];
  assertEquals(
    offsets.map((offset) => 8 * (offset - 4)),
    [0, Head.FLAGS_SHIFT, Head.CODEC_SHIFT, Head.RESERVED_SHIFT],
  );
  assertEquals(Head.WHOLE, layout.FRAME_FLAG_FIRST | layout.FRAME_FLAG_LAST);
  assertEquals(Head.WHOLE_DATA, packKind(layout.FRAME_KIND_DATA, Head.WHOLE, 0));
});
