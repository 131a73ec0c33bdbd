/**
 * An outpost of the kit in Node: orders come in as lines, verdicts go out as lines.
 *
 * @module
 */

import { readFile } from "node:fs/promises";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Worker as NodeWorker } from "node:worker_threads";
import { Outpost } from "./outpost.ts";

/** A worker as those of the web look, as far as the kit uses them. */
class WebWorker {
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: ((event: { message: string; preventDefault(): void }) => void) | null = null;
  readonly #worker: NodeWorker;

  constructor(url: URL) {
    this.#worker = new NodeWorker(url);
    this.#worker.on("message", (data) => this.onmessage?.({ data }));
    this.#worker.on("error", (error) => {
      const { stack, message } = error as Error;
      this.onerror?.({ message: stack ?? message, preventDefault() {} });
    });
  }

  postMessage(message: unknown): void {
    this.#worker.postMessage(message);
  }

  terminate(): void {
    void this.#worker.terminate();
  }
}

Object.assign(globalThis, { Worker: WebWorker });

async function read(address: string): Promise<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = await readFile(fileURLToPath(address));
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
}

const outpost = new Outpost(read);
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await outpost.play(JSON.parse(line))) + "\n");
}
process.exit(0);
