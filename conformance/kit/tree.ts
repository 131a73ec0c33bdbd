/**
 * Trees of calls that call back, as `protocol/README.md` describes them: what comes of one without
 * any call.
 *
 * @module
 */

import { Random } from "./workload.ts";

/** What a tree gives, or with what data it fails. */
export interface Grown {
  sum: number;
  fails: boolean;
  /** Calls in it, itself included. */
  calls: number;
}

/** What a child is. */
export type Way = "hold" | "fail" | "none" | "note" | "tree";

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
