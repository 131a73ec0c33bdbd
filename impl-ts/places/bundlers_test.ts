/**
 * Builds the quick start with bundlers, by what their page of the guide says, from the package as
 * npm installs it, and runs what they made in Chromium.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { transform } from "esbuild";
import { type BrowserContext, chromium } from "playwright-core";
import { makeUntyped, writePackage } from "../../tools/build_package.ts";
import { stopBundler } from "../../tools/build_scripts.ts";
import { CHROMIUM_ARGUMENTS, findChromium, ISOLATION } from "../../tools/chromium.ts";
import { run } from "../../tools/run.ts";
import { requiresAll } from "../../tools/test_counts.ts";
import { programsOf } from "./guide.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/../..`);
const PAGE = await Deno.readTextFile(`${ROOT}/impl-ts/guide/bundlers.md`);
const TIMEOUT_MS = 120_000;
const program = await findChromium();
/** The others take longer, and most of that is their own start. */
const isAll = Deno.env.get("MILLRACE_TEST_ALL") === "1";

/** A folder with a project for each bundler, and the package beside them. */
let shop = "";
let quickStart: Record<string, string> = {};
let context: BrowserContext | undefined;

Deno.test.beforeAll(async () => {
  if (program === undefined) return;
  shop = await Deno.realPath(await Deno.makeTempDir({ prefix: "millrace-bundlers-" }));
  const files = await makeUntyped(ROOT);
  await writePackage(`${shop}/node_modules/millrace`, files);
  const guide = files.find(({ path }) => path === "README.md")!.text;
  quickStart = programsOf(guide).find(({ name }) => name === "quick_start_1")!.files;
  const options = { executablePath: program, args: [...CHROMIUM_ARGUMENTS] };
  context = await chromium.launchPersistentContext(`${shop}/profile`, options);
});

Deno.test.afterAll(async () => {
  await stopBundler();
  await context?.close();
  if (shop !== "") await Deno.remove(shop, { recursive: true });
});

addTest("esbuild", { "main.ts": toBuilt, "worker.ts": same });
if (isAll) {
  addTest("vite", { "main.ts": same, "worker.ts": same });
  addTest("webpack", { "main.js": script, "worker.js": script });
  addTest("rollup", { "main.js": script, "worker.js": script });
}

/** How a project has a file of the quick start. */
type Form = (text: string) => string | Promise<string>;

function same(text: string): string {
  return text;
}

/** With the name that the worker has when it is built. */
function toBuilt(text: string): string {
  return text.replace('"./worker.ts"', '"./worker.js"');
}

/** The same in JavaScript. */
async function script(text: string): Promise<string> {
  return (await transform(toBuilt(text), { loader: "ts", target: "esnext" })).code;
}

function addTest(bundler: string, forms: Record<string, Form>): void {
  Deno.test({
    name: `${bundler} builds the quick start for Chromium`,
    ignore: program === undefined && !requiresAll(),
    async fn() {
      assert(context !== undefined, "Cannot find Chromium: apt-get install chromium");
      const folder = `${shop}/${bundler}`;
      await Deno.mkdir(folder);
      for (const [file, form] of Object.entries(forms)) {
        const text = quickStart[file.replace(/js$/, "ts")]!;
        await Deno.writeTextFile(`${folder}/${file}`, await form(text));
      }
      await writeOptions(folder, bundler);
      await build(folder, bundler);
      assertEquals(await firstWord(`${folder}/dist`, bundler === "vite"), "42");
    },
  });
}

/** The bundler's own file, as the guide prints it, and the page from which Vite begins. */
async function writeOptions(folder: string, bundler: string): Promise<void> {
  const block = new RegExp(`^\`\`\`js\\n// ${bundler}\\.config\\.js\\n([^]*?)^\`\`\`$`, "m");
  const options = block.exec(PAGE)?.[1];
  if (options !== undefined) await Deno.writeTextFile(`${folder}/${bundler}.config.js`, options);
  await Deno.writeTextFile(`${folder}/package.json`, '{ "type": "module" }');
  const page = '<!doctype html><script type="module" src="./main.ts"></script>';
  await Deno.writeTextFile(`${folder}/index.html`, page);
}

async function build(folder: string, bundler: string): Promise<void> {
  const words = new RegExp(`^${bundler} (.*)$`, "m").exec(PAGE)?.[1]?.split(" ") ?? [];
  const fixture = `${import.meta.dirname}/bundlers_fixture.ts`;
  const options = ["-A", "--no-check", "--config", `${ROOT}/deno.json`];
  const command = [Deno.execPath(), "run", ...options, fixture, bundler, ...words];
  const { code, output } = await run(command, { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false });
  assertEquals(code, 0, output);
}

/** What the page in a folder logs first, or how it fails; one for `main.js` where there is none. */
async function firstWord(folder: string, hasPage: boolean): Promise<string> {
  const own = '<!doctype html><script type="module" src="./main.js"></script>';
  if (!hasPage) await Deno.writeTextFile(`${folder}/index.html`, own);
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async (ask) => {
      const path = new URL(ask.url).pathname.replace(/\/$/, "/index.html");
      const text = await Deno.readTextFile(folder + path).catch(() => undefined);
      const type = path.endsWith(".html") ? "text/html" : "text/javascript";
      const headers = { ...ISOLATION, "content-type": type };
      return new Response(text ?? "nothing is here", {
        headers,
        status: text === undefined ? 404 : 200,
      });
    },
  );
  const page = await context!.newPage();
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const spoken = new Promise<string>((done) => {
      timer = setTimeout(done, TIMEOUT_MS, "nothing");
      page.on("pageerror", (error) => done(String(error)));
      page.on("console", (message) => {
        if (!message.location().url.endsWith("/favicon.ico")) done(message.text());
      });
    });
    await page.goto(`http://127.0.0.1:${server.addr.port}/`);
    return await spoken;
  } finally {
    clearTimeout(timer);
    await page.close();
  }
}
