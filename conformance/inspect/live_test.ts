// A look at memory that others write: whatever they do between two reads, no fault is made up.

import { assert, assertEquals } from "@std/assert";
import { pattern, pipe, utf8, whole } from "../reference/builder.ts";
import { property } from "../reference/builder_many.ts";
import { buildFrame, buildMailbox, put } from "../reference/encode.ts";
import { RingTaker } from "../reference/decode.ts";
import { type LiveMemory, snapshotMailbox, snapshotSegment } from "./live.ts";
import { inspect } from "./mod.ts";

/** Memory in which something happens before each read, and in the middle of long ones. */
function live(bytes: Uint8Array, happen: (read: number) => void): LiveMemory {
  let reads = 0;
  return {
    size: () => bytes.length,
    read: (offset, size) => {
      const end = Math.min(bytes.length, offset + size);
      const pieces: Uint8Array[] = [];
      for (let at = offset; at < end; at += PIECE) {
        happen(reads++);
        pieces.push(bytes.slice(at, Math.min(end, at + PIECE)));
      }
      return Uint8Array.from(pieces.flatMap((piece) => [...piece]));
    },
  };
}

const PIECE = 448;

/** A pipe in which a writer and a reader go on whenever they are told to. */
function busyPipe() {
  const start = 0xffffff00;
  const { bytes, control, data } = pipe({ start, states: [1, 1] });
  const taker = new RingTaker(bytes, { control, data, capacity: 256 });
  let [tail, head, count] = [start, start, 0];
  const place = (frame: Uint8Array) => {
    bytes.set(frame, data + tail % 256);
    tail = (tail + frame.length) % 2 ** 32;
  };
  return {
    bytes,
    data,
    /** One frame of another size each time, if there is room. */
    write() {
      const frame = buildFrame(whole(pattern(16 * (count % 4) + 5, count)));
      const toEnd = 256 - tail % 256;
      const pad = frame.length > toEnd ? toEnd : 0;
      if ((tail - head + 2 ** 32) % 2 ** 32 + pad + frame.length > 240) return;
      count += 1;
      if (pad > 0) place(buildFrame({ kind: 6, payload: new Uint8Array(pad - 16) }));
      place(frame);
      put(bytes, control, "ring_control", "tail", tail);
    },
    take() {
      taker.take();
      head = tail;
    },
  };
}

Deno.test("snapshotSegment shows whole frames, however far both sides go between two reads", () => {
  let shown = 0;
  // Every way in which the steps of both sides can fall before and within the reads, of which the
  // first two are the tables'.
  for (let way = 0; way < 3 ** 6; way++) {
    const { bytes, write, take } = busyPipe();
    const fill = () => Array.from({ length: 8 }, write);
    fill();
    const memory = live(bytes, (read) => {
      const step = Math.floor(way / 3 ** (read - 2)) % 3;
      if (read < 2 || step === 0) return;
      take();
      // With step 2, over the very place where frames stood that were taken just now.
      if (step === 1) write();
      else fill();
    });
    const { fault, channels } = inspect(snapshotSegment(memory));
    assertEquals(fault, null, `way ${way}: ${fault?.fact}`);
    shown += channels![0]!.ring!.message_count;
  }
  assert(shown > 0);
});

Deno.test("a copy of the same memory from front to back shows a fault that is none", () => {
  const { bytes, data, write, take } = busyPipe();
  for (let count = 0; count < 8; count++) write();
  const front = bytes.slice(0, data);
  take();
  for (let count = 0; count < 8; count++) write();
  const copy = Uint8Array.of(...front, ...bytes.slice(data));
  assertEquals(inspect(copy).fault?.code.split(".")[0], "frame");
});

Deno.test("snapshotSegment shows a whole value, however often it is set between two reads", () => {
  // What a copy from front to back shows of the same memory is seldom a value.
  let torn = 0;
  for (let way = 0; way < 2 ** 7; way++) {
    const run = (copy: (memory: LiveMemory) => Uint8Array) => {
      const { bytes, control, slots } = property({ states: [1, 1] });
      let version = 0;
      const set = () => {
        const at = slots[++version % 4]!;
        put(bytes, at, "property_slot", "sequence", version);
        put(bytes, at, "property_slot", "present", 1);
        put(bytes, at, "property_slot", "codec", 1);
        const value = utf8(String.fromCharCode(65 + version % 26).repeat(1 + version % 40));
        put(bytes, at, "property_slot", "size", value.length);
        bytes.set(value, at + 16);
        put(bytes, control, "property_control", "version", version);
      };
      for (let count = 0; count < 5; count++) set();
      const found = inspect(copy(live(bytes, (read) => {
        if (read < 2 || (way >> read - 2 & 1) === 0) return;
        for (let count = 0; count < 5; count++) set();
      })));
      const { slots: all } = found.channels![0]!.property!;
      const last = all.find(({ holds }) => holds === "last")!;
      const is = Array.from({ length: last.sequence }, (_, index) => index + 1).some((each) =>
        last.value.preview === `"${String.fromCharCode(65 + each % 26).repeat(1 + each % 40)}"`
      );
      return is && found.report_count === 0;
    };
    assert(run(snapshotSegment), `way ${way}`);
    if (!run((memory) => memory.read(0, memory.size()))) torn += 1;
  }
  assert(torn > 20, `only ${torn} were torn`);
});

Deno.test("snapshotMailbox shows a part with its own words", () => {
  const bytes = buildMailbox({
    size: 48,
    signal: 1,
    length: 5,
    part_count: 1,
    part: utf8("[111]"),
  });
  const memory = live(bytes, (read) => {
    if (read !== 1) return; // Between the copy and the second look at the words.
    bytes.set(utf8("[2]  "), 32);
    put(bytes, 0, "mailbox_header", "length", 3);
  });
  const found = inspect(snapshotMailbox(memory), { as: "mailbox" });
  assertEquals(found.mailbox!.part!.preview, '"[2]"');
});

Deno.test("snapshotSegment takes memory that is cut short between two reads", () => {
  const { bytes } = pipe({ states: [1, 1], frames: [whole("hi")] });
  for (let most = 0; most < 6; most++) {
    for (const size of [0, 100, 300, 520, 1100]) {
      let reads = 0;
      const memory: LiveMemory = {
        size: () => bytes.length,
        read: (offset, wanted) => {
          const end = reads++ < most ? bytes.length : size;
          return bytes.slice(offset, Math.min(end, offset + wanted));
        },
      };
      assert(snapshotSegment(memory).length <= bytes.length);
    }
  }
});
