/**
 * A segment in a file that several processes map. See `spec/file.md`.
 *
 * @module
 */

import { now } from "../memory/clock.ts";
import { throwCannot, throwSegmentError, throwTypeError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import {
  type Channel,
  type Geometry,
  peersOf,
  place,
  type Plan,
  requireAmount,
  samePlan,
} from "../memory/plan.ts";
import { classOf } from "../memory/realm.ts";
import { requireTimeout, Segment } from "../memory/segment.ts";
import { Reader, Writer } from "../pipe/ends.ts";
import { Incoming } from "../pipe/incoming.ts";
import { closeLink, Link } from "../pipe/link.ts";
import {
  findRing,
  type ReaderOptions,
  requireReaderOptions,
  requireWriterOptions,
  type WriterOptions,
} from "../pipe/options.ts";
import { Outgoing } from "../pipe/outgoing.ts";
import { findRings, type PortOptions, requirePortOptions } from "../port/options.ts";
import { Port } from "../port/port.ts";
import {
  attachEndpoint,
  type Endpoint,
  type EndpointOptions,
  leaveEndpoint,
  lendEndpoint,
  requireVacant,
} from "../wait/endpoint.ts";
import type { Mechanism } from "../wait/mechanism.ts";
import { failEndpoint, stateOf, stateWord } from "../wait/state.ts";
import { FutexMechanism } from "./futex.ts";
import { hostCalls } from "./calls.ts";
import * as files from "./files.ts";
import { Mapping } from "./mapping.ts";
import { type Draft, makeDraft, makeSealed } from "./segment_file_draft.ts";
import { isInUse, sizeToMap } from "./segment_file_left.ts";
import * as locks from "./segment_file_lock.ts";
import { EEXIST, SystemError } from "./system_error.ts";

/**
 * Which endpoint of a file to take, and how it waits.
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
  /** The index of the endpoint. For a port, 0 is side `a` and 1 is side `b`. */
  readonly endpoint: number;
  /**
   * Milliseconds to wait for other processes that are opening or replacing the same file; default
   * 5,000. No call waits for the file itself to appear, or for a peer.
   */
  readonly timeout?: number | undefined;
  /** Microseconds to spin before sleeping in a blocking call, as in every endpoint's options. */
  readonly spin?: number | undefined;
}

const DEFAULT_TIMEOUT_MS = 5_000;

