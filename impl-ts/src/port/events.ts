/**
 * The events of a port, and its listeners. They are called here and not by the platform, whose
 * dispatch took a quarter of an echo.
 *
 * @module
 */

import type { MessageError, MillraceError } from "../error.ts";

/**
 * The event of a message. It has what a `MessageEvent` has, and its type says what its data is; but
 * it is an `Event` of this library's own, which a thread that has just started makes sooner.
 *
 * @example
 * ```ts
 * import { Port, type PortMessageEvent } from "@millrace/millrace";
 *
 * const log = ({ data }: PortMessageEvent<string>) => console.log(data); // "hello"
 * const here = Port.create<string>();
 * here.onmessage = log;
 * const there = Port.attach<string>(here.memory); // usually in another thread
 * there.write("hello");
 * there.end();
 * await here.closed;
 * ```
 */
export interface PortMessageEvent<T = unknown> extends Omit<MessageEvent, "data"> {
  /** The message; for a lost message, the error. */
  readonly data: T;
}

/**
 * The events of a port, by their types.
 *
 * @example
 * ```ts
 * import { Port, type PortEventMap } from "@millrace/millrace";
 *
 * // The next event of a type.
 * function next<T, K extends keyof PortEventMap<T>>(port: Port<T>, type: K) {
 *   return new Promise<PortEventMap<T>[K]>((resolve) =>
 *     port.addEventListener(type, resolve, { once: true })
 *   );
 * }
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * there.write("hello");
 * console.log((await next(here, "message")).data); // "hello"
 * ```
 */
export interface PortEventMap<In = unknown> {
  /** A message has come: `data` is its value. */
  message: PortMessageEvent<In>;
  /** A message was lost: `data` is the error that says why. */
  messageerror: PortMessageEvent<MessageError>;
  /** Nothing more will come. */
  close: PortCloseEvent;
}

/**
 * What is called for an event: a function, or an object with `handleEvent`.
 *
 * @example
 * ```ts
 * import { Port, type PortListener } from "@millrace/millrace";
 *
 * const log: PortListener<MessageEvent<string>> = {
 *   handleEvent: ({ data }) => console.log(data), // "hello"
 * };
 * const here = Port.create<string>();
 * here.addEventListener("message", log);
 * const there = Port.attach<string>(here.memory); // usually in another thread
 * there.write("hello");
 * there.end();
 * await here.closed;
 * ```
 */
export type PortListener<E extends Event> =
  | ((event: E) => unknown)
  | { handleEvent(event: E): unknown };

/**
 * Options of a listener, as in the platform's `AddEventListenerOptions`.
 *
 * @example
 * ```ts
 * import { Port, type PortListenerOptions } from "@millrace/millrace";
 * import { writeMany } from "@millrace/millrace/many";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * writeMany(there, [1, 2]);
 * const once: PortListenerOptions = { once: true, signal: AbortSignal.timeout(10_000) };
 * const first = await new Promise((resolve) => here.addEventListener("message", resolve, once));
 * console.log((first as MessageEvent<number>).data, here.tryRead()); // 1 2
 * ```
 */
export interface PortListenerOptions {
  /** Whether to listen while the event is captured. */
  readonly capture?: boolean | undefined;
  /** Whether to listen to one event only. */
  readonly once?: boolean | undefined;
  /** Whether the listener never cancels the event. */
  readonly passive?: boolean | undefined;
  /** Removes the listener when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The event of the end of a port: nothing more will come.
 *
 * @example
 * ```ts
 * import { Port, type PortCloseEvent } from "@millrace/millrace";
 *
 * const log = ({ error }: PortCloseEvent) => console.log(error); // undefined
 * const here = Port.create();
 * here.onclose = log;
 * const there = Port.attach(here.memory); // usually in another thread
 * there.end();
 * await here.closed;
 * ```
 */
export interface PortCloseEvent extends Event {
  /** Undefined if the peer has ended its stream, or `close` was called here. */
  readonly error: MillraceError | undefined;
}

/** An event of a port. Members of the platform's event that are getters there are fields here. */
export class PortEvent extends Event {
  override readonly type: string;
  override readonly target: EventTarget;
  override readonly currentTarget: EventTarget;
  readonly data: unknown;
  readonly error: MillraceError | undefined;
  /** Whether no further listener may be called. */
  isStopped = false;

  /** Makes the event of a port. */
  constructor(type: string, port: EventTarget, data: unknown, error?: MillraceError | undefined) {
    super(type);
    this.type = type;
    this.target = this.currentTarget = port;
    this.data = data;
    this.error = error;
  }

  get origin(): string {
    return "";
  }

  get lastEventId(): string {
    return "";
  }

  get source(): null {
    return null;
  }

  get ports(): readonly [] {
    return NONE;
  }

  override composedPath(): [EventTarget] {
    return [this.target];
  }

