/**
 * Calls over a port, both ways: an object is served on one side, and called on the other, as
 * promises or blocking.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { remote, serve } from "@millrace/millrace/call";
 *
 * const api = { greet: (name: string) => `Hello, ${name}!` };
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * serve(there, api);
 * console.log(await remote<typeof api>(here).greet("you")); // Hello, you!
 * ```
 *
 * @module
 */

export { type CallContext, callContext } from "./context.ts";
export { CallError, type CallErrorOptions } from "./error.ts";
export { remote } from "./remote.ts";
export { serve, type Serving } from "./serve.ts";
export type { AnyValue, Carried, CarriedMethods, Lost } from "./carried.ts";
export type {
  Asynchronous,
  AsynchronousPieces,
  Blocking,
  BlockingPieces,
  InPieces,
  KeysOf,
  LocalName,
  Notices,
  Pieces,
  Remote,
  RemoteWays,
  StreamRemote,
  StreamWays,
} from "./types.ts";
