/**
 * What an end of a ring finds to be wrong with its peer. See `spec/ring.md`.
 *
 * @module
 */

/** A fault of the peer; the pipe marks the peer and tells the caller. */
export class Fault {
  /** The number of the reason code. */
  readonly reason: number;
  /** What was seen. */
  readonly what: string;

  /** Makes a fault. */
  constructor(reason: number, what: string) {
    this.reason = reason;
    this.what = what;
  }
}
