/**
 * Bundles the drivers for the places that cannot run TypeScript from many files, with esbuild; and
 * makes the modules of the floors for `start`, and the bundles whose size is measured.
 *
 * @module
 */
import * as esbuild from "esbuild";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { FIRST, markEarly, readEarly } from "../../tools/build_early.ts";
import { ENTRIES, PACKAGE_NAME } from "../../tools/build_entries.ts";
import { folderOf } from "../../tools/build_libraries.ts";
import { bundleModules } from "../../tools/build_modules.ts";
import { manifest, type PackageFile } from "../../tools/build_package.ts";
import { bundleText, stopBundler } from "../../tools/build_scripts.ts";
import { measureImport, type Size } from "../../tools/build_sizes.ts";

const SCRIPT = fileURLToPath(new URL("../script/", import.meta.url));
/** Above all of the repository, and below nothing of the packages' cache. */
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PACKAGES = /[/\\]npm[/\\]/;
/** The folder of a package in Deno's cache: of the registry, the name and the version. */
const PACKAGE = /^.*\/npm\/[^/]+\/(@[^/]+\/)?[^/]+\/[^/]+(?=\/)/;
/** Packages that start files of their own, and so cannot be bundled. */
const FOR_NODE = ["piscina", "synckit", "thread-stream", "workerpool"];

/** What libraries look for and do without: `deno.lock` leaves these out. */
const NATIVE_PARTS = ["cbor-extract", "msgpackr-extract"];

/** What Node runs: the driver, its worker, and the workers that libraries start themselves. */
const NODE_ENTRIES = {
  node_driver: "node_driver.ts",
  node_worker: "node_worker.ts",
  pool_task: "pool_task.ts",
  pool_worker: "pool_worker.ts",
  start_main: "start_main.ts",
  start_worker: "start_worker.ts",
  synckit_worker: "synckit_worker.ts",
  thread_stream_worker: "thread_stream_worker.ts",
  workerpool_worker: "workerpool_worker.ts",
};

/** What a page of Chromium loads. */
const PAGE_ENTRIES = {
  page_driver: "page_driver.ts",
  page_worker: "page_worker.ts",
  start_worker: "start_worker.ts",
  coincident_worker: "coincident_worker.ts",
};

/** Writes the bundles for Node into a folder. */
export async function writeNodeBundles(folder: string): Promise<void> {
  await bundle(folder, NODE_ENTRIES, {
    platform: "node",
    target: "node20",
    external: FOR_NODE,
    // Packages in the older form ask for Node's modules in the older way.
    banner: {
      js: 'import { createRequire as makeRequire } from "node:module";' +
        "const require = makeRequire(import.meta.url);",
    },
  });
  for (const name of FOR_NODE) await copyPackage(name, import.meta.url, folder);
}

/** Writes the modules of our npm package into a folder, as they are published. */
export async function writeOwnPackage(folder: string): Promise<void> {
  for (const { path, text } of await bundleModules(ROOT.slice(0, -1), ENTRIES)) {
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(`${folder}/${path}`, text);
  }
  await Deno.writeTextFile(`${folder}/package.json`, '{ "type": "module" }');
}

