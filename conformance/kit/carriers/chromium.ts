/**
 * One page of Chromium, isolated as pages with shared memory must be: testees in its workers and on
 * the page itself, and the kit's outpost beside them.
 *
 * @module
 */

import type { BrowserContext, Page } from "playwright-core";
import { stopBundler } from "../../../tools/build_scripts.ts";
import { CHROMIUM_ARGUMENTS, findChromium, ISOLATION } from "../../../tools/chromium.ts";
import { requiresAll } from "../../../tools/test_counts.ts";
import type { Carrier } from "../arena.ts";
import { Trouble } from "../verdict.ts";
import { type Actor, DEATH, type Order, type Report } from "./outpost.ts";
import { type Host, OutpostArena } from "./outpost_arena.ts";
import { bundle } from "./outpost_bundle.ts";

/** What a browser and its page may take to be there, on a machine that does other things, too. */
const BEGIN_MS = 120_000;

const program = await findChromium();

const PAGE =
  '<!doctype html><meta charset="utf-8"><script type="module" src="outpost.mjs"></script>';

/** Workers of a page, and the page. */
export const chromium: Carrier = {
  name: "chromium",
  refuses({ worker, ways }) {
    if (worker === undefined && ways?.["page"] === undefined) {
      return "runs neither in a worker nor on a page";
    }
    // Where nothing may be skipped, its cases are run, and say what is missing.
    return program === undefined && !requiresAll() ? "finds no Chromium" : undefined;
  },
  open: (programs) => Promise.resolve(new OutpostArena(host, programs)),
  death: DEATH,
  end: () => host.close(),
};

/** A browser with an empty profile, and the server of its page. */
interface Running {
  context: BrowserContext;
  profile: string;
}

class ChromiumHost implements Host {
  readonly prelude = "";
  readonly actors = new Map<string, Promise<Actor>>();
  readonly #files = new Map<string, Blob>([["/", new Blob([PAGE], { type: "text/html" })]]);
  #server: Deno.HttpServer<Deno.NetAddr> | undefined;
  #running: Running | undefined;
  #page: Page | undefined;
  /** Settles with what has ended the page. */
  #broken = Promise.withResolvers<never>();

  put(name: string, content: string | Uint8Array<ArrayBuffer>): Promise<string> {
    const type = typeof content === "string" ? "text/javascript" : "application/octet-stream";
    this.#files.set(`/${name}`, new Blob([content], { type }));
    return Promise.resolve(`${this.#origin()}/${name}`);
  }

  async begin(): Promise<void> {
    await this.#within(BEGIN_MS, "no page", () => this.#show());
  }

  async play(order: Order, timeoutMs: number): Promise<Report> {
    return await this.#within(timeoutMs, "no verdict", async () => {
      const page = await this.#show();
      return await page.evaluate(`outpost.play(${JSON.stringify(order)})`) as Report;
    });
  }

  /** Does something with the page. Throws `Trouble` where that takes too long, or breaks down. */
  async #within<T>(timeoutMs: number, what: string, call: () => Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const fact = `${what} within ${(timeoutMs / 1000).toFixed(0)} s`;
      timer = setTimeout(() => reject(new Trouble("timeout", fact)), timeoutMs);
    });
    try {
      if (this.#page === undefined) {
        this.#broken = Promise.withResolvers<never>();
        this.#broken.promise.catch(() => {}); // it may come while nobody waits
      }
      return await Promise.race([call(), this.#broken.promise, late]);
    } catch (error) {
      if (error instanceof Trouble) throw error;
      await this.#stop();
      throw new Trouble("error", `Chromium fails: ${(error as Error).message}`);
    } finally {
      clearTimeout(timer);
    }
  }

  async #show(): Promise<Page> {
    return this.#page ??= await this.#open();
  }

  /** Ends the browser too: whatever broke down there must not come back. */
  async end(): Promise<void> {
    await this.#stop();
  }

  async close(): Promise<void> {
    this.actors.clear();
    await this.#stop();
    await this.#server?.shutdown();
    this.#server = undefined;
    await stopBundler();
  }

  async #stop(): Promise<void> {
    const running = this.#running;
    this.#running = this.#page = undefined;
    if (running === undefined) return;
    await running.context.close().catch(() => {}); // it may be gone
    await Deno.remove(running.profile, { recursive: true });
  }

  async #open(): Promise<Page> {
    if (program === undefined) throw new Trouble("error", "there is no Chromium on this machine");
    if (!this.#files.has("/outpost.mjs")) {
      await this.put("outpost.mjs", await bundle('import "./chromium_outpost.ts";'));
    }
    const running = this.#running ??= await this.#start(program);
    const { reject } = this.#broken;
    const fail = (fact: string) => reject(new Trouble("error", fact));
    running.context.once("close", () => fail("the browser has ended"));
    const page = await running.context.newPage();
    page.on("pageerror", (error) => fail(`the page failed: ${error.stack ?? error.message}`));
    page.on("crash", () => fail("the page crashed"));
    await page.goto(`${this.#origin()}/`);
    return page;
  }

  async #start(executablePath: string): Promise<Running> {
    const profile = await Deno.makeTempDir({ prefix: "millrace-kit-chromium-" });
    const options = { executablePath, args: [...CHROMIUM_ARGUMENTS] };
    // Loaded here, because it takes as long as all else of a kit that needs no browser.
    const { chromium: browser } = await import("playwright-core");
    return { profile, context: await browser.launchPersistentContext(profile, options) };
  }

  #origin(): string {
    this.#server ??= Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      ({ url }) => this.#answer(new URL(url).pathname),
    );
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  #answer(path: string): Response {
    const file = this.#files.get(path);
    if (file === undefined) return new Response("nothing is here", { status: 404 });
    return new Response(file, { headers: { ...ISOLATION, "content-type": file.type } });
  }
}

const host = new ChromiumHost();
