// Hosts WebAssembly in wasmtime, through its C API, for the tests: guests on one shared memory, and
// WASI commands. Facts of the API: `wasmtime_extern_t` and `wasmtime_val_t` are 32 bytes, the kind
// in the first and the value from the ninth on.

const SYMBOLS = {
  wasm_config_new: { parameters: [], result: "pointer" },
  wasmtime_config_wasm_threads_set: { parameters: ["pointer", "bool"], result: "void" },
  wasmtime_config_shared_memory_set: { parameters: ["pointer", "bool"], result: "void" },
  wasm_engine_new_with_config: { parameters: ["pointer"], result: "pointer" },
  wasmtime_wat2wasm: { parameters: ["buffer", "usize", "buffer"], result: "pointer" },
  wasmtime_module_new: {
    parameters: ["pointer", "buffer", "usize", "buffer"],
    result: "pointer",
  },
  wasmtime_memorytype_new: {
    parameters: ["u64", "bool", "u64", "bool", "bool", "u8", "buffer"],
    result: "pointer",
  },
  wasmtime_sharedmemory_new: { parameters: ["pointer", "pointer", "buffer"], result: "pointer" },
  wasmtime_sharedmemory_data: { parameters: ["pointer"], result: "pointer" },
  wasmtime_sharedmemory_data_size: { parameters: ["pointer"], result: "usize" },
  wasmtime_store_new: { parameters: ["pointer", "pointer", "pointer"], result: "pointer" },
  wasmtime_store_context: { parameters: ["pointer"], result: "pointer" },
  wasmtime_store_delete: { parameters: ["pointer"], result: "void" },
  wasi_config_new: { parameters: [], result: "pointer" },
  wasi_config_set_argv: { parameters: ["pointer", "usize", "buffer"], result: "bool" },
  wasi_config_set_stderr_file: { parameters: ["pointer", "buffer"], result: "bool" },
  wasmtime_context_set_wasi: { parameters: ["pointer", "pointer"], result: "pointer" },
  wasmtime_linker_new: { parameters: ["pointer"], result: "pointer" },
  wasmtime_linker_delete: { parameters: ["pointer"], result: "void" },
  wasmtime_linker_define_wasi: { parameters: ["pointer"], result: "pointer" },
  wasmtime_linker_define: {
    parameters: ["pointer", "pointer", "buffer", "usize", "buffer", "usize", "buffer"],
    result: "pointer",
  },
  wasmtime_linker_define_instance: {
    parameters: ["pointer", "pointer", "buffer", "usize", "buffer"],
    result: "pointer",
  },
  wasmtime_linker_instantiate: {
    parameters: ["pointer", "pointer", "pointer", "buffer", "buffer"],
    result: "pointer",
  },
  wasmtime_instance_export_get: {
    parameters: ["pointer", "buffer", "buffer", "usize", "buffer"],
    result: "bool",
  },
  wasmtime_global_set: { parameters: ["pointer", "buffer", "buffer"], result: "pointer" },
  wasmtime_func_call: {
    parameters: ["pointer", "buffer", "buffer", "usize", "buffer", "usize", "buffer"],
    result: "pointer",
  },
  call_elsewhere: {
    name: "wasmtime_func_call",
    parameters: ["pointer", "buffer", "buffer", "usize", "buffer", "usize", "buffer"],
    result: "pointer",
    nonblocking: true,
  },
  wasmtime_error_exit_status: { parameters: ["pointer", "buffer"], result: "bool" },
  wasmtime_error_message: { parameters: ["pointer", "buffer"], result: "void" },
  wasmtime_error_delete: { parameters: ["pointer"], result: "void" },
  wasm_trap_message: { parameters: ["pointer", "buffer"], result: "void" },
} as const;

type Pointer = Deno.PointerValue;

const EXTERN_SHARED_MEMORY = 4;
const STACK_SIZE = 128 * 1024;

/** The clock that `millrace.wasm` imports, by way of WASI: no call has to leave wasmtime for it. */
const CLOCK = `(module
  (import "wasi_snapshot_preview1" "clock_time_get"
    (func $get (param i32 i64 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "now_us") (result f64)
    (drop (call $get (i32.const 1) (i64.const 1000) (i32.const 0)))
    (f64.div (f64.convert_i64_u (i64.load (i32.const 0))) (f64.const 1000))))`;

/** A number as WebAssembly has it: `f64` for what is passed as `{ f64: … }`, `i32` else. */
export type Argument = number | { readonly f64: number };

