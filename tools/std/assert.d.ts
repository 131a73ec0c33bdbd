/** The assertions of Deno's standard library that this repository uses. Add what you need. */

/** The error that every assertion throws. */
export class AssertionError extends Error {}

/** Asserts that the value is truthy. */
export function assert(value: unknown, message?: string): asserts value;

/** Asserts that the value is `false`. */
export function assertFalse(value: unknown, message?: string): asserts value is false;

/** Asserts that both are deeply equal, and shows the difference where they are not. */
export function assertEquals<T>(actual: T, expected: T, message?: string): void;

/** Asserts that the two are not deeply equal. */
export function assertNotEquals<T>(actual: T, expected: T, message?: string): void;

/** Asserts that both are the same by `Object.is`. */
export function assertStrictEquals<T>(actual: unknown, expected: T, message?: string): void;

/** Asserts that the value is neither `null` nor `undefined`. */
export function assertExists<T>(value: T, message?: string): asserts value is NonNullable<T>;

/** Asserts that the value is an instance of the class. */
// deno-lint-ignore no-explicit-any
export function assertInstanceOf<C extends abstract new (...args: any[]) => any>(
  value: unknown,
  type: C,
  message?: string,
): asserts value is InstanceType<C>;

/** Asserts that the text contains the part. */
export function assertStringIncludes(actual: string, expected: string, message?: string): void;

/** Asserts that the text matches the pattern. */
export function assertMatch(actual: string, expected: RegExp, message?: string): void;

/** Asserts that `actual` is greater than `expected`. */
export function assertGreater<T>(actual: T, expected: T, message?: string): void;

/** Asserts that `actual` is at least `expected`. */
export function assertGreaterOrEqual<T>(actual: T, expected: T, message?: string): void;

/** Asserts that `actual` is less than `expected`. */
export function assertLess<T>(actual: T, expected: T, message?: string): void;

/** Asserts that `actual` is at most `expected`. */
export function assertLessOrEqual<T>(actual: T, expected: T, message?: string): void;

/** Asserts that the call throws, and returns what it threw. */
export function assertThrows<E extends Error = Error>(
  call: () => unknown,
  // deno-lint-ignore no-explicit-any
  type?: abstract new (...args: any[]) => E,
  messageIncludes?: string,
  message?: string,
): E;

/** Asserts that the promise of the call rejects, and returns the reason. */
export function assertRejects<E extends Error = Error>(
  call: () => PromiseLike<unknown>,
  // deno-lint-ignore no-explicit-any
  type?: abstract new (...args: any[]) => E,
  messageIncludes?: string,
  message?: string,
): Promise<E>;

/** Fails. */
export function fail(message?: string): never;
