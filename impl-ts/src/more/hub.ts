/**
 * Many ports in one segment; one thread has the hub's side of all of them. See `spec/port.md`.
 *
 * @module
 */

import { requireOptions, SegmentError } from "../error.ts";
import { deadlineOfCall, Link, type WaitOptions } from "../pipe/pipe.ts";
import { Port, type PortOptions, requirePortOptions } from "../port/port.ts";
import { type AttachOptions, type Memory, now, Segment } from "../memory/segment.ts";
import { type Channel, type Geometry, requireInteger } from "../memory/segment_geometry.ts";
import { CHANNEL_KIND_RING, ENDPOINT_COUNT_MAX } from "../memory/layout.ts";
import { Selection } from "./select_set.ts";
import { Endpoint, type Stats } from "../wait/endpoint.ts";
import { closeEndpoint, failEndpoint } from "../wait/state.ts";
import { Rung } from "../wait/watch.ts";

/** The index of the hub's endpoint; client `i` has endpoint `i + 1`. */
const HUB = 0;
const DEFAULT_CAPACITY = 64 * 1024;

/**
 * Options of the hub's side of its ports.
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
export interface HubOptions<In = unknown, Out = In> extends PortOptions<In, Out> {
  /** A hub is always endpoint 0. */
  readonly side?: undefined;
}

/**
 * Options for making a hub.
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
export interface HubCreateOptions<In = unknown, Out = In>
  extends HubOptions<In, Out>, AttachOptions {
  /**
   * Blank memory, on which other threads may create the same hub. By default fresh shared memory.
   */
  readonly memory?: Memory | undefined;
  /**
   * Bytes of each ring; or a pair, for the rings to the clients and for those from them. Default
   * 65,536.
   */
  readonly capacity?: number | readonly [number, number] | undefined;
  /** The position at which the cursors begin; for tests. */
  readonly start?: number | undefined;
}

/**
 * Returns the geometry of a hub with `count` clients, at most 255. Endpoint 0 is the hub's,
 * endpoint `i + 1` is that of client `i`. Channel `2 i` leads to that client, channel `2 i + 1`
 * from it. With one client it is the geometry of a port.
 *
 * @example
 * ```ts
 * import { segmentSize } from "@millrace/millrace";
 * import { hubGeometry } from "@millrace/millrace/hub";
 *
 * segmentSize(hubGeometry(2, { capacity: 1024 })); // 6912
 * ```
 */
export function hubGeometry(
  count: number,
  options: HubCreateOptions<unknown, never> = {},
): Geometry {
  requireInteger("count", count, 1, ENDPOINT_COUNT_MAX - 1);
  const { capacity = DEFAULT_CAPACITY, start = 0 } = requireOptions(options);
  const [there, back] = typeof capacity === "number" ? [capacity, capacity] : capacity;
  const channels = Array.from({ length: count }, (_, client) => [
    { writer: HUB, reader: client + 1, capacity: there, start },
    { writer: client + 1, reader: HUB, capacity: back, start },
  ]);
  return { endpoints: 1 + count, channels: channels.flat() };
}

/**
 * The ports of one thread to many others. They share one bell, so the thread can wait for all of
 * them at once. Only the thread that made the hub may call its methods.
 *
 * A client that closes, fails or breaks its rings leaves the others as they are, and its own port
 * reports it. But all clients share one segment: a hub is for clients that trust one another.
 *
 * @typeParam In The values that it reads. @typeParam Out The values that it writes.
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
   * The port to each client, by the client's number. Each is like any other port, except for its
   * `close`, which gives up that client alone. It closes the client's endpoint on the client's
   * behalf: the client reads what was published for it, and then gets `pipe.closed` from every
   * call. A client that has not attached yet cannot attach any more. `end` before `close` lets the
   * client read an end. If a client has died, `vacatePeer(port)` without `close` lets the next one
   * attach in its place.
   */
  readonly ports: readonly Port<In, Out>[];
  readonly #endpoint: Endpoint;
  readonly #ties: Ties = { openCount: 0, closing: false };
  /** The ports that are open, and the selection from them. */
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
   * client `i`, which calls `Port.from` with it; or post the memory, and the client calls
   * `Port.attach(memory, { endpoint: i + 1 })`.
   *
   * @throws {RangeError} if `count` is not from 1 to 255, or a capacity is no power of two from
   * 256.
   * @throws {SegmentError} if the memory given cannot be used.
   */
  static create<In = unknown, Out = In>(
    count: number,
    options: HubCreateOptions<In, Out> = {},
  ): Hub<In, Out> {
    const geometry = hubGeometry(count, options);
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

  /** What the hub's endpoint has counted since it attached, for all ports together. */
  get stats(): Stats {
    return this.#endpoint.stats;
  }

  /**
   * `select` over the ports that are not closed: blocks until one can be read, and returns it.
   * Returns `undefined` at the timeout, and at once if all of them are closed. Close a port when
   * its stream has ended or it has failed: until then it is returned again and again, in its turn.
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
      // A port that was closed meanwhile is not returned.
      if (port === undefined || !port.reader.inlet.link.closed) return port;
    }
  }

  /**
   * Closes the hub's endpoint, and so all its ports at once. Each client reads what was published
   * for it, and then gets `peer.closed`. All waits of the hub's ports end, asynchronous ones
   * included.
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

/** What the links of one hub share. */
interface Ties {
  /** How many of the links are not closed. */
  openCount: number;
  /** Whether the hub itself is being closed. */
  closing: boolean;
}

/**
 * What the hub knows of one client. All ports of a hub share its endpoint, so this link does for
 * its one port alone what the link of an ordinary port does to its whole endpoint.
 */
class HubLink extends Link {
  readonly #ties: Ties;

  /** Makes one of the hub's links. */
  constructor(endpoint: Endpoint, peer: number, ties: Ties) {
    super(endpoint, peer);
    this.#ties = ties;
    ties.openCount++;
  }

  /**
   * Drops what is not published or not delivered, and gives the client up. An endpoint has one
   * state for all its ports, so this changes the state of the client's endpoint instead, as a
   * supervisor may: from attached to closed, which ends the client's waits, or from vacant to
   * failed, so that the client need not come any more.
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

function requireHubOptions(options: HubOptions<unknown, never>): void {
  requirePortOptions(options);
  if (options.side === undefined) return;
  throw new TypeError(`Cannot make hub: it has no side ${options.side}`);
}

/** Finds the rings to and from each client. */
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
