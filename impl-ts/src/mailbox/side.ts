/**
 * What both sides of a mailbox share: the eight words, whose turn it is, waiting and closing. See
 * `spec/mailbox.md`; the sides themselves are in `mailbox.ts`.
 *
 * @module
 */

import { failure, type MillraceError } from "../error.ts";
import { layout, type ReasonCode } from "../memory/layout.ts";
import { isShared, type Memory, throwGone, toRegion } from "../memory/segment.ts";
import { defaultMechanism, type Mechanism } from "../wait/mechanism.ts";
import { type Endpoint, type EndpointOptions, look, makeEndpoint } from "../wait/endpoint.ts";

const SIGNAL = layout.MAILBOX_SIGNAL_WORD;
const STATUS = layout.MAILBOX_STATUS_WORD;
const ACTIVE = layout.MAILBOX_STATUS_ACTIVE;
const HEADER_WORDS = layout.MAILBOX_HEADER_SIZE >> 2;

/** One side of a mailbox. It belongs to the thread that created it. */
export class MailboxSide {
  /** The eight words. */
  readonly words: Int32Array;
  /** The byte area. */
  readonly bytes: Uint8Array;
  readonly #verb: "read" | "write";
  /** How this side waits: `signal` is its bell, and `status` the state of both sides. */
  readonly endpoint: Endpoint;
  /** The value of `signal` with which this side sleeps, and the value when it is its turn. */
  readonly theirs: number;
  readonly #mine: number;
  readonly #mechanism: Mechanism;
  #closed = false;
  /** The error that later calls throw after the peer has closed or broken the mailbox. */
  #ended: MillraceError | undefined;

  /**
   * @throws {SegmentError} `mailbox.size` if the memory is misaligned or too small.
   * [mailbox.section]
   */
  constructor(memory: Memory, verb: "read" | "write", options: EndpointOptions) {
    const { buffer, byteOffset, byteLength } = toRegion(memory);
    const area = byteLength - layout.MAILBOX_HEADER_SIZE;
    const aligned = byteOffset % layout.MAILBOX_HEADER_ALIGN === 0;
    if (!aligned || byteLength < layout.MAILBOX_SIZE_MIN) {
      throw failure("mailbox.size", `use mailbox: ${byteLength} bytes of memory at ${byteOffset}`);
    }
    this.words = new Int32Array(buffer, byteOffset, HEADER_WORDS);
    this.bytes = new Uint8Array(buffer, byteOffset + layout.MAILBOX_HEADER_SIZE, area);
    this.#verb = verb;
    this.#mine = verb === "read" ? layout.MAILBOX_SIGNAL_MAY_READ : layout.MAILBOX_SIGNAL_MAY_WRITE;
    this.theirs = verb === "read"
      ? layout.MAILBOX_SIGNAL_MAY_WRITE
      : layout.MAILBOX_SIGNAL_MAY_READ;
    this.#mechanism = options.mechanism ?? defaultMechanism({ shared: isShared(buffer) });
    const { words } = this;
    this.endpoint = makeEndpoint(words, SIGNAL, STATUS, ACTIVE, this.#mechanism, options.spin);
  }

  /** Whether either side has closed the mailbox, or the peer has broken it. It costs two loads. */
  get closed(): boolean {
    return this.#closed || this.#ended !== undefined || this.words.length === 0 ||
      Atomics.load(this.words, STATUS) === layout.MAILBOX_STATUS_DISPOSED ||
      Atomics.load(this.words, SIGNAL) === layout.MAILBOX_SIGNAL_DISPOSED;
  }

  /**
   * Returns whether it is this side's turn. Throws if the mailbox is closed or broken, and ends it
   * if the peer has broken it. [mailbox.atomic]
   */
  checkTurn(): boolean {
    if (this.#closed) {
      throw failure("pipe.closed", `${this.#verb}: this side is closed`);
    }
    if (this.#ended) throw this.#ended;
    if (this.words.length === 0) throwGone();
    const signal = Atomics.load(this.words, SIGNAL);
    if (signal === layout.MAILBOX_SIGNAL_DISPOSED) throw this.#endClosed();
    if (signal !== this.#mine && signal !== this.theirs) {
      throw this.fail("mailbox.signal", `signal ${signal}`);
    }
    this.checkStatus(); // [mailbox.turn]
    return signal === this.#mine;
  }

  /** Loads `status`, and throws unless the mailbox is active. [mailbox.closed] */
  checkStatus(): void {
    const status = Atomics.load(this.words, STATUS);
    if (status === layout.MAILBOX_STATUS_ACTIVE) return;
    if (status === layout.MAILBOX_STATUS_DISPOSED) throw this.#endClosed();
    throw this.fail("mailbox.signal", `status ${status}`);
  }

  /**
   * Gives the turn to the peer and wakes it. Returns false if the mailbox turns out to be closed;
   * the next call of `checkTurn` then throws.
   */
  passTurn(): boolean {
    // [mailbox.signal_exchange] A plain store would overwrite a close.
    const found = Atomics.compareExchange(this.words, SIGNAL, this.#mine, this.theirs);
    if (found === this.#mine) {
      this.#mechanism.notify(this.words, SIGNAL); // [mailbox.notify]
      return true;
    }
    // No close stores this value, so the peer does not yet know that the mailbox has ended.
    if (found !== layout.MAILBOX_SIGNAL_DISPOSED) this.#shut();
    this.#endClosed();
    return false;
  }

  /**
   * Ends the mailbox because of a word that the peer wrote, and returns the error. [mailbox.check]
   */
  fail(code: ReasonCode, what: string): MillraceError {
    // To the peer this looks like a close: the words have no room for a reason.
    this.#shut();
    return this.#ended = failure(code, `${this.#verb}: the peer wrote ${what}`);
  }

  /** Closes the mailbox now, and ends every wait of both sides. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#shut();
    look(this.endpoint);
  }

  /** Whether `signal` no longer says that it is the peer's turn, or the memory is gone. */
  sees(): boolean {
    return !this.words.length || Atomics.load(this.words, SIGNAL) !== this.theirs;
  }

  #endClosed(): MillraceError {
    return this.#ended ??= failure(
      "peer.closed",
      `${this.#verb}: the peer has closed the mailbox`,
    );
  }

  /**
   * [mailbox.close] Status first: a peer that sees the signal changed must see the status changed.
   */
  #shut(): void {
    if (this.words.length === 0) return; // the memory is gone, for the peer as well
    Atomics.store(this.words, STATUS, layout.MAILBOX_STATUS_DISPOSED);
    Atomics.exchange(this.words, SIGNAL, layout.MAILBOX_SIGNAL_DISPOSED);
    this.#mechanism.notify(this.words, SIGNAL);
  }
}
