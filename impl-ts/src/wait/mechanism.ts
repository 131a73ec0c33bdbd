/**
 * How a thread sleeps on a word of shared memory, and how it is woken. Each kind of sleep is one
 * `Mechanism`; the rest of the code does not know which one an endpoint uses. See `spec/wait.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { sleepBlind } from "../memory/segment.ts";

/**
 * One way to sleep on a word and to wake its sleepers.
 *
 * @example
 * ```ts
 * import { agentMechanism, type Mechanism, Port } from "@millrace/millrace";
 *
 * // The usual one, which also writes down how long it meant to sleep.
 * const agent = agentMechanism();
 * const sleeps: number[] = [];
 * const noted: Mechanism = {
 *   ...agent,
 *   sleep(words, index, expected, ms) {
 *     sleeps.push(ms);
 *     return agent.sleep(words, index, expected, ms);
 *   },
 *   sleepAsync: (...given) => agent.sleepAsync(...given),
 *   notify: (...given) => agent.notify(...given),
 * };
 * using port = Port.create({ mechanism: noted, spin: 0 });
 * port.read({ timeout: 50 });
 * console.log(sleeps.length > 0 && sleeps.every((ms) => ms <= 50)); // true
 * ```
 */
export interface Mechanism {
  /**
   * The bits of `wake_mechanism` for the sleeps that `notify` can end. An endpoint stores them in
   * its `wakes` word.
   */
  readonly rings: number;
  /** The bit that a peer must be able to ring for this mechanism to sleep; 0 if it polls. */
  readonly sleeps: number;
  /** Whether this thread may block. */
  readonly blocks: boolean;
  /**
   * Sleeps while the word holds `expected`, at most `ms` milliseconds. Returns `false` if only the
   * timeout ended the sleep; a mechanism that cannot tell returns nothing.
   */
  sleep(words: Int32Array, index: number, expected: number, ms: number): boolean | void;
  /**
   * Sleeps as `sleep` does, but without blocking the thread. Returns `undefined` where a timer has
   * to take its place. The promise resolves with `"timed-out"` if only the timeout ended the sleep.
   * `keep` says whether the sleep may keep the process alive; by default it may.
   */
  sleepAsync(
    words: Int32Array,
    index: number,
    expected: number,
    ms: number,
    keep?: boolean,
  ): Promise<unknown> | undefined;
  /** Wakes every thread that sleeps on the word. */
  notify(words: Int32Array, index: number): void;
  /**
   * Marks dead peers as failed, where the mechanism can detect them. An endpoint calls it after
   * each sleep. [wait.liveness]
   */
  checkPeers?(): void;
  /**
   * Whether the owner of an endpoint is alive, where the mechanism can tell. [segment.vacate_dead]
   */
  isAlive?(endpoint: number): boolean;
}

/** Whether this thread may block: a browser's main thread and some worklets may not. */
export function mayBlock(): boolean {
  try {
    sleepBlind(0);
    return true;
  } catch {
    return false;
  }
}

const AGENT: Mechanism = {
  rings: layout.WAKE_MECHANISM_AGENT,
  sleeps: layout.WAKE_MECHANISM_AGENT,
  get blocks() {
    return mayBlock();
  },
  sleep: (words, index, expected, ms) => Atomics.wait(words, index, expected, ms) !== "timed-out",
  sleepAsync(words, index, expected, ms) {
    const result = Atomics.waitAsync?.(words, index, expected, ms);
    return result && Promise.resolve(result.value);
  },
  // Notify all sleepers: a `waitAsync` that timed out cannot be cancelled, and would use up a wake
  // that was meant for a single sleeper.
  notify: (words, index) => void Atomics.notify(words, index),
};

const POLLING: Mechanism = {
  rings: 0,
  sleeps: 0,
  get blocks() {
    return mayBlock();
  },
  sleep: (_words, _index, _expected, ms) => sleepBlind(Math.min(ms, layout.WAIT_POLL_MS)),
  sleepAsync: () => undefined,
  notify: () => {},
};

/**
 * The mechanism for agents of one cluster: JavaScript threads, and the WebAssembly in them. It is
 * the default on shared memory, and does not work on any other. [wait.wakes]
 *
 * @example
 * ```ts
 * import { agentMechanism } from "@millrace/millrace";
 *
 * agentMechanism().blocks; // false on a browser's main thread
 * ```
 */
export function agentMechanism(): Mechanism {
  return AGENT;
}

/**
 * The mechanism that rings nobody and, instead of sleeping, looks again every few milliseconds. It
 * is for memory that another process shares, and for memory that is not shared at all.
 *
 * @example
 * ```ts
 * import { pollingMechanism, Port } from "@millrace/millrace";
 *
 * using port = Port.create({ mechanism: pollingMechanism() });
 * port.read({ timeout: 3 }); // undefined
 * ```
 */
export function pollingMechanism(): Mechanism {
  return POLLING;
}

/** The default mechanism for the memory of a segment or a mailbox. */
export const defaultMechanism = ({ shared }: { readonly shared: boolean }): Mechanism =>
  shared ? AGENT : POLLING;

/** The parts of the global scope that tell how many processors there are. */
interface Scope {
  readonly navigator?: { readonly hardwareConcurrency?: number } | undefined;
  readonly process?: {
    getBuiltinModule?(name: "node:os"): { availableParallelism(): number } | undefined;
  };
}

/**
 * The number of processors of the machine. Node has `navigator` from version 21 on. Where the
 * runtime does not tell, the answer is 2, because a spin in vain costs less than a sleep for each
 * answer. `process` is looked up last, because Deno then loads much of its compatibility layer for
 * Node.
 */
export const processorCount = (scope: Scope = globalThis as Scope): number =>
  scope.navigator?.hardwareConcurrency ??
    scope.process?.getBuiltinModule?.("node:os")?.availableParallelism() ?? 2;
