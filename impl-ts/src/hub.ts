/**
 * Many ports in one segment, of which one thread has the hub's side. See `spec/port.md`.
 *
 * @module
 */

import { SegmentError } from "./error.ts";
import { deadlineOfCall, Link, type WaitOptions } from "./pipe.ts";
import { Port, type PortOptions, requirePortOptions } from "./port.ts";
import { type AttachOptions, type Memory, now, Segment } from "./segment.ts";
import { type Channel, type Geometry, requireInteger } from "./segment_geometry.ts";
import { CHANNEL_KIND_RING, ENDPOINT_COUNT_MAX } from "./layout.ts";
import { Selection } from "./select_set.ts";
import { Endpoint, type Stats } from "./wait_endpoint.ts";
import { closeEndpoint, failEndpoint } from "./wait_state.ts";
import { Rung } from "./wait_watch.ts";

/** The hub's endpoint; client `i` has endpoint `i + 1`. */
const HUB = 0;
const DEFAULT_CAPACITY = 64 * 1024;

/**
 * How a hub's side of its ports works.
 *
 * @example
 * ```ts
 * import { Hub, type HubOptions } from "@millrace/millrace/hub";
 *
 * // A port is a hub with one client.
 * const options: HubOptions<string, string> = { codec: "text", queueLimit: 16 };
 * using hub = Hub.create<string, string>(1, { capacity: 4096, ...options });
 * console.log(hub.ports.length); // 1
 * ```
 */
export interface HubOptions<In = unknown, Out = never> extends PortOptions<In, Out> {
  /** A hub is always endpoint 0. */
  readonly side?: undefined;
}

/**
 * How to make a hub.
 *
 * @example
 * ```ts
 * import { Hub, type HubCreateOptions } from "@millrace/millrace/hub";
 *
 * // Short orders to the clients, long answers from them.
 * const options: HubCreateOptions<string, number> = { capacity: [1024, 65_536] };
 * using hub = Hub.create<string, number>(2, options);
 * const sizes = hub.segment.channels.map(({ dataSize }) => dataSize);
 * console.log(sizes.join()); // 1024,65536,1024,65536
 * ```
 */
export interface HubCreateOptions<In = unknown, Out = never>
  extends HubOptions<In, Out>, AttachOptions {
  /** Blank memory, on which others may create the same hub. By default fresh shared memory. */
  readonly memory?: Memory | undefined;
  /** Bytes of each ring, or of those to the clients and those from them. Default 65,536. */
  readonly capacity?: number | readonly [number, number] | undefined;
  /** The position at which the cursors begin; for tests. */
  readonly start?: number | undefined;
}

/**
 * The geometry of a hub with `count` clients, at most 255: endpoint 0 is the hub, endpoint `i + 1`
 * client `i`; channel `2 i` leads to that client, channel `2 i + 1` from it. With one client it is
 * the geometry of a port.
 *
 * @example
 * ```ts
 * import { segmentSize } from "@millrace/millrace";
 * import { hubGeometry } from "@millrace/millrace/hub";
 *
 * segmentSize(hubGeometry(2, { capacity: 1024 })); // 6912
 * ```
 */
export function hubGeometry(count: number, options: HubCreateOptions = {}): Geometry {
  requireInteger("count", count, 1, ENDPOINT_COUNT_MAX - 1);
  const { capacity = DEFAULT_CAPACITY, start = 0 } = options;
  const [there, back] = typeof capacity === "number" ? [capacity, capacity] : capacity;
  const channels = Array.from({ length: count }, (_, client) => [
    { writer: HUB, reader: client + 1, capacity: there, start },
    { writer: client + 1, reader: HUB, capacity: back, start },
  ]);
  return { endpoints: 1 + count, channels: channels.flat() };
}

