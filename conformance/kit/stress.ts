/**
 * Live runs with random work and delays, for as long as is asked for. A failed run is saved.
 *
 * @module
 */

import { Random } from "./workload.ts";
import type { Arena } from "./arena.ts";
import { liveCase } from "./live_level.ts";
import { type LivePlan, type Part, treeCount } from "./live_plan.ts";
import type { Wait } from "./protocol.ts";
import { type KitCase, PASS } from "./verdict.ts";

const CAPACITIES = [256, 1024, 4096, 65_536];
const WAITS: Wait[] = ["block", "block", "block", "poll", "event"];

/** The one case of the level: runs by seed, one after the other. */
export function stressCases(seed: number, seconds: number, death: string): KitCase<Arena>[] {
  return [{
    id: "stress/random",
    about: `Random work and delays for ${seconds} s, from seed ${seed}.`,
    clauses: ["pipe.order", "wait.store_order", "ring.room"],
    stress: { seed, seconds },
    declinedBy: () => undefined,
    async run(arena) {
      const hellos = [(await arena.connect(0)).hello, (await arena.connect(1)).hello];
      const deadline = performance.now() + seconds * 1000;
      for (let next = seed; performance.now() < deadline; next++) {
        const entry = liveCase(randomPlan(next), death);
        if (hellos.some((hello, at) => entry.declinedBy(hello, at) !== undefined)) continue;
        const result = await entry.run(arena);
        if (result.status !== "pass") {
          return { ...result, why: [`seed ${next}: run again with --seed ${next}`, ...result.why] };
        }
      }
      return PASS;
    },
  }];
}

/** What a seed stands for. */
export function randomPlan(seed: number): LivePlan {
  const random = new Random(seed * 2_654_435_761 >>> 0 || 1);
  for (let index = 0; index < 8; index++) random.next(); // small seeds begin alike
  const pick = <T>(list: readonly T[]): T => list[random.next() % list.length]!;
  const capacity = pick(CAPACITIES);
  const on = pick(["pipe", "pipe", "port", "call"] as const);
  const isLate = random.next() % 2 === 0;
  const plan: LivePlan = {
    id: `stress/${seed}`,
    about: `Random work and delays of seed ${seed}.`,
    clauses: ["pipe.order"],
    on,
    capacity,
    start: isLate ? 2 ** 32 - 16 * (1 + random.next() % 64) : 0,
    spin: pick([0, 0, 50]),
    seed,
    count: 50 + random.next() % Math.max(50, Math.floor(400_000 / capacity)),
    first: on === "call" ? trees() : part(on === "port" ? "drive" : "write"),
    second: on === "call" ? trees() : part(on === "port" ? "echo" : "read"),
  };
  if (on !== "call") return plan;
  plan.first.got = treeCount(plan.first, plan.second);
  plan.second.got = treeCount(plan.second, plan.first);
  return { ...plan, count: plan.first.count! + plan.second.count! };

  function trees(): Part {
    const width = 1 + random.next() % 4;
    const depth = width === 1 ? random.next() % 64 : random.next() % 5;
    const order = { seed: random.next(), depth, width, plain: random.next() % 2 === 0 };
    const wait = pick(["block", "block", "event"] as const);
    const count = random.next() % 30;
    return { role: "tree", wait, then: "end", count, trees: order, end: "ended", got: "all" };
  }

  function part(role: Part["role"]): Part {
    const delays = random.next() % 3 === 0
      ? { delay_us: 50 + random.next() % 2000, delay_every: 4 + random.next() % 60 }
      : {};
    return {
      role,
      // Calls that do not wait take nothing in meanwhile: two of them can block one another.
      wait: pick(on === "port" ? WAITS.filter((wait) => wait !== "poll") : WAITS),
      then: role === "read" || role === "drive" ? "stay" : "end",
      end: role === "write" ? "done" : "ended",
      got: "all",
      ...delays,
    };
  }
}
