/**
 * The line between a pool and one of its workers: a port on which lists of tasks go to the worker,
 * and the result of each task comes back. The tags of the messages number the tasks:
 *
 * | message | tag | values |
 * | --- | --- | --- |
 * | tasks | the number of the first | for each the name of its handler, and the value |
 * | a task is given up | its number, marked | none |
 * | results | the number of the first | each result |
 * | a failure | its number, marked | name and text of the error, and its `data`, if any |
 *
 * The items of a list have consecutive numbers. A name is left out if it is that of the item
 * before. The tasks that a worker is given at one time are one list. A result is a list of one,
 * because the pool must be able to see it before the next task begins, during which the worker may
 * die.
 *
 * Tasks are not calls: the additional work of a call, objects of its own on both sides and a turn
 * of the event loop's rota, took more than half of the time of a task of 10 µs (measured: Node 24).
 *
 * @module
 */

import { CallError } from "../call/error.ts";
import { encodeTexts, type Piece, readValues } from "../call/values.ts";
import { NO_BYTES } from "../codec/codec.ts";
import { copyInto } from "../codec/payload.ts";
import { failure, lostError, MessageError, MillraceError } from "../error.ts";
import { now } from "../memory/clock.ts";
import { layout } from "../memory/layout.ts";
import { Found, giveUpRest, type Incoming, Mode, pull, releaseFrame } from "../pipe/incoming.ts";
import type { Link } from "../pipe/link.ts";
import type { Message } from "../pipe/options.ts";
import { closedError, type Delivery, For, noteKeeping, stateError } from "../pipe/tend.ts";
import {
  accept,
  giveUpAll,
  makeSend,
  type Outgoing,
  type Send,
  setPayload,
  whileEncoding,
} from "../pipe/outgoing.ts";
import type { Port } from "../port/port.ts";
import { Head } from "../ring/frame.ts";
import { Bit, load } from "../ring/side.ts";
import { nextTask, SETTLED, Turn, turn } from "../wait/loop.ts";
import { numberAfter } from "./work_gauge.ts";
import {
  LIST_SIZE,
  ListReader,
  ListWriter,
  type Part,
  partOf,
  requireSize,
  sizeOf,
  writeAlone,
} from "./task_list.ts";
import { isLinked } from "../wait/state.ts";

const DATA = layout.FRAME_KIND_DATA;
/** The bit that marks a tag. Numbers are below it. */
const MARK = 0x80000000;
/** The most messages that are taken before `go` acts on them. */
const TAKE_COUNT = 512;

/** The object that uses one end of a line. Only `go` may run application code. */
export interface LineUser {
  /** How many values each item of an incoming list has. */
  readonly width: number;
  /** Takes an item, and reads its values. @throws {MessageError} if the item is malformed. */
  take(number: number, list: ListReader): void;
  /** Takes a marked message. @throws {MessageError} if the message is malformed. */
  takeMarked(number: number, values: unknown[]): void;
  /** An item, or a marked message, was dropped because of this error. */
  lose(number: number, isMarked: boolean, error: MessageError): void;
  /** Acts on the items and messages that were taken. */
  go(): void;
  /** Whether there is something for `go` to do although nothing was taken. */
  readonly isDue: boolean;
  /** No more messages will come, because of this error. */
  finish(error: MillraceError): void;
}

/** One end of a line. It takes all messages of its port. */
export class Line implements Delivery {
  readonly outgoing: Outgoing;
  /** Resolves when no more messages will come, and those that came are taken. */
  readonly closed: Promise<void>;
  readonly #link: Link;
  readonly #inc: Incoming;
  readonly #user: LineUser;
  /** Whether messages were taken on which `go` has not acted yet. */
  #isFresh = false;
  /** Whether `go` is about to run. */
  #isRunning = false;
  /** Whether nothing was found when this end looked last. */
  #isDry = false;
  #lost: MillraceError | undefined;
  #settle!: () => void;
  #keeps = false;
  /** The tag of the message of which a part was collected. */
  #begunTag = 0;
  /**
   * The memory into which every message up to the size of a list is copied. Nothing refers to it
   * any more when the message has been taken.
   */
  readonly #copy = new Uint8Array(LIST_SIZE);
  readonly #copyWords = new Int32Array(this.#copy.buffer);
  readonly #reader: ListReader;
  readonly #limit: number;
  /** The list that is being written, the number of its first item, and that of the next item. */
  readonly #writer: ListWriter;
  #firstNumber = 0;
  #nextNumber = 0;
  /** The handler's name of its last item; and the last encoded name, with its encoded form. */
  #listName: string | undefined;
  #name: string | undefined;
  #namePart: Part;
  /** The next message to be written. */
  #send: Send = makeSend(DATA);
  readonly #next = (): void => this.#run();

