/**
 * Plants single faults in our own two implementations, one after the other, and shows which of
 * them the kit catches: `./millrace test mutants`. See `conformance/README.md`.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { endOnSignals, run } from "../../tools/run.ts";
import { type Failure, type Fate, fateOf, foldRuns, type Judged } from "./judge.ts";
import { keyOf, lineOf, neededOf, summaryOf } from "./judge.ts";
import { type Implementation, IMPLEMENTATIONS, loadMutants, type Mutant } from "./mutant.ts";
import type { PlayOrder } from "./play.ts";
import { plantedIn, Tree } from "./tree.ts";

const USAGE = `Usage: ./millrace test mutants [option...] [name...]

Plants each fault of the tables in conformance/mutants, or those that are named (\`*\` stands for
anything), and runs the kit against it.

  --implementation NAME  only the faults of typescript or of zig
  --races N              runs each race N times, of which 19 of 20 must catch it; default 1
  --list                 prints the faults and ends

Exit code 0: at least 95 % are caught, each by a case that names the clause. 1: they are not, a
fault no longer fits the code or is not built, or a case fails without a fault. 2: wrong usage.`;

const ROOT = fileURLToPath(new URL("../../", import.meta.url)).replace(/\/$/, "");
const TABLES = new URL("./", import.meta.url);
/** Longer than all cases take, when each of some dozen ends by its timeout. */
const PLAY_MS = 4 * 60_000;

/** A testee of an implementation, and the step of build.zig that makes it. */
interface Testee {
  program: string;
  step?: string;
}

/**
 * Where a fault of an implementation can show: the next testee is played only where the one before
 * has not caught it. In a process nobody sleeps by the mechanism of an engine; in a worker they do.
 */
const TESTEES: Readonly<Record<Implementation, readonly Testee[]>> = {
  typescript: [{ program: "typescript" }],
  zig: [{ program: "zig", step: "testee" }, { program: "zig-wasm", step: "testee-guest" }],
};

/** What the command line says. */
interface Order {
  mutants: Mutant[];
  races: number;
  list: boolean;
}

class UsageError extends Error {}

async function readOrder(args: string[]): Promise<Order> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      implementation: { type: "string" },
      races: { type: "string", default: "1" },
      list: { type: "boolean", default: false },
    },
  });
  const { implementation } = values;
  if (implementation !== undefined && !IMPLEMENTATIONS.some((each) => each === implementation)) {
    throw new UsageError(`no implementation ${implementation}: ${IMPLEMENTATIONS.join(", ")}`);
  }
  const races = Number(values.races);
  if (!Number.isInteger(races) || races < 1) throw new UsageError(`--races ${values.races}`);
  const all = await loadMutants(TABLES);
  for (const name of positionals) {
    if (!all.some((each) => fits(each, name))) throw new UsageError(`no fault ${name}`);
  }
  const mutants = all.filter((each) =>
    (positionals.length === 0 || positionals.some((name) => fits(each, name))) &&
    (implementation === undefined || each.implementation === implementation)
  );
  return { mutants, races, list: values.list };
}

function fits({ name }: Mutant, glob: string): boolean {
  const pattern = glob.split("*").map((part) => part.replace(/\W/g, "\\$&")).join(".*");
  return new RegExp(`^${pattern}$`).test(name);
}

/** Mutants of one implementation, one after the other, in one copy of the tree. */
class Lane {
  readonly #implementation: Implementation;
  readonly #tree: Tree;
  /** A file with the cases that fail without a fault. */
  readonly #known: string;
  readonly failing: Failure[];

  private constructor(who: Implementation, tree: Tree, known: string, failing: Failure[]) {
    this.#implementation = who;
    this.#tree = tree;
    this.#known = known;
    this.failing = failing;
  }

  /** Builds what is there without a fault, and finds out what fails then. */
  static async open(implementation: Implementation, tree: Tree): Promise<Lane> {
    const failing: Failure[] = [];
    for (const { program, step } of TESTEES[implementation]) {
      const why = step === undefined ? undefined : await tree.build(step);
      if (why !== undefined) throw new Error(`without a fault, zig build fails: ${why}`);
      failing.push(...await play(tree, { program }));
    }
    const known = `${tree.root}/known.json`;
    await Deno.writeTextFile(known, JSON.stringify(failing.map(keyOf)));
    return new Lane(implementation, tree, known, failing);
  }

  /** Runs a mutant; a race so many times, and no longer than enough of them can catch it. */
  async judge(mutant: Mutant, races: number): Promise<Judged> {
    const begun = performance.now();
    const runs = mutant.isRace ? races : 1;
    const fates = await this.#fates(mutant, runs);
    const seconds = (performance.now() - begun) / 1000;
    const caught = fates.filter(({ kind }) => kind === "caught").length;
    return { mutant, fate: foldRuns(fates, runs), seconds, runs, caught };
  }

