// The modules in Chromium: a page, which must not block, and a worker that blocks.

import { assert, assertEquals } from "@std/assert";
import { stop, transform } from "esbuild";
import { chromium } from "playwright-core";
import { CHROMIUM_ARGUMENTS, findChromium, ISOLATION } from "../tools/chromium.ts";
import { requiresAll } from "../tools/test_counts.ts";
import { buildWasm } from "../tools/wasm_worker.ts";

const ROOT = new URL("../", import.meta.url);
const TIMEOUT_MS = 60_000;

/** What the page does. Returns what went as it should not. */
const PAGE = `async () => {
  const { loadMillrace, loadMailboxes } = await import("/impl-zig/wasm.ts");
  const millrace = await loadMillrace(await fetch("/zig-out/bin/millrace.wasm"));
  const { module, memory } = millrace;
  const mailboxes = await loadMailboxes(new URL("/zig-out/bin/millrace_mailbox.wasm", origin), {
    memory,
  });
  const port = millrace.createPort({ capacity: 4096 });
  let code = "";
  try { port.read({ timeout: 50 }); } catch (error) { code = error.code; }
  if (code !== "wait.forbidden") return "a page that reads and waits gets: " + code;
  const worker = new Worker("/impl-zig/wasm_worker_fixture.ts", { type: "module" });
  const verdict = new Promise((done) => worker.onmessage = ({ data }) => done(data));
  worker.postMessage({ module, memory, segment: port.segment, spinUs: 0, timeout: 20000 });
  for (let round = 0; round < 50; round++) {
    if (!port.tryWrite(Uint8Array.of(round))) return "no room";
    let message;
    for (const end = Date.now() + 20000; !(message = port.read({ timeout: 0 }));) {
      if (Date.now() > end) return "no answer to " + round;
      await new Promise((done) => setTimeout(done, 1));
    }
    if (message.payload[0] !== round) return "another answer to " + round;
  }
  port.end();
  const last = await verdict;
  if (last !== "ended") return "the worker says: " + last;
  const section = { address: mailboxes.allocate(64), size: 64 };
  const [writer, reader] = [mailboxes.openWriter(section), mailboxes.openReader(section)];
  code = "";
  try { reader.read({ timeout: 50 }); } catch (error) { code = error.code ?? error.message; }
  if (code !== "wait.forbidden") return "a page that reads a mailbox and waits gets: " + code;
  if (!writer.write([1], { timeout: 0 })) return "the mailbox is not free";
  return JSON.stringify(reader.read({ timeout: 0 }));
}`;

const program = await findChromium();

/** Sends files of the repository, TypeScript as JavaScript, with the headers of isolation. */
async function answer({ url }: Request): Promise<Response> {
  const { pathname } = new URL(url);
  const send = (body: BodyInit, type: string) =>
    new Response(body, { headers: { ...ISOLATION, "content-type": type } });
  if (pathname === "/") return send("<!doctype html>", "text/html");
  const bytes = await Deno.readFile(new URL(`.${pathname}`, ROOT)).catch(() => undefined);
  if (bytes === undefined) {
    return new Response("nothing is here", { status: 404, headers: ISOLATION });
  }
  if (!pathname.endsWith(".ts")) return send(bytes, "application/wasm");
  const { code } = await transform(new TextDecoder().decode(bytes), { loader: "ts" });
  return send(code, "text/javascript");
}

Deno.test({
  name: "Chromium: a page tries and never blocks, its worker blocks, a mailbox carries",
  ignore: program === undefined && !requiresAll(),
  // The bundler's process is ended below, after what the runner looks at.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    assert(program !== undefined, "Cannot find Chromium: apt-get install chromium");
    await buildWasm("wasm", "millrace");
    const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, answer);
    const profile = await Deno.makeTempDir({ prefix: "millrace-chromium-" });
    const options = { executablePath: program, args: [...CHROMIUM_ARGUMENTS] };
    const context = await chromium.launchPersistentContext(profile, options);
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(TIMEOUT_MS);
      await page.goto(`http://127.0.0.1:${server.addr.port}/`);
      assertEquals(await page.evaluate(`(${PAGE})()`), "[1]");
    } finally {
      await context.close();
      await server.shutdown();
      await stop();
      await Deno.remove(profile, { recursive: true });
    }
  },
});
