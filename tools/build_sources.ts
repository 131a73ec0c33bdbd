/**
 * What is changed in the sources before they are bundled. Lines stay where they are.
 *
 * @module
 */
import type { Plugin } from "esbuild";
import { ENTRIES } from "./build_entries.ts";

/**
 * The functions that every port calls until its first answer is there, by module: V8 compiles them
 * with the module, where it otherwise reads them twice, and compiles each when it is called first.
 * That takes 10 to 15 µs of each. And what was compiled with its module is in the code cache of
 * Deno, which has nothing of what was compiled later (measured: V8 13, 15).
 *
 * Functions of modules alone, as V8 has no such hint for methods; and none that a constant of a
 * module is made by, as it is then called before it is there.
 */
export const EARLY: Readonly<Record<string, readonly string[]>> = {
  "codec.ts": [
    "codecTable",
    "decodeJson",
    "decodeText",
    "encode",
    "encodeText",
    "requireCodec",
    "takeBytes",
    "takeCopy",
    "textEncoder",
  ],
  "error.ts": ["assert"],
  "frame.ts": ["extentOf", "writeHeader"],
  "pipe.ts": ["findRing", "requireReaderOptions", "requireWait", "requireWriterOptions"],
  "pipe_inlet.ts": ["doublesOf"],
  "port_delivery.ts": ["requireDeliveryOptions"],
  "port_handoff.ts": ["isHandoff", "makeHandoff"],
  "port_options.ts": ["endpointOf", "findRings", "portGeometry", "requirePortOptions"],
  "port_outbox.ts": ["requireName", "requirePostingOptions"],
  "segment.ts": [
    "isShared",
    "readyOf",
    "requireTimeout",
    "sharedMemory",
    "toRegion",
    "wordsOf",
  ],
  "segment_geometry.ts": [
    "areCounts",
    "isCapacity",
    "isIndex",
    "isRing",
    "peersOf",
    "place",
    "readPlan",
    "recordOffset",
    "requireInteger",
    "tablesEnd",
    "takes",
    "writePlan",
  ],
  "wait.ts": ["agentMechanism", "defaultMechanism", "found", "withLook"],
  "wait_spinner.ts": ["requireTime"],
  "wait_state.ts": ["ring", "ringAround", "stateOf"],
};

/** Gives the sources to the bundler. */
export async function readSources(root: string): Promise<Plugin> {
  const classes = await classNames(root);
  return {
    name: "sources",
    setup(build) {
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
        const text = await Deno.readTextFile(path);
        const early = EARLY[path.slice(`${root}/impl-ts/src/`.length)] ?? [];
        return { contents: nameClasses(hoist(text, early), classes), loader: "ts" };
      });
    },
  };
}

/** Has functions of a module compiled with it: V8 takes parentheses around one for a call. */
export function hoist(text: string, names: readonly string[]): string {
  return names.reduce((before, name) => {
    const whole = new RegExp(`^((?:export )?)function ${name}\\b(.*?)^}$`, "ms");
    if (!whole.test(before)) throw new Error(`There is no function ${name}`);
    return before.replace(whole, (_, head, rest) => `${head}const ${name} = (function${rest}});`);
  }, text);
}

/** The names of the classes that the entries export. */
async function classNames(root: string): Promise<ReadonlySet<string>> {
  const classes = new Set<string>();
  for (const { source } of ENTRIES) {
    for (const value of Object.values(await import(`${root}/${source}`))) {
      if (typeof value === "function" && /^class\b/.test(String(value))) classes.add(value.name);
    }
  }
  return classes;
}

/**
 * Gives the classes that are exported their names at run time too, which the short name of a
 * binding takes away: `port.constructor.name` is what a debugger shows.
 */
function nameClasses(text: string, classes: ReadonlySet<string>): string {
  return text.replace(/^export (?:abstract )?class (\w+)[^{]*\{/gm, (head, name) => {
    return classes.has(name) ? `${head} static name = "${name}";` : head;
  });
}
