/**
 * Many ports in one segment; one thread has the hub's side of all of them. See `spec/port.md`.
 *
 * @module
 */

import { Link } from "../pipe/link.ts";
import { deadlineOfCall, type WaitOptions } from "../pipe/options.ts";
import { Port } from "../port/port.ts";
import { type PortOptions, requirePortOptions } from "../port/options.ts";
import { type AttachOptions, type Memory, Segment } from "../memory/segment.ts";
import { now } from "../memory/clock.ts";
import { type Channel, type Geometry, recordAt, requireInteger } from "../memory/plan.ts";
import { layout } from "../memory/layout.ts";
import { Selection } from "./select_set.ts";
import {
  attachEndpoint,
  Demand,
  type Endpoint,
  type HubWaits,
  leaveEndpoint,
  look,
  requireVacant,
  type Stats,
  statsOfEndpoint,
  type Waiter,
} from "../wait/endpoint.ts";
import { closeEndpoint, failEndpoint, hasLeft } from "../wait/state.ts";
import { store } from "../ring/side.ts";
import { requireOptions, throwSegmentError } from "../error.ts";

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
  requireInteger("count", count, 1, layout.ENDPOINT_COUNT_MAX - 1);
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
 *   if (message !== undefined) port.write(`${message}, client ${hub.ports.indexOf(port)}`);
 *   else port.close(); // it has ended
 * }
 * console.log(clients[1]?.read()); // "ready, client 1"
 * ```
 */
export class Hub<In = unknown, Out = In> {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "Hub";

  /** The segment in which all ports lie. */
  readonly segment: Segment;
  /**
   * The port to each client, by the client's number. Each is like any other port, except for its
   * `close`, which gives up that client alone. It closes the client's endpoint on the client's
   * behalf: the client reads what was published for it, and then gets `pipe.closed` from every
   * call. A client that has not attached yet cannot attach any more. `end` before `close` lets the
   * client read an end. If a client has died, `revive(port)` without `close` lets the next one
   * attach in its place.
   */
  readonly ports: readonly Port<In, Out>[];
  readonly #endpoint: Endpoint;
  readonly #ties: Ties = { open: undefined, closing: false, ports: [] };

  private constructor(segment: Segment, options: HubOptions<In, Out>) {
    requireHubOptions(options);
    requireVacant(segment, HUB);
    const pairs = findPairs(segment);
    this.segment = segment;
    this.#endpoint = attachEndpoint(segment, HUB, options);
    this.#endpoint.hub = new PortsOfHub(this.#endpoint);
    this.ports = this.#ties.ports = pairs.map(([outgoing, incoming]) => {
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
    return statsOfEndpoint(this.#endpoint);
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
      if (port === undefined || !port.link.isClosed) return port;
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
    leaveEndpoint(this.#endpoint);
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #select(): { ports: Port<In, Out>[]; selection: Selection } | undefined {
    const ties = this.#ties;
    if (ties.open === undefined) {
      const ports = this.ports.filter(({ link }) => !link.isClosed);
      if (ports.length === 0) return undefined;
      ties.open = { ports, selection: new Selection(ports) };
    }
    return ties.open;
  }
}

/** What the links of one hub share. */
interface Ties {
  /** The ports that are open, and the selection from them; undefined when they change. */
  // deno-lint-ignore no-explicit-any -- They are typed where the hub shows them.
  open: { ports: any[]; selection: Selection } | undefined;
  /** Whether the hub itself is being closed. */
  closing: boolean;
  /** The ports, as the hub shows them. */
  // deno-lint-ignore no-explicit-any -- They are typed where the hub shows them.
  ports: any[];
}

/** With more waits than this, only those whose peers rang are looked at. */
const FEW = 4;

/** The waits of a hub: they look at those ports alone whose clients have rung. */
class PortsOfHub implements HubWaits {
  readonly #endpoint: Endpoint;
  readonly #rung: Rung;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    this.#rung = new Rung(endpoint.segment, HUB);
  }

  join(waiter: Waiter): Waiter {
    return new Whole(waiter);
  }

  publish(): void {
    for (const link of this.#endpoint.waiters) { // [port.hub_publish]
      if (!(link instanceof Link) || !owes(link)) continue;
      store(link.outgoing!);
      store(link.incoming!);
    }
  }

  choose(): ((waiter: Waiter) => boolean) | undefined {
    const { waiters, demands } = this.#endpoint;
    // A peer that cannot ring has to be looked at each time.
    const mayBeSome = waiters.length > FEW && (demands & Demand.DEAF) === 0 &&
      !hasLeft(this.#endpoint);
    const isSome = this.#rung.take(mayBeSome ? layout.WAIT_SLICE_MS : 0);
    return isSome ? (link) => !(link instanceof Link) || this.#rung.names(link.peer) : undefined;
  }
}

/** The link of one port of a hub. */
class HubLink extends Link {
  readonly #ties: Ties;

  /** Makes one of the hub's links. */
  constructor(endpoint: Endpoint, peer: number, ties: Ties) {
    super(endpoint, peer);
    this.#ties = ties;
  }

  override again(): Link {
    return new HubLink(this.endpoint, this.peer, this.#ties);
  }

  override replace(old: Port, next: Port): void {
    const { ports } = this.#ties;
    ports[ports.indexOf(old)] = next;
    this.#ties.open = undefined;
  }

  /**
   * Closes the endpoint of the client on its behalf, as the hub's own state is one for all clients.
   * [port.hub_leave]
   */
  override leave(): void {
    this.#ties.open = undefined;
    if (this.#ties.closing) return;
    const { segment, mechanism } = this.endpoint;
    if (!closeEndpoint(segment, this.peer, mechanism)) {
      failEndpoint(segment, this.peer, "peer.terminated", mechanism);
    }
    look(this.endpoint);
  }
}

/**
 * What a blocking call of one port waits for, and what all ports of the hub owe to their clients:
 * it is waited for too. [port.posted]
 */
class Whole implements Waiter {
  readonly endpoint: Endpoint;
  readonly asks = 0;
  readonly isKeeping: boolean;
  readonly #waiter: Waiter;
  /** Those of the other links that have something to place, and what each waits for. */
  #owing: { readonly link: Link; readonly asks: number }[] = [];

  constructor(waiter: Waiter) {
    this.#waiter = waiter;
    this.endpoint = waiter.endpoint;
    this.isKeeping = waiter.isKeeping;
  }

  get peerStates(): readonly number[] {
    return [...this.#waiter.peerStates, ...this.#owing.map(({ link }) => link.peerState)];
  }

  prepare(asks: number): number {
    this.#owing = [];
    for (const link of this.endpoint.waiters) {
      if (link === this.#waiter || !(link instanceof Link) || !owes(link)) continue;
      const left = link.prepare(0); // [port.hub_publish]
      if (left !== 0) this.#owing.push({ link, asks: left });
    }
    return this.#waiter.prepare(asks);
  }

  sees(asks: number): boolean {
    return this.#waiter.sees(asks) || this.#owing.some(({ link, asks }) => link.sees(asks));
  }

  arm(asks: number): void {
    this.#waiter.arm(asks);
    for (const { link, asks } of this.#owing) link.arm(asks);
  }

  disarm(asks: number): void {
    this.#waiter.disarm(asks);
    for (const { link, asks } of this.#owing) link.disarm(asks);
  }

  tend(): void {}
}

/** Whether something of an open link is not published, given back or placed. */
function owes({ isClosed, outgoing, incoming }: Link): boolean {
  return !isClosed && (outgoing!.first !== undefined ||
    outgoing!.cursor !== outgoing!.published || incoming!.cursor !== incoming!.published);
}

/**
 * Records which peers have rung an endpoint, so that an endpoint with many peers looks at those
 * alone. See `spec/wait.md`, "Which ring rang".
 */
class Rung {
  readonly #words: Int32Array;
  readonly #first: number;
  /** The bits that the last `take` took out of the endpoint's record. */
  readonly #bits: Int32Array;
  /** The time at which all the waits were looked at last. */
  #lookedAt = -Infinity;

  /** Reads the record of one endpoint. It ignores bits above the segment's endpoint count. */
  constructor({ control, endpointCount }: Segment, index: number) {
    this.#words = control;
    this.#first = recordAt(index) + layout.ENDPOINT_RUNG_WORD;
    this.#bits = new Int32Array(Math.ceil(endpointCount / 32));
  }

  /**
   * Takes the bits out of the record; the caller has loaded the bell before. Returns true if all
   * the waits were looked at within the last `ms` milliseconds; false asks the caller to look at
   * all of them now. [wait.rung_take]
   */
  take(ms: number): boolean {
    const words = this.#words;
    const bits = this.#bits;
    for (let index = 0; index < bits.length; index++) {
      const at = this.#first + index;
      // Most words are 0; a plain load of them is cheaper than an exchange.
      bits[index] = Atomics.load(words, at) === 0 ? 0 : Atomics.exchange(words, at, 0);
    }
    const time = now();
    if (time - this.#lookedAt < ms) return true;
    this.#lookedAt = time;
    return false;
  }

  /** Whether a peer has rung: something may have come from it, or its state have changed. */
  names(peer: number): boolean {
    return (this.#bits[peer >> 5]! & (1 << (peer & 31))) !== 0;
  }
}

function requireHubOptions(options: HubOptions<unknown, never>): void {
  requirePortOptions(options);
  if (options.side === undefined) return;
  throw new TypeError(`Cannot make hub: it has no side ${options.side}`);
}

/** Finds the rings to and from each client. */
function findPairs(segment: Segment): [Channel, Channel][] {
  const rings = segment.channels.filter(({ kind }) => kind === layout.CHANNEL_KIND_RING);
  if (segment.endpointCount === 1) {
    throwSegmentError("channel", "attach hub: it has no clients");
  }
  return Array.from({ length: segment.endpointCount - 1 }, (_, client) => {
    const outgoing = rings.find(({ writer, reader }) => writer === HUB && reader === client + 1);
    const incoming = rings.find(({ writer, reader }) => reader === HUB && writer === client + 1);
    if (outgoing !== undefined && incoming !== undefined) return [outgoing, incoming];
    throwSegmentError("channel", "attach hub: a client lacks its rings");
  });
}
