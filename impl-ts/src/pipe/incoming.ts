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
  decodeBatch,
  decodeForeign,
  decodeJson,
  decodeText,
  encodeJson,
  NO_BYTES,
  takeCopy,
} from "../codec/codec.ts";
import { lostError, MillraceError, type ReasonCode, throwCannot } from "../error.ts";
import { layout } from "../memory/layout.ts";
import type { Channel } from "../memory/plan.ts";
import { isPast } from "../memory/segment.ts";
import { accept, FrameReader, Head } from "../ring/frame.ts";
import { Bit, hasMoved, load, markFaulty, placeOf, Side, store } from "../ring/side.ts";
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

/** How a message is taken. */
export const enum Mode {
  /** Decoded. */
  VALUE,
  /** As a `Message`. */
  MESSAGE,
  /** Where it lies in the ring, which `take` says by returning its side; otherwise as a message. */
  SHOW,
  /** The same frame by frame, lent until `release`. */
  LEND,
  /** Not at all: only what is skipped, messages of calls, and an `end`, are taken. */
  LOOK,
  /** The same with a full inbox: of calls, only what needs no room there. */
  PASS,
}

/** What `pull` has found. */
export const enum Found {
  NOTHING,
  /** A frame at the own cursor: a whole message, or, to be lent, a chunk of one. */
  IN_RING,
  /** A message that was put together from its chunks. */
  IN_PARTS,
  /** A message that was taken: its route has it. */
  TAKEN,
}

/** Takes the messages of calls. Only `begin` runs the application's code. */
export interface Route {
  /** Calls that were taken and not begun, and their bytes: they count as part of the inbox. */
  readonly waitingCount: number;
  readonly waitingSize: number;
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
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly stop: (() => void) | undefined;
}

const HEADER_SIZE = layout.FRAME_HEADER_SIZE;
const DATA = layout.FRAME_KIND_DATA;
const END = layout.FRAME_KIND_END;
const PAD = layout.FRAME_KIND_PAD;
const CANCEL = layout.FRAME_FLAG_CANCEL;
/** What an inbox keeps if no option says more or less. */
const INBOX_COUNT = 1024;
const INBOX_SIZE = 16 * 1024 * 1024;
/** Looks for an answer by a call that blocks, before it looks at anything else. */
const GLANCES = 512;

/** Options of the incoming side, some of which only ports have. */
export interface IncomingOptions extends ReaderOptions {
  readonly inboxCount?: number | undefined;
  readonly inboxSize?: number | undefined;
}

/** The reader's end of one ring, and what was taken out of it and not handed out. */
export class Incoming extends Side {
  readonly link: Link;
  readonly options: IncomingOptions;
  /** The frame at the own cursor. */
  readonly frame: FrameReader = new FrameReader();
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
  readonly codecs: CodecTable;
  /** Who takes the messages of calls; without it, they are reported or handed out. */
  route: Route | undefined;
  /** The bytes collected of the message in progress, or all bytes of the one that is complete. */
  parts: Uint8Array = NO_BYTES;
  /** Whether the message in progress is lent frame by frame, and not collected. */
  isLentInParts = false;
  /** What is thrown at the last frame of a message that was dropped before, for its route. */
  report: MillraceError | undefined;
  /** Largest message, and largest JSON. */
  readonly limit: number;
  readonly jsonLimit: number;
  /** The segment as doubles, by which texts are copied. */
  doubles: Float64Array | undefined;
  /** What this end had published when it last waited for an answer. */
  asked = 0;

  /** Makes the incoming side of an attached endpoint for one of its rings. */
  constructor(link: Link, channel: Channel, options: IncomingOptions) {
    super(link.endpoint, channel, false);
    const { maxMessageSize, codec, codecs } = options;
    this.link = link;
    this.options = options;
    this.codecs = codecTable(codec, codecs);
    this.limit = maxMessageSize ?? MAX_MESSAGE_SIZE;
    this.jsonLimit = maxMessageSize ?? MAX_JSON_SIZE;
    link.incoming = this;
  }

