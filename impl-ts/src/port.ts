/**
 * Two pipes, both ways, between the same two threads. See `spec/port.md`.
 *
 * @module
 */

import { cannot, MillraceError } from "./error.ts";
import { Link, type Message, type WaitOptions } from "./pipe.ts";
import type { Lent, Place } from "./pipe_lend.ts";
import { Inbox } from "./pipe_inbox.ts";
import { waitForPeer, waitForPeerAsync } from "./pipe_peer.ts";
import { Reader } from "./pipe_reader.ts";
import { type ClaimOptions, type MessageInit, Writer } from "./pipe_writer.ts";
import { Delivery } from "./port_delivery.ts";
import { PortEventTarget } from "./port_events.ts";
import { isHandoff, makeHandoff, type PortHandoff } from "./port_handoff.ts";
import { endpointOf, findRings, portGeometry, requirePortOptions } from "./port_options.ts";
import type { PortAttachOptions, PortCreateOptions, PortOptions } from "./port_options.ts";
import { Outbox, type PostOptions } from "./port_outbox.ts";
import { readableOf, writableOf } from "./port_stream.ts";
import { type AttachOptions, type Memory, Segment } from "./segment.ts";
import type { Channel } from "./segment_geometry.ts";
import { Endpoint, type Stats } from "./wait_endpoint.ts";

export { portGeometry, portMemory, requirePortOptions } from "./port_options.ts";
export type { PortAttachOptions, PortCreateOptions, PortOptions, Side } from "./port_options.ts";

/** Cannot be cloned: Deno and Node then say `DataCloneError`, and this. */
const UNPOSTABLE = /* @__PURE__ */ Symbol(
  "Cannot post a port itself: post port.handoff() in its place",
);
const DEFAULT_INBOX_COUNT = 1024;
const DEFAULT_INBOX_SIZE = 16 * 1024 * 1024;

/**
 * One end of a pair that sends messages both ways: blocking, as promises, as events or as streams.
 * All methods belong to the thread that made it.
 *
 * Each message goes to one taker. A verb that is called takes what is there; asynchronous reads
 * that wait, among them loops and streams, come next, one message each; the rest become events,
 * while anybody listens to `message`. Nothing is delivered while a frame is lent by `peek`.
 *
 * @typeParam In What it reads. @typeParam Out What it writes.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * using here = Port.create<string, { n: number }>();
 * // Usually in a worker, to which `here.memory` was posted:
 * using there = Port.attach<{ n: number }, string>(here.memory);
 *
 * here.write({ n: 1 });
 * console.log(there.read()); // { n: 1 }
 * there.write("got it");
 * console.log(here.read()); // "got it"
 * ```
 */
export class Port<In = unknown, Out = In> extends PortEventTarget<In> {
  /**
   * Has `postMessage` refuse a port, as a browser does by itself. Deno and Node would send a plain
   * object with a segment, of which nobody can make anything.
   *
   * @internal
   */
  readonly unpostable: symbol = UNPOSTABLE;
  /** The segment in which both pipes lie. */
  readonly segment: Segment;
  readonly #link: Link;
  readonly #writer: Writer<Out>;
  readonly #reader: Reader<In>;
  readonly #options: PortOptions;
  // Made when they are first needed.
  #delivery: Delivery<In> | undefined;
  #outbox: Outbox | undefined;
  #readable: ReadableStream<In> | undefined;
  #writable: WritableStream<Out> | undefined;

  /**
   * Joins two rings to an attached endpoint; for hubs. Use `Port.create` or `Port.attach`.
   *
   * @internal
   */
  constructor(link: Link, outgoing: Channel, incoming: Channel, options: PortOptions) {
    const { inboxCount = DEFAULT_INBOX_COUNT, inboxSize = DEFAULT_INBOX_SIZE } = options;
    super(() => this.delivery);
    const reader = new Reader<In>(link, incoming, options);
    this.#options = { ...options }; // the caller may change its own later
    this.segment = link.endpoint.segment;
    this.#link = link;
    this.#reader = reader;
    this.#writer = new Writer<Out>(link, outgoing, options);
    this.#writer.outlet.idle = new Inbox(reader.inlet, inboxCount, inboxSize);
    link.port = this;
  }

  /**
   * Delivers events, and makes streams, of what comes from the next owner; see `vacatePeer`.
   *
   * @internal
   */
  renew(): void {
    this.#readable = this.#writable = undefined;
    this.#reader.inlet.taker?.renew();
    this.#delivery?.renew();
  }

