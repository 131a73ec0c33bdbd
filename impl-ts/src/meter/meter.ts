/**
 * Metering: how busy a pipe is, how long its messages wait, and how long they take to handle. This
 * entry uses the library hdr-histogram-js. An end without a meter pays nothing. See
 * `spec/meter.md`.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { meter } from "@millrace/millrace/meter";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * using _writing = meter(here); // so that the messages say when they were written
 * using reading = meter(there);
 * here.write("hello");
 * there.read();
 * const { incoming } = reading.snapshot();
 * console.log(incoming?.values, incoming?.waiting.count); // 1 1
 * ```
 *
 * @module
 */

import { throwCannot } from "../error.ts";
import { systemTime } from "../memory/clock.ts";
import type { Reader, Writer } from "../pipe/ends.ts";
import { keep, pull } from "../pipe/incoming.ts";
import type { Link } from "../pipe/link.ts";
import { place } from "../pipe/outgoing.ts";
import type { PortDelivery } from "../port/delivery.ts";
import type { StreamPort } from "../port/over_stream.ts";
import { type Stats, statsOfEndpoint } from "../wait/endpoint.ts";
import { followSystem, microseconds } from "./clock.ts";
import { IncomingGauge } from "./incoming.ts";
import { noteSleeps, OutgoingGauge } from "./outgoing.ts";
import type { IncomingFigures, MeterSnapshot, OutgoingFigures } from "./snapshot.ts";
import type { Tally } from "./tally.ts";

export { estimate } from "./estimate.ts";
export type { Estimate, Estimated, EstimateOptions, EstimateSource } from "./estimate.ts";
export { snapshotSchema } from "./snapshot.ts";
export type { EndpointFigures, IncomingFigures, MeterSnapshot } from "./snapshot.ts";
export type { OutgoingFigures, QueueFigures } from "./snapshot.ts";
export type { Distribution } from "./tally.ts";

/**
 * An end that can be metered: a port (also of a hub or over a stream), a reader, or a writer.
 *
 * @example
 * ```ts
 * import { Segment, Writer } from "@millrace/millrace";
 * import { meter, type Meterable } from "@millrace/millrace/meter";
 *
 * const channels = [{ writer: 0, reader: 1, capacity: 256 }];
 * using writer = Writer.attach<string>(Segment.allocate({ endpoints: 2, channels }));
 * const ends: Meterable[] = [writer];
 * for (const end of ends) console.log(meter(end).snapshot().incoming); // null
 * ```
 */
// deno-lint-ignore no-explicit-any -- The types that they read and write make no difference.
export type Meterable = StreamPort<any, any> | Reader<any> | Writer<any>;

/**
 * Begins to meter a port, a reader or a writer of this thread, which goes on exchanging messages as
 * before. To learn how long messages have waited, meter their writer as well, wherever it is: a
 * metered writer stores in each message when it was finished.
 *
 * @throws {TypeError} if the end already has a meter.
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { meter } from "@millrace/millrace/meter";
 *
 * const here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * using reading = meter(here);
 * for (const n of [1, 2, 3]) there.write(n);
 * there.end();
 * here.onmessage = () => {}; // to be measured
 * await here.closed;
 * console.log(reading.snapshot().incoming?.service.count); // 3
 * ```
 */
export function meter(end: Meterable): Meter {
  return new Meter(end);
}

/**
 * A meter, created by `meter`. It belongs to the thread of the end that it meters.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { meter, type Meter } from "@millrace/millrace/meter";
 *
 * using port = Port.create<string>();
 * const metered: Meter = meter(port);
 * port.write("counted");
 * metered.close();
 * port.write("not counted");
 * console.log(metered.snapshot().outgoing?.messages); // 1
 * ```
 */
export class Meter {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "Meter";

  readonly #link: Link;
  readonly #outgoing: OutgoingGauge | undefined;
  readonly #incoming: IncomingGauge | undefined;
  /** What gives the parts of the end their own functions again. */
  readonly #undo: (() => void)[] = [];
  /** When the meter began to count, and what the endpoint had counted by then. */
  #since = 0;
  #before: Stats;

