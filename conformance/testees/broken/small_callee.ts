/**
 * The small port: the calls that it serves.
 *
 * @module
 */

import { has } from "./faults.ts";
import { CALL, CANCEL, GRANT, ID, MORE, RETURN, THROW, VALUES, WINDOW } from "./small_caller.ts";
import { NAME_MAX, TEXT_MAX, UNDER_WAY_MAX, type Wire } from "./small_caller.ts";
import { PortError } from "./small_memory.ts";
import type { Message } from "./small_reader.ts";
import { isText, type Plain, readValues, writeValues } from "./small_values.ts";

const DEPTH_MAX = 128;

/** What a method gives that answers later. */
export const LATER: unique symbol = Symbol("later");

/** An error of a method, as it crosses. */
export class Thrown extends Error {
  readonly data: Plain;

  constructor(name: string, text: string, data: Plain) {
    super(text);
    this.name = name;
    this.data = data;
  }
}

/** A call or a notice that is being served. */
export interface Served {
  id: number;
  isTold: boolean;
  /** What the method does when it is told. */
  onTold?: () => void;
  /** A result in pieces: how many there are, were sent, and may be. */
  pieces?: { count: number; sent: number; allowed: number };
}

export type Method = (served: Served, args: Plain[]) => Plain;

/** What is called: the method, and its arguments. */
type Called = { method: Method; args: Plain[] };

/** The calls of the other side. */
export class Callee {
  readonly #wire: Wire;
  readonly #methods: ReadonlyMap<string, Method>;
  readonly #served = new Map<number, Served>();
  #notices = 0;
  #depth = 0;
  /** Nothing can be answered any more. */
  #isLost = false;

  constructor(wire: Wire, methods: ReadonlyMap<string, Method>) {
    this.#wire = wire;
    this.#methods = methods;
  }

  isServed(id: number): boolean {
    return this.#served.has(id);
  }

  /** Begins the method of a call or a notice, or refuses it. */
  begin(message: Message): void {
    if (has("offers_nothing") && this.#methods.size === 0) return;
    const id = message.tag & ID;
    const called = this.#judge(message);
    if (called instanceof PortError) return this.#refuse(id, called.code);
    const served: Served = { id, isTold: false };
    if (id === 0) this.#notices++;
    else this.#served.set(id, served);
    this.#depth++;
    let given: Plain;
    try {
      given = called.method(served, called.args);
    } catch (error) {
      this.#depth--;
      return this.#fail(served, error);
    }
    this.#depth--;
    if (given !== LATER) this.#return(served, given);
  }

  /** The first row of the table that holds. [call.refused] */
  #judge({ codec, payload, dropped }: Message): Called | PortError {
    if (dropped !== undefined) return new PortError(dropped);
    if (codec !== VALUES) return new PortError("message.codec");
    let values: Plain[];
    try {
      values = readValues(payload);
    } catch (error) {
      return error as PortError;
    }
    const [name, ...args] = values;
    const size = typeof name === "string" ? new TextEncoder().encode(name).length : 0;
    const isName = isText(payload) && size >= 1 && size <= NAME_MAX;
    if (!isName) return new PortError("call.form");
    const served = this.#served.size + this.#notices;
    if (served >= UNDER_WAY_MAX && !has("serves_any")) return new PortError("call.limit");
    const method = has("serves_prototype")
      ? this.#methods.get(name as string) ?? inherited(name as string)
      : this.#methods.get(name as string);
    if (has("method_first") && method === undefined) return new PortError("call.method");
    const most = has("depth_short") ? DEPTH_MAX - 1 : DEPTH_MAX;
    if (this.#depth >= most && !has("no_depth")) return new PortError("call.depth");
    return method === undefined ? new PortError("call.method") : { method, args };
  }

  #refuse(id: number, code: string): void {
    if (has("refusal_dropped") && code === "message.size") return;
    if (id === 0) return has("notice_faults_silent") ? undefined : this.#wire.report(code);
    this.#throw(id, new Thrown(code, code, undefined));
  }

