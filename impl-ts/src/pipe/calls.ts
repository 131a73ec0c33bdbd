/**
 * How a pipe works together with calls: the interface through which a port hands the messages of
 * calls to its call layer, once it has one. See `spec/call.md`.
 *
 * A port without a call layer knows nothing of calls. With one, `Inlet.taker`, the inlet no longer
 * delivers messages of the kinds call, return and throw. Before each read, and wherever a port
 * takes something in, the layer takes out those of them that stand first in the ring, by `serve`
 * and `takeNext`, including those that were dropped. Taking is only bookkeeping: an answer ends its
 * call, and what concerns methods is noted. `begin` does the noted work, where the inlet is read or
 * an answer is waited for. It never runs where a port waits for room, perhaps in the middle of a
 * message.
 *
 * @module
 */

import type { MessageError, MillraceError } from "../error.ts";
import type { Taking } from "./inbox.ts";
import type { Waitable } from "../wait/wait.ts";

/** Takes the messages of calls, in the order of their frames. */
export interface CallTaker {
  /** What an event loop waits for on behalf of calls, if nobody listens to messages. */
  readonly what: Waitable;
  /** Whether an event loop has to look for messages of calls. */
  readonly isActive: boolean;
  /** Whether looking for them keeps the process alive. */
  readonly keeps: boolean;
  /** Whether the calls have ended, because the peer is gone or has ended its stream. */
  readonly isLost: boolean;
  /** Calls that were taken and have not begun, and their bytes. They count as part of the inbox. */
  readonly waitingCount: number;
  readonly waitingSize: number;
  /** Whether `begin` has work and may do it now. [call.whole_first] */
  readonly isDue: boolean;
  /**
   * Takes all messages of calls that stand before the next plain message, and begins the calls.
   * Takes none while messages that left the ring earlier still wait to be read: those come first.
   *
   * @throws {MessageError} the report of a message that was lost.
   */
  serve(mayLoad: boolean): void;
  /**
   * Takes one message of a call, or a part of one, if that is what comes next. Returns whether it
   * did.
   *
   * @throws {MessageError} the report of a message that was lost.
   */
  takeNext(mayLoad: boolean): boolean;
  /** With a full inbox, takes what comes next if that needs no room in it. [call.takes_in] */
  takePassing(mayLoad: boolean): Taking;
  /**
   * Tells the layer that the stream ended inside a message, which was dropped. Returns whether a
   * call reports that, so that no read has to.
   */
  cut(kind: number, tag: number, error: MessageError): boolean;
  /** Begins calls, notifies methods, and writes what is owed. Runs the application's own code. */
  begin(): void;
  /** Takes one message for the event loop. Returns whether it did, or an error to be reported. */
  pump(): boolean | MessageError;
  /**
   * Ends all calls, for this error, or, without one, because the peer has ended its stream.
   * [call.lost]
   */
  finish(error: MillraceError | undefined): void;
  /**
   * Notes that this end has ended its stream, so that nothing can be written any more. [call.told]
   */
  mute(): void;
  /** Begins anew with the next owner of the peer's endpoint. [call.vacated] */
  renew(): void;
}
