/**
 * One instance of the testee's module under wasmtime, from the side of a host in Deno.
 *
 * @module
 */

import { Guest, type GuestMemory, type Wasmtime } from "../../../impl-zig/wasmtime_fixture.ts";
import { type Named, regionOf } from "./guest.ts";

/** Guests wake one another, and nobody else does. */
const WASMTIME = 4;
/** What the fixture adds to the address of a stack. */
const FIXTURE_STACK_SIZE = 128 << 10;

/** A guest, which has one call at a time. */
export class WasmtimeGuest {
  readonly #guest: Guest;
  readonly #memory: GuestMemory;
  readonly #testee: number;

  /** `module` is `testee_guest.wasm`, compiled; the first 8 MiB of the memory are the guests'. */
  constructor(
    wasmtime: Wasmtime,
    module: Deno.PointerValue,
    memory: GuestMemory,
    index: number,
  ) {
    // Where its data end, it says without a stack of its own.
    const asked = new Guest(wasmtime, module, memory, 0);
    const region = regionOf(asked.call("testee_heap_base"), index);
    const stack = region.stackTop - FIXTURE_STACK_SIZE;
    this.#guest = new Guest(wasmtime, module, memory, stack);
    this.#memory = memory;
    this.#testee = this.#guest.call("testee_init", region.address, region.size, WASMTIME);
  }

  /** Answers a command, on a thread where it may block. Throws what the testee died of. */
  async answer(command: string, { offset, size }: Named = { offset: 0, size: 0 }): Promise<string> {
    const bytes = new TextEncoder().encode(command);
    const room = this.#guest.call("testee_room", this.#testee, bytes.length);
    this.#bytes(room, bytes.length).set(bytes);
    try {
      const words = [this.#testee, bytes.length, offset, size];
      const length = await this.#guest.callElsewhere("testee_command", ...words);
      const reply = this.#guest.call("testee_reply", this.#testee);
      return new TextDecoder().decode(this.#bytes(reply, length));
    } catch (error) {
      throw new Error(`the Zig testee died: ${this.#fault()}`, { cause: error });
    }
  }

  /** Wakes the guests that sleep on the word at an address: a host has no other way to. */
  notify(address: number): number {
    return this.#guest.call("testee_notify", address);
  }

  #bytes(address: number, size: number): Uint8Array {
    return new Uint8Array(this.#memory.buffer, address >>> 0, size);
  }

  #fault(): string {
    const text = this.#bytes(this.#guest.call("testee_fault"), 256);
    return new TextDecoder().decode(text.slice(0, text.indexOf(0)));
  }
}
