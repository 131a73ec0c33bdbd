/**
 * What a port over a stream offers. See `spec/stream.md`.
 *
 * @module
 */

import type { Port } from "./port.ts";

/**
 * A port over a stream. It has everything of a `Port` except what blocks the thread, which
 * JavaScript cannot do for a socket, and what needs memory that both sides have, in order to lend
 * it or to hand it over.
 *
 * Every `Port` is a `StreamPort` too, so that a function that takes a `StreamPort` works over both.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { openStream, type StreamPort } from "@millrace/millrace/stream";
 *
 * const ask = async (port: StreamPort<string>) => {
 *   port.postMessage("hello");
 *   // @ts-expect-error: nobody can block for a socket; `readAsync` waits
 *   port.read;
 *   return await port.readAsync();
 * };
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * there.write("from a thread");
 * console.log(await ask(here)); // from a thread
 *
 * const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
 * using echo = await openStream<string>({ readable, writable }); // usually a socket
 * console.log(await ask(echo)); // hello
 * ```
 */
export type StreamPort<In = unknown, Out = In> = Omit<
  Port<In, Out>,
  // These wait for room or for a message. Their twins `try…` and `…Async` are there.
  | "read"
  | "write"
  // These are about the memory of both sides, and about who has attached to it.
  | "handoff"
  | "memory"
  | "segment"
>;
