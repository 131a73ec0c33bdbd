// The programs of the guide: each stands after a comment that says what it is.

import { assert } from "@std/assert";
import { fileURLToPath } from "node:url";
import { run } from "../tools/run.ts";

export const ROOT = fileURLToPath(new URL("../", import.meta.url));
const names = [
  ...["README", "batches", "calls", "streams", "digest", "fanout", "mailbox", "properties"],
  ...["meter", "pool"],
];
const pages = names.map((name) => Deno.readTextFile(`${ROOT}impl-zig/${name}.md`));
/** The guide, with its pages. */
export const README = (await Promise.all(pages)).join("\n");

/** The blocks of code that have a comment, with it, in order. */
export const BLOCKS = [...README.matchAll(/<!-- (.+) -->\n\n```\w+\n([\s\S]*?)```\n/g)]
  .map(([, mark = "", code = ""]) => ({ mark, code }));

/** The only block with this comment. */
export function block(mark: string): string {
  const found = BLOCKS.filter((block) => block.mark === mark);
  assert(found.length === 1, `README.md has ${found.length} blocks marked ${mark}`);
  return found[0]!.code;
}

/** Runs a command in a folder, and returns what it prints. */
export async function succeed(cwd: string, ...command: string[]): Promise<string> {
  const { code, output } = await run(command, { cwd, timeoutMs: 10 * 60_000, echo: false });
  assert(code === 0, `${command.join(" ")} failed with ${code}:\n${output}`);
  return output;
}

/** Calls with a folder that is gone afterwards. */
export async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-guide-" });
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