  async #fates(mutant: Mutant, runs: number): Promise<Fate[]> {
    const fates: Fate[] = [];
    const built = new Set<string>();
    const missed = () => fates.filter(({ kind }) => kind !== "caught").length;
    try {
      if (mutant.equivalent !== undefined) {
        await plantedIn(this.#tree.root, mutant);
        return [{ kind: "equivalent" }];
      }
      await this.#tree.with(mutant, async () => {
        while (fates.length < runs && missed() <= runs - neededOf(runs)) {
          fates.push(await this.#fate(mutant, built));
        }
      });
    } catch (error) {
      fates.push({ kind: "error", what: (error as Error).message });
    }
    return fates;
  }

  /** What comes of the mutant that is planted: with the testee that catches it, or with all. */
  async #fate({ clause }: Mutant, built: Set<string>): Promise<Fate> {
    const failures: Failure[] = [];
    for (const { program, step } of TESTEES[this.#implementation]) {
      if (step !== undefined && !built.has(step)) {
        const why = await this.#tree.build(step);
        if (why !== undefined) throw new Error(`is not built: ${why}`);
        built.add(step);
      }
      failures.push(...await play(this.#tree, { program, clause, known: this.#known }));
      const fate = fateOf(clause, failures);
      if (fate.kind === "caught") return fate;
    }
    return fateOf(clause, failures);
  }
}

/** The cases that fail in a tree. */
async function play(tree: Tree, order: PlayOrder): Promise<Failure[]> {
  const script = `${tree.root}/conformance/mutants/play.ts`;
  const command = [Deno.execPath(), "run", "-A", "--no-check", script, JSON.stringify(order)];
  const options = { cwd: tree.root, timeoutMs: PLAY_MS, echo: false };
  const { code, timedOut, output } = await run(command, options);
  if (code !== 0 && !timedOut) {
    const why = /^.*error: .*$/m.exec(output)?.[0] ?? output.trim();
    throw new Error(`the kit ended with ${code}: ${why}`);
  }
  return output.split("\n").filter((line) => line.startsWith('{"id"'))
    .map((line) => JSON.parse(line));
}

/** Both implementations side by side; each prints a line as soon as it is known. */
async function runAll({ mutants, races }: Order): Promise<number> {
  const begun = performance.now();
  const judged: Judged[] = [];
  const failing: string[] = [];
  const trees: Tree[] = [];
  endOnSignals(async () => {
    await Promise.allSettled(trees.map((tree) => tree.remove()));
  });
  const runLane = async (implementation: Implementation) => {
    const own = mutants.filter((mutant) => mutant.implementation === implementation);
    if (own.length === 0) return;
    const tree = await Tree.copy(ROOT);
    trees.push(tree);
    const lane = await Lane.open(implementation, tree);
    for (const failure of lane.failing) {
      failing.push(keyOf(failure));
      console.log(`${implementation} fails without a fault: ${keyOf(failure)}: ${failure.why}`);
    }
    for (const mutant of own) {
      const each = await lane.judge(mutant, races);
      judged.push(each);
      console.log(`${String(judged.length).padStart(3)}/${mutants.length} ${lineOf(each)}`);
    }
  };
  try {
    await Promise.all(IMPLEMENTATIONS.map(runLane));
  } finally {
    await Promise.allSettled(trees.map((tree) => tree.remove()));
  }
  const lost = judged.filter(({ fate: { kind } }) => kind !== "caught" && kind !== "equivalent");
  if (lost.length > 0) console.log(`\nnot caught as they must be:\n${lost.map(lineOf).join("\n")}`);
  const { isGood, text } = summaryOf(judged, failing.length);
  console.log(`\n${((performance.now() - begun) / 1000).toFixed(1)} s\n${text}`);
  return isGood ? 0 : 1;
}

async function main(args: string[]): Promise<number> {
  try {
    if (args.includes("-h") || args.includes("--help")) return console.log(USAGE), 0;
    const order = await readOrder(args);
    if (!order.list) return await runAll(order);
    for (const { name, clause, fault, isRace, equivalent } of order.mutants) {
      const marks = `${isRace ? " (race)" : ""}${equivalent === undefined ? "" : " (equivalent)"}`;
      console.log(`${name.padEnd(30)} [${clause}] ${fault}${marks}`);
    }
    return 0;
  } catch (error) {
    const isUsage = error instanceof UsageError || error instanceof TypeError;
    console.error(`millrace test mutants: ${(error as Error).message}`);
    if (isUsage) console.error(`\n${USAGE}`);
    return isUsage ? 2 : 1;
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
