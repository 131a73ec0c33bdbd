/**
 * What both ends of a pipe have in common: messages, options, and the mapping of states and faults
 * to errors. See `spec/pipe.md`. The two ends are in `writer.ts` and `reader.ts`.
 *
 * @module
 */

import { type Codec, type CodecName, codecTable, requireCodec } from "../codec/codec.ts";
import type { Endpoint, EndpointOptions } from "../wait/endpoint.ts";
import { causeOf, stateOf } from "../wait/state.ts";
import {
  ClosedError,
  type MillraceError,
  mistake,
  PeerClosedError,
  PeerFailedError,
  requireOptions,
  unusable,
} from "../error.ts";
import { GONE } from "../memory/gate.ts";
import { type Channel, requireInteger } from "../memory/segment_geometry.ts";
import * as layout from "../memory/layout.ts";
import type { Inlet } from "./inlet.ts";
import type { Outlet } from "./outlet.ts";
import { now, requireTimeout, type Segment } from "../memory/segment.ts";

/**
 * A message as it stands in the ring, with its payload not decoded.
 *
 * @example
 * ```ts
 * import { type Message, Port } from "@millrace/millrace";
 *
 * using here = Port.create<string>({ codec: "text" });
 * using there = Port.attach(here.memory); // usually in another thread
 * here.write("hello");
 * const { codec, payload }: Message = there.readMessage()!;
 * console.log(codec, payload.length); // 1 5
 * ```
 */
export interface Message {
  /** 1 is data, 3 a call, 4 a return, 5 a throw. */
  readonly kind: number;
  /**
   * How the payload is written: 0 bytes, 1 text, 2 JSON, 3 JSON batch; your own codecs start at
   * 128.
   */
  readonly codec: number;
  /** A number that the application chooses, a `u32`; in the messages of a call, its id. */
  readonly tag: number;
  /** The payload: a private copy, which belongs to the caller. */
  readonly payload: Uint8Array;
}

/**
 * How long a call may wait.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * using port = Port.create<string>();
 * console.log(port.read({ timeout: 10 })); // undefined
 * const signal = AbortSignal.timeout(10);
 * console.log(await port.readAsync({ signal }).catch((reason) => reason.name)); // "TimeoutError"
 * ```
 */
