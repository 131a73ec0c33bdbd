/**
 * The way in: `pull` takes messages out of the ring, and is the only one who moves its `head`. What
 * was taken before anybody asked for it stands in one queue, and those who wait for messages in one
 * list. See `spec/pipe.md` and `spec/port.md`.
 *
 * @module
 */

import {
  type CodecTable,
  codecTable,
  copyOut,
  decode,
  decodeForeign,
  encodeJson,
  NO_BYTES,
  requireBatch,
  takeCopy,
} from "../codec/codec.ts";
import { lostError, MillraceError, type ReasonCode, throwCannot } from "../error.ts";
import { layout } from "../memory/layout.ts";
import type { Channel } from "../memory/plan.ts";
import { isPast } from "../memory/segment.ts";
import { accept, checkFrame, type Frame, Head, makeFrame } from "../ring/frame.ts";
import { Bit, hasMoved, load, markFaulty, Side, store } from "../ring/side.ts";
import type { Outgoing } from "./outgoing.ts";
import type { Link } from "./link.ts";
import {
  deadlineOf,
  limit,
  MAX_JSON_SIZE,
  MAX_MESSAGE_SIZE,
  type Message,
  type ReaderOptions,
  requireWait,
  type WaitOptions,
} from "./options.ts";
import { closedError, type Delivery, For, giveWayAtTimes, stateError, tendSoon } from "./tend.ts";
import { hit, pays } from "../wait/spin.ts";
import { isLinked } from "../wait/state.ts";
import { wait } from "../wait/endpoint.ts";

/** How a message is taken. */
export const enum Mode {
  /** Decoded. */
  VALUE,
  /** As a `Message`. */
  MESSAGE,
  /** Where it lies in the ring, which `pull` says by returning its side; otherwise as a message. */
  SHOW,
  /** The same frame by frame. */
  LEND,
  /** As a `Message` for the queue, and so not from there. */
  KEEP,
  /** Not at all: only what is skipped, messages of calls, and an `end`, are taken. */
  LOOK,
  /** The same with a full inbox: of calls, only what needs no room there. */
  PASS,
}

/** What became of a frame. */
export const enum Found {
  /** It is passed. */
  NOTHING,
  /** It is at the own cursor: a whole message, or, to be lent, a chunk of one. */
  IN_RING,
  /** Its message was taken: the route has it. */
  TAKEN,
}

/** Takes the messages of calls. Only `begin` runs the application's code. */
export interface Route {
  /** Calls that were taken and not begun, and their bytes: they count as part of the inbox. */
  readonly callee: { readonly count: number; readonly size: number };
  /** Whether there is something to be done although no frame has come. */
  readonly isDue: boolean;
  /** Whether the process lives for it. */
  readonly keeps: boolean;
  /**
   * Takes the frame at the own cursor, which is one of a call. `IN_RING`: not with a full inbox.
   *
   * @throws {MessageError} if its message is lost, and nobody is told by its call.
   */
  accept(mode: Mode): Found;
  /** Takes one message. @throws {MessageError} if it is none of a call: its report. */
  take(message: Message): void;
  /** A message was dropped. Returns whether its caller or its callee is told. */
  lose(kind: number, tag: number, report: MillraceError): boolean;
  /** Takes one step of a run that has no listener. Returns whether the run goes on. */
  serve(delivery: Delivery): boolean;
  /**
   * There is a message that needs room in the inbox. Returns whether that is full, which makes an
   * end of those calls that wait for the message.
   */
  refuse(): boolean;
  /** Does what was noted, if that may be done now. */
  begin(): void;
  /** Looks after its calls on the event loop. Returns what to wait for. */
  tend(): number;
  /** Nothing more will come: because the stream has ended, or for a reason. */
  finish(reason: MillraceError | undefined): void;
}

/** A batch of which the elements from `next` on are not handed out yet. */
interface Batch extends Pick<Message, "kind" | "codec" | "tag"> {
  readonly values: readonly unknown[];
  next: number;
}

