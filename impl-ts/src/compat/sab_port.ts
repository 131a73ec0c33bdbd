/**
 * Messages both ways, with the interface of the original's `SABMessagePort`.
 *
 * @module
 */

import { type SABOptions, SABPipe, toSharedMemory } from "./sab_pipe.ts";
import type { MessageHandler, OverflowHandler, Taken } from "./sab_queue.ts";

/**
 * An object that `postInit` can post to: a worker, a native port, a window of the same kind.
 *
 * @example
 * ```ts
 * import { type InitTarget, SABMessagePort } from "@millrace/millrace/sab-message-port";
 *
 * const port = new SABMessagePort();
 * const target: InitTarget = {
 *   postMessage: ({ type, n }) => console.log(type, n), // SABMessagePort 1
 * };
 * port.postInit(target, { n: 1 }); // usually a worker
 * port.close();
 * ```
 */
export interface InitTarget {
  /** Sends a message, with a list of objects to transfer. */
  // deno-lint-ignore no-explicit-any
  postMessage(message: any, transfer?: any): void;
}

/**
 * The message from which the other side creates its port.
 *
 * @example
 * ```ts
 * import { SABMessagePort, type SABMessagePortInit } from "@millrace/millrace/sab-message-port";
 *
 * const port = new SABMessagePort();
 * const [init] = port.postInit(null, { name: "log" });
 * const received: SABMessagePortInit = structuredClone(init); // in the worker: event.data
 * const other = SABMessagePort.from(received);
 * console.log(received.name, other.buffer.byteLength); // log 262144
 * port.close();
 * ```
 */
export interface SABMessagePortInit extends Pick<SABOptions, "wire"> {
  /** The name of the class. */
  readonly type: "SABMessagePort";
  /** The shared memory. */
  readonly buffer: SharedArrayBuffer;
  /** The extra properties that the caller of `postInit` adds. */
  readonly [extra: string]: unknown;
}

const DEFAULT_SIZE_KB = 256;

/**
 * One end of a pair that sends messages both ways, through two pipes that have one half of the
 * memory each. All methods belong to the thread that created the port, and throw what those of
 * `SABPipe` throw.
 *
 * A blocking read first writes what was posted, as far as there is room. So a thread that never
 * returns to its event loop can post too.
 *
 * @typeParam In What it reads. @typeParam Out What it posts.
 *
 * @example
 * ```ts
 * import { SABMessagePort } from "@millrace/millrace/sab-message-port";
 *
 * const port = new SABMessagePort();
 * // Usually `port.postInit(worker)`, and in the worker `SABMessagePort.from(event.data)`:
 * const [init] = port.postInit();
 * const other = SABMessagePort.from(init);
 *
 * other.onmessage = ({ data }) => other.postMessage({ reply: data.cmd });
 * port.postMessage({ cmd: "ping" });
 * console.log(await port.asyncRead()); // { reply: "ping" }
 * port.close();
 * ```
 */
// deno-lint-ignore no-explicit-any
export class SABMessagePort<In = any, Out = any> {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "SABMessagePort";

  /** The pipe that carries messages to the other side. */
  readonly _writer: SABPipe<Out>;
  /** The pipe that carries messages from the other side. */
  readonly _reader: SABPipe<In>;
  /** Another name of `buffer`. */
  readonly _sab: SharedArrayBuffer;
  readonly #options: SABOptions;

  /**
   * Creates a port on new memory of `sizeKB` times 1,024 bytes, or on existing memory. Each
   * direction gets one half of it.
   *
   * @throws {Error} if `side` is neither `"a"` nor `"b"`, or `queueLimit` is not a valid limit; and
   * whatever `SABPipe` throws.
   */
  constructor(
    side: "a" | "b" = "a",
    sizeKB: SharedArrayBuffer | number = DEFAULT_SIZE_KB,
    queueLimit: number | null = null,
    options: SABOptions = {},
  ) {
    if (side !== "a" && side !== "b") {
      throw new Error(`Cannot make SABMessagePort: side must be "a" or "b": ${side}`);
    }
    const sab = toSharedMemory(typeof sizeKB === "number" ? sizeKB * 1024 : sizeKB);
    const half = sab.byteLength / 2;
    const [there, back] = side === "a" ? [0, half] : [half, 0];
    this._sab = sab;
    this.#options = options;
    this._writer = new SABPipe<Out>("w", sab, there, half, queueLimit, options);
    this._reader = new SABPipe<In>("r", sab, back, half, queueLimit, options);
    this._reader._join(this._writer);
  }

