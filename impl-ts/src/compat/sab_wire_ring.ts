/**
 * A `SABPipe` on Millrace's ring: a burst is a JSON batch, so that any other endpoint of Millrace
 * can be the peer.
 *
 * @module
 */

import { decodeBatch, decodeJson, decodeText, detach, encode, encodeBatch } from "../codec.ts";
import { ClosedError, MessageError } from "../error.ts";
import * as layout from "../layout.ts";
import { Link, type Message, requireReaderOptions } from "../pipe.ts";
import { Reader } from "../pipe_reader.ts";
import { Outlet } from "../pipe_outlet.ts";
import type { Segment } from "../segment.ts";
import { recordOffset } from "../segment_geometry.ts";
import { Endpoint } from "../wait_endpoint.ts";
import { stateOf } from "../wait_state.ts";
import { type ReaderWire, toJson, type WriterWire } from "./sab_wire.ts";

/** Whether this end of the ring was closed, or marked failed, by whoever had it: for ever. */
export function isRingEndGone(segment: Segment, role: "r" | "w"): boolean {
  const { writer, reader } = segment.channels[0]!;
  const record = recordOffset(role === "w" ? writer : reader);
  const words = segment.words(record, layout.ENDPOINT_RECORD_SIZE);
  const word = Atomics.load(words, layout.ENDPOINT_STATE_WORD);
  return stateOf(word) > layout.ENDPOINT_STATE_ATTACHED;
}

/**
 * The writing end. It stands where `Writer` does, for the sake of a blocking read that carries on
 * with what an asynchronous write has begun.
 */
export class RingWriterWire implements WriterWire {
  readonly #link: Link;
  readonly #outlet: Outlet;
  /** The burst: the values from `#next` on are not encoded yet, and `#most` fit one frame. */
  #values: readonly unknown[] = [];
  #next = 0;
  #most = 0;
  #begun = false;

  /** @throws {SegmentError} `segment.endpoint` if another writer is attached. */
  constructor(segment: Segment) {
    const channel = segment.channels[0]!;
    this.#link = new Link(Endpoint.attach(segment, channel.writer), channel.reader);
    this.#outlet = new Outlet(this.#link, channel);
  }

  get disposed(): boolean {
    return isDisposed(this.#link);
  }

  /** Always: what fits the ring need not wait until anything is read. */
  get free(): boolean {
    return true;
  }

  begin(values: readonly unknown[]): void {
    this.#values = values;
    this.#next = 0;
    this.#most = values.length;
    this.#encode();
    this.#begun = true;
  }

  carryOn(): boolean {
    const outlet = this.#outlet;
    outlet.check();
    try {
      while (this.#begun && outlet.advance()) {
        if (this.#next === this.#values.length) this.#begun = false;
        else this.#encode();
      }
      if (this.#begun) detach(outlet);
    } finally {
      outlet.store();
    }
    return !this.#begun;
  }

  async waitForRoom(): Promise<void> {
    await this.#outlet.endpoint.waitAsync(this.#outlet, Infinity, undefined);
  }

  close(): void {
    this.#link.close();
  }

  /**
   * Encodes the next message: as many values as fit one frame, so that a reader that sees the first
   * of a burst sees the others too. At first that is all of them: one that is no JSON is found
   * before anything is written.
   */
  #encode(): void {
    const outlet = this.#outlet;
    for (;;) {
      const run = this.#values.slice(this.#next, this.#next + this.#most);
      if (run.length === 1) encode(toJson(run[0]), "json", outlet);
      else encodeBatch(run, outlet);
      if (run.length === 1 || outlet.size <= outlet.largest) {
        this.#next += run.length;
        return outlet.start(layout.FRAME_KIND_DATA, 0);
      }
      this.#most = run.length >> 1;
    }
  }
}

/** The reading end. */
export class RingReaderWire implements ReaderWire {
  readonly #link: Link;
  readonly #reader: Reader;

  /** @throws {SegmentError} `segment.endpoint` if another reader is attached. */
  constructor(segment: Segment, maxMessageSize: number) {
    requireReaderOptions({ maxMessageSize }); // before the endpoint is taken
    const channel = segment.channels[0]!;
    this.#link = new Link(Endpoint.attach(segment, channel.reader), channel.writer);
    this.#reader = new Reader(this.#link, channel, { maxMessageSize });
  }

  get disposed(): boolean {
    return this.#reader.ended || isDisposed(this.#link);
  }

  take(timeout: number): unknown[] | undefined {
    const reader = this.#reader;
    return this.#decode(timeout > 0 ? reader.readMessage({ timeout }) : reader.tryReadMessage());
  }

  async takeAsync(timeout: number, signal: AbortSignal): Promise<unknown[] | undefined> {
    return this.#decode(await this.#reader.readMessageAsync({ timeout, signal }));
  }

  close(): void {
    this.#reader.close();
  }

  #decode(message: Message | undefined): unknown[] | undefined {
    if (message === undefined) return undefined;
    const { codec, payload } = message;
    switch (codec) {
      case layout.CODEC_JSON_BATCH:
        return decodeBatch(payload);
      case layout.CODEC_JSON:
        return [decodeJson(payload)];
      case layout.CODEC_TEXT:
        return [decodeText(payload)];
      case layout.CODEC_BYTES:
        return [payload];
      default:
        throw new MessageError("message.codec", `Cannot read message: codec ${codec}`);
    }
  }
}

/** An end that was destroyed before, by whoever had it: for ever. */
export class GoneWire implements WriterWire, ReaderWire {
  readonly disposed = true;
  readonly free = true;

  begin(): void {}

  carryOn(): never {
    throw new ClosedError("pipe.closed", "Cannot use pipe: this end was closed");
  }

  async waitForRoom(): Promise<void> {}

  take(): never {
    return this.carryOn();
  }

  takeAsync(): never {
    return this.carryOn();
  }

  close(): void {}
}

function isDisposed(link: Link): boolean {
  const { endpoint } = link;
  return link.closed || link.isPeerGone() ||
    !endpoint.isOwn(endpoint.state(endpoint.index));
}
