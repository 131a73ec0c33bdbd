/**
 * `millrace.wasm` for any JavaScript host with shared memory: Deno, Node from 20 on, and browsers
 * on a page that is isolated (COOP and COEP).
 *
 * The ports here are those of the Zig implementation: synchronous, for workers that block. Their
 * peers are other instances on the same memory, or the TypeScript implementation, to which a port's
 * memory is any other (`memory.buffer` and the segment's address).
 *
 * @example Two ends in one thread
 * ```ts
 * const millrace = await loadMillrace(new URL("../zig-out/bin/millrace.wasm", import.meta.url));
 * const port = millrace.createPort({ capacity: 4096 });
 * const other = millrace.attachPort(port.segment, { endpoint: 1 });
 * port.writeJson({ cmd: "run" });
 * other.readJson(); // { cmd: "run" }
 * port.close();
 * ```
 *
 * @example A worker
 * ```ts ignore
 * worker.postMessage({ module: millrace.module, memory: millrace.memory, segment: port.segment });
 * // There:
 * const { module, memory, segment } = event.data;
 * const other = (await loadMillrace(module, { memory })).attachPort(segment, { endpoint: 1 });
 * for (let message; (message = other.read()) !== undefined;) other.write(message.payload);
 * ```
 *
 * @module
 */

import {
  type CommonExports,
  errorOf,
  type InstanceOptions,
  instantiate,
  type Made,
  type ModuleSource,
  type Region,
  threadOf,
  WasmError,
  WasmInstance,
} from "./wasm_instance.ts";

export {
  type InstanceOptions,
  type ModuleSource,
  type Region,
  SHARED_FROM,
  WasmError,
  WasmInstance,
} from "./wasm_instance.ts";
export * from "./wasm_mailbox.ts";

const STATUS_NOTHING = 0;
const STATUS_DONE = 1;
const STATUS_END = 2;
const STATUS_PEER_FAILED = -65;
const STATUS_PIPE_FAILED = -81;
const FRAME_FIRST = 1;
const FRAME_LAST = 2;
const MESSAGE_SIZE = 24;
const CODEC_JSON = 2;
const CODEC_JSON_BATCH = 3;

/** What every side of a port chooses. */
export interface PortOptions {
  /** The largest message to read or to write, in bytes: that much is set aside. 65,536. */
  readonly messageSize?: number;
  /** Bytes for messages that arrive while a write waits for room. 0. */
  readonly inboxSize?: number;
  /** How long a wait spins before it sleeps, in microseconds; 0 sleeps at once. 50. */
  readonly spinUs?: number;
}

/** What the creator of a port chooses. */
export interface CreateOptions extends PortOptions {
  /** Bytes of each ring: a power of two from 256 on. 65,536. */
  readonly capacity?: number;
  /** Bytes of the rings from endpoint 0 to 1 and from 1 to 0, instead of `capacity`. */
  readonly capacities?: readonly [number, number];
  /** Blank memory for the segment, at a multiple of 128, instead of some that is allocated. */
  readonly segment?: Region;
}

/** What who attaches chooses. */
export interface AttachOptions extends PortOptions {
  /** The end to take: 0 or 1 in a port. */
  readonly endpoint: number;
  /** How long to wait until the segment is formatted, in milliseconds. 1,000. */
  readonly timeout?: number;
}

/** How long to wait. */
export interface WaitOptions {
  /**
   * Milliseconds; 0 tries once, and Infinity, the default, waits for ever. On a thread that must
   * not block, such as a browser's main thread, whatever would have to wait for longer than a few
   * looks fails with `wait.forbidden`: pass 0 there. [wait.no_block]
   */
  readonly timeout?: number;
}

/** What a message carries besides its bytes. */
export interface Envelope {
  /** 0 bytes, 1 text, 2 JSON, 3 JSON batch; from 128 on the application's. 0. */
  readonly codec?: number;
  /** The application's number. 0. */
  readonly tag?: number;
}

/** A message that was read: a copy. */
export interface WasmMessage {
  readonly payload: Uint8Array<ArrayBuffer>;
  readonly codec: number;
  readonly tag: number;
  /** 1 data, 3 call, 4 return, 5 throw. */
  readonly kind: number;
}