  /**
   * Makes a port, by default in fresh memory and as side `a`. Post `port.memory` to the thread of
   * the other side, and `attach` there.
   *
   * @throws {RangeError} if a capacity is no power of two from 256 to 2^30.
   * @throws {SegmentError} if the memory given cannot be used.
   */
  static create<In = unknown, Out = In>(
    options: PortCreateOptions<In, Out> = {},
  ): Port<In, Out> {
    const geometry = portGeometry(options);
    const { memory } = options;
    requirePortOptions(options); // before anything of the memory is touched
    const segment = memory === undefined
      ? Segment.allocate(geometry)
      : Segment.create(memory, geometry, options);
    return Port.#take<In, Out>(segment, options.side === "b" ? 1 : 0, options);
  }

  /**
   * Attaches to a port that another thread has made, by default as side `b`, or as a client of a
   * hub. Blocks until the memory is formatted.
   *
   * @throws {SegmentError} if it is not formatted in time, is no port, or the side is taken.
   */
  static attach<In = unknown, Out = In>(
    memory: Memory,
    options: PortAttachOptions<In, Out> & AttachOptions = {},
  ): Port<In, Out> {
    const segment = Segment.attach(memory, options);
    requirePortOptions(options);
    return Port.#take<In, Out>(segment, endpointOf(options), options);
  }

  /** `attach` without blocking. */
  static async attachAsync<In = unknown, Out = In>(
    memory: Memory,
    options: PortAttachOptions<In, Out> & WaitOptions = {},
  ): Promise<Port<In, Out>> {
    const segment = await Segment.attachAsync(memory, options);
    requirePortOptions(options);
    return Port.#take<In, Out>(segment, endpointOf(options), options);
  }

  /**
   * Attaches to a port that was handed over: to `handoff()` of the other end, as it was posted.
   * Which side calls first makes no difference: what was sent before is there.
   *
   * @throws {TypeError} if the value is no handoff.
   * @throws {SegmentError} if the end is taken already.
   *
   * @example
   * ```ts
   * import { Port } from "@millrace/millrace";
   *
   * using here = Port.create<string>();
   * const posted = here.handoff({ name: "log" }); // worker.postMessage(posted)
   * // In the worker, with `event.data`:
   * using there = Port.from<string>(posted);
   * there.write(posted.name);
   * console.log(here.read()); // "log"
   * ```
   */
  static from<In = unknown, Out = In>(
    handoff: unknown,
    options: PortOptions<In, Out> & AttachOptions & { readonly side?: undefined } = {},
  ): Port<In, Out> {
    if (!isHandoff(handoff)) cannot("make port: this is no handoff of one");
    return Port.attach<In, Out>(handoff.memory, { ...options, endpoint: handoff.endpoint });
  }

  /** Whether a value was made by `handoff`. `Extra` is what its caller has added. */
  static isHandoff<Extra extends object = object>(value: unknown): value is PortHandoff & Extra {
    return isHandoff(value);
  }

