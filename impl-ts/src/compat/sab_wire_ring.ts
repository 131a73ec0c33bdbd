/**
 * A `SABPipe` on Millrace's ring. A burst is written as JSON batches, so that any other Millrace
 * endpoint can be the peer.
 *
 * @module
 */

import { clearTimeout, setTimeout } from "../memory/clock.ts";
import { detach, encodeBatch, encodeText } from "../codec/codec.ts";
import { PeerClosedError } from "../error.ts";
import * as layout from "../memory/layout.ts";
import { Link, requireReaderOptions } from "../pipe/pipe.ts";
import { Inlet, VALUE } from "../pipe/inlet.ts";
import { Outlet } from "../pipe/outlet.ts";
import { now, type Segment } from "../memory/segment.ts";
import { recordOffset } from "../memory/segment_geometry.ts";
import type { Waitable } from "../wait/wait.ts";
import { LONGEST_TIMER_MS } from "../wait/task.ts";
import { Endpoint } from "../wait/endpoint.ts";
import { loopSpinnerOf } from "../wait/loop_spinner.ts";
import { stateOf } from "../wait/state.ts";
import type { Waiter } from "../wait/watch.ts";
import type { Fault, ReaderWire, Wire, WriterWire } from "./sab_wire.ts";

/** Whether this end of the ring was closed or marked failed by an earlier owner, which is final. */
export function isRingEndGone(segment: Segment, role: "r" | "w"): boolean {
  const { writer, reader } = segment.channels[0]!;
  const record = recordOffset(role === "w" ? writer : reader);
  const words = segment.words(record, layout.ENDPOINT_RECORD_SIZE);
  const word = Atomics.load(words, layout.ENDPOINT_STATE_WORD);
  return stateOf(word) > layout.ENDPOINT_STATE_ATTACHED;
}

/** What both ends share: a lane of the ring, and how it waits. */
abstract class RingEnd implements Wire, Waiter {
  abstract readonly lane: Outlet | Inlet;
  protected readonly link: Link;
  /**
   * The function that ends the sleep, and the timer that ends it after the longest time allowed.
   */
  #over: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(segment: Segment, own: number, peer: number) {
    this.link = new Link(Endpoint.attach(segment, own), peer);
  }

  get disposed(): boolean {
    return !this.isLinked && this.link.isFinal();
  }

  /** Whether both ends are attached, which is the usual case. */
  protected get isLinked(): boolean {
    return !this.link.closed && this.link.endpoint.isLinked(this.link.peer);
  }

  get what(): Waitable {
    return this.lane;
  }

  sleep(ms: number, over: () => void): boolean {
    if (!this.link.endpoint.watch.add(this)) return false;
    if (ms < Infinity) this.#timer = setTimeout(() => this.nudge(), Math.min(ms, LONGEST_TIMER_MS));
    this.#over = over;
    return true;
  }

  wake(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#over!();
  }

  nudge(): void {
    if (this.link.endpoint.watch.remove(this)) this.wake();
  }

  keepAlive(on: boolean): void {
    const { watch } = this.link.endpoint;
    if (on) watch.dwell(this.link.peer, true);
    else watch.depart(true);
  }

  giveWay(): Promise<void> | undefined {
    return this.link.endpoint.giveWay();
  }

  close(): void {
    this.link.close();
  }
}

/**
 * An outlet that waits for room for more than one message: a wake costs more than several writes.
 */
class BurstOutlet extends Outlet {
  override get need(): number {
    const half = (this.stored - (this.capacity >> 1)) | 0;
    return ((half - super.need) | 0) > 0 ? half : super.need;
  }

