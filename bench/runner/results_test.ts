import { assert, assertEquals, assertMatch } from "@std/assert";
import { comparison, refusal } from "./compare.ts";
import { type Goal, goalsTable, judge, loadGoals } from "./goals.ts";
import { withRatios } from "./pairs.ts";
import {
  figureOf,
  isOurs,
  medianOf,
  partOf,
  percentilesOf,
  type Played,
  type Results,
  rowOf,
} from "./results.ts";
import { resultsProblem } from "./results_file.ts";
import { madeUp } from "./results_fixture.ts";
import { EFFORTS, loadTasks, partsOf, type Task } from "./scenarios.ts";
import { PEER_NAMES } from "../script/peers.ts";
import { runSummary, scenarioTable } from "./table.ts";
import { taskTable } from "./table_parts.ts";

const [first] = await loadTasks(EFFORTS.full) as [Task];
const TASK: Task = { ...first, floor: "floor", rival: "rival" };
const INFO = { id: TASK.id, title: "", figure: TASK.figure, size: 64, floor: "floor" };

function echo(ns: number, at_ms = 0, ping_ns?: [number, number]): Played {
  const latency = { unit: "ns", values: [ns], counts: [10] } as const;
  const ping = ping_ns === undefined ? {} : { ping_ns };
  return { count: 10, elapsed_ns: 10 * ns, latency, sleeps: 0, at_ms, ...ping };
}

function row(peer: string, ...nanoseconds: number[]) {
  const head = { place: "deno", driver: "deno", peer } as const;
  return rowOf(TASK, head, nanoseconds.map((ns, index) => echo(ns, index)));
}

function results(...rows: ReturnType<typeof row>[]): Results {
  return madeUp([INFO], withRatios([TASK], rows));
}

const GOAL: Goal = {
  group: "g",
  text: "t",
  scenario: TASK.id,
  places: ["deno"],
  peer: ["ours"],
  versus: ["floor"],
  measure: "slower",
  at_most: 3,
};

Deno.test("medianOf takes the middle, or the mean of the two in the middle", () => {
  assertEquals(medianOf([3, 1, 2]), 2);
  assertEquals(medianOf([4, 1, 2, 3]), 2.5);
});

Deno.test("percentilesOf counts each value as often as it was seen, over all repetitions", () => {
  const rare = { unit: "ns", values: [1000], counts: [1] } as const;
  const usual = { unit: "ns", values: [10], counts: [99] } as const;
  const { p50, p99, p999, max } = percentilesOf([rare, usual]);
  assertEquals([p50, p99, p999, max], [10, 10, 1000, 1000]);
});

Deno.test("figureOf has the unit of each figure, and NaN for what was not measured", () => {
  const result = { count: 4, elapsed_ns: 2e9, cpu_ms: 1, bytes_allocated: 8 };
  assertEquals(figureOf({ figure: "round-trip" }, result), 5e8);
  assertEquals(figureOf({ figure: "time" }, { ...result, ...echo(7, 0), count: 4 }), 17.5);
  assertEquals(figureOf({ figure: "rate" }, result), 2);
  assertEquals(figureOf({ figure: "processor" }, result), 0.05);
  assertEquals(figureOf({ figure: "allocation" }, result), 2);
  assertEquals(figureOf({ figure: "waiting" }, result), NaN);
  assertEquals(figureOf({ figure: "rate" }, { count: 0, elapsed_ns: 1 }), NaN);
});

Deno.test("rowOf has the median and the spread, and fails where nothing was measured", () => {
  const { median, min, max, sleeps } = row("ours", 300, 100, 200);
  assertEquals([median, min, max, sleeps], [200, 100, 300, 0]);
  const head = { place: "deno", driver: "deno", peer: "ours" } as const;
  const nothing = rowOf(TASK, head, [{ count: 0, elapsed_ns: 1, at_ms: 0, notes: ["gave up"] }]);
  assertEquals(nothing.failed, "measured nothing: gave up");
});

Deno.test("withRatios compares to the floor and the rival of the same place alone", () => {
  const elsewhere = { ...row("rival", 1), place: "node" } as const;
  const rows = [row("ours", 200), row("floor", 100), row("rival", 500), elsewhere];
  const [ours] = withRatios([TASK], rows);
  assertEquals([ours?.over_floor?.median, ours?.times_rival?.median], [2, 2.5]);
});

