/**
 * Turns of the event loop, what ends a promise, and timers that do not keep a process alive. What a
 * runtime has of its own is found by looking for it.
 *
 * @module
 */

import { now } from "./segment.ts";

/** What some runtimes have and others lack. */
interface Runtime {
  setImmediate?(callback: () => void): unknown;
  Deno?: { unrefTimer?(timer: unknown): void };
}

/**
 * Nothing else is looked up before it is needed. Deno makes its timers, `setImmediate` among them,
 * and `process` at their first touch, which took 5 ms and 7 in a fresh worker (measured: Deno 2.9).
 */
const { Deno } = globalThis as Runtime;

/** Lets a timer, or what `setImmediate` returned, not keep the process alive. */
export function unref(timer: unknown): void {
  const { unref } = timer as { unref?(): void };
  if (typeof unref === "function") unref.call(timer); // Node
  else if (typeof timer === "number") Deno?.unrefTimer?.(timer);
}

/**
 * Ends in a task of its own, behind timers and whatever else has come. `keep` says whether the
 * process lives so long; if it lives anyway, that makes no difference to when this ends. `isKept`
 * says that something else keeps it.
 */
export function nextTask(keep: boolean, isKept: boolean = false): Promise<void> {
  return new Promise((resolve) => {
    if (Deno !== undefined) return keep && !isKept ? postTask(resolve) : looseTask(resolve);
    const { setImmediate } = globalThis as Runtime;
    if (setImmediate === undefined) return postTask(resolve);
    if (!keep) return looseTask(resolve);
    setImmediate(resolve);
  });
}

/** In a page, where timers within timers wait for 4 ms, and in Deno. The port keeps it alive. */
function postTask(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(undefined);
}

/** Nobody else sleeps on it. */
let word: Int32Array | undefined;

/**
 * Calls back in a task that does not keep the process alive. An unref'd immediate does not wake an
 * idle event loop, in Node as in Deno; the end of a `waitAsync` does.
 *
 * Deno calls back at that end: an unref'd immediate would still wait there until something else
 * wakes the loop. Node calls back in an unref'd immediate, which that end only wakes: a callback at
 * the end itself, which asks for another such task each time, would not let the process end. An
 * unref'd `MessagePort` is no way: timers came late in Node, and Deno did not end (measured:
 * Node 24, Deno 2.9).
 */
function looseTask(callback: () => void): void {
  if (typeof Atomics.waitAsync !== "function") return unref(setTimeout(callback, 0));
  word ??= new Int32Array(new SharedArrayBuffer(4));
  const { value } = Atomics.waitAsync(word, 0, 0) as { value: Promise<unknown> };
  Atomics.notify(word, 0);
  if (Deno !== undefined) value.then(callback);
  else unref((globalThis as Runtime).setImmediate!(callback));
}

/** An event loop that is kept busy by what arrives at once turns after so long. */
const GIVE_WAY_MS = 8;
/** When the event loop of this thread turned last, as far as is known; -1 just after a turn. */
let turned = -1;

/** Notes that the event loop has turned. */
export function noteTurn(): void {
  turned = -1;
}

/** Lets the event loop turn if it has not for a while: a flood must not starve it. */
export function giveWay(): Promise<void> | undefined {
  const time = now();
  if (turned < 0) turned = time;
  return time - turned < GIVE_WAY_MS ? undefined : nextTask(true).then(noteTurn);
}

/** Longer ones a timer takes for none. */
export const LONGEST_TIMER_MS = 0x7fffffff;

/**
 * Waits until somebody calls `end`, which `begin` is given, and resolves with its value; or with
 * undefined after so many milliseconds, or when the signal aborts, which it does not report. Then
 * `quit` is called first.
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
    // Without an end of time no timer is needed. Node warns of a negative one.
    const most = Math.min(Math.max(0, ms), LONGEST_TIMER_MS);
    const timer = ms < Infinity ? setTimeout(stop, most) : undefined;
    signal?.addEventListener("abort", stop);
  });
}

/** Takes something out of a list. Returns whether it was there. */
export function remove<T>(list: T[], one: T): boolean {
  const index = list.indexOf(one);
  return index >= 0 && list.splice(index, 1).length > 0;
}

/**
 * Calls back every so many milliseconds, until what it returns is called. It keeps no process
 * alive.
 */
export function repeat(callback: () => void, ms: number): () => void {
  if (Deno === undefined) {
    const timer = setInterval(callback, ms);
    unref(timer);
    return () => clearInterval(timer);
  }
  // Without a timer: by sleeps on a word of its own.
  const word = new Int32Array(new SharedArrayBuffer(4));
  let isOver = false;
  const sleep = () => {
    const { value } = Atomics.waitAsync(word, 0, 0, ms) as { value: Promise<unknown> };
    value.then(() => {
      // Where the time was up just before the end, nothing was there to be notified.
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

/** A port as Deno and Node have it. */
interface Keeper extends MessagePort {
  ref?(): void;
  unref?(): void;
}

/** Keeps the process alive for all: a channel takes 15 to 35 µs to make (measured: Deno 2.9). */
let keeper: Keeper | undefined;
let keptCount = 0;

/** So many more, or less, want the process to live. */
export function keepAlive(change: 1 | -1): void {
  keptCount += change;
  if (keeper === undefined) {
    keeper = new MessageChannel().port1 as Keeper;
    // A handler would start it too, and takes 0.2 ms more in a thread that has just started.
    keeper.start();
  }
  if (keptCount > 0) keeper.ref?.();
  else keeper.unref?.();
}
