/**
 * One side of a stream, without its transport: bytes in, bytes out, and a port between. See
 * `spec/stream.md`.
 *
 * The port is side a of a private segment, and the link is side b. The link puts frames that arrive
 * into the ring from which the port reads, and takes what the port has written out of the other
 * ring. It turns frames of the stream into changes of state, and changes of state into frames. So
 * the port is an ordinary one.
 *
 * @module
 */

import { assert, describe, failure, type MillraceError, throwRangeError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { recordAt, requireCapacity, segmentSize } from "../memory/plan.ts";
import { portGeometry, type PortOptions, requirePortOptions } from "../port/options.ts";
import { Port } from "../port/port.ts";
import { want } from "../ring/side.ts";
import { capacityOf, StreamInlet } from "./inlet.ts";
import { LocalMechanism } from "./mechanism.ts";
import { controlFrame, outgoingCapacity, StreamOutlet } from "./outlet.ts";
import { isStreamSize, type Preface, PrefaceReader, writePreface } from "./preface.ts";
import { attachEndpoint, type Endpoint, leaveEndpoint } from "../wait/endpoint.ts";
import { isFinal, markFailed, stateOf, stateWord } from "../wait/state.ts";

/**
 * Options of one side of a stream.
 *
 * @example
 * ```ts
 * import { openStream, type StreamOptions } from "@millrace/millrace/stream";
 *
 * // For messages of a megabyte over a way that takes long; each at most eight.
 * type Options = StreamOptions<Uint8Array, Uint8Array>;
 * const options: Options = { window: 4 << 20, largest: 1 << 20, maxMessageSize: 8 << 20 };
 * const [there, back] = [1, 2].map(() => new TransformStream<Uint8Array, Uint8Array>());
 * const [a, b] = await Promise.all([
 *   openStream<Uint8Array>({ readable: back!.readable, writable: there!.writable }, options),
 *   openStream<Uint8Array>({ readable: there!.readable, writable: back!.writable }, options),
 * ]);
 * a.postMessage(new Uint8Array(1 << 20));
 * console.log((await b.readAsync())!.length); // 1048576
 * a.close();
 * b.close();
 * ```
 */
export interface StreamOptions<In = unknown, Out = In>
  extends Omit<PortOptions<In, Out>, "side" | "spin" | "mechanism"> {
  /** Largest frame that the peer may send, in bytes, a multiple of 16. Default 49,152. */
  readonly largest?: number | undefined;
  /**
   * Bytes that the peer may send beyond what was read: a multiple of 16, at least `largest`.
   * Default 196,608. A transport of high bandwidth and long delay needs more.
   */
  readonly window?: number | undefined;
  /** Size in bytes of the ring that holds written messages: a power of two. Default 262,144. */
  readonly capacity?: number | undefined;
}

/** The indices of the two endpoints in the private segment. */
const PORT = 0;
const LINK = 1;
const BELL_OF_LINK = /* @__PURE__ */ recordAt(LINK) + layout.ENDPOINT_BELL_WORD;

/** The link's end of the private segment. */
interface Ends {
  readonly endpoint: Endpoint;
  readonly inlet: StreamInlet;
  readonly outlet: StreamOutlet;
}

/** The parts that exist once the peer's preface is known. */
interface Joint<In, Out> extends Ends {
  readonly port: Port<In, Out>;
}

/** Turns a port into the bytes of one side, and back. It never waits: its host calls it. */
export class StreamLink<In = unknown, Out = In> {
  readonly #options: StreamOptions<In, Out>;
  readonly #own: Preface;
  readonly #prefaces = new PrefaceReader();
  readonly #wake: () => void;
  #joint: Joint<In, Out> | undefined;
  #failure: MillraceError | undefined;
  /** Whether the preface of this side is written, and whether this side writes nothing more. */
  #hasBegun = false;
  #hasEnded = false;
  /** Whether this side has closed, or was closed, before the peer was. */
  #isClosing = false;
  /** The last frame that this side writes. */
  #last: Uint8Array | undefined;
  /** Whether the peer's byte stream has ended, or the rest of it does not matter. */
  #peerHasEnded = false;

  /**
   * Creates a side. `wake` is called when there may be something to transmit that the last call of
   * `transmit` did not return.
   *
   * @throws {RangeError} if a size is out of range.
   */
  constructor(options: StreamOptions<In, Out> = {}, wake: () => void = () => {}) {
    const { largest = 49_152, window = 196_608, capacity = 262_144 } = options;
    const isGood = isStreamSize(largest, layout.STREAM_LARGEST_MIN) &&
      isStreamSize(window, largest) &&
      capacityOf({ largest, window }) <= layout.RING_CAPACITY_MAX;
    if (!isGood) throwRangeError(`largest and window do not go together: ${largest}, ${window}`);
    requireCapacity(capacity);
    requirePortOptions(options);
    this.#options = { ...options, capacity };
    this.#own = { largest, window };
    this.#wake = wake;
  }

  /** The port; undefined until the peer's preface has arrived. */
  get port(): Port<In, Out> | undefined {
    return this.#joint?.port;
  }

  /** The error that says why there will be no port, if there is one. */
  get failure(): MillraceError | undefined {
    return this.#failure;
  }

  /** Whether this side's byte stream has ended: `transmit` returns no more bytes. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Whether it has ended, or will end as soon as what was written is transmitted. */
  get isEnding(): boolean {
    const isOver = this.#hasEnded || this.#isClosing || this.#last !== undefined;
    return isOver || (this.#joint !== undefined && isGone(this.#joint));
  }

  /**
   * Whether the transport may be given up, because both byte streams have ended. [stream.linger]
   */
  get isDone(): boolean {
    return this.#hasEnded && this.#peerHasEnded;
  }

  /** Takes in bytes that have arrived. */
  receive(bytes: Uint8Array): void {
    if (!this.#joint && !this.#failure && !this.#peerHasEnded) {
      bytes = bytes.subarray(this.#prefaces.take(bytes));
      const reason = this.#prefaces.check();
      if (reason !== 0) return this.#fault(reason);
      const { preface } = this.#prefaces;
      if (!preface) return;
      if (!this.#isClosing) this.#join(preface);
    }
    this.#joint?.inlet.receive(bytes);
    this.#wake();
  }

  /** Must be called when no more bytes will arrive. [stream.lost] */
  receiveEnd(): void {
    if (this.#peerHasEnded) return;
    this.#peerHasEnded = true;
    this.#joint?.inlet.stop();
    if (!this.#isClosing) {
      this.#mark(LINK, layout.REASON_PEER_LOST);
      this.#failure ??= this.#lost(layout.REASON_PEER_LOST);
    }
    this.#hasEnded = true; // [stream.broken]
    this.#wake();
  }

  /** Returns the next bytes for the transport; undefined if there are none now. */
  transmit(): Uint8Array | undefined {
    if (this.#hasEnded) return undefined;
    const pieces: Uint8Array[] = [];
    if (!this.#hasBegun) pieces.push(writePreface(this.#own)); // [stream.preface]
    this.#hasBegun = true;
    this.#look();
    if (this.#joint && !this.#last) this.#takeOut(this.#joint, pieces);
    if (this.#last) {
      pieces.push(this.#last);
      this.#hasEnded = true;
    }
    if (this.#joint) arm(this.#joint);
    return pieces.length > 0 ? joined(pieces) : undefined;
  }

  /** Closes this side, even if there is no port yet. [stream.close] */
  close(): void {
    if (this.#joint) return this.#joint.port.close();
    this.#isClosing = true;
    this.#last ??= controlFrame(layout.STREAM_KIND_CLOSE, 0);
    this.#failure ??= failure("pipe.closed", "open stream: this end is closed");
    this.#wake();
  }

  #takeOut({ inlet, outlet }: Joint<In, Out>, pieces: Uint8Array[]): void {
    const credit = inlet.takeCredit();
    // The credit comes first, because it waits for nothing. [stream.unhindered] [stream.one_credit]
    if (credit !== undefined) pieces.push(controlFrame(layout.STREAM_KIND_CREDIT, credit));
    outlet.take(pieces);
    if (this.#isClosing && outlet.isEmpty) {
      this.#last = controlFrame(layout.STREAM_KIND_CLOSE, 0);
    }
  }

  /** Looks at the states of both endpoints, which the port may have changed. */
  #look(): void {
    if (!this.#joint) return;
    const { endpoint, inlet } = this.#joint;
    const own = stateWord(endpoint, LINK);
    if (stateOf(own) === layout.ENDPOINT_STATE_FAILED && !this.#isClosing) {
      // [stream.fail] The port has found a fault in a frame that it has read.
      this.#last ??= controlFrame(layout.STREAM_KIND_FAIL, own >>> layout.REASON_SHIFT);
      inlet.stop();
    } else if (isGone(this.#joint) && !this.#isClosing) {
      this.#isClosing = true;
      inlet.drop();
    }
  }

  /** Creates the port and the link's ends of its rings. [port.layout] */
  #join(peer: Preface): void {
    const { capacity, ...options } = this.#options;
    const mechanism = new LocalMechanism((index) => {
      if (index === BELL_OF_LINK) this.#wake();
    });
    const out = outgoingCapacity(peer, capacity!);
    const given = { ...options, capacity: [out, capacityOf(this.#own)] as const, mechanism };
    const memory = new ArrayBuffer(segmentSize(portGeometry(given)));
    const port = Port.create<In, Out>({ ...given, memory, spin: 0 });
    const endpoint = attachEndpoint(port.segment, LINK, { mechanism, spin: 0 });
    const [outgoing, incoming] = port.segment.channels;
    assert(outgoing !== undefined && incoming !== undefined, "a port has two rings");
    const control = {
      credit: (position: number) => this.#joint!.outlet.credit(position),
      close: () => this.#closed(),
      fail: (reason: number) => this.#failed(reason),
      fault: (reason: number) => this.#fault(reason),
    };
    const inlet = new StreamInlet(endpoint, incoming, this.#own, control);
    const outlet = new StreamOutlet(endpoint, outgoing, peer);
    this.#joint = { port, endpoint, inlet, outlet };
    arm(this.#joint);
  }

  /** The peer has closed. [stream.closed] [stream.hang_up] */
  #closed(): void {
    this.#peerHasEnded = true;
    if (!this.#isClosing) leaveEndpoint(this.#joint!.endpoint);
    this.#hasEnded = true;
  }

  /** The peer has marked this side failed. [stream.failed] [stream.hang_up] */
  #failed(reason: number): void {
    this.#peerHasEnded = true;
    if (!this.#isClosing) this.#mark(PORT, reason);
    this.#hasEnded = true;
  }

  /** Fails the peer for a fault that was found, and tells it so. [stream.fault] [stream.fail] */
  #fault(reason: number): void {
    this.#mark(LINK, reason);
    this.#failure ??= this.#lost(reason);
    this.#last ??= controlFrame(layout.STREAM_KIND_FAIL, reason);
    this.#wake();
  }

  /** Marks an endpoint failed. This version may not know the reason. */
  #mark(index: number, reason: number): void {
    if (!this.#joint) return;
    const { port, endpoint } = this.#joint;
    markFailed(port.segment, index, reason, endpoint.mechanism);
  }

  #lost(reason: number): MillraceError {
    return failure("peer.failed", `open stream: the peer failed${describe(reason)}`, { reason });
  }
}

/** Whether the port has closed, or is marked failed. */
function isGone({ endpoint }: Ends): boolean {
  return isFinal(stateOf(stateWord(endpoint, PORT)));
}

/** Has the port ring for what it writes, and for room that is worth a credit. [wait.stay_armed] */
function arm({ inlet, outlet }: Ends): void {
  want(inlet, inlet.need | layout.WANTS_ARMED);
  want(outlet, outlet.need | layout.WANTS_ARMED);
}

/** Joins the pieces to one array. */
function joined(pieces: readonly Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