  /** Whether the reader sleeps and waits for a store of `tail` to wake it. */
  get isAwaited(): boolean {
    return Atomics.load(this.control, layout.RING_READER_WANTS_WORD) !== 0;
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

/**
 * The writing end. It drives the outlet as `Writer` does, but so that a blocking read can carry on
 * with what an asynchronous write has begun.
 */
export class RingWriterWire extends RingEnd implements WriterWire {
  readonly lane: BurstOutlet;
  fault: Fault | undefined;
  /** The values of the burst; those from `#next` on are not encoded yet. */
  #values: readonly unknown[] = [];
  #next = 0;
  /** How many values to encode as the next message. */
  #most = FIRST_COUNT;
  /** Whether a message is encoded and not placed completely. */
  #isUnderWay = false;

  /** @throws {SegmentError} `segment.endpoint` if another writer is attached. */
  constructor(segment: Segment) {
    const channel = segment.channels[0]!;
    super(segment, channel.writer, channel.reader);
    this.lane = new BurstOutlet(this.link, channel);
  }

  /** Always true: what fits the ring need not wait until earlier messages are read. */
  get mayBegin(): boolean {
    return true;
  }

  begin(values: readonly unknown[]): void {
    this.#values = values;
    this.#next = 0;
    this.#isUnderWay = false;
    this.fault = undefined;
  }

  carryOn(): boolean {
    const { lane } = this;
    lane.check();
    try {
      while (this.#isUnderWay || this.#encode()) {
        this.#isUnderWay = true;
        if (!lane.advance()) {
          detach(lane);
          return false;
        }
        this.#isUnderWay = false;
        // A reader that is awake can take this message while the next one is encoded. A reader that
        // sleeps is woken once, for all the messages that there is room for.
        if (!lane.isAwaited) lane.store();
      }
      return true;
    } finally {
      lane.store();
    }
  }

  /**
   * Encodes the next message: as many values as `FILL` of the ring, or `FILL_MAX`, holds, judged by
   * the size of the last ones. A batch that is too large for a frame, or has a value that cannot be
   * encoded, is halved until that value is alone, so that only that value is lost. Returns false if
   * no value is left.
   */
  #encode(): boolean {
    const { lane } = this;
    const values = this.#values;
    while (this.#next < values.length) {
      const count = Math.min(this.#most, values.length - this.#next);
      try {
        // `JSON.stringify` returns undefined for a value without a JSON form. In an array, which
        // the original writes, such a value becomes `null`.
        if (count === 1) {
          encodeText(JSON.stringify(values[this.#next]) ?? "null", layout.CODEC_JSON, lane);
        } else encodeBatch(this.#run(count), lane);
        if (count === 1 || lane.size <= lane.largest) {
          this.#next += count;
          const fill = Math.min(lane.capacity * FILL, FILL_MAX);
          this.#most = Math.max(1, Math.floor(fill * count / lane.size));
          lane.start(layout.FRAME_KIND_DATA, 0);
          return true;
        }
      } catch (reason) {
        if (count === 1) {
          this.#next++;
          this.fault ??= { reason };
        }
      }
      this.#most = Math.max(1, count >> 1);
    }
    this.#values = [];
    return false;
  }

  #run(count: number): readonly unknown[] {
    const values = this.#values;
    return count === values.length ? values : values.slice(this.#next, this.#next + count);
  }
}

/** The reading end of a ring. */
export class RingReaderWire extends RingEnd implements ReaderWire {
  readonly lane: Inlet;
  outgoing: Outlet | undefined;
  /** Whether this end has looked for an answer and found none. */
  #hasAsked = false;
  /** When it then fell asleep, in milliseconds of `now()`; 0 if nothing is learnt from it. */
  #asleep = 0;

  /** @throws {SegmentError} `segment.endpoint` if another reader is attached. */
  constructor(segment: Segment, maxMessageSize: number) {
    requireReaderOptions({ maxMessageSize }); // before the endpoint is taken
    const channel = segment.channels[0]!;
    super(segment, channel.reader, channel.writer);
    this.lane = new Inlet(this.link, channel, { maxMessageSize });
  }

  override get disposed(): boolean {
    return this.lane.ended || super.disposed;
  }

  tryTake(): unknown[] | undefined {
    const { lane } = this;
    let value = lane.take(VALUE, undefined, true);
    if (value === undefined) {
      if (this.isLinked && !lane.ended) return undefined;
      value = this.#takeLast();
      if (value === undefined) return undefined;
    }
    // If the message is a batch, `value` is its first element, and the queue holds the others.
    const rest = lane.queue.pop();
    return rest !== undefined && "values" in rest ? rest.values as unknown[] : [value];
  }

  /** Called after a look that found nothing, when a state may say that nothing more will come. */
  #takeLast(): unknown {
    const { lane } = this;
    if (lane.ended) throw new PeerClosedError("peer.closed", "Cannot read: the stream has ended");
    const gone = lane.lookAgain(); // [pipe.look_again]
    if (gone === undefined) return undefined;
    const value = lane.take(VALUE, undefined, false);
    if (value === undefined && !lane.ended) throw lane.giveUp(gone);
    return value;
  }

  wait(deadline: number, waits: number): boolean {
    const { lane, outgoing } = this;
    const { endpoint } = this.link;
    if (waits === 0 && outgoing !== undefined && outgoing.isAnswerDue) {
      outgoing.prepareForAnswer();
      if (lane.glance(endpoint.spinner.glances)) return true;
    }
    return endpoint.waitBriefly(lane) || endpoint.wait(lane, deadline, waits);
  }

  spinForAnswer(): boolean {
    const { outgoing } = this;
    this.#hasAsked = outgoing !== undefined && outgoing.isAnswerDue;
    if (!this.#hasAsked) return false;
    outgoing!.prepareForAnswer();
    // Of the two endpoints of a port, the outgoing one knows whether the peer had to be woken.
    return loopSpinnerOf(outgoing!.endpoint).spin(this.lane);
  }

  override sleep(ms: number, over: () => void): boolean {
    const learns = this.#hasAsked && loopSpinnerOf(this.outgoing!.endpoint).learns;
    this.#asleep = learns ? now() : 0;
    this.#hasAsked = false;
    return super.sleep(ms, over);
  }

  override wake(): void {
    if (this.#asleep > 0) {
      loopSpinnerOf(this.outgoing!.endpoint).slept(now() - this.#asleep);
    }
    super.wake();
  }
}
