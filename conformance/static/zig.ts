/**
 * The Zig implementation, as WebAssembly, as a testee of the static cases. See `worker.zig`.
 *
 * @module
 */

import { buildWasmWorker } from "../../tools/wasm_worker.ts";
import { toHex } from "../reference/bytes.ts";
import type { Item, MessageCase, Optional, Reason, Setting } from "../reference/case.ts";
import { reasonName, reasonNames } from "../reference/layout.ts";
import type { Answer, Opened, Session, Testee } from "./driver.ts";

/** What `worker.zig` exports. */
interface Exports {
  heap_base(): number;
  result_address(): number;
  create(...words: number[]): number;
  attach(address: number, size: number): number;
  open_reader(endpoint: number, channel: number, limit: number, calls: number): number;
  open_writer(endpoint: number, channel: number): number;
  open_mailbox_reader(address: number, size: number, limit: number): number;
  open_mailbox_writer(address: number, size: number): number;
  open_port(endpoint: number, limit: number, calls: number): number;
  read(): number;
  peek(): number;
  release(): number;
  write(...words: number[]): number;
  claim(...words: number[]): number;
  resume_mailbox(address: number, size: number): number;
  publish(): number;
  end(): number;
  close(): void;
  check_text(address: number, size: number): number;
  batch_begin(address: number, size: number): void;
  batch_next(): number;
}

const PAGE = 65_536;
/** Where the images lie; what the host hands over stands a page earlier. */
const IMAGE_AT = 40 * PAGE;
const HOST_AT = IMAGE_AT - PAGE;
const [GOT_MESSAGE, NOTHING, ENDED, REFUSED] = [1, 2, 3, 4];
/** The caller names no channel. */
const NONE = -1;
const TEXT = 1;
const JSON_TEXT = 2;
const BATCH = 3;

/** Builds the worker and returns it as a testee. */
export async function buildZigTestee(): Promise<Testee> {
  const module = await buildWasmWorker("static");
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 16_384, shared: true });
  const instance = new WebAssembly.Instance(module, {
    env: { memory },
    millrace: { now_us: () => performance.now() * 1000 },
  });
  return new ZigTestee(memory, instance.exports as unknown as Exports);
}

class ZigTestee implements Testee {
  readonly name = "Zig";
  // Its types demand aligned memory; it moves bytes, and so knows every codec and hands out a batch
  // whole.
  readonly lacks: readonly Optional[] = ["alignment", "unknown_codec", "elements"];
  readonly #bytes: Uint8Array;
  readonly #exports: Exports;

  constructor(memory: WebAssembly.Memory, exports: Exports) {
    if (exports.heap_base() > HOST_AT) throw new RangeError("the images lie in the module's data");
    this.#bytes = new Uint8Array(memory.buffer);
    this.#exports = exports;
  }

  open(setting: Setting, image: Uint8Array): Opened {
    const at = IMAGE_AT + (setting.memory_offset ?? 0);
    const memory = this.#bytes.subarray(at, at + image.length);
    memory.set(image);
    const status = this.#open(setting, at, image.length);
    const result = nameOf(status, "ok");
    if (status < 0 || setting.role === "segment") return { memory, result };
    return { memory, result, session: this.#session(setting) };
  }

  #open({ kind, role, geometry, ...setting }: Setting, at: number, size: number): number {
    const exports = this.#exports;
    if (kind === "create") {
      const { endpoints, channels } = geometry!;
      const words = channels.flatMap((
        { writer, reader, capacity, label = 0, start = 0 },
      ) => [writer, reader, capacity, label, start]);
      this.#bytes.set(new Uint8Array(Uint32Array.from(words).buffer), HOST_AT);
      const owner = Number(setting.sole_owner ?? false);
      return exports.create(at, size, endpoints, HOST_AT, channels.length, owner);
    }
    const { channel = NONE, endpoint, limit = 4096, calls = false } = setting;
    if (role === "mailbox_reader") return exports.open_mailbox_reader(at, size, limit);
    if (role === "mailbox_writer") return exports.open_mailbox_writer(at, size);
    const status = exports.attach(at, size);
    if (status < 0 || role === "segment") return status;
    if (role === "writer") return exports.open_writer(endpoint ?? 0, channel);
    if (role === "port") return exports.open_port(endpoint!, limit, Number(calls));
    return exports.open_reader(endpoint ?? 1, channel, limit, Number(calls));
  }

