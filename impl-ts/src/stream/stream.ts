/**
 * A port over two byte streams: a socket, a pair of pipes, a WebSocket. See `spec/stream.md`.
 *
 * @example
 * ```ts
 * import { openStream } from "@millrace/millrace/stream";
 *
 * const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
 * const { port } = listener.addr as Deno.NetAddr;
 * const [there, here] = await Promise.all([listener.accept(), Deno.connect({ port })]);
 * const [a, b] = await Promise.all([openStream<string>(here), openStream<string>(there)]);
 * b.onmessage = ({ data }) => b.postMessage(`${data} back`);
 * a.postMessage("there and");
 * console.log(await a.readAsync()); // "there and back"
 * a.close();
 * b.close();
 * listener.close();
 * ```
 *
 * @module
 */

import { clearTimeout, setTimeout } from "../memory/clock.ts";
import { failure } from "../error.ts";
import { layout } from "../memory/layout.ts";
import type { Port } from "../port/port.ts";
import { requireTimeout } from "../memory/segment.ts";
import { StreamLink, type StreamOptions } from "./link.ts";
import type { StreamPort } from "../port/over_stream.ts";
import { type ByteTransport, type Transport, transportOf } from "./transport.ts";
import { TIMER_MAX_MS } from "../wait/loop.ts";

export type { StreamOptions } from "./link.ts";
export type { StreamPort } from "../port/over_stream.ts";
export type { ByteConnection, ByteFiles, ByteStreams } from "./transport.ts";
export type { ByteTransport } from "./transport.ts";

/**
 * Options of one side of a stream, and how long it waits for the other side.
 *
 * @example
 * ```ts
 * import { openStream, type OpenStreamOptions } from "@millrace/millrace/stream";
 *
 * const options: OpenStreamOptions = { timeout: 20 };
 * const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
 * const nobody = { readable: new ReadableStream<Uint8Array>(), writable };
 * const error = await openStream(nobody, options).catch((error) => error);
 * console.log(error.code); // "wait.timeout"
 * await readable.cancel();
 * ```
 */
export interface OpenStreamOptions<In = unknown, Out = In> extends StreamOptions<In, Out> {
  /** Milliseconds to wait for the other side. Default: no limit. */
  readonly timeout?: number | undefined;
  /** A signal that ends the wait. The promise is then rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Opens one side of a stream, and waits until the preface of the other side has arrived. Both sides
 * call this, in any order.
 *
 * The port works like any other, except that its type has no calls that block a thread or lend
 * memory. After it is closed, what was written is still sent, for at most two seconds.
 *
 * @example
 * ```ts
 * import { openStream } from "@millrace/millrace/stream";
 *
 * const [there, back] = [1, 2].map(() => new TransformStream<Uint8Array, Uint8Array>());
 * const [a, b] = await Promise.all([
 *   openStream<number>({ readable: back!.readable, writable: there!.writable }),
 *   openStream<number>({ readable: there!.readable, writable: back!.writable }),
 * ]);
 * for (const n of [1, 2]) a.postMessage(n);
 * a.end();
 * for await (const n of b) console.log(n); // 1, then 2
 * a.close();
 * b.close();
 * ```
 *
 * @throws {PeerFailedError} if the bytes that arrive are not such a stream, or end: `reason` says
 * which.
 * @throws {TimeoutError} if no preface arrives in time; the transport is then closed.
 */
export async function openStream<In = unknown, Out = In>(
  transport: ByteTransport,
  options: OpenStreamOptions<In, Out> = {},
): Promise<StreamPort<In, Out>> {
  const ms = requireTimeout(options, Infinity);
  const { timeout: _, signal, ...rest } = options;
  signal?.throwIfAborted();
  const pump = new StreamPump<In, Out>(transportOf(transport), rest);
  return await pump.open(ms, signal);
}

/** Moves the bytes between a link and its transport. */
class StreamPump<In, Out> {
  readonly #transport: Transport;
  readonly #link: StreamLink<In, Out>;
  /** Called after each change of the link. */
  #opened: () => void = () => {};
  #isWriting = false;
  /** Whether this side writes no more, and whether it has given the transport up. */
  #isOver = false;
  #isGivenUp = false;
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(transport: Transport, options: StreamOptions<In, Out>) {
    this.#transport = transport;
    this.#link = new StreamLink<In, Out>(options, () => this.#wake());
  }

  async open(ms: number, signal: AbortSignal | undefined): Promise<Port<In, Out>> {
    const link = this.#link;
    void this.#read();
    this.#wake();
    const known = new Promise<void>((resolve) => this.#opened = resolve);
    const stop = () => this.#opened();
    const timer = ms <= TIMER_MAX_MS ? setTimeout(stop, ms) : undefined;
    signal?.addEventListener("abort", stop);
    await known;
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    if (link.port) return link.port;
    const { failure: lost } = link;
    link.close();
    signal?.throwIfAborted();
    throw lost ?? failure("wait.timeout", `open stream: no preface within ${ms} ms`);
  }

  /** Passes all bytes that arrive to the link, for as long as any may arrive. [stream.takes_in] */
  async #read(): Promise<void> {
    const [transport, link] = [this.#transport, this.#link];
    try {
      for (let bytes; (bytes = await transport.read()) !== undefined;) link.receive(bytes);
    } catch {
      // A broken transport counts as ended: the link has received all that was whole.
    }
    link.receiveEnd();
    this.#wake();
  }

  /** Acts on a change of the link. If a write is under way, its loop transmits the rest as well. */
  #wake(): void {
    const link = this.#link;
    if (link.port || link.failure) this.#opened();
    if (!this.#isWriting && !this.#isOver) void this.#write();
    this.#settle();
  }

  async #write(): Promise<void> {
    const [transport, link] = [this.#transport, this.#link];
    this.#isWriting = true;
    try {
      await undefined; // all that is written in one job goes out together
      for (let bytes; (bytes = link.transmit());) await transport.write(bytes);
      if (link.hasEnded && !this.#isOver) {
        this.#isOver = true;
        await transport.end();
      }
    } catch {
      // [stream.broken] The bytes that arrive tell the reason, if they arrive soon.
      this.#isOver = true;
      this.#linger ??= setTimeout(() => this.#giveUp(), layout.STREAM_LINGER_MS);
    }
    this.#isWriting = false;
    this.#settle();
  }

  /** Bounds the time for what is left to do, and gives up when nothing is left. [stream.linger] */
  #settle(): void {
    if (this.#isGivenUp) return;
    if (this.#link.isEnding) {
      this.#linger ??= setTimeout(() => this.#giveUp(), layout.STREAM_LINGER_MS);
    }
    if (this.#link.isDone && !this.#isWriting) this.#giveUp();
  }

  #giveUp(): void {
    clearTimeout(this.#linger);
    this.#isOver = this.#isGivenUp = true;
    this.#transport.close();
  }
}