/**
 * One endpoint of a segment in a file, through which processes in any language exchange messages.
 * It needs Linux on x86-64 or aarch64; in Deno the permissions `--allow-ffi`, and `--allow-read`
 * and `--allow-write` for the path; in Node the addon's package.
 *
 * All methods belong to one thread. Other threads, also of this process, open the file again. Every
 * call that waits detects within two slices of 100 ms that a peer's process has died, for whatever
 * cause, and throws a `PeerFailedError` with the reason `peer.lost`. After that, `revive` lets the
 * next process take its place in the same file.
 *
 * In Deno, the asynchronous waits of an endpoint occupy a thread of Deno's pool and take 50 µs to
 * begin; each thread can have eight such endpoints. Further endpoints, and `onmessage` after
 * `unref`, look every 4 ms instead. In Node, one thread waits for all endpoints of a thread, up to
 * 127, on Linux 5.16 or later; on older kernels all of them look every 4 ms. For low latency, block
 * in a worker.
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
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "SegmentFile";

  /** The path at which the file was found or created. */
  readonly path: string;
  /** The segment, attached and checked. */
  readonly segment: Segment;
  /** How the endpoints of this file sleep and wake; for `closeEndpoint` and `failEndpoint`. */
  readonly mechanism: Mechanism;
  readonly #endpoint: Endpoint;
  readonly #fd: number;
  readonly #mapping: Mapping;
  /** The endpoints at the other ends of this endpoint's channels, and the writers of properties. */
  readonly #peers: ReadonlySet<number>;
  #user: { close(): void } | undefined;
  #isClosed = false;

  /** Maps a file, locks an endpoint's record in it, and takes the endpoint. */
  private constructor(path: string, fd: number, checked: Checked, opening: Opening) {
    this.path = path;
    this.#fd = fd;
    this.#mapping = new Mapping(fd, opening.size);
    const check = () => this.checkPeers();
    const isAlive = (endpoint: number) => locks.isRecordLocked(fd, endpoint);
    this.mechanism = new FutexMechanism(this.#mapping, check, isAlive);
    try {
      this.segment = opening.attach(this.#mapping.buffer);
      const peers = peersOf(this.segment, checked.endpoint);
      // [property.slice] The writers of properties are not peers, but an endpoint that waits for a
      // property must find out whether they are alive.
      const writers = this.segment.channels.filter(({ kind, writer }) =>
        kind === layout.CHANNEL_KIND_PROPERTY && writer !== checked.endpoint
      );
      this.#peers = new Set([...peers, ...writers.map(({ writer }) => writer)]);
      // [segment.file_lock] The record is locked before the state becomes attached.
      requireVacant(this.segment, checked.endpoint);
      locks.lockRecord(fd, checked.endpoint);
      locks.unlockHeader(fd);
      const { mechanism } = this;
      this.#endpoint = attachEndpoint(this.segment, checked.endpoint, { ...checked, mechanism });
    } catch (error) {
      this.#mapping.release();
      throw error;
    }
  }

  /**
   * Takes an endpoint of the file at `path`. Never waits for a file that is not there yet.
   *
   * @throws {SegmentError} `segment.missing` if there is no file; `segment.file` if another user
   * could have put it there or can access it; `segment.endpoint` if the endpoint is taken, or was
   * taken before and `revive` has not given it back; and whatever `Segment.attach` throws.
   * @throws {SystemError} for other errors of the system, such as `EACCES`; `ENOSYS` if this system
   * is not supported.
   * @throws {TimeoutError} if other processes keep replacing the file.
   * @throws {Deno.errors.NotCapable} without the permissions.
   */
  static open(path: string | URL, options: SegmentFileOptions): SegmentFile {
    const name = requirePath(path);
    const checked = checkOptions(options);
    for (;;) {
      const file = locks.openOwn(name);
      try {
        if (locks.lockHeader(name, file, checked.deadline)) {
          return SegmentFile.#join(name, file, checked);
        }
      } catch (error) {
        files.close(file.fd);
        throw error;
      }
      files.close(file.fd);
      locks.requireTimeLeft(name, checked.deadline);
    }
  }

  /**
   * Creates the file at `path`, or takes the one that a living process has created there with the
   * same geometry: either side may come first. A file that is left over is replaced. That is one
   * whose processes are gone, or in which the remaining ones can no longer meet a peer, such as the
   * clients of a server that is gone. They read what was published, and open the path again.
   *
   * @throws {RangeError} if the geometry is outside the limits of the specification.
   * @throws {SegmentError} `segment.geometry` if the file is in use with another geometry;
   * `segment.file` if the file at the path is not a segment, or another user could have put it
   * there; and whatever `open` throws.
   * @throws {SystemError} `ENOSPC` if there is no space, `ENOENT` if there is no such folder; other
   * errors of the system.
   * @throws {TimeoutError} if other processes keep replacing the file.
   * @throws {Deno.errors.NotCapable} without the permissions.
   */
  static create(
    path: string | URL,
    geometry: Geometry,
    options: SegmentFileOptions,
  ): SegmentFile {
    const name = requirePath(path);
    const checked = checkOptions(options);
    const { plan, opening } = planOf(geometry, checked);
    const draft = makeDraft(name, plan.size);
    let file: SegmentFile | undefined;
    let used: SegmentFile | undefined;
    try {
      file = new SegmentFile(name, draft.fd, checked, opening);
      used = SegmentFile.#publish(file, draft, plan, checked);
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
   * Creates a segment in memory that is not a file of any folder, and whose size cannot be changed.
   * (Any process of the same user can shorten a file that has a name, which ends all processes that
   * use it.)
   *
   * Processes of the same user can `open` the segment by its `path`, as long as this object is not
   * closed and its process is alive: pass them the path, for instance as an argument. When the last
   * of them closes, nothing is left.
   *
   * @throws {RangeError} if the geometry is outside the limits of the specification.
   * @throws {SegmentError} `segment.endpoint` if the segment does not have this endpoint.
   * @throws {SystemError} for errors of the system, for instance if memory is short; `ENOSYS` if
   * this system is not supported.
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
    const checked = checkOptions(options);
    const { plan, opening } = planOf(geometry, checked);
    const fd = makeSealed(plan.size);
    try {
      return new SegmentFile(`/proc/${hostCalls().pid}/fd/${fd}`, fd, checked, opening);
    } catch (error) {
      files.close(fd);
      throw error;
    }
  }

  /** Gives a file its name and returns it, or returns the file that has the name and is in use. */
  static #publish(file: SegmentFile, draft: Draft, plan: Plan, checked: Checked): SegmentFile {
    const { path } = file;
    for (let round = 0;; round++) {
      // [segment.file_ready] Renaming would take the name away from a file that has it.
      const linked = files.link(draft.path ?? draft.fd, path);
      if (linked === 0) return file;
      if (linked !== -EEXIST) throw new SystemError(`Cannot create ${path}`, -linked, "linkat");
      const used = SegmentFile.#useOrRemove(path, plan, checked);
      if (used !== undefined) return used;
      // Even with a timeout of 0, one file that is left over is replaced.
      if (round > 0) locks.requireTimeLeft(path, checked.deadline);
    }
  }

  /** Takes the file at a path if it is in use, or removes it if it is left over. */
  static #useOrRemove(path: string, plan: Plan, checked: Checked): SegmentFile | undefined {
    const file = locks.findOwn(path);
    if (file === undefined) return undefined;
    let used: SegmentFile | undefined;
    try {
      // [segment.file_left] From here on, this code holds the lock on the header.
      if (!locks.lockHeader(path, file, checked.deadline)) return undefined;
      if (isInUse(path, file, checked.endpoint)) {
        return used = SegmentFile.#join(path, file, checked, plan);
      }
      // [segment.file_replace]
      const magic = String.fromCharCode(...files.readStart(file.fd, layout.SEGMENT_MAGIC_SIZE));
      if (magic !== "" && magic !== "MILLRACE") throw locks.untrusted(path, "it is no segment");
      const removed = files.unlink(path);
      if (removed !== 0) throw new SystemError(`Cannot replace ${path}`, -removed, "unlink");
      return undefined;
    } finally {
      if (used === undefined) files.close(file.fd);
    }
  }

  /** Takes an endpoint of a file whose header is locked. */
  static #join(path: string, file: locks.OwnFile, checked: Checked, plan?: Plan): SegmentFile {
    const size = sizeToMap(path, file);
    const attach = (memory: ArrayBuffer) => {
      // There is nothing to wait for: a file gets its name only when its segment is ready.
      const segment = Segment.attach(memory, { timeout: 0 });
      if (plan !== undefined && !samePlan(plan, segment)) {
        throwSegmentError("geometry", `create ${path}: it is in use with another geometry`);
      }
      return segment;
    };
    return new SegmentFile(path, file.fd, checked, { size, attach });
  }

  /** The index of this endpoint. */
  get endpoint(): number {
    return this.#endpoint.index;
  }

  /**
   * Creates the port of this endpoint, which must have one ring in each direction. An endpoint has
   * one user: a port, a writer, a reader, or what `use` attaches.
   *
   * @throws {SegmentError} `segment.channel` if the segment is not a port.
   * @throws {TypeError} if the endpoint already has a user.
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
   * Creates the writer of a ring: the channel with index `channel`, by default the first that this
   * endpoint writes.
   *
   * @throws {SegmentError} `segment.channel` if there is no such ring.
   * @throws {TypeError} if the endpoint already has a user.
   */
  writer<T = unknown>(
    options: Omit<WriterOptions<T>, keyof EndpointOptions> & {
      readonly channel?: number | undefined;
    } = {},
  ): Writer<T> {
    requireWriterOptions(options);
    const own = ({ writer }: Channel) => writer === this.endpoint;
    const channel = findRing(this.segment, options.channel, own);
    const link = this.#link(channel.reader);
    return this.#user = Writer.of<T>(link, new Outgoing(link, channel, { ...options }));
  }

  /**
   * Creates the reader of a ring: the channel with index `channel`, by default the first that this
   * endpoint reads.
   *
   * @throws {SegmentError} `segment.channel` if there is no such ring.
   * @throws {TypeError} if the endpoint already has a user.
   */
  reader<T = unknown>(
    options: Omit<ReaderOptions<T>, keyof EndpointOptions> & {
      readonly channel?: number | undefined;
    } = {},
  ): Reader<T> {
    requireReaderOptions(options);
    const own = ({ reader }: Channel) => reader === this.endpoint;
    const channel = findRing(this.segment, options.channel, own);
    const link = this.#link(channel.writer);
    return this.#user = Reader.of<T>(link, new Incoming(link, channel, { ...options }));
  }

  /**
   * Lets other objects attach to this endpoint: a property, a fanout, or all properties of the
   * segment. `attach` gets the segment, and options with the index of the endpoint; it must attach
   * before it returns.
   *
   * @throws {TypeError} if the endpoint already has a user, or `attach` does not attach to it.
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
    return this.#user = lendEndpoint(this.#endpoint, () => attach(segment, { endpoint }));
  }

  /**
   * Looks whether the processes of the peers are alive, and marks those endpoints failed whose
   * processes are not, with the reason `peer.lost`. Calls that wait do this themselves; an
   * application that never waits calls this method. [segment.file_dead]
   */
  checkPeers(): void {
    if (this.#isClosed) return;
    for (const peer of this.#peers) {
      const word = stateWord(this.#endpoint, peer);
      if (stateOf(word) !== layout.ENDPOINT_STATE_ATTACHED) continue;
      // An owner locks before it attaches: attached and not locked means dead, or closed meanwhile.
      if (locks.isRecordLocked(this.#fd, peer)) continue;
      // Marks that owner, and not one that has attached since. [segment.state_owner]
      const generation = word >>> layout.REASON_SHIFT;
      failEndpoint(this.segment, peer, "peer.lost", this.mechanism, generation);
    }
  }

  /**
   * Closes the endpoint and its user, and lets go of the file, which stays. The peer can still read
   * all messages that were published.
   */
  close(): void {
    if (this.#isClosed) return;
    this.#user?.close();
    // `revive` may have put another end in the place of the user.
    for (const each of [...this.#endpoint.waiters]) if (each instanceof Link) closeLink(each);
    leaveEndpoint(this.#endpoint);
    this.#isClosed = true;
    locks.unlockRecord(this.#fd, this.endpoint);
    this.#mapping.release();
    files.close(this.#fd);
  }

  /** Closes the endpoint; see `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #link(peer: number): Link {
    this.#requireUnused();
    return new Link(this.#endpoint, peer);
  }

  #requireUnused(): void {
    if (this.#isClosed) throwCannot(`use ${this.path}: it is closed`);
    if (this.#user === undefined) return;
    throwCannot(`use ${this.path} twice: endpoint ${this.endpoint} is in use`);
  }
}

/** The checked arguments of the caller. */
interface Checked {
  readonly endpoint: number;
  readonly spin: number | undefined;
  readonly deadline: number;
}

/** How many bytes of a file to map, and how to get the segment in them. */
interface Opening {
  readonly size: number;
  attach(memory: ArrayBuffer): Segment;
}

function checkOptions(options: SegmentFileOptions): Checked {
  const deadline = now() + requireTimeout(options, DEFAULT_TIMEOUT_MS);
  const { endpoint, spin } = options;
  // Before a file is made or opened.
  requireAmount("spin", spin ?? 0);
  if (!Number.isInteger(endpoint) || endpoint < 0) throwNoEndpoint(endpoint);
  return { endpoint, spin, deadline };
}

/** The plan of a creator, and how it formats its own memory. */
function planOf(geometry: Geometry, { endpoint }: Checked): { plan: Plan; opening: Opening } {
  const plan = place(geometry);
  if (endpoint >= plan.endpointCount) throwNoEndpoint(endpoint);
  const attach = (memory: ArrayBuffer) => Segment.format(memory, geometry);
  return { plan, opening: { size: plan.size, attach } };
}

function throwNoEndpoint(endpoint: number): never {
  throwSegmentError("endpoint", `attach endpoint ${endpoint}: no such one`);
}

function requirePath(path: string | URL): string {
  const name = nameOf(path);
  if (name === "") throw locks.missing(name); // permission for an empty path cannot be requested
  hostCalls().requireAccess(name);
  return name;
}

/**
 * The name of a path, which is a string or the URL of a file of this machine. A URL of another
 * realm is one too.
 */
function nameOf(path: string | URL): string {
  if (typeof path === "string") return path;
  if (
    classOf(path) === "URL" && path.protocol === "file:" && path.host === "" &&
    !/%2f/i.test(path.pathname)
  ) {
    return decodeURIComponent(path.pathname);
  }
  throwTypeError(`Cannot use file: a path is a string or a file: URL, this is ${String(path)}`);
}
