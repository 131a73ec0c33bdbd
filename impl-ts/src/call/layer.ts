/**
 * The calls of one port, in both directions: what the port hands over is sorted here, and whoever
 * waits for an answer serves meanwhile. See `spec/call.md`, and `pipe/calls.ts` for how the port
 * and this module work together.
 *
 * @module
 */

import { clearTimeout, setTimeout } from "../memory/clock.ts";
import { Callee } from "./callee.ts";
import { Caller, type OwnCall } from "./caller.ts";
import { CallError } from "./error.ts";
import { takeShown } from "./shown.ts";
import { CallWire } from "./wire.ts";
import { MessageError, MillraceError, PeerClosedError, PeerFailedError } from "../error.ts";
import { TimeoutError } from "../error.ts";
import { WHOLE } from "../ring/frame.ts";
import { ENDPOINT_STATE_CLOSED, REASON_SHIFT, WAIT_POLL_MS } from "../memory/layout.ts";
import { CALL_ID_MAX, CALL_MARK_ALL, CALL_MARK_CANCEL, CALL_MARK_MORE } from "../memory/layout.ts";
import { CODEC_VALUES } from "../memory/layout.ts";
import { FRAME_KIND_CALL, FRAME_KIND_RETURN, FRAME_KIND_THROW } from "../memory/layout.ts";
import type { CallTaker } from "../pipe/calls.ts";
import { FULL, type Inbox, NONE, rouse, type Taking, TOOK } from "../pipe/inbox.ts";
import { IN_RING, type Inlet, KEEP, LOOK } from "../pipe/inlet.ts";
import type { Message } from "../pipe/pipe.ts";
import type { Port } from "../port/port.ts";
import { isPast } from "../memory/segment.ts";
import { Looking, type Waitable } from "../wait/wait.ts";
import { stateOf } from "../wait/state.ts";

/** Milliseconds for which an event loop goes on looking for calls behind its last answer. */
const LINGER_MS = 10;

/** Something to be done, and what comes behind it: an array that runs empty is grown each time. */
interface Job {
  readonly run: () => void;
  next: Job | undefined;
}

/**
 * The calls of a port; made when it first serves, or calls.
 *
 * What each call runs is not private, here and in its caller and callee, so that the npm package
 * can have it compiled with its module: a first call takes half as long so (measured: Deno 2.9).
 */
export class CallLayer implements CallTaker {
  readonly caller: Caller;
  readonly callee: Callee;
  readonly what: Waitable;
  readonly #wire: CallWire;
  readonly #inlet: Inlet;
  readonly #inbox: Inbox;
  readonly #port: Port<unknown>;
  /** What is to be done where code of the application's may run. */
  #firstJob: Job | undefined;
  #lastJob: Job | undefined;
  /** Sees to it that they are done on an event loop, where they could not be at once. */
  #timer: unknown;
  /** Why no answer can come any more. */
  #lost: MillraceError | undefined;
  #isServing = false;
  /** Asynchronous calls under way; whether the process lives for them, and what ends that. */
  #pendingCount = 0;
  #isPending = false;
  #linger: unknown;
  #isAttending = true;

