/**
 * The order of the nouns: a file imports only what stands below it.
 *
 * @module
 */
import type { TextFile } from "./files.ts";

/**
 * The files of both implementations from the bottom up; those of one row may import each other.
 * A noun may be split: `ring_reader` has the place of `ring`. A new file gets its place here.
 */
const ORDER = [
  ["layout"],
  ["realm"],
  ["digest"],
  ["error", "reason"],
  ["gate"],
  ["host"],
  ["segment"],
  ["wait"],
  ["frame"],
  ["ring"],
  ["codec"],
  ["cbor"],
  ["pipe"],
  ["fanout"],
  ["mailbox"],
  ["port"],
  ["property"],
  ["select"],
  ["hub"],
  ["supervise"],
  ["stream"],
  ["call"],
  ["meter"],
  ["pool", "worker_pool"],
  ["mod", "root", "wasm", "c_abi", "compat/", "host/"],
];

/** The libraries that a noun stands on, which is an entry of its own, or several. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  cbor: ["cbor-x"],
  meter: ["hdr-histogram-js", "@opentelemetry/api"],
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
const ZIG_IMPORT = /@import\("([^"]+\.zig)"\)/g;

/** The imports of a source file of an implementation that go up, or out. */
export function importProblems({ path, text }: TextFile): string[] {
  const source = path.startsWith(TYPESCRIPT) ? TYPESCRIPT : ZIG;
  // What stands beside its subject as a test may import everything.
  if (!path.startsWith(source) || !/\.(ts|zig)$/.test(path) || isTest(path)) return [];
  const own = level(path.slice(source.length));
  if (own === undefined) return [`${path}: has no place in the order of tools/imports.ts`];
  return readImports(text, source).flatMap(({ target, line }) => {
    const fail = (fact: string) => [`${path}:${line}: imports ${target}, ${fact}`];
    if (target.startsWith("node:") && /^(host|compat)\//.test(path.slice(source.length))) return [];
    if (isLibraryOf(path.slice(source.length), target)) return [];
    const full = source === ZIG || target.startsWith(".") ? join(path, target) : undefined;
    if (!full?.startsWith(source)) return fail(`which lies outside of ${source}`);
    if (isTest(full)) return source === ZIG ? [] : fail("a test");
    const other = level(full.slice(source.length));
    if (other === undefined) return fail("which has no place in the order of tools/imports.ts");
    return other <= own ? [] : fail("which stands above it");
  });
}

/** Entries of the order of which there is no file. */
export function absentNouns(paths: readonly string[]): string[] {
  const names = paths.filter((path) => path.startsWith(TYPESCRIPT) || path.startsWith(ZIG))
    .filter((path) => !isTest(path))
    .map((path) => path.slice((path.startsWith(ZIG) ? ZIG : TYPESCRIPT).length));
  return ORDER.flat().filter((entry) => !names.some((name) => belongsTo(entry, name)));
}

/** Whether a file belongs to the noun that stands on a library, and imports that. */
function isLibraryOf(path: string, target: string): boolean {
  const libraries = LIBRARIES[/^[a-z]+/.exec(path)?.[0] ?? ""] ?? [];
  return libraries.some((library) => target === library || target.startsWith(`${library}/`));
}

/** The height of a file in the order, or `undefined` where it has none. */
function level(path: string): number | undefined {
  const found = ORDER.findIndex((row) => row.some((entry) => belongsTo(entry, path)));
  return found < 0 ? undefined : found;
}

/** Whether an entry of the order stands for a file, by its path from the folder of the sources. */
function belongsTo(entry: string, path: string): boolean {
  const name = path.replace(/\.\w+$/, "");
  if (entry.endsWith("/")) return name.startsWith(entry);
  return name === entry || name.startsWith(`${entry}_`) && !name.includes("/");
}

function readImports(text: string, source: string): { target: string; line: number }[] {
  // Examples in doc comments import the package by its name; line comments cannot import.
  const code = text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, "");
  return [...code.matchAll(source === ZIG ? ZIG_IMPORT : TS_IMPORT)].map((match) => ({
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
