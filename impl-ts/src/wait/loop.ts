/**
 * The event loop of this thread: its turns, its timers, and what keeps its process alive. Features
 * that only some runtimes have are looked up when they are first needed, since some take
 * milliseconds to be made in a thread that has just started.
 *
 * @module
 */

import { clearTimeout, immediate, now, setTimeout } from "../memory/clock.ts";

/** What some runtimes have and others lack. */
interface Runtime {
  readonly Deno?: { unrefTimer?(timer: unknown): void };
}

const { Deno } = globalThis as Runtime;

/** What is chained to this promise runs as a microtask. */
export const SETTLED: Promise<void> = /* @__PURE__ */ Promise.resolve();

/** The longest delay that a timer accepts: one with a longer delay fires at once. */
export const TIMER_MAX_MS = 0x7fffffff;

/** Stops a timer from keeping the process alive. */
export function unref(timer: unknown): void {
  const node = timer as { unref?(): void };
  if (node.unref) node.unref();
  else Deno?.unrefTimer?.(timer);
}

/**
 * Calls back after so many milliseconds, 0 or more, once; never, if they are Infinity. Returns what
 * stops the timer.
 */
export function after(ms: number, callback: () => void): (() => void) | undefined {
  if (ms === Infinity) return undefined;
  const timer = setTimeout(callback, Math.min(ms, TIMER_MAX_MS));
  return () => clearTimeout(timer);
}

/**
 * Calls back every `ms` milliseconds until the function that it returns is called. It does not keep
 * the process alive.
 */
export function repeat(ms: number, callback: () => void): () => void {
  // Deno: sleeps on a word of its own, because the first use of a timer takes 5 ms.
  const word = Deno && new Int32Array(new SharedArrayBuffer(4));
  let isOver = false;
  const sleep = () => {
    if (word) (Atomics.waitAsync(word, 0, 0, ms).value as Promise<unknown>).then(tick);
    else if ("setTimeout" in globalThis) unref(setTimeout(tick, ms)); // an audio worklet has none
  };
  const tick = () => {
    if (isOver) return;
    sleep();
    callback();
  };
  sleep();
  return () => {
    isOver = true;
    if (word) Atomics.notify(word, 0);
  };
}

/**
 * Calls back in a new task, after due timers and other events that have arrived. `keeps` says
 * whether the process lives until then.
 */
export function nextTask(callback: () => void, keeps = true): void {
  const run = () => {
    noteTurn();
    callback();
  };
  if (!keeps) return unref(setTimeout(run, 0));
  // Deno makes `setImmediate` at its first use, and web pages delay nested timers by 4 ms.
  const setImmediate = Deno ? undefined : immediate();
  if (setImmediate) return void setImmediate(run);
  if (!("MessageChannel" in globalThis)) return void SETTLED.then(run); // in an audio worklet
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    run();
  };
  port2.postMessage(0);
}

/** When an event loop that always finds more to do at once must turn. */
export const enum Turn {
  /** Milliseconds after which it must. */
  MS = 4,
  /** Asynchronous calls between two looks at the clock. */
  STREAK = 64,
}

/**
 * What this thread has done since its event loop turned last: when it was first asked, -1 if not
 * yet; how many messages its ports have delivered, and since when; and how many ports listen.
 */
export const turn: { since: number; delivered: number; began: number; listening: number } = {
  since: -1,
  delivered: 0,
  began: 0,
  listening: 0,
};

/** Notes that the event loop has turned. */
export function noteTurn(): void {
  turn.since = -1;
  turn.delivered = 0;
}

/** Lets the event loop turn if it has not for a while: a flood must not starve it. */
export function giveWay(): Promise<void> | undefined {
  const time = now();
  if (turn.since < 0) turn.since = time;
  if (time - turn.since < Turn.MS) return undefined;
  return new Promise<void>((resolve) => nextTask(resolve));
}

/** A `MessagePort` with the `ref` and `unref` that Deno and Node add. */
interface Keeper extends MessagePort {
  ref?(): void;
  unref?(): void;
}

let keepers: MessageChannel | undefined;
let keptCount = 0;

/**
 * Adds one to those who want the process to live, or takes one away: no sleep on a word keeps it
 * alive. One channel serves all, whose other end is kept too: in Bun a channel with one end does
 * not keep a worker alive.
 */
export function keepAlive(change: 1 | -1): void {
  if (!("MessageChannel" in globalThis)) return; // in an audio worklet
  keptCount += change;
  // Setting a handler would start the port too, but takes 0.2 ms more in a fresh thread.
  if (!keepers) (keepers = new MessageChannel()).port1.start();
  (keepers.port1 as Keeper)[keptCount > 0 ? "ref" : "unref"]?.();
}