  /**
   * Use `meter` to create one.
   *
   * @internal
   */
  constructor(end: Meterable) {
    const { link } = end;
    const { outgoing, incoming, delivery, endpoint } = link;
    if (outgoing && outgoing.place !== place || incoming && incoming.take !== pull) {
      throwCannot("meter: it has a meter already");
    }
    this.#link = link;
    this.#before = statsOfEndpoint(endpoint);
    followSystem();
    this.#since = microseconds();
    if (outgoing !== undefined) {
      const gauge = this.#outgoing = new OutgoingGauge(outgoing);
      outgoing.place = gauge.place;
      this.#undo.push(noteSleeps(link, gauge), () => outgoing.place = place);
    }
    if (incoming !== undefined) {
      const gauge = this.#incoming = new IncomingGauge(incoming);
      incoming.take = gauge.take;
      incoming.keep = gauge.keep;
      this.#undo.push(() => {
        incoming.take = pull;
        incoming.keep = keep;
      });
      if (delivery !== undefined && "next" in delivery) {
        this.#follow(delivery as PortDelivery, gauge);
      }
    }
  }

  /** Has the service time of a message end when its listeners have returned. */
  #follow(delivery: PortDelivery, { laps }: IncomingGauge): void {
    const { next } = delivery;
    this.#undo.push(() => delivery.next = next);
    delivery.next = () => {
      try {
        next();
      } finally {
        laps.endLap();
      }
    };
  }

  /** Returns a copy of all figures as they are now. Taking a snapshot changes no figure. */
  snapshot(): MeterSnapshot {
    followSystem();
    const elapsed = Math.max(0, microseconds() - this.#since);
    const { index, wakes, wakesElided, parks } = this.#link.endpoint;
    const before = this.#before;
    const perSecond = (count: number) => elapsed === 0 ? 0 : count / elapsed * 1e6;
    return {
      at: systemTime(),
      elapsed,
      endpoint: {
        index,
        wakes: wakes - before.wakes,
        elidedWakes: wakesElided - before.wakesElided,
        sleeps: parks - before.parks,
      },
      outgoing: this.#writes(perSecond),
      incoming: this.#reads(perSecond),
    };
  }

  #writes(perSecond: (count: number) => number): OutgoingFigures | null {
    const gauge = this.#outgoing;
    if (gauge === undefined) return null;
    gauge.settleClaim();
    const { messages, bytes, stalls } = gauge;
    return {
      messages,
      bytes,
      messageRate: perSecond(messages),
      byteRate: perSecond(bytes),
      queue: gauge.queue(),
      stalls,
      stall: gauge.stall.distribution(),
    };
  }

  #reads(perSecond: (count: number) => number): IncomingFigures | null {
    const gauge = this.#incoming;
    if (gauge === undefined) return null;
    gauge.laps.settle();
    const { messages, bytes, values, untimed } = gauge;
    return {
      messages,
      bytes,
      values,
      messageRate: perSecond(messages),
      byteRate: perSecond(bytes),
      valueRate: perSecond(values),
      queue: gauge.queue(),
      untimed,
      waiting: gauge.waiting.distribution(),
      service: gauge.service.distribution(),
    };
  }

  /**
   * Returns one of the histograms, in nanoseconds, as a text: base64 of the compressed encoding V2,
   * which the HdrHistogram libraries of all languages read. It can be added to the histograms of
   * other threads. Undefined if the end does not have it: only a reading end has `waiting` and
   * `service`, and only a writing end has `stall`.
   *
   * @example
   * ```ts
   * import { decodeFromCompressedBase64 } from "hdr-histogram-js";
   * import { Port } from "@millrace/millrace";
   * import { meter } from "@millrace/millrace/meter";
   *
   * using port = Port.create<string>();
   * using metered = meter(port);
   * const service = decodeFromCompressedBase64(metered.histogram("service")!);
   * console.log(service.totalCount); // 0
   * ```
   */
  histogram(of: "waiting" | "service" | "stall"): string | undefined {
    this.#incoming?.laps.settle();
    this.#outgoing?.settleClaim();
    const tally: Tally | undefined = of === "stall" ? this.#outgoing?.stall : this.#incoming?.[of];
    return tally?.encode();
  }

  /** Begins to count again from 0. Messages under way are counted when they are done. */
  reset(): void {
    followSystem();
    this.#since = microseconds();
    this.#before = statsOfEndpoint(this.#link.endpoint);
    this.#outgoing?.clear();
    this.#incoming?.clear();
  }

  /** Ends the metering. The figures stay available. A second call does nothing. */
  close(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }

  /** Ends the metering; see `close`. */
  [Symbol.dispose](): void {
    this.close();
  }
}
