/**
 * The small port: the calls that it serves.
 *
 * @module
 */

import { Transcript } from "../../kit/crc32.ts";
import { Branch, fill, folded, Random, valueOf, Workload } from "../../kit/live/workload.ts";
import type { Ran, Task, TreeTask } from "../../kit/protocol.ts";
import { fromHex } from "../../reference/bytes.ts";
import type { Settled as Told, Value } from "../../reference/case.ts";
import { reasonNames } from "../../reference/layout.ts";
import { type Calling, packHex } from "../server.ts";
import { has } from "./faults.ts";
import { pause, PortError, roundUp } from "./small_memory.ts";
import type { Port } from "./small_port.ts";
import type { Message, Reader } from "./small_reader.ts";
import type { Writer } from "./small_writer.ts";

// The small port: lists of values, the payload of codec `values`.

const [BYTES, TEXT, JSON_TEXT, BATCH] = [0, 1, 2, 3];
const CODEC_APPLICATION = 128;
const [HEADER, ENTRY, ALIGN, COUNT_MAX] = [8, 8, 8, 256];

/** What no value of a list can hold. */
const ODD: unique symbol = Symbol("odd");

/** What a method takes and gives: a text, JSON, bytes, or nothing. */
export type Plain = unknown;

/** Bytes of a codec of their own. */
class Coded {
  readonly codec: number;
  readonly bytes: Uint8Array;

  constructor(codec: number, bytes: Uint8Array) {
    this.codec = codec;
    this.bytes = bytes;
  }
}

/** Writes a list. Throws `call.result` for what it cannot hold. [call.values] */
export function writeValues(values: readonly Plain[]): Uint8Array {
  if (values.length === 0 && !has("empty_list_written")) return new Uint8Array(0);
  const all = values.map(encode);
  let end = HEADER + ENTRY * all.length;
  const places = all.map(({ bytes }) => {
    const at = has("values_packed") ? end : roundUp(end, ALIGN);
    end = at + bytes.length;
    return at;
  });
  const list = new Uint8Array(has("values_padded") ? roundUp(end, ALIGN) : end);
  const view = new DataView(list.buffer);
  view.setUint32(0, all.length, true);
  all.forEach(({ codec, bytes }, index) => {
    view.setUint32(HEADER + ENTRY * index, bytes.length, true);
    list[HEADER + ENTRY * index + 4] = codec;
    list.set(bytes, places[index]);
  });
  return list;
}

function encode(value: Plain): Coded {
  if (value instanceof Coded) return value;
  if (value instanceof Uint8Array) return new Coded(BYTES, value);
  if (value === undefined && has("absent_null")) return encode(null);
  if (value === undefined) return new Coded(JSON_TEXT, new Uint8Array(0));
  const utf8 = (text: string) => new TextEncoder().encode(text);
  if (typeof value === "string") return new Coded(TEXT, utf8(value));
  if (value === ODD) throw new PortError("call.result");
  return new Coded(JSON_TEXT, utf8(JSON.stringify(value)));
}

/** Makes all checks of the table, in its order, and gives the values. [call.values_check] */
function readValues(list: Uint8Array): Plain[] {
  if (list.length === 0) return [];
  const refuse = (condition: boolean) => {
    if (condition) throw new PortError("message.values");
  };
  refuse(list.length < HEADER);
  const view = new DataView(list.buffer, list.byteOffset, list.length);
  const count = view.getUint32(0, true);
  const isReserved = view.getUint32(4, true) !== 0 && !has("list_reserved_ignored");
  refuse(count < 1 || count > COUNT_MAX || isReserved);
  let end = HEADER + ENTRY * count;
  refuse(end > list.length);
  const found: Coded[] = [];
  for (let index = 0; index < count; index++) {
    const entry = HEADER + ENTRY * index;
    const [size, codec] = [view.getUint32(entry, true), list[entry + 4]!];
    const begin = roundUp(end, ALIGN);
    refuse((view.getUint32(entry + 4, true) >>> 8) !== 0);
    refuse((codec === BATCH || codec === VALUES) && !has("lists_nested"));
    end = has("list_overflow") ? (begin + size) >>> 0 : begin + size;
    refuse(end > list.length);
    found.push(new Coded(codec, list.slice(begin, end)));
  }
  refuse(end !== list.length && !has("list_tail_ignored"));
  return found.map(decode);
}