/**
 * One thread's ports to many others, which share one bell: it can wait for all of them at once.
 * All methods belong to the thread that made it.
 *
 * A client that closes, fails or breaks its rings leaves the others as they are; its own port
 * reports it. But all of them share one segment: a hub is for clients that trust one another.
 *
 * @typeParam In What it reads. @typeParam Out What it writes.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { Hub } from "@millrace/millrace/hub";
 *
 * using hub = Hub.create<string, string>(2);
 * // Usually in two workers, to which `port.handoff()` was posted:
 * const clients = hub.ports.map((port) => Port.from<string>(port.handoff()));
 * for (const client of clients) client.write("ready");
 *
 * for (let port; (port = hub.select({ timeout: 10 })) !== undefined;) {
 *   const message = port.tryRead();
 *   if (message !== undefined) port.write(`${message}, client ${port.peerIndex - 1}`);
 *   else port.close(); // it has ended
 * }
 * console.log(clients[1]?.read()); // "ready, client 1"
 * ```
 */
export class Hub<In = unknown, Out = In> {
  /** The segment in which all ports lie. */
  readonly segment: Segment;
  /**
   * The port to each client, by the client's number. Each is like any other port, but for its
   * `close`, which gives up that client alone: the client's endpoint is closed on its behalf, so
   * that it reads what was published for it and then gets `pipe.closed` from every call; one that
   * has not come yet cannot attach any more. `end` before it lets the client read an end. In place
   * of a client that has died, `vacatePeer(port)`, without `close`, lets the next one in.
   */
  readonly ports: readonly Port<In, Out>[];
  readonly #endpoint: Endpoint;
  readonly #ties: Ties = { openCount: 0, closing: false };
  /** The ports that are open, to be selected from. */
  #open: { ports: Port<In, Out>[]; selection: Selection } | undefined;

  private constructor(segment: Segment, options: HubOptions<In, Out>) {
    requireHubOptions(options);
    Endpoint.requireVacant(segment, HUB);
    const pairs = findPairs(segment);
    this.segment = segment;
    this.#endpoint = Endpoint.attach(segment, HUB, options);
    this.#endpoint.watch.rung = new Rung(segment, HUB);
    this.ports = pairs.map(([outgoing, incoming]) => {
      const link = new HubLink(this.#endpoint, outgoing.reader, this.#ties);
      return new Port<In, Out>(link, outgoing, incoming, options);
    });
  }

  /**
   * Makes a hub for `count` clients, by default in fresh memory. Post `hub.ports[i].handoff()` to
   * client `i`, which calls `Port.from` on it, or `Port.attach(memory, { endpoint: i + 1 })`.
   *
   * @throws {RangeError} if `count` is not from 1 to 255, or a capacity no power of two from 256.
   * @throws {SegmentError} if the memory given cannot be used.
   */
  static create<In = unknown, Out = In>(
    count: number,
    options: HubCreateOptions<In, Out> = {},
  ): Hub<In, Out> {
    const geometry = hubGeometry(count, options as HubCreateOptions);
    const { memory } = options;
    requireHubOptions(options); // before anything of the memory is touched
    const segment = memory === undefined
      ? Segment.allocate(geometry)
      : Segment.create(memory, geometry, options);
    return new Hub<In, Out>(segment, options);
  }

  /**
   * Attaches as the hub to a segment that another thread has made. Blocks until it is formatted.
   *
   * @throws {SegmentError} if it is not formatted in time, is no hub, or has a hub already.
   */
  static attach<In = unknown, Out = In>(
    memory: Memory,
    options: HubOptions<In, Out> & AttachOptions = {},
  ): Hub<In, Out> {
    return new Hub<In, Out>(Segment.attach(memory, options), options);
  }

  /** `attach` without blocking. */
  static async attachAsync<In = unknown, Out = In>(
    memory: Memory,
    options: HubOptions<In, Out> & WaitOptions = {},
  ): Promise<Hub<In, Out>> {
    return new Hub<In, Out>(await Segment.attachAsync(memory, options), options);
  }

  /** The memory of the hub, to be posted to its clients. */
  get memory(): Memory {
    return this.segment.memory;
  }

  /** What this endpoint has counted, for all ports together. */
  get stats(): Stats {
    return this.#endpoint.stats;
  }

  /**
   * `select` over the ports that are not closed: blocks until one can be read, and returns it.
   * `undefined` at the timeout, and at once when all of them are closed. Close a port when its
   * stream has ended or it has failed: until then it is returned again and again, in its turn.
   */
  select(options?: WaitOptions): Port<In, Out> | undefined {
    const open = this.#select();
    return open?.ports[open.selection.select(options ?? {})];
  }

  /** `select` without blocking. A port that is closed meanwhile is left out. */
  async selectAsync(options?: WaitOptions): Promise<Port<In, Out> | undefined> {
    const deadline = deadlineOfCall(options);
    for (;;) {
      const open = this.#select();
      const timeout = Math.max(0, deadline - now());
      const port = open?.ports[await open.selection.selectAsync({ ...options, timeout })];
      // Not one that was closed meanwhile.
      if (port === undefined || !port.reader.inlet.link.closed) return port;
    }
  }

  /**
   * Closes the hub's endpoint, and so all its ports at once: each client reads what was published
   * for it, then gets `peer.closed`. Waits of the hub's ports, here or in async calls, end.
   */
  close(): void {
    this.#ties.closing = true;
    for (const port of this.ports) port.close();
    this.#endpoint.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #select(): { ports: Port<In, Out>[]; selection: Selection } | undefined {
    const { openCount } = this.#ties;
    if (openCount === 0) return undefined;
    if (this.#open?.ports.length !== openCount) {
      const ports = this.ports.filter(({ reader }) => !reader.inlet.link.closed);
      this.#open = { ports, selection: new Selection(ports) };
    }
    return this.#open;
  }
}

/** What the links of a hub have in common. */
interface Ties {
  /** How many of them are not closed. */
  openCount: number;
  /** Whether the hub itself is being closed. */
  closing: boolean;
}

/**
 * What the hub knows of one client. Its endpoint is that of all ports, so what a port does with the
 * endpoint of its own is done here for one port alone.
 */
class HubLink extends Link {
  readonly #ties: Ties;

