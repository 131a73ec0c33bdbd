/**
 * Calling an object that the peer serves. See `spec/call.md`.
 *
 * @module
 */

import { MillraceError, requireOptions } from "../error.ts";
import { deadlineOfCall, limit, requireWait, type WaitOptions } from "../pipe/options.ts";
import type { StreamPort } from "../port/over_stream.ts";
import type { Port } from "../port/port.ts";
import { lateError, type OwnCall } from "./caller.ts";
import { callContext } from "./context.ts";
import type { AnyValue } from "./carried.ts";
import { CallError } from "./error.ts";
import { CallLayer } from "./layer.ts";
import type { LocalName, Remote, StreamRemote } from "./types.ts";

/**
 * The object that the peer of a port serves, by its type: any method can be called, and whether it
 * is there the peer knows alone. The promise of a call rejects with a `CallError` where the method
 * throws or is refused, with what a read would throw where the port is lost, with a `TimeoutError`
 * at the deadline of `with`, and with the reason of its signal.
 *
 * Strings, bytes and JSON cross, and `undefined`: a `Uint8Array` comes as one, also as a part of a
 * value. A call with any other view or buffer of memory, a `Map` or a `Set` rejects with a
 * `TypeError` that says where in a value it is, and so does its type: both ports need the codec
 * `cbor` for these, and `Port<any>` is the type of such a port.
 *
 * While 1,024 calls wait for their answers, further ones wait for their turn, in order, with the
 * values that they had; those that block, and those that a method makes before it first awaits
 * something, fail with `call.limit`: the answer may wait for that method. Those that were given up
 * do not count, up to 2,048 in all that are not answered: further ones fail with `call.limit`.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { remote, serve } from "@millrace/millrace/call";
 *
 * const api = {
 *   reverse: (bytes: Uint8Array) => bytes.toReversed(),
 *   *countTo(last: number) {
 *     for (let n = 1; n <= last; n++) yield n;
 *   },
 * };
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * serve(there, api);
 *
 * const far = remote<typeof api>(here);
 * console.log(await far.reverse(Uint8Array.of(1, 2))); // Uint8Array(2) [ 2, 1 ]
 * for await (const n of far.iterate.countTo(2)) console.log(n); // 1, then 2
 * await far.notify.reverse(new Uint8Array(0)); // nobody answers
 * await far.with({ timeout: 1000 }).reverse(new Uint8Array(0));
 * // In a thread that may block: far.sync.reverse(bytes)
 * ```
 */
export function remote<Api extends object>(port: Port<AnyValue, AnyValue>): Remote<Api, true>;
/** The same if the port has no codec of its own: only what JSON carries crosses, and bytes. */
export function remote<Api extends object>(
  // The property, which no port has, makes the compiler look at the declaration above first.
  // deno-lint-ignore no-explicit-any -- A port that reads nothing but calls is none of any.
  port: (Port<any, any> | Port<never, any>) & Partial<AnyValue>,
): Remote<Api>;
/** The same over a stream, where nothing blocks. */
export function remote<Api extends object>(
  port: StreamPort<AnyValue, AnyValue>,
): StreamRemote<Api, true>;
/** The same if the port has no codec of its own. */
export function remote<Api extends object>(
  // deno-lint-ignore no-explicit-any
  port: (StreamPort<any, any> | StreamPort<never, any>) & Partial<AnyValue>,
): StreamRemote<Api>;
export function remote<Api extends object>(port: object): Remote<Api, true> {
  return makeRemote<Api>(CallLayer.of(port as Port), undefined);
}

/** What is called, with what is made of the name and the values. */
type Call = (
  layer: CallLayer,
  name: string,
  values: unknown[],
  options: WaitOptions | undefined,
) => unknown;

function makeRemote<Api>(layer: CallLayer, options: WaitOptions | undefined): Remote<Api, true> {
  const far = (call: Call, own?: Record<string, unknown>) => makeFar(call, layer, "", options, own);
  return far(callLater, {
    sync: far(callNow, { iterate: far(iterateNow) }),
    iterate: far(iterateLater),
    notify: far(notify),
    with: (more: WaitOptions) => makeRemote<Api>(layer, { ...options, ...requireOptions(more) }),
  }) as Remote<Api, true>;
}

/**
 * An object whose properties are functions that call what has their names, made at first use. What
 * the language and loggers ask any object for is answered here: it is no promise, and no call is
 * made to show it.
 */
