/**
 * Everything that can go wrong with a segment, a pipe or a port, as errors with a stable `code`.
 *
 * A mistake of the caller is not among them: that is a `TypeError` or a `RangeError`.
 *
 * @module
 */

import { type ReasonCode as LayoutReason, reasonName, reasonValue } from "./memory/layout.ts";

// Other entries have copies of the layout's numbers, and need none of this table.
export { reasonName, reasonValue };

/**
 * A reason code of the specification, which can stand in shared memory.
 *
 * @example
 * ```ts
 * import { failEndpoint, PeerFailedError, Port, type SharedReason } from "@millrace/millrace";
 *
 * const reason: SharedReason = "peer.lost";
 * using port = Port.create();
 * failEndpoint(port.segment, 1, reason); // its other end
 * const error = await port.readAsync().catch((error) => error);
 * console.log(error instanceof PeerFailedError && error.reason); // "peer.lost"
 * ```
 */
export type SharedReason = LayoutReason;

/**
 * What an error's `code` can be: a reason code of the specification, `port.overflow`, or a code of
 * worker pools. The last two are local, because the queue of posts and the pools are this library's
 * own: the specification's table does not have them, they never stand in shared memory, and
 * `failEndpoint` refuses them.
 *
 * @example
 * ```ts
 * import { MillraceError, Port, type ReasonCode } from "@millrace/millrace";
 *
 * const harmless: ReasonCode[] = ["peer.closed", "pipe.closed"];
 * const port = Port.create();
 * port.close();
 * try {
 *   port.read();
 * } catch (error) {
 *   console.log(error instanceof MillraceError && harmless.includes(error.code)); // true
 * }
 * ```
 */
export type ReasonCode = SharedReason | "port.overflow" | `pool.${string}`;

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
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "MillraceError";

  /** What kind of error it is, such as `TimeoutError`, even if a bundler has shortened names. */
  declare name: string;
  /** The reason code, from the table in the specification. */
  declare readonly code: ReasonCode;
  /**
   * With `peer.failed` and `pipe.failed`: why the endpoint was marked, for instance
   * `peer.terminated` or `frame.size`. The number of a reason that this version does not know;
   * undefined if no reason was given. [pipe.failed_reason]
   */
  declare readonly reason: ReasonCode | number | undefined;

  /** Makes an error with a code and a message for people; `reason` is a number of the layout. */
  constructor(
    code: ReasonCode,
    message: string,
    details: ErrorDetails = {},
  ) {
    super(`${message} (${code})`, details);
    const { reason = 0, name = nameOf(code) } = details;
    this.code = code;
    this.reason = reasonName(reason) ?? (reason || undefined);
    this.name = name;
  }
}

/**
 * What an error has besides its code and its message.
 *
 * @example
 * ```ts
 * import { type ErrorDetails, MillraceError } from "@millrace/millrace";
 *
 * const details: ErrorDetails = { cause: new Error("out of memory") };
 * const error = new MillraceError("message.size", "Cannot keep message", details);
 * console.log(error.code, (error.cause as Error).message); // message.size out of memory
 * ```
 */
export interface ErrorDetails extends ErrorOptions {
  /** The number of a reason, from a state word; 0 for none. */
  readonly reason?: number | undefined;
  /** The name of its kind, if that does not follow from the code. */
  readonly name?: string | undefined;
}

/**
 * Errors of one kind. `error instanceof TimeoutError` tells them by their code, so that nobody pays
 * for the kinds that he does not ask for.
 *
 * @example
 * ```ts
 * import { type ErrorKind, MillraceError, TimeoutError } from "@millrace/millrace";
 *
 * const kind: ErrorKind<TimeoutError> = TimeoutError;
 * console.log(new MillraceError("wait.timeout", "Too late") instanceof kind); // true
 * ```
 */
// deno-lint-ignore no-explicit-any -- What may be thrown is asked for like that.
export type ErrorKind<E extends MillraceError> = (abstract new (...given: any[]) => E) & {
  /** The `name` of these errors. */
  readonly name: string;
  /** Whether a value is one of them. */
  [Symbol.hasInstance](value: unknown): value is E;
};

/** The name of the kind of errors with a code: the first that fits. */
function nameOf(code: string): string {
  const kinds = {
    Segment: /^(segment|mailbox.size)/,
    Corrupt: /^(ring|frame|mailbox|fanout)/,
    Message: /^message/,
    PeerClosed: /^peer.closed/,
    PeerFailed: /^peer.failed/,
    Closed: /^pipe/,
    Overflow: /^port/,
    Timeout: /^wait.time/,
    Forbidden: /^wait.forb/,
    Millrace: /^/,
  };
  return `${Object.entries(kinds).find(([, codes]) => codes.test(code))![0]}Error`;
}

