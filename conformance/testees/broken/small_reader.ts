/**
 * The small port: reading a ring.
 *
 * @module
 */

import { has, hold } from "./faults.ts";
import { CANCEL, CBOR, checkFrame, DATA, decode, END, EXTENSION, FIRST } from "./small_frame.ts";
import { type Frame, LAST, PAD, PREAMBLE, type Progress, totalOf } from "./small_frame.ts";
import { type Value, WHOLE } from "./small_frame.ts";
import type { End, Endpoint } from "./small_port.ts";
import { type Memory, minus, PortError, Refused } from "./small_memory.ts";
import type { Channel } from "./small_segment.ts";

/** A message as it stands in the ring; what is lent may be a part of one. */
export interface Message {
  kind: number;
  codec: number;
  tag: number;
  payload: Uint8Array;
  /** Of a call or an answer that was dropped, complete: why. It has no payload then. */
  dropped?: string;
}

/** What a read gives; a report of a lost message is thrown. */
export type Taken = Message | "ended" | undefined;

const [TAIL, HEAD, READER_WANTS, WRITER_WANTS] = [0, 128, 256, 384];

/** The reading end of a ring. */
export class Reader implements End {
  readonly endpoint: Endpoint;
  readonly ring: Channel;
  readonly #memory: Memory;
  readonly #limit: number;
  readonly #offersCalls: boolean;
  /** Whether calls and answers that are too large are told of, and not reported. [call.refused] */
  readonly #tellsDropped: boolean;
  #head: number;
  #known: number;
  #progress: Progress | undefined;
  /** The extent of the frame that is lent. */
  #lent: number | undefined;
  /** What was taken out of the ring, and not handed out yet: of a batch. */
  #rest: Value[] = [];
  #fault: PortError | undefined;
  /** What a port with a fault reports once more. */
  #again: PortError | undefined;
  #hasEnded = false;

  constructor(
    endpoint: Endpoint,
    ring: Channel,
    limit: number,
    offersCalls: boolean,
    tellsDropped = false,
  ) {
    this.endpoint = endpoint;
    this.ring = ring;
    this.#memory = endpoint.segment.memory;
    this.#limit = limit;
    this.#offersCalls = offersCalls;
    this.#tellsDropped = tellsDropped;
    this.#head = this.#known = endpoint.begin(ring.start, ring.control + HEAD);
    endpoint.ends.push(this);
  }

  /** Reads one message; nothing at the deadline. */
  read(timeoutMs: number): Taken {
    return this.#next(timeoutMs, has("read_while_lent"), false);
  }

  /** Reads one message as a value, or the next one of a batch. */
  readValue(timeoutMs: number): Value | "ended" | undefined {
    if (this.endpoint.closed) throw new PortError("pipe.closed"); // [pipe.first_answer]
    if (this.#rest.length > 0) return this.#rest.shift();
    const again = this.#again;
    this.#again = undefined;
    if (again !== undefined) throw again;
    const message = this.read(timeoutMs);
    if (message === undefined || message === "ended") return message;
    this.#rest = this.#decode(message);
    return this.#rest.shift();
  }

  /** The values of a message; one that has none costs that message alone. */
  #decode(message: Message): Value[] {
    try {
      return decode(message);
    } catch (error) {
      const isCbor = message.codec === CBOR && error instanceof PortError;
      if (isCbor && has("cbor_next_lost")) this.read(0);
      if (isCbor && has("cbor_fatal")) this.#fault = error;
      if (isCbor && has("cbor_reported_twice")) this.#again = error;
      throw error;
    }
  }

  /** Lends the payload of the next frame, without waiting. */
  peek(): Taken {
    return this.#next(0, has("lent_twice"), true);
  }

