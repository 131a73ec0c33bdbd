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
import { takeShown } from "../call/shown.ts";
import { type Piece, ValueList } from "../call/values.ts";
import { CallWire } from "../call/wire.ts";
import { copyInto, makePayload, type Payload } from "../codec/codec.ts";
import { MessageError, MillraceError, PeerFailedError } from "../error.ts";
import { WHOLE } from "../ring/frame.ts";
import { ENCODING } from "../memory/gate.ts";
import { CODEC_VALUES, FRAME_HEADER_SIZE, FRAME_KIND_DATA } from "../memory/layout.ts";
import type { CallTaker } from "../pipe/calls.ts";
import { NONE, rouse, type Taking, TOOK } from "../pipe/inbox.ts";
import { IN_RING, type Inlet, KEEP, LOOK } from "../pipe/inlet.ts";
import type { Message } from "../pipe/pipe.ts";
import type { Outlet } from "../pipe/outlet.ts";
import type { Port } from "../port/port.ts";
import type { Waitable } from "../wait/wait.ts";
import { numberAfter } from "./gauge.ts";
import { LIST_SIZE, ListReader, ListWriter } from "./list.ts";
import { type Part, partOf, requireSize, sizeOf, writeAlone } from "./list.ts";

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
export class Line implements CallTaker {
  readonly what: Waitable;
  readonly waitingCount = 0;
  readonly waitingSize = 0;
  readonly outlet: Outlet;
  readonly #port: Port<unknown>;
  readonly #user: LineUser;
  readonly #inlet: Inlet;
  readonly #wire: CallWire;
  /** Whether messages were taken on which `go` has not acted yet. */
  #isFresh = false;
  #lost: MillraceError | undefined;
  #keeps = false;
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
  readonly #payload: Payload = makePayload();

  /**
   * Begins to take the messages of a port. `maxMessageSize` is the port's option; it limits the
   * bytes of one item, and a list of several items may have more.
   */
  constructor(port: Port<unknown>, user: LineUser, maxMessageSize: number = Infinity) {
    const { inlet } = port.reader;
    const { outlet } = port.writer;
    this.#limit = maxMessageSize;
    this.#reader = new ListReader(user.width, maxMessageSize, inlet.codecs);
    this.#writer = new ListWriter(outlet.largest);
    this.#port = port;
    this.#user = user;
    this.what = this.#inlet = inlet;
    this.outlet = outlet;
    this.#wire = new CallWire(inlet, outlet, () => port.outbox);
    port.delivery.change(() => inlet.taker = this);
  }

