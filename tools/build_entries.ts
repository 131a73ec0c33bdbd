/**
 * What can be imported from the npm package: the one list from which the scripts, the declarations,
 * the `exports` of package.json and the tests are made.
 *
 * @module
 */

/** The name of the npm package. */
export const PACKAGE_NAME = "millrace";

/** The pages of the guide that come with it: those whose programs run wherever it does. */
export const PAGES: readonly string[] = [
  "README.md",
  "guide/asking.md",
  "guide/calls.md",
  "guide/coming_from.md",
  "guide/places.md",
  "guide/ports.md",
  "guide/values.md",
];

/** One thing that can be imported, as a module or as a script that sets a global. */
export interface Entry {
  /** Its name behind that of the package, as in `exports`. */
  subpath: "." | `./${string}`;
  /** The name of its files. */
  name: string;
  /** The module that it is, from the root of the repository. */
  source: string;
  /**
   * The global that its script sets, to all that the module exports. What works on objects of
   * another entry is loaded with that, as a module, and has no script; nor has what runs where
   * there are modules only.
   */
  globalName?: string;
  /**
   * For an entry that few import: which modules it takes from that of the package itself, by their
   * paths below `impl-ts/src/`. The others that it needs it has of its own, so that whoever imports
   * the package reads no further file on its behalf.
   */
  taken?: RegExp;
}

/** All of them; the package itself comes first. */
export const ENTRIES: readonly Entry[] = [
  { subpath: ".", name: "millrace", source: "impl-ts/src/mod.ts", globalName: "Millrace" },
  // Errors are known by their classes.
  { subpath: "./call", name: "call", source: "impl-ts/src/call.ts", taken: /^error\.ts$/ },
  {
    subpath: "./cbor",
    name: "cbor",
    source: "impl-ts/src/cbor.ts",
    taken: /^codec(_json)?\.ts$/,
  },
  {
    subpath: "./sab-message-port",
    name: "sab-message-port",
    source: "impl-ts/src/compat/sab_message_port.ts",
    globalName: "SABMessagePortLib",
  },
  {
    subpath: "./host",
    name: "host",
    source: "impl-ts/src/host/mod.ts",
    // Its ports are the same; constants it has of its own.
    taken: /^(?!layout\.ts$)[^/]+$/,
  },
];

/** Those that are scripts as well. */
export const SCRIPTS: readonly Entry[] = ENTRIES.filter(({ globalName }) => globalName);

/** The platforms that have an addon for Node, each in a package of its own. */
export const PLATFORMS: readonly { os: string; cpu: string }[] = [
  { os: "linux", cpu: "x64" },
  { os: "linux", cpu: "arm64" },
];

/** The name of such a package. */
export function platformPackage({ os, cpu }: { os: string; cpu: string }): string {
  return `${PACKAGE_NAME}-${os}-${cpu}`;
}

/** What an importer of the module writes. */
export function specifierOf({ subpath }: Entry): string {
  return PACKAGE_NAME + subpath.slice(1);
}

/** What an importer of the script writes. */
export function globalSpecifierOf(entry: Entry): string {
  return `${specifierOf(entry)}/global`;
}

/** The ES module of an entry, from the package's folder. */
export function modulePath({ name }: Entry): string {
  return `${name}.js`;
}

/** The script of an entry, from the package's folder. */
export function globalPath({ name }: Entry): string {
  return `${name}.global.js`;
}

/** The declarations of an entry, from the package's folder. */
export function typesPath({ source }: Entry): string {
  return `types/${source.slice("impl-ts/src/".length).replace(/\.ts$/, ".d.ts")}`;
}
