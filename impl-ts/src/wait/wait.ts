/**
 * How a thread sleeps on a word of shared memory, and how it is woken. Each kind of sleep is one
 * `Mechanism`; the rest of the code does not know which one an endpoint uses. See `spec/wait.md`.
 *
 * @module
 */

import { TAKEN } from "../memory/gate.ts";
import { WAIT_POLL_MS, WAKE_MECHANISM_AGENT } from "../memory/layout.ts";
import { now, sleepBlind } from "../memory/segment.ts";
import type { Sight } from "./spinner.ts";
import { remove, until } from "./task.ts";

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

/** What a wait waits for and what ends it: one side of a ring, or several of them together. */
export interface Waitable extends Sight {
  /** Index of the endpoint at the other end; the first one's, if there are several. */
  readonly peer: number;
  /** The single waitables that this one joins, if it joins several. */
  readonly parts?: readonly Waitable[] | undefined;
  /** Stores the `wants` word. */
  arm(): void;
  /**
   * Stores the `wants` word again if it no longer holds what `arm` would store. [wait.stay_armed]
   */
  stayArmed(): void;
  /** Clears the `wants` word, unless another wait of this endpoint still needs it. */
  disarm(): void;
}

/** Waits until any one of several waitables is ready. The bell of one endpoint wakes them all. */
export class Several implements Waitable {
  readonly peer: number;
  readonly parts: readonly Waitable[];

  /** Joins the waitables of one endpoint. There must be at least one. */
  constructor(parts: readonly Waitable[]) {
    this.peer = parts[0]!.peer;
    this.parts = parts;
  }

  look(): boolean {
    return this.parts.some((part) => part.look());
  }

  lookAround(): boolean {
    return this.parts.some((part) => part.lookAround());
  }

  arm(): void {
    for (const part of this.parts) part.arm();
  }

  stayArmed(): void {
    for (const part of this.parts) part.stayArmed();
  }

  disarm(): void {
    for (const part of this.parts) part.disarm();
  }
}

/** Whether the thing waited for may be there, or a state ends the wait. */
export function found(what: Sight): boolean {
  return what.look() || what.lookAround();
}

/** Waits for the same as another waitable, but tells by its own `look` whether it is there. */
export class Looking implements Waitable {
  readonly peer: number;
  readonly parts: readonly Waitable[] | undefined;
  readonly look: () => boolean;
  readonly #what: Waitable;

  /** Wraps a waitable and replaces its `look`. */
  constructor(what: Waitable, look: () => boolean) {
    this.peer = what.peer;
    this.parts = what.parts;
    this.look = look;
    this.#what = what;
  }

  lookAround(): boolean {
    return this.#what.lookAround();
  }

  arm(): void {
    this.#what.arm();
  }

  stayArmed(): void {
    this.#what.stayArmed();
  }

  disarm(): void {
    this.#what.disarm();
  }
}

/** One side of a ring, which may hold something back that a peer waits for. */
export interface Holder {
  /**
   * Publishes the finished frames that it holds back, or gives back the space that it has released.
   */
  letGo(): void;
}

/** Has accepted messages, and must place them in its ring, whatever its endpoint waits for. */
export interface Duty {
  /** Places what there is room for. Returns what to wait for if there may be room for the rest. */
  attend(): Waitable | undefined;
}

/** Whether this thread may block: a browser's main thread and some worklets may not. Tried once. */
export function mayBlock(): boolean {
  if (allowed !== undefined) return allowed;
  try {
    sleepBlind(0);
    allowed = true;
  } catch {
    allowed = false;
  }
  return allowed;
}

let allowed: boolean | undefined;
let agent: Mechanism | undefined;
let polling: Mechanism | undefined;

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
  return agent ??= {
    rings: WAKE_MECHANISM_AGENT,
    sleeps: WAKE_MECHANISM_AGENT,
    get blocks() {
      return mayBlock();
    },
    sleep: (words, index, expected, ms) => Atomics.wait(words, index, expected, ms) !== "timed-out",
    sleepAsync(words, index, expected, ms) {
      const result = Atomics.waitAsync?.(words, index, expected, ms);
      return result && Promise.resolve(result.value);
    },
    // Notify all sleepers: a `waitAsync` that timed out cannot be cancelled, and would use up a
    // wake that was meant for a single sleeper.
    notify: (words, index) => void Atomics.notify(words, index),
  };
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
  return polling ??= {
    rings: 0,
    sleeps: 0,
    get blocks() {
      return mayBlock();
    },
    sleep: (_words, _index, _expected, ms) => sleepBlind(Math.min(ms, WAIT_POLL_MS)),
    sleepAsync: () => undefined,
    notify: () => {},
  };
}

/** The default mechanism for the memory of a segment or a mailbox. */
export function defaultMechanism({ shared }: { readonly shared: boolean }): Mechanism {
  return shared ? agentMechanism() : pollingMechanism();
}

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
export function processorCount(scope: Scope = globalThis as Scope): number {
  return scope.navigator?.hardwareConcurrency ??
    scope.process?.getBuiltinModule?.("node:os")?.availableParallelism() ?? 2;
}

/** Tells the processor that this is a spin loop, if the runtime has `Atomics.pause`. */
export const pause: () => void = (Atomics as { pause?: () => void }).pause ?? (() => {});

/**
 * Lets the asynchronous verbs of one end of a pipe run one at a time, in the order of the calls.
 */
export class Turns {
  readonly #gate: { bits: number };
  readonly #queue: (() => void)[] = [];

  /** Keeps the turn as a bit of `gate`; without an argument, in a word of its own. */
  constructor(gate: { bits: number } = { bits: 0 }) {
    this.#gate = gate;
  }

  /** Whether a call has the turn. */
  get busy(): boolean {
    return (this.#gate.bits & TAKEN) !== 0;
  }

  /** Takes the turn if no other call has it. */
  tryTake(): boolean {
    if (this.busy) return false;
    this.#gate.bits |= TAKEN;
    return true;
  }

  /**
   * Waits for the turn. Resolves with false at the deadline, and throws the signal's reason if the
   * signal aborts. `taken` is called at the moment when the turn is taken, before anything else can
   * run.
   */
  async take(
    deadline: number,
    signal: AbortSignal | undefined,
    taken?: () => void,
  ): Promise<boolean> {
    if (this.tryTake()) {
      taken?.();
      return true;
    }
    const queue = this.#queue;
    let start = () => {};
    const begin = (end: (isMine: boolean) => void) => {
      start = () => {
        taken?.();
        end(true);
      };
      queue.push(start);
    };
    const left = deadline - now();
    const isMine = await until(left, signal, begin, () => remove(queue, start));
    if (!isMine) signal?.throwIfAborted();
    return isMine === true;
  }

  /** Passes the turn to the next call in the queue. */
  give(): void {
    if (this.#queue.length === 0) this.#gate.bits &= ~TAKEN;
    else this.#queue.shift()!();
  }
}
