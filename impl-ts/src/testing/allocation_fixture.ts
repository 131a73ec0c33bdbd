/**
 * Measures what each verb allocates, for `allocation_test.ts`; runs on its own, with
 * `--v8-flags=--expose-gc,--min-semi-space-size=64,--max-semi-space-size=64`: in so large a nursery
 * little is collected during a run, so that the heap grows by what was allocated.
 *
 * Writes one line of JSON: bytes for each message, by verb.
 */

import { Segment } from "../memory/segment.ts";
import { claim, finish, peek, publish, release, tryClaim, tryPeek } from "../more/lend.ts";
import { readInto, tryReadInto } from "../more/raw.ts";
import { Reader, Writer } from "../pipe/ends.ts";

const COUNT = 1_000_000;
const SIZE = 64;
/** Messages between two times that the reader catches up. */
const BURST = 100;
/** After so many bursts everything is compiled as it stays. */
const WARM_UP = 1_000;
/** Times that the heap is measured. A collection hides what was allocated since the last one. */
const LOOKS = 20;

const { gc } = globalThis as unknown as { gc(): void };

type Pair = { writer: Writer<Uint8Array>; reader: Reader<Uint8Array> };
type Burst = (pair: Pair, message: Uint8Array) => void;

/** Not at a multiple of 4, so that it has no words. */
const ODD = new Uint8Array(SIZE + 1).subarray(1);

/** Has a deadline to compute, which a wait without a limit has not. */
const LONG = { timeout: 1e6 };

/** What one burst is, by verb. Everything that is written is read. */
const verbs: Record<string, Burst> = {
  "write, readInto"({ writer, reader }, message) {
    for (let n = 0; n < BURST; n++) writer.write(message);
    for (let n = 0; n < BURST; n++) readInto(reader, message);
  },
  "tryWrite, tryReadInto"({ writer, reader }, message) {
    for (let n = 0; n < BURST; n++) writer.tryWrite(message);
    for (let n = 0; n < BURST; n++) tryReadInto(reader, message);
  },
  "write, readInto of memory without a view"({ writer, reader }, message) {
    for (let n = 0; n < BURST; n++) writer.write(message);
    for (let n = 0; n < BURST; n++) readInto(reader, ODD);
  },
  "write, readInto that has to wait briefly"({ writer, reader }, message) {
    // The message comes when the reader has looked for it a few times.
    const { words, other } = reader.link.incoming!;
    const { load } = Atomics;
    let looks = 0;
    Atomics.load = ((at: Int32Array, index: number) => {
      if (index === other && at === words && ++looks % 3 === 0) writer.write(message);
      return load(at, index);
    }) as typeof load;
    for (let n = 0; n < BURST; n++) readInto(reader, message, LONG);
    Atomics.load = load;
  },
  "tryReadInto without a message"({ reader }, message) {
    for (let n = 0; n < BURST; n++) tryReadInto(reader, message);
  },
  "claim, publish; peek, release"({ writer, reader }, message) {
    for (let n = 0; n < BURST; n++) {
      const place = claim(writer, SIZE);
      for (let i = 0; i < SIZE; i++) place.area[place.offset + i] = message[i]!;
      publish(writer);
    }
    for (let n = 0; n < BURST; n++) {
      const lent = peek(reader)!;
      for (let i = 0; i < SIZE; i++) message[i] = lent.area[lent.offset + i]!;
      release(reader);
    }
  },
  "tryClaim, finish, publish; tryPeek, release"({ writer, reader }, message) {
    for (let n = 0; n < BURST; n++) {
      const place = tryClaim(writer, SIZE)!;
      place.area[place.offset] = message[0]!;
      finish(writer, SIZE);
    }
    publish(writer);
    for (let n = 0; n < BURST; n++) {
      message[0] = tryPeek(reader)!.size;
      release(reader);
    }
  },
  // What must be seen, or the measurement is blind: a view of each message, a copy, and an object.
  "canary: payload"({ writer, reader }, message) {
    for (let n = 0; n < BURST; n++) writer.write(message);
    for (let n = 0; n < BURST; n++) {
      kept[n] = peek(reader)!.payload;
      release(reader);
    }
  },
  "canary: read"({ writer, reader }, message) {
    for (let n = 0; n < BURST; n++) writer.write(message);
    for (let n = 0; n < BURST; n++) kept[n] = reader.read();
  },
  "canary: one object"({ writer, reader }, message) {
    for (let n = 0; n < BURST; n++) writer.write(message);
    for (let n = 0; n < BURST; n++) kept[n] = { size: readInto(reader, message) };
  },
};

/** Keeps what the canaries make from being optimized away. */
const kept: unknown[] = new Array(BURST).fill(undefined);

/** Bytes that a verb allocates for each message. */
function measure(burst: Burst): number {
  const channel = { writer: 0, reader: 1, capacity: 16 * 1024 };
  const segment = Segment.allocate({ endpoints: 2, channels: [channel] });
  const pair: Pair = {
    writer: Writer.attach(segment, { codec: "bytes" }),
    // With a time to spin it spins from its first wait on, as one whose spins have found something.
    reader: Reader.attach(segment, { spin: 50 }),
  };
  const message = new Uint8Array(SIZE);
  for (let n = 0; n < WARM_UP; n++) burst(pair, message);
  gc();
  let growth = 0;
  let before = heapUsed();
  for (let look = 0; look < LOOKS; look++) {
    for (let n = 0; n < COUNT / LOOKS / BURST; n++) burst(pair, message);
    const after = heapUsed();
    growth += Math.max(0, after - before);
    before = after;
  }
  return growth / COUNT;
}

function heapUsed(): number {
  return Deno.memoryUsage().heapUsed;
}

const result: Record<string, number> = {};
for (const [verb, burst] of Object.entries(verbs)) result[verb] = measure(burst);
console.log(JSON.stringify(result));
