/**
 * All scripts but those about files, for which the kit needs calls of the system: these are played
 * elsewhere, too. See `files_cases.ts`.
 *
 * @module
 */

import type { Arena, Carrier } from "../arena.ts";
import type { KitCase } from "../verdict.ts";
import { ASKING_SCRIPTS, CALLER_SCRIPTS, RANDOM_CALLS } from "./calls.ts";
import { FANOUT_HALTS, MAILBOX_HALTS } from "./halts_many.ts";
import { CBOR_SCRIPTS } from "./cbor.ts";
import { CALLEE_SCRIPTS, NESTED_SCRIPTS } from "./calls_served.ts";
import { PROPERTY_HALTS, READING_HALTS, SEGMENT_HALTS, WRITING_HALTS } from "./halts.ts";
import { HOSTILE_SCRIPTS, LENDING_SCRIPTS, READER_SCRIPTS } from "./reader.ts";
import { MAILBOX_SCRIPTS, MAILBOX_WAITING_SCRIPTS, MAILBOX_WATCHED_SCRIPTS } from "./mailbox.ts";
import { MIXED_SCRIPTS, PORT_SCRIPTS } from "./port.ts";
import { FORBIDDEN_SCRIPTS, OVERLAP_SCRIPTS } from "./overlap.ts";
import { FANOUT_RACES, FANOUT_SCRIPTS, PROPERTY_SCRIPTS } from "./many.ts";
import { FLIPPING_RACES, READING_RACES, TEXT_RACES } from "./races.ts";
import { MAILBOX_RACES, SEGMENT_RACES, WRITING_RACES } from "./races_store.ts";
import { STATE_HALTS, STATE_RACES, TIMING_SCRIPTS } from "./timing.ts";
import { scriptCase } from "./stage.ts";
import { WAITING_SCRIPTS } from "./waiting.ts";
import { WINDOW_SCRIPTS } from "./windows.ts";
import { forbiddenCase, watchedCase } from "./watch.ts";
import { WAY_SCRIPTS, WRITER_SCRIPTS } from "./writer.ts";

/** Scripts in which the kit reaches the memory by commands. */
export const SCRIPTS: KitCase<Arena>[] = [
  ...WRITER_SCRIPTS,
  ...READER_SCRIPTS,
  ...HOSTILE_SCRIPTS,
  ...LENDING_SCRIPTS,
  ...CBOR_SCRIPTS,
  ...PORT_SCRIPTS,
  ...CALLER_SCRIPTS,
  ...CALLEE_SCRIPTS,
  ...NESTED_SCRIPTS,
  ...RANDOM_CALLS,
].map(scriptCase);

/** The same for the track of the mailbox. */
export const MAILBOXES: KitCase<Arena>[] = MAILBOX_SCRIPTS.map(scriptCase);

/** Scripts in which the kit sees the memory while the testee is in a call, wherever that is. */
const ANYWHERE = [
  ...WAITING_SCRIPTS,
  ...TIMING_SCRIPTS,
  ...WINDOW_SCRIPTS,
  ...MAILBOX_WATCHED_SCRIPTS,
  ...MAILBOX_WAITING_SCRIPTS,
  ...ASKING_SCRIPTS,
  ...WAY_SCRIPTS,
  ...OVERLAP_SCRIPTS,
  ...MIXED_SCRIPTS,
  ...READING_RACES,
  ...WRITING_RACES,
  ...FANOUT_SCRIPTS,
];
/** In memory that is handed over, the kit's thread races with the testee, or sets a property; */
const SHARED = [
  ...FLIPPING_RACES,
  ...TEXT_RACES,
  ...SEGMENT_RACES,
  ...PROPERTY_SCRIPTS,
  ...STATE_RACES,
  ...FANOUT_RACES,
];
/** on a file, where the testee is a process, it may halt it. */
const HALTED = [
  ...READING_HALTS,
  ...WRITING_HALTS,
  ...STATE_HALTS,
  ...SEGMENT_HALTS,
  ...PROPERTY_HALTS,
  ...FANOUT_HALTS,
];

const FORBIDDEN = FORBIDDEN_SCRIPTS.map(forbiddenCase);

export const WATCHED: KitCase<Arena>[] = [
  ...[...ANYWHERE, ...SHARED, ...HALTED].map(watchedCase),
  ...FORBIDDEN,
];

/** The same for the track of the mailbox. */
export const WATCHED_MAILBOXES: KitCase<Arena>[] = [...MAILBOX_RACES, ...MAILBOX_HALTS]
  .map(watchedCase);

/** The watched scripts of a kind of place; pages are where blocking is forbidden. */
export function watchedOn({ kind = "shared", name }: Pick<Carrier, "kind" | "name">) {
  const others = new Set((kind === "file" ? SHARED : HALTED).map(({ id }) => id));
  if (name !== "chromium") FORBIDDEN.forEach(({ id }) => others.add(id));
  return WATCHED.filter(({ id }) => !others.has(id));
}

/** The same for the track of the mailbox. */
export function mailboxesOn({ kind = "shared" }: Pick<Carrier, "kind">): KitCase<Arena>[] {
  const others = new Set((kind === "file" ? MAILBOX_RACES : MAILBOX_HALTS).map(({ id }) => id));
  return WATCHED_MAILBOXES.filter(({ id }) => !others.has(id));
}
