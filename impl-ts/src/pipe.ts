/**
 * What both ends of a pipe have in common: messages, options, and how states and faults become
 * errors. See `spec/pipe.md`; the ends themselves are in `pipe_writer.ts` and `pipe_reader.ts`.
 *
 * @module
 */

import { type Codec, type CodecName, codecTable, requireCodec } from "./codec.ts";
import type { Endpoint, EndpointOptions } from "./wait_endpoint.ts";
import { causeOf, stateOf } from "./wait_state.ts";
import {
  ClosedError,
  type MillraceError,
  mistake,
  PeerClosedError,
  PeerFailedError,
  unusable,
} from "./error.ts";
import { GONE } from "./gate.ts";
import { type Channel, requireInteger } from "./segment_geometry.ts";
import * as layout from "./layout.ts";
import type { Inlet } from "./pipe_inlet.ts";
import type { Outlet } from "./pipe_outlet.ts";
import { now, requireTimeout, type Segment } from "./segment.ts";

/**
 * A message as it stands in the ring, without a look into its payload.
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
  /** 1 is data; 3, 4 and 5 are calls, returns and throws. */
  readonly kind: number;
  /** How the payload is written: 0 bytes, 1 text, 2 JSON, 3 JSON batch, from 128 on your own. */
  readonly codec: number;
  /** The application's own number, a `u32`; the id of a call. */
  readonly tag: number;
  /** The payload, owned by whoever has the message. */
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
  /** Milliseconds; without it a call waits for ever, with 0 not at all. */
  readonly timeout?: number | undefined;
  /**
   * Ends an asynchronous wait with the signal's reason. A blocking call looks at it once, before
   * it begins: nothing can abort a signal of a thread that is blocked.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * How a writer works.
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
export interface WriterOptions<Out = never> extends EndpointOptions {
  /** How values become payloads: by a codec of this library, or one of your own. Default `json`. */
  readonly codec?: CodecName | Codec<unknown, Out> | undefined;
  /**
   * Whether several values of JSON, of one `writeMany` or posted in one job, may go out as one
   * array in one message, of codec 3, `json_batch`. A reader of this library hands out its
   * elements; one in C, Python or Zig gets the array, and takes it apart by itself. Default true.
   */
  readonly batch?: boolean | undefined;
}

/**
 * How a reader works.
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
  /** A codec of your own that messages may have; those of this library every reader knows. */
  readonly codec?: CodecName | Codec<In, never> | undefined;
  /** Further codecs of your own that messages may have. */
  readonly codecs?: readonly Codec<In, never>[] | undefined;
  /**
   * Largest message in bytes; larger ones are dropped with `message.size`. A batch counts as one,
   * and `writeMany` and `postMessage` make some of up to 12 KiB. Default 64 MiB; of JSON 4 MiB,
   * which is parsed in one go: a MiB of records takes 10 ms and 4 MB, but of brackets, which a
   * hostile peer may send, 150 ms and 60 MB (V8 14, 15). One whose size its writer does not know
   * is dropped where it goes beyond; what `peek` lends of such is kept nowhere, and not bounded.
   */
  readonly maxMessageSize?: number | undefined;
  /** Whether `readMessage` also delivers calls, returns and throws. Default false. */
  readonly calls?: boolean | undefined;
}

/** Throws for what a writer cannot work with: before its endpoint is taken, for ever. */
export function requireWriterOptions({ codec = "json", batch = true }: WriterOptions): void {
  requireCodec(codec);
  if (typeof batch !== "boolean") mistake(`batch must be true or false: ${batch}`);
}

/** The same for a reader. */
export function requireReaderOptions(options: ReaderOptions): void {
  const { maxMessageSize = MAX_MESSAGE_SIZE, codec, codecs } = options;
  requireInteger("maxMessageSize", maxMessageSize, 0, MAX_MESSAGE_SIZE_MAX);
  codecTable(codec, codecs);
}

/** Default of `maxMessageSize`, but for JSON. */
export const MAX_MESSAGE_SIZE: number = 64 * 1024 * 1024;

/** Default of `maxMessageSize` for JSON. */
export const MAX_JSON_SIZE: number = 4 * 1024 * 1024;

/** The bounds of `maxMessageSize`: more than this no runtime can allocate. */
export const MAX_MESSAGE_SIZE_MAX: number = 2 ** 32;

/**
 * The ring with this index, or the first that satisfies a condition. [pipe.find] [port.find]
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
  // [pipe.find_none] The segment was checked when it was attached, and no state has changed yet.
  unusable("channel", "attach to segment: it has no such ring");
}

/** Asynchronous calls between two times that a port looks whether the event loop has to turn. */
export const STREAK = 64;

