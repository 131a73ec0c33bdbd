/**
 * Writes the results as one page that needs nothing else.
 *
 * @module
 */
import { bundlePage, stopBundler } from "./bundles.ts";
import type { Results } from "./results.ts";

const PAGE = new URL("report_page.html", import.meta.url);

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
    const data = JSON.stringify(results).replaceAll("</", "<\\/");
    const parts = template.split(/(?<=id="data">)\s*null\s*(?=<)|<script src="[^"]*">(?=<)/);
    if (parts.length !== 3) throw new Error("The page of the report has lost its places");
    const [head, middle, tail] = parts;
    const inline = script.replaceAll("</script", "<\\/script");
    return `${head}${data}${middle}<script>${inline}${tail}`;
  } finally {
    await stopBundler();
  }
}
