/**
 * The calls of the peer: which are served, which are refused, and how they are answered. See
 * `spec/call.md`.
 *
 * @module
 */

import { type CodecTable, NO_BYTES } from "../codec/codec.ts";
import { lostError, MessageError, type MillraceError, type ReasonCode } from "../error.ts";
import { layout } from "../memory/layout.ts";
import type { Incoming } from "../pipe/incoming.ts";
import { tendSoon } from "../pipe/tend.ts";
import { accept, makeSend, type Outgoing, type Send } from "../pipe/outgoing.ts";
import { Bit } from "../ring/side.ts";
import { runWith } from "./context.ts";
import { CallError } from "./error.ts";
import { isInPieces, isLater, Served, stepsOf } from "./served.ts";
import {
  cutText,
  encodeTexts,
  hasName,
  type Manner,
  type Piece,
  pieceOf,
  readValues,
  sendOf,
} from "./values.ts";

/** What is called under one name. */
export type Method = (values: unknown[]) => unknown;

const enum Kept {
  /** Most bytes of arguments that are kept, except those of one call. */
  SIZE = 64 * 1024 * 1024,
  /**
   * Most calls and notices that are not answered yet, by the limit of calls that are served: these,
   * as many refusals of calls, and notices. A peer that does not take its answers cannot have more.
   * [call.under_way]
   */
  TIMES = 3,
}

/** Methods that stand on the stack of this thread. [call.depth] */
let depth = 0;

/** Serves the calls of one peer. */
export class Callee {
  /** What is served. [call.served_only] */
  methods: ReadonlyMap<string, Method> | undefined;
  /** How many calls and notices have come and were not begun, and their bytes. */
  count = 0;
  size = 0;
  readonly #out: Outgoing;
  readonly #inc: Incoming;
  /** Has something done where the application's code may run. */
  readonly #defer: (job: () => void) => void;
  /** By their ids, until their answers are in the ring; and notices by themselves. */
  readonly #calls = new Map<number | Served, Served>();
  #keptSize = 0;
  #servedCount = 0;

  /** Makes the callee of one port. */
  constructor(out: Outgoing, inc: Incoming, defer: (job: () => void) => void) {
    this.#out = out;
    this.#inc = inc;
    this.#defer = defer;
  }

  /** Whether anything is served, or not answered. */
  get isBusy(): boolean {
    return this.#calls.size > 0;
  }

  /**
   * Takes a call, a notice, a cancel or credit.
   *
   * @throws {MessageError} the report of one that is dropped.
   */
  take(codec: number, tag: number, payload: Uint8Array): void {
    const id = tag & layout.CALL_ID_MAX;
    if (tag !== id) {
      if (!isMark(tag, codec, payload.length)) throw strayError();
      const served = this.#calls.get(id);
      if (served === undefined || served.isDone) return; // [call.crossed]
      if ((tag & layout.CALL_MARK_MORE) !== 0) {
        served.room += layout.CALL_GRANT;
        if (served.steps !== undefined) this.#stepLater(served);
      } else if (!served.isTold) {
        served.isTold = true;
        if (!served.hasBegun) this.#leaveInbox(served); // [call.stops]
        else this.#defer(() => this.#cancel(served));
      }
      return;
    }
    let code: ReasonCode | undefined;
    if (codec !== layout.CODEC_VALUES) code = "message.codec";
    else if (this.#keptSize > 0 && this.#keptSize + payload.length > Kept.SIZE) {
      code = faultOf(payload);
    }
    this.#enter(id, code ? NO_BYTES : payload, code);
  }

  /** Takes note of one that was dropped. False if its report is to be read. */
  lose(tag: number, error: MillraceError): boolean {
    const id = tag & layout.CALL_ID_MAX;
    if (tag !== id) throw strayError();
    // It was taken back, and so never made; or it is a notice, of which this is the report.
    if (error.code === "message.cancelled" || id === 0) return false;
    this.#enter(id, NO_BYTES, error.code);
    return true;
  }

  /** Has all methods know that no answer of theirs can be written any more. [call.told] */
  tellAll(): void {
    const all = [...this.#calls.values()];
    this.#calls.clear();
    this.count =
      this.size =
      this.#keptSize =
      this.#servedCount =
        0;
    for (const served of all) {
      if (served.isDone) continue;
      served.isDone = true;
      served.payload = NO_BYTES;
      if (!served.hasBegun) continue;
      if (!served.isTold) served.tell();
      if (!served.isStepping) quit(served);
    }
  }

  /** Begins to keep a call or a notice; one with a code is to be refused. [call.duplicate] */
  #enter(id: number, payload: Uint8Array, code?: ReasonCode): void {
    if (id !== 0 && this.#calls.has(id)) {
      throw lostError("call.duplicate", `call ${id} is not answered yet`);
    }
    if (this.#calls.size >= Kept.TIMES * layout.CALL_UNDER_WAY_MAX) {
      throw lostError("call.limit", "too many calls are not answered");
    }
    const served = new Served(id, payload);
    this.#calls.set(id || served, served);
    this.#keptSize += served.size;
    if (code !== undefined) return this.#defer(() => this.#refuse(served, code));
    this.count++;
    this.size += served.size;
    this.#defer(() => this.#begin(served));
  }

