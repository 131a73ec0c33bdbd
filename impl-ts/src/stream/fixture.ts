/** Two sides of a stream, and a transport between them that cuts the bytes in any way. */

import { setImmediate } from "node:timers";
import { StreamLink, type StreamOptions } from "./link.ts";

/** The smallest sizes that a side can state: two frames of 128 bytes. */
export const SMALL = { largest: 128, window: 256 };

/** Two sides, and the transport that moves their bytes. */
export class Line<A = unknown, B = A> {
  readonly a: StreamLink<A, B>;
  readonly b: StreamLink<B, A>;
  readonly #cut: () => number;

  /** `cut` returns the size of the next piece. */
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

  /** Moves all bytes, both ways, until none are left. */
  move(): void {
    while (this.#carry(this.a, this.b) || this.#carry(this.b, this.a));
  }

  /**
   * Moves bytes as `move` does, and lets both sides write what has waited for room, until none are
   * left.
   */
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
