/**
 * The small port: both directions as one, with an inbox, and with calls.
 *
 * @module
 */

import { has } from "./faults.ts";
import { Callee, type Method } from "./small_callee.ts";
import { CALL, type Call, Caller, CANCEL, ID, MORE, RETURN, THROW } from "./small_caller.ts";
import { type Settled, VALUES, type Wire } from "./small_caller.ts";
import { decode, type Value } from "./small_codec.ts";
import type { Endpoint } from "./small_endpoint.ts";
import { DATA } from "./small_frame.ts";
import { PortError, Refused } from "./small_memory.ts";
import { Outbox } from "./small_outbox.ts";
import type { Message, Reader, Taken } from "./small_reader.ts";
import { type Plain, writeValues } from "./small_values.ts";
import { vacate } from "./small_vacate.ts";
import type { Meanwhile, Writer } from "./small_writer.ts";

/** What was taken out of the ring, and waits. */
type Entry = { message: Message } | { report: string };

/** What a report, or a message without payload, counts in the inbox. */
const ENTRY_SIZE = 16;

/** How a port is opened. */
export interface PortOptions {
  /** Bytes that it takes in, at most. */
  inbox: number;
  /** Whether it offers calls; the id of its first one, and what it serves. */
  serves: boolean;
  firstId: number;
  methods: (port: Port) => ReadonlyMap<string, Method>;
  /** Whether it reads values. */
  decodes: boolean;
}

/** Both directions between two endpoints. */
export class Port implements Meanwhile, Wire {
  readonly endpoint: Endpoint;
  readonly caller: Caller;
  readonly callee: Callee;
  readonly #reader: Reader;
  readonly #writer: Writer;
  readonly #outbox: Outbox;
  readonly #limit: number;
  readonly #serves: boolean;
  readonly #decodes: boolean;
  #inbox: Entry[] = [];
  #size = 0;
  #rest: Value[] = [];
  #isLending = false;
  #isAsking = false;
  /** A plain message came when the inbox was full. */
  #isOverfull = false;

  constructor(
    reader: Reader,
    writer: Writer,
    { inbox, firstId, serves, decodes, methods }: PortOptions,
  ) {
    this.endpoint = reader.endpoint;
    this.#reader = reader;
    this.#writer = writer;
    this.#outbox = new Outbox(writer, () => this.#isLending);
    this.#limit = inbox;
    this.#serves = serves;
    this.#decodes = decodes;
    this.caller = new Caller(this, firstId);
    this.callee = new Callee(this, methods(this));
    if (!has("no_take_in")) writer.meanwhile = this;
  }

  /** Reads one plain message as a value; calls before it are begun. */
  read(timeoutMs: number): Value | "ended" | undefined {
    const deadline = performance.now() + timeoutMs;
    if (this.endpoint.closed) throw this.#lose(new PortError("pipe.closed"));
    if (this.#isLending) throw new Refused("a frame is lent");
    for (;;) {
      this.#outbox.flush();
      this.callee.goOn();
      const value = this.#deliver();
      if (value !== undefined) return value;
      if (this.#serve() || this.#canTake() && this.#poll()) continue;
      if (this.#reader.hasEnded && this.#canTake()) return "ended";
      if (!this.#canTake()) this.takeIn();
      if (performance.now() >= deadline) return undefined;
      this.#sleep(deadline);
    }
  }

  /** Whether something may be read and begun: nothing that was accepted is left to write. */
  #canTake(): boolean {
    return this.#outbox.isEmpty;
  }

  /** The next plain message or report of the inbox, if no call is to be begun before it. */
  #deliver(): Value | undefined {
    if (this.#rest.length > 0) return this.#rest.shift();
    const entry = this.#inbox[0];
    if (entry === undefined || this.#isCall(entry)) return undefined;
    this.#remove(0);
    if ("report" in entry) throw new PortError(entry.report);
    if (!this.#decodes) return entry.message;
    this.#rest = decode(entry.message);
    return this.#rest.shift();
  }

  /** Begins the first call of the inbox; whether there was one. [call.order] */
  #serve(): boolean {
    const mayBegin = this.#canTake() && !this.#outbox.isHalfway; // [call.whole_first]
    if (!mayBegin && !has("serves_halfway")) return false;
    if (this.#isLending) return false;
    const isLast = has("serves_backwards");
    const isCall = (entry: Entry) => this.#isCall(entry);
    const index = isLast ? this.#inbox.findLastIndex(isCall) : this.#inbox.findIndex(isCall);
    if (index < 0) return false;
    const entry = this.#remove(index);
    this.callee.begin((entry as { message: Message }).message);
    this.#outbox.flush();
    return true;
  }

  /** Hands on what was taken out of the ring; whether there was something. */
  #fetch(taken: Taken): boolean {
    if (taken === undefined) return false;
    if (taken === "ended") {
      this.caller.lose(new PortError(has("ended_as_closed") ? "peer.closed" : "call.ended"));
      return false;
    }
    this.#sort(taken);
    return true;
  }

  /** Takes the next thing out of the ring; whether there was one. */
  #poll(): boolean {
    try {
      const gone = has("loss_first") ? this.endpoint.peerState() : undefined;
      if (gone !== undefined) throw gone;
      return this.#fetch(this.#reader.poll());
    } catch (error) {
      if (!(error instanceof PortError)) throw error;
      if (!error.code.startsWith("message.")) throw this.#lose(error);
      this.report(error.code);
      return true;
    }
  }

  #sort(message: Message): void {
    const { kind, codec, tag, payload, dropped } = message;
    const [id, mark] = [tag & ID, (tag & ~ID) >>> 0];
    if (kind === DATA || !this.#serves) return this.#keep({ message });
    if (kind === CALL && mark === 0) return this.#arrive(message, id);
    const isBare = codec === VALUES && payload.length === 0 && dropped === undefined ||
      has("cancel_unchecked");
    if (id !== 0 && kind === CALL && isBare) {
      if (mark === CANCEL) return this.#cancel(id);
      if (mark === MORE) return this.callee.grant(id);
    }
    const isAnswer = kind === RETURN ? mark === 0 || mark === MORE : kind === THROW && mark === 0;
    if (isAnswer && id !== 0) return this.caller.answer(message);
    if (!has("strays_ignored")) this.report("call.form"); // [call.stray]
  }

  #arrive(message: Message, id: number): void {
    const isKnown = this.callee.isServed(id) || this.#waiting(id) >= 0;
    if (id !== 0 && isKnown && !has("duplicate_served")) return this.report("call.duplicate");
    this.#keep({ message });
  }

  /** Where in the inbox a call stands that has not begun. */
  #waiting(id: number): number {
    return this.#inbox.findIndex((entry) =>
      this.#isCall(entry) && "message" in entry && (entry.message.tag & ID) === id
    );
  }

