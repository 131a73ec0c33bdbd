// One thread sets without a pause, or dies at any store, while others get: no value is partly old
// and partly new.

import { assert, assertEquals } from "@std/assert";
import { propertyChannel, PropertyReader } from "./property.ts";
import { isTorn, type PropertyTask, type Read, WORDS } from "./worker_fixture.ts";
import { Segment } from "../memory/segment.ts";
import { failEndpoint } from "../wait/state.ts";

const ALL = Deno.env.get("MILLRACE_TEST_ALL") === "1";
/** The number of reads of all readers together. */
const READS = ALL ? 100_000_000 : 1_000_000;
const READERS = 3;
/** How many reads of each reader must find a new value; with fewer, the test has shown nothing. */
const CHANGES = 300;
/** The sizes in words of the values at whose stores the writer dies. */
const SIZES = ALL ? Array.from({ length: WORDS }, (_, index) => index + 1) : [1, 6, WORDS];
/** The number of stores of a set, besides those of the words of its value. */
const STORES = 6;
const LONG = { timeout: 20_000 };

type Wish<T> = T extends unknown ? Omit<T, "memory" | "flags"> : never;

/** A property in memory that workers share. */
class Place {
  readonly segment: Segment;
  readonly flags = new SharedArrayBuffer(4 * (2 + READERS));
  readonly #workers: Worker[] = [];

  constructor() {
    const channels = [propertyChannel({ writer: 0, size: 4 * WORDS })];
    this.segment = Segment.allocate({ endpoints: 1 + READERS, channels });
  }

  /** Starts a worker. Yields its messages. */
  start(task: Wish<PropertyTask>): AsyncGenerator<unknown> & { worker: Worker } {
    const url = new URL("./worker_fixture.ts", import.meta.url);
    const worker = new Worker(url, { type: "module" });
    this.#workers.push(worker);
    const memory = this.segment.memory as SharedArrayBuffer;
    worker.postMessage({ ...task, memory, flags: this.flags } as PropertyTask);
    return Object.assign(heard(worker), { worker });
  }

  /** Starts all readers, which make `READS` reads altogether. */
  read(changes: number): Promise<Read[]> {
    const reads = Math.ceil(READS / READERS);
    const starts = Array.from({ length: READERS }, (_, index) => {
      const said = this.start({ mode: "read", endpoint: index + 1, reads, changes });
      return next<Read>(said);
    });
    return Promise.all(starts);
  }

  end(): void {
    for (const worker of this.#workers) worker.terminate();
  }
}

async function* heard(worker: Worker): AsyncGenerator<unknown> {
  const queue: unknown[] = [];
  let wake = () => {};
  let failure: Error | undefined;
  worker.onmessage = ({ data }) => (queue.push(data), wake());
  worker.onerror = (event) => {
    event.preventDefault();
    failure = new Error(event.message);
    wake();
  };
  for (;;) {
    while (queue.length === 0 && failure === undefined) {
      await new Promise<void>((resolve) => wake = resolve);
    }
    if (failure !== undefined) throw failure;
    yield queue.shift();
  }
}

async function next<T = unknown>(said: AsyncGenerator<unknown>): Promise<T> {
  return (await said.next()).value as T;
}

/** Checks and prints what the readers have found. */
function judge(found: Read[], what: string): void {
  const sum = (of: (read: Read) => number) => found.reduce((before, read) => before + of(read), 0);
  const changes = found.map((read) => read.changes);
  const reads = sum((read) => read.reads);
  assertEquals(sum(({ torn }) => torn), 0);
  assert(reads >= READS, `only ${reads} reads`);
  console.log(`  ${reads} reads by ${READERS} threads, ${changes} of another value, ${what}`);
}

Deno.test(`no value is torn in ${READS} reads by ${READERS} threads at full speed`, async () => {
  const place = new Place();
  try {
    const writer = place.start({ mode: "flood" });
    assertEquals(await next(writer), "attached");
    const found = await place.read(CHANGES);
    Atomics.store(new Int32Array(place.flags), 0, 1);
    judge(found, `${await next(writer)} sets`);
    for (const { changes } of found) assert(changes >= CHANGES, `only ${changes} changes`);
  } finally {
    place.end();
  }
});

Deno.test(`no value is torn in ${READS} reads, and the writer dies at every store`, async () => {
  const place = new Place();
  try {
    const writer = place.start({ mode: "deaths", sizes: SIZES });
    assertEquals(await next(writer), "attached");
    const [found, deaths] = await Promise.all([place.read(1), next<number>(writer)]);
    judge(found, `${deaths} deaths`);
    const least = SIZES.reduce((sum, size) => sum + STORES + size, 0);
    assert(deaths >= least, `only ${deaths} deaths, of ${least} stores`);
  } finally {
    place.end();
  }
});

Deno.test("the value of a worker that was terminated stays, and is whole", async () => {
  const place = new Place();
  const { segment } = place;
  try {
    const writer = place.start({ mode: "bursts" });
    assertEquals(await next(writer), "attached");
    const target = new Int32Array(WORDS);
    const [reader, other] = [1, 2].map((endpoint) => PropertyReader.attach(segment, { endpoint }));
    assert(reader!.wait(LONG));
    reader!.getInto(target);
    assert(reader!.wait(LONG)); // the writer is in the middle of its work
    writer.worker.terminate();
    failEndpoint(segment, 0, "peer.terminated");
    // The worker ends at the next turn of its event loop at the latest.
    for (let before = -1; before !== reader!.version;) {
      before = reader!.version;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    for (let n = 0; n < 100; n++) {
      const size = other!.getInto(target)!;
      assert(!isTorn(target, size, other!.seen));
      assertEquals(other!.seen, reader!.version);
    }
  } finally {
    place.end();
  }
});
