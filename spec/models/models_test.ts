/**
 * Checks the models with Spin, and that the checker would notice: each mutation breaks one rule of
 * the protocol, and has to fail in the way that is listed for it in `mutations.ts`.
 *
 * Needs `spin` and `zig` on PATH. Without Spin the tests are ignored, unless CI=true or
 * MILLRACE_REQUIRE_ALL=1. What takes long is searched only with MILLRACE_TEST_ALL=1.
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { type Failure, type Model, models } from "./mutations.ts";

const HERE = import.meta.dirname!;
const HINT = "install the model checker: apt-get install spin";

/** What the checker found. */
interface Result {
  /** The first error's text, or nothing when the whole state space was searched without one. */
  error: string | undefined;
  /** The whole report, for a reader of a failed test. */
  report: string;
}

/** Lets `count` callers in at a time. Compiling and searching are one processor's work each. */
class Gate {
  #free: number;
  #queue: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#free++;
    }
  }
}

const gate = new Gate(Math.min(2, navigator.hardwareConcurrency));

async function execute(command: string, args: string[], cwd: string): Promise<string> {
  // Objects of a model are never asked for twice, so they need not stay in the shared cache.
  const env = { ZIG_LOCAL_CACHE_DIR: `${cwd}/cache` };
  const run = new Deno.Command(command, { args, cwd, env, stdout: "piped", stderr: "piped" });
  const { code, stdout, stderr } = await run.output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assertEquals(code, 0, `Cannot run ${command} ${args.join(" ")}: code ${code}\n${text}`);
  return text;
}

