/**
 * The driver of Chromium: passes lines of JSON on to a page, and its answers back.
 *
 * The program of the browser, the folder of the bundles and that of the WebAssembly come from the
 * runner, by the environment.
 *
 * @module
 */
import { chromium } from "playwright-core";
import { CHROMIUM_ARGUMENTS, ISOLATION } from "../../tools/chromium.ts";
import { type Answer, type Hello, readLines, type Request, say } from "../contract.ts";

const PAGE = '<!doctype html><meta charset="utf-8"><script type="module" src="page_driver.mjs">' +
  "</script>";
const TYPES: Record<string, string> = { mjs: "text/javascript", js: "text/javascript" };
const TIMEOUT_MS = 120_000;

const bundles = Deno.env.get("MILLRACE_BENCH_BUNDLES") ?? "";
const wasm = Deno.env.get("MILLRACE_BENCH_WASM") ?? "";
const ownPackage = Deno.env.get("MILLRACE_BENCH_PACKAGE") ?? "";
const sabFolder = Deno.env.get("MILLRACE_SAB_MESSAGE_PORT");
const sabEntry = Deno.env.get("MILLRACE_SAB_MESSAGE_PORT_ENTRY");

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, serve);

async function serve({ url }: globalThis.Request): Promise<Response> {
  const { pathname } = new URL(url);
  if (pathname === "/") return answer(PAGE, "text/html");
  const inSab = pathname.startsWith("/sab-message-port/") && sabFolder !== undefined;
  const path = inSab
    ? `${sabFolder}${pathname.slice("/sab-message-port".length)}`
    : pathname.startsWith("/package/")
    ? `${ownPackage}${pathname.slice("/package".length)}`
    : pathname.endsWith(".wasm")
    ? `${wasm}${pathname}`
    : `${bundles}${pathname}`;
  try {
    const type = TYPES[pathname.split(".").pop() ?? ""] ?? "application/octet-stream";
    return answer(await Deno.readFile(path), type);
  } catch {
    return new Response("nothing is here", { status: 404 });
  }
}

function answer(body: string | Uint8Array<ArrayBuffer>, type: string): Response {
  return new Response(body, { headers: { ...ISOLATION, "content-type": type } });
}

const profile = await Deno.makeTempDir({ prefix: "millrace-bench-chromium-" });
const context = await chromium.launchPersistentContext(profile, {
  executablePath: Deno.env.get("MILLRACE_CHROMIUM") ?? "chromium",
  args: [...CHROMIUM_ARGUMENTS],
});
try {
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  const query = sabEntry === undefined ? "" : `?sab=${encodeURIComponent(sabEntry)}`;
  await page.goto(`http://127.0.0.1:${server.addr.port}/${query}`);
  await page.waitForFunction("globalThis.driver");
  const { version, peers } = await page.evaluate("globalThis.driver") as Hello["driver"];
  say({ driver: { name: "chromium", version, place: "chromium", peers } } satisfies Hello);
  for await (const line of readLines(Deno.stdin.readable)) {
    const request = JSON.parse(line) as Request;
    say(await page.evaluate(`globalThis.play(${JSON.stringify(request)})`) as Answer);
  }
} finally {
  await context.close();
  await Deno.remove(profile, { recursive: true });
}
Deno.exit(0);