/** A frame that is lent where it lies, until `release`. */
export interface WasmFrame {
  readonly payload: Uint8Array<ArrayBufferLike>;
  readonly codec: number;
  readonly tag: number;
  readonly kind: number;
  /** Whether it begins, and whether it completes its message. */
  readonly first: boolean;
  readonly last: boolean;
  /** Bytes of the whole message. */
  readonly total: number;
}

interface Exports extends CommonExports {
  millrace_version(): number;
  millrace_port_size(): number;
  millrace_segment_size(capacity0: number, capacity1: number): number;
  millrace_port_create(...words: number[]): number;
  millrace_port_attach(...words: number[]): number;
  millrace_port_set_inbox(object: number, base: number, size: number): number;
  millrace_port_write(...words: number[]): number;
  millrace_port_read(...words: number[]): number;
  millrace_port_claim(object: number, size: number, timeout: number): bigint;
  millrace_port_publish(object: number, size: number, codec: number, tag: number): number;
  millrace_port_abandon(object: number): number;
  millrace_port_peek(object: number, out: number, timeout: number): number;
  millrace_port_release(object: number): number;
  millrace_port_end(object: number): number;
  millrace_port_close(object: number): number;
  millrace_port_set_spin(object: number, microseconds: number): number;
  millrace_port_stats(object: number, out: number): number;
  millrace_port_reason(object: number): number;
}

/**
 * Makes an instance of `millrace.wasm`, on a memory of its own or a given one. Node cannot fetch
 * files: pass it the bytes.
 *
 * @throws {WebAssembly.LinkError} if the module is another, or the memory is not shared
 *
 * @example
 * ```ts
 * const url = new URL("../zig-out/bin/millrace.wasm", import.meta.url);
 * const { memory } = await loadMillrace(url);
 * memory.buffer instanceof SharedArrayBuffer; // true
 * ```
 */
export async function loadMillrace(
  source: ModuleSource,
  options: InstanceOptions = {},
): Promise<Millrace> {
  return new Millrace(await instantiate(source, options));
}

/** An instance of `millrace.wasm`. It and its ports belong to the thread that loaded it. */
export class Millrace extends WasmInstance {
  readonly #exports: Exports;
  readonly #thread = threadOf();

  /** To be had from `loadMillrace`. */
  constructor(made: Made) {
    const exports = made.exports as unknown as Exports;
    if (typeof exports.millrace_port_size !== "function") {
      throw new WebAssembly.LinkError("Cannot load millrace.wasm: it is another module");
    }
    super(made, exports);
    this.#exports = exports;
  }

  /** The version of the layout: major * 65,536 + minor. */
  get version(): number {
    return this.#exports.millrace_version();
  }

