/**
 * One process of Deno: testees in workers, on one shared memory.
 *
 * @module
 */

import type { Arena, Carrier, Field, FieldPlan, Program, Slept } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { threadsOf } from "../race/processors.ts";
import type { Order } from "../race/orders.ts";
import { type Race, Racer } from "../race/racer.ts";
import { type Link, Seat } from "../link.ts";
import type { Shared } from "../../testees/server.ts";
import { WorkerLink } from "../worker_link.ts";

const PAGE = 65_536;
/** The first 16 MiB belong to the WebAssembly guests; fields follow, each with room for itself. */
const FIELDS_AT = 16 << 20;
const SLOT_SIZE = 1 << 20;
const SLOTS = 8;
const AGENT = 1;

/** Workers of one process of Deno. */
export const deno: Carrier = {
  name: "deno",
  refuses: ({ worker }) => worker === undefined ? "does not run in a worker" : undefined,
  starts: () => "worker",
  open: (programs) => Promise.resolve(new WorkerArena(programs)),
  // Nobody but a supervisor can find out that a worker is gone; here it is the kit.
  death: "peer.terminated",
  hasRoom: true,
  own: [{ name: "kit", worker: new URL("../../testees/broken/worker.ts", import.meta.url) }],
};

/** A testee that can be handed memory of this process. */
export interface MemoryLink extends Link {
  share(memory: Shared): void | Promise<void>;
}

/** Any agents of this process, in Deno or wherever this runs. */
export class WorkerArena implements Arena {
  readonly #seats: Seat<MemoryLink>[];
  readonly #racer: Racer;
  #memory: WebAssembly.Memory | undefined;
  #fields = 0;

  constructor(
    programs: Program[],
    start: (program: Program) => MemoryLink = startWorker,
    racer: Racer = new Racer(),
  ) {
    this.#seats = programs.map((program) => new Seat(() => start(program)));
    this.#racer = racer;
  }

  connect(index: number): Promise<Connection> {
    return this.#seats[index]!.take();
  }

  threads(): number[] {
    return threadsOf();
  }

  async field({ size, image }: FieldPlan): Promise<Field> {
    if (size > SLOT_SIZE) throw new RangeError(`a field of ${size} bytes is too large`);
    // A memory costs gigabytes of address space: one serves until a worker was killed on it.
    this.#memory ??= new WebAssembly.Memory({
      initial: (FIELDS_AT + SLOTS * SLOT_SIZE) / PAGE,
      maximum: 16_384,
      shared: true,
    });
    const memory = this.#memory;
    const count = ++this.#fields;
    const offset = FIELDS_AT + count % SLOTS * SLOT_SIZE;
    const bytes = new Uint8Array(memory.buffer, offset, size);
    bytes.fill(0);
    if (image !== undefined) bytes.set(image);
    const name = `memory ${count}`;
    for (const [index, seat] of this.#seats.entries()) {
      await seat.take();
      const buffer = memory.buffer as unknown as SharedArrayBuffer;
      await seat.link!.share({ memory: name, buffer, offset, size, wasm: memory, index });
    }
    const words = new Int32Array(memory.buffer, offset, size >> 2);
    return new WorkerField(name, words, this.#racer);
  }

  async kill(index: number): Promise<void> {
    // A worker may outlive its end for the rest of a call; it keeps the memory that it has.
    this.#memory = undefined;
    await this.#seats[index]!.kill();
  }

  async close(): Promise<void> {
    this.#racer.end();
    for (const seat of this.#seats) await seat.kill();
  }
}

/** A page must not. */
const mayBlock = (() => {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0);
    return true;
  } catch {
    return false;
  }
})();

function startWorker({ worker, first }: Program): MemoryLink {
  return new WorkerLink(worker!, first);
}

class WorkerField implements Field {
  readonly wakes = AGENT;
  readonly #name: string;
  readonly #words: Int32Array;
  readonly sleepHere: Field["sleepHere"];
  readonly #racer: Racer;

  constructor(name: string, words: Int32Array, racer: Racer) {
    this.#name = name;
    this.#words = words;
    this.sleepHere = mayBlock ? (...given) => Atomics.wait(words, ...given) : undefined;
    this.#racer = racer;
  }

  place() {
    return { carrier: "shared", name: this.#name } as const;
  }

  words(): Int32Array {
    return this.#words;
  }

  notify(index: number): number {
    return Atomics.notify(this.#words, index);
  }

  async sleep(index: number, value: number, timeoutMs: number): Promise<Slept> {
    const words = this.#words as Int32Array<SharedArrayBuffer>;
    return await Atomics.waitAsync(words, index, value, timeoutMs).value;
  }

  race(order: Order): Race {
    const { buffer, byteOffset: offset, byteLength: size } = this.#words;
    return this.#racer.race(order, { buffer, offset, size });
  }

  halt(): Promise<void> {
    return this.#racer.halt();
  }

  release(): void {}
}
