/**
 * Checks the models with Spin, and that the checker would notice: each mutation breaks one rule of
 * the protocol, and has to fail in the way that is listed for it in `mutations.ts`.
 *
 * Needs `spin` and `zig` on PATH. Without Spin the tests are ignored, unless CI=true or
 * MILLRACE_REQUIRE_ALL=1. What takes long is searched only with MILLRACE_TEST_ALL=1. What another
 * run has found is taken from the cache, and counted; with MILLRACE_TEST_ALL=1, all is searched.
 */

import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { cacheFolder } from "../../tools/programs.ts";
import { compileVariants, type Result, type Search, type Size, withChecker } from "./checker.ts";
import { type Failure, type Model, models } from "./mutations.ts";
import { digestOf, Verdicts } from "./verdicts.ts";

const HERE = import.meta.dirname!;
const HINT = "install the model checker: apt-get install spin";

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

const all = Deno.env.get("MILLRACE_TEST_ALL") === "1";
const verdicts = new Verdicts(cacheFolder("models"), !all);
const gate = new Gate(Math.min(2, navigator.hardwareConcurrency));

/** Statements that no execution reaches; the end of a process that never ends is not one. */
function unreached(report: string): string[] {
  return [...report.matchAll(/^\t.*state \d+, "(.*)"$/gm)]
    .filter((match) => match[1] !== "-end-").map((match) => match[0].trim());
}

function summary(name: string, report: string, started: number): string {
  const states = /(\d+) states, stored/.exec(report)?.[1];
  const transitions = /(\d+) transitions/.exec(report)?.[1];
  const depth = /depth reached (\d+)/.exec(report)?.[1];
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  return `${name}: ${states} states, ${transitions} transitions, depth ${depth}, ` +
    `${seconds} s with compiling`;
}

/** Whether a failure is the one that the mutation has to cause, and not just any. */
function assertFailure(expected: Failure, result: Result): void {
  const told = result.error ?? "no error";
  if (expected === "none") return assertEquals(result.error, undefined, result.report);
  if (expected === "deadlock") return assertStringIncludes(told, "invalid end state");
  if (expected === "cycle") return assertStringIncludes(told, "cycle (at depth");
  assertStringIncludes(told, "assertion violated");
  assertStringIncludes(told, expected.assert);
}

/** A model has to hold. Without a cycle and an invalid end state, every execution delivers
 * everything. */
async function checkModel(model: Model): Promise<void> {
  const started = performance.now();
  await withChecker(model.file, model.defines ?? [], sizeOf(model), verdicts, async (search) => {
    const { error, report } = await search();
    assertEquals(error, undefined, report);
    assertEquals(unreached(report), [], "Statements that are never executed prove nothing.");
    console.log(summary(labelOf(model), report, started));
  });
}

async function compileMutations(model: Model, folder: string): Promise<Map<string, Search>> {
  const names = Object.keys(model.mutations);
  const defines = [...(model.defines ?? []), ...(model.mutationDefines ?? [])];
  const size = { ...sizeOf(model), table: 18 };
  const variants = Object.entries(model.mutations).map(([name, expected]) => ({
    define: `MUT_${name}`,
    // What is broken otherwise may go round in circles before that shows.
    cycles: expected === "none" || expected === "cycle",
  }));
  const searches = await compileVariants(model.file, defines, variants, size, folder, verdicts);
  return new Map(names.map((name, index) => [name, searches[index]!]));
}

