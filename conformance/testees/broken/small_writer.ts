/**
 * The small port: writing a ring.
 *
 * @module
 */

import { has, hold } from "./faults.ts";
import { CALL } from "./small_calls.ts";
import { BATCH, CANCEL, END, FIRST, HEADER, LAST, PAD, PREAMBLE } from "./small_frame.ts";
import { type Memory, minus, PortError, Refused, roundUp } from "./small_memory.ts";
import type { End, Endpoint } from "./small_port.ts";
import type { Message } from "./small_reader.ts";
import type { Channel } from "./small_segment.ts";

const [TAIL, HEAD, READER_WANTS, WRITER_WANTS] = [0, 128, 256, 384];
/** What only `end` may take. */
const RESERVE = 16;

/** A frame to place: its flags, and which bytes of the message it carries. */
interface Chunk {
  flags: number;
  from: number;
  to: number;
}

/** What a port does while it waits for room. */
export interface Meanwhile {
  takeIn(): void;
  /** Asks to be rung for what could be taken in, or no longer. */
  arm(isArmed: boolean): void;
  look(): boolean;
}

/** The writing end of a ring. */
export class Writer implements End {
  readonly endpoint: Endpoint;
  readonly ring: Channel;
  readonly #memory: Memory;
  #tail: number;
  #published: number;
  #head: number;
  /** Whether a place is claimed. */
  #isClaimed = false;
  /** The message of which a part is in the ring, and the rest never will be. */
  #owed: Message | undefined;
  #fault: PortError | undefined;
  #hasEnded = false;
  meanwhile?: Meanwhile;

  constructor(endpoint: Endpoint, ring: Channel) {
    this.endpoint = endpoint;
    this.#memory = endpoint.segment.memory;
    this.ring = ring;
    const tail = endpoint.begin(ring.start, ring.control + TAIL);
    this.#tail = this.#published = this.#head = tail;
    endpoint.ends.push(this);
  }