/** An asynchronous read that waits. */
interface Taker {
  readonly mode: Mode;
  /** Makes a result of what was taken. */
  readonly convert: (taken: unknown) => unknown;
  /** Ends the wait, with a result or a failure. */
  readonly settle: (failure: unknown, result?: unknown) => void;
}

const enum Limit {
  /** What an inbox keeps if no option says more or less. */
  INBOX_COUNT = 1024,
  INBOX_SIZE = 16 * 1024 * 1024,
  /** Looks for an answer by a call that blocks, before it looks at anything else. */
  GLANCES = 512,
}

/** Options of the incoming side, some of which only ports have. */
export interface IncomingOptions extends ReaderOptions {
  readonly inboxCount?: number | undefined;
  readonly inboxSize?: number | undefined;
}

/** The reader's end of one ring, and what was taken out of it and not handed out. */
export class Incoming extends Side {
  declare readonly link: Link;
  declare readonly options: IncomingOptions;
  /** The frame at the own cursor. */
  readonly frame: Frame = makeFrame();
  /** Kind, codec and tag of the message that was taken last. */
  kind = 0;
  codec = 0;
  tag = 0;
  /** What comes before anything in the ring, and its bytes. [port.inbox_order] */
  readonly queue: (Batch | Message | MillraceError)[] = [];
  keptSize = 0;
  /** Those who wait, in the order of their calls. */
  readonly takers: Taker[] = [];
  /** The codecs of the application that this reader knows. */
  declare readonly codecs: CodecTable;
  /** Who takes the messages of calls; without it, they are reported or handed out. */
  route: Route | undefined;
  /** The bytes collected of the message in progress. */
  parts: Uint8Array = NO_BYTES;
  /** What is thrown at the last frame of a message that was dropped before, for its route. */
  report: MillraceError | undefined;
  /** Up to how many bytes a whole message needs no check of the limits, and of half the ring. */
  declare readonly common: number;
  /** The segment as doubles, by which texts are copied. */
  declare readonly doubles: Float64Array;
  /** What this end had published when it last waited for an answer. */
  asked = 0;
  /** What a read calls, and what puts messages into the queue: a meter has its own. */
  take: typeof pull = pull;
  keep: typeof keep = keep;

  /** Makes the incoming side of an attached endpoint for one of its rings. */
  constructor(link: Link, channel: Channel, options: IncomingOptions) {
    super(link.endpoint, channel, false);
    const { maxMessageSize, codec, codecs } = options;
    const { buffer, byteOffset, length } = this.words;
    this.link = link;
    this.options = options;
    this.codecs = codecTable(codec, codecs);
    const largest = (this.capacity >> 1) - layout.FRAME_HEADER_SIZE;
    this.common = Math.min(largest, maxMessageSize ?? MAX_JSON_SIZE);
    this.doubles = new Float64Array(buffer, byteOffset, length >> 1);
    link.incoming = this;
  }
}

/**
 * Takes the next message: from the queue, then from the frames that are known, then, with
 * `mayLoad`, from what one load of `tail` shows. [ring.one_load] On the way it skips what is to be
 * skipped, collects chunks, and gives messages of calls to their route.
 *
 * Returns undefined if there is none; otherwise what the mode says. In the modes from `KEEP` on, it
 * may also return `TAKEN`, and in the last two otherwise `IN_RING`.
 *
 * All of the way of a whole message of data is in this one function: a thread compiles each
 * function when it is called first, and what the first messages of a thread cost is nearly
 * proportional to the number of functions. The rare ways are in functions of their own.
 */
