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
  const from = cases.valid(
    "set",
    "The first value: version 1, in slot 1, and no other byte.",
    clauses,
    setting(plan, [put("one")]),
    {
      results: ["ok"],
      bytes: [
        versionIs(plan, 1),
        ...slotIs(plan, 1, { sequence: 1, codec: TEXT, value: "one" }),
        ...[0, 2, 3].map((index) => slotIsBlank(plan, index)),
      ],
    },
  );
  cases.invalid(
    "set_json",
    "JSON in its place.",
    "property.write property.codec",
    from,
    member("operations.0.write", { codec: JSON_TEXT, hex: "7b 7d" }),
    {
      results: ["ok"],
      bytes: [
        versionIs(plan, 1),
        ...slotIs(plan, 1, { sequence: 1, codec: JSON_TEXT, value: "{}" }),
      ],
    },
  );
  cases.invalid(
    "set_none",
    "None is a state of its own.",
    "property.write property.publish",
    from,
    member("operations.0", { clear: true }),
    {
      results: ["ok"],
      bytes: [versionIs(plan, 1), ...slotIs(plan, 1, { sequence: 1, present: 0 })],
    },
  );
  const dirty = new Uint8Array(112).fill(0xee);
  const old = { size: LAST, present: 9, codec: 77, reserved: dirty.slice(0, 6), value: dirty };
  const used = writers({ slots: { 0: old, 1: old, 2: old, 3: old } });
  const kept = (index: number, size: number): Expected => ({
    offset: used.slots[index]! + 16 + size,
    hex: "ee".repeat(112 - size).match(/../g)!.join(" "),
    about: `what was behind the value in slot ${index}`,
  });
  cases.valid(
    "set_used",
    "What stood in a slot before has no meaning, and what is behind a value stays.",
    "property.write property.sequence",
    setting(used, [put("ab"), { clear: true }, { write: { count: 5 } }]),
    {
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
    },
  );
  const five = ["a", "b", "c", "d", "e"].map(put);
  cases.valid(
    "set_five",
    "Four slots take turns: the fifth value stands where the first stood.",
    clauses,
    setting(plan, five),
    {
      results: five.map(() => "ok"),
      bytes: [
        versionIs(plan, 5),
        ...slotIs(plan, 0, { sequence: 4, codec: TEXT, value: "d" }),
        ...slotIs(plan, 1, { sequence: 5, codec: TEXT, value: "e" }),
        ...slotIs(plan, 2, { sequence: 2, codec: TEXT, value: "b" }),
        ...slotIs(plan, 3, { sequence: 3, codec: TEXT, value: "c" }),
      ],
    },
  );
}

function addVersions(cases: Cases): void {
  const clauses = "property.begin property.next property.sequence property.publish";
  const plan = writers({ version: 41 });
  const slot = (index: number, sequence: number) =>
    slotIs(plan, index, { sequence, codec: TEXT, value: "next" });
  const from = cases.valid(
    "set_begin",
    "A writer goes on from the version that stands there.",
    clauses,
    setting(plan, [put("next")]),
    { results: ["ok"], bytes: [versionIs(plan, 42), ...slot(2, 42)] },
  );
  const at = (name: string, about: string, version: number, next: number) =>
    cases.invalid(
      `set_begin_${name}`,
      about,
      clauses,
      from,
      field(plan.control, "property_control", "version", version),
      { results: ["ok"], bytes: [versionIs(plan, next), ...slot(next % 4, next)] },
    );
  at("middle", "Across the sign of a signed number.", 2 ** 31 - 1, 2 ** 31);
  at("last", "Up to the last version.", LAST - 1, LAST);
  at("around", "Behind the last one comes 4, in slot 0.", LAST, 4);
  cases.valid(
    "set_begin_own",
    "A writer counts by itself: whatever somebody else stores there has no effect.",
    "property.begin",
    setting(plan, [put("a"), { set: [{ offset: plan.control, hex: "07 00 00 00" }] }, put("b")]),
    {
      results: ["ok", "ok", "ok"],
      bytes: [versionIs(plan, 43), ...slotIs(plan, 3, { sequence: 43, codec: TEXT, value: "b" })],
    },
  );
}