  /**
   * Takes the next message: from the queue, then from the frames that are known, then, with
   * `mayLoad`, from what one load of `tail` shows. [ring.one_load] Undefined if there is none.
   *
   * A method, as is `keep`, so that a meter can put its own in front.
   */
  take(mode: Mode, mayLoad: boolean): unknown {
    let found: Found;
    do {
      if (!this.link.isTending) this.route?.begin();
      if (this.queue.length > 0) return takeQueued(this, mode);
      const { peerCursor } = this;
      found = pull(this, mode, mayLoad);
      if (this.peerCursor !== peerCursor) mayLoad = false;
    } while (found === Found.TAKEN);
    if (found === Found.NOTHING) return undefined;
    const { frame } = this;
    this.kind = frame.kind;
    this.codec = frame.codec;
    this.tag = frame.tag >>> 0;
    if (found === Found.IN_PARTS) return handOut(this, takeParts(this), mode);
    if (mode === Mode.LEND) this.bits |= Bit.LENT;
    if (mode >= Mode.SHOW) return this;
    if (mode !== Mode.VALUE) return handOut(this, copyFrame(this), mode);
    const { codec, words } = this;
    const { size, lead } = frame;
    const at = placeOf(this) + HEADER_SIZE + lead;
    // The payload is copied, and its room given back, before anything is decoded.
    if (codec >= layout.CODEC_TEXT && codec <= layout.CODEC_JSON_BATCH) {
      const { buffer, byteOffset, length } = words;
      this.doubles ??= new Float64Array(buffer, byteOffset, length >> 1);
      const payload = takeCopy(this.bytes, words, this.doubles, at, size);
      releaseFrame(this);
      return decode(this, payload);
    }
    return decode(this, copyFrame(this));
  }

  /** Hands a message that was taken out of the ring to the calls, or puts it into the queue. */
  keep(message: Message): void {
    if (message.kind !== DATA && this.route) return this.route.take(message);
    this.keptSize += message.payload.length;
    this.queue.push(message);
  }
}

/** Whether anything was taken out of the ring, or is known to be there, or nothing will come. */
export function hasMore({ cursor, peerCursor, queue, bits }: Incoming): boolean {
  return cursor !== peerCursor || queue.length > 0 || (bits & (Bit.ENDED | Bit.STOPPED)) !== 0;
}

/** Whether the end of the stream was read, and everything before it. */
export function hasEnded({ bits, queue }: Incoming): boolean {
  return (bits & Bit.ENDED) !== 0 && queue.length === 0;
}

/** Whether a frame is lent, or the rest of its message still has to be lent. */
export function isLending({ isLentInParts, bits }: Incoming): boolean {
  return isLentInParts || (bits & Bit.LENT) !== 0;
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
  if (inc.isLentInParts) tendSoon(inc.link); // listeners wait for the end of that
  inc.isLentInParts = false;
}

/** Reads one message, and waits until there is one. */
export function read(inc: Incoming, mode: Mode, options: WaitOptions | undefined): unknown {
  requireWait(options);
  let taken = tryRead(inc, mode);
  if (taken !== undefined || hasEnded(inc) || options?.timeout === 0) return taken;
  // Within a conversation, a peer that is awake answers in 1 to 4 µs.
  if (glance(inc) && (taken = tryRead(inc, mode)) !== undefined) return taken;
  const deadline = deadlineOf(options);
  for (let waits = 0; taken === undefined && !hasEnded(inc); waits++) {
    if (waits > 0 && isPast(deadline)) break;
    if (!inc.endpoint.wait(inc.link, For.MESSAGES, deadline, waits)) break;
    taken = tryRead(inc, mode);
  }
  return taken;
}

/**
 * Looks a few times, without a look at the clock, which makes a number: longer for the answer to
 * what was written since the last time.
 */
export function glance(inc: Incoming, outgoing?: Outgoing): boolean {
  const { spinner } = inc.endpoint;
  const most = noteAsked(inc, outgoing) ? GLANCES : GLANCES / 16;
  if (!spinner.blocks || !spinner.pays) return false;
  for (let looks = 0; looks < most; looks++) {
    if (!hasMoved(inc)) continue;
    spinner.hit();
    return true;
  }
  return false;
}

/** Whether anything was published since this was asked last, so that what comes may answer it. */
export function noteAsked(
  inc: Incoming,
  outgoing: Outgoing | undefined = inc.link.outgoing,
): boolean {
  const published = outgoing?.published ?? inc.asked;
  const hasAsked = published !== inc.asked;
  inc.asked = published;
  return hasAsked;
}

