/**
 * The calls that one side has made: their ids, and what becomes of them. See `spec/call.md`.
 *
 * @module
 */

import { CallError } from "./error.ts";
import { cutText, ValueList } from "./values.ts";
import type { CallWire } from "./wire.ts";
import { isWellFormed, type Payload } from "../codec/codec.ts";
import { MessageError, type MillraceError, type ReasonCode } from "../error.ts";
import * as layout from "../memory/layout.ts";

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
  /** Whether there is something for whoever waits for it: its end, or an item. */
  isReady = false;
  value: unknown;
  error: unknown;
  /** Items that nobody has taken. */
  readonly items: unknown[] = [];
  /** Items that may still come, and those that were taken. */
  allowed: number = layout.CALL_WINDOW;
  taken = 0;
  /** Whether it was given up, and its answer has not come. */
  isGivenUp = false;
  /** Is called whenever something has come of it. */
  changed: (() => void) | undefined;
  /** Takes it back, while it is not in the ring. */
  takeBack: (() => void) | undefined;

  /** Makes a call that is not written. */
  constructor(name: string, takesItems: boolean) {
    this.name = name;
    this.takesItems = takesItems;
  }

  /** Ends it with a value. */
  succeed(value: unknown): void {
    if (this.isOver) return;
    this.isOver = this.isReady = true;
    this.value = value;
    this.changed?.();
  }

  /** Ends it with an error. */
  fail(error: unknown): void {
    if (this.isOver) return;
    this.isOver = this.isReady = this.hasFailed = true;
    this.error = error;
    this.changed?.();
  }
}

/** All that one side has under way. */
export class Caller {
  readonly #wire: CallWire;
  /** By id, also those that were given up and not answered. */
  readonly #calls = new Map<number, OwnCall>();
  /** Those that wait for a place, in the order in which they were made, and their payloads. */
  readonly #kept = new Map<OwnCall, Payload>();
  /** How many of those under way were given up. */
  #givenUpCount = 0;
  /** Whether it is seen to that they are written. */
  #isGoingOn = false;
  /** Has something done where a message may be written. */
  readonly #defer: (job: () => void) => void;
  /** The id of the next call, if it is free. [call.id] */
  nextId = 1;

