/** What a writer stores, and whom it rings: cases of `spec/property.md`. @module */

import { ATTACHED, bellIs, bellIsNot, Cases, CLOSED, field, member, setState } from "./builder.ts";
import { rungIs, VACANT } from "./builder.ts";
import { type Property, property, setting, slotIs, slotIsBlank } from "./builder_property.ts";
import { versionIs, watch, watchersAre } from "./builder_property.ts";
import type { Expected, Operation, Wanted } from "./case.ts";
import { failed } from "./encode.ts";
import { valueOf } from "./layout.ts";

const TEXT = valueOf("codec", "text");
const JSON_TEXT = valueOf("codec", "json");
const LAST = 2 ** 32 - 1;

/** Adds them. */
export function addSetting(cases: Cases): void {
  addValues(cases);
  addVersions(cases);
  addSizes(cases);
  addRinging(cases);
  addLeaving(cases);
}

/** A property whose writer, endpoint 0, is under test. */
function writers(plan: Parameters<typeof property>[0] = {}): Property {
  return property({ states: [VACANT, ATTACHED], ...plan });
}

const put = (text: string): Operation => ({ write: { codec: TEXT, text } });

function addValues(cases: Cases): void {
  const plan = writers();
  const clauses = "property.begin property.next property.sequence property.write " +
    "property.publish property.codec";
  const from = cases.valid(setting(plan, [put("one")]), {
    name: "set",
    about: "The first value: version 1, in slot 1, and no other byte.",
    clauses,
    results: ["ok"],
    bytes: [
      versionIs(plan, 1),
      ...slotIs(plan, 1, { sequence: 1, codec: TEXT, value: "one" }),
      ...[0, 2, 3].map((index) => slotIsBlank(plan, index)),
    ],
  });
  cases.invalid(from, member("operations.0.write", { codec: JSON_TEXT, hex: "7b 7d" }), {
    name: "set_json",
    about: "JSON in its place.",
    clauses: "property.write property.codec",
    results: ["ok"],
    bytes: [
      versionIs(plan, 1),
      ...slotIs(plan, 1, { sequence: 1, codec: JSON_TEXT, value: "{}" }),
    ],
  });
  cases.invalid(from, member("operations.0", { clear: true }), {
    name: "set_none",
    about: "None is a state of its own.",
    clauses: "property.write property.publish",
    results: ["ok"],
    bytes: [versionIs(plan, 1), ...slotIs(plan, 1, { sequence: 1, present: 0 })],
  });
  const dirty = new Uint8Array(112).fill(0xee);
  const old = { size: LAST, present: 9, codec: 77, reserved: dirty.slice(0, 6), value: dirty };
  const used = writers({ slots: { 0: old, 1: old, 2: old, 3: old } });
  const kept = (index: number, size: number): Expected => ({
    offset: used.slots[index]! + 16 + size,
    hex: "ee".repeat(112 - size).match(/../g)!.join(" "),
    about: `what was behind the value in slot ${index}`,
  });
  cases.valid(setting(used, [put("ab"), { clear: true }, { write: { count: 5 } }]), {
    name: "set_used",
    about: "What stood in a slot before has no meaning, and what is behind a value stays.",
    clauses: "property.write property.sequence",
    results: ["ok", "ok", "ok"],
    bytes: [
      versionIs(used, 3),
      ...slotIs(used, 1, { sequence: 1, codec: TEXT, value: "ab" }),
      ...slotIs(used, 2, { sequence: 2, present: 0 }),
      ...slotIs(used, 3, { sequence: 3, value: Uint8Array.of(0, 1, 2, 3, 4) }),
      kept(1, 2),
      kept(2, 0),
      kept(3, 5),
    ],
  });
  const five = ["a", "b", "c", "d", "e"].map(put);
  cases.valid(setting(plan, five), {
    name: "set_five",
    about: "Four slots take turns: the fifth value stands where the first stood.",
    clauses,
    results: five.map(() => "ok"),
    bytes: [
      versionIs(plan, 5),
      ...slotIs(plan, 0, { sequence: 4, codec: TEXT, value: "d" }),
      ...slotIs(plan, 1, { sequence: 5, codec: TEXT, value: "e" }),
      ...slotIs(plan, 2, { sequence: 2, codec: TEXT, value: "b" }),
      ...slotIs(plan, 3, { sequence: 3, codec: TEXT, value: "c" }),
    ],
  });
}