/** Reads one message if there is one. A final state is reported if none is. [pipe.look_again] */
export function tryRead(inc: Incoming, mode: Mode): unknown {
  const taken = inc.take(mode, true);
  if (taken !== undefined || hasEnded(inc)) return taken;
  // Mostly both ends are attached, and there is no error to look for.
  const isWell = (inc.bits & (Bit.STOPPED | Bit.GONE)) === 0 && inc.endpoint.isLinked(inc.peer);
  const gone = isWell ? undefined : stateError(inc.link, "read");
  if (!gone) return undefined;
  load(inc);
  const last = inc.take(mode, false);
  if (last === undefined && !hasEnded(inc)) throw giveUpRest(inc, gone);
  return last;
}

/** Drops the message in progress, whose loss the report of a final state covers. */
export function giveUpRest(inc: Incoming, gone: MillraceError): MillraceError {
  dropParts(inc);
  if (inc.frame.inProgress) inc.frame.dropped = true;
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
    const stop = limit(options, (reason) => {
      takers.splice(takers.indexOf(taker), 1);
      stop!();
      if (reason === undefined) resolve(undefined);
      else reject(reason);
      link.tend();
    });
    const taker: Taker = { mode, convert, resolve, reject, stop };
    takers.push(taker);
    if (!turn) link.tend();
    else turn.then(link.tendLater);
  });
}

/** Tells all who wait that they wait in vain. */
export function rejectAll(inc: Incoming, reason: unknown): void {
  for (const { stop, reject } of inc.takers.splice(0)) {
    stop?.();
    reject(reason);
  }
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
    inc.takers.shift();
    taker.stop?.();
    if (failure === undefined) taker.resolve(taken);
    else taker.reject(failure);
  }
  return 0;
}

/** Copies the payload of the frame at the own cursor, and gives its room back. */
export function copyFrame(inc: Incoming): Uint8Array {
  const { size, lead } = inc.frame;
  const payload = size === 0
    ? new Uint8Array()
    : copyOut(inc.bytes, placeOf(inc) + HEADER_SIZE + lead, size);
  releaseFrame(inc);
  return payload;
}

function takeParts(inc: Incoming): Uint8Array {
  const { parts } = inc;
  dropParts(inc);
  return parts;
}

/** Hands out a message that is in private memory. */
function handOut(inc: Incoming, payload: Uint8Array, mode: Mode): unknown {
  if (mode === Mode.VALUE) return decode(inc, payload);
  const { kind, codec, tag } = inc;
  if (mode === Mode.LEND) inc.bits |= Bit.LENT;
  return { kind, codec, tag, payload } satisfies Message;
}

function decode(inc: Incoming, payload: Uint8Array): unknown {
  switch (inc.codec) {
    case layout.CODEC_JSON:
      return decodeJson(payload);
    case layout.CODEC_TEXT:
      return decodeText(payload);
    case layout.CODEC_BYTES:
      return payload;
    case layout.CODEC_JSON_BATCH: {
      const { kind, tag } = inc;
      const values = decodeBatch(payload);
      inc.codec = layout.CODEC_JSON;
      if (values.length > 1) {
        inc.queue.unshift({ values, next: 1, kind, codec: layout.CODEC_JSON, tag });
      }
      return values[0];
    }
  }
  return decodeForeign(payload, inc.codec, inc.codecs);
}

/** Takes what comes next in the queue. */
function takeQueued(inc: Incoming, mode: Mode): unknown {
  requireBack(inc, mode);
  const { queue } = inc;
  const first = queue[0]!;
  if (first instanceof MillraceError) {
    queue.shift();
    throw first;
  }
  inc.kind = first.kind;
  inc.codec = first.codec;
  inc.tag = first.tag;
  if ("values" in first) { // [codec.batch_read]
    const value = first.values[first.next++];
    if (first.next === first.values.length) queue.shift();
    return mode === Mode.VALUE ? value : handOut(inc, encodeJson(value), mode);
  }
  queue.shift();
  inc.keptSize -= first.payload.length;
  return handOut(inc, first.payload, mode);
}

/** Throws while a frame is lent. [pipe.lend_one] */
function requireBack(inc: Incoming, mode: Mode): void {
  if (!(inc.bits & Bit.LENT) || mode >= Mode.LOOK) return;
  throwCannot(mode === Mode.LEND ? "peek: a frame is lent already" : "read: a frame is lent");
}

/**
 * Moves on to the next message: skips what is to be skipped, collects chunks, and gives a message
 * of a call to its route.
 */