function makeFar(
  call: Call,
  layer: CallLayer,
  name: string,
  options: WaitOptions | undefined,
  own: Record<string, unknown> = {},
): unknown {
  const show = () => name === "" ? "[remote]" : `[remote ${name}]`;
  const local: Record<LocalName, unknown> = {
    then: undefined,
    toJSON: undefined,
    constructor: undefined,
    toString: show,
    toLocaleString: show,
    valueOf: () => far,
  };
  const known = new Map<string, unknown>(Object.entries({ ...own, ...local }));
  const target = (...values: unknown[]) => call(layer, name, values, options);
  const far: unknown = new Proxy(target, {
    get(_, key) {
      if (typeof key !== "string") return undefined;
      if (!known.has(key)) {
        known.set(key, makeFar(call, layer, name === "" ? key : `${name}.${key}`, options));
      }
      return known.get(key);
    },
  });
  return far;
}

function callLater(
  layer: CallLayer,
  name: string,
  values: unknown[],
  options: WaitOptions | undefined,
): Promise<unknown> {
  // What is thrown here rejects it.
  return new Promise((resolve, reject) => {
    requireWait(options);
    const call = begin(layer, name, values, false, false);
    const conclude = () => (call.hasFailed ? reject : resolve)(call.result);
    if (call.isOver) return conclude();
    const release = attend(layer, call, options);
    call.changed = () => {
      release();
      conclude();
    };
  });
}

function callNow(
  layer: CallLayer,
  name: string,
  values: unknown[],
  options: WaitOptions | undefined,
): unknown {
  const deadline = deadlineOfCall(options);
  const call = begin(layer, name, values, false, true);
  layer.block(call, deadline, options?.timeout === 0);
  return valueOf(call);
}

async function* iterateLater(
  layer: CallLayer,
  name: string,
  values: unknown[],
  options: WaitOptions | undefined,
): AsyncGenerator<unknown, unknown, void> {
  requireWait(options);
  const call = begin(layer, name, values, true, false);
  const release = attend(layer, call, options);
  try {
    for (;;) {
      while (call.items.length > 0) yield layer.caller.takeItem(call);
      if (call.isOver) return valueOf(call);
      await new Promise<void>((resolve) => call.changed = resolve);
    }
  } finally {
    release();
    leave(layer, call);
  }
}

function* iterateNow(
  layer: CallLayer,
  name: string,
  values: unknown[],
  options: WaitOptions | undefined,
): Generator<unknown, unknown, void> {
  const deadline = deadlineOfCall(options);
  const call = begin(layer, name, values, true, true);
  try {
    for (;;) {
      layer.block(call, deadline, true);
      while (call.items.length > 0) yield layer.caller.takeItem(call);
      if (call.isOver) return valueOf(call);
    }
  } finally {
    leave(layer, call);
  }
}

function notify(layer: CallLayer, name: string, values: unknown[]): Promise<void> {
  let settle!: (reason?: unknown) => void;
  const promise = new Promise<void>((resolve, reject) => {
    settle = (reason) => reason === undefined ? resolve() : reject(reason);
  });
  promise.catch(() => {});
  try {
    layer.requireOpen();
    layer.caller.notify(name, values, settle);
  } catch (error) {
    // What cannot be carried is the caller's mistake, which must not go unseen.
    if (!(error instanceof MillraceError)) throw error;
    settle(error);
  }
  return promise;
}

function begin(
  layer: CallLayer,
  name: string,
  values: unknown[],
  takesItems: boolean,
  blocks: boolean,
): OwnCall {
  layer.requireOpen(blocks);
  // [call.under_way] What a method needs in order to answer must not wait for answers.
  const mayKeep = !blocks && callContext() === undefined;
  return layer.caller.call(name, values, takesItems, mayKeep);
}

/** Keeps the process alive for a call, and gives it up in time. Returns what ends that. */
function attend(layer: CallLayer, call: OwnCall, options: WaitOptions | undefined): () => void {
  const release = limit(options, (reason) => layer.caller.giveUp(call, reason ?? lateError()));
  layer.hold(1);
  return () => {
    release?.();
    layer.hold(-1);
  };
}

/** The loop over the pieces of a result is left. */
function leave(layer: CallLayer, call: OwnCall): void {
  if (call.isOver) return;
  call.changed = undefined;
  const text = "The loop over the result was left";
  layer.caller.giveUp(call, new CallError("call.cancelled", text));
}

function valueOf(call: OwnCall): unknown {
  if (call.hasFailed) throw call.result;
  return call.result;
}