Deno.test("judge says of a goal whether it holds, was missed or was not measured", () => {
  const verdict = (...rows: ReturnType<typeof row>[]) => {
    const [is] = judge([GOAL], results(...rows));
    return [is?.value, is?.holds];
  };
  assertEquals(verdict(row("ours", 300), row("floor", 100)), [3, true]);
  assertEquals(verdict(row("ours", 301), row("floor", 100)), [3.01, false]);
  assertEquals(verdict(row("ours", 100)), [undefined, false]);
  const faster: Goal = { ...GOAL, measure: "faster", at_least: 2 };
  const { at_most: _, ...open } = faster;
  const [is] = judge([open], results(row("ours", 100), row("floor", 200)));
  assertEquals([is?.value, is?.holds], [2, true]);
});

Deno.test("a goal is not measured where the machine changed in every repetition", () => {
  const head = { place: "deno", driver: "deno" } as const;
  const judged = (ping: [number, number]) => {
    const ours = rowOf(TASK, { ...head, peer: "ours" }, [echo(200, 1, ping)]);
    const floor = rowOf(TASK, { ...head, peer: "floor" }, [echo(100, 2, [100, 100])]);
    const [is] = judge([GOAL], results(ours, floor));
    return [is?.value, is?.holds];
  };
  assertEquals(judged([100, 110]), [2, true]);
  assertEquals(judged([100, 500]), [undefined, false]);
});

Deno.test("a goal may compare two parts of one run", () => {
  const [slow, fast] = ["in-turn", "same"].map((name) => ({
    ...TASK,
    id: `${TASK.id}/${name}`,
    part: { group: TASK.id, name },
  }));
  const head = { place: "deno", driver: "deno", peer: "ours" } as const;
  const parts = { "in-turn": { count: 1, elapsed_ns: 300 }, same: { count: 1, elapsed_ns: 100 } };
  const played = { count: 2, elapsed_ns: 400, at_ms: 5, parts };
  const rows = [slow!, fast!].map((task) => rowOf(task, head, [partOf(task, played)!]));
  assertEquals(rows.map(({ median }) => median), [300, 100]);
  assertEquals(partOf({ part: { group: TASK.id, name: "none" } }, played), undefined);
  const infos = [slow!, fast!].map(({ id }) => ({ ...INFO, id }));
  const goal = { ...GOAL, scenario: slow!.id, versus: ["ours"], versus_scenario: fast!.id };
  const [is] = judge([goal], madeUp(infos, rows));
  assertEquals([is?.value, is?.holds], [3, true]);
});

Deno.test("a table of parts has the peers of each part, the fastest first", () => {
  const infos = ["1", "2-10"].map((part) => ({
    ...INFO,
    id: `${INFO.id}/${part}`,
    part,
    group: INFO.id,
    rival: "rival",
  }));
  const rows = infos.flatMap(({ id }) =>
    [row("rival", 900), row("ours", 100)].map((each) => ({ ...each, scenario: id }))
  );
  const shy = { scenario: infos[0]!.id, place: "deno", driver: "deno", repetitions: [] } as const;
  const text = taskTable(infos, "deno", [...rows, { ...shy, peer: "shy", declined: "cannot" }]);
  const cells = text.split("\n").slice(2).map((line) => line.trim().split(/\s{2,}/).slice(0, 3));
  assertEquals(cells, [
    ["1", "ours", "0.100 µs"],
    ["rival", "0.900 µs", "0.900 µs"],
    ["2-10", "ours", "0.100 µs"],
    ["rival", "0.900 µs", "0.900 µs"],
    ["not here: shy (cannot)"],
  ]);
});

Deno.test("the best of several peers counts for a goal", () => {
  const goal = { ...GOAL, peer: ["ours", "ours-too"] };
  const [is] = judge([goal], results(row("ours", 900), row("ours-too", 100), row("floor", 100)));
  assertEquals(is?.value, 1);
});

Deno.test("a goal that even its bound misses is out of reach", () => {
  const goal = { ...GOAL, bound: ["bound", "slower bound"] };
  const judged = (ours: number, bound: number) => {
    const rows = [
      row("ours", ours),
      row("bound", bound),
      row("slower bound", 1e6),
      row("floor", 100),
    ];
    const verdicts = judge([goal], results(...rows));
    const isOutOfReach = /: out of reach\n(.|\n)*\n1 of those missed/.test(goalsTable(verdicts));
    return [verdicts[0]?.holds, verdicts[0]?.bound?.value, isOutOfReach];
  };
  assertEquals(judged(300, 250), [true, 2.5, false]);
  assertEquals(judged(310, 250), [false, 2.5, false]);
  assertEquals(judged(320, 310), [false, 3.1, true]);
  // What was not measured bounds nothing.
  const [alone] = judge([goal], results(row("ours", 310), row("floor", 100)));
  assertEquals([alone?.holds, alone?.bound], [false, undefined]);
});

