/**
 * Makes checkers of models with Spin, and searches the states of a model with them.
 *
 * Needs `spin` and `zig` on PATH: `zig clang` is the preprocessor, and `zig cc` the compiler.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { CHOICE, unite } from "./variants.ts";
import { digestOf, type Verdicts } from "./verdicts.ts";

/** What the checker found. */
export interface Result {
  /** The first error's text, or nothing when the whole state space was searched without one. */
  error?: string;
  /** The whole report, for a reader of a failed test. */
  report: string;
}

/** How a checker is compiled, and what it may take. */
export interface Size {
  /** There are half a million states or more: it is worth compiling for speed. */
  large?: boolean | undefined;
  /** Megabytes. */
  memory: number;
  /** As a power of two, how many entries its table of states begins with; it grows. */
  table: number;
}

/** One more define of a model, and whether to search for a cycle too. */
export interface Variant {
  define: string;
  cycles: boolean;
}

/**
 * Searches all states of a model for one that is invalid, and for a cycle where that is asked for.
 * Stops at the first.
 */
export type Search = () => Promise<Result>;

const HERE = import.meta.dirname!;
// Not `zig cc`, which looks for the system's headers first: that takes three times as long as the
// rest, and no model includes one.
const CPP = ["clang", "-E", "-x", "c"];
/** The variable of the environment by which a checker is asked for cycles. */
const CYCLES = "MILLRACE_CYCLES";

// Spin's checker goes through the states depth first, and knows of each that it comes to whether it
// is new, or known, or on the path on which it is just then. The last is a cycle, and a model that
// has one has one that is found so. As long as it is asked for invalid end states and assertions
// only, the checker goes on there; this line tells it not to. Its own search for cycles visits each
// state twice and more.
const MATCH = "\t\t\tII = h_store((char *)&now, vsize);\n";
const ON_PATH = `\t\t\tif (II == 2 && getenv("${CYCLES}")) { uerror("cycle"); goto Up; }\n`;

// Nearly all the time goes into these three; the rest, above all the model's own steps in two huge
// functions, takes longer to optimize than it runs.
const SPEED = `#pragma clang optimize off
#define FAST __attribute__((minsize, noinline))
int h_store(char *, int) FAST;
void d_sfh(unsigned char *, int) FAST;
int compress(char *, int) FAST;
`;

// What those three wait for is memory, all over the table and the states: in pages of 2 MiB rather
// than 4 KiB a search takes a third less of a processor. Only glibc knows the name.
const HUGE_PAGES = { GLIBC_TUNABLES: "glibc.malloc.hugetlb=1" };

