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

// The payloads of a workload for a mailbox, which carries JSON: letters in place of bytes.

const A = "a".charCodeAt(0);

/** Fills the first `size` bytes of `into` with the letters of a message, and returns them. */
export function letters({ size, first }: Message, into: Uint8Array): Uint8Array {
  for (let index = 0; index < size; index++) into[index] = A + (first + index) % 26;
  return into.subarray(0, size);
}

// Trees of calls that call back, as `protocol/README.md` describes them: what comes of one without
// any call.

/** What a tree gives, or with what data it fails. */
interface Grown {
  sum: number;
  fails: boolean;
  /** Calls in it, itself included. */
  calls: number;
}

/** What a child is. */
type Way = "hold" | "fail" | "none" | "note" | "tree";

/** One child of a call. */
export interface Child {
  way: Way;
  seed: number;
}

const WAYS: readonly Way[] = ["hold", "fail", "none", "note"];

/** Draws what a call does: its children, one after the other, and whether it fails. */
export class Branch {
  readonly #random: Random;
  readonly #width: number;
  #left: number;
  #sum: number;

  constructor(seed: number, depth: number, width: number) {
    this.#random = new Random(seed);
    this.#width = width;
    this.#sum = this.#random.next();
    this.#left = depth > 0 ? 1 + this.#random.next() % width : 0;
  }

  /** The next child, or nothing. */
  next(): Child | undefined {
    if (this.#left-- <= 0) return undefined;
    const way = this.#width > 1 ? WAYS[this.#random.next() % 32] ?? "tree" : "tree";
    return { way, seed: this.#random.next() };
  }

  /** Takes in what came of a child. */
  add(value: number): void {
    this.#sum = (this.#sum * 31 + value) % 2 ** 32;
  }

  /** What comes of the call when all children have. */
  end(): Pick<Grown, "sum" | "fails"> {
    return { sum: this.#sum, fails: this.#width > 1 && this.#random.next() % 8 === 0 };
  }
}

/** The value of a child that is no tree. */
export function valueOf({ way, seed }: Child): number {
  return way === "fail" ? seed : way === "hold" ? 1 : way === "none" ? 2 : 3;
}

/** What stands for a tree that gave this, or failed with it. */
export function folded({ sum, fails }: Pick<Grown, "sum" | "fails">): number {
  return fails ? (sum + 1) % 2 ** 32 : sum;
}

/** A tree without any call. */
export function grow(seed: number, depth: number, width: number): Grown {
  const branch = new Branch(seed, depth, width);
  let calls = 1;
  for (let child = branch.next(); child !== undefined; child = branch.next()) {
    if (child.way !== "tree") {
      branch.add(valueOf(child));
      calls++;
      continue;
    }
    const grown = grow(child.seed, depth - 1, width);
    branch.add(folded(grown));
    calls += grown.calls;
  }
  return { ...branch.end(), calls };
}
