/**
 * A `SABPipe` on Millrace's ring: one end of a pipe, whose link tends the reader or the writer. A
 * burst is written as JSON batches, so that any other Millrace endpoint can be the peer.
 *
 * @module
 */

import { encodeText, isScratch } from "../codec/codec.ts";
import { failure } from "../error.ts";
import { now } from "../memory/clock.ts";
import { layout } from "../memory/layout.ts";
import { type Channel, recordAt } from "../memory/plan.ts";
import type { Segment } from "../memory/segment.ts";
import { glance, hasEnded, Incoming, Mode, noteAsked, tryRead } from "../pipe/incoming.ts";
import {
  closedError,
  closeLink,
  type Delivery,
  For,
  Link,
  stateError,
  tendSoon,
} from "../pipe/link.ts";
import { append, makeSend, Outgoing, pump, type Send } from "../pipe/outgoing.ts";
import { Bit, store } from "../ring/side.ts";
import { Endpoint } from "../wait/endpoint.ts";
import { turn } from "../wait/loop.ts";
import { stateOf } from "../wait/state.ts";
import type { Fault, ReaderWire, Wire, WriterWire } from "./sab_wire.ts";

/** Whether an end of the ring was closed or marked failed by an earlier owner, which is final. */
export function isRingEndGone({ control }: Segment, index: number): boolean {
  const word = Atomics.load(control, recordAt(index) + layout.ENDPOINT_STATE_WORD);
  return stateOf(word) > layout.ENDPOINT_STATE_ATTACHED;
}

/** A link that waits for room for more than one message: a wake costs more than several writes. */
class BurstLink extends Link {
  override arm(asks: number): void {
    const { outgoing } = this;
    if (outgoing !== undefined) {
      const half = (outgoing.published - (outgoing.capacity >> 1)) | 0;
      if (((half - outgoing.need) | 0) > 0) outgoing.need = half;
    }
    super.arm(asks);
  }
}

/** What both ends share. */
abstract class RingEnd implements Wire {
  protected readonly link: Link;
  protected readonly channel: Channel;

  /** @throws {SegmentError} `segment.endpoint` if another object has this end. */
  constructor(segment: Segment, isWriter: boolean) {
    const channel = this.channel = segment.channels[0]!;
    const { writer, reader } = channel;
    const endpoint = new Endpoint(segment, isWriter ? writer : reader);
    this.link = new BurstLink(endpoint, isWriter ? reader : writer);
  }

  set owner(owner: Delivery) {
    this.link.delivery = owner;
  }

  get disposed(): boolean {
    const { link } = this;
    const isLinked = !link.isClosed && link.endpoint.isLinked(link.peer); // mostly
    return !isLinked && stateError(link, "use") !== undefined;
  }

  tend(): void {
    this.link.tend();
  }

  tendSoon(): void {
    tendSoon(this.link);
  }

  close(): void {
    closeLink(this.link);
  }
}

/** How many values the first batch takes, while nothing is known about their size. */
const FIRST_COUNT = 16;
/**
 * The part of the ring that a batch takes. With a half, the most that a frame may take, pads leave
 * less room, and the reader has to be woken half as often again.
 */
const FILL = 1 / 4;
/**
 * The bytes that a batch takes in a large ring: a text of so many fits the memory that the codec
 * uses again for each. Larger ones took 1.2 times as long (measured: Node 24, Deno 2.9).
 */
const FILL_MAX = 16 * 1024;

const NONE: readonly unknown[] = [];