  /**
   * Makes a port and attaches to its end 0; or attaches, where the memory holds one already.
   *
   * @throws {RangeError} if a capacity is none, or the memory is full
   * @throws {WasmError} with a code `segment.*`
   */
  createPort(options: CreateOptions = {}): WasmPort {
    const capacity = options.capacity ?? 65_536;
    const [first, second] = options.capacities ?? [capacity, capacity];
    const size = this.#exports.millrace_segment_size(first, second) >>> 0;
    if (size === 0) throw new RangeError(`Cannot create port: capacities ${first}, ${second}`);
    const segment = options.segment ?? { address: this.allocate(size), size };
    return this.#open(segment, options, (object) => {
      const { address, size } = segment;
      return this.#exports
        .millrace_port_create(object, address, size, first, second, 0, 0, this.#thread);
    });
  }

  /**
   * Attaches to one end of a port in this memory.
   *
   * @throws {WasmError} with a code `segment.*`
   */
  attachPort(segment: Region, options: AttachOptions): WasmPort {
    const { endpoint, timeout = 1000 } = options;
    const { address, size } = segment;
    return this.#open(segment, options, (object) =>
      this.#exports
        .millrace_port_attach(object, address, size, endpoint, this.#thread, timeout));
  }

  #open(segment: Region, options: PortOptions, attach: (object: number) => number): WasmPort {
    const object = this.allocate(this.#exports.millrace_port_size());
    const status = attach(object);
    if (status !== STATUS_DONE) throw errorOf(status, "attach to port");
    return new WasmPort(this, this.#exports, object, segment, options);
  }
}

/** One end of a port: the verbs of the Zig implementation, for the thread that attached it. */
export class WasmPort implements Disposable {
  /** Where the segment lies in the memory: what the other end attaches to. */
  readonly segment: Region;
  readonly #host: WasmInstance;
  readonly #exports: Exports;
  readonly #object: number;
  readonly #messageSize: number;
  /** What calls fill in, and after it the place of a message that is read. */
  readonly #out: number;
  /** The place of a message to be written; 0 until there is one. */
  #outgoing = 0;
  /** Bytes of the open claim; `undefined` when none is open. */
  #claimed: number | undefined;
  #ended = false;
  /** Messages of a batch whose first was given out. */
  readonly #batch: unknown[] = [];

  /** To be had from `Millrace`. */
  constructor(
    host: WasmInstance,
    exports: unknown,
    object: number,
    segment: Region,
    options: PortOptions,
  ) {
    this.#host = host;
    this.#exports = exports as Exports;
    this.#object = object;
    this.segment = { address: segment.address, size: segment.size };
    this.#messageSize = options.messageSize ?? 65_536;
    this.#out = host.allocate(128 + this.#messageSize);
    const { inboxSize = 0, spinUs } = options;
    if (inboxSize > 0) {
      const inbox = host.allocate(inboxSize, 16);
      this.#done(this.#exports.millrace_port_set_inbox(object, inbox, inboxSize), "set the inbox");
    }
    if (spinUs !== undefined) this.#exports.millrace_port_set_spin(object, spinUs);
  }

  /** Whether the peer has ended its stream, and everything before that was read. */
  get ended(): boolean {
    return this.#ended && this.#batch.length === 0;
  }

  /**
   * Writes one message, and waits for room.
   *
   * @throws {WasmError} `wait.timeout` if there was no room in time, in the middle of a message
   *   too, which the reader then drops; `peer.*` and `pipe.*` if an end is gone
   * @throws {RangeError} if it is larger than `messageSize`
   */
  write(payload: Uint8Array, options: Envelope & WaitOptions = {}): void {
    if (this.#write(payload, options, options.timeout ?? Infinity)) return;
    throw new WasmError("wait.timeout", "Cannot write message: there was no room in time");
  }

  /** Writes one message if there is room for all of it now. */
  tryWrite(payload: Uint8Array, options: Envelope = {}): boolean {
    return this.#write(payload, options, 0);
  }

  /** As `write`, of a value in JSON. */
  writeJson(value: unknown, options: { readonly tag?: number } & WaitOptions = {}): void {
    const text = JSON.stringify(value);
    if (text === undefined) throw new TypeError("Cannot write message: it has no form in JSON");
    this.write(new TextEncoder().encode(text), { ...options, codec: CODEC_JSON });
  }

  /**
   * Reads the next message, and waits for it. `undefined` when none came in time, or at the end of
   * the stream, which `ended` tells apart.
   *
   * @throws {WasmError} `message.*` for one message, after which reading goes on; `peer.*`,
   *   `pipe.*`, `ring.*` or `frame.*` for good
   */
  read(options: WaitOptions = {}): WasmMessage | undefined {
    const storage = this.#out + 128;
    const timeout = options.timeout ?? Infinity;
    const status = this.#exports
      .millrace_port_read(this.#object, storage, this.#messageSize, this.#out, timeout);
    if (!this.#found(status, "read message")) return undefined;
    const { address, size, codec, tag, kind } = this.#result();
    return { payload: this.#host.copyFrom(address, size), codec, tag, kind };
  }

  /**
   * Reads the next message of JSON, one after the other out of a batch.
   *
   * @throws {WasmError} as `read`; `message.text` or `message.json` for one message that is none
   */
  readJson(options: WaitOptions = {}): unknown {
    if (this.#batch.length > 0) return this.#batch.shift();
    const message = this.read(options);
    if (message === undefined) return undefined;
    const value = parse(message);
    if (message.codec !== CODEC_JSON_BATCH) return value;
    if (!Array.isArray(value) || value.length === 0) throw notJson("a batch is no array");
    this.#batch.push(...value);
    return this.#batch.shift();
  }

  /** Lends the place of a message of one frame; `undefined` when there was no room in time. */
  claim(size: number, options: WaitOptions = {}): Uint8Array<ArrayBufferLike> | undefined {
    const timeout = options.timeout ?? Infinity;
    const address = Number(this.#exports.millrace_port_claim(this.#object, size, timeout));
    if (address === STATUS_NOTHING) return undefined;
    if (address < 0) throw this.#error(address, "claim");
    this.#claimed = size;
    return this.#host.bytesAt(address, size);
  }

  /** Makes the claimed message visible, of all bytes or of the first few. */
  publish(options: Envelope & { readonly size?: number } = {}): void {
    const { size = this.#claimed ?? 0, codec = 0, tag = 0 } = options;
    this.#done(this.#exports.millrace_port_publish(this.#object, size, codec, tag), "publish");
    this.#claimed = undefined;
  }

  /** Takes an open claim back. */
  abandon(): void {
    this.#done(this.#exports.millrace_port_abandon(this.#object), "abandon");
    this.#claimed = undefined;
  }

  /**
   * Lends the next frame where it lies, until `release`; `undefined` as in `read`. The peer can
   * change it meanwhile: for trusted peers only.
   */
  peek(options: WaitOptions = {}): WasmFrame | undefined {
    const timeout = options.timeout ?? Infinity;
    const status = this.#exports.millrace_port_peek(this.#object, this.#out, timeout);
    if (!this.#found(status, "peek")) return undefined;
    const { address, size, total, codec, tag, kind, flags } = this.#result();
    const payload = this.#host.bytesAt(address, size);
    const [first, last] = [(flags & FRAME_FIRST) !== 0, (flags & FRAME_LAST) !== 0];
    return { payload, codec, tag, kind, first, last, total };
  }

  /** Takes the lent frame back. */
  release(): void {
    this.#done(this.#exports.millrace_port_release(this.#object), "release");
  }

  /** Ends the outgoing stream; reading goes on. Never waits. */
  end(): void {
    this.#done(this.#exports.millrace_port_end(this.#object), "end the stream");
  }

  /** Closes both directions. Closing again does nothing. */
  close(): void {
    this.#done(this.#exports.millrace_port_close(this.#object), "close");
  }

  /** As `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** Wakes made, wakes that nobody needed, sleeps, and those that ended late, without a wake. */
  stats(): { wakes: number; wakesElided: number; parks: number; lateWakes: number } {
    this.#done(this.#exports.millrace_port_stats(this.#object, this.#out), "count");
    const counts = new BigUint64Array(this.#host.memory.buffer, this.#out, 4);
    const at = (index: number) => Number(counts[index]);
    return { wakes: at(0), wakesElided: at(1), parks: at(2), lateWakes: at(3) };
  }

  #write(payload: Uint8Array, { codec = 0, tag = 0 }: Envelope, timeout: number): boolean {
    const size = payload.length;
    if (size > this.#messageSize) {
      throw new RangeError(`Cannot write message: ${size} bytes, more than ${this.#messageSize}`);
    }
    this.#outgoing ||= this.#host.allocate(this.#messageSize, 16);
    this.#host.copyTo(this.#outgoing, payload);
    const status = this.#exports
      .millrace_port_write(this.#object, this.#outgoing, size, codec, tag, timeout);
    if (status < 0) throw this.#error(status, "write message");
    return status === STATUS_DONE;
  }

  #found(status: number, what: string): boolean {
    if (status < 0) throw this.#error(status, what);
    this.#ended ||= status === STATUS_END;
    return status === STATUS_DONE;
  }

  #done(status: number, what: string): void {
    if (status !== STATUS_DONE) throw this.#error(status, what);
  }

  #error(status: number, what: string): Error {
    const failed = status === STATUS_PEER_FAILED || status === STATUS_PIPE_FAILED;
    return errorOf(status, what, failed ? this.#exports.millrace_port_reason(this.#object) : 0);
  }

  #view(): DataView {
    return new DataView(this.#host.memory.buffer, this.#out, MESSAGE_SIZE);
  }

  #result() {
    const view = this.#view();
    return {
      address: view.getUint32(0, true),
      size: view.getUint32(4, true),
      total: Number(view.getBigUint64(8, true)),
      tag: view.getUint32(16, true),
      kind: view.getUint8(20),
      flags: view.getUint8(21),
      codec: view.getUint8(22),
    };
  }
}

function parse({ payload, codec }: WasmMessage): unknown {
  if (codec !== CODEC_JSON && codec !== CODEC_JSON_BATCH) throw notJson(`its codec is ${codec}`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(payload);
  } catch {
    throw new WasmError("message.text", "Cannot read message: it is not UTF-8");
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notJson((error as Error).message);
  }
}

function notJson(why: string): WasmError {
  return new WasmError("message.json", `Cannot read message as JSON: ${why}`);
}
