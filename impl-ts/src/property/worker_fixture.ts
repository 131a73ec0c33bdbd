/** The writer and the readers of `worker_test.ts`, each in a thread of its own. */

import { PropertyReader, PropertyWriter } from "./property.ts";
import type { Slots } from "./slots.ts";
import { steppedSlots, stopAfter, Stopped } from "./stepped_fixture.ts";
import { Segment } from "../memory/segment.ts";

/** What a worker does. */
export type PropertyTask = WriterTask | ReaderTask;

interface Common {
  memory: SharedArrayBuffer;
  /** Word 0: whether the writer must stop; word 1: whether it has done its part. */
  flags: SharedArrayBuffer;
}

/** Sets without a pause, lets its event loop turn now and then, or dies at each store in turn. */
export interface WriterTask extends Common {
  mode: "flood" | "bursts" | "deaths";
  /** For `deaths`: the sizes in words of the values at whose stores it dies. */
  sizes?: number[];
}

/** Gets without a pause. */
export interface ReaderTask extends Common {
  mode: "read";
  endpoint: number;
  /**
   * The least number of reads. It goes on until the writer is done and `changes` values were seen.
   */
  reads: number;
  changes: number;
}

/** What a reader reports at its end. */
export interface Read {
  reads: number;
  changes: number;
  /** The number of values that were not those of their versions. */
  torn: number;
}

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<PropertyTask>) => void;
  postMessage(value: unknown): void;
};

/** Each word of a value is its version; a value has from 1 to so many words. */
export const WORDS = 60;
/** Limits a run whose writer or readers do not reach their goals. */
const PATIENCE_MS = 120_000;
/** The least number of sets between two deaths. */
const BURST = 200;
/** A reader adds to the tick count after so many reads. */
const TICK = 256;
const [STOP, DONE, TICKS] = [0, 1, 2];

scope.onmessage = ({ data }) => {
  const flags = new Int32Array(data.flags);
  const segment = Segment.attach(data.memory);
  if (data.mode === "read") scope.postMessage(read(segment, flags, data));
  else if (data.mode === "deaths") die(segment, flags, data.sizes!);
  else write(segment, flags, data.mode);
};

async function write(segment: Segment, flags: Int32Array, mode: "flood" | "bursts") {
  const writer = PropertyWriter.attach(segment);
  const values = valuesOfSizes();
  scope.postMessage("attached");
  Atomics.store(flags, DONE, 1);
  let version = writer.version;
  while (Atomics.load(flags, STOP) === 0) {
    for (let burst = 0; burst < 1000; burst++) {
      version = version + 1 | 0;
      const value = values[(version >>> 0) % WORDS]!;
      value.fill(version);
      writer.set(value);
    }
    if (mode === "bursts") await new Promise((resolve) => setTimeout(resolve, 1));
  }
  scope.postMessage(version);
}

/**
 * Sets at full speed, and dies at the next store of the next value of that size. When each reader
 * has gone on for a while, the next writer continues from the last complete value. [property.begin]
 */
async function die(segment: Segment, flags: Int32Array, sizes: number[]): Promise<void> {
  const Stepped = await steppedSlots();
  const values = valuesOfSizes();
  const readers = segment.endpointCount - 1;
  scope.postMessage("attached");
  let deaths = 0;
  for (const size of sizes) {
    for (let steps = 0, isDead = true; isDead; steps++) {
      const writer = Stepped.find(segment, 0);
      let version = writer.version();
      stopAfter();
      for (let n = 0; n < BURST || (version + 1 >>> 0) % WORDS !== size - 1; n++) {
        version = put(writer, version, values);
      }
      isDead = false;
      stopAfter(steps);
      try {
        put(writer, version, values);
      } catch (error) {
        if (!(error instanceof Stopped)) throw error;
        isDead = true;
        deaths++;
      }
      const seen = flags.slice(TICKS, TICKS + readers);
      const areBehind = () =>
        seen.some((tick, index) => Atomics.load(flags, TICKS + index) === tick);
      const until = performance.now() + PATIENCE_MS;
      while (areBehind() && performance.now() < until) Atomics.wait(flags, STOP, 0, 1);
    }
  }
  Atomics.store(flags, DONE, 1);
  scope.postMessage(deaths);
}

function put(writer: Slots, before: number, values: Int32Array[]): number {
  const version = before + 1 | 0;
  const words = values[(version >>> 0) % WORDS]!;
  words.fill(version);
  return writer.put(before, new Uint8Array(words.buffer), words, words.byteLength, 0, 1);
}

function read(segment: Segment, flags: Int32Array, task: ReaderTask): Read {
  const reader = PropertyReader.attach(segment, { endpoint: task.endpoint });
  const target = new Int32Array(WORDS);
  const until = performance.now() + PATIENCE_MS;
  let [reads, changes, torn] = [0, 0, 0];
  const isEnough = () => changes >= task.changes && Atomics.load(flags, DONE) === 1;
  reader.wait({ timeout: PATIENCE_MS });
  while (reads < task.reads || !isEnough()) {
    const before = reader.seen;
    const size = reader.getInto(target)!;
    if (isTorn(target, size, reader.seen)) torn++;
    if (reader.seen !== before) changes++;
    if (++reads % TICK !== 0) continue;
    Atomics.add(flags, TICKS + task.endpoint - 1, 1);
    if (performance.now() > until) break;
  }
  return { reads, changes, torn };
}

/** Whether this is not the value of that version. */
export function isTorn(target: Int32Array, size: number, version: number): boolean {
  if (size >> 2 !== version % WORDS + 1) return true;
  for (let index = 0; index < size >> 2; index++) {
    if (target[index] !== (version | 0)) return true;
  }
  return false;
}

function valuesOfSizes(): Int32Array[] {
  return Array.from({ length: WORDS }, (_, index) => new Int32Array(index + 1));
}