export function pull(inc: Incoming, mode: Mode, mayLoad: boolean): unknown {
  const { base, capacity, words, bytes, frame } = inc;
  for (;;) {
    if (mode < Mode.KEEP) {
      if (inc.route && !inc.link.isTending) inc.route.begin();
      if (inc.queue.length > 0) return takeQueued(inc, mode);
    }
    if (inc.bits !== 0 && !isOpen(inc, mode)) return undefined;
    let found: Found | Uint8Array;
    do {
      const { cursor } = inc;
      let { peerCursor } = inc;
      if (cursor === peerCursor) {
        if (!mayLoad || !load(inc)) return undefined;
        mayLoad = false;
        ({ peerCursor } = inc);
      }
      const known = (peerCursor - cursor) | 0;
      const toEnd = capacity - (cursor & (capacity - 1));
      const index = (base + capacity - toEnd) >>> 2;
      // The words of the header are loaded once: the peer may change them meanwhile. [frame.check]
      const size = words[index]! >>> 0;
      const word = words[index + 1]!;
      const isCommon = (word & ~Head.CODEC_MASK) === Head.WHOLE_DATA && frame.begun === 0 &&
        mode <= Mode.MESSAGE && size <= inc.common &&
        size <= known - layout.FRAME_HEADER_SIZE && size <= toEnd - layout.FRAME_HEADER_SIZE;
      if (isCommon) {
        const codec = (word >>> Head.CODEC_SHIFT) & 0xff;
        const isText = mode === Mode.VALUE && codec >= layout.CODEC_TEXT &&
          codec <= layout.CODEC_JSON_BATCH;
        const at = 4 * index + layout.FRAME_HEADER_SIZE;
        inc.kind = layout.FRAME_KIND_DATA;
        inc.codec = codec;
        inc.tag = words[index + 2]! >>> 0;
        // For a meter.
        frame.flags = Head.WHOLE;
        frame.size = size;
        frame.time = words[index + layout.FRAME_TIME_OFFSET / 4]!;
        // The payload is copied, and its room given back, before anything is decoded. [codec.copy]
        const payload = isText
          ? takeCopy(bytes, words, inc.doubles, at, size)
          : copyOut(bytes, at, size);
        const next = inc.cursor =
          (cursor + size + layout.FRAME_HEADER_SIZE + layout.FRAME_ALIGN - 1) & -layout.FRAME_ALIGN;
        // [ring.release_early] Its room is given back at once if nothing more is known, or a
        // quarter of the ring is due. [ring.release_asked] A writer that waits for a few bytes
        // does not wait for a quarter.
        const isDue = next === peerCursor || ((next - inc.published) | 0) >= capacity >> 2;
        if (isDue || Atomics.load(words, inc.otherWants) !== 0) store(inc);
        if (isText && codec !== layout.CODEC_JSON_BATCH) return decode(payload, codec);
        return handOut(inc, mode, inc, payload);
      }
      found = arrive(inc, mode, index, size, word, known, toEnd);
      // It may have been the end, or the route has closed this end.
    } while (found === Found.NOTHING && (inc.bits & (Bit.ENDED | Bit.STOPPED)) === 0);
    if (found === Found.NOTHING) return undefined;
    if (mode >= Mode.LOOK) return found;
    if (found !== Found.TAKEN) return handOut(inc, mode, frame, found);
    if (mode === Mode.KEEP) return found;
  }
}

/**
 * Whether this end reads on: it has not read the end.
 *
 * @throws {TypeError} while a frame is lent. [pipe.lend_one]
 */
function isOpen(inc: Incoming, mode: Mode): boolean {
  const failure = closedError(inc.link, "read") ?? inc.fault; // [pipe.first_answer]
  if (failure) throw failure;
  if (inc.bits & Bit.ENDED) return false;
  requireBack(inc, mode);
  return true;
}

/** Throws while a frame is lent. [pipe.lend_one] */
function requireBack(inc: Incoming, mode: Mode): void {
  if (!(inc.bits & Bit.LENT)) return;
  throwCannot(mode === Mode.LEND ? "peek: a frame is lent already" : "read: a frame is lent");
}