  /** Takes back what is lent. */
  release(): void {
    if (this.endpoint.closed) throw new PortError("pipe.closed");
    if (this.#lent === undefined && !has("taken_back_nothing")) {
      throw new Refused("nothing is lent"); // [pipe.lend_one]
    }
    const extent = this.#lent ?? 0;
    this.#lent = undefined;
    this.#release(extent);
  }

  #next(timeoutMs: number, isAllowed: boolean, lends: boolean): Taken {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const taken = this.#poll(isAllowed, lends);
      if (taken !== undefined) return taken;
      if (performance.now() >= deadline) {
        if (has("parts_dropped")) this.#progress = undefined;
        return undefined;
      }
      this.sleep(deadline);
    }
  }

  /** Reads one message, without waiting. */
  poll(): Taken {
    return this.#poll(false, false);
  }

  /** The next frame that is no pad, or nothing; it stays where it is. */
  glance(): Frame | undefined {
    if (this.#fault !== undefined || this.#hasEnded || this.#lent !== undefined) return undefined;
    if (this.#head === this.#known) this.#load();
    while (this.#head !== this.#known) {
      const frame = this.#check();
      if (frame.kind !== PAD && frame.kind < EXTENSION) return frame;
      this.#judge(frame, false);
    }
    return undefined;
  }

  /** Sleeps until there may be something to read, or something else says so. */
  sleep(deadline: number, look: () => boolean = () => false): void {
    const wanted = minus(this.#head, -16);
    const either = () => this.look() || look();
    this.endpoint.sleep(this.ring.control + READER_WANTS, wanted, either, deadline);
  }

  /** Asks to be rung for what can be read, and no longer. */
  arm(isArmed: boolean): void {
    const wanted = (minus(this.#head, -16) | 1) >>> 0;
    this.#memory.store(this.ring.control + READER_WANTS, isArmed ? wanted : 0);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The kind of the message of which a part was read. */
  get kindInProgress(): number | undefined {
    return this.#progress?.kind;
  }

  #poll(isAllowed: boolean, lends: boolean): Taken {
    // [pipe.first_answer] The rows of the table, from the top.
    if (this.endpoint.closed) throw new PortError("pipe.closed");
    if (this.#lent !== undefined && !isAllowed) throw new Refused("a frame is lent");
    if (this.#fault !== undefined && !has("fault_forgotten")) throw this.#fault;
    if (this.#hasEnded && !has("after_end")) return "ended";
    const taken = this.#take(lends) ?? (this.#load(), this.#take(lends));
    if (taken !== undefined) return taken;
    this.endpoint.settle();
    const final = this.endpoint.ownState() ?? this.endpoint.peerState();
    return final === undefined ? undefined : this.#takeLast(final, lends);
  }

  /** Whether everything was taken that the peer has published. [segment.vacate_read] */
  isDrained(): boolean {
    if (this.#hasEnded || this.#fault !== undefined) return true;
    if (this.#lent !== undefined) return false;
    this.#load();
    return this.#head === this.#known;
  }

  /** Begins the ring anew: both cursors stand where this end is. [pipe.vacated] */
  restart(): void {
    const { control } = this.ring;
    this.#known = this.#head;
    if (!has("vacates_cursors_left")) this.#memory.store(control + TAIL, this.#head);
    this.#memory.store(control + HEAD, this.#head);
    if (!has("vacates_wants_left")) this.#memory.store(control + WRITER_WANTS, 0);
    if (!has("vacated_fault_kept")) this.#fault = undefined;
    if (!has("vacated_end_kept")) this.#hasEnded = false;
    if (!has("vacated_parts_kept")) this.#progress = undefined;
    if (has("vacated_batch_lost")) this.#rest = [];
  }

  /** [ring.release_all] */
  settle(): void {
    if (this.#fault === undefined) this.#release(0);
  }

  /** What was published before the peer, or this end, was gone. [pipe.look_again] */
  #takeLast(final: PortError, lends: boolean): Taken {
    if (!has("drain_skipped")) this.#load();
    const taken = has("drain_skipped") ? undefined : this.#take(lends);
    if (taken !== undefined) return taken;
    // [pipe.keep_parts] The message in progress counts as reported with it.
    if (this.#progress !== undefined) {
      this.#progress.isDropped = true;
      this.#progress.parts = [];
    }
    throw final;
  }

  /** Whether there may be something to do. */
  look(): boolean {
    return this.#memory.load(this.ring.control + TAIL) !== this.#known ||
      !has("recheck_stateless") &&
        (this.endpoint.ownState() ?? this.endpoint.peerState()) !== undefined;
  }

  /** Loads the peer's cursor and checks it. [ring.cursor] */
  #load(): void {
    const tail = this.#memory.load(this.ring.control + TAIL);
    const [used, known] = [minus(tail, this.#head), minus(this.#known, this.#head)];
    const isBehind = has("wrap_ignored") ? tail < this.#head : used > this.ring.capacity;
    const isBack = used < known && !has("cursor_back");
    if ((tail % 16 !== 0 || isBehind || isBack) && !has("cursor_trusted")) {
      throw this.#fail("ring.cursor");
    }
    this.#known = tail;
  }

  #fail(code: string): PortError {
    this.#fault = this.endpoint.failPeer(code);
    if (has("head_after_fault")) this.#memory.store(this.ring.control + HEAD, this.#head);
    return this.#fault;
  }

  /** Takes frames up to the tail that is known, until one of them is to be told of. */
  #take(lends: boolean): Taken {
    if (has("drain_skipped") && this.endpoint.peerState() !== undefined) return undefined;
    while (this.#head !== this.#known) {
      const taken = this.#judge(this.#check(), lends);
      if (taken !== undefined) return taken;
    }
    return undefined;
  }

  #check(): Frame {
    const cursors = { head: this.#head, known: this.#known };
    const refuse = (condition: boolean, code: string) => {
      if (condition) throw this.#fail(code);
    };
    return checkFrame(this.#memory, this.ring, cursors, this.#progress, refuse);
  }

  /** Goes past a frame that was checked, and says what came of it. */
  #judge(frame: Frame, lends: boolean): Taken {
    const { kind, flags, size, at, extent } = frame;
    if (kind >= EXTENSION || kind === PAD && !has("pad_unread")) {
      this.#head = (this.#head + extent) >>> 0; // given back with what follows
      return undefined;
    }
    if (kind === END) {
      this.#release(extent);
      this.#hasEnded = true;
      const progress = this.#progress;
      this.#progress = undefined;
      if (progress !== undefined && !progress.isDropped && !has("truncated_silent")) {
        throw new PortError("message.truncated");
      }
      return "ended";
    }
    if (lends && this.#isLendable(frame)) return this.#lend(frame);
    if (has("payload_back")) this.#release(extent);
    hold("fetch");
    // A copy: the peer may write there as soon as it is given back. [ring.release]
    const copy = this.#memory.bytes.slice(at, at + size);
    if (!has("payload_back")) this.#release(extent);
    if (flags === WHOLE || kind === PAD) return this.#judgeWhole(frame, copy);
    if (flags === FIRST) return this.#begin(frame, copy);
    return this.#continue(frame, copy);
  }

  /** Whether a frame holds a payload to hand out. The limit does not count for what is lent. */
  #isLendable({ kind, flags }: Frame): boolean {
    return this.#isOffered(kind) && (flags & CANCEL) === 0 && this.#progress?.isDropped !== true;
  }

  #lend({ kind, codec, tag, flags, size, at, extent }: Frame): Message {
    const begin = flags === FIRST ? PREAMBLE : 0;
    const payload = this.#memory.bytes.slice(at + begin, at + size);
    if (flags === FIRST) {
      const total = totalOf(this.#memory.u32(at), this.#memory.u32(at + 4));
      const identity = { kind, codec, tag, total, sum: payload.length, parts: [] };
      this.#progress = { ...identity, isDropped: false, isUncounted: false };
    } else if (this.#progress !== undefined) this.#progress.sum += payload.length;
    if ((flags & LAST) !== 0) this.#progress = undefined;
    this.#lent = extent;
    if (has("lent_given_back")) this.#release(extent), this.#lent = 0;
    return { kind, codec, tag, payload };
  }

  #judgeWhole({ kind, codec, tag, size }: Frame, payload: Uint8Array): Taken {
    if (!this.#isOffered(kind)) throw new PortError("message.kind");
    const isAbove = this.#isAbove(size);
    if (isAbove && this.#isTold(kind)) return tooLarge({ kind, codec, tag });
    if (isAbove) throw new PortError("message.size");
    return { kind, codec, tag, payload };
  }

  /** Whether whoever takes this kind wants to know of a message that was dropped. */
  #isTold(kind: number): boolean {
    return kind !== DATA && this.#tellsDropped;
  }

  #begin({ kind, codec, tag }: Frame, copy: Uint8Array): undefined {
    const part = copy.subarray(PREAMBLE);
    const view = new DataView(copy.buffer, copy.byteOffset);
    const total = totalOf(view.getUint32(0, true), view.getUint32(4, true));
    // [pipe.limit_unknown] Of a message whose size is not known, what has come of it counts.
    const isLarge = this.#isAbove(total ?? (has("limit_known_only") ? 0 : part.length));
    const why = !this.#isOffered(kind) ? "message.kind" : isLarge ? "message.size" : undefined;
    const isDropped = why !== undefined;
    const parts = isDropped ? [] : [part];
    const sum = part.length;
    this.#progress = { kind, codec, tag, total, sum, parts, isDropped, isUncounted: isDropped };
    if (isDropped && !this.#isTold(kind)) throw new PortError(why);
  }

  #continue({ kind, codec, tag, flags }: Frame, part: Uint8Array): Taken {
    const progress = this.#progress;
    if (progress === undefined) return { kind, codec, tag, payload: part };
    progress.sum += part.length;
    if (!progress.isDropped) progress.parts.push(part);
    const isLast = (flags & LAST) !== 0;
    if (progress.total === undefined && !progress.isDropped && this.#isAbove(progress.sum)) {
      const isLate = has("limit_unknown_late") && !isLast || has("limit_known_only");
      if (!isLate) {
        if (isLast && !this.#isTold(kind)) this.#progress = undefined;
        progress.isDropped = true;
        progress.parts = [];
        if (!this.#isTold(kind)) throw new PortError("message.size");
      }
    }
    if (!isLast) return undefined;
    this.#progress = undefined;
    if ((flags & CANCEL) !== 0) {
      if (progress.isDropped && !has("report_twice")) return undefined;
      throw new PortError("message.cancelled");
    }
    if (progress.isDropped) {
      return this.#isTold(kind) ? tooLarge({ kind, codec, tag }) : undefined;
    }
    const payload = new Uint8Array(progress.parts.reduce((sum, each) => sum + each.length, 0));
    let at = 0;
    for (const each of progress.parts) {
      payload.set(each, at);
      at += each.length;
    }
    return { kind, codec, tag, payload };
  }

  #isAbove(size: number): boolean {
    return size > this.#limit && !has("limit_ignored");
  }

  #isOffered(kind: number): boolean {
    return kind === DATA || this.#offersCalls || has("calls_taken");
  }

  #release(extent: number): undefined {
    this.#head = (this.#head + extent) >>> 0;
    if (has("room_kept") && extent > 0 && this.#head !== this.#known) return;
    this.#memory.store(this.ring.control + HEAD, this.#head);
    this.endpoint.wake(this.ring.control + WRITER_WANTS, this.#head);
  }
}

function tooLarge(message: Omit<Message, "payload">): Message {
  return { ...message, payload: new Uint8Array(0), dropped: "message.size" };
}