/** Searches the whole state space of a model for one kind of fault. */
async function check(model: Model, look: "safety" | "cycles", defines: string[]): Promise<Result> {
  const directory = await Deno.makeTempDir({ prefix: "millrace-model-" });
  try {
    // Spin hands the file to a C preprocessor; by default that is gcc, which need not be there.
    const spin = ["-Pzig cc -E -x c", ...defines.map((name) => `-D${name}`), "-a"];
    const said = await execute("spin", [...spin, `${HERE}/${model.file}.pml`], directory);
    assert(!said.includes("rror:"), `Cannot read ${model.file}.pml:\n${said}`);

    // The generated checker shifts signed numbers; zig cc would trap that.
    const size = model.long ? ["-O1", "-DMEMLIM=3072"] : ["-O0", "-DMEMLIM=1024"];
    const flags = [...size, "-w", "-fno-sanitize=undefined"];
    const kind = look === "safety" ? "-DSAFETY" : "-DNP";
    await execute("zig", ["cc", ...flags, kind, "-o", "pan", "pan.c"], directory);

    const search = ["-m100000", "-w22", ...(look === "cycles" ? ["-l"] : [])];
    return readReport(await execute("./pan", search, directory));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

/** Takes a report apart. Throws when the search was cut short for another reason than an error. */
function readReport(report: string): Result {
  const count = /errors: (\d+)/.exec(report)?.[1];
  assert(count !== undefined, `Cannot find a result in the report:\n${report}`);
  const error = /^pan:\d+: (.*)$/m.exec(report)?.[1];
  assertEquals(error !== undefined, count !== "0", report);
  if (error === undefined) {
    for (const sign of ["not completed", "too small", "MEMLIM", "out of memory", "truncated"]) {
      assert(!report.includes(sign), `Cannot search all states: ${sign}\n${report}`);
    }
  }
  return { error, report };
}

/** Statements that no execution reaches; the end of a process that never ends is not one. */
function unreached(report: string): string[] {
  return [...report.matchAll(/^\t.*state \d+, "(.*)"$/gm)]
    .filter((match) => match[1] !== "-end-").map((match) => match[0].trim());
}

function summary(name: string, look: string, report: string, started: number): string {
  const states = /(\d+) states, stored/.exec(report)?.[1];
  const transitions = /(\d+) transitions/.exec(report)?.[1];
  const depth = /depth reached (\d+)/.exec(report)?.[1];
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  return `${name}, ${look}: ${states} states, ${transitions} transitions, depth ${depth}, ` +
    `${seconds} s with compiling`;
}

/** Whether a failure is the one that the mutation has to cause, and not just any. */
function assertFailure(expected: Failure, result: Result): void {
  const told = result.error ?? "no error";
  if (expected === "none") return assertEquals(result.error, undefined, result.report);
  if (expected === "deadlock") return assertStringIncludes(told, "invalid end state");
  if (expected === "cycle") return assertStringIncludes(told, "non-progress cycle");
  assertStringIncludes(told, "assertion violated");
  assertStringIncludes(told, expected.assert);
}

/** One search of a model that has to hold. */
async function checkModel(model: Model, look: "safety" | "cycles"): Promise<void> {
  const started = performance.now();
  const smaller = look === "cycles" ? model.cycleDefines ?? [] : [];
  const result = await check(model, look, [...(model.defines ?? []), ...smaller]);
  assertEquals(result.error, undefined, result.report);
  if (look === "safety") {
    assertEquals(unreached(result.report), [], "Statements that are never executed prove nothing.");
  }
  console.log(summary(labelOf(model), look, result.report, started));
}

async function checkMutation(model: Model, name: string, expected: Failure): Promise<void> {
  const look = expected === "cycle" ? "cycles" : "safety";
  const defines = [...(model.defines ?? []), ...(model.mutationDefines ?? []), `MUT_${name}`];
  assertFailure(expected, await check(model, look, defines));
}

function labelOf(model: Model): string {
  return [model.file, ...(model.defines ?? [])].join(" ");
}

async function installed(command: string): Promise<boolean> {
  try {
    await new Deno.Command(command, { args: ["-V"], stdout: "null", stderr: "null" }).output();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

const required = Deno.env.get("CI") === "true" || Deno.env.get("MILLRACE_REQUIRE_ALL") === "1";
const present = await installed("spin");
if (!present) console.error(`models: spin is not on PATH; ${HINT}`);

// Steps that run side by side cannot be watched for what they leave open.
const aside = { sanitizeOps: false, sanitizeResources: false, sanitizeExit: false };

/** The searches of one model: without a cycle and an invalid end state, every execution delivers
 * everything; and the mutations. */
function searchesOf(model: Model): Deno.TestStepDefinition[] {
  const steps: Deno.TestStepDefinition[] = [];
  const add = (name: string, work: () => Promise<void>) =>
    steps.push({ name, fn: () => gate.run(work), ...aside });
  add("has no cycle", () => checkModel(model, "cycles"));
  add("is safe", () => checkModel(model, "safety"));
  for (const [name, expected] of Object.entries(model.mutations)) {
    const verb = expected === "none" ? "tolerates" : "catches";
    add(`${verb} ${name}`, () => checkMutation(model, name, expected));
  }
  return steps;
}

// One test, so that a second search always runs beside the long one of another model. Names on the
// command line, `deno test -A spec/models -- park close`, choose models.
Deno.test({
  name: "models",
  ignore: !present && !required,
  async fn(test) {
    assert(present, `Cannot check the models: ${HINT}`);
    const all = Deno.env.get("MILLRACE_TEST_ALL") === "1";
    const chosen = models.filter(({ file, long }) =>
      (all || !long) && (Deno.args.length === 0 || Deno.args.includes(file))
    );
    assert(chosen.length > 0, `Cannot find a model: ${Deno.args.join(" ")}`);
    const parts = chosen.map((model) =>
      test.step({
        name: labelOf(model),
        fn: async (part) =>
          void await Promise.all(searchesOf(model).map((step) => part.step(step))),
        ...aside,
      })
    );
    const passed = await Promise.all(parts);
    assert(passed.every((each) => each));
  },
});

Deno.test("every mutation in a model is listed, and every listed one exists", () => {
  const shared = mutationsIn("wake.inc");
  const files = new Set(models.map((model) => model.file));
  const listed = new Set<string>();
  for (const file of files) {
    const own = mutationsIn(`${file}.pml`);
    const names = models.filter((model) => model.file === file)
      .flatMap((model) => Object.keys(model.mutations));
    for (const name of own) assert(names.includes(name), `${file}.pml: ${name} is not listed`);
    for (const name of names) {
      assert(own.has(name) || shared.has(name), `${file}: ${name} is in no file`);
      listed.add(name);
    }
  }
  for (const name of shared) assert(listed.has(name), `wake.inc: ${name} is not listed`);
});

Deno.test("the README's tables say how each mutation is caught", () => {
  const rows = new Set(
    [...Deno.readTextFileSync(`${HERE}/README.md`).matchAll(/^\| `(\w+)` \|.*\| (.*) \|$/gm)]
      .map((match) => `${match[1]}: ${match[2]}`),
  );
  const expected = new Set<string>();
  for (const model of models) {
    for (const [name, failure] of Object.entries(model.mutations)) {
      const how = typeof failure === "string" ? failure : "assertion";
      expected.add(`${name}: ${how === "none" ? "tolerated" : how} in \`${model.file}\``);
    }
  }
  const told = new Set([...rows].flatMap((row) => {
    const [name, list] = row.split(": ") as [string, string];
    return list.split(", ").map((how) => `${name}: ${how}`);
  }));
  assertEquals([...told].sort(), [...expected].sort());
});

function mutationsIn(file: string): Set<string> {
  const text = Deno.readTextFileSync(`${HERE}/${file}`);
  return new Set([...text.matchAll(/\bMUT_([A-Z_]+[A-Z])\b/g)].map((match) => match[1]!));
}
