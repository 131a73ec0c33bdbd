/**
 * The scenarios, and what they become for places that cannot run TypeScript.
 *
 * A scenario is a folder here: `main.ts` plays on the main thread, `worker.ts` in a worker,
 * `alone.ts` is a worker by itself, and `processor.ts` plays in an audio worklet.
 *
 * @module
 */
import type { Plugin } from "esbuild";
import { ENTRIES, type Entry, globalPath, globalSpecifierOf } from "../../tools/build_entries.ts";
import { modulePath, PACKAGE_NAME, SCRIPTS, specifierOf } from "../../tools/build_entries.ts";
import { bundleText } from "../../tools/build_scripts.ts";

/** Where a scenario can be played. */
export type Place = "deno" | "node" | "bun" | "chromium" | "firefox";

/** The parts of a scenario; many have no worker, and few a processor. */
export type Part = "main" | "worker" | "alone" | "processor";

/** What runs there: ES modules, or scripts in the global scope that use the global builds. */
export type Form = "module" | "script";

const HERE = import.meta.dirname!;

const BROWSERS: readonly Place[] = ["chromium", "firefox"];

/** Scenarios that are about some places. All others play in all of them. */
const ONLY: Readonly<Record<string, readonly Place[]>> = {
  audio_heap: ["chromium"],
  audio_worklet: BROWSERS,
  bare_worker: BROWSERS,
  digest_audio: BROWSERS,
  // Firefox takes a module that its policy refuses for an error of the page.
  digest_policy: ["chromium"],
  not_isolated: BROWSERS,
  page_blocks: BROWSERS,
};

/** Scenarios with an error that nobody catches, which Deno also prints. */
export const LOUD: readonly string[] = ["supervise"];

/** The scenarios for a place. */
export function scenariosFor(place: Place): string[] {
  return [...Deno.readDirSync(HERE)]
    .filter(({ name, isDirectory }) => isDirectory && (ONLY[name]?.includes(place) ?? true))
    .map(({ name }) => name).sort();
}

/** The parts that a scenario has. */
export function partsOf(scenario: string): Part[] {
  const names = [...Deno.readDirSync(`${HERE}/${scenario}`)].map(({ name }) => name);
  const parts: Part[] = ["main", "worker", "alone", "processor"];
  return parts.filter((part) => names.includes(`${part}.ts`));
}

/** The forms in which a scenario can be played: as scripts, if all that it imports has a global. */
export function formsOf(scenario: string): Form[] {
  const texts = partsOf(scenario).map((part) =>
    Deno.readTextFileSync(`${HERE}/${scenario}/${part}.ts`)
  );
  const lacking = ENTRIES.filter(({ globalName }) => globalName === undefined).map(specifierOf);
  const isModule = lacking.some((each) => texts.some((text) => text.includes(`"${each}"`)));
  return isModule ? ["module"] : ["module", "script"];
}

/** A part of a scenario as one file for a browser; what is shared lies at `/npm/`. */
export function compileForBrowser(name: string, part: Part, form: Form): Promise<string> {
  const parts = {
    worker: `worker.${form}.js`,
    alone: `alone.${form}.js`,
    options: { type: form === "module" ? "module" : "classic" },
    processor: `processor.${form}.js`,
  };
  // The driver of the page waits for the outcome.
  const play = `globalThis.outcome = playMain(part, ${JSON.stringify(parts)});`;
  const globals = SCRIPTS.map((entry) => `"/npm/${globalPath(entry)}"`);
  // A page loads the globals by its own tags; what an audio worklet loads is always a module.
  const load: Record<Part, string> = {
    main: "",
    worker: `importScripts(${globals});`,
    alone: `importScripts(${globals});`,
    processor: globals.map((path) => `import ${path};`).join("\n"),
  };
  return bundleText({
    ...source(name, part, part === "processor" ? "audio_stage.ts" : "web_stage.ts", play),
    format: form === "module" ? "esm" : "iife",
    banner: { js: form === "script" ? load[part] : "" },
    plugins: [packageAs(form, (entry) => `/npm/${modulePath(entry)}`)],
  });
}

/** A file of a program of the package's guide, for a page and its worker. */
export function compileProgram(text: string): Promise<string> {
  return bundleText({
    stdin: { contents: text, loader: "ts" },
    format: "esm",
    plugins: [packageAs("module", (entry) => `/npm/${modulePath(entry)}`)],
  });
}

/** A part of a scenario as one file for Node, to be run where the other one and the package are. */
export function compileForNode(name: string, part: Part, form: Form): Promise<string> {
  const [worker, alone] = [nodePath(name, "worker", form), nodePath(name, "alone", form)];
  const play = `playMain(part, "./${worker}", "./${alone}");`;
  return bundleText({
    ...source(name, part, "node_stage.ts", play),
    format: form === "module" ? "esm" : "cjs",
    external: ["node:*"],
    banner: { js: form === "script" ? SCRIPTS.map(runInNode).join("\n") : "" },
    plugins: [packageAs(form, specifierOf)],
  });
}

/** The name of the file that `compileForNode` is for. */
export function nodePath(name: string, part: Part, form: Form): string {
  return `${name}_${part}.${form === "module" ? "mjs" : "cjs"}`;
}

/** What a page has to load in front of a script that uses the global builds. */
export function globalUrls(): string[] {
  return SCRIPTS.map((entry) => `/npm/${globalPath(entry)}`);
}

/** What the driver of each part is called. */
const PLAYS: Readonly<Record<Exclude<Part, "alone">, string>> = {
  main: "playMain",
  worker: "playWorker",
  processor: "playProcessor",
};

/** The source of a part; `playMain` is how the main one is played. */
function source(name: string, part: Part, stage: string, playMain: string) {
  const contents = part === "alone"
    ? `import "./${name}/alone.ts";`
    : `import part from "./${name}/${part}.ts";
    import { ${PLAYS[part]} } from "./${stage}";
    ${part === "main" ? playMain : `${PLAYS[part]}(part);`}`;
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
          : { path: entry.globalName!, namespace: "global" };
      });
      build.onLoad({ filter: /./, namespace: "global" }, ({ path }) => ({
        contents: `module.exports = globalThis.${path};`,
      }));
    },
  };
}
