/** Two threads take digests of the same shared bytes, and compare them with the platform's. */
import { Sha1, sha256 } from "millrace/digest";
import { assertEquals, type Stage } from "../stage.ts";

/** So many that both make their core, where WebAssembly is there. */
const SIZE = 18 << 20;

export default async function main(stage: Stage): Promise<void> {
  const bytes = new Uint8Array(new SharedArrayBuffer(SIZE));
  for (let at = 0; at < SIZE; at++) bytes[at] = at * 7 + (at >> 8);
  const worker = stage.start();
  worker.postMessage(bytes);
  const here = new Sha1();
  for (let at = 0; at < SIZE; at += 77_777) here.update(bytes.subarray(at, at + 77_777));
  const [sha1, other] = await Promise.all(["SHA-1", "SHA-256"].map((name) => hexOf(name, bytes)));
  assertEquals(here.hex(), sha1);
  assertEquals(new Uint8Array(await digestOf("SHA-256", bytes)), sha256(bytes));
  assertEquals(await worker.result, [sha1, other]);
}

async function hexOf(name: string, bytes: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await digestOf(name, bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The platform's own takes no shared memory. */
function digestOf(name: string, bytes: Uint8Array): Promise<ArrayBuffer> {
  return crypto.subtle.digest(name, Uint8Array.from(bytes));
}
