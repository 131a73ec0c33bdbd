/**
 * `millrace_mailbox.wasm` for any JavaScript host with shared memory: the wire of
 * `sab-message-port`, for threads that block.
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
  WasmInstance,
} from "./wasm_instance.ts";

const STATUS_DONE = 1;

interface Exports extends CommonExports {
  millrace_mailbox_size(): number;
  millrace_mailbox_writer_create(...words: number[]): number;
  millrace_mailbox_writer_write(...words: number[]): number;
  millrace_mailbox_writer_partial(object: number): number;
  millrace_mailbox_writer_close(object: number): number;
  millrace_mailbox_reader_create(...words: number[]): number;
  millrace_mailbox_reader_read(...words: number[]): number;
  millrace_mailbox_reader_close(object: number): number;
}

/** What both sides of a mailbox choose. */
export interface MailboxOptions {
  /** The largest payload in bytes: that much is set aside. 65,536. */
  readonly payloadSize?: number;
}

/**
 * Makes an instance of `millrace_mailbox.wasm`, on a memory of its own or a given one, on which
 * instances of `millrace.wasm` may be too.
 *
 * @throws {WebAssembly.LinkError} if the module is another, or the memory is not shared
 *
 * @example
 * ```ts
 * const url = new URL("../zig-out/bin/millrace_mailbox.wasm", import.meta.url);
 * const mailboxes = await loadMailboxes(url);
 * const section = { address: mailboxes.allocate(1024), size: 1024 };
 * const writer = mailboxes.openWriter(section);
 * const reader = mailboxes.openReader(section);
 * writer.write([{ a: 1 }, null]);
 * reader.read(); // [{ a: 1 }, null]
 * ```
 */
export async function loadMailboxes(
  source: ModuleSource,
  options: InstanceOptions = {},
): Promise<Mailboxes> {
  return new Mailboxes(await instantiate(source, options));
}

/** An instance of `millrace_mailbox.wasm`. It belongs to the thread that loaded it. */
export class Mailboxes extends WasmInstance {
  readonly #exports: Exports;
  readonly #thread = threadOf();

  /** To be had from `loadMailboxes`. */
  constructor(made: Made) {
    const exports = made.exports as unknown as Exports;
    if (typeof exports.millrace_mailbox_size !== "function") {
      throw new WebAssembly.LinkError("Cannot load millrace_mailbox.wasm: it is another module");
    }
    super(made, exports);
    this.#exports = exports;
  }

  /**
   * Becomes the writer of the mailbox in a section of 33 bytes or more at a multiple of 4.
   *
   * @throws {WasmError} `mailbox.size`
   */
  openWriter(section: Region, options: MailboxOptions = {}): WasmMailboxWriter {
    const object = this.allocate(this.#exports.millrace_mailbox_size());
    const { address, size } = section;
    const status = this.#exports
      .millrace_mailbox_writer_create(object, address, size, this.#thread);
    if (status !== STATUS_DONE) throw errorOf(status, "open mailbox");
    return new WasmMailboxWriter(this, this.#exports, object, options);
  }

  /**
   * Becomes the reader of the mailbox in a section.
   *
   * @throws {WasmError} `mailbox.size`
   */
  openReader(section: Region, options: MailboxOptions = {}): WasmMailboxReader {
    const object = this.allocate(this.#exports.millrace_mailbox_size());
    const { address, size } = section;
    const status = this.#exports
      .millrace_mailbox_reader_create(object, address, size, this.#thread);
    if (status !== STATUS_DONE) throw errorOf(status, "open mailbox");
    return new WasmMailboxReader(this, this.#exports, object, options);
  }
}

/** The writing side of a mailbox. */
export class WasmMailboxWriter {
  readonly #host: WasmInstance;
  readonly #exports: Exports;
  readonly #object: number;
  readonly #payload: Region;
  /** Bytes of the payload that is under way. */
  #size = 0;

  /** To be had from `Mailboxes`. */
  constructor(host: WasmInstance, exports: unknown, object: number, options: MailboxOptions) {
    this.#host = host;
    this.#exports = exports as Exports;
    this.#object = object;
    const size = options.payloadSize ?? 65_536;
    this.#payload = { address: host.allocate(size, 16), size };
  }

  /**
   * Writes messages as one payload, and waits for its turns. Returns false when it was not done in
   * time; while `partial` it is under way, and `resume` goes on with it.
   *
   * @throws {WasmError} `peer.closed`, `pipe.closed` or `mailbox.*`; on a thread that must not
   *   block, `wait.forbidden` where it would have to wait
   * @throws {TypeError} if another payload is under way, or there is nothing to write
   * @throws {RangeError} if they are larger than `payloadSize`
   */
  write(messages: readonly unknown[], options: { readonly timeout?: number } = {}): boolean {
    if (this.partial) throw new TypeError("Cannot write payload: another is under way");
    if (messages.length === 0) throw new TypeError("Cannot write payload: it has no message");
    const bytes = new TextEncoder().encode(JSON.stringify(messages));
    if (bytes.length > this.#payload.size) {
      const limit = this.#payload.size;
      throw new RangeError(`Cannot write payload: ${bytes.length} bytes, more than ${limit}`);
    }
    this.#host.copyTo(this.#payload.address, bytes);
    this.#size = bytes.length;
    return this.#go(options.timeout ?? Infinity);
  }

  /** Goes on with the payload that is under way. */
  resume(options: { readonly timeout?: number } = {}): boolean {
    if (!this.partial) throw new TypeError("Cannot resume: no payload is under way");
    return this.#go(options.timeout ?? Infinity);
  }

  /** Whether a payload is under way. */
  get partial(): boolean {
    return this.#exports.millrace_mailbox_writer_partial(this.#object) !== 0;
  }

  /** Closes the mailbox, for both sides. Closing again does nothing. */
  close(): void {
    this.#exports.millrace_mailbox_writer_close(this.#object);
  }

  #go(timeout: number): boolean {
    const { address } = this.#payload;
    const status = this.#exports
      .millrace_mailbox_writer_write(this.#object, address, this.#size, timeout);
    if (status < 0) throw errorOf(status, "write payload");
    return status === STATUS_DONE;
  }
}

/** The reading side of a mailbox. */
export class WasmMailboxReader {
  readonly #host: WasmInstance;
  readonly #exports: Exports;
  readonly #object: number;
  readonly #storage: Region;

  /** To be had from `Mailboxes`. */
  constructor(host: WasmInstance, exports: unknown, object: number, options: MailboxOptions) {
    this.#host = host;
    this.#exports = exports as Exports;
    this.#object = object;
    const size = options.payloadSize ?? 65_536;
    this.#storage = { address: host.allocate(size, 16), size };
  }

  /**
   * Reads the messages of the next payload, and waits for it; `undefined` when none was complete in
   * time.
   *
   * @throws {WasmError} `message.*` for one payload, after which reading goes on; on a thread that
   *   must not block, `wait.forbidden` where it would have to wait; else for good
   * @throws {SyntaxError} if a payload is not JSON
   */
  read(options: { readonly timeout?: number } = {}): unknown[] | undefined {
    const { address, size } = this.#storage;
    const timeout = options.timeout ?? Infinity;
    const status = this.#exports
      .millrace_mailbox_reader_read(this.#object, address, size, timeout);
    if (status < 0) throw errorOf(status, "read payload");
    if (status === 0) return undefined;
    return JSON.parse(new TextDecoder().decode(this.#host.copyFrom(address, status)));
  }

  /** Closes the mailbox, for both sides. Closing again does nothing. */
  close(): void {
    this.#exports.millrace_mailbox_reader_close(this.#object);
  }
}
