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
  const from = cases.valid(
    "open",
    "A text that was set as the fifth value, in slot 1.",
    `${open} property.version property.whole property.store_nothing property.owner`,
    getting(plan),
    got(plan, gives(5, text("half"))),
  );
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
    cases.invalid(`open_${name}`, about, open, from, field(at, DESCRIPTOR, column, value), refused);
  }
  cases.invalid("open_beyond", "No such channel.", open, from, member("channel", 1), refused);
  const wide = property({ version: 5, slots: { 1: HALF }, channel: { control_size: 512 } });
  cases.valid(
    "open_control_wide",
    "A control area may be larger.",
    open,
    getting(wide),
    got(wide, gives(5, text("half"))),
  );
  const ring = { writer: 0, reader: 1, capacity: 512 };
  cases.valid(
    "open_ring",
    "A ring is no property.",
    open,
    getting(property({ before: [ring] }), undefined, { channel: 0 }),
    refused,
  );
  cases.valid(
    "open_writer_other",
    "Endpoint 1 may not set what endpoint 0 writes.",
    `${open} property.owner`,
    { ...getting(plan), role: "property_writer", endpoint: 1, kind: "write" },
    refused,
  );
  const taken = property({ states: [ATTACHED, ATTACHED] });
  cases.valid(
    "open_taken",
    "The checks of the segment come first: the endpoint is not vacant.",
    `${open} segment.check`,
    getting(taken),
    { result: "segment.endpoint", unchanged: true },
  );
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
  const from = cases.valid(
    "find",
    "The first property of that name, in UTF-8.",
    find,
    byName,
    got(found, gives(5, text("half"))),
  );
  const refused = { result: "property.channel", unchanged: true } as const;
  const control = found.control;
  const hex = (name: string) => ({
    at: control,
    structure: "property_control",
    field: "name",
    hex: toHex(Uint8Array.from({ length: 124 }, (_, i) => new TextEncoder().encode(name)[i] ?? 0)),
  });
  const second = got(found, gives(0)).results!;
  cases.invalid(
    "find_second",
    "The first has another name: the next of that name, which nobody has set.",
    find,
    from,
    hex("grösse"),
    { results: second },
  );
  cases.invalid(
    "find_size",
    "A name of 125 bytes is none.",
    find,
    from,
    field(control, "property_control", "name_size", 125),
    { results: second },
  );
  cases.invalid("find_none", "No such name.", find, from, member("property", "gai"), refused);
  cases.invalid("find_longer", "A longer one.", find, from, member("property", "größer"), refused);
  cases.invalid(
    "find_unnamed",
    "What has no name is not found by none.",
    find,
    from,
    member("property", ""),
    refused,
  );
  cases.invalid(
    "find_unchecked",
    "The first of that name that passes the checks: one before it has a reader.",
    find,
    from,
    member("property", "gain"),
    { results: second },
  );
}

function addGetting(cases: Cases): void {
  const blank = property();
  const version = "property.version";
  const from = cases.valid(
    "get_never_set",
    "A value that was never set: none, and no slot is looked at.",
    version,
    getting(blank, [{ get: true }, { get: true }]),
    got(blank, gives(0), gives(0)),
  );
  cases.invalid(
    "get_blank_slot",
    "Version 4 in blank memory: slot 0 does not hold it.",
    `${version} property.fault`,
    from,
    field(blank.control, "property_control", "version", 4),
    { results: ["property.slot", "property.slot"] },
  );
  const twice = property({ version: 7, slots: { 3: { sequence: 7, value: "" } } });
  cases.valid(
    "get_twice",
    "To get takes nothing away. No bytes are a value.",
    `${version} property.store_nothing`,
    getting(twice, [{ get: true }, { get: true }]),
    got(twice, gives(7, { hex: "" }), gives(7, { hex: "" })),
  );
  const none = property({ version: 6, slots: { 2: { sequence: 6, present: 0 } } });
  cases.valid(
    "get_none",
    "None, as the sixth value.",
    version,
    getting(none),
    got(none, gives(6)),
  );
  const next: Operation[] = [
    { get: true },
    sets(blank, 1, { codec: TEXT, value: "one" }),
    { get: true },
    sets(blank, 2, { codec: TEXT, value: "two" }),
    sets(blank, 3, { present: 0 }),
    { get: true },
    { get: true },
  ];
  cases.valid(
    "get_latest",
    "What was set last, and not what was set before.",
    version,
    getting(blank, next),
    { results: [gives(0), "ok", gives(1, text("one")), "ok", "ok", gives(3), gives(3)] },
  );
  const full = new Uint8Array(112).map((_, index) => index);
  const most = property({
    version: 2 ** 32 - 1,
    slots: { 3: { sequence: 2 ** 32 - 1, value: full } },
  });
  cases.valid(
    "get_last_version",
    "The last version of all, and a value that fills its slot.",
    `${version} property.bounds`,
    getting(most),
    got(most, gives(2 ** 32 - 1, { count: 112 })),
  );
}

