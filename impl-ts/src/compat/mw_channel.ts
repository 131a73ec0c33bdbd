/**
 * A native port one way, and the other way either that or a pipe, with the interface of the
 * original's `MWChannel`.
 *
 * @module
 */

import type { MessageHandler } from "./sab_inbox.ts";
import { type SABOptions, SABPipe, toSharedMemory } from "./sab_pipe.ts";
import { type InitTarget, makeInit, requireInit } from "./sab_port.ts";
import { enforceLimit, type OverflowHandler, requireQueueLimit, type Taken } from "./sab_queue.ts";

/**
 * How messages go from the main side to the worker: through the pipe, or the native port.
 *
 * @example
 * ```ts
 * import { MWChannel, type MWMode } from "@millrace/millrace/sab-message-port";
 *
 * const main = new MWChannel("m");
 * const modes: MWMode[] = ["nonblocking", "blocking"];
 * for (const mode of modes) main.setMode(mode);
 * main.close();
 * ```
 */
export type MWMode = "blocking" | "nonblocking";

/**
 * The message from which the worker makes its side.
 *
 * @example
 * ```ts
 * import { MWChannel, type MWChannelInit } from "@millrace/millrace/sab-message-port";
 *
 * const main = new MWChannel("m");
 * const [init] = main.postInit(null, { name: "log" });
 * const { type, name }: MWChannelInit = init; // in the worker: event.data
 * console.log(type, name); // MWChannel log
 * MWChannel.from(init).close();
 * main.close();
 * ```
 */
export interface MWChannelInit extends Pick<SABOptions, "wire"> {
  /** What it is. */
  readonly type: "MWChannel";
  /** The shared memory. */
  readonly buffer: SharedArrayBuffer;
  /** The worker's native port. */
  readonly port: MessagePort;
  /** What the caller of `postInit` adds. */
  readonly [extra: string]: unknown;
}

const DEFAULT_SIZE_KB = 128;
/** More messages than a queue can hold. */
const ALL = 0x7fffffff;

/**
 * A channel between a main thread, which never blocks, and a worker, which may. The worker posts
 * through a native `MessagePort`. What the main side posts takes the pipe while its mode is
 * `blocking`, as it is at first, and the native port otherwise; the worker reads the one or the
 * other by its own mode. Each side switches its own: agree on the moment by a message.
 *
 * @typeParam In What this side receives. @typeParam Out What it posts.
 *
 * @example
 * ```ts
 * import { MWChannel } from "@millrace/millrace/sab-message-port";
 *
 * const main = new MWChannel("m");
 * // Usually `main.postInit(worker)`, and in the worker `MWChannel.from(event.data)`:
 * const [init] = main.postInit();
 * const worker = MWChannel.from(init);
 *
 * await main.postMessage({ cmd: "run" });
 * console.log(worker.read()); // { cmd: "run" }
 * main.close();
 * worker.close();
 * ```
 */
// deno-lint-ignore no-explicit-any
export class MWChannel<In = any, Out = any> {
  /** The shared memory of the pipe. */
  readonly buffer: SharedArrayBuffer;
  /** The native port of this side. */
  readonly _nativePort: MessagePort;
  /** The main side's end of the pipe. */
  readonly _sabWriter: SABPipe<Out> | undefined;
  /** The worker's end of the pipe. */
  readonly _sabReader: SABPipe<In> | undefined;
  readonly #options: SABOptions;
  /** The worker's port, until it is sent. */
  readonly #otherPort: MessagePort | undefined;
  #mode: MWMode = "blocking";
  #onmessage: MessageHandler<In> | null = null;
  #onQueueOverflow: OverflowHandler<In | Out> | null = null;
  /** What the worker took out of the pipe when it left the mode, and nobody has handled. */
  readonly #drained: In[] = [];
  #closed = false;

