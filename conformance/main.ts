/**
 * The conformance kit: `./millrace conformance`. See `conformance/README.md`.
 *
 * @module
 */

import { parseArgs } from "node:util";
import type { Program } from "./kit/arena.ts";
import { countsText, failureText, junitText, markdownText, matrixText } from "./kit/output.ts";
import { Progress, spentText } from "./kit/output.ts";
import { Collector, readKnown, unplayedText } from "./kit/report.ts";
import { plan, type Wish } from "./kit/plan.ts";
import { killAll } from "./kit/process_link.ts";
import { CARRIERS, endCarriers, ownPrograms, quote } from "./kit/programs.ts";
import type { Level } from "./kit/protocol.ts";
import { type Group, Runner } from "./kit/runner.ts";
import { selfTest } from "./kit/self_test.ts";
import { BRIEF, patience } from "./kit/scripts/windows.ts";
import { outliveTrouble, type Verdict } from "./kit/verdict.ts";

const USAGE = `Usage: ./millrace conformance [option...]

Runs the conformance kit: on our own testees, or on yours.

  --testee CMD          a testee: a command line for the shell, or one of ours:
                        ${namesOf(ownPrograms())};
                        a second one meets the first (may be given more than once)
  --level LEVEL         static, scripted, mailbox, live or stress (more than once);
                        without it, all but stress
  --case GLOB           only cases whose id fits, such as 'frame/*' (more than once)
  --carrier NAME        only this place: ${
  ["bytes", ...CARRIERS.map(({ name }) => name)].join(", ")
}
  --seed N              where the random work of the level stress begins; default 1
  --seconds N           how long stress works each pair; default 10
  --brief               sweeps the moments of races for a quarter of the time
  --known-failing FILE  a case id in each line, that is known to fail; one that passes fails the run
  --json FILE           writes the report (conformance/report.schema.json)
  --junit FILE          writes it in the form of JUnit
  --md FILE             writes it in Markdown
  --save FOLDER         keeps transcripts, plan and memory of failed live runs there
  --list                prints the ids of the cases and ends
  --self-test           runs the broken testees and prints which case caught which fault

Exit code 0: nothing failed. 1: a case failed, a testee broke down, or a known failure passed.
2: wrong usage. 130: interrupted.`;

/** What the command line says. */
interface Order extends Wish {
  json: string | undefined;
  junit: string | undefined;
  md: string | undefined;
  save: string | undefined;
  known: string | undefined;
  list: boolean;
  brief: boolean;
  selfTest: boolean;
  /** The command line again, for every case that is to be run alone. */
  testees: string[];
}

class UsageError extends Error {}

function readOrder(args: string[]): Order {
  const { values } = parseArgs({
    args,
    options: {
      testee: { type: "string", multiple: true, default: [] },
      level: { type: "string", multiple: true, default: [] },
      case: { type: "string", multiple: true, default: [] },
      carrier: { type: "string", multiple: true, default: [] },
      seed: { type: "string", default: "1" },
      seconds: { type: "string", default: "10" },
      "known-failing": { type: "string" },
      json: { type: "string" },
      junit: { type: "string" },
      md: { type: "string" },
      save: { type: "string" },
      list: { type: "boolean", default: false },
      brief: { type: "boolean", default: false },
      "self-test": { type: "boolean", default: false },
    },
  });
  const known: readonly string[] = ["static", "scripted", "mailbox", "live", "stress"];
  const level = values.level.find((each) => !known.includes(each));
  if (level !== undefined) throw new UsageError(`no level ${level}: ${known.join(", ")}`);
  const places = ["bytes", ...CARRIERS.map(({ name }) => name)];
  const carrier = values.carrier.find((each) => !places.includes(each));
  if (carrier !== undefined) throw new UsageError(`no carrier ${carrier}: ${places.join(", ")}`);
  return {
    programs: programsOf(values.testee),
    testees: values.testee,
    levels: values.level as Level[],
    cases: values.case,
    carriers: values.carrier,
    seed: toNumber("seed", values.seed, 1),
    seconds: toNumber("seconds", values.seconds, 1),
    json: values.json,
    junit: values.junit,
    md: values.md,
    save: values.save,
    known: values["known-failing"],
    list: values.list,
    brief: values.brief,
    selfTest: values["self-test"],
  };
}

function toNumber(name: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= 2 ** 31) return value;
  throw new UsageError(`--${name} takes a whole number from ${least} on, not ${text}`);
}

function programsOf(testees: string[]): Program[] {
  const own = ownPrograms();
  if (testees.length === 0) return own;
  return testees.map((testee, index) => {
    if (!testee.startsWith("@")) {
      return { name: testees.length > 1 ? `testee ${index + 1}` : "testee", command: testee };
    }
    const program = own.find(({ name }) => `@${name}` === testee);
    if (program !== undefined) return program;
    throw new UsageError(`no testee ${testee}: ${namesOf(own)}`);
  });
}

function namesOf(programs: Program[]): string {
  return programs.map(({ name }) => `@${name}`).join(", ");
}

