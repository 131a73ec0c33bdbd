/**
 * What users see of the queues of a pipe, and the limit of a queue.
 *
 * @module
 */

/**
 * What a read of up to `N` messages returns: one message or `null` for 1, else an array, newest
 * first.
 *
 * @example
 * ```ts
 * import { SABPipe, type Taken } from "@millrace/millrace/sab-message-port";
 *
 * const writer = new SABPipe<number>("w");
 * const reader = new SABPipe<number>("r", writer.buffer); // usually in a worker
 * await writer.postMessage(1);
 * const one: Taken<number, 1> = reader.tryRead();
 * const many: Taken<number, 10> = reader.tryRead(10);
 * console.log(one, many); // 1 []
 * writer.destroy();
 * ```
 */
export type Taken<T, N extends number> = number extends N ? T | null | T[]
  : N extends 1 ? T | null
  : T[];

/**
 * A handler of messages.
 *
 * @example
 * ```ts
 * import { type MessageHandler, SABPipe } from "@millrace/millrace/sab-message-port";
 *
 * const writer = new SABPipe<string>("w");
 * const reader = new SABPipe<string>("r", writer.buffer); // usually in a worker
 * const heard = Promise.withResolvers<string>();
 * const handler: MessageHandler<string> = ({ data }) => heard.resolve(data);
 * reader.onmessage = handler;
 * writer.postMessage("hello");
 * console.log(await heard.promise); // "hello"
 * writer.destroy();
 * ```
 */
export type MessageHandler<T> = (event: { data: T }) => void;

/**
 * A handler that gets a queue before it is cut to its limit, and may change it.
 *
 * @example
 * ```ts
 * import { type OverflowHandler, SABPipe } from "@millrace/millrace/sab-message-port";
 *
 * // Lets the newest one pass, and no others.
 * const newest: OverflowHandler<number> = (queue) => void queue.splice(0, queue.length - 1);
 * const writer = new SABPipe<number>("w");
 * writer.queueLimit = 2;
 * writer.onQueueOverflow = newest;
 * const reader = new SABPipe<number>("r", writer.buffer); // usually in a worker
 * for (const n of [1, 2, 3]) writer.postMessage(n);
 * console.log(await reader.asyncRead(1000)); // 3
 * writer.destroy();
 * ```
 */
export type OverflowHandler<T> = (queue: T[]) => void;

/** The limit of a queue, and the handler that is called when the queue exceeds it. */
export interface Bounds<T> {
  /** The most messages that the queue may hold; `null` for no limit. */
  limit: number | null;
  /** Called with the queue before it is cut. */
  onOverflow: OverflowHandler<T> | null;
}

/** The order of a queue. A reader has the newest first: the next message is the last element. */
export type QueueOrder = "oldest first" | "newest first";

/** Discards the oldest messages that exceed the limit, after the overflow handler was called. */
export function enforceLimit<T>(
  values: T[],
  order: QueueOrder,
  { limit, onOverflow }: Bounds<T>,
): void {
  if (limit === null || values.length <= limit) return;
  try {
    onOverflow?.(values);
  } finally {
    const excess = values.length - limit;
    if (excess > 0) {
      if (order === "oldest first") values.splice(0, excess);
      else values.length = limit;
    }
  }
}

/** @throws {Error} unless the value is a valid limit of a queue. */
export function requireQueueLimit(value: number | null): void {
  if (value === null || (Number.isInteger(value) && value >= 0)) return;
  throw new Error("queueLimit must be null or a non-negative integer");
}