function addVersions(cases: Cases): void {
  const clauses = "property.begin property.next property.sequence property.publish";
  const plan = writers({ version: 41 });
  const slot = (index: number, sequence: number) =>
    slotIs(plan, index, { sequence, codec: TEXT, value: "next" });
  const from = cases.valid(setting(plan, [put("next")]), {
    name: "set_begin",
    about: "A writer goes on from the version that stands there.",
    clauses,
    results: ["ok"],
    bytes: [versionIs(plan, 42), ...slot(2, 42)],
  });
  const at = (name: string, about: string, version: number, next: number) =>
    cases.invalid(from, field(plan.control, "property_control", "version", version), {
      name: `set_begin_${name}`,
      about,
      clauses,
      results: ["ok"],
      bytes: [versionIs(plan, next), ...slot(next % 4, next)],
    });
  at("middle", "Across the sign of a signed number.", 2 ** 31 - 1, 2 ** 31);
  at("last", "Up to the last version.", LAST - 1, LAST);
  at("around", "Behind the last one comes 4, in slot 0.", LAST, 4);
  cases.valid(
    setting(plan, [put("a"), { set: [{ offset: plan.control, hex: "07 00 00 00" }] }, put("b")]),
    {
      name: "set_begin_own",
      about: "A writer counts by itself: whatever somebody else stores there has no effect.",
      clauses: "property.begin",
      results: ["ok", "ok", "ok"],
      bytes: [versionIs(plan, 43), ...slotIs(plan, 3, { sequence: 43, codec: TEXT, value: "b" })],
    },
  );
}

function addSizes(cases: Cases): void {
  const plan = writers();
  const size = "property.size";
  const from = cases.valid(setting(plan, [{ write: { count: 112 } }]), {
    name: "size_most",
    about: "As large as a value may be: it ends where its slot ends.",
    clauses: size,
    results: ["ok"],
    bytes: [
      versionIs(plan, 1),
      ...slotIs(plan, 1, { sequence: 1, value: new Uint8Array(112).map((_, i) => i) }),
      slotIsBlank(plan, 2),
    ],
  });
  cases.invalid(from, member("operations.0.write.count", 113), {
    name: "size_beyond",
    about: "A byte more: nothing changes.",
    clauses: size,
    results: ["property.size"],
    bytes: [versionIs(plan, 0), slotIsBlank(plan, 1)],
  });
  cases.valid(setting(plan, [put("a"), { write: { count: 500 } }, put("b")]), {
    name: "size_then",
    about: "The next value has the next version, as if nothing had been asked.",
    clauses: `${size} property.next`,
    results: ["ok", "property.size", "ok"],
    bytes: [versionIs(plan, 2), ...slotIs(plan, 2, { sequence: 2, codec: TEXT, value: "b" })],
  });
  const large = writers({ channel: { capacity: 2048 } });
  cases.valid(setting(large, [{ write: { count: 256 } }, { write: { count: 497 } }]), {
    name: "size_large",
    about: "Larger slots.",
    clauses: `${size} property.next`,
    results: ["ok", "property.size"],
    bytes: [
      versionIs(large, 1),
      ...slotIs(large, 1, { sequence: 1, value: new Uint8Array(256).map((_, i) => i) }),
    ],
  });
}

