/**
 * Says what is running, where nothing is shown for a while: a machine that compiles, or searches a
 * model, looks like one that hangs.
 *
 * @module
 */
import { lastShownMs } from "./run.ts";

/** So long nothing is shown, and then a line. */
export const QUIET_MS = 20_000;

/** What is running, and since when. Times are those of `performance.now`. */
export class Running {
  readonly #since: Map<symbol, [name: string, ms: number]> = new Map();
  #saidMs = 0;

  /** Something begins; returns what says that it has ended. */
  begin(name: string, nowMs: number = performance.now()): () => void {
    const key = Symbol();
    this.#since.set(key, [name, nowMs]);
    return () => this.#since.delete(key);
  }

  /** What to say now, if anything, when something was shown last at `shownMs`. */
  line(nowMs: number, shownMs: number): string | undefined {
    if (this.#since.size === 0 || nowMs - Math.max(shownMs, this.#saidMs) < QUIET_MS) return;
    this.#saidMs = nowMs;
    const each = [...this.#since.values()]
      .map(([name, ms]) => `${name} for ${((nowMs - ms) / 1000).toFixed(0)} s`);
    return `running: ${each.join(", ")}`;
  }
}

/** Says it on standard error, as long as this process goes on. */
export function sayWhatRuns(): Running {
  const running = new Running();
  const timer = setInterval(() => {
    const line = running.line(performance.now(), lastShownMs());
    if (line !== undefined) console.error(line);
  }, QUIET_MS / 10);
  Deno.unrefTimer(timer);
  return running;
}
