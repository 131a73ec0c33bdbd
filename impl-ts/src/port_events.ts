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
 * The event of a message, and a `MessageEvent` to everybody who asks. Those of the platform convert
 * each of five members by the rules of WebIDL, which took a tenth of an echo in Node and Deno
 * (measured: Node 24, Deno 2.9).
 *
 * In Node, the class comes to be a kind of `MessageEvent` when somebody asks an event of it what it
 * is, by `instanceof` or `Object.getPrototypeOf`: the first touch of that global loads the library
 * of `fetch`, which takes 30 to 50 ms (measured: Node 24). Elsewhere it is one from the start.
 */
export class ArrivalEvent extends Event {
  readonly data: unknown;

  /** Makes the event, `message` or `messageerror`. */
  constructor(type: string, data: unknown) {
    super(type);
    this.data = data;
  }

  /** Makes the class ready, before its first event. */
  static prepare(): void {
    const { prototype } = ArrivalEvent;
    if (Object.hasOwn(prototype, "ports")) return;
    const ports = Object.freeze([]);
    Object.assign(prototype, { origin: "", lastEventId: "", source: null, ports });
    if (isNode()) becomeWhenAsked();
    else become();
  }

  /** Dispatches the event. */
  dispatchAt(target: EventTarget): void {
    ownAsks = asksOfDispatch;
    target.dispatchEvent(this);
  }
}

/** How often Node itself asks an event what it is while it dispatches it, before any listener. */
let asksOfDispatch = 0;
/** How often it may still ask. */
let ownAsks = 0;

/** Makes the class a kind of `MessageEvent`, and all its events. */
function become(): void {
  asksOfDispatch = ownAsks = 0;
  Object.setPrototypeOf(ArrivalEvent.prototype, MessageEvent.prototype);
}

/**
 * Has the class become one when somebody asks. Until then a proxy stands in its chain of
 * prototypes, which is told of every question, also of those by which Node makes sure that it
 * dispatches an event: they are counted once, and answered with `Event`.
 */
function becomeWhenAsked(): void {
  const { prototype } = ArrivalEvent;
  const { constructor: _, ...members } = Object.getOwnPropertyDescriptors(Event.prototype);
  Object.defineProperties(prototype, members);
  Object.defineProperty(prototype, Symbol.toStringTag, { value: "MessageEvent" });
  // What stands in front of the proxy spares the way to it: 0.1 µs an event are left of 0.7.
  for (const key of Reflect.ownKeys(new Event(""))) {
    if (Object.hasOwn(prototype, key)) continue;
    Object.defineProperty(prototype, key, { value: undefined, writable: true });
  }
  const asked = new Proxy(Event.prototype, {
    getPrototypeOf() {
      if (ownAsks-- > 0) return Event.prototype;
      become();
      return MessageEvent.prototype;
    },
  });
  Object.setPrototypeOf(prototype, asked);
  ownAsks = ASKS_MOST;
  new EventTarget().dispatchEvent(new ArrivalEvent("", undefined));
  asksOfDispatch = ASKS_MOST - ownAsks;
  ownAsks = 0;
}

/** More questions than any dispatch asks. */
const ASKS_MOST = 1000;

/** Whether this is Node itself. Deno and Bun, which have a `process` too, load nothing late. */
function isNode(): boolean {
  const scope = globalThis as Scope;
  if (scope.Deno !== undefined) return false;
  const versions = scope.process?.versions;
  return versions?.node !== undefined && versions.bun === undefined;
}

/** By what Node is told from others. */
interface Scope {
  readonly Deno?: unknown;
  readonly process?: { readonly versions?: { readonly node?: string; readonly bun?: string } };
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
  message: MessageEvent<In>;
  /** A message was lost: `data` says why. */
  messageerror: MessageEvent<MessageError>;
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
  /** Starts or stops the delivery of messages. */
  listen(on: boolean): void;
  /** Starts or stops to look out for the end, also while nobody listens to messages. */
  watch(on: boolean): void;
}