export interface WaitOptions {
  /** Milliseconds. By default a call waits without a limit; with 0 it does not wait at all. */
  readonly timeout?: number | undefined;
  /**
   * Ends an asynchronous wait, which then rejects with the signal's reason. A blocking call looks
   * at the signal only once, before it begins: while it blocks the thread, nothing there can abort
   * the signal.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Options of a writer.
 *
 * @example
 * ```ts
 * import { Segment, Writer, type WriterOptions } from "@millrace/millrace";
 *
 * const options: WriterOptions<string> = { codec: "text", spin: 0 };
 * const channels = [{ writer: 0, reader: 1, capacity: 256 }];
 * using writer = Writer.attach<string>(Segment.allocate({ endpoints: 2, channels }), options);
 * console.log(writer.tryWrite("plain text")); // true
 * ```
 */
export interface WriterOptions<Out = unknown> extends EndpointOptions {
  /** How values become payloads: a codec of this library, or your own. Default `json`. */
  readonly codec?: CodecName | Codec<unknown, Out> | undefined;
  /**
   * Whether several JSON values, given to one `writeMany` or posted in one job of the event loop,
   * may go out as one message: one array with codec 3, `json_batch`. A reader of this library hands
   * out its elements one by one. A reader in C, Python or Zig gets the array, and has to take it
   * apart itself. Default true.
   */
  readonly batch?: boolean | undefined;
}

/**
 * Options of a reader.
 *
 * @example
 * ```ts
 * import { MessageError, Reader, Segment, Writer } from "@millrace/millrace";
 *
 * const channels = [{ writer: 0, reader: 1, capacity: 4096 }];
 * const segment = Segment.allocate({ endpoints: 2, channels });
 * using writer = Writer.attach<string>(segment);
 * using reader = Reader.attach<string>(segment, { maxMessageSize: 1024 });
 * writer.write("a".repeat(1500));
 * try {
 *   reader.read();
 * } catch (error) {
 *   if (error instanceof MessageError) console.log(error.code); // "message.size"
 * }
 * ```
 */
export interface ReaderOptions<In = unknown> extends EndpointOptions {
  /** A codec of your own that messages may use. Every reader knows those of this library. */
  readonly codec?: CodecName | Codec<In, never> | undefined;
  /** Further codecs of your own that messages may use. */
  readonly codecs?: readonly Codec<In, never>[] | undefined;
  /**
   * The largest message that is accepted, in bytes; a larger one is dropped with `message.size`. A
   * batch counts as one message; `writeMany` and `postMessage` make batches of up to 12 KiB.
   * Default 64 MiB, and for JSON 4 MiB, because JSON is parsed in one go: 1 MiB of records takes 10
   * ms and 4 MB of memory, but 1 MiB of brackets, which a hostile peer may send, takes 150 ms and
   * 60 MB (V8 14, 15). A message whose writer does not know its size is dropped once it exceeds the
   * limit. There is no limit for such a message where `peek` lends its frames, since the reader
   * stores nothing of it.
   */
  readonly maxMessageSize?: number | undefined;
  /** Whether `readMessage` also returns calls, returns and throws. Default false. */
  readonly calls?: boolean | undefined;
}

/**
 * Throws for options that a writer cannot use. Called before the writer takes its endpoint, which
 * cannot be undone.
 */
export function requireWriterOptions(options: WriterOptions<never>): void {
  const { codec = "json", batch = true } = requireOptions(options);
  requireCodec(codec);
  if (typeof batch !== "boolean") mistake(`batch must be true or false: ${batch}`);
}

/** Throws for options that a reader cannot use, before the reader takes its endpoint. */
export function requireReaderOptions(options: ReaderOptions): void {
  const { maxMessageSize = MAX_MESSAGE_SIZE, codec, codecs } = requireOptions(options);
  requireInteger("maxMessageSize", maxMessageSize, 0, MAX_MESSAGE_SIZE_MAX);
  codecTable(codec, codecs);
}

/** Default of `maxMessageSize`, except for JSON. */
export const MAX_MESSAGE_SIZE: number = 64 * 1024 * 1024;

/** Default of `maxMessageSize` for JSON. */
export const MAX_JSON_SIZE: number = 4 * 1024 * 1024;

/** The upper bound of `maxMessageSize`: no runtime can allocate more than this. */
export const MAX_MESSAGE_SIZE_MAX: number = 2 ** 32;

/**
 * Returns the ring with this index, or the first ring that `fits` accepts. [pipe.find] [port.find]
 *
 * @throws {SegmentError} `segment.channel` if there is no such ring.
 */
export function findRing(
  segment: Segment,
  index: number | undefined,
  fits: (channel: Channel) => boolean,
): Channel {
  const isRing = (channel: Channel) => channel.kind === layout.CHANNEL_KIND_RING && fits(channel);
  const channel = index === undefined ? segment.channels.find(isRing) : segment.channels[index];
  if (channel !== undefined && isRing(channel)) return channel;
  // [pipe.find_none] The segment was checked when it was attached to, and no state has changed yet.
  unusable("channel", "attach to segment: it has no such ring");
}

/**
 * How many asynchronous calls pass before a port looks again whether the event loop has to turn.
 */
export const STREAK = 64;

/**
 * Turns a timeout in milliseconds into a deadline. A call does so when it first has to wait.
 * [wait.deadline]
 */
export function deadlineOf(timeout: number): number {
  return timeout === Infinity ? Infinity : now() + timeout;
}

/** Checks the options of a call and returns its deadline. */
export function deadlineOfCall(options: WaitOptions | undefined): number {
  requireWait(options);
  return deadlineOf(options?.timeout ?? Infinity);
}

/** Throws for options that are not valid, and if the signal has aborted already. */
export function requireWait(options: WaitOptions | undefined): void {
  if (options === undefined) return;
  requireTimeout(options, Infinity);
  options.signal?.throwIfAborted();
}

/** What an endpoint knows of itself and one peer. Both pipes of a port share one link. */
export class Link {
  readonly endpoint: Endpoint;
  /** Index of the endpoint at the other end. */
  readonly peer: number;
  /** Whether `close` was called on this end. */
  closed = false;
  /** The pipes between this endpoint and that peer, one or both. */
  outgoing: Outlet | undefined;
  incoming: Inlet | undefined;
  /** The port that both pipes belong to; it is told when the peer's endpoint was vacated. */
  port: { renew(): void } | undefined;
  /**
   * The first final or invalid state word of the peer; it must not change any more. 0: none yet.
   */
  #final = 0;
  /** How many times `giveWay` was called: once for each asynchronous write or post. */
  #streak = 0;

