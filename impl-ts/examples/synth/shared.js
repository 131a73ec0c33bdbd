/** What the three threads agree upon. @module */

/** Samples of one message: what an audio worklet is asked for at a time. */
export const BLOCK = 128;

/** Bytes of the ring: 31 blocks and their headers, 83 ms of sound at 48 kHz. */
export const CAPACITY = 16 * 1024;

/** A report of the audio thread: as many numbers, and which is which. */
export const COUNTS = 2;
export const PLAYED = 0;
export const UNDERRUNS = 1;