/** Takes what comes next in the queue. */
function takeQueued(inc: Incoming, mode: Mode): unknown {
  requireBack(inc, mode);
  const { queue } = inc;
  const first = queue[0]!;
  if (!("values" in first)) {
    queue.shift();
    if (first instanceof MillraceError) throw first;
    inc.keptSize -= first.payload.length;
    return handOut(inc, mode, first, first.payload);
  }
  const value = first.values[first.next++]; // [codec.batch_read]
  if (first.next === first.values.length) queue.shift();
  if (mode !== Mode.VALUE) return handOut(inc, mode, first, encodeJson(value));
  inc.kind = first.kind;
  inc.codec = first.codec;
  inc.tag = first.tag;
  return value;
}

/**
 * Hands out a message with this head: its payload, which is in private memory, or what lies at the
 * own cursor.
 */
function handOut(
  inc: Incoming,
  mode: Mode,
  head: Pick<Message, "kind" | "codec" | "tag">,
  payload: Uint8Array | Found,
): unknown {
  const { kind, codec, tag } = head;
  if (mode !== Mode.KEEP) {
    inc.kind = kind;
    inc.codec = codec;
    inc.tag = tag;
  }
  if (payload === Found.IN_RING) return inc;
  const bytes = payload as Uint8Array;
  if (mode !== Mode.VALUE) return { kind, codec, tag, payload: bytes } satisfies Message;
  if (codec === layout.CODEC_BYTES) return bytes;
  if (codec > layout.CODEC_JSON_BATCH) return decodeForeign(bytes, codec, inc.codecs);
  const value = decode(bytes, codec);
  if (codec !== layout.CODEC_JSON_BATCH) return value;
  const values = requireBatch(value);
  inc.codec = layout.CODEC_JSON;
  if (values.length > 1) {
    inc.queue.unshift({ values, next: 1, kind, codec: layout.CODEC_JSON, tag });
  }
  return values[0];
}

/** Hands a message that was taken out of the ring to the calls, or puts it into the queue. */
export function keep(inc: Incoming, message: Message): void {
  if (message.kind !== layout.FRAME_KIND_DATA && inc.route) return inc.route.take(message);
  inc.keptSize += message.payload.length;
  inc.queue.push(message);
}

/** Whether the end of the stream was read, and everything before it. */
export function hasEnded({ bits, queue }: Incoming): boolean {
  return (bits & Bit.ENDED) !== 0 && queue.length === 0;
}

/** Drops what is not handed out, because this end has closed. */
export function empty(inc: Incoming): void {
  inc.queue.length = inc.keptSize = 0;
  dropParts(inc);
  inc.route?.finish(closedError(inc.link, "call"));
}

/** Drops what was collected of the message in progress. */
function dropParts(inc: Incoming): void {
  inc.parts = NO_BYTES;
  if (inc.bits & Bit.IN_PARTS) tendSoon(inc.link); // listeners wait for the end of that
  inc.bits &= ~Bit.IN_PARTS;
}

/** The same of the other frames that come of it. */
function dropRest(inc: Incoming): void {
  inc.frame.dropped = inc.frame.begun !== 0;
  dropParts(inc);
}

/** Reads one message, and waits until there is one. */
export function read(inc: Incoming, mode: Mode, options: WaitOptions | undefined): unknown {
  if (options !== undefined) requireWait(options);
  for (let waits = -1, deadline = Infinity;; waits++) {
    const taken = tryRead(inc, mode);
    if (taken !== undefined || hasEnded(inc) || options?.timeout === 0) return taken;
    if (waits < 0) {
      // Within a conversation, a peer that is awake answers in 1 to 4 µs.
      if (glance(inc)) continue;
      waits = 0;
    }
    if (waits === 0) deadline = deadlineOf(options);
    else if (isPast(deadline)) return undefined;
    if (!wait(inc.link, For.MESSAGES, deadline, waits)) return undefined;
  }
}

/**
 * Looks a few times, without a look at the clock, which makes a number: longer for the answer to
 * what was written since the last time.
 */
export function glance(inc: Incoming, outgoing?: Outgoing): boolean {
  const { spinner } = inc.endpoint;
  let looks = noteAsked(inc, outgoing) ? Limit.GLANCES : Limit.GLANCES / 16;
  if (!spinner.blocks || !pays(spinner)) return false;
  while (looks-- > 0) {
    if (!hasMoved(inc)) continue;
    hit(spinner);
    return true;
  }
  return false;
}

