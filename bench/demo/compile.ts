// Compiles the Zig worker of the demo. `zig build` would first compile its own build runner, which
// takes longer than all else that a first demo does; this asks the compiler itself, as that runner
// does, and so has the same entry of the same cache.

import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CACHE = ".zig-cache";
const NAME = "demo_worker";
const PAGE = 65_536;
/** What `addWasmWorker` of build.zig says, in its order: the cache goes by the words. */
const COMMAND = [
  "build-exe",
  "-fno-entry",
  ...["--stack", `${4 * PAGE}`],
  "-fstrip",
  "-Ofast",
  ...["-target", "wasm32-freestanding", "-mcpu", "generic+atomics+bulk_memory+simd128"],
  ...["--dep", "millrace", "-Mroot=bench/demo/worker.zig", "-Mmillrace=impl-zig/src/root.zig"],
  ...["--cache-dir", CACHE, "--name", NAME],
  ...["-rdynamic", "--import-memory", "--shared-memory"],
  ...[`--initial-memory=${64 * PAGE}`, `--max-memory=${16_384 * PAGE}`],
];
/** Twenty times what it takes on one slow processor: only a hang gets there. */
const TIMEOUT_MS = 5 * 60_000;

/** Messages to the compiler, and one of those from it: `std.zig.Client` and `std.zig.Server`. */
const EXIT = 0;
const UPDATE = 1;
const EMIT_DIGEST = 2;
const HEADER_SIZE = 8;

/**
 * Compiles the worker, or finds that it has been, and returns the path of the module.
 *
 * @throws {Error} with the compiler's words if that fails
 */
export async function compileWorker(): Promise<string> {
  const order = new Uint32Array([UPDATE, 0, EXIT, 0]);
  const answer = await runZig([...COMMAND, "--listen=-"], new Uint8Array(order.buffer));
  const digest = digestOf(answer.stdout);
  if (digest !== undefined) return `${ROOT}${CACHE}/o/${digest}/${NAME}.wasm`;
  // What is wrong came as data; asked like this, the compiler puts it into words.
  const { stderr } = await runZig([...COMMAND, "-fno-emit-bin"], new Uint8Array());
  const words = new TextDecoder().decode(stderr).trim();
  throw new Error(`Cannot compile the Zig worker:\n${words}`);
}

async function runZig(args: string[], input: Uint8Array): Promise<Deno.CommandOutput> {
  const zig = new Deno.Command("zig", {
    args,
    cwd: ROOT,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).spawn();
  const ended = zig.output();
  const writer = zig.stdin.getWriter();
  // One that does not take it has ended, which its output says.
  await writer.write(input).then(() => writer.close()).catch(() => {});
  return await ended;
}

/** The name of the entry in the cache that the compiler has made, or found. */
function digestOf(messages: Uint8Array): string | undefined {
  const view = new DataView(messages.buffer, messages.byteOffset, messages.length);
  for (let at = 0; at + HEADER_SIZE <= messages.length;) {
    const [tag, size] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
    at += HEADER_SIZE;
    // After a byte that says whether it was there already.
    if (tag === EMIT_DIGEST) return messages.slice(at + 1, at + size).toHex();
    at += size;
  }
  return undefined;
}
