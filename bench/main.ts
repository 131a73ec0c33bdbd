/**
 * Measures Millrace and its rivals on the same work in the same run, and prints tables.
 *
 * The method, in short; `README.md` has the whole of it. Every peer has threads of its own in every
 * scenario, which warm up and stay for all repetitions; where it is fresh, each repetition has a
 * new process, and nothing warms up. Those of all peers of a scenario take turns, and the table
 * shows the median with the smallest and the largest. A ratio is measured for each repetition with
 * its neighbour in time, to the floor (what the machine needs without any library) or to a named
 * rival, and shown as their median and spread; figures of different machines are never compared.
 * Whether a wait has spun or slept is told by counting the sleeps.
 *
 * @module
 */
import { findProgram } from "../tools/programs.ts";
import { type Arguments, fits, isNamed, readArguments, USAGE } from "./runner/arguments.ts";
import { UsageError } from "./runner/arguments.ts";
import { openWorkshop } from "./runner/drivers.ts";
import { type Goal, goalsTable, judge, loadGoals, needs } from "./runner/goals.ts";
import { MachineWatch } from "./runner/machine.ts";
import { countRuns, measure } from "./runner/measure.ts";
import { Progress } from "./runner/progress.ts";
import { writeReport } from "./runner/report.ts";
import { isOurs, machineWarnings, type Results, RESULTS_VERSION } from "./runner/results.ts";
import { type Row, type ScenarioInfo, withRatios } from "./runner/results.ts";
import { readResults, writeResults } from "./runner/results_file.ts";
import { EFFORTS, loadTasks, partsOf, type PlaceName, quickTasks } from "./runner/scenarios.ts";
import type { Task } from "./runner/scenarios.ts";
import { comparison, refusal, runSummary, taskTable } from "./runner/table.ts";

const REPORT = new URL("report.html", import.meta.url);
const INTERRUPTED = 130;
const PLACES: readonly PlaceName[] = ["deno", "node", "chromium", "native"];

if (import.meta.main) Deno.exit(await bench(Deno.args));

/** Runs the benchmarks and returns the exit code. */
export async function bench(args: readonly string[]): Promise<number> {
  try {
    const wanted = readArguments(args);
    if (wanted.help) {
      console.log(USAGE);
      return 0;
    }
    return await run(wanted);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`bench: ${error.message}\n\n${USAGE}`);
    return 2;
  }
}

async function run(wanted: Arguments): Promise<number> {
  const goals = await loadGoals();
  const before = wanted.compare === undefined ? undefined : await readFile(wanted.compare);
  if (wanted.from !== undefined) {
    const results = await readFile(wanted.from);
    printAll(results);
    return await finish(results, wanted, goals, before);
  }
  const tasks = selectTasks(await loadTasks(EFFORTS[wanted.effort]), wanted, goals);
  if (wanted.list) {
    for (const { id, title, places } of tasks) console.log(`${id}  ${title} (${places.join()})`);
    return 0;
  }
  if (tasks.length === 0) throw new UsageError("No scenario fits");
  return await finish(await measureAll(tasks, wanted, goals), wanted, goals, before);
}

/** The scenarios that were asked for. */
function selectTasks(tasks: readonly Task[], wanted: Arguments, goals: readonly Goal[]): Task[] {
  const { only, names } = wanted;
  const unknown = names.find((name) => !tasks.some(({ id }) => isNamed(id, name)));
  if (unknown !== undefined) throw new UsageError(`No scenario is named ${unknown}`);
  const whole = only.length + names.length === 0;
  const offered = whole && wanted.effort === "quick" ? quickTasks(tasks) : tasks;
  return offered.filter((task) =>
    (whole || only.some((glob) => fits(task.id, glob)) ||
      names.some((name) => isNamed(task.id, name))) &&
    (wanted.places.length === 0 || task.places.some((place) => wanted.places.includes(place))) &&
    (!wanted.goals || goals.some((goal) => needs(goal, task)))
  );
}

/** Without what needs a program that is not there, and says so. */
async function withoutMissing(tasks: readonly Task[]): Promise<Task[]> {
  if (await findProgram(["taskset"]) !== undefined) return [...tasks];
  const free = tasks.filter(({ scenario }) => scenario.pin === "free");
  const count = tasks.length - free.length;
  if (count > 0) console.log(`SKIPPED: ${count} scenarios on one processor: there is no taskset`);
  return free;
}

