/** The cases of `spec/property.md`. @module */

import { ATTACHED, bellIs, bellIsNot, Cases, CLOSED, field, imageIs, member } from "../builder.ts";
import { rungIs, setState, stateIs, VACANT } from "../builder.ts";
import { areasAre, getting, gives, type Property, property, propertyOf } from "../builder_many.ts";
import { type PropertyPlan, sets, setting, slotIs, slotIsBlank } from "../builder_many.ts";
import { type SlotPlan, text, versionIs, watch, watchersAre } from "../builder_many.ts";
import { toHex, toImage } from "../bytes.ts";
import type { Expectation, Expected, Operation, Setting, Wanted } from "../case.ts";
import { fromChapter, limitOf, mustHold, valueOf } from "../layout.ts";
import { buildSegment, type ChannelPlan, failed, NOBODY, type SegmentPlan } from "../encode.ts";

const TEXT = valueOf("codec", "text");
const JSON_TEXT = valueOf("codec", "json");
const BATCH = valueOf("codec", "json_batch");
const VALUES = valueOf("codec", "values");

/** All cases of this noun. */
export function propertyCases(): Cases {
  const cases = new Cases("property");
  addMaking(cases);
  addOpening(cases);
  addFinding(cases);
  addSetting(cases);
  addGetting(cases);
  addSlots(cases);
  addDecoding(cases);
  addStates(cases);
  addWaiting(cases);
  return cases;
}

const HALF: SlotPlan = { sequence: 5, codec: TEXT, value: "half" };
const DESCRIPTOR = "channel_descriptor";

/** What a get gives, and that it stores nothing. */
function got(plan: Property, ...results: NonNullable<Expectation["results"]>): Expectation {
  return { results, bytes: areasAre(plan) };
}

function addOpening(cases: Cases): void {
  const open = "property.open";
  const plan = property({ version: 5, slots: { 1: HALF } });
  const from = cases.valid(getting(plan), {
    name: "open",
    about: "A text that was set as the fifth value, in slot 1.",
    clauses: `${open} property.version property.whole property.store_nothing property.owner`,
    ...got(plan, gives(5, text("half"))),
  });
  const refused = { result: "property.channel", unchanged: true } as const;
  const at = plan.descriptor;
  const changes: [string, string, string, number][] = [
    ["kind_none", "A channel of no kind.", "kind", 0],
    ["kind_other", "A channel of another kind.", "kind", 99],
    ["control_short", "A control area without all of a name.", "control_size", 256],
    ["data_none", "No byte area.", "data_size", 0],
    ["data_odd", "A byte area that four slots do not fill.", "data_size", 384],
    ["writer_beyond", "A writer that is no endpoint of the segment.", "writer", 2],
    ["writer_none", "Nobody who writes.", "writer", NOBODY],
    ["reader_one", "An endpoint as the only reader.", "reader", 1],
  ];
  for (const [name, about, column, value] of changes) {
    cases.invalid(from, field(at, DESCRIPTOR, column, value), {
      name: `open_${name}`,
      about,
      clauses: open,
      ...refused,
    });
  }
  cases.invalid(from, member("channel", 1), {
    name: "open_beyond",
    about: "No such channel.",
    clauses: open,
    ...refused,
  });
  const wide = property({ version: 5, slots: { 1: HALF }, channel: { control_size: 512 } });
  cases.valid(getting(wide), {
    name: "open_control_wide",
    about: "A control area may be larger.",
    clauses: open,
    ...got(wide, gives(5, text("half"))),
  });
  const ring = { writer: 0, reader: 1, capacity: 512 };
  cases.valid(getting(property({ before: [ring] }), undefined, { channel: 0 }), {
    name: "open_ring",
    about: "A ring is no property.",
    clauses: open,
    ...refused,
  });
  cases.valid({ ...getting(plan), role: "property_writer", endpoint: 1, kind: "write" }, {
    name: "open_writer_other",
    about: "Endpoint 1 may not set what endpoint 0 writes.",
    clauses: `${open} property.owner`,
    ...refused,
  });
  const taken = property({ states: [ATTACHED, ATTACHED] });
  cases.valid(getting(taken), {
    name: "open_taken",
    about: "The checks of the segment come first: the endpoint is not vacant.",
    clauses: `${open} segment.check`,
    result: "segment.endpoint",
    unchanged: true,
  });
}

