/** What several tests need: pipes in one thread, and a peer that writes any bytes it likes. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import type { ReaderOptions, WriterOptions } from "../pipe/options.ts";
import { Reader, Writer } from "../pipe/ends.ts";
import { Segment } from "../memory/segment.ts";
import { agentMechanism, type Mechanism } from "../wait/mechanism.ts";
import { attachEndpoint } from "../wait/endpoint.ts";

/** Below 2^32 by so little that the first messages cross it. */
export const NEAR_WRAP = 2 ** 32 - 128;

/** What a program of the sources prints, in a process of its own that ends well. */
export async function printedApart(
  program: string,
  { args = [], flags = [], timeoutMs = 60_000 }: {
    args?: readonly string[];
    /** Of V8. */
    flags?: readonly string[];
    timeoutMs?: number;
  } = {},
): Promise<string> {
  const v8 = flags.length === 0 ? [] : [`--v8-flags=${flags.join()}`];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", ...v8, program, ...args],
    cwd: `${import.meta.dirname}/..`,
    signal: AbortSignal.timeout(timeoutMs),
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  assert(code === 0, text(stderr));
  return text(stdout);
}

export interface PipeOptions extends WriterOptions<never>, ReaderOptions {
  capacity?: number;
  start?: number;
}

export function pipeSegment({ capacity = 256, start = NEAR_WRAP }: PipeOptions = {}): Segment {
  const channel = { writer: 0, reader: 1, capacity, start: start >>> 0 };
  return Segment.allocate({ endpoints: 2, channels: [channel] });
}

/** Both ends of a pipe in one thread. */
// deno-lint-ignore no-explicit-any
export function pipe<T = any>(options: PipeOptions = {}) {
  const segment = pipeSegment(options);
  const writer = Writer.attach<T>(segment, options);
  const reader = Reader.attach<T>(segment, options as ReaderOptions<T>);
  return { segment, writer, reader };
}

/** A frame as a test states it. */
export interface RawFrame {
  kind?: number;
  flags?: number;
  codec?: number;
  reserved?: number;
  tag?: number;
  /** By default the size of the payload. */
  size?: number;
  payload?: readonly number[];
  /** Puts a preamble with this total in front of the payload. */
  total?: number | typeof UNKNOWN;
  /** Puts a header extension that states this size, and is no longer than 64, before all that. */
  extension?: number;
}

/** A total that is not known: all bits are set. */
export const UNKNOWN: unique symbol = Symbol("unknown");

/** A writer without any checks, on the first ring of a segment. */
export class Scribe {
  readonly control: Int32Array;
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  tail: number;
  readonly #capacity: number;

  constructor(segment: Segment, index = 0) {
    const channel = segment.channels[index]!;
    this.control = segment.words(channel.controlOffset, channel.controlSize);
    this.bytes = segment.bytes(channel.dataOffset, channel.dataSize);
    this.words = segment.words(channel.dataOffset, channel.dataSize);
    this.tail = channel.start;
    this.#capacity = channel.dataSize;
  }

