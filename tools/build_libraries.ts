/**
 * Where the libraries are that the npm package asks its installer for.
 *
 * @module
 */
import { createRequire } from "node:module";

/**
 * Libraries of entries that few programs import. Those programs install them; the rest of the
 * package works without.
 */
export const PEERS: readonly string[] = ["@opentelemetry/api", "cbor-x", "hdr-histogram-js"];

/** The folder of a library among what Deno has fetched, in the version that `deno.lock` says. */
export function folderOf(library: string, root: string): string {
  return folderFrom(`${root}/impl-ts/src/mod.ts`, library);
}

/** That of a library which a module imports. */
function folderFrom(module: string, library: string): string {
  const path = createRequire(module).resolve(library);
  const folder = new RegExp(`^.*/${library}/[^/]+(?=/)`).exec(path)?.[0];
  if (folder === undefined) throw new Error(`Cannot find the package ${library}: it is at ${path}`);
  return folder;
}

/** The ES module `cbor-x/encode` for a bundler; undefined for what no entry stands on. */
export function moduleOf(specifier: string, root: string): string | undefined {
  const [library, name] = specifier.split("/");
  return library === "cbor-x" ? `${folderOf(library, root)}/${name}.js` : undefined;
}

/** Copies a library to where Node looks for it, with those that it stands on itself. */
export async function copyLibrary(library: string, root: string, folder: string): Promise<void> {
  await copyFrom(`${root}/impl-ts/src/mod.ts`, library, folder);
}

async function copyFrom(module: string, library: string, folder: string): Promise<void> {
  const from = folderFrom(module, library);
  await copyFolder(from, `${folder}/node_modules/${library}`);
  const { dependencies = {} } = JSON.parse(await Deno.readTextFile(`${from}/package.json`));
  for (const name of Object.keys(dependencies)) {
    await copyFrom(`${from}/package.json`, name, folder);
  }
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(`${from}/${name}`, `${to}/${name}`);
    else await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}
