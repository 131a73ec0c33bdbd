/**
 * The kit as an endpoint: what it does to memory that a testee works on at the same time. Slow and
 * plain, from the chapters, and without a line of an implementation.
 *
 * @module
 */

import { descriptorAt, recordAt } from "../reference/encode.ts";
import { fieldOf } from "../reference/layout.ts";
import type { Field } from "./arena.ts";

/** Memory of which the words are wanted: live, or a copy. */
export type Words = Pick<Field, "words">;

/** Where a word of a structure that begins at `at` stands, as an index. */
function wordAt(at: number, structure: string, field: string): number {
  return (at + fieldOf(structure, field).offset) >> 2;
}

function load(field: Words, index: number): number {
  return Atomics.load(field.words(), index) >>> 0;
}

/** Index of a control word of a ring. */
export function controlWord(field: Words, channel: number, name: string): number {
  const endpoints = load(field, wordAt(0, "segment_header", "endpoint_count"));
  const descriptor = descriptorAt(endpoints, channel);
  const control = load(field, wordAt(descriptor, "channel_descriptor", "control_offset"));
  return wordAt(control, "ring_control", name);
}

/** Index of a word of an endpoint's record. */
export function recordWord(endpoint: number, name: string): number {
  return wordAt(recordAt(endpoint), "endpoint_record", name);
}

/** An endpoint's `state`, the low byte of it. */
export function stateOf(field: Words, endpoint: number): number {
  return load(field, recordWord(endpoint, "state")) & 255;
}

/** Adds 1 to an endpoint's bell, with the bit of another, and wakes who sleeps. [wait.ring] */
export function ring(field: Field, endpoint: number, who: number): void {
  // [wait.rung]
  Atomics.or(field.words(), recordWord(endpoint, "rung") + (who >> 5), 1 << (who & 31));
  const bell = recordWord(endpoint, "bell");
  Atomics.add(field.words(), bell, 1);
  field.notify(bell);
}

/** Changes a state from attached, as a supervisor, and rings everybody. [segment.state_ring] */
export function changeState(field: Field, endpoint: number, state: number): void {
  const attached = 1;
  Atomics.compareExchange(field.words(), recordWord(endpoint, "state"), attached, state);
  const endpoints = load(field, wordAt(0, "segment_header", "endpoint_count"));
  for (let index = 0; index < endpoints; index++) ring(field, index, endpoint);
}
