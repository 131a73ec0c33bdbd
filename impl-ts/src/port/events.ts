/**
 * The events of a port, and the types of what listens to them.
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

const NONE: readonly [] = /* @__PURE__ */ Object.freeze([]) as [];

/** An event of a port. Members of the platform's event that are getters there are fields here. */
export class PortEvent extends Event {
  override readonly target: EventTarget;
  override readonly currentTarget: EventTarget;
  readonly origin = "";
  readonly lastEventId = "";
  readonly source: null = null;
  readonly ports: readonly [] = NONE;
  declare readonly data: unknown;
  declare readonly error: MillraceError | undefined;
  /** Whether no further listener may be called. */
  declare isStopped: boolean | undefined;

  /** Makes the event of a port. */
  constructor(type: string, port: EventTarget, data: unknown, error?: MillraceError | undefined) {
    super(type);
    this.target = this.currentTarget = port;
    this.data = data;
    this.error = error;
  }

  override composedPath(): [EventTarget] {
    return [this.target];
  }

  override stopImmediatePropagation(): void {
    this.isStopped = true;
  }
}
