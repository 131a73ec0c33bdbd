/**
 * The way out: all that an end writes stands in one queue, and `pump` places in the ring what has
 * room. See `spec/pipe.md`.
 *
 * @module
 */

import {
  type AnyCodec,
  type CodecName,
  copyOut,
  encodeBy,
  encodeText,
  isScratch,
  isWellFormed,
  NO_BYTES,
} from "../codec/codec.ts";
import { requireJson } from "../codec/loss.ts";
import { failure, type MillraceError, throwCannot, throwRangeError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import type { Channel } from "../memory/plan.ts";
import { isBytes, requireMemory } from "../memory/realm.ts";
import { isPast } from "../memory/segment.ts";
import { Head } from "../ring/frame.ts";
import { Bit, load, Side, store } from "../ring/side.ts";
import { SETTLED } from "../wait/loop.ts";
import type { Link } from "./link.ts";
import {
  deadlineOfCall,
  limit,
  requireWait,
  timeoutError,
  type WaitOptions,
  type WriterOptions,
} from "./options.ts";
import { closedError, For, giveWayAtTimes, stateError, tendSoon } from "./tend.ts";
import { isLinked } from "../wait/state.ts";
import { wait } from "../wait/endpoint.ts";

const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const PREAMBLE_SIZE = layout.MESSAGE_PREAMBLE_SIZE;
const ALIGN = layout.FRAME_ALIGN;
const RESERVE = layout.RING_RESERVE;
const DATA = layout.FRAME_KIND_DATA;
const END = layout.FRAME_KIND_END;
const PAD = layout.FRAME_KIND_PAD;
const FIRST = layout.FRAME_FLAG_FIRST;
const LAST = layout.FRAME_FLAG_LAST;
const WHOLE = FIRST | LAST;
const CANCEL = LAST | layout.FRAME_FLAG_CANCEL;
/** JSON values of one batch, and its UTF-16 units. */
export const RUN_COUNT = 64;
const RUN_SIZE = 12 * 1024;

/** One message on its way into the ring; or the cancel of one, or the `end`, a frame each. */
export interface Send {
  kind: number;
  code: number;
  tag: number;
  /** Flags of a frame that is written as it is; 0 for a message, whose frames get theirs here. */
  flags: number;
  /** A text that is encoded when it is placed, so that others may join it. */
  text: string | undefined;
  /** Otherwise the payload, the first `size` bytes of `source`. */
  source: Uint8Array;
  size: number;
  /** Whether `source` lasts: it is neither memory of a codec nor the scratch of texts. */
  isKept: boolean;
  /**
   * JSON values that the text holds, with commas between, and the UTF-16 units that may join it. A
   * claim that is not finished has a count of 0.
   */
  count: number;
  room: number;
  /** Bytes of the message that are placed; -1 before its first frame. */
  sent: number;
  /** Whether it is in the ring, or will not come there, for the reason `failure`. */
  isSettled: boolean;
  failure: unknown;
  /** Somebody who waits is told of that. */
  settle: ((failure?: unknown) => void) | undefined;
  promise: Promise<void> | undefined;
  next: Send | undefined;
}

/** Makes a message of this kind, without a payload yet. */
export function makeSend(kind: number, code = 0, tag = 0): Send {
  return {
    kind,
    code,
    tag,
    flags: 0,
    text: undefined,
    source: NO_BYTES,
    size: 0,
    isKept: true,
    count: 1,
    room: 0,
    sent: -1,
    isSettled: false,
    failure: undefined,
    settle: undefined,
    promise: undefined,
    next: undefined,
  };
}

/** The writer's end of one ring. */
export class Outgoing extends Side {
  readonly link: Link;
  readonly codec: CodecName | AnyCodec;
  /** Checks each JSON value before it is encoded, if the codec has such a check. */
  readonly vet: ((value: never) => void) | undefined;
  /** UTF-16 units of JSON values that may go out as one message, without its brackets; 0: none. */
  readonly run: number;
  /** Largest payload of one frame. */
  readonly largest: number;
  /** The queue: what is accepted and not in the ring, or not all of it. */
  first: Send | undefined;
  last: Send | undefined;
  /** How many in the queue somebody waits for, on the event loop. */
  pendingCount = 0;
  /** The `head` at which there is room for the frame that found none. [wait.writer_asks] */
  need = 0;
  /** Whether `head` may be loaded before the deadline is looked at again. [ring.one_load] */
  mayLoad = true;
  /** What the next call writes; a call that does not return at once keeps it and makes another. */
  spare: Send = makeSend(DATA);
  /** UTF-16 units and bytes that were posted since the ring was looked at. */
  gathered = 0;
  /** `place`, or what a meter has put in front of it. */
  place: typeof place = place;

  /** Makes the outgoing side of an attached endpoint for one of its rings. */
  constructor(link: Link, channel: Channel, options: WriterOptions<never>) {
    super(link.endpoint, channel, true);
    const codec: CodecName | AnyCodec = options.codec ?? "json";
    const { code, vet } = codec as Partial<AnyCodec>;
    this.link = link;
    this.codec = code === layout.CODEC_JSON ? "json" : codec;
    this.vet = vet;
    this.largest = (this.capacity >> 1) - HEADER_SIZE;
    // [frame.batch_whole] A UTF-16 unit takes at most three bytes, and there are two brackets.
    const run = Math.floor(Math.min(RUN_SIZE, this.largest / 3)) - 2;
    this.run = options.batch !== false && this.codec === "json" ? run : 0;
    link.outgoing = this;
  }
}

/**
 * Places as much of a message as there is room for: one frame, or, of a message that is larger than
 * half the ring, one after the other. Returns whether all of it is placed. Does not publish.
 *
 * @throws {TypeError} if the caller has detached its bytes, or made them fewer.
 */
export function place(out: Outgoing, message: Send): boolean {
  const { words, bytes, base, capacity, largest } = out;
  const { text, kind, tag } = message;
  let { source, size, code } = message;
  if (text !== undefined) {
    const isBatch = message.count > 1; // [codec.batch]
    source = encodeText(isBatch ? `[${text}]` : text);
    size = source.length;
    if (isBatch) code = layout.CODEC_JSON_BATCH;
  }
  for (;;) {
    const { cursor } = out;
    const toEnd = capacity - (cursor & (capacity - 1));
    let flags = message.flags || WHOLE;
    let from = 0;
    let part = size;
    let lead = 0;
    if (size > largest) { // [frame.multipart]
      const isFirst = message.sent < 0;
      if (isFirst) lead = PREAMBLE_SIZE;
      else from = message.sent;
      // A quarter, so that writing the next chunk overlaps with reading the last one; or up to the
      // end of the byte area, if that is near. [frame.part] Only a first chunk can be so small that
      // its preamble fills it.
      const most = toEnd >= 2 * ALIGN && toEnd < capacity >> 2 ? toEnd : capacity >> 2;
      part = Math.min(size - from, most - HEADER_SIZE - lead);
      flags = isFirst ? FIRST : from + part === size ? LAST : 0;
    }

    // [ring.room] The frame, a pad before it if it would cross the end of the byte area, and the
    // room for an `end`, which alone may take that. [frame.end]
    const isEnd = kind === END;
    const extent = (HEADER_SIZE + lead + part + ALIGN - 1) & -ALIGN;
    const pad = extent > toEnd ? toEnd : 0;
    const need = (cursor + pad + extent + (isEnd ? 0 : RESERVE) - capacity) | 0;
    while (((need - out.peerCursor) | 0) > 0) {
      if (!out.mayLoad) {
        out.need = need;
        return false;
      }
      out.mayLoad = false;
      load(out);
    }

    const index = (base + (cursor & (capacity - 1))) >>> 2;
    words[index + 3] = 0; // `time`: this writer does not measure it.
    if (pad > 0) { // [ring.pad] All fields of a pad but the kind and the size are 0. [frame.pad]
      words[index] = pad - HEADER_SIZE;
      words[index + 1] = PAD;
      words[index + 2] = 0;
      out.cursor = (cursor + pad) | 0;
      continue;
    }
    if (source.length < from + part) {
      // These are the caller's own bytes, since a write that waits does not copy them. Without this
      // check, old bytes of the ring would be sent in place of the missing ones.
      throwCannot("write message: its bytes were detached, or are fewer now");
    }
    const at = index * 4 + HEADER_SIZE;
    if (lead > 0) {
      words.set([size, size / 2 ** 32, 0, 0], at / 4); // [frame.preamble]
      // From now on it is what it was: a text that has begun takes no more.
      message.source = source;
      message.size = size;
      message.isKept &&= !isScratch(source);
      message.text = undefined;
    }
    // What was claimed stands there already. For detached memory, `set` throws even if there is
    // nothing to copy.
    if (part > 0 && source !== bytes) {
      bytes.set(part < source.length ? source.subarray(from, from + part) : source, at + lead);
    }
    words[index] = lead + part;
    words[index + 1] = isEnd ? kind : kind | flags << Head.FLAGS_SHIFT | code << Head.CODEC_SHIFT;
    words[index + 2] = tag;
    out.cursor = (cursor + extent) | 0;
    const isDone = from + part === size;
    message.sent = isDone ? -1 : from + part;
    if (isDone) return true;
  }
}

/** Why nothing can be written any more, after the own `close` and after a fault. */
function stoppedError({ link, fault }: Outgoing, verb: string): MillraceError | undefined {
  return closedError(link, verb) ?? fault;
}

/** Throws the first answer that needs no look at the ring, if there is one. [pipe.first_answer] */
export function requireWritable(out: Outgoing): void {
  if (out.bits === 0 && isLinked(out)) return;
  const stopped = stoppedError(out, "write");
  if (stopped) throw stopped;
  if (out.bits & Bit.ENDED) throw failure("pipe.ended", "write: this end has ended");
  const gone = stateError(out.link, "write"); // [pipe.peer_gone]
  if (gone) throw gone;
  requireFree(out);
}

/** Throws while a claim is open or a value is being encoded: nothing else can be placed then. */
export function requireFree({ bits }: Outgoing): void {
  if (bits & Bit.LENT) throwCannot("write: a claim is open"); // [pipe.claim_one]
  if (bits & Bit.ENCODING) throwCannot("write: a value is being encoded");
}

/** Runs a codec: the application's own code, which must not write meanwhile. */
export function whileEncoding<T, V>(out: Outgoing, run: (value: V) => T, value?: V): T {
  const before = out.bits & Bit.ENCODING;
  out.bits |= Bit.ENCODING;
  try {
    return run(value as V);
  } finally {
    out.bits = out.bits & ~Bit.ENCODING | before;
  }
}

/** Makes a payload the whole content of a message, which may have been written before. */
export function setPayload(send: Send, code: number, source: Uint8Array, isKept: boolean): Send {
  send.code = code;
  send.source = source;
  send.size = source.length;
  send.isKept = isKept;
  send.sent = -1;
  send.isSettled = false;
  send.text = send.failure = undefined;
  return send;
}

/**
 * Makes a value the payload of a message that is new. A text becomes bytes only when it is placed.
 *
 * @throws {TypeError} if the codec cannot carry the value.
 */
export function encode(out: Outgoing, value: unknown, send: Send): Send {
  const { codec, bits } = out;
  const isNamed = typeof codec === "string";
  let source = NO_BYTES;
  let text: string | undefined;
  let code: number = layout.CODEC_TEXT;
  if (isNamed && codec !== "text" && ArrayBuffer.isView(value) && isBytes(value)) {
    requireMemory(value);
    source = value;
    code = layout.CODEC_BYTES;
  } else {
    // As `whileEncoding` does, without a closure, which would be made for each value.
    out.bits |= Bit.ENCODING;
    try {
      if (codec === "json") {
        out.vet?.(value as never);
        requireJson(value);
        text = JSON.stringify(value);
        code = layout.CODEC_JSON;
      } else if (!isNamed) {
        source = encodeBy(codec, value);
        code = codec.code;
      } else if (codec === "text" && typeof value === "string") {
        if (!isWellFormed(value)) throwCannot("write text: it has a lone surrogate");
        text = value;
      }
    } finally {
      out.bits = out.bits & ~Bit.ENCODING | bits & Bit.ENCODING;
    }
    if (out.bits & Bit.STOPPED) requireWritable(out); // the codec has closed this end
    if (isNamed && text === undefined) {
      throwCannot(`write ${typeof value}: the codec ${codec} cannot carry it`);
    }
  }
  send.text = text;
  send.source = source;
  send.size = source.length;
  send.code = code;
  send.isKept = isNamed;
  return send;
}

/** Has a message outlast the call. */
export function keep(send: Send): void {
  if (send.text !== undefined || send.isKept) return;
  send.source = copyOut(send.source, 0, send.size);
  send.isKept = true;
}

/** Places and publishes a message, if nothing comes before it and there is room for all of it. */
export function put(out: Outgoing, message: Send): boolean {
  out.mayLoad = true;
  if (out.first || !out.place(out, message)) return false;
  store(out);
  // The caller's value and bytes would live as long as the message.
  message.source = NO_BYTES;
  message.text = undefined;
  return true;
}

/** Writes a value. Blocks while there is no room for it. */
export function write(out: Outgoing, value: unknown, options: WaitOptions | undefined): void {
  const deadline = options === undefined ? Infinity : deadlineOfCall(options);
  if (out.bits || !isLinked(out)) requireWritable(out);
  const message = encode(out, value, out.spare);
  if (!put(out, message)) block(out, message, deadline);
}

/** Writes a message, and waits while there is no room for it. */
export function send(out: Outgoing, message: Send, deadline: number): void {
  if (!put(out, message)) block(out, message, deadline);
}

/** Puts a message into the queue, and waits until it is in the ring. */
function block(out: Outgoing, message: Send, deadline: number): void {
  if (message === out.spare) out.spare = makeSend(DATA);
  append(out, message);
  for (let waits = 0; !pump(out) && !message.isSettled; waits++) {
    try {
      const isLate = waits > 0 && isPast(deadline);
      if (isLate || !wait(out.link, For.ROOM, deadline, waits)) {
        throw timeoutError("write");
      }
    } catch (reason) {
      giveUp(out, message, reason);
      throw reason;
    }
  }
  if (message.failure !== undefined) throw message.failure;
}

/** Writes a value if there is room for all of it. */
export function tryWrite(out: Outgoing, value: unknown): boolean {
  requireWritable(out);
  return isFree(out) && trySend(out, encode(out, value, out.spare));
}

/** Whether nothing comes before the next message, once what has room is placed. */
export function isFree(out: Outgoing): boolean {
  return out.first === undefined || pump(out);
}

/** Places and publishes all of a message, or nothing of it. [pipe.try_write] */
export function trySend(out: Outgoing, message: Send): boolean {
  const { cursor, capacity } = out;
  const { text } = message;
  if (put(out, message)) return true;
  out.cursor = cursor; // nothing of it is visible yet
  message.sent = -1;
  const size = text === undefined ? message.size : encodeText(text).length;
  const bytes = size + PREAMBLE_SIZE;
  // The full chunks, and one more: the end of the byte area may cut one in two, or cost a pad.
  const chunks = Math.ceil(bytes / ((capacity >> 2) - HEADER_SIZE)) + 1;
  if (bytes + chunks * HEADER_SIZE > capacity - RESERVE) { // [pipe.try_never]
    throwRangeError(`Cannot write ${size} bytes at once: the ring is too small`);
  }
  store(out);
  message.source = NO_BYTES;
  message.text = undefined;
  return false;
}

/** Writes a value without blocking; resolves when the message is in the ring. */
export async function writeAsync(
  out: Outgoing,
  value: unknown,
  options: WaitOptions | undefined,
): Promise<void> {
  requireWait(options);
  requireWritable(out);
  await sendAsync(out, encode(out, value, makeSend(DATA)), options);
}

/** Writes a message without blocking. */
export function sendAsync(
  out: Outgoing,
  message: Send,
  options: WaitOptions | undefined,
): Promise<void> {
  const { link } = out;
  const turn = giveWayAtTimes(link);
  if (!turn && put(out, message)) return SETTLED;
  keep(message);
  const promise = enqueue(out, message, options);
  if (turn) turn.then(link.tend);
  else if (!(link.asks & For.ROOM)) link.tend(); // from now on the peer knows of it
  return promise;
}

/**
 * Appends a message to the queue. The promise resolves when it is in the ring, and rejects with the
 * reason why it will not come there; the options can take it back.
 */
export function enqueue(
  out: Outgoing,
  message: Send,
  options?: WaitOptions | undefined,
): Promise<void> {
  append(out, message);
  out.pendingCount++;
  return message.promise = new Promise<void>((resolve, reject) => {
    const release = options &&
      limit(options, (reason) => giveUp(out, message, reason ?? timeoutError("write")));
    message.settle = (reason) => {
      out.pendingCount--;
      release?.();
      if (reason === undefined) resolve();
      else reject(reason);
    };
  });
}

/**
 * Places a message, or as much of it as has room: the rest waits in the queue. `settle` is called
 * when it is in the ring, or with the reason why it will not come there.
 */
export function accept(out: Outgoing, message: Send, settle: (reason?: unknown) => void): void {
  if (out.bits === 0 && isLinked(out) && put(out, message)) {
    message.isSettled = true;
    return settle();
  }
  keep(message);
  append(out, message);
  settleLater(out, message, settle);
}

/**
 * Puts a frame without a payload after what has begun, and before all other messages.
 * [call.cancel_owed]
 */
export function setAside(out: Outgoing, aside: Send, settle: (reason?: unknown) => void): void {
  aside.flags = WHOLE;
  let before: Send | null = null;
  for (let each = out.first; each; each = each.next) {
    if (each.sent < 0 && each.flags === 0) break;
    before = each;
  }
  append(out, aside, before);
  settleLater(out, aside, settle);
}

/** Has somebody told of what was put into the queue, and places what has room. */
function settleLater(out: Outgoing, message: Send, settle: (reason?: unknown) => void): void {
  out.pendingCount++;
  message.settle = (reason) => {
    out.pendingCount--;
    settle(reason);
  };
  if (!pump(out)) tendSoon(out.link);
}

/** Puts a message into the queue: as the last, or after another one, or, after null, first. */
export function append(out: Outgoing, message: Send, before: Send | null = out.last ?? null): void {
  const next = before ? before.next : out.first;
  message.next = next;
  if (!before) out.first = message;
  else before.next = message;
  if (!next) out.last = message;
}

/** Takes a message out of the queue. */
function remove(out: Outgoing, message: Send): void {
  let before: Send | undefined;
  for (let each = out.first; each !== message; each = each.next) {
    if (!each) return;
    before = each;
  }
  if (!before) out.first = message.next;
  else before.next = message.next;
  if (out.last === message) out.last = before;
}

/** Places and publishes what there is room for. Returns whether nothing is left. */
export function pump(out: Outgoing): boolean {
  if (out.bits & (Bit.LENT | Bit.ENCODING)) return out.first === undefined;
  out.mayLoad = true;
  if (out.first && !isLinked(out)) {
    const reason = stoppedError(out, "write") ?? stateError(out.link, "write");
    if (reason) drop(out, reason);
  }
  for (let message; (message = out.first);) {
    try {
      // [pipe.owed_end] If there is no room for both, the end comes without the cancel.
      const isOver = out.place(out, message) ||
        (message.flags === CANCEL && message.next?.kind === END);
      if (!isOver) {
        keep(message);
        break;
      }
      out.first = message.next;
      if (!out.first) out.last = undefined;
      settle(message);
    } catch (reason) {
      if (out.bits & Bit.STOPPED) drop(out, reason);
      else giveUp(out, message, reason); // its bytes were detached, or its codec has failed
    }
  }
  store(out);
  if (out.first) return false;
  if (out.link.asks & For.ROOM) tendSoon(out.link); // ends the wait of the event loop
  return true;
}

/**
 * Gives up a message. Of one that is in the ring in part, the cancel takes its place: it comes
 * before any other frame. [pipe.owed]
 */
export function giveUp(out: Outgoing, message: Send, reason: unknown): void {
  if (message.isSettled) return;
  const { sent, kind, code, tag } = message;
  remove(out, message);
  if (sent >= 0) {
    const cancel = makeSend(kind, code, tag);
    cancel.flags = CANCEL;
    append(out, cancel, null);
  }
  settle(message, reason);
  tendSoon(out.link); // what comes after it may have room
}

/** Gives up what is not in the ring: all of it, or what a function names. */
export function giveUpAll(
  out: Outgoing,
  reason: unknown,
  isMeant: (message: Send) => boolean = () => true,
): void {
  for (let each = out.first; each; each = each.next) {
    if (each.flags !== CANCEL && isMeant(each)) giveUp(out, each, reason);
  }
}

/** Drops everything that is not in the ring. */
export function drop(out: Outgoing, reason: unknown): void {
  let isLost = out.link.isClosed;
  for (let message; (message = out.first); out.first = message.next) {
    // [pipe.end_closed] After nothing that was lost, an end has nobody to reach.
    const isDone = message.kind === END && !isLost;
    isLost ||= message.flags !== CANCEL && !isDone;
    settle(message, isDone ? undefined : reason);
  }
  out.last = undefined;
}

/** Tells whoever waits for a message that it is in the ring, or why it will not come there. */
function settle(message: Send, reason?: unknown): void {
  message.isSettled = true;
  message.failure = reason;
  message.room = 0;
  message.source = NO_BYTES;
  message.text = undefined;
  message.settle?.(reason);
}

/**
 * Ends the stream, after what was accepted. Returns what resolves when the `end` is in the ring,
 * if it is not there yet.
 */
export function end(out: Outgoing): Promise<void> | undefined {
  if (out.bits & Bit.ENDED) return out.last?.promise; // [pipe.end_again]
  const stopped = stoppedError(out, "end");
  if (stopped) throw stopped;
  requireFree(out);
  out.bits |= Bit.ENDED;
  const message = makeSend(END);
  const promise = enqueue(out, message);
  promise.catch(() => {}); // the caller need not handle it
  tendSoon(out.link); // [call.told]
  pump(out);
  return message.isSettled ? undefined : promise;
}

/** `end`, and resolves when the end is in the ring. */
export async function endAsync(out: Outgoing, options: WaitOptions | undefined): Promise<void> {
  requireWait(options);
  const promise = end(out);
  if (!promise) return;
  await new Promise<void>((resolve, reject) => {
    const release = limit(options, (reason) => reject(reason ?? timeoutError("end")));
    promise.then(resolve, reject).finally(release);
  });
}
