// The package: what `zig fetch` takes from an archive of the repository is all that a project
// needs, which the guide's first programs show from an empty folder on.

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { dirname } from "node:path";
import { run } from "../tools/run.ts";
import { block, inFolder, ROOT, succeed } from "./readme_fixture.ts";

const MANIFEST = await Deno.readTextFile(`${ROOT}build.zig.zon`);
const [, VERSION = ""] = /\.version = "([^"]+)"/.exec(MANIFEST) ?? [];
const PATHS = [.../\.paths = \.\{([^}]*)\}/.exec(MANIFEST)?.[1]?.matchAll(/"([^"]+)"/g) ?? []]
  .map(([, path]) => path as string);
/** Bounds each process; its waits are shorter. */
const TIMEOUT_MS = 60_000;

async function copy(from: string, to: string): Promise<void> {
  if (!(await Deno.stat(from)).isDirectory) {
    await Deno.mkdir(dirname(to), { recursive: true });
    return await Deno.copyFile(from, to);
  }
  for await (const { name } of Deno.readDir(from)) await copy(`${from}/${name}`, `${to}/${name}`);
}

/** Packs what the manifest lists, and something that it does not. Needs no repository. */
async function pack(folder: string): Promise<string> {
  const top = `millrace-${VERSION}`;
  for (const path of [...PATHS, "CHANGELOG.md"]) {
    await copy(`${ROOT}${path}`, `${folder}/${top}/${path}`);
  }
  await succeed(folder, "tar", "-czf", `${top}.tar.gz`, top);
  return `${folder}/${top}.tar.gz`;
}

/** An empty project that has fetched the package. */
async function project(folder: string): Promise<string> {
  const archive = await pack(folder);
  const place = `${folder}/project`;
  await Deno.mkdir(`${place}/src`, { recursive: true });
  await succeed(place, "zig", "init", "--minimal");
  await succeed(place, "zig", "fetch", "--save", archive);
  const worker = block("worker").split("\n").map((line) => `    ${line}`).join("\n").trimEnd();
  const script = block("file: build.zig");
  await Deno.writeTextFile(`${place}/build.zig`, script.replace(/\}\n$/, `${worker}\n}\n`));
  await Deno.writeTextFile(
    `${place}/src/worker.zig`,
    'const millrace = @import("millrace");\n' +
      "export fn port_size() usize {\n    return @sizeOf(millrace.Port);\n}\n",
  );
  return place;
}

/** The files below a folder. */
async function list(folder: string, path = ""): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(`${folder}/${path}`)) {
    found.push(...isDirectory ? await list(folder, `${path}${name}/`) : [`${path}${name}`]);
  }
  return found;
}

Deno.test("build.zig.zon: names what is there, and the version stands nowhere else", async () => {
  assertMatch(VERSION, /^\d+\.\d+\.\d+$/);
  for (const path of PATHS) await Deno.stat(`${ROOT}${path}`);
  const script = await Deno.readTextFile(`${ROOT}build.zig`);
  assertStringIncludes(script, '@import("build.zig.zon").version');
  assert(!/\.major = \d/.test(script) && !script.includes(VERSION));
});

Deno.test("package: an empty project fetches it, and runs the guide's first programs", async () => {
  await inFolder(async (folder) => {
    const place = await project(folder);
    const manifest = await Deno.readTextFile(`${place}/build.zig.zon`);
    assertMatch(manifest, /\.millrace = \.\{/);
    assertStringIncludes(manifest, `millrace-${VERSION}-`);

    await Deno.writeTextFile(`${place}/src/main.zig`, block("program: threads"));
    await succeed(place, "zig", "build");
    const program = `${place}/zig-out/bin/program`;
    assertEquals(await succeed(place, program), "0: one\n1: two\n2: three\n");
    const worker = await Deno.readFile(`${place}/zig-out/bin/worker.wasm`);
    assert(WebAssembly.validate(worker));

    // What was unpacked is what the manifest lists, and no more.
    const unpacked = (await list(place)).filter((path) => path.startsWith("zig-pkg/"));
    const names = unpacked.map((path) => path.split("/").slice(2).join("/"));
    for (const name of names) {
      assert(PATHS.some((path) => name === path || name.startsWith(`${path}/`)), name);
    }
    for (const path of PATHS) assert(names.some((name) => name.startsWith(path)), path);
    await runProcesses(place, program);
  });
});

async function runProcesses(place: string, program: string): Promise<void> {
  if (Deno.build.os !== "linux") return;
  await Deno.writeTextFile(`${place}/src/main.zig`, block("program: processes"));
  await succeed(place, "zig", "build");
  const options = { cwd: place, timeoutMs: TIMEOUT_MS, echo: false };
  const outcomes = await Promise.all(
    ["service", "client"].map((role) => run([program, role, `${place}/port`], options)),
  );
  assertEquals(outcomes.map(({ code, output }) => [code, output]), [
    [0, ""],
    [0, "1000 numbers doubled\n"],
  ]);
}

Deno.test("zig build: the library, what describes it, and the modules; -Doptimize", async () => {
  await inFolder(async (folder) => {
    const build = async (place: string, ...options: string[]) => {
      const prefix = `${folder}/${place}`;
      await succeed(ROOT, "zig", "build", ...options, "--prefix", prefix);
      const names = ["lib/libmillrace.a", "lib/libmillrace.so", "bin/millrace.wasm"];
      return await Promise.all(names.map(async (name) =>
        new Uint8Array(
          await crypto.subtle.digest("SHA-256", await Deno.readFile(`${prefix}/${name}`)),
        ).toHex()
      ));
    };
    const [archive, shared, module] = await build("none");
    const headers = PATHS.filter((path) => path.startsWith("impl-zig/include/"))
      .map((path) => path.replace("impl-zig/", ""));
    for (const path of [...headers, "lib/pkgconfig/millrace.pc", "bin/millrace_mailbox.wasm"]) {
      await Deno.stat(`${folder}/none/${path}`);
    }
    // Without a mode, the library is fast.
    const [fastArchive, fastShared, fastModule] = await build("fast", "-Doptimize=fast");
    assertEquals([fastArchive, fastShared], [archive, shared]);
    const others = await build("debug", "-Doptimize=debug");
    for (const [index, other] of others.entries()) {
      assert(other !== [archive, shared, module][index], `${index}`);
    }
    assert(fastModule !== module); // which is small
  });
});

Deno.test("zig build lib-cross: the library compiles for other systems", async () => {
  await succeed(ROOT, "zig", "build", "lib-cross");
});
