/** Checks that relative links in Markdown lead to a file, and to a heading in it. @module */
import type { TextFile } from "./files.ts";

/** One line for each relative link that leads nowhere. */
export function linkProblems(files: TextFile[]): string[] {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const folders = new Set(files.flatMap(({ path }) => parents(path)));
  return files.filter(({ path }) => path.endsWith(".md")).flatMap(({ path, text }) =>
    readLinks(text).flatMap(({ target, line }) => {
      const [file = "", anchor] = target.split("#");
      const full = file === "" ? path : resolveLink(path, file);
      const fail = (fact: string) => [`${path}:${line}: the link ${target} ${fact}`];
      if (full === undefined) return fail("leaves the repository");
      if (!texts.has(full) && !folders.has(full)) return fail("leads to no file");
      if (anchor === undefined || !full.endsWith(".md")) return [];
      const headings = readAnchors(texts.get(full) ?? "");
      return headings.has(anchor) ? [] : fail("leads to no heading");
    })
  );
}

/** The relative links of a Markdown text, outside of code. */
export function readLinks(text: string): { target: string; line: number }[] {
  return withoutCode(text).flatMap((line, index) =>
    [...line.matchAll(/\]\(<?([^()\s>]+)>?(?:\s+"[^"]*")?\)|^\s*\[[^\]]+\]:\s+(\S+)/g)]
      .map((match) => decodeURI((match[1] ?? match[2]) as string))
      .filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target))
      .map((target) => ({ target, line: index + 1 }))
  );
}

/** The anchors that the usual renderers give to the headings. */
function readAnchors(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const line of withoutCode(text, true)) {
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1];
    if (heading === undefined) continue;
    const base = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
    let anchor = base;
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${base}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The lines, with fenced blocks blanked, and code spans too unless they are kept. */
function withoutCode(text: string, keepSpans = false): string[] {
  let fenced = false;
  return text.split("\n").map((line) => {
    if (line.trimStart().startsWith("```")) {
      fenced = !fenced;
      return "";
    }
    if (fenced) return "";
    return keepSpans ? line : line.replace(/`[^`]*`/g, (span) => " ".repeat(span.length));
  });
}

/**
 * The text with the relative links, outside of code, as `change` wants them; without the link, and
 * with its words, where that returns `undefined`.
 */
export function mapLinks(text: string, change: (target: string) => string | undefined): string {
  const link = /(`[^`]*`)|(?<!!)\[((?:`[^`]*`|[^[\]`])*)\]\(([^()\s]+)\)/g;
  // The odd ones are blocks of code.
  return text.split(/(^```[^]*?^```$)/m).map((part, index) =>
    index % 2 === 1 ? part : part.replace(link, (whole, span, words, target) => {
      if (span !== undefined || /^[a-z][a-z0-9+.-]*:/i.test(target)) return whole;
      const changed = change(target);
      return changed === undefined ? words : `[${words}](${changed})`;
    })
  ).join("");
}

/** Where a relative link leads, from the root; `undefined` for what lies outside of it. */
export function resolveLink(from: string, target: string): string | undefined {
  const parts = target.startsWith("/") ? [] : from.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  return parts.join("/");
}

function parents(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, index) => parts.slice(0, index).join("/"));
}
