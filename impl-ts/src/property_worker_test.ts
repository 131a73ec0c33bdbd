// One thread sets without a pause, and another gets: no value is half one and half another.

import { assert, assertEquals } from "@std/assert";
import { propertyChannel, PropertyReader } from "./property.ts";
import type { PropertyTask } from "./property_worker_fixture.ts";
import { Segment } from "./segment.ts";
import { failEndpoint } from "./wait_state.ts";

const ALL = Deno.env.get("MILLRACE_TEST_ALL") === "1";
const READS = ALL ? 100_000_000 : 1_000_000;
const READERS = 3;
/** Reads that must find another value than before: otherwise nothing was shown. */
const CHANGES = 1000;
const LONG = { timeout: 20_000 };

/** Readers in this thread, and a writer in a worker, which has attached. */
async function start(mode: PropertyTask["mode"]) {
  const channels = [propertyChannel({ writer: 0, size: 240 })];
  const segment = Segment.allocate({ endpoints: 1 + READERS, channels });
  const memory = segment.memory as SharedArrayBuffer;
  const readers = Array.from(
    { length: READERS },
    (_, index) => PropertyReader.attach(segment, { endpoint: index + 1 }),
  );
  const stop = new SharedArrayBuffer(4);
  const url = new URL("./property_worker_fixture.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  const said: unknown[] = [];
  let heard = () => {};
  worker.onmessage = ({ data }) => {
    said.push(data);
    heard();
  };
  const says = async (count: number) => {
    while (said.length < count) await new Promise<void>((resolve) => heard = resolve);
    return said[count - 1];
  };
  worker.postMessage({ memory, stop, mode } satisfies PropertyTask);
  assertEquals(await says(1), "attached");
  const end = async () => {
    Atomics.store(new Int32Array(stop), 0, 1);
    const count = await says(2);
    worker.terminate();
    return count;
  };
  return { segment, readers, worker, end };
}

/** How many of the words are not the first of them; the size is that of the value's number. */
function tornIn(target: Int32Array, size: number): number {
  const [n = 0] = target;
  let wrong = size >> 2 === (n >>> 0) % 60 + 1 ? 0 : 1;
  for (let index = 1; index < size >> 2; index++) if (target[index] !== n) wrong++;
  return wrong;
}

Deno.test(`PropertyReader.getInto: no value is torn in ${READS} reads`, async () => {
  const { readers, end } = await start("flood");
  const target = new Int32Array(60);
  let torn = 0;
  let changes = 0;
  assert(readers[0]!.wait(LONG));
  // Where one processor has both threads, a turn of the other is long.
  const until = performance.now() + LONG.timeout;
  const isEnough = (count: number) =>
    changes >= CHANGES || count % 1024 === 0 && performance.now() > until;
  for (let count = 0; count < READS || !isEnough(count); count++) {
    const reader = readers[count % READERS]!;
    const before = reader.seen;
    const size = reader.getInto(target)!;
    torn += tornIn(target, size);
    if (reader.seen !== before) changes++;
  }
  const sets = await end();
  assertEquals(torn, 0);
  assert(changes >= CHANGES, `only ${changes} reads found another value`);
  console.log(`  ${READS} reads, ${changes} of another value than before, ${sets} sets`);
});

Deno.test("the value of a worker that was terminated stays, and is whole", async () => {
  const { segment, readers, worker, end: _ } = await start("bursts");
  const target = new Int32Array(60);
  const [reader, other] = readers as [PropertyReader, PropertyReader];
  assert(reader.wait(LONG));
  reader.getInto(target);
  assert(reader.wait(LONG)); // in the middle of its work
  worker.terminate();
  failEndpoint(segment, 0, "peer.terminated");
  // It ends at its next turn of the loop at the latest.
  for (let before = -1; before !== reader.version;) {
    before = reader.version;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  for (let n = 0; n < 100; n++) {
    const size = other.getInto(target)!;
    assertEquals([tornIn(target, size), other.seen], [0, reader.version]);
  }
});
