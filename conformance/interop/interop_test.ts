// Both implementations on one segment, in two real threads: every message of a seed must arrive,
// in order and to the byte, whoever writes and whoever reads.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { portGeometry, Segment, segmentSize } from "../../impl-ts/src/mod.ts";
import { buildWasmWorker } from "../../tools/wasm_worker.ts";
import type { Answer, Language, Order, Role } from "./order.ts";

const PAGE = 65_536;
/** Below the segment: the Zig module's stack and variables. */
const PROGRAM_PAGES = 32;
/** Bounds each wait of a worker, and, a little more, the whole of one run. */
const TIMEOUT = 20_000;

interface End {
  readonly language: Language;
  readonly role: Role;
}

interface Setting {
  readonly capacity: number;
  readonly start: number;
  readonly spin: number;
  readonly seed: number;
  readonly count: number;
}

/** Just below 2^32, so that both cursors wrap within the first messages. */
const LATE_START = 2 ** 32 - 128;

const settings: Setting[] = [
  { capacity: 256, start: LATE_START, spin: 50, seed: 1, count: 4_000 },
  { capacity: 256, start: 0, spin: 0, seed: 2, count: 1_000 },
  { capacity: 4_096, start: LATE_START, spin: 50, seed: 3, count: 4_000 },
  { capacity: 4_096, start: LATE_START, spin: 0, seed: 4, count: 1_000 },
  { capacity: 65_536, start: 0, spin: 50, seed: 5, count: 1_000 },
  { capacity: 65_536, start: LATE_START, spin: 0, seed: 6, count: 300 },
];

const pairs: [string, End, End][] = [
  ["TypeScript to TypeScript", end("typescript", "write"), end("typescript", "read")],
  ["TypeScript to Zig", end("typescript", "write"), end("zig", "read")],
  ["Zig to TypeScript", end("zig", "write"), end("typescript", "read")],
  ["TypeScript to Zig and back", end("typescript", "drive"), end("zig", "echo")],
  ["TypeScript to TypeScript and back", end("typescript", "drive"), end("typescript", "echo")],
];

const module = await buildWasmWorker("interop");

for (const [name, first, second] of pairs) {
  for (const setting of settings) {
    const { capacity, start, spin, count } = setting;
    const title = `interop: ${name}, ${count} messages, capacity ${capacity}, start ${start}`;
    Deno.test(`${title}, ${spin === 0 ? "parked" : "spinning"}`, async () => {
      const answers = await meet(first, second, setting);
      assertEquals(answers.map(({ fault }) => fault), ["", ""]);
      // Without spinning somebody must have slept, or this run has not tried waking at all.
      if (spin === 0) assert(answers.some(({ parks }) => parks > 0), "nobody slept");
    });
  }
}

for (const [name, first, second] of pairs.slice(0, 3)) {
  Deno.test(`interop: ${name}, a reader with another seed finds the difference`, async () => {
    const setting = { capacity: 4_096, start: 0, spin: 50, seed: 7, count: 10 };
    // The writer may see its reader leave; only what the reader says counts.
    const [, read] = await meet(first, second, setting, 8);
    assertMatch(read!.fault, /^message 0 /);
  });
}

function end(language: Language, role: Role): End {
  return { language, role };
}

/** Formats a port and lets two workers meet on it. */
async function meet(
  first: End,
  second: End,
  setting: Setting,
  secondSeed: number = setting.seed,
): Promise<Answer[]> {
  const { capacity, start, ...rest } = setting;
  const geometry = portGeometry({ capacity, start });
  const size = segmentSize(geometry);
  const pages = PROGRAM_PAGES + Math.ceil(size / PAGE);
  // As much as the module states, at least; more where the rings are large.
  const memory = new WebAssembly.Memory({
    initial: Math.max(64, pages),
    maximum: 16_384,
    shared: true,
  });
  const offset = PROGRAM_PAGES * PAGE;
  Segment.format(new Uint8Array(memory.buffer, offset, size), geometry);
  const order = { memory, offset, size, capacity, timeout: TIMEOUT, ...rest };
  return await Promise.all([
    perform(first, { ...order, role: first.role, endpoint: 0 }),
    perform(second, { ...order, role: second.role, endpoint: 1, seed: secondSeed }),
  ]);
}

/** Runs one order in a worker of its own. */
async function perform({ language }: End, order: Order): Promise<Answer> {
  const url = new URL(`./${language}_worker.ts`, import.meta.url);
  const worker = new Worker(url, { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = ({ message }) => reject(new Error(message));
  const timer = setTimeout(() => reject(new Error(`${language} hangs`)), 2 * TIMEOUT);
  try {
    worker.postMessage(language === "zig" ? { ...order, module } : order);
    return await promise;
  } finally {
    clearTimeout(timer);
    worker.terminate();
  }
}
