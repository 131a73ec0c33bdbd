/**
 * All scripts but those about files, for which the kit needs calls of the system: these are played
 * elsewhere, too. See `files_mod.ts`.
 *
 * @module
 */

import type { Arena } from "../arena.ts";
import type { KitCase } from "../verdict.ts";
import { HOSTILE_SCRIPTS } from "./hostile.ts";
import { MAILBOX_SCRIPTS } from "./mailbox.ts";
import { MAILBOX_WAITING_SCRIPTS } from "./mailbox_waiting.ts";
import { MAILBOX_WATCHED_SCRIPTS } from "./mailbox_watched.ts";
import { READER_SCRIPTS } from "./reader.ts";
import { scriptCase } from "./stage.ts";
import { TIMING_SCRIPTS } from "./timing.ts";
import { WAITING_SCRIPTS } from "./waiting.ts";
import { WINDOW_SCRIPTS } from "./windows.ts";
import { watchedCase } from "./watch.ts";
import { WRITER_SCRIPTS } from "./writer.ts";

/** Scripts in which the kit reaches the memory by commands. */
export const SCRIPTS: KitCase<Arena>[] = [
  ...WRITER_SCRIPTS,
  ...READER_SCRIPTS,
  ...HOSTILE_SCRIPTS,
].map(scriptCase);

/** The same for the track of the mailbox. */
export const MAILBOXES: KitCase<Arena>[] = MAILBOX_SCRIPTS.map(scriptCase);

/** Scripts in which the kit sees the memory while the testee is in a call. */
export const WATCHED: KitCase<Arena>[] = [
  ...WAITING_SCRIPTS,
  ...TIMING_SCRIPTS,
  ...WINDOW_SCRIPTS,
  ...MAILBOX_WATCHED_SCRIPTS,
  ...MAILBOX_WAITING_SCRIPTS,
].map(watchedCase);
