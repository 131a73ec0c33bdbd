/**
 * How a thread sleeps on a word of shared memory, and how it is woken: one `Mechanism` for each
 * kind of sleep. The rest of the code does not know which it has. See `spec/wait.md`.
 *
 * @module
 */

import { ForbiddenError } from "./error.ts";
import { TAKEN } from "./gate.ts";
import { WAIT_POLL_MS, WAKE_MECHANISM_AGENT } from "./layout.ts";
import { sleepBlind } from "./segment.ts";

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
  /** Bits of `wake_mechanism`: whose sleepers `notify` wakes. Stored in the endpoint's `wakes`. */
  readonly rings: number;
  /** The bit that a peer must be able to ring for this to sleep; 0 for a mechanism that polls. */
  readonly sleeps: number;
  /** Whether this thread may block. */
  readonly blocks: boolean;
  /**
   * Sleeps while the word holds `expected`, at most `ms` milliseconds. Returns `false` if nothing
   * but the time has ended it; who cannot tell returns nothing.
   */
  sleep(words: Int32Array, index: number, expected: number, ms: number): boolean | void;
  /**
   * The same without blocking; `undefined` where a timer has to do. Resolves with `"timed-out"` if
   * nothing but the time has ended it. `keep` says whether the sleep may keep the process alive; by
   * default it may.
   */
  sleepAsync(
    words: Int32Array,
    index: number,
    expected: number,
    ms: number,
    keep?: boolean,
  ): Promise<unknown> | undefined;
  /** Wakes all that sleep on the word. */
  notify(words: Int32Array, index: number): void;
  /** Marks peers that are dead, where it can find that out. Called after sleeps. [wait.liveness] */
  checkPeers?(): void;
  /** Whether the owner of an endpoint lives, where it can find that out. [segment.vacate_dead] */
  isAlive?(endpoint: number): boolean;
}

/** What a wait waits for: a side of a ring, or something that comes by it. */
export interface Waitable {
  /** Index of the endpoint at the other end. */
  readonly peer: number;
  /** What it is made of, where it is several. */
  readonly parts?: readonly Waitable[];
  /** Whether the peer's cursor has moved. Cheap; the caller then loads and checks it. */
  look(): boolean;
  /** Stores the `wants` word. */
  arm(): void;
  /** Stores it again where it is no longer what `arm` would store. [wait.stay_armed] */
  stayArmed(): void;
  /** Clears it, unless another wait of this endpoint still needs it. */
  disarm(): void;
}

/** Waits for what another one waits for, and looks in a way of its own whether it is there. */
export function withLook(what: Waitable, look: () => boolean): Waitable {
  return {
    peer: what.peer,
    look,
    arm: () => what.arm(),
    stayArmed: () => what.stayArmed(),
    disarm: () => what.disarm(),
  };
}

/** What may hold something back that a peer waits for: a side of a ring. */
export interface Holder {
  /** Publishes it, or gives it back. */
  letGo(): void;
}

/** What has accepted something, and has to place it whatever its endpoint waits for. */
export interface Duty {
  /** Places what there is room for. Returns what to wait for, if room for the rest may come. */
  attend(): Waitable | undefined;
}

/** Agents of one cluster: `Atomics.wait`, `Atomics.waitAsync` and `Atomics.notify`. */
function makeAgent(): Mechanism {
  return {
    rings: WAKE_MECHANISM_AGENT,
    sleeps: WAKE_MECHANISM_AGENT,
    get blocks() {
      return mayBlock();
    },
    sleep: (words, index, expected, ms) => Atomics.wait(words, index, expected, ms) !== "timed-out",
    sleepAsync(words, index, expected, ms) {
      if (typeof Atomics.waitAsync !== "function") return undefined;
      const result = Atomics.waitAsync(words, index, expected, ms);
      return result.async ? result.value : Promise.resolve();
    },
    // All of them: a timed-out `waitAsync` cannot be taken back and would eat a single wake.
    notify: (words, index) => void Atomics.notify(words, index),
  };
}

