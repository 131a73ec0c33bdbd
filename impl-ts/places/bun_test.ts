/**
 * Plays the scenarios in Bun, whose workers are those of Node there, and runs the guide, whose
 * workers are those of the web.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { copyLibrary } from "../../tools/build_libraries.ts";
import { makeUntyped, writePackage } from "../../tools/build_package.ts";
import { stopBundler } from "../../tools/build_scripts.ts";
import { findBun } from "../../tools/bun.ts";
import { requiresAll } from "../../tools/test_counts.ts";
import { addScenarios, writeScenarios } from "./commands.ts";
import { PAGES, readPrograms, runProgram, writePrograms } from "./guide.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/../..`);
const GUIDE = await readPrograms(`${ROOT}/impl-ts`, PAGES);
const program = await findBun();

/** An empty folder, into which the package is put. */
let folder = "";

if (program === undefined) {
  Deno.test({ name: "Bun plays the scenarios", ignore: !requiresAll(), fn: refuse });
} else {
  Deno.test.beforeAll(async () => {
    folder = await Deno.makeTempDir({ prefix: "millrace-bun-" });
    const place = `${folder}/node_modules/millrace`;
    await writePackage(place, await makeUntyped(ROOT));
    await copyLibrary("cbor-x", ROOT, folder);
    await writeScenarios(folder, "bun");
    await writePrograms(folder, await readPrograms(place, PAGES));
    await stopBundler();
  });
  Deno.test.afterAll(() => Deno.remove(folder, { recursive: true }));

  addScenarios("Bun", program, "bun", () => folder);
  for (const each of GUIDE) {
    Deno.test(`Bun runs the guide's ${each.name}`, async () => {
      assertEquals(await runProgram(folder, each, [program]), [each.output, 0, false]);
    });
  }
}

function refuse(): never {
  throw new Error("Cannot find Bun: the pinned one is for Linux on x86-64");
}
