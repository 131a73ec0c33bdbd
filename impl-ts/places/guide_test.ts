/**
 * Runs the guide in Deno, as somebody would who has the package from its registry: in an empty
 * folder, with nothing but the files that are published, and what they import.
 *
 * @module
 */
import { assertEquals, assertThrows } from "@std/assert";
import { copyLibrary } from "../../tools/build_libraries.ts";
import { run } from "../../tools/run.ts";
import {
  freePort,
  HOST_PAGES,
  NATIVE_PAGE,
  needsPage,
  PAGES,
  type Program,
  programsOf,
  WEBASSEMBLY_PAGE,
} from "./guide.ts";
import { readAllPrograms, runProgram, writePrograms } from "./guide.ts";

const PACKAGE = await Deno.realPath(`${import.meta.dirname}/..`);
const NAME = "@millrace/millrace";
const EVERYWHERE = await readAllPrograms(PACKAGE, PAGES);
const HOST = (await readAllPrograms(PACKAGE, HOST_PAGES)).map(onFreePort);
const NATIVE = await readAllPrograms(PACKAGE, [NATIVE_PAGE, WEBASSEMBLY_PAGE]);
const PROGRAMS = [...EVERYWHERE, ...HOST, ...NATIVE];
const TIMEOUT_MS = 120_000;

/** An empty folder, with a project that has the package. */
let folder = "";

Deno.test.beforeAll(async () => {
  folder = await Deno.makeTempDir({ prefix: "millrace-guide-" });
  await copyPublished(`${folder}/package`);
  const { version } = JSON.parse(await Deno.readTextFile(`${PACKAGE}/deno.json`));
  const config = {
    links: ["../package"],
    nodeModulesDir: "manual",
    imports: { [NAME]: `jsr:${NAME}@${version}` },
    compilerOptions: { lib: ["deno.ns", "esnext", "dom", "dom.iterable", "dom.asynciterable"] },
  };
  await writePrograms(`${folder}/project`, PROGRAMS);
  await Deno.writeTextFile(`${folder}/project/deno.json`, JSON.stringify(config));
  // The registry is not asked for the libraries, which lie there as installed.
  for (const library of ["cbor-x", "hdr-histogram-js", "@opentelemetry/api"]) {
    await copyLibrary(library, `${PACKAGE}/..`, `${folder}/project`);
  }
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

Deno.test("programsOf makes variants of the first program, of its lines only", () => {
  const text = "# A\n\n```ts\n// main.ts\none;\ntwo;\nthree;\n```\n\n## B\n\n";
  const variant = "```diff\n// main.ts\n-two;\n+2;\n+2.5;\n```\n";
  const [first, second] = programsOf(text + variant);
  assertEquals(first!.files["main.ts"], "// main.ts\none;\ntwo;\nthree;\n");
  assertEquals(second!.name, "b_1");
  assertEquals(second!.files["main.ts"], "// main.ts\none;\n2;\n2.5;\nthree;\n");
  assertThrows(() => programsOf(text + variant.replace("-two", "-too")), Error, "no line too;");
});

Deno.test("the guide's programs are those that are expected, and each prints something", () => {
  const names = PROGRAMS.map(({ name }) => name);
  const expected = [
    "quick_start_1",
    "a_worker_that_blocks_1",
    "how_far_a_long_message_has_come_1",
    "streams_1",
    "bytes_where_they_lie_1",
    "what_changed_1",
    "many_ports_1",
    "the_latest_value_for_all_1",
    "a_drop_box_1",
    // The two programs of the original's own documentation.
    "coming_from_sab_message_port_1",
    "coming_from_sab_message_port_2",
    "ask_the_page_to_fetch_1",
    "make_fetch_synchronous_1",
    "coming_from_comlink_1",
    "coming_from_coincident_1",
    "coming_from_synckit_1",
    // One program over three transports.
    "one_program_any_transport_1",
    "over_a_unix_socket_1",
    "over_a_websocket_1",
  ];
  assertEquals(expected.filter((name) => !names.includes(name)), []);
  assertEquals(PROGRAMS.filter(({ output }) => output === ""), []);
  assertEquals(PROGRAMS.filter(needsPage).map(({ name }) => name), ["ask_the_user_1"]);
});

Deno.test("cbor works in Deno without the native packages of its library", async () => {
  const guide = await Deno.readTextFile(`${PACKAGE}/guide/values.md`);
  const line = /`("nodeModulesDir": "\w+")`/.exec(guide)?.[1];
  const project = `${folder}/without_native`;
  await copyLibrary("cbor-x", `${PACKAGE}/..`, project);
  const program = `
    import { cbor } from "${NAME}/cbor";
    import { Port } from "${NAME}";
    const here = Port.create({ codec: cbor });
    const there = Port.attach(here.memory, { codec: cbor });
    here.write(new Map([[1, 2]]));
    console.log(there.read());`;
  await Deno.writeTextFile(`${project}/main.ts`, program);
  // An empty cache, and no registry.
  const deno = ["env", `DENO_DIR=${folder}/empty`, Deno.execPath()];
  const command = [...deno, "run", "-A", "--cached-only", "--no-lock", "main.ts"];
  const options = { cwd: project, timeoutMs: TIMEOUT_MS, echo: false };
  for (const [setting, expected] of [[line, 0], ['"nodeModulesDir": "none"', 1]] as const) {
    const imports = JSON.stringify({ [NAME]: `jsr:${NAME}` });
    const config = `{ "links": ["../package"], "imports": ${imports}, ${setting} }`;
    await Deno.writeTextFile(`${project}/deno.json`, config);
    const { output, code } = await run(command, options);
    assertEquals(code, expected, output);
    if (code === 0) assertEquals(output, "Map(1) { 1 => 2 }\n");
  }
});

Deno.test("what the guide says of Millrace in its comparison, tests show", async () => {
  const text = await Deno.readTextFile(`${PACKAGE}/guide/compared.md`);
  const table = text.slice(text.indexOf("## Compared")).match(/(?:^\|.*\|\n)+/m)![0];
  const cells = table.trim().split("\n").slice(2).map((row) => row.split(" | ").at(-1)!);
  const links = cells.map((cell) => [...cell.matchAll(/\]\(([^)]+)\)/g)].map(([, path]) => path!));
  assertEquals(cells.filter((cell, row) => links[row]!.length === 0 && cell !== "no |"), []);
  const isTest = (path: string) => /_test\.ts$|^\.\.\/places\/\w+\/(main|worker)\.ts$/.test(path);
  assertEquals(links.flat().filter((path) => !isTest(path)), []);
  for (const path of links.flat()) await Deno.stat(`${PACKAGE}/guide/${path}`);
});

