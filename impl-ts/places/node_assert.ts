/**
 * The assertions that the tests of `src/host` use, for Node, which has no others than its own.
 *
 * @module
 */
import * as node from "node:assert";

type Class = abstract new (...args: never[]) => Error;

export function assert(value: unknown, message?: string): void {
  node.ok(value, message);
}

export function assertEquals(actual: unknown, expected: unknown, message?: string): void {
  node.deepStrictEqual(actual, expected, message);
}

export function assertStringIncludes(text: string, part: string): void {
  node.ok(text.includes(part), `expected "${part}" in "${text}"`);
}

export function assertThrows(call: () => unknown, type?: Class, part?: string): unknown {
  try {
    call();
  } catch (error) {
    return check(error, type, part);
  }
  return node.fail("nothing was thrown");
}

export async function assertRejects(
  call: () => Promise<unknown>,
  type?: Class,
  part?: string,
): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return check(error, type, part);
  }
  return node.fail("nothing was thrown");
}

function check(error: unknown, type: Class = Error, part = ""): unknown {
  if (error instanceof type && error.message.includes(part)) return error;
  throw new Error(`expected ${type.name} with "${part}"`, { cause: error });
}
