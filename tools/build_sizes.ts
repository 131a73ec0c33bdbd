/**
 * What importing the npm package costs: how many bytes a bundler makes of it for somebody who uses
 * a part of it, how many at most, and how many it shall be.
 *
 *     deno run -A tools/build_sizes.ts             prints this; exit code 1 if a limit is exceeded
 *     deno run -A tools/build_sizes.ts --modules   prints the bytes of each module
 *
 * @module
 */
import * as esbuild from "esbuild";
import { ENTRIES, PACKAGE_NAME, specifierOf } from "./build_entries.ts";
import { makeUntyped, type PackageFile } from "./build_package.ts";
import { bundleText, OPTIONS, stopBundler } from "./build_scripts.ts";

/** Something that is imported. */
export interface Import {
  /** The names, as they stand between braces; `*` for all. */
  names: string;
  /** From where. */
  specifier: string;
  /** Names of the package itself that are imported already, and whose bytes do not count. */
  over?: string;
  /**
   * The most bytes that it may come to, minified and gzipped: what it was, and 1 %, or 40 bytes.
   */
  limit: Size;
  /** What it shall come to. */
  goal?: Partial<Size>;
}

/** Bytes of a bundle. */
export interface Size {
  minified: number;
  gzip: number;
}

/** What is measured, from the least to the most. */
export const IMPORTS: readonly Import[] = [
  own("Segment", [6_830, 3_450]),
  own("Segment, Writer, Reader", [35_780, 15_330], { minified: 24_000 }),
  own("Port", [43_260, 18_350], { minified: 36_000, gzip: 14_500 }),
  own("*", [49_710, 20_500]),
  onTop("remote, serve", "call", [22_210, 8_420], { minified: 22_000 }),
  onTop("claim, publish, peek, release", "lend", [2_700, 1_000]),
  onTop("*", "raw", [4_430, 1_580]),
  onTop("*", "many", [1_200, 440]),
  onTop("*", "streams", [430, 190]),
  onTop("*", "peer", [1_910, 670]),
  onTop("revive", "revive", [4_360, 1_450]),
  onTop("select", "select", [2_830, 1_020]),
  onTop("supervise", "supervise", [2_390, 880]),
  onTop("Hub", "hub", [6_990, 2_380]),
  onTop("SharedProperties", "property", [12_650, 4_510]),
  onTop("FanoutReader, FanoutWriter", "fanout", [20_180, 7_130]),
  onTop("openStream", "stream", [10_800, 4_000]),
  onTop("Pool", "pool", [41_210, 14_700]),
  onTop("meter", "meter", [8_350, 3_330]),
  of("MailboxReader, MailboxWriter", "mailbox", [17_870, 7_510]),
  of("cbor", "cbor", [13_530, 5_940]),
  of("Sha1", "digest", [22_930, 8_070]),
  of("SABMessagePort", "sab-message-port", [43_920, 18_310], { minified: 42_000 }),
];

type Limit = readonly [minified: number, gzip: number];

/** What is imported from the package itself. */
function own(names: string, limit: Limit, goal?: Partial<Size>): Import {
  const [minified, gzip] = limit;
  return { names, specifier: PACKAGE_NAME, limit: { minified, gzip }, ...(goal && { goal }) };
}

/** What is imported from another entry by somebody who has no port. */
function of(names: string, entry: string, limit: Limit, goal?: Partial<Size>): Import {
  return { ...own(names, limit, goal), specifier: `${PACKAGE_NAME}/${entry}` };
}

/** What is imported from another entry by somebody who has ports. */
function onTop(names: string, entry: string, limit: Limit, goal?: Partial<Size>): Import {
  return { ...of(names, entry, limit, goal), over: "Port" };
}

/** The statements that import it, and keep it from being dropped. */
export function statementOf({ names, specifier, over }: Import): string {
  const before = over === undefined ? "" : `${statementOf(underneath(over))}\n`;
  return `${before}export ${names === "*" ? "*" : `{ ${names} }`} from "${specifier}";`;
}

/** What is there already. */
function underneath(names: string): Import {
  return own(names, [0, 0]);
}

/** Bundles an import of the package whose files are given, as its user would. */
export async function measureImport(each: Import, files: readonly PackageFile[]): Promise<Size> {
  const text = await bundleText({ ...bundleOf(each), plugins: [packagePlugin(files)] });
  const whole = await sizeOf(text);
  if (each.over === undefined) return whole;
  const { minified, gzip } = await measureImport(underneath(each.over), files);
  return { minified: whole.minified - minified, gzip: whole.gzip - gzip };
}

/** How to bundle it. */
function bundleOf(each: Import): esbuild.BuildOptions {
  return {
    stdin: { contents: statementOf(each), resolveDir: "/" },
    format: "esm",
    minify: true,
    // A library has a size of its own, and is none of ours.
    external: ["cbor-x/*", "hdr-histogram-js", "@opentelemetry/api"],
  };
}

/** A row of the table: an import, its size, its limits and its goals. */
export interface Row {
  name: string;
  size: Size;
  limit?: Size;
  goal?: Partial<Size>;
}

/** All imports of the package whose files are given. */
export async function measureAll(files: readonly PackageFile[]): Promise<(Row & Import)[]> {
  const rows: (Row & Import)[] = [];
  for (const each of IMPORTS) {
    rows.push({ ...each, name: nameOf(each), size: await measureImport(each, files) });
  }
  return rows;
}

