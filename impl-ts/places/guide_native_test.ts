/**
 * Compiles the guide's service in Zig, and has the guide's program call it: to the end, to Ctrl-C,
 * and until one of the two is killed.
 *
 * @module
 */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { findProgram } from "../../tools/programs.ts";
import { run } from "../../tools/run.ts";
import { requiresAll } from "../../tools/test_counts.ts";
import { examplesConfig } from "../src/testing/examples_fixture.ts";
import { NATIVE_PAGE, type Program, programsOf, runProgram, writePrograms } from "./guide.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/../..`);
const TIMEOUT_MS = 60_000;
const TEXT = await Deno.readTextFile(`${ROOT}/impl-ts/${NATIVE_PAGE}`);
const [PROGRAM] = programsOf(TEXT) as [Program];
/** The same with a call that takes longer than anybody waits. */
const LONG: Program = {
  ...PROGRAM,
  name: "long",
  files: { "main.ts": PROGRAM.files["main.ts"]!.replace("primes(8)", "primes(4_000_000_000)") },
};
const FIRST = "cbf43926\n2\n3\n5\n7\n11\n";
const COMMAND = [Deno.execPath(), "run", "-A", "--no-check"];
/** Who brought a Deno of their own need not have Zig; the gate has it. */
const hasZig = await findProgram(["zig"]) !== undefined;
const ignore = Deno.build.os !== "linux" || !hasZig && !requiresAll();

let folder = "";

Deno.test.beforeAll(async () => {
  if (ignore) return;
  folder = await Deno.makeTempDir({ prefix: "millrace-native-" });
  await Deno.writeTextFile(`${folder}/deno.json`, await examplesConfig());
  await writePrograms(folder, [PROGRAM, LONG]);
  await Deno.writeTextFile(`${folder}/service.zig`, /^```zig\n([^]*?)^```$/m.exec(TEXT)![1]!);
  const modules = ["-Mroot=service.zig", `-Mmillrace=${ROOT}/impl-zig/src/root.zig`];
  const command = ["zig", "build-exe", "--dep", "millrace", ...modules, "--name", "service"];
  const { code, output } = await run(command, { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false });
  assertEquals(code, 0, output);
  for (const { name } of [PROGRAM, LONG]) {
    await Deno.copyFile(`${folder}/service`, `${folder}/${name}/service`);
  }
});

Deno.test.afterAll(async () => {
  if (folder !== "") await Deno.remove(folder, { recursive: true });
});

test("a service in Zig is called from Deno, and ends with the program", async () => {
  assertEquals(await runProgram(folder, PROGRAM, COMMAND), [PROGRAM.output, 0, false]);
});

test("Ctrl-C ends the call that is under way, the service and the program", async () => {
  await using running = new Running();
  await running.begin();
  Deno.kill(-running.process.pid, "SIGINT"); // both, as a terminal does
  assertEquals(await running.lastLine(), "service: 0");
  assertEquals((await running.process.status).code, 1);
  assertStringIncludes(await running.errors, "Error: Ctrl-C");
});

test("a service that is killed is an error of the call that is under way", async () => {
  await using running = new Running();
  await running.begin();
  const killed = performance.now();
  Deno.kill(running.service, "SIGKILL");
  assertEquals(await running.lastLine(), "service: 137");
  assertEquals((await running.process.status).code, 1);
  assertStringIncludes(await running.errors, "PeerFailedError");
  assertStringIncludes(await running.errors, "peer.lost");
  // Two slices of 100 ms, and what a busy machine adds.
  assertEquals(performance.now() - killed < 20_000, true);
});

test("a service ends by itself when its program is killed", async () => {
  await using running = new Running();
  await running.begin();
  running.process.kill("SIGKILL");
  // It has the other end of this pipe as long as it lives.
  await running.lastLine();
  assertEquals(await running.errors, "");
});

function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore, fn });
}

/** A program and its service. */
class Running implements AsyncDisposable {
  readonly process = new Deno.Command(COMMAND[0]!, {
    args: [...COMMAND.slice(1), `${LONG.name}/main.ts`],
    cwd: folder,
    stdout: "piped",
    stderr: "piped",
    env: { NO_COLOR: "1" },
    detached: true,
  }).spawn();
  readonly errors = new Response(this.process.stderr).text();
  readonly #lines = this.process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  readonly #timer = setTimeout(() => this.#end(), TIMEOUT_MS);
  service = 0;
  #text = "";

  /** Waits until a call is under way, and has begun to give its result. */
  async begin(): Promise<void> {
    while (!this.#text.startsWith(FIRST)) {
      const { value, done } = await this.#lines.read();
      if (done) throw new Error(`The program has ended: ${this.#text}${await this.errors}`);
      this.#text += value;
    }
    const { pid } = this.process;
    this.service = Number(await Deno.readTextFile(`/proc/${pid}/task/${pid}/children`));
  }

  /** The last line of all that it prints. */
  async lastLine(): Promise<string> {
    for (;;) {
      const { value, done } = await this.#lines.read();
      if (done) return this.#text.trimEnd().split("\n").at(-1)!;
      this.#text = (this.#text + value).slice(-100);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#end();
    await this.process.status;
    await this.#lines.cancel();
    await this.errors;
  }

  #end(): void {
    try {
      Deno.kill(-this.process.pid, "SIGKILL");
    } catch {
      // They have ended.
    }
  }
}
