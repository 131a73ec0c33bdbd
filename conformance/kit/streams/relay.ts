/**
 * Stands between two testees and hands their bytes on: as they come, in pieces, late, changed, or
 * not at all.
 *
 * @module
 */

import { Random } from "../workload.ts";
import type { Wire } from "./dock.ts";
import { sleep } from "./bounds.ts";

/** What becomes of the bytes of the first testee from this one on. */
export interface Damage {
  /**
   * `end`: they end here, while the other way goes on. `break`: the connection is no more.
   * `stop`: nothing comes any more, and nobody says so. `change`: this byte is another one.
   * `insert`: some come that nobody has sent.
   */
  kind: "end" | "break" | "stop" | "change" | "insert";
  at: number;
}

/** How bytes are handed on. */
export interface RelayPlan {
  damage?: Damage;
  /** Cuts into pieces of a seed, some of them late. */
  pieces?: number;
}

/** Bytes that are handed on at once, where they are cut. */
const PIECE_SIZE = 97;
const INSERTED = 23;

/** Two wires that are joined. */
export class Relay {
  /** All that the first testee has sent, before any damage. */
  readonly seen: Uint8Array[] = [];
  /** Both ways have ended, or are given up. */
  readonly done: Promise<unknown>;
  readonly #wires: readonly [Wire, Wire];
  #size = 0;
  /** Bytes that have been handed on, both ways. */
  handed = 0;
  #isOver = false;

  constructor(first: Wire, second: Wire, plan: RelayPlan = {}) {
    this.#wires = [first, second];
    const { pieces } = plan;
    const cut = (seed: number) => pieces === undefined ? undefined : new Random(seed);
    this.done = Promise.all([
      this.#pump(first, second, cut(pieces ?? 1), plan.damage),
      this.#pump(second, first, cut((pieces ?? 1) + 1), undefined),
    ]);
  }

  /** Gives both connections up. */
  async close(): Promise<void> {
    this.#isOver = true;
    for (const wire of this.#wires) wire.kill();
    await this.done;
  }

  async #pump(
    from: Wire,
    to: Wire,
    random: Random | undefined,
    damage: Damage | undefined,
  ): Promise<void> {
    for (let bytes; (bytes = await from.read()) !== undefined;) {
      if (this.#isOver) return;
      let rest: Uint8Array | undefined = bytes;
      if (damage !== undefined) {
        this.seen.push(bytes);
        const at = damage.at - this.#size;
        this.#size += bytes.length;
        if (at < bytes.length) {
          rest = await this.#damage(damage, bytes, Math.max(0, at), to, at < 0);
        }
      }
      if (rest !== undefined) await this.#hand(rest, to, random);
    }
    const isStopped = damage !== undefined && !isPassing(damage) && this.#size > damage.at;
    if (!isStopped) await to.end();
  }

  /** Does it, or has done it; returns what is still to be handed on. */
  async #damage(
    damage: Damage,
    bytes: Uint8Array,
    at: number,
    to: Wire,
    isDone: boolean,
  ): Promise<Uint8Array | undefined> {
    if (isDone) return isPassing(damage) ? bytes : undefined;
    await this.#hand(bytes.subarray(0, at), to, undefined);
    const random = new Random(damage.at + 1);
    switch (damage.kind) {
      case "end":
        return void await to.end();
      case "break":
        this.#isOver = true;
        for (const wire of this.#wires) wire.kill();
        return undefined;
      case "stop":
        return undefined;
      case "change":
        bytes[at]! ^= 1 + random.next() % 255;
        return bytes.subarray(at);
      case "insert": {
        const noise = Uint8Array.from({ length: INSERTED }, () => random.next() >>> 9);
        await this.#hand(noise, to, undefined);
        return bytes.subarray(at);
      }
    }
  }

  async #hand(bytes: Uint8Array, to: Wire, random: Random | undefined): Promise<void> {
    if (random === undefined) {
      await to.write(bytes);
      this.handed += bytes.length;
      return;
    }
    for (let at = 0; at < bytes.length;) {
      const piece = bytes.subarray(at, at + 1 + random.next() % PIECE_SIZE);
      at += piece.length;
      await to.write(piece);
      this.handed += piece.length;
      if (random.next() % 16 === 0) await sleep(random.next() % 3);
    }
  }
}

/** Whether bytes are handed on behind it. */
function isPassing({ kind }: Damage): boolean {
  return kind === "change" || kind === "insert";
}
