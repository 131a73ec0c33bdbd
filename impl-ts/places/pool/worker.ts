import { work } from "millrace/pool";

export const handlers = work({
  twice: (n: number) => 2 * n,
  echo: (bytes: Uint8Array) => bytes,
  fail(text: string): never {
    throw new RangeError(text);
  },
  wait: (_: number, { signal }) =>
    new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("told"))),
});

/** Where this module comes later than the first message, it hears of that here. */
export default function worker(data: unknown): Promise<never> {
  const { dispatchEvent } = globalThis as { dispatchEvent?: (event: Event) => boolean };
  dispatchEvent?.call(globalThis, new MessageEvent("message", { data }));
  return new Promise(() => {});
}
