/**
 * Two pipes, one each way, between the same two threads. See `spec/port.md`.
 *
 * @module
 */

import {
  failure,
  type MessageError,
  MillraceError,
  requireOptions,
  throwCannot,
  throwTypeError,
} from "../error.ts";
import { layout } from "../memory/layout.ts";
import type { Channel } from "../memory/plan.ts";
import { type AttachOptions, type Memory, Segment } from "../memory/segment.ts";
import { hasEnded, Incoming, Mode, read, readAsync, tryRead } from "../pipe/incoming.ts";
import { closeLink, Link } from "../pipe/link.ts";
import type { WaitOptions } from "../pipe/options.ts";
import { tendSoon } from "../pipe/tend.ts";
import {
  encode,
  end,
  endAsync,
  enqueue,
  keep,
  makeSend,
  Outgoing,
  pump,
  requireFree,
  requireWritable,
  RUN_COUNT,
  type Send,
  tryWrite,
  write,
  writeAsync,
} from "../pipe/outgoing.ts";
import { attachEndpoint, requireVacant } from "../wait/endpoint.ts";
import {
  bitOf,
  callListeners,
  closedOf,
  findListener,
  Is,
  listen,
  makeDelivery,
  type PortDelivery,
  setRef,
} from "./delivery.ts";
import {
  type PortCloseEvent,
  PortEvent,
  type PortEventMap,
  type PortListener,
  type PortListenerOptions,
  type PortMessageEvent,
} from "./events.ts";
import {
  endpointOf,
  findRings,
  isPortHandoff,
  makeHandoff,
  type PortAttachOptions,
  type PortCreateOptions,
  portGeometry,
  type PortHandoff,
  type PortOptions,
  type PostOptions,
  requirePortOptions,
} from "./options.ts";
import { isLinked } from "../wait/state.ts";

/** A symbol cannot be cloned: Deno and Node then throw a `DataCloneError` with this text. */
const UNPOSTABLE = /* @__PURE__ */ Symbol(
  "Cannot post a port itself: post port.handoff() in its place",
);

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
export class Port<In = unknown, Out = In> extends EventTarget {
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "Port";

