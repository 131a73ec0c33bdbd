import { assertEquals, assertStringIncludes } from "@std/assert";
import { copyLibrary } from "../../tools/build_libraries.ts";
import { makePackage, writePackage, writePlatforms } from "../../tools/build_package.ts";
import { stopBundler } from "../../tools/build_scripts.ts";
import { checkProgram, OLDEST } from "../../tools/build_types.ts";
import { findProgram } from "../../tools/programs.ts";
import { run } from "../../tools/run.ts";
import { requiresAll } from "../../tools/test_counts.ts";
import { addScenarios, writeScenarios } from "./commands.ts";
import { forNode, PAGES, type Program, programForNode, readPrograms } from "./guide.ts";
import { runProgram, writePrograms } from "./guide.ts";
import { bundleProgram, startService } from "./guide_service.ts";
import { NODE_GLOBALS } from "./node_globals.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/../..`);
const NODE_MAJOR_MIN = 20;
const TIMEOUT_MS = 60_000;
const PINNED = `${ROOT}/.tools/bin/node`;
const PLATFORM = `linux-${Deno.build.arch === "x86_64" ? "x64" : "arm64"}`;
const GUIDE = await readPrograms(`${ROOT}/impl-ts`, PAGES);

/** An empty folder, into which the package is put. */
let folder = "";
/** Another one, for a tarball and the folders into which it is installed. */
let shop = "";

Deno.test.beforeAll(async () => {
  folder = await Deno.makeTempDir({ prefix: "millrace-node-" });
  shop = await Deno.makeTempDir({ prefix: "millrace-npm-" });
  const files = await makePackage(ROOT);
  await writePackage(`${folder}/node_modules/millrace`, files);
  await writePackage(`${shop}/unpacked`, files);
  await writeScenarios(folder, "node");
});

Deno.test.afterAll(async () => {
  await stopBundler();
  for (const each of [folder, shop]) await Deno.remove(each, { recursive: true });
});

addNode("the pinned Node", PINNED, requiresAll());
addNode("the system's Node", await findProgram(["node"], `${ROOT}/.tools/bin`), false);

Deno.test("the declarations type a program for Node", async () => {
  const path = `${folder}/consumer.ts`;
  await Deno.copyFile(`${import.meta.dirname}/consumer.ts`, path);
  assertEquals(checkProgram([path]), []);
});

Deno.test("the declarations do without the library dom", async () => {
  const path = `${folder}/consumer_without_dom.ts`;
  await Deno.copyFile(`${import.meta.dirname}/consumer.ts`, path);
  await Deno.writeTextFile(`${folder}/globals.d.ts`, NODE_GLOBALS);
  assertEquals(checkProgram([path, `${folder}/globals.d.ts`], ["es2022"]), []);
});

Deno.test(`the declarations need no more than TypeScript ${OLDEST.versionMajorMinor}`, async () => {
  const readme = await Deno.readTextFile(`${ROOT}/impl-ts/README.md`);
  assertStringIncludes(readme, `TypeScript ${OLDEST.versionMajorMinor} or later`);
  const { exports } = JSON.parse(
    await Deno.readTextFile(`${folder}/node_modules/millrace/package.json`),
  );
  // Whoever uses the other entries has their libraries, which have declarations of their own.
  const entries = Object.keys(exports).filter((entry) => !/cbor|meter|global|package/.test(entry));
  const all = `${folder}/all.mts`;
  const lines = entries.map((entry, index) =>
    `export * as e${index} from "millrace${entry.slice(1)}";`
  );
  await Deno.writeTextFile(all, lines.join("\n"));
  const path = `${folder}/consumer_for_oldest.mts`;
  await Deno.copyFile(`${import.meta.dirname}/consumer.ts`, path);
  for (const library of ["dom", "webworker"]) {
    const libraries = ["es2022", library];
    assertEquals(checkProgram([all, path], libraries, "nodenext", OLDEST), []);
  }
});

