import { assert } from "@std/assert";
import { MillraceError } from "../error.ts";
import { fanoutChannel, FanoutReader, FanoutWriter } from "./fanout.ts";
import { random } from "../testing/fixture.ts";
import { Segment } from "../memory/segment.ts";

const SEED = 20_260;
const ROUNDS = 400;

/** Makes a call on one side while the other side overwrites the memory. */
function tries(call: () => unknown): void {
  try {
    call();
  } catch (error) {
    // Any other error is a defect of this library.
    assert(error instanceof MillraceError, `seed ${SEED}: ${error}`);
  }
}

Deno.test("fanouts: random bytes where the other side writes raise coded errors, and end", () => {
  const next = random(SEED);
  const codes = new Set<unknown>();
  for (let round = 0; round < ROUNDS; round++) {
    const mode = round % 2 === 0 ? "hold" : "lose";
    const channels = [fanoutChannel({ readers: 2, mode, capacity: 256 })];
    const segment = Segment.allocate({ endpoints: 3, channels });
    const { controlOffset, controlSize, dataOffset, dataSize } = segment.channels[0]!;
    const control = segment.words(controlOffset, controlSize);
    const data = segment.words(dataOffset, dataSize);
    const reader = FanoutReader.attach(segment, { oldest: round % 4 === 1, codec: "bytes" });
    const writer = FanoutWriter.attach(segment, { codec: "bytes" });
    for (let step = 0; step < 12; step++) {
      // Mostly a small number, or one near a position, because others are refused at once.
      const value = [next(), next() & 0x1ff, (next() & 0xf0) | (next() & 1)][next() % 3]!;
      const place = next() % 4;
      if (place === 0) control[next() % 3] = value;
      else if (place === 1) control[64 + (next() % 2) * 32 + (next() % 2) * 16] = value;
      else data[next() % data.length] = value;
      tries(() => writer.tryWrite(new Uint8Array(next() % 33)));
      tries(() => writer.write(new Uint8Array(next() % 33), { timeout: 0 }));
      const target = new Uint8Array(256);
      for (let reads = 0; reads < 3; reads++) {
        tries(() => next() % 2 === 0 ? reader.tryRead() : reader.tryReadInto(target));
      }
    }
    try {
      reader.tryRead();
    } catch (error) {
      codes.add((error as MillraceError).code);
    }
    reader.close();
    writer.close();
  }
  assert(codes.size > 3, `only ${[...codes]}`);
});
