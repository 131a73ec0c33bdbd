/**
 * A channel of two parts, with the interface of the original's `MWChannel`: a native port carries
 * messages from the worker to the main side, and the native port or a pipe carries those to the
 * worker.
 *
 * @module
 */

import { type SABOptions, SABPipe, toSharedMemory } from "./sab_pipe.ts";
import { type InitTarget, makeInit, requireInit } from "./sab_port.ts";
import {
  enforceLimit,
  type MessageHandler,
  type OverflowHandler,
  requireQueueLimit,
  type Taken,
} from "./sab_queue.ts";

/**
 * The way from the main side to the worker: `blocking` is the pipe, `nonblocking` the native port.
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
 * The message from which the worker creates its side of the channel.
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
  /** The name of the class. */
  readonly type: "MWChannel";
  /** The shared memory. */
  readonly buffer: SharedArrayBuffer;
  /** The worker's native port. */
  readonly port: MessagePort;
  /** The extra properties that the caller of `postInit` adds. */
  readonly [extra: string]: unknown;
}

const DEFAULT_SIZE_KB = 128;
/** A number of messages that no queue reaches. */
const ALL = 0x7fffffff;

/**
 * A channel between a main thread, which never blocks, and a worker, which may block. The worker
 * posts through a native `MessagePort`. The main side posts through the pipe while its mode is
 * `blocking`, which is the initial mode, and otherwise through the native port; the worker receives
 * from the one or the other by its own mode. Each side switches its mode for itself: let the two
 * agree on the moment by a message.
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
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "MWChannel";

  /** The shared memory of the pipe. */
  readonly buffer: SharedArrayBuffer;
  /** The native port of this side. */
  readonly _nativePort: MessagePort;
  /** The main side's end of the pipe. */
  readonly _sabWriter: SABPipe<Out> | undefined;
  /** The worker's end of the pipe. */
  readonly _sabReader: SABPipe<In> | undefined;
  readonly #options: SABOptions;
  /** The worker's native port, until `postInit` sends it. */
  readonly #otherPort: MessagePort | undefined;
  #mode: MWMode = "blocking";
  #onmessage: MessageHandler<In> | null = null;
  #onQueueOverflow: OverflowHandler<In | Out> | null = null;
  /**
   * Messages that the worker took out of the pipe when it left blocking mode, and has not handled.
   */
  readonly #drained: In[] = [];
  #closed = false;

  /**
   * Creates the main side, with `sabSizeKB` times 1,024 bytes of memory for the pipe. The worker
   * creates its side with `from`, which passes the received message as `init`.
   *
   * @throws {Error} if `side` is neither `"m"` nor `"w"`, if it is `"w"` and `init` is missing, or
   * if `queueLimit` is not a valid limit; and whatever `SABPipe` throws.
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
      if (!init) throw new Error("Cannot make the worker's side: use MWChannel.from");
      this.buffer = init.buffer;
      this._nativePort = init.port;
      this._sabReader = new SABPipe<In>("r", this.buffer, 0, null, queueLimit, options);
    }
  }

  /**
   * Creates the worker's side from the message that `postInit` of the main side has sent.
   *
   * @throws {Error} if the message is not an `MWChannel` init message.
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

  /** Returns the message for the worker and its transfer list; the caller sends them. */
  postInit(
    target?: null,
    extraProps?: Record<string, unknown>,
  ): [MWChannelInit, MessagePort[]];
  /** Sends a message with the memory, a native port and the `extraProps` to the worker. */
  postInit(target: InitTarget, extraProps?: Record<string, unknown>): void;
  postInit(
    target: InitTarget | null = null,
    extraProps: Record<string, unknown> = {},
  ): [MWChannelInit, MessagePort[]] | void {
    const port = this.#otherPort;
    if (!port) throw new Error("Cannot postInit: only the main side can");
    const content = { buffer: this.buffer, port };
    const init = makeInit("MWChannel", content, this.#options, extraProps);
    if (target === null) return [init as MWChannelInit, [port]];
    target.postMessage(init, [port]);
  }

  /**
   * Sends a message. On the main side in blocking mode it returns the promise of
   * `SABPipe.postMessage`; otherwise it returns `undefined`.
   *
   * @throws {Error} if this side is closed, or the pipe that the message would take.
   */
  postMessage(message: Out): Promise<void> | undefined {
    if (this._sabWriter && this.#mode === "blocking") {
      return this._sabWriter.postMessage(message);
    }
    if (this.#closed) throw new Error("Cannot post: the MWChannel is closed");
    this._nativePort.postMessage(message);
    return undefined;
  }

  /**
   * The handler of messages from the native port. The worker can set one in nonblocking mode only;
   * the handler first gets the messages that were in the pipe when the mode was switched.
   */
  get onmessage(): MessageHandler<In> | null {
    return this.#onmessage;
  }

  set onmessage(handler: MessageHandler<In> | null) {
    if (this._sabReader && this.#mode === "blocking") {
      throw new Error("Cannot set onmessage in blocking mode: use read or tryRead");
    }
    this.#onmessage = handler ?? null;
    const values = this.#drained;
    while (values.length > 0 && this.#onmessage !== null && this.#onmessage === handler) {
      try {
        handler({ data: values.shift()! });
      } catch {
        // As in the original, the remaining messages are still delivered.
      }
    }
    // Read again, because a handler may have set another handler meanwhile.
    this._nativePort.onmessage = this.#onmessage;
  }

  /** Reads as `SABPipe.read` does. @throws {Error} on the main side, and in nonblocking mode. */
  read<N extends number = 1>(
    timeout?: number,
    blocking?: boolean,
    maxMessages?: N,
  ): Taken<In, N> {
    return this.#requireReader("read").read(timeout, blocking, maxMessages);
  }

  /** Reads as `SABPipe.tryRead` does. @throws {Error} on the main side, and in nonblocking mode. */
  tryRead<N extends number = 1>(maxMessages?: N): Taken<In, N> {
    return this.#requireReader("tryRead").tryRead(maxMessages);
  }

  /** Looks as `SABPipe.tryPeek` does. @throws {Error} on the main side, and in nonblocking mode. */
  tryPeek(): In | null {
    return this.#requireReader("tryPeek").tryPeek();
  }

  /**
   * Reads as `SABPipe.asyncRead` does. @throws {Error} on the main side, and in nonblocking mode.
   */
  asyncRead<N extends number = 1>(timeout?: number, maxMessages?: N): Promise<Taken<In, N>> {
    return this.#requireReader("asyncRead").asyncRead(timeout, maxMessages);
  }

  /**
   * Switches the way by which this side posts (main side) or receives (worker). When the worker
   * leaves blocking mode, messages still in the pipe are kept for its `onmessage`, or for its reads
   * after it has switched back.
   *
   * @throws {Error} if there is no such mode.
   */
  setMode(mode: MWMode): void {
    if (mode !== "blocking" && mode !== "nonblocking") {
      throw new Error(`mode must be "blocking" or "nonblocking": ${mode}`);
    }
    if (this.#mode === mode) return;
    const reader = this._sabReader;
    if (reader) {
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

  /**
   * See `SABPipe.queueLimit`; it also limits the messages that wait for the worker's `onmessage`.
   */
  get queueLimit(): number | null {
    return this.#pipe.queueLimit;
  }

  set queueLimit(value: number | null) {
    requireQueueLimit(value);
    this.#pipe.queueLimit = value;
    this.#enforceDrained();
  }

  /** See `SABPipe.onQueueOverflow`; also called for the messages that wait for `onmessage`. */
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

  /** Another name of `buffer`. */
  get _sab(): SharedArrayBuffer {
    return this.buffer;
  }

  /** Messages that the worker took out of the pipe when it left blocking mode, oldest first. */
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
    if (!reader) throw new Error(`Cannot ${verb}: only the worker's side can`);
    if (this.#mode === "blocking") return reader;
    throw new Error(`Cannot ${verb} in nonblocking mode: use onmessage`);
  }
}
