/**
 * The small port: the calls that it makes.
 *
 * @module
 */

import { reasonNames } from "../../reference/layout.ts";
import { has } from "./faults.ts";
import { PortError } from "./small_memory.ts";
import { isText, type Plain, readValues, writeValues } from "./small_values.ts";
import type { Message } from "./small_reader.ts";

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
export type Write = (message: Message) => void;

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
