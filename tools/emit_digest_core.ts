/**
 * Compiles `impl-zig/src/digest/core_module.zig`, and prints it as
 * `impl-ts/src/digest/core_module.ts`.
 *
 * The file says of which sources and which compiler it was made. Where these are the same, nothing
 * is compiled: the gate asks often. That it is what they make of it, a test shows.
 *
 * @module
 */
import { run } from "./run.ts";

const SOURCES = "impl-zig/src/digest";
const MODULE = "core_module.zig";
/** The file that is printed. */
export const DIGEST_CORE = "impl-ts/src/digest/core_module.ts";
const TIMEOUT_MS = 10 * 60_000;
const COMMAND = [
  ...["zig", "build-exe", "-OReleaseFast", "-fstrip", "-fno-entry", "-rdynamic"],
  ...["-target", "wasm32-freestanding", "-mcpu", "generic+simd128+bulk_memory"],
  ...["--stack", "4096"],
];
/** Where the version of the compiler is pinned. */
const TOOLCHAIN = "tools/toolchain/requirements_base.txt";

/** The whole file, formatted as `deno fmt` would. Compiles only what has changed. */
export async function emitDigestCore(root: string): Promise<string> {
  const origin = await originOf(root);
  const before = await Deno.readTextFile(`${root}/${DIGEST_CORE}`).catch(() => "");
  if (before.includes(`// ${origin}\n`)) return before;
  console.error("Compiling the core of the digests ...");
  const bytes = await compileDigestCore(root);
  return [
    `// Generated from ${SOURCES}/${MODULE} by tools/generate.ts; do not edit.`,
    "// The SHA-256 of its sources and of what compiles them:",
    `// ${origin}`,
    "",
    "/**",
    " * The core of the digests, compiled from Zig.",
    " *",
    " * @module",
    " */",
    "",
    `/** A module of WebAssembly, of ${bytes.length} bytes, in base64. */`,
    "export const CORE: string =",
    `  "${bytes.toBase64()}";`,
    "",
  ].join("\n");
}

/** The module as the compiler makes it. */
export async function compileDigestCore(root: string): Promise<Uint8Array> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-digest-" });
  try {
    const path = `${folder}/core.wasm`;
    const command = [...COMMAND, `${root}/${SOURCES}/${MODULE}`, `-femit-bin=${path}`];
    const options = { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false };
    const { code, output } = await run([...command, "--cache-dir", `${folder}/cache`], options);
    if (code !== 0) throw new Error(`Cannot compile ${MODULE}:\n${output}`);
    return await Deno.readFile(path);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** What tells the module from another one: sources, compiler and command. */
async function originOf(root: string): Promise<string> {
  const parts = [COMMAND.join(" ")];
  for (const path of await originsOf(root)) {
    const text = await Deno.readTextFile(`${root}/${path}`);
    parts.push(path, path === TOOLCHAIN ? /^ziglang==\S+/m.exec(text)![0] : text);
  }
  const bytes = new TextEncoder().encode(parts.join("\n"));
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}

/** The files of which the module is made: its source, what that imports, and the toolchain. */
export async function originsOf(root: string): Promise<string[]> {
  const found = new Set([MODULE]);
  for (const name of found) {
    const text = await Deno.readTextFile(`${root}/${SOURCES}/${name}`);
    for (const [, target] of text.matchAll(/@import\("(\w+\.zig)"\)/g)) found.add(target!);
  }
  return [...[...found].sort().map((name) => `${SOURCES}/${name}`), TOOLCHAIN];
}
