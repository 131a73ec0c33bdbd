/** What the three threads agree upon. @module */

/** Samples of one message: what an audio worklet is asked for at a time. */
export const BLOCK = 128;

/** Bytes of the ring: 31 blocks and their headers, 83 ms of sound at 48 kHz. */
export const CAPACITY = 16 * 1024;

/** Who of the three has which endpoint of the panel. */
export const PAGE = 0;
export const SYNTH = 1;
export const SPEAKER = 2;

/**
 * The panel: of each property, what counts is the value now. All are numbers in typed arrays, which
 * the audio thread gets and sets without allocating.
 */
export const PANEL = {
  /** Steps a minute, and how bright it is, from 0 to 1. */
  tune: { writer: PAGE },
  /** How loud it is, from 0 to 1. */
  volume: { writer: PAGE },
  /** For how many milliseconds the worker is to stall, once for each time that it is set. */
  stalls: { writer: PAGE },
  /** Blocks that the worker has computed. */
  made: { writer: SYNTH },
  /** Blocks that were played, and those that were due while there was none. */
  counts: { writer: SPEAKER },
};

/** Which of the counts is which. */
export const COUNTS = 2;
export const PLAYED = 0;
export const UNDERRUNS = 1;
