// The script `millrace`, with tools that only say how they were called.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { dirname } from "node:path";

const ROOT = `${import.meta.dirname}/..`;
const SETS = ["base", "hosts"];
/** Says what it was asked for and where its caches are; as a package manager, by both streams. */
const DENO = `#!/bin/sh
echo "deno $* \${DENO_DIR#$PWD} \${ZIG_GLOBAL_CACHE_DIR#$PWD} \${MILLRACE_CACHE#$PWD}"
[ "$1" = run ] && exit
echo "Warning: lines of a package manager" >&2
exit "\${INSTALL_ENDS:-0}"
`;
const PYTHON = `#!/bin/sh
shift; echo "install $*"
`;

interface Called {
  code: number;
  lines: string[];
}

/** Calls the script in a checkout with these sets of tools installed. */
async function call(
  args: string[],
  installed: string[] = SETS,
  env: Record<string, string> = {},
): Promise<Called> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-script-" });
  const write = async (path: string, text: string) => {
    await Deno.mkdir(dirname(`${folder}/${path}`), { recursive: true });
    await Deno.writeTextFile(`${folder}/${path}`, text, { mode: 0o755 });
  };
  try {
    await write("millrace", await Deno.readTextFile(`${ROOT}/millrace`));
    await write("deno.lock", "packages\n");
    await write("deno.json", await Deno.readTextFile(`${ROOT}/deno.json`));
    await write("programs/python3", PYTHON);
    await write(".tools/bin/deno", DENO);
    await write(".tools/base/bin/python", PYTHON);
    for (const set of SETS) {
      await write(`tools/toolchain/requirements_${set}.txt`, `${set}\n`);
      const pins = installed.includes(set) ? set : "of another version";
      await write(`.tools/${set}/stamp`, `${pins}\n`);
    }
    const path = `${folder}/programs:${Deno.env.get("PATH")}`;
    const { code, stdout, stderr } = await new Deno.Command(`${folder}/millrace`, {
      args,
      cwd: folder,
      clearEnv: true,
      env: { PATH: path, HOME: `${folder}/user`, ...env },
    }).output();
    const text = [stderr, stdout].map((part) => new TextDecoder().decode(part)).join("");
    return { code, lines: text.trimEnd().replaceAll(folder, "").split("\n") };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const OWN = ["/deno", "/zig", ""].map((name) => `/user/.cache/millrace${name}`).join(" ");
const DEMO = "deno run -A bench/demo/main.ts";
const CHECK = "deno run -A tools/check.ts";

Deno.test("millrace: runs the task with caches that are the user's, or his choice", async () => {
  assertEquals(await call(["demo"]), { code: 0, lines: [`${DEMO} ${OWN}`] });
  const other = await call(["demo"], SETS, { XDG_CACHE_HOME: "/dev/shm/millrace-script-test" });
  const place = "/dev/shm/millrace-script-test";
  await Deno.remove(place, { recursive: true });
  const caches = ["/deno", "/zig", ""].map((name) => `${place}/millrace${name}`);
  assertEquals(other.lines, [`${DEMO} ${caches.join(" ")}`]);
  const told = await call(["demo"], SETS, { DENO_DIR: "/d", ZIG_GLOBAL_CACHE_DIR: "/z" });
  assertEquals(told.lines, [`${DEMO} /d /z /user/.cache/millrace`]);
});

Deno.test("millrace: without a place for caches, they stay in the checkout", async () => {
  for (const HOME of ["", "/dev/null/user"]) {
    const { lines } = await call(["demo"], SETS, { HOME });
    assertEquals(lines, [`${DEMO} /.tools/cache/deno /.tools/cache/zig /.tools/cache`]);
  }
});

Deno.test("millrace: a task waits only for the tools that it needs", async () => {
  for (const task of ["demo", "inspect", "check", "build", "docs", "generate"]) {
    const { lines } = await call([task], ["base"]);
    assertEquals(lines.filter((line) => line.startsWith("install")), [], task);
  }
  assert((await call(["test"], ["base"])).lines.includes("install base hosts"));
  assertEquals((await call(["demo"], [])).lines[0], "install base");
});

const FETCHING = "millrace: fetching the npm packages of the tools and tests";

Deno.test("millrace: fetches packages at once where a task needs any, quietly", async () => {
  assertEquals((await call(["check"])).lines, [FETCHING, `${CHECK} ${OWN}`]);
  const words = ["--no-open", "--page"];
  const { lines } = await call(["demo", ...words]);
  assertEquals(lines, [FETCHING, `${DEMO} ${words.join(" ")} ${OWN}`]);
});

Deno.test("millrace: what fetching packages says is shown if it fails", async () => {
  const { code, lines } = await call(["check"], SETS, { INSTALL_ENDS: "1" });
  assertEquals(code, 0);
  assertEquals(lines, [
    FETCHING,
    `deno install --quiet --frozen ${OWN}`,
    "Warning: lines of a package manager",
    `${CHECK} ${OWN}`,
  ]);
});

Deno.test("millrace: what a task says of itself needs no hosts", async () => {
  const { lines } = await call(["test", "--help"], ["base"]);
  assertEquals(lines.at(-1), `deno run -A tools/test.ts --help ${OWN}`);
});

Deno.test("millrace: a task that there is not is code 2, with the usage", async () => {
  const { code, lines } = await call(["no-such-task"]);
  assertEquals(code, 2);
  assertStringIncludes(lines[0]!, "Usage: ./millrace <task>");
});

Deno.test("millrace: a word with a space stays one", async () => {
  assertEquals((await call(["demo", "a  b"])).lines, [`${DEMO} a  b ${OWN}`]);
});

Deno.test("millrace: tasks for which no packages are fetched import none", async () => {
  const script = await Deno.readTextFile(`${ROOT}/millrace`);
  const names = /^ +([\w |]+)\) packages=false/m.exec(script)![1]!.split(" | ");
  assertEquals(names, ["demo", "inspect", "top"]);
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}/deno.json`));
  for (const name of names) {
    const args = ["info", "--json", tasks[name].split(" ").at(-1)];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args, cwd: ROOT }).output();
    const { modules } = JSON.parse(new TextDecoder().decode(stdout));
    assert(modules.length > 1);
    const specifiers: string[] = modules.map(({ specifier }: { specifier: string }) => specifier);
    assertEquals(specifiers.filter((each) => !/^(?:file|node):/.test(each)), [], name);
  }
});