  /**
   * Makes the main side, with `sabSizeKB` times 1,024 bytes for the pipe. The worker makes its own
   * by `from`, which passes the message that it has got as `init`.
   *
   * @throws {Error} if `side` is neither `"m"` nor `"w"`, is `"w"` without a message, or
   * `queueLimit` is no limit; and whatever `SABPipe` throws.
   */
  constructor(
    side: "m" | "w",
    sabSizeKB: number = DEFAULT_SIZE_KB,
    queueLimit: number | null = null,
    options: SABOptions = {},
    init?: MWChannelInit,
  ) {
    if (side !== "m" && side !== "w") {
      throw new Error(`Cannot make MWChannel: side must be "m" or "w": ${side}`);
    }
    this.#options = options;
    if (side === "m") {
      this.buffer = toSharedMemory(sabSizeKB * 1024);
      this._sabWriter = new SABPipe<Out>("w", this.buffer, 0, null, queueLimit, options);
      const { port1, port2 } = new MessageChannel();
      this._nativePort = port1;
      this.#otherPort = port2;
    } else {
      if (init === undefined) throw new Error("Cannot make the worker's side: use MWChannel.from");
      this.buffer = init.buffer;
      this._nativePort = init.port;
      this._sabReader = new SABPipe<In>("r", this.buffer, 0, null, queueLimit, options);
    }
  }

  /**
   * Makes the worker's side from the message that `postInit` of the main side has sent.
   *
   * @throws {Error} if it is no such message.
   */
  // deno-lint-ignore no-explicit-any
  static from<In = any, Out = any>(
    initMsg: unknown,
    queueLimit: number | null = null,
    options: SABOptions = {},
  ): MWChannel<In, Out> {
    const init = requireInit<MWChannelInit>(initMsg, "MWChannel");
    if (typeof init.port !== "object") throw new Error("Not a MWChannel init message: no port");
    const wire = options.wire ?? init.wire;
    return new this<In, Out>("w", undefined, queueLimit, { ...options, wire }, init);
  }