function decode({ codec, bytes }: Coded): Plain {
  if (codec > VALUES && codec < CODEC_APPLICATION) throw new PortError("message.codec");
  if (codec === BYTES) return bytes;
  if (codec !== TEXT && codec !== JSON_TEXT) return new Coded(codec, bytes);
  if (codec === JSON_TEXT && bytes.length === 0) return undefined;
  const text = tryOr("message.text", () => strict.decode(bytes));
  return codec === TEXT ? text : tryOr("message.json", () => JSON.parse(text));
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function tryOr<T>(code: string, call: () => T): T {
  try {
    return call();
  } catch {
    throw new PortError(code);
  }
}

/** The codec of a first value: a name is a text, and JSON of a string is none. */
function isText(list: Uint8Array): boolean {
  return list.length >= HEADER + ENTRY && list[HEADER + 4] === TEXT;
}

/** A value as the kit sends it. */
function fromKit(value: Value): Plain {
  if ("text" in value) return value.text;
  if ("json" in value) {
    return typeof value.json === "string"
      ? new Coded(JSON_TEXT, new TextEncoder().encode(JSON.stringify(value.json)))
      : value.json;
  }
  if ("hex" in value) return new Coded((value.codec ?? BYTES) as number, fromHex(value.hex!));
  return undefined;
}

/** A value as the kit is told of it. */
function toKit(value: Plain): Value {
  if (value === undefined) return {};
  if (value instanceof Uint8Array) return { hex: packHex(value) };
  if (value instanceof Coded) return { hex: packHex(value.bytes), codec: value.codec };
  return { json: value };
}

// The small port: the calls that it makes.

/** Most bytes of a name, and of the text of an error. */
export const [NAME_MAX, TEXT_MAX] = [255, 4096] as const;

export const [CALL, RETURN, THROW] = [3, 4, 5] as const;
export const VALUES = 4;
/** The marks of a tag, and the id beside them. */
export const [CANCEL, MORE, ID] = [2 ** 30, 2 ** 31, 2 ** 30 - 1] as const;
export const [UNDER_WAY_MAX, UNANSWERED_MAX] = [1024, 2048] as const;
export const [WINDOW, GRANT] = [16, 8] as const;

/** What has come of a call. */
export type Settled =
  | { code: "returned"; value: Plain }
  | { code: string; name?: string; text?: string; data?: Plain };

/** A call that was made. */
export interface Call {
  id: number;
  isStream: boolean;
  items: Plain[];
  received: number;
  taken: number;
  granted: number;
  settled?: Settled;
}

/** What a caller needs of its port. */
export interface Wire {
  /** Has a message written as soon as that is possible, unless it is stale by then; says when. */
  post(message: Message, isStale?: () => boolean, placed?: () => void): void;
  /** Whether all that was accepted is in the ring. */
  readonly isClear: boolean;
  report(code: string): void;
}

const KNOWN = /^(?:call|message)\.\w+$/;

/** The calls of one side of a port. */
export class Caller {
  readonly #wire: Wire;
  readonly #underWay = new Map<number, Call>();
  readonly #first: number;
  #next: number;
  /** Why no answer can come any more. */
  #lost: PortError | undefined;

  constructor(wire: Wire, first: number) {
    this.#wire = wire;
    this.#first = first;
    this.#next = first;
  }

  /** Makes a call, which `write` writes; throws where that is not possible. */
  call(name: string, values: readonly Plain[], isStream: boolean, write: Write): Call {
    if (this.#lost !== undefined) throw this.#lost; // [call.lost]
    this.#checkLimits();
    const id = this.#takeId();
    const payload = writeValues([name, ...values]);
    const call: Call = {
      id,
      isStream,
      items: [],
      received: 0,
      taken: 0,
      granted: 0,
    };
    this.#underWay.set(id, call);
    try {
      write({ kind: CALL, codec: VALUES, tag: id, payload });
    } catch (error) {
      this.#underWay.delete(id); // it was never made
      throw error;
    }
    return call;
  }

  /** [call.under_way] [call.unanswered] */
  #checkLimits(): void {
    const all = [...this.#underWay.values()];
    const waiting = has("given_up_counts") ? all : all.filter(({ settled }) => !settled);
    const isFull = waiting.length >= UNDER_WAY_MAX && !has("under_way_ignored");
    const isCrowded = all.length >= UNANSWERED_MAX && !has("unanswered_unbounded");
    if (isFull || isCrowded) throw new PortError("call.limit");
  }

  /** Throws where nothing can be called any more. */
  requireThere(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** [call.id] */
  #takeId(): number {
    const after = (id: number) => id === ID ? has("id_zero") ? 0 : 1 : id + 1;
    let id = this.#next;
    while (this.#underWay.has(id)) id = after(id);
    this.#next = has("ids_stand_still") ? id : after(id);
    return id;
  }

  /** Ends a call that is not answered yet, and tells its callee. [call.give_up] */
  giveUp(call: Call, code: string): void {
    if (call.settled !== undefined && !has("ends_twice")) return;
    call.settled = { code };
    call.items = [];
    if (!this.#underWay.has(call.id)) return;
    if (has("frees_early")) this.#underWay.delete(call.id);
    if (has("no_cancel")) return;
    const isKept = has("cancel_stale") || has("vacated_posts_kept");
    const isStale = () => !this.#underWay.has(call.id) && !isKept;
    const cancel = { kind: CALL, codec: VALUES, tag: (call.id | CANCEL) >>> 0 };
    const payload = has("cancel_listed") ? writeValues(["cancel"]) : new Uint8Array(0);
    this.#wire.post({ ...cancel, payload }, has("frees_early") ? undefined : isStale);
    if (has("cancel_twice")) this.#wire.post({ ...cancel, payload }, isStale);
  }

  /** The next item of a call. [call.grant] */
  take(call: Call): { item: Plain } | undefined {
    if (call.items.length === 0) return undefined;
    const item = call.items.shift();
    call.taken++;
    const isOpen = this.#underWay.has(call.id) && call.settled === undefined;
    const isDue = call.taken % GRANT === (has("grant_late") ? 1 : 0) && call.taken > 1;
    if (isDue && (isOpen || has("grants_answered")) && !has("never_grants")) {
      if (has("granted_early")) call.granted++;
      const more = { kind: CALL, codec: VALUES, tag: (call.id | MORE) >>> 0 };
      const isStale = () => !this.#underWay.has(call.id) && !has("grants_answered");
      const placed = () => has("granted_early") ? 0 : call.granted++; // [call.granted]
      this.#wire.post({ ...more, payload: new Uint8Array(0) }, isStale, placed);
    }
    return { item };
  }

  /** Takes an answer or an item. */
  answer(message: Message): void {
    const { kind, tag } = message;
    const isItem = tag >= MORE;
    const call = this.#find(tag % CANCEL);
    if (call === undefined) {
      // [call.unmatched]
      if (!has("unmatched_silent")) this.#wire.report("call.answer");
      return;
    }
    if (!isItem) this.#underWay.delete(call.id);
    if (call.settled !== undefined && !has("late_ends")) return; // [call.late]
    const found = judge(message);
    if (isItem) return this.#feed(call, found);
    if (has("bad_list_dropped") && found instanceof PortError) return;
    if (found instanceof PortError) call.settled = { code: found.code }; // [call.bad_answer]
    else if (kind === RETURN) call.settled = { code: "returned", value: found[0] };
    else call.settled = thrown(found);
  }

  /** [call.match] */
  #find(id: number): Call | undefined {
    if (!has("match_newest")) return this.#underWay.get(id);
    return [...this.#underWay.values()].at(-1);
  }

  #feed(call: Call, found: Plain[] | PortError): void {
    if (found instanceof PortError) return this.giveUp(call, found.code);
    call.received++;
    // [call.too_many]
    const allowed = call.isStream ? WINDOW + GRANT * call.granted : 0;
    if (call.received > allowed && !has("items_unbounded")) return this.giveUp(call, "call.items");
    call.items.push(found[0]);
  }

  /** Ends all calls: no answer can come. [call.lost] */
  lose(error: PortError): void {
    if (has("loss_silent") || this.#lost !== undefined) return;
    this.#lost = error;
    for (const call of this.#underWay.values()) call.settled ??= { code: error.code };
    this.#underWay.clear();
  }

  /** Begins without any call. [call.vacated] */
  restart(final: PortError = new PortError("peer.failed")): void {
    if (has("vacated_calls_kept")) return;
    this.lose(final);
    this.#lost = undefined;
    if (!has("vacated_ids_kept")) this.#next = this.#first;
  }
}

/** Writes a call, and waits for room. */
type Write = (message: Message) => void;

/** The values of an answer or an item, or what is wrong with it. [call.bad_answer] */
function judge({ kind, codec, payload, dropped }: Message): Plain[] | PortError {
  if (dropped !== undefined) return new PortError(dropped);
  if (codec !== VALUES) return new PortError("message.codec");
  try {
    const values = readValues(payload);
    const isGood = kind === RETURN
      ? values.length <= 1
      : isText(payload) && [2, 3].includes(values.length) && hasSizes(values);
    return isGood || has("forms_ignored") ? values : new PortError("call.form");
  } catch (error) {
    return error as PortError;
  }
}

/** Whether name and text of an error are texts that are neither too short nor too long. */
function hasSizes([name, text]: Plain[]): boolean {
  const size = (value: Plain) => new TextEncoder().encode(value as string).length;
  return typeof text === "string" && size(name) >= 1 && size(name) <= NAME_MAX &&
    size(text) <= TEXT_MAX;
}

/** [call.thrown] */
function thrown([name, text, data]: Plain[]): Settled {
  const code = name as string;
  if (isCode(code)) return { code };
  return { code: "call.thrown", name: code, text: text as string, data };
}

/** Whether an error's name is a code that speaks of a call. */
function isCode(name: string): boolean {
  if (has("thrown_codes_ignored")) return false;
  return has("thrown_any_code") || KNOWN.test(name) && reasonNames().includes(name);
}

const DEPTH_MAX = 128;

/** What a method gives that answers later. */
const LATER: unique symbol = Symbol("later");

/** An error of a method, as it crosses. */
class Thrown extends Error {
  readonly data: Plain;

  constructor(name: string, text: string, data: Plain) {
    super(text);
    this.name = name;
    this.data = data;
  }
}

/** A call or a notice that is being served. */
interface Served {
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

// The small port: the methods that the kit calls, and the calls that it has the port make.

/** How long a call may wait for room that does not wait for its answer. */
const WRITE_MS = 1_000;
/** How long the peer of a tree is waited for. */
const HOLD_MS = 1;

/** What a handle of the kit keeps. */
export class Kit implements Calling {
  readonly #port: Port;
  readonly #calls: (Call | undefined)[] = [];
  readonly #notes: Plain[] = [];
  #held = 0;
  #told = 0;

  constructor(port: Port) {
    this.#port = port;
  }

  /** What the port serves. */
  get methods(): ReadonlyMap<string, Method> {
    return new Map<string, Method>([
      ["identity", (_, [value]) => value],
      ["add", (_, [a, b]) => add(a, b)],
      ["fail", (_, [name, text, data]) => {
        throw new Thrown(name as string, text as string, data);
      }],
      ["odd", () => ODD],
      ["count", (served, [count]) => this.#port.callee.sendPieces(served, count as number)],
      ["hold", (served) => {
        this.#held++;
        served.onTold = () => {
          this.#held--;
          this.#told++;
          this.#port.callee.giveUp(served);
        };
        return LATER;
      }],
      ["held", () => this.#held],
      ["note", (_, [value]) => void this.#notes.push(value)],
      ["noted", () => this.#notes],
      ["ask", (_, [name, ...args]) => valueIn(this.#port.ask(name as string, args, Infinity))],
      [
        "tree",
        (_, [seed, depth, width]) =>
          this.#grow(
            new Branch(seed as number, depth as number, width as number),
            depth as number,
            width as number,
          ),
      ],
    ]);
  }

  call(name: string, values: Value[], items: boolean): void {
    this.#calls.push(undefined);
    this.#calls[this.#calls.length - 1] = this.#port.call(
      name,
      values.map(fromKit),
      items,
      WRITE_MS,
    );
  }

  ask(name: string, values: Value[], timeoutMs: number): Told {
    this.#calls.push(undefined);
    return toTold(this.#port.ask(name, values.map(fromKit), timeoutMs));
  }

  notify(name: string, values: Value[]): void {
    this.#port.notify(name, values.map(fromKit), WRITE_MS);
  }

  giveUp(call: number): void {
    this.#port.caller.giveUp(this.#calls[call]!, "wait.aborted");
  }

  outcome(call: number): Told {
    return toTold(this.#calls[call]!.settled);
  }

  item(call: number): Told {
    const taken = this.#port.caller.take(this.#calls[call]!);
    return taken === undefined ? this.outcome(call) : valued("item", taken.item);
  }

  told(): number {
    return this.#told;
  }

  /** Makes trees of calls, and serves those of the other side. */
  run({ seed, count, depth, width, plain, record: keeps }: TreeTask, timeoutMs: number): Ran {
    const transcript = new Transcript(keeps);
    let end = "ended";
    try {
      const random = new Random(seed);
      for (let index = 0; index < count; index++) {
        if (plain) this.#write(word(index), timeoutMs);
        const value = treeValue(this.#port.ask("tree", [random.next(), depth, width], timeoutMs));
        transcript.add(index, word(value));
      }
      this.#write(new Uint8Array(0), timeoutMs);
      for (let next = this.#read(timeoutMs); next.length > 0; next = this.#read(timeoutMs)) {
        transcript.add(0, next);
      }
      this.#port.end();
      if (this.#port.read(timeoutMs) !== "ended") end = "wait.timeout";
    } catch (error) {
      if (error instanceof Thrown) end = "call.thrown";
      else if (error instanceof PortError) end = error.code;
      else throw error;
    }
    const { size, crc32, record } = transcript;
    return { count: transcript.count, size, crc32, end, ...(record && { record }) };
  }

  #write(payload: Uint8Array, timeoutMs: number): void {
    this.#port.write({ kind: 1, codec: 0, tag: 0, payload }, timeoutMs);
  }

  #read(timeoutMs: number): Uint8Array {
    const message = this.#port.read(timeoutMs);
    if (typeof message === "object") return message.payload!;
    throw new PortError(message ?? "wait.timeout");
  }

  #grow(branch: Branch, depth: number, width: number): number {
    for (let child = branch.next(); child !== undefined; child = branch.next()) {
      const { way, seed } = child;
      const ask = (name: string, args: Plain[], timeoutMs = Infinity) =>
        this.#port.ask(name, args, timeoutMs);
      if (way === "tree") {
        branch.add(treeValue(ask("tree", [seed, depth - 1, width])));
        continue;
      }
      if (way === "note") this.#port.notify("note", [seed], WRITE_MS);
      else if (way === "hold") demand(ask("hold", [], HOLD_MS), "wait.timeout");
      else if (way === "none") demand(ask("none", []), "call.method");
      else demand(ask("fail", ["Tree", "", seed]), "call.thrown", seed);
      branch.add(valueOf(child));
    }
    const { sum, fails } = branch.end();
    if (fails) throw new Thrown("Tree", "", sum);
    return sum;
  }
}

function add(a: Plain, b: Plain): number {
  if (typeof a !== "number" || typeof b !== "number") throw new PortError("call.arguments");
  return a + b;
}

/** The value that a call gave; throws as it failed. */
function valueIn(settled: Settled): Plain {
  if ("value" in settled) return settled.value;
  const { code, name, text, data } = settled;
  throw code === "call.thrown" ? new Thrown(name!, text!, data) : new PortError(code);
}

/** What stands for a tree that was called. */
function treeValue(settled: Settled): number {
  const isTree = settled.code === "call.thrown" && "name" in settled && settled.name === "Tree";
  if (isTree && "data" in settled && typeof settled.data === "number") {
    return folded({ sum: settled.data, fails: true });
  }
  const sum = valueIn(settled);
  if (typeof sum !== "number") throw new PortError("call.form");
  return folded({ sum, fails: false });
}

/** Throws unless a call has ended so. */
function demand(settled: Settled, code: string, data?: number): void {
  const isGood = settled.code === code && ("data" in settled ? settled.data : undefined) === data;
  if (!isGood) throw new PortError(settled.code === "returned" ? "call.form" : settled.code);
}

function word(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** What the kit is told of a call. */
function toTold(settled: Settled | undefined): Told {
  if (settled === undefined) return { outcome: "pending" };
  if ("value" in settled) return valued("returned", settled.value);
  const { code, name, text, data } = settled;
  if (code !== "call.thrown") return { outcome: code };
  const error = { name: `${name}`, text: `${text}` };
  return { outcome: code, error: data === undefined ? error : { ...error, data: toKit(data) } };
}

function valued(outcome: string, value: Plain): Told {
  return value === undefined ? { outcome } : { outcome, value: toKit(value) };
}

// Live runs of the small port, which only blocks.

/** Writes or reads the messages of a seed. */
export function runTask(
  { reader, writer }: { reader?: Reader; writer?: Writer },
  task: Task,
  timeoutMs: number,
): Ran {
  const transcript = new Transcript(task.record);
  const { endpoint } = (reader ?? writer)!;
  const tell = (end: string, reason?: string | number): Ran => {
    const { count, size, crc32, record } = transcript;
    const ran: Ran = { count, size, crc32, end };
    if (reason !== undefined) ran.reason = reason;
    if (record !== undefined) ran.record = record;
    return ran;
  };
  try {
    const end = writer === undefined
      ? readAll(reader!, task, timeoutMs, transcript)
      : writeAll(writer, task, timeoutMs, transcript);
    if (task.then === "close") endpoint.close();
    else if (task.then === "end") writer?.end();
    return tell(end);
  } catch (error) {
    if (!(error instanceof PortError)) throw error;
    return tell(error.code, error.reason);
  }
}

function writeAll(writer: Writer, task: Task, timeoutMs: number, transcript: Transcript): string {
  const workload = new Workload(task.seed, task.capacity);
  const scratch = new Uint8Array(workload.sizeMax);
  for (let index = 0; index < task.count!; index++) {
    rest(task, index);
    const message = workload.next();
    const payload = fill(message, scratch);
    writer.write({ kind: 1, codec: 0, tag: message.tag, payload }, timeoutMs);
    transcript.add(message.tag, payload);
  }
  return "done";
}

function readAll(reader: Reader, task: Task, timeoutMs: number, transcript: Transcript): string {
  for (let index = 0; index < (task.count ?? Infinity); index++) {
    rest(task, index);
    const message = reader.read(timeoutMs);
    if (message === "ended") return "ended";
    if (message === undefined) throw new PortError("wait.timeout");
    transcript.add(message.tag, message.payload);
  }
  return "done";
}

function rest({ delay_us, delay_every }: Task, index: number): void {
  if (delay_us !== undefined && index % delay_every! === 0) pause(delay_us / 1000);
}
