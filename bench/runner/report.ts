/**
 * Writes the results as one page that needs nothing else.
 *
 * @module
 */
import { stopBundler } from "../../tools/build_scripts.ts";
import { bundlePage } from "./bundles.ts";
import type { Results } from "./results.ts";

const PAGE = new URL("report_page.html", import.meta.url);
const README = new URL("../README.md", import.meta.url);
/** A row of a table that says what some names mean. */
const MEANING = /^\| (`[a-z0-9-]+`(?:, `[a-z0-9-]+`)*) \| (.*) \|$/gm;

/** Writes the page to a file. */
export async function writeReport(results: Results, path: string | URL): Promise<void> {
  await Deno.writeTextFile(path, await reportPage(results));
}

/** The text of the page. */
export async function reportPage(results: Results): Promise<string> {
  const template = await Deno.readTextFile(PAGE);
  try {
    const script = await bundlePage("report_page.ts");
    // Within a script, only its end could be taken for something else.
    const words = meanings(await Deno.readTextFile(README));
    const data = JSON.stringify({ ...results, words }).replaceAll("</", "<\\/");
    const parts = template.split(/(?<=id="data">)\s*null\s*(?=<)|<script src="[^"]*">(?=<)/);
    if (parts.length !== 3) throw new Error("The page of the report has lost its places");
    const [head, middle, tail] = parts;
    const inline = script.replaceAll("</script", "<\\/script");
    return `${head}${data}${middle}<script>${inline}${tail}`;
  } finally {
    await stopBundler();
  }
}

/** What the names of peers and scenarios mean, as the tables of a text say it. */
export function meanings(text: string): Record<string, string> {
  const words: Record<string, string> = {};
  for (const [, names = "", meaning = ""] of text.matchAll(MEANING)) {
    for (const [, name = ""] of names.matchAll(/`([^`]+)`/g)) {
      words[name] = meaning.replace(/\[([^\]]+)\]\([^)]+\)/g, "$1").replaceAll("`", "");
    }
  }
  return words;
}