/** An import as the table shows it. */
export function nameOf({ names, specifier, over }: Import): string {
  const shown = names === "*" ? "* as all" : `{ ${names} }`;
  return `${over === undefined ? "" : "+ "}${shown} from "${specifier}"`;
}

/** The rows as a table, under a heading. */
export function sizeTable(rows: readonly Row[]): string {
  const number = (value?: number) => (value?.toLocaleString("en") ?? "").padStart(8);
  const columns = ({ size, limit, goal }: Row) =>
    (["minified", "gzip"] as const).map((unit) =>
      [size, limit, goal].map((each) => number(each?.[unit])).join("")
    ).join("  ");
  const cell = (text: string) => text.padStart(8);
  const units = ["minified", "gzip"].map((unit) => [unit, "limit", "goal"].map(cell).join(""));
  const heading = "bytes that a bundler makes of an import; +: on top of ports";
  return [
    heading.padEnd(62) + units.join("  "),
    ...rows.map((row) => row.name.padEnd(62) + columns(row)),
  ].join("\n");
}

/** The sizes that exceed their limits, or are far below them, a line for each. */
export function sizeProblems(rows: readonly Row[]): string[] {
  return rows.flatMap(({ name, size, limit }) =>
    (["minified", "gzip"] as const).flatMap((unit) => {
      const [is, most] = [size[unit], limit?.[unit] ?? Infinity];
      const line = `${name}, ${unit}: ${is} bytes, the limit is ${most}`;
      if (is > most) return [line];
      return is < 0.9 * most && most - is > 100 && limit ? [`${line}; lower it`] : [];
    })
  );
}

/** The bytes of a text, as it is and gzipped. */
export async function sizeOf(text: string): Promise<Size> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  const gzip = (await new Response(packed).arrayBuffer()).byteLength;
  return { minified: new TextEncoder().encode(text).length, gzip };
}

/** Resolves the package by its `exports`, and reads its files from where they are: in memory. */
function packagePlugin(files: readonly PackageFile[]): esbuild.Plugin {
  const textOf = new Map(files.map(({ path, text }) => [`./${path}`, text]));
  const { exports, sideEffects } = JSON.parse(textOf.get("./package.json")!);
  const namespace = PACKAGE_NAME;
  const found = (path: string) => ({ path, namespace, sideEffects: sideEffects.includes(path) });
  return {
    name: namespace,
    setup(build) {
      const own = new RegExp(`^${PACKAGE_NAME}(/|$)`);
      build.onResolve(
        { filter: own },
        ({ path }) => found(exports[`.${path.slice(PACKAGE_NAME.length)}`].default),
      );
      build.onResolve({ filter: /^\.\//, namespace }, ({ path }) => found(path));
      build.onLoad({ filter: /.*/, namespace }, ({ path }) => ({ contents: textOf.get(path)! }));
    },
  };
}

/** The bytes of each module in the bundles of the imports that have a goal, from the sources. */
async function moduleTable(root: string): Promise<string> {
  const imports = IMPORTS.filter(({ goal }) => goal !== undefined);
  const bytes = await Promise.all(imports.map((each) => moduleBytes(root, each)));
  const modules = [...new Set(bytes.flatMap((each) => [...each.keys()]))].sort();
  const line = (name: string, values: (number | undefined)[]) =>
    name.padEnd(28) +
    values.map((value) => (value?.toLocaleString("en") ?? "").padStart(9)).join("");
  const sum = (values: Iterable<number>) => [...values].reduce((before, each) => before + each, 0);
  return [
    "minified bytes of the modules, from the sources",
    ...imports.map((each, index) => `(${index + 1}) ${nameOf(each)}`),
    "",
    " ".repeat(28) + imports.map((_, index) => `(${index + 1})`.padStart(9)).join(""),
    ...modules.map((module) => line(module, bytes.map((each) => each.get(module)))),
    line("together", bytes.map((each) => sum(each.values()))),
  ].join("\n");
}

/** The minified bytes of each module in the bundle of an import, from the sources. */
export async function moduleBytes(root: string, each: Import): Promise<Map<string, number>> {
  const { metafile } = await esbuild.build({
    ...OPTIONS,
    ...bundleOf(each),
    absWorkingDir: root,
    metafile: true,
    plugins: [sourcePlugin(root)],
  });
  const { inputs } = Object.values(metafile.outputs)[0]!;
  const own = Object.entries(inputs).map(([path, { bytesInOutput }]) =>
    [path.slice("impl-ts/src/".length), bytesInOutput] as const
  );
  return new Map(own.filter(([, size]) => size > 0));
}

/** Resolves the package to its sources. */
function sourcePlugin(root: string): esbuild.Plugin {
  const sources = new Map(ENTRIES.map((entry) => [specifierOf(entry), entry.source]));
  return {
    name: "sources",
    setup(build) {
      build.onResolve({ filter: new RegExp(`^${PACKAGE_NAME}(/|$)`) }, ({ path }) => {
        return { path: `${root}/${sources.get(path)}`, sideEffects: false };
      });
    },
  };
}

/** Prints, and returns the exit code. */
async function main(args: string[], root: string): Promise<number> {
  try {
    if (args.includes("--modules")) {
      console.log(await moduleTable(root));
      return 0;
    }
    const rows = await measureAll(await makeUntyped(root));
    const problems = sizeProblems(rows);
    console.log([sizeTable(rows), ...problems].join("\n"));
    return problems.length > 0 ? 1 : 0;
  } finally {
    await stopBundler();
  }
}

if (import.meta.main) {
  Deno.exit(await main(Deno.args, await Deno.realPath(`${import.meta.dirname}/..`)));
}
