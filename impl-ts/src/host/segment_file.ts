/**
 * A segment in a file that several processes map. See `spec/segment.md`, "Segments in a file".
 *
 * @module
 */

import { SegmentError } from "../error.ts";
import { CHANNEL_KIND_PROPERTY, ENDPOINT_STATE_ATTACHED, REASON_SHIFT } from "../layout.ts";
import { SEGMENT_MAGIC_SIZE } from "../layout.ts";
import { findRing, Link, requireReaderOptions, requireWriterOptions } from "../pipe.ts";
import type { ReaderOptions, WriterOptions } from "../pipe.ts";
import { Reader } from "../pipe_reader.ts";
import { Writer } from "../pipe_writer.ts";
import { Port, type PortOptions, requirePortOptions } from "../port.ts";
import { findRings } from "../port_options.ts";
import { requireTimeout, Segment } from "../segment.ts";
import { type Channel, type Geometry, peersOf, place } from "../segment_geometry.ts";
import { type Plan, samePlan } from "../segment_geometry.ts";
import type { Mechanism } from "../wait.ts";
import { Endpoint, type EndpointOptions } from "../wait_endpoint.ts";
import { failEndpoint, stateOf } from "../wait_state.ts";
import { requireTime } from "../wait_spinner.ts";
import { FutexMechanism } from "./futex.ts";
import { hostCalls } from "./calls.ts";
import * as files from "./files.ts";
import { Mapping } from "./mapping.ts";
import { type Draft, makeDraft, makeSealed } from "./segment_file_draft.ts";
import { isInUse, sizeToMap } from "./segment_file_left.ts";
import * as locks from "./segment_file_lock.ts";
import { EEXIST, SystemError } from "./system_error.ts";

/**
 * Which endpoint of a file to take, and how.
 *
 * @example
 * ```ts
 * import { portGeometry } from "@millrace/millrace";
 * import { SegmentFile, type SegmentFileOptions } from "@millrace/millrace/host";
 *
 * const path = `/dev/shm/my-service-${crypto.randomUUID()}`;
 * const options: SegmentFileOptions = { endpoint: 0, timeout: 1000, spin: 0 };
 * using file = SegmentFile.create(path, portGeometry(), options);
 * console.log(file.port().read({ timeout: 10 })); // undefined
 * Deno.removeSync(path);
 * ```
 */
export interface SegmentFileOptions {
  /** Index of the endpoint; of a port, 0 is side `a` and 1 side `b`. */
  readonly endpoint: number;
  /**
   * Milliseconds to wait for others that are opening or replacing the same file; default 5,000. For
   * the file itself nobody waits, nor for a peer.
   */
  readonly timeout?: number | undefined;
  /** Microseconds to spin before sleeping in a blocking call, as in every endpoint's options. */
  readonly spin?: number | undefined;
}

const DEFAULT_TIMEOUT_MS = 5_000;

/**
 * One endpoint of a segment in a file, by which processes exchange messages, written in whatever
 * language. Needs Linux on x86-64 or aarch64; in Deno the permissions `--allow-ffi`, and
 * `--allow-read` and `--allow-write` for the path, and in Node the addon's package.
 *
 * All of its methods belong to one thread; other threads, of this process too, open the file once
 * more. A peer whose process dies, however it goes, is found by every call that waits, within two
 * slices of 100 ms: a `PeerFailedError` with the reason `peer.lost`. Behind that, `vacatePeer`
 * lets the next process take its place in the same file.
 *
 * Asynchronous waits take a thread of Deno's pool for each endpoint, for eight of them at most in
 * each thread, and 50 µs to begin; further endpoints, and `onmessage` after `unref`, look every 4
 * ms instead. In Node one thread waits for all endpoints of a thread, up to 127, on Linux 5.16 or
 * later; before, all of them look. Where latency counts, block in a worker.
 *
 * @example
 * ```ts
 * import { portGeometry } from "@millrace/millrace";
 * import { SegmentFile } from "@millrace/millrace/host"; // needs --allow-ffi
 *
 * const path = `/dev/shm/my-service-${crypto.randomUUID()}`;
 * using here = SegmentFile.create(path, portGeometry(), { endpoint: 0 });
 * using port = here.port<string>();
 * // Usually in another process:
 * using there = SegmentFile.open(path, { endpoint: 1 });
 * there.port<string>().write("hello");
 *
 * console.log(port.read()); // "hello"
 * Deno.removeSync(path); // the file outlives both
 * ```
 */
