/**
 * A `SABPipe` on the mailbox, the original's wire: the peer may be an endpoint of the original.
 *
 * @module
 */

import { PartReader, type Parts, PartWriter } from "../mailbox/parts.ts";
import { MailboxSide } from "../mailbox/side.ts";
import { type Delivery, tendSoon } from "../pipe/link.ts";
import type { Fault, ReaderWire, Section, Wire, WriterWire } from "./sab_wire.ts";

/** What both ends share: one side of a mailbox, and how it waits. */
abstract class MailboxEnd implements Wire {
  owner!: Delivery;
  isDue = false;
  streak = 0;
  protected readonly side: MailboxSide;
  /** Whether the event loop waits. */
  #isAsleep = false;
  readonly tendLater = (): void => this.tend();

  /** @throws {SegmentError} `mailbox.size` if the section is too small or not aligned to 4. */
  constructor(section: Section, verb: "read" | "write") {
    this.side = new MailboxSide(section, verb, {});
  }

  get disposed(): boolean {
    return this.side.closed;
  }

  /** Each sleep of a side keeps the event loop alive, and ends after a slice. */
  tend(): void {
    this.isDue = false;
    if (this.owner.tend() === 0) this.side.endAsyncWait();
    else if (!this.#isAsleep) {
      this.#isAsleep = true;
      this.side.waitAsync(Infinity, undefined).then(() => {
        this.#isAsleep = false;
        this.tend();
      });
    }
  }

  tendSoon(): void {
    tendSoon(this);
  }

  close(): void {
    this.side.close();
    this.tendSoon();
  }
}

/** The writing end of a mailbox. */
export class MailboxWriterWire extends MailboxEnd implements WriterWire {
  fault: Fault | undefined;
  readonly #writer: PartWriter;
  /** The burst that is being written, as one payload. */
  #parts: Parts | undefined;

  constructor(section: Section) {
    super(section, "write");
    this.#writer = new PartWriter(this.side);
  }

  /**
   * As in the original: messages posted until the reader has emptied the mailbox join the burst.
   */
  get mayBegin(): boolean {
    return this.side.checkTurn();
  }

  begin(values: readonly unknown[]): void {
    this.fault = this.#parts = undefined;
    let sound = values;
    try {
      if (values.length > 0) this.#parts = this.#writer.encode(values);
    } catch (reason) {
      this.fault = { reason };
      sound = values.filter(isSound);
      if (sound.length === values.length) throw reason;
      if (sound.length > 0) this.#parts = this.#writer.encode(sound);
    }
  }

  carryOn(): boolean {
    const parts = this.#parts;
    if (parts === undefined || this.#writer.advance(parts)) return true;
    this.#writer.detach(parts);
    return false;
  }
}

/** The reading end of a mailbox. */
export class MailboxReaderWire extends MailboxEnd implements ReaderWire {
  readonly #reader: PartReader;

  constructor(section: Section, maxMessageSize: number) {
    super(section, "read");
    this.#reader = new PartReader(this.side, maxMessageSize);
  }

  take(): unknown[] | undefined {
    return this.#reader.take();
  }

  wait(deadline: number, waits: number): boolean {
    return this.side.wait(deadline, waits);
  }

  override close(): void {
    this.#reader.drop();
    super.close();
  }
}

/** Whether a value can be written in a JSON array. */
function isSound(value: unknown): boolean {
  try {
    JSON.stringify([value]);
    return true;
  } catch {
    return false;
  }
}
