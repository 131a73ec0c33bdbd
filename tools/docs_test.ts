// The site: its pages, their order and links, and that a browser shows it from the file system.

import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { type BrowserContext, chromium, type Page as Tab } from "playwright-core";
import { CHROMIUM_ARGUMENTS, findChromium } from "./chromium.ts";
import { makeDocs } from "./docs.ts";
import { layBlocks } from "./docs_blocks.ts";
import { stage, ZIG_LINK } from "./docs_pages.ts";
import { writeSite, ZIG_PAGE } from "./docs_site.ts";
import { entriesBelow, page, zigNames } from "./docs_zig.ts";
import { mapLinks } from "./links.ts";
import { requiresAll } from "./test_counts.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);
const program = await findChromium();
const TIMEOUT_MS = 120_000;
/** What the site takes with both references, many times over. */
const MAKE_MS = 10 * 60_000;
/** The references take longer than the pages. */
const isAll = Deno.env.get("MILLRACE_TEST_ALL") === "1";
const SHOWN: readonly (readonly [path: string, title: string])[] = [
  ["index.html", "Millrace"],
  ["impl-ts/guide/ports.html", "Many ports, and peers that die"],
  isAll ? ["classes/millrace.Port.html", "Class Port<In, Out>"] : ["spec/ring.html", "Ring"],
];

Deno.test("mapLinks: relative links outside of code, and words without a link", () => {
  const map = (text: string) => mapLinks(text, (target) => target === "gone" ? undefined : "new");
  assertEquals(map("[a](b) [two\nlines](c#d) [e](gone)"), "[a](new) [two\nlines](new) e");
  assertEquals(map("[`x[0]`](b) `[a](b)`"), "[`x[0]`](new) `[a](b)`");
  const kept = "[a](https://example.org)\n```md\n[a](b)\n```\n";
  assertEquals(map(kept), kept);
});

Deno.test("layBlocks: clauses are sentences, with a place each; no other block is changed", () => {
  assertEquals(
    layBlocks("```\n[a.b] A writer MUST `x < y`\nat once.\n\n[a.c] A reader MAY.\n```\n"),
    '<div class="clauses">\n<p id="a.b"><b>[a.b]</b> A writer MUST <code>x &lt; y</code> at once.' +
      '</p>\n<p id="a.c"><b>[a.c]</b> A reader MAY.</p>\n</div>\n',
  );
  assertEquals(layBlocks("```\nx = [a.b] 1\n```\n"), "```text\nx = [a.b] 1\n```\n");
  const kept = "```ts\n[a.b] x\n```\n[a.b] y\n```c\n| a |\n| - |\n| b |\n```\n";
  assertEquals(layBlocks(kept), kept);
});

Deno.test("layBlocks: what is above a column of sentences says so", () => {
  const rows = (cell: string) => `| name | meaning |\n| --- | --- |\n| a | ${cell} |\n`;
  const long = "what one cannot read a word below a word";
  assertEquals(
    layBlocks(rows(long)),
    rows(long).replace("meaning", '<span class="long">meaning</span>'),
  );
  // By what a reader sees of it.
  const short = "[`short`](a_path_that_is_longer_than_any_word)";
  assertEquals(layBlocks(rows(short)), rows(short));
});

Deno.test("stage: pages in the order of their READMEs, with links to what the site has", () => {
  const { pages, files } = stage([
    { path: "CHANGELOG.md", text: "# Changelog\n" },
    { path: "README.md", text: "# M\n[spec](spec/) [tools](tools/) [a](spec/a.md#x) [l](LICENSE)" },
    { path: "LICENSE", text: "MIT" },
    { path: "impl-zig/README.md", text: "# Zig\n[h](include/m.h)" },
    { path: "impl-zig/include/m.h", text: "int m;\n" },
    { path: "spec/README.md", text: "# The `spec`\n[b](b.md)" },
    { path: "spec/a.md", text: "# A\n" },
    { path: "spec/b.md", text: "# B\n[a](a.md) [up](../README.md)" },
    { path: "tools/x.ts", text: "" },
  ], true);
  assertEquals(pages.map(({ path, group, title }) => [path, group, title]), [
    ["impl-zig/README.md", "Guide to Zig and C", "Zig"],
    ["impl-zig/reference.md", "Guide to Zig and C", "Reference of Zig"],
    ["impl-zig/include/m.h.md", "Guide to Zig and C", "m.h"],
    ["spec/README.md", "Specification", "The spec"],
    ["spec/b.md", "Specification", "B"],
    ["spec/a.md", "Specification", "A"],
    ["CHANGELOG.md", "Project", "Changelog"],
  ]);
  const textOf = (path: string) => files.find((file) => file.path === path)?.text;
  assertEquals(
    textOf("README.md"),
    "[spec](spec/README.md) tools [a](spec/a.md#x) [l](LICENSE.txt)",
  );
  assertEquals(textOf("LICENSE.txt"), "MIT");
  assertStringIncludes(textOf("impl-zig/README.md")!, "[h](../impl-zig/include/m.h.md)");
  assertStringIncludes(textOf("impl-zig/include/m.h.md")!, "```c\nint m;\n```");
  assertEquals(textOf("tools/x.ts"), undefined);
});