/** The end of a wait: `deadline` is undefined until the call first has to wait. [wait.deadline] */
export function deadlineOf(timeout: number): number {
  return timeout === Infinity ? Infinity : now() + timeout;
}

/** The same by the options of a call, which it checks. */
export function deadlineOfCall(options: WaitOptions | undefined): number {
  requireWait(options);
  return deadlineOf(options?.timeout ?? Infinity);
}

/** Throws for options that are none, and for a signal that has aborted. */
export function requireWait(options: WaitOptions | undefined): void {
  if (options === undefined) return;
  requireTimeout(options.timeout, Infinity);
  options.signal?.throwIfAborted();
}

/** What one end of a pipe knows of itself and its peer. A port has one for both of its pipes. */
export class Link {
  readonly endpoint: Endpoint;
  /** Index of the endpoint at the other end. */
  readonly peer: number;
  /** Whether `close` was called here. */
  closed = false;
  /** The directions that this endpoint has with that peer. */
  outgoing: Outlet | undefined;
  incoming: Inlet | undefined;
  /** The port that both belong to, told of the next owner of the peer's endpoint. */
  port: { renew(): void } | undefined;
  /** The peer's state word once it was final or invalid; it must not change any more. */
  #final = 0;
  /** Asynchronous writes and posts so far. */
  #streak = 0;

  /** Makes a link from an attached endpoint to its peer. */
  constructor(endpoint: Endpoint, peer: number) {
    this.endpoint = endpoint;
    this.peer = peer;
  }

  /** Closes the endpoint; every wait of it ends. [pipe.close] */
  close(): void {
    if (this.closed) return;
    this.drop();
    this.endpoint.close();
  }

  /** Drops what is not published or not delivered, and stores nothing any more. [pipe.close] */
  drop(): void {
    this.closed = true;
    this.outgoing?.close();
    this.incoming?.close();
  }

  /** Lets the event loop turn now and then, where asynchronous writes never have to wait. */
  giveWay(): Promise<void> | undefined {
    return ++this.#streak % STREAK === 0 ? this.endpoint.giveWay() : undefined;
  }

  /** The error of the own close; above every other answer. [pipe.first_answer] */
  closedError(verb: string): MillraceError | undefined {
    if (!this.closed) return undefined;
    return new ClosedError("pipe.closed", `Cannot ${verb}: this end is closed`);
  }

  /** The error of a state that was loaded before; without a load while there is none. */
  knownError(verb: string): MillraceError | undefined {
    return this.closedError(verb) ?? (this.#final === 0 ? undefined : this.peerError(verb));
  }

  /** The error of the own close or state, or undefined while attached. [pipe.close_frees] */
  ownError(verb: string): MillraceError | undefined {
    const word = this.endpoint.state(this.endpoint.index);
    if (this.closed || this.endpoint.isOwn(word)) return this.closedError(verb);
    const state = stateOf(word);
    if (state === layout.ENDPOINT_STATE_CLOSED) {
      return new ClosedError("pipe.closed", `Cannot ${verb}: this end was closed`);
    }
    // [segment.own_state] Any other was forged into our record, or is the next owner's: no reason.
    const failed = state === layout.ENDPOINT_STATE_FAILED;
    const reason = failed ? word >>> layout.REASON_SHIFT : 0;
    return new ClosedError("pipe.failed", `Cannot ${verb}: this end is marked failed`, reason);
  }

  /** Whether a state, own or peer's, says that nothing will come but what is there. */
  isFinal(): boolean {
    return this.closed || this.#final !== 0 || this.endpoint.hasChanged(this.peer);
  }

  /** The error of the peer's state, or undefined while it is vacant or attached: one load. */
  peerError(verb: string): MillraceError | undefined {
    const word = this.endpoint.state(this.peer);
    const state = stateOf(word);
    const before = this.#final;
    if (state <= layout.ENDPOINT_STATE_ATTACHED && before === 0) return undefined;
    const what = `Cannot ${verb}: the peer`;
    // [segment.state_invalid] From then on: an invalid word is kept like a final one.
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

  /** The error of a final state, the own one looked at first. [pipe.first_answer] */
  stateError(verb: string): MillraceError | undefined {
    return this.ownError(verb) ?? this.peerError(verb);
  }

  #keepFinal(word: number): void {
    this.#final = word;
    if (this.outgoing !== undefined) this.outgoing.bits |= GONE;
    if (this.incoming !== undefined) this.incoming.bits |= GONE;
  }

  /** Forgets what the peer's state was: its endpoint has its next owner. */
  renew(): void {
    this.#final = 0;
    this.port?.renew();
  }
}
