/** Random trees of calls across two threads give what a run without calls gives. */

import { assertEquals } from "@std/assert";
import { type Remote, remote } from "./call.ts";
import { grow, serveTrees, thrownAs, type Trees } from "./tree_fixture.ts";
import { Port } from "../mod.ts";

const isAll = Deno.env.get("MILLRACE_TEST_ALL") === "1";
const COUNT = isAll ? 10_000 : 300;
const DEPTH = 6;
const WAIT = { timeout: 60_000 };

/** Plays trees by one way and compares them with local ones. */
async function play(
  capacity: number,
  callOne: (far: Remote<Trees>, seed: number) => number | Promise<number>,
): Promise<void> {
  const port = Port.create<unknown>({ capacity });
  const url = new URL("./tree_worker_fixture.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  worker.postMessage(port.handoff());
  const counts = serveTrees(port);
  const far = remote<Trees>(port).with(WAIT);
  const seeds = Array.from({ length: COUNT / 2 }, (_, index) => index * 7919 + capacity);
  const local = seeds.map((seed) => thrownAs(() => grow(seed, DEPTH)));
  for (const [index, seed] of seeds.entries()) {
    assertEquals(await callOne(far, seed), local[index], `seed ${seed}`);
  }
  port.close();
  worker.terminate();
  assertEquals(counts.notes >= 0, true);
}

for (const capacity of [256, 16384]) {
  Deno.test(`trees of calls that block give what they give without, in ${capacity} bytes`, () =>
    play(capacity, async (far, seed) => {
      const value = thrownAs(() => far.sync.blocking(seed, DEPTH));
      // What was given up in methods that answer later is answered as the event loop turns.
      await new Promise((resolve) => setTimeout(resolve));
      return value;
    }));

  Deno.test(`trees of promises give what they give without calls, in ${capacity} bytes`, () =>
    play(capacity, async (far, seed) => {
      const value = await far.later(seed, DEPTH).catch((error) => error);
      return typeof value === "number" ? value : thrownAs(() => {
        throw value;
      });
    }));
}