/** Copies a package and what it depends on to where Node looks for them. */
async function copyPackage(name: string, from: string, folder: string): Promise<void> {
  const path = createRequire(from).resolve(name);
  const root = PACKAGE.exec(path)?.[0];
  if (root === undefined) throw new Error(`Cannot find the package ${name}: it is at ${path}`);
  const { dependencies = {} } = JSON.parse(await Deno.readTextFile(`${root}/package.json`));
  await copyFolder(root, `${folder}/node_modules/${name}`);
  for (const each of Object.keys(dependencies)) await copyPackage(each, path, folder);
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(`${from}/${name}`, `${to}/${name}`);
    else await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

/** Writes the bundles for pages into a folder. */
export async function writePageBundles(folder: string): Promise<void> {
  const plugins = [{ name: "absent", setup: leaveOut }, ...OPTIONS.plugins];
  await bundle(folder, PAGE_ENTRIES, { platform: "browser", target: "es2023", plugins });
}

const OPTIONS = {
  bundle: true,
  charset: "utf8",
  legalComments: "none",
  logLevel: "silent",
  plugins: [{ name: "packages", setup: resolvePackages }],
} satisfies esbuild.BuildOptions;

/**
 * Writes the bundles of entries into a folder. Our own functions are compiled with their modules as
 * far as those of the npm package are.
 */
async function bundle(
  folder: string,
  entries: Record<string, string>,
  options: esbuild.BuildOptions,
): Promise<void> {
  const { outputFiles } = await esbuild.build({
    ...OPTIONS,
    ...options,
    write: false,
    absWorkingDir: SCRIPT,
    entryPoints: entries,
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    format: "esm",
    splitting: true,
    chunkNames: "shared_[hash]",
  });
  await Deno.mkdir(folder, { recursive: true });
  const names = new Set<string>();
  for (const { name, source } of ENTRIES) {
    if (FIRST[name] === undefined) continue;
    const from = { absWorkingDir: ROOT, entryPoints: [source] };
    const text = await bundleText({ ...from, format: "esm" });
    for (const each of await readEarly(text, FIRST[name])) names.add(each);
  }
  const mark = (part: string) => part.startsWith(OWN) ? markEarly(part, names) : part;
  for (const { path, text } of outputFiles) {
    await Deno.writeTextFile(path, text.split(/^(?=\/\/ .)/m).map(mark).join(""));
  }
}

/** How the part of a bundle begins that comes from a module of ours. */
const OWN = "// ../../impl-ts/src/";

/** Bundles one text, for a page that has everything in itself. */
export async function bundlePage(entry: string): Promise<string> {
  const { outputFiles } = await esbuild.build({
    ...OPTIONS,
    absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
    entryPoints: [entry],
    write: false,
    format: "iife",
    minify: true,
    platform: "browser",
    target: "es2023",
  });
  return outputFiles[0]!.text;
}

/** Finds packages where Deno has put them: there is no folder `node_modules` to look into. */
function resolvePackages(build: esbuild.PluginBuild): void {
  build.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
    if (kind === "entry-point" || path.startsWith("node:")) return undefined;
    if (FOR_NODE.includes(path) || NATIVE_PARTS.includes(path)) return { path, external: true };
    // As Node has it for both of its entries; the map of imports that names them is another one's.
    if (path.startsWith("cbor-x/")) return { path: `${folderOf("cbor-x", ROOT)}/index.js` };
    if (importer.startsWith(ROOT) && !PACKAGES.test(importer)) {
      return { path: fileURLToPath(packageUrl(path)) };
    }
    const found = createRequire(importer).resolve(path);
    return found === path || found.startsWith("node:") ? undefined : { path: found };
  });
}

/** Leaves out what works in Node alone: its peers decline in a page, and call nothing of it. */
function leaveOut(build: esbuild.PluginBuild): void {
  build.onResolve(
    { filter: /^(node:.*|msgpackr|piscina|synckit|thread-stream|workerpool)$/ },
    ({ path }) => {
      return { path, namespace: "absent" };
    },
  );
  build.onLoad({ filter: /./, namespace: "absent" }, () => ({ contents: "module.exports = {};" }));
}

function packageUrl(specifier: string): string {
  return import.meta.resolve(specifier);
}

/** The parts of the scenario `size`, and what is imported for each. */
const IMPORTS: Readonly<Record<string, { names: string; specifier: string }>> = {
  "Port": { names: "Port", specifier: PACKAGE_NAME },
  "Writer-Reader": { names: "Segment, Writer, Reader", specifier: PACKAGE_NAME },
  "SABMessagePort": {
    names: "SABMessagePort",
    specifier: `${PACKAGE_NAME}/sab-message-port`,
  },
};

/** The bytes of each, minified, and gzipped under its name with `-gzip`. */
export async function measureSizes(): Promise<Record<string, number>> {
  const root = fileURLToPath(new URL("../../", import.meta.url)).slice(0, -1);
  const files: PackageFile[] = [
    { path: "package.json", text: JSON.stringify(manifest("0.0.0")) },
    ...await bundleModules(root, ENTRIES),
  ];
  const limit: Size = { minified: Infinity, gzip: Infinity };
  const sizes: Record<string, number> = {};
  try {
    for (const [name, each] of Object.entries(IMPORTS)) {
      const { minified, gzip } = await measureImport({ ...each, limit }, files);
      sizes[name] = minified;
      sizes[`${name}-gzip`] = gzip;
    }
    return sizes;
  } finally {
    await stopBundler();
  }
}

