// Figures, ratios, goals and their exit code, and what the terminal shows of them.
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { fileURLToPath } from "node:url";
import { run } from "../../tools/run.ts";
import { PEER_NAMES } from "../script/peers.ts";
import { type Goal, goalsTable, judge, loadGoals, readGoal } from "./goals.ts";
import { figureOf, inverse, isOurs, medianOf, partOf, percentilesOf } from "./results.ts";
import { type Played, ratioOf, type Repetition, type Results, RESULTS_VERSION } from "./results.ts";
import { type Row, rowOf, type ScenarioInfo, slower, withRatios } from "./results.ts";
import { resultsProblem, writeResults } from "./results_file.ts";
import { EFFORTS, loadTasks, partsOf, type PlaceName, type Task } from "./scenarios.ts";
import { comparison, refusal, runSummary, scenarioTable, taskTable } from "./table.ts";

/** The results of a full run that never was. */
function madeUp(scenarios: readonly ScenarioInfo[], rows: readonly Row[]): Results {
  return {
    version: RESULTS_VERSION,
    started: "2026-01-01T00:00:00.000Z",
    effort: "full",
    machine: {
      id: "a",
      processor: "",
      processors: 2,
      memory_gb: 1,
      system: "",
      load: [0, 0],
      busy_percent: 0,
      steal_percent: 0,
    },
    drivers: [],
    complete: true,
    seconds: 1,
    scenarios,
    rows,
  };
}

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

type Mark = [figure: number, at_ms: number, ping_ns?: [number, number]];

function marked(peer: string, ...marks: Mark[]): Row {
  const repetitions = marks.map(([figure, at_ms, ping_ns]): Repetition => ({
    count: 1,
    elapsed_ns: 1,
    figure,
    at_ms,
    ...ping_ns === undefined ? {} : { ping_ns },
  }));
  return { scenario: "s", place: "deno", driver: "deno", peer, repetitions };
}

function ratio(own: Row, other: Row): (number | boolean | undefined)[] {
  const { median, min, max, pairs, steady } = ratioOf("round-trip", own, other) ?? {};
  return [median, min, max, pairs, steady];
}

Deno.test("ratioOf pairs each repetition with the nearest in time, and takes the median", () => {
  const own = marked("ours", [100, 1], [1000, 11], [300, 21]);
  const other = marked("other", [50, 2], [500, 12], [100, 22]);
  assertEquals(ratio(own, other), [2, 2, 3, 3, true]);
  // Not of the medians, which are of two states: 300 / 100.
  const gone = marked("other", [50, 2], [500, 12]);
  assertEquals(ratio(marked("ours", [100, 1], [1000, 11], [900, 13]), gone), [2, 1.8, 2, 3, true]);
});

Deno.test("ratioOf prefers a repetition of the same state to one that is nearer", () => {
  const own = marked("ours", [1000, 10, [500, 520]]);
  const other = marked("other", [100, 11, [100, 110]], [400, 50, [480, 500]]);
  assertEquals(ratio(own, other), [2.5, 2.5, 2.5, 1, true]);
});

Deno.test("ratioOf leaves out repetitions in which the machine changed, if others remain", () => {
  const other = marked("other", [100, 2, [100, 100]], [100, 12, [100, 100]]);
  const own = marked("ours", [900, 1, [100, 500]], [200, 11, [100, 120]]);
  assertEquals(ratio(own, other), [2, 2, 2, 1, true]);
  assertEquals(ratio(marked("ours", [900, 1, [100, 500]]), other), [9, 9, 9, 1, false]);
});

Deno.test("what is much slower than the ping-pong is paired whatever that was", () => {
  const other = marked("other", [50_000, 2, [100, 500]], [90_000, 99, [100, 100]]);
  assertEquals(ratio(marked("ours", [100, 1, [100, 100]]), other), [0.002, 0.002, 0.002, 1, true]);
});

Deno.test("the floor of words is the ping-pong around each repetition itself", () => {
  const floor = marked("floor-atomics-spin", [9999, 1, [9, 9]]);
  const own = marked("ours", [300, 1, [90, 110]], [1500, 2, [500, 500]], [999, 3, [100, 500]]);
  assertEquals(ratio(own, floor), [3, 3, 3, 2, true]);
  // Without a ping-pong, the floor's own repetitions count.
  assertEquals(ratio(marked("ours", [19998, 1]), floor), [2, 2, 2, 1, true]);
});

