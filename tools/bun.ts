/** What all that starts Bun has in common. @module */
import { createRequire } from "node:module";
import { findProgram } from "./programs.ts";

/** The pinned Bun, which exists for Linux on x86-64, or else the machine's own. */
export async function findBun(): Promise<string | undefined> {
  try {
    const pinned = createRequire(import.meta.url).resolve("@oven/bun-linux-x64/bin/bun");
    if ((await Deno.stat(pinned)).isFile) return pinned;
  } catch {
    // On another machine it is not installed.
  }
  return await findProgram(["bun"]);
}
