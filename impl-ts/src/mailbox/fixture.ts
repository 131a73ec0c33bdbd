/**
 * Shared by the tests of the mailbox: a stand-in for the original, `sab-message-port` 1.0, with its
 * defects. Written from `spec/mailbox.md`. Each step between two yields is one store.
 */

import { layout } from "../memory/layout.ts";

export const STATUS = layout.MAILBOX_STATUS_WORD;
export const SIGNAL = layout.MAILBOX_SIGNAL_WORD;
export const LENGTH = layout.MAILBOX_LENGTH_WORD;
export const COUNT = layout.MAILBOX_PART_COUNT_WORD;
export const INDEX = layout.MAILBOX_PART_INDEX_WORD;
const HEADER = layout.MAILBOX_HEADER_SIZE;

/** The original waits without limit; in a test every wait has a limit. */
const BOUND_MS = 5_000;

/** The error of the original when the mailbox is closed. */
export class Disposed extends Error {}

/** One step, or a sleep while `signal` has this value. */
export type Step = "step" | { readonly sleep: number };

/** Either end of a mailbox, as the original implements it. */
export class Original {
  readonly words: Int32Array;
  readonly bytes: Uint8Array;

  constructor(memory: SharedArrayBuffer, offset = 0, size: number = memory.byteLength - offset) {
    this.words = new Int32Array(memory, offset, HEADER / 4);
    this.bytes = new Uint8Array(memory, offset + HEADER, size - HEADER);
  }

  *write(values: readonly unknown[]): Generator<Step, void> {
    yield* this.writeBytes(new TextEncoder().encode(JSON.stringify(values)), this.bytes.length);
  }

  *writeBytes(payload: Uint8Array, most: number): Generator<Step, void> {
    const count = Math.ceil(payload.length / most);
    for (let index = 0; index < count; index++) {
      yield* this.#await(0);
      const part = payload.subarray(index * most, (index + 1) * most);
      this.bytes.set(part);
      yield* this.#store(LENGTH, part.length);
      yield* this.#store(COUNT, count);
      yield* this.#store(INDEX, index);
      yield* this.#store(SIGNAL, 1);
      Atomics.notify(this.words, SIGNAL, 1);
    }
  }

  *read(): Generator<Step, unknown[]> {
    const parts: number[] = [];
    for (;;) {
      yield* this.#await(1);
      parts.push(...this.bytes.subarray(0, this.words[LENGTH]));
      const last = this.words[INDEX]! + 1 === this.words[COUNT];
      yield "step";
      yield* this.#store(SIGNAL, 0);
      Atomics.notify(this.words, SIGNAL, 1);
      if (last) return JSON.parse(new TextDecoder().decode(Uint8Array.from(parts)));
    }
  }

  *close(): Generator<Step, void> {
    for (let word = 0; word < HEADER / 4; word++) yield* this.#store(word, -1);
    for (let word = 0; word < HEADER / 4; word++) Atomics.notify(this.words, word);
  }

  *#store(word: number, value: number): Generator<Step, void> {
    this.words[word] = value;
    yield "step";
  }

  *#await(wanted: number): Generator<Step, void> {
    for (;;) {
      const signal = Atomics.load(this.words, SIGNAL);
      if (signal === -1 || Atomics.load(this.words, STATUS) === -1) throw new Disposed();
      if (signal === wanted) return;
      yield { sleep: signal };
    }
  }

  /** Runs an operation to its end, and blocks the thread in its sleeps. */
  block<T>(operation: Generator<Step, T>): T {
    for (const until = performance.now() + BOUND_MS; performance.now() < until;) {
      const { done, value } = operation.next();
      if (done) return value as T;
      const { sleep } = value as { sleep?: number };
      if (sleep !== undefined) Atomics.wait(this.words, SIGNAL, sleep, BOUND_MS);
    }
    throw new Error("the original waited for ever");
  }

  /** Runs an operation to its end on the event loop. */
  async turn<T>(operation: Generator<Step, T>): Promise<T> {
    for (const until = performance.now() + BOUND_MS; performance.now() < until;) {
      const { done, value } = operation.next();
      if (done) return value as T;
      const { sleep } = value as { sleep?: number };
      if (sleep === undefined) continue;
      const alive = setTimeout(() => {}, BOUND_MS);
      await Atomics.waitAsync(this.words, SIGNAL, sleep, BOUND_MS).value;
      clearTimeout(alive);
    }
    throw new Error("the original waited for ever");
  }

  /** Runs an operation until it would sleep. Returns whether it is done. */
  poll(operation: Generator<Step, unknown>): boolean {
    for (;;) {
      const { done, value } = operation.next();
      if (done) return true;
      if (typeof value === "object") return false;
    }
  }
}

/** The operations of `Atomics` that can have a hook before them. */
const OPERATIONS = ["load", "store", "compareExchange", "exchange", "notify"] as const;

/** Calls `before` before each atomic operation of `run`, except those of `before` itself. */
export function withSteps<T>(before: () => void, run: () => T): T {
  const atomics = Atomics as unknown as Record<string, (...args: unknown[]) => unknown>;
  const saved = OPERATIONS.map((name) => atomics[name]!);
  let inside = false;
  OPERATIONS.forEach((name, i) => {
    atomics[name] = (...args) => {
      if (!inside) {
        inside = true;
        before();
        inside = false;
      }
      return saved[i]!(...args);
    };
  });
  try {
    return run();
  } finally {
    OPERATIONS.forEach((name, i) => atomics[name] = saved[i]!);
  }
}
