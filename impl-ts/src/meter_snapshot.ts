/**
 * What a meter reports, and its JSON schema. See `spec/meter.md`.
 *
 * @module
 */

import type { Distribution } from "./meter_tally.ts";

/**
 * What waits to be read.
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
  /** A batch in the ring is one; of one that is being read, each value that is left. */
  readonly messages: number;
  /** In the ring, with headers and pads; and what was taken from there and not handed out. */
  readonly bytes: number;
}

/**
 * What an endpoint has done for all of its pipes.
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
  /** Its index in the segment. */
  readonly index: number;
  /** Bells rung: a system call each. */
  readonly wakes: number;
  /** Publishes and releases that rang no bell, because nobody slept. */
  readonly elidedWakes: number;
  /** Times that it went to sleep. */
  readonly sleeps: number;
}

/**
 * What was written.
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
  /** Messages that came into the ring whole; a batch is one. */
  readonly messages: number;
  /** Their payload. */
  readonly bytes: number;
  /** Messages in a second: the arrival rate. */
  readonly messageRate: number;
  /** Bytes of payload in a second. */
  readonly byteRate: number;
  /** What its reader has not given back. */
  readonly queue: QueueFigures;
  /** Messages that found no room and had to wait for it, each once. */
  readonly stalls: number;
  /** How long those have waited that wait no more. */
  readonly stall: Distribution;
}

/**
 * What was read.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type IncomingFigures, meter } from "@millrace/millrace/meter";
 *
 * using here = Port.create<number>();
 * using there = Port.attach<number>(here.memory); // usually in another thread
 * using reading = meter(there);
 * here.writeMany([1, 2, 3]); // not metered
 * there.readMany(3);
 * const { messages, values, untimed }: IncomingFigures = reading.snapshot().incoming!;
 * console.log(messages, values, untimed); // 1 3 3
 * ```
 */
export interface IncomingFigures {
  /** Messages that were taken out of the ring whole, those of calls too; a batch is one. */
  readonly messages: number;
  /** Their payload. */
  readonly bytes: number;
  /** What was handed out: each message, and each value of a batch. */
  readonly values: number;
  /** Messages in a second: the throughput. */
  readonly messageRate: number;
  /** Bytes of payload in a second. */
  readonly byteRate: number;
  /** Values in a second. */
  readonly valueRate: number;
  /** What was published and not handed out. */
  readonly queue: QueueFigures;
  /** Values whose writer has no meter, so that nobody knows how long they have waited. */
  readonly untimed: number;
  /**
   * From when the writer has finished it until the reader asked for the value that it then got. Of
   * up to 16 that are read one upon the other, and served within 20 µs together, one look at the
   * clock tells for all: the others are reckoned from it.
   */
  readonly waiting: Distribution;
  /**
   * From then on until the listeners have returned that got the value; or, for one that was read,
   * until the next read. Of an `async` listener that is up to its first `await`. What `readMany`
   * returns is served with the last value.
   */
  readonly service: Distribution;
}

/**
 * All figures of a meter, at one moment: plain data, as `snapshotSchema` describes it.
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
  /** When it was taken: milliseconds since the Unix epoch. */
  readonly at: number;
  /** Microseconds for which it has counted. */
  readonly elapsed: number;
  /** Of all its pipes: of a hub, those of all clients. */
  readonly endpoint: EndpointFigures;
  /** Null for a reader. */
  readonly outgoing: OutgoingFigures | null;
  /** Null for a writer. */
  readonly incoming: IncomingFigures | null;
}

const COUNT = { type: "integer", minimum: 0 };
const AMOUNT = { type: "number", minimum: 0 };

/** An object with all of these properties, and no others. */
function object(properties: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const required = Object.keys(properties);
  return { type: "object", properties, required, additionalProperties: false };
}

/** An object of amounts, some of which are counts. */
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
