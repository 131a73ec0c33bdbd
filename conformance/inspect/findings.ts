/**
 * What an inspection collects while it looks: faults, reports and notes, in the order found, no
 * more of them than anybody would read.
 *
 * @module
 */

import { reasonOf } from "../reference/layout.ts";
import type { Fault, Note, Report } from "./inspection.ts";
import { meaningOf, textOf } from "./names.ts";

/** Where something was found. */
export interface Spot {
  offset?: number;
  channel?: number;
  endpoint?: number;
}

/** The clause that demands the check behind a reason code. */
function clauseOf(code: string): string {
  if (code === "segment.unready") return "segment.await";
  if (code === "segment.state") return "segment.state_invalid";
  if (code === "mailbox.size") return "mailbox.section";
  if (code === "ring.cursor") return "ring.cursor";
  return `${code.split(".")[0]}.check`;
}

/** Collects. */
export class Findings {
  readonly faults: Fault[] = [];
  readonly reports: Report[] = [];
  readonly notes: Note[] = [];
  readonly #limit: number;
  reportCount = 0;
  noteCount = 0;
  /** How many of each were kept for a channel, or, without one, for everything else. */
  readonly #kept = new Map<string, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Something that an endpoint refuses. */
  fault(code: string, fact: string, { offset, ...spot }: Spot = {}): void {
    const clause = clauseOf(code);
    this.faults.push({
      code,
      value: reasonOf(code),
      meaning: meaningOf(code),
      fact,
      clause,
      text: textOf(clause),
      offset: offset ?? null,
      ...spot,
    });
  }

  /** A message that a reader loses. */
  report(code: string, fact: string, spot: { offset: number; channel?: number }): void {
    this.reportCount += 1;
    if (this.#countFinding("report", spot)) this.reports.push({ code, fact, ...spot });
  }

  /** Something worth knowing; `clause` where it breaks a duty. */
  note(fact: string, spot: Spot = {}, clause?: string): void {
    this.noteCount += 1;
    if (!this.#countFinding("note", spot)) return;
    this.notes.push({ fact, ...(clause !== undefined && { clause }), ...spot });
  }

  /** Counts a finding of a channel. Returns whether it is within the limit, and kept. */
  #countFinding(what: string, { channel }: Spot): boolean {
    const key = `${what} ${channel}`;
    const count = this.#kept.get(key) ?? 0;
    this.#kept.set(key, count + 1);
    return count < this.#limit;
  }
}