  /** Writes a frame at the tail, byte by byte around the end if need be, without publishing. */
  frame(frame: RawFrame): this {
    const { kind = 1, flags = 3, codec = 0, reserved = 0, tag = 0, total, extension } = frame;
    const payload = [...frame.payload ?? []];
    const zeros = (count: number): number[] => new Array(count).fill(0);
    if (total === UNKNOWN) payload.unshift(...u32(-1), ...u32(-1), ...zeros(8));
    else if (total !== undefined) payload.unshift(...u32(total), ...zeros(12));
    if (extension !== undefined) {
      payload.unshift(
        ...u32(extension),
        ...u32(1),
        ...zeros(Math.min(Math.max(extension - 8, 0), 56)),
      );
    }
    const size = frame.size ?? payload.length;
    const bytes = [...u32(size), kind, flags, codec, reserved, ...u32(tag), 0, 0, 0, 0, ...payload];
    bytes.forEach((byte, i) => this.bytes[(this.tail + i) % this.#capacity] = byte);
    this.tail = (this.tail + Math.ceil(bytes.length / 16) * 16) % 2 ** 32;
    return this;
  }

  publish(): void {
    Atomics.store(this.control, layout.RING_TAIL_WORD, this.tail);
  }
}

/** Makes a call, and before each load of the ring's `tail` says which one that is, from 1 on. */
export function onTailLoads<R>(scribe: Scribe, before: (count: number) => void, call: () => R): R {
  const { load } = Atomics;
  let count = 0;
  try {
    Atomics.load = ((words: Int32Array, at: number) => {
      const { byteOffset } = scribe.control;
      const isTail = words.byteOffset + 4 * at === byteOffset + layout.RING_TAIL_OFFSET;
      if (isTail) before(++count);
      return load(words, at);
    }) as typeof load;
    return call();
  } finally {
    Atomics.load = load;
  }
}

/** A reader whose peer is a scribe. The ring starts at 0. */
export function scribed(options: PipeOptions = {}) {
  const segment = pipeSegment({ start: 0, ...options });
  attachEndpoint(segment, 0);
  // deno-lint-ignore no-explicit-any
  const reader = Reader.attach<any>(segment, options);
  return { segment, reader, scribe: new Scribe(segment) };
}

export function assertCode(call: () => unknown, code: string): void {
  assertEquals(assertThrows(call, MillraceError).code, code);
}

/** The code with which a promise is rejected. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "no error";
  } catch (error) {
    return error instanceof MillraceError ? error.code : String(error);
  }
}

/** An agent's mechanism that reports each sleep before it begins, and does not sleep long. */
export function watched(onSleep: (ms: number) => void, blocks = true): Mechanism {
  const agent = agentMechanism();
  return {
    rings: agent.rings,
    sleeps: agent.sleeps,
    blocks,
    sleep(words, index, expected, ms) {
      onSleep(ms);
      agent.sleep(words, index, expected, Math.min(ms, 1));
    },
    sleepAsync: agent.sleepAsync.bind(agent),
    notify: agent.notify.bind(agent),
  };
}

/**
 * An agent's mechanism whose sleeps no slice ends: a lost wake, or a change that rings nobody,
 * lasts as long as the tests that use it allow, and fails them.
 */
export function unsliced(onSleep: () => void = () => {}): Mechanism {
  const agent = agentMechanism();
  return {
    ...watched(onSleep),
    sleep(words, index, expected) {
      onSleep();
      agent.sleep(words, index, expected, 20_000);
    },
    sleepAsync: (words, index, expected) => agent.sleepAsync(words, index, expected, 20_000),
  };
}

/** Runs with a clock that moves by 5 µs whenever somebody looks at it, or by hand. */
export async function withClock(run: (clock: { ms: number }) => unknown): Promise<void> {
  const { now } = performance;
  const clock = { ms: 1 };
  performance.now = () => clock.ms += 0.005;
  try {
    await run(clock);
  } finally {
    performance.now = now;
  }
}

/** Runs as on a machine with so many processors. */
export async function withProcessors(count: number, run: () => unknown): Promise<void> {
  Object.defineProperty(navigator, "hardwareConcurrency", { value: count, configurable: true });
  try {
    await run();
  } finally {
    // What the prototype says holds again.
    delete (navigator as { hardwareConcurrency?: number }).hardwareConcurrency;
  }
}

/** Numbers from 0 to 2^32 - 1 that depend on the seed only. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
}

/** Bytes that show where they stand. */
export function pattern(size: number, seed = 0): Uint8Array {
  return Uint8Array.from({ length: size }, (_, i) => (i * 7 + seed) & 0xff);
}

export function u32(value: number): number[] {
  return [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff);
}

/**
 * Notes the timers of slices that are set while `run` does its work: milliseconds of each, and how
 * many were stopped. In Deno such a timer sleeps again and again on one word of its own.
 */
export async function sliceTimers<T>(
  run: (timers: { readonly ms: number[]; readonly stopped: number }) => Promise<T>,
): Promise<T> {
  const { waitAsync, notify } = Atomics;
  const words = new Set<unknown>();
  const timers = { ms: [] as number[], stopped: 0 };
  const isTimers = (word: { length: number }) => word.length === 1;
  Object.assign(Atomics, {
    waitAsync: (word: Int32Array, index: number, value: number, ms?: number) => {
      if (isTimers(word) && ms !== undefined && !words.has(word)) {
        words.add(word);
        timers.ms.push(ms);
      }
      return waitAsync(word, index, value, ms);
    },
    notify: (word: Int32Array, index: number) => {
      if (words.has(word)) timers.stopped++;
      return notify(word, index);
    },
  });
  try {
    return await run(timers);
  } finally {
    Object.assign(Atomics, { waitAsync, notify });
  }
}

/**
 * Runs with timers of slices that last longer than `until` and the timeouts of the tests: what only
 * the end of a slice would wake is not woken, and fails them, however slow the machine is.
 */
export async function withoutSlices(run: () => Promise<void>): Promise<void> {
  const { waitAsync } = Atomics;
  const unsliced = (word: Int32Array, index: number, value: number, ms?: number) =>
    waitAsync(word, index, value, word.length === 1 && ms !== undefined ? 20_000 : ms);
  Object.assign(Atomics, { waitAsync: unsliced });
  try {
    await run();
  } finally {
    Object.assign(Atomics, { waitAsync });
  }
}