  override stopImmediatePropagation(): void {
    this.isStopped = true;
  }
}

const NONE: readonly [] = /* @__PURE__ */ Object.freeze([]) as [];

/** Where the events of a port come from. */
export interface EventSource {
  /** Tells the source whether anybody listens to events of this type. */
  listen(type: string, on: boolean): void;
}

/** One listener to the events of one type. */
interface Listener {
  readonly type: string;
  /** The listener that was given, by which this one is found; undefined for a handler. */
  readonly key: PortListener<Event> | undefined;
  readonly once: boolean;
  readonly capture: boolean;
  /** What is called; for a handler, the one that was set last. */
  call: PortListener<Event>;
  /** Whether the listener was removed. */
  isOver: boolean;
  readonly remove: () => void;
}

type Handler<E> = ((event: E) => unknown) | null;

/** Whether events of this type are a port's own. The platform dispatches all others. */
function isOwn(type: string): boolean {
  return type === "message" || type === "messageerror" || type === "close";
}

/**
 * The event target that every port is.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * const here = Port.create<string>();
 * const there = Port.attach<string>(here.memory); // usually in another thread
 * there.write("hello");
 * there.end();
 * await new Promise((resolve) => {
 *   here.addEventListener("message", ({ data }) => console.log(data)); // "hello"
 *   here.addEventListener("close", resolve);
 * });
 * ```
 */
export class PortEventTarget<In = unknown> extends EventTarget {
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "PortEventTarget";

  readonly #source: () => EventSource;
  /**
   * In the order of their registration. The array is replaced, so that a dispatch goes on with its
   * own.
   */
  #listeners: readonly Listener[] = [];

  /**
   * The base class of ports. `source` is called when a listener is added or removed.
   *
   * @internal
   */
  constructor(source: () => EventSource) {
    super();
    this.#source = source;
  }

  /**
   * The handler that is called with each message; null by default. Setting it starts the delivery,
   * as the first listener to `message` does. Setting it to null stops the delivery, as removing the
   * last one does.
   */
  get onmessage(): ((event: PortMessageEvent<In>) => unknown) | null {
    return this.#handler("message");
  }

  set onmessage(handler: ((event: PortMessageEvent<In>) => unknown) | null) {
    this.#setHandler("message", handler);
  }

  /** The handler of messages that are lost while messages are delivered; null by default. */
  get onmessageerror(): ((event: PortMessageEvent<MessageError>) => unknown) | null {
    return this.#handler("messageerror");
  }

  set onmessageerror(handler: ((event: PortMessageEvent<MessageError>) => unknown) | null) {
    this.#setHandler("messageerror", handler);
  }

  /** The handler that is called once, when nothing more will come; null by default. */
  get onclose(): ((event: PortCloseEvent) => unknown) | null {
    return this.#handler("close");
  }

  set onclose(handler: ((event: PortCloseEvent) => unknown) | null) {
    this.#setHandler("close", handler);
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
    if (!isOwn(type)) super.addEventListener(type, listener, options as AddEventListenerOptions);
    else if (listener) this.#add(type, listener, listener, options);
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
    if (!isOwn(type)) super.removeEventListener(type, listener, options as EventListenerOptions);
    else if (listener) this.#find(type, listener, isCapture(options))?.remove();
  }

  /** Calls the listeners of an event. */
  override dispatchEvent(event: Event): boolean {
    const { type } = event;
    if (!isOwn(type)) return super.dispatchEvent(event);
    // The platform gives it its target, and notes what stops it.
    if (!(event instanceof PortEvent)) {
      const over = new AbortController();
      for (const listener of this.#listeners) {
        const call = (each: Event) => each === event && this.#call(listener, event);
        super.addEventListener(type, call, over);
      }
      const isDone = super.dispatchEvent(event);
      over.abort();
      return isDone;
    }
    for (const listener of this.#listeners) {
      this.#call(listener, event);
      if (event.isStopped) break;
    }
    return true;
  }

  #call(listener: Listener, event: Event): void {
    if (listener.type !== event.type || listener.isOver) return;
    if (listener.once) listener.remove();
    const { call } = listener;
    try {
      if (typeof call === "function") call.call(this, event);
      else call.handleEvent(event);
    } catch (error) {
      report(error);
    }
  }

  #add(
    type: string,
    key: PortListener<Event> | undefined,
    call: PortListener<Event>,
    options?: boolean | PortListenerOptions,
  ): void {
    const { once = false, signal }: PortListenerOptions = Object(options);
    const capture = isCapture(options);
    if (signal?.aborted || this.#find(type, key, capture)) return;
    const remove = () => {
      listener.isOver = true;
      signal?.removeEventListener("abort", remove);
      this.#set(type, this.#listeners.filter((each) => each !== listener));
    };
    const listener: Listener = { type, key, once, capture, call, isOver: false, remove };
    signal?.addEventListener("abort", remove);
    this.#set(type, [...this.#listeners, listener]);
  }

  #set(type: string, listeners: readonly Listener[]): void {
    this.#listeners = listeners;
    this.#source().listen(type, listeners.some((each) => each.type === type));
  }

  #find(
    type: string,
    key: PortListener<Event> | undefined,
    capture = false,
  ): Listener | undefined {
    return this.#listeners.find((each) =>
      each.type === type && each.key === key && each.capture === capture
    );
  }

  #handler<E>(type: string): Handler<E> {
    return (this.#find(type, undefined)?.call ?? null) as Handler<E>;
  }

  /** Sets a handler, which keeps the place among the listeners where it was first set. */
  #setHandler<E>(type: string, handler: Handler<E>): void {
    const listener = this.#find(type, undefined);
    if (typeof handler !== "function") listener?.remove();
    else if (listener) listener.call = handler as PortListener<Event>;
    else this.#add(type, undefined, handler as PortListener<Event>);
  }
}

/** The same listener with and without `capture` counts as two. */
function isCapture(options: boolean | PortListenerOptions | undefined): boolean {
  return options === true || Object(options).capture === true;
}

/** Reports what a listener has thrown as the platform does, by a dispatch of the platform's own. */
function report(error: unknown): void {
  const target = new EventTarget();
  target.addEventListener("error", () => {
    throw error;
  });
  target.dispatchEvent(new Event("error"));
}