// The floors for `start` are a few kilobytes that do the least there is, and after them code that
// is never called, up to the size that the goals have for a library of that kind: they show what
// the import of so much takes. That code is of classes as a minifier leaves them, with private
// fields and short methods that look, loop and call each other: an engine has to read all of it.

/** Methods of a class, and its private fields. */
const METHODS = 24;
const FIELDS = 8;
const VERBS = ["read", "write", "take", "start", "close", "wait"];
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

/** What the modules are made of, and how large the goals have a library of their kind. */
export const MODULES = [
  { peer: "floor-text", name: "Port", size: 40_000 },
  { peer: "floor-turn", name: "SABMessagePort", size: 45_000 },
];

/** Writes the modules into a folder. */
export async function writeBareModules(folder: string): Promise<void> {
  for (const { peer, name, size } of MODULES) {
    await Deno.writeTextFile(`${folder}/${peer}.js`, await bareModule(name, size));
  }
}

/** Bundles a class of `script/bare.ts` and fills the module up to so many bytes. */
async function bareModule(name: string, size: number): Promise<string> {
  const { outputFiles } = await esbuild.build({
    stdin: { contents: `export { ${name} } from "./bare.ts";`, resolveDir: SCRIPT },
    write: false,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "neutral",
    target: "es2023",
  });
  const { text } = outputFiles[0]!;
  return text + neverCalled(size - text.length);
}

/** Code of so many bytes, the last of them spaces. */
export function neverCalled(size: number): string {
  const random = randomOf(1);
  let text = "";
  for (let index = 0;; index++) {
    const next = classText(`Unused${index}`, random);
    if (text.length + next.length > size) break;
    text += next;
  }
  // What is left is shorter than a class.
  for (let index = 0;; index++) {
    const next = `export const unused${index}=function(e,t){${bodyText(random)}};\n`
      .replaceAll("this.#", "e.");
    if (text.length + next.length > size) break;
    text += next;
  }
  return text + " ".repeat(size - text.length);
}

function classText(name: string, random: (below: number) => number): string {
  const fields = Array.from({ length: FIELDS }, (_, index) => {
    return `#${LETTERS[index]}${["", "=0", "=!1", "=[]"][random(4)]};`;
  });
  const methods = Array.from({ length: METHODS }, (_, index) => {
    const head = ["", "", "", "static ", "async "][random(5)];
    // A class has no private fields of its own.
    const body = head === "static "
      ? bodyText(random).replaceAll("this.#", "e.")
      : bodyText(random);
    return `${head}${nameOf(index)}(e,t){${body}}`;
  });
  const set = `constructor(e,t){this.#a=e,this.#b=t,this.#c=new Map}`;
  return `export class ${name}{${fields.join("")}${set}${methods.join("")}}\n`;
}

function bodyText(random: (below: number) => number): string {
  const count = 1 + random(3);
  let text = "";
  for (let index = 0; index < count; index++) text += statement(random, index);
  return `${text}return this.#${LETTERS[random(FIELDS)]}`;
}

function statement(random: (below: number) => number, index: number): string {
  const field = () => `this.#${LETTERS[random(FIELDS)]}`;
  const call = () => `${field()}.${nameOf(random(METHODS))}`;
  const own = `n${index}`;
  switch (random(6)) {
    case 0:
      return `if(e===void 0||${call()}(t)>${random(99)})return ${field()};`;
    case 1:
      return `let ${own}=${call()}(e,t);if(${own}!==t&&!${field()})throw new TypeError(` +
        `"Cannot ${nameOf(random(METHODS))}: it has ${nameOf(random(METHODS))}");`;
    case 2:
      return `for(let ${own}=0;${own}<t;${own}++)${field()}[${own}&7]^=e[${own}]>>>${random(9)};`;
    case 3:
      return `${field()}??=new Map([[e,{${nameOf(random(METHODS))}:t,size:${random(999)}}]]);`;
    case 4:
      return `let{length:${own}}=e,o${index}=()=>${call()}(${own},t);${field()}=o${index};`;
  }
  return `${field()}=e===t?${call()}(e):${random(99)}+${field()};`;
}

function nameOf(index: number): string {
  return `${VERBS[index % VERBS.length]}${LETTERS[index % LETTERS.length]}`;
}

/** Numbers that are the same each time. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
}
