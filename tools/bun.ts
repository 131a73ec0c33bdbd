/** What all that starts Bun has in common. @module */
import { fileURLToPath } from "node:url";
import { findProgram } from "./programs.ts";

/**
 * Pinned by a lock file of its own: it takes 103 MB, and what deno.json names is fetched by every
 * task that imports any package.
 */
const PACKAGE = "npm:@oven/bun-linux-x64@1.4.5";
const LOCK = `${import.meta.dirname}/toolchain/bun.lock`;

/** The pinned Bun, which exists for Linux on x86-64, or else the machine's own. */
export async function findBun(): Promise<string | undefined> {
  // The import has the package fetched.
  const script = `import "${PACKAGE}/package.json" with { type: "json" };
    console.log(import.meta.resolve("${PACKAGE}/bin/bun"));`;
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-config", "--lock", LOCK, "--frozen", script],
    stderr: "null",
  }).output();
  // On another machine it cannot be installed.
  if (!success) return await findProgram(["bun"]);
  return fileURLToPath(new TextDecoder().decode(stdout).trim());
}
