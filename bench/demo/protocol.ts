// What the demo's three threads tell each other by postMessage, and the tags of its messages.

import type { Source } from "./source.ts";

/** Tags of the messages in the port: what the Zig worker does with one. */
export const TAG = {
  /** Write it back. */
  echo: 0,
  /** Take it, and answer nothing. */
  sink: 1,
  /** Write `count` messages of `size` bytes: the payload is those two, as u32. */
  flood: 2,
} as const;

/** Bytes of each ring: a 1 MiB message takes several frames, and both rings stay in the cache. */
export const CAPACITY = 1 << 20;

/** Which endpoint is whose. */
export const ENDPOINT = { typescript: 0, zig: 1 } as const;

/** Everything that both workers need: the memory, where the segment lies, and the rival's port. */
export interface Ground {
  readonly memory: WebAssembly.Memory;
  readonly segmentOffset: number;
  readonly segmentSize: number;
  /** The runtime's own channel between the same two workers. */
  readonly rival: MessagePort;
}

export interface StreamOrder extends Ground {
  readonly source: Source;
  readonly corrupt: number;
  /** Two words: KiB that came back so far, and 1 as soon as the whole source is back. */
  readonly progress: SharedArrayBuffer;
}

/** Words of `progress`. */
export const PROGRESS = { kib: 0, streamed: 1, count: 2 } as const;

export interface ServeOrder extends Ground {
  readonly module: WebAssembly.Module;
}

/** One way of the 1 MiB messages, and the digest check, in bytes and milliseconds. */
export interface Transfer {
  readonly bytes: number;
  readonly messages: number;
  readonly ms: number;
}

/** Round trips in microseconds. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
}

export interface StreamReport {
  readonly kind: "report";
  readonly sentDigest: string;
  readonly receivedDigest: string;
  readonly stream: Transfer;
  readonly toZig: Transfer;
  readonly fromZig: Transfer;
  readonly echo: Latency;
  readonly rivalEcho: Latency;
  readonly wakes: number;
  readonly wakesElided: number;
  readonly parks: number;
}

/** What the Zig worker counted. */
export interface ServeReport {
  readonly kind: "served";
  readonly wakes: number;
  readonly wakesElided: number;
}

/** What the workers send to the main thread. */
export type Note =
  | StreamReport
  | ServeReport
  /** `usage`: the command line asked for something that the source does not have. */
  | { readonly kind: "failed"; readonly message: string; readonly usage: boolean };
