/**
 * An engine of wasmtime whose guests can be ended in the middle of a call, and one guest as a
 * testee.
 *
 * @module
 */

import type { GuestMemory } from "../../../impl-zig/wasmtime_fixture.ts";
import { Wasmtime } from "../../../impl-zig/wasmtime_fixture.ts";
import type { Shared } from "../../testees/server.ts";
import type { Named } from "../../testees/zig/guest.ts";
import { WasmtimeGuest } from "../../testees/zig/wasmtime_guest.ts";
import { Trouble } from "../verdict.ts";
import type { MemoryLink } from "./deno.ts";

/** What the fixture of the tests does not need. */
const SYMBOLS = {
  wasm_config_new: { parameters: [], result: "pointer" },
  wasmtime_config_wasm_threads_set: { parameters: ["pointer", "bool"], result: "void" },
  wasmtime_config_shared_memory_set: { parameters: ["pointer", "bool"], result: "void" },
  wasmtime_config_epoch_interruption_set: { parameters: ["pointer", "bool"], result: "void" },
  wasm_engine_new_with_config: { parameters: ["pointer"], result: "pointer" },
  wasmtime_engine_increment_epoch: { parameters: ["pointer"], result: "void" },
  wasmtime_context_set_epoch_deadline: { parameters: ["pointer", "u64"], result: "void" },
  wasmtime_store_epoch_deadline_callback: {
    parameters: ["pointer", "function", "pointer", "pointer"],
    result: "void",
  },
  wasmtime_error_new: { parameters: ["buffer"], result: "pointer" },
} as const;

const AT_DEADLINE = {
  parameters: ["pointer", "pointer", "pointer", "pointer"],
  result: "pointer",
} as const;

type Pointer = Deno.PointerValue;

/** Epochs that never come. */
const NEVER = 1n << 40n;
const ENDED = new TextEncoder().encode("the kit has ended it\0");
/** A guest that sleeps looks up at the end of its slice; this is some of the long ones. */
const KILL_MS = 5_000;

/** An engine, for guests and for the threads of hosts. Never given back. */
export class Engine {
  readonly library: string;
  readonly pointer: Pointer;
  readonly #symbols: Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

  /** Makes one, or finds the one of another thread. */
  constructor(library: string, pointer?: Pointer) {
    this.library = library;
    const symbols = this.#symbols = Deno.dlopen(library, SYMBOLS).symbols;
    if (pointer !== undefined) {
      this.pointer = pointer;
      return;
    }
    const config = symbols.wasm_config_new();
    symbols.wasmtime_config_wasm_threads_set(config, true);
    symbols.wasmtime_config_shared_memory_set(config, true);
    symbols.wasmtime_config_epoch_interruption_set(config, true);
    this.pointer = symbols.wasm_engine_new_with_config(config);
  }

  /**
   * The library as the fixture has it, on this engine. What is instantiated with it is asked by
   * `isOver`, at every tick, whether its call ends there; without that it never is.
   */
  api(isOver?: () => boolean): Wasmtime {
    const known = loaded ??= new Wasmtime(this.library);
    const wasmtime_store_new: typeof known.api.wasmtime_store_new = (...given) => {
      const store = known.api.wasmtime_store_new(...given);
      const context = known.api.wasmtime_store_context(store);
      const ticks = isOver === undefined ? NEVER : 1n;
      this.#symbols.wasmtime_context_set_epoch_deadline(context, ticks);
      if (isOver !== undefined) this.#ask(store, isOver);
      return store;
    };
    return Object.create(known, {
      engine: { value: this.pointer },
      api: { value: { ...known.api, wasmtime_store_new } },
    });
  }

  /** Has every guest asked whether it is over. */
  tick(): void {
    this.#symbols.wasmtime_engine_increment_epoch(this.pointer);
  }

  #ask(store: Pointer, isOver: () => boolean): void {
    const callback = new Deno.UnsafeCallback(AT_DEADLINE, (_context, _given, ticks) => {
      if (isOver()) return this.#symbols.wasmtime_error_new(ENDED);
      new BigUint64Array(Deno.UnsafePointerView.getArrayBuffer(ticks!, 8))[0] = 1n;
      return null;
    });
    // The store has it for ever.
    callbacks.push(callback);
    this.#symbols.wasmtime_store_epoch_deadline_callback(store, callback.pointer, null, null);
  }
}

/** A library is loaded once a thread. */
let loaded: Wasmtime | undefined;
const callbacks: object[] = [];

/** A guest that answers commands. */
export class GuestLink implements MemoryLink {
  readonly memory: GuestMemory;
  readonly #engine: Engine;
  readonly #guest: WasmtimeGuest;
  readonly #places = new Map<string, Named>();
  #reply: Promise<unknown> = Promise.resolve();
  #isOver = false;

  /** `index` tells the two guests on a memory apart. */
  constructor(engine: Engine, module: Deno.PointerValue, memory: GuestMemory, index: number) {
    this.#engine = engine;
    this.memory = memory;
    this.#guest = new WasmtimeGuest(engine.api(() => this.#isOver), module, memory, index);
  }

  share({ memory: name, offset, size }: Shared): void {
    this.#places.set(name, { offset, size });
  }

  send(command: object): void {
    const { carrier, name } = command as { carrier?: string; name?: string };
    const named = carrier === "shared" ? this.#places.get(name!) : undefined;
    this.#reply = this.#guest.answer(JSON.stringify(command), named).then(
      (reply) => JSON.parse(reply),
      (error: Error) => {
        throw new Trouble("error", this.#isOver ? "the guest was ended" : error.message);
      },
    );
    this.#reply.catch(() => {}); // it may come when nobody waits any more
  }

  async next(timeoutMs: number): Promise<unknown> {
    const late = Symbol();
    const reply = await within(this.#reply, timeoutMs, late);
    if (reply !== late) return reply;
    throw new Trouble("timeout", `no reply within ${(timeoutMs / 1000).toFixed(1)} s`);
  }

  notes(): string {
    return "";
  }

  async kill(): Promise<void> {
    this.#isOver = true;
    this.#engine.tick();
    await within(this.#reply.catch(() => {}), KILL_MS, undefined);
  }
}

/** What a promise gives, or something else where it takes too long. */
async function within<T, Late>(promise: Promise<T>, ms: number, late: Late): Promise<T | Late> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = new Promise<Late>((resolve) => {
    timer = setTimeout(() => resolve(late), ms);
  });
  try {
    return await Promise.race([promise, end]);
  } finally {
    clearTimeout(timer);
  }
}