function kind<E extends MillraceError>(name: string): ErrorKind<E> {
  const isOne = (value: unknown) =>
    value instanceof MillraceError &&
    // Other classes have names of their own.
    (value.constructor === MillraceError ? value.name : nameOf(value.code)) === name;
  return { name, [Symbol.hasInstance]: isOne } as ErrorKind<E>;
}

/**
 * The memory cannot be used as a segment, or not by this endpoint (codes `segment.*`), or it cannot
 * be used as a mailbox (code `mailbox.size`).
 *
 * @example
 * ```ts
 * import { Port, SegmentError } from "@millrace/millrace";
 *
 * using here = Port.create();
 * using there = Port.attach(here.memory);
 * try {
 *   Port.attach(here.memory); // as side b once more
 * } catch (error) {
 *   console.log(error instanceof SegmentError && error.code); // "segment.endpoint"
 * }
 * ```
 */
export const SegmentError: ErrorKind<SegmentError> = /* @__PURE__ */ kind("SegmentError");

/** An error of this kind. */
export type SegmentError = MillraceError & {
  readonly name: "SegmentError";
  readonly code: `segment.${string}` | "mailbox.size";
};

/**
 * The peer broke the structure of a ring or of a mailbox: codes `ring.*`, `frame.*`, `mailbox.*`.
 * The ring or mailbox is unusable from then on, and every later call reports the same error.
 *
 * @example
 * ```ts
 * import { CorruptError, Port } from "@millrace/millrace";
 *
 * using here = Port.create();
 * using there = Port.attach(here.memory);
 * // A peer that has gone mad writes its cursor, on which the reader's side checks everything:
 * const { controlOffset, controlSize } = here.segment.channels[0]!;
 * here.segment.words(controlOffset, controlSize).fill(7);
 * try {
 *   there.read();
 * } catch (error) {
 *   console.log(error instanceof CorruptError && error.code); // "ring.cursor"
 * }
 * ```
 */
export const CorruptError: ErrorKind<CorruptError> = /* @__PURE__ */ kind("CorruptError");

/** An error of this kind. */
export type CorruptError = MillraceError & { readonly name: "CorruptError" };

/**
 * One message was lost: codes `message.*`. The next call goes on with the message after it.
 *
 * @example
 * ```ts
 * import { MessageError, Port } from "@millrace/millrace";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory, { maxMessageSize: 8 });
 * here.write("too long for them");
 * here.write("short");
 * for (let message; message === undefined;) {
 *   try {
 *     console.log(message = there.read()); // "short"
 *   } catch (error) {
 *     if (!(error instanceof MessageError)) throw error; // "message.size": that one is lost
 *   }
 * }
 * ```
 */
export const MessageError: ErrorKind<MessageError> = /* @__PURE__ */ kind("MessageError");

/** An error of this kind. */
export type MessageError = MillraceError & { readonly name: "MessageError" };

/**
 * The peer has closed its endpoint without an `end` before, or a mailbox: code `peer.closed`.
 *
 * @example
 * ```ts
 * import { PeerClosedError, Port } from "@millrace/millrace";
 *
 * const here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * here.write(1);
 * here.close(); // without `here.end()`
 * console.log(there.read()); // 1
 * try {
 *   there.read();
 * } catch (error) {
 *   console.log(error instanceof PeerClosedError); // true
 * }
 * ```
 */
export const PeerClosedError: ErrorKind<PeerClosedError> = /* @__PURE__ */ kind("PeerClosedError");

/** An error of this kind. */
export type PeerClosedError = MillraceError & { readonly name: "PeerClosedError" };

/**
 * The peer's endpoint is marked failed: code `peer.failed`.
 *
 * @example
 * ```ts
 * import { failEndpoint, PeerFailedError, Port } from "@millrace/millrace";
 *
 * using port = Port.create();
 * failEndpoint(port.segment, 1, "peer.terminated"); // as `supervise` does
 * try {
 *   port.read();
 * } catch (error) {
 *   if (error instanceof PeerFailedError) console.log(error.reason); // "peer.terminated"
 * }
 * ```
 */
export const PeerFailedError: ErrorKind<PeerFailedError> = /* @__PURE__ */ kind("PeerFailedError");

/** An error of this kind. */
export type PeerFailedError = MillraceError & { readonly name: "PeerFailedError" };

/**
 * This endpoint is closed (`pipe.closed`), was marked failed by somebody else (`pipe.failed`), or
 * has ended its stream and cannot write any more (`pipe.ended`).
 *
 * @example
 * ```ts
 * import { ClosedError, Port } from "@millrace/millrace";
 *
 * const port = Port.create();
 * const waiting = port.readAsync();
 * port.close();
 * const error = await waiting.catch((error) => error);
 * console.log(error instanceof ClosedError && error.code); // "pipe.closed"
 * ```
 */
