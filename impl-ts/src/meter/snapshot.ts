/**
 * The figures that a meter reports, and their JSON schema. See `spec/meter.md`.
 *
 * @module
 */

import type { Distribution } from "./tally.ts";

/**
 * The messages that wait to be read.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { meter, type QueueFigures } from "@millrace/millrace/meter";
 *
 * using here = Port.create<string>();
 * using writing = meter(here);
 * here.write("hello"); // nobody reads
 * const { messages, bytes }: QueueFigures = writing.snapshot().outgoing!.queue;
 * console.log(messages, bytes); // 1 32
 * ```
 */
export interface QueueFigures {
  /**
   * A batch in the ring counts as one message; a batch being read counts each value that is left.
   */
  readonly messages: number;
  /**
   * Bytes in the ring, headers and pads included, and bytes taken from there but not handed out.
   */
  readonly bytes: number;
}

/**
 * The figures of an endpoint, over all of its pipes.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type EndpointFigures, meter } from "@millrace/millrace/meter";
 *
 * using here = Port.create<string>();
 * using writing = meter(here);
 * here.write("hello"); // nobody sleeps
 * const { wakes, elidedWakes }: EndpointFigures = writing.snapshot().endpoint;
 * console.log(wakes, elidedWakes); // 0 1
 * ```
 */
export interface EndpointFigures {
  /** The index of the endpoint in the segment. */
  readonly index: number;
  /** Bells rung: a system call each. */
  readonly wakes: number;
  /** Publishes and releases that rang no bell, because nobody slept. */
  readonly elidedWakes: number;
  /** Times that the endpoint went to sleep. */
  readonly sleeps: number;
}

/**
 * The figures of the outgoing direction.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { meter, type OutgoingFigures } from "@millrace/millrace/meter";
 *
 * using here = Port.create<string>();
 * using writing = meter(here);
 * here.write("hello");
 * const { messages, bytes, stalls }: OutgoingFigures = writing.snapshot().outgoing!;
 * console.log(messages, bytes, stalls); // 1 7 0
 * ```
 */
export interface OutgoingFigures {
  /** Messages that were placed in the ring completely; a batch counts as one. */
  readonly messages: number;
  /** Bytes of their payloads. */
  readonly bytes: number;
  /** Messages per second: the arrival rate. */
  readonly messageRate: number;
  /** Payload bytes per second. */
  readonly byteRate: number;
  /** What the reader has not given back. */
  readonly queue: QueueFigures;
  /** Messages that had to wait for room; each counts once. */
  readonly stalls: number;
  /** How long the messages waited that no longer wait. */
  readonly stall: Distribution;
}

/**
 * The figures of the incoming direction.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readMany, writeMany } from "@millrace/millrace/many";
 * import { type IncomingFigures, meter } from "@millrace/millrace/meter";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * using reading = meter(there);
 * writeMany(here, [1, 2, 3]); // not metered
 * readMany(there, 3);
 * const { messages, values, untimed }: IncomingFigures = reading.snapshot().incoming!;
 * console.log(messages, values, untimed); // 1 3 3
 * ```
 */
export interface IncomingFigures {
  /** Messages taken out of the ring completely, those of calls included; a batch counts as one. */
  readonly messages: number;
  /** Bytes of their payloads. */
  readonly bytes: number;
  /** Values that were handed out: each message, and each element of a batch. */
  readonly values: number;
  /** Messages per second: the throughput. */
  readonly messageRate: number;
  /** Payload bytes per second. */
  readonly byteRate: number;
  /** Values per second. */
  readonly valueRate: number;
  /** What is published and not handed out. */
  readonly queue: QueueFigures;
  /** Values whose writer has no meter, so that their waiting times are unknown. */
  readonly untimed: number;
  /**
   * From the moment at which the writer finished a message until the reader asked for the value
   * that it then got. Up to 16 values that are read one directly after another, and served within
   * 20 µs in total, share one reading of the clock: the times of the others are computed from it.
   */
  readonly waiting: Distribution;
  /**
   * From then on until the listeners that got the value have returned, or, for a value that was
   * read, until the next read. For an `async` listener, that is until its first `await`. All values
   * that one `readMany` returns are served together with the last of them.
   */
  readonly service: Distribution;
}

/**
 * All figures of a meter at one moment: plain data, as `snapshotSchema` describes them.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { meter, type MeterSnapshot } from "@millrace/millrace/meter";
 *
 * using port = Port.create<string>();
 * using metered = meter(port);
 * const { outgoing, incoming }: MeterSnapshot = metered.snapshot();
 * console.log(outgoing?.messages, incoming?.values); // 0 0
 * ```
 */
export interface MeterSnapshot {
  /** When the snapshot was taken, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** The microseconds over which the meter has counted. */
  readonly elapsed: number;
  /** The figures of the endpoint, over all its pipes; for a hub, over those of all clients. */
  readonly endpoint: EndpointFigures;
  /** Null if the end is a reader. */
  readonly outgoing: OutgoingFigures | null;
  /** Null if the end is a writer. */
  readonly incoming: IncomingFigures | null;
}

const COUNT = { type: "integer", minimum: 0 };
const AMOUNT = { type: "number", minimum: 0 };

/** The schema of an object that has all of these properties and no others. */
function object(properties: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const required = Object.keys(properties);
  return { type: "object", properties, required, additionalProperties: false };
}

/** The schema of an object of numbers, some of which are counts. */
function figures(
  counts: readonly string[],
  amounts: readonly string[],
  others: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return object({
    ...Object.fromEntries(counts.map((name) => [name, COUNT])),
    ...Object.fromEntries(amounts.map((name) => [name, AMOUNT])),
    ...others,
  });
}

/**
 * The JSON schema (draft 2020-12) of a `MeterSnapshot`.
 *
 * @example
 * ```ts
 * import { snapshotSchema } from "@millrace/millrace/meter";
 *
 * console.log(Object.keys(snapshotSchema.properties as object).length); // 5
 * ```
 */
export const snapshotSchema: Readonly<Record<string, unknown>> = /* @__PURE__ */ (() => {
  const ref = (name: string) => ({ $ref: `#/$defs/${name}` });
  const orNull = (name: string) => ({ anyOf: [ref(name), { type: "null" }] });
  const queue = ref("queue");
  const times = ref("distribution");
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "What a Millrace meter reports",
    ...figures([], ["at", "elapsed"], {
      endpoint: ref("endpoint"),
      outgoing: orNull("outgoing"),
      incoming: orNull("incoming"),
    }),
    $defs: {
      endpoint: figures(["index", "wakes", "elidedWakes", "sleeps"], []),
      outgoing: figures(["messages", "bytes", "stalls"], ["messageRate", "byteRate"], {
        queue,
        stall: times,
      }),
      incoming: figures(
        ["messages", "bytes", "values", "untimed"],
        ["messageRate", "byteRate", "valueRate"],
        { queue, waiting: times, service: times },
      ),
      queue: figures(["messages", "bytes"], []),
      distribution: figures(["count"], ["mean", "least", "most", "p50", "p90", "p99", "p999"], {
        buckets: {
          type: "array",
          items: { type: "array", prefixItems: [AMOUNT, COUNT], minItems: 2, items: false },
        },
      }),
    },
  };
})();
