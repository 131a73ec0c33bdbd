/**
 * Reports the figures of a meter to OpenTelemetry. This entry uses `@opentelemetry/api`.
 *
 * @module
 */

import { requireOptions } from "../error.ts";
import { type Attributes, type BatchObservableResult, metrics } from "@opentelemetry/api";
import type { MetricOptions, Observable } from "@opentelemetry/api";
import type { Meter } from "./meter.ts";
import type { IncomingFigures, OutgoingFigures, QueueFigures } from "./snapshot.ts";
import type { Distribution } from "./tally.ts";

/**
 * Options of `observe`.
 *
 * @example
 * ```ts
 * import type { ObserveOptions } from "@millrace/millrace/meter/opentelemetry";
 *
 * const options: ObserveOptions = { attributes: { pipe: "frames" } };
 * console.log(options.attributes?.pipe); // frames
 * ```
 */
export interface ObserveOptions {
  /** Attributes of every figure, to tell this port from others. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>> | undefined;
}

/** All instruments: the kind, the unit, and the description of each. */
const INSTRUMENTS: Readonly<Record<string, ["counter" | "gauge", MetricOptions]>> = {
  "messages": ["counter", { unit: "{message}", description: "Messages written or read whole" }],
  "values": ["counter", { unit: "{value}", description: "Values handed out" }],
  "values.untimed": ["counter", { unit: "{value}", description: "Values of unknown age" }],
  "bytes": ["counter", { unit: "By", description: "Payload written or read" }],
  "queue.messages": ["gauge", { unit: "{message}", description: "Messages that wait" }],
  "queue.bytes": ["gauge", { unit: "By", description: "Bytes that wait, with headers" }],
  "stalls": ["counter", { unit: "{message}", description: "Messages that waited for room" }],
  "wakes": ["counter", { unit: "{wake}", description: "Bells rung" }],
  "wakes.elided": ["counter", { unit: "{wake}", description: "Stores that rang no bell" }],
  "sleeps": ["counter", { unit: "{sleep}", description: "Times it went to sleep" }],
  ...timesOf("waiting", "From the write of a message to its read"),
  ...timesOf("service", "From the read of a message until it was handled"),
  ...timesOf("stall", "For how long a message waited for room"),
};

/** The instruments of a distribution: quantiles, and the counters of a histogram. */
function timesOf(name: string, description: string): typeof INSTRUMENTS {
  return {
    [`${name}.quantile`]: ["gauge", { unit: "us", description }],
    [`${name}.bucket`]: ["counter", { description: `${description}: those up to le` }],
    [`${name}.count`]: ["counter", { description: `${description}: how many` }],
    [`${name}.sum`]: ["counter", { unit: "us", description: `${description}: all together` }],
  };
}

/**
 * Reports a meter through OpenTelemetry's instruments, whenever these are collected: one snapshot
 * for all of them, and no work in between. The instruments belong to the meter provider that is set
 * when this is called. Returns a function that ends the reports.
 *
 * All names begin with `millrace.`, and the attribute `direction` is `in` or `out`. A distribution,
 * in microseconds, consists of `waiting.quantile`, with the attribute `quantile`, and of the
 * counters of a Prometheus histogram: `waiting.bucket` with `le`, `waiting.count` and
 * `waiting.sum`. The interface has no observable histogram, and recording each value again in an
 * ordinary one would take longer than all of the metering.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { meter } from "@millrace/millrace/meter";
 * import { observe } from "@millrace/millrace/meter/opentelemetry";
 *
 * using port = Port.create<string>();
 * using metered = meter(port);
 * const stop = observe(metered, { attributes: { pipe: "frames" } });
 * stop();
 * ```
 */
export function observe(meter: Meter, options: ObserveOptions = {}): () => void {
  const { attributes = {} } = requireOptions(options);
  const registry = metrics.getMeter("millrace");
  const instruments = new Map<string, Observable>();
  for (const [name, [kind, given]] of Object.entries(INSTRUMENTS)) {
    const full = `millrace.${name}`;
    const made = kind === "counter"
      ? registry.createObservableCounter(full, given)
      : registry.createObservableGauge(full, given);
    instruments.set(name, made);
  }
  const callback = (result: BatchObservableResult) => {
    const { endpoint, incoming, outgoing } = meter.snapshot();
    const tell = (name: string, value: number, more: Attributes = {}) =>
      result.observe(instruments.get(name)!, value, { ...attributes, ...more });
    tell("wakes", endpoint.wakes);
    tell("wakes.elided", endpoint.elidedWakes);
    tell("sleeps", endpoint.sleeps);
    if (outgoing !== null) {
      tellPipe(tell, outgoing, "out");
      tell("stalls", outgoing.stalls);
      tellTimes(tell, "stall", outgoing.stall);
    }
    if (incoming === null) return;
    tellPipe(tell, incoming, "in");
    tell("values", incoming.values);
    tell("values.untimed", incoming.untimed);
    tellTimes(tell, "waiting", incoming.waiting);
    tellTimes(tell, "service", incoming.service);
  };
  const all = [...instruments.values()];
  registry.addBatchObservableCallback(callback, all);
  return () => registry.removeBatchObservableCallback(callback, all);
}

type Tell = (name: string, value: number, more?: Attributes) => void;

function tellPipe(
  tell: Tell,
  { messages, bytes, queue }: (IncomingFigures | OutgoingFigures) & { queue: QueueFigures },
  direction: "in" | "out",
): void {
  tell("messages", messages, { direction });
  tell("bytes", bytes, { direction });
  tell("queue.messages", queue.messages, { direction });
  tell("queue.bytes", queue.bytes, { direction });
}

function tellTimes(tell: Tell, name: string, times: Distribution): void {
  const { p50, p90, p99, p999, buckets, count, mean } = times;
  const quantiles = { 0.5: p50, 0.9: p90, 0.99: p99, 0.999: p999, 1: times.most };
  for (const [quantile, value] of Object.entries(quantiles)) {
    tell(`${name}.quantile`, value, { quantile });
  }
  for (const [most, few] of buckets) tell(`${name}.bucket`, few, { le: String(most) });
  tell(`${name}.bucket`, count, { le: "+Inf" });
  tell(`${name}.count`, count);
  tell(`${name}.sum`, mean * count);
}
