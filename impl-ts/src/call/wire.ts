/**
 * How messages of calls get into the ring: whole ones at once or behind what was posted, and what
 * is owed before the next message. See `spec/call.md`.
 *
 * @module
 */

import { setTimeout } from "../memory/clock.ts";
import { detach, makePayload, type Payload } from "../codec/codec.ts";
import { encodeTexts, encodeValues, type Piece } from "./values.ts";
import { BUSY, ENCODING, LENT, OWED, TAKEN } from "../memory/gate.ts";
import { WAIT_POLL_MS } from "../memory/layout.ts";
import type { Inlet } from "../pipe/inlet.ts";
import type { Outlet } from "../pipe/outlet.ts";
import { roomOf, waitRoomAsync } from "../pipe/room.ts";
import { type Outbox, Run } from "../port/outbox.ts";
import type { Duty, Waitable } from "../wait/wait.ts";

/** The way out for the calls of one port. */
export class CallWire implements Duty {
  readonly inlet: Inlet;
  readonly outlet: Outlet;
  readonly #outbox: () => Outbox;
  readonly #payload: Payload = makePayload();
  /** What takes those back that are accepted and not in the ring. */
  readonly #accepted = new Set<(reason?: unknown) => void>();
  /** Whether something owed waits for room. */
  #isOwing = false;

  /** Joins both directions of a port, and what it posts. */
  constructor(inlet: Inlet, outlet: Outlet, outbox: () => Outbox) {
    this.inlet = inlet;
    this.outlet = outlet;
    this.#outbox = outbox;
  }

  /**
   * Whether something may be placed now, and a call may begin: no message of this port is in the
   * ring in part, none waits for room in a call that blocks, nothing is claimed or encoded.
   * [call.whole_first]
   */
  get isFree(): boolean {
    const { bits } = this.outlet;
    return (bits & (BUSY | ENCODING | LENT)) === 0 && (bits & (OWED | TAKEN)) !== (OWED | TAKEN);
  }

  /** Encodes a list of values. @throws {TypeError} for one that cannot be carried. */
  encode(values: readonly unknown[]): void {
    const { outlet } = this;
    // Code of the application's may run in it, which must not write meanwhile.
    outlet.bits |= ENCODING;
    try {
      encodeValues(values, outlet, this.#payload);
    } finally {
      outlet.bits &= ~ENCODING;
    }
  }

  /** Encodes a list of texts, and a value behind them if it can be carried and is there. */
  encodeTexts(texts: readonly string[], data: Piece | undefined): void {
    encodeTexts(texts, data, this.#payload);
  }

  /** A copy of the payload that was encoded last. */
  keep(): Payload {
    const { source, size, code, isKept } = this.#payload;
    const payload = { source, size, code, isKept };
    detach(payload); // a list that is kept already has memory of its own
    return payload;
  }

  /** Takes a payload that was kept, as if it had just been encoded. */
  restore(payload: Payload): void {
    Object.assign(this.#payload, payload);
  }

  /**
   * Writes the message whose payload was encoded last, or accepts it where something stands in the
   * way. `settle` is called when it is in the ring, or with the reason why it will not come there.
   * Returns what takes it back, if it is not there yet.
   */
  send(
    kind: number,
    tag: number,
    settle: (reason?: unknown) => void,
  ): ((reason?: unknown) => void) | undefined {
    const { outlet } = this;
    const payload = this.#payload;
    if ((outlet.bits & TAKEN) === 0 && payload.size <= outlet.largest) {
      outlet.restore(payload);
      outlet.start(kind, tag);
      if (outlet.send() || outlet.trySend()) {
        settle();
        return undefined;
      }
    }
    const outbox = this.#outbox();
    const run = new Run(this.keep());
    const takeBack = (reason?: unknown) => outbox.takeBack(run, reason);
    run.count = 0;
    run.kind = kind;
    run.tag = tag;
    run.resolve = run.reject = (reason?: unknown) => {
      this.#accepted.delete(takeBack);
      settle(reason);
    };
    this.#accepted.add(takeBack);
    outbox.add(run);
    return takeBack;
  }

  /** Whether what is accepted now waits for the event loop: an asynchronous write has the turn. */
  get isStuck(): boolean {
    const { outlet } = this;
    if ((outlet.bits & TAKEN) === 0) return false;
    outlet.posts?.flush();
    return (outlet.bits & TAKEN) !== 0 && !this.#outbox().isActive;
  }

  /** Has a function told the tag of each cancel, and of each credit, that is placed. */
  onPlaced(placed: (tag: number) => void): void {
    this.outlet.asidePlaced = placed;
  }

  /** Places a cancel or credit now, or before the next message. [call.cancel_owed] */
  owe(tag: number): void {
    const { outlet } = this;
    outlet.setAside(tag);
    if (this.#tryPlace() || this.#isOwing) return;
    this.#isOwing = true;
    outlet.endpoint.owe(this);
    this.#placeLater();
  }

  /** Leaves out what is owed for a call that was answered. [call.cancel_owed] */
  forget(id: number, mask: number): void {
    const { asides } = this.outlet;
    for (let index = asides.length - 1; index >= 0; index--) {
      if ((asides[index]! & mask) === id) asides.splice(index, 1);
    }
  }

  /**
   * Nothing can be written any more, for this reason: nothing is owed, and what was accepted does
   * not reach the next owner of the peer's endpoint. [call.vacated]
   */
  stop(reason: unknown): void {
    for (const takeBack of [...this.#accepted]) takeBack(reason);
    this.outlet.asides.length = 0;
    if (this.#isOwing) this.outlet.endpoint.watch.look();
  }

  /** [port.posted] */
  attend(): Waitable | undefined {
    if (this.#tryPlace()) {
      this.#isOwing = false;
      this.outlet.endpoint.discharge(this);
      return undefined;
    }
    return this.isFree ? roomOf(this.outlet) : undefined;
  }

  /** Whether nothing is left to be placed, or nothing can be placed any more. */
  #tryPlace(): boolean {
    const { outlet } = this;
    if (outlet.asides.length === 0) return true;
    if (!this.isFree) return false;
    try {
      outlet.check(true);
      return outlet.placeCancel();
    } catch {
      outlet.asides.length = 0; // the port is lost: its calls are told by what they read
      return true;
    }
  }

  /** Places what is owed in the background. */
  async #placeLater(): Promise<void> {
    while (this.#isOwing) {
      if (this.isFree) await waitRoomAsync(this.outlet, Infinity, undefined).catch(() => {});
      else await new Promise((resolve) => setTimeout(resolve, WAIT_POLL_MS));
      if (this.#isOwing) this.attend();
    }
  }
}
