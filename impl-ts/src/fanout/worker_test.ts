import { assert, assertEquals } from "@std/assert";
import { fanoutChannel, type FanoutMode, FanoutReader, LostError } from "./fanout.ts";
import type { FanoutTask } from "./worker_fixture.ts";
import { NEAR_WRAP } from "../testing/fixture.ts";
import { Segment } from "../memory/segment.ts";

const COUNT = 8_000;
const LARGEST = 200;
const WAIT = { timeout: 60_000 };

/**
 * Reads all that a worker writes, whole and in order. Returns how many messages it got and lost.
 */
async function stress(mode: FanoutMode, capacity: number): Promise<{ got: number; lost: number }> {
  const start = NEAR_WRAP - 128;
  const channels = [fanoutChannel({ readers: 1, mode, capacity, start })];
  const segment = Segment.allocate({ endpoints: 2, channels });
  using reader = FanoutReader.attach(segment);
  const worker = new Worker(new URL("./worker_fixture.ts", import.meta.url), {
    type: "module",
  });
  const said = new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      resolve(event.message);
    };
  });
  try {
    const memory = segment.memory as SharedArrayBuffer;
    worker.postMessage({ memory, count: COUNT, largest: LARGEST } satisfies FanoutTask);
    const target = new Uint8Array(LARGEST);
    let got = 0;
    for (let expected = 0; !reader.ended;) {
      try {
        const size = reader.readInto(target, WAIT);
        if (size === undefined) break;
        const number = new DataView(target.buffer).getUint32(0);
        assertEquals([number, reader.tag], [expected, expected]);
        const isWhole = target.subarray(4, size).every((byte) => byte === (number & 0xff));
        assert(isWhole, `message ${number} is torn`);
        expected++;
        got++;
      } catch (error) {
        if (!(error instanceof LostError)) throw error;
        expected += error.count;
      }
    }
    assert(reader.ended, "the end did not come");
    assertEquals(await said, "done");
    return { got, lost: reader.lost };
  } finally {
    worker.terminate();
  }
}

Deno.test("FanoutReader in two threads: mode hold, every message comes, in order", async () => {
  assertEquals(await stress("hold", 1024), { got: COUNT, lost: 0 });
});

Deno.test("FanoutReader in two threads: mode lose, none is torn or lost uncounted", async () => {
  const { got, lost } = await stress("lose", 1024);
  assertEquals(got + lost, COUNT);
  assert(got > 0);
});
