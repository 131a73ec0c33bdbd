// Every duty that bytes can show has its cases, every reason code occurs, and the list of
// exceptions holds nothing that it need not.

import { assert, assertEquals } from "@std/assert";
import { reasonNames } from "./reference/layout.ts";
import { cover, type Exception, loadClauses, loadExceptions } from "./static/coverage.ts";
import { loadReasonExceptions, reasonsIn } from "./static/coverage.ts";
import { loadCases } from "./static/load.ts";

const cases = [...loadCases().values()];
const clauses = loadClauses();
const exceptions = loadExceptions();

Deno.test("coverage: every MUST has a valid and an invalid case, or an exception", () => {
  const { problems, must, covered, excepted } = cover(clauses, cases, exceptions);
  assertEquals(problems, []);
  assertEquals(covered + excepted, must);
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
