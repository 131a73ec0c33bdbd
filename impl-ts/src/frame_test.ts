import { assertEquals } from "@std/assert";
import { assertCode, NEAR_WRAP, type RawFrame, scribed } from "./fixture.ts";
import { pattern } from "./fixture.ts";

const bytes = (size: number) => [...pattern(size)];

/** Reads frames until nothing is left, and returns the code or how many messages came. */
function outcome(frames: RawFrame[], capacity = 256): string | number {
  const { reader, scribe } = scribed({ capacity });
  for (const frame of frames) scribe.frame(frame);
  scribe.publish();
  let count = 0;
  try {
    while (reader.tryReadMessage() !== undefined) count++;
    return count;
  } catch (error) {
    const { code } = error as { code: string };
    // [pipe.fault] The same from every later call, and the peer is marked.
    if (!code.startsWith("message.")) assertCode(() => reader.tryReadMessage(), code);
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
    ["frame.flags", [{ flags: 8 }]],
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
  reader.tryReadMessage();
  reader.tryReadMessage();
  scribe.frame({ payload: bytes(17) }).publish(); // published, but around the end
  assertCode(() => reader.tryReadMessage(), "frame.size");
});

Deno.test("the checks come in the order of the table", () => {
  const all: RawFrame = { kind: 7, reserved: 1, flags: 8, size: 0xffff, tag: 1 };
  assertEquals(outcome([all]), "frame.kind");
  assertEquals(outcome([{ ...all, kind: 1 }]), "frame.reserved");
  assertEquals(outcome([{ ...all, kind: 1, reserved: 0 }]), "frame.flags");
  assertEquals(outcome([{ ...all, kind: 1, reserved: 0, flags: 2 }]), "frame.size");
  assertEquals(outcome([{ ...all, kind: 1, reserved: 0, flags: 2, size: 0 }]), "frame.size");
  assertEquals(outcome([{ kind: 6, flags: 0, size: 0xffff }]), "frame.size");
});

Deno.test("an oversized message is skipped without its sum, and the next one arrives", () => {
  const { reader, scribe } = scribed({ maxMessageSize: 4 });
  scribe.frame(first).frame({ flags: 0, payload: bytes(40) }).frame({ flags: 2, payload: [1] });
  scribe.frame({ payload: [1, 2, 3, 4] }).frame({ payload: bytes(5) });
  scribe.publish();
  assertCode(() => reader.tryReadMessage(), "message.size");
  assertEquals(reader.tryReadMessage()?.payload, Uint8Array.of(1, 2, 3, 4));
  assertCode(() => reader.tryReadMessage(), "message.size");
  scribe.frame(first).frame({ flags: 6 }).frame({ payload: [9] }).publish();
  assertCode(() => reader.tryReadMessage(), "message.size");
  assertEquals(reader.tryReadMessage()?.payload, Uint8Array.of(9)); // the cancel is not reported
});

Deno.test("nothing behind an end is read", () => {
  const { reader, scribe } = scribed({ start: NEAR_WRAP });
  scribe.frame({ payload: [1] }).frame({ kind: 2, flags: 0 }).frame({ kind: 0 }).publish();
  assertEquals(reader.tryReadMessage()?.payload, Uint8Array.of(1));
  for (let i = 0; i < 3; i++) {
    assertEquals([reader.tryReadMessage(), reader.ended], [undefined, true]);
  }
});

Deno.test("an end inside a message reports it as truncated, once, and then the end", () => {
  const { reader, scribe } = scribed();
  scribe.frame(first).frame({ kind: 2, flags: 0 }).publish();
  assertCode(() => reader.tryReadMessage(), "message.truncated");
  assertEquals([reader.tryReadMessage(), reader.ended], [undefined, true]);
});