Deno.test("a goal between two limits is missed below and above", () => {
  const goal: Goal = { ...GOAL, at_least: 0.95, at_most: 1.05 };
  const ratio = (own: number) => judge([goal], results(row("ours", own), row("floor", 1000)))[0];
  assertEquals([940, 960, 1040, 1060].map((own) => ratio(own)?.holds), [false, true, true, false]);
  assertMatch(goalsTable([ratio(960)!]), /0\.95 to 1\.05/);
});

Deno.test("every goal speaks of a scenario that is measured in its places", async () => {
  const tasks = (await loadTasks(EFFORTS.full)).flatMap(partsOf);
  for (const goal of await loadGoals()) {
    const { peer, scenario, versus = [], versus_scenario = scenario, places, bound = [] } = goal;
    const { at_most, at_least } = goal;
    assertEquals(bound.filter((name) => !PEER_NAMES.includes(name)), []);
    const task = tasks.find(({ id }) => id === scenario);
    assertEquals([scenario, places.filter((place) => task?.places.includes(place))], [
      scenario,
      places,
    ]);
    const needed = [...peer, ...versus, ...bound];
    const asked = task?.peers ?? needed;
    assertEquals(needed.filter((name) => !asked.includes(name)), [], scenario);
    assertEquals(tasks.some(({ id }) => id === versus_scenario), true, versus_scenario);
    assert(at_most !== undefined || at_least !== undefined, scenario);
    assert((at_least ?? -Infinity) < (at_most ?? Infinity), scenario);
  }
});

Deno.test("runs of different machines and efforts are not compared", () => {
  const one = results(row("ours", 100));
  assertEquals(refusal(one, one), undefined);
  const other = { ...one, machine: { ...one.machine, id: "b" } };
  assertEquals(refusal(one, other)?.startsWith("it is of another machine"), true);
  assertEquals(refusal(one, { ...one, effort: "quick" })?.startsWith("it is of a full run"), true);
  assertEquals(refusal({ ...one, version: 0 }, one)?.startsWith("its form is version 0"), true);
});

Deno.test("a rival's failure is no fault of a run, and that of ours or of a floor is", () => {
  const peers = ["millrace", "millrace-c-lend", "floor-futex", "ringbuf", "thread-stream"];
  assertEquals(peers.map(isOurs), [true, true, true, false, false]);
});

Deno.test("comparison tells a change from the spread", () => {
  const before = results(row("ours", 100, 110, 120));
  const lines = (now: ReturnType<typeof row>) => comparison(before, results(now)).split("\n");
  assertEquals(/2\.\d+x +faster$/.test(lines(row("ours", 50, 51))[1] as string), true);
  assertEquals(/0\.\d+x +SLOWER$/.test(lines(row("ours", 200))[1] as string), true);
  assertEquals(/within the spread$/.test(lines(row("ours", 90, 115))[1] as string), true);
});

Deno.test("results fit their schema, and what lacks a machine does not", async () => {
  const good = JSON.parse(JSON.stringify(results(row("ours", 100), row("floor", 50))));
  assertEquals(await resultsProblem(good), undefined);
  const { machine: _, ...bad } = good;
  assertEquals(await resultsProblem(bad), " must have required property 'machine'");
});

Deno.test("the summary tells what was building from what was measuring", () => {
  const older = results(row("ours", 100));
  const [first] = runSummary(older, []).split("\n");
  assertEquals(first, "full run, 1 s; medians");
  const [second] = runSummary({ ...older, seconds: 90, building_seconds: 31 }, []).split("\n");
  assertEquals(second, "full run, 90 s, 31 of them for building; medians");
});

Deno.test("the table has the fastest first, and says who declined and who failed", () => {
  const { rows } = results(row("slow", 900), row("floor", 100));
  const head = { scenario: TASK.id, place: "deno", driver: "deno", repetitions: [] } as const;
  const text = scenarioTable(INFO, "deno", [
    ...rows,
    { ...head, peer: "shy", declined: "cannot" },
    { ...head, peer: "broken", failed: "Error: oh\n  at x" },
  ]);
  const [, , fastest, slowest, failed, declined] = text.split("\n") as string[];
  assertEquals(fastest?.trim().split(/\s{2,}/).slice(0, 2), ["floor", "0.100 µs"]);
  assertEquals(slowest?.trim().split(/\s{2,}/).slice(0, 2), ["slow", "0.900 µs"]);
  assertEquals([failed, declined], ["  broken: FAILED: Error: oh", "  not here: shy (cannot)"]);
});