  #cancel(id: number): void {
    const index = this.#waiting(id);
    if (index < 0) return this.callee.cancel(id);
    if (has("inbox_kept")) return;
    const entry = this.#remove(index) as { message: Message };
    this.callee.stop(entry.message);
  }

  #keep(entry: Entry): void {
    if (this.#isFull() && !this.#isCall(entry)) this.#isOverfull = true;
    if (has("aside_lost") && this.#isAsking && !this.#isCall(entry)) return;
    if (has("aside_backwards") && this.#isAsking) this.#inbox.unshift(entry);
    else this.#inbox.push(entry);
    this.#size += sizeOf(entry);
  }

  #remove(index: number): Entry {
    const [entry] = this.#inbox.splice(index, 1);
    this.#size -= sizeOf(entry!);
    return entry!;
  }

  #isCall(entry: Entry): boolean {
    return this.#serves && "message" in entry && entry.message.kind === CALL;
  }

  #isFull(): boolean {
    return this.#size >= this.#limit;
  }

  /** [call.unmatched] */
  report(code: string): void {
    this.#keep({ report: code });
  }

  post(
    message: Message,
    isStale: () => boolean = () => false,
    placed: () => void = () => {},
  ): void {
    this.#outbox.post(message, isStale, placed);
  }

  get isClear(): boolean {
    return this.#outbox.isEmpty;
  }

  /** Writes a message, behind all that was accepted; without a time it does not wait. */
  write(message: Message, timeoutMs: number | undefined): boolean {
    return this.#outbox.write(message, timeoutMs);
  }

  /** Hands on what arrives while this waits for room. [call.takes_in] */
  takeIn(): void {
    if (this.#isLending) return;
    try {
      for (let frame = this.#reader.glance(); frame !== undefined; frame = this.#reader.glance()) {
        const isMarked = frame.kind === CALL && frame.tag > ID && (frame.tag & ID) !== 0;
        const isAnswer = frame.kind === RETURN || frame.kind === THROW;
        const isForCalls = this.#serves && (isMarked || isAnswer);
        const isFirst = this.#serves && this.#inbox.length === 0 && !has("inbox_limit_kept");
        const hasPlace = isFirst || !this.#isFull();
        const mayTake = (isForCalls && !has("answers_left")) || hasPlace ||
          this.#reader.kindInProgress !== undefined;
        if (!mayTake || !this.#poll()) return;
        if (has("serves_halfway")) this.#serve();
      }
    } catch (error) {
      // Whoever reads or writes next gets it.
      if (!(error instanceof PortError)) throw error;
    }
  }

  arm(isArmed: boolean): void {
    this.#reader.arm(isArmed);
  }

  look(): boolean {
    return this.#reader.look();
  }

  /** Makes a call; does not wait for its answer. */
  call(name: string, values: readonly Plain[], isStream: boolean, timeoutMs: number): Call {
    if (this.endpoint.closed) throw new PortError("pipe.closed");
    this.caller.requireThere();
    this.#writer.check();
    return this.caller.call(name, values, isStream, (message) => this.write(message, timeoutMs));
  }

  /** Sends a notice. */
  notify(name: string, values: readonly Plain[], timeoutMs: number): void {
    this.caller.requireThere();
    const payload = writeValues([name, ...values]);
    this.write({ kind: CALL, codec: VALUES, tag: 0, payload }, timeoutMs);
  }

  /** Makes a call, and serves what arrives until its answer is there. */
  ask(name: string, values: readonly Plain[], timeoutMs: number): Settled {
    const deadline = performance.now() + timeoutMs;
    const call = this.call(name, values, false, timeoutMs);
    while (call.settled === undefined) {
      this.#isOverfull = false;
      this.#isAsking = true;
      this.#outbox.flush();
      this.callee.goOn();
      const isBusy = this.#canTake() && (!has("no_serve") && this.#serve() || this.#polled());
      if (!this.#canTake()) this.takeIn();
      if (call.settled !== undefined) break;
      // [call.set_aside]
      if (this.#isOverfull && !has("inbox_unbounded")) this.caller.giveUp(call, "call.inbox");
      else if (isBusy) continue;
      else if (performance.now() >= deadline) this.caller.giveUp(call, "wait.timeout");
      else this.#sleep(deadline);
    }
    this.#isAsking = false;
    return call.settled;
  }

  /** Takes the next thing out of the ring; false where none is there, nor ever will be. */
  #polled(): boolean {
    try {
      return this.#poll();
    } catch (error) {
      if (!(error instanceof PortError)) throw error;
      return false; // all calls have ended with it
    }
  }

  /** Lends the next plain message; calls before it are begun. */
  peek(): Taken {
    if (has("serves_lent")) return this.#lendCopy();
    while (this.#serve() || this.#takesNext()) { /* what stands before it */ }
    const entry = this.#inbox[0];
    if (entry !== undefined && "report" in entry) {
      this.#remove(0);
      throw new PortError(entry.report);
    }
    if (entry !== undefined || this.#rest.length > 0) throw new Refused("it is not in the ring");
    const kind = this.#reader.kindInProgress;
    if (kind !== undefined && kind !== DATA && this.#serves) return undefined;
    const taken = this.#reader.peek();
    if (typeof taken === "object") this.#isLending = true;
    return taken;
  }

  /** What is faulty: calls behind what is lent are begun. */
  #lendCopy(): Taken {
    while (this.#poll() || this.#serve()) { /* all that is there */ }
    const entry = this.#remove(0);
    return "message" in entry ? entry.message : undefined;
  }

  /** Takes the next frame, if it is one of a call; whether it was. */
  #takesNext(): boolean {
    const kind = this.#serves ? this.#reader.glance()?.kind : undefined;
    const isCalls = kind === CALL || kind === RETURN || kind === THROW;
    return isCalls && !has("calls_lent") && this.#canTake() && this.#poll();
  }

  release(): void {
    this.#reader.release();
    this.#isLending = false;
  }

  #sleep(deadline: number): void {
    const isOwing = !this.#outbox.isEmpty;
    if (isOwing) this.#writer.arm(true);
    this.#reader.sleep(deadline, () => isOwing && this.#writer.look());
    if (isOwing) this.#writer.arm(false);
  }

  /** Ends all calls, both ways. [call.lost], [call.told] */
  #lose(error: PortError): PortError {
    this.caller.lose(error);
    this.callee.lose();
    this.#outbox.clear();
    return error;
  }

  /** Ends the own stream. */
  end(): void {
    this.#writer.end();
    if (!has("end_untold")) this.callee.lose();
    this.#outbox.clear();
  }

  close(): void {
    this.#lose(new PortError("pipe.closed"));
    this.endpoint.close();
  }

  vacate(): void {
    const final = this.endpoint.peerState();
    vacate(this.endpoint, this.#reader, this.#writer);
    if (!has("vacated_posts_kept")) this.#outbox.clear();
    if (!has("vacated_served_kept")) {
      this.#inbox = this.#inbox.filter((entry) => !this.#isCall(entry));
      this.#size = this.#inbox.reduce((sum, entry) => sum + sizeOf(entry), 0);
    }
    this.caller.restart(final);
    this.callee.restart();
  }
}

function sizeOf(entry: Entry): number {
  return "message" in entry ? Math.max(entry.message.payload.length, ENTRY_SIZE) : ENTRY_SIZE;
}