/** An engine. Never given back: the tests end with it. */
export class Wasmtime {
  readonly api: Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];
  readonly engine: Pointer;

  constructor(library: string) {
    this.api = Deno.dlopen(library, SYMBOLS).symbols;
    const config = this.api.wasm_config_new();
    this.api.wasmtime_config_wasm_threads_set(config, true);
    this.api.wasmtime_config_shared_memory_set(config, true);
    this.engine = this.api.wasm_engine_new_with_config(config);
  }

  /** Compiles a module. */
  compile(bytes: Uint8Array<ArrayBuffer>): Pointer {
    return this.made((out) =>
      this.api.wasmtime_module_new(this.engine, bytes, BigInt(bytes.length), out)
    );
  }

  /** Compiles a module that is written as text. */
  compileText(text: string): Pointer {
    const source = ascii(text);
    const vector = new BigUint64Array(2);
    this.check(this.api.wasmtime_wat2wasm(source, BigInt(source.length), vector));
    return this.compile(copyOf(vector));
  }

  /** Throws what an error or a trap says. */
  check(error: Pointer, trap?: BigUint64Array): void {
    const trapped = trap === undefined ? null : Deno.UnsafePointer.create(trap[0]!);
    if (error === null && trapped === null) return;
    const vector = new BigUint64Array(2);
    if (error !== null) this.api.wasmtime_error_message(error, vector);
    else this.api.wasm_trap_message(trapped, vector);
    throw new Error(new TextDecoder().decode(copyOf(vector)));
  }

  /** What a call stores in its last argument. */
  made(call: (out: BigUint64Array<ArrayBuffer>) => Pointer): Pointer {
    const out = new BigUint64Array(1);
    this.check(call(out));
    return Deno.UnsafePointer.create(out[0]!);
  }
}

/** A memory for any number of guests, which JavaScript sees as an `ArrayBuffer`. */
export class GuestMemory {
  readonly pointer: Pointer;
  readonly buffer: ArrayBuffer;

  constructor(wasmtime: Wasmtime, pages: number, pagesMax: number) {
    const { api, engine } = wasmtime;
    const type = wasmtime.made((out) =>
      api.wasmtime_memorytype_new(BigInt(pages), true, BigInt(pagesMax), false, true, 16, out)
    );
    this.pointer = wasmtime.made((out) => api.wasmtime_sharedmemory_new(engine, type, out));
    const data = api.wasmtime_sharedmemory_data(this.pointer)!;
    const size = Number(api.wasmtime_sharedmemory_data_size(this.pointer));
    this.buffer = Deno.UnsafePointerView.getArrayBuffer(data, size);
  }
}

/** An instance of `millrace.wasm`. One call at a time, on whichever thread. */
export class Guest {
  readonly #wasmtime: Wasmtime;
  readonly #context: Pointer;
  readonly #instance = new Uint8Array(16);

