// The package for Python: its wheel is built of the library for C, installed where nothing else is,
// and passes its tests.

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { fileURLToPath } from "node:url";
import { CallError, remote, serve } from "../../impl-ts/src/call/call.ts";
import { SegmentFile } from "../../impl-ts/src/host/mod.ts";
import { portGeometry } from "../../impl-ts/src/mod.ts";
import { findProgram } from "../../tools/programs.ts";
import { run } from "../../tools/run.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const HERE = `${ROOT}impl-zig/python`;
const LIBRARY = `${ROOT}zig-out/lib/libmillrace.so`;
const ARCH = Deno.build.arch;
/** Bounds each step; the tests' own waits are shorter. */
const TIMEOUT_MS = 5 * 60_000;

async function step(...command: string[]): Promise<{ code: number; output: string }> {
  return await run(command, { cwd: ROOT, timeoutMs: TIMEOUT_MS, echo: false });
}

async function succeed(...command: string[]): Promise<string> {
  const { code, output } = await step(...command);
  assert(code === 0, `${command.join(" ")} failed with ${code}:\n${output}`);
  return output;
}

const python = Deno.build.os === "linux" ? await findProgram(["python3"]) : undefined;
const folder = await Deno.makeTempDir({ prefix: "millrace-python-" });
const own = `${folder}/venv/bin/python`;

/** An environment with what the package stands on; why there is none, where there is none. */
async function prepare(): Promise<string | undefined> {
  if (python === undefined) return "there is no python3, or no Linux";
  const made = await step(python, "-m", "venv", `${folder}/venv`);
  if (made.code !== 0) return `it has no venv: ${made.output}`;
  const quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries=1"];
  const install = ["-m", "pip", "install", ...quiet, "--requirement", `${HERE}/requirements.txt`];
  const { code, output } = await step(own, ...install);
  return code === 0 ? undefined : `pip cannot get what it needs: ${output}`;
}

const missing = await prepare();
if (missing !== undefined) console.error(`The tests of the package for Python: ${missing}`);

Deno.test.afterAll(() => Deno.remove(folder, { recursive: true }));

Deno.test({
  name: "build_wheel.py: makes the same wheel twice, which passes the tests of the package",
  ignore: missing !== undefined,
  fn: async () => {
    await succeed("zig", "build", "lib");
    const build = [own, "-B", `${HERE}/build_wheel.py`, folder, ARCH, LIBRARY];
    const path = (await succeed(...build)).trim();
    const tags = `py3-none-manylinux_2_17_${ARCH}\\.musllinux_1_1_${ARCH}`;
    assertMatch(path, new RegExp(`/millrace-\\d+\\.\\d+\\.\\d+-${tags}\\.whl$`));
    const wheel = await Deno.readFile(path);
    await succeed(...build);
    assertEquals(await Deno.readFile(path), wheel);
    // It checks the digests of all files.
    const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    await succeed(own, ...install, "--no-deps", "--no-index", path);
    const output = await succeed(own, "-B", `${HERE}/tests.py`);
    const [, count] = /^Ran (\d+) tests/m.exec(output) ?? [];
    assert(Number(count) >= 23, output);
    assertMatch(output, /^OK$/m);
  },
});

/** What `tests.py serve` serves. */
interface Service {
  echo(value: unknown): unknown;
  count(below: number): Generator<number>;
  raise(how: string): void;
  ask(name: string): unknown;
}

Deno.test({
  name: "the package's calls, both ways, with TypeScript at the other end",
  ignore: missing !== undefined,
  fn: async () => {
    const place = await Deno.makeTempDir({ prefix: "millrace-python-", dir: "/dev/shm" });
    try {
      using file = SegmentFile.create(`${place}/segment`, portGeometry(), { endpoint: 0 });
      using port = file.port();
      serve(port, { name: () => "größe" });
      const python = run([own, "-B", `${HERE}/tests.py`, "serve", `${place}/segment`], {
        cwd: ROOT,
        timeoutMs: TIMEOUT_MS,
        echo: false,
      });
      const far = remote<Service>(port).with({ timeout: TIMEOUT_MS });
      for (const value of ["text", Uint8Array.of(0, 255), { a: [1, null] }, 3.5, ""]) {
        assertEquals(await far.echo(value), value);
      }
      // Python has one word for both.
      assertEquals([await far.echo(null), await far.echo(undefined)], [undefined, undefined]);
      assertEquals(await far.ask("name"), "größe");
      assertEquals(await Array.fromAsync(far.iterate.count(100)), [...Array(100).keys()]);
      const error = await assertRejects(() => far.raise("own"), CallError);
      assertEquals([error.remoteName, error.message, error.data], ["Own", "text", { n: 1 }]);
      port.end();
      const { code, output } = await python;
      assertEquals(code, 0, output);
    } finally {
      await Deno.remove(place, { recursive: true });
    }
  },
});
