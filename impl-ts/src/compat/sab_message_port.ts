/**
 * `sab-message-port` 1.0 on Millrace: `SABPipe`, `SABMessagePort` and `MWChannel` with the names,
 * parameters, defaults, return values and errors of that library, here called *the original*. Its
 * users change the import and nothing else, on both sides.
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
 * By default each pipe is a segment with one ring, the largest that fits its section: 64 KiB in the
 * 128 KiB of a default pipe. The peer may then be any endpoint of Millrace: endpoint 0 writes, and
 * endpoint 1 reads, JSON messages. A section with less than 1,280 bytes, or whose offset or size is
 * no multiple of 128, is a mailbox: the original's wire. The option `{ wire: "mailbox" }`, the last
 * parameter of each constructor and `from`, chooses that for any section, to talk to a side that
 * still has the original. Both sides must choose the same; `postInit` tells `from`.
 *
 * ## What differs
 *
 * Mended, with the original's behaviour in brackets:
 *
 * - A promise of `postMessage` always settles: it is rejected with `SABPipe disposed` if the pipe
 *   is destroyed first, and with the encoder's error if a value is no JSON, while the rest of the
 *   burst is written [it stays pending; the burst is lost]. Nobody has to handle that rejection.
 *   With a `queueLimit` of 0 it is fulfilled [it stays pending].
 * - An `asyncRead` whose time was up takes no wake from the next [it eats one]. Several at a time
 *   are served in order [all but the first return at once, empty].
 * - `onmessage` can be set while an `asyncRead` waits [the thread hangs].
 * - A write under way does not overwrite a `destroy` of the other side, and no wait outlasts one
 *   [it may hang for ever].
 * - `tryRead` and `tryPeek` keep the parts of a message that is not complete [they drop them].
 * - The timeout of `read` and `asyncRead` holds inside a large message too, of which the next read
 *   gets the rest [they wait for it without end, also where the other side has died].
 * - A read of a port first writes what was posted, and while it blocks it goes on with that [it
 *   stays queued until the thread is back at its event loop: one that never is cannot be heard].
 * - `SABPipe` has a `buffer` [it is undefined].
 * - A handler of an overflow that throws neither ends the delivery to `onmessage` nor leaves the
 *   queue above its limit [both].
 * - `MWChannel`: what comes through the native port before the worker's first `onmessage` waits for
 *   it [it is lost]. A `null` in the pipe does not end the switch to nonblocking early. What the
 *   switch took and no handler got comes first in the next blocking reads [behind newer ones]. A
 *   handler that unsets itself stays unset. Posting after `close` throws in every mode [it is
 *   ignored].
 * - Wrong arguments throw: a limit that is none also in a constructor, an init message without a
 *   buffer or port, a handler that is no function, memory that is not shared.
 * - `postInit(target)` also works where shared memory must not stand in a transfer list.
 *
 * New, in the same last parameter: `maxMessageSize` bounds what a reader takes from a peer that it
 * does not trust. Without it messages have any size, as ever.
 *
 * Different on the ring, and as ever with `{ wire: "mailbox" }`:
 *
 * - There is one writer and one reader: a second object for the same end throws a `SegmentError`
 *   with the code `segment.endpoint` [both work on the same bytes].
 * - The writer need not wait until each burst is read: what is posted leaves the queue with the
 *   next microtask, and no longer counts for the writer's `queueLimit`.
 * - A burst of more than a quarter of the ring arrives in pieces. Each value is encoded once or,
 *   where sizes change or one is no JSON, a few times: `toJSON` may be called again.
 * - The static word indices, such as `SABPipe.RW_SIGNAL`, do not describe `i32`.
 *
 * Different on both:
 *
 * - A wait, of `asyncRead`, `onmessage` or a `postMessage` without room, keeps the event loop of
 *   Deno and Node alive. `onmessage = null` and `close` end it.
 * - Errors of the memory are those of Millrace: `SegmentError` where it cannot be used,
 *   `CorruptError` where the peer breaks it, `MessageError` where a message cannot be decoded,
 *   `ForbiddenError` where a thread must not block. This entry exports them; in the npm package
 *   they are not the classes of `@millrace/millrace`, which stand in another file.
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
export type { MessageHandler } from "./sab_inbox.ts";
export { type SABOptions, SABPipe } from "./sab_pipe.ts";
export { type InitTarget, SABMessagePort, type SABMessagePortInit } from "./sab_port.ts";
export type { OverflowHandler, Taken } from "./sab_queue.ts";
export type { WireName } from "./sab_wire.ts";
