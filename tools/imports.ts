/**
 * The order of the sources: a file imports only what stands below it.
 *
 * @module
 */
import type { TextFile } from "./files.ts";

/**
 * The TypeScript sources from the bottom up; those of one row may import each other. `a/` is a
 * folder, and `a/b` a file of it that stands lower than the folder. What is in `testing/` is for
 * tests, and has no place in the order. A new folder gets its place here.
 */
const TYPESCRIPT_ORDER = [
  // Constants that are generated; errors know the reason codes among them.
  ["memory/layout"],
  ["error"],
  ["memory/"],
  ["wait/"],
  ["ring/"],
  ["codec/"],
  ["pipe/"],
  ["port/"],
  ["more/"],
  ["call/"],
  ["stream/"],
  ["property/"],
  ["fanout/"],
  ["mailbox/"],
  ["meter/"],
  ["pool/"],
  ["digest/"],
  ["host/"],
  ["compat/"],
  ["mod"],
];

/**
 * The Zig sources in the same way. What only tests run is in `testing/`, named as a test, or at the
 * foot of its file, after the line `// Tests.`. A new folder gets its place here.
 */
const ZIG_ORDER = [
  ["memory/layout"],
  ["digest/"],
  ["error"],
  ["wait/mechanism"],
  ["wait/state", "property/name", "host/process"],
  // An endpoint of a segment in a file is alive as long as its process.
  ["memory/", "host/"],
  ["wait/"],
  ["ring/"],
  ["codec/"],
  ["pipe/"],
  // A port gives an endpoint to its next owner, too.
  ["more/revive"],
  ["port/"],
  ["more/"],
  ["call/"],
  ["stream/"],
  ["property/"],
  ["fanout/"],
  ["mailbox/"],
  ["meter/"],
  ["pool/"],
  ["root", "wasm", "c", "c/"],
];

/** The libraries that an entry stands on, by its folder or its files. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  "codec/cbor": ["cbor-x"],
  "meter/": ["hdr-histogram-js", "@opentelemetry/api"],
};

const TYPESCRIPT = "impl-ts/src/";
const ZIG = "impl-zig/src/";
// Statements, re-exports, and `import()` in code or in a type.
const TS_IMPORT = new RegExp(
  [
    /^\s*(?:import|export)\b[^"';]*?\bfrom\s*["']([^"']+)["']/,
    /^\s*import\s*["']([^"']+)["']/,
    /\bimport\(\s*["']([^"']+)["']/,
  ].map((pattern) => pattern.source).join("|"),
  "gm",
);
const ZIG_TESTS = "\n// Tests.\n";
const ZIG_IMPORT = /@import\("([^"]+\.zig)"\)/g;

/** The imports of a source file of an implementation that go up, or out. */
export function importProblems({ path, text }: TextFile): string[] {
  const [source, order] = path.startsWith(TYPESCRIPT)
    ? [TYPESCRIPT, TYPESCRIPT_ORDER]
    : [ZIG, ZIG_ORDER];
  // What stands beside its subject as a test may import everything.
  if (!path.startsWith(source) || !/\.(ts|zig)$/.test(path) || isTest(path)) return [];
  const own = level(order, path.slice(source.length));
  if (own === undefined) return [`${path}: has no place in the order of tools/imports.ts`];
  const code = source === ZIG ? text.split(ZIG_TESTS, 1)[0]! : text;
  return readImports(code, source).flatMap(({ target, line }) => {
    const fail = (fact: string) => [`${path}:${line}: imports ${target}, ${fact}`];
    if (target.startsWith("node:") && /^(host|compat)\//.test(path.slice(source.length))) return [];
    if (isLibraryOf(path.slice(source.length), target)) return [];
    const full = source === ZIG || target.startsWith(".") ? join(path, target) : undefined;
    if (!full?.startsWith(source)) return fail(`which lies outside of ${source}`);
    if (isTest(full)) return source === ZIG ? [] : fail("a test");
    const other = level(order, full.slice(source.length));
    if (other === undefined) return fail("which has no place in the order of tools/imports.ts");
    return other <= own ? [] : fail("which stands above it");
  });
}

/**
 * The modules of TypeScript that need one another by value: where one of them is loaded first, the
 * other finds nothing in it. A line for each circle, with its modules in the order of the imports.
 */
export function circleProblems(files: readonly TextFile[]): string[] {
  const own = files.filter(({ path }) =>
    path.startsWith(TYPESCRIPT) && path.endsWith(".ts") && !isTest(path)
  );
  const needs = new Map(own.map(({ path, text }) => [
    path,
    readImports(text, TYPESCRIPT).filter(({ statement }) => loadsValues(statement))
      .map(({ target }) => join(path, target)),
  ]));
  const problems = new Set<string>();
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    const from = way.indexOf(path);
    if (from >= 0) problems.add(`${way.slice(from).join(", ")}: need one another by value`);
    if (from >= 0 || done.has(path)) return;
    for (const next of needs.get(path) ?? []) visit(next, [...way, path]);
    done.add(path);
  };
  for (const path of needs.keys()) visit(path, []);
  return [...problems];
}

/** Whether a statement imports, or exports again, more than types. */
function loadsValues(statement: string): boolean {
  const [, names] = /^\s*(?:import|export)\s+([^"']*?)\s*from\b/.exec(statement) ?? [];
  return names !== undefined && !names.startsWith("type ") &&
    !/^\{(?:\s*type \w+(?: as \w+)?,?)+\s*\}$/.test(names);
}

/** Entries of the orders of which there is no file. */
export function absentEntries(paths: readonly string[]): string[] {
  const absent = (source: string, order: readonly string[][]) => {
    const own = paths.filter((path) => path.startsWith(source) && !isTest(path))
      .map((path) => path.slice(source.length));
    return order.flat().filter((entry) => !own.some((path) => belongsTo(entry, path)))
      .map((entry) => source + entry);
  };
  return [...absent(TYPESCRIPT, TYPESCRIPT_ORDER), ...absent(ZIG, ZIG_ORDER)];
}

/** Whether a file may import a library, which its entry stands on. */
function isLibraryOf(path: string, target: string): boolean {
  return Object.entries(LIBRARIES).some(([entry, libraries]) =>
    belongsTo(entry, path) &&
    libraries.some((library) => target === library || target.startsWith(`${library}/`))
  );
}

/** The height of a file in an order, or `undefined` where it has none. */
function level(order: readonly string[][], path: string): number | undefined {
  const found = order.findIndex((row) => row.some((entry) => belongsTo(entry, path)));
  return found < 0 ? undefined : found;
}

/** Whether an entry of an order stands for a file, by its path from the folder of the sources. */
function belongsTo(entry: string, path: string): boolean {
  if (!path.startsWith(entry)) return false;
  return entry.endsWith("/") || /^(?:_\w+)?\.\w+$/.test(path.slice(entry.length));
}

function readImports(
  text: string,
  source: string,
): { statement: string; target: string; line: number }[] {
  // Examples in doc comments import the package by its name; line comments cannot import.
  const code = text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, "");
  return [...code.matchAll(source === ZIG ? ZIG_IMPORT : TS_IMPORT)].map((match) => ({
    statement: match[0],
    target: (match[1] ?? match[2] ?? match[3]) as string,
    line: code.slice(0, match.index + match[0].length).split("\n").length,
  }));
}

/** A test, or what only tests share. */
function isTest(path: string): boolean {
  return /(_test|[/_]fixture)\.\w+$/.test(path);
}

function join(from: string, target: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}
