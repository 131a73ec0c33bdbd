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
import { extentOf, packKind, writeHeader } from "../ring/frame.ts";
import { Bit, load, placeOf, Side, store } from "../ring/side.ts";
import { SETTLED } from "../wait/loop.ts";
import type { Link } from "./link.ts";
import {
  deadlineOf,
  limit,
  requireWait,
  timeoutError,
  type WaitOptions,
  type WriterOptions,
} from "./options.ts";
import { closedError, For, giveWayAtTimes, stateError, tendSoon } from "./tend.ts";

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
   * JSON values that the text holds, with commas between, and the UTF-16 units that may join it.
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
  /** Whether several JSON values may go out as one message. */
  readonly mayBatch: boolean;
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
  /** What a call writes that does not return before it is done; a post may take it for itself. */
  spare: Send = makeSend(DATA);

  /** Makes the outgoing side of an attached endpoint for one of its rings. */
  constructor(link: Link, channel: Channel, options: WriterOptions<never>) {
    super(link.endpoint, channel, true);
    const codec: CodecName | AnyCodec = options.codec ?? "json";
    const { code, vet } = codec as Partial<AnyCodec>;
    this.link = link;
    this.codec = code === layout.CODEC_JSON ? "json" : codec;
    this.vet = vet;
    this.mayBatch = options.batch !== false && this.codec === "json";
    this.largest = (this.capacity >> 1) - HEADER_SIZE;
    link.outgoing = this;
  }

  /**
   * Places as much of a message as there is room for. Returns whether all of it is placed. Does not
   * publish. A method, as is `finish`, so that a meter can put its own in front.
   *
   * @throws {TypeError} if the caller has detached its bytes, or made them fewer.
   */
  place(message: Send): boolean {
    const { text, flags, kind } = message;
    let { source, size, code } = message;
    if (text !== undefined) {
      const isBatch = message.count > 1; // [codec.batch]
      source = encodeText(isBatch ? `[${text}]` : text);
      size = source.length;
      if (isBatch) code = layout.CODEC_JSON_BATCH;
    }
    if (size > this.largest) return placeChunks(this, message, source, size);
    // [frame.end] Of an `end`, all fields but the kind are 0, and it may take what data may not.
    const isEnd = kind === END;
    if (!makeRoom(this, extentOf(size), isEnd ? 0 : RESERVE)) return false;
    copy(this, source, 0, size, placeOf(this) + HEADER_SIZE);
    this.finish(size, packKind(kind, isEnd ? 0 : flags || WHOLE, code), message.tag);
    return true;
  }

  /** Finishes a frame at the own cursor, whose payload is in place: writes its header. */
  finish(size: number, kindWord: number, tag: number): void {
    writeHeader(this.words, placeOf(this) / 4, size, kindWord, tag);
    this.cursor = (this.cursor + extentOf(size)) | 0;
  }
}

/** Why nothing can be written any more, after the own `close` and after a fault. */
function stoppedError({ link, fault }: Outgoing, verb: string): MillraceError | undefined {
  return closedError(link, verb) ?? fault;
}