  #session({ kind, role }: Setting): Session {
    const exports = this.#exports;
    let written = new Uint8Array(0);
    // The elements of a batch that were not asked for yet.
    const waiting: Item[] = [];
    return {
      read: () => {
        if (waiting.length === 0) {
          const status = exports.read();
          if (status !== GOT_MESSAGE) return this.#noMessage(status);
          if (kind === "decode" || role === "mailbox_reader") waiting.push(...this.#decode());
          else waiting.push(this.#message());
        }
        return { item: waiting.shift() as Item };
      },
      peek: () => {
        const status = exports.peek();
        return status === GOT_MESSAGE ? { item: this.#message() } : this.#noMessage(status);
      },
      release: () => nameOf(exports.release(), "ok"),
      write: (payload, { kind, codec, tag }, wait) => {
        written = payload.slice();
        this.#bytes.set(payload, HOST_AT);
        const words = [payload.length, kind, codec, tag, Number(wait)];
        return this.#answer(exports.write(HOST_AT, ...words));
      },
      claim: (payload, { codec, tag }, size, abandon) => {
        this.#bytes.set(payload, HOST_AT);
        const words = [payload.length, size, codec, tag, Number(abandon)];
        return this.#answer(exports.claim(HOST_AT, ...words));
      },
      resume: () => {
        this.#bytes.set(written, HOST_AT);
        return nameOf(exports.resume_mailbox(HOST_AT, written.length), "ok");
      },
      publish: () => nameOf(exports.publish(), "ok"),
      end: () => this.#answer(exports.end()),
      close: () => {
        exports.close();
        return "ok";
      },
    };
  }

  #noMessage(status: number): ReturnType<Session["read"]> {
    if (status === ENDED) return { end: "ended" };
    if (status === NOTHING) return { end: "nothing" };
    const code = nameOf(status, "");
    if (code.startsWith("message.")) return { item: { report: code } };
    const reason = this.#reasonBeside(code);
    return reason === undefined ? { end: code } : { end: code, reason };
  }

  #answer(status: number): Answer {
    const code = nameOf(status, "ok");
    const reason = this.#reasonBeside(code);
    return reason === undefined ? code : { code, reason };
  }

  /** What stands beside `pipe.failed` and `peer.failed`. */
  #reasonBeside(code: string): Reason | undefined {
    if (code !== "peer.failed" && code !== "pipe.failed") return undefined;
    const value = this.#result()[5]!;
    if (value === 0) return "none";
    return reasonNames().includes(reasonName(value)) ? reasonName(value) : value;
  }

  #result(): Uint32Array {
    const at = this.#exports.result_address();
    return new Uint32Array(this.#bytes.slice(at, at + 24).buffer);
  }

  #message(): MessageCase {
    const [address, size, kind, codec, tag] = this.#result();
    const payload = this.#bytes.slice(address!, address! + size!);
    return { kind: kind!, codec: codec!, tag: tag!, hex: toHex(payload) };
  }

  /** Looks into the payload with what the implementation offers for that, and a JSON parser. */
  #decode(): Item[] {
    const [address, size] = this.#result() as unknown as [number, number];
    const message = this.#message();
    if (message.codec < TEXT) return [message];
    const status = this.#exports.check_text(address, size);
    if (status < 0) return [{ report: nameOf(status, "") }];
    if (message.codec === TEXT) return [message];
    const { kind, tag } = message;
    const parse = (at: number, length: number) => {
      const text = new TextDecoder().decode(this.#bytes.slice(at, at + length));
      return { kind, codec: JSON_TEXT, tag, json: JSON.parse(text) };
    };
    try {
      return message.codec === BATCH ? this.#decodeBatch(parse) : [parse(address, size)];
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return [{ report: "message.json" }];
    }
  }

  #decodeBatch(parse: (at: number, size: number) => MessageCase): Item[] {
    const [address, size] = this.#result() as unknown as [number, number];
    this.#exports.batch_begin(address, size);
    const items: Item[] = [];
    for (;;) {
      const status = this.#exports.batch_next();
      if (status === NOTHING) return items;
      if (status < 0) return [{ report: nameOf(status, "") }];
      const [at, length] = this.#result() as unknown as [number, number];
      items.push(parse(at, length));
    }
  }
}

function nameOf(status: number, done: string): string {
  if (status < 0) return reasonName(-status);
  if (status === REFUSED) return "refused";
  return status === NOTHING ? "full" : done;
}
