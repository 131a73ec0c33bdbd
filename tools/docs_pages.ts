/**
 * The Markdown of the repository as the pages of a site: which there are, in which order, and with
 * links that lead somewhere there too.
 *
 * @module
 */
import { layBlocks } from "./docs_blocks.ts";
import { zigNames } from "./docs_zig.ts";
import type { TextFile } from "./files.ts";
import { mapLinks, readLinks, resolveLink } from "./links.ts";

/** A page, by its path in the repository. */
export interface Page {
  path: string;
  title: string;
  group: string;
  text: string;
}

/** What lies in a folder for the generator to read, as in the repository. */
export interface Stage {
  /** In the order in which they are listed. */
  pages: Page[];
  /** The page that the site begins with; none of `pages`. */
  start: string;
  /** All files to write: pages, the start, and copies of sources that they link to. */
  files: TextFile[];
}

/** Where the reference of Zig will be: not known to the generator, which leaves it as it is. */
export const ZIG_LINK = "zigreference:";

const START = "README.md";
/** From the top. A page is of the first whose pattern fits. */
const GROUPS: readonly [name: string, pages: RegExp][] = [
  ["Guide to TypeScript", /^impl-ts\/(?:README\.md|guide\/)/],
  ["Guide to Zig and C", /^impl-zig\//],
  ["Specification", /^spec\//],
  ["Conformance kit", /^conformance\//],
  ["Benchmarks", /^bench\//],
  ["Project", /^/],
];
export const GROUP_NAMES: readonly string[] = GROUPS.map(([name]) => name);
const ZIG_SOURCE = /^impl-zig\/src\/[\w/]+\.zig$/;
const HEADER = /^impl-zig\/include\/\w+\.h$/;

/** Lays out the files of the repository as pages; one leads to the reference of Zig, if any. */
export function stage(files: readonly TextFile[], hasZig: boolean): Stage {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const paths = [...texts.keys()];
  const pages = [
    ...paths.filter((path) => path.endsWith(".md") && path !== START),
    ...paths.filter((path) => HEADER.test(path)),
  ];
  const sources = new Set<string>();
  const onSite = (text: string, from: string) => layBlocks(withLinks(text, from, texts, sources));
  const laid = inOrder(pages, texts).map((path): Page => {
    const text = texts.get(path)!;
    const group = GROUPS.find(([, pattern]) => pattern.test(path))![0];
    if (!path.endsWith(".md")) return headerPage(path, text, group);
    return { path, title: titleOf(text), group, text: onSite(text, path) };
  });
  const guide = laid.findIndex(({ path }) => path === "impl-zig/README.md");
  if (hasZig) laid.splice(guide + 1, 0, zigPage(texts));
  // The generator writes the name of the project above it.
  const start = onSite((texts.get(START) ?? "").replace(/^# .*\n/, ""), START);
  return {
    pages: laid,
    start: START,
    files: [
      { path: START, text: start },
      ...laid.map((page) => ({ path: page.path, text: matter(page) + page.text })),
      ...[...sources].map((path) => ({ path: `${path}.txt`, text: texts.get(path)! })),
    ],
  };
}

/** What tells the generator where a page belongs. */
function matter({ title, group }: Page): string {
  return `---\ntitle: ${JSON.stringify(title)}\ngroup: ${JSON.stringify(group)}\n---\n`;
}

/** The first heading, without marks. */
function titleOf(text: string): string {
  return (/^# +(.*)$/m.exec(text)?.[1] ?? "").replaceAll("`", "");
}

/** A header of C, which is its own reference. */
function headerPage(path: string, text: string, group: string): Page {
  const title = path.slice(path.lastIndexOf("/") + 1);
  return { path: `${path}.md`, title, group, text: `# ${title}\n\n\`\`\`c\n${text}\`\`\`\n` };
}

/** The names of Zig, for the search of the site: each leads to its place in the reference. */
function zigPage(texts: ReadonlyMap<string, string>): Page {
  const sources = new Map(
    [...texts].filter(([path]) => ZIG_SOURCE.test(path))
      .map(([path, text]) => [path.slice("impl-zig/src/".length), text]),
  );
  const rows = zigNames(sources).map(({ name, about }) => {
    const plain = name.replaceAll(/[@"]/g, "");
    return `- [\`${plain}\`](${ZIG_LINK}#millrace.${plain})${about === "" ? "" : ` ${about}`}\n`;
  });
  const text = `# Reference of Zig

Zig's own generator makes [the reference of the module](${ZIG_LINK}), with its sources, and with a
search of its own. These are the names in it, which the search above finds.

${rows.join("")}`;
  const path = "impl-zig/reference.md";
  return { path, title: "Reference of Zig", group: "Guide to Zig and C", text };
}

/**
 * Groups as they stand above; in each, the README of a folder before what lies in it, which comes
 * in the order in which that README names it first, and what it does not name after that.
 */
function inOrder(pages: readonly string[], texts: ReadonlyMap<string, string>): string[] {
  const named: string[] = [];
  const add = (path: string) => {
    if (named.includes(path) || !pages.includes(path)) return;
    named.push(path);
    if (!path.endsWith("README.md")) return;
    const folder = path.slice(0, -"README.md".length);
    for (const { target } of readLinks(texts.get(path)!)) {
      const full = resolveLink(path, target.split("#")[0]!) ?? "";
      if (full.startsWith(folder)) add(full);
    }
  };
  const depth = (path: string) => path.split("/").length;
  const readmes = pages.filter((path) => path.endsWith("README.md"));
  for (const path of readmes.sort((a, b) => depth(a) - depth(b))) add(path);
  for (const path of pages) add(path);
  const group = (path: string) => GROUPS.findIndex(([, pattern]) => pattern.test(path));
  return named.sort((a, b) => group(a) - group(b));
}

/**
 * The text with links to where things are on the site: a folder is its README, a source a copy that
 * browsers show, whatever its name ends in. Words stay, where there is nothing to link to.
 */
function withLinks(
  text: string,
  from: string,
  texts: ReadonlyMap<string, string>,
  sources: Set<string>,
): string {
  return mapLinks(text, (target) => {
    const [file = "", anchor] = target.split("#");
    const full = file === "" ? from : resolveLink(from, file)?.replace(/\/$/, "");
    if (full === undefined || full === from || full.endsWith(".md")) return target;
    const above = "../".repeat(from.split("/").length - 1);
    if (HEADER.test(full)) return `${above}${full}.md`;
    const index = full === "" ? START : `${full}/README.md`;
    if (texts.has(index)) return above + index + (anchor === undefined ? "" : `#${anchor}`);
    if (!texts.has(full)) return undefined;
    sources.add(full);
    return `${above}${full}.txt`;
  });
}
