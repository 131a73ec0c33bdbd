/**
 * The reasons why a call on one direction of a pipe cannot take its usual course, as bits of one
 * word: one load tells a call that there is none.
 *
 * @module
 */

/**
 * Neither read nor store anything in the ring: this end is closed, or found a fault of the peer.
 */
export const STOPPED = 1;
/** The writer has called `end`, or the reader has read the `end` frame. */
export const ENDED = 2;
/** The caller has an open claim, or a lent frame. */
export const LENT = 4;
/** A value is being encoded; the application's own code may run during that. */
export const ENCODING = 8;
/** An asynchronous call, or what was posted, has the turn. */
export const TAKEN = 16;
/** Only a part of a message is in the ring: its next part, or its cancel, must be placed next. */
export const OWED = 32;
/** The state of the peer was found to be final or invalid. */
export const GONE = 64;
/**
 * A call that waits for room must look again: the peer was vacated, or another message is under
 * way.
 */
export const RENEWED = 128;
/** Cancels or credit of calls wait for room in the ring, and are placed before the next message. */
export const ASIDE = 256;
/**
 * A blocking call waits for room for the message under way; nothing else may be placed meanwhile.
 */
export const BUSY = 512;