/** What may stand in a slot, and what a writer that died leaves in the one behind it. */
function addSlots(cases: Cases): void {
  const fault = "property.fault property.bounds";
  const plan = property({
    version: 5,
    slots: { 1: HALF, 2: { sequence: 6, present: 7, size: 2 ** 32 - 1, value: "torn" } },
  });
  const from = cases.valid(
    "get_begun",
    "The writer has begun the next value: the last complete one stands there.",
    `${fault} property.whole property.stays`,
    getting(plan, [{ get: true }, { get: true }]),
    got(plan, gives(5, text("half")), gives(5, text("half"))),
  );
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
    cases.invalid(`slot_${name}`, about, clauses, from, change, {
      results: ["property.slot", "property.slot"],
      bytes: [stateIs(0, ATTACHED), versionIs(plan, 5), watchersAre(plan)],
    });
  }
  for (const [index, name] of [[0, "first"], [5, "last"]] as const) {
    const reserved = Uint8Array.from({ length: 6 }, (_, i) => i === index ? 1 : 0);
    cases.invalid(
      `slot_reserved_${name}`,
      "A reserved byte that is not 0.",
      fault,
      from,
      { at, structure: "property_slot", field: "reserved", hex: toHex(reserved) },
      { results: ["property.slot", "property.slot"] },
    );
  }
  const none = property({ version: 6, slots: { 2: { sequence: 6, present: 0 } } });
  const clean = cases.valid(
    "slot_none",
    "None has neither a size nor a codec.",
    fault,
    getting(none),
    got(none, gives(6)),
  );
  for (const name of ["size", "codec"]) {
    cases.invalid(
      `slot_none_${name}`,
      `None with a ${name}.`,
      fault,
      clean,
      field(none.slots[2]!, "property_slot", name, 1),
      { results: ["property.slot"] },
    );
  }
  cases.valid(
    "slot_mended",
    "A fault belongs to one call: the next value is whole again, and nobody is marked.",
    "property.fault property.store_nothing",
    getting(
      property({ version: 5, slots: { 1: { ...HALF, present: 3 } } }),
      [{ get: true }, sets(plan, 6, { value: "", codec: TEXT }), { get: true }],
    ),
    { results: ["property.slot", "ok", gives(6, text(""))], bytes: [stateIs(0, ATTACHED)] },
  );
}

function addDecoding(cases: Cases): void {
  const decode = "property.decode property.decode_codec";
  const value = { sequence: 5, codec: JSON_TEXT, value: '{"a":[1,2]}' };
  const plan = property({ version: 5, slots: { 1: value } });
  const json = { codec: JSON_TEXT, json: { a: [1, 2] } };
  const from = cases.valid(
    "decode",
    "JSON as a value.",
    decode,
    getting(plan, [{ get: true }, { get: true }], { kind: "decode" }),
    got(plan, gives(5, json), gives(5, json)),
  );
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
    cases.invalid(`decode_${name}`, about, decode, from, change, { results: [code, code] });
  }
  const wrong = { sequence: 5, codec: TEXT, value: Uint8Array.of(0x61, 0xff) };
  cases.valid(
    "decode_text",
    "A text that is not UTF-8; the value stays, and the next is another.",
    decode,
    getting(
      property({ version: 5, slots: { 1: wrong } }),
      [{ get: true }, { get: true }, sets(plan, 6, { codec: TEXT, value: "ü" }), { get: true }],
      { kind: "decode" },
    ),
    { results: ["message.text", "message.text", "ok", gives(6, text("ü"))] },
  );
  cases.valid(
    "decode_not",
    "Whoever gets bytes gets those of any codec.",
    decode,
    getting(property({ version: 5, slots: { 1: { ...wrong, codec: 200 } } })),
    { results: [gives(5, { codec: 200, hex: "61 ff" })] },
  );
}

function addStates(cases: Cases): void {
  const clauses = "property.stays property.gone";
  const plan = property({ version: 5, slots: { 1: HALF } });
  const half = gives(5, text("half"));
  const from = cases.valid(
    "stays",
    "The value of a writer that is attached.",
    clauses,
    getting(plan, [{ get: true }, { changed: true }, { get: true }]),
    { results: [half, "wait.timeout", half] },
  );
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
    cases.invalid(`stays_${name}`, about, clauses, from, change, { results: results! });
  }
  const own = "property.own_state";
  const ended = cases.valid(
    "own_closed",
    "The own endpoint was closed: every call says so.",
    own,
    getting(plan, [{ get: true }, setState(1, CLOSED), { get: true }, { changed: true }]),
    { results: [half, "ok", "pipe.closed", "pipe.closed"] },
  );
  const why = { code: "pipe.failed", reason: "peer.lost" };
  cases.invalid(
    "own_failed",
    "It was marked failed.",
    own,
    ended,
    member("operations.1", setState(1, failed("peer.lost"))),
    { results: [half, "ok", why, why] },
  );
  cases.valid(
    "own_close",
    "It has closed itself.",
    own,
    getting(plan, [{ close: true }, { get: true }]),
    { results: ["ok", "pipe.closed"] },
  );
}
