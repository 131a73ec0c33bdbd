import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { chromium } from "playwright-core";
import { CHROMIUM_ARGUMENTS, findChromium } from "../../tools/chromium.ts";
import { requiresAll } from "../../tools/test_counts.ts";
import { meanings, reportPage } from "./report.ts";
import { stylesOf } from "./report_parts.ts";
import type { Results, Row } from "./results.ts";

const ID = "echo/json-118/workers/spin/free";
const LOAD = "load/json-118/workers/spin/free/20000";
const STREAM = "stream/bytes-64/workers/spin/free";
const COLD = "cold/json-118/workers/own/free/fresh";

function row(scenario: string, peer: string, median: number): Row {
  const waiting = { p50: median, p90: median, p99: 2 * median, p999: 3 * median, max: 4 * median };
  const repetitions = [{ count: 1, elapsed_ns: 1, figure: median, at_ms: 1 }];
  const over_floor = { median: 2, min: 1, max: 3, pairs: 3, steady: true };
  const spread = { median, min: median, max: median, over_floor };
  return { scenario, place: "deno", driver: "deno", peer, repetitions, ...spread, waiting };
}

const RESULTS: Results = {
  version: 2,
  started: "2026-01-01T00:00:00.000Z",
  effort: "quick",
  machine: {
    id: "a",
    processor: "A processor </script><b>",
    processors: 2,
    memory_gb: 4,
    system: "linux",
    load: [0, 0],
    busy_percent: 50,
    steal_percent: 0,
  },
  drivers: [{ name: "deno", place: "deno", version: "2" }],
  complete: true,
  seconds: 1,
  scenarios: [
    { id: ID, title: "Echo", figure: "round-trip", size: 118 },
    { id: LOAD, title: "Load", figure: "waiting", size: 118 },
    { id: STREAM, title: "Stream", figure: "rate", size: 64 },
    { id: `${COLD}/1`, title: "Cold", figure: "time", size: 118, part: "1", group: COLD },
    { id: `${COLD}/2-10`, title: "Cold", figure: "time", size: 118, part: "2-10", group: COLD },
  ],
  rows: [
    row(ID, "millrace", 1000),
    row(ID, "messageport", 90_000),
    row(LOAD, "millrace", 500),
    row(STREAM, "millrace", 5e6),
    row(`${COLD}/1`, "millrace", 1e6),
    row(`${COLD}/1`, "messageport", 5e5),
    row(`${COLD}/2-10`, "millrace", 1e5),
  ],
};

const program = await findChromium();
const ignore = program === undefined && !requiresAll();

Deno.test("the report asks for nothing from elsewhere", async () => {
  const page = await reportPage(RESULTS);
  assert(!/<(script|link|img)[^>]+(src|href)=/.test(page.replace(/<script>.*<\/script>/s, "")));
  assertEquals(page.match(/<\/script/g)?.length, 2);
  assertStringIncludes(page, "A processor <\\/script><b>");
});

Deno.test({
  name: "Chromium draws the report: a chart for each scenario, and all figures",
  ignore,
  async fn() {
    assert(program !== undefined, "Cannot find Chromium (Debian: apt-get install chromium)");
    const folder = await Deno.makeTempDir({ prefix: "millrace-report-" });
    await Deno.writeTextFile(`${folder}/report.html`, await reportPage(RESULTS));
    const context = await chromium.launchPersistentContext(`${folder}/profile`, {
      executablePath: program,
      args: [...CHROMIUM_ARGUMENTS],
    });
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(30_000);
      const problems: string[] = [];
      page.on("pageerror", (error) => problems.push(String(error)));
      page.on("request", (request) => {
        if (!request.url().startsWith("file:")) problems.push(request.url());
      });
      await page.goto(`file://${folder}/report.html`);
      await page.waitForFunction("globalThis.drawn");
      assertEquals(problems, []);
      // Echo, both parts of cold, load, bytes by size, and the floor of Deno.
      assertEquals(await page.evaluate("globalThis.drawn"), 5);
      const painted = await page.evaluate(`[...document.querySelectorAll("canvas")].map((canvas) =>
        canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
          .some((value) => value !== 0))`);
      assertEquals(painted, [true, true]); // load, and bytes by size
      const bars = await page.evaluate(
        `[...document.querySelectorAll(".bars tr[class]")].map((row) =>
        [row.className, ...[...row.children].map((cell) => cell.innerText.replace(/\\s+/g, " "))])`,
      );
      assertEquals((bars as string[][]).slice(0, 3), [
        ["ours", "millrace", "", "90 × 1.00 µs, 1.00 to 1.00 µs"],
        ["other", "messageport", "", "1 × 90.0 µs, 90.0 to 90.0 µs"],
        // Whose rival is missing is seen beside the runtime's own, be it faster.
        ["ours", "millrace", "", "0.5 × 1.00 ms, 1.00 to 1.00 ms"],
      ]);
      // The bar of who is 90 times faster begins at the line of the rival, and fills the cell.
      const [from, to, line] = await page.evaluate(`(() => {
        const [bar, one] = document.querySelectorAll(".bars .ours i, .bars .ours u");
        const { left, right } = bar.getBoundingClientRect();
        return [left, right, one.getBoundingClientRect().left];
      })()`) as number[];
      assert(Math.abs(from! - line!) < 1 && to! - from! > 50, `${from} to ${to}, line at ${line}`);
      await page.setViewportSize({ width: 390, height: 800 });
      await page.waitForFunction("document.documentElement.scrollWidth <= 390");
      const text = await page.evaluate("document.body.innerText") as string;
      assertStringIncludes(text, "a Port at both ends: write and read, or events");
      assertStringIncludes(text, "cold in deno");
      assertStringIncludes(text, "Doubtful: other programs used 50 %");
    } finally {
      await context.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
});

Deno.test("stylesOf: no two lines look alike, whoever else took part or could not", () => {
  const names = Array.from({ length: 28 }, (_, index) => `peer-${index}`);
  const lines = names.map((name) => row(LOAD, name, 1));
  const { median: _median, waiting: _waiting, ...missing } = row(STREAM, "a-missing", 1);
  const { waiting: _, ...bar } = row(ID, "a-bar", 1);
  const styles = stylesOf([...lines, bar, missing]);
  assertEquals([...styles.keys()].sort(), names.toSorted());
  assertEquals(new Set([...styles.values()].map((style) => JSON.stringify(style))).size, 28);
});

Deno.test("meanings: of each name in the first column of a table", () => {
  const text = "| `a`, `b-2` | the `x` of [b](b.md) |\n| word | no name |\n| --- | --- |\n";
  assertEquals(meanings(text), { a: "the x of b", "b-2": "the x of b" });
});
