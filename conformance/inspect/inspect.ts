/**
 * Reads memory and says what stands in it.
 *
 * @module
 */

import { get } from "../reference/decode.ts";
import { limitOf } from "../reference/layout.ts";
import { Findings, type Inspection, type InspectOptions, type Track } from "./inspection.ts";
import { lookAtMailbox } from "./mailbox.ts";
import { nameOf } from "./names.ts";
import { lookAtSegment } from "./segment.ts";

/** Frames, reports and notes of a channel that are kept unless the caller says otherwise. */
export const LIMIT = 32;

/**
 * Reads memory and says what stands in it, as far as it can be read, and what is wrong with it.
 * Never fails, whatever the bytes are. Looks at every frame of a ring, but keeps no more of them
 * than `limit`. Works on a copy: the memory may be shared, and change meanwhile.
 */
export function inspect(memory: Uint8Array, options: InspectOptions = {}): Inspection {
  return look(memory.slice(), options);
}

/** The same, of bytes that nobody else can change. */
export function look(bytes: Uint8Array, options: InspectOptions): Inspection {
  const { channel, limit = LIMIT, now = Date.now() } = options;
  const findings = new Findings(limit);
  const { as, because } = judge(bytes, options.as);
  const found = as === "segment"
    ? lookAtSegment(bytes, { channel, limit, now }, findings)
    : { shape: "a mailbox", mailbox: lookAtMailbox(bytes, findings) };
  const { shape, ...rest } = found;
  const { faults, reports, reportCount, notes, noteCount } = findings;
  return {
    version: 1,
    as,
    because,
    memory: bytes.length,
    shape,
    fault: faults[0] ?? null,
    faults,
    reports,
    report_count: reportCount,
    notes,
    note_count: noteCount,
    ...rest,
  };
}

/** How to read the bytes, and why. A mailbox has no magic: only its words can speak for it. */
function judge(bytes: Uint8Array, as: Track | undefined): { as: Track; because: string } {
  if (as !== undefined) return { as, because: "as asked for" };
  const magic = String.fromCharCode(...bytes.slice(0, 8));
  if (magic === "MILLRACE") return { as: "segment", because: "it begins with MILLRACE" };
  if (bytes.every((byte) => byte === 0)) {
    return { as: "segment", because: "all 0: a blank segment, or a mailbox that nobody has used" };
  }
  if (bytes.length < limitOf("mailbox_size_min")) {
    return { as: "segment", because: "a guess: too short for a mailbox" };
  }
  const status = nameOf("mailbox_status", get(bytes, 0, "mailbox_header", "status"));
  const signal = nameOf("mailbox_signal", get(bytes, 0, "mailbox_header", "signal"));
  return status !== undefined && signal !== undefined
    ? { as: "mailbox", because: "a guess: no magic, but the words of a mailbox" }
    : { as: "segment", because: "a guess: no magic, and not the words of a mailbox" };
}
