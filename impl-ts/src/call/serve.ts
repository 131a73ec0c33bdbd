/**
 * Serving an object: its methods become what the peer can call. See `spec/call.md`.
 *
 * @module
 */

import { throwCannot } from "../error.ts";
import { tendSoon } from "../pipe/tend.ts";
import type { StreamPort } from "../port/over_stream.ts";
import type { Port } from "../port/port.ts";
import type { Method } from "./callee.ts";
import { CallLayer } from "./layer.ts";
import { isLater } from "./served.ts";

/**
 * Ends the serving of an object.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { remote, serve, type Serving } from "@millrace/millrace/call";
 *
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * const serving: Serving = serve(there, { ping: () => "pong" });
 * const { ping } = remote<{ ping(): string }>(here);
 * console.log(await ping()); // pong
 * serving.stop();
 * console.log(await ping().catch((error) => error.code)); // call.method
 * ```
 */
export interface Serving extends Disposable {
  /** Refuses every further call; those that have begun are answered. */
  stop(): void;
}

/**
 * Has the peer of a port call the methods of an object. They are taken now, and called on their
 * object. What a method returns, or what its promise gives, is the answer; what it throws is thrown
 * on the other side; and a generator, or a stream, gives the answer in pieces.
 *
 * These are served, and nothing else:
 *
 * - functions that are properties of the object, and the methods of its classes;
 * - the same of plain objects in it, and of instances in plain objects, by names with dots. Of an
 *   instance, functions and plain objects in its fields count, but no further instances: what it
 *   works with is not handed out.
 *
 * Of classes, those count that a program or a library declares: not those of the language and the
 * runtime, from whichever realm, so neither `Object`, `Map` nor `WebSocket`, and of an event
 * emitter or target nothing that it is one by. Getters are not called. A field that TypeScript
 * calls `private` is a field like any other when the program runs; one named `#field` is private.
 *
 * Calls are served while the event loop of this thread turns, and whenever this thread reads or
 * waits for an answer. The port can be read and written as ever.
 *
 * The process lives while it serves: until either side has ended or closed the port, `stop`, or
 * `port.unref()`. A web worker that ends itself by `self.close()` is to close its port before, as
 * nothing tells that it has gone; who cannot rely on that has it watched by `supervise`, with a
 * lock that it holds by `holdLife`.
 *
 * @throws {TypeError} if the port serves already, for a promise, and for a method that nobody could
 * call: `remote` has `sync`, `iterate`, `notify` and `with` itself.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { remote, serve } from "@millrace/millrace/call";
 *
 * const api = {
 *   add: (a: number, b: number) => a + b,
 *   text: { upper: async (text: string) => text.toUpperCase() },
 * };
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * serve(there, api);
 *
 * const far = remote<typeof api>(here);
 * console.log(await far.add(1, 2)); // 3
 * console.log(await far.text.upper("hello")); // HELLO
 * ```
 */
export function serve(
  // deno-lint-ignore no-explicit-any -- A port that reads nothing but calls is none of any.
  port: StreamPort<any, any> | StreamPort<never, any>,
  api: object,
): Serving {
  const layer = CallLayer.of(port as Port);
  const { callee } = layer;
  if (callee.methods !== undefined) throwCannot("serve: this port serves already");
  const methods = callee.methods = methodsOf(api);
  const { link } = port as Port;
  layer.isServing = true;
  tendSoon(link);
  const stop = () => {
    if (callee.methods !== methods) return;
    callee.methods = undefined;
    layer.isServing = false;
    tendSoon(link);
  };
  return { stop, [Symbol.dispose]: stop };
}

/** What is called under which name. [call.served_only] */
function methodsOf(api: object): Map<string, Method> {
  if (isLater(api)) throwCannot("serve a promise: serve what it gives");
  const methods = new Map<string, Method>();
  addMethods(methods, api, "", isPlain(api), new Set());
  for (const name of methods.keys()) {
    // What a remote object has beside the methods.
    const way = /^(sync|iterate|notify|with)(\.|$)/.exec(name);
    if (way) throwCannot(`serve ${name}: a remote object has its own "${way[1]}"`);
  }
  return methods;
}

/**
 * Adds the methods of an object, and of those in it; of instances only where it is written out, in
 * plain objects. `above` are the objects that it is in.
 */
function addMethods(
  methods: Map<string, Method>,
  self: object,
  prefix: string,
  isWrittenOut: boolean,
  above: ReadonlySet<object>,
): void {
  const inside = new Set(above).add(self);
  // From the object up to what it has of its runtime, so that what overrides comes first.
  for (let from = self; from === self || !isOfRuntime(from); from = prototypeOf(from)!) {
    const properties = Object.getOwnPropertyDescriptors(from);
    const isMethod = (key: string) => typeof properties[key]?.value === "function";
    const hasEvents = EVENTS.some((names) => names.every(isMethod));
    for (const [key, { value }] of Object.entries(properties)) {
      const name = prefix + key;
      if (key === "constructor" || methods.has(name)) continue;
      if (hasEvents && EVENT_NAMES.has(key)) continue;
      if (typeof value === "function") {
        methods.set(name, (values) => Reflect.apply(value, self, values));
      } else if (typeof value === "object" && !isOfRuntime(value) && !inside.has(value)) {
        const isWhole = isPlain(value);
        if (!isWhole && (!isWrittenOut || isOfRuntime(prototypeOf(value)))) continue;
        if (key === "_events" || key === "prototype") continue; // an emitter's, and a function's
        addMethods(methods, value, `${name}.`, isWhole && isWrittenOut, inside);
      }
    }
  }
}

/** By which methods one tells an event emitter, and an event target, whoever has made it. */
const EVENTS = [
  ["addListener", "removeListener", "removeAllListeners", "emit"],
  ["addEventListener", "removeEventListener", "dispatchEvent"],
];

/** All methods by which something is an event emitter or target. Listeners cannot be carried. */
const EVENT_NAMES: ReadonlySet<string> = new Set([
  ...EVENTS.flat(),
  ...["on", "once", "off", "prependListener", "prependOnceListener", "listeners", "rawListeners"],
  ...["listenerCount", "eventNames", "setMaxListeners", "getMaxListeners", "when"],
]);

/**
 * Whether it is nothing, or the prototype of a class of the language or of the runtime. Those of
 * another realm are not ours: their code tells them, which is native.
 */
function isOfRuntime(from: object | null): boolean {
  if (from === null) return true;
  const maker = ownOf(from, "constructor")?.value;
  if (typeof maker !== "function") return false;
  if (/\{\s*\[native code\]\s*\}\s*$/.test(Function.prototype.toString.call(maker))) return true;
  // A class that the runtime has in JavaScript: it is global, and no declaration of a script's.
  const name = ownOf(maker, "name")?.value;
  if (typeof name !== "string") return false;
  const global = ownOf(globalThis, name);
  return global !== undefined && global.value === maker && !global.enumerable;
}

/** Whether it has no class: an object literal of whichever realm, or one without a prototype. */
function isPlain(value: object): boolean {
  const prototype = prototypeOf(value);
  return prototype === null || prototypeOf(prototype) === null && isOfRuntime(prototype);
}

const prototypeOf = (of: object): object | null => Object.getPrototypeOf(of);

const ownOf = (of: object, name: string) => Object.getOwnPropertyDescriptor(of, name);
