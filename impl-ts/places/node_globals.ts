/**
 * What a program for Node without the library `dom` has of the platform's types, in short, as
 * `@types/node` 24 declares it where the package's own declarations could trip: `MessageEvent`
 * without a parameter, `composedPath` with a tuple, no `WebAssembly`.
 *
 * @module
 */

/** A file of declarations; were it one, the check of this repository would take it for true. */
export const NODE_GLOBALS = `
interface Event {
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly srcElement: EventTarget | null;
  composedPath(): [(EventTarget | undefined)?];
  stopImmediatePropagation(): void;
}
declare const Event: { new (type: string): Event };

interface EventTarget {
  addEventListener(type: string, listener: unknown, options?: unknown): void;
  removeEventListener(type: string, listener: unknown, options?: unknown): void;
  dispatchEvent(event: Event): boolean;
}
declare const EventTarget: { new (): EventTarget };

interface MessageEvent extends Event {
  readonly data: any;
}

interface AbortSignal extends EventTarget {
  readonly aborted: boolean;
  readonly reason: any;
}
interface MessagePort extends EventTarget {
  postMessage(value: unknown): void;
}
interface WebSocket extends EventTarget {
  readonly readyState: number;
}
interface ReadableStream<R = any> {
  getReader(): { read(): Promise<{ done: boolean; value?: R }> };
}
interface WritableStream<W = any> {
  getWriter(): { write(chunk: W): Promise<void> };
}
interface URL {
  readonly href: string;
}
`;
