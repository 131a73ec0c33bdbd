/**
 * A small port that moves bytes, written from the chapters to be broken on purpose: words and
 * numbers. It is slow, and shares nothing with the implementations.
 *
 * @module
 */

/** What went wrong in the port. */
export class PortError extends Error {
  readonly code: string;
  readonly reason: string | number | undefined;
  /** Beside `message.lost`. */
  readonly count: number | undefined;

  constructor(code: string, reason?: string | number, count?: number) {
    super(code);
    this.code = code;
    this.reason = reason;
    this.count = count;
  }
}

/** A mistake of the caller. */
export class Refused extends Error {}

/** Memory as words that others use at the same time, and as bytes. */
export class Memory {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly #words: Int32Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const isAligned = bytes.byteOffset % 4 === 0;
    this.#words = isAligned
      ? new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2)
      : new Int32Array(0);
  }

  load(offset: number): number {
    return Atomics.load(this.#words, offset >> 2) >>> 0;
  }

  store(offset: number, value: number): void {
    Atomics.store(this.#words, offset >> 2, value | 0);
  }

  exchange(offset: number, value: number): number {
    return Atomics.exchange(this.#words, offset >> 2, value | 0) >>> 0;
  }

  /** Changes a word from one value to another; returns whether it did. */
  change(offset: number, from: number, to: number): boolean {
    const found = Atomics.compareExchange(this.#words, offset >> 2, from | 0, to | 0);
    return found === (from | 0);
  }

  add(offset: number): void {
    Atomics.add(this.#words, offset >> 2, 1);
  }

  /** Sets bits of a word. */
  set(offset: number, bits: number): void {
    Atomics.or(this.#words, offset >> 2, bits);
  }

  /** Takes bits of a word away. */
  clear(offset: number, bits: number): void {
    Atomics.and(this.#words, offset >> 2, ~bits);
  }

  /** Returns a word by an operation that others see as a change of it. */
  look(offset: number): number {
    return Atomics.or(this.#words, offset >> 2, 0) >>> 0;
  }

  /** Wakes so many that sleep on a word, all of them where no number is given. */
  notify(offset: number, count = Infinity): void {
    Atomics.notify(this.#words, offset >> 2, count);
  }

  sleep(offset: number, value: number, ms: number): void {
    Atomics.wait(this.#words, offset >> 2, value | 0, ms);
  }

  u32(offset: number): number {
    return this.view.getUint32(offset, true);
  }

  setU32(offset: number, value: number): void {
    this.view.setUint32(offset, value, true);
  }
}

const still = new Int32Array(new SharedArrayBuffer(4));

/** Does nothing for so long. */
export function pause(ms: number): void {
  Atomics.wait(still, 0, 0, ms);
}

/** `a - b`, from 0 to 2^32 - 1. */
export function minus(a: number, b: number): number {
  return (a - b) >>> 0;
}

export function roundUp(value: number, to: number): number {
  return Math.ceil(value / to) * to;
}
