/** Properties whose writer can stop after any single store, as if it was killed there. */

import { assert } from "@std/assert";
import type { Slots } from "./slots.ts";

const scope = globalThis as unknown as { stopAfter: number; step(): void };

/** The error with which a writer stops. */
export class Stopped extends Error {}

/** Lets the next set stop after so many of its statements; without an argument, after none. */
export function stopAfter(steps = Infinity): void {
  scope.stopAfter = steps;
}

/** The module with a call of `step` after each statement of the methods that store. */
export async function steppedSlots(): Promise<typeof Slots> {
  scope.step = () => {
    if (--scope.stopAfter < 0) throw new Stopped();
  };
  const url = new URL("./slots.ts", import.meta.url);
  const source = await Deno.readTextFile(url);
  let isIn = false;
  const lines = source.split("\n").map((line) => {
    if (/^ {2}(?:put|wake)\(/.test(line)) isIn = true;
    if (line === "  }") isIn = false;
    return isIn && /^ {4,}(?!return|continue).*;$/.test(line) && !line.includes("continue;")
      ? `${line} step();`
      : line;
  });
  const text = lines.join("\n")
    .replace(/(?<=from ")\.[^"]+/g, (path) => new URL(path, url).href);
  assert(text.split(" step();").length > 12);
  const path = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(path, `declare function step(): void;\n${text}`);
  try {
    return (await import(`file://${path}`)).Slots;
  } finally {
    await Deno.remove(path);
  }
}