/** The checker of one model. `work` gets its search; the checker is gone after it. */
export async function withChecker<T>(
  file: string,
  defines: string[],
  size: Size,
  verdicts: Verdicts,
  work: (search: Search) => Promise<T>,
): Promise<T> {
  const directory = await Deno.makeTempDir({ prefix: "millrace-model-" });
  try {
    // Spin hands the file to a C preprocessor; by default that is gcc, which need not be there.
    const given = [`-Pzig ${CPP.join(" ")}`, ...defines.map((name) => `-D${name}`)];
    const checker = await Checker.of(directory, [...given, "-a", `${HERE}/${file}.pml`], size);
    return await work(() => checker.search({ variant: 0, cycles: true }, verdicts));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

/**
 * Makes one checker for many variants of a model, and gives the search of each. They live in
 * `folder`, which is the caller's. Throws where a define changes nothing, or the same as another
 * one.
 */
export async function compileVariants(
  file: string,
  defines: string[],
  variants: readonly Variant[],
  size: Size,
  folder: string,
  verdicts: Verdicts,
): Promise<Search[]> {
  const read = async (more: string[]) => {
    const given = [...defines, ...more].map((name) => `-D${name}`);
    return await execute("zig", [...CPP, "-P", ...given, `${HERE}/${file}.pml`], folder);
  };
  const texts: string[] = [];
  const known = new Map([[await read([]), "nothing"]]);
  for (const { define } of variants) {
    const text = await read([define]);
    const twin = known.get(text);
    assert(twin === undefined, `${file}.pml: ${define} changes what ${twin} changes`);
    known.set(text, define);
    texts.push(text);
  }
  const searches: Search[] = [];
  for (const [index, union] of unite(texts).entries()) {
    const directory = `${folder}/${index}`;
    await Deno.mkdir(directory);
    await Deno.writeTextFile(`${directory}/united.pml`, union.text);
    const checker = await Checker.of(directory, ["-Pcat", "-a", "united.pml"], size);
    for (const variant of union.variants) {
      const asked = { variant, cycles: variants[variant]!.cycles };
      searches[variant] = () => checker.search(asked, verdicts);
      if (!await checker.isKnown(asked, verdicts)) await checker.compile();
    }
  }
  return searches;
}

/** Which variant is searched, and whether for cycles. */
interface Asked {
  variant: number;
  cycles: boolean;
}

/** The checker that Spin makes of a model. */
class Checker {
  readonly #directory: string;
  readonly #table: number;
  /** What compiles it. */
  readonly #command: string[];
  /** What tells it from all others: the compiler, what that is told, and the sources. */
  readonly #digest: string;
  #compiled: Promise<unknown> | undefined;

  private constructor(directory: string, table: number, command: string[], digest: string) {
    this.#directory = directory;
    this.#table = table;
    this.#command = command;
    this.#digest = digest;
  }

  /** Has Spin write its sources. */
  static async of(directory: string, given: string[], size: Size): Promise<Checker> {
    const said = await execute("spin", given, directory);
    assert(!said.includes("rror:"), `Cannot read the model: spin ${given.join(" ")}:\n${said}`);
    const path = `${directory}/pan.c`;
    const parts = (await Deno.readTextFile(path)).split(MATCH);
    assertEquals(parts.length, 2, "This Spin makes other checkers: where do they store a state?");
    await Deno.writeTextFile(path, parts.join(MATCH + ON_PATH));
    await Deno.writeTextFile(`${directory}/speed.h`, SPEED);
    const speed = size.large ? ["-O1", "-include", "speed.h"] : ["-O0"];
    // The generated checker shifts signed numbers; zig cc would trap that.
    const flags = [...speed, "-g0", "-w", "-fno-sanitize=undefined"];
    const defines = [`-DMEMLIM=${size.memory}`, "-DSAFETY"];
    const command = ["cc", ...flags, ...defines, "-o", "pan", "pan.c"];
    const texts = [await compiler(), ...command];
    const names = [...Deno.readDirSync(directory)].map(({ name }) => name);
    for (const name of names.filter((each) => /^pan\.|^speed\.h$/.test(each)).sort()) {
      // Where the model lies, they say too.
      const text = await Deno.readTextFile(`${directory}/${name}`);
      texts.push(name, text.replaceAll(`${HERE}/`, ""));
    }
    return new Checker(directory, size.table, command, await digestOf(texts));
  }

  compile(): Promise<unknown> {
    return this.#compiled ??= execute("zig", this.#command, this.#directory);
  }

  /** Whether a search has been made, by another run. */
  async isKnown(asked: Asked, verdicts: Verdicts): Promise<boolean> {
    return await verdicts.find(await this.#keyOf(asked)) !== undefined;
  }

  search(asked: Asked, verdicts: Verdicts): Promise<Result> {
    return this.#keyOf(asked).then((key) => verdicts.get(key, () => this.#run(asked)));
  }

  async #run({ variant, cycles }: Asked): Promise<Result> {
    await this.compile();
    const env = { ...HUGE_PAGES, [CHOICE]: `${variant}`, ...(cycles && { [CYCLES]: "1" }) };
    return readReport(await execute("./pan", this.#args(), this.#directory, env));
  }

  #args(): string[] {
    return ["-m100000", `-w${this.#table}`];
  }

  #keyOf({ variant, cycles }: Asked): Promise<string> {
    return digestOf([this.#digest, ...this.#args(), `${variant}`, `${cycles}`]);
  }
}

let version: Promise<string> | undefined;

/** The compiler, and for which machine it compiles. */
async function compiler(): Promise<string> {
  return `${await (version ??= execute("zig", ["version"], HERE))} ${Deno.build.target}`;
}

async function execute(
  command: string,
  args: string[],
  cwd: string,
  variables: Record<string, string> = {},
): Promise<string> {
  // Objects of a model are never asked for twice, so they need not stay in the shared cache.
  const env = { ZIG_LOCAL_CACHE_DIR: `${cwd}/cache`, ...variables };
  const run = new Deno.Command(command, { args, cwd, env, stdout: "piped", stderr: "piped" });
  const { code, stdout, stderr } = await run.output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assertEquals(code, 0, `Cannot run ${command} ${args.join(" ")}: code ${code}\n${text}`);
  return text;
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
  return { ...(error !== undefined && { error }), report };
}