  /** `stack` is the address of 128 KiB for its stack. */
  constructor(wasmtime: Wasmtime, module: Pointer, memory: GuestMemory, stack: number) {
    const { api, engine } = wasmtime;
    this.#wasmtime = wasmtime;
    this.#context = contextOf(wasmtime, undefined);
    const linker = api.wasmtime_linker_new(engine);
    wasmtime.check(api.wasmtime_linker_define_wasi(linker));
    const shared = new BigUint64Array(4);
    shared[0] = BigInt(EXTERN_SHARED_MEMORY);
    shared[1] = Deno.UnsafePointer.value(memory.pointer);
    const [env, name, clock] = [ascii("env"), ascii("memory"), ascii("millrace")];
    wasmtime.check(
      api.wasmtime_linker_define(linker, this.#context, env, 3n, name, 6n, shared),
    );
    const clockInstance = instantiate(wasmtime, linker, this.#context, wasmtime.compileText(CLOCK));
    wasmtime.check(
      api.wasmtime_linker_define_instance(linker, this.#context, clock, 8n, clockInstance),
    );
    this.#instance = instantiate(wasmtime, linker, this.#context, module);
    const value = new DataView(new ArrayBuffer(32));
    value.setInt32(8, stack + STACK_SIZE, true);
    const top = new Uint8Array(value.buffer);
    const pointer = this.#export("__stack_pointer");
    wasmtime.check(api.wasmtime_global_set(this.#context, pointer, top));
    api.wasmtime_linker_delete(linker);
  }

  /** Calls an export on this thread. */
  call(name: string, ...values: Argument[]): number {
    const [results, trap] = [new Uint8Array(32), new BigUint64Array(1)];
    const { func, list } = this.#prepare(name, values);
    const count = BigInt(values.length);
    const { api } = this.#wasmtime;
    this.#wasmtime.check(
      api.wasmtime_func_call(this.#context, func, list, count, results, 1n, trap),
      trap,
    );
    return resultOf(results);
  }

  /** Calls an export on a thread of its own, where it may block. */
  async callElsewhere(name: string, ...values: Argument[]): Promise<number> {
    const [results, trap] = [new Uint8Array(32), new BigUint64Array(1)];
    const { func, list } = this.#prepare(name, values);
    const count = BigInt(values.length);
    const { api } = this.#wasmtime;
    const error = await api.call_elsewhere(this.#context, func, list, count, results, 1n, trap);
    this.#wasmtime.check(error, trap);
    return resultOf(results);
  }

  #prepare(name: string, values: Argument[]) {
    return { func: this.#export(name), list: valuesOf(values) };
  }

  /** What an export is, after its kind. */
  #export(name: string): Uint8Array<ArrayBuffer> {
    const found = exportOf(this.#wasmtime, this.#context, this.#instance, name);
    if (found === undefined) throw new Error(`the module exports no ${name}`);
    return found;
  }
}

/** Runs a WASI command to its end: its exit code, and what it wrote to its standard error. */
export async function runCommand(
  wasmtime: Wasmtime,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<{ code: number; output: string }> {
  const { api, engine } = wasmtime;
  const path = await Deno.makeTempFile({ prefix: "millrace-wasi-" });
  try {
    const context = contextOf(wasmtime, path);
    const linker = api.wasmtime_linker_new(engine);
    wasmtime.check(api.wasmtime_linker_define_wasi(linker));
    const instance = instantiate(wasmtime, linker, context, wasmtime.compile(bytes));
    const start = exportOf(wasmtime, context, instance, "_start")!;
    const trap = new BigUint64Array(1);
    const none = new Uint8Array(32);
    const error = await api.call_elsewhere(context, start, none, 0n, none, 0n, trap);
    const status = new Int32Array(1);
    // Every command that exits ends with an error, which then has a status.
    const exited = error !== null && api.wasmtime_error_exit_status(error, status);
    const output = await Deno.readTextFile(path);
    if (exited) api.wasmtime_error_delete(error);
    else {
      try {
        wasmtime.check(error, trap);
      } catch (cause) {
        throw new Error(`the command trapped:\n${output}`, { cause });
      }
    }
    api.wasmtime_linker_delete(linker);
    return { code: status[0]!, output };
  } finally {
    await Deno.remove(path);
  }
}

/** A new store's context. A store is one thread's at a time. */
function contextOf({ api, engine }: Wasmtime, stderr: string | undefined): Pointer {
  const context = api.wasmtime_store_context(api.wasmtime_store_new(engine, null, null));
  const config = api.wasi_config_new();
  if (stderr !== undefined) {
    api.wasi_config_set_stderr_file(config, ascii(`${stderr}\0`));
    // A command expects its own name.
    const name = ascii("command\0");
    const address = Deno.UnsafePointer.value(Deno.UnsafePointer.of(name));
    api.wasi_config_set_argv(config, 1n, BigUint64Array.of(address));
  }
  api.wasmtime_context_set_wasi(context, config);
  return context;
}

function instantiate(
  wasmtime: Wasmtime,
  linker: Pointer,
  context: Pointer,
  module: Pointer,
): Uint8Array<ArrayBuffer> {
  const [instance, trap] = [new Uint8Array(16), new BigUint64Array(1)];
  wasmtime.check(
    wasmtime.api.wasmtime_linker_instantiate(linker, context, module, instance, trap),
    trap,
  );
  return instance;
}

function exportOf(
  { api }: Wasmtime,
  context: Pointer,
  instance: Uint8Array<ArrayBuffer>,
  name: string,
): Uint8Array<ArrayBuffer> | undefined {
  const item = new Uint8Array(32);
  const text = ascii(name);
  const size = BigInt(text.length);
  const found = api.wasmtime_instance_export_get(context, instance, text, size, item);
  return found ? item.slice(8) : undefined;
}

function valuesOf(values: Argument[]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(32 * Math.max(1, values.length)));
  for (const [index, value] of values.entries()) {
    if (typeof value === "number") view.setInt32(32 * index + 8, value, true);
    else {
      view.setUint8(32 * index, 3);
      view.setFloat64(32 * index + 8, value.f64, true);
    }
  }
  return new Uint8Array(view.buffer);
}

function resultOf(results: Uint8Array<ArrayBuffer>): number {
  return new DataView(results.buffer).getInt32(8, true);
}

/** The bytes of a `wasm_byte_vec_t`. */
function copyOf([size, data]: BigUint64Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(Number(size));
  if (bytes.length > 0) {
    new Deno.UnsafePointerView(Deno.UnsafePointer.create(data!)!).copyInto(bytes);
  }
  return bytes;
}

function ascii(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
