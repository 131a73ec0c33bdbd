/** The cases of `spec/fanout.md`: the channel, and its readers in mode `hold`. @module */

import {
  ATTACHED,
  bellIs,
  bellIsNot,
  bytesOf,
  Cases,
  CLOSED,
  drained,
  endFrame,
} from "./builder.ts";
import { field, firstOf, member, message, pad, pattern } from "./builder.ts";
import { setState, stateIs, text, utf8, VACANT, whole } from "./builder.ts";
import {
  controlIs,
  ends,
  fanout,
  joined,
  publishes,
  reads,
  recordIs,
  stores,
} from "./builder_fanout.ts";
import { type Run, toImage, word } from "./bytes.ts";
import type { Operation } from "./case.ts";
import { addFanoutLoss } from "./cases_fanout_lose.ts";
import { addFanoutWriter } from "./cases_fanout_writer.ts";
import { buildSegment, descriptorAt, failed, kindOf, NOBODY } from "./encode.ts";

const DESCRIPTOR = "channel_descriptor";
const read: Operation = { read: true };
const join: Operation = { join: true };

/** All cases of this noun. */
export function fanoutCases(): Cases {
  const cases = new Cases("fanout");
  addChannel(cases);
  addFound(cases);
  addCreated(cases);
  addReads(cases);
  addFaults(cases);
  addAnswers(cases);
  addLeaves(cases);
  addFanoutWriter(cases);
  addFanoutLoss(cases);
  return cases;
}

/** What an endpoint that attaches checks, and whom it rings. */
function addChannel(cases: Cases): void {
  const plan = fanout();
  const at = descriptorAt(3, 0);
  const attach = cases.valid({ ...reads(plan), operations: [read] }, {
    name: "attach",
    about: "A fanout of two records: endpoint 1 reads, and rings itself and the writer.",
    clauses:
      "fanout.find fanout.find_none fanout.peers fanout.record_owner fanout.join segment.state_ring",
    results: [drained([])],
    bytes: [
      stateIs(1, ATTACHED),
      bellIsNot(0, 0),
      bellIsNot(1, 0),
      bellIs(2, 0),
      recordIs(plan, 0, "head", joined(0)),
      recordIs(plan, 1, "head", 0),
    ],
  });
  const wrong = (name: string, about: string, key: string, value: number) =>
    cases.invalid(attach, field(at, DESCRIPTOR, key, value), {
      name,
      about,
      clauses: "fanout.find_none",
      result: "segment.channel",
      unchanged: true,
    });
  wrong("other_kind", "The channel is of another kind.", "kind", 4);
  wrong("writer_beyond", "The writer is no endpoint of the segment.", "writer", 3);
  wrong("writer_none", "The writer is nobody.", "writer", NOBODY);
  wrong("reader_stated", "The descriptor states one reader.", "reader", 1);
  wrong("no_records", "The control area has no room for a record.", "control_size", 256);
  wrong("half_record", "The control area has room for a record and a half.", "control_size", 448);
  wrong("capacity_192", "The capacity is no power of two.", "data_size", 192);
  wrong("capacity_128", "The capacity is 128 bytes.", "data_size", 128);
  wrong("start_odd", "The start has bit 1 set.", "start", 2);
  wrong("start_8", "The start is no multiple of 16.", "start", 8);
  const refused = { result: "segment.channel", unchanged: true as const };
  const none = "fanout.find_none";
  cases.invalid(attach, member("channel", 1), {
    name: "beyond",
    about: "There is no channel 1.",
    clauses: none,
    ...refused,
  });
  for (const [name, endpoint] of [["taken", 0], ["no_endpoint", 3]] as const) {
    const about = "An endpoint that cannot be taken: that comes first.";
    cases.invalid(attach, member("endpoint", endpoint), {
      name: `attach_${name}`,
      about,
      clauses: none,
      result: "segment.endpoint",
      unchanged: true,
    });
  }
  cases.invalid(attach, member("endpoint", 2), {
    name: "second_reader",
    about: "The same as endpoint 2, whose record is the second.",
    clauses: "fanout.peers fanout.record_owner fanout.find fanout.join segment.state_ring",
    results: [drained([])],
    bytes: [
      stateIs(2, ATTACHED),
      bellIsNot(0, 0),
      bellIs(1, 0),
      bellIsNot(2, 0),
      recordIs(plan, 0, "head", 0),
      recordIs(plan, 1, "head", joined(0)),
    ],
  });
  const around = fanout({ channel: { writer: 2 }, states: [VACANT, VACANT, ATTACHED] });
  cases.valid({ ...reads(around), operations: [read] }, {
    name: "around",
    about: "Endpoint 2 writes, so that record 0 is of endpoint 0 and record 1 of endpoint 1.",
    clauses: "fanout.record_owner fanout.peers",
    results: [drained([])],
    bytes: [recordIs(around, 1, "head", joined(0)), bellIs(0, 0), bellIsNot(2, 0)],
  });
  const four = fanout({ readers: 2, endpoints: 4, states: [] });
  const last = cases.valid({ ...reads(four), endpoint: 2 }, {
    name: "last_record",
    about: "Of four endpoints and two records, endpoint 2 has the last.",
    clauses: none,
    results: [drained([])],
    bytes: [recordIs(four, 1, "head", joined(0))],
  });
  const without = "Endpoint 3 has no record.";
  cases.invalid(last, member("endpoint", 3), {
    name: "no_record",
    about: without,
    clauses: none,
    ...refused,
  });
  const writer = "Endpoint 0 writes, and has none either.";
  cases.invalid(last, member("endpoint", 0), {
    name: "writer_reads",
    about: writer,
    clauses: none,
    ...refused,
  });
}

