/** A page whose policy allows no WebAssembly takes digests nevertheless. */
import { Sha1 } from "millrace/digest";
import { assertEquals } from "../stage.ts";

/** What of a page's document is used here. */
interface Page {
  document: {
    createElement(name: string): { httpEquiv: string; content: string };
    head: { append(element: unknown): void };
  };
}

/** The least that is a module. */
const EMPTY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

export default async function main(): Promise<void> {
  new WebAssembly.Module(EMPTY);
  const { document } = globalThis as unknown as Page;
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = "script-src 'self'";
  document.head.append(policy);
  assertEquals(isRefused(), true);
  const bytes = Uint8Array.from({ length: 200_000 }, (_, at) => at * 7 + (at >> 8));
  const expected = new Uint8Array(await crypto.subtle.digest("SHA-1", bytes));
  // So many that it would make its core.
  for (let n = 0; n < 85; n++) new Sha1().update(bytes);
  const digest = new Sha1().update(bytes.subarray(0, 100_000));
  assertEquals(digest.update(bytes.subarray(100_000)).digest(), expected);
}

function isRefused(): boolean {
  try {
    return new WebAssembly.Module(EMPTY) === undefined;
  } catch (error) {
    return error instanceof WebAssembly.CompileError;
  }
}
