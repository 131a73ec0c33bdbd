// The messages that a seed stands for. `testees/zig/workload.zig` makes the same ones, so that a
// reader in one language knows what a writer in another must have written, with nothing passed
// between them but the seed.

/** Marsaglia's xorshift32. */
export class Random {
  #state: number;

  /** @param seed Any number but 0, for which the sequence would be all 0. */
  constructor(seed: number) {
    if ((seed | 0) === 0) throw new RangeError("Cannot seed: 0 gives nothing but 0");
    this.#state = seed | 0;
  }

  /** Returns the next number, from 1 to 2^32 - 1. */
  next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return x >>> 0;
  }
}

/** One message of a workload: `tag` counts them, `first` is the payload's first byte. */
export interface Message {
  readonly size: number;
  readonly tag: number;
  readonly first: number;
}

/**
 * A sequence of messages around a ring's limits: empty ones, single bytes, some that fill half the
 * ring to the byte, and some of several times its capacity.
 */
export class Workload {
  readonly #random: Random;
  readonly #capacity: number;
  #tag = 0;

  constructor(seed: number, capacity: number) {
    this.#random = new Random(seed);
    this.#capacity = capacity;
  }

  /** Returns the next message of the sequence. */
  next(): Message {
    const kind = this.#random.next() % 8;
    const size = this.#size(kind, this.#random.next());
    return { size, tag: this.#tag++, first: this.#random.next() & 0xff };
  }

  /** The largest message that `next` returns. */
  get sizeMax(): number {
    return 3 * this.#capacity;
  }

  #size(kind: number, draw: number): number {
    const whole = this.#capacity / 2 - 16;
    switch (kind) {
      case 0:
        return 0;
      case 1:
        return 1 + draw % 16;
      case 2:
        return draw % (whole + 1);
      case 3:
        return whole;
      case 4:
        return whole + 1;
      case 5:
        return draw % (3 * this.#capacity + 1);
      default:
        return draw % 64;
    }
  }
}

/** Byte `index` of a message. The shift makes pages of 256 bytes differ, so a lost one shows. */
export function byteOf({ first }: Message, index: number): number {
  return (first + index + (index >>> 8)) & 0xff;
}

/** Fills the first `message.size` bytes of `into` and returns them. */
export function fill(message: Message, into: Uint8Array): Uint8Array {
  for (let index = 0; index < message.size; index++) into[index] = byteOf(message, index);
  return into.subarray(0, message.size);
}

/** Returns what is wrong with a message that arrived, or undefined. */
export function faultOf(
  expected: Message,
  tag: number,
  payload: Uint8Array,
): string | undefined {
  if (tag !== expected.tag) return `message ${expected.tag} has tag ${tag}`;
  if (payload.length !== expected.size) {
    return `message ${tag} has ${payload.length} bytes, not ${expected.size}`;
  }
  const index = payload.findIndex((byte, index) => byte !== byteOf(expected, index));
  return index < 0 ? undefined : `message ${tag} differs at byte ${index} of ${expected.size}`;
}
