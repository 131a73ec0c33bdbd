/**
 * The calls that one side has made: their ids, and what becomes of them. See `spec/call.md`.
 *
 * @module
 */

import {
  failure,
  lostError,
  MillraceError,
  type ReasonCode,
  reasonValue,
  throwRangeError,
} from "../error.ts";
import { layout } from "../memory/layout.ts";
import type { Incoming } from "../pipe/incoming.ts";
import {
  accept,
  giveUp,
  giveUpAll,
  keep,
  makeSend,
  type Outgoing,
  requireWritable,
  type Send,
  setAside,
} from "../pipe/outgoing.ts";
import { Bit } from "../ring/side.ts";
import { CallError } from "./error.ts";
import { cutText, hasName, readValues, sendOf } from "./values.ts";

const CALL = layout.FRAME_KIND_CALL;
const ID_MASK = layout.CALL_ID_MAX;

/** One call that was made. */
export class OwnCall {
  /** What is called. */
  readonly name: string;
  /** 0 until it is written. */
  id = 0;
  /** Whether its result is taken in pieces. */
  readonly takesItems: boolean;
  /** Whether it has ended for whoever made it: with a value, or an error. [call.once] */
  isOver = false;
  hasFailed = false;
  /** The value, or the error. */
  result: unknown;
  /** Items that nobody has taken. */
  readonly items: unknown[] = [];
  /** Items that may still come, and those that were taken. */
  allowed: number = layout.CALL_WINDOW;
  taken = 0;
  /** Whether it was given up, and its answer has not come. */
  isGivenUp = false;
  /** Is called whenever something has come of it. */
  changed: (() => void) | undefined;
  /** Its message, until all of that is in the ring. */
  send: Send | undefined;

  /** Makes a call that is not written. */
  constructor(name: string, takesItems: boolean) {
    this.name = name;
    this.takesItems = takesItems;
  }

  /** Whether there is something for whoever waits for it: its end, or an item. */
  get isReady(): boolean {
    return this.isOver || this.items.length > 0;
  }

  /** Ends it, with a value or an error. */
  end(hasFailed: boolean, result: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    this.hasFailed = hasFailed;
    this.result = result;
    this.changed?.();
  }
}

/** All that one side has under way. */
export class Caller {
  readonly #out: Outgoing;
  readonly #inc: Incoming;
  /** By id, also those that were given up and not answered. */
  readonly #calls = new Map<number, OwnCall>();
  /** Those that wait for a place, in the order in which they were made, and their messages. */
  readonly #kept = new Map<OwnCall, Send>();
  /** Cancels and credit that are not in the ring. */
  readonly #owed = new Set<Send>();
  /** How many of those under way were given up. */
  #givenUpCount = 0;
  /** Whether it is seen to that they are written. */
  #isGoingOn = false;
  /** Has something done later. */
  readonly #defer: (job: () => void) => void;
  /** The id of the last call: the next one has the free id after it. [call.id] */
  lastId = 0;

  /** Makes the caller of one port. */
  constructor(out: Outgoing, inc: Incoming, defer: (job: () => void) => void) {
    this.#out = out;
    this.#inc = inc;
    this.#defer = defer;
  }

