/**
 * Hashes in a process of its own, for `core_test.ts`. Writes one line of JSON.
 *
 * In mode `refuse`, WebAssembly first refuses every module, as a page's policy can; in mode
 * `allocate`, it measures what updates allocate, with `--v8-flags` as in
 * `testing/allocation_fixture.ts`.
 */

import { Sha1, Sha256 } from "./digest.ts";
import { hasCore } from "./core.ts";

const SHORT = 100;
/** Somewhat more bytes than a thread hashes before it creates the core. */
const MANY = 17 << 20;
/** How often the heap is measured: what a call allocates is seen each time. */
const LOOKS = 5;

const { gc } = globalThis as unknown as { gc(): void };

/** The bytes by which the heap grows for each call, after everything is compiled. */
function allocatedBy(call: () => void, count: number): number {
  for (let n = 0; n < 2_000; n++) call();
  let least = Infinity;
  for (let look = 0; look < LOOKS; look++) {
    gc();
    const before = Deno.memoryUsage().heapUsed;
    for (let n = 0; n < count; n++) call();
    least = Math.min(least, Deno.memoryUsage().heapUsed - before);
  }
  return least / count;
}

function measure(): Record<string, number> {
  const bytes = new Uint8Array(new SharedArrayBuffer(64 * 1024)).fill(7);
  const [short, target] = [bytes.subarray(0, SHORT), new Uint8Array(20)];
  const digest = new Sha1();
  while (!hasCore()) digest.update(bytes);
  return {
    "update of 100 bytes": allocatedBy(() => void digest.update(short), 5_000),
    "update of 64 KiB": allocatedBy(() => void digest.update(bytes), 500),
    "digestInto": allocatedBy(() => digest.digestInto(target), 5_000),
    "reset": allocatedBy(() => void digest.reset(), 5_000),
    "canary: digest": allocatedBy(() => void digest.digest(), 5_000),
  };
}

function play(): unknown {
  const bytes = new Uint8Array(new SharedArrayBuffer(200_000));
  for (let at = 0; at < bytes.length; at++) bytes[at] = at * 7 + (at >> 8);
  const core = [hasCore()];
  const hex: string[] = [];
  for (const size of [bytes.length, MANY]) {
    const other = new Sha1();
    while (other.length < size) other.update(bytes);
    core.push(hasCore());
    for (const digest of [new Sha1(), new Sha256()]) hex.push(digest.update(bytes).hex());
  }
  return { core, hex };
}

if (Deno.args.includes("refuse")) {
  (WebAssembly as { Module: unknown }).Module = class {
    constructor() {
      throw new WebAssembly.CompileError("Refused to compile or instantiate a module");
    }
  };
}
console.log(JSON.stringify(Deno.args.includes("allocate") ? measure() : play()));