/** Whether anything was published since this was asked last, so that what comes may answer it. */
export function noteAsked(
  inc: Incoming,
  outgoing: Outgoing | undefined = inc.link.outgoing,
): boolean {
  const { asked } = inc;
  inc.asked = outgoing?.published ?? asked;
  return inc.asked !== asked;
}

/** Reads one message if there is one. A final state is reported if none is. [pipe.look_again] */
export function tryRead(inc: Incoming, mode: Mode): unknown {
  let gone: MillraceError | undefined;
  for (;;) {
    const taken = inc.take(inc, mode, gone === undefined);
    if (taken !== undefined || hasEnded(inc)) return taken;
    if (gone) throw giveUpRest(inc, gone);
    // Mostly both ends are attached, and there is no error to look for.
    if (inc.bits === 0 && isLinked(inc)) return undefined;
    gone = stateError(inc.link, "read");
    if (!gone) return undefined;
    load(inc);
  }
}

/** Drops the message in progress, whose loss the report of a final state covers. */
export function giveUpRest(inc: Incoming, gone: MillraceError): MillraceError {
  dropRest(inc);
  inc.route?.finish(gone);
  tendSoon(inc.link); // somebody may wait for the end
  return gone;
}

/** Reads without blocking. Calls are served in the order in which they were made. */
export async function readAsync(
  inc: Incoming,
  mode: Mode,
  options: WaitOptions | undefined,
  convert: (taken: unknown) => unknown = (taken) => taken,
): Promise<unknown> {
  requireWait(options);
  const { link, takers } = inc;
  const turn = giveWayAtTimes(link);
  if (takers.length === 0 && !turn) {
    const taken = tryRead(inc, mode);
    if (taken !== undefined) return convert(taken);
    if (hasEnded(inc) || options?.timeout === 0) return undefined;
  }
  return await new Promise((resolve, reject) => {
    const settle: Taker["settle"] = (failure, result) => {
      takers.splice(takers.indexOf(taker), 1);
      stop?.();
      if (failure === undefined) resolve(result);
      else reject(failure);
    };
    const stop = options && limit(options, (reason) => {
      settle(reason);
      link.tend();
    });
    const taker: Taker = { mode, convert, settle };
    takers.push(taker);
    if (!turn) link.tend();
    else turn.then(link.tend);
  });
}

/** Tells all who wait that they wait in vain. */
export function rejectAll(inc: Incoming, reason: unknown): void {
  for (const { settle } of [...inc.takers]) settle(reason);
}

/** Serves those who wait. Returns what to wait for. */
export function serve(inc: Incoming): number {
  for (let taker; (taker = inc.takers[0]);) {
    let taken: unknown;
    let failure: unknown;
    try {
      taken = tryRead(inc, taker.mode);
      if (taken !== undefined) taken = taker.convert(taken);
      else if (!hasEnded(inc)) return For.MESSAGES;
    } catch (reason) {
      failure = reason;
    }
    taker.settle(failure, taken);
  }
  return 0;
}

/**
 * Checks the frame at the own cursor, and handles it, unless it is a whole message of data, or to
 * be lent. Returns the payload of a message that it completes.
 */
