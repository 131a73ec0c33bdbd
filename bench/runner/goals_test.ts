// The exit code of `--goals`: by results that are made up, in which all goals hold, or all but one.

import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { fileURLToPath } from "node:url";
import { run } from "../../tools/run.ts";
import { type Goal, judge, loadGoals, readGoal } from "./goals.ts";
import { type Results, type Row, slower } from "./results.ts";
import { writeResults } from "./results_file.ts";
import { madeUp } from "./results_fixture.ts";
import { EFFORTS, loadTasks, partsOf, type PlaceName } from "./scenarios.ts";

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

const results = madeUp(
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
  assertEquals(judge(goals, results).filter(({ holds }) => !holds), []);
  const { code, output } = await exitOf(results);
  assertMatch(output, /\n(\d+) of \1 hold, 0 missed, 0 not measured\n/);
  assertEquals(code, 0);
});

Deno.test("--goals ends with 1 where one was missed, or one was not measured", async () => {
  const last = goals.at(-1)!;
  const isOurs = (row: Row) => row.scenario === last.scenario && last.peer.includes(row.peer);
  const missed = results.rows.map((row) => {
    if (!isOurs(row)) return row;
    const [one] = row.repetitions;
    const figure = one!.figure * 1e6;
    return { ...row, repetitions: [{ ...one!, figure }], median: figure, max: figure };
  });
  const { code, output } = await exitOf({ ...results, rows: missed });
  assertMatch(output, / [1-9]\d* missed, 0 not measured\n/);
  assertEquals(code, 1);
  const without = await exitOf({ ...results, rows: results.rows.filter((row) => !isOurs(row)) });
  assertMatch(without.output, / 0 missed, [1-9]\d* not measured\n/);
  assertEquals(without.code, 1);
});
