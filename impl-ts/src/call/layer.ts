/**
 * The calls of one port, in both directions: what arrives for them is sorted here, and whoever
 * waits for an answer serves meanwhile. See `spec/call.md`.
 *
 * To take a message is bookkeeping: an answer ends its call, and what concerns methods is noted as
 * a job. Jobs run the application's own code: where the port is read, where an answer is waited
 * for, and on the event loop. They never run while a message is written in part.
 *
 * @module
 */

import { MillraceError, raise, throwCannot } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { isPast } from "../memory/segment.ts";
import {
  collect,
  Found,
  giveUpRest,
  glance,
  type Incoming,
  keepNext,
  mayGoOn,
  Mode,
  type Route,
} from "../pipe/incoming.ts";
import type { Link } from "../pipe/link.ts";
import type { Message } from "../pipe/options.ts";
import { For, noteKeeping, stateError, tendSoon } from "../pipe/tend.ts";
import { giveUpAll, type Outgoing } from "../pipe/outgoing.ts";
import {
  callListeners,
  isAwaiting,
  isTurnOver,
  lookOut,
  type PortDelivery,
  Tuned,
} from "../port/delivery.ts";
import { PortEvent } from "../port/events.ts";
import { Head } from "../ring/frame.ts";
import { Bit, load } from "../ring/side.ts";
import { Callee, isMark, strayError } from "./callee.ts";
import { Caller, lateError, type OwnCall } from "./caller.ts";
import { turn } from "../wait/loop.ts";
import { CallError } from "./error.ts";
import { wait } from "../wait/endpoint.ts";
import { hasChanged } from "../wait/state.ts";

const CALL = layout.FRAME_KIND_CALL;
const THROW = layout.FRAME_KIND_THROW;

/** The calls of a port; made when it first serves, or calls. */
export class CallLayer implements Route {
  readonly caller: Caller;
  readonly callee: Callee;
  /** Whether an event loop takes calls by itself, and not only where the port is read. */
  isAttending = true;
  /** Whether the process lives for what calls, as it does for a listener. */
  isServing = false;
  readonly #link: Link;
  readonly #inc: Incoming;
  readonly #out: Outgoing;
  /** What is to be done where the application's code may run. */
  readonly #jobs: (() => void)[] = [];
  /** Why no answer can come any more. */
  #lost: MillraceError | undefined;
  /** Asynchronous calls under way. */
  #pendingCount = 0;
  /** The call for which this thread blocks. */
  #awaited: OwnCall | undefined;

  private constructor(link: Link) {
    this.#link = link;
    const inc = this.#inc = link.incoming!;
    const out = this.#out = link.outgoing!;
    // Has something done where the application's code may run.
    const defer = (job: () => void) => {
      this.#jobs.push(job);
      tendSoon(link);
    };
    this.caller = new Caller(out, inc, defer);
    this.callee = new Callee(out, inc, defer);
  }

  /** The layer of a port, which offers calls from then on. [call.offer] */
  static of({ link }: { readonly link: Link }): CallLayer {
    const { route } = link.incoming!;
    if (route instanceof CallLayer) return route;
    const layer = link.incoming!.route = new CallLayer(link);
    tendSoon(link);
    return layer;
  }

  get keeps(): boolean {
    return this.#lost === undefined && (this.isServing || this.#pendingCount > 0);
  }

  get isDue(): boolean {
    return this.#jobs.length > 0 && this.#mayBegin() || this.#awaited?.isReady === true;
  }