  /** Throws, as the method did. [call.throw] */
  #fail(served: Served, error: unknown): void {
    const thrown = error instanceof PortError
      ? new Thrown(error.code, error.code, undefined)
      : error as Thrown;
    if (!(thrown instanceof Thrown)) throw error;
    if (served.id !== 0) return this.#settle(served, () => this.#throw(served.id, thrown));
    this.#notices--;
    const code = error instanceof PortError && error.code.startsWith("call.")
      ? error.code
      : "call.thrown";
    if (!has("notice_faults_silent")) this.#wire.report(code);
    if (has("notice_answered")) this.#throw(0, thrown);
  }

  #throw(id: number, { name, message, data }: Thrown): void {
    const code = has("refusal_plain") && name.startsWith("call.") ? "Error" : name;
    const error = [cut(code === "" ? "Error" : code, NAME_MAX), cut(message, TEXT_MAX)];
    let payload = writeValues(error);
    try {
      if (data !== undefined && !has("data_lost")) payload = writeValues([...error, data]);
    } catch { /* what cannot be written is left out */ }
    this.#write(THROW, id, payload);
  }

  /** Answers a call with its result. [call.result] */
  #return(served: Served, given: Plain): void {
    if (served.id === 0) {
      this.#notices--;
      if (has("notice_answered")) this.#write(RETURN, 0, writeValues([]));
      return;
    }
    this.#settle(served, () => {
      let payload: Uint8Array;
      try {
        payload = writeValues(given === undefined ? [] : [given]);
      } catch (error) {
        if (has("result_dropped")) return;
        return this.#throw(served.id, new Thrown((error as PortError).code, "", undefined));
      }
      this.#write(RETURN, served.id, payload);
      if (has("answers_twice")) this.#write(RETURN, served.id, payload);
    });
  }

  /** [call.answer] */
  #settle(served: Served, answer: () => void): void {
    if (this.#served.get(served.id) !== served) return;
    this.#served.delete(served.id);
    if (!has("cancelled_unanswered") || !served.isTold) answer();
  }

  #write(kind: number, tag: number, payload: Uint8Array): void {
    if (!this.#isLost) this.#wire.post({ kind, codec: VALUES, tag, payload });
  }

  /** Fails a call that is told. */
  giveUp(served: Served): void {
    this.#fail(served, new PortError("call.cancelled"));
  }

  /** Has a method give pieces, as far as there is room for them. [call.window] */
  sendPieces(served: Served, count: number): typeof LATER {
    served.pieces = { count, sent: 0, allowed: WINDOW };
    served.onTold = () => this.giveUp(served);
    this.#sendMore(served);
    return LATER;
  }

  #sendMore(served: Served): void {
    const pieces = served.pieces!;
    const allowed = has("window_open") ? Infinity : pieces.allowed;
    const hasRoom = () => this.#wire.isClear || has("items_kept"); // [call.next_item]
    while (pieces.sent < Math.min(pieces.count, allowed) && hasRoom()) {
      const tag = has("items_unmarked") ? served.id : (served.id | MORE) >>> 0;
      if (served.id !== 0) this.#write(RETURN, tag, writeValues([pieces.sent]));
      pieces.sent++;
    }
    if (pieces.sent === pieces.count) this.#return(served, pieces.count);
  }

  /** Goes on with the pieces for which there was no room. */
  goOn(): void {
    for (const served of this.#served.values()) {
      if (served.pieces !== undefined && this.#wire.isClear) this.#sendMore(served);
    }
  }

  /** A `more`: room for so many items. [call.crossed] */
  grant(id: number): void {
    const served = has("grant_any") ? [...this.#served.values()][0] : this.#served.get(id);
    if (served?.pieces === undefined) return this.#cross();
    served.pieces.allowed += GRANT;
    this.#sendMore(served);
  }

  /** [call.cancelled] */
  cancel(id: number): void {
    const served = this.#served.get(id);
    if (served === undefined && has("crossed_answered")) return this.#refuse(id, "call.cancelled");
    if (served === undefined) return this.#cross();
    if (has("cancel_silent") || served.isTold) return;
    served.isTold = true;
    if (has("cancel_stops_nothing") && served.pieces !== undefined) return;
    served.onTold?.();
  }

  #cross(): void {
    if (has("crossed_reported")) this.#wire.report("call.answer");
  }

  /** Answers a call that was cancelled before it began. [call.stops] */
  stop({ tag }: Message): void {
    if (!has("stopped_unanswered")) {
      this.#throw(tag & ID, new Thrown("call.cancelled", "", undefined));
    }
  }

  /** Tells all methods: nothing that they give can be written. [call.told] */
  lose(): void {
    if (has("told_never")) return;
    this.#isLost = true;
    const all = [...this.#served.values()];
    for (const served of all) {
      if (served.isTold) continue;
      served.isTold = true;
      served.onTold?.();
    }
    this.#served.clear();
  }

  /** Begins without any call. [call.vacated] */
  restart(): void {
    if (has("vacated_served_kept")) return;
    this.lose();
    this.#isLost = false;
  }
}

/** What a language adds to every object, taken for a method. */
function inherited(name: string): Method | undefined {
  const found: unknown = ({} as Record<string, unknown>)[name];
  return found === undefined ? undefined : () => String(found);
}

/** A text of at most so many bytes, cut at a character. */
function cut(text: string, max: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= max || has("texts_uncut")) return text;
  let end = max;
  while (!has("cut_inside") && (bytes[end]! & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(bytes.subarray(0, end));
}

export { CALL, CANCEL };
