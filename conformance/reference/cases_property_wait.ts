/** How somebody waits for a change: cases of `spec/property.md`. @module */

import { Cases, CLOSED, member, setState } from "./builder.ts";
import { getting, gives, property, sets, text } from "./builder_property.ts";
import { watch, watchersAre } from "./builder_property.ts";
import type { Operation, Wanted } from "./case.ts";
import { failed } from "./encode.ts";
import { valueOf } from "./layout.ts";

const TEXT = valueOf("codec", "text");

/** Adds them. */
export function addWaiting(cases: Cases): void {
  addChanges(cases);
  addGone(cases);
}

function addChanges(cases: Cases): void {
  const changed = "property.changed property.unwatch";
  const slot = { sequence: 5, codec: TEXT, value: "five" };
  const plan = property({ version: 5, watchers: [0, 9], slots: { 1: slot } });
  const six = sets(plan, 6, { codec: TEXT, value: "six" });
  const five = gives(5, text("five"));
  const operations: Operation[] = [{ get: true }, six, { changed: true }, { get: true }];
  const from = cases.valid(getting(plan, operations), {
    name: "changed",
    about: "Another version than the one that was got; the bits of others stay.",
    clauses: changed,
    results: [five, "ok", "ok", gives(6, text("six"))],
    bytes: [watchersAre(plan, 0, 9)],
  });
  cases.invalid(from, member("operations.1", { set: [watch(plan, 0, 1, 2, 9)] }), {
    name: "changed_not",
    about: "The same version: the wait ends with its deadline, and takes its own bit back.",
    clauses: changed,
    results: [five, "ok", "wait.timeout", five],
    bytes: [watchersAre(plan, 0, 2, 9)],
  });
  cases.invalid(from, member("operations.1", sets(plan, 3, { codec: TEXT, value: "back" })), {
    name: "changed_back",
    about: "A version that is smaller is another one.",
    clauses: "property.changed",
    results: [five, "ok", "ok", gives(3, text("back"))],
  });
  const before: [string, string, Operation[], Wanted[]][] = [
    ["first", "Who has got nothing yet waits for any value.", [], ["ok"]],
    ["again", "The same change is seen until it is got.", [{ changed: true }], ["ok", "ok"]],
    [
      "got",
      "What was got is waited for no more.",
      [{ changed: true }, { get: true }],
      ["ok", five, "wait.timeout"],
    ],
  ];
  for (const [name, about, list, results] of before) {
    cases.valid(getting(plan, [...list, { changed: true }]), {
      name: `changed_${name}`,
      about,
      clauses: changed,
      results,
      bytes: [watchersAre(plan, 0, 9)],
    });
  }
  const blank = property();
  cases.valid(getting(blank, [{ changed: true }]), {
    name: "changed_never",
    about: "What was never set has not changed.",
    clauses: "property.changed",
    results: ["wait.timeout"],
    bytes: [watchersAre(blank)],
  });
}

function addGone(cases: Cases): void {
  const gone = "property.gone";
  const slot = { sequence: 5, codec: TEXT, value: "five" };
  const plan = property({ version: 5, slots: { 1: slot } });
  const five = gives(5, text("five"));
  const from = cases.valid(
    getting(plan, [setState(0, CLOSED), { changed: true }, { get: true }, { changed: true }]),
    {
      name: "gone",
      about: "The writer has closed behind a value that was not got: first that, then the close.",
      clauses: gone,
      results: ["ok", "ok", five, "peer.closed"],
      bytes: [watchersAre(plan)],
    },
  );
  const why = { code: "peer.failed", reason: "peer.lost" };
  cases.invalid(from, member("operations.0", setState(0, failed("peer.lost"))), {
    name: "gone_failed",
    about: "It was found dead.",
    clauses: gone,
    results: ["ok", "ok", five, why],
  });
  cases.invalid(from, member("operations.0", setState(0, 9)), {
    name: "gone_invalid",
    about: "A state that nobody may store is that of a peer that has failed.",
    clauses: `${gone} segment.state_invalid`,
    results: ["ok", "ok", five, { code: "peer.failed", reason: "segment.state" }],
  });
}