export class SegmentFile {
  /** Where the file was found or made. */
  readonly path: string;
  /** The segment, attached and checked. */
  readonly segment: Segment;
  /** How its endpoints sleep and wake; for `closeEndpoint` and `failEndpoint`. */
  readonly mechanism: Mechanism;
  readonly #endpoint: Endpoint;
  readonly #fd: number;
  readonly #mapping: Mapping;
  /** The endpoints at the other ends of our channels, and the writers of properties. */
  readonly #peers: ReadonlySet<number>;
  #user: { close(): void } | undefined;
  #isClosed = false;

  /** Maps a file, locks a record of it and takes the endpoint. */
  private constructor(path: string, fd: number, order: Order, join: Join) {
    this.path = path;
    this.#fd = fd;
    this.#mapping = new Mapping(fd, join.size);
    const check = () => this.checkPeers();
    const isAlive = (endpoint: number) => locks.isRecordLocked(fd, endpoint);
    this.mechanism = new FutexMechanism(this.#mapping, check, isAlive);
    try {
      this.segment = join.attach(this.#mapping.buffer);
      const peers = peersOf(this.segment, order.endpoint);
      // [property.slice] No peers, but whoever watches a property looks whether they live.
      const writers = this.segment.channels.filter(({ kind, writer }) =>
        kind === CHANNEL_KIND_PROPERTY && writer !== order.endpoint
      );
      this.#peers = new Set([...peers, ...writers.map(({ writer }) => writer)]);
      // [segment.file_lock] Before the state is attached.
      Endpoint.requireVacant(this.segment, order.endpoint);
      locks.lockRecord(fd, order.endpoint);
      locks.unlockHeader(fd);
      const { mechanism } = this;
      this.#endpoint = Endpoint.attach(this.segment, order.endpoint, { ...order, mechanism });
    } catch (error) {
      this.#mapping.release();
      throw error;
    }
  }

  /**
   * Takes an endpoint of the file at `path`. Never waits for a file that is not there yet.
   *
   * @throws {SegmentError} `segment.missing` if there is no file; `segment.file` if others could
   * have made it or can read it; `segment.endpoint` if somebody has the endpoint, or has had it and
   * it was not given back by `vacatePeer`; and whatever `Segment.attach` throws.
   * @throws {SystemError} whatever else the system refuses, `EACCES` for one; `ENOSYS` where there
   * is no such host.
   * @throws {TimeoutError} if others keep replacing the file.
   * @throws {Deno.errors.NotCapable} without the permissions.
   */
  static open(path: string | URL, options: SegmentFileOptions): SegmentFile {
    const name = requirePath(path);
    const order = requireOrder(options);
    for (;;) {
      const file = locks.openOwn(name);
      try {
        if (locks.lockHeader(name, file, order.deadline)) {
          return SegmentFile.#join(name, file, order);
        }
      } catch (error) {
        files.close(file.fd);
        throw error;
      }
      files.close(file.fd);
      locks.requireTime(name, order.deadline);
    }
  }

  /**
   * Makes the file at `path`, or takes it as somebody else who lives has made it, with the same
   * geometry: either side may come first. A file that is left over is replaced: its processes have
   * gone, or those that still have it can meet nobody there any more, such as the clients of a
   * server that has gone. They read what was published, and open the path anew.
   *
   * @throws {RangeError} if the geometry is outside the limits of the specification.
   * @throws {SegmentError} `segment.geometry` if it is in use with another; `segment.file` if what
   * is there is no segment, or could be somebody else's; and whatever `open` throws.
   * @throws {SystemError} `ENOSPC` if there is no room, `ENOENT` if there is no such folder;
   * whatever else the system refuses.
   * @throws {TimeoutError} if others keep replacing the file.
   * @throws {Deno.errors.NotCapable} without the permissions.
   */
  static create(
    path: string | URL,
    geometry: Geometry,
    options: SegmentFileOptions,
  ): SegmentFile {
    const name = requirePath(path);
    const order = requireOrder(options);
    const { plan, join } = planOf(geometry, order);
    const draft = makeDraft(name, plan.size);
    let file: SegmentFile | undefined;
    let used: SegmentFile | undefined;
    try {
      file = new SegmentFile(name, draft.fd, order, join);
      used = SegmentFile.#publish(file, draft, plan, order);
      return used;
    } finally {
      if (draft.path !== undefined) files.unlink(draft.path);
      if (used === undefined || used !== file) {
        if (file !== undefined) file.#mapping.release();
        files.close(draft.fd);
      }
    }
  }

  /**
   * Makes a segment in memory that is no file of any folder, and whose size nobody can change: a
   * file with a name can be made shorter by any process of its user, which ends all that use it.
   *
   * Its `path` leads there, for processes of the same user that `open` it, for as long as this
   * object is not closed and its process lives: hand it to them, as an argument for instance. When
   * the last of them closes, nothing is left.
   *
   * @throws {RangeError} if the geometry is outside the limits of the specification.
   * @throws {SegmentError} `segment.endpoint` if it does not have this endpoint.
   * @throws {SystemError} what the system refuses, for want of memory for one; `ENOSYS` where there
   * is no such host.
   *
   * @example
   * ```ts
   * import { portGeometry } from "@millrace/millrace";
   * import { SegmentFile } from "@millrace/millrace/host"; // needs --allow-ffi
   *
   * using here = SegmentFile.createSealed(portGeometry(), { endpoint: 0 });
   * console.log(/^.proc.[0-9]+.fd.[0-9]+$/.test(here.path)); // true
   * here.port<string>().write("hello");
   * // In another process, which got `here.path`, and has --allow-read and --allow-write for it:
   * // SegmentFile.open(path, { endpoint: 1 }).port<string>().read()
   * ```
   */
  static createSealed(geometry: Geometry, options: SegmentFileOptions): SegmentFile {
    const order = requireOrder(options);
    const { plan, join } = planOf(geometry, order);
    const fd = makeSealed(plan.size);
    try {
      return new SegmentFile(`/proc/${hostCalls().pid}/fd/${fd}`, fd, order, join);
    } catch (error) {
      files.close(fd);
      throw error;
    }
  }

  /** Gives a file its name, and returns it; or the one that has the name and is in use. */
  static #publish(file: SegmentFile, draft: Draft, plan: Plan, order: Order): SegmentFile {
    const { path } = file;
    for (let round = 0;; round++) {
      // [segment.file_ready] Not by renaming, which would take the name from whoever has it.
      const linked = files.link(draft.path ?? draft.fd, path);
      if (linked === 0) return file;
      if (linked !== -EEXIST) throw new SystemError(`Cannot create ${path}`, -linked, "linkat");
      const used = SegmentFile.#useOrRemove(path, plan, order);
      if (used !== undefined) return used;
      // Without time, too, a left-over is replaced.
      if (round > 0) locks.requireTime(path, order.deadline);
    }
  }

  /** Takes the file at a path if it is in use, and removes it if it is left over. */
  static #useOrRemove(path: string, plan: Plan, order: Order): SegmentFile | undefined {
    const file = locks.findOwn(path);
    if (file === undefined) return undefined;
    let used: SegmentFile | undefined;
    try {
      // [segment.file_left] All that follows, with the lock on the header.
      if (!locks.lockHeader(path, file, order.deadline)) return undefined;
      if (isInUse(path, file, order.endpoint)) {
        return used = SegmentFile.#join(path, file, order, plan);
      }
      // [segment.file_replace]
      const magic = String.fromCharCode(...files.readStart(file.fd, SEGMENT_MAGIC_SIZE));
      if (magic !== "" && magic !== "MILLRACE") throw locks.untrusted(path, "it is no segment");
      const removed = files.unlink(path);
      if (removed !== 0) throw new SystemError(`Cannot replace ${path}`, -removed, "unlink");
      return undefined;
    } finally {
      if (used === undefined) files.close(file.fd);
    }
  }

