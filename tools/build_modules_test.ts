import { assert, assertEquals } from "@std/assert";
import { ENTRIES, modulePath } from "./build_entries.ts";
import { bundleModules } from "./build_modules.ts";
import { stopBundler } from "./build_scripts.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);

type Module = Record<string, unknown>;
type Class = { name: string; prototype: object };

/** The classes of a module, by the names under which it exports them. */
function classesOf(module: Module): [string, Class][] {
  return Object.entries(module).filter(([name, value]) =>
    /^[A-Z]/.test(name) && typeof value === "function"
  ) as [string, Class][];
}

Deno.test("the package's classes have the names under which they are exported", async () => {
  for (const module of await modules()) {
    const classes = classesOf(module);
    assert(classes.length > 0);
    for (const [name, { name: own }] of classes) assertEquals([name, own], [name, name]);
  }
});

/** The entries that export classes, as the package has them. */
async function modules(): Promise<Module[]> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-names-" });
  try {
    for (const { path, text } of await bundleModules(ROOT, ENTRIES)) {
      await Deno.writeTextFile(`${folder}/${path}`, text);
    }
    await stopBundler();
    // What stands on a library finds it only where the package is installed.
    const entries = ENTRIES.filter(({ name }) => name !== "cbor");
    return await Promise.all(entries.map((entry) => import(`${folder}/${modulePath(entry)}`)));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
