/**
 * Runs a WASI command on this process's standard streams, in the pinned library of wasmtime; for
 * machines without the program `wasmtime`, which does the same:
 *
 *     deno run -A conformance/testees/zig/wasi.ts zig-out/bin/testee_wasi.wasm
 *     wasmtime run zig-out/bin/testee_wasi.wasm
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { Wasmtime } from "../../../impl-zig/wasmtime_fixture.ts";

/** What the fixture of the tests does not need. */
const SYMBOLS = {
  wasi_config_inherit_stdin: { parameters: ["pointer"], result: "void" },
  wasi_config_inherit_stdout: { parameters: ["pointer"], result: "void" },
  wasi_config_inherit_stderr: { parameters: ["pointer"], result: "void" },
} as const;

/** The library of wasmtime: where the toolchain or the system has it, or nothing. */
export function findWasmtime(): string | undefined {
  const name = Deno.build.os === "darwin" ? "libwasmtime.dylib" : "libwasmtime.so";
  const pinned = new URL(`../../../.tools/hosts/lib/${name}`, import.meta.url);
  return [fileURLToPath(pinned), `/usr/local/lib/${name}`, `/usr/lib/${name}`].find((path) => {
    try {
      return Deno.statSync(path).isFile;
    } catch {
      return false;
    }
  });
}

/** Runs the command to its end, and returns its exit code. Blocks this thread meanwhile. */
export function runOnStreams(library: string, module: Uint8Array<ArrayBuffer>): number {
  const wasmtime = new Wasmtime(library);
  const { api, engine } = wasmtime;
  const { symbols } = Deno.dlopen(library, SYMBOLS);
  const config = api.wasi_config_new();
  symbols.wasi_config_inherit_stdin(config);
  symbols.wasi_config_inherit_stdout(config);
  symbols.wasi_config_inherit_stderr(config);
  const context = api.wasmtime_store_context(api.wasmtime_store_new(engine, null, null));
  wasmtime.check(api.wasmtime_context_set_wasi(context, config));
  const linker = api.wasmtime_linker_new(engine);
  wasmtime.check(api.wasmtime_linker_define_wasi(linker));
  const [instance, trap] = [new Uint8Array(16), new BigUint64Array(1)];
  const compiled = wasmtime.compile(module);
  wasmtime.check(
    api.wasmtime_linker_instantiate(linker, context, compiled, instance, trap),
    trap,
  );
  const [name, item] = [new TextEncoder().encode("_start"), new Uint8Array(32)];
  const size = BigInt(name.length);
  if (!api.wasmtime_instance_export_get(context, instance, name, size, item)) {
    throw new Error("the module is no command: it exports no _start");
  }
  const none = new Uint8Array(32);
  const error = api.wasmtime_func_call(context, item.slice(8), none, 0n, none, 0n, trap);
  const status = new Int32Array(1);
  // A command that exits ends with an error, which then has a status.
  if (error !== null && api.wasmtime_error_exit_status(error, status)) return status[0]!;
  wasmtime.check(error, trap);
  return 0;
}

if (import.meta.main) {
  const [path] = Deno.args;
  const library = findWasmtime();
  if (path === undefined) throw new Error("usage: wasi.ts MODULE");
  if (library === undefined) throw new Error("there is no libwasmtime on this machine");
  Deno.exit(runOnStreams(library, Deno.readFileSync(path)));
}
