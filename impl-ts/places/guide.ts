/**
 * The programs of the guide, `impl-ts/README.md` and its pages, so that tests can run each of them.
 *
 * A block of TypeScript whose first line is `// main.ts`, `// worker.ts` or the like is that file
 * of the program of its section; any other one is a program of its own. What a program must print
 * stands in the comments after its calls of `console.log`: `// 1, then 2` are two lines.
 *
 * A block of differences, whose first line names a file of the first program of its page, makes a
 * variant of that program, which prints the same.
 *
 * @module
 */
import { run } from "../../tools/run.ts";

export { PAGES } from "../../tools/build_entries.ts";

/** A program of the guide. */
export interface Program {
  /** The heading of its section, as the name of a folder. */
  name: string;
  /** Its texts, by the names of its files. One is `main.ts`. */
  files: Record<string, string>;
  /** What it prints. */
  output: string;
}

/** The pages that only Deno runs, on Linux: about what it has alone, or with others' libraries. */
export const HOST_PAGES: readonly string[] = [
  "guide/meter.md",
  "guide/processes.md",
  "guide/transports.md",
];

/** The page whose program starts another one, which has to be compiled. */
export const NATIVE_PAGE = "guide/native.md";

/** The page whose program runs a module that has to be compiled. */
export const WEBASSEMBLY_PAGE = "guide/webassembly.md";

const TIMEOUT_MS = 30_000;

/** The programs of some pages in a folder that run without a page of a browser. */
export async function readPrograms(folder: string, pages: readonly string[]): Promise<Program[]> {
  return (await readAllPrograms(folder, pages)).filter((program) => !needsPage(program));
}

/** The same, with the others. */
export async function readAllPrograms(
  folder: string,
  pages: readonly string[],
): Promise<Program[]> {
  const texts = await Promise.all(pages.map((page) => Deno.readTextFile(`${folder}/${page}`)));
  return texts.flatMap(programsOf);
}

/** The programs in a Markdown text, in their order. */
export function programsOf(text: string): Program[] {
  const programs: Program[] = [];
  let heading = "";
  const parts = /^#+ (.*)$|^```diff\n([^]*?)^```$|^```ts\n([^]*?)^```$/gm;
  for (const [, title, differences, block] of text.matchAll(parts)) {
    if (title !== undefined) {
      heading = title.toLowerCase().replaceAll(/\W+/g, "_");
      continue;
    }
    if (block === undefined) {
      addVariant(programs, heading, differences!);
      continue;
    }
    const name = /^\/\/ (\w+\.ts)\n/.exec(block)?.[1] ?? "main.ts";
    const last = programs.at(-1);
    const own = name === "main.ts" || last?.name.startsWith(heading) !== true;
    if (own) {
      const count = programs.filter((each) => each.name.startsWith(heading)).length;
      programs.push({ name: `${heading}_${count + 1}`, files: {}, output: "" });
    }
    const program = programs.at(-1)!;
    program.files[name] = block;
    program.output += outputOf(block);
  }
  return programs;
}

/** Changes a file of the variant that has the name of its section, made of the first program. */
function addVariant(programs: Program[], heading: string, differences: string): void {
  const [file = "", ...lines] = differences.replace(/^\/\/ /, "").trimEnd().split("\n");
  const name = `${heading}_1`;
  let variant = programs.find((each) => each.name === name);
  if (variant === undefined) {
    const [first] = programs;
    variant = { ...first!, name, files: { ...first!.files } };
    programs.push(variant);
  }
  variant.files[file] = change(variant.files[file]!, lines);
}

/** Puts the lines with a plus into the place of the line with a minus above them. */
function change(text: string, differences: string[]): string {
  const lines = text.split("\n");
  let at = 0;
  for (const line of differences) {
    if (line.startsWith("-")) {
      at = lines.indexOf(line.slice(1));
      if (at < 0) throw new Error(`Cannot change a program: it has no line ${line.slice(1)}`);
      lines.splice(at, 1);
    } else {
      lines.splice(at++, 0, line.slice(1));
    }
  }
  return lines.join("\n");
}

/** A number of a port at which nobody listens, for programs that say 8000. */
export function freePort(): string {
  using listener = Deno.listen({ hostname: "localhost", port: 0 });
  return String((listener.addr as Deno.NetAddr).port);
}

/** Whether a program is for a page alone: it uses a document, and not in a comment. */
export function needsPage({ files }: Program): boolean {
  return /^[^/\n]*\bdocument\./m.test(files["main.ts"]!);
}

/** What a text says that it prints. */
function outputOf(text: string): string {
  return [...text.matchAll(/\bconsole\.log\(.*\);.*? \/\/ (.*)$/gm)]
    .flatMap(([, said]) => said!.split(", then "))
    .map((line) => `${line}\n`).join("");
}

/** The program as Node takes it: with the two imports that the guide names. */
export function forNode({ name, files, output }: Program): Program {
  const imports: Record<string, string> = {
    "main.ts": 'import { Worker } from "node:worker_threads";\n',
    "worker.ts": 'import { parentPort as self } from "node:worker_threads";\n',
  };
  const changed = Object.entries(files).map(([path, text]) => [path, imports[path] + text]);
  return { name, files: Object.fromEntries(changed), output };
}

/** The program that a text has for Node alone: blocks of JavaScript that name their files. */
export function programForNode(text: string): { files: Record<string, string>; output: string } {
  const blocks = [...text.matchAll(/^```js\n(\/\/ (\w+\.js)\n[^]*?)^```$/gm)];
  const files = Object.fromEntries(blocks.map(([, block, name]) => [name!, block!]));
  return { files, output: outputOf(Object.values(files).join("")) };
}

/** Writes programs into folders of their names. */
export async function writePrograms(folder: string, programs: Program[]): Promise<void> {
  for (const { name, files } of programs) {
    await Deno.mkdir(`${folder}/${name}`, { recursive: true });
    for (const [path, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${folder}/${name}/${path}`, text);
    }
  }
}

/** Runs a program that was written, and says what came of it. */
export async function runProgram(
  folder: string,
  { name }: Program,
  command: string[],
): Promise<[output: string, code: number, timedOut: boolean]> {
  const options = { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false };
  const { output, code, timedOut } = await run([...command, `${name}/main.ts`], options);
  return [output, code, timedOut];
}
