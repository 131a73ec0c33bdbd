/** What the page and its two workers agree upon. @module */

/** Bytes of the ring: some 500 messages. */
export const CAPACITY = 64 * 1024;

/** How often each worker tells what it has measured. */
export const REPORT_MS = 1000;