/** Which channel an endpoint takes that names none. */
function addFound(cases: Cases): void {
  const segment = buildSegment({
    endpoints: 2,
    channels: [
      { writer: 0, reader: 1, capacity: 256 },
      { writer: 1, reader: NOBODY, capacity: 256, readers: 1 },
      { writer: 0, reader: NOBODY, capacity: 256, readers: 1, start: 0x40 },
      { writer: 0, reader: NOBODY, capacity: 256, readers: 1, start: 0x80 },
    ],
    states: [ATTACHED],
  });
  const heads = segment.channels.map(({ control }) => control + 256);
  const at = (index: number, value: number) => ({ offset: heads[index]!, hex: word(value) });
  const setting = { kind: "read" as const, image: toImage(segment.bytes) };
  const from = cases.valid({ ...setting, role: "fanout_reader", operations: [read] }, {
    name: "find",
    about: "The first of the fanouts that endpoint 1 reads.",
    clauses: "fanout.find fanout.start",
    results: [drained([])],
    bytes: [at(2, 0x41), at(3, 0)],
  });
  cases.invalid(from, field(descriptorAt(2, 2), DESCRIPTOR, "start", 0x48), {
    name: "find_sound",
    about: "That one is broken: the next.",
    clauses: "fanout.find",
    results: [drained([])],
    bytes: [at(2, 0), at(3, 0x81)],
  });
}

function addCreated(cases: Cases): void {
  const channel = { writer: 0, reader: NOBODY, capacity: 256, readers: 2, start: 0x7fffff81 };
  const plan = fanout({ start: 0x7fffff80, lose: true, states: [] });
  const geometry = { endpoints: 3, channels: [channel] };
  const image = { size: plan.bytes.length, bytes: [] };
  const area = (start: number, era: number) => [
    controlIs(plan, "tail", start),
    controlIs(plan, "floor", start),
    controlIs(plan, "era", era),
    { offset: plan.control + 12, zero: 500, about: "the rest" },
    { offset: descriptorAt(3, 0), hex: "03 00 00 00 00 00 00 00 ff ff ff ff" },
    { offset: descriptorAt(3, 0) + 16, hex: "00 02 00 00", about: "control_size" },
  ];
  const from = cases.valid({ kind: "create", image, role: "segment", geometry }, {
    name: "create",
    about: "A fanout of two records in mode `lose`, below the first multiple of 2^31.",
    clauses: "fanout.start segment.write",
    bytes: area(0x7fffff80, 0),
  });
  cases.invalid(from, member("geometry.channels.0.start", 0x80000001), {
    name: "create_era",
    about: "It begins at that.",
    clauses: "fanout.start",
    bytes: area(0x80000000, 1),
  });
}

