// What the demo's three threads tell each other by postMessage, and the tags of its messages.
import { Random } from "../../conformance/kit/live/workload.ts";

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

/** Where the bytes come from; a plain object, so that a worker can be told by `postMessage`. */
export type Source =
  | { readonly kind: "file"; readonly path: string; readonly size: number }
  | { readonly kind: "bytes"; readonly name: string; readonly bytes: Uint8Array };

/** Opens a file for the demo. Throws what Deno throws when it cannot be opened or is no file. */
export function fileSource(path: string): Source {
  using file = Deno.openSync(path);
  const { isFile, size } = file.statSync();
  if (!isFile) throw new Error("not a regular file");
  return { kind: "file", path, size };
}

/** Repeats the contents of the repository's own text files until `sizeMin` bytes are reached. */
export function composedSource(root: URL, sizeMin: number): Source {
  const parts: Uint8Array[] = [];
  for (const folder of ["spec/", "impl-ts/src/", "impl-zig/src/"]) {
    for (const path of filesBelow(root, folder)) {
      parts.push(Deno.readFileSync(new URL(path, root)));
    }
  }
  const lap = parts.reduce((sum, part) => sum + part.length, 0);
  if (lap === 0) throw new Error("Cannot compose a file: the repository holds no text");
  const bytes = new Uint8Array(lap * Math.ceil(sizeMin / lap));
  let offset = 0;
  while (offset < bytes.length) {
    for (const part of parts) {
      bytes.set(part, offset);
      offset += part.length;
    }
  }
  return { kind: "bytes", name: `${parts.length} files of the repository, repeated`, bytes };
}

/** The paths of the files below a folder, in the order of their names. */
function filesBelow(root: URL, folder: string): string[] {
  return [...Deno.readDirSync(new URL(folder, root))]
    .sort((a, b) => a.name < b.name ? -1 : 1)
    .flatMap(({ name, isDirectory }) =>
      isDirectory ? filesBelow(root, `${folder}${name}/`) : [folder + name]
    );
}

/** Reads a source front to back, without holding more than the caller's buffer of a file. */
export class SourceReader {
  readonly #source: Source;
  readonly #file: Deno.FsFile | undefined;
  #offset = 0;

  constructor(source: Source) {
    this.#source = source;
    this.#file = source.kind === "file" ? Deno.openSync(source.path) : undefined;
  }

  /** Fills `into` as far as the source goes; returns how many bytes, 0 only at its end. */
  read(into: Uint8Array): number {
    if (this.#source.kind === "bytes") {
      const piece = this.#source.bytes.subarray(this.#offset, this.#offset + into.length);
      into.set(piece);
      this.#offset += piece.length;
      return piece.length;
    }
    let filled = 0;
    while (filled < into.length) {
      const count = this.#file!.readSync(into.subarray(filled));
      if (count === null) break;
      filled += count;
    }
    this.#offset += filled;
    return filled;
  }

  [Symbol.dispose](): void {
    this.#file?.close();
  }
}

/**
 * Chooses message sizes from 1 byte to 1 MiB, the same ones in every run: in turn a burst of small
 * messages, which share a publish, some of middle size, and one that may need several frames.
 */
export class SizePlan {
  static readonly #burst = 48;
  static readonly #round = 56;
  readonly #random = new Random(0x6d696c6c);
  #index = 0;

  /** Whether the next message belongs to a burst. */
  get inBurst(): boolean {
    return this.#index % SizePlan.#round < SizePlan.#burst;
  }

  /** Returns the next size in bytes. */
  next(): number {
    const place = this.#index++ % SizePlan.#round;
    if (place < SizePlan.#burst) return 1 + this.#random.next() % 240;
    if (place < SizePlan.#round - 1) return this.#power(8, 16);
    // Above the largest frame now and then, so that messages of many frames occur.
    return this.#power(17, 20);
  }

  /** A size between 2^low and 2^high, every order of magnitude equally likely. */
  #power(low: number, high: number): number {
    const exponent = low + (high - low) * (this.#random.next() / 2 ** 32);
    return Math.min(2 ** 20, Math.round(2 ** exponent));
  }
}
