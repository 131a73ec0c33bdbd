/**
 * What stands in the way of the usual course of one direction of a pipe: bits of one word, so that
 * a call finds out by one load that nothing does.
 *
 * @module
 */

/** Nothing is read or stored in the ring any more: this end is closed, or the peer broke it. */
export const STOPPED = 1;
/** `end` was called, or read. */
export const ENDED = 2;
/** A claim is open, or a frame is lent. */
export const LENT = 4;
/** A value is being encoded, in which the application's own code may run. */
export const ENCODING = 8;
/** Somebody has the turn. */
export const TAKEN = 16;
/** A message is in the ring in part: what is placed next is the rest of it, or its cancel. */
export const OWED = 32;
/** A final or invalid state of the peer was seen. */
export const GONE = 64;
/** Who waits for room is to look: the ring has begun anew, or another message is under way. */
export const RENEWED = 128;
/** Cancels or credit of calls wait for room: they come before the next message. */
export const ASIDE = 256;
/** A blocking call waits for room for the message under way: nothing else is placed meanwhile. */
export const BUSY = 512;
