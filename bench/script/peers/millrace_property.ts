/**
 * Two of our properties, one for each direction, as a drop box: who asks sets one, and looks again
 * and again at the other.
 *
 * @module
 */
import { SharedProperties } from "../../../impl-ts/src/property/property.ts";
import { readStamp, stamp, valuesOf } from "../payload.ts";
import { type BlockingEnd, both, type Order, PATIENCE_MS, type Peer } from "../peer.ts";

type Box = { there: unknown; back: unknown };

const WAIT = { timeout: PATIENCE_MS };
/** Looks before it sleeps: the other thread is to answer at once. */
const LOOKS = 1_000_000;

const peer: Peer = {
  decline: ({ name }) => name === "dropbox" ? undefined : "holds the latest value, and no others",
  prepare({ size }) {
    const properties = { there: { writer: 0, size }, back: { writer: 1, size } };
    const { memory } = SharedProperties.create<Box>({ properties, endpoint: 2 });
    return both(memory);
  },
  open: boxEnd,
};

/** The peer of this file. */
export const peers = { "millrace-property": peer };

function boxEnd({ gear, role, scenario }: Order): BlockingEnd {
  const [own, far, endpoint] = role === "a"
    ? ["there", "back", 0] as const
    : ["back", "there", 1] as const;
  const box = SharedProperties.attach<Box>(gear as SharedArrayBuffer, { endpoint });
  const reader = box.reader(far);
  const { size } = scenario;
  /** The values, where they are not bytes. */
  const values = scenario.format === "bytes" ? undefined : valuesOf(scenario);
  const bytes = new Uint8Array(size);
  const came = new Uint8Array(reader.capacity);
  const tryReceive = (): number => {
    if (reader.version === reader.seen) return -1;
    if (values !== undefined) return values.numberOf(reader.get());
    if (reader.getInto(came) !== size) throw new Error("Another value came");
    return readStamp(came, 0, size);
  };
  return {
    kind: "blocking",
    send(number) {
      if (values === undefined) stamp(bytes, 0, size, number);
      box.set(own, values?.with(number) ?? bytes);
    },
    receive() {
      for (let looks = 0; looks < LOOKS; looks++) {
        const number = tryReceive();
        if (number >= 0) return number;
      }
      if (!reader.wait(WAIT)) throw new Error("No value came");
      return tryReceive();
    },
    tryReceive,
    close: () => box.close(),
  };
}
