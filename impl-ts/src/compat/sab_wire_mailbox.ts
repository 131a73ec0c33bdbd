/**
 * A `SABPipe` on the mailbox: the original's wire, which an endpoint of the original may share.
 *
 * @module
 */

import { TimeoutError } from "../error.ts";
import { MailboxReader, MailboxWriter } from "../mailbox.ts";
import { MailboxSide } from "../mailbox_side.ts";
import { agentMechanism, type Mechanism } from "../wait.ts";
import { type ReaderWire, type Section, toJson, type WriterWire } from "./sab_wire.ts";

/** The writing end. */
export class MailboxWriterWire implements WriterWire {
  /** Never waits: it writes a part when it has the turn, and keeps the rest. */
  readonly #writer: MailboxWriter;
  /** Waits for the turn. */
  readonly #side: MailboxSide;

  /** @throws {SegmentError} `mailbox.size` if the section is too small or not aligned to 4. */
  constructor(section: Section) {
    this.#writer = MailboxWriter.attach(section);
    this.#side = new MailboxSide(section, "write", {});
  }

  get disposed(): boolean {
    return this.#side.closed;
  }

  /** As in the original: what is posted before the reader has emptied the mailbox goes along. */
  get free(): boolean {
    return this.#side.hasTurn();
  }

  begin(values: readonly unknown[]): void {
    this.#write(values.map(toJson));
  }

  carryOn(): boolean {
    if (this.#writer.owes) this.#write([]);
    return !this.#writer.owes;
  }

  async waitForRoom(): Promise<void> {
    if (!this.#side.hasTurn()) await this.#side.waitAsync(Infinity, undefined);
  }

  close(): void {
    this.#writer.close();
    this.#side.close();
  }

  #write(values: readonly unknown[]): void {
    try {
      this.#writer.writeMany(values, { timeout: 0 });
    } catch (error) {
      // Some parts are written, and the writer owes the others.
      if (!(error instanceof TimeoutError)) throw error;
    }
  }
}

/** The reading end. */
export class MailboxReaderWire implements ReaderWire {
  readonly #reader: MailboxReader;
  readonly #counter: PartCounter = new PartCounter();
  /** What the look for the end of a burst has found: the next one, or why there is none. */
  #ahead: unknown[] = [];
  #held: unknown;

  /** @throws {SegmentError} `mailbox.size` if the section is too small or not aligned to 4. */
  constructor(section: Section, maxMessageSize: number) {
    this.#reader = MailboxReader.attach(section, { mechanism: this.#counter, maxMessageSize });
  }

  get disposed(): boolean {
    return this.#reader.closed;
  }

  take(timeout: number): unknown[] | undefined {
    if (!this.#mustRead()) return this.#gather([]);
    return this.#arrive(timeout > 0 ? this.#reader.read({ timeout }) : this.#reader.tryRead());
  }

  async takeAsync(timeout: number, signal: AbortSignal): Promise<unknown[] | undefined> {
    if (!this.#mustRead()) return this.#gather([]);
    return this.#arrive(await this.#reader.readAsync({ timeout, signal }));
  }

  close(): void {
    this.#reader.close();
  }

  #mustRead(): boolean {
    if (this.#ahead.length > 0) return false;
    const error = this.#held;
    this.#held = undefined;
    if (error !== undefined) throw error;
    return true;
  }

  #arrive(first: unknown): unknown[] | undefined {
    return first === undefined ? undefined : this.#gather([first]);
  }

  /**
   * Collects the other messages of a burst. The reader hands them out one by one without touching
   * the mailbox: one for which it took a part belongs to the next burst.
   */
  #gather(rest: unknown[]): unknown[] {
    // What a call that blocked has put aside is older than what an asynchronous one now brings.
    const burst = this.#ahead.concat(rest);
    this.#ahead = [];
    const { count } = this.#counter;
    try {
      for (let next; (next = this.#reader.tryRead()) !== undefined;) {
        if (this.#counter.count !== count) {
          this.#ahead.push(next);
          return burst;
        }
        burst.push(next);
      }
    } catch (error) {
      this.#held = error;
    }
    return burst;
  }
}

/** Counts the parts that are taken out of the mailbox: there is a wake for each. */
class PartCounter implements Mechanism {
  readonly rings: number;
  readonly sleeps: number;
  readonly blocks: boolean;
  count = 0;
  readonly #agent: Mechanism = agentMechanism();

  constructor() {
    this.rings = this.#agent.rings;
    this.sleeps = this.#agent.sleeps;
    this.blocks = this.#agent.blocks;
  }

  sleep(words: Int32Array, index: number, expected: number, ms: number): boolean | void {
    return this.#agent.sleep(words, index, expected, ms);
  }

  sleepAsync(
    words: Int32Array,
    index: number,
    expected: number,
    ms: number,
  ): Promise<unknown> | undefined {
    return this.#agent.sleepAsync(words, index, expected, ms);
  }

  notify(words: Int32Array, index: number): void {
    this.count++;
    this.#agent.notify(words, index);
  }
}