/** Throws the first answer that needs no look at the ring, if there is one. [pipe.first_answer] */
export function requireWritable(out: Outgoing): void {
  if (out.bits === 0 && out.endpoint.isLinked(out.peer)) return;
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
export function whileEncoding<T>(out: Outgoing, run: () => T): T {
  const before = out.bits & Bit.ENCODING;
  out.bits |= Bit.ENCODING;
  try {
    return run();
  } finally {
    out.bits = out.bits & ~Bit.ENCODING | before;
  }
}

/** Makes a payload the whole content of a message. */
export function setPayload(send: Send, code: number, source: Uint8Array, isKept: boolean): Send {
  send.code = code;
  send.source = source;
  send.size = source.length;
  send.isKept = isKept;
  send.count = 1;
  send.sent = -1;
  send.isSettled = false;
  send.failure = send.text = send.next = undefined;
  return send;
}

/**
 * Makes a value the payload of a message. A text becomes bytes only when it is placed.
 *
 * @throws {TypeError} if the codec cannot carry the value.
 */
export function encode(out: Outgoing, value: unknown, send: Send): Send {
  const { codec } = out;
  if (codec !== "text" && typeof codec === "string" && isBytes(value)) {
    requireMemory(value);
    return setPayload(send, layout.CODEC_BYTES, value, true);
  }
  encodeValue(out, value, send);
  if (out.bits & Bit.STOPPED) requireWritable(out); // the codec has closed this end
  if (typeof codec !== "string" || send.text !== undefined) return send;
  throwCannot(`write ${typeof value}: the codec ${codec} cannot carry it`);
}

/** `whileEncoding` without a closure, which would be made for each value. */
function encodeValue(out: Outgoing, value: unknown, send: Send): void {
  const { codec, bits } = out;
  setPayload(send, layout.CODEC_TEXT, NO_BYTES, true);
  out.bits |= Bit.ENCODING;
  try {
    if (typeof codec !== "string") setPayload(send, codec.code, encodeBy(codec, value), false);
    else if (codec === "json") {
      out.vet?.(value as never);
      requireJson(value);
      send.text = JSON.stringify(value);
      send.code = layout.CODEC_JSON;
    } else if (codec === "text" && typeof value === "string") {
      if (!isWellFormed(value)) throwCannot("write text: it has a lone surrogate");
      send.text = value;
    }
  } finally {
    out.bits = out.bits & ~Bit.ENCODING | bits & Bit.ENCODING;
  }
}

/** Has a message outlast the call. `isCopied`: even if its bytes are the caller's. */
export function keep(send: Send, isCopied: boolean): void {
  if (send.text !== undefined || (send.isKept && !isCopied)) return;
  send.source = copyOut(send.source, 0, send.size);
  send.isKept = true;
}

/** Writes a value. Blocks while there is no room for it. */
export function write(out: Outgoing, value: unknown, options: WaitOptions | undefined): void {
  requireWait(options);
  requireWritable(out);
  send(out, encode(out, value, out.spare), options);
}

/** Writes a message, and waits while there is no room for it. */
export function send(out: Outgoing, message: Send, options: WaitOptions | undefined): void {
  out.mayLoad = true;
  // Mostly, nothing waits, and there is room.
  if (!out.first && out.place(message)) {
    store(out);
    return forget(message);
  }
  append(out, message);
  const deadline = deadlineOf(options);
  for (let waits = 0; !pump(out) && !message.isSettled; waits++) {
    try {
      const isLate = waits > 0 && isPast(deadline);
      if (isLate || !out.endpoint.wait(out.link, For.ROOM, deadline, waits)) {
        throw timeoutError("write");
      }
    } catch (reason) {
      giveUp(out, message, reason);
      throw reason;
    }
  }
  forget(message);
  if (message.failure !== undefined) throw message.failure;
}

/** Forgets the caller's value and bytes, which the message would keep alive. */
function forget(message: Send): void {
  message.source = NO_BYTES;
  message.text = undefined;
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
  out.mayLoad = true;
  const before = out.cursor;
  const { text } = message;
  const isPlaced = out.place(message);
  if (!isPlaced) {
    out.cursor = before; // nothing of it is visible yet
    requirePossible(out, text === undefined ? message.size : encodeText(text).length);
  }
  store(out);
  forget(message);
  return isPlaced;
}

/** Throws for a message that never fits at once, whatever is read. [pipe.try_never] */
function requirePossible({ largest, capacity }: Outgoing, size: number): void {
  const bytes = size + PREAMBLE_SIZE;
  // The full chunks, and one more: the end of the byte area may cut one in two, or cost a pad.
  const chunks = Math.ceil(bytes / ((capacity >> 2) - HEADER_SIZE)) + 1;
  const most = Math.ceil(bytes / ALIGN) * ALIGN + chunks * HEADER_SIZE;
  if (size <= largest || most <= capacity - RESERVE) return;
  throwRangeError(`Cannot write ${size} bytes at once: the ring is too small`);
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
  out.mayLoad = true;
  if (!turn && !out.first && out.place(message)) {
    store(out);
    return SETTLED;
  }
  keep(message, false);
  append(out, message);
  const promise = promiseOf(out, message, options);
  if (turn) turn.then(link.tendLater);
  else if (!(link.asks & For.ROOM)) link.tend(); // from now on the peer knows of it
  return promise;
}

/** The promise of a message that waits, which the options may take back. */
export function promiseOf(
  out: Outgoing,
  message: Send,
  options: WaitOptions | undefined,
): Promise<void> {
  out.pendingCount++;
  return message.promise = new Promise<void>((resolve, reject) => {
    const release = limit(
      options,
      (reason) => giveUp(out, message, reason ?? timeoutError("write")),
    );
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
  out.mayLoad = true;
  const isFree = out.first === undefined && out.bits === 0 && out.endpoint.isLinked(out.peer);
  if (isFree && out.place(message)) {
    store(out);
    message.isSettled = true;
    return settle();
  }
  keep(message, false);
  append(out, message);
  settleLater(out, message, settle);
}

/** Places a frame without a payload before all messages that have not begun. [call.cancel_owed] */
export function setAside(out: Outgoing, aside: Send, settle: (reason?: unknown) => void): void {
  aside.flags = WHOLE;
  prepend(out, aside);
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

/** Appends a message to the queue. */
export function append(out: Outgoing, message: Send): void {
  if (!out.first) out.first = message;
  else out.last!.next = message;
  out.last = message;
}

/** Puts a frame after what has begun, and before all other messages. */
function prepend(out: Outgoing, message: Send): void {
  let before: Send | undefined;
  for (let each = out.first; each; each = each.next) {
    if (each.sent < 0 && each.flags === 0) break;
    before = each;
  }
  insertAfter(out, before, message);
}

function insertAfter(out: Outgoing, before: Send | undefined, message: Send): void {
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
  if (out.first && !out.endpoint.isLinked(out.peer)) {
    const reason = stoppedError(out, "write") ?? stateError(out.link, "write");
    if (reason) drop(out, reason);
  }
  for (let message; (message = out.first);) {
    try {
      if (out.place(message)) {
        remove(out, message);
        settle(message);
      } else if (message.flags === CANCEL && message.next?.kind === END) {
        remove(out, message); // [pipe.owed_end] There is no room for both.
      } else {
        keep(message, false);
        break;
      }
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
    insertAfter(out, undefined, cancel);
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
  forget(message);
  message.settle?.(reason);
}

/** Ends the stream, after what was accepted. Returns the `end` if it is not in the ring yet. */
export function end(out: Outgoing): Send | undefined {
  const { last } = out;
  // [pipe.end_again]
  if (out.bits & Bit.ENDED) return last?.kind === END ? last : undefined;
  const stopped = stoppedError(out, "end");
  if (stopped) throw stopped;
  requireFree(out);
  out.bits |= Bit.ENDED;
  const message = makeSend(END);
  append(out, message);
  tendSoon(out.link); // [call.told]
  if (pump(out) || message.isSettled) return undefined;
  promiseOf(out, message, undefined).catch(() => {});
  return message;
}

/** `end`, and resolves when the end is in the ring. */
export async function endAsync(out: Outgoing, options: WaitOptions | undefined): Promise<void> {
  requireWait(options);
  const promise = end(out)?.promise;
  if (!promise) return;
  await new Promise<void>((resolve, reject) => {
    const release = limit(options, (reason) => reject(reason ?? timeoutError("end")));
    promise.then(resolve, reject).finally(release);
  });
}

/** Cuts the message into chunks, and places those for which there is room. [frame.multipart] */
function placeChunks(out: Outgoing, message: Send, source: Uint8Array, size: number): boolean {
  while (message.sent < size) {
    const isFirst = message.sent < 0;
    const from = isFirst ? 0 : message.sent;
    const lead = isFirst ? PREAMBLE_SIZE : 0;
    // [frame.part] Only a first chunk can be so small that its preamble fills it.
    const part = Math.min(size - from, chunkExtent(out) - HEADER_SIZE - lead);
    if (!makeRoom(out, extentOf(part + lead), RESERVE)) return false;
    const at = placeOf(out) + HEADER_SIZE;
    if (isFirst) {
      out.words.set([size, size / 2 ** 32, 0, 0], at / 4); // [frame.preamble]
      // From now on it is what it was: a text that has begun takes no more.
      message.source = source;
      message.size = size;
      message.isKept &&= !isScratch(source);
      message.text = undefined;
    }
    copy(out, source, from, part, at + lead);
    message.sent = from + part;
    const flags = isFirst ? FIRST : message.sent === size ? LAST : 0;
    out.finish(part + lead, packKind(message.kind, flags, message.code), message.tag);
  }
  return true;
}

/** The extent of the next chunk: up to the end of the byte area, if that is near. */
function chunkExtent({ capacity, cursor }: Outgoing): number {
  const toEnd = capacity - (cursor & (capacity - 1));
  // A quarter, so that writing the next chunk overlaps with reading the last one.
  return toEnd >= 2 * ALIGN && toEnd < capacity >> 2 ? toEnd : capacity >> 2;
}

function copy(out: Outgoing, source: Uint8Array, from: number, size: number, at: number): void {
  if (source.length < from + size) {
    // These are the caller's own bytes, since a write that waits does not copy them. Without this
    // check, old bytes of the ring would be sent in place of the missing ones.
    throwCannot("write message: its bytes were detached, or are fewer now");
  }
  // For detached memory, `set` throws even if there is nothing to copy.
  if (size > 0) {
    out.bytes.set(size < source.length ? source.subarray(from, from + size) : source, at);
  }
}

/**
 * Returns the extent of the pad that a frame of this extent needs before it, mostly 0; or -1 if
 * there is no room for both, even after the load of `head` that is allowed. `reserve` bytes stay
 * free. [ring.room]
 */
export function padFor(out: Outgoing, extent: number, reserve: number): number {
  const { capacity, cursor } = out;
  const toEnd = capacity - (cursor & (capacity - 1));
  const pad = extent > toEnd ? toEnd : 0;
  const need = (cursor + pad + extent + reserve - capacity) | 0;
  if (((need - out.peerCursor) | 0) > 0 && out.mayLoad) {
    out.mayLoad = false;
    load(out);
  }
  if (((need - out.peerCursor) | 0) <= 0) return pad;
  out.need = need;
  return -1;
}

/** Makes room for a frame at the own cursor: places a pad if one is needed. [ring.pad] */
export function makeRoom(out: Outgoing, extent: number, reserve: number): boolean {
  const pad = padFor(out, extent, reserve);
  // [frame.pad] All its fields but the kind and the size are 0.
  if (pad > 0) out.finish(pad - HEADER_SIZE, packKind(PAD, 0, 0), 0);
  return pad >= 0;
}