  /** Begins with one, or gives it up. Returns its list of values, which is no longer kept. */
  #leaveInbox(served: Served): Uint8Array {
    const { payload } = served;
    this.count--;
    this.size -= served.size;
    served.payload = NO_BYTES;
    return payload;
  }

  /** Begins one, or refuses it by the first row of the table that holds. [call.refused] */
  #begin(served: Served): void {
    if (served.isDone) return;
    if (served.isTold) return this.#refuse(served, "call.cancelled");
    const payload = this.#leaveInbox(served);
    if (this.#isMute && served.id !== 0) return this.#leave(served); // nobody can be answered
    let values: unknown[];
    try {
      values = readCall(payload, this.#inc.codecs);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      return this.#refuse(served, error.code, error.message);
    }
    if (this.#servedCount >= layout.CALL_UNDER_WAY_MAX) return this.#refuse(served, "call.limit");
    if (depth >= layout.CALL_DEPTH_MAX) return this.#refuse(served, "call.depth");
    const name = values.shift() as string;
    const method = this.methods?.get(name);
    if (method === undefined) return this.#refuse(served, "call.method", name);
    served.hasBegun = true;
    this.#servedCount++;
    this.#run(served, () => method(values), (result) => this.#conclude(served, result));
  }

  /** Runs the application's code, and hands its result to `done`, now or later. */
  #run(served: Served, work: () => unknown, done: (result: unknown) => void): void {
    let result: unknown;
    depth++;
    try {
      result = runWith(served, work);
    } catch (error) {
      return this.#fail(served, error);
    } finally {
      depth--;
    }
    this.#hand(served, result, done);
  }

  /**
   * Hands a result to `done`, or what a promise, of whatever kind, settles with first. What the
   * application's code throws, also while somebody looks at the result, fails the call.
   * [call.throw]
   */
  #hand(served: Served, result: unknown, done: (result: unknown) => void): void {
    let turn: number | undefined;
    const settle = (hasFailed: boolean, value: unknown) => {
      if (turn !== undefined && served.turn !== turn) return; // it has settled before
      served.turn++;
      if (hasFailed) this.#fail(served, value);
      else this.#hand(served, value, done);
    };
    try {
      if (!isLater(result)) return done(result);
      turn = ++served.turn;
      result.then((value) => settle(false, value), (error) => settle(true, error));
    } catch (error) {
      settle(true, error);
    }
  }

  /** The method has given its result, or what gives it in pieces. */
  #conclude(served: Served, result: unknown): void {
    if (served.isDone) return;
    // Nobody takes what a notice gives.
    if (served.isNotice || !isInPieces(result)) return this.#answer(served, result);
    this.#run(served, () => served.steps = stepsOf(result), () => this.#step(served));
  }

  /** Goes on with items where the application's code may run; once, whoever asks for it. */
  #stepLater(served: Served): void {
    if (served.isStepDue) return;
    served.isStepDue = true;
    this.#defer(() => {
      served.isStepDue = false;
      this.#step(served);
    });
  }

  /**
   * Writes items, as many as there is room for: for a caller that takes none, the next one is not
   * asked for before the last one is in the ring. [call.window] [call.next_item]
   */
  #step(served: Served): void {
    // A loop, for what comes at once: a generator of many items must not fill the stack.
    while (!served.isDone && !served.isStepping && !served.isPlacing) {
      if (served.isTold) return this.#cancel(served);
      const { next } = served;
      if (next !== undefined) {
        if (served.room === 0) return; // the next `more` goes on
        served.next = undefined;
        served.room--;
        const send = this.#encode(served, next.value);
        if (send === undefined) return quit(served);
        send.tag = (served.id | layout.CALL_MARK_MORE) >>> 0;
        served.isPlacing = true;
        let isNow = true;
        this.#send(send, (reason) => {
          if (reason !== undefined) return; // nothing can be written any more
          served.isPlacing = false;
          if (!isNow) this.#stepLater(served);
        });
        isNow = false;
        continue;
      }
      // Also where there is no room: it may be that nothing more comes, which needs none.
      served.isStepping = true;
      let isNow = true;
      this.#run(served, () => served.steps!.next(), (step) => {
        served.isStepping = false;
        if (served.isDone) return;
        if (!step || typeof step !== "object") throw new TypeError("A step is no object");
        // It may be anything: each property is read once.
        const { done, value } = step as IteratorResult<unknown>;
        if (done) this.#answer(served, value);
        else served.next = { value };
        if (!isNow) this.#step(served);
      });
      isNow = false;
    }
  }

  /** It was given up while its method runs. [call.cancelled] */
  #cancel(served: Served): void {
    if (served.isDone) return;
    served.tell();
    if (served.steps === undefined || served.isStepping) return;
    quit(served);
    this.#answer(served, undefined);
  }

  /** [call.answer] */
  #answer(served: Served, result: unknown): void {
    if (served.isDone) return;
    if (served.id === 0) return this.#leave(served);
    if (served.isTold && result === undefined) return this.#refuse(served, "call.cancelled");
    const send = this.#encode(served, result);
    if (send !== undefined) this.#writeAnswer(served, send);
  }

  /** Encodes a result or an item; if that cannot be, this is the answer. [call.result] */
  #encode(served: Served, value: unknown): Send | undefined {
    try {
      return sendOf(this.#out, layout.FRAME_KIND_RETURN, value === undefined ? [] : [value]);
    } catch (error) {
      this.#refuse(served, "call.result", textOf(error));
      return undefined;
    }
  }

  /** A method has failed. [call.throw] */
  #fail(served: Served, error: unknown): void {
    served.isStepping = false;
    if (!served.isDone) this.#refuse(served, "call.thrown", textOf(error), error);
  }

  /** Answers with a throw, by the code or by what was thrown; of a notice, reports it. */
  #refuse(served: Served, code: ReasonCode, text: string = code, error?: unknown): void {
    if (served.isDone) return;
    if (served.isNotice) {
      this.#leave(served);
      this.#inc.queue.push(lostError(code, `its notice failed: ${text}`));
      return tendSoon(this.#inc.link);
    }
    const isThrown = code === "call.thrown";
    const name = cutText(isThrown ? nameOf(error) : code, layout.CALL_NAME_SIZE_MAX) || "Error";
    const data = isThrown ? dataOf(error, this.#out) : undefined;
    const send = makeSend(layout.FRAME_KIND_THROW);
    encodeTexts([name, cutText(text, layout.CALL_TEXT_SIZE_MAX)], data, send);
    this.#writeAnswer(served, send);
  }

  #writeAnswer(served: Served, send: Send): void {
    if (served.isDone) return;
    served.isDone = true;
    send.tag = served.id;
    this.#send(send, () => this.#leave(served));
  }

  /** Writes, or accepts. If nothing can be written any more, its calls are told by what is read. */
  #send(send: Send, settle: (reason?: unknown) => void): void {
    if (this.#isMute) settle(send);
    else accept(this.#out, send, settle);
  }

  /** Whether nothing can be written any more, because this end has ended its stream or stopped. */
  get #isMute(): boolean {
    return (this.#out.bits & (Bit.ENDED | Bit.STOPPED)) !== 0;
  }

  /** Keeps nothing more of a call. */
  #leave(served: Served): void {
    served.isDone = true;
    const key = served.id || served;
    if (this.#calls.get(key) !== served) return;
    this.#calls.delete(key);
    this.#keptSize -= served.size;
    if (served.hasBegun) this.#servedCount--;
  }
}