export function pull(inc: Incoming, mode: Mode, mayLoad: boolean): Found {
  if (inc.bits !== 0) { // [pipe.first_answer]
    const failure = closedError(inc.link, "read") ?? inc.fault;
    if (failure) throw failure;
    if (inc.bits & Bit.ENDED) return Found.NOTHING;
    requireBack(inc, mode);
  }
  const { frame, capacity, words } = inc;
  for (;;) {
    while (inc.cursor !== inc.peerCursor) {
      const toEnd = capacity - (inc.cursor & (capacity - 1));
      const known = (inc.peerCursor - inc.cursor) | 0;
      const reason = frame.check(words, placeOf(inc) / 4, known, toEnd, capacity >> 1);
      if (reason !== 0) throw fail(inc, reason);
      if (frame.flags === Head.WHOLE && frame.kind === DATA) {
        if (mode >= Mode.LOOK) return Found.IN_RING;
        if (frame.size > inc.jsonLimit) admit(inc, frame.size); // the lower limit of the two
        return Found.IN_RING;
      }
      const found = arrive(inc, mode);
      // It may have been the end, or the route has closed this end.
      const isOver = (inc.bits & (Bit.ENDED | Bit.STOPPED)) !== 0;
      if (found !== Found.NOTHING || isOver) return found;
    }
    if (!mayLoad || !load(inc)) return Found.NOTHING;
    mayLoad = false;
  }
}

/** Marks the peer failed for the frame at the own cursor. */
function fail(inc: Incoming, reason: number): MillraceError {
  const { kind, flags, size } = inc.frame;
  dropParts(inc);
  const fault = markFaulty(inc, reason, `kind ${kind}, flags ${flags}, size ${size}`);
  inc.route?.finish(fault);
  return fault;
}

/** Handles a frame that is not a whole message of data. */
function arrive(inc: Incoming, mode: Mode): Found {
  const { frame, route } = inc;
  const { kind, flags } = frame;
  const isDropped = frame.dropped && frame.inProgress;
  const isEnd = kind === END;
  if (kind >= PAD || isDropped && !isEnd) { // [frame.skip]
    releaseFrame(inc);
    if (kind < PAD && frame.isLast) { // [pipe.report_once]
      const { report } = inc;
      inc.report = undefined;
      const isTold = report === undefined || (flags & CANCEL) !== 0;
      if (!isTold && !route?.lose(kind, frame.tag >>> 0, report)) throw report;
    }
    return Found.NOTHING;
  }
  if (kind > END && route) return route.accept(mode);
  if (mode >= Mode.LOOK && !(isEnd && (isDropped || !frame.inProgress))) return Found.IN_RING;
  if (isEnd) return arriveEnd(inc);
  if (flags !== Head.WHOLE) return arriveChunk(inc, mode);
  admit(inc, frame.size);
  return Found.IN_RING;
}

function arriveEnd(inc: Incoming): Found {
  const { frame, route } = inc;
  const { begun, begunTag } = frame;
  // [pipe.truncated]
  let error = frame.inProgress && !frame.dropped
    ? lostError("message.truncated", "the stream ended inside it")
    : undefined;
  inc.bits |= Bit.ENDED;
  dropParts(inc);
  releaseFrame(inc);
  tendSoon(inc.link); // somebody may wait for the end
  if (error && route?.lose(begun & 0xff, begunTag >>> 0, error)) error = undefined;
  route?.finish(undefined);
  if (error) throw error;
  return Found.NOTHING;
}

function arriveChunk(inc: Incoming, mode: Mode): Found {
  const { frame } = inc;
  const isLent = mode === Mode.LEND;
  if (frame.isFirst) {
    admit(inc, frame.isUnknown && isLent ? 0 : frame.total);
    inc.isLentInParts = isLent;
  }
  if (!inc.isLentInParts) {
    const parts = collect(inc);
    if (!parts) return Found.NOTHING;
    inc.parts = parts;
    return Found.IN_PARTS;
  }
  requireNoCancel(inc);
  if (!isLent) throwCannot("read: a message is lent in part");
  return Found.IN_RING;
}

function requireNoCancel(inc: Incoming): void {
  if (!(inc.frame.flags & CANCEL)) return;
  refuse(inc, "message.cancelled", "its writer gave up"); // [pipe.cancelled]
}

/**
 * Collects a chunk. Returns the whole message after its last one. If a part of a message is
 * collected already, by a call that timed out or by a write that waited for room, the rest is
 * collected too, and the whole is lent from there.
 */
