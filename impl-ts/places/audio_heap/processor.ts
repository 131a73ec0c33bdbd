import { Port } from "millrace";

/** Messages of one block. */
export const BURST = 100;
const SIZE = 64;

/** Both ends of a port, and memory for a message. */
interface Pair {
  here: Port<Uint8Array>;
  there: Port<Uint8Array>;
  message: Uint8Array;
}

/** What a block does, by verb. Everything that is written is read. */
export const VERBS: Readonly<Record<string, (pair: Pair) => void>> = {
  "tryWrite, tryReadInto"({ here, there, message }) {
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
    for (let n = 0; n < BURST; n++) there.tryReadInto(message);
  },
  "tryWrite, tryPeek, release"({ here, there, message }) {
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
    for (let n = 0; n < BURST; n++) {
      const lent = there.tryPeek()!;
      for (let i = 0; i < lent.size; i++) message[i] = lent.area[lent.offset + i]!;
      there.release();
    }
  },
  "tryReadInto, tryPeek without a message"({ there, message }) {
    for (let n = 0; n < BURST / 2; n++) there.tryReadInto(message);
    for (let n = 0; n < BURST / 2; n++) there.tryPeek();
  },
  "tryWrite without room"({ here, message }) {
    while (here.tryWrite(message));
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
  },
  // What must be seen, or the measurement is blind.
  "canary: a view"({ here, there, message }) {
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
    for (let n = 0; n < BURST; n++) {
      kept[n] = there.tryPeek()!.payload;
      there.release();
    }
  },
  "canary: an object"({ here, there, message }) {
    for (let n = 0; n < BURST; n++) here.tryWrite(message);
    for (let n = 0; n < BURST; n++) kept[n] = { size: there.tryReadInto(message) };
  },
};

/** Keeps what the canaries make from being optimized away. */
const kept: unknown[] = new Array(BURST).fill(undefined);

export default function processor({ verb, start }: { verb: string; start: number }): () => void {
  const here = Port.create<Uint8Array>({ capacity: 16 * 1024, codec: "bytes", start });
  const there = Port.attach<Uint8Array>(here.memory);
  const pair = { here, there, message: new Uint8Array(SIZE) };
  const run = VERBS[verb]!;
  return () => run(pair);
}
