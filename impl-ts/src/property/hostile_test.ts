/** The writer stores any value anywhere: each call returns, or throws a documented code. */

import { assert, assertEquals } from "@std/assert";
import { MillraceError } from "../error.ts";
import { random } from "../testing/fixture.ts";
import { propertyChannel, PropertyError, PropertyReader } from "./property.ts";
import { Segment } from "../memory/segment.ts";

const ROUNDS = Deno.env.get("MILLRACE_TEST_ALL") === "1" ? 200_000 : 4_000;
const CODES = [
  ...["property.slot", "property.busy", "message.text", "message.json", "message.codec"],
  ...["peer.closed", "peer.failed", "pipe.closed", "pipe.failed"],
];
/** Bytes on both sides of the segment that no call may touch. */
const GUARD = 4096;

function make() {
  const geometry = {
    endpoints: 2,
    channels: [
      propertyChannel({ writer: 0, name: "p" }),
      propertyChannel({ writer: 0, size: 300 }),
    ],
  };
  const { size } = Segment.allocate(geometry);
  const buffer = new SharedArrayBuffer(size + 2 * GUARD);
  new Uint8Array(buffer).fill(0xa5);
  const segment = Segment.format({ buffer, byteOffset: GUARD, byteLength: size }, geometry);
  return { segment, buffer, size };
}

Deno.test("PropertyReader: any bytes in the areas give a value or a documented code", () => {
  const next = random(20);
  const seen = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++) {
    const { segment, buffer, size } = make();
    const which = round % 2;
    const { controlOffset, controlSize, dataOffset, dataSize } = segment.channels[which]!;
    const control = segment.words(controlOffset, controlSize);
    const data = segment.words(dataOffset, dataSize);
    const reader = PropertyReader.attach(segment, { property: which, spin: 0 });
    for (let step = 0; step < 6; step++) {
      const version = next() % 3 === 0 ? next() : next() % 9;
      const slot = (version & 3) * (data.length / 4);
      control[0] = version;
      if (next() % 8 !== 0) data[slot] = version;
      data[slot + 1] = next() % 4 === 0 ? next() : next() % 20;
      data[slot + 2] = next() % 3 === 0 ? next() : 1 | (next() % 7) << 8;
      data[slot + 3] = next() % 8 === 0 ? next() : 0;
      data[slot + 4] = next() % 2 === 0 ? next() : 0x5d315b; // the bytes `[1]`
      if (next() % 4 === 0) control[next() % control.length] = next();
      for (const call of [() => reader.get(), () => reader.getInto(new Uint8Array(368))]) {
        try {
          call();
          seen.set("ok", (seen.get("ok") ?? 0) + 1);
        } catch (error) {
          assert(error instanceof MillraceError && CODES.includes(error.code), String(error));
          seen.set(error.code, (seen.get(error.code) ?? 0) + 1);
        }
      }
    }
    reader.close();
    const edges = [new Uint8Array(buffer, 0, GUARD), new Uint8Array(buffer, GUARD + size)];
    if (round % 100 === 0) {
      for (const edge of edges) assert(edge.every((byte) => byte === 0xa5));
    }
  }
  for (const code of ["ok", "property.slot", "message.json", "message.codec"]) {
    assert((seen.get(code) ?? 0) > ROUNDS / 50, `${code}: ${seen.get(code)}`);
  }
});

Deno.test("PropertyReader: a writer that overtakes it each time is property.busy", () => {
  const { segment } = make();
  const { controlOffset, dataOffset, dataSize } = segment.channels[0]!;
  const control = segment.words(controlOffset, 128);
  const data = segment.words(dataOffset, dataSize);
  const reader = PropertyReader.attach(segment);
  const { load, or } = Atomics;
  let tries = 0;
  try {
    // Between two steps of the reader, the slot gets another number, and the version moves on.
    Atomics.or = ((words: Int32Array, index: number, value: number) => {
      tries++;
      const found = or(words, index, value);
      control[0]!++;
      return found;
    }) as typeof Atomics.or;
    control[0] = 1;
    data.fill(0);
    const error = (() => {
      try {
        return reader.getInto(new Uint8Array(112));
      } catch (error) {
        return error;
      }
    })();
    assert(error instanceof PropertyError);
    assertEquals([error.code, tries], ["property.busy", 1024]); // [property.again]
  } finally {
    Object.assign(Atomics, { load, or });
  }
  control[0] = 0;
  assertEquals(reader.get(), null);
});
