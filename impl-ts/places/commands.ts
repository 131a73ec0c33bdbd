/**
 * Plays the scenarios by programs that take what Node takes: Node itself, and Bun.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { run } from "../../tools/run.ts";
import { compileForNode, formsOf, nodePath, partsOf, scenariosFor } from "./scenarios.ts";

const TIMEOUT_MS = 60_000;

/** Compiles all scenarios of a place into a folder, in which the package is installed. */
export async function writeScenarios(folder: string, place: "node" | "bun"): Promise<void> {
  for (const name of scenariosFor(place)) {
    for (const form of formsOf(name)) {
      for (const part of partsOf(name)) {
        const text = await compileForNode(name, part, form);
        await Deno.writeTextFile(`${folder}/${nodePath(name, part, form)}`, text);
      }
    }
  }
}

/** Adds a test for each scenario and form; the folder is asked for when it runs. */
export function addScenarios(
  label: string,
  program: string,
  place: "node" | "bun",
  folder: () => string,
): void {
  for (const name of scenariosFor(place)) {
    for (const form of formsOf(name)) {
      Deno.test(`${label} plays ${name}, as a ${form}`, async () => {
        const command = [program, nodePath(name, "main", form)];
        const options = { cwd: folder(), timeoutMs: TIMEOUT_MS, echo: false };
        let { code, output, timedOut } = await run(command, options);
        if (place === "node" && timedOut && output === "played\n") {
          // Node may deadlock while it shuts down (nodejs/node#54918); twice in a row is our fault.
          console.log(`${label} played ${name} and did not end: once more`);
          ({ code, output, timedOut } = await run(command, options));
        }
        assertEquals([output, code, timedOut], ["played\n", 0, false]);
      });
    }
  }
}
