/**
 * Two pipes, one each way, between the same two threads. See `spec/port.md`.
 *
 * @module
 */

import { cannot, MillraceError, requireOptions } from "../error.ts";
import { Link, type Message, type WaitOptions } from "../pipe/pipe.ts";
import type { Lent, Place } from "../pipe/lend.ts";
import { Inbox } from "../pipe/inbox.ts";
import { waitForPeer, waitForPeerAsync } from "../pipe/peer.ts";
import { Reader } from "../pipe/reader.ts";
import { type ClaimOptions, type MessageInit, Writer } from "../pipe/writer.ts";
import { Delivery } from "./delivery.ts";
import { PortEventTarget } from "./events.ts";
import { isHandoff, makeHandoff, type PortHandoff } from "./handoff.ts";
import { endpointOf, findRings, portGeometry, requirePortOptions } from "./options.ts";
import type { PortAttachOptions, PortCreateOptions, PortOptions } from "./options.ts";
import { Outbox, type PostOptions } from "./outbox.ts";
import { readableOf, writableOf } from "./stream.ts";
import { type AttachOptions, type Memory, Segment } from "../memory/segment.ts";
import type { Channel } from "../memory/segment_geometry.ts";
import { Endpoint, type Stats } from "../wait/endpoint.ts";

export { portGeometry, portMemory, requirePortOptions } from "./options.ts";
export type { PortAttachOptions, PortCreateOptions, PortOptions, Side } from "./options.ts";

/** A symbol cannot be cloned: Deno and Node then throw a `DataCloneError` with this text. */
const UNPOSTABLE = /* @__PURE__ */ Symbol(
  "Cannot post a port itself: post port.handoff() in its place",
);
const DEFAULT_INBOX_COUNT = 1024;
const DEFAULT_INBOX_SIZE = 16 * 1024 * 1024;