  /**
   * Creates side `b` from the message that `postInit` of side `a` has sent.
   *
   * @throws {Error} if the message is not a `SABMessagePort` init message.
   */
  // deno-lint-ignore no-explicit-any
  static from<In = any, Out = any>(
    initMsg: unknown,
    queueLimit: number | null = null,
    options: SABOptions = {},
  ): SABMessagePort<In, Out> {
    const init = requireInit<SABMessagePortInit>(initMsg, "SABMessagePort");
    const wire = options.wire ?? init.wire;
    return new this<In, Out>("b", init.buffer, queueLimit, { ...options, wire });
  }

  /** Returns the message for the other side and its transfer list; the caller sends them. */
  postInit(
    target?: null,
    extraProps?: Record<string, unknown>,
  ): [SABMessagePortInit, SharedArrayBuffer[]];
  /** Sends a message with the shared memory and the `extraProps` to the other side. */
  postInit(target: InitTarget, extraProps?: Record<string, unknown>): void;
  postInit(
    target: InitTarget | null = null,
    extraProps: Record<string, unknown> = {},
  ): [SABMessagePortInit, SharedArrayBuffer[]] | void {
    const init = makeInit("SABMessagePort", { buffer: this._sab }, this.#options, extraProps);
    const transfer = [this._sab];
    if (target === null) return [init as SABMessagePortInit, transfer];
    try {
      target.postMessage(init, transfer);
    } catch {
      // Shared memory is not transferable, and only some runtimes ignore it in the list.
      target.postMessage(init);
    }
  }

  /** See `SABPipe.postMessage`. */
  postMessage(message: Out): Promise<void> {
    return this._writer.postMessage(message);
  }

  /** See `SABPipe.onmessage`. */
  get onmessage(): MessageHandler<In> | null {
    return this._reader.onmessage;
  }

  set onmessage(handler: MessageHandler<In> | null) {
    this._reader.onmessage = handler;
  }

  /** See `SABPipe.asyncRead`. */
  asyncRead<N extends number = 1>(timeout?: number, maxMessages?: N): Promise<Taken<In, N>> {
    return this._reader.asyncRead(timeout, maxMessages);
  }

  /** See `SABPipe.read`. */
  read<N extends number = 1>(
    timeout?: number,
    blocking?: boolean,
    maxMessages?: N,
  ): Taken<In, N> {
    return this._reader.read(timeout, blocking, maxMessages);
  }

  /** See `SABPipe.tryRead`. */
  tryRead<N extends number = 1>(maxMessages?: N): Taken<In, N> {
    return this._reader.tryRead(maxMessages);
  }

  /** See `SABPipe.tryPeek`. */
  tryPeek(): In | null {
    return this._reader.tryPeek();
  }

  /** The limit of each of the two queues. See `SABPipe.queueLimit`. */
  get queueLimit(): number | null {
    return this._writer.queueLimit;
  }

  set queueLimit(value: number | null) {
    this._writer.queueLimit = value;
    this._reader.queueLimit = value;
  }

  /** The overflow handler of both queues. See `SABPipe.onQueueOverflow`. */
  get onQueueOverflow(): OverflowHandler<In | Out> | null {
    return this._writer.onQueueOverflow as OverflowHandler<In | Out> | null;
  }

  set onQueueOverflow(handler: OverflowHandler<In | Out> | null) {
    this._writer.onQueueOverflow = handler as OverflowHandler<Out> | null;
    this._reader.onQueueOverflow = handler as OverflowHandler<In> | null;
  }

  /** Ends both directions, for both sides. See `SABPipe.destroy`. */
  close(): void {
    this._writer.destroy();
    this._reader.destroy();
  }

  /** The shared memory. */
  get buffer(): SharedArrayBuffer {
    return this._sab;
  }
}

/** Makes the message for the other side. It names the wire only if that is not the default. */
export function makeInit(
  type: string,
  content: Record<string, unknown>,
  { wire }: SABOptions,
  extraProps: Record<string, unknown>,
): Record<string, unknown> {
  return { type, ...content, ...(wire === "mailbox" ? { wire } : {}), ...extraProps };
}

/** Checks a message that should come from `postInit`. @throws {Error} if it does not. */
export function requireInit<T extends { readonly type: string; readonly buffer: unknown }>(
  message: unknown,
  type: T["type"],
): T {
  const init = message as T | null | undefined;
  if (init?.type !== type) throw new Error(`Not a ${type} init message`);
  if (typeof init.buffer !== "object") throw new Error(`Not a ${type} init message: no buffer`);
  return init;
}
