/**
 * What a reader has taken out of the ring and not handed out yet: the rest of a batch, and the
 * inbox of a port. See `spec/port.md`.
 *
 * @module
 */

import { encodeJson } from "./codec.ts";
import { MessageError } from "./error.ts";
import { CODEC_JSON } from "./layout.ts";
import type { Message } from "./pipe.ts";
import type { Receiver } from "./pipe_receiver.ts";

/** Messages and errors that come before what is in the ring; one for each reader. */
export class Waiting {
  readonly #receiver: Receiver;
  /** Elements of a batch that are not read yet: they come first. */
  #batch: readonly unknown[] = [];
  #index = 0;
  #kind = 0;
  #tag = 0;
  /** What came in while a port waited for room: messages and errors. */
  readonly #inbox: (Message | MessageError)[] = [];
  #inboxSize = 0;

  /** Makes one that is empty. */
  constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  /** Whether elements of a batch are left. */
  get inBatch(): boolean {
    return this.#index < this.#batch.length;
  }

  /** How much the inbox holds. */
  get inboxCount(): number {
    return this.#inbox.length;
  }

  /** Whether anything is left. */
  get some(): boolean {
    return this.inBatch || this.#inbox.length > 0;
  }

  /** Whether the inbox may take more, up to a count and a sum of bytes. */
  hasRoom(maxCount: number, maxSize: number): boolean {
    return this.#inbox.length < maxCount && this.#inboxSize < maxSize;
  }

  /** Begins a batch, which has come in the receiver's message, and returns its first value. */
  open(batch: readonly unknown[]): unknown {
    this.#batch = batch;
    this.#index = 0;
    this.#kind = this.#receiver.kind;
    this.#tag = this.#receiver.tag;
    return this.nextOfBatch();
  }

  /** [codec.batch_read] */
  nextOfBatch(): unknown {
    this.#receiver.note(this.#kind, CODEC_JSON, this.#tag);
    return this.#batch[this.#index++];
  }

  /** Puts something behind everything in the inbox. */
  keep(arrival: Message | MessageError): void {
    if (!(arrival instanceof MessageError)) this.#inboxSize += arrival.payload.length;
    this.#inbox.push(arrival);
  }

  /** Puts an error, which was thrown too early, in front of everything in the inbox. */
  keepFirst(error: MessageError): void {
    this.#inbox.unshift(error);
  }

  /** The next message of the batch or of the inbox, left where it is; throws an error of there. */
  peek(): Message | undefined {
    if (this.inBatch) {
      const payload = this.#encodeOfBatch();
      // [codec.batch_read]
      return { kind: this.#kind, codec: CODEC_JSON, tag: this.#tag, payload };
    }
    if (this.#inbox[0] instanceof MessageError) this.shift();
    return this.#inbox[0] as Message | undefined;
  }

  /** Takes the next message of the batch, or else of the inbox. [port.inbox_order] */
  take(): Message | undefined {
    const message = this.peek();
    if (message === undefined) return undefined;
    if (this.inBatch) this.#index++;
    else this.shift();
    this.#receiver.note(message.kind, message.codec, message.tag);
    return message;
  }

  /** Takes the first of the inbox, and throws it if it is an error. */
  shift(): Message {
    const message = this.#inbox.shift()!;
    if (message instanceof MessageError) throw message;
    this.#inboxSize -= message.payload.length;
    return message;
  }

  /** Drops everything. */
  drop(): void {
    this.#inbox.length = 0;
    this.#batch = [];
    this.#index = 0;
  }

  #encodeOfBatch(): Uint8Array {
    try {
      return encodeJson(this.#batch[this.#index]);
    } catch (error) {
      this.#index++;
      throw error;
    }
  }
}
