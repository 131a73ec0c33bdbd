/**
 * What races are written with. What is to come between two loads of a testee has nanoseconds for
 * that; so the kit gives the testee work in that place, as much as it likes, acts from a thread of
 * its own (`race_orders.ts`), and tries at every offset in time.
 *
 * @module
 */

import { type Pipe, pipe, type PipePlan } from "../../reference/builder.ts";
import { put } from "../../reference/encode.ts";
import { fieldOf, limitOf } from "../../reference/layout.ts";
import type { Hello, Wait } from "../protocol.ts";

/** The smallest frame, and a kind that every reader skips. */
const SKIPPED_SIZE = limitOf("frame_align");
const SKIPPED_KIND = 200;

/** A pipe whose ring begins with so many frames that a reader skips, all of them published. */
export function pipeWithSkipped(plan: PipePlan & { capacity: number }, count: number): Pipe {
  const memory = pipe(plan);
  const { bytes, data, control } = memory;
  const kindAt = data + fieldOf("frame_header", "kind").offset;
  for (let index = 0; index < count; index++) bytes[kindAt + index * SKIPPED_SIZE] = SKIPPED_KIND;
  put(bytes, control, "ring_control", "tail", count * SKIPPED_SIZE);
  return memory;
}

/** Bytes of so many frames that are skipped. */
export function skippedSize(count: number): number {
  return count * SKIPPED_SIZE;
}

/**
 * Finds out when to act, so that it is in the middle of what a testee does: how long that takes is
 * nobody's to know, and changes with what else the machine does.
 */
export class Aim {
  #us: number;
  readonly #least: number;

  constructor(us: number, least = 5) {
    this.#us = us;
    this.#least = least;
  }

  /** When to act, from the beginning of a call on. */
  next(): number {
    return this.#us * (0.5 + Math.random());
  }

  /** Says how the last one was: -1 too early, 1 too late. */
  tell(how: number): void {
    const us = how < 0 ? this.#us * 1.3 : how > 0 ? this.#us / 1.25 : this.#us;
    this.#us = Math.min(Math.max(us, this.#least), 20_000);
  }
}

/** Counts tries up to a number; fewer where they take long, for the machine does other things. */
export function* tries(most: number, ms: number): Generator<number> {
  const least = most / 6;
  const deadline = performance.now() + ms;
  for (let index = 0; index < most; index++) {
    if (index >= least && performance.now() >= deadline) return;
    yield index;
  }
}

/** A way to read: as values or as they are, by which calls, and for how long. */
export interface ReadingWay {
  about: string;
  values: boolean;
  wait: Wait | undefined;
  waitMs: number;
  /** Whether a task can read in this way, and go on behind a message that is lost. */
  canLose: boolean;
  /** Whether one command reads many messages. */
  isManyAtOnce: boolean;
}

/** Every way to read that a testee offers; `longMs` is how long a call waits that may. */
export function readingWays(hello: Hello, longMs: number): ReadingWay[] {
  const knowsWays = hello.offers?.includes("ways");
  const canLose = hello.offers?.includes("lossy") === true;
  const isManyAtOnce = hello.offers?.includes("read_many") === true;
  const waits = knowsWays ? hello.waits : [undefined];
  const kinds = hello.lacks.includes("values")
    ? [false]
    : hello.lacks.includes("bytes")
    ? [true]
    : [false, true];
  return kinds.flatMap((values) =>
    waits.flatMap((wait) =>
      (wait === "poll" ? [0] : [0, longMs]).map((waitMs) => {
        const how = [values ? "values" : "bytes", wait, waitMs === 0 && "without waiting"];
        return {
          about: how.filter(Boolean).join(", "),
          values,
          wait,
          waitMs,
          canLose,
          isManyAtOnce,
        };
      })
    )
  );
}
