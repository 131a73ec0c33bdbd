/** The cases of `spec/property.md`. @module */

import { ATTACHED, Cases, CLOSED, field, member, setState, stateIs } from "./builder.ts";
import { areasAre, getting, gives, type Property, property } from "./builder_property.ts";
import { propertyOf, type PropertyPlan, sets, type SlotPlan, text } from "./builder_property.ts";
import { versionIs, watchersAre } from "./builder_property.ts";
import { addMaking } from "./cases_property_make.ts";
import { addSetting } from "./cases_property_set.ts";
import { addWaiting } from "./cases_property_wait.ts";
import { toHex } from "./bytes.ts";
import type { Expectation, Operation } from "./case.ts";
import { failed, NOBODY } from "./encode.ts";
import { limitOf, valueOf } from "./layout.ts";

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

/** What may stand in a slot, and what a writer that died leaves in the one behind it. */
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
