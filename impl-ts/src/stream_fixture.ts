/** Two sides of a stream, and a transport between them that cuts as it likes. */

import { setImmediate } from "node:timers";
import { StreamLink, type StreamOptions } from "./stream_link.ts";

/** The least that a side can state: two frames of 128 bytes. */
export const SMALL = { largest: 128, window: 256 };

/** Two sides, and what moves their bytes. */
export class Line<A = unknown, B = A> {
  readonly a: StreamLink<A, B>;
  readonly b: StreamLink<B, A>;
  readonly #cut: () => number;

  /** `cut` says how large the next piece is. */
  constructor(
    optionsOfA: StreamOptions<A, B> = SMALL,
    optionsOfB: StreamOptions<B, A> = SMALL,
    cut: () => number = () => Infinity,
  ) {
    this.a = new StreamLink<A, B>(optionsOfA);
    this.b = new StreamLink<B, A>(optionsOfB);
    this.#cut = cut;
    this.move();
  }

  /** Moves all that there is, both ways, until nothing comes any more. */
  move(): void {
    while (this.#carry(this.a, this.b) || this.#carry(this.b, this.a));
  }

  /** The same, and lets both go on with what waits for room, until nothing comes any more. */
  async settle(): Promise<void> {
    for (let idle = 0; idle < 3; idle++) {
      await new Promise((resolve) => void setImmediate(resolve));
      while (this.#carry(this.a, this.b) || this.#carry(this.b, this.a)) idle = 0;
    }
  }

  #carry<In, Out>(from: StreamLink<In, Out>, to: StreamLink<Out, In>): boolean {
    const before = from.hasEnded;
    const bytes = from.transmit();
    for (let at = 0; bytes !== undefined && at < bytes.length;) {
      const piece = bytes.subarray(at, at + this.#cut());
      at += piece.length;
      to.receive(piece);
    }
    const ends = from.hasEnded && !before;
    if (ends) to.receiveEnd();
    return bytes !== undefined || ends;
  }
}