/** The writing end. */
export class RingWriterWire extends RingEnd implements WriterWire {
  readonly outgoing: Outgoing;
  /** Always true: what fits the ring need not wait until earlier messages are read. */
  readonly mayBegin = true;
  fault: Fault | undefined;
  /** The values of the burst; those from `#next` on are not encoded yet. */
  #values: readonly unknown[] = NONE;
  #next = 0;
  /** How many values to encode as the next message. */
  #most = FIRST_COUNT;
  #code = 0;
  /** The message of the burst that is in the queue: there is one at most. */
  readonly #send: Send = makeSend(layout.FRAME_KIND_DATA);
  /** Why a message did not come into the ring. */
  #loss: Fault | undefined;
  /** Called when a message is in the ring, or will not come there. */
  readonly #settle = (reason?: unknown): void => {
    if (reason !== undefined) {
      this.#loss = { reason };
      return;
    }
    const { outgoing } = this;
    // A reader that is awake can take this message while the next one is encoded. A reader that
    // sleeps is woken once, for all the messages that there is room for.
    if (Atomics.load(outgoing.words, outgoing.otherWants) === 0) store(outgoing);
    this.#append();
  };

  constructor(segment: Segment) {
    super(segment, true);
    this.outgoing = new Outgoing(this.link, this.channel, {});
    this.#send.settle = this.#settle;
  }

  begin(values: readonly unknown[]): void {
    this.#values = values;
    this.#next = 0;
    this.fault = this.#loss = undefined;
  }

  carryOn(): boolean {
    const { outgoing, link } = this;
    if ((outgoing.bits & Bit.ENCODING) !== 0) return false; // this is a `toJSON`, which reads
    const stopped = closedError(link, "write") ?? outgoing.fault;
    if (stopped !== undefined) throw stopped;
    if (outgoing.first === undefined && this.#loss === undefined) this.#append();
    const isDone = pump(outgoing);
    if (this.#loss !== undefined) throw this.#loss.reason;
    return isDone;
  }

  override close(): void {
    this.#values = NONE;
    super.close();
  }

  /** Puts the next message of the burst into the queue, if values are left. */
  #append(): void {
    const { outgoing } = this;
    if (this.#next >= this.#values.length) {
      this.#values = NONE;
      return;
    }
    outgoing.bits |= Bit.ENCODING; // a `toJSON` may run
    const source = this.#encode();
    outgoing.bits &= ~Bit.ENCODING;
    // A `toJSON` may have closed this end.
    if (source === undefined || (outgoing.bits & Bit.STOPPED) !== 0) return;
    const send = this.#send;
    send.code = this.#code;
    send.source = source;
    send.size = source.length;
    send.isKept = !isScratch(source);
    send.sent = -1;
    send.isSettled = false;
    append(outgoing, send);
  }

  /**
   * Encodes the next message: as many values as `FILL` of the ring, or `FILL_MAX`, holds, judged by
   * the size of the last ones. A batch that is too large for a frame, or has a value that cannot be
   * encoded, is halved until that value is alone, so that only that value is lost.
   */
  #encode(): Uint8Array | undefined {
    const { largest, capacity } = this.outgoing;
    while (this.#next < this.#values.length) {
      const next = this.#next;
      const all = this.#values;
      const values = all.length === 1 ? all : all.slice(next, next + this.#most);
      const count = values.length;
      const isAlone = count === 1;
      try {
        // `JSON.stringify` returns undefined for a value without a JSON form. In an array, which
        // the original writes, such a value becomes `null`.
        const source = encodeText(JSON.stringify(isAlone ? values[0] : values) ?? "null");
        if (isAlone || source.length <= largest) {
          this.#next = next + count;
          this.#code = isAlone ? layout.CODEC_JSON : layout.CODEC_JSON_BATCH;
          const fill = Math.min(capacity * FILL, FILL_MAX);
          this.#most = Math.max(1, Math.floor(fill * count / source.length));
          return source;
        }
      } catch (reason) {
        if (isAlone) {
          this.#next++;
          this.fault ??= { reason };
        }
      }
      this.#most = Math.max(1, count >> 1);
    }
    return undefined;
  }
}

/** Milliseconds that an event loop spins for an answer. */
const SPIN_MS = 0.02;

/** The reading end. */
export class RingReaderWire extends RingEnd implements ReaderWire {
  writer: WriterWire | undefined;
  readonly #incoming: Incoming;
  /** When the event loop fell asleep for an answer, to learn how long that takes; 0 if not. */
  #asleep = 0;

  constructor(segment: Segment, maxMessageSize: number) {
    super(segment, false);
    this.#incoming = new Incoming(this.link, this.channel, { maxMessageSize });
  }

  override get disposed(): boolean {
    return hasEnded(this.#incoming) || super.disposed;
  }

  take(): unknown[] | undefined {
    const incoming = this.#incoming;
    const value = tryRead(incoming, Mode.VALUE);
    if (value === undefined) {
      if (hasEnded(incoming)) throw failure("peer.closed", "read: the stream has ended");
      return undefined;
    }
    if (this.#asleep > 0) this.link.endpoint.spinner.slept(now() - this.#asleep);
    this.#asleep = 0;
    // If the message is a batch, `value` is its first element, and the queue holds the others.
    const rest = incoming.queue.pop();
    return rest !== undefined && "values" in rest ? rest.values as unknown[] : [value];
  }

  wait(deadline: number, waits: number): boolean {
    return waits === 0 && glance(this.#incoming, this.writer?.outgoing) ||
      this.link.endpoint.wait(this.link, For.MESSAGES, deadline, waits);
  }

  spinForAnswer(): boolean {
    const { link } = this;
    const { spinner } = link.endpoint;
    const hasAsked = noteAsked(this.#incoming, this.writer?.outgoing) && turn.listening < 2;
    const isFound = hasAsked && spinner.isDue() &&
      spinner.spin(link, For.MESSAGES, Math.min(spinner.budget, SPIN_MS), Infinity);
    this.#asleep = hasAsked && !isFound && spinner.learns ? now() : 0;
    return isFound;
  }
}
