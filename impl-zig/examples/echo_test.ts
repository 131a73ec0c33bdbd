// Runs the examples against one another, each in a process of its own: C with `zig cc` and the
// shared library, C with the system's compiler and the static one, C linked statically with musl,
// and Python.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { fileURLToPath } from "node:url";
import { findProgram } from "../../tools/programs.ts";
import { run } from "../../tools/run.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const EXAMPLES = `${ROOT}impl-zig/examples`;
const OUT = `${ROOT}zig-out`;
const BUILD = { cwd: ROOT, timeoutMs: 10 * 60_000, echo: false };
/** Bounds each process; its waits are shorter. */
const TIMEOUT_MS = 60_000;
const COUNT = 2_000;
/** More than any test sends. */
const FOR_EVER = 4_000_000_000;

// Where there are no segments in files, the library says so, and there is nothing to run.
const available = Deno.build.os === "linux";
const systemCompiler = await findProgram(["cc", "gcc", "clang"], `${ROOT}.tools/bin`);
const python = await findProgram(["python3", "python"]);

/** A way to run the example. */
interface Program {
  name: string;
  command: string[];
  /** Whether the machine has what it takes. */
  there: boolean;
}

const folder = await Deno.makeTempDir({ prefix: "millrace-echo-" });
const zigC: Program = { name: "C (zig cc)", command: [`${folder}/echo_zig`], there: true };
const systemC: Program = {
  name: "C (system)",
  command: [`${folder}/echo_system`],
  there: systemCompiler !== undefined,
};
const muslC: Program = {
  name: "C (musl, static)",
  command: [`${folder}/echo_musl`],
  there: Deno.build.arch === "x86_64",
};
const py: Program = {
  name: "Python",
  command: [python ?? "", `${EXAMPLES}/echo.py`, `${OUT}/lib/libmillrace.so`],
  there: python !== undefined,
};

async function build(...command: string[]): Promise<void> {
  const { code, output } = await run(command, BUILD);
  if (code !== 0) throw new Error(`${command.join(" ")} failed:\n${output}`);
}

Deno.test.beforeAll(async () => {
  if (!available) return;
  await build("zig", "build", "lib");
  const strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2"];
  const source = [`-I${OUT}/include`, `${EXAMPLES}/echo.c`];
  const shared = [`-L${OUT}/lib`, "-lmillrace", `-Wl,-rpath,${OUT}/lib`];
  await build("zig", "cc", ...strict, ...source, ...shared, "-o", `${folder}/echo_zig`);
  if (muslC.there) {
    const target = "x86_64-linux-musl";
    // Debug, which is compiled in a tenth of the time: how it links is what differs here. For the
    // least processor of all, Zig 0.17's own backend cannot compile the digests.
    const options = [`-Dtarget=${target}`, "-Dcpu=native", "-Doptimize=debug"];
    await build("zig", "build", "lib", ...options, "--prefix", `${folder}/musl`);
    const whole = ["-target", target, "-static", `${folder}/musl/lib/libmillrace.a`];
    await build("zig", "cc", ...strict, ...source, ...whole, "-o", `${folder}/echo_musl`);
  }
  if (systemCompiler === undefined) return;
  const archive = `${OUT}/lib/libmillrace.a`;
  await build(systemCompiler, ...strict, ...source, archive, "-o", `${folder}/echo_system`);
});

Deno.test.afterAll(() => Deno.remove(folder, { recursive: true }));

/** One side of a conversation, and what it said. */
class Side {
  readonly process: Deno.ChildProcess;
  readonly #out: Promise<string>;
  readonly #err: Promise<string>;
  readonly #first = Promise.withResolvers<void>();

  constructor({ command }: Program, ...args: string[]) {
    const [path, ...rest] = command;
    this.process = new Deno.Command(path as string, {
      args: [...rest, ...args],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).spawn();
    this.#out = this.#collect(this.process.stdout);
    this.#err = this.#collect(this.process.stderr);
  }

  async #collect(stream: ReadableStream<Uint8Array>): Promise<string> {
    let text = "";
    for await (const part of stream.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (text.includes("\n")) this.#first.resolve();
    }
    this.#first.resolve();
    return text;
  }

  /** Waits for the first line, or the end. */
  async line(): Promise<void> {
    await this.#first.promise;
  }

  async end(): Promise<{ code: number; out: string; err: string }> {
    const { code } = await this.process.status;
    return { code, out: await this.#out, err: await this.#err };
  }
}

/** A test of two programs on a file of their own. */
function test(name: string, programs: Program[], body: (path: string) => Promise<void>): void {
  Deno.test({
    name: `echo: ${name}`,
    ignore: !available || programs.some(({ there }) => !there),
    // The timer of a signal that was not needed.
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      const place = await Deno.makeTempDir({ dir: "/dev/shm", prefix: "millrace-echo-" });
      try {
        await body(`${place}/port`);
      } finally {
        await Deno.remove(place, { recursive: true });
      }
    },
  });
}

const PAIRS = [
  [zigC, zigC],
  [zigC, systemC],
  [systemC, zigC],
  [muslC, zigC],
  [zigC, py],
  [py, zigC],
] as const;

for (const [client, server] of PAIRS) {
  for (const { how, spin } of [{ how: "spinning", spin: "100" }, { how: "parked", spin: "0" }]) {
    test(`${client.name} asks ${server.name}, ${how}`, [client, server], async (path) => {
      // Either may come first: once this one, once the other.
      const begin = [
        () => new Side(server, "server", path, spin),
        () => new Side(client, "client", path, `${COUNT}`, spin),
      ];
      if (spin === "0") begin.reverse();
      const [first, second] = begin.map((start) => start()) as [Side, Side];
      const [served, asked] = spin === "0" ? [second, first] : [first, second];
      const answer = await asked.end();
      assertEquals([answer.code, answer.err], [0, ""]);
      assertStringIncludes(answer.out, "us there and back");
      assertEquals(await served.end(), { code: 0, out: "served\n", err: "" });
    });
  }
}

for (const survivor of [zigC, py]) {
  test(`${survivor.name} reports a client that was killed`, [survivor], async (path) => {
    const server = new Side(survivor, "server", path, "0");
    const client = new Side(zigC, "client", path, `${FOR_EVER}`, "0");
    await client.line();
    client.process.kill("SIGKILL");
    await client.end();
    const { code, err } = await server.end();
    assertEquals(code, 1, err);
    assertStringIncludes(err, "(peer.lost)");
  });

  test(`${survivor.name} reports a server that was killed`, [survivor], async (path) => {
    const server = new Side(zigC, "server", path, "0");
    const client = new Side(survivor, "client", path, `${FOR_EVER}`, "0");
    await client.line();
    server.process.kill("SIGKILL");
    await server.end();
    const { code, err } = await client.end();
    assertEquals(code, 1, err);
    assertStringIncludes(err, "(peer.lost)");
  });

  test(`${survivor.name} says why it cannot use a file`, [survivor], async (path) => {
    const { code, err } = await new Side(survivor, "server", `${path}/in/no/folder`).end();
    assertEquals(code, 1);
    assertStringIncludes(err, "A directory of the path is missing.");
  });

  test(`${survivor.name} refuses arguments that it does not know`, [survivor], async (path) => {
    const { code, err } = await new Side(survivor, "listen", path).end();
    assert(code !== 0);
    assertStringIncludes(err, "client PATH COUNT");
  });
}
