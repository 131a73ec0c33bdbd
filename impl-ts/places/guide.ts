/**
 * The programs of the guide, `impl-ts/README.md` and its pages, so that tests can run each of them.
 *
 * A block of TypeScript whose first line is `// main.ts`, `// worker.ts` or the like is that file
 * of the program of its section; any other one is a program of its own. What a program must print
 * stands in the comments behind its calls of `console.log`: `// 1, then 2` are two lines.
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

/** The page about what only Deno has, and that only on Linux. */
export const HOST_PAGE = "guide/processes.md";

const TIMEOUT_MS = 30_000;

/** The programs of some pages in a folder. */
export async function readPrograms(folder: string, pages: readonly string[]): Promise<Program[]> {
  const texts = await Promise.all(pages.map((page) => Deno.readTextFile(`${folder}/${page}`)));
  return texts.flatMap(programsOf);
}

/** The programs in a Markdown text, in their order. */
export function programsOf(text: string): Program[] {
  const programs: Program[] = [];
  let heading = "";
  for (const [, title, block] of text.matchAll(/^#+ (.*)$|^```ts\n([^]*?)^```$/gm)) {
    if (block === undefined) {
      heading = title!.toLowerCase().replaceAll(/\W+/g, "_");
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
