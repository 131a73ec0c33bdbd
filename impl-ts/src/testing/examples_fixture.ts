/**
 * Runs the examples in the doc comments. Deno itself would give each of them an isolate of its own,
 * which takes longer to start than all of them take to run: here those of a folder share one.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";

/** Only an example that hangs gets there. */
const TIMEOUT_MS = 600_000;

/** An example, as a module that has one test. */
interface Example {
  /** Its file and the line of its first fence, from 1: the name of its test. */
  name: string;
  module: string;
  /** What the comments after its calls of `console.log` promise. */
  promised: string[];
}

/** Checks the types of the examples in the doc comments of some files: one compiler for all. */
export async function checkExamples(directory: string, files: readonly string[]): Promise<void> {
  await withProject(examplesOf(directory, files), ["check", "main.ts"]);
}

/**
 * Runs the examples in the doc comments of some files, whose types `checkExamples` checks, and
 * returns how many there are. Each must print what the comments after its calls of `console.log`
 * say: `// 1, then 2` are two lines, and neither quotes nor spaces count.
 */
export async function runExamples(
  directory: string,
  files: string[],
  permissions: string[] = ["-A"],
): Promise<number> {
  const examples = examplesOf(directory, files);
  const text = await withProject(examples, ["test", "--no-check", ...permissions, "main.ts"]);
  for (const { name, promised } of examples) assertEquals(printedBy(text, name), promised, name);
  assertEquals(Number(/(\d+) passed/.exec(text)?.[1]), examples.length);
  return examples.length;
}

/** What Deno prints, which must end well, in a project of the examples and `main.ts` of all. */
async function withProject(examples: Example[], [command, ...rest]: string[]): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-examples-" });
  try {
    await Deno.writeTextFile(`${folder}/deno.json`, await examplesConfig());
    // It says the versions of the libraries, which are there already.
    await Deno.copyFile(new URL("../../../deno.lock", import.meta.url), `${folder}/deno.lock`);
    const paths = examples.map((_, index) => `example_${index}.ts`);
    for (const [index, { module }] of examples.entries()) {
      await Deno.writeTextFile(`${folder}/${paths[index]}`, module);
    }
    const imports = paths.map((path) => `import "./${path}";\n`);
    await Deno.writeTextFile(`${folder}/main.ts`, imports.join(""));
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [command!, "--config", "deno.json", ...rest],
      cwd: folder,
      env: { NO_COLOR: "1" },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      stdout: "piped",
      stderr: "piped",
    }).output();
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    assert(code === 0, text);
    return text;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** The examples in the doc comments of some files. */
function examplesOf(directory: string, files: readonly string[]): Example[] {
  return files.flatMap((file) => {
    const lines = Deno.readTextFileSync(`${directory}/${file}`).split("\n");
    return placesIn(lines).map(([first, last]) => {
      const body = lines.slice(first, last).map((line) => line.replace(/^ *\* ?/, ""));
      const name = `${file}:${first}`;
      const promised = linesOf(body.flatMap(promisedBy).join("\n"));
      return { name, module: moduleOf(name, body.join("\n")), promised };
    });
  });
}

/** A module that has an example as its test: its imports stand before that, and it exports none. */
function moduleOf(name: string, body: string): string {
  const imports: string[] = [];
  const rest = body.replace(/^import\b[^;]*;/gm, (each) => (imports.push(each), ""))
    .replace(/^export default /gm, "void ");
  const test = `Deno.test(${JSON.stringify(name)}, async () => {\n${rest}\n});\n`;
  return `${imports.join("\n")}\n${test}`;
}

/**
 * A project that has the package. Not that of the sources: what Deno puts around an example imports
 * every name of the file, and would fail at `noUnusedLocals`.
 */
export async function examplesConfig(): Promise<string> {
  const root = new URL("../../", import.meta.url);
  const { name, exports, imports } = JSON.parse(
    await Deno.readTextFile(new URL("deno.json", root)),
  );
  const libraries = Object.entries<string>(imports).filter(([, path]) => path.startsWith("npm:"));
  const entries = Object.entries<string>(exports).map(([subpath, path]) => [
    name + subpath.slice(1),
    new URL(path, root).href,
  ]);
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
  };
  return JSON.stringify({
    imports: Object.fromEntries([...entries, ...libraries]),
    compilerOptions,
  });
}

/** Where the examples of a file stand: the lines between the fences, the last one left out. */
function placesIn(lines: string[]): [first: number, last: number][] {
  const places: [number, number][] = [];
  let open = "";
  for (const [index, line] of lines.entries()) {
    const language = /^ *\* ```(\w*)$/.exec(line)?.[1];
    if (language === undefined) continue;
    if (language === "ts") places.push([index + 1, -1]);
    else if (open === "ts") places.at(-1)![1] = index;
    open = language;
  }
  return places;
}

/** What the comment after a call of `console.log` promises. */
function promisedBy(line: string): string[] {
  return /\bconsole\.log\(.*?[;,] \/\/ (.*)$/.exec(line)?.[1]?.split(", then ") ?? [];
}

/** What an example has printed, among everything that the run of all of them printed. */
function printedBy(text: string, name: string): string[] {
  const mark = `^${name.replaceAll(".", "\\.")} \\.\\.\\.\n-+ (?:post-test )?output -+\n`;
  const printed = new RegExp(`${mark}([^]*?)\n?-+ (?:post-test )?output end`, "m").exec(text);
  return linesOf(printed?.[1] ?? "");
}

function linesOf(text: string): string[] {
  return text.replaceAll(/[" ]/g, "").split("\n").filter((line) => line !== "");
}

/** What is no test, and nothing that only tests share: the paths below a folder. */
export function listSources(directory: string): string[] {
  return [...Deno.readDirSync(directory)].flatMap(({ name, isDirectory }) => {
    if (isDirectory) return listSources(`${directory}/${name}`).map((path) => `${name}/${path}`);
    return name.endsWith(".ts") && !/(_test|^fixture|_fixture)\.ts$/.test(name) ? [name] : [];
  });
}
