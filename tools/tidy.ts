/**
 * The house rules that a machine can check. `tidy_test.ts` holds the repository to them.
 *
 * Every rule is a function from a file to what is wrong with it, so that its tests can show it a
 * file that must fail.
 *
 * @module
 */
import type { TextFile } from "./files.ts";
import { circleProblems, importProblems } from "./imports.ts";
import { proseProblems } from "./prose.ts";

/** Everything that may stand at the top: the tree of CONTRIBUTING.md and nothing that crept in. */
const TOP_LEVEL = new Set(
  ("README.md CONTRIBUTING.md CHANGELOG.md LICENSE millrace deno.json deno.lock build.zig " +
    "build.zig.zon .gitignore .gitattributes .ci spec impl-ts impl-zig conformance bench tools")
    .split(" "),
);
const LINE_LENGTH_MAX = 100;
const FILE_LINES_MAX = 1_000;
const GENERATED = /^(?:\/\/!?|#|<!--) Generated from /;
// What a program fills in: nobody wrote it, and it grows with the layout.
const FILLED_IN = /(?<=^\/\* generated: \w+ \w+ \*\/\n)[^]*?(?=^\/\* \/generated \*\/$)/gm;
// `[O]` and the like: these rules hold for this file too.
const MARKER = /\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b/;
const MACHINE_PATH = /(?<![\w.-])\/(wor[k]|roo[t]|hom[e]|User[s])(\/|\b(?![.-]))/;
const REGISTRY = /registry\.npm[j]s|python[h]osted|pypi\.[o]rg|jsr\.[i]o/;
const SNAKE_CASE = /^\.?[a-z0-9]+(_[a-z0-9]+)*(\.[a-z0-9_]+)*$/;
const OWN_NAMES = new Set([
  "impl-ts",
  "impl-zig",
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "LICENSE",
  "Cargo.toml",
  "Cargo.lock",
  "__init__.py",
]);

/** Everything that is wrong with the files, one line each. */
export function tidyProblems(files: TextFile[]): string[] {
  const ofFiles = files.flatMap((file) => [
    ...nameProblems(file.path),
    ...textProblems(file),
    ...lineProblems(file),
    ...importProblems(file),
    ...proseProblems(file),
  ]);
  return [...ofFiles, ...circleProblems(files)];
}

/** What is wrong with the name of a file. */
export function nameProblems(path: string): string[] {
  const parts = path.split("/");
  const problems: string[] = [];
  if (!TOP_LEVEL.has(parts[0] as string)) {
    problems.push(`${path}: ${parts[0]} is not expected at the top of the tree`);
  }
  for (const part of parts) {
    if (!OWN_NAMES.has(part) && !SNAKE_CASE.test(part)) {
      problems.push(`${path}: ${part} is not in snake_case`);
    }
  }
  return problems;
}

/** What is wrong with a file as a whole. */
export function textProblems({ path, text }: TextFile): string[] {
  const problems: string[] = [];
  if (text !== "" && !text.endsWith("\n")) problems.push(`${path}: no line break at the end`);
  if (text.endsWith("\n\n")) problems.push(`${path}: empty lines at the end`);
  const lines = text.replace(FILLED_IN, "").split("\n").length - 1;
  if (lines > FILE_LINES_MAX && !isForProgram({ path, text })) {
    problems.push(`${path}: ${lines} lines, more than ${FILE_LINES_MAX}`);
  }
  return problems;
}

/** What is wrong with single lines. */
export function lineProblems(file: TextFile): string[] {
  const most = isForProgram(file) ? Infinity : LINE_LENGTH_MAX;
  const noTabs = /\.(ts|zig|md|json|py)$/.test(file.path);
  return file.text.split("\n").flatMap((line, index) => {
    const facts: string[] = [];
    // A table of Markdown cannot be broken.
    const isTable = file.path.endsWith(".md") && line.startsWith("|");
    const length = [...line].length;
    if (length > most && !isTable) facts.push(`${length} columns, more than ${most}`);
    if (/[ \t\r]$/.test(line)) facts.push("space at the end");
    if (noTabs && line.includes("\t")) facts.push("a tab");
    const found = MARKER.exec(line)?.[1];
    if (found) facts.push(`unfinished: ${found}`);
    if (MACHINE_PATH.test(line)) facts.push("names a path of one machine");
    if (REGISTRY.test(line)) facts.push("names the host of a registry");
    return facts.map((fact) => `${file.path}:${index + 1}: ${fact}`);
  });
}

/** Files that programs write or read, and nobody reads from top to bottom. */
function isForProgram({ path, text }: TextFile): boolean {
  return /\.(json|jsonl|lock)$/.test(path) || GENERATED.test(text);
}
