/**
 * Who takes blocks into a state: the rounds in TypeScript, or, for long runs of blocks of SHA-1 in
 * a thread that has had many, a core in WebAssembly, which is a fifth faster (1.7 against 2.0 µs
 * for 1 KiB, V8 13.6 and 15; SHA-256 would gain 6 % at most). It is compiled from
 * `impl-zig/src/digest_wasm.zig`, and has a memory of its own, into which the blocks are copied.
 *
 * @module
 */

import { CORE } from "./digest_core_module.ts";
import { type Kind, SHA1 } from "./digest_kind.ts";

/** Bytes at a time from which on the core is faster. */
const LONG = 256;
/**
 * Bytes of long runs that a thread takes before it makes the core: in TypeScript, 33 ms. An engine
 * translates a module in haste at first, and V8's first code for this one is five times as slow as
 * the rounds in TypeScript, until its good code is ready.
 */
const PATIENCE = 16 * 1024 * 1024;
/** Bytes that the core takes at a time: a multiple of a block. */
const AREA_SIZE = 64 * 1024;
/** Where memory is aligned as it was, it is copied a word at a time, and shared memory else not. */
const ALIGN = 8;
const STATE_WORDS = SHA1.size / 4;

/** What the module exports. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly state: WebAssembly.Global;
  readonly area: WebAssembly.Global;
  sha1(offset: number, size: number): void;
}

/** A running core. */
interface Core {
  readonly exports: Exports;
  readonly state: Int32Array;
  readonly area: Uint8Array;
}

/** That of this thread, once there is one. */
let core: Core | undefined;
/** Bytes until it is made; without end where it cannot be. */
let patience = PATIENCE;

/** Whether this thread has a core. */
export function hasCore(): boolean {
  return core !== undefined;
}

/** Takes whole blocks, from one place to another, into a state. */
export function hashBlocks(
  kind: Kind,
  state: Int32Array,
  bytes: Uint8Array,
  from: number,
  to: number,
): void {
  const able = kind !== SHA1 || to - from < LONG ? undefined : core ?? mature(to - from);
  if (able === undefined) kind.blocks(state, bytes, from, to);
  else runCore(able, state, bytes, from, to);
}

/** Counts the bytes of a thread without a core, and makes it when its time has come. */
function mature(size: number): Core | undefined {
  patience -= size;
  if (patience > 0) return undefined;
  core = makeCore();
  patience = Infinity;
  return core;
}

/**
 * Makes the core, on the spot: some 0.5 ms. Where there is no WebAssembly, none with vectors, or
 * none that a page's policy allows (`script-src` without `wasm-unsafe-eval`), there is no core.
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
    // With what is around the blocks, it needs no view.
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

/** Whether another thread can make the array longer than it was a moment ago. */
function isGrowable({ buffer }: Uint8Array): boolean {
  return (buffer as { growable?: boolean }).growable === true;
}

/** Decodes base64: an audio worklet has nothing for it. */
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

/** What a letter of base64 stands for. */
function sixBits(code: number): number {
  if (code >= 97) return code - 71;
  if (code >= 65) return code - 65;
  if (code >= 48) return code + 4;
  return code === 43 ? 62 : 63;
}