/** Behind its attaching, which rings the own bell alone, nobody has rung. */
function addRinging(cases: Cases): void {
  const wake = "property.wake";
  const bells = [{ bell: 10 }, { bell: 10 }, { bell: 10 }];
  const states = [VACANT, ATTACHED, ATTACHED];
  const plan = writers({ endpoints: 3, states, records: bells });
  const before: Operation = { set: [watch(plan, 2)] };
  const results: Wanted[] = ["ok", "ok", "ok"];
  const none = [bellIs(1, 10), rungIs(1)];
  const from = cases.valid(setting(plan, [before, put("a"), put("b")]), {
    name: "wake",
    about: "Endpoint 2 watches: it is rung once, by the writer, and its bit taken out.",
    clauses: wake,
    results,
    bytes: [watchersAre(plan), bellIs(2, 11), rungIs(2, 0), ...none],
  });
  cases.invalid(from, member("operations.0", { set: [watch(plan)] }), {
    name: "wake_nobody",
    about: "Nobody watches.",
    clauses: wake,
    results,
    bytes: [watchersAre(plan), bellIs(2, 10), rungIs(2), ...none],
  });
  cases.invalid(from, member("operations.0", { set: [watch(plan, 1, 2)] }), {
    name: "wake_both",
    about: "Both watch.",
    clauses: wake,
    results,
    bytes: [watchersAre(plan), bellIs(1, 11), bellIs(2, 11), rungIs(1, 0), rungIs(2, 0)],
  });
  cases.invalid(from, member("operations.1.write", { count: 113 }), {
    name: "wake_size",
    about: "What is refused wakes nobody.",
    clauses: `${wake} property.size`,
    results: ["ok", "property.size", "ok"],
    bytes: [bellIs(2, 11), rungIs(2, 0), ...none],
  });
  cases.invalid(from, member("operations.1", { clear: true }), {
    name: "wake_none",
    about: "None is a change as well.",
    clauses: wake,
    results,
    bytes: [
      ...slotIs(plan, 1, { sequence: 1, present: 0 }),
      ...[versionIs(plan, 2), bellIs(2, 11), rungIs(2, 0), ...none],
    ],
  });
  cases.valid(setting(plan, [{ set: [watch(plan, 1, 3, 31)] }, put("a"), put("b")]), {
    name: "wake_strangers",
    about: "Bits of endpoints that the segment does not have ring nobody.",
    clauses: wake,
    results,
    bytes: [bellIs(1, 11), rungIs(1, 0), bellIs(2, 10), rungIs(2)],
  });
  const all = Array.from({ length: 256 }, (_, index) => index === 40 ? VACANT : ATTACHED);
  const many = property({ endpoints: 256, states: all, channel: { writer: 40 } });
  cases.valid(setting(many, [{ set: [watch(many, 0, 31, 32, 255)] }, put("a")], { endpoint: 40 }), {
    name: "wake_many",
    about: "Watchers in the first, the second and the last word.",
    clauses: wake,
    results: ["ok", "ok"],
    bytes: [
      watchersAre(many),
      ...[0, 31, 32, 255].flatMap((index) => [bellIs(index, 1), rungIs(index, 40)]),
      ...[1, 33, 254].map((index) => bellIs(index, 0)),
    ],
  });
}

function addLeaving(cases: Cases): void {
  const close = "property.close";
  const records = [{ bell: 10 }, { bell: 10 }];
  const plan = writers({ records });
  const from = cases.valid(setting(plan, [put("a"), { set: [watch(plan, 1)] }, { close: true }]), {
    name: "close",
    about: "The writer closes: who watches is rung, though no peer of it.",
    clauses: close,
    results: ["ok", "ok", "ok"],
    bytes: [versionIs(plan, 1), watchersAre(plan), bellIs(1, 11), rungIs(1, 0)],
  });
  cases.invalid(from, member("operations.1", { set: [watch(plan)] }), {
    name: "close_unwatched",
    about: "Nobody watches.",
    clauses: close,
    results: ["ok", "ok", "ok"],
    bytes: [watchersAre(plan), bellIs(1, 10), rungIs(1)],
  });
  const own = "property.own_state";
  const ended = cases.valid(
    setting(plan, [put("a"), setState(0, CLOSED), put("b"), { clear: true }]),
    {
      name: "set_closed",
      about: "The own endpoint was closed: nothing is stored any more.",
      clauses: own,
      results: ["ok", "ok", "pipe.closed", "pipe.closed"],
      bytes: [versionIs(plan, 1), slotIsBlank(plan, 2), bellIsNot(0, 10)],
    },
  );
  const why = { code: "pipe.failed", reason: "peer.terminated" };
  cases.invalid(ended, member("operations.1", setState(0, failed("peer.terminated"))), {
    name: "set_failed",
    about: "It was marked failed by its supervisor.",
    clauses: own,
    results: ["ok", "ok", why, why],
    bytes: [versionIs(plan, 1), slotIsBlank(plan, 2)],
  });
  cases.valid(
    setting(plan, [{ write: { codec: 3, hex: "5b 31 5d" } }, { write: { codec: 4, hex: "" } }]),
    {
      name: "set_batch",
      about: "A property holds one value: neither a batch nor a list is written.",
      clauses: "property.codec",
      results: ["refused", "refused"],
      bytes: [versionIs(plan, 0)],
    },
  );
}
