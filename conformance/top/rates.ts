/**
 * What has passed between two looks at a segment. See `spec/meter.md`.
 *
 * @module
 */

import type { Look } from "./look.ts";

/** A look, and what has passed since the one before. */
export interface Figures extends Look {
  /** Seconds between the two; null at the first look. */
  seconds: number | null;
  /** Of each channel: bytes a second; null where there is no such figure. */
  rates: { written: number | null; read: number | null }[];
  /** Of each endpoint: how often it was rung in a second. */
  rings: (number | null)[];
}

/** [meter.outside_rate] */
export function figuresOf(now: Look, before: Look | undefined): Figures {
  const seconds = before === undefined ? null : (now.at - before.at) / 1000;
  const isSame = (index: number | null) =>
    index !== null &&
    before?.endpoints[index]?.generation === now.endpoints[index]?.generation;
  const rate = (to: number | undefined, from: number | undefined, owner: number | null) => {
    if (to === undefined || from === undefined || !seconds || !isSame(owner)) return null;
    return ((to - from) >>> 0) / seconds;
  };
  return {
    ...now,
    seconds,
    rates: now.channels.map(({ index, ring, writer, reader }) => {
      const last = before?.channels[index]?.ring;
      return {
        written: rate(ring?.tail, last?.tail, writer),
        read: rate(ring?.head, last?.head, reader),
      };
    }),
    rings: now.endpoints.map(({ index, bell }) =>
      rate(bell, before?.endpoints[index]?.bell, index)
    ),
  };
}
