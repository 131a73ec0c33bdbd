import { assert, assertEquals } from "@std/assert";
import { ENTRIES, modulePath } from "./build_entries.ts";
import { findNames } from "./build_names.ts";
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

function membersOf([name, each]: [string, Class]): string[] {
  return [each, each.prototype].flatMap(Object.getOwnPropertyNames)
    .map((member) => `${name}.${member}`);
}

Deno.test("the package's classes have the names under which they are exported", async () => {
  for (const [, packed] of await modules()) {
    const classes = classesOf(packed);
    assert(classes.length > 2);
    for (const [name, { name: own }] of classes) assertEquals([name, own], [name, name]);
  }
});

Deno.test("the package's classes have the members that they have in the sources", async () => {
  for (const [source, packed] of await modules()) {
    const [wanted, got] = [source, packed].map((module) => classesOf(module).flatMap(membersOf));
    assertEquals(got!.sort(), wanted!.sort());
  }
});

Deno.test("findNames: what users and platforms name is not internal", () => {
  const { classes, internal } = findNames(ROOT, ENTRIES);
  for (const name of ["Port", "Segment", "MWChannel"]) assert(classes.has(name), name);
  assert(!classes.has("Outlet"));
  for (const name of ["isAnswerDue", "hasMoved", "giveBack"]) assert(internal.has(name), name);
  for (
    const name of ["write", "codec", "begun", "inlet", "addEventListener", "length", "subarray"]
  ) {
    assert(!internal.has(name), name);
  }
  // `vacatePeer` looks for it in what it is given.
  assert(!internal.has("outlet"));
});

/** Each entry as it is in the sources, and as the package has it. */
async function modules(): Promise<[Module, Module][]> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-names-" });
  try {
    for (const { path, text } of await bundleModules(ROOT, ENTRIES)) {
      await Deno.writeTextFile(`${folder}/${path}`, text);
    }
    await stopBundler();
    return await Promise.all(ENTRIES.map((entry) =>
      Promise.all([
        import(`${ROOT}/${entry.source}`),
        import(`${folder}/${modulePath(entry)}`),
      ])
    ));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