function addFinding(cases: Cases): void {
  const find = "property.find";
  const others = [
    propertyOf({ name: "" }),
    propertyOf({ name: "gain", reader: 1 }),
    propertyOf({ name: "gain" }),
  ];
  const plan: PropertyPlan = {
    version: 5,
    slots: { 1: HALF },
    channel: { name: "größe" },
    before: others,
    behind: [propertyOf({ name: "größe" })],
  };
  const found = property(plan);
  const { channel: _, ...rest } = getting(found);
  const byName = { ...rest, property: "größe" };
  const from = cases.valid(byName, {
    name: "find",
    about: "The first property of that name, in UTF-8.",
    clauses: find,
    ...got(found, gives(5, text("half"))),
  });
  const refused = { result: "property.channel", unchanged: true } as const;
  const control = found.control;
  const hex = (name: string) => ({
    at: control,
    structure: "property_control",
    field: "name",
    hex: toHex(Uint8Array.from({ length: 124 }, (_, i) => new TextEncoder().encode(name)[i] ?? 0)),
  });
  const second = got(found, gives(0)).results!;
  cases.invalid(from, hex("grösse"), {
    name: "find_second",
    about: "The first has another name: the next of that name, which nobody has set.",
    clauses: find,
    results: second,
  });
  cases.invalid(from, field(control, "property_control", "name_size", 125), {
    name: "find_size",
    about: "A name of 125 bytes is none.",
    clauses: find,
    results: second,
  });
  cases.invalid(from, member("property", "gai"), {
    name: "find_none",
    about: "No such name.",
    clauses: find,
    ...refused,
  });
  cases.invalid(from, member("property", "größer"), {
    name: "find_longer",
    about: "A longer one.",
    clauses: find,
    ...refused,
  });
  cases.invalid(from, member("property", ""), {
    name: "find_unnamed",
    about: "What has no name is not found by none.",
    clauses: find,
    ...refused,
  });
  cases.invalid(from, member("property", "gain"), {
    name: "find_unchecked",
    about: "The first of that name that passes the checks: one before it has a reader.",
    clauses: find,
    results: second,
  });
}

function addGetting(cases: Cases): void {
  const blank = property();
  const version = "property.version";
  const from = cases.valid(getting(blank, [{ get: true }, { get: true }]), {
    name: "get_never_set",
    about: "A value that was never set: none, and no slot is looked at.",
    clauses: version,
    ...got(blank, gives(0), gives(0)),
  });
  cases.invalid(from, field(blank.control, "property_control", "version", 4), {
    name: "get_blank_slot",
    about: "Version 4 in blank memory: slot 0 does not hold it.",
    clauses: `${version} property.fault`,
    results: ["property.slot", "property.slot"],
  });
  const twice = property({ version: 7, slots: { 3: { sequence: 7, value: "" } } });
  cases.valid(getting(twice, [{ get: true }, { get: true }]), {
    name: "get_twice",
    about: "To get takes nothing away. No bytes are a value.",
    clauses: `${version} property.store_nothing`,
    ...got(twice, gives(7, { hex: "" }), gives(7, { hex: "" })),
  });
  const none = property({ version: 6, slots: { 2: { sequence: 6, present: 0 } } });
  cases.valid(getting(none), {
    name: "get_none",
    about: "None, as the sixth value.",
    clauses: version,
    ...got(none, gives(6)),
  });
  const next: Operation[] = [
    { get: true },
    sets(blank, 1, { codec: TEXT, value: "one" }),
    { get: true },
    sets(blank, 2, { codec: TEXT, value: "two" }),
    sets(blank, 3, { present: 0 }),
    { get: true },
    { get: true },
  ];
  cases.valid(getting(blank, next), {
    name: "get_latest",
    about: "What was set last, and not what was set before.",
    clauses: version,
    results: [gives(0), "ok", gives(1, text("one")), "ok", "ok", gives(3), gives(3)],
  });
  const full = new Uint8Array(112).map((_, index) => index);
  const most = property({
    version: 2 ** 32 - 1,
    slots: { 3: { sequence: 2 ** 32 - 1, value: full } },
  });
  cases.valid(getting(most), {
    name: "get_last_version",
    about: "The last version of all, and a value that fills its slot.",
    clauses: `${version} property.bounds`,
    ...got(most, gives(2 ** 32 - 1, { count: 112 })),
  });
}