  /**
   * Makes `postMessage` refuse a port, as a browser does by itself. Deno and Node would send a
   * plain object with a segment, which is of no use where it arrives.
   *
   * @internal
   */
  readonly unpostable: symbol = UNPOSTABLE;
  readonly #link: Link;
  readonly #outgoing: Outgoing;
  readonly #incoming: Incoming;
  readonly #delivery: PortDelivery;

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
    super();
    const own = { ...options }; // the caller may change its own later
    this.#link = link;
    this.#incoming = new Incoming(link, incoming, own);
    this.#outgoing = new Outgoing(link, outgoing, own);
    this.#delivery = makeDelivery(this.#incoming, this.#outgoing, this, own);
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
   * hub. Blocks until the memory is formatted; not if it is, as after `Segment.attachAsync`.
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
    if (!isPortHandoff(handoff)) throwCannot("make port: this is no handoff of one");
    const own = { ...requireOptions(options), endpoint: handoff.endpoint };
    return Port.attach<In, Out>(handoff.memory, own);
  }

  static #take<In, Out>(
    segment: Segment,
    index: number,
    options: PortOptions<In, Out>,
  ): Port<In, Out> {
    requireVacant(segment, index);
    const [outgoing, incoming] = findRings(segment, index);
    const link = new Link(attachEndpoint(segment, index, options), outgoing.reader);
    return new Port<In, Out>(link, outgoing, incoming, options);
  }

  /** The segment in which both pipes lie. */
  get segment(): Segment {
    return this.#link.endpoint.segment;
  }

  /**
   * Both pipes; for the functions that stand on them. A getter, so that a port can be printed and
   * spread.
   *
   * @internal
   */
  get link(): Link {
    return this.#link;
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
    return makeHandoff(this.segment, this.#link.peer, extra);
  }

  /** Whether the peer has ended its stream, and everything was read. */
  get ended(): boolean {
    return hasEnded(this.#incoming);
  }

  /**
   * Resolves when nothing more will come: with undefined if the peer has ended its stream or
   * `close` was called here, otherwise with the error; it never rejects. What the peer has
   * published is delivered first, so somebody has to read it. This promise alone does not keep the
   * process alive.
   */
  get closed(): Promise<MillraceError | undefined> {
    return closedOf(this.#delivery);
  }

  /**
   * Reads one message. Blocks until there is one. Returns undefined at the timeout, and after the
   * end of the stream: see `ended`.
   *
   * @throws {MessageError} if a message was lost; the next call goes on with the one after it.
   * @throws {PeerClosedError} if the writer has closed without an `end`, and everything is read.
   * @throws {PeerFailedError} if the writer is marked failed, and everything is read.
   * @throws {ClosedError} if this end is closed or marked failed.
   * @throws {CorruptError} if the writer broke the ring.
   * @throws {ForbiddenError} on a thread that must not block.
   */
  read(options?: WaitOptions): In | undefined {
    return read(this.#incoming, Mode.VALUE, options) as In | undefined;
  }

  /** Reads one message if there is one; otherwise returns undefined. Never waits. */
  tryRead(): In | undefined {
    return tryRead(this.#incoming, Mode.VALUE) as In | undefined;
  }

  /** `read` without blocking. Calls are served in the order in which they were made. */
  readAsync(options?: WaitOptions): Promise<In | undefined> {
    return readAsync(this.#incoming, Mode.VALUE, options) as Promise<In | undefined>;
  }

  /** Reads message after message until the stream ends. Leaving the loop leaves the port open. */
  async *[Symbol.asyncIterator](): AsyncGenerator<In, void, void> {
    for (let value; (value = await this.readAsync()) !== undefined;) yield value;
  }

  /**
   * Writes one message. Blocks while there is no room for it; meanwhile, arriving messages go into
   * the inbox.
   *
   * @throws {TimeoutError} at the timeout; the reader drops the part that was written.
   * @throws {PeerClosedError} if the reader has closed.
   * @throws {PeerFailedError} if the reader is marked failed.
   * @throws {ClosedError} if this end is closed, marked failed, or has ended its stream.
   * @throws {CorruptError} if the reader broke the ring.
   * @throws {TypeError} if the codec cannot carry the value.
   */
  write(value: Out, options?: WaitOptions): void {
    write(this.#outgoing, value, options);
  }

  /**
   * Writes one message if there is room for all of it. Returns whether it did. Never waits.
   *
   * @throws {RangeError} if the message is too large to be written at once even to an empty ring.
   */
  tryWrite(value: Out): boolean {
    return tryWrite(this.#outgoing, value);
  }

  /**
   * Writes one message without blocking. Messages keep the order of the calls. The promise resolves
   * when the whole message is in the ring; until then, bytes that were passed in must not change.
   *
   * Rejects with what `write` throws.
   */
  writeAsync(value: Out, options?: WaitOptions): Promise<void> {
    return writeAsync(this.#outgoing, value, options);
  }

  /**
   * Sends one message without waiting, in order with all other writes. The value is encoded at the
   * call. Messages posted in one job go out together: at the end of the job, when they fill a
   * quarter of the ring, or before a call that blocks. Those that find no room go out in the
   * background, as soon as there is room. Short JSON messages go in batches, but a message that a
   * `signal` may take back goes alone.
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
    if (options !== undefined && options !== null) requireOptions(options);
    // Callers of a `MessagePort` pass their transfers like this.
    if (options && (Array.isArray(options) || "transfer" in options)) {
      throwTypeError(
        "Cannot post message: nothing is transferred, values are copied; " +
          "write a Uint8Array as it is",
      );
    }
    return post(this.#outgoing, this.#delivery.options, value, options?.signal);
  }

  /**
   * The handler that is called with each message; null by default. Setting it starts the delivery,
   * as the first listener to `message` does. Setting it to null stops the delivery, as removing the
   * last one does.
   */
  get onmessage(): ((event: PortMessageEvent<In>) => unknown) | null {
    return this.#handler(Is.HEARD);
  }

  set onmessage(handler: ((event: PortMessageEvent<In>) => unknown) | null) {
    this.#setHandler(Is.HEARD, handler);
  }

  /** The handler of messages that are lost while messages are delivered; null by default. */
  get onmessageerror(): ((event: PortMessageEvent<MessageError>) => unknown) | null {
    return this.#handler(Is.WARNED);
  }

  set onmessageerror(handler: ((event: PortMessageEvent<MessageError>) => unknown) | null) {
    this.#setHandler(Is.WARNED, handler);
  }

  /** The handler that is called once, when nothing more will come; null by default. */
  get onclose(): ((event: PortCloseEvent) => unknown) | null {
    return this.#handler(Is.WATCHED);
  }

  set onclose(handler: ((event: PortCloseEvent) => unknown) | null) {
    this.#setHandler(Is.WATCHED, handler);
  }

  #handler<E>(type: Is): ((event: E) => unknown) | null {
    return (findListener(this.#delivery, type)?.call ?? null) as ((event: E) => unknown) | null;
  }

  #setHandler<E>(type: Is, handler: ((event: E) => unknown) | null): void {
    const delivery = this.#delivery;
    if (typeof handler !== "function") findListener(delivery, type)?.remove();
    else listen(delivery, type, undefined, handler as PortListener<Event>);
  }

  /** Listens to an event. The first listener to `message` starts the delivery. */
  override addEventListener<K extends keyof PortEventMap<In>>(
    type: K,
    listener: PortListener<PortEventMap<In>[K]> | null,
    options?: boolean | PortListenerOptions,
  ): void;
  /** Listens to any other event. */
  override addEventListener(
    type: string,
    listener: PortListener<Event> | null,
    options?: boolean | PortListenerOptions,
  ): void;
  override addEventListener(
    type: string,
    // deno-lint-ignore no-explicit-any
    listener: PortListener<any> | null,
    options?: boolean | PortListenerOptions,
  ): void {
    const bit = bitOf(type);
    if (!bit) super.addEventListener(type, listener, options as AddEventListenerOptions);
    else if (listener) listen(this.#delivery, bit, listener, listener, options);
  }

  /** Removes a listener. Without a listener to `message` the delivery stops. */
  override removeEventListener<K extends keyof PortEventMap<In>>(
    type: K,
    listener: PortListener<PortEventMap<In>[K]> | null,
    options?: boolean | PortListenerOptions,
  ): void;
  /** Removes a listener to any other event. */
  override removeEventListener(
    type: string,
    listener: PortListener<Event> | null,
    options?: boolean | PortListenerOptions,
  ): void;
  override removeEventListener(
    type: string,
    // deno-lint-ignore no-explicit-any
    listener: PortListener<any> | null,
    options?: boolean | PortListenerOptions,
  ): void {
    const bit = bitOf(type);
    if (!bit) super.removeEventListener(type, listener, options as EventListenerOptions);
    else if (listener) findListener(this.#delivery, bit, listener, options)?.remove();
  }

  /** Calls the listeners of an event. */
  override dispatchEvent(event: Event): boolean {
    const { type } = event;
    if (bitOf(type)) {
      // The platform gives it its target, and says whether it was cancelled.
      const call = (each: Event) => each === event && callListeners(this.#delivery, event);
      event.stopImmediatePropagation = PortEvent.prototype.stopImmediatePropagation;
      super.addEventListener(type, call, { once: true });
    }
    return super.dispatchEvent(event);
  }

  /**
   * Ends the outgoing stream: the peer gets everything that was written and posted, and then the
   * end. Never waits. From now on nothing can be written, and a second call does nothing.
   *
   * If the peer has closed or failed, or somebody else has closed this end or marked it failed,
   * there is nobody to tell, and the call does nothing. [pipe.end_closed] So in a `finally` block
   * it does not hide an error that was thrown before.
   */
  end(): void {
    end(this.#outgoing);
  }

  /**
   * Ends the stream as `end` does, and waits until the end is in the ring. Rejects with the reason
   * if posts before it are lost. The options can give up the wait, but not the end.
   */
  endAsync(options?: WaitOptions): Promise<void> {
    return endAsync(this.#outgoing, options);
  }

  /**
   * Lets the port keep the process alive while anybody listens to it. That is so unless `unref` was
   * called. A port without a listener does not keep it alive; reads and writes that wait always do.
   */
  ref(): void {
    setRef(this.#delivery, true);
  }

  /** Lets the process end although somebody listens to this port. */
  unref(): void {
    setRef(this.#delivery, false);
  }

  /**
   * Closes both directions now. What was posted goes out as far as there is room; what is not read
   * is dropped, and every wait ends with `pipe.closed`. [port.close]
   */
  close(): void {
    closeLink(this.#link);
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** Ends the stream, waits until everything that was posted is in the ring, and closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.endAsync();
    } catch (error) { // if the peer or this end has gone, nothing is left to wait for
      if (!(error instanceof MillraceError)) throw error;
    } finally {
      this.close();
    }
  }
}

/** See `Port.postMessage`. */
function post(
  out: Outgoing,
  { overflow, queueLimit = 1024 }: PortOptions<unknown, never>,
  value: unknown,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (out.bits) requireFree(out);
  let send: Send | undefined;
  try {
    send = encode(out, value, out.spare);
    signal?.throwIfAborted();
    if (out.bits || !isLinked(out)) requireWritable(out);
    if (overflow === "reject") requireRoom(out, queueLimit);
  } catch (reason) {
    // What the codec throws, at the call; that this end has closed is no mistake of the caller's.
    if (!send && !(reason instanceof MillraceError)) throw reason;
    const promise = Promise.reject(reason);
    promise.catch(() => {});
    return promise;
  }
  const { first, last, capacity } = out;
  const { text } = send;
  const size = text?.length ?? send.size;
  let promise: Promise<void>;
  if (last && text !== undefined && !signal && last.room > size) {
    // Both are short JSON, and go out as one message.
    last.text += `,${text}`;
    last.room = ++last.count < RUN_COUNT ? last.room - size - 1 : 0;
    promise = last.promise!;
  } else {
    out.spare = makeSend(layout.FRAME_KIND_DATA);
    if (text === undefined) {
      send.isKept = false; // the caller's bytes may change at once
      keep(send);
    } else if (!signal) send.room = out.run - size;
    promise = enqueue(out, send, signal && { signal });
    promise.catch(() => {}); // the caller need not handle it
  }
  // So that the peer reads while more is posted.
  out.gathered = first ? out.gathered + size : size;
  if (out.gathered > capacity >> 2) {
    out.gathered = 0;
    pump(out);
  }
  tendSoon(out.link);
  return promise;
}

/** Throws if no more may be posted. */
function requireRoom(out: Outgoing, most: number): void {
  for (let isPumped = false;; isPumped = true) {
    let count = 0;
    for (let send = out.first; send; send = send.next) if (send.sent < 0) count += send.count;
    if (count < most) return;
    if (isPumped) throw failure("port.overflow", `post: ${count} messages wait for room`);
    pump(out); // what was posted in this job may find room
  }
}
