/**
 * What keeps a message of a writer from the short way into its ring, in one word.
 *
 * @module
 */

/** The writer stores nothing in its ring any more: it is closed, or the peer broke the ring. */
export const STOPPED = 1;
/** `end` was called. */
export const ENDED = 2;
/** A claim is open. */
export const CLAIMED = 4;
/** A value is being encoded, in which the application's own code may run. */
export const ENCODING = 8;
/** Somebody has the turn. */
export const TAKEN = 16;
/** A message is in the ring in part: what is placed next is the rest of it, or its cancel. */
export const OWED = 32;
/** A final or invalid state of the peer was seen. */
export const GONE = 64;

/**
 * Conditions, as bits. Each is kept here alone, so that a write that nothing stands in the way of
 * finds that out by one load: fields of their own, in five objects, took a seventh of an echo of
 * 64 bytes (V8 14).
 */
export class Gate {
  /** 0 where nothing stands in the way. */
  bits = 0;

  /** Whether a condition holds. */
  has(bit: number): boolean {
    return (this.bits & bit) !== 0;
  }

  /** Says whether a condition holds from now on. */
  set(bit: number, holds: boolean): void {
    this.bits = holds ? this.bits | bit : this.bits & ~bit;
  }
}
