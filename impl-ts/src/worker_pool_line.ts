/**
 * The line between a pool and one of its workers: a port on which each task is one message, and
 * what came of it another one. Messages are numbered by their tags:
 *
 * | message | tag | values |
 * | --- | --- | --- |
 * | a task | its number | the name of the handler, the value |
 * | nobody waits for it | its number, marked | none |
 * | its result | its number | the result, if there is one |
 * | its failure | its number, marked | name and text of the error, its `data` if there is any |
 *
 * They are no calls: what a call needs beside, its own objects on both sides and a turn of the
 * event loop's rota, took more than half of the time of a task of 10 µs (measured: Node 24).
 *
 * @module
 */

import { CallError } from "./call_error.ts";
import { type Piece, ValueList } from "./call_values.ts";
import { CallWire } from "./call_wire.ts";
import { copyInto } from "./codec.ts";
import { MessageError, MillraceError, PeerFailedError } from "./error.ts";
import { WHOLE } from "./frame.ts";
import { CODEC_VALUES, FRAME_HEADER_SIZE, FRAME_KIND_DATA } from "./layout.ts";
import type { CallTaker } from "./pipe_calls.ts";
import { NONE, rouse, type Taking, TOOK } from "./pipe_inbox.ts";
import { IN_RING, type Inlet, KEEP, LOOK } from "./pipe_inlet.ts";
import type { Message } from "./pipe.ts";
import type { Outlet } from "./pipe_outlet.ts";
import type { Port } from "./port.ts";
import type { Waitable } from "./wait.ts";

/** What a tag is marked by; numbers are below it. */
const MARK = 0x80000000;
/** Most messages that are taken before anything is done with them. */
const TAKE_COUNT = 512;

/**
 * Messages up to so many bytes are copied into the same memory each time, of which nothing is left
 * when they are taken: memory for each took a fifth of all that is allocated for a task.
 */
const SHORT_SIZE = 256;

/** What stands at one end of a line. But for `go`, nothing of it runs the application's code. */
export interface Party {
  /** Takes a message. @throws {MessageError} if it is none. */
  take(number: number, isMarked: boolean, values: unknown[]): void;
  /** A message was dropped, for this reason. */
  lose(number: number, isMarked: boolean, error: MessageError): void;
  /** Does what is to be done behind those that were taken. */
  go(): void;
  /** Whether there is anything to be done, although nothing was taken. */
  readonly isDue: boolean;
  /** Nothing more will come, for this reason. */
  finish(error: MillraceError): void;
}

/** One end of a line. It takes all messages of its port. */
export class Line implements CallTaker {
  readonly what: Waitable;
  readonly waitingCount = 0;
  readonly waitingSize = 0;
  readonly outlet: Outlet;
  readonly #port: Port<unknown>;
  readonly #party: Party;
  readonly #inlet: Inlet;
  readonly #wire: CallWire;
  /** Whether messages were taken behind which nothing was done yet. */
  #isFresh = false;
  #lost: MillraceError | undefined;
  #keeps = false;
  /** Memory for short messages, and its beginnings by their sizes. */
  readonly #short = new Uint8Array(SHORT_SIZE);
  readonly #shortWords = new Int32Array(this.#short.buffer);
  readonly #shorts: Uint8Array[] = [];
  readonly #shortSize: number;

  /** Begins to take what comes on a port, whose messages have so many bytes at most. */
  constructor(port: Port<unknown>, party: Party, maxMessageSize: number = SHORT_SIZE) {
    this.#shortSize = Math.min(SHORT_SIZE, maxMessageSize);
    const { inlet } = port.reader;
    const { outlet } = port.writer;
    this.#port = port;
    this.#party = party;
    this.what = this.#inlet = inlet;
    this.outlet = outlet;
    this.#wire = new CallWire(inlet, outlet, () => port.outbox);
    port.delivery.change(() => inlet.taker = this);
  }

  get isActive(): boolean {
    return this.#lost === undefined;
  }