  /** Writes all of a message where there is room now; returns whether there was. */
  tryWrite(message: Message): boolean {
    this.#answer();
    if (!has("written_while_claimed")) this.#refuseClaimed();
    this.#requireFits(message);
    if (!this.#payOwed()) return false;
    const tail = this.#tail;
    let at = tail;
    for (let next = 0, first = true; first || next < message.payload.length; first = false) {
      const chunk = this.#cut(message, next, at);
      const { pad, extent } = this.#spanOf(sizeOf(chunk), at);
      if (!this.#hasRoom(at, pad + extent)) {
        if (has("try_partly") && at !== tail) this.publish();
        return false;
      }
      if (has("try_partly")) this.#place(message, chunk);
      at = (at + pad + extent) >>> 0;
      next = chunk.to;
    }
    if (has("try_partly")) return this.publish(), true;
    for (let next = 0, first = true; first || next < message.payload.length; first = false) {
      const chunk = this.#cut(message, next, this.#tail);
      this.#place(message, chunk);
      next = chunk.to;
    }
    this.publish();
    return true;
  }

  /** Writes a message, and waits for room. Throws at the deadline. */
  write(message: Message, timeoutMs: number): void {
    const deadline = performance.now() + timeoutMs;
    this.#answer();
    if (!has("written_while_claimed")) this.#refuseClaimed();
    while (!this.#payOwed()) this.#waitRoom(RESERVE, deadline);
    let isBegun = false;
    for (let next = 0; !isBegun || next < message.payload.length;) {
      const chunk = this.#cut(message, next, this.#tail);
      const { pad, extent } = this.#spanOf(sizeOf(chunk), this.#tail);
      if (!this.#hasRoom(this.#tail, pad + extent)) {
        this.endpoint.settle();
        try {
          this.#waitRoom(pad + extent, deadline);
        } catch (error) {
          if (isBegun && !has("cancel_forgotten")) this.#owed = message; // [pipe.owed]
          throw error;
        }
        continue;
      }
      this.#place(message, chunk);
      next = chunk.to;
      isBegun = true;
    }
    this.publish();
  }

  /** Waits until there is room for a message of one frame. Throws at the deadline. */
  waitFor(message: Message, deadline: number): void {
    const { pad, extent } = this.#spanOf(message.payload.length, this.#tail);
    this.#waitRoom(pad + extent, deadline);
  }

  /** Whether the peer has given room back, or is gone. */
  look(): boolean {
    return this.#memory.load(this.ring.control + HEAD) !== this.#head ||
      !has("recheck_stateless") &&
        (this.endpoint.ownState() ?? this.endpoint.peerState()) !== undefined;
  }

  /** Asks to be rung as soon as there is any room, and no longer. */
  arm(isArmed: boolean): void {
    const wanted = (minus(this.#head, -16) | 1) >>> 0;
    this.#memory.store(this.ring.control + WRITER_WANTS, isArmed ? wanted : 0);
  }

  get isClaimed(): boolean {
    return this.#isClaimed;
  }

  /** Throws what a call answers before it does anything. */
  check(): void {
    this.#answer();
  }

  /** Claims a place for so many bytes where there is room now; returns whether there was. */
  claim(size: number): boolean {
    this.#answer();
    if (!has("claimed_twice")) this.#refuseClaimed();
    if (HEADER + size > this.ring.capacity / 2) throw new Refused("too large for one frame");
    if (!this.#payOwed()) return false;
    const { pad, extent } = this.#spanOf(size, this.#tail);
    if (!this.#hasRoom(this.#tail, pad + extent)) return false;
    this.#isClaimed = true;
    return true;
  }

  /** Finishes what is claimed: as a message that `publish` will make visible. */
  finish(message: Message): void {
    this.#endClaim();
    this.#place(message, { flags: FIRST | LAST, from: 0, to: message.payload.length });
  }

  /** Gives the place up that is claimed. */
  abandon(): void {
    this.#endClaim();
  }

  #endClaim(): void {
    if (this.endpoint.closed) throw new PortError("pipe.closed");
    if (!this.#isClaimed && !has("finished_nothing")) {
      throw new Refused("nothing is claimed"); // [pipe.claim_one]
    }
    this.#isClaimed = false;
  }

  /** [pipe.claim_one] */
  #refuseClaimed(): void {
    if (this.#isClaimed) throw new Refused("a claim is open");
  }

  /** [ring.publish_all] */
  settle(): void {
    this.publish();
  }

  /** Stores `tail` for what is finished; what a close or a fault has dropped is not. */
  publish(): void {
    const isDropped = this.endpoint.closed || this.#fault !== undefined;
    if (isDropped && has("publish_answers")) this.#answer();
    if (this.#tail === this.#published && !has("publish_always")) return; // [pipe.publish_none]
    if (isDropped && !has("published_after_all")) return;
    this.#published = this.#tail;
    this.#memory.store(this.ring.control + TAIL, this.#tail);
    this.endpoint.wake(this.ring.control + READER_WANTS, this.#tail);
  }

  /** Begins the ring anew: both cursors stand where this end is. [pipe.vacated] */
  restart(): void {
    const { control } = this.ring;
    if (!has("vacated_finished_kept")) this.#tail = this.#published;
    this.#head = this.#published;
    if (!has("vacates_cursors_left")) this.#memory.store(control + HEAD, this.#published);
    if (!has("vacates_wants_left")) this.#memory.store(control + READER_WANTS, 0);
    if (!has("vacated_claim_kept")) this.#isClaimed = false;
    if (!has("vacated_owed_kept")) this.#owed = undefined;
    if (!has("vacated_end_kept")) this.#hasEnded = false;
    if (!has("vacated_fault_kept")) this.#fault = undefined;
  }

  /** Ends the stream; never waits. */
  end(): void {
    if (this.#hasEnded && !has("end_twice")) return;
    if (!this.endpoint.closed && !has("ended_while_claimed")) this.#refuseClaimed();
    try {
      this.#answer();
    } catch (error) {
      const isState = error instanceof PortError && /\.(closed|failed)$/.test(error.code);
      if (!isState || this.endpoint.closed) throw error;
      this.#hasEnded = true; // [pipe.end_closed]
      return;
    }
    if (this.#owed !== undefined) this.#payOwed();
    if (has("end_waits") && !this.#hasRoom(this.#tail, 16)) throw new PortError("wait.timeout");
    this.#header(this.#tail, { size: 0, kind: END, flags: 0, codec: 0, tag: 0 });
    this.#tail = (this.#tail + 16) >>> 0;
    this.#hasEnded = true;
    this.publish();
  }

  /** What a call answers before it does anything. [pipe.first_answer] */
  #answer(): void {
    if (this.endpoint.closed) throw new PortError("pipe.closed");
    if (this.#fault !== undefined && !has("fault_forgotten")) throw this.#fault;
    if (this.#hasEnded && !has("end_twice")) throw new PortError("pipe.ended");
    const final = this.endpoint.ownState() ??
      (has("peer_ignored") ? undefined : this.endpoint.peerState());
    if (final !== undefined) throw final;
  }

  /** Places the cancel that is owed; returns whether none is owed any more. */
  #payOwed(): boolean {
    if (this.#owed === undefined) return true;
    if (!this.#hasRoom(this.#tail, HEADER)) return false;
    const { kind, codec, tag } = this.#owed;
    this.#header(this.#tail, { size: 0, kind, flags: LAST | CANCEL, codec, tag });
    this.#tail = (this.#tail + HEADER) >>> 0;
    this.#owed = undefined;
    this.publish();
    return true;
  }

  /** Waits until so many bytes and the reserve are free. */
  #waitRoom(size: number, deadline: number): void {
    const { control, capacity } = this.ring;
    for (;;) {
      this.#load();
      if (this.#hasRoom(this.#tail, size)) return;
      this.meanwhile?.takeIn();
      const final = this.endpoint.ownState() ?? this.endpoint.peerState();
      if (final !== undefined) throw final;
      if (performance.now() >= deadline) throw new PortError("wait.timeout");
      const wanted = (this.#tail + size + RESERVE - capacity) >>> 0;
      const look = () => this.look() || this.meanwhile?.look() === true;
      this.meanwhile?.arm(true);
      this.endpoint.sleep(control + WRITER_WANTS, wanted, look, deadline);
      this.meanwhile?.arm(false);
    }
  }

  #hasRoom(tail: number, size: number): boolean {
    const reserve = has("room_reserve") ? 0 : RESERVE;
    const fits = () => minus(tail, this.#head) + size <= this.ring.capacity - reserve;
    if (!fits()) this.#load();
    return fits();
  }

  /** Loads the peer's cursor and checks it. [ring.cursor] */
  #load(): void {
    const head = this.#memory.load(this.ring.control + HEAD);
    const [used, known] = [minus(this.#published, head), minus(this.#published, this.#head)];
    const isBehind = has("wrap_ignored") ? head > this.#published : used > this.ring.capacity;
    const isBack = used > known && !has("cursor_back");
    if ((head % 16 !== 0 || isBehind || isBack) && !has("cursor_trusted")) {
      throw this.#fault = this.endpoint.failPeer("ring.cursor");
    }
    this.#head = head;
  }

  /** The next piece of a message: all of it in one frame, or a quarter of the ring. */
  #cut({ payload }: Message, from: number, tail: number): Chunk {
    const { capacity } = this.ring;
    if (HEADER + payload.length <= capacity / 2) {
      return { flags: FIRST | LAST, from: 0, to: payload.length };
    }
    const toEnd = capacity - tail % capacity;
    const own = HEADER + (from === 0 ? PREAMBLE : 0);
    // Up to the end of the area, where that leaves room for a part. [frame.part]
    const extent = toEnd > own && toEnd < capacity / 4 ? toEnd : capacity / 4;
    const to = Math.min(payload.length, from + extent - own);
    const isFirst = from === 0 || has("first_twice");
    return { flags: (isFirst ? FIRST : 0) | (to === payload.length ? LAST : 0), from, to };
  }

  /** Bytes that a frame takes, and the pad before it. */
  #spanOf(size: number, tail: number): { pad: number; extent: number } {
    const { capacity } = this.ring;
    const extent = roundUp(HEADER + size, 16);
    const toEnd = capacity - tail % capacity;
    return { pad: extent > toEnd && !has("pad_missing") ? toEnd : 0, extent };
  }

  #place(message: Message, chunk: Chunk): void {
    const { kind, codec, tag, payload } = message;
    const size = sizeOf(chunk);
    const { pad, extent } = this.#spanOf(size, this.#tail);
    if (pad > 0) {
      const short = has("pad_short") && pad > 16 ? 16 : 0;
      this.#header(this.#tail, {
        size: pad - HEADER - short,
        kind: PAD,
        flags: 0,
        codec: 0,
        tag: 0,
      });
      this.#tail = (this.#tail + pad) >>> 0;
    }
    const end = (this.#tail + extent) >>> 0;
    this.#header(this.#tail, { size, kind, flags: chunk.flags, codec, tag });
    if (has("published_early")) this.#memory.store(this.ring.control + TAIL, end);
    hold("publish");
    const at = this.#tail + HEADER;
    const begin = chunk.from === 0 && (chunk.flags & LAST) === 0 && !has("preamble_missing")
      ? preambleOf(payload.length)
      : new Uint8Array(0);
    this.#store(at, begin);
    this.#store(at + begin.length, payload.subarray(chunk.from, chunk.to));
    this.#tail = end;
  }

  #header(
    at: number,
    { size, kind, flags, codec, tag }: Omit<Message, "payload"> & { size: number; flags: number },
  ): void {
    const header = new Uint8Array(HEADER);
    const view = new DataView(header.buffer);
    view.setUint32(0, size, true);
    header.set([kind, flags, codec], 4);
    view.setUint32(8, tag, true);
    this.#store(at, header);
  }

  /** Stores bytes at a position; around the end of the area, which only the faulty do. */
  #store(position: number, bytes: Uint8Array): void {
    const { data, capacity } = this.ring;
    bytes.forEach((byte, index) => {
      this.#memory.bytes[data + (position + index) % capacity] = byte;
    });
  }

  /** Refuses what could never be placed at once. [pipe.try_never] */
  #requireFits(message: Message): void {
    const { capacity } = this.ring;
    if (HEADER + message.payload.length <= capacity / 2) return;
    if (message.codec === BATCH) throw new Refused("a batch is one frame");
    for (let start = 0; start < capacity; start += 16) {
      let at = start;
      for (let next = 0; next < message.payload.length;) {
        const chunk = this.#cut(message, next, at);
        const { pad, extent } = this.#spanOf(sizeOf(chunk), at);
        at += pad + extent;
        const isNever = at - start > capacity - RESERVE;
        if (isNever && !has("never_forgotten")) throw new Refused("too large at once");
        next = chunk.to;
      }
    }
  }
}

/** Bytes of a chunk's payload, the preamble included. */
function sizeOf({ flags, from, to }: Chunk): number {
  const hasPreamble = from === 0 && (flags & LAST) === 0 && !has("preamble_missing");
  return to - from + (hasPreamble ? PREAMBLE : 0);
}

function preambleOf(total: number): Uint8Array {
  const preamble = new Uint8Array(PREAMBLE);
  new DataView(preamble.buffer).setUint32(0, total, true);
  return preamble;
}

// The small port: what was accepted for writing, and is not in the ring yet.

/** A message that was accepted. */
interface Post {
  message: Message;
  isStale: () => boolean;
  placed: () => void;
}

/** How long an answer of many frames may wait for room. */
const LONG_MS = 5_000;
/** How long a port waits that must not. */
const WAITS_MS = 50;

/** Messages that wait for room, in order. */
export class Outbox {
  readonly #writer: Writer;
  /** Whether a frame is lent: then nothing is written. */
  readonly #isLending: () => boolean;
  #posts: Post[] = [];
  #isWriting = false;

  constructor(writer: Writer, isLending: () => boolean) {
    this.#writer = writer;
    this.#isLending = isLending;
  }

  get isEmpty(): boolean {
    return this.#posts.length === 0;
  }

  /** Whether a message stands in the ring, or may, that is not whole. [call.whole_first] */
  get isHalfway(): boolean {
    return this.#isWriting || this.#writer.isClaimed;
  }

  /** Has a message written as soon as that is possible, unless it is stale by then. */
  post(message: Message, isStale: () => boolean, placed: () => void): void {
    this.#posts.push({ message, isStale, placed });
    if (has("serves_halfway") && this.#writer.tryWrite(message)) this.#posts.pop();
    const isBare = message.payload.length === 0 && message.kind === CALL;
    this.flush(isBare && has("cancel_waits") ? performance.now() + WAITS_MS : undefined);
    if (isBare && has("cancel_lost")) this.clear();
  }

  clear(): void {
    this.#posts = [];
  }

  /** Writes what was accepted, as far as there is room; with a deadline, waits for it. */
  flush(deadline?: number): void {
    if (this.isHalfway || this.#isLending()) return;
    for (let post = this.#posts[0]; post !== undefined; post = this.#posts[0]) {
      const isStale = post.isStale();
      if (!isStale && !this.#place(post.message, deadline)) return;
      this.#posts.shift();
      if (!isStale) post.placed();
    }
  }

  /** Writes an accepted message where there is room; whether there was, or nobody is there. */
  #place(message: Message, deadline?: number): boolean {
    try {
      while (!this.#writer.tryWrite(message)) {
        if (deadline === undefined) return false;
        this.#alone(() => this.#writer.waitFor(message, deadline));
      }
    } catch (error) {
      if (error instanceof Refused) this.#writeLong(message);
      else if (error instanceof PortError && error.code !== "wait.timeout") return true;
      else throw error;
    }
    return true;
  }

  #writeLong(message: Message): void {
    try {
      this.#alone(() => this.#writer.write(message, LONG_MS));
    } catch (error) {
      if (!(error instanceof PortError)) throw error; // the peer is gone, as a read will say
    }
  }

  /** Writes with nothing begun meanwhile. [call.whole_first] */
  #alone(write: () => void): void {
    if (this.#isWriting) throw new Error("two messages are written at once");
    this.#isWriting = true;
    try {
      write();
    } finally {
      this.#isWriting = false;
    }
  }

  /** Writes a message, after all that was accepted; without a time it does not wait. */
  write(message: Message, timeoutMs: number | undefined): boolean {
    const deadline = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    this.#writer.check();
    if (!has("owed_behind")) this.flush(deadline);
    if (!this.isEmpty && !has("owed_behind")) return false;
    if (timeoutMs === undefined) return this.#writer.tryWrite(message);
    this.#alone(() => this.#writer.write(message, timeoutMs));
    this.flush();
    return true;
  }
}