/** The command that runs one case again. */
function rerunOf(order: Order): (verdict: Verdict) => string {
  return ({ id, level, carrier, testees }) => {
    // Those of the kit come of themselves.
    const given = testees.filter((name) => order.programs.some((each) => each.name === name));
    const names = given.map((name) => {
      const index = order.programs.findIndex((program) => program.name === name);
      return quote(order.testees[index] ?? `@${name}`);
    });
    // A pair of one testee with itself is one testee.
    const chosen = [...new Set(names)].map((name) => `--testee ${name}`).join(" ");
    const seed = level === "stress" ? ` --seed ${order.seed} --seconds ${order.seconds}` : "";
    const which = `--level ${level} --carrier ${carrier} --case ${id}`;
    return `./millrace conformance ${chosen} ${which}${seed}`;
  };
}

function write(text: string): void {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

/** Runs what is wished for and returns the exit code. */
async function main(args: string[]): Promise<number> {
  let order: Order;
  let known: string;
  try {
    if (args.includes("-h") || args.includes("--help")) return write(USAGE + "\n"), 0;
    order = readOrder(args);
    known = order.known === undefined ? "" : await Deno.readTextFile(order.known);
  } catch (error) {
    console.error(`millrace conformance: ${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  if (order.brief) Object.assign(patience, BRIEF);
  if (order.selfTest) return await selfTest(write);
  const groups = plan(order);
  if (order.list) return list(groups);
  if (!groups.some(({ cases }) => cases.length > 0)) {
    console.error("millrace conformance: no case fits");
    return 2;
  }
  return await run(order, groups, new Collector(readKnown(known)));
}

function list(groups: Group[]): number {
  const ids = groups.flatMap(({ cases }) =>
    cases.map(({ id, about }) => `${id.padEnd(44)} ${about}`)
  );
  write([...new Set(ids)].join("\n") + "\n");
  return 0;
}

async function run(order: Order, groups: Group[], collector: Collector): Promise<number> {
  outliveTrouble();
  let stopped = false;
  const rerun = rerunOf(order);
  const progress = new Progress(Deno.stdout.isTerminal(), write);
  const building = performance.now();
  const slow = setTimeout(() => {
    console.error("compiling our testees, in a minute or two the first time ...");
  }, 1_000);
  for (const { prepare } of order.programs) await prepare?.();
  clearTimeout(slow);
  collector.spent("builds", (performance.now() - building) / 1000);
  Deno.addSignalListener("SIGINT", async () => {
    if (stopped) Deno.exit(130);
    stopped = true;
    await finish(order, collector, rerun, true);
    killAll();
    await endCarriers();
    Deno.exit(130);
  });
  const runner = new Runner({
    begin: (each) => (collector.begin(each), progress.begin(each)),
    verdict: (verdict) => (collector.verdict(verdict), progress.step(verdict)),
    spent: (on, seconds) => collector.spent(on, seconds),
    hello: (name, hello) => collector.hello(name, hello),
    empty: (why) => collector.empty(why),
  }, () => stopped);
  for (const group of groups) {
    await runner.run(group);
    if (stopped) await new Promise(() => {}); // the listener ends the program
    progress.end(collector.cells.at(-1)!);
  }
  const ending = performance.now();
  await endCarriers();
  collector.spent("ends", (performance.now() - ending) / 1000);
  await finish(order, collector, rerun, false);
  return collector.failures().length + collector.stale().length > 0 ? 1 : 0;
}

/** Prints and writes what there is. */
async function finish(
  order: Order,
  collector: Collector,
  rerun: (verdict: Verdict) => string,
  interrupted: boolean,
): Promise<void> {
  for (const verdict of collector.failures()) {
    write(`\n${failureText(verdict, rerun(verdict))}\n`);
    if (verdict.saved === undefined) continue;
    const { save } = order;
    const where = save === undefined ? "nothing; --save FOLDER does" : await keep(save, verdict);
    write(`  kept: ${where}\n`);
  }
  for (const line of collector.stale()) write(`\nKNOWN FAILURE THAT PASSES: ${line}\n`);
  write(`\n${matrixText(collector.cells)}\n`);
  const unplayed = unplayedText(collector.verdicts);
  if (unplayed !== "") write(`\n${unplayed}\n`);
  const known = collector.verdicts.filter((each) => collector.isKnown(each)).length;
  const counts = countsText(collector.counts());
  write(`\n${interrupted ? "interrupted; " : ""}${counts}${known > 0 ? `, ${known} known` : ""}\n`);
  write(`${spentText(collector.seconds(), collector.spending())}\n`);
  const { json, junit, md, seed } = order;
  if (json !== undefined) {
    const report = collector.report(seed, interrupted, rerun);
    await Deno.writeTextFile(json, JSON.stringify(report, null, 2) + "\n");
  }
  if (junit !== undefined) await Deno.writeTextFile(junit, junitText(collector));
  if (md !== undefined) await Deno.writeTextFile(md, markdownText(collector, rerun));
}

/** Keeps transcripts, the plan and the image of a failed live run. */
async function keep(folder: string, verdict: Verdict): Promise<string> {
  const { id, carrier, testees, saved } = verdict;
  const name = `${folder}/${[id, carrier, ...testees].join("_").replace(/[^\w]+/g, "_")}`;
  await Deno.mkdir(name, { recursive: true });
  for (const [file, text] of saved!) await Deno.writeTextFile(`${name}/${file}`, text + "\n");
  return name;
}

// A worker that is blocked would keep the process from its natural end.
if (import.meta.main) Deno.exit(await main(Deno.args));
