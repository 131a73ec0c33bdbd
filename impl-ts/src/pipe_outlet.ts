/**
 * What the verbs of a writer share with the posts of a port: the turn, the answers that need no
 * look at the ring, and the wait for room. See `spec/pipe.md`.
 *
 * @module
 */

import type { AnyCodec, CodecName } from "./codec.ts";
import { ClosedError, PeerClosedError, TimeoutError } from "./error.ts";
import { CLAIMED, ENDED, type Gate } from "./gate.ts";
import { deadlineOf, type Link, type Renewable, type WaitOptions } from "./pipe.ts";
import type { Sender } from "./pipe_sender.ts";
import { requireTimeout } from "./segment.ts";
import { Turns, type Waitable } from "./wait.ts";
import { Several } from "./wait_several.ts";

/** Most values in a batch, and the size from which on fewer are packed: more gains nothing. */
export const RUN_COUNT = 16;
export const RUN_SIZE = 4096;

/** What a port does while it waits for room: it takes what arrives into its inbox. */
export interface Idle {
  /** Takes in what is there; returns what to wait for as well, undefined when the inbox is full. */
  fill(): Waitable | undefined;
}

/** What was posted on a port and is not in the ring yet. It has the turn, or waits for it. */
export interface Posts {
  /**
   * Writes what has the turn, and gives the turn back behind it. Without `wait` it stops where
   * there is no room; what `wait` throws leaves the rest posted.
   */
  flush(wait?: () => void): void;
}

/** The end of a call's waiting, computed when it is made: at the first wait. [wait.deadline] */
export class Deadline {
  readonly time: number;
  /** Waits of the call so far. */
  waits = 0;

  /** Makes the deadline of a call. */
  constructor(options: WaitOptions | undefined) {
    this.time = deadlineOf(requireTimeout(options?.timeout, Infinity));
  }
}

/** The way into one ring; one for each writer. */
export class Outlet implements Renewable {
  readonly link: Link;
  readonly sender: Sender;
  readonly codec: CodecName | AnyCodec;
  readonly turns: Turns;
  /** Asynchronous calls so far: what is posted behind one has to wait for a turn of its own. */
  asked = 0;
  /** Readers so far: one more each time that their endpoint was given back. */
  round = 0;
  /** Groups of posts that were accepted, and could not be written, so far. */
  lostCount = 0;
  /** Set by a port on which something is posted. */
  posts: Posts | undefined;
  readonly #idle: Idle | undefined;
  readonly #gate: Gate;
  #claimed = -1;

  /** Makes the outlet of a sender. */
  constructor(link: Link, sender: Sender, codec: CodecName | AnyCodec, idle: Idle | undefined) {
    this.link = link;
    this.sender = sender;
    this.codec = codec;
    this.#idle = idle;
    this.#gate = sender.ring.gate;
    this.turns = new Turns(this.#gate);
    link.ends.push(this);
  }

  obstacle(): string | undefined {
    return this.sender.encoder.active ? "a value is being encoded" : undefined;
  }

  renew(): void {
    this.round++;
    this.ended = false;
    this.claimed = -1;
    this.sender.renew();
  }

  /** Whether the stream has ended, or is to end behind what was accepted before. */
  get ended(): boolean {
    return this.#gate.has(ENDED);
  }

  set ended(ended: boolean) {
    this.#gate.set(ENDED, ended);
  }

  /** The open claim: its size, or -1. */
  get claimed(): number {
    return this.#claimed;
  }

  set claimed(size: number) {
    this.#claimed = size;
    this.#gate.set(CLAIMED, size >= 0);
  }

  /** The answers that need no look at the ring, in their order. [pipe.first_answer] */
  check(): void {
    if (this.sender.ring.isClear) this.sender.ring.allowLoad();
    else this.#refuse(this.ended);
  }

  /** The same for what was accepted before the stream was to end. */
  checkAccepted(): void {
    this.#refuse(false);
  }

  #refuse(ended: boolean): void {
    const closed = this.link.closedError("write");
    if (closed !== undefined) throw closed;
    if (this.sender.fault !== undefined) throw this.sender.fault;
    if (ended) throw new ClosedError("pipe.ended", "Cannot write: this end has ended");
    this.#requireOpen(); // [pipe.peer_gone]
    this.requireFree();
    this.sender.ring.allowLoad();
  }

