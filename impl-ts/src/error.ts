/**
 * Everything that goes wrong with a segment, a pipe or a port, as errors with a stable `code`.
 *
 * A caller's own mistake is not among them: that is a `TypeError` or a `RangeError`.
 *
 * @module
 */

import { type ReasonCode as SharedReason, reasonName } from "./layout.ts";

export type { SharedReason };

/**
 * What an error's `code` can be: a reason of the specification, or `port.overflow`, which never
 * stands in shared memory.
 */
export type ReasonCode = SharedReason | "port.overflow";

/**
 * The base of all errors of this library. `code` names what happened, as the specification does.
 *
 * @example
 * ```ts
 * import { MillraceError, Segment } from "@millrace/millrace";
 *
 * try {
 *   Segment.attach(new SharedArrayBuffer(1024), { timeout: 0 });
 * } catch (error) {
 *   console.log(error instanceof MillraceError && error.code); // "segment.unready"
 * }
 * ```
 */
export class MillraceError extends Error {
  /** The name of the class. */
  override name = "MillraceError";
  /** The reason code, from the table in the specification. */
  readonly code: ReasonCode;

  /** Makes an error with a code and a message for people. */
  constructor(code: ReasonCode, message: string, options?: ErrorOptions) {
    super(`${message} (${code})`, options);
    this.code = code;
  }
}

/**
 * The memory cannot be used as a segment, or not by this endpoint: codes `segment.*`; or not as a
 * mailbox: code `mailbox.size`.
 */
export class SegmentError extends MillraceError {
  /** The name of the class. */
  override name = "SegmentError";
}

/**
 * The peer broke the structure of a ring or of a mailbox: codes `ring.*`, `frame.*`, `mailbox.*`.
 * It is unusable from then on, and every later call reports the same error.
 */
export class CorruptError extends MillraceError {
  /** The name of the class. */
  override name = "CorruptError";
}

/**
 * One message was lost: codes `message.*`. The next call goes on with the message behind it.
 */
export class MessageError extends MillraceError {
  /** The name of the class. */
  override name = "MessageError";
}

/** The peer has closed its endpoint, without an `end` in front, or a mailbox: `peer.closed`. */
export class PeerClosedError extends MillraceError {
  /** The name of the class. */
  override name = "PeerClosedError";
}

/** The peer's endpoint is marked failed: code `peer.failed`. */
export class PeerFailedError extends MillraceError {
  /** The name of the class. */
  override name = "PeerFailedError";
  /**
   * Why it was marked, for instance `peer.terminated` or `frame.size`; the number of a reason that
   * this version does not know; `undefined` if no reason was given. [pipe.failed_reason]
   */
  readonly reason: ReasonCode | number | undefined;

  /** Makes the error for a peer that was marked with this reason, 0 for none. */
  constructor(message: string, reason: number, options?: ErrorOptions) {
    super("peer.failed", `${message}: ${describe(reason)}`, options);
    this.reason = named(reason);
  }
}

/**
 * This endpoint is closed (`pipe.closed`), was marked failed by somebody else (`pipe.failed`), or
 * has ended its stream and cannot write any more (`pipe.ended`).
 */
export class ClosedError extends MillraceError {
  /** The name of the class. */
  override name = "ClosedError";
  /**
   * Why this endpoint was marked failed: a reason code, the number of one that this version does
   * not know, or `undefined` when it was not marked, or without a reason. [pipe.failed_reason]
   */
  readonly reason: ReasonCode | number | undefined;

  /** Makes the error; `reason` is the number in the state word of a failed endpoint. */
  constructor(
    code: "pipe.closed" | "pipe.failed" | "pipe.ended",
    message: string,
    reason?: number,
  ) {
    super(code, reason === undefined ? message : `${message}: ${describe(reason)}`);
    this.reason = named(reason ?? 0);
  }
}

/**
 * A message that was posted found the port's queue full, or was dropped from it for a newer one,
 * as the option `overflow` says: code `port.overflow`.
 *
 * @example
 * ```ts
 * import { OverflowError, Port } from "@millrace/millrace";
 *
 * using port = Port.create({ capacity: 256, queueLimit: 1, overflow: "reject" });
 * while (port.tryWrite("nobody reads"));
 * port.postMessage(1);
 * const error = await port.postMessage(2).catch((error) => error);
 * console.log(error instanceof OverflowError && error.code); // "port.overflow"
 * ```
 */
export class OverflowError extends MillraceError {
  /** The name of the class. */
  override name = "OverflowError";

  /** Makes the error for a message that is not sent. */
  constructor(message: string) {
    super("port.overflow", message);
  }
}

/** The deadline passed before the call could be done: code `wait.timeout`. */
export class TimeoutError extends MillraceError {
  /** The name of the class. */
  override name = "TimeoutError";
  /**
   * Whether a part of the message is written already, in a mailbox, and the next write completes
   * it: a caller that wrote it again would send it twice. [mailbox.begun]
   */
  readonly begun: boolean;

  /** Makes the error for a call that could not be done in time. */
  constructor(message: string, begun: boolean = false) {
    super("wait.timeout", message);
    this.begun = begun;
  }
}

/** This thread must not block, a browser's main thread for one: code `wait.forbidden`. */
export class ForbiddenError extends MillraceError {
  /** The name of the class. */
  override name = "ForbiddenError";

  /** Makes the error for a call that would have to block. */
  constructor(message: string) {
    super("wait.forbidden", message);
  }
}

/** The reason of a state word as it is handed out. */
function named(reason: number): ReasonCode | number | undefined {
  return reasonName(reason) ?? (reason || undefined);
}

/** The same for people. */
function describe(reason: number): string {
  return reason === 0 ? "no reason given" : reasonName(reason) ?? `unknown reason ${reason}`;
}

/** Throws when our own code is wrong; never used for what a peer or a caller may do. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`Assertion failed: ${message}`);
}
