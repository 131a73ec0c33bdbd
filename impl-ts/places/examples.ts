/**
 * What the pages of the examples must do, in each browser.
 *
 * @module
 */
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { ConsoleMessage, Page } from "puppeteer-core";

/** A user of one page. `root` is the address of the server of all of them. */
interface Example {
  name: string;
  test: (page: Page, root: string) => Promise<void>;
  /** Takes 5 s of a processor: in one browser alone, unless with `--all`. */
  isLong?: boolean;
}

const DESK = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };

export const EXAMPLES: readonly Example[] = [
  { name: "shows two workers live, ends one, which comes back, and floods it", test: live },
  { name: "shows what the meters of two workers measure, once a second", test: meter },
  {
    name: "runs Python whose input() blocks, and interrupts it, asking and looping",
    test: input,
    isLong: true,
  },
  { name: "plays the synthesiser of the examples, and counts under-runs", test: synth },
];

/** What `seen()` of the live page tells. */
interface Seen {
  lives: number;
  rounds: number;
  flood?: { sent: number; arrived: number; disordered: number; lost: number; full: number };
  last: Record<"millrace" | "rival", {
    trips: { p10: number; median: number; p90: number };
    flow: { perSecond: number };
  }>;
}

async function live(page: Page, root: string): Promise<void> {
  await use(page, `${root}/live/`, async () => {
    const seen = async () => await page.evaluate("seen()") as Seen;
    await page.waitForFunction("seen().rounds >= 2");
    await page.click("#run"); // pauses: what follows needs no measurements
    for (const { trips, flow } of [(await seen()).last.millrace, (await seen()).last.rival]) {
      assert(0 <= trips.p10 && trips.p10 <= trips.median && trips.median <= trips.p90);
      assert(flow.perSecond > 0);
    }
    for (const dots of await page.evaluate(COLORED_DOTS) as number[]) {
      assert(dots > 20, `a curve has ${dots} dots`);
    }

    await page.click("#kill");
    await page.waitForFunction("seen().lives === 2");
    await page.click("#flood");
    await page.waitForFunction("seen().flood !== undefined");
    const { sent, arrived, disordered, lost, full } = (await seen()).flood!;
    assertEquals([arrived, disordered, lost], [sent, 0, 0]);
    assert(full > 0, "the ring was never full");

    // By the keyboard alone: a slider, and the button that lets it go on.
    await page.focus("#size");
    await page.keyboard.press("ArrowRight");
    assertEquals(await page.evaluate(textOf("size-shown")), "256\u00a0B");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    assertEquals(await page.evaluate(FOCUS), ["run", "solid"]);
    await page.keyboard.press("Enter");
    await page.waitForFunction("seen().last.size === 256 && seen().last.generation === 1");
    await page.keyboard.press("Enter");
  });
}

async function meter(page: Page, root: string): Promise<void> {
  await use(page, `${root}/meter/`, async () => {
    await page.waitForFunction("seen().sender && seen().handler?.incoming.waiting.count > 0");
    await page.waitForFunction(`${textOf("verdict")}.startsWith("There is room")`);
    assertEquals(await page.evaluate("seen().handler.incoming.untimed"), 0);
    assertMatch(
      await page.evaluate(textOf("outside")) as string,
      /^The port: a port, [\d,]+ bytes\n[^]*\n0 +attached [^]*\n1 +attached [^]*\n0 +0 to 1 /,
    );
    // More than the handler can do.
    for (const id of ["rate", "service"]) {
      await page.focus(`#${id}`);
      await page.keyboard.press("End");
    }
    await page.waitForFunction(`${textOf("verdict")}.startsWith("The handler is the bottleneck")`);
    await page.waitForFunction(`${textOf("outside")}.includes("writer waits for room")`);
  });
}

async function input(page: Page, root: string): Promise<void> {
  await use(page, `${root}/input/`, async () => {
    const isFree = (id: string) =>
      page.waitForFunction(`!document.getElementById("${id}").disabled`);
    const run = async (program: string) => {
      await isFree("run");
      await page.evaluate(`document.getElementById("program").value = ${JSON.stringify(program)}`);
      await page.click("#run");
    };
    const shows = (text: string) =>
      page.waitForFunction(`${textOf("output")}.includes(${JSON.stringify(text)})`);

    await run("print(f'<{input(\"Who? \")}>')\nwhile True: pass");
    await isFree("line");
    await page.type("#line", "Ada");
    await page.keyboard.press("Enter");
    await shows("Who? Ada\n<Ada>\n");
    await page.click("#stop"); // in the middle of the loop
    await shows('File "<exec>", line 2, in <module>\nKeyboardInterrupt');

    await run("try:\n  input('Still there? ')\nexcept KeyboardInterrupt:\n  print('no')");
    await isFree("line");
    await page.click("#stop"); // in the middle of the question
    await shows("Still there? no\n");
    await isFree("run");
  });
}

async function synth(page: Page, root: string): Promise<void> {
  await use(page, `${root}/synth/`, async () => {
    await page.click("#play");
    await page.waitForFunction("counts().blocks > 0");
    await page.waitForFunction("loudness() > 0.001");
    // Read by the audio thread: silence, and sound again.
    await page.focus("#volume");
    await page.keyboard.press("Home");
    await page.waitForFunction("loudness() < 1e-6");
    await page.keyboard.press("End");
    await page.waitForFunction("loudness() > 0.001");
    await page.click("#stall");
    await page.waitForFunction("counts().underruns > 0");
  });
}

/** Of each canvas, how many dots have the color of a curve and not that of a grid. */
const COLORED_DOTS = `[...document.querySelectorAll("canvas")].map((canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 200 && Math.abs(data[i] - data[i + 2]) > 60) count++;
  }
  return count;
})`;
/** What has the focus, and by what kind of line one sees it. */
const FOCUS = `[document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]`;

function textOf(id: string): string {
  return `document.getElementById("${id}").textContent`;
}

/** Opens a page, uses it, and looks at it as a telephone shows it; nothing may go wrong in it. */
async function use(page: Page, url: string, user: () => Promise<void>): Promise<void> {
  const wrong: string[] = [];
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {}); // it may fail before anybody waits for that
  const onError = (error: unknown) => {
    wrong.push(String(error));
    failed.reject(error);
  };
  const onConsole = (said: ConsoleMessage) => said.type() === "error" && wrong.push(said.text());
  page.on("pageerror", onError);
  page.on("console", onConsole);
  try {
    await page.setViewport(DESK);
    await page.goto(url);
    await Promise.race([user(), failed.promise]);
    await page.setViewport(PHONE);
    // A chart takes a moment until it has the width of its place.
    await page.waitForFunction(`document.documentElement.scrollWidth <= ${PHONE.width}`);
    // What it has no label for, who cannot see does not find.
    assertEquals(await page.evaluate(UNLABELED), []);
    assertEquals(wrong, []);
  } finally {
    page.off("pageerror", onError);
    page.off("console", onConsole);
    await page.goto("about:blank"); // ends its workers
  }
}

const UNLABELED = `[...document.querySelectorAll("input, textarea, button, canvas, progress")]
  .filter((each) => !each.labels?.length && !each.textContent && !each.ariaLabel)
  .map((each) => each.outerHTML)`;
