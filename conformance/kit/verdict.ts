/**
 * What came of a case, and what a case of the kit is.
 *
 * @module
 */

import type { Hello, Level } from "./protocol.ts";
import { Trouble } from "./trouble.ts";

/**
 * Never merged: each of them is counted on its own. `declined` is what a testee need not do,
 * `unshown` what the kit cannot show in this place, whoever the testee is, and `not_run` the cases
 * of a testee that does not start.
 */
export type Status = "pass" | "fail" | "declined" | "unshown" | "error" | "timeout" | "not_run";

export const STATUSES: readonly Status[] = [
  "pass",
  "fail",
  "declined",
  "unshown",
  "error",
  "timeout",
  "not_run",
];

/** What came of a case with these testees. */
export interface Verdict {
  id: string;
  level: Level;
  carrier: string;
  testees: string[];
  status: Status;
  clauses: string[];
  about: string;
  seconds: number;
  /** What differed, why it was declined or not shown, or how the testee broke down. */
  why: string[];
  /** Which of the testees has declined it, or has not started. */
  by?: number;
  /** That testee does not start: nothing else is run with it. */
  unstarted?: true;
  /** The memory as it was, and as it should have been. */
  got?: Uint8Array;
  must?: Uint8Array;
  /** What is kept of a failed run: a file's name and what to write there. */
  saved?: Map<string, string>;
}

/** What a case that ran has shown. */
export type Result = Pick<
  Verdict,
  "status" | "why" | "by" | "unstarted" | "got" | "must" | "saved"
>;

export const PASS: Result = { status: "pass", why: [] };

/** A case as the kit runs it, with whatever it needs to be run with. */
export interface KitCase<Context> {
  id: string;
  about: string;
  clauses: string[];
  /** Why the testee at this place, the first or the second, need not do this. */
  declinedBy(hello: Hello, index: number): string | undefined;
  run(context: Context): Promise<Result>;
  /** What the level stress makes it of. */
  stress?: { seed: number; seconds: number };
}

/** A difference between what came and what must come. */
export class Wrong extends Error {
  override readonly name = "Wrong";
  readonly got: Uint8Array | undefined;
  readonly must: Uint8Array | undefined;

  constructor(message: string, got?: Uint8Array, must?: Uint8Array) {
    super(message);
    this.got = got;
    this.must = must;
  }
}

/** A failed case. */
export function failed(why: string[], got?: Uint8Array, must?: Uint8Array): Result {
  return {
    status: "fail",
    why,
    ...(got !== undefined && { got }),
    ...(must !== undefined && { must }),
  };
}

/** What an error that ended a case says of it. The kit's own mistakes are thrown on. */
export function resultOf(error: unknown): Result {
  if (error instanceof Trouble) return { status: error.verdict, why: [error.message] };
  if (error instanceof Wrong) return failed([error.message], error.got, error.must);
  if (error instanceof Error && error.name === "Declined") {
    return failed([`declined, which \`start\` does not say: ${error.message}`]);
  }
  throw error;
}