/** What may stand in a slot, and what a writer that died leaves in the one after it. */
function addSlots(cases: Cases): void {
  const fault = "property.fault property.bounds";
  const plan = property({
    version: 5,
    slots: { 1: HALF, 2: { sequence: 6, present: 7, size: 2 ** 32 - 1, value: "torn" } },
  });
  const from = cases.valid(getting(plan, [{ get: true }, { get: true }]), {
    name: "get_begun",
    about: "The writer has begun the next value: the last complete one stands there.",
    clauses: `${fault} property.whole property.stays`,
    ...got(plan, gives(5, text("half")), gives(5, text("half"))),
  });
  const at = plan.slots[1]!;
  const changes: [string, string, string, number][] = [
    ["sequence_next", "The slot holds a later value, and the version is the same.", "sequence", 9],
    ["sequence_none", "The slot holds an older value.", "sequence", 1],
    ["size_113", "A value that is one byte too large.", "size", 113],
    ["size_most", "A value that would end beyond all memory.", "size", 2 ** 32 - 1],
    ["size_around", "A size that is negative as a signed number.", "size", 2 ** 31],
    ["present_two", "Neither a value nor none.", "present", 2],
    ["present_none", "None, with a size and a codec.", "present", 0],
  ];
  for (const [name, about, column, value] of changes) {
    const change = field(at, "property_slot", column, value);
    const clauses = (name.startsWith("sequence") ? "property.fault property.whole" : fault) +
      " property.store_nothing property.owner";
    cases.invalid(from, change, {
      name: `slot_${name}`,
      about,
      clauses,
      results: ["property.slot", "property.slot"],
      bytes: [stateIs(0, ATTACHED), versionIs(plan, 5), watchersAre(plan)],
    });
  }
  for (const [index, name] of [[0, "first"], [5, "last"]] as const) {
    const reserved = Uint8Array.from({ length: 6 }, (_, i) => i === index ? 1 : 0);
    cases.invalid(
      from,
      { at, structure: "property_slot", field: "reserved", hex: toHex(reserved) },
      {
        name: `slot_reserved_${name}`,
        about: "A reserved byte that is not 0.",
        clauses: fault,
        results: ["property.slot", "property.slot"],
      },
    );
  }
  const none = property({ version: 6, slots: { 2: { sequence: 6, present: 0 } } });
  const clean = cases.valid(getting(none), {
    name: "slot_none",
    about: "None has neither a size nor a codec.",
    clauses: fault,
    ...got(none, gives(6)),
  });
  for (const name of ["size", "codec"]) {
    cases.invalid(clean, field(none.slots[2]!, "property_slot", name, 1), {
      name: `slot_none_${name}`,
      about: `None with a ${name}.`,
      clauses: fault,
      results: ["property.slot"],
    });
  }
  cases.valid(
    getting(
      property({ version: 5, slots: { 1: { ...HALF, present: 3 } } }),
      [{ get: true }, sets(plan, 6, { value: "", codec: TEXT }), { get: true }],
    ),
    {
      name: "slot_mended",
      about: "A fault belongs to one call: the next value is whole again, and nobody is marked.",
      clauses: "property.fault property.store_nothing",
      results: ["property.slot", "ok", gives(6, text(""))],
      bytes: [stateIs(0, ATTACHED)],
    },
  );
}