function addSizes(cases: Cases): void {
  const plan = writers();
  const size = "property.size";
  const from = cases.valid(
    "size_most",
    "As large as a value may be: it ends where its slot ends.",
    size,
    setting(plan, [{ write: { count: 112 } }]),
    {
      results: ["ok"],
      bytes: [
        versionIs(plan, 1),
        ...slotIs(plan, 1, { sequence: 1, value: new Uint8Array(112).map((_, i) => i) }),
        slotIsBlank(plan, 2),
      ],
    },
  );
  cases.invalid(
    "size_beyond",
    "A byte more: nothing changes.",
    size,
    from,
    member("operations.0.write.count", 113),
    { results: ["property.size"], bytes: [versionIs(plan, 0), slotIsBlank(plan, 1)] },
  );
  cases.valid(
    "size_then",
    "The next value has the next version, as if nothing had been asked.",
    `${size} property.next`,
    setting(plan, [put("a"), { write: { count: 500 } }, put("b")]),
    {
      results: ["ok", "property.size", "ok"],
      bytes: [versionIs(plan, 2), ...slotIs(plan, 2, { sequence: 2, codec: TEXT, value: "b" })],
    },
  );
  const large = writers({ channel: { capacity: 2048 } });
  cases.valid(
    "size_large",
    "Larger slots.",
    `${size} property.next`,
    setting(large, [{ write: { count: 256 } }, { write: { count: 497 } }]),
    {
      results: ["ok", "property.size"],
      bytes: [
        versionIs(large, 1),
        ...slotIs(large, 1, { sequence: 1, value: new Uint8Array(256).map((_, i) => i) }),
      ],
    },
  );
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
  const from = cases.valid(
    "wake",
    "Endpoint 2 watches: it is rung once, by the writer, and its bit taken out.",
    wake,
    setting(plan, [before, put("a"), put("b")]),
    { results, bytes: [watchersAre(plan), bellIs(2, 11), rungIs(2, 0), ...none] },
  );
  cases.invalid(
    "wake_nobody",
    "Nobody watches.",
    wake,
    from,
    member("operations.0", { set: [watch(plan)] }),
    { results, bytes: [watchersAre(plan), bellIs(2, 10), rungIs(2), ...none] },
  );
  cases.invalid(
    "wake_both",
    "Both watch.",
    wake,
    from,
    member("operations.0", { set: [watch(plan, 1, 2)] }),
    {
      results,
      bytes: [watchersAre(plan), bellIs(1, 11), bellIs(2, 11), rungIs(1, 0), rungIs(2, 0)],
    },
  );
  cases.invalid(
    "wake_size",
    "What is refused wakes nobody.",
    `${wake} property.size`,
    from,
    member("operations.1.write", { count: 113 }),
    { results: ["ok", "property.size", "ok"], bytes: [bellIs(2, 11), rungIs(2, 0), ...none] },
  );
  cases.invalid(
    "wake_none",
    "None is a change as well.",
    wake,
    from,
    member("operations.1", { clear: true }),
    {
      results,
      bytes: [
        ...slotIs(plan, 1, { sequence: 1, present: 0 }),
        ...[versionIs(plan, 2), bellIs(2, 11), rungIs(2, 0), ...none],
      ],
    },
  );
  cases.valid(
    "wake_strangers",
    "Bits of endpoints that the segment does not have ring nobody.",
    wake,
    setting(plan, [{ set: [watch(plan, 1, 3, 31)] }, put("a"), put("b")]),
    { results, bytes: [bellIs(1, 11), rungIs(1, 0), bellIs(2, 10), rungIs(2)] },
  );
  const all = Array.from({ length: 256 }, (_, index) => index === 40 ? VACANT : ATTACHED);
  const many = property({ endpoints: 256, states: all, channel: { writer: 40 } });
  cases.valid(
    "wake_many",
    "Watchers in the first, the second and the last word.",
    wake,
    setting(many, [{ set: [watch(many, 0, 31, 32, 255)] }, put("a")], { endpoint: 40 }),
    {
      results: ["ok", "ok"],
      bytes: [
        watchersAre(many),
        ...[0, 31, 32, 255].flatMap((index) => [bellIs(index, 1), rungIs(index, 40)]),
        ...[1, 33, 254].map((index) => bellIs(index, 0)),
      ],
    },
  );
}

function addLeaving(cases: Cases): void {
  const close = "property.close";
  const records = [{ bell: 10 }, { bell: 10 }];
  const plan = writers({ records });
  const from = cases.valid(
    "close",
    "The writer closes: who watches is rung, though no peer of it.",
    close,
    setting(plan, [put("a"), { set: [watch(plan, 1)] }, { close: true }]),
    {
      results: ["ok", "ok", "ok"],
      bytes: [versionIs(plan, 1), watchersAre(plan), bellIs(1, 11), rungIs(1, 0)],
    },
  );
  cases.invalid(
    "close_unwatched",
    "Nobody watches.",
    close,
    from,
    member("operations.1", { set: [watch(plan)] }),
    { results: ["ok", "ok", "ok"], bytes: [watchersAre(plan), bellIs(1, 10), rungIs(1)] },
  );
  const own = "property.own_state";
  const ended = cases.valid(
    "set_closed",
    "The own endpoint was closed: nothing is stored any more.",
    own,
    setting(plan, [put("a"), setState(0, CLOSED), put("b"), { clear: true }]),
    {
      results: ["ok", "ok", "pipe.closed", "pipe.closed"],
      bytes: [versionIs(plan, 1), slotIsBlank(plan, 2), bellIsNot(0, 10)],
    },
  );
  const why = { code: "pipe.failed", reason: "peer.terminated" };
  cases.invalid(
    "set_failed",
    "It was marked failed by its supervisor.",
    own,
    ended,
    member("operations.1", setState(0, failed("peer.terminated"))),
    {
      results: ["ok", "ok", why, why],
      bytes: [versionIs(plan, 1), slotIsBlank(plan, 2)],
    },
  );
  cases.valid(
    "set_batch",
    "A property holds one value: neither a batch nor a list is written.",
    "property.codec",
    setting(plan, [{ write: { codec: 3, hex: "5b 31 5d" } }, { write: { codec: 4, hex: "" } }]),
    { results: ["refused", "refused"], bytes: [versionIs(plan, 0)] },
  );
}
