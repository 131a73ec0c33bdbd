/** Packages of npm that few need and that are large: pinned by lock files of their own. @module */
import { fileURLToPath } from "node:url";

/** What is large, from a slow registry; as long as that nobody waits for one that says nothing. */
const FETCH_MS = 5 * 60_000;
const LOCKS = `${import.meta.dirname}/toolchain`;

/**
 * Where a file of such a package is, which is fetched if need be: what `deno.json` names is fetched
 * by every task that imports any package. `undefined` where it cannot be installed, on another
 * machine for one, or has not come within minutes.
 */
export async function findPinned(
  name: string,
  specifier: string,
  file: string,
): Promise<string | undefined> {
  // The import has the package fetched.
  const script = `import "${specifier}/package.json" with { type: "json" };
    console.log(import.meta.resolve("${specifier}/${file}"));`;
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-config", "--lock", `${LOCKS}/${name}.lock`, "--frozen", script],
    stderr: "null",
    signal: AbortSignal.timeout(FETCH_MS),
  }).output();
  return success ? fileURLToPath(new TextDecoder().decode(stdout).trim()) : undefined;
}