/** Measures, and prints each scenario as it is done. */
async function measureAll(
  selected: readonly Task[],
  wanted: Arguments,
  goals: readonly Goal[],
): Promise<Results> {
  const tasks = await withoutMissing(selected);
  const figures = selected.flatMap(partsOf);
  const start = performance.now();
  const started = new Date().toISOString();
  const needed = new Set(tasks.flatMap((task) => task.places));
  const places = new Set(
    PLACES.filter((place) =>
      needed.has(place) && (wanted.places.length === 0 || wanted.places.includes(place))
    ),
  );
  const interrupt = listenForInterrupt();
  const workshop = await openWorkshop(places, wanted.sabMessagePort);
  const seconds = () => Math.round((performance.now() - start) / 1000);
  const building_seconds = seconds();
  const watch = await MachineWatch.start();
  const warnings = machineWarnings(await watch.describe());
  for (const warning of warnings) console.error(`WARNING: ${warning}`);
  const progress = new Progress(countRuns(tasks, places));
  const rows: Row[] = [];
  const drivers = new Map<string, { name: string; place: string; version: string }>();
  for (const { name, missing } of workshop.kinds) {
    if (missing !== undefined) console.log(`SKIPPED: the driver ${name}: ${missing}`);
  }
  try {
    await measure(tasks, places, {
      kinds: workshop.kinds,
      wants: (peer, task) => wantsPeer(peer, task, wanted, goals),
      sharesDeclined: wanted.effort === "smoke",
      stopped: () => interrupt.happened,
      onSession: () => {},
      onRun: (what) => progress.step(what),
      onDriver: (driver) => drivers.set(driver.name, driver),
      onRows(task, place, found) {
        const complete = withRatios(figures, found);
        rows.push(...complete);
        progress.clear();
        console.log(`${taskTable(partsOf(task).map(infoOf), place, complete)}\n`);
      },
    });
  } finally {
    interrupt.close();
    await workshop.close();
  }
  return {
    version: RESULTS_VERSION,
    started,
    effort: wanted.effort,
    machine: await watch.describe(),
    drivers: [...drivers.values()],
    complete: !interrupt.happened,
    seconds: seconds(),
    building_seconds,
    scenarios: figures.map(infoOf),
    rows,
  };
}

function wantsPeer(peer: string, task: Task, wanted: Arguments, goals: readonly Goal[]): boolean {
  if (task.peers?.includes(peer) === false) return false;
  if (peer === task.floor || peer === task.rival) return true;
  if (wanted.peers.length > 0) return wanted.peers.includes(peer);
  if (!wanted.goals) return true;
  return goals.some((goal) =>
    needs(goal, task) && [...goal.peer, ...goal.versus ?? [], ...goal.bound ?? []].includes(peer)
  );
}

function infoOf({ id, title, figure, scenario, floor, rival, part }: Task): ScenarioInfo {
  return {
    id,
    title,
    figure,
    size: scenario.size,
    ...floor === undefined ? {} : { floor },
    ...rival === undefined ? {} : { rival },
    ...part === undefined ? {} : { part: part.name, group: part.group },
  };
}

/** Everything after the measuring: files, goals, comparison, and the exit code. */
async function finish(
  results: Results,
  wanted: Arguments,
  goals: readonly Goal[],
  before: Results | undefined,
): Promise<number> {
  console.log(runSummary(results, machineWarnings(results.machine)));
  if (wanted.json !== undefined) {
    await writeResults(wanted.json, results);
    console.log(`Results: ${wanted.json}`);
  }
  const { only, names, peers, places } = wanted;
  const whole = only.length + names.length + peers.length + places.length === 0 &&
    wanted.effort !== "smoke" && !wanted.goals && wanted.from === undefined;
  const report = wanted.report ?? (whole && results.complete ? REPORT : undefined);
  if (report !== undefined) {
    await writeReport(results, report);
    console.log(`Report: ${report instanceof URL ? "bench/report.html" : report}`);
  }
  let code = results.complete ? 0 : INTERRUPTED;
  // What a rival cannot do is in the table, and no fault of this run.
  if (results.rows.some(({ peer, failed }) => failed !== undefined && isOurs(peer))) code ||= 1;
  if (before !== undefined) {
    const why = refusal(before, results);
    if (why !== undefined) {
      console.error(`Cannot compare to ${wanted.compare}: ${why}`);
      return 2;
    }
    console.log(`\n${comparison(before, results)}`);
  }
  if (wanted.goals) {
    const named = wanted.from === undefined && only.length + names.length > 0;
    const asked = named ? goals.filter((goal) => isAsked(goal, results)) : goals;
    const verdicts = judge(asked, results);
    console.log(`\n${goalsTable(verdicts)}`);
    if (verdicts.some(({ holds }) => !holds)) code ||= 1;
  }
  return code;
}

/** Whether a goal is of a scenario that was asked for by its name. */
function isAsked({ scenario }: Goal, { scenarios }: Results): boolean {
  return scenarios.some(({ id }) => id === scenario);
}

function printAll(results: Results): void {
  const groups = Map.groupBy(results.scenarios, ({ id, group }) => group ?? id);
  for (const infos of groups.values()) {
    const ids = infos.map(({ id }) => id);
    for (const place of PLACES) {
      const rows = results.rows.filter((row) => ids.includes(row.scenario) && row.place === place);
      if (rows.length > 0) console.log(`${taskTable(infos, place, rows)}\n`);
    }
  }
}

async function readFile(path: string): Promise<Results> {
  try {
    return await readResults(path);
  } catch (error) {
    throw new UsageError(`Cannot read ${path}: ${(error as Error).message}`);
  }
}

/** The first Ctrl-C ends the run and shows what there is; the second one ends at once. */
function listenForInterrupt(): { readonly happened: boolean; close(): void } {
  let happened = false;
  const onSignal = () => {
    if (happened) Deno.exit(INTERRUPTED);
    happened = true;
    console.error("\nEnding, with what was measured so far ...");
  };
  Deno.addSignalListener("SIGINT", onSignal);
  return {
    get happened() {
      return happened;
    },
    close: () => Deno.removeSignalListener("SIGINT", onSignal),
  };
}
