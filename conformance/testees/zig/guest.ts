/**
 * One instance of the testee's module, from the side of a JavaScript host. See `guest.zig`.
 *
 * @module
 */

/** What `guest.zig` exports. */
interface Exports {
  readonly __stack_pointer: WebAssembly.Global;
  testee_heap_base(): number;
  testee_init(address: number, size: number, mechanism: number): number;
  testee_room(testee: number, size: number): number;
  testee_command(testee: number, size: number, address: number, memorySize: number): number;
  testee_reply(testee: number): number;
  testee_fault(): number;
}

/** Memory that a command names. */
export interface Named {
  readonly offset: number;
  readonly size: number;
}

/** What belongs to one of the two guests that may share a memory. */
const REGION_SIZE = 4 << 20;
const STACK_SIZE = 256 << 10;
const ALIGN = 128;
/** Agents of JavaScript wake one another, and guests in them. */
const AGENT = 1;

/** Where the things of one guest lie: its stack, from the top down, and then all else. */
export interface Region {
  readonly stackTop: number;
  /** Of all that `testee_init` gets. */
  readonly address: number;
  readonly size: number;
  /** A word for the host, to know a memory by. */
  readonly mark: number;
}

/** The region of a guest. The first begins after the module's own data. */
export function regionOf(heapBase: number, index: number): Region {
  const begin = index === 0 ? Math.ceil(heapBase / ALIGN) * ALIGN : index * REGION_SIZE;
  const mark = (index + 1) * REGION_SIZE - ALIGN;
  const address = begin + STACK_SIZE;
  return { stackTop: address, address, size: mark - address, mark };
}

/** Bytes of the first region: a memory for one guest alone. */
export const LONE_SIZE = REGION_SIZE;

/** A guest, which belongs to the thread that made it. */
export class Guest {
  readonly #exports: Exports;
  readonly #memory: WebAssembly.Memory;
  readonly #testee: number;
  /** A word that the guest leaves alone. */
  readonly mark: Int32Array;

  /** Instantiates the module; all that it will ever need lies in the region of that index. */
  constructor(module: WebAssembly.Module, memory: WebAssembly.Memory, index: number) {
    const { exports } = new WebAssembly.Instance(module, {
      env: { memory },
      millrace: { now_us: () => performance.now() * 1000 },
    });
    this.#exports = exports as unknown as Exports;
    this.#memory = memory;
    const region = regionOf(this.#exports.testee_heap_base(), index);
    this.#exports.__stack_pointer.value = region.stackTop;
    this.#testee = this.#exports.testee_init(region.address, region.size, AGENT);
    this.mark = new Int32Array(memory.buffer, region.mark, 1);
  }

  /** Answers a command, and blocks as long as what it asks for. Throws what the testee died of. */
  answer(command: string, { offset, size }: Named = { offset: 0, size: 0 }): string {
    const bytes = new TextEncoder().encode(command);
    const { testee_room, testee_command, testee_reply } = this.#exports;
    try {
      this.#bytes(testee_room(this.#testee, bytes.length), bytes.length).set(bytes);
      const length = testee_command(this.#testee, bytes.length, offset, size);
      // A copy, because a decoder does not take shared memory.
      const reply = this.#bytes(testee_reply(this.#testee), length).slice();
      return new TextDecoder().decode(reply);
    } catch (error) {
      throw new Error(`the Zig testee died: ${this.#fault()}`, { cause: error });
    }
  }

  #bytes(address: number, size: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#memory.buffer as ArrayBuffer, address >>> 0, size);
  }

  #fault(): string {
    const text = this.#bytes(this.#exports.testee_fault(), 256).slice();
    return new TextDecoder().decode(text.subarray(0, text.indexOf(0)));
  }
}
