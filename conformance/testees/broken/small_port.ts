/**
 * The small port: both directions as one, with an inbox, and with calls.
 *
 * @module
 */

import { reasonName, reasonNames, reasonOf } from "../../reference/layout.ts";
import { has, hold } from "./faults.ts";
import { CALL, type Call, Callee, Caller, CANCEL, ID, type Method, MORE } from "./small_calls.ts";
import { type Plain, RETURN, type Settled, THROW, VALUES, type Wire } from "./small_calls.ts";
import { writeValues } from "./small_calls.ts";
import { DATA, decode, type Value } from "./small_frame.ts";
import { minus, pause, PortError, Refused } from "./small_memory.ts";
import type { Message, Reader, Taken } from "./small_reader.ts";
import { recordAt, type Segment } from "./small_segment.ts";
import { type Meanwhile, Outbox, type Writer } from "./small_writer.ts";

// The small port: one thread's place in a segment, and how it waits.

const [VACANT, ATTACHED, CLOSED, FAILED] = [0, 1, 2, 3];
const [STATE, WAKES, GENERATION, FEATURES] = [4, 8, 16, 20];
const LOW = 255;
const AGENT = 1;
const SLICE_MS = 100;
const SLICE_ATTACHED_MS = 1_000;
const POLL_MS = 4;

/** How a sleeper asks for its ring, and takes that back. */
interface Ask {
  arm(): void;
  disarm(): void;
}

/** What an endpoint does with each of its ends before it waits. */
export interface End {
  settle(): void;
}

/** One thread's place in a segment. */
export class Endpoint {
  readonly segment: Segment;
  readonly index: number;
  readonly peer: number;
  readonly ends: End[] = [];
  /** The word by which it attached: the generation stands above the state. [segment.own_state] */
  readonly word: number;
  /** How often it was vacated: where it is not 0, it begins at the cursors as they stand. */
  readonly generation: number;
  /** The peer's state, once it was final or invalid. */
  #final: PortError | undefined;
  closed = false;

  private constructor(segment: Segment, index: number, peer: number, word: number) {
    this.segment = segment;
    this.index = index;
    this.peer = peer;
    this.word = word;
    this.generation = segment.memory.load(recordAt(index) + GENERATION);
  }

  /** [segment.attach], [segment.again] */
  static attach(segment: Segment, index: number, peer: number): Endpoint {
    const vacant = segment.requireVacant(index);
    const { memory } = segment;
    const at = recordAt(index);
    const word = has("bits_lost") ? ATTACHED : (vacant & ~LOW | ATTACHED) >>> 0;
    const isOurs = memory.change(at + STATE, vacant, word);
    if (isOurs) {
      if (!has("wakes_left_out")) memory.store(at + WAKES, AGENT);
      if (!has("features_left")) memory.store(at + FEATURES, 0); // [segment.features]
    }
    segment.ringAround(index);
    if (!isOurs) throw new PortError("segment.endpoint");
    return new Endpoint(segment, index, peer, word);
  }

  /** Where an end begins: where its cursor stands, when somebody had it before. */
  begin(start: number, cursor: number): number {
    const generation = has("again_by_state") ? this.word >>> 8 : this.generation;
    if (generation === 0 || has("again_at_start")) return start;
    // [ring.start_again]
    const found = this.segment.memory.load(cursor);
    return has("again_unaligned") ? found : (found & ~15) >>> 0;
  }

  /** What the own state says: nothing while it is the word by which it attached. */
  ownState(): PortError | undefined {
    const state = this.segment.memory.load(recordAt(this.index) + STATE);
    if (has("own_ignored") || state === this.word) return undefined;
    if (has("own_low") && (state & LOW) === ATTACHED) return undefined;
    if ((state & LOW) === CLOSED) return new PortError("pipe.closed");
    // [segment.own_state] A state that nobody may store has no reason.
    const reason = (state & LOW) === FAILED ? nameOf(state >>> 8) : "none";
    return new PortError("pipe.failed", reason);
  }

  /** What every call answers first: this endpoint was closed, or its state says so. */
  answer(): void {
    if (this.closed) throw new PortError("pipe.closed");
    const own = this.ownState();
    if (own !== undefined) throw own;
  }