  /**
   * Begins to take the messages of a port. `maxMessageSize` is the port's option; it limits the
   * bytes of one item, and a list of several items may have more. The port's `inboxCount` must be
   * 0: the line knows which task a message belongs to, and an inbox does not.
   */
  constructor({ link }: Port<unknown>, user: LineUser, maxMessageSize: number = Infinity) {
    const inc = this.#inc = link.incoming!;
    const out = this.outgoing = link.outgoing!;
    this.#limit = maxMessageSize;
    this.#reader = new ListReader(user.width, maxMessageSize, inc.codecs);
    this.#writer = new ListWriter(out.largest);
    this.#link = link;
    this.#user = user;
    this.closed = new Promise((resolve) => this.#settle = resolve);
    link.delivery = this;
    SETTLED.then(link.tend); // the user is not complete yet
  }

  get keeps(): boolean {
    return this.#keeps && this.#lost === undefined;
  }

  /** Whether this line keeps the process alive while it waits for messages. */
  set keeps(on: boolean) {
    this.#keeps = on;
    noteKeeping(this.#link);
  }

  /** Encodes a value for `add`. @throws what the value's own code throws, or a TypeError. */
  encode(value: unknown): Part {
    return whileEncoding(this.outgoing, () => partOf(value, this.outgoing));
  }

  /**
   * Adds an item to the list that will be written next: an encoded value, and the name of its
   * handler if it is a task. If the list has no room, it is written first.
   *
   * @throws {MillraceError} if the other end is gone.
   */
  add(number: number, name: string | undefined, part: Part): void {
    const writer = this.#writer;
    this.#requireOpen();
    if (name !== this.#name) {
      this.#namePart = partOf(name, this.outgoing);
      this.#name = name;
    }
    const count = name === undefined ? 1 : 2;
    const size = sizeOf(part) + sizeOf(this.#namePart);
    if (number !== this.#nextNumber || !writer.hasRoom(count, size)) this.flush();
    if (writer.isEmpty) {
      this.#firstNumber = number;
      this.#listName = undefined;
      if (!writer.hasRoom(count, size)) {
        writeAlone(name === undefined ? [part] : [this.#namePart, part], this.#send);
        return this.#write(number);
      }
    }
    if (name !== undefined) writer.add(name === this.#listName ? undefined : this.#namePart);
    writer.add(part);
    this.#listName = name;
    this.#nextNumber = numberAfter(number);
  }

  /**
   * Writes the list if it has any items, or queues it for writing.
   *
   * @throws {MillraceError} if the other end is gone.
   */
  flush(): void {
    if (this.#writer.isEmpty) return;
    this.#writer.take(this.#send);
    this.#requireOpen();
    this.#write(this.#firstNumber);
  }

  /** Tells the worker that a task is given up. @throws {MillraceError} if the other end is gone. */
  sendMark(number: number): void {
    this.flush();
    this.#requireOpen();
    setPayload(this.#send, layout.CODEC_VALUES, NO_BYTES, true);
    this.#write(marked(number));
  }

  /** Writes the failure of a task. @throws {MillraceError} if the other end is gone. */
  sendFailure(number: number, texts: readonly string[], data: Piece | undefined): void {
    this.flush();
    this.#requireOpen();
    encodeTexts(texts, data, this.#send);
    this.#write(marked(number));
  }

  /** Looks for published messages, even if the bell has not rung. */
  poll(): void {
    this.#link.tend();
  }

  tend(): number {
    if (this.#isRunning || this.#lost) return 0;
    let left = TAKE_COUNT;
    for (let mayLoad = true; left > 0 && this.#takeOne(mayLoad); left--) mayLoad = false;
    if (left === TAKE_COUNT) this.#lookAgain();
    if (this.#isFresh || this.#user.isDue) {
      this.#runLater();
      return 0;
    }
    this.#isDry = true;
    return this.#lost === undefined ? For.MESSAGES : 0;
  }

  finish(reason: MillraceError | undefined): void {
    if (this.#lost) return;
    const lost = this.#lost = closedError(this.#link, "run tasks") ?? reason ??
      new CallError("call.ended", "Cannot run tasks: the other end has ended");
    giveUpAll(this.outgoing, lost);
    noteKeeping(this.#link);
    this.#user.finish(lost);
    this.#settle();
  }

  /** Has `go` act in a microtask; in a new task, if the event loop has to turn. */
  #runLater(): void {
    this.#isRunning = true;
    if (this.#isDry) turn.began = now(); // what is slept is not spent
    this.#isDry = false;
    if (turn.delivered === 0 || now() - turn.began < Turn.MS) return void SETTLED.then(this.#next);
    nextTask(this.#next);
  }

  #run(): void {
    if (turn.delivered++ === 0) turn.began = now();
    this.#isRunning = this.#isFresh = false;
    try {
      this.#user.go();
    } finally {
      this.#link.tend();
    }
  }

  /** Throws if nothing can be written any more. */
  #requireOpen(): void {
    const { bits, fault } = this.outgoing;
    if (this.#lost) throw this.#lost;
    if (bits & (Bit.STOPPED | Bit.ENDED)) {
      throw closedError(this.#link, "run tasks") ?? fault ??
        failure("pipe.ended", "run tasks: this end has ended");
    }
    const gone = isLinked(this.#link) ? undefined : stateError(this.#link, "run tasks");
    if (gone) throw gone;
  }

  /** Writes the message whose payload was encoded last, or has it wait for room. */
  #write(tag: number): void {
    const send = this.#send;
    send.tag = tag;
    accept(this.outgoing, send, settled);
    if (!send.isSettled) this.#send = makeSend(DATA);
  }

  /** Takes one message, or a part of one. Returns false if there is none. */
  #takeOne(mayLoad: boolean): boolean {
    const inc = this.#inc;
    const { frame } = inc;
    const isQueued = inc.queue.length > 0;
    try {
      if (!isQueued) {
        // The inbox's limit does not count for a list: that of its items does.
        if (pull(inc, Mode.LOOK, mayLoad) !== Found.IN_RING) return false;
        if (frame.flags === Head.WHOLE && frame.size <= LIST_SIZE) {
          this.#takeCopy();
          return true;
        }
      }
      const message = inc.take(inc, Mode.MESSAGE, false) as Message | undefined;
      if (!message) {
        this.#begunTag = frame.begunTag;
        return (inc.bits & Bit.ENDED) === 0 && inc.cursor !== inc.peerCursor;
      }
      const { kind, codec, tag, payload } = message;
      const words = new Int32Array(payload.buffer, payload.byteOffset, payload.length >> 2);
      this.#take(kind, codec, tag, payload, words, payload.length);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      if (!(error instanceof MessageError)) return false; // the port is lost: `#lookAgain` tells
      if (isQueued) this.#lose(this.#begunTag, error);
      else if (error.code === "message.truncated") return false; // nothing more comes
      // A message in parts is reported as lost when its last frame has come.
      else if (!(frame.flags & layout.FRAME_FLAG_LAST)) {
        inc.report = error;
        this.#begunTag = frame.tag;
      } else if (frame.kind === DATA) this.#lose(frame.tag, error);
    }
    return true;
  }

  /** Takes the message that the look has found, which is no larger than a list. */
  #takeCopy(): void {
    const inc = this.#inc;
    const { kind, codec, tag, at, size } = inc.frame;
    copyInto(inc.bytes, inc.words, at, size, this.#copy, this.#copyWords);
    releaseFrame(inc);
    this.#take(kind, codec, tag, this.#copy, this.#copyWords, size);
  }

  #take(
    kind: number,
    codec: number,
    tag: number,
    bytes: Uint8Array,
    words: Int32Array,
    size: number,
  ): void {
    if (kind !== DATA) return; // neither a pool nor a worker sends other kinds
    this.#isFresh = true;
    try {
      if (codec !== layout.CODEC_VALUES) {
        throw lostError("message.codec", `its codec is ${codec}`);
      }
      if (tag < MARK) return this.#takeList(tag, bytes, words, size);
      requireSize(size, this.#limit);
      const { values } = readValues(bytes.subarray(0, size), this.#inc.codecs);
      this.#user.takeMarked(tag & ~MARK, values);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.#lose(tag, error);
    }
  }

  /** Takes the items of a list. If one cannot be read, only that one is lost. */
  #takeList(first: number, bytes: Uint8Array, words: Int32Array, size: number): void {
    const list = this.#reader;
    list.open(bytes, words, size);
    for (let item = 0, number = first; item < list.itemCount; item++) {
      list.goTo(item);
      try {
        this.#user.take(number, list);
      } catch (error) {
        if (!(error instanceof MessageError)) throw error;
        this.#lose(number, error);
      }
      number = numberAfter(number);
    }
  }

  #lose(tag: number, error: MessageError): void {
    this.#isFresh = true;
    this.#user.lose(tag & ~MARK, tag >= MARK, error);
  }

  /** A final state counts only if a last look then finds no message. */
  #lookAgain(): void {
    const inc = this.#inc;
    const link = this.#link;
    try {
      if (inc.fault !== undefined) return this.finish(inc.fault);
      if (inc.bits & Bit.ENDED) return this.finish(undefined);
      if (isLinked(inc)) return;
      const gone = stateError(link, "run tasks");
      if (!gone) return;
      load(inc);
      if (this.#takeOne(false)) return;
      this.finish(inc.bits & Bit.ENDED ? undefined : giveUpRest(inc, gone));
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      this.finish(error);
    }
  }
}

/** The tag of a marked message. */
function marked(number: number): number {
  return (number | MARK) >>> 0;
}

/** Ignores that a message is not written: the sender learns of the loss by `finish`. */
function settled(): void {}
