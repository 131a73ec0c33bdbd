/**
 * What came of a case, and what a case of the kit is.
 *
 * @module
 */

import { namedBy, type Problem } from "../static/difference.ts";
import type { Hello, Level } from "./protocol.ts";

// What a testee did wrong as a program, whatever its port does.

/** A testee that crashed, replied what is no reply (`error`), or not in time (`timeout`). */
export class Trouble extends Error {
  override readonly name = "Trouble";
  readonly verdict: "error" | "timeout";
  /** What the testee was to do, where somebody can say; it may name a clause in brackets. */
  during?: string;

  constructor(verdict: "error" | "timeout", message: string) {
    super(message);
    this.verdict = verdict;
  }
}

/**
 * Goes on where a testee breaks down while nobody waits for its reply: a script that does something
 * meanwhile finds that out when it asks for the reply, or with the next command.
 */
export function outliveTrouble(): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    if (event.reason instanceof Trouble) event.preventDefault();
  });
}

/** A text as part of a message: short, and on one line. */
export function shown(text: string, limit = 120): string {
  const line = JSON.stringify(text);
  return line.length <= limit ? line : `${line.slice(0, limit)}… (${text.length} characters)`;
}

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
  /** The clauses of what failed, where that can be told; else all that the case cites. */
  broken?: string[];
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
  "status" | "why" | "broken" | "by" | "unstarted" | "got" | "must" | "saved"
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
  /** Whether it goes by moments: who fails has to fail twice of three times. */
  isTimed?: true;
  /** What the level stress makes it of. */
  stress?: { seed: number; seconds: number };
}

/** What came and what must come, where they differ. */
export class Wrong extends Error {
  override readonly name = "Wrong";
  readonly problems: Problem[];
  readonly got: Uint8Array | undefined;
  readonly must: Uint8Array | undefined;

  /** A text may name its clause in brackets. */
  constructor(what: string | Problem[], got?: Uint8Array, must?: Uint8Array) {
    const problems = typeof what === "string" ? [{ text: what, clauses: [] }] : what;
    super(problems.map(({ text }) => text).join("\n"));
    this.problems = problems;
    this.got = got;
    this.must = must;
  }
}

/** A failed case that cites these clauses. */
export function failed(
  cited: readonly string[],
  problems: readonly Problem[],
  got?: Uint8Array,
  must?: Uint8Array,
): Result {
  return {
    status: "fail",
    why: problems.map(({ text }) => text),
    broken: namedBy(cited, problems),
    ...(got !== undefined && { got }),
    ...(must !== undefined && { must }),
  };
}

/** What an error that ended a case says of it. The kit's own mistakes are thrown on. */
export function resultOf(error: unknown, cited: readonly string[]): Result {
  if (error instanceof Trouble) {
    const { verdict: status, during, message } = error;
    if (during === undefined) return { status, why: [message] };
    const problem = { text: `${during}: ${message}`, clauses: [] };
    return { status, why: [problem.text], broken: namedBy(cited, [problem]) };
  }
  if (error instanceof Wrong) return failed(cited, error.problems, error.got, error.must);
  if (error instanceof Error && error.name === "Declined") {
    const text = `declined, which \`start\` does not say: ${error.message}`;
    return { status: "fail", why: [text], broken: [] };
  }
  throw error;
}