function addDecoding(cases: Cases): void {
  const decode = "property.decode property.decode_codec";
  const value = { sequence: 5, codec: JSON_TEXT, value: '{"a":[1,2]}' };
  const plan = property({ version: 5, slots: { 1: value } });
  const json = { codec: JSON_TEXT, json: { a: [1, 2] } };
  const from = cases.valid(getting(plan, [{ get: true }, { get: true }], { kind: "decode" }), {
    name: "decode",
    about: "JSON as a value.",
    clauses: decode,
    ...got(plan, gives(5, json), gives(5, json)),
  });
  const at = plan.slots[1]!;
  const changes: [string, string, string, number, string][] = [
    ["cut", "JSON that is cut short.", "size", 10, "message.json"],
    ["empty", "No JSON at all.", "size", 0, "message.json"],
    ["batch", "A value is no batch.", "codec", BATCH, "message.codec"],
    ["values", "Nor a list of values.", "codec", VALUES, "message.codec"],
    ["unknown", "A codec that nobody knows.", "codec", 100, "message.codec"],
  ];
  for (const [name, about, column, number, code] of changes) {
    const change = field(at, "property_slot", column, number);
    cases.invalid(from, change, {
      name: `decode_${name}`,
      about,
      clauses: decode,
      results: [code, code],
    });
  }
  const wrong = { sequence: 5, codec: TEXT, value: Uint8Array.of(0x61, 0xff) };
  cases.valid(
    getting(
      property({ version: 5, slots: { 1: wrong } }),
      [{ get: true }, { get: true }, sets(plan, 6, { codec: TEXT, value: "ü" }), { get: true }],
      { kind: "decode" },
    ),
    {
      name: "decode_text",
      about: "A text that is not UTF-8; the value stays, and the next is another.",
      clauses: decode,
      results: ["message.text", "message.text", "ok", gives(6, text("ü"))],
    },
  );
  cases.valid(getting(property({ version: 5, slots: { 1: { ...wrong, codec: 200 } } })), {
    name: "decode_not",
    about: "Whoever gets bytes gets those of any codec.",
    clauses: decode,
    results: [gives(5, { codec: 200, hex: "61 ff" })],
  });
}

function addStates(cases: Cases): void {
  const clauses = "property.stays property.gone";
  const plan = property({ version: 5, slots: { 1: HALF } });
  const half = gives(5, text("half"));
  const from = cases.valid(getting(plan, [{ get: true }, { changed: true }, { get: true }]), {
    name: "stays",
    about: "The value of a writer that is attached.",
    clauses,
    results: [half, "wait.timeout", half],
  });
  const changes: [string, string, number, Expectation["results"]][] = [
    ["closed", "The writer has closed.", CLOSED, [half, "peer.closed", half]],
    [
      "failed",
      "The writer has died.",
      failed("peer.terminated"),
      [half, { code: "peer.failed", reason: "peer.terminated" }, half],
    ],
  ];
  for (const [name, about, state, results] of changes) {
    const at = limitOf("endpoint_table_offset");
    const change = field(at, "endpoint_record", "state", state);
    cases.invalid(from, change, {
      name: `stays_${name}`,
      about,
      clauses,
      results: results!,
    });
  }
  const own = "property.own_state";
  const ended = cases.valid(
    getting(plan, [{ get: true }, setState(1, CLOSED), { get: true }, { changed: true }]),
    {
      name: "own_closed",
      about: "The own endpoint was closed: every call says so.",
      clauses: own,
      results: [half, "ok", "pipe.closed", "pipe.closed"],
    },
  );
  const why = { code: "pipe.failed", reason: "peer.lost" };
  cases.invalid(ended, member("operations.1", setState(1, failed("peer.lost"))), {
    name: "own_failed",
    about: "It was marked failed.",
    clauses: own,
    results: [half, "ok", why, why],
  });
  cases.valid(getting(plan, [{ close: true }, { get: true }]), {
    name: "own_close",
    about: "It has closed itself.",
    clauses: own,
    results: ["ok", "pipe.closed"],
  });
}

// What a creator of properties writes: cases of `spec/property.md`.

/** Adds them. */
function addMaking(cases: Cases): void {
  addCreating(cases);
  addNames(cases);
}

const GAIN: SegmentPlan = { endpoints: 2, channels: [propertyOf({ name: "gain" })] };

function creating(memory: Uint8Array, plan: SegmentPlan): Setting {
  const geometry = plan as NonNullable<Setting["geometry"]>;
  return { kind: "create", image: toImage(memory), role: "segment", geometry };
}

/** All that a creator writes: up to the byte area of the last channel. */
function formatted(plan: SegmentPlan, to: number) {
  return imageIs(buildSegment(plan).bytes, 0, to, "all bytes that a creator writes");
}

