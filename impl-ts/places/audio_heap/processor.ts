import { Port } from "millrace";
import { release, tryPeek } from "millrace/lend";
import { type PropertyReader, type PropertyWriter, SharedProperties } from "millrace/property";
import { tryReadInto } from "millrace/raw";

/** Messages of one block. */
export const BURST = 100;
const SIZE = 64;

/** Both ends of a port, and memory for a message; and the same for a property. */
interface Pair {
  here: Port<Uint8Array>;
  there: Port<Uint8Array>;
  message: Uint8Array;
  /** Both ends of a property, and its value. */
  writer: PropertyWriter;
  reader: PropertyReader;
  value: Float32Array;
}

/** What a block does, by verb. Everything that is written is read. */
export const VERBS: Readonly<Record<string, (pair: Pair) => void>> = {
  "tryWrite, tryReadInto"({ here, there, message }) {
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
    for (let n = 0; n < BURST; n++) tryReadInto(there, message);
  },
  "tryWrite, tryPeek, release"({ here, there, message }) {
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
    for (let n = 0; n < BURST; n++) {
      const lent = tryPeek(there)!;
      for (let i = 0; i < lent.size; i++) message[i] = lent.area[lent.offset + i]!;
      release(there);
    }
  },
  "tryReadInto, tryPeek without a message"({ there, message }) {
    for (let n = 0; n < BURST / 2; n++) tryReadInto(there, message);
    for (let n = 0; n < BURST / 2; n++) tryPeek(there);
  },
  "tryWrite without room"({ here, message }) {
    while (here.tryWrite(message));
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
  },
  "property: set, getInto"({ writer, reader, value }) {
    for (let n = 0; n < BURST; n++) {
      value[0] = n;
      writer.set(value);
      reader.getInto(value);
    }
  },
  "property: a look at the version"({ reader }) {
    for (let n = 0; n < BURST; n++) if (reader.version === 0) throw new Error("it is set");
  },
  // What must be seen, or the measurement is blind.
  "canary: a view"({ here, there, message }) {
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
    for (let n = 0; n < BURST; n++) {
      kept[n] = tryPeek(there)!.payload;
      release(there);
    }
  },
  "canary: an object"({ here, there, message }) {
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
    for (let n = 0; n < BURST; n++) kept[n] = { size: tryReadInto(there, message) };
  },
};

/** Keeps what the canaries make from being optimized away. */
const kept: unknown[] = new Array(BURST).fill(undefined);

export default function processor({ verb, start }: { verb: string; start: number }): () => void {
  const here = Port.create<Uint8Array>({ capacity: 16 * 1024, codec: "bytes", start });
  const there = Port.attach<Uint8Array>(here.memory);
  const properties = SharedProperties.create({ properties: { knob: { writer: 0 } } });
  const reader = SharedProperties.attach(properties.memory).reader("knob");
  const writer = properties.writer("knob");
  const value = new Float32Array(4);
  writer.set(value);
  const pair = { here, there, message: new Uint8Array(SIZE), writer, reader, value };
  const run = VERBS[verb]!;
  return () => run(pair);
}
