/**
 * What an object that is served looks like to who calls it, as types.
 *
 * @module
 */

import type { WaitOptions } from "../pipe/options.ts";
import type { CarriedMethods } from "./carried.ts";

/**
 * Whether a method gives such a result in pieces: a generator, or a stream. What may be anything is
 * taken for one result.
 *
 * @example
 * ```ts
 * import type { InPieces } from "@millrace/millrace/call";
 *
 * const isOne: InPieces<string[]> = false;
 * const isStream: InPieces<Promise<ReadableStream<string>>> = true;
 * console.log(isOne, isStream); // false true
 * ```
 */
export type InPieces<R> = 0 extends 1 & R ? false
  : [Awaited<R>] extends [never] ? false
  : [Awaited<R>] extends [AsyncIterable<unknown> | Iterator<unknown, unknown, never>] ? true
  : false;

/**
 * The pieces of a result, and what comes after them.
 *
 * @example
 * ```ts
 * import type { Pieces } from "@millrace/millrace/call";
 *
 * const words: Pieces<Generator<string, number>> = ["one", 1];
 * console.log(words); // [ "one", 1 ]
 * ```
 */
export type Pieces<R> = Awaited<R> extends AsyncIterator<infer Item, infer Last, never>
  ? [Item, Last]
  : Awaited<R> extends Iterator<infer Item, infer Last, never> ? [Item, Last]
  : Awaited<R> extends AsyncIterable<infer Item> ? [Item, undefined]
  : [unknown, unknown];

/**
 * What the language asks any object for. A remote object answers that itself, so that it can be
 * awaited, logged and put into a text; a method of such a name cannot be called through it.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type LocalName, remote } from "@millrace/millrace/call";
 *
 * using port = Port.create();
 * const name: LocalName = "toString";
 * const far = remote<{ math: { add(a: number, b: number): number } }>(port);
 * console.log(name, `${far.math}`); // toString [remote math]
 * ```
 */
export type LocalName =
  | "then"
  | "toJSON"
  | "toString"
  | "toLocaleString"
  | "valueOf"
  | "constructor";

/**
 * The names of methods that give their results in pieces, or of methods that do not; and of
 * objects with methods.
 *
 * @example
 * ```ts
 * import type { KeysOf } from "@millrace/millrace/call";
 *
 * const api = { add: (a: number, b: number) => a + b, *rows() {} };
 * const one: KeysOf<typeof api, false> = "add";
 * const several: KeysOf<typeof api, true> = "rows";
 * console.log(api[one](1, 2), several); // 3 rows
 * ```
 */
export type KeysOf<Api, Several extends boolean> = {
  [K in Exclude<keyof Api, LocalName>]: Api[K] extends (...values: never[]) => infer R
    ? InPieces<R> extends Several ? K : never
    : Api[K] extends object ? K
    : never;
}[Exclude<keyof Api, LocalName>];

/**
 * The methods of an object, each as a promise of its result.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type Asynchronous, remote, serve } from "@millrace/millrace/call";
 *
 * const api = { twice: (n: number) => 2 * n };
 * const isRight = async (math: Asynchronous<typeof api>) => await math.twice(21) === 42;
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * serve(there, api);
 * console.log(await isRight(remote<typeof api>(here))); // true
 * ```
 */
export type Asynchronous<Api> = {
  readonly [K in KeysOf<Api, false>]: Api[K] extends (...values: infer V) => infer R
    ? (...values: V) => Promise<Awaited<R>>
    : Asynchronous<Api[K]>;
};

/**
 * The methods of an object, each blocking until its result is there.
 *
 * @example
 * ```ts
 * import type { Blocking } from "@millrace/millrace/call";
 *
 * const api = { now: () => Promise.resolve(Date.now()) };
 * // In a worker, `remote<typeof api>(port).sync` is one.
 * const secondsOf = (clock: Blocking<typeof api>) => clock.now() / 1000;
 * console.log(secondsOf({ now: () => 42_000 })); // 42
 * ```
 */
export type Blocking<Api> = {
  readonly [K in KeysOf<Api, false>]: Api[K] extends (...values: infer V) => infer R
    ? (...values: V) => Awaited<R>
    : Blocking<Api[K]>;
};

/**
 * The methods of an object that give their results in pieces, each as an asynchronous generator.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type AsynchronousPieces, remote, serve } from "@millrace/millrace/call";
 *
 * const api = {
 *   *rows(count: number) {
 *     for (let row = 0; row < count; row++) yield row;
 *   },
 * };
 * async function sum(source: AsynchronousPieces<typeof api>): Promise<number> {
 *   let sum = 0;
 *   for await (const row of source.rows(4)) sum += row;
 *   return sum;
 * }
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * serve(there, api);
 * console.log(await sum(remote<typeof api>(here).iterate)); // 6
 * ```
 */
export type AsynchronousPieces<Api> = {
  readonly [K in KeysOf<Api, true>]: Api[K] extends (...values: infer V) => infer R
    ? (...values: V) => AsyncGenerator<Pieces<R>[0], Pieces<R>[1], void>
    : AsynchronousPieces<Api[K]>;
};

