/**
 * One engine of wasmtime in this process: guests on one memory, and a host that views it. Guests
 * wake one another; the host rings them, and cannot be rung.
 *
 * @module
 */

import { Guest, GuestMemory } from "../../../impl-zig/wasmtime_fixture.ts";
import { requiresAll } from "../../../tools/test_counts.ts";
import { findWasmtime } from "../../testees/zig/wasi.ts";
import type { Arena, Carrier, Field, FieldPlan, Program, Slept } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { threadsOf } from "../race/processors.ts";
import type { Order } from "../race/orders.ts";
import { type Race, Racer } from "../race/racer.ts";
import { Seat } from "../link.ts";
import { Trouble } from "../verdict.ts";
import { WorkerLink } from "../worker_link.ts";
import type { MemoryLink } from "./deno.ts";
import { Engine, GuestLink } from "./wasmtime_engine.ts";
import type { Address, Library } from "./wasmtime_host.ts";

const PAGE = 65_536;
/** As with workers: first the guests, then fields. */
const GUEST_SIZE = 4 << 20;
const FIELDS_AT = 2 * GUEST_SIZE;
const SLOT_SIZE = 1 << 20;
const SLOTS = 8;
const STACK_SIZE = 128 << 10;
const WASMTIME = 4;
/** What `testee_sleep` returns. */
const SLEPT: readonly Slept[] = ["ok", "not-equal", "timed-out"];

const HOST = new URL("wasmtime_host.ts", import.meta.url);

/** What a program says of itself in `ways.wasmtime`. */
export interface Way {
  as: "guest" | "host";
  /** Gives the bytes of `testee_guest.wasm`, with which a host rings. */
  module: () => Promise<ArrayBuffer>;
}

/** Guests under wasmtime, and a host with them. */
export const wasmtime: Carrier = {
  name: "wasmtime",
  refuses(program, others) {
    const way = wayOf(program);
    if (way?.as === "host" && others.some((other) => wayOf(other)?.as === "host")) {
      return "is a host of guests, and there is none";
    }
    if (way === undefined) return "runs neither under wasmtime nor as its host";
    // Where nothing may be skipped, its cases are run, and say what is missing.
    return findWasmtime() === undefined && !requiresAll() ? "finds no libwasmtime" : undefined;
  },
  open: (programs) => Promise.resolve(new GuestArena(programs)),
  // Nobody but a supervisor can find out that a guest is gone; here it is the kit.
  death: "peer.terminated",
};

/** What all arenas share: it is never given back. */
interface Base {
  engine: Engine;
  module: Deno.PointerValue;
}

let base: Base | undefined;

class GuestArena implements Arena {
  readonly #seats: Seat<MemoryLink>[];
  readonly #programs: Program[];
  readonly #racer = new Racer();
  #base: Base | undefined;
  #memory: GuestMemory | undefined;
  #ringer: Guest | undefined;
  #fields = 0;

  constructor(programs: Program[]) {
    this.#programs = programs;
    this.#seats = programs.map((program, index) => new Seat(() => this.#start(program, index)));
  }

  async connect(index: number): Promise<Connection> {
    await this.#prepare();
    return await this.#seats[index]!.take();
  }

  threads(): number[] {
    return threadsOf();
  }