  static #take<In, Out>(
    segment: Segment,
    index: number,
    options: PortOptions<In, Out>,
  ): Port<In, Out> {
    Endpoint.requireVacant(segment, index);
    const [outgoing, incoming] = findRings(segment, index);
    const endpoint = Endpoint.attach(segment, index, options);
    const link = new Link(endpoint, outgoing.reader);
    return new Port<In, Out>(link, outgoing, incoming, options);
  }

  /** The memory of the port, to be posted to the other thread. */
  get memory(): Memory {
    return this.segment.memory;
  }

  /**
   * Makes a plain object to post to the thread of the other end, which calls `Port.from` on it.
   * It has properties of the caller's own beside it, to tell several ports apart.
   *
   * @throws {TypeError} if the memory is not shared, or a property has a name of the handoff's.
   */
  handoff<Extra extends object = object>(extra?: Extra): PortHandoff & Extra {
    return makeHandoff(this.segment, this.peerIndex, extra);
  }

  /** Whether everything was read and the peer has ended its stream. */
  get ended(): boolean {
    return this.#reader.ended;
  }

  /**
   * Settles when nothing more will come: with undefined if the peer has ended its stream or `close`
   * was called here, otherwise with the error; it never rejects. What the peer has published is
   * delivered first, so that somebody has to read it. Alone it does not keep the process alive.
   */
  get closed(): Promise<MillraceError | undefined> {
    return this.delivery.closed;
  }

  /** What this endpoint has counted. */
  get stats(): Stats {
    return this.#link.endpoint.stats;
  }

  /** Index of the endpoint at the other end. */
  get peerIndex(): number {
    return this.#link.peer;
  }

  /** The writing half, with everything that it offers. */
  get writer(): Writer<Out> {
    return this.#writer;
  }

  /** The reading half, with everything that it offers. */
  get reader(): Reader<In> {
    return this.#reader;
  }

  /**
   * What arrives, as a stream: one message is read for each that is pulled, and none ahead. It ends
   * with the peer's stream, and fails with what `readAsync` throws, a lost message included.
   *
   * Cancelling it closes the port, since nobody will read what comes; to read on, release its
   * reader, or loop over `values({ preventCancel: true })`.
   *
   * @example
   * ```ts
   * import { Port } from "@millrace/millrace";
   *
   * using here = Port.create<string>();
   * using there = Port.attach<string>(here.memory); // usually in another thread
   * there.writeMany(["a", "b"]);
   * there.end();
   * const upper = new TransformStream<string, string>({
   *   transform: (text, to) => to.enqueue(text.toUpperCase()),
   * });
   * for await (const text of here.readable.pipeThrough(upper)) console.log(text); // "A", then "B"
   * ```
   */
  get readable(): ReadableStream<In> {
    return this.#readable ??= readableOf(this.#reader, () => this.close());
  }

  /**
   * What is sent, as a stream: a write is done when the message is in the ring. Closing it ends the
   * outgoing stream, as `endAsync` does; aborting it closes the port.
   *
   * @example
   * ```ts
   * import { Port } from "@millrace/millrace";
   *
   * using here = Port.create<number>();
   * using there = Port.attach<number>(here.memory); // usually in another thread
   * await ReadableStream.from([1, 2]).pipeTo(here.writable);
   * for await (const n of there) console.log(n); // 1, then 2
   * ```
   */
  get writable(): WritableStream<Out> {
    return this.#writable ??= writableOf(this.#writer, () => this.close());
  }

  /**
   * Sends one message without waiting, in order with all other writes. The value is encoded now;
   * what is posted in one job goes out together at its end, when it fills a quarter of the ring, or
   * before a call that blocks, and the rest in the background as soon as there is room. Short JSON
   * goes in batches, but what a `signal` or `drop-oldest` may take back goes alone.
   *
   * The promise settles when the message is in the ring, or will not come there; messages of one
   * batch have one. Nobody has to listen to it: `overflow` says what becomes of a queue that grows.
   *
   * @throws {TypeError} at the call, if the codec cannot carry the value.
   *
   * @example
   * ```ts
   * import { Port } from "@millrace/millrace";
   *
   * using here = Port.create<string>();
   * using there = Port.attach<string>(here.memory); // usually in another thread
   * there.onmessage = ({ data }) => there.postMessage(`${data} back`);
   * here.postMessage("there and");
   * console.log(await here.readAsync()); // "there and back"
   * ```
   */
  postMessage(value: Out, options?: PostOptions): Promise<void> {
    return this.outbox.post(value, options);
  }

  /**
   * What is posted; for calls.
   *
   * @internal
   */
  get outbox(): Outbox {
    return this.#outbox ??= new Outbox(this.#writer.outlet, this.#options);
  }

  /**
   * What brings messages to listeners; for calls.
   *
   * @internal
   */
  get delivery(): Delivery<In> {
    return this.#delivery ??= new Delivery<In>(this.#reader, this.#options, this);
  }

  /** See `Writer.write`. While it waits for room, it takes what arrives into the inbox. */
  write(value: Out, options?: WaitOptions): void {
    this.#writer.write(value, options);
  }

  /** See `Writer.tryWrite`. */
  tryWrite(value: Out): boolean {
    return this.#writer.tryWrite(value);
  }

  /** See `Writer.writeAsync`. */
  writeAsync(value: Out, options?: WaitOptions): Promise<void> {
    return this.#writer.writeAsync(value, options);
  }

  /** See `Writer.writeMany`; `port.writer.written` says how many it has written. */
  writeMany(values: readonly Out[], options?: WaitOptions): void {
    this.#writer.writeMany(values, options);
  }

  /** See `Writer.writeMessage`. */
  writeMessage(message: MessageInit, options?: WaitOptions): void {
    this.#writer.writeMessage(message, options);
  }

  /** See `Writer.tryWriteMessage`. */
  tryWriteMessage(message: MessageInit): boolean {
    return this.#writer.tryWriteMessage(message);
  }

  /** See `Writer.claim`. */
  claim(size: number, options?: ClaimOptions): Place {
    return this.#writer.claim(size, options);
  }

  /** See `Writer.tryClaim`. */
  tryClaim(size: number, options?: ClaimOptions): Place | undefined {
    return this.#writer.tryClaim(size, options);
  }

  /** See `Writer.finish`. */
  finish(size?: number): void {
    this.#writer.finish(size);
  }

  /** See `Writer.publish`. */
  publish(size?: number): void {
    this.#writer.publish(size);
  }

  /** See `Writer.abandon`. */
  abandon(): void {
    this.#writer.abandon();
  }

  /** See `Reader.read`. */
  read(options?: WaitOptions): In | undefined {
    return this.#reader.read(options);
  }

  /** See `Reader.tryRead`. */
  tryRead(): In | undefined {
    return this.#reader.tryRead();
  }

  /** See `Reader.readAsync`. */
  readAsync(options?: WaitOptions): Promise<In | undefined> {
    return this.#reader.readAsync(options);
  }

  /** See `Reader.readMany`. */
  readMany(max: number, options?: WaitOptions): In[] | undefined {
    return this.#reader.readMany(max, options);
  }

  /** See `Reader.tryReadMany`. */
  tryReadMany(max: number): In[] | undefined {
    return this.#reader.tryReadMany(max);
  }

  /** See `Reader.readManyAsync`. */
  readManyAsync(max: number, options?: WaitOptions): Promise<In[] | undefined> {
    return this.#reader.readManyAsync(max, options);
  }

  /** Reads message after message until the stream ends, as `Reader` does. */
  [Symbol.asyncIterator](): AsyncGenerator<In, void, void> {
    return this.#reader[Symbol.asyncIterator]();
  }

  /** See `Reader.readMessage`. */
  readMessage(options?: WaitOptions): Message | undefined {
    return this.#reader.readMessage(options);
  }

  /** See `Reader.tryReadMessage`. */
  tryReadMessage(): Message | undefined {
    return this.#reader.tryReadMessage();
  }

  /** See `Reader.readMessageAsync`. */
  readMessageAsync(options?: WaitOptions): Promise<Message | undefined> {
    return this.#reader.readMessageAsync(options);
  }

  /** See `Reader.readInto`. */
  readInto(target: Uint8Array, options?: WaitOptions): number | undefined {
    return this.#reader.readInto(target, options);
  }

  /** See `Reader.tryReadInto`. */
  tryReadInto(target: Uint8Array): number | undefined {
    return this.#reader.tryReadInto(target);
  }

  /** See `Reader.peek`. */
  peek(options?: WaitOptions): Lent | undefined {
    return this.#reader.peek(options);
  }

  /** See `Reader.tryPeek`. */
  tryPeek(): Lent | undefined {
    return this.#reader.tryPeek();
  }

  /** See `Reader.release`. */
  release(): void {
    this.#reader.release();
  }

  /**
   * Blocks until the other side has attached, and returns whether it has: false at the timeout.
   * A worker that never comes is found by this alone. What became of a peer that has come, the next
   * call tells.
   *
   * @throws {ClosedError} if this end is closed or failed.
   */
  waitForPeer(options?: WaitOptions): boolean {
    return waitForPeer(this.#link, options);
  }

  /** `waitForPeer` without blocking. */
  waitForPeerAsync(options?: WaitOptions): Promise<boolean> {
    return waitForPeerAsync(this.#link, options);
  }

  /**
   * Lets a port that is listened to keep the process alive, as it does unless `unref` was called;
   * one that nobody listens to does not. Reads and writes that wait always do.
   */
  ref(): void {
    this.delivery.keep(true);
  }

  /** Lets the process end while the port is listened to. */
  unref(): void {
    this.delivery.keep(false);
  }

  /**
   * Ends the outgoing stream, behind what was posted; reading goes on. Does nothing towards a peer
   * that has closed. See `Writer.end`. [port.end]
   */
  end(): void {
    this.#writer.end();
  }

  /** Ends it, and waits until all of it is in the ring. See `Writer.endAsync`. */
  endAsync(options?: WaitOptions): Promise<void> {
    return this.#writer.endAsync(options);
  }

  /**
   * Closes both directions now. Waits of this port, here or in async calls, end. What this job has
   * posted still goes out as far as there is room; the other promises reject. [port.close]
   */
  close(): void {
    this.#outbox?.flushLast();
    this.#reader.close();
    this.#delivery?.finish();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Ends the outgoing stream, waits until all that was posted is in the ring, and closes. The peer
   * decides how long that takes; `endAsync` with a timeout, and `close`, do not wait longer.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.endAsync();
    } catch (error) {
      // The peer has gone, or this end: there is nothing left to wait for.
      if (!(error instanceof MillraceError)) throw error;
    } finally {
      this.close();
    }
  }
}