  /** Joins the links of the hub. */
  constructor(endpoint: Endpoint, peer: number, ties: Ties) {
    super(endpoint, peer);
    this.#ties = ties;
    ties.openCount++;
  }

  /**
   * Drops what is not published or not delivered, and gives the client up. There is no state for
   * one port of an endpoint, so the client's own is changed, as its supervisor may: from attached
   * to closed, which ends its waits, or from vacant to failed, so that it need not come any more.
   */
  override close(): void {
    if (this.closed) return;
    this.#ties.openCount--;
    this.drop();
    if (this.#ties.closing) return;
    const { segment, mechanism } = this.endpoint;
    if (!closeEndpoint(segment, this.peer, mechanism)) {
      failEndpoint(segment, this.peer, "peer.terminated", mechanism);
    }
    this.endpoint.watch.look();
  }
}

function requireHubOptions(options: HubOptions): void {
  requirePortOptions(options);
  if (options.side === undefined) return;
  throw new TypeError(`Cannot make hub: it has no side ${options.side}`);
}

/** The rings to and from each client. */
function findPairs(segment: Segment): [Channel, Channel][] {
  const rings = segment.channels.filter(({ kind }) => kind === CHANNEL_KIND_RING);
  if (segment.endpointCount === 1) {
    throw new SegmentError("segment.channel", "Cannot attach hub: it has no clients");
  }
  return Array.from({ length: segment.endpointCount - 1 }, (_, client) => {
    const outgoing = rings.find(({ writer, reader }) => writer === HUB && reader === client + 1);
    const incoming = rings.find(({ writer, reader }) => reader === HUB && writer === client + 1);
    if (outgoing !== undefined && incoming !== undefined) return [outgoing, incoming];
    throw new SegmentError("segment.channel", "Cannot attach hub: a client lacks its rings");
  });
}
