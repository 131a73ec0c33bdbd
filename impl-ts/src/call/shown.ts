/**
 * Takes a message out of the ring that a look has shown, whatever is in the queue. See
 * `spec/call.md`.
 *
 * @module
 */

import { copyOut } from "../codec/codec.ts";
import { FRAME_HEADER_SIZE } from "../memory/layout.ts";
import type { Message } from "../pipe/pipe.ts";
import type { Inlet } from "../pipe/inlet.ts";

/** Takes the whole frame that an inlet stands before. @throws {MessageError} if it is lost. */
export function takeShown(inlet: Inlet): Message {
  const { kind, codec, tag, size, lead } = inlet.frame;
  inlet.admit(size);
  const at = (inlet.own & (inlet.capacity - 1)) + FRAME_HEADER_SIZE + lead;
  const payload = copyOut(inlet.bytes, at, size);
  inlet.release();
  return { kind, codec, tag: tag >>> 0, payload };
}