export function collect(inc: Incoming): Uint8Array | undefined {
  const { frame } = inc;
  const { size, isFirst, isLast, isUnknown } = frame;
  // What there must be room for: the whole message, or, if its size is unknown, what has come of
  // it.
  const sum = isFirst ? size : frame.received + size;
  if (isFirst) admit(inc, frame.total);
  requireNoCancel(inc);
  if (isUnknown) requireLimit(inc, sum); // [pipe.limit_unknown]
  if (isFirst) inc.parts = allocate(inc, isUnknown ? sum : frame.total);
  else if (sum > inc.parts.length) { // its size is unknown, and more may follow
    resizeParts(inc, frame.received, Math.min(Math.max(sum, 2 * inc.parts.length), limitOf(inc)));
  }
  const at = placeOf(inc) + HEADER_SIZE + frame.lead;
  inc.parts.set(inc.bytes.subarray(at, at + size), sum - size);
  if (isLast) resizeParts(inc, sum, sum);
  releaseFrame(inc);
  return isLast ? takeParts(inc) : undefined;
}

/** Moves the first `size` bytes of the parts into memory of `capacity` bytes. */
function resizeParts(inc: Incoming, size: number, capacity: number): void {
  if (inc.parts.length === capacity) return;
  const parts = allocate(inc, capacity);
  parts.set(inc.parts.subarray(0, size));
  inc.parts = parts;
}

/** [pipe.total_trust] The size is within the limit, but there may be less memory than that. */
function allocate(inc: Incoming, size: number): Uint8Array {
  try {
    return new Uint8Array(size);
  } catch {
    refuse(inc, "message.size", `there is no memory for its ${size} bytes`);
  }
}

/** Drops a message that this reader does not accept: its kind first, then its size. */
export function admit(inc: Incoming, total: number): void {
  const { kind, isUnknown } = inc.frame;
  if (kind !== DATA && !inc.options.calls && !inc.route) { // [pipe.unknown_kind]
    refuse(inc, "message.kind", `its kind is ${kind}`);
  }
  if (!isUnknown) requireLimit(inc, total);
}

function requireLimit(inc: Incoming, size: number): void {
  const limit = limitOf(inc);
  if (size <= limit) return;
  const has = inc.frame.isUnknown ? `${size} bytes or more` : `${size} bytes`;
  refuse(inc, "message.size", `it has ${has}, and maxMessageSize is ${limit}`);
}

function limitOf({ frame: { codec }, jsonLimit, limit }: Incoming): number {
  return codec === layout.CODEC_JSON || codec === layout.CODEC_JSON_BATCH ? jsonLimit : limit;
}

/** Drops the frame, and what was collected of its message, and reports the message as lost. */
function refuse(inc: Incoming, code: ReasonCode, why: string): never {
  releaseFrame(inc);
  // Later frames of the message are skipped without another report.
  inc.frame.dropped = inc.frame.unsummed = true;
  dropParts(inc);
  throw lostError(code, why);
}

/** Goes on after the frame; gives its room back now, or with later ones. [ring.release_early] */
export function releaseFrame(inc: Incoming): void {
  const { frame } = inc;
  if (frame.flags !== Head.WHOLE) accept(frame);
  const cursor = inc.cursor = (inc.cursor + frame.extent) | 0;
  const isDue = cursor === inc.peerCursor || ((cursor - inc.published) | 0) >= inc.capacity >> 2;
  // [ring.release_asked] A writer that waits for a few bytes does not wait for a quarter.
  if (isDue || Atomics.load(inc.words, inc.otherWants) !== 0) store(inc);
}

/** Whether messages may be taken into the queue at all. */
function mayKeep(inc: Incoming): boolean {
  return !isLending(inc) && (inc.bits & (Bit.ENDED | Bit.STOPPED)) === 0;
}

/** Whether the inbox has room for the next message. [port.inbox] */
function hasRoom({ frame, queue, keptSize, route, options }: Incoming): boolean {
  if (frame.inProgress) return true; // what was begun is taken in to its end
  const { inboxCount = INBOX_COUNT, inboxSize = INBOX_SIZE } = options;
  const count = queue.length + (route?.waitingCount ?? 0);
  const size = keptSize + (route?.waitingSize ?? 0);
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
    const found = pull(inc, isFull ? Mode.PASS : Mode.MESSAGE, mayLoad);
    if (isFull || found === Found.NOTHING) return found;
    if (found !== Found.TAKEN) {
      const { kind, codec, tag } = inc.frame;
      const payload = found === Found.IN_PARTS ? takeParts(inc) : copyFrame(inc);
      inc.keep({ kind, codec, tag: tag >>> 0, payload });
    }
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
