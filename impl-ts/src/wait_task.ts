/**
 * Turns of the event loop, and timers that do not keep a process alive. What a runtime has of its
 * own is found by looking for it.
 *
 * @module
 */

/** What some runtimes have and others lack. */
interface Runtime {
  setImmediate?(callback: () => void): unknown;
  Deno?: { unrefTimer?(timer: unknown): void };
  process?: { nextTick?(callback: () => void): void };
}

const { setImmediate, Deno } = globalThis as Runtime;

/** Lets a timer, or what `setImmediate` returned, not keep the process alive. */
export function unref(timer: unknown): void {
  const { unref } = timer as { unref?(): void };
  if (typeof unref === "function") unref.call(timer); // Node
  else if (typeof timer === "number") Deno?.unrefTimer?.(timer);
}

/**
 * Calls back before a worker of Deno that calls `self.close()` in this job ends, which it does at
 * once, without running its microtasks; ticks of Node's kind it still runs (measured: Deno 2.9).
 * Where there is nothing of the kind, it does nothing.
 */
export function beforeEnd(callback: () => void): void {
  if (Deno === undefined) return;
  (globalThis as Runtime).process?.nextTick?.(callback);
}

/**
 * Ends in a task of its own, behind timers and whatever else has come. `keep` says whether the
 * process lives so long.
 */
export function nextTask(keep: boolean): Promise<void> {
  return new Promise((resolve) => {
    if (setImmediate !== undefined) {
      const immediate = setImmediate(resolve);
      if (!keep) unref(immediate);
      return;
    }
    // A page: there, timers within timers wait for 4 ms.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}
