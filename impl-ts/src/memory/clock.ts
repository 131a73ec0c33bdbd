/**
 * The clocks and timers of the platform, as they were when this module was loaded. A test framework
 * that fakes them while a test runs (vitest, jest, sinon, `node:test`) must not stop a port: its
 * peers are in other threads, whose clocks go on.
 *
 * @module
 */

/** What can be read of a global that `@sinonjs/fake-timers` has faked: the real one. */
interface Faked {
  readonly clock?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Returns what reads a global, or a member of `scope`, as it is now. Deno and Node define some of
 * them by a getter, which loads a library at the first touch: that is left to the first use.
 * vitest, jest and sinon all fake by `@sinonjs/fake-timers`, perhaps before this module is loaded.
 */
function keep<T>(name: string, scope: object = globalThis): () => T {
  const get = Object.getOwnPropertyDescriptor(scope, name)?.get;
  if (get) return () => get.call(scope);
  const value = (scope as Record<string, Faked | undefined>)[name];
  const real = (value?.clock?.[`_${name}`] ?? value) as T;
  return () => real;
}

/** The parts of the global scope that differ between places. */
interface Scope {
  readonly Deno?: unknown;
  readonly process?: object;
}

type SetTimer = (callback: (none?: undefined) => void, ms?: number) => unknown;
type ClearTimer = (timer: unknown) => void;

/** A clock of the platform. */
interface Clock {
  now(): number;
}

/** A clock that counts from the moment `timeOrigin`. */
interface FineClock extends Clock {
  readonly timeOrigin: number;
}

const { Deno } = globalThis as Scope;
const timeout = /* @__PURE__ */ keep<SetTimer>("setTimeout");
const noTimeout = /* @__PURE__ */ keep<ClearTimer>("clearTimeout");
const interval = /* @__PURE__ */ keep<SetTimer>("setInterval");
const noInterval = /* @__PURE__ */ keep<ClearTimer>("clearInterval");
const date = /* @__PURE__ */ keep<Clock>("Date");
const performance = /* @__PURE__ */ keep<FineClock | undefined>("performance");
// In Deno, the first touch of `process` takes 8 ms (measured: Deno 2.9).
const hrtime = /* @__PURE__ */ keep<(() => [seconds: number, nanoseconds: number]) | undefined>(
  "hrtime",
  Deno ? {} : (globalThis as Scope).process,
);

/** The platform's `setImmediate`, in the places that have one. */
export const immediate: () => ((callback: () => void) => unknown) | undefined =
  /* @__PURE__ */ keep("setImmediate");

/** Sets a timer of the platform. */
export const setTimeout: SetTimer = (callback, ms) => timeout()(callback, ms);

/** Ends a timer that `setTimeout` has set. */
export const clearTimeout: ClearTimer = (timer) => noTimeout()(timer);

/** Sets a timer that repeats. */
export const setInterval: SetTimer = (callback, ms) => interval()(callback, ms);

/** Ends a timer that `setInterval` has set. */
export const clearInterval: ClearTimer = (timer) => noInterval()(timer);

/** The time in milliseconds, by the clock of all deadlines and of everything that is timed. */
export let now: () => number = () => (now = findClock())();

/**
 * Finds that clock. In Node, the first touch of `performance` in a thread loads a library, which
 * takes 0.6 ms (measured: Node 24). An audio worklet has only the clock of the system. A call that
 * must not block there has to report that, and not that it has no clock.
 */
function findClock(): () => number {
  const read = hrtime();
  if (read) {
    return () => {
      const time = read();
      return time[0] * 1e3 + time[1] / 1e6;
    };
  }
  const clock = performance() ?? date();
  return () => clock.now();
}

/** Milliseconds since the Unix epoch, by the system's clock, which may be set. */
export const systemTime = (): number => date().now();

/** The finer clock of the platform; undefined in an audio worklet. */
export const fineClock = (): FineClock | undefined => performance();
