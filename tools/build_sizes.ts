/**
 * What importing the npm package costs: how many bytes a bundler makes of it for somebody who uses
 * a part of it, and how many at most.
 *
 * @module
 */
import type { Plugin } from "esbuild";
import { PACKAGE_NAME } from "./build_entries.ts";
import type { PackageFile } from "./build_package.ts";
import { bundleText } from "./build_scripts.ts";

/** Something that is imported. */
export interface Import {
  /** The names, as they stand between braces; `*` for all. */
  names: string;
  /** From where. */
  specifier: string;
  /** The most bytes that it may come to, minified and gzipped: what it was, and 1 %. */
  limit: Size;
}

/** Bytes of a bundle. */
export interface Size {
  minified: number;
  gzip: number;
}

/** What is measured, from the least to the most. */
export const IMPORTS: readonly Import[] = [
  { names: "Segment", specifier: PACKAGE_NAME, limit: { minified: 7_870, gzip: 3_560 } },
  {
    names: "Segment, Writer, Reader",
    specifier: PACKAGE_NAME,
    limit: { minified: 54_300, gzip: 20_300 },
  },
  { names: "Port", specifier: PACKAGE_NAME, limit: { minified: 73_500, gzip: 26_900 } },
  { names: "*", specifier: PACKAGE_NAME, limit: { minified: 77_100, gzip: 28_350 } },
  {
    names: "Hub",
    specifier: `${PACKAGE_NAME}/hub`,
    limit: { minified: 78_600, gzip: 28_600 },
  },
  {
    names: "MailboxReader, MailboxWriter",
    specifier: `${PACKAGE_NAME}/mailbox`,
    limit: { minified: 19_450, gzip: 7_580 },
  },
  {
    names: "openStream",
    specifier: `${PACKAGE_NAME}/stream`,
    limit: { minified: 84_200, gzip: 30_700 },
  },
  {
    names: "remote, serve",
    specifier: `${PACKAGE_NAME}/call`,
    limit: { minified: 39_400, gzip: 14_150 },
  },
  {
    names: "cbor",
    specifier: `${PACKAGE_NAME}/cbor`,
    limit: { minified: 13_100, gzip: 5_620 },
  },
  {
    names: "meter",
    specifier: `${PACKAGE_NAME}/meter`,
    limit: { minified: 45_100, gzip: 17_550 },
  },
  {
    names: "Sha1",
    specifier: `${PACKAGE_NAME}/digest`,
    limit: { minified: 23_100, gzip: 8_100 },
  },
  {
    names: "SABMessagePort",
    specifier: `${PACKAGE_NAME}/sab-message-port`,
    limit: { minified: 64_800, gzip: 23_650 },
  },
];

/** The statement that imports it, and keeps it from being dropped. */
export function statementOf({ names, specifier }: Import): string {
  return `export ${names === "*" ? "*" : `{ ${names} }`} from "${specifier}";`;
}

/** Bundles an import of the package whose files are given, as its user would. */
export async function measureImport(each: Import, files: readonly PackageFile[]): Promise<Size> {
  const text = await bundleText({
    stdin: { contents: statementOf(each), resolveDir: "/" },
    format: "esm",
    minify: true,
    // A library has a size of its own, and is none of ours.
    external: ["cbor-x/*", "hdr-histogram-js", "@opentelemetry/api"],
    plugins: [packagePlugin(files)],
  });
  return sizeOf(text);
}

/** The bytes of a text, as it is and gzipped. */
export async function sizeOf(text: string): Promise<Size> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  const gzip = (await new Response(packed).arrayBuffer()).byteLength;
  return { minified: new TextEncoder().encode(text).length, gzip };
}

/** Resolves the package by its `exports`, and reads its files from where they are: in memory. */
function packagePlugin(files: readonly PackageFile[]): Plugin {
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