export const ClosedError: ErrorKind<ClosedError> = /* @__PURE__ */ kind("ClosedError");

/** An error of this kind. */
export type ClosedError = MillraceError & { readonly name: "ClosedError" };

/**
 * A posted message found the port's queue full, or was dropped from the queue for a newer one, as
 * the option `overflow` says: code `port.overflow`.
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
export const OverflowError: ErrorKind<OverflowError> = /* @__PURE__ */ kind("OverflowError");

/** An error of this kind. */
export type OverflowError = MillraceError & { readonly name: "OverflowError" };

/**
 * The deadline passed before the call could be done: code `wait.timeout`. The message is not sent.
 * Of the messages of a `writeMany`, the first are sent: `written` of the writer says how many.
 *
 * @example
 * ```ts
 * import { Port, TimeoutError } from "@millrace/millrace";
 *
 * using port = Port.create<string>({ capacity: 256 });
 * while (port.tryWrite("nobody reads"));
 * try {
 *   port.write("one more", { timeout: 10 });
 * } catch (error) {
 *   console.log(error instanceof TimeoutError); // true
 * }
 * console.log(port.read({ timeout: 10 })); // undefined
 * ```
 */
export const TimeoutError: ErrorKind<TimeoutError> = /* @__PURE__ */ kind("TimeoutError");

/** An error of this kind. */
export type TimeoutError = MillraceError & {
  readonly name: "TimeoutError";
  /**
   * Of a mailbox: whether a part of the message is in it already, so that the next write completes
   * it. A caller that wrote the message again would send it twice. [mailbox.begun]
   */
  readonly begun?: boolean;
};

/**
 * The call would have to block on a thread that must not, such as a browser's main thread: code
 * `wait.forbidden`.
 *
 * @example
 * ```ts
 * import { agentMechanism, ForbiddenError, Port } from "@millrace/millrace";
 *
 * // As on a browser's main thread:
 * const mechanism = Object.create(agentMechanism(), { blocks: { value: false } });
 * using port = Port.create<string>({ mechanism });
 * try {
 *   port.read();
 * } catch (error) {
 *   if (!(error instanceof ForbiddenError)) throw error;
 *   console.log(await port.readAsync({ timeout: 10 })); // undefined
 * }
 * ```
 */
export const ForbiddenError: ErrorKind<ForbiddenError> = /* @__PURE__ */ kind("ForbiddenError");

/** An error of this kind. */
export type ForbiddenError = MillraceError & { readonly name: "ForbiddenError" };

/** What a message for people adds of the reason in a state word. */
export const describe = (reason: number): string =>
  reason ? `: ${reasonName(reason) ?? `reason ${reason}`}` : "";

/** Makes the error of a call that cannot be done, for what it was to do and why not. */
export const failure = (code: ReasonCode, what: string, details?: ErrorDetails): MillraceError =>
  new MillraceError(code, `Cannot ${what}`, details);

/** Makes the error of a call that would have to block on a thread that must not. */
export function forbidden(): MillraceError {
  return failure("wait.forbidden", "block: this thread must not; use the asynchronous call");
}

/** Throws a `TypeError` for a mistake of the caller; `what` says what is wrong. */
export function throwTypeError(what: string): never {
  throw new TypeError(what);
}

/** Throws a `TypeError` for a call that cannot be done. */
export function throwCannot(what: string): never {
  throwTypeError(`Cannot ${what}`);
}

/**
 * Returns the options of a call, which must be an object if they are given: a call with a number in
 * their place, as in `read(500)`, would have no timeout at all.
 */
export function requireOptions<T>(options: T): T {
  if (options === undefined || options && typeof options === "object") return options;
  throwTypeError(`options must be an object, such as { timeout: 500 }: ${String(options)}`);
}

/** Throws a `RangeError` for a number that is not allowed. */
export function throwRangeError(what: string): never {
  throw new RangeError(what);
}

/** The part of a `segment.*` code after the point. */
type SegmentFault = SharedReason extends infer Code
  ? Code extends `segment.${infer Fault}` ? Fault : never
  : never;

/**
 * Throws a `SegmentError`: the memory cannot be used as a segment, or not in this way. Without a
 * text, that part of it is wrong.
 */
export function throwSegmentError(
  fault: SegmentFault,
  what: string = `attach segment: its ${fault} is wrong`,
): never {
  throw failure(`segment.${fault}`, what);
}

/** Makes the error of a message that was lost. */
export const lostError = (code: ReasonCode, why: string, options?: ErrorOptions): MillraceError =>
  failure(code, `read message: ${why}`, { ...options, name: "MessageError" });

/** Throws the error, if there is one. */
export function raise(error: Error | undefined): void {
  if (error !== undefined) throw error;
}

/** Throws if this library itself is wrong. Never used for what a peer or a caller may do. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`Assertion failed: ${message}`);
}
