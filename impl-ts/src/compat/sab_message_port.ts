/**
 * `sab-message-port` 1.0 on Millrace: `SABPipe`, `SABMessagePort` and `MWChannel` with the names,
 * parameters, defaults, return values and errors of that library, here called *the original*. Its
 * users change the import on both sides, and nothing else.
 *
 * @example
 * ```ts
 * import { SABMessagePort } from "@millrace/millrace/sab-message-port";
 *
 * const port = new SABMessagePort();
 * const [init] = port.postInit(); // or port.postInit(worker)
 * const other = SABMessagePort.from(init); // usually in the worker
 * await port.postMessage({ cmd: "run", task: "A" });
 * console.log(other.read()); // { cmd: "run", task: "A" }
 * port.close();
 * ```
 *
 * ## The wire
 *
 * By default each pipe is a segment with one ring, the largest that fits the pipe's section of the
 * memory: 64 KiB in the 128 KiB of a default pipe. The peer may then be any Millrace endpoint:
 * endpoint 0 writes JSON messages, and endpoint 1 reads them. A section of less than 1,280 bytes,
 * or whose offset or size is not a multiple of 128, holds a mailbox instead: the original's wire.
 * The option `{ wire: "mailbox" }`, in the last parameter of each constructor and of `from`,
 * chooses the mailbox for any section, to talk to a side that still uses the original. Both sides
 * must choose the same wire; the message of `postInit` tells `from` which.
 *
 * ## What differs
 *
 * Fixed, with the original's behaviour in brackets:
 *
 * - A promise of `postMessage` always settles. It is rejected with `SABPipe disposed` if the pipe
 *   is destroyed first, and with the encoder's error if a value of its burst cannot be encoded as
 *   JSON; the rest of the burst is still written [it stays pending; the burst is lost]. The
 *   rejection need not be handled. With a `queueLimit` of 0 the promise is fulfilled [it stays
 *   pending].
 * - An `asyncRead` that has timed out takes no wake from the next one [it takes one]. Several
 *   pending ones are served in order [all but the first return at once, empty].
 * - `onmessage` can be set while an `asyncRead` waits [the thread hangs].
 * - A write under way does not overwrite a `destroy` of the other side, and no wait goes on after a
 *   `destroy` [it may hang for ever].
 * - `tryRead` and `tryPeek` keep the parts of an incomplete message [they drop them].
 * - The timeout of `read` and `asyncRead` also applies in the middle of a large message, whose rest
 *   the next read gets [they wait for the rest without end, even if the other side has died].
 * - A read of a port first writes what was posted, and goes on writing while it blocks [posts stay
 *   queued until the thread is back at its event loop; if it never returns there, they are never
 *   sent].
 * - `SABPipe` has a `buffer` [it is undefined].
 * - An overflow handler that throws neither ends the delivery to `onmessage` nor leaves the queue
 *   above its limit [it does both].
 * - `MWChannel`: messages that come through the native port before the worker first sets
 *   `onmessage` wait for it [they are lost]. A `null` in the pipe does not end the switch to
 *   nonblocking mode early. Messages that the switch took out of the pipe, and that no handler got,
 *   are the first that the next blocking reads return [they come after newer ones]. A handler that
 *   unsets itself stays unset. Posting after `close` throws in every mode [it is ignored].
 * - Wrong arguments throw, also an invalid limit in a constructor, an init message without a buffer
 *   or port, a handler that is not a function, and memory that is not shared.
 * - `postInit(target)` also works where a transfer list must not contain shared memory.
 *
 * New, in the same last parameter: `maxMessageSize` limits the messages that a reader accepts from
 * a peer that it does not trust. Without it, messages may have any size, as in the original.
 *
 * Different on the ring, and as in the original with `{ wire: "mailbox" }`:
 *
 * - There is one writer and one reader: a second object for the same end throws a `SegmentError`
 *   with the code `segment.endpoint` [both work on the same bytes].
 * - The writer does not wait until each burst is read. Posted messages leave the queue in the next
 *   microtask, and then no longer count for the writer's `queueLimit`.
 * - A burst of more than a sixth of the ring, or 12 KiB, arrives in pieces. Each value is encoded
 *   once; where the sizes of values change, or one cannot be encoded as JSON, twice. So `toJSON`
 *   may be called more than once.
 * - The static word indices, such as `SABPipe.RW_SIGNAL`, do not describe `i32`.
 *
 * Different on both:
 *
 * - A waiting `asyncRead`, an `onmessage` handler, and a `postMessage` without room keep the event
 *   loop of Deno and Node alive. `onmessage = null` and `close` end that.
 * - Errors about the memory are those of Millrace: `SegmentError` if it cannot be used,
 *   `CorruptError` if the peer breaks it, `MessageError` if a message cannot be decoded,
 *   `ForbiddenError` if the thread must not block. This entry exports them. In the npm package they
 *   are not the same classes as those of `@millrace/millrace`, which are in another file.
 *
 * Classic scripts load a bundle of `./sab-message-port/global`, which sets `SABMessagePortLib`.
 *
 * @module
 */

export {
  CorruptError,
  ForbiddenError,
  MessageError,
  MillraceError,
  SegmentError,
} from "../error.ts";
export { MWChannel, type MWChannelInit, type MWMode } from "./mw_channel.ts";
export { type SABOptions, SABPipe } from "./sab_pipe.ts";
export { type InitTarget, SABMessagePort, type SABMessagePortInit } from "./sab_port.ts";
export type { MessageHandler, OverflowHandler, Taken } from "./sab_queue.ts";
export type { WireName } from "./sab_wire.ts";