Deno.test("ratioOf has nothing where one peer has nothing, or nothing to divide by", () => {
  assertEquals(ratioOf("round-trip", marked("ours", [1, 1]), marked("other")), undefined);
  assertEquals(ratioOf("round-trip", marked("ours"), marked("other", [1, 1])), undefined);
  assertEquals(ratioOf("processor", marked("ours", [1, 1]), marked("other", [0, 1])), undefined);
  // Turned round, it would be without end.
  assertEquals(ratioOf("round-trip", marked("ours", [0, 1]), marked("other", [1, 1])), undefined);
});

Deno.test("inverse turns the spread round", () => {
  const { median, min, max } = inverse({ median: 2, min: 1, max: 4, pairs: 3, steady: true });
  assertEquals([median, min, max], [0.5, 0.25, 1]);
});

// The exit code of `--goals`: by results that are made up, in which all goals hold, or all but one.
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const goals = await loadGoals();
const tasks = (await loadTasks(EFFORTS.full)).flatMap(partsOf);

/** Ours are as fast as the floors, and others a thousand times slower, or as fast, as is wanted. */
function rowsOf(goal: Goal): Row[] {
  const { places, driver, peer, versus = [], at_most = 0, at_least } = goal;
  const { scenario: own, versus_scenario: other = own } = goal;
  const { figure } = tasks.find(({ id }) => id === own)!;
  const best = versus.length === 0 ? at_most / 2 : 1_000;
  const isBetween = at_most > 0 && at_least !== undefined;
  const worst = isBetween ? best : slower(figure, 1, 1_000) > 1 ? best / 1_000 : best * 1_000;
  const row = (scenario: string, place: PlaceName, name: string, value: number): Row => {
    const repetitions = [{ count: 1, elapsed_ns: 1, figure: value, at_ms: 1 }];
    const spread = { median: value, min: value, max: value };
    return { scenario, place, driver: driver ?? place, peer: name, repetitions, ...spread };
  };
  return places.flatMap((place) => [
    ...peer.map((name) => row(own, place, name, best)),
    ...versus.map((name) => row(other, place, name, name.startsWith("floor-") ? best : worst)),
  ]);
}

const held = madeUp(
  tasks.map(({ id, title, figure, scenario: { size } }) => ({ id, title, figure, size })),
  goals.flatMap(rowsOf),
);

async function exitOf(shown: Results): Promise<{ code: number; output: string }> {
  const file = await Deno.makeTempFile({ suffix: ".json" });
  try {
    await writeResults(file, shown);
    const command = [Deno.execPath(), "run", "-A", "bench/main.ts", "--from", file, "--goals"];
    return await run(command, { cwd: ROOT, timeoutMs: 60_000, echo: false });
  } finally {
    await Deno.remove(file);
  }
}

Deno.test("readGoal reads what is wanted, and refuses what is not complete", () => {
  const row = "s/on in node: a@d,b@d 0.9..1.5 x c of off, bound e";
  assertEquals(readGoal("g", "t", row), {
    group: "g",
    text: "t",
    scenario: "s/on",
    places: ["node"],
    peer: ["a", "b"],
    driver: "d",
    versus: ["c"],
    versus_scenario: "s/off",
    bound: ["e"],
    measure: "slower",
    at_least: 0.9,
    at_most: 1.5,
  });
  for (const row of ["s: a", "s: a >= 1 times b", "s a >= 1 x b", ": a >= 1 x b"]) {
    assertThrows(() => readGoal("g", "t", row), Error, "Cannot load the goal");
  }
});

Deno.test("--goals ends with 0 where all goals hold", async () => {
  assertEquals(judge(goals, held).filter(({ holds }) => !holds), []);
  const { code, output } = await exitOf(held);
  assertMatch(output, /\n(\d+) of \1 hold, 0 missed, 0 not measured\n/);
  assertEquals(code, 0);
});

Deno.test("--goals ends with 1 where one was missed, or one was not measured", async () => {
  const last = goals.at(-1)!;
  const isOwn = (row: Row) => row.scenario === last.scenario && last.peer.includes(row.peer);
  const missed = held.rows.map((row) => {
    if (!isOwn(row)) return row;
    const [one] = row.repetitions;
    const figure = one!.figure * 1e6;
    return { ...row, repetitions: [{ ...one!, figure }], median: figure, max: figure };
  });
  const { code, output } = await exitOf({ ...held, rows: missed });
  assertMatch(output, / [1-9]\d* missed, 0 not measured\n/);
  assertEquals(code, 1);
  const without = await exitOf({ ...held, rows: held.rows.filter((row) => !isOwn(row)) });
  assertMatch(without.output, / 0 missed, [1-9]\d* not measured\n/);
  assertEquals(without.code, 1);
});