function addReads(cases: Cases): void {
  const start = 0xffffffc0;
  const old = whole("old");
  const plan = fanout({ start, frames: [old], readersWant: 2 });
  const more = publishes(plan, start + 32, whole("new"), whole(pattern(16)), whole(""));
  const got = [text("new"), message(bytesOf(16)), text("")];
  const from = cases.valid({ ...reads(plan), operations: [read, more, read] }, {
    name: "hold",
    about: "A reader joins at the tail; the cursors pass 2^32; its bit is cleared behind its wait.",
    clauses: "fanout.join fanout.release fanout.reader fanout.ask fanout.tail fanout.frame_check",
    results: [drained([]), "ok", drained(got)],
    bytes: [
      recordIs(plan, 0, "head", joined(0x30)),
      recordIs(plan, 1, "head", 0),
      controlIs(plan, "tail", 0x30),
      controlIs(plan, "readers_want", 2),
      stateIs(0, ATTACHED),
    ],
  });
  cases.invalid(from, field(plan.control, "fanout_control", "tail", start), {
    name: "hold_before",
    about: "The message before was not published when it joined.",
    clauses: "fanout.join fanout.release fanout.reader",
    results: [drained([]), "ok", drained([text("old"), ...got])],
    bytes: [recordIs(plan, 0, "head", joined(0x30))],
  });
  cases.invalid(from, {
    at: plan.control,
    structure: "fanout_control",
    field: "readers_want",
    hex: "00".repeat(32),
  }, {
    name: "hold_nobody_waits",
    about: "No other reader waits.",
    clauses: "fanout.ask",
    results: [drained([]), "ok", drained(got)],
    bytes: [controlIs(plan, "readers_want", 0)],
  });
  const tails: [string, number][] = [["odd", 0x28], ["beyond", 0x200], ["back", start]];
  for (const [name, value] of tails) {
    cases.invalid(from, member("operations.1.set.3.hex", word(value)), {
      name: `tail_${name}`,
      about: `\`tail\` moves from ffffffe0 to ${value.toString(16)}.`,
      clauses: "fanout.tail fanout.floor_odd fanout.reader fanout.release",
      results: [drained([]), "ok", drained([], "ring.cursor")],
      bytes: [stateIs(0, failed("ring.cursor")), recordIs(plan, 0, "head", joined(start + 32))],
    });
  }
  addWakes(cases);
}

/** A reader gives room back, and rings the writer that waits for it. */
function addWakes(cases: Cases): void {
  const plan = fanout({ writerWants: [33, 65] });
  const more = publishes(plan, 0, whole("one"), whole("two"));
  const from = cases.valid({ ...reads(plan), operations: [setBell(0x40), more, read] }, {
    name: "release_rings",
    about: "The writer waits for the first of two messages: it is rung once both are given back.",
    clauses: "fanout.release fanout.record_owner",
    results: ["ok", "ok", drained([text("one"), text("two")])],
    bytes: [
      recordIs(plan, 0, "writer_wants", 0),
      recordIs(plan, 1, "writer_wants", 65),
      bellIs(0, 0x41),
    ],
  });
  cases.invalid(from, field(plan.control + 256, "fanout_reader", "writer_wants", 97), {
    name: "release_too_early",
    about: "It waits for more than that.",
    clauses: "fanout.release",
    results: ["ok", "ok", drained([text("one"), text("two")])],
    bytes: [recordIs(plan, 0, "writer_wants", 97), bellIs(0, 0x40)],
  });
}

function setBell(value: number): Operation {
  return { set: [{ offset: 128, hex: word(value) }] };
}

