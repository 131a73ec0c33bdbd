import { assert, assertEquals } from "@std/assert";
import { listFiles } from "./files.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);
const ZIG = "impl-zig/src/";
const TYPESCRIPT = "impl-ts/src/";

/** A row of the table in CONTRIBUTING.md: paths without the folder of the sources and the end. */
interface Row {
  twins: string[];
  alone: string[];
  /** Whether all files of the folder are only in Zig. */
  folder?: string;
}

function readRows(text: string): Row[] {
  const section = text.split("## Which file is the twin of which\n")[1]!.split("\n## ")[0]!;
  const names = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
  return [...section.matchAll(/^\| (`\w+\/`|the top) \| (.*?) ?\| (.*?) ?\|$/gm)]
    .map(([, first, twins, alone]) => {
      const folder = names(first!)[0] ?? "";
      const paths = (cell: string) => names(cell).map((name) => folder + name);
      const row = { twins: paths(twins!), alone: paths(alone!) };
      return alone!.startsWith("all: ") ? { ...row, folder } : row;
    });
}

/** What is wrong with the rows, for files by their paths. */
function problemsOf(rows: readonly Row[], paths: readonly string[]): string[] {
  const problems: string[] = [];
  const named = rows.flatMap(({ twins, alone }) => [...twins, ...alone]);
  for (const name of named.filter((each, index) => named.indexOf(each) !== index)) {
    problems.push(`${name}: named twice`);
  }
  const isThere = (name: string, end: string) =>
    paths.includes(`${end === "zig" ? ZIG : TYPESCRIPT}${name}.${end}`);
  for (const { twins, alone } of rows) {
    for (const name of twins) {
      for (const end of ["zig", "ts"]) {
        if (!isThere(name, end)) problems.push(`${name}: no such file in ${end}`);
      }
    }
    for (const name of alone) {
      if (!isThere(name, "zig")) problems.push(`${name}: no such file in zig`);
      if (isThere(name, "ts")) problems.push(`${name}: has a twin`);
    }
  }
  const folders = rows.flatMap(({ folder }) => folder ?? []);
  for (const path of paths) {
    if (!path.startsWith(ZIG) || !path.endsWith(".zig")) continue;
    const name = path.slice(ZIG.length, -".zig".length);
    // What only tests share has no place in the table.
    if (/(_test|fixture)$/.test(name) || folders.some((folder) => name.startsWith(folder))) {
      continue;
    }
    if (!named.includes(name)) problems.push(`${name}: not in the table`);
  }
  return problems;
}

Deno.test("twins: the table in CONTRIBUTING.md has each file of Zig, with its twin", async () => {
  const text = await Deno.readTextFile(`${ROOT}/CONTRIBUTING.md`);
  const rows = readRows(text);
  assert(rows.length > 15, `${rows.length}`);
  assertEquals(problemsOf(rows, await listFiles(ROOT)), []);
});

Deno.test("twins: a file that is missing, not named, named twice or not alone is told", () => {
  const text = "## Which file is the twin of which\n\n| folder | twins | only in Zig |\n" +
    "| --- | --- | --- |\n| the top | `error` | `root` |\n| `a/` | `b`, `b` | `c` |\n" +
    "| `d/` | | all: of one kind |\n";
  const zig = ["error", "root", "a/b", "a/c", "d/e", "a/b_test", "a/fixture"];
  const files = (more: string[]) => [
    ...[...zig, ...more].map((name) => `${ZIG}${name}.zig`),
    ...["error", "a/b"].map((name) => `${TYPESCRIPT}${name}.ts`),
  ];
  const rows = readRows(text);
  assertEquals(problemsOf(rows, files(["f", "a/f"])), [
    "a/b: named twice",
    "f: not in the table",
    "a/f: not in the table",
  ]);
  const changed = [`${TYPESCRIPT}a/c.ts`, ...files([]).filter((path) => !/error\.ts/.test(path))];
  assertEquals(problemsOf(rows, changed), [
    "a/b: named twice",
    "error: no such file in ts",
    "a/c: has a twin",
  ]);
});