function arrive(
  inc: Incoming,
  mode: Mode,
  index: number,
  size: number,
  word: number,
  known: number,
  toEnd: number,
): Found | Uint8Array {
  const { frame, route, words, capacity } = inc;
  const reason = checkFrame(frame, words, index, size, word, known, toEnd, capacity >> 1);
  const { kind, flags, dropped, begun } = frame;
  if (reason !== 0) {
    dropParts(inc);
    const fault = markFaulty(inc, reason, `kind ${kind}, flags ${flags}, size ${frame.size}`);
    route?.finish(fault);
    throw fault;
  }
  const isEnd = kind === layout.FRAME_KIND_END;
  if (kind >= layout.FRAME_KIND_PAD || dropped && !isEnd) { // [frame.skip]
    releaseFrame(inc);
    if (kind < layout.FRAME_KIND_PAD && flags & layout.FRAME_FLAG_LAST) { // [pipe.report_once]
      const { report } = inc;
      inc.report = undefined;
      const isTold = report === undefined || (flags & layout.FRAME_FLAG_CANCEL) !== 0;
      if (!isTold && !route?.lose(kind, frame.tag, report)) throw report;
    }
    return Found.NOTHING;
  }
  if (kind > layout.FRAME_KIND_END && route) return route.accept(mode);
  const isTruncated = isEnd && begun !== 0 && !dropped;
  if (mode >= Mode.LOOK && (!isEnd || isTruncated)) return Found.IN_RING;
  if (isEnd) {
    // [pipe.truncated]
    const error = isTruncated
      ? lostError("message.truncated", "the stream ended inside it")
      : undefined;
    inc.bits |= Bit.ENDED;
    dropParts(inc);
    releaseFrame(inc);
    tendSoon(inc.link); // somebody may wait for the end
    const isTold = error === undefined || route?.lose(begun & 0xff, frame.begunTag, error);
    route?.finish(undefined);
    if (!isTold) throw error;
    return Found.NOTHING;
  }
  const isWhole = flags === Head.WHOLE;
  if (mode === Mode.SHOW && isWhole || mode === Mode.LEND && flags & layout.FRAME_FLAG_FIRST) {
    admit(inc, frame.total === Infinity ? 0 : frame.total);
    if (isWhole) return Found.IN_RING;
    inc.bits |= Bit.IN_PARTS;
  }
  if (!(inc.bits & Bit.IN_PARTS) || flags & layout.FRAME_FLAG_CANCEL) {
    return collect(inc) ?? Found.NOTHING;
  }
  if (mode !== Mode.LEND) throwCannot("read: a message is lent in part");
  return Found.IN_RING;
}

/**
 * Collects a chunk, or a message that is whole. Returns the whole message after its last frame. If
 * a part of a message is collected already, by a call that timed out or by a write that waited for
 * room, the rest is collected too, and the whole is lent from there.
 */
export function collect(inc: Incoming): Uint8Array | undefined {
  const { frame } = inc;
  const { size, flags, total, at } = frame;
  const isFirst = flags & layout.FRAME_FLAG_FIRST;
  const isLast = flags & layout.FRAME_FLAG_LAST;
  // What there must be room for: the whole message, or, if its size is unknown, what has come of
  // it.
  const before = isFirst ? 0 : frame.received;
  const sum = before + size;
  const needed = total === Infinity ? sum : total;
  if (flags & layout.FRAME_FLAG_CANCEL) { // [pipe.cancelled]
    refuse(inc, "message.cancelled", "its writer gave up");
  }
  admit(inc, needed); // [pipe.limit_unknown]
  let { parts } = inc;
  if (isFirst || sum > parts.length || isLast && sum < parts.length) {
    // If its size is unknown, more may follow.
    const isMore = !isFirst && !isLast;
    const room = isMore ? Math.min(Math.max(sum, 2 * parts.length), limitOf(inc)) : needed;
    try {
      parts = new Uint8Array(room);
    } catch { // [pipe.total_trust] Within the limit, but there may be less memory than that.
      refuse(inc, "message.size", `there is no memory for its ${room} bytes`);
    }
    parts.set(inc.parts.subarray(0, before));
  }
  inc.parts = parts;
  parts.set(inc.bytes.subarray(at, at + size), before);
  releaseFrame(inc);
  if (!isLast) return undefined;
  dropParts(inc);
  return parts;
}

/**
 * Drops a message that this reader does not accept: its kind first, then its size. `size` is its
 * total, or what has come of it.
 */
function admit(inc: Incoming, size: number): void {
  const { kind, total } = inc.frame;
  if (kind !== layout.FRAME_KIND_DATA && !inc.options.calls && !inc.route) { // [pipe.unknown_kind]
    refuse(inc, "message.kind", `its kind is ${kind}`);
  }
  const limit = limitOf(inc);
  if (size <= limit) return;
  const more = total === Infinity ? " or more" : "";
  refuse(inc, "message.size", `it has ${size} bytes${more}, and maxMessageSize is ${limit}`);
}

