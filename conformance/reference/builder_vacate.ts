/** What the cases of endpoints that are given back have in common. @module */

import { ATTACHED, CLOSED, setRecord, setState, stateAt, VACANT } from "./builder.ts";
import { type Run, toHex, toImage, word } from "./bytes.ts";
import type { Operation, Setting } from "./case.ts";
import { buildFrame, buildSegment, type ChannelPlan, fillRing } from "./encode.ts";
import type { FramePlan, Placed } from "./encode.ts";

/** How often the endpoint of the kit was vacated before. */
export const GENERATION = 6;
/** Its state when it has closed. */
export const DEAD: number = stateAt(CLOSED, GENERATION);

export const vacate: Operation = { vacate: true };
export const read: Operation = { read: true };
export const take: Operation = { take: true };
/** Stores what nobody looks at: the place where the changed cases do something. */
export const still: Operation = setRecord(1, { agent: 0 });

/** A port of which endpoint 1 is under test, and endpoint 0 the kit, which was vacated before. */
export function portOf(frames: FramePlan[], more: ChannelPlan[] = [], endpoints = 2) {
  const segment = buildSegment({
    endpoints,
    channels: [
      { writer: 0, reader: 1, capacity: 256 },
      { writer: 1, reader: 0, capacity: 256, start: 0x40 },
      ...more,
    ],
    states: [stateAt(ATTACHED, GENERATION), VACANT],
    records: [{ wakes: 3, agent: 77, features: 5, generation: GENERATION }],
  });
  const at = fillRing(segment, 0, frames);
  const [inward, outward] = segment.channels as [Placed, Placed];
  return { ...segment, at, inward, outward };
}

/** The setting in which endpoint 1 uses such a port; the kit takes from channel 1. */
export function using({ bytes }: { bytes: Uint8Array }, operations: Operation[]): Setting {
  const image = toImage(bytes);
  return { kind: "read", image, role: "port", endpoint: 1, channel: 1, limit: 4096, operations };
}

/** Endpoint 0 leaves. */
export function leaves(state = DEAD): Operation {
  return setState(0, state);
}

/** The next owner of endpoint 0 attaches, once it was given back so often. */
export function attaches(times = 1): Operation {
  return setRecord(0, { state: stateAt(ATTACHED, GENERATION + times), wakes: 1 });
}

/** Its first frames, which it places where the ring goes on, and publishes. */
export function next(ring: Placed, position: number, frames: FramePlan[]): Operation {
  const runs: Run[] = [];
  let tail = position;
  for (const frame of frames) {
    const bytes = buildFrame(frame);
    runs.push({ offset: ring.data + tail % ring.capacity, hex: toHex(bytes) });
    tail = (tail + bytes.length) % 2 ** 32;
  }
  return { set: [...runs, { offset: ring.control, hex: word(tail) }] };
}
