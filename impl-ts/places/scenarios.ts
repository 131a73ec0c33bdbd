/**
 * The scenarios, and what they become for places that cannot run TypeScript.
 *
 * A scenario is a folder here: `main.ts` plays on the main thread, `worker.ts` in a worker.
 *
 * @module
 */
import type { Plugin } from "esbuild";
import { ENTRIES, type Entry, globalPath, globalSpecifierOf } from "../../tools/build_entries.ts";
import { modulePath, PACKAGE_NAME, specifierOf } from "../../tools/build_entries.ts";
import { bundleText } from "../../tools/build_scripts.ts";

/** Where a scenario can be played. */
export type Place = "deno" | "node" | "browser";

/** The two halves of a scenario; some have no worker. */
export type Part = "main" | "worker";

/** What runs there: ES modules, or scripts in the global scope that use the global builds. */
export type Form = "module" | "script";

const HERE = import.meta.dirname!;

/** Scenarios that are about one place. All others play in all of them. */
const ONLY: Readonly<Record<string, Place>> = { not_isolated: "browser", page_blocks: "browser" };

/** Scenarios with an error that nobody catches, which Deno also prints. */
export const LOUD: readonly string[] = ["supervise"];

/** The scenarios for a place. */
export function scenariosFor(place: Place): string[] {
  return [...Deno.readDirSync(HERE)]
    .filter(({ name, isDirectory }) => isDirectory && (ONLY[name] ?? place) === place)
    .map(({ name }) => name).sort();
}

/** The halves that a scenario has. */
export function partsOf(scenario: string): Part[] {
  const names = [...Deno.readDirSync(`${HERE}/${scenario}`)].map(({ name }) => name);
  return (["main", "worker"] as const).filter((part) => names.includes(`${part}.ts`));
}

/** A half of a scenario as one file for a page or a web worker; what is shared lies at `/npm/`. */
export function compileForBrowser(name: string, part: Part, form: Form): Promise<string> {
  const type = form === "module" ? "module" : "classic";
  const play = part === "main"
    // The driver of the page waits for it.
    ? `globalThis.outcome = playMain(part, "worker.${form}.js", { type: "${type}" });`
    : "playWorker(part);";
  // A page loads the globals by its own tags.
  const load = form === "script" && part === "worker"
    ? `importScripts(${ENTRIES.map((entry) => `"/npm/${globalPath(entry)}"`)});`
    : "";
  return bundleText({
    ...source(name, part, "web_stage.ts", play),
    format: form === "module" ? "esm" : "iife",
    banner: { js: load },
    plugins: [packageAs(form, (entry) => `/npm/${modulePath(entry)}`)],
  });
}

/** A half of a scenario as one file for Node, to be run where the other one and the package are. */
export function compileForNode(name: string, part: Part, form: Form): Promise<string> {
  const play = part === "main"
    ? `playMain(part, "./${nodePath(name, "worker", form)}");`
    : "playWorker(part);";
  return bundleText({
    ...source(name, part, "node_stage.ts", play),
    format: form === "module" ? "esm" : "cjs",
    external: ["node:*"],
    banner: { js: form === "script" ? ENTRIES.map(runInNode).join("\n") : "" },
    plugins: [packageAs(form, specifierOf)],
  });
}

/** The name of the file that `compileForNode` is for. */
export function nodePath(name: string, part: Part, form: Form): string {
  return `${name}_${part}.${form === "module" ? "mjs" : "cjs"}`;
}

/** What a page has to load in front of a script that uses the global builds. */
export function globalUrls(): string[] {
  return ENTRIES.map((entry) => `/npm/${globalPath(entry)}`);
}

function source(name: string, part: Part, stage: string, play: string) {
  const verb = part === "main" ? "playMain" : "playWorker";
  const contents = `import part from "./${name}/${part}.ts";
    import { ${verb} } from "./${stage}";
    ${play}`;
  return { stdin: { contents, resolveDir: HERE } };
}

/** Runs a global build in Node as a script: in the global scope, with none of a module's names. */
function runInNode(entry: Entry): string {
  const path = `require.resolve("${globalSpecifierOf(entry)}")`;
  return 'require("node:vm").runInThisContext(' +
    `require("node:fs").readFileSync(${path}, "utf8"));`;
}

/** Resolves imports of the package: a module's to where it is, a script's to the global. */
function packageAs(form: Form, place: (entry: Entry) => string): Plugin {
  return {
    name: PACKAGE_NAME,
    setup(build) {
      build.onResolve({ filter: new RegExp(`^${PACKAGE_NAME}(/|$)`) }, ({ path }) => {
        const entry = ENTRIES.find((each) => specifierOf(each) === path);
        if (entry === undefined) throw new Error(`Cannot import ${path}: the package has no such`);
        return form === "module"
          ? { path: place(entry), external: true }
          : { path: entry.globalName, namespace: "global" };
      });
      build.onLoad({ filter: /./, namespace: "global" }, ({ path }) => ({
        contents: `module.exports = globalThis.${path};`,
      }));
    },
  };
}
