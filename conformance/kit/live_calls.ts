/**
 * The live runs that every pair of testees must do that offers calls: both make trees of calls at
 * once, which call back, fail and are given up, and serve those of the other.
 *
 * @module
 */

import { type LivePlan, type Part, treeCount, type Trees } from "./live_plan.ts";

/** Just below 2^32, so that both cursors wrap among the first calls. */
const LATE_START = 2 ** 32 - 128;
/** More than anybody makes before it is stopped. */
const ENDLESS = 100_000;
/** Calls that stand within one another, from each of the two sides. */
const DEEP = 64;

const WAITING = ["call.serve_waiting", "call.takes_in", "wait.mechanism", "wait.recheck"];
const ANSWERS = ["call.answer", "call.match", "call.once", "call.refused", "call.thrown"];
const GIVEN_UP = ["call.give_up", "call.cancelled", "call.late"];

/** A seed for each part, counted up. */
let seeds = 100;

/** Runs over a port that offers calls. */
export const CALL_PLANS: LivePlan[] = [
  both(
    "call_trees",
    "Trees of calls beside plain messages, asleep at every turn.",
    [
      ...ANSWERS,
      ...GIVEN_UP,
      ...WAITING,
      "call.set_aside",
    ],
    { capacity: 1024 },
    { count: 10, depth: 4, width: 3, plain: true },
  ),
  both(
    "call_trees_spinning",
    "Trees of calls while both spin, around 2^32.",
    [
      ...ANSWERS,
      ...GIVEN_UP,
    ],
    { capacity: 4096, start: LATE_START, spin: 50 },
    { count: 8, depth: 4, width: 3 },
  ),
  both(
    "call_trees_small",
    "Trees of calls in the smallest rings, beside plain messages.",
    [
      ...ANSWERS,
      ...WAITING,
      "call.cancel_owed",
      "call.whole_first",
    ],
    { capacity: 256, start: LATE_START },
    { count: 6, depth: 4, width: 3, plain: true },
  ),
  both(
    "call_deep",
    "Calls within calls, from both sides at once, as deep as few programs go.",
    [
      ...WAITING,
      "call.depth",
    ],
    { capacity: 256 },
    { count: 2, depth: DEEP - 1, width: 1 },
  ),
  both(
    "call_one_way",
    "One side makes trees of calls; the other calls only back.",
    [
      ...ANSWERS,
      "call.serve_waiting",
    ],
    { capacity: 1024 },
    { count: 10, depth: 4, width: 3 },
    { second: { count: 0 } },
  ),
  both(
    "call_event",
    "Trees of calls between two event loops.",
    [...ANSWERS, ...GIVEN_UP],
    {
      capacity: 1024,
    },
    { count: 10, depth: 4, width: 3, plain: true },
    {
      first: { wait: "event" },
      second: { wait: "event" },
    },
  ),
  both(
    "call_event_to_block",
    "Trees of calls between an event loop and one that blocks.",
    [
      ...ANSWERS,
      ...WAITING,
    ],
    { capacity: 1024 },
    { count: 10, depth: 4, width: 3, plain: true },
    {
      first: { wait: "event" },
    },
  ),
  killed(),
];

type Wish = Omit<Trees, "seed"> & { count: number };

function both(
  id: string,
  about: string,
  clauses: string[],
  more: Partial<LivePlan>,
  { count, ...trees }: Wish,
  parts: { first?: Partial<Part>; second?: Partial<Part> } = {},
): LivePlan {
  const part = (own: Partial<Part> = {}): Part => ({
    role: "tree",
    wait: "block",
    then: "end",
    count,
    trees: { seed: ++seeds, ...trees },
    end: "ended",
    got: "all",
    ...own,
  });
  const [first, second] = [part(parts.first), part(parts.second)];
  first.got = treeCount(first, second);
  second.got = treeCount(second, first);
  return {
    id: `live/${id}`,
    about,
    clauses,
    on: "call",
    capacity: 256,
    spin: 0,
    seed: seeds,
    count: 2 * count,
    first,
    second,
    ...more,
  };
}

/** One of the two dies among its calls. */
function killed(): LivePlan {
  const about = "A side dies among calls within calls: the other one is not left waiting.";
  const clauses = ["call.lost", "pipe.supervisor", "wait.liveness", "call.answer"];
  const trees = { count: ENDLESS, depth: 4, width: 3 };
  const plan = both("call_killed", about, clauses, { capacity: 1024, kills: 1 }, trees, {
    first: { end: "peer.failed" },
    second: { end: "" },
  });
  plan.first.got = "some";
  plan.second.got = "some";
  return plan;
}
