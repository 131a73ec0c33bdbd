// Testees that are no good: as programs, each of which gets a verdict of its own, and as ports,
// each of which is caught by a case that cites the clause.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { bytes } from "./kit/carriers/bytes.ts";
import { deno } from "./kit/carriers/deno.ts";
import { patience } from "./kit/connection.ts";
import { CALL_PLANS } from "./kit/live/cases.ts";
import { liveCase } from "./kit/live/level.ts";
import { denoRun } from "./kit/programs.ts";
import { Collector } from "./kit/report.ts";
import { Runner } from "./kit/runner.ts";
import { catchFaults, catchInCrowd, checkGood } from "./kit/self_check.ts";
import { loadStaticCases, staticCases } from "./kit/static_level.ts";
import type { Status } from "./kit/verdict.ts";
import { FAULTS } from "./testees/broken/faults.ts";

const BAD: [string, Status, RegExp][] = [
  ["crash", "error", /the testee ended with exit code 3; on standard error: out of cheese/],
  ["hang", "timeout", /no reply within/],
  ["garbage", "error", /the reply is not JSON: "Segmentation fault"/],
  ["bytes", "error", /the reply is not UTF-8/],
  ["flood", "error", /the reply is not JSON: "again"/],
  ["endless", "error", /floods its output: a line of more than/],
  ["order", "error", /it has the id \d+, out of order: \d+ is due/],
  ["twice", "error", /said .* without being asked|out of order/],
  ["field", "error", /bad reply to read: `result\/item\/kind` must be integer/],
  ["member", "error", /`result` has a member `because` that is not in the schema/],
  ["code", "error", /`error\/code` must be equal to one of the allowed values/],
  ["both", "error", /bad reply to read: /],
  ["half", "error", /the last reply has no end: "\{\\"id\\":"/],
  ["declines", "fail", /declined, which `start` does not say: not today/],
];

for (const [way, status, why] of BAD) {
  Deno.test(`a testee that misbehaves gets its verdict, and the run goes on: ${way}`, async () => {
    const before = patience.replyMs;
    // Far more than any reply here takes; the one that hangs is waited for.
    patience.replyMs = way === "hang" ? 2_000 : 60_000;
    const collector = new Collector();
    try {
      const ids = ["segment/pipe", "pipe/example", "frame/write_end", "ring/example_write"];
      const cases = staticCases(loadStaticCases().filter(({ id }) => ids.includes(id)));
      assertEquals(cases.length, ids.length);
      const command = denoRun("bad/bad.ts", way);
      await new Runner(collector).run({
        level: "static",
        carrier: "bytes",
        kind: "bytes",
        testees: ["bad"],
        ways: ["bad"],
        cases,
        open: () => bytes.open([{ name: "bad", command }]),
      });
    } finally {
      patience.replyMs = before;
    }
    const { verdicts } = collector;
    const read = verdicts.find(({ id }) => id === "pipe/example")!;
    assertEquals(read.status, status, read.why.join("\n"));
    assertMatch(read.why.join("\n"), why);
    for (const { id, status, why } of verdicts) {
      if (id !== "pipe/example") assertEquals(status, "pass", `${id}: ${why.join("\n")}`);
    }
  });
}

Deno.test("the small port without a fault passes, wherever it is held up", async () => {
  // Each window takes ten seconds; the first two controls are of a port that is not held up.
  const most = Deno.env.get("MILLRACE_TEST_ALL") === "1" ? 6 : 3;
  let count = 0;
  for await (const { window, passed, failed } of checkGood()) {
    assertEquals(failed, [], `held up at ${window}`);
    assert(passed > 10);
    if (++count === most) break;
  }
  assertEquals(count, most);
});

Deno.test("two small ports call one another, and a fault of theirs shows", async () => {
  assertEquals((await playCalls(undefined)).filter((each) => each !== "pass"), []);
  for (const fault of ["data_lost", "aside_lost", "match_newest"]) {
    assert((await playCalls(fault, 1)).includes("fail"), fault);
  }
});

/** What comes of the live runs of calls that block, or of the first of them. */
async function playCalls(fault: string | undefined, count = Infinity): Promise<Status[]> {
  const worker = new URL("testees/broken/worker.ts", import.meta.url);
  const first = () => Promise.resolve({ setup: fault === undefined ? {} : { fault } });
  const arena = await deno.open(["one", "other"].map((name) => ({ name, worker, first })));
  const found: Status[] = [];
  try {
    const cases = CALL_PLANS.map((plan) => liveCase(plan, deno.death)).slice(0, count);
    for (const entry of cases) {
      const hellos = [(await arena.connect(0)).hello, (await arena.connect(1)).hello];
      if (hellos.some((hello, index) => entry.declinedBy(hello, index) !== undefined)) continue;
      const { status, why } = await entry.run(arena);
      if (fault === undefined) assertEquals(why, [], entry.id);
      found.push(status);
    }
    return found;
  } finally {
    await arena.close();
  }
}

Deno.test("each fault is caught by a case that cites its clause, and names it", async (test) => {
  assert(FAULTS.length >= 25);
  assertEquals(new Set(FAULTS.map(({ name }) => name)).size, FAULTS.length);
  for await (const { fault, caught } of catchFaults()) {
    await test.step(`${fault.name} [${fault.clause}]: ${caught?.id}`, () => {
      assert(caught !== undefined, `nobody sees that the port ${fault.about}`);
      const named = caught.broken.includes(fault.clause);
      assert(named, `${caught.id} names ${caught.broken}: ${caught.why}`);
    });
  }
});

Deno.test("a live crowd with one fault is caught, and its clause named", async (test) => {
  const names = [
    "property_early",
    "property_one_slot",
    "property_unsequenced",
    "fanout_overwrites",
    "fanout_unnumbered",
    "fanout_floor_left",
    "fanout_untold",
  ];
  const faults = FAULTS.filter(({ name }) => names.includes(name));
  assertEquals(faults.length, names.length);
  for (const fault of faults) {
    await test.step(fault.name, async () => {
      const caught = await catchInCrowd(fault);
      assert(caught !== undefined, `nobody sees that the port ${fault.about}`);
      assertMatch(caught.id, /^live\//);
      assert(caught.broken.includes(fault.clause), `${caught.id} names ${caught.broken}`);
    });
  }
});