/** Memory whose sleepers nobody can wake from here: looks again every few milliseconds. */
function makePolling(): Mechanism {
  return {
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

/** Whether this thread may block; a browser's main thread and some worklets may not. Tried once. */
export function mayBlock(): boolean {
  if (allowed !== undefined) return allowed;
  try {
    sleepBlind(0);
    allowed = true;
  } catch (error) {
    if (!(error instanceof ForbiddenError)) throw error;
    allowed = false;
  }
  return allowed;
}

let allowed: boolean | undefined;
let agent: Mechanism | undefined;
let polling: Mechanism | undefined;

/**
 * The mechanism for agents of one cluster: threads, and the WebAssembly in them. The default on
 * shared memory, and impossible on any other. [wait.wakes]
 *
 * @example
 * ```ts
 * import { agentMechanism } from "@millrace/millrace";
 *
 * agentMechanism().blocks; // false on a browser's main thread
 * ```
 */
export function agentMechanism(): Mechanism {
  return agent ??= makeAgent();
}

/**
 * The mechanism that rings nobody, and looks again every few milliseconds instead of sleeping: for
 * memory that is shared with another process, or not at all.
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
  return polling ??= makePolling();
}

/** The mechanism that suits the memory of a segment or a mailbox. */
export function defaultMechanism({ shared }: { readonly shared: boolean }): Mechanism {
  return shared ? agentMechanism() : pollingMechanism();
}

/** What tells how many processors there are: a part of the global scope. */
interface Scope {
  readonly navigator?: { readonly hardwareConcurrency?: number } | undefined;
  readonly process?: {
    getBuiltinModule?(name: "node:os"): { availableParallelism(): number } | undefined;
  };
}

/**
 * The processors of the machine. Node has `navigator` from version 21 on. Where nothing tells, 2:
 * a spin in vain costs less than a sleep for each answer. `process` is looked up last: Deno loads
 * much of its compatibility with Node for it.
 */
export function processorCount(scope: Scope = globalThis as Scope): number {
  return scope.navigator?.hardwareConcurrency ??
    scope.process?.getBuiltinModule?.("node:os")?.availableParallelism() ?? 2;
}

/** Tells the processor that this is a spin loop, where the runtime can. */
export const pause: () => void = (Atomics as { pause?: () => void }).pause ?? (() => {});

/** One at a time, in the order of asking: the asynchronous verbs of one end of a pipe. */
export class Turns {
  readonly #gate: { bits: number };
  readonly #queue: (() => void)[] = [];

  /** Makes the turns of what has such bits, or of something without. */
  constructor(gate: { bits: number } = { bits: 0 }) {
    this.#gate = gate;
  }

  /** Whether somebody has the turn. */
  get busy(): boolean {
    return (this.#gate.bits & TAKEN) !== 0;
  }

  /** Takes the turn if nobody has it. */
  tryTake(): boolean {
    if (this.busy) return false;
    this.#gate.bits |= TAKEN;
    return true;
  }

  /**
   * Waits for the turn. Returns false at the deadline, and throws the reason of the signal. `taken`
   * is called when the turn comes, and so before anything else happens.
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
    let mine = false;
    await new Promise<void>((resolve) => {
      const stop = () => {
        const index = this.#queue.indexOf(start);
        if (index >= 0) this.#queue.splice(index, 1);
        settle();
      };
      const start = () => {
        mine = true;
        taken?.();
        settle();
      };
      const ms = Math.max(0, deadline - performance.now()); // Node warns of a negative one
      // Without a deadline no timer is needed: whoever has the turn keeps the event loop alive.
      const timer = ms < LONGEST_TIMER_MS ? setTimeout(stop, ms) : undefined;
      const settle = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
        resolve();
      };
      signal?.addEventListener("abort", stop);
      this.#queue.push(start);
    });
    if (!mine) signal?.throwIfAborted();
    return mine;
  }

  /** Gives the turn to the next in line. */
  give(): void {
    if (this.#queue.length === 0) this.#gate.bits &= ~TAKEN;
    else this.#queue.shift()!();
  }
}

/** Longer ones a timer takes for none. */
export const LONGEST_TIMER_MS = 0x7fffffff;
