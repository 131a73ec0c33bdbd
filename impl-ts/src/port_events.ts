/**
 * The events of a port: their types, and an event target that knows whether anybody listens. See
 * `spec/port.md`.
 *
 * @module
 */

import type { MessageError, MillraceError } from "./error.ts";

/**
 * Says that nothing more will come, and why: the event `close`.
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
  /** Undefined where the peer has ended its stream, or `close` was called here. */
  readonly error: MillraceError | undefined;

  /** Makes the event. */
  constructor(error?: MillraceError | undefined) {
    super("close");
    this.error = error;
  }
}

/**
 * The event of a message, and a `MessageEvent` to everybody who asks. A port tells its listeners of
 * it itself: the platform converts each member of its own events, and looks at what it dispatches,
 * by the rules of WebIDL, which took a quarter of an echo (measured: Node 24, Deno 2.9).
 *
 * The class comes to be a kind of `MessageEvent` when somebody asks an event of it what it is, by
 * `instanceof`: in Node, the first touch of that global loads the library of `fetch`, which takes
 * 30 to 50 ms (measured: Node 24).
 */
export class ArrivalEvent extends Event {
  override readonly type: string;
  readonly data: unknown;
  override readonly target: EventTarget;
  override readonly currentTarget: EventTarget;
  override readonly srcElement: EventTarget;
  /** Whether no further listener is called. */
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
 * Has the class become a kind of `MessageEvent` when somebody asks. Until then a proxy stands in
 * its chain of prototypes, which is told of that question. What the platform stores in each event
 * stands in front of it, as in this one, to spare the way through it: 0.5 µs an event.
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
 * The event of a message: a `MessageEvent` that says what its data is, also where the platform's
 * type does not, as in programs for Node without the library `dom`.
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
  /** The message, or of a lost one the error. */
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
   * A message has come: `data` is its value. In Node, to ask the event what it is, by `instanceof`
   * for one, loads the library of `fetch` once, as the global `MessageEvent` does: 30 to 50 ms.
   */
  message: PortMessageEvent<In>;
  /** A message was lost: `data` says why. */
  messageerror: PortMessageEvent<MessageError>;
  /** Nothing more will come. */
  close: PortCloseEvent;
}

/**
 * Who is told of an event.
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
 * How to listen to an event, as in the platform's `AddEventListenerOptions`.
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
  /** Ends the listening. */
  readonly signal?: AbortSignal | undefined;
}

/** What the events come from. */
export interface EventSource {
  /** Is told whether anybody listens to events of this type. */
  listen(type: string, on: boolean): void;
}

/** Who is told of the events of one type. */
interface Listener {
  readonly type: string;
  /** What was given to listen, by which it is found; undefined for a handler. */
  readonly key: PortListener<Event> | undefined;
  readonly capture: boolean;
  readonly once: boolean;
  /** What is called: of a handler, the one that was set last. */
  call: PortListener<Event>;
  /** Whether it was removed. */
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
  /** In the order of their registration, and not changed while an event is dispatched. */
  #listeners: readonly Listener[] = [];

  /**
   * Made as a part of a port. `source` is called when somebody listens.
   *
   * @internal
   */
  constructor(source: () => EventSource) {
    super();
    this.#source = source;
  }

  /**
   * Is called with each message; null by default. Setting it starts the delivery, as the first
   * listener to `message` does, and setting it to null stops it, as removing the last one does.
   */
  get onmessage(): ((event: PortMessageEvent<In>) => unknown) | null {
    return this.#handler("message");
  }

  set onmessage(handler: ((event: PortMessageEvent<In>) => unknown) | null) {
    this.#setHandler("message", handler);
  }

  /** Is told of each message that was lost while messages are delivered; null by default. */
  get onmessageerror(): ((event: PortMessageEvent<MessageError>) => unknown) | null {
    return this.#handler("messageerror");
  }

  set onmessageerror(handler: ((event: PortMessageEvent<MessageError>) => unknown) | null) {
    this.#setHandler("messageerror", handler);
  }

  /** Is called once, when nothing more will come; null by default. */
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

  /** Ends the listening to an event. Without a listener to `message` the delivery stops. */
  override removeEventListener<K extends keyof PortEventMap<In>>(
    type: K,
    listener: PortListener<PortEventMap<In>[K]> | null,
    options?: boolean | PortListenerOptions,
  ): void;
  /** Ends the listening to any other event. */
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

  /** Tells the listeners of an event. */
  override dispatchEvent(event: Event): boolean {
    const isOwn = event instanceof ArrivalEvent;
    if (!isOwn) aim(event, this);
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

  /** A handler has the place among the listeners where it was first set. */
  #setHandler<E>(type: string, handler: Handler<E>): void {
    const listener = this.#find(type, undefined, false);
    if (typeof handler !== "function") listener?.remove();
    else if (listener !== undefined) listener.call = handler as PortListener<Event>;
    else this.#add(type, undefined, handler as PortListener<Event>);
  }
}

/** Gives an event of another class what the platform gives it where it dispatches it. */
function aim(event: Event, target: EventTarget): void {
  const at = { value: target, configurable: true };
  const { stopImmediatePropagation: value } = ArrivalEvent.prototype;
  const stopImmediatePropagation = { value, configurable: true };
  const members = { target: at, currentTarget: at, srcElement: at, stopImmediatePropagation };
  Object.defineProperties(event, members);
}

/** Reports what a listener has thrown, as the platform does: by a dispatch of its own. */
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