  /** Makes the caller of one port. */
  constructor(wire: CallWire, defer: (job: () => void) => void) {
    this.#wire = wire;
    this.#defer = defer;
    wire.onPlaced((tag) => this.#grant(tag >>> 0));
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
   * as it is now until fewer are, behind those that are kept already.
   *
   * @throws {CallError} `call.limit` while too many are under way, if it must not be kept, or if
   * there are as many as may be with those that were given up.
   */
  call(name: string, values: readonly unknown[], takesItems: boolean, mayKeep: boolean): OwnCall {
    const wire = this.#wire;
    wire.outlet.check();
    const isFull = this.#isFull;
    if (this.#isCrowded || (isFull && !mayKeep)) throw this.#limitError(name);
    wire.encode([requireName(name), ...values]);
    const call = new OwnCall(name, takesItems);
    if (mayKeep && (isFull || this.#kept.size > 0)) this.#kept.set(call, wire.keep());
    else this.write(call);
    return call;
  }

  /** Writes the call whose payload the wire has. */
  write(call: OwnCall): void {
    let id = this.nextId;
    while (this.#calls.has(id)) id = nextAfter(id);
    this.nextId = nextAfter(id);
    call.id = id;
    this.#calls.set(id, call);
    const settle = (reason?: unknown) => {
      call.takeBack = undefined;
      if (reason === undefined) return;
      this.free(call.id); // it has never been made
      call.fail(reason);
    };
    call.takeBack = this.#wire.send(layout.FRAME_KIND_CALL, call.id, settle);
  }

  #limitError(name: string): CallError {
    const given = this.#isCrowded ? ", those included that were given up" : "";
    const text = `Cannot call ${name}: ${this.#calls.size} calls are not answered${given}`;
    return new CallError("call.limit", text);
  }

  /** A call is under way no more, and its place another one's. */
  free(id: number): void {
    if (this.#calls.get(id)?.isGivenUp) this.#givenUpCount--;
    this.#calls.delete(id);
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
    for (const [call, payload] of this.#kept) {
      const isCrowded = this.#isCrowded;
      if (this.#isFull && !isCrowded) return;
      this.#kept.delete(call);
      try {
        if (isCrowded) throw this.#limitError(call.name); // [call.unanswered]
        this.#wire.outlet.check();
        this.#wire.restore(payload);
        this.write(call);
      } catch (error) {
        call.fail(error);
      }
    }
  }

  /** Writes a notice, or accepts it; `settle` is called as for a message that is posted. */
  notify(name: string, values: readonly unknown[], settle: (reason?: unknown) => void): void {
    this.#wire.outlet.check();
    this.#wire.encode([requireName(name), ...values]);
    this.#wire.send(layout.FRAME_KIND_CALL, 0, settle);
  }

  /** Ends a call before its answer, and has the callee told. [call.give_up] */
  giveUp(call: OwnCall, error: unknown): void {
    if (call.isOver) return;
    call.items.length = 0;
    const { takeBack } = call;
    call.fail(error);
    if (this.#kept.delete(call) || this.#calls.get(call.id) !== call) return;
    if (takeBack === undefined) {
      call.isGivenUp = true;
      this.#givenUpCount++;
      this.#wire.owe(call.id | layout.CALL_MARK_CANCEL);
      return this.#goOnLater(); // its place is another one's, though not its id
    }
    // Nothing of it, or a part, is in the ring: it has never been made.
    this.free(call.id);
    takeBack();
  }

  /** Takes the next item that has come; the caller has seen that there is one. [call.grant] */
  takeItem(call: OwnCall): unknown {
    const item = call.items.shift();
    call.isReady = call.isOver || call.items.length > 0;
    if (++call.taken % layout.CALL_GRANT === 0 && !call.isOver) {
      this.#wire.owe((call.id | layout.CALL_MARK_MORE) >>> 0);
    }
    return item;
  }

  /**
   * Credit is in the ring. It counts from now on, so that a callee which reads nothing cannot make
   * more and more of it be owed. [call.granted]
   */
  #grant(tag: number): void {
    const call = this.#calls.get(tag & ID_MASK);
    if (call !== undefined && (tag & layout.CALL_MARK_MORE) !== 0) {
      call.allowed += layout.CALL_GRANT;
    }
  }

  /**
   * Takes an answer or an item.
   *
   * @throws {MessageError} `call.answer` if no call of that id is under way. [call.unmatched]
   */
  answer(kind: number, codec: number, tag: number, payload: Uint8Array): void {
    const isItem = (tag & layout.CALL_MARK_MORE) !== 0;
    const call = this.match(tag & ID_MASK, isItem);
    if (call.isOver) return; // [call.late]
    try {
      const isThrow = kind === layout.FRAME_KIND_THROW;
      const values = this.read(codec, payload, isThrow);
      if (isThrow) call.fail(errorOf(values, call.name));
      else if (!isItem) call.succeed(values[0]);
      else if (!call.takesItems || call.allowed === 0) {
        const text = "Cannot take item: it was not asked for";
        this.giveUp(call, new CallError("call.items", text)); // [call.too_many]
      } else {
        call.allowed--;
        call.items.push(values[0]);
        call.isReady = true;
        call.changed?.();
      }
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.#spoil(call, isItem, error);
    }
  }

  /** Takes note of an answer, or an item, that was dropped. [call.bad_answer] */
  lose(tag: number, error: MessageError): void {
    const isItem = (tag & layout.CALL_MARK_MORE) !== 0;
    const call = this.match(tag & ID_MASK, isItem);
    this.#spoil(call, isItem, error);
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
    this.#isGoingOn = false;
    for (const call of calls) {
      call.fail(error);
      call.takeBack?.();
    }
  }

  /** Ends those that wait for an answer, and has their callees told. */
  giveUpAll(error: () => unknown): void {
    for (const call of [...this.#calls.values()]) this.giveUp(call, error());
  }

  /**
   * The call of that id, of which all is in the ring: under way no more, if this is not one of its
   * items. [call.match]
   */
  match(id: number, isItem: boolean): OwnCall {
    const call = this.#calls.get(id);
    if (call === undefined || call.takeBack !== undefined) {
      throw new MessageError("call.answer", `Cannot take answer: no call ${id} is under way`);
    }
    if (isItem) return call;
    this.free(id);
    this.#wire.forget(id, ID_MASK);
    return call;
  }

  /** Ends a call whose answer, or an item of it, is no good. */
  #spoil(call: OwnCall, isItem: boolean, { code, message, cause }: MessageError): void {
    const error = new CallError(code, message, { cause });
    if (isItem) this.giveUp(call, error);
    else call.fail(error);
  }

  /** Reads the values of an answer, or of an item. @throws {MessageError} if they are none. */
  read(codec: number, payload: Uint8Array, isThrow: boolean): unknown[] {
    if (codec !== layout.CODEC_VALUES) {
      throw new MessageError("message.codec", `Cannot read answer: its codec is ${codec}`);
    }
    const list = new ValueList(payload, this.#wire.inlet.codecs);
    const { length } = list.values;
    const isSound = isThrow
      ? length <= 3 && list.hasName && list.isText(1, 0, layout.CALL_TEXT_SIZE_MAX)
      : length <= 1;
    if (isSound) return list.values;
    throw new MessageError("call.form", "Cannot read answer: its values are not those of one");
  }
}

function nextAfter(id: number): number {
  return id >= layout.CALL_ID_MAX ? 1 : id + 1;
}

/** The error of a throw, of what was called by a name. [call.thrown] */
export function errorOf([name, text, data]: unknown[], called: string): CallError {
  const code = name as ReasonCode;
  if (code === "call.method") { // of which the text is the callee's choice
    text = `Cannot call ${called}: the other side has no method of that name`;
  }
  const isCode = /^(call|message)\./.test(code) && layout.reasonValue(code) !== undefined;
  return new CallError(isCode ? code : "call.thrown", text as string, { name: code, data });
}

/** Throws for what is no name of a method. */
function requireName(name: string): string {
  const most = layout.CALL_NAME_SIZE_MAX;
  const isShort = 3 * name.length <= most;
  if (name !== "" && (isShort ? isWellFormed(name) : cutText(name, most) === name)) return name;
  throw new RangeError(`Cannot call: a name has 1 to ${most} bytes of UTF-8`);
}