function addFaults(cases: Cases): void {
  const plan = fanout({ capacity: 512 });
  const frames = [whole("one"), whole("two")];
  const from = cases.valid({ ...reads(plan), operations: [publishes(plan, 0, ...frames), read] }, {
    name: "frames",
    about: "Two messages.",
    clauses: "fanout.frame_check fanout.reader",
    results: ["ok", drained([text("one"), text("two")])],
    bytes: [stateIs(0, ATTACHED)],
  });
  const fault = (
    name: string,
    about: string,
    code: string,
    frame: Parameters<typeof publishes>[2],
  ) =>
    cases.invalid(from, member("operations.0", publishes(plan, 0, whole("one"), frame)), {
      name,
      about,
      clauses: "fanout.frame_check fanout.reader",
      results: ["ok", drained([text("one")], code)],
      bytes: [stateIs(0, failed(code))],
    });
  fault(
    "frame_unknown",
    "The second has an unknown kind.",
    "frame.kind",
    whole("two", { kind: 7 }),
  );
  fault("frame_first", "A message is cut.", "frame.flags", firstOf(4, utf8("tw")));
  fault("frame_last", "The rest of a message.", "frame.sequence", whole("two", { flags: 2 }));
  fault("frame_reserved", "A reserved byte.", "frame.reserved", whole("two", { reserved: 1 }));
  fault("frame_beyond", "It reaches beyond the tail.", "frame.size", whole("two", { size: 400 }));
  const lost = (name: string, about: string, clauses: string, code: string, change: unknown) =>
    cases.invalid(from, member("operations.0", change), {
      name,
      about,
      clauses,
      results: ["ok", drained([text("one"), { report: code }])],
      bytes: [stateIs(0, ATTACHED), recordIs(plan, 0, "head", joined(64))],
    });
  const call = whole("two", { kind: kindOf("call") });
  lost(
    "message_kind",
    "The second is a call.",
    "fanout.reader pipe.unknown_kind",
    "message.kind",
    publishes(plan, 0, whole("one"), call),
  );
  cases.invalid(from, member("limit", 2), {
    name: "message_limit",
    about: "The reader takes messages of two bytes.",
    clauses: "fanout.reader pipe.limit",
    results: ["ok", drained([{ report: "message.size" }, { report: "message.size" }])],
    bytes: [recordIs(plan, 0, "head", joined(64))],
  });
  cases.invalid(
    from,
    member(
      "operations.0",
      publishes(plan, 0, whole("one"), whole("skip", { kind: 200 }), whole("two")),
    ),
    {
      name: "message_padded",
      about: "A pad, and a frame of a kind to be skipped, between the two.",
      clauses: "fanout.frame_check",
      results: ["ok", drained([text("one"), text("two")])],
      bytes: [recordIs(plan, 0, "head", joined(96))],
    },
  );
  const wrapped = fanout({ start: 192 });
  cases.valid({
    ...reads(wrapped),
    operations: [publishes(wrapped, 192, pad(64), whole(pattern(112))), read],
  }, {
    name: "padded",
    about: "A pad up to the end of the byte area, and a frame behind it.",
    clauses: "fanout.frame_check",
    results: ["ok", drained([message(bytesOf(112))])],
    bytes: [stateIs(0, ATTACHED)],
  });
}

/** What a call to read answers first. */
function addAnswers(cases: Cases): void {
  const plan = fanout();
  const one = publishes(plan, 0, whole("one"));
  const leaves = setState(0, CLOSED);
  const from = cases.valid({ ...reads(plan), operations: [one, leaves, read] }, {
    name: "drained",
    about: "The writer closes behind a message, which is read first.",
    clauses: "fanout.first_answer fanout.reader pipe.drain",
    results: ["ok", "ok", drained([text("one")], "peer.closed")],
  });
  cases.invalid(from, member("operations.1", setState(0, failed("peer.terminated"))), {
    name: "drained_failed",
    about: "It is marked failed.",
    clauses: "fanout.first_answer fanout.reader",
    results: ["ok", "ok", drained([text("one")], "peer.failed", "peer.terminated")],
  });
  cases.invalid(from, member("operations.0", ends(plan, 0, whole("one"))), {
    name: "drained_ended",
    about: "It ends its stream before.",
    clauses: "fanout.first_answer fanout.reader pipe.end_once",
    results: ["ok", "ok", drained([text("one")], "ended")],
  });
  cases.invalid(from, member("operations.1", setState(1, CLOSED)), {
    name: "own_closed",
    about: "The reader is closed by somebody: nobody keeps the message for it.",
    clauses: "fanout.first_answer",
    results: ["ok", "ok", drained([], "pipe.closed")],
    bytes: [recordIs(plan, 0, "head", joined(0))],
  });
  cases.invalid(from, member("operations.1", setState(1, failed("peer.terminated"))), {
    name: "own_failed",
    about: "The reader is marked failed.",
    clauses: "fanout.first_answer",
    results: ["ok", "ok", drained([], "pipe.failed", "peer.terminated")],
  });
  cases.invalid(from, member("operations.1", { close: true }), {
    name: "closed",
    about: "It closes itself, and stores nothing more.",
    clauses: "fanout.first_answer",
    results: ["ok", "ok", drained([], "pipe.closed")],
    bytes: [stateIs(1, CLOSED), recordIs(plan, 0, "head", joined(0)), stateIs(0, ATTACHED)],
  });
}

