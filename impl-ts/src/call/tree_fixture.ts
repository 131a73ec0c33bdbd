/**
 * Random trees of calls, seeded: each side calls the other, which calls back, with throws, calls
 * that are given up, items and notices among them. What comes of a tree follows from its seed, so
 * that a run without any call says what it must be.
 */

import { callContext, CallError, type Remote, remote, serve } from "./call.ts";
import type { Port } from "../mod.ts";

/** What both sides serve. */
export interface Trees {
  /** Every child blocks, or is awaited. */
  blocking(seed: number, depth: number): number;
  later(seed: number, depth: number): Promise<number>;
  rows(count: number): Generator<number, number>;
  hold(): Promise<void>;
  note(value: number): void;
}

/** What a node of a tree does for its children, one after the other. */
interface Child {
  way: "tree" | "hold" | "rows" | "left" | "note" | "none";
  seed: number;
}

const WAYS: readonly Child["way"][] = ["hold", "rows", "left", "note", "none"];
const WAIT = { timeout: 60_000 };

/** Numbers that follow from a seed. */
class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0 up to a limit. */
  below(limit: number): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return ((z ^ (z >>> 16)) >>> 0) % limit;
  }
}

/** One node: its children, and whether it throws. */
class Node {
  readonly children: Child[] = [];
  readonly throws: boolean;
  #sum: number;

  constructor(seed: number, depth: number) {
    const random = new Random(seed);
    this.#sum = seed;
    const count = depth > 0 ? random.below(4) : 0;
    for (let index = 0; index < count; index++) {
      const way = WAYS[random.below(24)] ?? "tree";
      this.children.push({ way, seed: random.below(2 ** 31) });
    }
    this.throws = random.below(8) === 0;
  }

  add(value: number): void {
    this.#sum = (Math.imul(this.#sum, 31) + value) >>> 0;
  }

  end(): number {
    if (!this.throws) return this.#sum;
    throw Object.assign(new Error("a tree"), { name: "Tree", data: this.#sum });
  }
}

/** What comes of a tree without a call. */
export function grow(seed: number, depth: number): number {
  const node = new Node(seed, depth);
  for (const child of node.children) {
    node.add(child.way === "tree" ? thrownAs(() => grow(child.seed, depth - 1)) : fixed(child));
  }
  return node.end();
}

/** What a tree gave, or what stands for its error. */
export function thrownAs(tree: () => number): number {
  try {
    return tree();
  } catch (error) {
    return fold(error);
  }
}

function fold(error: unknown): number {
  const { name, remoteName = name, data } = error as CallError;
  if (remoteName !== "Tree" || typeof data !== "number") throw error;
  return (data + 1) >>> 0;
}

/** The value of a child that is no tree. */
function fixed({ way, seed }: Child): number {
  return way === "rows" ? seed % 40 : way === "left" ? 3 : 1;
}

/** Serves trees on a port, which grow by calls to the other side. */
export function serveTrees(port: Port<unknown>): { notes: number } {
  const far = remote<Trees>(port).with(WAIT);
  const counts = { notes: 0 };
  serve(port, {
    blocking(seed: number, depth: number): number {
      const node = new Node(seed, depth);
      for (const child of node.children) node.add(childNow(far, child, depth));
      return node.end();
    },
    async later(seed: number, depth: number): Promise<number> {
      const node = new Node(seed, depth);
      for (const child of node.children) node.add(await childLater(far, child, depth));
      return node.end();
    },
    *rows(count: number): Generator<number, number> {
      for (let row = 0; row < count; row++) yield row;
      return count;
    },
    hold() {
      const { signal } = callContext()!;
      return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    },
    note: () => void counts.notes++,
  });
  return counts;
}

type Far = Remote<Trees>;

function childNow(far: Far, child: Child, depth: number): number {
  const { way, seed } = child;
  if (way === "tree") return thrownAs(() => far.sync.blocking(seed, depth - 1));
  if (way === "note") void far.notify.note(seed);
  if (way === "rows") return [...far.sync.iterate.rows(seed % 40)].length;
  if (way === "hold") expectCode("wait.timeout", () => far.with({ timeout: 1 }).sync.hold());
  if (way === "none") expectCode("call.method", () => (far.sync as unknown as None).none());
  if (way === "left") {
    for (const row of far.sync.iterate.rows(100)) if (row === 3) return row;
  }
  return fixed(child);
}

async function childLater(far: Far, child: Child, depth: number): Promise<number> {
  const { way, seed } = child;
  if (way === "tree") return await far.later(seed, depth - 1).catch(fold);
  if (way === "note") void far.notify.note(seed);
  if (way === "rows") return (await Array.fromAsync(far.iterate.rows(seed % 40))).length;
  if (way === "hold") await expectLater("wait.timeout", far.with({ timeout: 1 }).hold());
  if (way === "none") await expectLater("call.method", (far as unknown as None).none());
  if (way === "left") {
    for await (const row of far.iterate.rows(100)) if (row === 3) return row;
  }
  return fixed(child);
}

interface None {
  none(): Promise<void>;
}

function expectCode(code: string, call: () => unknown): void {
  try {
    call();
  } catch (error) {
    if ((error as CallError).code === code) return;
    throw error;
  }
  throw new Error(`${code} was to come`);
}

async function expectLater(code: string, call: Promise<unknown>): Promise<void> {
  const error = await call.then(() => undefined, (error) => error);
  expectCode(code, () => {
    throw error;
  });
}
