/**
 * Turns of the event loop, promises that end at a call, a timeout or an abort, and timers that do
 * not keep a process alive. Features that only some runtimes have are detected by looking for them.
 *
 * @module
 */

import {
  clearInterval,
  clearTimeout,
  immediate,
  now,
  setInterval,
  setTimeout,
} from "../memory/clock.ts";

/** Features that some runtimes have and others lack. */
interface Runtime {
  Deno?: { unrefTimer?(timer: unknown): void };
}

const { Deno } = globalThis as Runtime;

/** Stops a timer, or the result of `setImmediate`, from keeping the process alive. */
export function unref(timer: unknown): void {
  const { unref } = timer as { unref?(): void };
  if (typeof unref === "function") unref.call(timer); // Node
  else if (typeof timer === "number") Deno?.unrefTimer?.(timer);
}

/**
 * Resolves in a new task, after due timers and other events that have arrived. `keep` says whether
 * the promise keeps the process alive until then; the moment at which it resolves does not depend
 * on it. `isKept` says that something else keeps the process alive already.
 */
export function nextTask(keep: boolean, isKept: boolean = false): Promise<void> {
  return new Promise((resolve) => {
    if (Deno !== undefined) return keep && !isKept ? postTask(resolve) : postUnrefTask(resolve);
    const setImmediate = immediate();
    if (setImmediate === undefined) return postTask(resolve);
    if (!keep) return postUnrefTask(resolve);
    setImmediate(resolve);
  });
}

/**
 * Posts a task through a `MessageChannel`, which keeps the process alive. It is used in Deno, and
 * in web pages, which delay nested timers by 4 ms.
 */
function postTask(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(undefined);
}

/** The word that `postUnrefTask` sleeps on. No other code sleeps on it. */
let word: Int32Array | undefined;

/**
 * Calls back in a new task that does not keep the process alive. In Node and in Deno, an unref'd
 * immediate does not wake an idle event loop; the end of a `waitAsync` does.
 *
 * In Deno, the end of the `waitAsync` calls back itself: an unref'd immediate would still wait
 * there until something else wakes the loop. In Node, that end only wakes the loop, and an unref'd
 * immediate calls back: if the end called back itself, a callback that asks for another such task
 * each time would not let the process end. An unref'd `MessagePort` does not work: timers came late
 * in Node, and Deno did not end (measured: Node 24, Deno 2.9).
 */
function postUnrefTask(callback: () => void): void {
  if (typeof Atomics.waitAsync !== "function") return unref(setTimeout(callback, 0));
  word ??= new Int32Array(new SharedArrayBuffer(4));
  const { value } = Atomics.waitAsync(word, 0, 0) as { value: Promise<unknown> };
  Atomics.notify(word, 0);
  if (Deno !== undefined) value.then(callback);
  else unref(immediate()!(callback));
}

/** After so many milliseconds, an event loop that always finds more to do at once must turn. */
const GIVE_WAY_MS = 8;
/**
 * The time at which this thread's event loop is known to have turned last; -1 just after a turn.
 */
let turned = -1;

/** Notes that the event loop has turned. */
export function noteTurn(): void {
  turned = -1;
}

/** Lets the event loop turn if it has not for `GIVE_WAY_MS`: a flood must not starve it. */
export function giveWay(): Promise<void> | undefined {
  const time = now();
  if (turned < 0) turned = time;
  return time - turned < GIVE_WAY_MS ? undefined : nextTask(true).then(noteTurn);
}

/** The longest delay that a timer accepts; a timer with a longer one fires at once. */
export const LONGEST_TIMER_MS = 0x7fffffff;

/**
 * Waits until the function `end`, which `begin` receives, is called, and resolves with its
 * argument. After `ms` milliseconds, or when the signal aborts, it calls `quit` and resolves with
 * undefined; an abort is not reported.
 */
export function until(
  ms: number,
  signal: AbortSignal | undefined,
  begin: (end: (value?: boolean) => void) => void,
  quit?: () => void,
): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    const end = (value?: boolean) => {
      if (timer !== undefined) clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      resolve(value);
    };
    const stop = () => {
      quit?.();
      end();
    };
    begin(end);
    // Infinity needs no timer. Node warns of a negative delay.
    const most = Math.min(Math.max(0, ms), LONGEST_TIMER_MS);
    const timer = ms < Infinity ? setTimeout(stop, most) : undefined;
    signal?.addEventListener("abort", stop);
  });
}

/** Removes an element from an array. Returns whether it was there. */
export function remove<T>(list: T[], one: T): boolean {
  const index = list.indexOf(one);
  return index >= 0 && list.splice(index, 1).length > 0;
}

/**
 * Calls back every `ms` milliseconds until the function that it returns is called. It does not keep
 * the process alive.
 */
export function repeat(callback: () => void, ms: number): () => void {
  if (Deno === undefined) {
    const timer = setInterval(callback, ms);
    unref(timer);
    return () => clearInterval(timer);
  }
  // Deno: sleeps on a word of its own, because the first use of timers takes 5 ms.
  const word = new Int32Array(new SharedArrayBuffer(4));
  let isOver = false;
  const sleep = () => {
    const { value } = Atomics.waitAsync(word, 0, 0, ms) as { value: Promise<unknown> };
    value.then(() => {
      // If the sleep timed out just before `repeat` was ended, the notify found no sleeper.
      if (isOver) return;
      sleep();
      callback();
    });
  };
  sleep();
  return () => {
    isOver = true;
    Atomics.notify(word, 0);
  };
}

/** A `MessagePort` with the `ref` and `unref` that Deno and Node add. */
interface Keeper extends MessagePort {
  ref?(): void;
  unref?(): void;
}

/**
 * One channel keeps the process alive for all callers: creating one takes 15 to 35 µs (measured:
 * Deno 2.9). Both of its ends are held: in Bun 1.4, an end whose other end was collected keeps
 * nothing alive.
 */
let keeper: { readonly port1: Keeper; readonly port2: Keeper } | undefined;
let keptCount = 0;

/** Adds one to the number of callers that want the process to live, or takes one away. */
export function keepAlive(change: 1 | -1): void {
  keptCount += change;
  if (keeper === undefined) {
    const { port1, port2 } = new MessageChannel();
    keeper = { port1, port2 };
    // Setting a handler would start the port too, but takes 0.2 ms more in a thread that has just
    // started.
    port1.start();
  }
  if (keptCount > 0) keeper.port1.ref?.();
  else keeper.port1.unref?.();
}
