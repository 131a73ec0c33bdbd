/**
 * Serving an object: its methods become what the peer can call. See `spec/call.md`.
 *
 * @module
 */

import type { Method } from "./call_callee.ts";
import { CallLayer } from "./call_layer.ts";
import type { Port } from "./port.ts";
import type { StreamPort } from "./port_over_stream.ts";

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
 * Has the peer of a port call the methods of an object: its own, those of its class, and those of
 * plain objects in it, by names with dots. They are taken now, and called on their object. What a
 * method returns, or what its promise gives, is the answer; what it throws is thrown on the other
 * side; and a generator, or a stream, gives the answer in pieces.
 *
 * Calls are served while the event loop of this thread turns, and whenever this thread reads or
 * waits for an answer. The port can be read and written as ever.
 *
 * The process lives while it serves: until either side has ended or closed the port, `stop`, or
 * `port.unref()`. A web worker that ends itself by `self.close()` is to close its port before, as
 * nothing tells that it has gone; who cannot rely on that has it watched by `supervise`, with a
 * lock that it holds by `holdLife`.
 *
 * @throws {TypeError} if the port serves already.
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
  if (callee.methods !== undefined) throw new TypeError("Cannot serve: this port serves already");
  const methods = callee.methods = methodsOf(api);
  layer.isServing = true;
  const stop = () => {
    if (callee.methods !== methods) return;
    callee.methods = undefined;
    layer.isServing = false;
  };
  return { stop, [Symbol.dispose]: stop };
}

/** What is called under which name. [call.served_only] */
function methodsOf(api: object): Map<string, Method> {
  const methods = new Map<string, Method>();
  addMethods(methods, api, "", new Set());
  return methods;
}

/** Adds the methods of an object, and of those in it; `above` are those that it is in. */
function addMethods(
  methods: Map<string, Method>,
  self: object,
  prefix: string,
  above: ReadonlySet<object>,
): void {
  const inside = new Set(above).add(self);
  // From the object up to what every object has, so that what overrides comes first.
  for (let from = self; !isCommon(from); from = Object.getPrototypeOf(from)) {
    for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(from))) {
      const name = prefix + key;
      if (key === "constructor" || methods.has(name)) continue;
      if (typeof value === "function") {
        methods.set(name, (values) => Reflect.apply(value, self, values));
      } else if (isPlain(value) && !inside.has(value)) {
        addMethods(methods, value, `${name}.`, inside);
      }
    }
  }
}

/** Whether it is what objects have of the language, or nothing. */
function isCommon(from: object | null): boolean {
  return from === null || from === Object.prototype || from === Function.prototype;
}

function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