  /** Throws while a claim is open, or a value is encoded: nothing can be placed before that. */
  requireFree(): void {
    if (this.claimed >= 0) throw new TypeError("Cannot write: a claim is open");
    if (this.sender.encoder.active) throw new TypeError("Cannot write: a value is being encoded");
  }

  /** Writes what was posted, without waiting. False: the turn is still somebody else's. */
  takeOver(): boolean {
    if (!this.turns.busy) return true;
    this.posts?.flush();
    if (this.turns.busy) return false;
    this.check();
    return true;
  }

  /** The same for a blocking call, which waits for room; returns its deadline. */
  takeOverBlocking(options: WaitOptions | undefined): Deadline {
    const deadline = new Deadline(options);
    this.posts?.flush(() => this.waitRoom(deadline));
    if (this.turns.busy) throw new TypeError("Cannot write: an asynchronous write is under way");
    this.check();
    return deadline;
  }

  /** Ends the stream, behind what was posted. False: it is not its turn. */
  tryEnd(): boolean {
    try {
      this.check();
      if (!this.takeOver()) return false;
      this.placeEnd();
    } catch (error) {
      if (!this.mayEnd(error)) throw error;
      if (this.turns.busy) return false; // behind the posts, which are lost
      this.ended = true;
    }
    return true;
  }

  /** Whether an `end` that was refused with this error does nothing instead. [pipe.end_closed] */
  mayEnd(error: unknown): boolean {
    if (error instanceof PeerClosedError) return true;
    return error instanceof ClosedError && error.code === "pipe.closed" && !this.link.closed;
  }

  /** Places and publishes the `end`, for which there is always room. */
  placeEnd(): void {
    const { sender } = this;
    sender.placeCancel(); // [pipe.owed_end] Without room for both it is left away.
    this.ended = true; // [pipe.end]
    sender.ring.finishEnd();
    sender.ring.publish();
  }

  /** Waits until there may be room. At the deadline the message stays under way. */
  waitRoom(deadline: Deadline): void {
    const other = this.#beforeWait(deadline);
    const { ring } = this.sender;
    const waits = deadline.waits++;
    if (!this.link.endpoint.wait(ring, other, deadline.time, waits)) throw timedOut();
    this.#afterWait();
  }

  /** The same without blocking; `room` is what shows that there may be some. */
  async waitRoomAsync(
    deadline: Deadline,
    signal: AbortSignal | undefined,
    room: Waitable = this.sender.ring,
  ): Promise<void> {
    const what = this.#orArrival(room, this.#beforeWait(deadline));
    if (!await this.link.endpoint.waitAsync(what, deadline.time, signal)) throw timedOut();
    this.#afterWait();
  }

  /** What to wait for to place more, in a call that waits for something else. [port.posted] */
  room(): Waitable {
    return this.#orArrival(this.sender.ring, this.#idle?.fill());
  }

  #orArrival(room: Waitable, other: Waitable | undefined): Waitable {
    return other === undefined ? room : new Several(this.link.endpoint, [room, other]);
  }

  #beforeWait(deadline: Deadline): Waitable | undefined {
    this.link.endpoint.settle();
    this.#requireOpen();
    const other = this.#idle?.fill();
    // Here and not only in the wait, which comes back at once while the peer keeps a cursor moving.
    if (performance.now() >= deadline.time) throw timedOut();
    return other;
  }

  /** [pipe.peer_gone] The wait may have ended because of a state. */
  #afterWait(): void {
    this.#requireOpen();
    this.sender.ring.allowLoad();
  }

  /** Throws for a state that is final: one load of each. */
  #requireOpen(): void {
    const error = this.link.ownError("write") ?? this.link.peerError("write");
    if (error !== undefined) throw error;
  }
}

/** The error of a write whose time is up. */
export function timedOut(): TimeoutError {
  return new TimeoutError("Cannot write: the ring stayed full until the deadline");
}
