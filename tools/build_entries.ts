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
  "guide/bundlers.md",
  "guide/calls.md",
  "guide/changed.md",
  "guide/compared.md",
  "guide/digest.md",
  "guide/errors.md",
  "guide/events.md",
  "guide/fanout.md",
  "guide/from_coincident.md",
  "guide/from_comlink.md",
  "guide/from_message_port.md",
  "guide/from_sab_message_port.md",
  "guide/from_synckit.md",
  "guide/places.md",
  "guide/pool.md",
  "guide/ports.md",
  "guide/properties.md",
  "guide/values.md",
  "guide/waiting.md",
];

/** One thing that can be imported, as a module or as a script that sets a global. */
export interface Entry {
  /** Its name after that of the package, as in `exports`. */
  subpath: "." | `./${string}`;
  /** The name of its files. */
  name: string;
  /** The module that it is, from the root of the repository. */
  source: string;
  /**
   * The global that a script sets to all that the module exports, together with the other entries
   * of this global. An entry without it has no script: what runs where there are modules only, and
   * what would make the script of the others long for few.
   */
  globalName?: string;
  /**
   * For an entry that few import: which modules it takes from entries before it, by the name of
   * the entry, and by their paths below `impl-ts/src/`. The others that it needs it has of its own,
   * so that whoever imports the package reads no further file on its behalf.
   */
  taken?: Readonly<Record<string, RegExp>>;
}

/**
 * What the package itself consists of. Every entry has its own copy of what it needs of the layout,
 * of the codec `cbor` or `json`, and of `wait/waitable`, which ports do not use.
 */
const CORE = new RegExp(`^(?:${
  [
    "error",
    "memory/(?:clock|plan|realm|segment)",
    "codec/(?:codec|loss|path)",
    "wait/(?!waitable)\\w+",
    "(?:ring|pipe|port)/\\w+",
  ].join("|")
})\\.ts$`);

/** All of them; the package itself comes first. */
export const ENTRIES: readonly Entry[] = [
  { subpath: ".", name: "millrace", source: "impl-ts/src/mod.ts", globalName: "Millrace" },
  more("select"),
  // What was chosen last is known to `select` alone.
  more("hub", { taken: { millrace: CORE, select: /^more\/select_set\.ts$/ } }),
  more("supervise"),
  more("lend"),
  // What a port has lent is known to `lend` alone.
  more("raw", { taken: { millrace: CORE, lend: /^more\/lend\.ts$/ } }),
  more("many"),
  more("streams"),
  more("peer"),
  more("revive"),
  small("json", { source: "impl-ts/src/codec/json.ts", globalName: "Millrace" }),
  small("mailbox", { globalName: "Millrace" }),
  small("property"),
  small("fanout"),
  small("stream"),
  small("call"),
  small("cbor", { source: "impl-ts/src/codec/cbor.ts" }),
  small("meter"),
  {
    subpath: "./meter/opentelemetry",
    name: "meter-opentelemetry",
    source: "impl-ts/src/meter/opentelemetry.ts",
    taken: {},
  },
  small("pool", {
    source: "impl-ts/src/pool/pool.ts",
    taken: {
      millrace: CORE,
      hub: /^more\/hub\.ts$/,
      supervise: /^more\/supervise\.ts$/,
      peer: /^more\/peer\.ts$/,
      revive: /^more\/revive\.ts$/,
      call: /^call\/(?!call\.)\w+\.ts$/,
    },
  }),
  small("digest", { taken: {} }),
  {
    subpath: "./sab-message-port",
    name: "sab-message-port",
    source: "impl-ts/src/compat/sab_message_port.ts",
    globalName: "SABMessagePortLib",
  },
  small("host", { source: "impl-ts/src/host/mod.ts" }),
];

/** An entry that takes the core from the package itself. */
function small(name: string, options: Partial<Entry> = {}): Entry {
  const source = `impl-ts/src/${name}/${name}.ts`;
  return { subpath: `./${name}`, name, source, taken: { millrace: CORE }, ...options };
}

/** One of `more/`: functions over ports, which the script of the package itself has too. */
function more(name: string, options: Partial<Entry> = {}): Entry {
  const source = `impl-ts/src/more/${name}.ts`;
  return small(name, { source, globalName: "Millrace", ...options });
}

/** Those by whose names there are scripts. */
export const SCRIPTS: readonly Entry[] = scriptsOf(ENTRIES);

/** The first entry of each global. */
export function scriptsOf(entries: readonly Entry[]): Entry[] {
  const names = new Set<string | undefined>([undefined]);
  return entries.filter(({ globalName }) => !names.has(globalName) && names.add(globalName));
}

/** The entries that a script sets its global to. */
export function entriesOf(globalName: string): Entry[] {
  return ENTRIES.filter((entry) => entry.globalName === globalName);
}

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