Deno.test("zigNames: what root.zig offers, and what is in it, with a first sentence", () => {
  const texts = new Map([
    [
      "root.zig",
      '//! All.\n/// Numbers.\npub const layout = @import("memory/layout.zig");\n' +
      'pub const Reason = layout.Reason;\npub const Port = @import("port/port.zig").Port;\n' +
      'const hidden = 1;\npub const sum = @import("port/port.zig").sum;\n',
    ],
    [
      "memory/layout.zig",
      "pub const size = 1;\n/// A code. And more.\npub const Reason = enum {};\n",
    ],
    [
      "port/port.zig",
      "//! A port.\n/// One side\n/// of a port. More.\npub const Port = struct {\n    a: u32,\n" +
      "    /// Writes.\n    pub fn write() void {\n        _ = struct {\n" +
      "            pub fn inner() void {}\n        };\n    }\n    fn own() void {}\n};\n" +
      "pub fn sum() void {\n}\npub const other = 1;\n",
    ],
  ]);
  assertEquals(zigNames(texts).map(({ name, about }) => `${name}: ${about}`), [
    "layout: Numbers.",
    "layout.size: ",
    "layout.Reason: A code.",
    "Reason: A code.",
    "Port: One side of a port.",
    "Port.write: Writes.",
    "sum: ",
  ]);
});