  /** Takes an endpoint of a file whose header is locked. */
  static #join(path: string, file: locks.OwnFile, order: Order, plan?: Plan): SegmentFile {
    const size = sizeToMap(path, file);
    const attach = (memory: ArrayBuffer) => {
      // A file has its name only when it is ready: nothing to wait for.
      const segment = Segment.attach(memory, { timeout: 0 });
      if (plan !== undefined && !samePlan(plan, segment)) {
        const why = "it is in use with another geometry";
        throw new SegmentError("segment.geometry", `Cannot create ${path}: ${why}`);
      }
      return segment;
    };
    return new SegmentFile(path, file.fd, order, { size, attach });
  }

  /** Index of our endpoint. */
  get endpoint(): number {
    return this.#endpoint.index;
  }

  /**
   * Makes the port of this endpoint, which has one ring each way. A file has one port, one writer
   * or one reader.
   *
   * @throws {SegmentError} `segment.channel` if the segment is no port.
   * @throws {TypeError} if the endpoint has a user already.
   */
  port<In = unknown, Out = In>(
    options: Omit<PortOptions<In, Out>, keyof EndpointOptions | "side"> = {},
  ): Port<In, Out> {
    requirePortOptions(options);
    const [outgoing, incoming] = findRings(this.segment, this.endpoint);
    const link = this.#link(outgoing.reader);
    return this.#user = new Port<In, Out>(link, outgoing, incoming, options);
  }

  /**
   * Makes the writer of a ring: of channel `channel`, by default of the first that this endpoint
   * writes.
   *
   * @throws {SegmentError} `segment.channel` if there is none.
   * @throws {TypeError} if the endpoint has a user already.
   */
  writer<T = unknown>(
    options: Omit<WriterOptions<T>, keyof EndpointOptions> & {
      readonly channel?: number | undefined;
    } = {},
  ): Writer<T> {
    requireWriterOptions(options);
    const own = ({ writer }: Channel) => writer === this.endpoint;
    const channel = findRing(this.segment, options.channel, own);
    return this.#user = new Writer<T>(this.#link(channel.reader), channel, options);
  }

  /**
   * Makes the reader of a ring: of channel `channel`, by default of the first that this endpoint
   * reads.
   *
   * @throws {SegmentError} `segment.channel` if there is none.
   * @throws {TypeError} if the endpoint has a user already.
   */
  reader<T = unknown>(
    options: Omit<ReaderOptions<T>, keyof EndpointOptions> & {
      readonly channel?: number | undefined;
    } = {},
  ): Reader<T> {
    requireReaderOptions(options);
    const own = ({ reader }: Channel) => reader === this.endpoint;
    const channel = findRing(this.segment, options.channel, own);
    return this.#user = new Reader<T>(this.#link(channel.writer), channel, options);
  }

  /**
   * Has something else attach to this endpoint: a property or a fanout, one end of it or all
   * properties of the segment. `attach` gets the segment, and the options that say which endpoint;
   * it attaches before it returns.
   *
   * @throws {TypeError} if the endpoint has a user already, or `attach` does not use it.
   *
   * @example
   * ```ts
   * import { PropertyReader, PropertyWriter, propertyChannel } from "@millrace/millrace/property";
   * import { SegmentFile } from "@millrace/millrace/host"; // needs --allow-ffi
   *
   * const path = `/dev/shm/my-service-${crypto.randomUUID()}`;
   * const geometry = { endpoints: 2, channels: [propertyChannel({ writer: 0, name: "gain" })] };
   * using here = SegmentFile.create(path, geometry, { endpoint: 0 });
   * const writer = here.use((segment, own) => PropertyWriter.attach<number>(segment, own));
   * // Usually in another process:
   * using there = SegmentFile.open(path, { endpoint: 1 });
   * const reader = there.use((segment, own) => PropertyReader.attach<number>(segment, own));
   *
   * writer.set(0.5);
   * console.log(reader.get()); // 0.5
   * Deno.removeSync(path);
   * ```
   */
  use<T extends { close(): void }>(
    attach: (segment: Segment, options: { readonly endpoint: number }) => T,
  ): T {
    this.#requireUnused();
    const { segment, endpoint } = this;
    return this.#user = this.#endpoint.lend(() => attach(segment, { endpoint }));
  }

  /**
   * Looks whether the processes of the peers live, and marks those failed that do not: their reason
   * is `peer.lost`. Calls that wait do so themselves; this is for those who never wait.
   * [segment.file_dead]
   */
  checkPeers(): void {
    if (this.#isClosed) return;
    for (const peer of this.#peers) {
      const word = this.#endpoint.state(peer);
      if (stateOf(word) !== ENDPOINT_STATE_ATTACHED) continue;
      // Its lock came first: attached and not locked is dead, or closed since.
      if (locks.isRecordLocked(this.#fd, peer)) continue;
      // That owner, and not one that has come since. [segment.state_owner]
      const generation = word >>> REASON_SHIFT;
      failEndpoint(this.segment, peer, "peer.lost", this.mechanism, generation);
    }
  }

  /**
   * Closes the endpoint, with the port, writer or reader that it has, and lets go of the file,
   * which stays. What was written and published can still be read by the peer.
   */
  close(): void {
    if (this.#isClosed) return;
    this.#user?.close();
    this.#endpoint.close();
    this.#isClosed = true;
    locks.unlockRecord(this.#fd, this.endpoint);
    this.#mapping.release();
    files.close(this.#fd);
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #link(peer: number): Link {
    this.#requireUnused();
    return new Link(this.#endpoint, peer);
  }

  #requireUnused(): void {
    if (this.#isClosed) throw new TypeError(`Cannot use ${this.path}: it is closed`);
    if (this.#user === undefined) return;
    throw new TypeError(`Cannot use ${this.path} twice: endpoint ${this.endpoint} is in use`);
  }
}

/** What the caller has asked for, checked. */
interface Order {
  readonly endpoint: number;
  readonly spin: number | undefined;
  readonly deadline: number;
}

/** How much of a file to map, and how to come from that to its segment. */
interface Join {
  readonly size: number;
  attach(memory: ArrayBuffer): Segment;
}

function requireOrder({ endpoint, spin, timeout }: SegmentFileOptions): Order {
  requireTime("spin", spin);
  const deadline = performance.now() + requireTimeout(timeout, DEFAULT_TIMEOUT_MS);
  if (!Number.isInteger(endpoint) || endpoint < 0) {
    throw new SegmentError("segment.endpoint", `Cannot attach endpoint ${endpoint}: no such one`);
  }
  return { endpoint, spin, deadline };
}

/** What a creator makes, and how it comes to that in memory of its own. */
function planOf(geometry: Geometry, { endpoint }: Order): { plan: Plan; join: Join } {
  const plan = place(geometry);
  if (endpoint >= plan.endpointCount) {
    throw new SegmentError("segment.endpoint", `Cannot attach endpoint ${endpoint}: no such one`);
  }
  const attach = (memory: ArrayBuffer) => Segment.format(memory, geometry);
  return { plan, join: { size: plan.size, attach } };
}

function requirePath(path: string | URL): string {
  const name = typeof path === "string" ? path : decodeURIComponent(path.pathname);
  if (name === "") throw locks.missing(name); // no permission can be asked for that
  hostCalls().requireAccess(name);
  return name;
}
