/** What all that starts Bun has in common. @module */
import { findPinned } from "./pinned.ts";
import { findProgram } from "./programs.ts";

/** 103 MB. */
const PACKAGE = "npm:@oven/bun-linux-x64@1.4.5";

/** The pinned Bun, which exists for Linux on x86-64, or else the machine's own. */
export async function findBun(): Promise<string | undefined> {
  return await findPinned("bun", PACKAGE, "bin/bun") ?? await findProgram(["bun"]);
}
