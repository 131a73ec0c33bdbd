/**
 * How error messages name a part of a value that a codec cannot carry. See `spec/codec.md`.
 *
 * @module
 */

/** A property as one step of a path such as `$.users[3]`. */
export const pathOf = (key: string): string =>
  /^[\w$]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;

/** What an error message calls an object. */
export function instanceName(value: object): string {
  const { constructor } = value as { constructor?: { name?: unknown } };
  return `an instance of ${constructor?.name || "a class"}`;
}