  /** What the peer's state says: nothing while it is vacant or attached. */
  peerState(): PortError | undefined {
    if (this.#final !== undefined) return this.#final;
    const state = this.segment.memory.load(recordAt(this.peer) + STATE);
    const low = state & LOW;
    if (has("bits_judged") ? state <= ATTACHED : low <= ATTACHED) return undefined;
    if (low === CLOSED) return this.#final = new PortError("peer.closed");
    const reason = low === FAILED ? nameOf(state >>> 8) : "segment.state";
    return this.#final = new PortError("peer.failed", reason);
  }

  /** Looks at the peer's state anew, which is another's from now on. */
  forgetFinal(): void {
    this.#final = undefined;
  }

  /** Marks the peer for a fault in its words, and returns what to report. [ring.fault] */
  failPeer(code: string): PortError {
    if (!has("fault_silent")) {
      const isAlive = (state: number) => (state & LOW) <= ATTACHED;
      this.segment.changeState(this.peer, isAlive, this.failedBy(code));
    }
    return new PortError(code);
  }

  /** The state of who has failed for that. */
  failedBy(code: string): number {
    return FAILED | reasonOf(code) << 8;
  }

  /** Rings the peer if it has asked for what a cursor has reached. [wait.exchange] */
  wake(wants: number, cursor: number): void {
    const { memory } = this.segment;
    if (has("rings_never")) return;
    if (has("rings_always")) return this.segment.ring(this.peer, this.index);
    const wanted = memory.load(wants);
    if (wanted === 0) return;
    const position = minus(wanted, wanted & 1);
    const isReached = has("wants_unsigned")
      ? cursor >= position
      : has("rings_early") || (cursor - position | 0) >= 0;
    if (!isReached) return;
    if (has("wants_left") || memory.exchange(wants, 0) !== 0) {
      this.segment.ring(this.peer, this.index);
    }
  }

  /** Publishes and gives back all that is finished and released. [port.publish_both] */
  settle(): void {
    for (const end of this.ends) end.settle();
  }

  /** Sleeps until something may have changed; `look` says whether it has. Not beyond a slice. */
  sleep(wants: number, position: number, look: () => boolean, deadline: number): void {
    const { memory } = this.segment;
    const wanted = (has("asks_wrong") ? position - 16 : position) | 1;
    const ask: Ask = {
      arm: () => memory.store(wants, wanted),
      disarm: () => {
        if (!has("wants_armed")) memory.store(wants, 0);
      },
    };
    this.rest(this.peer, ask, look, deadline);
  }

  /** The same, whatever it is that a peer is asked by. */
  rest(peer: number, ask: Ask, look: () => boolean, deadline: number): void {
    const { memory } = this.segment;
    const bellAt = recordAt(this.index);
    hold("arm");
    let bell = memory.load(bellAt);
    ask.arm();
    const found = !has("recheck_forgotten") && look();
    hold("sleep");
    if (has("bell_late")) bell = memory.load(bellAt);
    const left = deadline - performance.now();
    if (!found && left > 0) {
      // [wait.mechanism] A peer that is attached and cannot ring this is not waited for.
      const state = memory.load(recordAt(peer) + STATE) & LOW;
      const isRung = state === VACANT || (memory.load(recordAt(peer) + WAKES) & AGENT) !== 0;
      // [wait.slice] One that is vacant may come and not ring.
      const isShort = state === VACANT && !has("slice_long");
      const slice = has("slice_forgotten") ? left : isShort ? SLICE_MS : SLICE_ATTACHED_MS;
      if (isRung) memory.sleep(bellAt, bell, Math.min(left, slice));
      else pause(Math.min(left, POLL_MS));
    }
    ask.disarm();
  }

  /** [pipe.close] */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    const isOwn = (state: number) =>
      has("close_of_any") ? (state & LOW) === ATTACHED : state === this.word;
    const bits = has("bits_lost_at_close") ? 0 : this.word & ~LOW; // [segment.state_reason]
    this.segment.changeState(this.index, isOwn, (bits | CLOSED) >>> 0);
  }
}

/** A reason as it is reported: a number where it has no name. [pipe.failed_reason] */
function nameOf(reason: number): string | number {
  if (reason === 0) return "none";
  const name = reasonName(reason);
  return reasonNames().includes(name) ? name : reason;
}

// The small port: giving the peer's endpoint back, whose owner is dead.

const AGENT_AT = 12;
const GENERATION_MAX = 2 ** 32 - 1;

/** Vacates the peer, or refuses where that may not be done now. */
export function vacate(endpoint: Endpoint, reader?: Reader, writer?: Writer): void {
  const { segment, peer } = endpoint;
  const { memory } = segment;
  const own = endpoint.closed ? new PortError("pipe.closed") : endpoint.ownState();
  if (own !== undefined) throw own; // [segment.vacate_peer]
  const record = recordAt(peer);
  const final = memory.load(record + STATE);
  const isFinal = [CLOSED, FAILED].includes(final & LOW) || has("vacates_anybody");
  if (!isFinal) throw new Refused("the peer is there");
  for (const channel of segment.channels) {
    if (channel.writer !== peer && channel.reader !== peer) continue;
    const isOurs = channel === reader?.ring || channel === writer?.ring;
    if (!isOurs && !has("vacates_of_many")) throw new Refused("the peer has other channels");
  }
  const generation = memory.load(record + GENERATION);
  if (generation === GENERATION_MAX && !has("generation_wraps")) throw new Refused("too often");
  if (reader?.isDrained() === false && !has("vacates_unread")) throw new Refused("unread");
  reader?.restart();
  writer?.restart();
  if (!has("vacates_words_left")) {
    for (const word of [WAKES, AGENT_AT, FEATURES]) {
      memory.store(record + word, 0);
    }
  }
  const next = has("generation_left") ? generation : generation + 1 >>> 0;
  memory.store(record + GENERATION, next);
  const vacant = has("vacates_without_bits") ? 0 : (next << 8) >>> 0;
  memory.change(record + STATE, final, vacant); // [segment.vacate_state]
  if (!has("vacated_final_kept")) endpoint.forgetFinal();
  if (!has("vacates_silently")) segment.ringAround(peer);
}

/** What was taken out of the ring, and waits. */
type Entry = { message: Message } | { report: string };

/** What a report, or a message without payload, counts in the inbox. */
const ENTRY_SIZE = 16;

/** How a port is opened. */
interface PortOptions {
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

  /** Writes a message, after all that was accepted; without a time it does not wait. */
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

  /** What is faulty: calls after what is lent are begun. */
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
