/**
 * Which clauses speak of an expectation that has failed. A case cites all that it shows; of what
 * failed, those are named whose word or code it was.
 *
 * @module
 */

import type { Problem } from "./difference.ts";

/** Of what a call of the testee must give, by the code that was expected; most likely first. */
const CODES: Readonly<Record<string, readonly string[]>> = {
  "segment.unready": ["segment.await", "segment.claim"],
  "segment.geometry": ["segment.same_geometry", "segment.check"],
  "segment.endpoint": ["segment.attach", "segment.check", "segment.file_lock"],
  "segment.channel": ["segment.check", "pipe.find_none", "port.find_none"],
  "segment.file": ["segment.file_own", "segment.file_replace"],
  "ring.cursor": ["ring.cursor"],
  "frame.total": ["frame.check_total", "frame.check"],
  "message.size": ["pipe.limit", "mailbox.limit"],
  "message.kind": ["pipe.unknown_kind"],
  "message.cancelled": ["pipe.cancelled"],
  "message.truncated": ["pipe.truncated"],
  "message.codec": ["codec.unknown", "codec.bad_cbor"],
  "message.text": ["codec.bad_text"],
  "message.json": ["codec.bad_json", "mailbox.bad_payload"],
  "pipe.ended": ["pipe.end", "pipe.end_again", "pipe.first_answer"],
  "pipe.closed": ["pipe.first_answer", "segment.own_state", "pipe.close_frees", "pipe.close"],
  "pipe.failed": ["pipe.first_answer", "segment.own_state", "pipe.close_frees"],
  "property.size": ["property.size"],
  "property.slot": ["property.fault", "property.bounds"],
  ended: ["pipe.end_once", "frame.after_end", "pipe.truncated", "pipe.first_answer"],
  full: ["ring.room", "ring.pad", "pipe.try_write"],
};

/** The same for calls that read nothing. */
const WRITTEN: Readonly<Record<string, readonly string[]>> = {
  "peer.closed": ["pipe.peer_gone", "pipe.end_closed", "pipe.first_answer"],
  "peer.failed": ["pipe.peer_gone", "pipe.end_closed", "pipe.first_answer"],
};

/** The same for the codes of a noun that have no line of their own. */
const NOUNS: Readonly<Record<string, readonly string[]>> = {
  segment: ["segment.check"],
  frame: ["frame.check", "frame.check_total", "frame.after_end"],
  mailbox: ["mailbox.check"],
  property: ["property.open", "property.find"],
};

/** Of what the kit has read of the testee's writing. */
const TAKEN: Readonly<Record<string, readonly string[]>> = {
  "message.cancelled": ["pipe.owed", "frame.cancel", "pipe.owed_end"],
  ended: ["pipe.end", "frame.end"],
};

/** Clauses about what a call of the testee gave, by the code that must come. */
export function aboutCode(
  must: string | undefined,
  got: string | undefined,
  reads = true,
): readonly string[] {
  if (must === undefined) return [];
  // Somebody waits for room that the clauses give at once, or takes room that is not there.
  if (must === "ok" && got === "full") return CODES["full"]!;
  if (must === "ok" && got === "wait.timeout") return ["pipe.end_now"];
  const noun = must.split(".")[0]!;
  const own = (reads ? undefined : WRITTEN[must]) ?? CODES[must] ?? NOUNS[noun] ?? [];
  // A fault that was reported once is reported again, whatever its mark says since.
  const isFault = noun === "ring" || noun === "frame";
  const hasFailed = got === "peer.failed" || got === "pipe.failed";
  return isFault && hasFailed ? ["pipe.fault", "pipe.first_answer", ...own] : own;
}

/** Clauses about a message that was not read, by how the reading ended. */
export function aboutMissing(end: string | undefined): readonly string[] {
  return end?.startsWith("peer.") ? ["pipe.drain", "pipe.look_again"] : [];
}

/** Clauses about what the testee has written. A strict reader names its own in brackets. */
export function aboutTaken(must: string | undefined, got: string | undefined): readonly string[] {
  if (got?.startsWith("[") || must === undefined) return [];
  return TAKEN[must] ?? [];
}

/** Clauses about the reason that stands beside a code. */
export const aboutReason: readonly string[] = [
  "pipe.failed_reason",
  "segment.state_reason",
  "segment.state_invalid",
];

/** Clauses about a field in shared memory that a testee in this role has left. */
export function aboutField(field: string, role: string): readonly string[] {
  switch (field) {
    case "bell":
      return [
        ...["segment.state_ring", "wait.exchange", "wait.ring", "ring.fault"],
        "pipe.publish_none",
      ];
    case "state":
      return [
        ...["ring.fault", "segment.state_change", "segment.state_reason", "segment.attach"],
        ...["segment.state_invalid", "segment.own_state", "segment.state_low", "pipe.close"],
      ];
    case "wakes":
      return ["segment.attach", "wait.wakes"];
    case "agent":
      return ["segment.agent"];
    case "reader_wants":
      return role === "reader" ? ["wait.disarm"] : ["wait.exchange", "pipe.publish_none"];
    case "writer_wants":
      return [role === "writer" ? "wait.disarm" : "wait.exchange"];
    case "pad":
      return ["frame.pad", "ring.pad"];
    case "end":
      return ["frame.end", "pipe.end", "pipe.end_now"];
    default:
      return [];
  }
}

const CLAUSE = /\[([a-z]+\.[a-z_]+)\]/g;

/**
 * The clauses that problems name: each its own; else those of the case that it may be about; or
 * all of the case, and, where it cites none of them, the likeliest before.
 */
export function namedBy(
  clauses: readonly string[],
  problems: readonly Problem[],
): string[] {
  const named = problems.flatMap(({ text, clauses: about }) => {
    const own = [...text.matchAll(CLAUSE)].map(([, clause]) => clause!);
    if (own.length > 0) return own;
    const cited = about.filter((clause) => clauses.includes(clause));
    return cited.length > 0 ? cited : [...about.slice(0, 1), ...clauses];
  });
  return [...new Set(named)];
}
