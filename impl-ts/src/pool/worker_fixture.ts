/** The module of work of the tests of pools. */

import { work, type WorkContext } from "./pool.ts";
import { MillraceError } from "../error.ts";

const scope = globalThis as unknown as {
  addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
  close(): void;
};
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** How often each task was handled, by its number, for tests that count. */
let counts: Int32Array | undefined;

scope.addEventListener("message", ({ data }) => {
  if (data.counts !== undefined) counts = new Int32Array(data.counts);
});

function raise(error: unknown): never {
  throw error;
}

function busy(ms: number): number {
  const until = performance.now() + ms;
  while (performance.now() < until);
  return ms;
}

export default work({
  twice: (n: number) => 2 * n,
  echo: (value: unknown) => value,
  /** Its name has no UTF-8. */
  "\ud800": (_: unknown) => "found",
  busy,
  *each(n: number): Generator<number> {
    for (let index = 0; index < n; index++) yield index;
  },
  long: (n: number) => "x".repeat(n),
  /** Blocks without using its processor; only the end of the worker could end it earlier. */
  blocked(ms: number) {
    if (counts !== undefined) Atomics.add(counts, 0, 1);
    return Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  },
  /** Blocks until the first count is not 0. */
  gate: (_: number) => Atomics.wait(counts!, 0, 0, 10_000),
  /** Counts itself when later tasks have come, and blocks until the next count is not 0. */
  async blockedLater(id: number) {
    await null;
    Atomics.add(counts!, id, 1);
    return Atomics.wait(counts!, id + 1, 0, 10_000);
  },
  /** Ends at once, and then blocks its worker for a while. */
  pausesBehind(ms: number) {
    setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms));
  },
  thenThrows: (_: number) => ({
    then() {
      throw new RangeError("no promise");
    },
  }),
  /** Gives, or throws, something odd of this kind. */
  odd(kind: string): unknown {
    const boom = () => {
      throw new RangeError("boom");
    };
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    if (kind === "nextGetter") return Object.defineProperty({}, "next", { get: boom });
    if (kind === "hasTrap") return new Proxy({}, { has: boom });
    if (kind === "revoked") return proxy;
    if (kind === "jsonLost") {
      return { toJSON: () => raise(new MillraceError("peer.closed", "of the task's own")) };
    }
    if (kind === "jsonRevoked") return { toJSON: () => raise(proxy) };
    if (kind === "later") return Promise.resolve(new Proxy({}, { has: boom }));
    if (kind === "rejected") return Promise.reject(proxy);
    if (kind === "twice") {
      return {
        then(done: (n: unknown) => void, fail: (error: unknown) => void) {
          done(Promise.resolve(1));
          done(2);
          fail(3);
          boom();
        },
      };
    }
    throw proxy;
  },
  async later(ms: number): Promise<number> {
    await pause(ms);
    return ms;
  },
  fail(text: string): never {
    throw Object.assign(new RangeError(text), { data: { text } });
  },
  /** Ends when it is told that the task was given up. */
  async hang(_: number, { signal }: WorkContext): Promise<string> {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return "told";
  },
  never(_: number): Promise<never> {
    if (counts !== undefined) Atomics.add(counts, 0, 1);
    return new Promise(() => {});
  },
  async close(_: number): Promise<never> {
    scope.close();
    return await new Promise<never>(() => {});
  },
  async crash(_: number): Promise<never> {
    setTimeout(() => {
      throw new Error("a crash on purpose");
    });
    return await new Promise<never>(() => {});
  },
  unsendable: () => ({ n: 1n }),
  /**
   * Counts itself, and takes up to 50 µs, or a turn of the event loop in which a worker may be
   * ended.
   */
  count(id: number): number | Promise<number> {
    Atomics.add(counts!, id, 1);
    if (id % 16 === 0) return pause(1).then(() => id);
    busy((id % 6) / 100);
    return id;
  },
});
