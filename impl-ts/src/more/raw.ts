/**
 * Messages as bytes: payloads that are encoded already, with their kind, codec and tag; reads into
 * the caller's memory; and codecs that write into the ring and read from it. See `spec/codec.md`.
 *
 * @module
 */

import type { Codec } from "../codec/codec.ts";
import { lostError, throwCannot, throwRangeError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { requireInteger } from "../memory/plan.ts";
import { isBytes, requireMemory } from "../memory/realm.ts";
import { type Incoming, Mode, read, readAsync, releaseFrame, tryRead } from "../pipe/incoming.ts";
import {
  deadlineOfCall,
  type Message,
  type ReadingEnd,
  requireWait,
  type TryReadingEnd,
  type TryWritingEnd,
  type WaitOptions,
  type WritingEnd,
} from "../pipe/options.ts";
import {
  isFree,
  makeSend,
  type Outgoing,
  requireWritable,
  type Send,
  send,
  sendAsync,
  setPayload,
  trySend,
} from "../pipe/outgoing.ts";
import { abandon, claim, publish } from "./lend.ts";

/**
 * A message to write, its payload encoded already.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type MessageInit, readMessage, writeMessage } from "@millrace/millrace/raw";
 *
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * const init: MessageInit = { payload: Uint8Array.of(1, 2), tag: 42 };
 * writeMessage(here, init);
 * console.log(readMessage(there)?.tag); // 42
 * ```
 */
export interface MessageInit extends Partial<Omit<Message, "payload">> {
  /** The payload. */
  readonly payload: Uint8Array;
}

/**
 * Writes one message whose payload is encoded already. Blocks while there is no room for it.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { writeMessage } from "@millrace/millrace/raw";
 *
 * using here = Port.create<unknown>();
 * using there = Port.attach<unknown>(here.memory); // usually in another thread
 * writeMessage(here, { codec: 2, payload: new TextEncoder().encode("[1,2]") }); // JSON
 * console.log(there.read()); // [ 1, 2 ]
 * ```
 */
export function writeMessage(end: WritingEnd, message: MessageInit, options?: WaitOptions): void {
  const deadline = deadlineOfCall(options);
  const out = end.link.outgoing!;
  requireWritable(out);
  send(out, toSend(out, message, raw), deadline);
}

/**
 * Writes one message whose payload is encoded already, if there is room for all of it. Returns
 * whether it did. Never waits.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { tryWriteMessage } from "@millrace/millrace/raw";
 *
 * using here = Port.create({ capacity: 256 });
 * const payload = new Uint8Array(100);
 * console.log(tryWriteMessage(here, { payload })); // true
 * console.log(tryWriteMessage(here, { payload })); // false
 * ```
 */
export function tryWriteMessage(end: TryWritingEnd, message: MessageInit): boolean {
  const out = end.link.outgoing!;
  requireWritable(out);
  return isFree(out) && trySend(out, toSend(out, message, raw));
}

/**
 * `writeMessage` without blocking: resolves when the message is in the ring.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readMessage, writeMessageAsync } from "@millrace/millrace/raw";
 *
 * using here = Port.create<unknown>();
 * using there = Port.attach<unknown>(here.memory); // usually in another thread
 * await writeMessageAsync(here, { tag: 42, payload: Uint8Array.of(1) });
 * console.log(readMessage(there)?.tag); // 42
 * ```
 */
export async function writeMessageAsync(
  end: TryWritingEnd,
  message: MessageInit,
  options?: WaitOptions,
): Promise<void> {
  requireWait(options);
  const out = end.link.outgoing!;
  requireWritable(out);
  await sendAsync(out, toSend(out, message, makeSend(layout.FRAME_KIND_DATA)), options);
}

function toSend(out: Outgoing, message: MessageInit, given: Send): Send {
  const { kind = layout.FRAME_KIND_DATA, codec = layout.CODEC_BYTES, tag = 0, payload } = message;
  requireInteger("kind", kind, 0, 255);
  const isCall = kind >= layout.FRAME_KIND_CALL && kind <= layout.FRAME_KIND_THROW;
  if (kind !== layout.FRAME_KIND_DATA && !isCall) {
    throwRangeError(`kind must be 1, 3, 4 or 5: ${kind}`);
  }
  requireInteger("codec", codec, 0, 255);
  requireInteger("tag", tag, 0, 0xffffffff);
  if (!isBytes(payload)) throwCannot("write message: its payload must be a Uint8Array");
  requireMemory(payload);
  if (codec === layout.CODEC_JSON_BATCH && payload.length > out.largest) {
    throwRangeError(`Cannot write a batch of ${payload.length} bytes: it takes one frame`);
  }
  given.kind = kind;
  given.tag = tag;
  return setPayload(given, codec, payload, true);
}

/** What a call that does not return before it is done writes. */
const raw: Send = makeSend(layout.FRAME_KIND_DATA);

/**
 * Reads one message without decoding it; a batch is one message. Blocks until there is one.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readMessage } from "@millrace/millrace/raw";
 *
 * using here = Port.create<unknown>();
 * using there = Port.attach<unknown>(here.memory); // usually in another thread
 * here.write([1, 2]);
 * const { codec, payload } = readMessage(there)!;
 * console.log(codec, new TextDecoder().decode(payload)); // 2 [1,2]
 * ```
 */
export function readMessage(end: ReadingEnd, options?: WaitOptions): Message | undefined {
  return read(end.link.incoming!, Mode.MESSAGE, options) as Message | undefined;
}

/**
 * `readMessage` if there is a message; otherwise returns undefined. Never waits.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { tryReadMessage } from "@millrace/millrace/raw";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * console.log(tryReadMessage(there)); // undefined
 * here.write("hello"); // as JSON, with quotes
 * console.log(tryReadMessage(there)?.payload.length); // 7
 * ```
 */
export function tryReadMessage(end: TryReadingEnd): Message | undefined {
  return tryRead(end.link.incoming!, Mode.MESSAGE) as Message | undefined;
}

/**
 * `readMessage` without blocking.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readMessageAsync } from "@millrace/millrace/raw";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * const message = readMessageAsync(there);
 * here.write(Uint8Array.of(1, 2));
 * console.log((await message)?.payload); // Uint8Array(2) [ 1, 2 ]
 * ```
 */
export function readMessageAsync(
  end: TryReadingEnd,
  options?: WaitOptions,
): Promise<Message | undefined> {
  return readAsync(end.link.incoming!, Mode.MESSAGE, options) as Promise<Message | undefined>;
}

/**
 * Reads the payload of one message into memory of the caller, and returns its size. Blocks until
 * there is a message; undefined at the timeout and at the end of the stream. `lastRead` then
 * returns the kind, codec and tag of the message.
 *
 * @throws {RangeError} if the message does not fit; it stays, and can be read again.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readInto } from "@millrace/millrace/raw";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * const target = new Uint8Array(1024); // for all messages
 * here.write(Uint8Array.of(1, 2, 3));
 * const size = readInto(there, target);
 * console.log(size, target[2]); // 3 3
 * ```
 */
export function readInto(
  end: ReadingEnd,
  target: Uint8Array,
  options?: WaitOptions,
): number | undefined {
  const inc = end.link.incoming!;
  return copyTaken(inc, read(inc, Mode.SHOW, options), target);
}

/**
 * `readInto` if there is a message; otherwise returns undefined. Never waits.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { tryReadInto } from "@millrace/millrace/raw";
 *
 * using here = Port.create<Uint8Array>();
 * using there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * const target = new Uint8Array(1024);
 * console.log(tryReadInto(there, target)); // undefined
 * here.write(Uint8Array.of(1, 2, 3));
 * console.log(tryReadInto(there, target)); // 3
 * ```
 */
export function tryReadInto(end: TryReadingEnd, target: Uint8Array): number | undefined {
  const inc = end.link.incoming!;
  return copyTaken(inc, tryRead(inc, Mode.SHOW), target);
}

/**
 * Returns the kind, codec and tag of the message that was read last, whichever function or verb
 * has read it.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { lastRead, writeMessage } from "@millrace/millrace/raw";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * writeMessage(here, { codec: 1, tag: 42, payload: new TextEncoder().encode("hello") });
 * console.log(there.read(), lastRead(there).tag); // hello 42
 * ```
 */
export function lastRead(end: TryReadingEnd): Pick<Message, "kind" | "codec" | "tag"> {
  const { kind, codec, tag } = end.link.incoming!;
  return { kind, codec, tag };
}

/** Copies what was taken into the caller's memory. What does not fit stays. */
function copyTaken(inc: Incoming, taken: unknown, target: Uint8Array): number | undefined {
  if (taken === undefined) return undefined;
  const { at, size } = inc.frame;
  const payload = taken === inc ? undefined : (taken as Message).payload;
  const needed = payload?.length ?? size;
  if (needed > target.length) {
    if (payload !== undefined) {
      inc.queue.unshift(taken as Message);
      inc.keptSize += needed;
    }
    throwRangeError(`Cannot read message of ${needed} bytes into ${target.length}`);
  }
  if (payload !== undefined) target.set(payload);
  else {
    copyInto(inc, at, size, target);
    releaseFrame(inc);
  }
  return needed;
}

/** Up to this many bytes, a copy by words takes no longer than `set`, which needs a view. */
const SHORT_SIZE = 128;

/** Copies a payload out of the ring: 64 bytes take 28 ns by words, `set` 33 (V8 14, 15). */
function copyInto({ bytes, words }: Incoming, at: number, size: number, target: Uint8Array): void {
  if (size > SHORT_SIZE) return target.set(bytes.subarray(at, at + size));
  let to = 0;
  for (let from = at / 4; to + 4 <= size; from++, to += 4) {
    const word = words[from]!;
    target[to] = word;
    target[to + 1] = word >> 8;
    target[to + 2] = word >> 16;
    target[to + 3] = word >> 24;
  }
  for (; to < size; to++) target[to] = bytes[at + to]!;
}

/**
 * A codec that writes into the ring and reads from it, with no memory of its own and no second
 * copy.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type PlaceCodec, readWith, writeWith } from "@millrace/millrace/raw";
 *
 * const point: PlaceCodec<[number, number]> = {
 *   code: 128,
 *   encode: (value) => new Uint8Array(Float64Array.from(value).buffer),
 *   decode: (payload) => point.decodeFrom(payload.slice(), 0, 16),
 *   sizeOf: () => 16,
 *   encodeInto(value, place) {
 *     new Float64Array(place.buffer, place.byteOffset, 2).set(value);
 *     return 16;
 *   },
 *   decodeFrom(area, offset) {
 *     const [x, y] = new Float64Array(area.buffer, area.byteOffset + offset, 2);
 *     return [x!, y!];
 *   },
 * };
 * using here = Port.create();
 * using there = Port.attach(here.memory, { codec: point }); // usually in another thread
 * writeWith(here, point, [0.5, -1]);
 * console.log(readWith(there, point)); // [ 0.5, -1 ]
 * ```
 */
export interface PlaceCodec<In = unknown, Out = In> extends Codec<In, Out> {
  /** The most bytes that `encodeInto` takes for a value. */
  sizeOf(value: Out): number;
  /**
   * Writes the payload of a value into `place`, which has the bytes that `sizeOf` stated, and
   * returns how many it took. It is memory that the peer can change: do not read it again.
   */
  encodeInto(value: Out, place: Uint8Array): number;
  /**
   * Returns the value of a payload that lies in `area`, from `offset` on, a multiple of 16. It is
   * memory that the peer can change meanwhile: load each byte once, check what was loaded, and keep
   * no view of it.
   */
  decodeFrom(area: Uint8Array, offset: number, size: number): In;
}

/**
 * Writes one value by a codec, straight into the ring. Blocks while there is no room for it.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readMessage, writeWith } from "@millrace/millrace/raw";
 *
 * const u32 = {
 *   code: 129,
 *   sizeOf: () => 4,
 *   encodeInto(value: number, place: Uint8Array) {
 *     new DataView(place.buffer, place.byteOffset).setUint32(0, value, true);
 *     return 4;
 *   },
 * };
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * writeWith(here, u32, 513);
 * console.log(readMessage(there)?.payload); // Uint8Array(4) [ 1, 2, 0, 0 ]
 * ```
 */
export function writeWith<Out>(
  end: WritingEnd,
  codec: Pick<PlaceCodec<never, Out>, "code" | "sizeOf" | "encodeInto">,
  value: Out,
  options?: WaitOptions,
): void {
  const size = codec.sizeOf(value);
  if (size > end.link.outgoing!.largest) {
    const payload = new Uint8Array(size);
    const written = codec.encodeInto(value, payload);
    return writeMessage(end, { codec: codec.code, payload: payload.subarray(0, written) }, options);
  }
  const place = claim(end, size, { ...options, codec: codec.code });
  let written: number;
  try {
    written = codec.encodeInto(value, place.payload);
  } catch (reason) {
    abandon(end);
    throw reason;
  }
  publish(end, written);
}

/**
 * Reads one value by a codec, from where it lies. Blocks until there is a message; undefined at the
 * timeout and at the end of the stream.
 *
 * @throws {MessageError} `message.codec` if the message has another codec, or the codec fails.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { readWith, writeMessage } from "@millrace/millrace/raw";
 *
 * const u32 = {
 *   code: 129,
 *   decode: (payload: Uint8Array) => u32.decodeFrom(payload, 0),
 *   decodeFrom: (area: Uint8Array, offset: number): number =>
 *     new DataView(area.buffer, area.byteOffset + offset).getUint32(0, true),
 * };
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * writeMessage(here, { codec: 129, payload: Uint8Array.of(1, 2, 0, 0) });
 * console.log(readWith(there, u32)); // 513
 * ```
 */
export function readWith<In>(
  end: ReadingEnd,
  codec: Pick<PlaceCodec<In, never>, "code" | "decode" | "decodeFrom">,
  options?: WaitOptions,
): In | undefined {
  const inc = end.link.incoming!;
  const taken = read(inc, Mode.SHOW, options);
  if (taken === undefined) return undefined;
  const { at, size } = inc.frame;
  try {
    if (inc.codec !== codec.code) throw new TypeError(`it is not ${codec.code}`);
    if (taken === inc) return codec.decodeFrom(inc.bytes, at, size);
    return codec.decode((taken as Message).payload);
  } catch (cause) {
    throw lostError("message.codec", `its codec is ${inc.codec}: ${cause}`, { cause });
  } finally {
    if (taken === inc) releaseFrame(inc);
  }
}
