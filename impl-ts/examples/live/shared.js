/** What the page and its two workers agree upon. @module */

/** Bytes of each ring between the workers: what a flood fills. */
export const CAPACITY = 1024 * 1024;

/** For so long each of the four things is measured in a round. */
export const PHASE_MS = 120;

/** Most messages, and most bytes, that are under way over a `MessagePort`. */
export const WINDOW_COUNT = 1024;
export const WINDOW_SIZE = 4 * 1024 * 1024;

/** Messages of a flood, and the bytes of each. */
export const FLOOD_COUNT = 100_000;
export const FLOOD_SIZE = 64;

/** Bytes of the properties by which the page and worker A tell one another. */
export const PROPERTY_SIZE = 1024;