for (const resolution of ["nodenext", "bundler"] as const) {
  for (const library of ["dom", "webworker"]) {
    Deno.test(`the quick start compiles: ${resolution}, library ${library}`, async () => {
      const { files } = GUIDE.find(({ name }) => name === "quick_start_1")!;
      const place = `compiled_${resolution}_${library}`;
      // The guide that comes with the package says so.
      const changed = Object.entries(files).map(([file, text]) => [
        file,
        text.replaceAll("@millrace/", ""),
      ]);
      const project = { "package.json": '{ "type": "module" }', ...Object.fromEntries(changed) };
      await writePrograms(folder, [{ name: place, files: project, output: "" }]);
      const paths = Object.keys(files).map((file) => `${folder}/${place}/${file}`);
      assertEquals(checkProgram(paths, ["es2022", library], resolution), []);
    });
  }
}

Deno.test("the declarations refuse a program that mixes up what it writes", async () => {
  const path = `${folder}/mistaken.ts`;
  const text = 'import { Port } from "millrace";\nPort.create<string, number>().write("1");\n';
  await Deno.writeTextFile(path, text);
  const [problem = "", ...others] = checkProgram([path]);
  assertStringIncludes(problem, "mistaken.ts:2: Argument of type 'string'");
  assertEquals(others, []);
});

// Who brought a Deno of their own need not have the pinned Node; the gate has it.
const ignore = majorOf(PINNED) === 0 && !requiresAll();

Deno.test("npm packs the package, and installs the tarball", { ignore }, async () => {
  await runIn(ROOT, ["zig", "build", "node-addon"]);
  await writePlatforms(ROOT, `${shop}/unpacked`);
  for (const each of ["unpacked", `unpacked-${PLATFORM}`]) await npm(shop, "pack", `./${each}`);
  const { version } = JSON.parse(await Deno.readTextFile(`${shop}/unpacked/package.json`));
  // The registry is not asked for the library, which lies here as it was published.
  await copyLibrary("cbor-x", ROOT, shop);
  const library = `${shop}/node_modules/cbor-x`;
  await npm(shop, "pack", library, "--ignore-scripts");
  const [archive] = [...Deno.readDirSync(shop)].filter(({ name }) => name.startsWith("cbor-x-"));
  const dependencies = {
    millrace: `file:../millrace-${version}.tgz`,
    // A registry has it, and npm would find it there by itself.
    [`millrace-${PLATFORM}`]: `file:../millrace-${PLATFORM}-${version}.tgz`,
    "cbor-x": `file:../${archive!.name}`,
  };
  await Deno.mkdir(`${shop}/empty`);
  const manifest = JSON.stringify({ type: "module", dependencies });
  await Deno.writeTextFile(`${shop}/empty/package.json`, manifest);
  await npm(`${shop}/empty`, "install", "--omit=optional");
  // From here on the programs are those of the guide that has come with the package.
  const programs = await readPrograms(`${shop}/empty/node_modules/millrace`, PAGES);
  assertEquals(programs.map(({ name }) => name), GUIDE.map(({ name }) => name));
  assertEquals(programs.filter(({ files }) => files["main.ts"]!.includes("@millrace/")), []);
  await writePrograms(`${shop}/empty/node`, programs.map(forNode));
  // Deno 2.9 installs no tarballs, and takes what npm has installed.
  await writePrograms(`${shop}/empty/deno`, programs);
});

Deno.test("the pinned Node takes a segment in a file from the tarballs", { ignore }, async () => {
  const path = `${shop}/segment`;
  await Deno.writeTextFile(
    `${shop}/empty/host.mjs`,
    `
    import { Port, portGeometry, SegmentError } from "millrace";
    import { SegmentFile } from "millrace/host";
    try {
      SegmentFile.open(process.argv[2], { endpoint: 1 });
    } catch (error) {
      console.log(error instanceof SegmentError, error.code);
    }
    const here = SegmentFile.create(process.argv[2], portGeometry(), { endpoint: 0 });
    const there = SegmentFile.open(process.argv[2], { endpoint: 1 });
    const [a, b] = [here.port(), there.port()];
    a.write("hello");
    console.log(await b.readAsync(), a instanceof Port);
    here.close();
    there.close();
  `,
  );
  const options = { cwd: `${shop}/empty`, timeoutMs: TIMEOUT_MS, echo: false };
  const { output, code } = await run([PINNED, "host.mjs", path], options);
  assertEquals([output, code], ["true segment.missing\nhello true\n", 0]);
});