/** The largest message of the codec of the frame at the own cursor. [pipe.limit] */
function limitOf({ frame: { codec }, options }: Incoming): number {
  const isJson = codec === layout.CODEC_JSON || codec === layout.CODEC_JSON_BATCH;
  return options.maxMessageSize ?? (isJson ? MAX_JSON_SIZE : MAX_MESSAGE_SIZE);
}

/** Drops the frame, and what was collected of its message, and reports the message as lost. */
function refuse(inc: Incoming, code: ReasonCode, why: string): never {
  releaseFrame(inc);
  // Later frames of the message are skipped without another report.
  dropRest(inc);
  inc.frame.begunTotal = Infinity;
  throw lostError(code, why);
}

/** Goes on after the frame; gives its room back now, or with later ones. [ring.release_early] */
export function releaseFrame(inc: Incoming): void {
  const { frame } = inc;
  if (frame.flags !== Head.WHOLE) accept(frame);
  const cursor = inc.cursor = (inc.cursor + frame.extent) | 0;
  const isDue = cursor === inc.peerCursor || ((cursor - inc.published) | 0) >= inc.capacity >> 2;
  if (isDue || Atomics.load(inc.words, inc.otherWants) !== 0) store(inc); // [ring.release_asked]
}

/** Whether messages may be taken into the queue at all. */
function mayKeep(inc: Incoming): boolean {
  return (inc.bits & (Bit.ENDED | Bit.STOPPED | Bit.LENDING)) === 0;
}

/** Whether the inbox has room for the next message. [port.inbox] */
function hasRoom({ frame, queue, keptSize, route, options }: Incoming): boolean {
  if (frame.begun !== 0) return true; // what was begun is taken in to its end
  const { inboxCount = Limit.INBOX_COUNT, inboxSize = Limit.INBOX_SIZE } = options;
  const count = queue.length + (route?.callee.count ?? 0);
  const size = keptSize + (route?.callee.size ?? 0);
  if (count === 0 && route) return true; // [call.takes_in]
  return count < inboxCount && size < inboxSize;
}

/** Whether a message that found the inbox full has room now. */
export function mayGoOn(inc: Incoming): boolean {
  return inc.cursor !== inc.peerCursor && mayKeep(inc) && hasRoom(inc);
}

/**
 * Takes the next message into the queue, or gives it to its route. `IN_RING`: it stays there,
 * because the inbox is full.
 */
export function keepNext(inc: Incoming, mayLoad: boolean): Found {
  if (!mayKeep(inc)) return Found.NOTHING;
  const isFull = !hasRoom(inc);
  if (isFull && !inc.route) return Found.IN_RING;
  try {
    const found = pull(inc, isFull ? Mode.PASS : Mode.KEEP, mayLoad);
    if (found === undefined) return Found.NOTHING;
    if (typeof found === "number") return found;
    inc.keep(inc, found as Message);
  } catch (reason) {
    // [port.inbox_fault] A fault of the pipe, or of its memory, is reported after the inbox.
    if ((reason as MillraceError).name !== "MessageError") return Found.NOTHING;
    inc.queue.push(reason as MillraceError);
  }
  return Found.TAKEN;
}

/**
 * Takes what arrives into the queue while something waits for room. Returns what else to wait for:
 * further frames, unless the inbox is full. [port.inbox]
 */
export function fill(inc: Incoming): number {
  const before = inc.cursor;
  // One load only: the writer that waits looks at its deadline before it calls this again.
  let found = keepNext(inc, true);
  while (found === Found.TAKEN) found = keepNext(inc, false);
  if (inc.cursor !== before) tendSoon(inc.link); // [port.inbox_wake]
  return mayKeep(inc) && found !== Found.IN_RING ? For.FRAMES : 0;
}
