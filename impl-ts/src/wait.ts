/**
 * How a thread sleeps on a word of shared memory, and how it is woken: one `Mechanism` for each
 * kind of sleep. The rest of the code does not know which it has. See `spec/wait.md`.
 *
 * @module
 */

import { TAKEN } from "./gate.ts";
import { WAIT_POLL_MS, WAKE_MECHANISM_AGENT } from "./layout.ts";
import { now, sleepBlind } from "./segment.ts";
import type { Sight } from "./wait_spinner.ts";
import { remove, until } from "./wait_task.ts";

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

/** What a wait waits for, and what ends it: a side of a ring, or something that comes by it. */
export interface Waitable extends Sight {
  /** Index of the endpoint at the other end; of several, the first. */
  readonly peer: number;
  /** What it is made of, where it is several. */
  readonly parts?: readonly Waitable[] | undefined;
  /** Stores the `wants` word. */
  arm(): void;
  /** Stores it again where it is no longer what `arm` would store. [wait.stay_armed] */
  stayArmed(): void;
  /** Clears it, unless another wait of this endpoint still needs it. */
  disarm(): void;
}

/** Waits for whichever of several comes first; they are woken by the bell of one endpoint. */
export class Several implements Waitable {
  readonly peer: number;
  readonly parts: readonly Waitable[];

  /** Joins what can be waited for by one endpoint; one at least. */
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

/** Whether what is waited for may be there, or a state ends the wait. */
export function found(what: Sight): boolean {
  return what.look() || what.lookAround();
}

/** Waits for what another one waits for, and looks in a way of its own whether it is there. */
export class Looking implements Waitable {
  readonly peer: number;
  readonly parts: readonly Waitable[] | undefined;
  readonly look: () => boolean;
  readonly #what: Waitable;

  /** Makes one that looks so. */
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

/** Whether this thread may block; a browser's main thread and some worklets may not. Tried once. */
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
    // All of them: a timed-out `waitAsync` cannot be taken back and would eat a single wake.
    notify: (words, index) => void Atomics.notify(words, index),
  };
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

  /** Gives the turn to the next in line. */
  give(): void {
    if (this.#queue.length === 0) this.#gate.bits &= ~TAKEN;
    else this.#queue.shift()!();
  }
}