function addCreating(cases: Cases): void {
  const areas = "property.areas property.name";
  const example = property({
    channel: { name: "gain" },
    version: 1,
    watchers: [1],
    slots: { 1: { sequence: 1, codec: valueOf("codec", "json"), value: "0.5" } },
  });
  mustHold(
    example.bytes,
    0,
    fromChapter("property", [
      "0200  01 00 00 00 ",
      "0280  02 00 00 00 ",
      "0300  04 00 00 00  67 61 69 6e ",
      "0400  01 00 00 00  03 00 00 00  01 02 00 00  00 00 00 00 ",
      "0410  30 2e 35 ",
    ]),
  );
  const { length } = buildSegment(GAIN).bytes;
  const garbage = new Uint8Array(length).fill(0xee).fill(0, 8, 12);
  const from = cases.valid(creating(garbage, GAIN), {
    name: "create",
    about: "A property of the name `gain`, in memory that holds something else.",
    clauses: areas,
    result: "ok",
    bytes: formatted(GAIN, 896),
  });
  const change = (name: string, about: string, channel: Partial<ChannelPlan>, clauses = areas) => {
    const plan = { ...GAIN, channels: [propertyOf({ name: "gain", ...channel })] };
    const isRefused = clauses === "property.areas" || (channel.name?.length ?? 0) > 124;
    const expect = isRefused
      ? { result: "refused", unchanged: true as const }
      : { result: "ok", bytes: formatted(plan, 896) };
    cases.invalid(from, member("geometry", plan), {
      name: `create_${name}`,
      about,
      clauses,
      ...expect,
    });
  };
  const none = "property.areas";
  change("data_none", "A byte area of no slots.", { capacity: 0 }, none);
  change("data_odd", "A byte area of slots that are not aligned.", { capacity: 640 }, none);
  change("writer", "A writer that is no endpoint.", { writer: 2 }, none);
  change("reader", "One endpoint alone that may read.", { reader: 1 }, none);
  change("start", "A property begins nowhere else.", { start: 16 }, none);
  change("unnamed", "A property without a name.", { name: "" });
  change("name_utf8", "A name in UTF-8.", { name: "größe µ" });
  change("name_124", "The longest name.", { name: "n".repeat(124) });
  change("name_125", "A name that is too long.", { name: "n".repeat(125) }, "property.name");
  const mixed: SegmentPlan = {
    endpoints: 3,
    channels: [
      propertyOf({ name: "a", writer: 2, capacity: 1024, label: 9 }),
      { writer: 0, reader: 1, capacity: 256 },
      propertyOf({ name: "b" }),
    ],
  };
  cases.valid(creating(new Uint8Array(buildSegment(mixed).bytes.length), mixed), {
    name: "create_mixed",
    about: "Two properties and a ring between them.",
    clauses: `${areas} segment.place`,
    result: "ok",
    bytes: formatted(mixed, 1024),
  });
}

function addNames(cases: Cases): void {
  const { bytes } = buildSegment(GAIN);
  const same = "property.same_name";
  const from = cases.valid(creating(bytes, GAIN), {
    name: "create_same",
    about: "The other side has made it already, of the same name.",
    clauses: same,
    result: "ok",
    unchanged: true,
  });
  const moved = propertyOf({ name: "gain", control_offset: 640, data_offset: 1024 });
  cases.valid(creating(buildSegment({ ...GAIN, channels: [moved], extra: 256 }).bytes, GAIN), {
    name: "create_same_elsewhere",
    about: "The same, in a segment that has its areas in other places.",
    clauses: same,
    result: "ok",
    unchanged: true,
  });
  const other = (name: string, about: string, channel: Partial<ChannelPlan>) => {
    const plan = { ...GAIN, channels: [propertyOf({ name: "gain", ...channel })] };
    const expect = { result: "segment.geometry", unchanged: true as const };
    cases.invalid(from, member("geometry", plan), {
      name: `create_other_${name}`,
      about,
      clauses: same,
      ...expect,
    });
  };
  other("name", "It has another name.", { name: "pain" });
  other("longer", "It has a longer one.", { name: "gains" });
  other("none", "It has a name.", { name: "" });
}

// What a writer stores, and whom it rings: cases of `spec/property.md`.

const LAST = 2 ** 32 - 1;

/** Adds them. */
function addSetting(cases: Cases): void {
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

/** After its attaching, which rings the own bell alone, nobody has rung. */
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

// How somebody waits for a change: cases of `spec/property.md`.

/** Adds them. */
function addWaiting(cases: Cases): void {
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
