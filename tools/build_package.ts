/**
 * Puts the npm package together: scripts, declarations, package.json, README and license.
 *
 * @module
 */
import {
  ENTRIES,
  type Entry,
  globalPath,
  globalSpecifierOf,
  modulePath,
  PACKAGE_NAME,
  PAGES,
  platformPackage,
  PLATFORMS,
  SCRIPTS,
  scriptsOf,
  specifierOf,
  typesPath,
} from "./build_entries.ts";
import { PEERS } from "./build_libraries.ts";
import { bundleGlobal, bundleModules } from "./build_modules.ts";
import { declarations, SOURCE_NAME } from "./build_types.ts";

/** A file of the package, by its path there. */
export interface PackageFile {
  path: string;
  text: string;
}

/** All files of the package, made from the sources below the root. Call `stopBundler` after it. */
export async function makePackage(root: string): Promise<PackageFile[]> {
  return [...await makeUntyped(root), ...declarations(root, ENTRIES)];
}

/** All of it but the declarations, which take most of the time, and which nothing runs. */
export async function makeUntyped(root: string): Promise<PackageFile[]> {
  const read = (path: string) => Deno.readTextFile(`${root}/${path}`);
  const { version, imports } = JSON.parse(await read("impl-ts/deno.json"));
  return [
    {
      path: "package.json",
      text: JSON.stringify({ ...manifest(version), ...librariesOf(imports) }, null, 2) + "\n",
    },
    ...await Promise.all(PAGES.map(async (path) => ({
      path,
      text: readme(await read(`impl-ts/${path}`)),
    }))),
    { path: "LICENSE", text: await read("LICENSE") },
    ...await bundleModules(root, ENTRIES),
    ...await Promise.all(SCRIPTS.map((entry) => bundleGlobal(root, entry))),
  ];
}

/** Writes the files into a folder, which then holds nothing else. */
export async function writePackage(folder: string, files: PackageFile[]): Promise<void> {
  await Deno.remove(folder, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  for (const { path, text } of files) {
    const place = `${folder}/${path}`;
    await Deno.mkdir(place.slice(0, place.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(place, text);
  }
}

/** The packages from the registry that imports name, each with the versions that will do. */
export function librariesOf(imports: Record<string, string>): Record<string, unknown> {
  const found = Object.values(imports).map((target) => /^npm:(@?[^@]+)@([^/]+)/.exec(target) ?? []);
  const libraries = found.flatMap(([, name, range]) => name ? [[name, range!]] : []);
  const peers = libraries.filter(([name]) => PEERS.includes(name!));
  return {
    dependencies: Object.fromEntries(libraries.filter((each) => !peers.includes(each))),
    peerDependencies: Object.fromEntries(peers),
    peerDependenciesMeta: Object.fromEntries(peers.map(([name]) => [name, { optional: true }])),
  };
}

/** The content of package.json. There is no `files`: everything in the folder is the package. */
export function manifest(
  version: string,
  entries: readonly Entry[] = ENTRIES,
): Record<string, unknown> {
  const subpathOf = (specifier: string) => `.${specifier.slice(PACKAGE_NAME.length)}`;
  const modules: Record<string, unknown> = {};
  const globals: Record<string, string> = {};
  for (const entry of entries) {
    // The first condition that matches wins, so the types come first.
    const targets = { types: `./${typesPath(entry)}`, default: `./${modulePath(entry)}` };
    modules[subpathOf(specifierOf(entry))] = targets;
  }
  for (const entry of scriptsOf(entries)) {
    globals[subpathOf(globalSpecifierOf(entry))] = `./${globalPath(entry)}`;
  }
  return {
    name: PACKAGE_NAME,
    version,
    description: "Messages between threads, runtimes and processes, through shared memory",
    keywords: ["sharedarraybuffer", "atomics", "worker", "ipc", "messageport", "ring-buffer"],
    license: "MIT",
    type: "module",
    engines: { node: ">=20" },
    sideEffects: Object.values(globals),
    exports: { ...modules, ...globals, "./package.json": "./package.json" },
    // npm takes the one that fits, and none where none does.
    optionalDependencies: Object.fromEntries(
      PLATFORMS.map((platform) => [platformPackage(platform), version]),
    ),
  };
}

/**
 * Writes the packages of the addons, each into `OUT-OS-CPU`. After `zig build node-addon`.
 * Returns the folders.
 */
export async function writePlatforms(root: string, out: string): Promise<string[]> {
  const { version } = JSON.parse(await Deno.readTextFile(`${root}/impl-ts/deno.json`));
  return await Promise.all(PLATFORMS.map(async (platform) => {
    const { os, cpu } = platform;
    const folder = `${out}-${os}-${cpu}`;
    const name = platformPackage(platform);
    const description = `The addon of ${PACKAGE_NAME} by which Node exchanges messages between ` +
      `processes, for ${os} on ${cpu}`;
    const content = {
      name,
      version,
      description,
      license: "MIT",
      main: "millrace.node",
      os: [os],
      cpu: [cpu],
    };
    await writePackage(folder, [
      { path: "package.json", text: JSON.stringify(content, null, 2) + "\n" },
      { path: "README.md", text: `# ${name}\n\n${description}. Install \`${PACKAGE_NAME}\`.\n` },
      { path: "LICENSE", text: await Deno.readTextFile(`${root}/LICENSE`) },
    ]);
    const addon = `${root}/zig-out/node/${os}-${cpu}/millrace.node`;
    await Deno.copyFile(addon, `${folder}/millrace.node`);
    return folder;
  }));
}

/**
 * A page of the implementation's guide, without links out of the package. Its imports have the name
 * of the npm package; where it speaks of the other registry, the name there stays.
 */
export function readme(text: string): string {
  return text
    .replace(
      new RegExp(`((?:from|import) "|\`)${SOURCE_NAME}(?=["/])`, "g"),
      `$1${PACKAGE_NAME}`,
    )
    .replace(
      /\[([^\]]+)\]\((?!https?:|#)([^)#]*)[^)]*\)/g,
      (link, words, target) => PAGES.includes(target.replace(/^\.\.\//, "")) ? link : words,
    );
}