/**
 * The same, each as a generator that blocks until the next piece is there.
 *
 * @example
 * ```ts
 * import type { BlockingPieces } from "@millrace/millrace/call";
 *
 * const api = {
 *   async *lines() {
 *     yield "one";
 *   },
 * };
 * // In a worker, `remote<typeof api>(port).sync.iterate` is one.
 * const all = (file: BlockingPieces<typeof api>): string[] => [...file.lines()];
 * console.log(typeof all); // function
 * ```
 */
export type BlockingPieces<Api> = {
  readonly [K in KeysOf<Api, true>]: Api[K] extends (...values: infer V) => infer R
    ? (...values: V) => Generator<Pieces<R>[0], Pieces<R>[1], void>
    : BlockingPieces<Api[K]>;
};

/**
 * The methods of an object, each called without an answer.
 *
 * @example
 * ```ts
 * import type { Notices } from "@millrace/millrace/call";
 *
 * const api = { log(text: string): void {} };
 * const told: string[] = [];
 * // `remote<typeof api>(port).notify` is one.
 * const log: Notices<typeof api> = { log: async (text) => void told.push(text) };
 * await log.log("done");
 * console.log(told); // [ "done" ]
 * ```
 */
export type Notices<Api> = {
  readonly [K in KeysOf<Api, false>]: Api[K] extends (...values: infer V) => unknown
    ? (...values: V) => Promise<void>
    : Notices<Api[K]>;
};

/**
 * The other ways to call the methods of an object that the peer serves.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { remote, type RemoteWays } from "@millrace/millrace/call";
 *
 * const api = { log(text: string): void {} };
 * using here = Port.create();
 * const { notify }: RemoteWays<typeof api> = remote<typeof api>(here);
 * await notify.log("read when somebody serves the other end");
 * ```
 */
export interface RemoteWays<Api> {
  /** The same, blocking, where the thread may; meanwhile it serves the calls of the peer. */
  readonly sync: Blocking<Omit<Api, "iterate">> & {
    /** Methods that give their results in pieces, as blocking generators. */
    readonly iterate: BlockingPieces<Api>;
  };
  /**
   * Methods that give their results in pieces, as asynchronous generators. The call is made at the
   * first step, and given up where the loop is left. At most 16 pieces come ahead.
   */
  readonly iterate: AsynchronousPieces<Api>;
  /**
   * Calls without an answer. The promise settles when the call is in the ring, or will not come
   * there, and nobody has to listen to it; what becomes of it then, the peer knows alone.
   */
  readonly notify: Notices<Api>;
  /** The same object, whose calls have a deadline, a signal that gives them up, or both. */
  with(options: WaitOptions): Remote<Api, true>;
}

/**
 * An object that the peer of a port serves. A method is called by its name, and gives a promise of
 * its result. `serve` refuses methods named `sync`, `iterate`, `notify` and `with`; one whose name
 * is a `LocalName` cannot be called.
 *
 * @typeParam Api The object that is served; `typeof api` says what it is.
 * @typeParam Any Whether the port may carry anything, because of its codec. Otherwise, instead of
 * what JSON would lose in arguments and results, there is a text that says so; see `Carried`.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { remote, type Remote, serve } from "@millrace/millrace/call";
 *
 * const api = { add: (a: number, b: number) => a + b };
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * serve(there, api);
 * const far: Remote<typeof api> = remote<typeof api>(here);
 * console.log(await far.add(1, 2)); // 3
 * ```
 */
export type Remote<Api, Any extends boolean = false> = Any extends true
  ? Asynchronous<Omit<Api, keyof RemoteWays<Api>>> & RemoteWays<Api>
  : Remote<CarriedMethods<Api>, true>;

/**
 * The other ways to call the methods of an object over a stream: those of `RemoteWays` that do not
 * block.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { remote, type StreamWays } from "@millrace/millrace/call";
 *
 * const api = { log(text: string): void {} };
 * using here = Port.create();
 * const { notify }: StreamWays<typeof api> = remote<typeof api>(here);
 * await notify.log("read when somebody serves the other end");
 * ```
 */
export interface StreamWays<Api> extends Pick<RemoteWays<Api>, "iterate" | "notify"> {
  /** The same object, whose calls have a deadline, a signal that gives them up, or both. */
  with(options: WaitOptions): StreamRemote<Api, true>;
}

/**
 * An object that the peer of a stream serves: a `Remote` without `sync`, since no thread can block
 * for a socket. Every `Remote` is one too.
 *
 * @typeParam Api The object that is served; `typeof api` says what it is.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { remote, serve, type StreamRemote } from "@millrace/millrace/call";
 *
 * const api = { add: (a: number, b: number) => a + b };
 * const three = (far: StreamRemote<typeof api>) => far.add(1, 2); // over whatever there is
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * serve(there, api);
 * console.log(await three(remote<typeof api>(here))); // 3
 * ```
 */
export type StreamRemote<Api, Any extends boolean = false> = Any extends true
  ? Asynchronous<Omit<Api, keyof RemoteWays<Api>>> & StreamWays<Api>
  : StreamRemote<CarriedMethods<Api>, true>;
