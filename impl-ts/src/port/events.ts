/**
 * The events of a port: their types, and an event target that knows whether anybody listens. See
 * `spec/port.md`.
 *
 * @module
 */

import type { MessageError, MillraceError } from "../error.ts";

/**
 * The event `close`: nothing more will come, for the reason in `error`.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * const port = Port.create();
 * port.onclose = ({ error }) => console.log(error?.code ?? "closed"); // "closed"
 * port.close();
 * ```
 */
export class PortCloseEvent extends Event {
  /** Undefined if the peer has ended its stream, or `close` was called here. */
  readonly error: MillraceError | undefined;

  /** Makes the event. */
  constructor(error?: MillraceError | undefined) {
    super("close");
    this.error = error;
  }
}

/**
 * The event of a message, which is a `MessageEvent` to everybody who asks. A port calls its
 * listeners itself. The platform would convert each member of its own events, and check what is
 * dispatched, by the rules of WebIDL, which took a quarter of an echo (measured: Node 24, Deno
 * 2.9).
 *
 * The class becomes a subclass of `MessageEvent` only when somebody asks an event what it is, by
 * `instanceof`. In Node, the first touch of that global loads the library of `fetch`, which takes
 * 30 to 50 ms (measured: Node 24).
 */
export class ArrivalEvent extends Event {
  override readonly type: string;
  readonly data: unknown;
  override readonly target: EventTarget;
  override readonly currentTarget: EventTarget;
  override readonly srcElement: EventTarget;
  /** Whether no further listener may be called. */
  isStopped = false;

  /** Makes the event, `message` or `messageerror`, of a port. */
  constructor(type: string, data: unknown, port: EventTarget) {
    super(type);
    this.type = type;
    this.data = data;
    this.target = this.currentTarget = this.srcElement = port;
    if (!Object.hasOwn(ArrivalEvent.prototype, "ports")) becomeWhenAsked(this);
  }

  override composedPath(): [EventTarget] {
    return [this.target];
  }

  override stopImmediatePropagation(): void {
    super.stopImmediatePropagation();
    this.isStopped = true;
  }

  get [Symbol.toStringTag](): string {
    return "MessageEvent";
  }
}

/**
 * Makes the class a subclass of `MessageEvent` when somebody asks what an event is. Until then a
 * proxy stands in its chain of prototypes and notices that question. Everything that the platform
 * stores in each event, as in this one, is also defined in front of the proxy, so that storing it
 * does not go through the proxy: that took 0.5 µs an event.
 */
function becomeWhenAsked(event: ArrivalEvent): void {
  const { prototype } = ArrivalEvent;
  for (const key of Reflect.ownKeys(event)) {
    Object.defineProperty(prototype, key, { value: undefined, writable: true });
  }
  const ports = Object.freeze([]);
  Object.assign(prototype, { origin: "", lastEventId: "", source: null, ports });
  const asked = new Proxy(Event.prototype, {
    getPrototypeOf() {
      Object.setPrototypeOf(prototype, MessageEvent.prototype);
      return MessageEvent.prototype;
    },
  });
  Object.setPrototypeOf(prototype, asked);
}

/**
 * The event of a message: a `MessageEvent` whose type says what its data is, even where the
 * platform's own type does not, as in programs for Node without the library `dom`.
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
  /**
   * A message has come: `data` is its value. In Node, to ask the event what it is, for instance by
   * `instanceof`, loads the library of `fetch` once, as the global `MessageEvent` does: 30 to 50
   * ms.
   */
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
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * there.writeMany([1, 2]);
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
  readonly capture: boolean;
  readonly once: boolean;
  /** What is called; for a handler, the one that was set last. */
  call: PortListener<Event>;
  /** Whether the listener was removed. */
  isOver: boolean;
  readonly remove: () => void;
}

type Handler<E> = ((event: E) => unknown) | null;

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
    if (listener) this.#add(type, listener, listener, options);
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
    if (listener) this.#find(type, listener, isCapture(options))?.remove();
  }

  /** Calls the listeners of an event. */
  override dispatchEvent(event: Event): boolean {
    const isOwn = event instanceof ArrivalEvent;
    if (!isOwn) setTarget(event, this);
    const { type } = event;
    for (const listener of this.#listeners) {
      if (listener.type !== type || listener.isOver) continue;
      if (listener.once) listener.remove();
      const { call } = listener;
      try {
        if (typeof call === "function") call.call(this, event);
        else call.handleEvent(event);
      } catch (error) {
        report(error);
      }
      if ((event as ArrivalEvent).isStopped) break;
    }
    return isOwn || !event.defaultPrevented;
  }

  #add(
    type: string,
    key: PortListener<Event> | undefined,
    call: PortListener<Event>,
    options?: boolean | PortListenerOptions,
  ): void {
    const { once = false, signal }: PortListenerOptions = Object(options);
    const capture = isCapture(options);
    if (signal?.aborted || this.#find(type, key, capture) !== undefined) return;
    const remove = () => {
      listener.isOver = true;
      signal?.removeEventListener("abort", remove);
      this.#set(type, this.#listeners.filter((each) => each !== listener));
    };
    const listener: Listener = { type, key, capture, once, call, isOver: false, remove };
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
    capture: boolean,
  ): Listener | undefined {
    return this.#listeners.find((each) =>
      each.type === type && each.key === key && each.capture === capture
    );
  }

  #handler<E>(type: string): Handler<E> {
    return (this.#find(type, undefined, false)?.call ?? null) as Handler<E>;
  }

  /** Sets a handler, which keeps the place among the listeners where it was first set. */
  #setHandler<E>(type: string, handler: Handler<E>): void {
    const listener = this.#find(type, undefined, false);
    if (typeof handler !== "function") listener?.remove();
    else if (listener !== undefined) listener.call = handler as PortListener<Event>;
    else this.#add(type, undefined, handler as PortListener<Event>);
  }
}

/** Gives an event of another class the members that the platform gives it in its own dispatch. */
function setTarget(event: Event, target: EventTarget): void {
  const at = { value: target, configurable: true };
  const { stopImmediatePropagation: value } = ArrivalEvent.prototype;
  const stopImmediatePropagation = { value, configurable: true };
  const members = { target: at, currentTarget: at, srcElement: at, stopImmediatePropagation };
  Object.defineProperties(event, members);
}

/** Reports what a listener has thrown as the platform does, by a dispatch of the platform's own. */
function report(error: unknown): void {
  const target = new EventTarget();
  target.addEventListener("error", () => {
    throw error;
  });
  target.dispatchEvent(new Event("error"));
}

function isCapture(options: boolean | PortListenerOptions | undefined): boolean {
  return options === true || Object(options).capture === true;
}