  async field({ size, image }: FieldPlan): Promise<Field> {
    if (size > SLOT_SIZE) throw new RangeError(`a field of ${size} bytes is too large`);
    await this.#prepare();
    const memory = this.#memory!;
    const count = ++this.#fields;
    const offset = FIELDS_AT + count % SLOTS * SLOT_SIZE;
    const bytes = new Uint8Array(memory.buffer, offset, size);
    bytes.fill(0);
    if (image !== undefined) bytes.set(image);
    const name = `memory ${count}`;
    for (const [index, seat] of this.#seats.entries()) {
      await seat.take();
      await seat.link!.share({ memory: name, buffer: memory.buffer, offset, size, index });
    }
    const words = new Int32Array(memory.buffer, offset, size >> 2);
    return new GuestField(name, words, this.#ringer!, this.#racer);
  }

  async kill(index: number): Promise<void> {
    await this.#seats[index]!.kill();
    // A host may outlive its end for the rest of a call; it keeps the memory that it has.
    this.#memory = undefined;
  }

  async close(): Promise<void> {
    this.#racer.end();
    for (const seat of this.#seats) await seat.kill();
  }

  /** Makes the engine and the memory where there is none, and then all testees anew. */
  async #prepare(): Promise<void> {
    if (this.#memory !== undefined) return;
    for (const seat of this.#seats) await seat.kill();
    this.#base = base ??= await this.#load();
    const { engine, module } = this.#base;
    const pages = (FIELDS_AT + SLOTS * SLOT_SIZE) / PAGE;
    this.#memory = new GuestMemory(engine.api(), pages, 16_384);
    // Its stack is the one that no guest uses once it has said where its data end.
    this.#ringer = new Guest(engine.api(), module, this.#memory, 0);
  }

  async #load(): Promise<Base> {
    const library = findWasmtime();
    if (library === undefined) throw new Trouble("error", "there is no libwasmtime here");
    const bytes = await wayOf(this.#programs[0]!)!.module();
    const engine = new Engine(library);
    return { engine, module: engine.api().compile(new Uint8Array(bytes)) };
  }

  #start(program: Program, index: number): MemoryLink {
    const { engine, module } = this.#base!;
    const memory = this.#memory!;
    return wayOf(program)!.as === "guest"
      ? new GuestLink(engine, module, memory, index)
      : new HostLink(engine, module, memory, index);
  }
}

function wayOf({ ways }: Program): Way | undefined {
  return ways?.["wasmtime"] as Way | undefined;
}

/** A worker that is told addresses. */
class HostLink extends WorkerLink implements MemoryLink {
  readonly #memory: GuestMemory;
  readonly #stack: number;

  constructor(engine: Engine, module: Deno.PointerValue, memory: GuestMemory, index: number) {
    const first: Library = {
      library: engine.library,
      engine: Deno.UnsafePointer.value(engine.pointer),
      module: Deno.UnsafePointer.value(module),
    };
    super(HOST, () => Promise.resolve(first));
    this.#memory = memory;
    // In the region of the guest that it stands for.
    this.#stack = (index + 1) * GUEST_SIZE - STACK_SIZE;
  }

  override async share({ memory, offset, size }: Parameters<MemoryLink["share"]>[0]) {
    const { pointer, buffer } = this.#memory;
    const address: Address = {
      memory,
      pointer: Deno.UnsafePointer.value(pointer),
      base: Deno.UnsafePointer.value(Deno.UnsafePointer.of(new Uint8Array(buffer))),
      length: buffer.byteLength,
      offset,
      size,
      stack: this.#stack,
    };
    await super.share(address);
  }
}

class GuestField implements Field {
  readonly wakes = WASMTIME;
  readonly #name: string;
  readonly #words: Int32Array;
  readonly #ringer: Guest;
  readonly #racer: Racer;

  constructor(name: string, words: Int32Array, ringer: Guest, racer: Racer) {
    this.#name = name;
    this.#words = words;
    this.#ringer = ringer;
    this.#racer = racer;
  }

  place() {
    return { carrier: "shared", name: this.#name } as const;
  }

  words(): Int32Array {
    return this.#words;
  }

  notify(index: number): number {
    return this.#ringer.call("testee_notify", this.#words.byteOffset + 4 * index);
  }

  sleepHere(index: number, value: number, timeoutMs: number): Slept {
    const address = this.#words.byteOffset + 4 * index;
    return SLEPT[this.#ringer.call("testee_sleep", address, value, timeoutMs)]!;
  }

  race(order: Order): Race {
    const bytes = new Uint8Array(this.#words.buffer, this.#words.byteOffset);
    const address = Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes));
    return this.#racer.race(order, { address, size: this.#words.byteLength });
  }

  halt(): Promise<void> {
    return this.#racer.halt();
  }

  release(): void {}
}
