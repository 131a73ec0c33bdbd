/**
 * The readers that are waited for together, and the choice of the next one to read.
 *
 * @module
 */

import { deadlineOf, type WaitOptions } from "../pipe/pipe.ts";
import { findReadable } from "../pipe/inbox.ts";
import type { Inlet } from "../pipe/inlet.ts";
import type { Reader } from "../pipe/reader.ts";
import { isPast, requireTimeout } from "../memory/segment.ts";
import type { Selectable } from "./select.ts";
import type { Endpoint } from "../wait/endpoint.ts";
import { Several } from "../wait/wait.ts";

/** The number of the choice in which each reader was chosen last. */
const chosen = new WeakMap<object, number>();
let choices = 0;

/** Several readers, and the waits for all of them at once. */
export class Selection {
  readonly #readers: readonly Reader<unknown>[];
  readonly #groups: readonly Group[];

  /** @throws {TypeError} if there is nothing to select from. */
  constructor(ports: readonly Selectable[]) {
    if (ports.length === 0) throw new TypeError("Cannot select: there are no ports");
    this.#readers = ports.map((port) => "reader" in port ? port.reader : port);
    const parts = new Map<Endpoint, Inlet[]>();
    for (const { inlet } of this.#readers) {
      const { endpoint } = inlet;
      const group = parts.get(endpoint);
      if (group === undefined) parts.set(endpoint, [inlet]);
      else group.push(inlet);
    }
    this.#groups = [...parts].map(([endpoint, inlets]) => ({
      endpoint,
      what: new Several(inlets),
    }));
  }

  /** Returns the index of a reader that can be read, or -1 at the timeout. */
  select(options: WaitOptions): number {
    const timeout = requireTimeout(options, Infinity);
    options.signal?.throwIfAborted();
    const [group, ...others] = this.#groups;
    if (others.length > 0 && timeout > 0) {
      throw new TypeError(
        "Cannot select: these ports belong to several endpoints, which no thread can block for " +
          "at once; use the ports of a hub, or selectAsync",
      );
    }
    const deadline = deadlineOf(timeout);
    for (let waits = 0;; waits++) {
      const found = this.#find();
      if (found >= 0) return found;
      for (const { endpoint } of this.#groups) endpoint.settle();
      if (isPast(deadline)) return -1;
      group!.endpoint.wait(group!.what, deadline, waits);
    }
  }

  /** `select` without blocking. */
  async selectAsync(options: WaitOptions): Promise<number> {
    const timeout = requireTimeout(options, Infinity);
    const { signal } = options;
    signal?.throwIfAborted();
    const deadline = deadlineOf(timeout);
    await this.#groups[0]!.endpoint.giveWay();
    for (;;) {
      const found = this.#find();
      if (found >= 0) return found;
      for (const { endpoint } of this.#groups) endpoint.settle();
      if (isPast(deadline)) return -1;
      await this.#waitAsync(deadline, signal);
    }
  }

  /**
   * Looks at all readers. Of those that can be read, chooses the one that was chosen longest ago.
   */
  #find(): number {
    let found = -1;
    let least = Infinity;
    for (let index = 0; index < this.#readers.length; index++) {
      const reader = this.#readers[index]!;
      if (!findReadable(reader.inlet)) continue;
      const last = chosen.get(reader) ?? 0;
      if (last >= least) continue;
      found = index;
      least = last;
    }
    if (found >= 0) chosen.set(this.#readers[found]!, ++choices);
    return found;
  }

  /** Sleeps on all bells at once. When one sleep ends, it ends the others. */
  async #waitAsync(deadline: number, signal: AbortSignal | undefined): Promise<void> {
    const [group, ...others] = this.#groups;
    if (others.length === 0) return await waitAsync(group!, deadline, signal);
    signal?.throwIfAborted();
    const over = new AbortController();
    const stop = () => over.abort();
    signal?.addEventListener("abort", stop);
    const waits = this.#groups.map((each) => waitAsync(each, deadline, over.signal));
    try {
      await Promise.race(waits);
    } catch (error) {
      if (!over.signal.aborted) throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      stop();
      await Promise.allSettled(waits); // all `wants` words are disarmed after this
    }
    signal?.throwIfAborted();
  }
}

/** The readers of one endpoint. One sleep on its bell waits for all of them. */
interface Group {
  readonly endpoint: Endpoint;
  readonly what: Several;
}

async function waitAsync(
  { endpoint, what }: Group,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  await endpoint.waitAsync(what, deadline, signal);
}