  /** Makes the link of an attached endpoint to one peer. */
  constructor(endpoint: Endpoint, peer: number) {
    this.endpoint = endpoint;
    this.peer = peer;
  }

  /** Closes the endpoint, which ends all of its waits. [pipe.close] */
  close(): void {
    if (this.closed) return;
    this.drop();
    this.endpoint.close();
  }

  /**
   * Drops what is not published or not delivered; after that stores nothing in the rings.
   * [pipe.close]
   */
  drop(): void {
    this.closed = true;
    this.outgoing?.close();
    this.incoming?.close();
  }

  /** Lets the event loop turn now and then, even if asynchronous writes never have to wait. */
  giveWay(): Promise<void> | undefined {
    return ++this.#streak % STREAK === 0 ? this.endpoint.giveWay() : undefined;
  }

  /** The error after the own `close`, which comes before every other answer. [pipe.first_answer] */
  closedError(verb: string): MillraceError | undefined {
    if (!this.closed) return undefined;
    return new ClosedError("pipe.closed", `Cannot ${verb}: this end is closed`);
  }

  /** The error of a state that was found final before; as long as none was, loads no state. */
  knownError(verb: string): MillraceError | undefined {
    return this.closedError(verb) ?? (this.#final === 0 ? undefined : this.peerError(verb));
  }

  /** The error of the own `close` or the own state; undefined while attached. [pipe.close_frees] */
  ownError(verb: string): MillraceError | undefined {
    const word = this.endpoint.state(this.endpoint.index);
    if (this.closed || this.endpoint.isOwn(word)) return this.closedError(verb);
    const state = stateOf(word);
    if (state === layout.ENDPOINT_STATE_CLOSED) {
      return new ClosedError("pipe.closed", `Cannot ${verb}: this end was closed`);
    }
    // [segment.own_state] Any other word was forged into our record, or belongs to the endpoint's
    // next owner; it has no reason for us.
    const failed = state === layout.ENDPOINT_STATE_FAILED;
    const reason = failed ? word >>> layout.REASON_SHIFT : 0;
    return new ClosedError("pipe.failed", `Cannot ${verb}: this end is marked failed`, reason);
  }

  /** Whether the own state or the peer's is final, so that nothing more is published. */
  isFinal(): boolean {
    return this.closed || this.#final !== 0 || this.endpoint.hasChanged(this.peer);
  }

  /**
   * The error of the peer's state, which is loaded once; undefined while it is vacant or attached.
   */
  peerError(verb: string): MillraceError | undefined {
    const word = this.endpoint.state(this.peer);
    const state = stateOf(word);
    const before = this.#final;
    if (state <= layout.ENDPOINT_STATE_ATTACHED && before === 0) return undefined;
    const what = `Cannot ${verb}: the peer`;
    // [segment.state_invalid] An invalid word is kept like a final one, and counts from then on.
    const isInvalid = state > layout.ENDPOINT_STATE_FAILED || (before !== 0 && word !== before);
    if (!isInvalid || before === 0) this.#keepFinal(word);
    if (isInvalid) {
      return new PeerFailedError(`${what} has an invalid state`, layout.REASON_SEGMENT_STATE);
    }
    if (state === layout.ENDPOINT_STATE_CLOSED) {
      return new PeerClosedError("peer.closed", `${what} has closed`);
    }
    const cause = causeOf(this.endpoint.segment, this.peer);
    return new PeerFailedError(`${what} is marked failed`, word >>> layout.REASON_SHIFT, cause);
  }

  /** The error of the own state, or else of the peer's, if one is final. [pipe.first_answer] */
  stateError(verb: string): MillraceError | undefined {
    return this.ownError(verb) ?? this.peerError(verb);
  }

  #keepFinal(word: number): void {
    this.#final = word;
    if (this.outgoing !== undefined) this.outgoing.bits |= GONE;
    if (this.incoming !== undefined) this.incoming.bits |= GONE;
  }

  /** Forgets the peer's final state, because its endpoint was vacated for the next owner. */
  renew(): void {
    this.#final = 0;
    this.port?.renew();
  }
}
