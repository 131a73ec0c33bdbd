/**
 * Feeds blocks into the state of a digest. That is done in TypeScript, or, for long runs of SHA-1
 * blocks in a thread that has hashed many bytes, by a core in WebAssembly, which is a fifth faster
 * (1.7 against 2.0 µs for 1 KiB, V8 13.6 and 15; SHA-256 would gain 6 % at most). The core is
 * compiled from `impl-zig/src/digest/core_module.zig`. It has memory of its own, into which the
 * blocks are copied.
 *
 * @module
 */

import { CORE } from "./core_module.ts";
import { type Kind, SHA1 } from "./kind.ts";

/** From this many bytes at a time, the core is faster. */
const LONG = 256;
/**
 * The bytes of long runs that a thread hashes before it creates the core: 33 ms in TypeScript.
 * Engines compile a module quickly at first, and V8's first code for this one is five times as slow
 * as the TypeScript rounds, until its optimized code is ready.
 */
const BYTES_UNTIL_CORE = 16 * 1024 * 1024;
/** The most bytes that the core takes at one time: a multiple of a block. */
const AREA_SIZE = 64 * 1024;
/** Copies keep their source's alignment to this: only then is shared memory copied by words. */
const ALIGN = 8;
const STATE_WORDS = SHA1.size / 4;

/** The exports of the module. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly state: WebAssembly.Global;
  readonly area: WebAssembly.Global;
  sha1(offset: number, size: number): void;
}

/** An instance of the core. */
interface Core {
  readonly exports: Exports;
  readonly state: Int32Array;
  readonly area: Uint8Array;
}

/** The core of this thread, once it is created. */
let core: Core | undefined;
/**
 * Bytes until the core is created; Infinity once it was created or has turned out to be impossible.
 */
let bytesUntilCore = BYTES_UNTIL_CORE;

/** Whether this thread has a core. */
export function hasCore(): boolean {
  return core !== undefined;
}

/** Feeds the whole blocks from `from` to `to` into a state. */
export function hashBlocks(
  kind: Kind,
  state: Int32Array,
  bytes: Uint8Array,
  from: number,
  to: number,
): void {
  const able = kind !== SHA1 || to - from < LONG ? undefined : core ?? countTowardsCore(to - from);
  if (able === undefined) kind.blocks(state, bytes, from, to);
  else runCore(able, state, bytes, from, to);
}

/**
 * Counts the bytes hashed by a thread without a core, and creates the core after enough of them.
 */
function countTowardsCore(size: number): Core | undefined {
  bytesUntilCore -= size;
  if (bytesUntilCore > 0) return undefined;
  core = makeCore();
  bytesUntilCore = Infinity;
  return core;
}

/**
 * Creates the core synchronously, which takes some 0.5 ms. Returns undefined without WebAssembly,
 * without its vectors, or if a page's policy forbids it (`script-src` without `wasm-unsafe-eval`).
 */
function makeCore(): Core | undefined {
  try {
    const module = new WebAssembly.Module(bytesOf(CORE));
    const exports = new WebAssembly.Instance(module).exports as unknown as Exports;
    const { buffer } = exports.memory;
    return {
      exports,
      state: new Int32Array(buffer, exports.state.value, STATE_WORDS),
      area: new Uint8Array(buffer, exports.area.value, AREA_SIZE + ALIGN),
    };
  } catch {
    return undefined;
  }
}

function runCore(
  { exports, state: words, area }: Core,
  state: Int32Array,
  bytes: Uint8Array,
  from: number,
  to: number,
): void {
  for (let index = 0; index < STATE_WORDS; index++) words[index] = state[index] as number;
  if (bytes.length <= AREA_SIZE && !isGrowable(bytes)) {
    // If all of the array is copied, no view is needed.
    const offset = bytes.byteOffset % ALIGN;
    area.set(bytes, offset);
    exports.sha1(offset + from, to - from);
  } else {
    for (let at = from; at < to; at += AREA_SIZE) {
      const part = bytes.subarray(at, Math.min(at + AREA_SIZE, to));
      const offset = part.byteOffset % ALIGN;
      area.set(part, offset);
      exports.sha1(offset, part.length);
    }
  }
  for (let index = 0; index < STATE_WORDS; index++) state[index] = words[index] as number;
}

/** Whether another thread may have made the array longer since its length was read. */
function isGrowable({ buffer }: Uint8Array): boolean {
  return (buffer as { growable?: boolean }).growable === true;
}

/** Decodes base64: an audio worklet has no function for it. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const size = text.length / 4 * 3 - (text.length - text.replace(/=+$/, "").length);
  const bytes = new Uint8Array(size);
  let [bits, count, at] = [0, 0, 0];
  for (let index = 0; at < size; index++) {
    bits = bits << 6 | sixBits(text.charCodeAt(index));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes[at++] = bits >> count;
  }
  return bytes;
}

/** The value of a base64 character. */
function sixBits(code: number): number {
  if (code >= 97) return code - 71;
  if (code >= 65) return code - 65;
  if (code >= 48) return code + 4;
  return code === 43 ? 62 : 63;
}