Deno.test("writeSite: a link to no heading, or to no file, is an error", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "millrace-docs-" }));
  const write = async (text: string) => {
    const laid = stage([
      { path: "README.md", text: "# M\n" },
      { path: "spec/a.md", text },
      { path: "spec/b.md", text: "# B\n" },
    ], false);
    for (const each of laid.files) {
      const place = `${folder}/${each.path}`;
      await Deno.mkdir(place.slice(0, place.lastIndexOf("/")), { recursive: true });
      await Deno.writeTextFile(place, each.text);
    }
    const options = { root: ROOT, entries: [], stage: laid, staged: folder };
    await writeSite({ ...options, out: `${folder}/out` });
  };
  try {
    await write("# A\n[b](b.md#b)\n");
    await assertRejects(() => write("# A\n[b](b.md#c)\n"), Error, "b.md#c");
    await assertRejects(() => write("# A\n![b](b.png)\n"), Error, "b.png");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("entriesBelow: an archive without what lies elsewhere", () => {
  const entry = (path: string, text: string) => {
    const block = new Uint8Array(512 + Math.ceil(text.length / 512) * 512);
    const put = (at: number, words: string) =>
      void new TextEncoder().encodeInto(words, block.subarray(at));
    put(0, path.split("/").slice(-1)[0]!);
    put(345, path.split("/").slice(0, -1).join("/"));
    put(124, text.length.toString(8).padStart(11, "0"));
    put(512, text);
    return [...block];
  };
  const [a, b, c] = [entry("x/a", "1".repeat(600)), entry("y/b", "2"), entry("x/c", "")];
  const archive = Uint8Array.from([...a, ...b, ...c, ...new Uint8Array(1024)]);
  assertEquals([...entriesBelow("x/", archive)], [...a, ...c, ...new Uint8Array(1024)]);
});

Deno.test("page: a page of Zig's generator that is another one is an error", () => {
  const html = '<body a>\n  <link rel="preload" x>\n<script src="main.js"></script>';
  const [, back, own] = /^<body a>(.*)\n(<script.*)$/.exec(page(html))!;
  assertStringIncludes(back!, "../index.html");
  assertEquals(own, '<script src="files.js"></script><script src="main.js"></script>');
  assertThrows(() => page("<body>"), Error, "Cannot adapt");
});

Deno.test({
  name: "makeDocs: every link leads somewhere, and Chromium shows and searches the files",
  ignore: program === undefined && !requiresAll(),
  async fn(t) {
    assert(program !== undefined, "Cannot find Chromium: apt-get install chromium");
    const folder = await Deno.makeTempDir({ prefix: "millrace-site-" });
    const options = { executablePath: program, args: [...CHROMIUM_ARGUMENTS] };
    let context: BrowserContext | undefined;
    try {
      const parts = { typescript: isAll, zig: isAll };
      await within(MAKE_MS, makeDocs(ROOT, `${folder}/site`, parts, () => {}));
      await t.step("links", async () => {
        assertEquals(await brokenLinks(`${folder}/site`), []);
      });
      context = await chromium.launchPersistentContext(`${folder}/profile`, options);
      const tab = await context.newPage();
      tab.setDefaultTimeout(TIMEOUT_MS);
      for (const [path, title] of SHOWN) {
        await t.step(path, () => showsPage(tab, `file://${folder}/site/${path}`, title));
      }
      await t.step("a search finds a page by a word in it", async () => {
        const site = `file://${folder}/site`;
        await searchFinds(tab, "Dekker", `${site}/spec/wait.html`);
        if (!isAll) return;
        await tab.goto(`${site}/index.html`);
        await searchFinds(tab, "createSealed", `${site}/impl-zig/reference.html`);
        await tab.goto(`${site}/index.html`);
        await searchFinds(tab, "receivePort", `${site}/functions/millrace.receivePort.html`);
      });
      if (!isAll) return;
      await t.step("the reference of Zig shows a declaration", async () => {
        await tab.goto(`file://${folder}/site/${ZIG_PAGE}#millrace.Port`);
        await tab.getByText("One side of a port.").first().waitFor();
      });
    } finally {
      await context?.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
});

/** Waits for what may hang, and fails where it does. */
async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done in ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A page has its title, and the list of all pages, which a script writes. */
async function showsPage(tab: Tab, url: string, title: string): Promise<void> {
  await tab.goto(url);
  assertEquals(await tab.locator("h1").first().innerText(), title);
  const entry = tab.locator("nav.tsd-navigation a", { hasText: "Rationale" });
  await entry.waitFor({ state: "attached" });
  // What is too wide for a phone scrolls in a place of its own.
  await tab.setViewportSize({ width: 390, height: 844 });
  assertEquals(await tab.evaluate("document.documentElement.scrollWidth"), 390);
  await tab.setViewportSize({ width: 1280, height: 900 });
}

/** A search on the page that is open finds another one, and leads there. */
async function searchFinds(tab: Tab, words: string, url: string): Promise<void> {
  await tab.locator("#tsd-search-trigger").click();
  await tab.locator("#tsd-search-input").fill(words);
  const found = tab.locator("#tsd-search-results a");
  await found.first().waitFor();
  const urls = await found.evaluateAll((links) => links.map((each) => String(each.href)));
  assertEquals(urls.filter((each) => each.split("#")[0] === url).length > 0, true, `${urls}`);
}

/** The links of all pages below a folder that lead to no file, or to no place in one. */
async function brokenLinks(folder: string): Promise<string[]> {
  const pages = new Map<string, string>();
  const paths = new Set<string>();
  const walk = async (path: string) => {
    for await (const { name, isDirectory } of Deno.readDir(`${folder}/${path}`)) {
      const inner = path + name;
      paths.add(inner);
      if (isDirectory) await walk(`${inner}/`);
      else if (name.endsWith(".html")) {
        pages.set(inner, await Deno.readTextFile(`${folder}/${inner}`));
      }
    }
  };
  await walk("");
  const anchors = new Map([...pages].map(([path, html]) => [
    path,
    new Set([...html.matchAll(/\b(?:id|name)="([^"]+)"/g)].map(([, id]) => id)),
  ]));
  return [...pages].flatMap(([from, html]) => {
    const targets = new Set([...html.matchAll(/\b(?:href|src)="([^"]+)"/g)].map(([, to]) => to!));
    return [...targets].filter((target) => {
      const { protocol, pathname, hash } = new URL(target, `file:///${from}`);
      const to = decodeURIComponent(pathname.slice(1)) || "index.html";
      if (protocol !== "file:") return protocol === ZIG_LINK;
      if (!paths.has(to)) return true;
      if (to === ZIG_PAGE) return false; // its places are made by its script
      const places = hash === "" ? undefined : anchors.get(to);
      return places !== undefined && !places.has(decodeURIComponent(hash.slice(1)));
    }).map((target) => `${from}: ${target}`);
  });
}