for (const program of GUIDE) {
  const name = `runs the guide's ${program.name} with the tarball`;
  Deno.test(`the pinned Node ${name}`, { ignore }, async () => {
    await assertRuns("node", program, [PINNED]);
  });
  Deno.test(`Deno ${name}`, { ignore }, async () => {
    await assertRuns("deno", program, [Deno.execPath(), "run", "-A", "--no-check"]);
  });
}

Deno.test("the pinned Node makes fetch synchronous over HTTP too", { ignore }, async () => {
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    return new Response(new URL(url).pathname.slice(1));
  });
  const program = forNode(GUIDE.find(({ name }) => name === "make_fetch_synchronous_1")!);
  const [main = "", worker = ""] = ["main.ts", "worker.ts"].map((file) =>
    program.files[file]!.replaceAll("@millrace/", "")
      .replace("data:,", `http://127.0.0.1:${server.addr.port}/`)
  );
  const there = { ...program, name: "http", files: { "main.ts": main, "worker.ts": worker } };
  await writePrograms(`${shop}/empty`, [there]);
  const outcome = await runProgram(`${shop}/empty`, there, [PINNED]);
  assertEquals(outcome, [program.output, 0, false]);
});

Deno.test("the pinned Node runs the client of any transport", { ignore }, async () => {
  const way = "Duplex.toWeb(connect(place))";
  const page = await Deno.readTextFile(`${ROOT}/impl-ts/guide/transports.md`);
  assertStringIncludes(page, `openStream<string>(${way})`);
  const imports = 'import { connect } from "node:net";\nimport { Duplex } from "node:stream";\n';
  const denos = 'await Deno.connect({ transport: "unix", path: place })';
  const change = (text: string) => imports + text.replace(denos, way);
  await using service = await startService("over_a_unix_socket", "client", change);
  const client = await bundleProgram(service.client);
  await writePrograms(`${shop}/empty`, [client]);
  const outcome = await runProgram(`${shop}/empty`, client, [PINNED]);
  assertEquals(outcome, [client.output, 0, false]);
});

Deno.test(
  "a port without a hold lets Node end, and is served while it lives",
  { ignore },
  async () => {
    await Deno.writeTextFile(
      `${folder}/unref.mjs`,
      `
    import { Port } from "millrace";
    const port = Port.create(), peer = Port.attach(port.memory);
    let count = 0;
    port.onmessage = () => {
      count++;
      peer.write(0);
    };
    peer.write(0);
    port.unref();
    // Turns that wait for the end of a slice would bring some hundreds in these 3 s.
    let checks = 0;
    const check = setInterval(() => {
      if (count <= 5000 && ++checks < 100) return;
      clearInterval(check);
      console.log(count > 5000 ? "many" : count);
    }, 30);
    process.on("exit", () => console.log("ended"));
    setTimeout(() => {
      console.log("bounded");
      process.exit();
    }, 10_000).unref();
  `,
    );
    const options = { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false };
    const { output, code } = await run([PINNED, "unref.mjs"], options);
    assertEquals([output, code], ["many\nended\n", 0]);
  },
);

Deno.test("in Node, neither waits nor events load a library for a clock", { ignore }, async () => {
  await Deno.writeTextFile(
    `${folder}/clock.mjs`,
    `
    import { Port } from "millrace";
    const port = Port.create({ spin: 50 }), peer = Port.attach(port.memory);
    port.read({ timeout: 2 });
    await port.readAsync({ timeout: 2 });
    peer.onmessage = ({ data }) => peer.postMessage(data);
    port.postMessage(0);
    console.log(await port.readAsync());
    console.log(process.moduleLoadList.filter((name) => name.endsWith("perf_hooks")));
    process.exit();
  `,
  );
  const options = { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false };
  const { output, code } = await run([PINNED, "clock.mjs"], options);
  assertEquals([output, code], ["0\n[]\n", 0]);
});

