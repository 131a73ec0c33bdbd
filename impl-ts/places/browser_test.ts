/**
 * Plays the scenarios in Chromium, with pages as a user's server would send them.
 *
 * Without Chromium the tests are ignored, unless CI=true or MILLRACE_REQUIRE_ALL=1.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { makePackage } from "../../tools/build_package.ts";
import { stopBundler } from "../../tools/build_scripts.ts";
import { CHROMIUM_ARGUMENTS, findChromium } from "../../tools/chromium.ts";
import { requiresAll } from "../../tools/test_counts.ts";
import { type Pages, servePages } from "./pages.ts";
import { type Form, scenariosFor } from "./scenarios.ts";

const HINT = "install it (Debian: apt-get install chromium)";
const FORMS: Form[] = ["module", "script"];
const TIMEOUT_MS = 60_000;

const program = await findChromium();

let pages: Pages;
let profile = "";
let context: BrowserContext;

Deno.test.beforeAll(async () => {
  if (program === undefined) return;
  pages = servePages(await makePackage(await Deno.realPath(`${import.meta.dirname}/../..`)));
  profile = await Deno.makeTempDir({ prefix: "millrace-chromium-" });
  context = await chromium.launchPersistentContext(profile, {
    executablePath: program,
    args: [...CHROMIUM_ARGUMENTS],
  });
});

Deno.test.afterAll(async () => {
  if (program === undefined) return;
  await context.close();
  await pages.close();
  await stopBundler();
  await Deno.remove(profile, { recursive: true });
});

for (const name of scenariosFor("browser")) {
  for (const form of FORMS) {
    Deno.test({
      name: `Chromium plays ${name}, as a ${form}`,
      ignore: program === undefined && !requiresAll(),
      async fn() {
        assert(program !== undefined, `Cannot find Chromium: ${HINT}`);
        assertEquals(await play(pages.urlOf(name, form)), "played");
      },
    });
  }
}

Deno.test("pages come with the headers of isolation, except for one", async () => {
  const server = servePages([{ path: "millrace.js", text: "export {};" }]);
  const look = async (url: URL | string) => {
    const { status, headers, body } = await fetch(url);
    await body?.cancel();
    const isolation = ["cross-origin-opener-policy", "cross-origin-embedder-policy"];
    return [status, headers.get("content-type"), ...isolation.map((name) => headers.get(name))];
  };
  const echo = server.urlOf("echo", "module");
  const isolated = ["same-origin", "require-corp"];
  assertEquals(await look(echo), [200, "text/html", ...isolated]);
  assertEquals(await look(new URL("/npm/millrace.js", echo)), [
    200,
    "text/javascript",
    ...isolated,
  ]);
  assertEquals(await look(new URL("/npm/other.js", echo)), [404, "text/plain", ...isolated]);
  assertEquals(await look(server.urlOf("not_isolated", "script")), [200, "text/html", null, null]);
  await server.close();
});

/** Opens a page and returns what it says at its end, or what stopped it. */
async function play(url: string): Promise<string> {
  const page = await context.newPage();
  try {
    await page.exposeFunction("heapUsed", await watchWorklets(page));
    page.on("console", (said) => said.type() === "log" && console.log(`  ${said.text()}`));
    page.setDefaultTimeout(TIMEOUT_MS);
    const thrown = new Promise<string>((resolve) =>
      page.on("pageerror", (error) => resolve(`The page failed: ${error.stack}`))
    );
    await page.goto(url);
    const outcome = await Promise.race([thrown, page.waitForFunction("globalThis.outcome")]);
    return typeof outcome === "string" ? outcome : String(await outcome.jsonValue());
  } finally {
    await page.close();
  }
}

/**
 * Returns a function that tells how many bytes are on the heap of the audio worklets of a page,
 * which no function of their own does: they have one heap, and are targets of the protocol.
 */
async function watchWorklets(page: Page): Promise<() => Promise<number>> {
  const session = await context.newCDPSession(page);
  let sessionId = "";
  let count = 0;
  const waiting = new Map<number, (used: number) => void>();
  session.on("Target.attachedToTarget", (event) => {
    if (event.targetInfo.type === "worklet") sessionId = event.sessionId;
  });
  session.on("Target.receivedMessageFromTarget", ({ message }) => {
    const { id, result } = JSON.parse(message);
    waiting.get(id)?.(result?.usedSize);
  });
  // Playwright knows no sessions of such targets: what is sent to them is wrapped by hand.
  await session.send("Target.setAutoAttach", {
    autoAttach: true,
    waitForDebuggerOnStart: false,
    flatten: false,
  });
  return async () => {
    const id = ++count;
    const used = new Promise<number>((resolve) => waiting.set(id, resolve));
    const message = JSON.stringify({ id, method: "Runtime.getHeapUsage" });
    await session.send("Target.sendMessageToTarget", { sessionId, message });
    return await used;
  };
}