/**
 * One end of a pair that sends messages both ways: by blocking calls, promises, events or streams.
 * Only the thread that made it may use it.
 *
 * Each message goes to one taker. A call that reads takes what is there. Next come asynchronous
 * reads that wait, among them loops and streams, which get one message each. The rest become
 * events, while anybody listens to `message`. Nothing is delivered while a frame is lent by `peek`.
 *
 * @typeParam In The values that it reads. @typeParam Out The values that it writes.
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
   * Makes `postMessage` refuse a port, as a browser does by itself. Deno and Node would send a
   * plain object with a segment, which is of no use where it arrives.
   *
   * @internal
   */
  readonly unpostable: symbol = UNPOSTABLE;
  /** The segment in which both pipes lie. */
  readonly segment: Segment;
  readonly #link: Link;
  readonly #writer: Writer<Out>;
  readonly #reader: Reader<In>;
  readonly #options: PortOptions<unknown, never>;
  // Made when they are first needed.
  #delivery: Delivery<In> | undefined;
  #outbox: Outbox | undefined;
  #readable: ReadableStream<In> | undefined;
  #writable: WritableStream<Out> | undefined;

  /**
   * Makes the port of an attached endpoint and its two rings; for hubs. Use `Port.create` or
   * `Port.attach`.
   *
   * @internal
   */
  constructor(
    link: Link,
    outgoing: Channel,
    incoming: Channel,
    options: PortOptions<unknown, never>,
  ) {
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
   * Begins anew with the next owner of the peer's endpoint: delivers the events, and makes the
   * streams, of what comes from that owner. See `vacatePeer`.
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
   * the other side, and call `Port.attach` with it there.
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
   * @throws {SegmentError} if it is not formatted in time, is not a port, or the side is taken.
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
   * Attaches to a port that was handed over. `handoff` is what `handoff()` of the other end
   * returned, as it was posted. Either side may call first: messages that were sent before are
   * there.
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
    const { memory, endpoint } = handoff;
    return Port.attach<In, Out>(memory, { ...requireOptions(options), endpoint });
  }

  /**
   * Whether a value was made by `handoff`. `Extra` is the type of what the caller of that has
   * added.
   */
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
   * Makes a plain object to post to the thread of the other end, which calls `Port.from` with it.
   * `extra` adds properties of the caller's own, for instance to tell several ports apart.
   *
   * @throws {TypeError} if the memory is not shared, or a property has a name of the handoff's.
   */
  handoff<Extra extends object = object>(extra?: Extra): PortHandoff & Extra {
    return makeHandoff(this.segment, this.peerIndex, extra);
  }

  /** Whether the peer has ended its stream, and everything was read. */
  get ended(): boolean {
    return this.#reader.ended;
  }

  /**
   * Resolves when nothing more will come: with undefined if the peer has ended its stream or
   * `close` was called here, otherwise with the error; it never rejects. What the peer has
   * published is delivered first, so somebody has to read it. A port that serves or makes calls
   * does not wait for that: its unread messages can be read afterwards. This promise alone does not
   * keep the process alive.
   */
  get closed(): Promise<MillraceError | undefined> {
    return this.delivery.closed;
  }

  /** What this endpoint has counted since it attached. */
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
   * The messages that arrive, as a stream. Each pull reads one message, and none is read ahead. The
   * stream ends with the peer's stream, and fails with what `readAsync` throws, for a lost message
   * too.
   *
   * Cancelling the stream closes the port, since nobody will read what comes. To go on reading,
   * release the stream's reader, or loop over `values({ preventCancel: true })`.
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
   * A stream that sends what is written to it. A write is done when the message is in the ring.
   * Closing the stream ends the outgoing messages, as `endAsync` does; aborting it closes the port.
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
   * Sends one message without waiting, in order with all other writes. The value is encoded at the
   * call. Messages posted in one job go out together: at the end of the job, when they fill a
   * quarter of the ring, or before a call that blocks. Those that find no room go out in the
   * background, as soon as there is room. Short JSON messages go in batches, but a message that a
   * `signal` or `drop-oldest` may take back goes alone.
   *
   * The promise resolves when the message is in the ring, and rejects when it will not come there;
   * messages of one batch share one promise. The caller need not handle it. The option `overflow`
   * says what becomes of a queue that grows.
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
   * The queue of posted messages; for calls.
   *
   * @internal
   */
  get outbox(): Outbox {
    return this.#outbox ??= new Outbox(this.#writer.outlet, this.#options);
  }

  /**
   * Brings messages to listeners; for calls.
   *
   * @internal
   */
  get delivery(): Delivery<In> {
    return this.#delivery ??= new Delivery<In>(this.#reader, this.#options, this);
  }

  /** See `Writer.write`. While the call waits for room, arriving messages go into the inbox. */
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
   * Blocks until the other side has attached. Returns whether it has; false at the timeout. Only
   * this call finds out that a worker never comes. If the peer has come and is gone again, the next
   * call reports that.
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
   * Lets the port keep the process alive while anybody listens to it. That is so unless `unref` was
   * called. A port without a listener does not keep it alive; reads and writes that wait always do.
   */
  ref(): void {
    this.delivery.keep(true);
  }

  /** Lets the process end although somebody listens to the port. */
  unref(): void {
    this.delivery.keep(false);
  }

  /**
   * Ends the outgoing stream, after what was posted; reading goes on. Does nothing if the peer has
   * closed. See `Writer.end`. [port.end]
   */
  end(): void {
    this.#writer.end();
  }

  /** Ends the outgoing stream, and waits until all of it is in the ring. See `Writer.endAsync`. */
  endAsync(options?: WaitOptions): Promise<void> {
    return this.#writer.endAsync(options);
  }

  /**
   * Closes both directions now. All waits of this port end, asynchronous ones included. What this
   * job has posted still goes out as far as there is room; the promises of the rest reject.
   * [port.close]
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
   * Ends the outgoing stream, waits until everything that was posted is in the ring, and closes.
   * How long that takes is up to the peer; to wait no longer, use `endAsync` with a timeout, and
   * `close`.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.endAsync();
    } catch (error) {
      // The peer has gone, or this end has: there is nothing left to wait for.
      if (!(error instanceof MillraceError)) throw error;
    } finally {
      this.close();
    }
  }
}