async function assertRuns(place: string, program: Program, command: string[]): Promise<void> {
  const outcome = await runProgram(`${shop}/empty/${place}`, program, command);
  assertEquals(outcome, [program.output, 0, false]);
}

/** Runs the npm that came with the pinned Node, without a network. */
async function npm(cwd: string, ...args: string[]): Promise<void> {
  const program = await Deno.realPath(PINNED);
  const place = program.replace(/bin\/[^/]+$/, "lib/node_modules/npm/bin/npm-cli.js");
  const quiet = ["--offline", "--no-audit", "--no-fund", "--cache", `${shop}/npm-cache`];
  await runIn(cwd, [PINNED, place, ...args, ...quiet]);
}

async function runIn(cwd: string, command: string[]): Promise<void> {
  const { output, code } = await run(command, { cwd, timeoutMs: TIMEOUT_MS, echo: false });
  assertEquals(code, 0, output);
}

/** Adds the tests of a Node, or one that is visibly skipped. */
function addNode(label: string, path: string | undefined, needed: boolean): void {
  if (path === undefined || !needed && majorOf(path) < NODE_MAJOR_MIN) {
    // Which Node a machine happens to have is no business of the gate, which refuses all skips.
    if (requiresAll()) console.log(`${label}: none of version ${NODE_MAJOR_MIN} or later here`);
    else Deno.test({ name: `${label} plays the scenarios`, ignore: true, fn: () => {} });
    return;
  }
  const name = `${label} ${majorOf(path)}`;
  addScenarios(name, path, "node", () => folder);
  Deno.test(`${name} runs the guide's program for Node`, async () => {
    const { files, output } = programForNode(await Deno.readTextFile(`${ROOT}/impl-ts/README.md`));
    assertEquals([Object.keys(files), output], [["main.js", "worker.js"], "42\n"]);
    const project = { "package.json": '{ "type": "module" }', ...files };
    await writePrograms(folder, [{ name: "for_node", files: project, output }]);
    const options = { cwd: `${folder}/for_node`, timeoutMs: TIMEOUT_MS, echo: false };
    const outcome = await run([path, "main.js"], options);
    assertEquals([outcome.output, outcome.code], [output, 0]);
  });
  if (!canRequire(path)) return;
  Deno.test(`${name} has the package by require, in CommonJS`, async () => {
    const main = `
      const { Port } = require("millrace");
      const { Hub } = require("millrace/hub");
      const here = Port.create(), there = Port.attach(here.memory);
      here.write("hello");
      console.log(there.read(), typeof Hub);
    `;
    await writePrograms(folder, [{ name: "common", files: { "main.cjs": main }, output: "" }]);
    const options = { cwd: `${folder}/common`, timeoutMs: TIMEOUT_MS, echo: false };
    const { output, code } = await run([path, "main.cjs"], options);
    assertEquals([output, code], ["hello function\n", 0]);
  });
}

/** Whether CommonJS can require a module there: from 20.19 and 22.12 on, as the guide says. */
function canRequire(path: string): boolean {
  const [major, minor] = versionOf(path);
  return major === 20 ? minor >= 19 : major === 22 ? minor >= 12 : major > 22;
}

/** The major version of a Node, 0 where it does not run. */
function majorOf(path: string): number {
  return versionOf(path)[0];
}

function versionOf(path: string): [major: number, minor: number] {
  try {
    const { stdout } = new Deno.Command(path, { args: ["--version"] }).outputSync();
    const [, major, minor] = /^v(\d+)\.(\d+)/.exec(new TextDecoder().decode(stdout)) ?? [];
    return [Number(major ?? 0), Number(minor ?? 0)];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [0, 0];
    throw error;
  }
}