  /**
   * Throws if no call can be made, or none for which this thread `blocks`: whatever the port was
   * asked would fail. [call.lost]
   */
  requireOpen(blocks?: boolean): void {
    if (blocks && this.#inc.bits & Bit.LENDING) throwCannot("call: a frame is lent");
    raise(this.#lost);
  }

  take({ kind, codec, tag, payload }: Message): void {
    if (kind === CALL) return this.callee.take(codec, tag, payload);
    requireAnswer(kind, tag);
    this.caller.answer(kind, tag, codec, payload);
  }

  lose(kind: number, tag: number, report: MillraceError): boolean {
    if (report.code === "message.truncated" && (kind === CALL || !this.caller.has(tag))) {
      return false;
    }
    if (kind === CALL) return this.callee.lose(tag, report);
    requireAnswer(kind, tag);
    this.caller.answer(kind, tag, 0, report);
    return true;
  }

  accept(mode: Mode): Found {
    const inc = this.#inc;
    const { kind, codec, flags, tag, size } = inc.frame;
    const isLast = (flags & layout.FRAME_FLAG_LAST) !== 0;
    if (mode === Mode.PASS) {
      const needsRoom = kind === CALL
        ? flags !== Head.WHOLE || !isMark(tag, codec, size)
        : !isAnswer(kind, tag) || !this.caller.has(tag);
      if (needsRoom) return Found.IN_RING;
    }
    let payload: Uint8Array | undefined;
    try {
      payload = collect(inc);
    } catch (report) {
      if (!(report instanceof MillraceError)) throw report;
      if (!isLast) inc.report = report;
      else if (!this.lose(kind, tag, report)) throw report;
    }
    if (payload !== undefined) inc.keep(inc, { kind, codec, tag, payload });
    return isLast ? Found.TAKEN : Found.NOTHING;
  }

  serve(delivery: PortDelivery): boolean {
    const inc = this.#inc;
    const { queue, takers } = inc;
    this.begin();
    if (takers.length === 0) {
      const [first] = queue;
      if (first instanceof MillraceError) {
        queue.shift();
        noteDelivered(delivery);
        callListeners(delivery, new PortEvent("messageerror", delivery.port, first));
        return true;
      }
      // No longer than there is nothing to begin: to take a message in runs no code but our own.
      for (;;) {
        if (this.isDue || isTurnOver(delivery)) return true;
        if (keepNext(inc, true) !== Found.TAKEN) break;
        noteDelivered(delivery);
      }
      lookOut(delivery);
    }
    return isAwaiting(delivery, For.FRAMES);
  }

  refuse(): boolean {
    const inc = this.#inc;
    if (mayGoOn(inc)) return false;
    load(inc); // or what came since would seem new forever
    if (this.isAttending) this.caller.giveUpAll(inboxError);
    return true;
  }

  begin(): void {
    while (this.#jobs.length > 0 && this.#mayBegin()) this.#jobs.shift()!();
  }

  tend(): number {
    const { callee } = this;
    if ((this.#out.bits & Bit.ENDED) !== 0) callee.tellAll();
    if (this.#lost !== undefined && callee.isBusy && hasChanged(this.#link)) {
      this.finish(stateError(this.#link, "call"));
    }
    if (!this.isAttending) return 0;
    if (this.#lost === undefined) return For.FRAMES | For.CALLS;
    return callee.isBusy || this.#jobs.length > 0 ? For.CALLS : 0;
  }

  finish(reason: MillraceError | undefined): void {
    if (reason !== undefined) {
      this.#jobs.length = 0;
      this.callee.tellAll();
      giveUpAll(this.#out, reason, ({ kind }) => kind >= CALL && kind <= THROW); // [call.vacated]
    }
    if (this.#lost !== undefined) return;
    this.#lost = reason === undefined
      ? new CallError("call.ended", "Cannot call: the peer has ended its stream")
      : this.#inc.fault ?? reason;
    this.caller.finish(this.#lost);
  }

  /**
   * Blocks until something has come of a call that was made, and serves meanwhile. If nothing does,
   * the call is given up, and so has ended; before it waits at all, if it `mayBeLate`.
   * [call.serve_waiting]
   */
  block(call: OwnCall, deadline: number, mayBeLate: boolean): void {
    const before = this.#awaited;
    this.#awaited = call;
    try {
      for (let waits = 0;; waits++) {
        this.#takeIn(call);
        if (call.isReady) return;
        if (waits === 0 && glance(this.#inc)) continue;
        if ((mayBeLate || waits > 0) && isPast(deadline)) {
          return this.caller.giveUp(call, lateError());
        }
        wait(this.#link, For.FRAMES | For.CALLS, deadline, waits);
      }
    } catch (error) {
      this.caller.giveUp(call, error); // a thread that must not block, for one
      throw error;
    } finally {
      this.#awaited = before;
    }
  }

  /** One more asynchronous call is under way, or one less: the process lives for them. */
  hold(change: 1 | -1): void {
    this.#pendingCount += change;
    noteKeeping(this.#link);
    if (this.#inc.cursor !== this.#inc.peerCursor) tendSoon(this.#link); // the inbox may be full
  }

  /** Whether a call may begin now. [call.whole_first] */
  #mayBegin(): boolean {
    const { first, bits } = this.#out;
    const isWriting = first !== undefined && first.sent >= 0;
    const isLending = (this.#inc.bits & Bit.LENDING) !== 0;
    return !isWriting && !isLending && (bits & (Bit.LENT | Bit.ENCODING)) === 0;
  }

  /** Takes in what is there, and serves, until something has come of a call. [call.set_aside] */
  #takeIn(call: OwnCall): void {
    const inc = this.#inc;
    const link = this.#link;
    const before = inc.queue.length;
    let gone: MillraceError | undefined;
    for (let mayLoad = true;; mayLoad = false) {
      this.begin();
      if (call.isReady) break;
      const found = keepNext(inc, mayLoad);
      if (found === Found.TAKEN) continue;
      if (found === Found.IN_RING) this.caller.giveUp(call, inboxError());
      else if (gone !== undefined) giveUpRest(inc, gone);
      else if (inc.fault !== undefined) this.finish(inc.fault);
      else if (hasChanged(link)) {
        gone = stateError(link, "call");
        if (gone !== undefined && (inc.bits & Bit.STOPPED) === 0) load(inc);
        if (gone !== undefined) continue;
      }
      break;
    }
    if (inc.queue.length > before) tendSoon(link);
  }
}

/** Counts a message of a run, as one that was delivered. */
function noteDelivered(delivery: PortDelivery): void {
  turn.delivered++;
  delivery.hops = Tuned.HOPS;
}

/** Throws for what is no answer and no item. [call.stray] */
function requireAnswer(kind: number, tag: number): void {
  if (!isAnswer(kind, tag)) throw strayError();
}

/** Whether a return or a throw has a tag of an answer, or of an item. */
function isAnswer(kind: number, tag: number): boolean {
  const id = kind === layout.FRAME_KIND_RETURN ? tag & ~layout.CALL_MARK_MORE : tag;
  return id > 0 && id <= layout.CALL_ID_MAX;
}

function inboxError(): MillraceError {
  return new CallError("call.inbox", "Cannot call: the inbox is full before the answer");
}
