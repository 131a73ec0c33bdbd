// Every duty that bytes can show has its cases, every reason code occurs, and the list of
// exceptions holds nothing that it need not.

import { assert, assertEquals } from "@std/assert";
import { CALL_PLANS, LIVE_PLANS, MAILBOX_PLANS } from "./kit/live/cases.ts";
import { FILES } from "./kit/scripts/files_cases.ts";
import { MAILBOXES, SCRIPTS, WATCHED, WATCHED_MAILBOXES } from "./kit/scripts/mod.ts";
import { STREAM_PLANS } from "./kit/streams/live.ts";
import { STREAMS } from "./kit/streams/stopping.ts";
import { reasonNames } from "./reference/layout.ts";
import type { Case } from "./reference/case.ts";
import { cover, type Exception, loadClauses, loadExceptions } from "./static/coverage.ts";
import { loadReasonExceptions, reasonsIn } from "./static/coverage.ts";
import { loadCases } from "./static/load.ts";
import { loadStreamCases } from "./stream/make_cases.ts";

const cases = [...loadCases().values(), ...streamCases()];
const clauses = loadClauses();
const exceptions = loadExceptions();

Deno.test("coverage: every MUST has a valid and an invalid case, or an exception", () => {
  const { problems, must, covered, excepted } = cover(clauses, cases, exceptions);
  assertEquals(problems, []);
  assertEquals(covered + excepted, must);
});

/** The cases of streams, except what was sent, whose reasons others name too. */
function streamCases(): Case[] {
  return [...loadStreamCases().values()].map((entry) => {
    const results = entry.expect.results.filter((each) =>
      typeof each !== "object" || !("sent" in each)
    );
    return { ...entry, expect: { results } } as unknown as Case;
  });
}

/** All that the kit plays, beside the static cases. */
const played = [
  ...[...SCRIPTS, ...MAILBOXES, ...WATCHED, ...WATCHED_MAILBOXES, ...FILES, ...STREAMS],
  ...[...LIVE_PLANS, ...CALL_PLANS, ...MAILBOX_PLANS, ...STREAM_PLANS],
];

Deno.test("coverage: no two cases have one id", () => {
  const ids = [...played, ...cases].map(({ id }) => id);
  assertEquals(ids.filter((id, index) => ids.indexOf(id) !== index), []);
});

/** What is wrong with the cases and models that a reason names. */
function problemsOfNames({ clause, reason }: Exception): string[] {
  const problems = [...reason.matchAll(/\b(?:scripted|mailbox|live)\/\w+/g)].flatMap(([id]) => {
    const cites = played.find((each) => each.id === id)?.clauses;
    if (cites === undefined) return [`[${clause}] names ${id}, which does not exist`];
    return cites.includes(clause) ? [] : [`[${clause}] names ${id}, which does not cite it`];
  });
  const models = [...Deno.readDirSync(new URL("../spec/models/", import.meta.url))];
  for (const [, name] of reason.matchAll(/\bthe model (\w+)/g)) {
    if (models.some((each) => each.name === `${name}.pml`)) continue;
    problems.push(`[${clause}] names the model ${name}, which does not exist`);
  }
  if (/\ba (?:live|scripted) run\b/.test(reason)) problems.push(`[${clause}] names no run`);
  return problems;
}

Deno.test("coverage: what an exception names exists, and cites its clause", () => {
  assertEquals(exceptions.flatMap(problemsOfNames), []);
  const of = (reason: string) => problemsOfNames({ clause: "wait.poll", reason }).length;
  assertEquals(of("On a clock: scripted/no_ringer."), 0);
  assertEquals(of("On a clock: scripted/no_singer."), 1);
  assertEquals(of("On a clock: scripted/lost_wake."), 1);
  assertEquals(of("On a clock: a live run."), 1);
  assertEquals(of("The model clock, in the model park."), 0);
  assertEquals(of("An order: the model clock."), 1);
});

Deno.test("coverage: every reason code occurs in a case, or has an exception", () => {
  const found = reasonsIn(cases);
  const excepted = new Set(loadReasonExceptions());
  for (const code of reasonNames()) {
    const fact = excepted.has(code) ? "needs no exception" : "occurs in no case";
    assert(found.has(code) !== excepted.has(code), `${code} ${fact}`);
    excepted.delete(code);
  }
  assertEquals([...excepted], [], "exceptions for codes that do not exist");
});

Deno.test("cover finds a duty without cases, and exceptions that are stale or unknown", () => {
  const fails = (list: Exception[], pattern: RegExp) => {
    const { problems } = cover(clauses, cases, list);
    assert(problems.some((fact) => pattern.test(fact)), `${pattern} is missing in ${problems}`);
  };
  const reason = "for a test";
  fails(exceptions.slice(1), /^\[segment\.atomic\] has no valid and no invalid case/);
  fails([...exceptions, { clause: "frame.check", reason }], /frame\.check\] has become unnec/);
  fails([...exceptions, { clause: "frame.nothing", reason }], /frame\.nothing\] is no clause/);
  fails([...exceptions, { clause: "ring.batch", reason }], /ring\.batch\] is no MUST/);
  fails([...exceptions, exceptions[0] as Exception], /segment\.atomic\] stands there twice/);
  const valid = cases.filter((entry) => !("from" in entry));
  const { problems } = cover(clauses, valid, exceptions);
  assert(problems.includes("[frame.check] has no invalid case, and no exception"));
});