/** The types of which the source is told whether anybody listens. */
type Counted = "message" | "close";

/** A listener to one of them, and what was registered in its place. */
interface Entry {
  readonly listener: PortListener<Event>;
  readonly capture: boolean;
  readonly registered: PortListener<Event>;
  remove(): void;
}

type Handler<E> = ((event: E) => unknown) | null;
type Called = (event: never) => unknown;

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
  #entries: Record<Counted, Entry[]> | undefined;
  #handlers: Map<string, { handler: Called; call(event: Event): void }> | undefined;

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
  get onmessage(): ((event: MessageEvent<In>) => unknown) | null {
    return this.#handler("message");
  }

  set onmessage(handler: ((event: MessageEvent<In>) => unknown) | null) {
    this.#setHandler("message", handler);
  }

  /** Is told of each message that was lost while messages are delivered; null by default. */
  get onmessageerror(): ((event: MessageEvent<MessageError>) => unknown) | null {
    return this.#handler("messageerror");
  }

  set onmessageerror(handler: ((event: MessageEvent<MessageError>) => unknown) | null) {
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
    if (listener && isCounted(type)) return this.#add(type, listener, options);
    super.addEventListener(type, listener, options as AddEventListenerOptions);
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
    if (isCounted(type)) return this.#find(type, listener, options)?.remove();
    super.removeEventListener(type, listener, isCapture(options));
  }

  /** As `EventTarget` does; `once` and `signal` are seen to here, to know when nobody listens. */
  #add(
    type: Counted,
    listener: PortListener<Event>,
    options?: boolean | PortListenerOptions,
  ): void {
    const { once, passive, signal } = typeof options === "object" ? options : {};
    if (signal?.aborted || this.#find(type, listener, options) !== undefined) return;
    const entries = (this.#entries ??= { message: [], close: [] })[type];
    const capture = isCapture(options);
    const call = (event: Event) => {
      entry.remove();
      if (typeof listener === "function") listener.call(this, event);
      else listener.handleEvent(event);
    };
    const remove = () => {
      signal?.removeEventListener("abort", remove);
      entries.splice(entries.indexOf(entry), 1);
      super.removeEventListener(type, entry.registered, { capture });
      if (entries.length === 0) this.#tell(type, false);
    };
    const entry: Entry = { listener, capture, registered: once ? call : listener, remove };
    entries.push(entry);
    signal?.addEventListener("abort", remove);
    super.addEventListener(
      type,
      entry.registered,
      passive === undefined ? { capture } : { capture, passive },
    );
    this.#tell(type, true);
  }

  /** Tells the source whether anybody listens. */
  #tell(type: Counted, on: boolean): void {
    if (type === "message") this.#source().listen(on);
    else this.#source().watch(on);
  }

  #find(
    type: Counted,
    listener: PortListener<Event> | null,
    options: boolean | PortListenerOptions | undefined,
  ): Entry | undefined {
    const capture = isCapture(options);
    return this.#entries?.[type].find((each) =>
      each.listener === listener && each.capture === capture
    );
  }

  #handler<E>(type: string): Handler<E> {
    return (this.#handlers?.get(type)?.handler ?? null) as Handler<E>;
  }

  /** A handler has the place among the listeners where it was first set. */
  #setHandler<E>(type: string, handler: Handler<E>): void {
    const set = typeof handler === "function" ? handler as Called : null;
    const handlers = this.#handlers ??= new Map();
    const old = handlers.get(type);
    if (set === null) {
      handlers.delete(type);
      if (old !== undefined) this.removeEventListener(type, old.call);
    } else if (old !== undefined) {
      old.handler = set;
    } else {
      const entry = {
        handler: set,
        call: (event: Event) => void entry.handler.call(this, event as never),
      };
      handlers.set(type, entry);
      this.addEventListener(type, entry.call);
    }
  }
}

function isCounted(type: string): type is Counted {
  return type === "message" || type === "close";
}

function isCapture(options: boolean | PortListenerOptions | undefined): boolean {
  return typeof options === "object" ? options.capture === true : options === true;
}
