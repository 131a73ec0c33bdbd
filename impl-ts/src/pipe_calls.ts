/**
 * Where a pipe meets calls: what a port tells a call layer, once it has one. See `spec/call.md`.
 *
 * A port without a layer knows nothing of calls. With one, `Inlet.taker`, no message of the kinds
 * call, return and throw is delivered any more: before each read, and wherever a port takes
 * something in, the layer takes those out that stand first, by `serve` and `takeNext`, also those
 * that were dropped. To take is bookkeeping: an answer ends its call, and what methods have to do
 * with is noted. `begin` does that, where the inlet is read, or an answer is waited for, and never
 * where a port waits for room, in the middle of a message perhaps.
 *
 * @module
 */

import type { MessageError, MillraceError } from "./error.ts";
import type { Taking } from "./pipe_inbox.ts";
import type { Waitable } from "./wait.ts";

/** What takes the messages of calls, in the order of their frames. */
export interface CallTaker {
  /** What an event loop waits for on behalf of calls, where nobody listens to messages. */
  readonly what: Waitable;
  /** Whether an event loop is to look for calls. */
  readonly isActive: boolean;
  /** Whether the process lives for that. */
  readonly keeps: boolean;
  /** Calls that were taken and have not begun, and their bytes: they stand in the inbox. */
  readonly waitingCount: number;
  readonly waitingSize: number;
  /** Whether there is something for `begin` to do, and nothing forbids it. [call.whole_first] */
  readonly isDue: boolean;
  /**
   * Takes all messages of calls that stand before the next plain one, and begins the calls. What
   * was taken out of the ring before is read first.
   *
   * @throws {MessageError} the report of one.
   */
  serve(mayLoad: boolean): void;
  /**
   * Takes one message of a call, or a part, if that is what comes next, and returns whether it was.
   *
   * @throws {MessageError} the report of one.
   */
  takeNext(mayLoad: boolean): boolean;
  /** Takes what comes next if that needs no room in the inbox, which is full. [call.takes_in] */
  takePassing(mayLoad: boolean): Taking;
  /** A message was dropped in which the stream ended. Returns whether nobody else has to know. */
  cut(kind: number, tag: number, error: MessageError): boolean;
  /** Begins calls, tells methods, writes what is owed. Runs code of the application's. */
  begin(): void;
  /** Takes one message for the event loop. Returns whether it did, or what is to be reported. */
  pump(): boolean | MessageError;
  /** Nothing more will come, for this reason; or as the peer has ended its stream. [call.lost] */
  finish(error: MillraceError | undefined): void;
  /** Nothing can be written any more, since this end has ended its stream. [call.told] */
  mute(): void;
  /** Begins anew with the next owner of the peer's endpoint. [call.vacated] */
  renew(): void;
}