/** What plays each row of the table "Nothing arrives", and a word of it there. */
const SYMPTOMS: readonly (readonly [symptom: string, path: string, word: string])[] = [
  [
    "an error says that the page is not cross-origin isolated",
    "not_isolated/main.ts",
    "Embedder-Policy",
  ],
  [
    "a call throws `peer.failed` with the reason `peer.terminated`",
    "bare_worker/main.ts",
    '"peer.terminated"',
  ],
  ['a call throws `segment.endpoint`, "it is taken"', "nothing_arrives/main.ts", "it is taken"],
  ["`worker.postMessage(port)` throws", "nothing_arrives/main.ts", "worker.postMessage(port)"],
  ["a call throws `wait.forbidden`", "page_blocks/main.ts", '"wait.forbidden"'],
  ["the last posts of a worker are lost", "nothing_arrives/worker.ts", "port.close()"],
  [
    "a peer in another language gets an array in place of one message",
    "../guide/events.md",
    "// 3 [1,2]",
  ],
];

Deno.test("each symptom of the table where nothing arrives is played somewhere", async () => {
  const text = await Deno.readTextFile(`${PACKAGE}/README.md`);
  const table = text.slice(text.indexOf("## Nothing arrives")).match(/(?:^\|.*\|\n)+/m)![0];
  const rows = table.trim().split("\n").slice(2).map((row) => row.slice(2).split(" | ")[0]);
  assertEquals(rows, SYMPTOMS.map(([symptom]) => symptom));
  for (const [symptom, path, word] of SYMPTOMS) {
    const played = await Deno.readTextFile(`${import.meta.dirname}/${path}`);
    assertEquals([symptom, played.includes(word)], [symptom, true]);
  }
});

Deno.test("the main page of the guide has at most 250 lines", async () => {
  const lines = (await Deno.readTextFile(`${PACKAGE}/README.md`)).trimEnd().split("\n");
  assertEquals(lines.slice(250), []);
});

Deno.test("both files of the repository's first page compile and run", async () => {
  const text = await Deno.readTextFile(`${PACKAGE}/../README.md`);
  const [program] = programsOf(text);
  assertEquals(Object.keys(program!.files), ["main.ts", "worker.ts"]);
  const first = { ...program!, name: "first_page" };
  await writePrograms(`${folder}/project`, [first]);
  const options = { cwd: `${folder}/project`, timeoutMs: TIMEOUT_MS, echo: false };
  const { output, code } = await run([Deno.execPath(), "check", "first_page"], options);
  assertEquals(code, 0, output);
  const command = [Deno.execPath(), "run", "-A", "--no-check"];
  const outcome = await runProgram(`${folder}/project`, first, command);
  assertEquals(outcome, ["run: done\n", 0, false]);
});

Deno.test("the guide's programs compile", async () => {
  const paths = PROGRAMS.flatMap(({ name, files }) =>
    Object.keys(files).map((file) => `${name}/${file}`)
  );
  const options = { cwd: `${folder}/project`, timeoutMs: TIMEOUT_MS, echo: false };
  const { output, code } = await run([Deno.execPath(), "check", ...paths], options);
  assertEquals(code, 0, output);
});

Deno.test("the quick start compiles with what Deno takes by default", async () => {
  const program = PROGRAMS.find(({ name }) => name === "quick_start_1")!;
  await writePrograms(`${folder}/default`, [program]);
  const { compilerOptions: _, ...config } = JSON.parse(
    await Deno.readTextFile(`${folder}/project/deno.json`),
  );
  await Deno.writeTextFile(`${folder}/default/deno.json`, JSON.stringify(config));
  const options = { cwd: `${folder}/default`, timeoutMs: TIMEOUT_MS, echo: false };
  const command = [Deno.execPath(), "check", "quick_start_1"];
  const { output, code } = await run(command, options);
  assertEquals(code, 0, output);
});

for (const program of [...EVERYWHERE, ...HOST].filter((each) => !needsPage(each))) {
  const ignore = HOST.includes(program) && Deno.build.os !== "linux";
  Deno.test(
    `Deno runs the guide's ${program.name} with the published files`,
    { ignore },
    async () => {
      const command = [Deno.execPath(), "run", "-A", "--no-check"];
      const outcome = await runProgram(`${folder}/project`, program, command);
      assertEquals(outcome, [program.output, 0, false]);
    },
  );
}

/** The program, listening where nobody else does in place of at 8000. */
function onFreePort(program: Program): Program {
  const port = freePort();
  const files = Object.entries(program.files).map(([path, text]) => [
    path,
    text.replaceAll("8000", port),
  ]);
  return { ...program, files: Object.fromEntries(files) };
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
