/**
 * Serves the example, as any server can that sends the two headers; or plays it in the machine's
 * Chromium without a window, and prints what came of it.
 *
 * @module
 */
import puppeteer, { type Page } from "puppeteer-core";
import { stopBundler } from "../../../tools/build_scripts.ts";
import { CHROMIUM_ARGUMENTS, findChromium } from "../../../tools/chromium.ts";
import { serveExamples } from "../serve.ts";

const USAGE = "Usage: deno run -A impl-ts/examples/synth/main.ts [--port N | --headless SECONDS]";

/** What was played: blocks of 128 samples, and how often none was ready. */
interface Counts {
  blocks: number;
  underruns: number;
  /** By the clock of the sound. */
  seconds: number;
}

/** Opens it in a page, and presses the button. */
export async function start(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.click("#play");
}

/** Plays it for so long in a page. */
async function play(page: Page, url: string, seconds: number): Promise<Counts> {
  const failed = new Promise<never>((_, reject) => page.once("pageerror", reject));
  await start(page, url);
  const wait = new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  await Promise.race([wait, failed]);
  return await page.evaluate("counts()") as Counts;
}

async function main([option, value]: string[]): Promise<number> {
  const number = Number(value);
  if (option !== undefined && (!/^--(port|headless)$/.test(option) || !(number > 0))) {
    console.error(USAGE);
    return 2;
  }
  const server = serveExamples(option === "--port" ? number : 0);
  const url = `http://127.0.0.1:${server.addr.port}/synth/`;
  if (option !== "--headless") {
    console.log(`Open ${url} and press Play; Ctrl-C ends this.`);
    await server.finished;
    return 0;
  }
  const executablePath = await findChromium();
  if (executablePath === undefined) {
    console.error("Cannot find Chromium: apt-get install chromium");
    return 2;
  }
  const args = [...CHROMIUM_ARGUMENTS];
  const browser = await puppeteer.launch({ browser: "chrome", executablePath, args });
  const { blocks, underruns, seconds } = await play(await browser.newPage(), url, number);
  await browser.close();
  await server.shutdown();
  await stopBundler();
  console.log(`${blocks} blocks in ${seconds.toFixed(1)} s, ${underruns} under-runs`);
  return underruns === 0 && blocks > 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