  /** Returns the message for the worker and its transfer list, to be sent by hand. */
  postInit(
    target?: null,
    extraProps?: Record<string, unknown>,
  ): [MWChannelInit, MessagePort[]];
  /** Sends the memory and a native port to the worker, in a message with `extraProps` beside. */
  postInit(target: InitTarget, extraProps?: Record<string, unknown>): void;
  postInit(
    target: InitTarget | null = null,
    extraProps: Record<string, unknown> = {},
  ): [MWChannelInit, MessagePort[]] | void {
    const port = this.#otherPort;
    if (port === undefined) throw new Error("Cannot postInit: only the main side can");
    const content = { buffer: this.buffer, port };
    const init = makeInit("MWChannel", content, this.#options, extraProps);
    if (target === null) return [init as MWChannelInit, [port]];
    target.postMessage(init, [port]);
  }

  /**
   * Sends a message. On the main side in blocking mode, it returns the promise of
   * `SABPipe.postMessage`; otherwise `undefined`.
   *
   * @throws {Error} if this side, or the pipe it would take, is closed.
   */
  postMessage(message: Out): Promise<void> | undefined {
    if (this._sabWriter !== undefined && this.#mode === "blocking") {
      return this._sabWriter.postMessage(message);
    }
    if (this.#closed) throw new Error("Cannot post: the MWChannel is closed");
    this._nativePort.postMessage(message);
    return undefined;
  }

  /**
   * The handler of what comes through the native port. The worker has one in nonblocking mode
   * only; setting it delivers first what was in the pipe when the mode was switched.
   */
  get onmessage(): MessageHandler<In> | null {
    return this.#onmessage;
  }

  set onmessage(handler: MessageHandler<In> | null) {
    if (this._sabReader !== undefined && this.#mode === "blocking") {
      throw new Error("Cannot set onmessage in blocking mode: use read or tryRead");
    }
    this.#onmessage = handler ?? null;
    const values = this.#drained;
    while (values.length > 0 && this.#onmessage !== null && this.#onmessage === handler) {
      try {
        handler({ data: values.shift()! });
      } catch {
        // As in the original: the others are still to be delivered.
      }
    }
    // What it is by now: a handler may have set another.
    this._nativePort.onmessage = this.#onmessage;
  }

  /** See `SABPipe.read`. @throws {Error} on the main side, and in nonblocking mode. */
  read<N extends number = 1>(
    timeout?: number,
    blocking?: boolean,
    maxMessages?: N,
  ): Taken<In, N> {
    return this.#requireReader("read").read(timeout, blocking, maxMessages);
  }

  /** See `SABPipe.tryRead`. @throws {Error} on the main side, and in nonblocking mode. */
  tryRead<N extends number = 1>(maxMessages?: N): Taken<In, N> {
    return this.#requireReader("tryRead").tryRead(maxMessages);
  }

  /** See `SABPipe.tryPeek`. @throws {Error} on the main side, and in nonblocking mode. */
  tryPeek(): In | null {
    return this.#requireReader("tryPeek").tryPeek();
  }

  /** See `SABPipe.asyncRead`. @throws {Error} on the main side, and in nonblocking mode. */
  asyncRead<N extends number = 1>(timeout?: number, maxMessages?: N): Promise<Taken<In, N>> {
    return this.#requireReader("asyncRead").asyncRead(timeout, maxMessages);
  }

  /**
   * Switches how this side sends, or how the worker receives. What is in the pipe when the worker
   * leaves the blocking mode waits for its `onmessage`, or for its reads when it comes back.
   *
   * @throws {Error} if there is no such mode.
   */
  setMode(mode: MWMode): void {
    if (mode !== "blocking" && mode !== "nonblocking") {
      throw new Error(`mode must be "blocking" or "nonblocking": ${mode}`);
    }
    if (this.#mode === mode) return;
    const reader = this._sabReader;
    if (reader !== undefined) {
      if (mode === "blocking") {
        this._nativePort.onmessage = null;
        this.#onmessage = null;
        reader._unread(this.#drained.splice(0));
      } else {
        for (let some; (some = reader.tryRead(ALL)).length > 0;) {
          for (const message of some.reverse()) this.#drained.push(message);
        }
        this.#enforceDrained();
      }
    }
    this.#mode = mode;
  }

  /** See `SABPipe.queueLimit`; it also holds for what waits for the worker's `onmessage`. */
  get queueLimit(): number | null {
    return this.#pipe.queueLimit;
  }

  set queueLimit(value: number | null) {
    requireQueueLimit(value);
    this.#pipe.queueLimit = value;
    this.#enforceDrained();
  }

  /** See `SABPipe.onQueueOverflow`; it is also called for what waits for `onmessage`. */
  get onQueueOverflow(): OverflowHandler<In | Out> | null {
    return this.#onQueueOverflow;
  }

  set onQueueOverflow(handler: OverflowHandler<In | Out> | null) {
    this.#onQueueOverflow = handler ?? null;
    this.#pipe.onQueueOverflow = this.#onQueueOverflow;
  }

  /** Destroys the pipe, for both sides, and closes the native port. */
  close(): void {
    this.#closed = true;
    this.#pipe.destroy();
    this._nativePort.close();
  }

  /** The same as `buffer`. */
  get _sab(): SharedArrayBuffer {
    return this.buffer;
  }

  /** What the worker took out of the pipe when it left the blocking mode, oldest first. */
  get _pendingDrain(): In[] {
    return this.#drained;
  }

  get #pipe(): SABPipe {
    return (this._sabWriter ?? this._sabReader)!;
  }

  #enforceDrained(): void {
    const { queueLimit: limit } = this.#pipe;
    enforceLimit(this.#drained, "oldest first", { limit, onOverflow: this.#onQueueOverflow });
  }

  #requireReader(verb: string): SABPipe<In> {
    const reader = this._sabReader;
    if (reader === undefined) throw new Error(`Cannot ${verb}: only the worker's side can`);
    if (this.#mode === "blocking") return reader;
    throw new Error(`Cannot ${verb} in nonblocking mode: use onmessage`);
  }
}
