/**
 * A `SABPipe` on the mailbox, the original's wire: the peer may be an endpoint of the original. One
 * side of a mailbox stands here for an endpoint and its side of a ring, so that the functions of
 * pipes wait for it, and serve those who read.
 *
 * @module
 */

import { encodeText, isScratch } from "../codec/codec.ts";
import { layout } from "../memory/layout.ts";
import { PartReader, type Parts, PartWriter } from "../mailbox/parts.ts";
import { MailboxSide } from "../mailbox/side.ts";
import type { Incoming } from "../pipe/incoming.ts";
import { Link } from "../pipe/link.ts";
import { makeSend, type Outgoing, type Send } from "../pipe/outgoing.ts";
import type { Section } from "./sab_wire.ts";

/** The link of one end. */
export class MailboxLink extends Link {
  override readonly peerStates: readonly number[] = [];
  readonly #side: MailboxSide;
  readonly #reader: PartReader;
  /** Takes a burst. See `Source`. */
  readonly next: (mayLoad: boolean) => unknown[] | undefined;

  /** @throws {SegmentError} `mailbox.size` if the section is too small or not aligned to 4. */
  constructor(section: Section, index: number, maxMessageSize: number) {
    const side = new MailboxSide(section, index === 0 ? "write" : "read", {});
    super(side.endpoint, 0);
    this.#side = side;
    this.#reader = new PartReader(side, maxMessageSize);
    this.next = () => this.#reader.take();
    const writer = new PartWriter(side);
    let parts: Parts | undefined;
    const isOut = index === 0;
    const { theirs } = side;
    // The peer's cursor has moved when the signal is not its turn.
    const end = {
      link: this,
      endpoint: side.endpoint,
      words: side.words,
      other: layout.MAILBOX_SIGNAL_WORD,
      wants: layout.MAILBOX_RESERVED_OFFSET >> 2,
      cursor: theirs,
      published: theirs,
      peerCursor: theirs,
      bits: 0,
      run: Infinity,
      spare: makeSend(layout.FRAME_KIND_DATA),
      queue: [],
      takers: [],
      place: (_: Outgoing, { text }: Send) => {
        if (!side.checkTurn()) return false;
        if (!parts) {
          const source = encodeText(text!);
          parts = writer.begin(source, !isScratch(source));
        }
        const isDone = writer.advance(parts);
        if (isDone) parts = undefined;
        else writer.detach(parts);
        return isDone;
      },
    };
    if (isOut) this.outgoing = end as unknown as Outgoing;
    else this.incoming = end as unknown as Incoming;
  }

  override sees = (): boolean => this.#side.sees();

  /** There is no word to arm: each turn is passed with a wake. */
  override arm = (): void => {};

  override leave(): void {
    this.#reader.drop();
    this.#side.close();
  }
}
