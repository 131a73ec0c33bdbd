/**
 * What calls and pools carry without a codec of their own, as types. See `spec/call.md`.
 *
 * @module
 */

/**
 * Where a type has something that JSON would lose: a text for each, and never if there is nothing.
 * Looks eight levels deep, as types may contain themselves.
 *
 * @example
 * ```ts
 * import type { Lost } from "@millrace/millrace/call";
 *
 * type Rows = { ids: Set<string>; bytes: Uint8Array }[];
 * const places: Lost<{ rows: Rows }> = ".rows[].ids, an instance of Set";
 * console.log(places); // .rows[].ids, an instance of Set
 * ```
 */
export type Lost<T, Depth extends number = 8> = 0 extends 1 & T ? never
  : unknown extends T ? never
  : [Depth] extends [never] ? never
  : T extends string | number | boolean | bigint | symbol | null | undefined ? never
  : T extends Uint8Array | ((...values: never[]) => unknown) ? never
  // deno-lint-ignore no-explicit-any -- Nothing else is the type of every map.
  : T extends ReadonlyMap<any, any> ? ", an instance of Map"
  // deno-lint-ignore no-explicit-any
  : T extends ReadonlySet<any> ? ", an instance of Set"
  : T extends ArrayBufferView | ArrayBufferLike
    ? T extends { readonly [Symbol.toStringTag]: infer Name extends string }
      ? string extends Name ? ", a view of memory" : `, an instance of ${Name}`
    : ", a view of memory"
  : T extends { toJSON(...values: never[]): unknown } ? never
  : T extends readonly (infer Item)[] ? `[]${Lost<Item, [never, 0, 1, 2, 3, 4, 5, 6, 7][Depth]>}`
  : {
    [K in keyof T]-?: K extends string | number
      ? `.${K}${Lost<T[K], [never, 0, 1, 2, 3, 4, 5, 6, 7][Depth]>}`
      : never;
  }[keyof T];

/**
 * A type, if calls and pools carry its values without a codec of their own: texts, bytes, JSON that
 * may have bytes in it, and undefined. Otherwise a text that says what they cannot carry, which the
 * compiler then shows.
 *
 * @example
 * ```ts
 * import type { Carried } from "@millrace/millrace/call";
 *
 * const picture: Carried<{ name: string; file: Uint8Array }> = {
 *   name: "a.png",
 *   file: new Uint8Array(10),
 * };
 * const refused: Carried<{ ids: Map<string, number> }> =
 *   "JSON cannot carry $.ids, an instance of Map: use the codec cbor";
 * console.log(picture.file.length, refused.length); // 10 63
 * ```
 */
export type Carried<T> = [Lost<T>] extends [never] ? T
  : `JSON cannot carry $${Lost<T>}: use the codec cbor`;

/**
 * What a port whose types are `any` reads and writes, and no other port: one that is made with a
 * codec such as `cbor`, which may carry anything.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import type { AnyValue } from "@millrace/millrace/call";
 * import { cbor } from "@millrace/millrace/cbor";
 *
 * using here = Port.create({ codec: cbor });
 * const port: Port<AnyValue, AnyValue> = here;
 * console.log(port === here); // true
 * ```
 */
export interface AnyValue {
  /** Nothing has this, except what may be anything. */
  readonly "is any": never;
}

/**
 * The methods of an object, those whose arguments or results calls do not carry with a text in
 * place of their types.
 *
 * @example
 * ```ts
 * import type { CarriedMethods } from "@millrace/millrace/call";
 *
 * const api = { add: (a: number, b: number) => a + b, count: (_: Set<string>) => 0 };
 * const carried: Pick<CarriedMethods<typeof api>, "add"> = api; // as it is
 * console.log(carried.add(1, 2)); // 3
 * ```
 */
export type CarriedMethods<Api> = 0 extends 1 & Api ? Api : {
  [K in keyof Api]: Api[K] extends (...values: infer V) => infer R
    ? [Lost<V> | Lost<Awaited<R>>] extends [never] ? Api[K]
    : (...values: { [I in keyof V]: Carried<V[I]> }) => Carried<Awaited<R>>
    : Api[K] extends object ? CarriedMethods<Api[K]>
    : Api[K];
};