  /** Whether as many are not answered as may, given up or not. [call.unanswered] */
  get #isCrowded(): boolean {
    return this.#calls.size >= layout.CALL_UNANSWERED_MAX;
  }

  /** Whether as many wait for their answers as may. [call.under_way] [call.gives_room] */
  get #isFull(): boolean {
    return this.#calls.size - this.#givenUpCount >= layout.CALL_UNDER_WAY_MAX;
  }

  /**
   * Makes a call, which is written or accepted for writing; or, while too many are under way, kept
   * as it is now until fewer are, after those that are kept already.
   *
   * @throws {CallError} `call.limit` while too many are under way, if it must not be kept, or if
   * there are as many as may be with those that were given up.
   */
  call(name: string, values: readonly unknown[], takesItems: boolean, mayKeep: boolean): OwnCall {
    requireWritable(this.#out);
    const isFull = this.#isFull;
    if (this.#isCrowded || (isFull && !mayKeep)) throw this.#limitError(name);
    const send = sendOf(this.#out, CALL, [requireName(name), ...values]);
    const call = new OwnCall(name, takesItems);
    if (mayKeep && (isFull || this.#kept.size > 0)) {
      keep(send);
      this.#kept.set(call, send);
    } else this.#write(call, send);
    return call;
  }

  #write(call: OwnCall, send: Send): void {
    let id = this.lastId;
    do {
      id = id >= ID_MASK ? 1 : id + 1;
    } while (this.#calls.has(id));
    this.lastId = call.id = send.tag = id;
    call.send = send;
    this.#calls.set(id, call);
    accept(this.#out, send, (reason) => {
      call.send = undefined;
      if (reason === undefined) return;
      if (this.#calls.get(id) === call) this.#free(call); // it has never been made
      call.end(true, reason);
    });
  }

  #limitError(name: string): CallError {
    const text = `Cannot call ${name}: ${this.#calls.size} calls are not answered`;
    return new CallError("call.limit", text);
  }

  /** A call is under way no more, and its place another one's. */
  #free(call: OwnCall): void {
    if (call.isGivenUp) this.#givenUpCount--;
    this.#calls.delete(call.id);
    this.#goOnLater();
  }

  #goOnLater(): void {
    if (this.#kept.size === 0 || this.#isGoingOn) return;
    this.#isGoingOn = true;
    this.#defer(() => this.#goOn());
  }

  /** Writes those that were kept, as many as there are places. */
  #goOn(): void {
    this.#isGoingOn = false;
    for (const [call, send] of this.#kept) {
      const isCrowded = this.#isCrowded;
      if (this.#isFull && !isCrowded) return;
      this.#kept.delete(call);
      try {
        if (isCrowded) throw this.#limitError(call.name); // [call.unanswered]
        requireWritable(this.#out);
        this.#write(call, send);
      } catch (error) {
        call.end(true, error);
      }
    }
  }

  /** Writes a notice, or accepts it; `settle` is told of it as by `accept`. */
  notify(name: string, values: readonly unknown[], settle: (reason?: unknown) => void): void {
    requireWritable(this.#out);
    accept(this.#out, sendOf(this.#out, CALL, [requireName(name), ...values]), settle);
  }

  /** Ends a call before its answer, and has the callee told. [call.give_up] */
  giveUp(call: OwnCall, error: unknown): void {
    if (call.isOver) return;
    call.items.length = 0;
    call.end(true, error);
    if (this.#kept.delete(call) || this.#calls.get(call.id) !== call) return;
    // If nothing of it, or a part, is in the ring, it has never been made.
    if (call.send !== undefined) return giveUp(this.#out, call.send, error);
    call.isGivenUp = true;
    this.#givenUpCount++;
    this.#owe(call, layout.CALL_MARK_CANCEL);
    this.#goOnLater(); // its place is another one's, though not its id
  }

  /** Takes the next item that has come; the caller has seen that there is one. [call.grant] */
  takeItem(call: OwnCall): unknown {
    const item = call.items.shift();
    if (++call.taken % layout.CALL_GRANT === 0 && !call.isOver) {
      this.#owe(call, layout.CALL_MARK_MORE);
    }
    return item;
  }

  /** Places a cancel or credit now, or before the next message. [call.cancel_owed] */
  #owe(call: OwnCall, mark: number): void {
    const out = this.#out;
    if ((out.bits & (Bit.ENDED | Bit.STOPPED)) !== 0) return;
    const aside = makeSend(CALL, layout.CODEC_VALUES, (call.id | mark) >>> 0);
    this.#owed.add(aside);
    setAside(out, aside, (reason) => {
      this.#owed.delete(aside);
      // Credit counts from now on, so that a callee that reads nothing cannot make more and more
      // of it be owed. [call.granted]
      if (reason === undefined && mark === layout.CALL_MARK_MORE) call.allowed += layout.CALL_GRANT;
    });
  }

  /**
   * Takes an answer or an item, or the report of one that was dropped. [call.bad_answer]
   *
   * @throws {MessageError} `call.answer` if no call of that id is under way. [call.unmatched]
   */
  answer(kind: number, tag: number, codec: number, payload: Uint8Array | MillraceError): void {
    const isItem = (tag & layout.CALL_MARK_MORE) !== 0;
    const id = tag & ID_MASK;
    // Of which all is in the ring. [call.match]
    const call = this.#calls.get(id);
    if (call === undefined || call.send !== undefined) {
      throw lostError("call.answer", `no call ${id} is under way`);
    }
    if (!isItem) {
      this.#free(call);
      // [call.cancel_owed] What is owed for it, which stands before all other messages.
      if (this.#owed.size > 0) {
        giveUpAll(this.#out, call, (send) => this.#owed.has(send) && (send.tag & ID_MASK) === id);
      }
    }
    if (call.isOver) return; // [call.late]
    try {
      if (payload instanceof MillraceError) throw payload;
      if (codec !== layout.CODEC_VALUES) throw lostError("message.codec", `its codec is ${codec}`);
      const list = readValues(payload, this.#inc.codecs);
      const { values, textSizes } = list;
      const isThrow = kind === layout.FRAME_KIND_THROW;
      const isSound = isThrow
        ? values.length <= 3 && hasName(list) && textSizes[1]! <= layout.CALL_TEXT_SIZE_MAX
        : values.length <= 1;
      if (!isSound) throw lostError("call.form", "its values are not those of an answer");
      if (isThrow) call.end(true, errorOf(values, call.name));
      else if (!isItem) call.end(false, values[0]);
      else if (!call.takesItems || call.allowed === 0) {
        const text = "Cannot take item: it was not asked for";
        this.giveUp(call, new CallError("call.items", text)); // [call.too_many]
      } else {
        call.allowed--;
        call.items.push(values[0]);
        call.changed?.();
      }
    } catch (report) {
      if (!(report instanceof MillraceError)) throw report;
      const { code, message, cause } = report;
      const error = new CallError(code, message, { cause });
      if (isItem) this.giveUp(call, error);
      else call.end(true, error);
    }
  }

  /** Whether a call with that id is under way. */
  has(tag: number): boolean {
    return this.#calls.has(tag & ID_MASK);
  }

  /** Ends all of them. [call.lost] */
  finish(error: MillraceError): void {
    const calls = [...this.#calls.values(), ...this.#kept.keys()];
    this.#calls.clear();
    this.#kept.clear();
    this.#givenUpCount = 0;
    for (const call of calls) {
      call.end(true, error);
      if (call.send !== undefined) giveUp(this.#out, call.send, error);
    }
  }

  /** Ends those that wait for an answer, and has their callees told. */
  giveUpAll(error: () => unknown): void {
    for (const call of [...this.#calls.values()]) this.giveUp(call, error());
  }
}

/** The error of a call whose deadline has passed. */
export function lateError(): MillraceError {
  return failure("wait.timeout", "call: no answer came in time");
}

/** The error of a throw, of what was called by a name. [call.thrown] */
export function errorOf([name, text, data]: unknown[], called: string): CallError {
  const code = name as ReasonCode;
  if (code === "call.method") { // of which the text is the callee's choice
    text = `Cannot call ${called}: the other side has no method of that name`;
  }
  const isCode = /^(call|message)\./.test(code) && reasonValue(code) !== undefined;
  return new CallError(isCode ? code : "call.thrown", text as string, { name: code, data });
}

/** Throws for what is no name of a method. */
function requireName(name: string): string {
  if (name !== "" && cutText(name, layout.CALL_NAME_SIZE_MAX) === name) return name;
  throwRangeError(`Cannot call: a name has 1 to ${layout.CALL_NAME_SIZE_MAX} bytes of UTF-8`);
}
