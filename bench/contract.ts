/**
 * What the runner and the drivers tell each other, one line of JSON each. See `README.md`.
 *
 * @module
 */

/** Which threads or processes the two ends of a peer are; `main` and `worker` are one thread. */
export type Ends =
  | "workers"
  | "main-worker"
  | "async"
  | "worker"
  | "main"
  | "threads"
  | "processes";

/** One resolved scenario: everything a driver needs to know to run it once. */
export interface Scenario {
  readonly name: string;
  /** `bytes-64`, `json-118` and so on. */
  readonly payload: string;
  /** Bytes of the payload. */
  readonly size: number;
  readonly format: "bytes" | "json" | "text";
  readonly ends: Ends;
  /** Whether an end that waits may spin first; `park` sleeps at once; `own`: as the peer likes. */
  readonly wait: "spin" | "park" | "own";
  /** Whether the driver has all processors or is held on one; the runner sees to it. */
  readonly pin: "free" | "one-core";
  readonly duration_ms: number;
  /** For threads that are new. */
  readonly warmup_ms: number;
  /** For threads that have played this peer and this scenario before; `warmup_ms` without it. */
  readonly again_ms?: number;
  /** Messages or calls to measure, in place of the duration. */
  readonly count?: number;
  /** `load`: messages per second that are offered. */
  readonly rate?: number;
  /** `load`: microseconds that the consumer is busy with each message. */
  readonly service_us?: number;
  /** `pool`: microseconds that a worker is busy with each task. */
  readonly task_us?: number;
  /** `fanout`: readers of the one writer. */
  readonly readers?: number;
  /** `stream`: messages in one burst, which one answer confirms. */
  readonly burst?: number;
  /** `stream`: most messages under way, for peers whose queue has no end; `pool`: tasks. */
  readonly window?: number;
  /** `stream`: whether the sender waits for each message to be taken over. */
  readonly awaited?: boolean;
  /** `call`: who calls whom. `burst`, `stream`: `up` is from b to a. */
  readonly direction?: "down" | "up" | "nested";
  /** Whether each run has a process of its own, and nothing warms up. */
  readonly fresh?: boolean;
  /** What is measured apart: phases, or the messages from one number to another, such as `2-10`. */
  readonly parts?: readonly string[];
}

/** How often each value was seen, with three significant digits. */
export interface Histogram {
  readonly unit: "ns";
  readonly values: readonly number[];
  readonly counts: readonly number[];
}

/** What one run measured. */
export interface Result {
  /** Round trips, messages or calls that were measured. */
  readonly count: number;
  readonly elapsed_ns: number;
  /** Round trips. */
  readonly latency?: Histogram;
  /** `load`: from the scheduled arrival to the start of the service. */
  readonly waiting?: Histogram;
  /** `load`: from the start of the service to its end. */
  readonly service?: Histogram;
  /**
   * Nanoseconds of a raw ping-pong of these two threads, one word there and back, just before the
   * run and just after it.
   */
  readonly ping_ns?: readonly [before: number, after: number];
  /** Sleeps of both ends: parks that really waited. */
  readonly sleeps?: number;
  /** `idle`: processor time of the whole driver. */
  readonly cpu_ms?: number;
  /** Payload bytes that were moved one way. */
  readonly bytes?: number;
  /** `memory`: bytes that both ends allocated. */
  readonly bytes_allocated?: number;
  readonly notes?: readonly string[];
  /** The parts of the scenario, by their names; those that the peer has. */
  readonly parts?: Readonly<Record<string, Result>>;
}

/** The first line of a driver. */
export interface Hello {
  readonly driver: {
    readonly name: string;
    readonly version: string;
    /** `deno`, `node`, `chromium` or `native`. */
    readonly place: string;
    readonly peers: readonly string[];
  };
}

/** A line to a driver. */
export interface Request {
  readonly id: number;
  readonly peer: string;
  readonly scenario: Scenario;
  readonly repetition: number;
}

/** A line of a driver: what came of the request with this id. */
export type Answer =
  | { readonly id: number; readonly result: Result }
  | { readonly id: number; readonly decline: string }
  | { readonly id: number; readonly error: string };

/** The lines of a stream, without their ends. */
export async function* readLines(
  stream: ReadableStream<Uint8Array>,
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() as string;
    for (const line of lines) if (line.trim() !== "") yield line;
  }
  if (rest.trim() !== "") yield rest;
}

/** Says something in one line on standard output, in Deno. */
export function say(line: unknown): void {
  const bytes = new TextEncoder().encode(`${JSON.stringify(line)}\n`);
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(Deno.stdout.writeSync(rest));
}
