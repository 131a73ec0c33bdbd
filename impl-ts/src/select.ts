/**
 * Waiting for several ports or readers at once. See `spec/wait.md`.
 *
 * @module
 */

import { deadlineOf, type Link, type WaitOptions } from "./pipe.ts";
import type { Reader } from "./pipe_reader.ts";
import { requireTimeout } from "./segment.ts";
import type { Waitable } from "./wait.ts";
import type { Endpoint } from "./wait_endpoint.ts";

/**
 * What can be waited for together with others: a reader, or a port.
 *
 * @example
 * ```ts
 * import { Port, type Selectable, selectAsync } from "@millrace/millrace";
 *
 * const ports = [Port.create<string>(), Port.create<string>()];
 * const names = new Map<Selectable, string>([[ports[0]!, "left"], [ports[1]!, "right"]]);
 * Port.attach<string>(ports[1]!.memory).write("hello"); // usually in another thread
 * const ready = await selectAsync([...names.keys()]);
 * console.log(names.get(ready!)); // "right"
 * for (const port of ports) port.close();
 * ```
 */
export type Selectable = Reader<unknown> | { readonly reader: Reader<unknown> };

/**
 * Blocks until one of the ports can be read, and returns it: a `tryRead` of it then returns a
 * message, finds that the stream has ended, or throws. `undefined` at the timeout.
 *
 * Where several can be read it is the one that was chosen longest ago, so that none is starved. A
 * port that has ended, was closed, or whose peer failed can always be "read": leave it out of the
 * next call.
 *
 * All of them must be ports of one hub, which share one bell: one thread cannot sleep on several.
 * To learn that a message of several frames is complete, it is collected; what `peek` has lent must
 * be given back before.
 *
 * @throws {TypeError} if there are none, if they belong to several endpoints and `timeout` is not
 * 0, or if a frame of one is lent.
 * @throws {ForbiddenError} on a thread that must not block, after a few looks.
 *
 * @example
 * ```ts
 * import { Hub, Port, select } from "@millrace/millrace";
 *
 * using hub = Hub.create<string>(2);
 * using client = Port.attach<string>(hub.memory, { endpoint: 2 }); // usually in a worker
 * client.write("hello");
 * const port = select(hub.ports, { timeout: 1000 });
 * console.log(port === hub.ports[1], port?.tryRead()); // true "hello"
 * ```
 */
export function select<P extends Selectable>(
  ports: readonly P[],
  options: WaitOptions = {},
): P | undefined {
  return ports[new Selection(ports).select(options)];
}

/**
 * `select` without blocking, and over any ports and readers of this thread.
 *
 * @throws {TypeError} if there are none, or if a frame of one is lent.
 *
 * @example
 * ```ts
 * import { Port, selectAsync } from "@millrace/millrace";
 *
 * const ports = [Port.create<number>(), Port.create<number>()];
 * Port.attach<number>(ports[1]!.memory).write(7); // usually in a worker
 * const port = await selectAsync(ports, { timeout: 1000 });
 * console.log(port?.tryRead()); // 7
 * for (const each of ports) each.close();
 * ```
 */
export async function selectAsync<P extends Selectable>(
  ports: readonly P[],
  options: WaitOptions = {},
): Promise<P | undefined> {
  // A copy: the caller may change the array meanwhile.
  const copy = [...ports];
  return copy[await new Selection(copy).selectAsync(options)];
}

/** When a reader was chosen last, counted in choices. */
const chosen = new WeakMap<object, number>();
let choices = 0;

/** Several readers, and how to wait for all of them. */
export class Selection {
  readonly #readers: readonly Reader<unknown>[];
  readonly #groups: readonly Group[];

  /** @throws {TypeError} if there is nothing to select from. */
  constructor(ports: readonly Selectable[]) {
    if (ports.length === 0) throw new TypeError("Cannot select: there are no ports");
    this.#readers = ports.map((port) => "reader" in port ? port.reader : port);
    const groups = new Map<Endpoint, Group>();
    for (const { link } of this.#readers) {
      const group = groups.get(link.endpoint);
      if (group === undefined) groups.set(link.endpoint, new Group(link));
      else group.links.push(link);
    }
    this.#groups = [...groups.values()];
  }

