import { assertEquals, assertStringIncludes } from "@std/assert";
import { makePackage, writePackage } from "../../tools/build_package.ts";
import { stopBundler } from "../../tools/build_scripts.ts";
import { checkProgram } from "../../tools/build_types.ts";
import { findProgram } from "../../tools/programs.ts";
import { run } from "../../tools/run.ts";
import { requiresAll } from "../../tools/test_counts.ts";
import { compileForNode, type Form, nodePath, partsOf, scenariosFor } from "./scenarios.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/../..`);
const NODE_MAJOR_MIN = 20;
const FORMS: Form[] = ["module", "script"];
const TIMEOUT_MS = 60_000;

/** An empty folder, into which the package is installed. */
let folder = "";

Deno.test.beforeAll(async () => {
  folder = await Deno.makeTempDir({ prefix: "millrace-node-" });
  await writePackage(`${folder}/node_modules/millrace`, await makePackage(ROOT));
  for (const name of scenariosFor("node")) {
    for (const form of FORMS) {
      for (const part of partsOf(name)) {
        const text = await compileForNode(name, part, form);
        await Deno.writeTextFile(`${folder}/${nodePath(name, part, form)}`, text);
      }
    }
  }
});

Deno.test.afterAll(async () => {
  await stopBundler();
  await Deno.remove(folder, { recursive: true });
});

addScenarios("the pinned Node", `${ROOT}/.tools/bin/node`, requiresAll());
addScenarios("the system's Node", await findProgram(["node"], `${ROOT}/.tools/bin`), false);

Deno.test("the declarations type a program for Node", async () => {
  const path = `${folder}/consumer.ts`;
  await Deno.copyFile(`${import.meta.dirname}/consumer.ts`, path);
  assertEquals(checkProgram([path]), []);
});

Deno.test("the declarations refuse a program that mixes up what it writes", async () => {
  const path = `${folder}/mistaken.ts`;
  const text = 'import { Port } from "millrace";\nPort.create<string, number>().write("1");\n';
  await Deno.writeTextFile(path, text);
  const [problem = "", ...others] = checkProgram([path]);
  assertStringIncludes(problem, "mistaken.ts:2: Argument of type 'string'");
  assertEquals(others, []);
});

/** Adds a test for each scenario and form, or one that is visibly skipped. */
function addScenarios(label: string, path: string | undefined, needed: boolean): void {
  if (path === undefined || !needed && majorOf(path) < NODE_MAJOR_MIN) {
    // Which Node a machine happens to have is no business of the gate, which refuses all skips.
    if (requiresAll()) console.log(`${label}: none of version ${NODE_MAJOR_MIN} or later here`);
    else Deno.test({ name: `${label} plays the scenarios`, ignore: true, fn: () => {} });
    return;
  }
  for (const name of scenariosFor("node")) {
    for (const form of FORMS) {
      Deno.test(`${label} ${majorOf(path)} plays ${name}, as a ${form}`, async () => {
        const command = [path, nodePath(name, "main", form)];
        const options = { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false };
        const { code, output, timedOut } = await run(command, options);
        assertEquals([output, code, timedOut], ["played\n", 0, false]);
      });
    }
  }
}

/** The major version of a Node, 0 where it does not run. */
function majorOf(path: string): number {
  try {
    const { stdout } = new Deno.Command(path, { args: ["--version"] }).outputSync();
    return Number(/^v(\d+)/.exec(new TextDecoder().decode(stdout))?.[1] ?? 0);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}