/** Ends what gives items, whose result nobody takes. */
function quit({ steps }: Served): void {
  try {
    const last = steps?.return?.();
    if (isLater(last)) last.then(undefined, () => {});
  } catch {
    // Its call is answered, or cannot be: nobody wants to know.
  }
}

/** The values of a call, of which the first is its name. @throws {MessageError} if it is none. */
function readCall(payload: Uint8Array, table: CodecTable): unknown[] {
  const list = readValues(payload, table);
  if (hasName(list)) return list.values;
  throw lostError("call.form", "it has no name");
}

/** Why a list is refused for which there is no room: because it is no call, if it is none. */
function faultOf(payload: Uint8Array): ReasonCode {
  try {
    readCall(payload, undefined);
    return "call.limit";
  } catch (error) {
    return (error as Partial<MessageError>).code ?? "call.limit";
  }
}

/** Whether a message is a cancel or credit: by its tag, and as it has nothing else. [call.stray] */
export const isMark = (tag: number, codec: number, size: number): boolean => {
  const mark = (tag & layout.CALL_MARK_ALL) >>> 0;
  const isOne = mark === layout.CALL_MARK_CANCEL || mark === layout.CALL_MARK_MORE;
  return isOne && codec === layout.CODEC_VALUES && size === 0 && (tag & layout.CALL_ID_MAX) !== 0;
};

/** What an error has beside its text, if it can be carried. */
export function dataOf(error: unknown, manner: Manner): Piece | undefined {
  try {
    const isError = !!error && typeof error === "object" && "message" in error;
    const data = isError ? (error as { data?: unknown }).data : error;
    return data === undefined ? undefined : pieceOf(data, manner);
  } catch {
    return undefined;
  }
}

/** The name under which an error is told. */
export function nameOf(error: unknown): string {
  // To ask what it is may run the application's code, or throw.
  return stringOf(() => {
    if (!(error instanceof CallError)) return (error as { name?: unknown }).name;
    return error.code === "call.thrown" ? error.remoteName : error.code;
  }, "Error");
}

/** Its text. */
export function textOf(error: unknown): string {
  const isObject = !!error && typeof error === "object";
  return stringOf(() => isObject ? (error as { message?: unknown }).message : String(error), "");
}

/** A string that the application gives, in whatever way. */
function stringOf(get: () => unknown, otherwise: string): string {
  try {
    const value = get();
    return typeof value === "string" ? value : otherwise;
  } catch {
    return otherwise;
  }
}

/** The report of a message that is none of a call. [call.stray] */
export function strayError(): MillraceError {
  return lostError("call.form", "it is none of a call");
}