  get keeps(): boolean {
    return this.#keeps && this.#lost === undefined;
  }

  /** Whether the process lives for what comes. */
  set keeps(on: boolean) {
    if (on !== this.#keeps) this.#port.delivery.change(() => this.#keeps = on);
  }

  get isDue(): boolean {
    return this.#isFresh || this.#party.isDue;
  }

  /**
   * Writes a message, or accepts it for writing.
   *
   * @throws {TypeError} for a value that cannot be carried.
   * @throws {MillraceError} if the other end is gone.
   */
  send(number: number, isMarked: boolean, values: readonly unknown[]): void {
    this.outlet.check();
    this.#wire.encode(values);
    this.#write(number, isMarked);
  }

  /** Writes the failure of a task. @throws {MillraceError} if the other end is gone. */
  sendFailure(number: number, texts: readonly string[], data: Piece | undefined): void {
    this.outlet.check();
    this.#wire.encodeTexts(texts, data);
    this.#write(number, true);
  }

  /** Has what was published looked at, also where no ring has come. */
  look(): void {
    rouse(this.#inlet);
  }

  pump(): boolean | MessageError {
    let mayLoad = true;
    let left = TAKE_COUNT;
    for (; left > 0 && this.#takeOne(mayLoad); left--) mayLoad = false;
    if (left === TAKE_COUNT) this.#lookAgain();
    if (!this.isDue) return false;
    this.#isFresh = false;
    this.#party.go();
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
    this.#party.finish(error);
  }

  #write(number: number, isMarked: boolean): void {
    const tag = isMarked ? (number | MARK) >>> 0 : number;
    this.#wire.send(FRAME_KIND_DATA, tag, settled);
  }

  /** Takes one message, or a part of one; false where there is none. */
  #takeOne(mayLoad: boolean): boolean {
    const inlet = this.#inlet;
    const { frame } = inlet;
    try {
      if (inlet.pull(LOOK, undefined, mayLoad) !== IN_RING) return false;
      const isWhole = frame.flags === WHOLE;
      if (isWhole && frame.size <= this.#shortSize) {
        this.#takeShort();
        return true;
      }
      const message = isWhole
        ? inlet.takeShown()
        : inlet.take(KEEP, undefined, false) as Message | undefined;
      if (message === undefined) return true;
      this.#take(message.kind, message.codec, message.tag, message.payload);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      if (!(error instanceof MessageError)) return false; // the port is lost, and says so itself
      // It is told behind its last frame.
      if (!frame.isLast) inlet.refusal = error;
      else this.#lose(frame.tag >>> 0, error);
    }
    return true;
  }

  /** Takes the short message that a look has shown. */
  #takeShort(): void {
    const inlet = this.#inlet;
    const { kind, codec, tag, size, lead } = inlet.frame;
    const at = (inlet.own & (inlet.capacity - 1)) + FRAME_HEADER_SIZE + lead;
    const payload = this.#shorts[size] ??= this.#short.subarray(0, size);
    copyInto(inlet.bytes, inlet.words, at, size, payload, this.#shortWords);
    inlet.release();
    this.#take(kind, codec, tag >>> 0, payload);
  }

  #take(kind: number, codec: number, tag: number, payload: Uint8Array): void {
    if (kind !== FRAME_KIND_DATA) return; // no pool and no worker has sent it
    this.#isFresh = true;
    const [number, isMarked] = [tag & ~MARK, tag >= MARK];
    try {
      if (codec !== CODEC_VALUES) {
        throw new MessageError("message.codec", `Cannot read message: its codec is ${codec}`);
      }
      const { values } = new ValueList(payload, this.#inlet.codecs);
      this.#party.take(number, isMarked, values);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.#lose(tag, error);
    }
  }

  #lose(tag: number, error: MessageError): void {
    this.#isFresh = true;
    this.#party.lose(tag & ~MARK, tag >= MARK, error);
  }

  /** A state that is final counts where nothing comes of a last look. */
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

/** What is not written any more, its sender hears of when the line is lost. */
function settled(): void {}