  /** The index of one that can be read, or -1 at the timeout. */
  select(options: WaitOptions): number {
    const timeout = requireTimeout(options.timeout, Infinity);
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
      if (timeout > 0) group!.links[0]!.flushPosts();
      for (const each of this.#groups) each.settle();
      if (performance.now() >= deadline) return -1;
      group!.wait(deadline, waits);
    }
  }

  /** `select` without blocking. */
  async selectAsync(options: WaitOptions): Promise<number> {
    const timeout = requireTimeout(options.timeout, Infinity);
    const { signal } = options;
    signal?.throwIfAborted();
    const deadline = deadlineOf(timeout);
    await this.#groups[0]!.endpoint.giveWay();
    for (;;) {
      const found = this.#find();
      if (found >= 0) return found;
      for (const each of this.#groups) each.settle();
      if (performance.now() >= deadline) return -1;
      await this.#waitAsync(deadline, signal);
    }
  }

  /** Looks at all, and takes the one that was chosen longest ago. */
  #find(): number {
    let found = -1;
    let least = Infinity;
    for (let index = 0; index < this.#readers.length; index++) {
      const reader = this.#readers[index]!;
      if (!reader.waiting.poll()) continue;
      const last = chosen.get(reader) ?? 0;
      if (last >= least) continue;
      found = index;
      least = last;
    }
    if (found >= 0) chosen.set(this.#readers[found]!, ++choices);
    return found;
  }

  /** Sleeps on all bells, each of which ends the sleep on the others. */
  async #waitAsync(deadline: number, signal: AbortSignal | undefined): Promise<void> {
    const [group, ...others] = this.#groups;
    if (others.length === 0) return await group!.waitAsync(deadline, signal);
    signal?.throwIfAborted();
    const over = new AbortController();
    const stop = () => over.abort();
    signal?.addEventListener("abort", stop);
    const waits = this.#groups.map((each) => each.waitAsync(deadline, over.signal));
    try {
      await Promise.race(waits);
    } catch (error) {
      if (!over.signal.aborted) throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      stop();
      await Promise.allSettled(waits); // all words are disarmed behind this
    }
    signal?.throwIfAborted();
  }
}

/** The links of one endpoint. It is woken by each of them, and sleeps on the one bell. */
class Group implements Waitable {
  readonly links: Link[];
  readonly endpoint: Endpoint;

  constructor(link: Link) {
    this.links = [link];
    this.endpoint = link.endpoint;
  }

  look(): boolean {
    for (const link of this.links) {
      if (link.incoming!.look() || link.peerGone()) return true;
    }
    return false;
  }

  arm(): void {
    for (const link of this.links) link.incoming!.arm();
  }

  disarm(): void {
    for (const link of this.links) link.incoming!.disarm();
  }

  /** Several links of one endpoint are those of a hub, each of which settles all. */
  settle(): void {
    this.links[0]!.settle();
  }

  /** Blocks until one of them may have something, for a slice at most, or until the deadline. */
  wait(deadline: number, waits: number): void {
    const peer = this.#hardest();
    // [wait.slice] A client that attaches may ring another mechanism.
    const end = performance.now() + this.endpoint.sliceMs(peer);
    this.endpoint.wait(this, undefined, peer, Math.min(deadline, end), waits);
  }

  /** The same for an event loop; it sleeps once at most. */
  async waitAsync(deadline: number, signal: AbortSignal | undefined): Promise<void> {
    await this.endpoint.waitAsync(this, undefined, this.#hardest(), deadline, signal);
  }

  /**
   * A peer that cannot ring this endpoint, which then polls, if there is one; else one for which
   * its slices are the shortest. [wait.mechanism] [wait.slice]
   */
  #hardest(): number {
    const { endpoint, links } = this;
    const silent = links.find(({ peer }) => !endpoint.wakeable(peer));
    return (silent ?? links.find(({ peer }) => endpoint.isVacant(peer)) ?? links[0]!).peer;
  }
}
