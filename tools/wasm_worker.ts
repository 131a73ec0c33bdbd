/**
 * Builds WebAssembly by build.zig: the modules that are the product, and what runs in workers.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { run } from "./run.ts";

const ROOT = new URL("../", import.meta.url);
// Ten times what a build with a cold cache takes: only a hang gets there.
const TIMEOUT_MS = 10 * 60_000;

/**
 * Runs a step of build.zig and returns the bytes of a module that it installs, `NAME.wasm`. Zig's
 * cache makes it a matter of milliseconds from the second time on.
 *
 * @throws {Error} with the compiler's output if the build fails
 */
export async function buildWasm(step: string, name: string): Promise<Uint8Array<ArrayBuffer>> {
  const options = { cwd: fileURLToPath(ROOT), timeoutMs: TIMEOUT_MS, echo: false };
  const { code, output } = await run(["zig", "build", step], options);
  if (code !== 0) throw new Error(`zig build ${step} failed:\n${output}`);
  return await Deno.readFile(new URL(`zig-out/bin/${name}.wasm`, ROOT));
}
