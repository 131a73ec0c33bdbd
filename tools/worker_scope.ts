/**
 * A worker's global scope, typed. The library with its types and the one with a page's exclude one
 * another, and one checker sees both kinds of file.
 *
 * @module
 */

interface WorkerScope {
  // deno-lint-ignore no-explicit-any -- as in the platform's own declaration
  onmessage: ((event: MessageEvent<any>) => void) | null;
  postMessage(message: unknown): void;
}

/** The global scope of the worker that imports this. */
export const scope = globalThis as unknown as WorkerScope;
