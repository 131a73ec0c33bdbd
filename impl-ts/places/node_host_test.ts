/**
 * Runs the tests of `src/host` in Node, with the addon: alone, with a process of Deno at the other
 * end, and with one of Zig; and lets those of Deno meet a process of Node.
 *
 * @module
 */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { bundleText, stopBundler } from "../../tools/build_scripts.ts";
import { findProgram } from "../../tools/programs.ts";
import { run } from "../../tools/run.ts";
import { requiresAll } from "../../tools/test_counts.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/../..`);
const HOST = `${ROOT}/impl-ts/src/host`;
const PINNED = `${ROOT}/.tools/bin/node`;
const TIMEOUT_MS = 120_000;
const AVAILABLE = Deno.build.os === "linux" && (requiresAll() || await runs(PINNED));

const TESTS = [
  "futex_test",
  "segment_file_left_test",
  "segment_file_sealed_test",
  "segment_file_test",
];
const PROCESSES = ["segment_file_process_test", "host_peer_fixture"];
const DENO_PEER = [
  Deno.execPath(),
  "run",
  "-A",
  "--no-check",
  `${HOST}/host_peer_fixture.ts`,
];
const ARCH = Deno.build.arch === "x86_64" ? "x64" : "arm64";

/** An empty folder, with the scripts and the package of the addon. */
let folder = "";

if (AVAILABLE) {
  Deno.test.beforeAll(async () => {
    folder = await Deno.makeTempDir({ prefix: "millrace-host-" });
    const options = { cwd: ROOT, timeoutMs: 10 * 60_000, echo: false };
    const { code, output } = await run(["zig", "build", "node-addon", "file-peer"], options);
    if (code !== 0) throw new Error(`zig build node-addon failed:\n${output}`);
    const addon = `${folder}/node_modules/millrace-linux-${ARCH}`;
    await Deno.mkdir(addon, { recursive: true });
    await Deno.writeTextFile(`${addon}/package.json`, '{ "main": "millrace.node" }');
    await Deno.copyFile(
      `${ROOT}/zig-out/node/linux-${ARCH}/millrace.node`,
      `${addon}/millrace.node`,
    );
    for (const name of [...TESTS, ...PROCESSES]) await compile(name, `${HOST}/${name}.ts`);
    await compile("file_test", `${ROOT}/conformance/interop/file_test.ts`);
    await compile("node_host_life", `${import.meta.dirname}/node_host_life.ts`);
    await stopBundler();
  });
  Deno.test.afterAll(() => Deno.remove(folder, { recursive: true }));
}

/** Makes a script for Node, whose library is the sources. */
async function compile(name: string, path: string): Promise<void> {
  const text = await bundleText({
    entryPoints: [path],
    format: "esm",
    external: ["node:*"],
    alias: { "@std/assert": `${import.meta.dirname}/node_assert.ts` },
  });
  await Deno.writeTextFile(`${folder}/${name}.mjs`, text);
}

function add(name: string, play: () => Promise<void>): void {
  Deno.test({ name, ignore: !AVAILABLE, fn: play });
}

async function passes(
  command: string[],
  peer?: string[],
  cwd: string = folder,
): Promise<string> {
  const variables = [
    `MILLRACE_FILE_PEER=${ROOT}/zig-out/bin/file_peer`,
    ...(peer === undefined ? [] : [`MILLRACE_HOST_PEER=${JSON.stringify(peer)}`]),
  ];
  const options = { cwd, timeoutMs: TIMEOUT_MS, echo: false };
  const { code, output, timedOut } = await run(["env", ...variables, ...command], options);
  assertEquals([code, timedOut], [0, false], output);
  return output;
}

const nodePeer = () => [PINNED, `${folder}/host_peer_fixture.mjs`];

for (const name of TESTS) {
  add(`the pinned Node passes ${name}`, async () => {
    assertStringIncludes(await passes([PINNED, `${name}.mjs`], nodePeer()), "fail 0");
  });
}

add("a process of Node meets one of Deno", async () => {
  const output = await passes([PINNED, "segment_file_process_test.mjs"], DENO_PEER);
  assertStringIncludes(output, "fail 0");
});

add("a process of Deno meets one of Node", async () => {
  const test = `${HOST}/segment_file_process_test.ts`;
  await passes([Deno.execPath(), "test", "-A", "--no-check", test], nodePeer(), ROOT);
});

add("a process of Node meets one of Zig", async () => {
  assertStringIncludes(await passes([PINNED, "file_test.mjs"], nodePeer()), "fail 0");
});

// Each version of Node ends its environments in an order of its own.
const OTHER = await findProgram(["node"], `${ROOT}/.tools/bin`);
const OTHERS = OTHER !== undefined && await runs(OTHER, /^v(20\.1[6-9]|20\.[2-9]|2[2-9])/)
  ? [OTHER]
  : [];

for (const program of [PINNED, ...OTHERS]) {
  const label = program === PINNED ? "the pinned Node" : "the system's Node";
  add(`${label}: the addon refuses wrong arguments, and ends with its environment`, async () => {
    assertEquals(await passes([program, "--expose-gc", "node_host_life.mjs"]), "played\n");
    assertEquals(await passes([program, "node_host_life.mjs", "untold"]), "played\n");
  });
  add(`${label} meets another of its kind`, async () => {
    const peer = [program, `${folder}/host_peer_fixture.mjs`];
    const output = await passes([program, "segment_file_process_test.mjs"], peer);
    assertStringIncludes(output, "fail 0");
  });
}

add("without the addon, Node gets an error with a code and another way", async () => {
  const bare = await Deno.makeTempDir({ prefix: "millrace-bare-" });
  await Deno.copyFile(`${folder}/host_peer_fixture.mjs`, `${bare}/peer.mjs`);
  const options = { cwd: bare, timeoutMs: TIMEOUT_MS, echo: false };
  const task = JSON.stringify({ path: "/dev/shm/none", creates: false, mode: "idle" });
  const { code, output } = await run([PINNED, "peer.mjs", task], options);
  await Deno.remove(bare, { recursive: true });
  assertEquals(code, 1);
  assertStringIncludes(output, `the package millrace-linux-${ARCH} is not installed`);
  assertStringIncludes(output, "over a Unix socket");
  assertStringIncludes(output, "code: 'ENOSYS'");
});

/** Whether a program is there, in such a version. */
async function runs(program: string, version: RegExp = /^v/): Promise<boolean> {
  try {
    const { stdout } = await new Deno.Command(program, { args: ["--version"] }).output();
    return version.test(new TextDecoder().decode(stdout));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
