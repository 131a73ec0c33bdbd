/**
 * Sees what holds at a file for microseconds only, by a thread that looks all the time.
 *
 * @module
 */

import { CONTROL, type Seen, type WatchOrder } from "../file_watcher.ts";
import * as system from "../system.ts";
import { rest } from "./watch.ts";

const URL_OF_WATCHER = new URL("../file_watcher.ts", import.meta.url);
/** Within which the thread begins, and ends: it does nothing else. */
const PATIENCE_MS = 10_000;

/**
 * A thread that looks at files, one after the other. It has a processor of its own, as far as that
 * is in the kit's hands: the testee runs on the others meanwhile, or it would often run in place of
 * the thread that is to see it.
 */
export class FileWatch {
  readonly #worker = new Worker(URL_OF_WATCHER, { type: "module" });
  readonly #testee: number;
  readonly #processors: number[];
  #control = new Int32Array(new SharedArrayBuffer(8));
  #seen: Promise<Seen | undefined> = Promise.resolve(undefined);

  /** `testee` is its first thread, which does what is looked at. */
  constructor(testee: number) {
    this.#testee = testee;
    this.#processors = system.processorsOf(testee);
    const others = this.#processors.slice(0, -1);
    if (others.length > 0) system.setProcessors(testee, others);
  }

  /** Begins to look, and returns when it does. */
  async begin(order: Omit<WatchOrder, "control" | "processor">): Promise<void> {
    const buffer = new SharedArrayBuffer(8);
    this.#control = new Int32Array(buffer);
    this.#seen = new Promise((resolve, reject) => {
      this.#worker.onmessage = ({ data }) => resolve(data.seen);
      this.#worker.onerror = (event) => (event.preventDefault(), reject(new Error(event.message)));
    });
    const processor = this.#processors.at(-1) ?? 0;
    this.#seen.catch(() => {}); // it is asked for later, or not at all
    this.#worker.postMessage({ ...order, processor, control: buffer } satisfies WatchOrder);
    const deadline = performance.now() + PATIENCE_MS;
    while (Atomics.load(this.#control, CONTROL.begun) === 0) {
      if (performance.now() > deadline) throw new Error("the watching thread does not begin");
      await rest(0);
    }
  }

  /** Ends the looking; what was seen, if anything was. */
  async end(): Promise<Seen | undefined> {
    Atomics.store(this.#control, CONTROL.stop, 1);
    return await this.#seen;
  }

  close(): void {
    Atomics.store(this.#control, CONTROL.stop, 1);
    this.#worker.terminate();
    if (this.#processors.length > 0) system.setProcessors(this.#testee, this.#processors);
  }
}
