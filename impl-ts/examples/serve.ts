/**
 * Serves the pages of the examples on this machine, as any server can that sends two headers.
 *
 * @module
 */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";
import { bundleText } from "../../tools/build_scripts.ts";
import { ISOLATION } from "../../tools/chromium.ts";
import { findPyodide } from "../../tools/pyodide.ts";

/** The first is the one that a browser comes to which names none. */
export const PAGES = ["live", "meter", "input", "synth"] as const;

const HERE = import.meta.dirname!;
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FILE = new RegExp(`^/(?:(?:${PAGES.join("|")})/)?(?:\\w+\\.(html|css|js))?$`);
const PYODIDE = /^\/pyodide\/([\w.-]+\.(mjs|wasm|zip|json))$/;
const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css",
  js: "text/javascript",
  mjs: "text/javascript",
  wasm: "application/wasm",
  zip: "application/zip",
  json: "application/json",
};

/**
 * Serves all of them, their scripts bundled whenever they are asked for: whoever changes one loads
 * the page again. Call `stopBundler` after it.
 */
export function serveExamples(port = 0): Deno.HttpServer<Deno.NetAddr> {
  const options = { hostname: "127.0.0.1", port, onListen() {} };
  return Deno.serve(options, async ({ url }) => {
    const { pathname } = new URL(url);
    if (pathname === "/") {
      return new Response(null, { status: 302, headers: { location: `/${PAGES[0]}/` } });
    }
    const answer = await answerTo(pathname);
    for (const [name, value] of Object.entries(ISOLATION)) answer.headers.set(name, value);
    return answer;
  });
}

async function answerTo(pathname: string): Promise<Response> {
  const [, file, kind] = PYODIDE.exec(pathname) ?? [];
  const match = FILE.exec(pathname);
  const ending = kind ?? match?.[1] ?? "html";
  // Of ours, what is changed is there the next time that the page is loaded.
  const caching = file === undefined ? "no-cache" : "max-age=3600";
  const headers = { "content-type": TYPES[ending]!, "cache-control": caching };
  try {
    if (file !== undefined) return new Response(await readPyodide(file), { headers });
    if (match === null) throw new Deno.errors.NotFound();
    const path = `${HERE}${pathname}${pathname.endsWith("/") ? "index.html" : ""}`;
    const text = ending === "js" ? await bundle(path) : await Deno.readTextFile(path);
    return new Response(text, { headers });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return new Response("nothing is here", {
      status: 404,
      headers: { "content-type": "text/plain" },
    });
  }
}

/** Fetched when a page first asks for it. */
async function readPyodide(file: string): Promise<Uint8Array<ArrayBuffer>> {
  const folder = await (pyodide ??= findPyodide());
  if (folder === undefined) throw new Deno.errors.NotFound();
  return await Deno.readFile(`${folder}/${file}`);
}
let pyodide: ReturnType<typeof findPyodide> | undefined;

async function bundle(path: string): Promise<string> {
  await Deno.stat(path); // the bundler's own word for a file that is not there is longer
  return await bundleText({
    entryPoints: [path],
    format: "esm",
    platform: "browser",
    plugins: [PACKAGES],
  });
}

/** Finds packages where Deno has put them, and this one in its sources. */
const PACKAGES: Plugin = {
  name: "packages",
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
      if (kind === "entry-point") return undefined;
      const isOurs = importer.startsWith(ROOT) && !/[/\\]npm[/\\]/.test(importer);
      if (isOurs) return { path: fileURLToPath(import.meta.resolve(path)) };
      return { path: createRequire(importer).resolve(path) };
    });
  },
};
