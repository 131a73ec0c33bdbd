/**
 * The small port: what was accepted for writing, and is not in the ring yet.
 *
 * @module
 */

import { has } from "./faults.ts";
import { CALL } from "./small_caller.ts";
import { PortError, Refused } from "./small_memory.ts";
import type { Message } from "./small_reader.ts";
import type { Writer } from "./small_writer.ts";

/** A message that was accepted. */
interface Post {
  message: Message;
  isStale: () => boolean;
  placed: () => void;
}

/** How long an answer of many frames may wait for room. */
const LONG_MS = 5_000;
/** How long a port waits that must not. */
const WAITS_MS = 50;

/** Messages that wait for room, in order. */
export class Outbox {
  readonly #writer: Writer;
  /** Whether a frame is lent: then nothing is written. */
  readonly #isLending: () => boolean;
  #posts: Post[] = [];
  #isWriting = false;

  constructor(writer: Writer, isLending: () => boolean) {
    this.#writer = writer;
    this.#isLending = isLending;
  }

  get isEmpty(): boolean {
    return this.#posts.length === 0;
  }

  /** Whether a message stands in the ring, or may, that is not whole. [call.whole_first] */
  get isHalfway(): boolean {
    return this.#isWriting || this.#writer.isClaimed;
  }

  /** Has a message written as soon as that is possible, unless it is stale by then. */
  post(message: Message, isStale: () => boolean, placed: () => void): void {
    this.#posts.push({ message, isStale, placed });
    if (has("serves_halfway") && this.#writer.tryWrite(message)) this.#posts.pop();
    const isBare = message.payload.length === 0 && message.kind === CALL;
    this.flush(isBare && has("cancel_waits") ? performance.now() + WAITS_MS : undefined);
    if (isBare && has("cancel_lost")) this.clear();
  }

  clear(): void {
    this.#posts = [];
  }

  /** Writes what was accepted, as far as there is room; with a deadline, waits for it. */
  flush(deadline?: number): void {
    if (this.isHalfway || this.#isLending()) return;
    for (let post = this.#posts[0]; post !== undefined; post = this.#posts[0]) {
      const isStale = post.isStale();
      if (!isStale && !this.#place(post.message, deadline)) return;
      this.#posts.shift();
      if (!isStale) post.placed();
    }
  }

  /** Writes an accepted message where there is room; whether there was, or nobody is there. */
  #place(message: Message, deadline?: number): boolean {
    try {
      while (!this.#writer.tryWrite(message)) {
        if (deadline === undefined) return false;
        this.#alone(() => this.#writer.waitFor(message, deadline));
      }
    } catch (error) {
      if (error instanceof Refused) this.#writeLong(message);
      else if (error instanceof PortError && error.code !== "wait.timeout") return true;
      else throw error;
    }
    return true;
  }

  #writeLong(message: Message): void {
    try {
      this.#alone(() => this.#writer.write(message, LONG_MS));
    } catch (error) {
      if (!(error instanceof PortError)) throw error; // the peer is gone, as a read will say
    }
  }

  /** Writes with nothing begun meanwhile. [call.whole_first] */
  #alone(write: () => void): void {
    if (this.#isWriting) throw new Error("two messages are written at once");
    this.#isWriting = true;
    try {
      write();
    } finally {
      this.#isWriting = false;
    }
  }

  /** Writes a message, behind all that was accepted; without a time it does not wait. */
  write(message: Message, timeoutMs: number | undefined): boolean {
    const deadline = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    this.#writer.check();
    if (!has("owed_behind")) this.flush(deadline);
    if (!this.isEmpty && !has("owed_behind")) return false;
    if (timeoutMs === undefined) return this.#writer.tryWrite(message);
    this.#alone(() => this.#writer.write(message, timeoutMs));
    this.flush();
    return true;
  }
}
