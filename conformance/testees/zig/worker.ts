/**
 * The Zig implementation, as WebAssembly, in a worker of any JavaScript host: it gets `{ module }`
 * with the bytes of `testee_guest.wasm`, then memories and commands as `conformance/protocol/`
 * says.
 *
 * Nothing but the web platform, for it runs in browsers too.
 *
 * @module
 */

import { scope } from "../../../tools/worker_scope.ts";
import { Guest, LONE_SIZE, type Named } from "./guest.ts";

/** Memory that was handed over under a name. */
interface Shared {
  readonly memory: string;
  readonly offset: number;
  readonly size: number;
  readonly wasm?: WebAssembly.Memory;
  readonly index?: number;
}

/** The members of a command that decide which guest gets it. */
interface Command {
  readonly handle?: number;
  readonly command: string;
  readonly carrier?: string;
  readonly name?: string;
}

/** A memory by its name, and the guest in it; none where no guest can be. */
interface Place extends Named {
  readonly guest: Guest | undefined;
}

const PAGE = 65_536;

/** Sends each command to the guest in whose memory it plays. */
class Guests {
  readonly #module: WebAssembly.Module;
  /** On memory that nobody else sees, for carrier `bytes` and all that has no memory. */
  readonly #own: Guest;
  readonly #places = new Map<string, Place>();
  readonly #handles = new Map<number, Guest>();
  /** Of the memory that was handed over last, with the mark that this worker has left there. */
  #latest: { mark: number; guest: Guest } | undefined;

  constructor(module: WebAssembly.Module) {
    this.#module = module;
    const pages = LONE_SIZE / PAGE;
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    this.#own = new Guest(module, memory, 0);
  }

  share({ memory: name, offset, size, wasm, index = 0 }: Shared): void {
    const guest = wasm === undefined ? undefined : this.#guestIn(wasm, index);
    this.#places.set(name, { guest, offset, size });
  }

  answer(command: Command): unknown {
    const { handle = 0 } = command;
    const place = command.command === "open" && command.carrier === "shared"
      ? this.#places.get(command.name!)
      : undefined;
    const guest = place?.guest ?? this.#handles.get(handle) ?? this.#own;
    const named = place?.guest === undefined ? undefined : place;
    const reply = guest.answer(JSON.stringify(command), named);
    if (command.command === "open" && guest !== this.#own) this.#handles.set(handle, guest);
    if (command.command === "drop") this.#handles.delete(handle);
    return JSON.parse(reply);
  }

  /**
   * The guest in a memory. The same memory comes as another object each time, and so it is known by
   * a mark at the end of the guest's region.
   */
  #guestIn(memory: WebAssembly.Memory, index: number): Guest {
    const latest = this.#latest;
    if (latest !== undefined) {
      const mark = new Int32Array(memory.buffer, latest.guest.mark.byteOffset, 1);
      if (Atomics.load(mark, 0) === latest.mark) return latest.guest;
    }
    const guest = new Guest(this.#module, memory, index);
    this.#latest = { mark: newMark(), guest };
    Atomics.store(guest.mark, 0, this.#latest.mark);
    // Memories are large: none is kept that is not in use.
    const used = [...this.#handles.values()];
    for (const [name, { guest }] of this.#places) {
      if (guest === undefined || !used.includes(guest)) this.#places.delete(name);
    }
    return guest;
  }
}

/** A number that no other worker has, and that blank memory does not hold. */
function newMark(): number {
  return crypto.getRandomValues(new Int32Array(1))[0]! | 1;
}

let guests: Guests | undefined;

scope.onmessage = ({ data }) => {
  if ("module" in data) guests = new Guests(new WebAssembly.Module(data.module));
  else if (guests === undefined) throw new Error("a command came before the module");
  else if ("buffer" in data) guests.share(data);
  else scope.postMessage(guests.answer(data));
};
scope.postMessage({ ready: true });
