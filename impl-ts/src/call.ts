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

export { type CallContext, callContext } from "./call_context.ts";
export { CallError, type CallErrorOptions } from "./call_error.ts";
export { remote } from "./call_remote.ts";
export { serve, type Serving } from "./call_serve.ts";
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
} from "./call_types.ts";