  get isActive(): boolean {
    return this.#lost === undefined;
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  get keeps(): boolean {
    return this.#keeps && this.#lost === undefined;
  }

  /** Whether this line keeps the process alive while it waits for messages. */
  set keeps(on: boolean) {
    if (on !== this.#keeps) this.#port.delivery.change(() => this.#keeps = on);
  }

  get isDue(): boolean {
    return this.#isFresh || this.#user.isDue;
  }

  /** Encodes a value for `add`. @throws what the value's own code throws, or a TypeError. */
  encode(value: unknown): Part {
    const { outlet } = this;
    // Application code may run in the encoder, and must not write meanwhile.
    outlet.bits |= ENCODING;
    try {
      return partOf(value, outlet);
    } finally {
      outlet.bits &= ~ENCODING;
    }
  }

  /**
   * Adds an item to the list that will be written next: an encoded value, and the name of its
   * handler if it is a task. If the list has no room, it is written first.
   *
   * @throws {MillraceError} if the other end is gone.
   */
  add(number: number, name: string | undefined, part: Part): void {
    const { outlet } = this;
    const writer = this.#writer;
    if (this.#lost !== undefined) throw this.#lost;
    outlet.check();
    if (name !== this.#name) {
      this.#namePart = partOf(name, outlet);
      this.#name = name;
    }
    const count = name === undefined ? 1 : 2;
    const size = sizeOf(part) + sizeOf(this.#namePart);
    if (number !== this.#nextNumber || !writer.hasRoom(count, size)) this.flush();
    if (writer.isEmpty) {
      this.#firstNumber = number;
      this.#listName = undefined;
      if (!writer.hasRoom(count, size)) {
        writeAlone(name === undefined ? [part] : [this.#namePart, part], this.#payload);
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
    this.#writer.take(this.#payload);
    this.outlet.check();
    this.#write(this.#firstNumber);
  }

  /** Tells the worker that a task is given up. @throws {MillraceError} if the other end is gone. */
  sendMark(number: number): void {
    this.flush();
    this.outlet.check();
    this.#wire.encode([]);
    this.#wire.send(FRAME_KIND_DATA, marked(number), settled);
  }

  /** Writes the failure of a task. @throws {MillraceError} if the other end is gone. */
  sendFailure(number: number, texts: readonly string[], data: Piece | undefined): void {
    this.flush();
    this.outlet.check();
    this.#wire.encodeTexts(texts, data);
    this.#wire.send(FRAME_KIND_DATA, marked(number), settled);
  }

  /** Looks for published messages, even if the bell has not rung. */
  poll(): void {
    rouse(this.#inlet);
  }

  pump(): boolean | MessageError {
    let mayLoad = true;
    let left = TAKE_COUNT;
    for (; left > 0 && this.#takeOne(mayLoad); left--) mayLoad = false;
    if (left === TAKE_COUNT) this.#lookAgain();
    if (!this.isDue) return false;
    this.#isFresh = false;
    this.#user.go();
    return true;
  }

  takeNext(mayLoad: boolean): boolean {
    return this.#takeOne(mayLoad);
  }

  takePassing(mayLoad: boolean): Taking {
    return this.#takeOne(mayLoad) ? TOOK : NONE;
  }

  serve(): void {}

  begin(): void {}

  cut(): boolean {
    return false;
  }

  mute(): void {
    this.#finish(new CallError("call.ended", "Cannot run tasks: this end has ended"));
  }

  finish(error: MillraceError | undefined): void {
    this.#finish(error ?? new CallError("call.ended", "Cannot run tasks: the worker has ended"));
  }

  renew(): void {
    this.#finish(new PeerFailedError("Cannot run tasks: the worker", 0));
    this.#port.delivery.change(() => this.#lost = undefined);
  }

  #finish(error: MillraceError): void {
    if (this.#lost !== undefined) return;
    this.#port.delivery.change(() => this.#lost = error);
    this.#wire.stop(error);
    this.#user.finish(error);
  }

  /** Writes the list in the payload. */
  #write(number: number): void {
    const { outlet } = this;
    const payload = this.#payload;
    if (outlet.bits === 0) {
      outlet.restore(payload);
      outlet.start(FRAME_KIND_DATA, number);
      if (outlet.send()) return;
    }
    this.#wire.restore(payload);
    this.#wire.send(FRAME_KIND_DATA, number, settled);
  }

  /** Takes one message, or a part of one. Returns false if there is none. */
  #takeOne(mayLoad: boolean): boolean {
    const inlet = this.#inlet;
    const { frame } = inlet;
    try {
      if (inlet.pull(LOOK, undefined, mayLoad) !== IN_RING) return false;
      const isWhole = frame.flags === WHOLE;
      if (isWhole && frame.size <= LIST_SIZE) {
        this.#takeCopy();
        return true;
      }
      const message = isWhole
        ? takeShown(inlet)
        : inlet.take(KEEP, undefined, false) as Message | undefined;
      if (message === undefined) return true;
      const { kind, codec, tag, payload } = message;
      const words = new Int32Array(payload.buffer, payload.byteOffset, payload.length >> 2);
      this.#take(kind, codec, tag, payload, words, payload.length);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      if (!(error instanceof MessageError)) return false; // the port is lost, and reports that
      // A message in parts is reported as lost when its last frame has come.
      if (!frame.isLast) inlet.refusal = error;
      else this.#lose(frame.tag >>> 0, error);
    }
    return true;
  }

  /** Takes the message that the look has found, which is no larger than a list. */
  #takeCopy(): void {
    const inlet = this.#inlet;
    const { kind, codec, tag, size, lead } = inlet.frame;
    const at = (inlet.own & (inlet.capacity - 1)) + FRAME_HEADER_SIZE + lead;
    copyInto(inlet.bytes, inlet.words, at, size, this.#copy, this.#copyWords);
    inlet.release();
    this.#take(kind, codec, tag >>> 0, this.#copy, this.#copyWords, size);
  }

  #take(
    kind: number,
    codec: number,
    tag: number,
    bytes: Uint8Array,
    words: Int32Array,
    size: number,
  ): void {
    if (kind !== FRAME_KIND_DATA) return; // neither a pool nor a worker sends other kinds
    this.#isFresh = true;
    try {
      if (codec !== CODEC_VALUES) {
        throw new MessageError("message.codec", `Cannot read message: its codec is ${codec}`);
      }
      if (tag < MARK) return this.#takeList(tag, bytes, words, size);
      requireSize(size, this.#limit);
      const { values } = new ValueList(bytes.subarray(0, size), this.#inlet.codecs);
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
    const inlet = this.#inlet;
    try {
      const gone = inlet.lookAgain();
      if (gone !== undefined && !this.#takeOne(false)) inlet.giveUp(gone);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
    }
  }
}

/** The tag of a marked message. */
function marked(number: number): number {
  return (number | MARK) >>> 0;
}

/** Ignores that a message is not written: the sender learns of the loss by `finish`. */
function settled(): void {}
