/**
 * The testees of this repository, and the places in which any two of them can meet.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { run } from "../../tools/run.ts";
import type { Carrier, Program } from "./arena.ts";
import { bytes } from "./carriers/bytes.ts";
import { chromium } from "./carriers/chromium.ts";
import { deno } from "./carriers/deno.ts";
import { file } from "./carriers/file.ts";
import { node } from "./carriers/node.ts";
import { stream } from "./carriers/stream.ts";
import { wasmtime, type Way } from "./carriers/wasmtime.ts";

const ROOT = new URL("../../", import.meta.url);
const TESTEES = new URL("../testees/", import.meta.url);
// Ten times what a build with a cold cache takes: only a hang gets there.
const BUILD_MS = 10 * 60_000;

/** Where one testee is alone. */
export const ALONE: Carrier = bytes;

/** Where two testees meet, in the order of the report. */
export const CARRIERS: readonly Carrier[] = [deno, node, chromium, wasmtime, file, stream];

/** Ends what carriers have started and share; for the kit's own end. */
export async function endCarriers(): Promise<void> {
  for (const carrier of CARRIERS) await carrier.end?.();
}

/** The testees of this repository. `--testee @NAME` means one of them. */
export function ownPrograms(): Program[] {
  const readGuest = async () => (await Deno.readFile(built("testee_guest.wasm"))).buffer;
  const module = async () => (await build("testee-guest"), await readGuest());
  return [
    {
      name: "typescript",
      command: denoRun("typescript/main.ts"),
      worker: new URL("typescript/worker.ts", TESTEES),
      ways: { wasmtime: { as: "host", module } satisfies Way },
    },
    {
      name: "zig",
      command: quote(built("testee")),
      prepare: () => build("testee"),
    },
    {
      name: "zig-wasm",
      worker: new URL("zig/worker.ts", TESTEES),
      first: async () => ({ module: await readGuest() }),
      ways: { wasmtime: { as: "guest", module } satisfies Way },
      prepare: () => build("testee-guest"),
    },
    {
      name: "zig-wasi",
      command: denoRun("zig/wasi.ts", built("testee_wasi.wasm")),
      mapsNoFile: true,
      hasNoStreams: true,
      prepare: () => build("testee-wasi"),
    },
    {
      name: "c-abi",
      command: `python3 ${quote(fileURLToPath(new URL("c_abi/testee.py", TESTEES)))}`,
      prepare: () => build("lib"),
    },
    { name: "typescript-page", ways: { page: true } },
    ...examplePrograms(),
  ];
}

/** The example port, where its language is installed. */
function examplePrograms(): Program[] {
  const path = fileURLToPath(new URL("../examples/python/testee.py", import.meta.url));
  try {
    Deno.statSync(path);
  } catch {
    return [];
  }
  return [{
    name: "python",
    command: `python3 ${quote(path)}`,
    mapsNoFile: true,
    hasNoStreams: true,
  }];
}

function built(name: string): string {
  return fileURLToPath(new URL(`zig-out/bin/${name}`, ROOT));
}

/** Runs a step of build.zig. */
async function build(step: string): Promise<void> {
  const options = { cwd: fileURLToPath(ROOT), timeoutMs: BUILD_MS, echo: false };
  const { code, output } = await run(["zig", "build", step], options);
  if (code !== 0) throw new Error(`zig build ${step} failed:\n${output}`);
}

/** The command line of a testee in TypeScript. */
export function denoRun(path: string, ...args: string[]): string {
  const words = [Deno.execPath(), "run", "-A", "--no-check", "--quiet"];
  return [...words, fileURLToPath(new URL(path, TESTEES)), ...args].map(quote).join(" ");
}

/** A word as the shell takes it. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