function addLeaves(cases: Cases): void {
  const plan = fanout({ writerWants: [0x1001] });
  const one = publishes(plan, 0, whole("one"));
  const operations: Operation[] = [setBell(0x40), { leave: true }, one, { join: true }, read];
  const from = cases.valid({ ...reads(plan), operations }, {
    name: "leave",
    about: "A reader leaves, for which the writer waits, and joins again behind a message.",
    clauses: "fanout.leave fanout.join",
    results: ["ok", "ok", "ok", "ok", drained([])],
    bytes: [
      recordIs(plan, 0, "head", joined(32)),
      recordIs(plan, 0, "writer_wants", 0),
      bellIs(0, 0x41),
    ],
  });
  const late = cases.valid({
    ...reads(plan),
    operations: [{ leave: true }, ends(plan, 0, whole("one")), join, read],
  }, {
    name: "late",
    about: "A reader leaves, and joins again after the end: it is told.",
    clauses: "fanout.late fanout.join fanout.first_answer",
    results: ["ok", "ok", "ok", drained([], "ended")],
    bytes: [recordIs(plan, 0, "head", joined(48)), stateIs(0, ATTACHED)],
  });
  cases.invalid(late, member("operations.1", publishes(plan, 0, whole("one"))), {
    name: "late_not_ended",
    about: "The writer has not ended: it waits for more.",
    clauses: "fanout.late fanout.join",
    results: ["ok", "ok", "ok", drained([])],
    bytes: [recordIs(plan, 0, "head", joined(32))],
  });
  const [last] = (ends(plan, 32) as { set: Run[] }).set;
  const ending = stores(plan, { ended: 49 }) as { set: Run[] };
  cases.invalid(
    late,
    member("operations", [
      { leave: true },
      { set: [...(one as { set: Run[] }).set, last!, ...ending.set] },
      join,
      { read: 1 },
      stores(plan, { tail: 48 }),
      read,
    ]),
    {
      name: "late_ending",
      about: "It joins while the writer ends, which has stored `ended`, and no `tail` yet.",
      clauses: "fanout.late fanout.join fanout.reader",
      results: ["ok", "ok", "ok", drained([]), "ok", drained([], "ended")],
      bytes: [recordIs(plan, 0, "head", joined(48)), stateIs(0, ATTACHED)],
    },
  );
  const attached = fanout({ frames: [whole("one"), endFrame()], ended: 49 });
  const attach = cases.valid({ ...reads(attached), operations: [read, { leave: true }, read] }, {
    name: "late_attached",
    about: "An endpoint attaches after the end, and may leave.",
    clauses: "fanout.late fanout.leave fanout.first_answer",
    results: [drained([], "ended"), "ok", drained([], "ended")],
    bytes: [recordIs(attached, 0, "head", 0)],
  });
  cases.invalid(attach, field(attached.control, "fanout_control", "ended", 33), {
    name: "late_other",
    about: "`ended` is another position, which has no meaning.",
    clauses: "fanout.late",
    results: [drained([]), "ok", { items: [], end: "refused" }],
    bytes: [recordIs(attached, 0, "head", 0)],
  });
  cases.invalid(from, field(plan.control + 256, "fanout_reader", "writer_wants", 0), {
    name: "leave_quietly",
    about: "Nobody waits for it.",
    clauses: "fanout.leave",
    results: ["ok", "ok", "ok", "ok", drained([])],
    bytes: [recordIs(plan, 0, "head", joined(32)), bellIs(0, 0x40)],
  });
  cases.invalid(from, member("operations.3", stores(plan, { era: 0 })), {
    name: "left",
    about: "It does not join again.",
    clauses: "fanout.leave fanout.first_answer",
    results: ["ok", "ok", "ok", "ok", { items: [], end: "refused" }],
    bytes: [recordIs(plan, 0, "head", 0), recordIs(plan, 0, "writer_wants", 0)],
  });
}