function sizeOf({ large, long }: Model): Size {
  const isLarge = large ?? long;
  return { large: isLarge, memory: long ? 3072 : 1024, table: isLarge ? 24 : 20 };
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

/** What is searched for one model: itself, and its mutations with one checker for all of them. */
function searchesOf(model: Model, folder: string): Deno.TestStepDefinition[] {
  const checkers = gate.run(() => compileMutations(model, folder));
  checkers.catch(() => {}); // each of them says so
  const mutations = Object.entries(model.mutations).map(([name, expected]) => ({
    name: `${expected === "none" ? "tolerates" : "catches"} ${name}`,
    fn: async () => {
      const search = (await checkers).get(name)!;
      await gate.run(async () => assertFailure(expected, await search()));
    },
    ...aside,
  }));
  const own = { name: "is safe, and has no cycle", fn: () => gate.run(() => checkModel(model)) };
  return [{ ...own, ...aside }, ...mutations];
}

async function searchAll(model: Model, part: Deno.TestContext): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-model-" });
  try {
    await Promise.all(searchesOf(model, folder).map((step) => part.step(step)));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

// One test, so that a second search always runs beside the long one of another model. Names on the
// command line, `deno test -A spec/models -- park close`, choose models.
Deno.test({
  name: "models",
  ignore: !present && !required,
  async fn(test) {
    assert(present, `Cannot check the models: ${HINT}`);
    const chosen = models.filter(({ file, long }) =>
      (all || !long) && (Deno.args.length === 0 || Deno.args.includes(file))
    );
    assert(chosen.length > 0, `Cannot find a model: ${Deno.args.join(" ")}`);
    const parts = chosen.map((model) =>
      test.step({ name: labelOf(model), fn: (part) => searchAll(model, part), ...aside })
    );
    const passed = await Promise.all(parts);
    assert(passed.every((each) => each));
    console.log(`summary: ${verdicts.kept} of ${verdicts.asked} verdicts on models from the cache`);
  },
});

Deno.test("a mutation that changes nothing, or what another one changes, is refused", async () => {
  const folder = await Deno.makeTempDir({ prefix: "millrace-model-" });
  const size = { memory: 1024, table: 18 };
  const refuses = (defines: string[], why: string) => {
    const variants = defines.map((define) => ({ define, cycles: false }));
    const compile = () => compileVariants("park", [], variants, size, folder, verdicts);
    return assertRejects(compile, Error, why);
  };
  try {
    await refuses(["MUT_NO_BIT", "MUT_UNHEARD_OF"], "MUT_UNHEARD_OF changes what nothing changes");
    await refuses(["MUT_NO_BIT", "MUT_NO_BIT=1"], "MUT_NO_BIT=1 changes what MUT_NO_BIT changes");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test({
  name: "a verdict is kept for the same model, variant and arguments, and for no other",
  ignore: !present && !required,
  async fn() {
    const kept = await Deno.makeTempDir({ prefix: "millrace-model-" });
    /** How many of the searches of two mutations were spared, and what was found. */
    const play = async (table: number, cycles: boolean, defines: string[] = [], takes = true) => {
      const folder = await Deno.makeTempDir({ prefix: "millrace-model-" });
      const [size, own] = [{ memory: 1024, table }, new Verdicts(kept, takes)];
      const variants = ["MUT_NO_BIT", "MUT_NO_DISARM"].map((define) => ({ define, cycles }));
      try {
        const searches = await compileVariants("park", defines, variants, size, folder, own);
        const errors = await Promise.all(searches.map(async (search) => (await search()).error));
        assertEquals(own.asked, 2);
        if (defines.length > 0) return own.kept;
        assertStringIncludes(errors[0]!, "invalid end state");
        assertStringIncludes(errors[1]!, "assertion violated");
        return own.kept;
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    };
    try {
      assertEquals(await play(16, false), 0);
      assertEquals(await play(16, false), 2);
      assertEquals(await play(17, false), 0);
      assertEquals(await play(16, true), 0);
      // The same, with another rule broken.
      assertEquals(await play(16, false, ["MUT_NEVER_SLEEPS"]), 0);
      assertEquals(await play(16, false, [], false), 0);
      for (const { name } of [...Deno.readDirSync(kept)]) {
        await Deno.truncate(`${kept}/${name}`, 10);
      }
      assertEquals(await play(16, false), 0);
    } finally {
      await Deno.remove(kept, { recursive: true });
    }
  },
});

Deno.test("digestOf: texts are told apart by where they end, too", async () => {
  const digests = await Promise.all([["ab", "c"], ["a", "bc"], ["abc"], ["ab", "c"]].map(digestOf));
  assertEquals(new Set(digests).size, 3);
  assertEquals(digests[3], digests[0]);
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