  private constructor(port: Port<unknown>) {
    this.#port = port;
    const { inlet } = port.reader;
    const { outlet } = port.writer;
    this.#inlet = inlet;
    this.#inbox = outlet.idle as Inbox;
    this.#wire = new CallWire(inlet, outlet, () => port.outbox);
    this.caller = new Caller(this.#wire, (job) => this.#deferAnywhere(job));
    this.callee = new Callee(this.#wire, (job) => this.defer(job));
    this.callee.left = () => this.noteLeft();
    this.what = new Looking(inlet, () => this.hasMore());
  }

  /** The layer of a port, which offers calls from then on. [call.offer] */
  static of(port: Port<unknown>): CallLayer {
    const { inlet } = port.reader;
    if (inlet.taker instanceof CallLayer) return inlet.taker;
    const layer = new CallLayer(port);
    port.delivery.change(() => inlet.taker = layer);
    return layer;
  }

  get isActive(): boolean {
    if (!this.#isAttending) return false;
    return this.#lost === undefined || this.callee.isBusy || this.#firstJob !== undefined;
  }

  get keeps(): boolean {
    return this.#isPending || (this.#isServing && this.#lost === undefined);
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  get waitingCount(): number {
    return this.callee.waitingCount;
  }

  get waitingSize(): number {
    return this.callee.waitingSize;
  }

  get isDue(): boolean {
    return this.#firstJob !== undefined && this.mayBegin();
  }

  /** Whether an event loop takes calls by itself, and not only where the port is read. */
  set isAttending(on: boolean) {
    this.#port.delivery.change(() => this.#isAttending = on);
  }

  /** Whether the process lives for what calls, as it does for a listener. */
  set isServing(on: boolean) {
    this.#port.delivery.change(() => this.#isServing = on);
  }

  /** Throws where no call can be made, and whatever the port was asked would fail. [call.lost] */
  requireOpen(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  serve(mayLoad: boolean): void {
    for (;; mayLoad = false) {
      if (this.#firstJob !== undefined) this.begin();
      if (this.#inlet.queue.length > 0 || !this.takeNext(mayLoad)) return;
    }
  }

  takeNext(mayLoad: boolean): boolean {
    const inlet = this.#inlet;
    if (inlet.pull(LOOK, undefined, mayLoad) !== IN_RING || !isOfCalls(inlet.frame)) return false;
    let message: Message | undefined;
    try {
      message = inlet.frame.flags === WHOLE ? takeShown(inlet) : this.#takePart();
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.#noteLost(error);
    }
    if (message !== undefined) this.sort(message);
    return true;
  }

  /** Takes what has come of a message of several frames; it itself behind the last one. */
  #takePart(): Message | undefined {
    const inlet = this.#inlet;
    const { kind, codec, tag } = inlet;
    try {
      return inlet.take(KEEP, undefined, false) as Message | undefined;
    } finally {
      inlet.note({ kind, codec, tag }); // they are those of what was read last
    }
  }

  takePassing(mayLoad: boolean): Taking {
    const inlet = this.#inlet;
    if (inlet.pull(LOOK, undefined, mayLoad) !== IN_RING) return NONE;
    const { frame } = inlet;
    if (isOfCalls(frame)) {
      if (!frame.inProgress && !this.#isForCall(frame)) return FULL;
      return this.takeNext(false) ? TOOK : NONE;
    }
    // What was begun while there was room is taken in to its end.
    if (!frame.inProgress) return FULL;
    const message = inlet.take(KEEP, undefined, false);
    if (message !== undefined) inlet.keep(message as Message);
    return message === undefined ? NONE : TOOK;
  }

  /** Whether a message needs no place in the inbox: not to begin, and not as a report. */
  #isForCall({ kind, codec, tag, size, flags }: Inlet["frame"]): boolean {
    if (kind !== FRAME_KIND_CALL) return isAnswer(kind, tag) && this.caller.has(tag);
    const mark = tag & CALL_MARK_ALL;
    const isBare = flags === WHOLE && size === 0 && codec === CODEC_VALUES;
    return isBare && mark !== 0 && mark !== (CALL_MARK_ALL | 0) && (tag & CALL_ID_MAX) !== 0;
  }

  /** Sorts one message. @throws {MessageError} its report. */
  sort({ kind, codec, tag, payload }: Message): void {
    if (kind === FRAME_KIND_CALL) return this.callee.take(codec, tag, payload);
    requireAnswer(kind, tag);
    this.caller.answer(kind, codec, tag, payload);
  }

  /**
   * A message was dropped. Its caller, or its callee, is told behind its last frame; and not of one
   * that was taken back after that. @throws {MessageError} its report.
   */
  #noteLost(error: MessageError): void {
    const inlet = this.#inlet;
    const { kind, tag, isLast } = inlet.frame;
    if (!isLast) inlet.refusal = error;
    else if (kind === FRAME_KIND_CALL) this.callee.lose(tag >>> 0, error);
    else {
      requireAnswer(kind, tag);
      this.caller.lose(tag >>> 0, error);
    }
  }

  cut(kind: number, tag: number, error: MessageError): boolean {
    const isAnswer = kind === FRAME_KIND_RETURN || kind === FRAME_KIND_THROW;
    if (!isAnswer || !this.caller.has(tag)) return false;
    this.caller.lose(tag & CALL_ID_MAX, error);
    return true;
  }

  begin(): void {
    while (this.isDue) {
      const { run, next } = this.#firstJob!;
      this.#firstJob = next;
      run();
    }
  }

  pump(): boolean | MessageError {
    if (this.isDue) {
      this.begin();
      return true;
    }
    const { queue } = this.#inlet;
    const first = queue[0];
    if (first instanceof MessageError) {
      queue.shift();
      return first;
    }
    const before = queue.length;
    const found = this.takeOne(true);
    if (queue.length > before && queue[0] instanceof MessageError) return this.pump();
    if (queue.length > before) rouse(this.#inlet); // whoever waits for messages in another way
    if (this.isDue) this.begin();
    if (found === FULL) {
      this.caller.giveUpAll(inboxError);
      const gone = this.#inlet.lookAgain();
      if (gone !== undefined) this.finish(gone);
    }
    return found === TOOK;
  }

  finish(error: MillraceError | undefined): void {
    const isGone = error !== undefined;
    if (isGone) {
      this.#firstJob = undefined;
      clearTimeout(this.#timer as number);
      this.#timer = undefined;
      this.#wire.stop(error);
      this.callee.tellAll();
    }
    if (this.#lost !== undefined) return;
    const text = "Cannot call: the peer has ended its stream";
    const lost = error ?? new CallError("call.ended", text);
    clearTimeout(this.#linger as number);
    this.#linger = undefined;
    this.#port.delivery.change(() => {
      this.#lost = lost;
      this.#isPending = false;
    });
    this.caller.finish(lost);
  }

  mute(): void {
    this.callee.tellAll();
  }

  renew(): void {
    const { endpoint, peer } = this.#inlet;
    this.finish(goneError(endpoint.state(peer)));
    this.caller.nextId = 1;
    this.#port.delivery.change(() => this.#lost = undefined);
  }

  /**
   * Blocks until something has come of a call that was made, and serves meanwhile. Where nothing
   * does, the call is given up, and so has ended; before it waits at all, if it `mayBeLate`.
   * [call.serve_waiting]
   */
  block(call: OwnCall, deadline: number, mayBeLate: boolean): void {
    const inlet = this.#inlet;
    const { endpoint } = inlet;
    const what = new Looking(inlet, () => call.isReady || this.hasMore());
    try {
      for (let waits = 0;; waits++) {
        // Mostly, nothing has come before the call was made.
        if (waits > 0 || inlet.hasMore || this.#firstJob !== undefined) this.takeIn(call);
        if (call.isReady) return;
        if (waits === 0 && this.glance()) continue;
        if ((mayBeLate || waits > 0) && isPast(deadline)) {
          return this.caller.giveUp(call, timedOut());
        }
        if (endpoint.waitBriefly(what) || endpoint.wait(what, deadline, waits)) continue;
        if (call.isReady) return;
      }
    } catch (error) {
      this.caller.giveUp(call, error); // a thread that must not block, for one
      throw error;
    }
  }

  /** Throws where this thread cannot wait for an answer. */
  requireBlocking(): void {
    if (this.#inlet.isLending) throw new TypeError("Cannot call: a frame is lent");
    if (!this.#wire.isStuck) return;
    throw new TypeError("Cannot call: an asynchronous write is under way");
  }

  /** One more asynchronous call is under way, for which the process lives. */
  hold(): void {
    this.#pendingCount++;
    if (this.#isPending || this.#lost !== undefined) return;
    this.#port.delivery.change(() => this.#isPending = true);
  }

  /** One less. */
  letGo(): void {
    if (--this.#pendingCount > 0 || !this.#isPending || this.#linger !== undefined) return;
    // A program that makes one call after the other does not turn that on and off each time.
    this.#linger = setTimeout(() => {
      this.#linger = undefined;
      if (this.#pendingCount > 0) return;
      this.#port.delivery.change(() => this.#isPending = false);
    }, LINGER_MS);
  }

  /** Whether a call may begin now. [call.whole_first] */
  mayBegin(): boolean {
    return this.#wire.isFree && !this.#inlet.isLending;
  }

  /** Has something done where code of the application's may run. */
  defer(job: () => void): void {
    const one: Job = { run: job, next: undefined };
    if (this.#firstJob === undefined) this.#firstJob = one;
    else this.#lastJob!.next = one;
    this.#lastJob = one;
    // Nothing tells when a message is whole, or a frame is given back: both are rare here.
    if (this.mayBegin() || this.#timer !== undefined) return;
    const look = () => {
      this.#timer = this.#firstJob !== undefined && !this.mayBegin()
        ? setTimeout(look, WAIT_POLL_MS)
        : undefined;
      if (this.isDue) rouse(this.#inlet);
    };
    this.#timer = setTimeout(look, WAIT_POLL_MS);
  }

  /** The same from where nobody looks for what is to be done, such as the end of a deadline. */
  #deferAnywhere(job: () => void): void {
    this.defer(job);
    rouse(this.#inlet);
  }

  /** Whether there is something to do for one who waits on behalf of calls. */
  hasMore(): boolean {
    const inlet = this.#inlet;
    return inlet.hasMoved || (this.#firstJob !== undefined && this.mayBegin()) ||
      (inlet.own !== inlet.other && inlet.isOpen && this.#inbox.hasRoom);
  }

  /** Takes one message in; a state that is final counts where nothing comes of a last look. */
  takeOne(mayLoad: boolean): Taking {
    const inlet = this.#inlet;
    const found = this.#inbox.takeOne(mayLoad);
    if (found !== NONE || inlet.isLending) return found;
    try {
      const gone = inlet.lookAgain();
      if (gone === undefined) return NONE;
      const last = this.#inbox.takeOne(false);
      if (last === NONE) inlet.giveUp(gone);
      return last;
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      this.finish(error); // most of them have ended its calls already
      return NONE;
    }
  }

  /** Takes in what is there, and serves, until something has come of a call. [call.set_aside] */
  takeIn(call: OwnCall): void {
    const before = this.#inlet.queue.length;
    for (let mayLoad = true;; mayLoad = false) {
      if (this.#firstJob !== undefined) this.begin();
      if (call.isReady) break;
      const found = this.takeOne(mayLoad);
      if (found === FULL) this.caller.giveUp(call, inboxError());
      if (found !== TOOK) break;
    }
    if (this.#inlet.queue.length > before) rouse(this.#inlet);
  }

  /** Looks a few times for an answer that may come at once. */
  glance(): boolean {
    const { outlet } = this.#wire;
    if (!outlet.isAnswerDue) return false;
    const { glances } = this.#inlet.endpoint.spinner;
    if (glances === 0) return false;
    outlet.prepareForAnswer();
    return this.#inlet.glance(glances);
  }

  /** Behind the last answer to a peer that has ended its stream, nothing is looked for any more. */
  noteLeft(): void {
    if (this.#lost === undefined || this.isActive) return;
    this.#port.delivery.change(() => {});
  }
}

/** Whether a frame is of a message of calls, returns and throws. */
function isOfCalls({ kind }: { readonly kind: number }): boolean {
  return kind >= FRAME_KIND_CALL && kind <= FRAME_KIND_THROW;
}

/** Throws for what is no answer and no item. [call.stray] */
function requireAnswer(kind: number, tag: number): void {
  if (isAnswer(kind, tag)) return;
  throw new MessageError("call.form", "Cannot take message: it is none of a call");
}

/** Whether a return or a throw has a tag of an answer, or of an item. */
function isAnswer(kind: number, tag: number): boolean {
  const isItem = kind === FRAME_KIND_RETURN && (tag & CALL_MARK_MORE) !== 0;
  const marks = isItem ? CALL_MARK_CANCEL : CALL_MARK_CANCEL | CALL_MARK_MORE;
  return (tag & marks) === 0 && (tag & CALL_ID_MAX) !== 0;
}

/** The error of a peer with this final state, which nobody may have looked at. */
function goneError(word: number): MillraceError {
  const text = "Cannot call: the peer";
  return stateOf(word) === ENDPOINT_STATE_CLOSED
    ? new PeerClosedError("peer.closed", `${text} has closed`)
    : new PeerFailedError(`${text} is marked failed`, word >>> REASON_SHIFT);
}

function timedOut(): TimeoutError {
  return new TimeoutError("Cannot call: no answer has come until the deadline");
}

function inboxError(): CallError {
  return new CallError("call.inbox", "Cannot call: the inbox is full before the answer");
}
