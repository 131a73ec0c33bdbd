/**
 * Compiles the guide's module of WebAssembly by the command that the page says, and runs its
 * program, as the page prints both.
 *
 * @module
 */
import { assertEquals, assertThrows } from "@std/assert";
import { findProgram } from "../../tools/programs.ts";
import { run } from "../../tools/run.ts";
import { requiresAll } from "../../tools/test_counts.ts";
import { examplesConfig } from "../src/testing/examples_fixture.ts";
import { type Program, programsOf, runProgram, WEBASSEMBLY_PAGE, writePrograms } from "./guide.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/../..`);
const TIMEOUT_MS = 60_000;
const TEXT = await Deno.readTextFile(`${ROOT}/impl-ts/${WEBASSEMBLY_PAGE}`);
const [PROGRAM] = programsOf(TEXT) as [Program];
/** Who brought a Deno of their own need not have Zig; the gate has it. */
const ignore = await findProgram(["zig"]) === undefined && !requiresAll();

let folder = "";

Deno.test.beforeAll(async () => {
  if (ignore) return;
  folder = await Deno.makeTempDir({ prefix: "millrace-webassembly-" });
  await Deno.writeTextFile(`${folder}/deno.json`, await examplesConfig());
  await writePrograms(folder, [PROGRAM]);
  const cwd = `${folder}/${PROGRAM.name}`;
  await Deno.writeTextFile(`${cwd}/words.zig`, block("zig"));
  const command = block("sh").replaceAll("impl-zig/", `${ROOT}/impl-zig/`);
  const options = { cwd, timeoutMs: TIMEOUT_MS, echo: false };
  const { code, output } = await run(["sh", "-c", command], options);
  assertEquals(code, 0, output);
});

Deno.test.afterAll(async () => {
  if (folder !== "") await Deno.remove(folder, { recursive: true });
});

Deno.test({
  name: "two instances of a module of WebAssembly serve ports in one memory",
  ignore,
  fn: async () => {
    const command = [Deno.execPath(), "run", "-A", "--no-check"];
    assertEquals(await runProgram(folder, PROGRAM, command), [PROGRAM.output, 0, false]);
  },
});

Deno.test({
  name: "the module takes the memories that the page says, and has the imports that it names",
  ignore,
  fn: async () => {
    const bytes = await Deno.readFile(`${folder}/${PROGRAM.name}/words.wasm`);
    const module = new WebAssembly.Module(bytes);
    const names = WebAssembly.Module.imports(module).map((each) => `${each.module}.${each.name}`);
    assertEquals(names, ["env.memory", "millrace.now_us"]);
    const millrace = { now_us: () => 0 };
    const instantiate = (initial: number, maximum: number) => {
      const memory = new WebAssembly.Memory({ initial, maximum, shared: true });
      return new WebAssembly.Instance(module, { env: { memory }, millrace });
    };
    const { heap_base } = instantiate(65, 1023).exports as { heap_base(): number };
    assertEquals(heap_base() % 128, 0);
    assertThrows(() => instantiate(63, 1024), WebAssembly.LinkError, " 63 ");
    assertThrows(() => instantiate(64, 1025), WebAssembly.LinkError, " 1025 ");
  },
});

/** The first block of a language. */
function block(language: string): string {
  return new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "m").exec(TEXT)![1]!;
}
