/**
 * Runs the guide in Deno, as somebody would who has the package from its registry: in an empty
 * folder, with nothing but the files that are published, and what they import.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { run } from "../../tools/run.ts";
import { programsOf, runProgram, writePrograms } from "./guide.ts";

const PACKAGE = await Deno.realPath(`${import.meta.dirname}/..`);
const NAME = "@millrace/millrace";
const PROGRAMS = programsOf(await Deno.readTextFile(`${PACKAGE}/README.md`));
const TIMEOUT_MS = 120_000;

/** An empty folder, with a project that has the package. */
let folder = "";

Deno.test.beforeAll(async () => {
  folder = await Deno.makeTempDir({ prefix: "millrace-guide-" });
  await copyPublished(`${folder}/package`);
  const { version } = JSON.parse(await Deno.readTextFile(`${PACKAGE}/deno.json`));
  const config = {
    links: ["../package"],
    imports: { [NAME]: `jsr:${NAME}@${version}` },
    compilerOptions: { lib: ["deno.ns", "esnext", "dom", "dom.iterable", "dom.asynciterable"] },
  };
  await writePrograms(`${folder}/project`, PROGRAMS);
  await Deno.writeTextFile(`${folder}/project/deno.json`, JSON.stringify(config));
});

Deno.test.afterAll(() => Deno.remove(folder, { recursive: true }));

Deno.test("programsOf finds files, programs and what they print", () => {
  const text =
    "# A b\n\n```ts\n// main.ts\nconsole.log(1); // 1\n```\nand\n\n```ts\n// worker.ts\n" +
    "```\n\n```js\nno\n```\n\n## C\n\n```ts\nfor (;;) console.log(x); // 2, then 3\n```\n" +
    "```ts\n// main.ts\n```\n";
  const main = "// main.ts\nconsole.log(1); // 1\n";
  assertEquals(programsOf(text), [
    { name: "a_b_1", files: { "main.ts": main, "worker.ts": "// worker.ts\n" }, output: "1\n" },
    {
      name: "c_1",
      files: { "main.ts": "for (;;) console.log(x); // 2, then 3\n" },
      output: "2\n3\n",
    },
    { name: "c_2", files: { "main.ts": "// main.ts\n" }, output: "" },
  ]);
});

Deno.test("the guide's programs are those that are expected, and each prints something", () => {
  const names = PROGRAMS.map(({ name }) => name);
  for (const name of ["quick_start_1", "a_worker_that_blocks_1", "streams_1", "many_ports_1"]) {
    assertEquals([name, names.includes(name)], [name, true]);
  }
  assertEquals(PROGRAMS.filter(({ output }) => output === ""), []);
});

Deno.test("the guide's programs compile", async () => {
  const paths = PROGRAMS.flatMap(({ name, files }) =>
    Object.keys(files).map((file) => `${name}/${file}`)
  );
  const options = { cwd: `${folder}/project`, timeoutMs: TIMEOUT_MS, echo: false };
  const { output, code } = await run([Deno.execPath(), "check", ...paths], options);
  assertEquals(code, 0, output);
});

for (const program of PROGRAMS) {
  Deno.test(`Deno runs the guide's ${program.name} with the published files`, async () => {
    const command = [Deno.execPath(), "run", "-A", "--no-check"];
    const outcome = await runProgram(`${folder}/project`, program, command);
    assertEquals(outcome, [program.output, 0, false]);
  });
}

/** Copies what `deno publish` would send. */
async function copyPublished(target: string): Promise<void> {
  const command = [Deno.execPath(), "publish", "--dry-run", "--allow-dirty", "--no-check"];
  const options = { cwd: PACKAGE, timeoutMs: TIMEOUT_MS, echo: false };
  const { output, code } = await run(command, options);
  assertEquals(code, 0, output);
  const paths = [...output.matchAll(/^ +(file:\S+) \(/gm)].map(([, url]) =>
    decodeURI(new URL(url!).pathname)
  );
  assertEquals(paths.includes(`${PACKAGE}/src/mod.ts`), true, output);
  for (const path of paths) {
    const place = target + path.slice(PACKAGE.length);
    await Deno.mkdir(place.slice(0, place.lastIndexOf("/")), { recursive: true });
    await Deno.copyFile(path, place);
  }
}
