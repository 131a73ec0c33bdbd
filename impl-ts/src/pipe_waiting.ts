/**
 * What a reader has taken out of the ring and not handed out yet: the rest of a batch, and the
 * inbox of a port. See `spec/port.md`.
 *
 * @module
 */

import { encodeJson } from "./codec.ts";
import { MessageError, MillraceError } from "./error.ts";
import { CODEC_JSON } from "./layout.ts";
import type { Link, Message, Renewable } from "./pipe.ts";
import { ENDED, IN_PARTS, LOOK, NOTHING, type Receiver } from "./pipe_receiver.ts";
import type { Waitable } from "./wait.ts";

/** No outcome yet: more can come, or is not read. */
export const OPEN: unique symbol = Symbol("open");

/**
 * Messages and errors that come before what is in the ring; one for each reader, whose waits for a
 * message are waits for this.
 */
export class Waiting implements Waitable, Renewable {
  /** Index of the writer's endpoint. */
  readonly peer: number;
  readonly #link: Link;
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
  constructor(link: Link, receiver: Receiver) {
    this.#link = link;
    this.#receiver = receiver;
    link.ends.push(this);
    this.peer = link.peer;
  }

  /**
   * Whether something has come since a read has found nothing: into the ring, where another call
   * may have seen it and left it, or by another call. [port.inbox_wake]
   */
  look(): boolean {
    const { ring, ended } = this.#receiver;
    return ring.look() || !ring.isRead || this.#inbox.length > 0 || ended;
  }

  arm(): void {
    this.#receiver.ring.arm();
  }

  stayArmed(): void {
    this.#receiver.ring.stayArmed();
  }

  disarm(): void {
    this.#receiver.ring.disarm();
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

  /** Whether the end of the stream was read, and nothing is left. */
  get ended(): boolean {
    return this.#receiver.ended && !this.some;
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
    this.#requireBack();
    this.#receiver.note(this.#kind, CODEC_JSON, this.#tag);
    return this.#batch[this.#index++];
  }

  /**
   * Takes messages into the inbox while it has room, up to a count and a sum of bytes; for ports.
   * Returns what to wait for to go on, or undefined when there is no more room or nothing to come.
   */
  fill(maxCount: number, maxSize: number): Waitable | undefined {
    const receiver = this.#receiver;
    if (!receiver.open) return undefined;
    const before = this.inboxCount;
    const { kind, codec, tag } = receiver;
    // One load only: the writer looks at its deadline before it comes here again.
    let mayLoad = true;
    for (; this.#hasRoom(maxCount, maxSize); mayLoad = false) {
      try {
        const found = receiver.pull(undefined, mayLoad);
        if (found === NOTHING || found === ENDED) break;
        this.#keep(receiver.makeMessage(found));
      } catch (error) {
        // [port.inbox_fault] A fault of the pipe keeps itself; it is met again behind the inbox.
        if (!(error instanceof MessageError)) break;
        this.#keep(error);
      }
    }
    receiver.note(kind, codec, tag); // those of the message that was read last
    receiver.ring.flush(); // [port.publish_both]
    if (this.inboxCount > before) this.#rouse();
    return receiver.open && this.#hasRoom(maxCount, maxSize) ? receiver.ring : undefined;
  }

  /**
   * Whether a read would return or throw something at once; for `select`. What cannot be left in
   * the ring for it, a message of several frames or the report of a lost one, goes into the inbox.
   */
  poll(): boolean {
    if (this.some) return true;
    const receiver = this.#receiver;
    const { ring } = receiver;
    // Most of the ports of a hub: nothing has moved since the last look.
    if (receiver.open && ring.isRead && !ring.look()) return this.#link.isFinal();
    const { kind, codec, tag } = receiver;
    let found: number;
    try {
      found = receiver.pull(undefined);
      if (found === IN_PARTS) this.#keep(receiver.makeMessage(found));
    } catch (error) {
      // A fault or a close keeps itself, for the read to meet again.
      if (!(error instanceof MillraceError)) throw error;
      if (error instanceof MessageError) this.#keep(error);
      found = ENDED;
    }
    if (this.some) this.#rouse();
    receiver.note(kind, codec, tag);
    return found !== NOTHING || this.#link.isFinal();
  }

  /**
   * How the pipe has ended, for ports: the error, undefined behind an `end`, or `OPEN` while more
   * can come or is not read. Takes nothing but the `end`.
   */
  outcome(): MillraceError | typeof OPEN | undefined {
    const receiver = this.#receiver;
    try {
      for (let last = false;; last = true) {
        if (this.some || receiver.lending) return OPEN;
        const found = receiver.pull(LOOK);
        if (found !== NOTHING) return found === ENDED ? undefined : OPEN;
        const gone = receiver.lookAgain();
        if (gone === undefined) return OPEN;
        if (last) return receiver.giveUp(gone);
      }
    } catch (error) {
      if (error instanceof MillraceError) return error;
      throw error;
    }
  }

  obstacle(): string | undefined {
    return this.#receiver.isTaken() ? undefined : "what it has published is not read";
  }

  /** What was taken out of the ring before is still delivered. [pipe.vacated] */
  renew(): void {
    this.#receiver.renew();
  }

  /** [port.inbox_wake] Its peer has seen the `wants` of a wait for it satisfied, or never looks. */
  #rouse(): void {
    this.#link.endpoint.watch.look();
  }

  /** Whether the inbox may take more, up to a count and a sum of bytes. */
  #hasRoom(maxCount: number, maxSize: number): boolean {
    return this.#inbox.length < maxCount && this.#inboxSize < maxSize;
  }

  /** Puts something behind everything in the inbox. */
  #keep(arrival: Message | MessageError): void {
    if (!(arrival instanceof MessageError)) this.#inboxSize += arrival.payload.length;
    this.#inbox.push(arrival);
  }

  /** Puts an error, which was thrown too early, in front of everything in the inbox. */
  keepFirst(error: MessageError): void {
    this.#inbox.unshift(error);
  }

  /** The next message of the batch or of the inbox, left where it is; throws an error of there. */
  peek(): Message | undefined {
    if (this.some) this.#requireBack();
    if (this.inBatch) {
      const payload = this.#encodeOfBatch();
      // [codec.batch_read]
      return { kind: this.#kind, codec: CODEC_JSON, tag: this.#tag, payload };
    }
    if (this.#inbox[0] instanceof MessageError) this.shift();
    return this.#inbox[0] as Message | undefined;
  }

  /** Throws while a frame is lent. [pipe.lend_one] */
  #requireBack(): void {
    if (this.#receiver.lent) throw new TypeError("Cannot read: a frame is lent");
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
    this.#requireBack();
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
