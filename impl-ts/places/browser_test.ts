/**
 * Plays the scenarios in Chromium and in Firefox, with pages as a user's server would send them.
 *
 * Without a browser its tests are ignored, unless CI=true or MILLRACE_REQUIRE_ALL=1.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import puppeteer, { type Browser, type LaunchOptions, type Page } from "puppeteer-core";
import { makeUntyped } from "../../tools/build_package.ts";
import { stopBundler } from "../../tools/build_scripts.ts";
import { CHROMIUM_ARGUMENTS, findChromium } from "../../tools/chromium.ts";
import { findFirefox } from "../../tools/firefox.ts";
import { requiresAll } from "../../tools/test_counts.ts";
import { serveExamples } from "../examples/serve.ts";
import { EXAMPLES } from "./examples.ts";
import { PAGES, type Program, programsOf } from "./guide.ts";
import { answerQuestions, bundleProgram, type Service, startService } from "./guide_service.ts";
import { type Pages, servePages } from "./pages.ts";
import { formsOf, scenariosFor } from "./scenarios.ts";

const TIMEOUT_MS = 60_000;
const isAll = Deno.env.get("MILLRACE_TEST_ALL") === "1";
const ROOT = await Deno.realPath(`${import.meta.dirname}/../..`);
/** Programs of the guide that a page can run as they are: both its threads have an event loop. */
const GUIDE = ["quick_start_1", "events_1", "ask_the_page_to_fetch_1"];

/** A browser that the machine may have. */
interface Kind {
  place: "chromium" | "firefox";
  label: string;
  /** Its Debian package. */
  debian: string;
  executablePath: string | undefined;
  launch: LaunchOptions;
}

const KINDS: Kind[] = [
  {
    place: "chromium",
    label: "Chromium",
    debian: "chromium",
    executablePath: await findChromium(),
    launch: { browser: "chrome", args: [...CHROMIUM_ARGUMENTS] },
  },
  {
    place: "firefox",
    label: "Firefox",
    debian: "firefox-esr",
    executablePath: await findFirefox(),
    launch: {
      browser: "firefox",
      // Without a sound card its contexts never run, except this one, which it tests itself with.
      extraPrefsFirefox: { "media.cubeb.force_mock_context": true },
    },
  },
];

/** In a page: what its scenario says at its end. */
declare const outcome: Promise<string>;

let pages: Pages;
let examples: Deno.HttpServer<Deno.NetAddr>;
let service: Service;
let programs: Program[];
const opened = new Map<Kind, Page>();

Deno.test.beforeAll(async () => {
  if (KINDS.every(({ executablePath }) => executablePath === undefined)) return;
  const files = await makeUntyped(ROOT);
  service = await startService("over_a_websocket", "not_isolated_client");
  const guide = files.filter(({ path }) => PAGES.includes(path));
  const client = await bundleProgram(service.client);
  programs = [...guide.flatMap(({ text }) => programsOf(text)), client];
  pages = servePages(files, programs);
  examples = serveExamples();
  await Promise.all(KINDS.map(async (kind) => {
    const { executablePath, launch } = kind;
    if (executablePath === undefined) return;
    const options = { ...launch, executablePath, protocolTimeout: TIMEOUT_MS };
    const browser = await puppeteer.launch(options);
    opened.set(kind, await openPage(browser, kind));
  }));
});

Deno.test.afterAll(async () => {
  if (opened.size === 0) return;
  for (const page of opened.values()) await page.browser().close();
  await pages.close();
  await examples.shutdown();
  await service[Symbol.asyncDispose]();
  await stopBundler();
});

for (const kind of KINDS) {
  for (const name of scenariosFor(kind.place)) {
    for (const form of formsOf(name)) {
      addTest(kind, `plays ${name}, as a ${form}`, async (page) => {
        assertEquals(await play(page, pages.urlOf(name, form)), "played");
      });
    }
  }
  for (const name of GUIDE) {
    addTest(kind, `runs the guide's ${name}`, async (page) => {
      const program = programs.find((each) => each.name === name)!;
      assertEquals(await play(page, pages.guideUrlOf(program)), program.output);
    });
  }
  addTest(kind, "has a worker that asks the user, and blocks until the answer", async (page) => {
    const program = programs.find(({ name }) => name === "ask_the_user_1")!;
    let count = 0;
    const answer = async () => void (count = await answerQuestions(page, 42));
    assertEquals(await play(page, pages.guideUrlOf(program), answer), program.output);
    assertEquals(count, 7);
  });
  addTest(kind, "runs the client of any transport in a page without isolation", async (page) => {
    const { client } = service;
    assertEquals(await play(page, pages.guideUrlOf(client)), client.output);
    assertEquals(await page.evaluate("[crossOriginIsolated, typeof SharedArrayBuffer]"), [
      false,
      "undefined",
    ]);
  });
  for (const { name, test, isLong = false } of EXAMPLES) {
    if (isLong && !isAll && kind.place !== "chromium") continue;
    addTest(kind, name, (page) => test(page, `http://127.0.0.1:${examples.addr.port}`));
  }
}

function addTest(kind: Kind, name: string, test: (page: Page) => Promise<void>): void {
  const { label, debian, executablePath } = kind;
  Deno.test({
    name: `${label} ${name}`,
    ignore: executablePath === undefined && !requiresAll(),
    async fn() {
      assert(executablePath !== undefined, `Cannot find ${label}: apt-get install ${debian}`);
      await test(opened.get(kind)!);
    },
  });
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

/** The page in which a browser plays: a new one for each scenario takes it three times as long. */
async function openPage(browser: Browser, { place }: Kind): Promise<Page> {
  const page = await browser.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  page.on("console", (said) => said.type() === "log" && console.log(`  ${said.text()}`));
  if (place === "chromium") await page.exposeFunction("heapUsed", await watchWorklets(page));
  return page;
}

/** Loads a page and returns what it says at its end, or what stopped it; `use` is its user. */
async function play(
  page: Page,
  url: string,
  use: () => Promise<void> = () => Promise.resolve(),
): Promise<string> {
  const thrown = Promise.withResolvers<string>();
  const stop = (error: unknown) => thrown.resolve(`The page failed: ${(error as Error).stack}`);
  page.on("pageerror", stop);
  try {
    await page.goto(url);
    const ended = Promise.all([page.evaluate(async () => await outcome), use()]);
    return await Promise.race([thrown.promise, ended.then(([said]) => said)]);
  } finally {
    page.off("pageerror", stop);
  }
}

/**
 * Returns a function that tells how many bytes are on the heap of the audio worklets of a page,
 * which no function of their own does: they have one heap, and are targets of the protocol.
 */
async function watchWorklets(page: Page): Promise<() => Promise<number>> {
  const session = await page.createCDPSession();
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
  // The driver knows no sessions of such targets: what is sent to them is wrapped by hand.
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
