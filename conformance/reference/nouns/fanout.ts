/** The cases of `spec/fanout.md`: the channel, and its readers in mode `hold`. @module */

import { ATTACHED, bellIs, bellIsNot, bytesOf, Cases, CLOSED, drained } from "../builder.ts";
import { endFrame, field, firstOf, member, message, pad, pattern, setState } from "../builder.ts";
import { stateIs, text, utf8, VACANT, whole } from "../builder.ts";
import { controlIs, ends, fanout, joined, JOINING, publishes, reads } from "../builder_many.ts";
import { recordIs, recordOf, stores, storesHead, writes } from "../builder_many.ts";
import { type Run, toImage, word } from "../bytes.ts";
import type { Operation } from "../case.ts";
import { buildSegment, descriptorAt, failed, kindOf, NOBODY, recordAt } from "../encode.ts";
import { addFanoutLoss } from "./fanout_lose.ts";

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
    clauses: "fanout.find fanout.find_none fanout.peers fanout.record_owner " +
      "fanout.join segment.state_ring",
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

// The cases of `spec/fanout.md`: its writer in mode `hold`.

const READER = "fanout_reader";
const STATES = [VACANT, ATTACHED, ATTACHED];
const take: Operation = { take: true };
const large: Operation = { write: bytesOf(112) };
const small: Operation = { write: bytesOf(80) };

/** Adds them. */
function addFanoutWriter(cases: Cases): void {
  addWrites(cases);
  addRoom(cases);
  addReserve(cases);
  addHeads(cases);
  addGone(cases);
  addRings(cases);
}

function addWrites(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0)] });
  const ends: Operation[] = [large, take, small, { write: bytesOf(64) }, { end: true }, take];
  const all = drained([message(bytesOf(80)), message(bytesOf(64))], "ended");
  const from = cases.valid(writes(plan, [...ends, { end: true }, small]), {
    name: "write",
    about: "Whole messages, a pad where one does not fit, and `end`; a second `end` does nothing.",
    clauses: "fanout.writer fanout.ended fanout.whole fanout.size fanout.room fanout.number",
    results: [
      "ok",
      drained([message(bytesOf(112))]),
      "ok",
      "ok",
      "ok",
      all,
      "ok",
      "pipe.ended",
    ],
    bytes: [
      controlIs(plan, "tail", 352),
      controlIs(plan, "floor", 0),
      controlIs(plan, "ended", 353),
    ],
  });
  cases.invalid(from, member("operations", [large, take, small]), {
    name: "write_not_ended",
    about: "It does not end.",
    clauses: "fanout.ended",
    results: ["ok", drained([message(bytesOf(112))]), "ok"],
    bytes: [controlIs(plan, "ended", 0)],
  });
  cases.invalid(from, member("operations.0", { write: bytesOf(113) }), {
    name: "write_large",
    about: "The largest frame is half the capacity: one byte more is refused.",
    clauses: "fanout.size fanout.whole",
    results: [
      "message.size",
      drained([]),
      "ok",
      "ok",
      "ok",
      all,
      "ok",
      "pipe.ended",
    ],
  });
  cases.invalid(from, member("operations.0", { write: bytesOf(300), wait: true }), {
    name: "write_wait_large",
    about: "Nor does a call that may wait cut it.",
    clauses: "fanout.size fanout.whole",
    results: ["message.size", drained([]), "ok", "ok", "ok", all, "ok", "pipe.ended"],
  });
  cases.invalid(from, member("operations.3", { write: bytesOf(16) }), {
    name: "write_no_pad",
    about: "A frame of 80 bytes ends with the byte area: no pad.",
    clauses: "fanout.writer fanout.room",
    results: [
      "ok",
      drained([message(bytesOf(112))]),
      "ok",
      "ok",
      "ok",
      drained([message(bytesOf(80)), message(bytesOf(16))], "ended"),
      "ok",
      "pipe.ended",
    ],
    bytes: [controlIs(plan, "tail", 272)],
  });
}

/** The last 16 bytes are for `end`, which then finds its room. */
function addReserve(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0)] });
  const from = cases.valid(writes(plan, [large, { write: bytesOf(96) }, { end: true }]), {
    name: "filled",
    about: "Frames of 240 bytes leave the room of `end`, in an area of 256.",
    clauses: "fanout.room fanout.writer",
    results: ["ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 256)],
  });
  cases.invalid(from, member("operations.1", large), {
    name: "filled_whole",
    about: "The second frame would leave none.",
    clauses: "fanout.room",
    results: ["ok", "full", "ok"],
    bytes: [controlIs(plan, "tail", 144)],
  });
}

/** Who holds the writer back. */
function addRoom(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0), joined(0)] });
  const operations: Operation[] = [large, small, storesHead(plan, 0, joined(224)), small];
  const from = cases.valid(writes(plan, operations), {
    name: "held_back",
    about: "One reader has read all, the other one nothing: there is no room.",
    clauses: "fanout.room fanout.count fanout.no_readers",
    results: ["ok", "ok", "ok", "full"],
    bytes: [
      controlIs(plan, "tail", 224),
      recordIs(plan, 1, "writer_wants", 0),
      stateIs(2, ATTACHED),
    ],
  });
  const goes = {
    results: ["ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 352), stateIs(1, ATTACHED)],
  };
  const free = (name: string, about: string, clauses: string, head: number) =>
    cases.invalid(from, field(recordOf(plan, 1), READER, "head", head), {
      name,
      about,
      clauses,
      ...goes,
    });
  free("held_left", "The other has left.", "fanout.count fanout.no_readers", 0);
  const state = (name: string, about: string, value: number) =>
    cases.invalid(from, field(recordAt(2), "endpoint_record", "state", value), {
      name,
      about,
      clauses: "fanout.count fanout.gone fanout.no_readers",
      ...goes,
    });
  state("held_vacant", "The other has not attached.", VACANT);
  state("held_closed", "The other has closed.", CLOSED);
  state("held_failed", "The other was marked failed.", failed("peer.lost"));
  state("held_invalid", "The state of the other is none that there is.", 9);
  cases.invalid(from, field(recordOf(plan, 1), READER, "head", JOINING), {
    name: "held_joining",
    about: "The other is about to join: what it begins at is at least the first position.",
    clauses: "fanout.count fanout.room",
    results: ["ok", "ok", "ok", "full"],
    bytes: [stateIs(2, ATTACHED), recordIs(plan, 1, "head", JOINING)],
  });
  cases.invalid(
    from,
    member("operations.2", {
      set: [0, 1].map((index) => ({ offset: recordOf(plan, index), hex: word(joined(128)) })),
    }),
    {
      name: "held_both",
      about: "Both have given back the first message.",
      clauses: "fanout.room",
      ...goes,
    },
  );
  cases.invalid(from, member("operations.3", { write: bytesOf(80), wait: true }), {
    name: "held_and_timed_out",
    about: "A call that waits gives up at its deadline, and asks for nothing any more.",
    clauses: "fanout.room",
    results: ["ok", "ok", "ok", "wait.timeout"],
    bytes: [controlIs(plan, "tail", 224), recordIs(plan, 1, "writer_wants", 0)],
  });
  const nobody = fanout({ states: STATES });
  cases.valid(writes(nobody, [large, small, small, large]), {
    name: "nobody",
    about: "Nobody has joined: nobody holds the writer back.",
    clauses: "fanout.no_readers fanout.count",
    results: ["ok", "ok", "ok", "ok"],
    bytes: [controlIs(nobody, "tail", 480)],
  });
}

/** What a reader may store, and what not. */
function addHeads(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0), joined(0)] });
  const both = (first: number, second: number): Operation => ({
    set: [first, second].map((head, index) => ({
      offset: recordOf(plan, index),
      hex: word(head),
    })),
  });
  const operations = [large, small, both(joined(224), joined(128)), small];
  const from = cases.valid(writes(plan, operations), {
    name: "heads",
    about: "Both readers give back what they have read.",
    clauses: "fanout.head fanout.head_fault",
    results: ["ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 352), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
  });
  const fault = (name: string, about: string, head: number) =>
    cases.invalid(from, member("operations.2", both(joined(224), head)), {
      name,
      about,
      clauses: "fanout.head fanout.head_fault",
      results: ["ok", "ok", "ok", "ok"],
      bytes: [
        controlIs(plan, "tail", 352),
        stateIs(1, ATTACHED),
        stateIs(2, failed("ring.cursor")),
      ],
    });
  fault("head_beyond", "One states a position that was not published.", joined(240));
  fault("head_behind", "One states a position behind where it began.", joined(0xfffffff0));
  fault("head_far", "One states a position that is half of all away.", joined(0x80000000));
  fault("head_odd", "One states no multiple of 16.", joined(136));
  fault("head_bit", "One states a position without bit 0.", 128);
  fault("head_unknown", "One states 3.", 3);
  const twice = cases.valid(
    writes(plan, [...operations, both(joined(352), joined(352)), small, large]),
    {
      name: "heads_twice",
      about: "A reader gives room back twice.",
      clauses: "fanout.head",
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "full"],
      bytes: [stateIs(2, ATTACHED)],
    },
  );
  cases.invalid(twice, member("operations.4", both(joined(352), joined(0))), {
    name: "head_back",
    about: "The second time it goes back, and is counted no more.",
    clauses: "fanout.head fanout.head_fault fanout.gone",
    results: ["ok", "ok", "ok", "ok", "ok", "ok", "full"],
    bytes: [stateIs(2, failed("ring.cursor")), controlIs(plan, "tail", 448)],
  });
}

/** A reader that is gone does not come back. */
function addGone(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0), joined(0)] });
  const first = storesHead(plan, 0, joined(224));
  const further = storesHead(plan, 0, joined(352));
  const operations = [large, small, first, setState(2, CLOSED), small];
  const from = cases.valid(writes(plan, [...operations, setState(2, ATTACHED), further, large]), {
    name: "gone",
    about: "A reader that has closed is not counted, also when its state says otherwise later.",
    clauses: "fanout.gone fanout.no_readers",
    results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 480), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
  });
  const back: Operation = {
    set: [0, 1].map((index) => ({ offset: recordOf(plan, index), hex: word(joined(352)) })),
  };
  cases.invalid(
    from,
    member("operations", [
      ...operations,
      setState(2, ATTACHED),
      back,
      large,
      storesHead(plan, 0, joined(480)),
      large,
    ]),
    {
      name: "gone_reads",
      about: "Later it has even read all that is there: it does not hold the writer back.",
      clauses: "fanout.gone",
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "tail", 640), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
    },
  );
  cases.invalid(
    from,
    member("operations", [
      large,
      small,
      first,
      storesHead(plan, 1, joined(240)),
      small,
      setState(2, ATTACHED),
      back,
      large,
      storesHead(plan, 0, joined(480)),
      large,
    ]),
    {
      name: "gone_fault",
      about: "It was marked for its `head`, and then its words are as they should be.",
      clauses: "fanout.gone fanout.head_fault",
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "tail", 640), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
    },
  );
  cases.invalid(from, member("operations.3", setState(2, ATTACHED)), {
    name: "not_gone",
    about: "It was there all the time.",
    clauses: "fanout.gone fanout.count",
    results: ["ok", "ok", "ok", "ok", "full", "ok", "ok", "full"],
    bytes: [controlIs(plan, "tail", 224)],
  });
}

function addRings(cases: Cases): void {
  const heads = [joined(0), joined(0)];
  const plan = fanout({ states: STATES, heads, readersWant: 3 });
  // Attaching rings both.
  const bells: Operation = {
    set: [[1, 0x40], [2, 0x50]].map(([index, value]) => ({
      offset: recordAt(index!),
      hex: word(value!),
    })),
  };
  const from = cases.valid(
    writes(plan, [bells, { write: { text: "hi" } }, { write: { text: "hi" } }]),
    {
      name: "rings",
      about: "Both readers wait: both are rung, once.",
      clauses: "fanout.wake fanout.peers",
      results: ["ok", "ok", "ok"],
      bytes: [controlIs(plan, "readers_want", 0), bellIs(1, 0x41), bellIs(2, 0x51)],
    },
  );
  const want = (name: string, about: string, bits: string, first: number, second: number) =>
    cases.invalid(from, {
      at: plan.control,
      structure: "fanout_control",
      field: "readers_want",
      hex: bits.padEnd(64, "0"),
    }, {
      name,
      about,
      clauses: "fanout.wake",
      results: ["ok", "ok", "ok"],
      bytes: [bellIs(1, first), bellIs(2, second)],
    });
  want("rings_one", "The second waits, and the first does not.", "02", 0x40, 0x51);
  want("rings_nobody", "Nobody waits.", "00", 0x40, 0x50);
  want("rings_no_record", "A bit stands there that no record has.", "04", 0x40, 0x50);
  const attached = cases.valid(
    writes(fanout({ states: STATES }), [{ write: { text: "hi" } }]),
    {
      name: "attach_writer",
      about: "A writer attaches: its readers are rung.",
      clauses: "fanout.peers",
      results: ["ok"],
      bytes: [bellIs(1, 1), bellIs(2, 1), bellIs(0, 1)],
    },
  );
  cases.invalid(attached, field(512, "channel_descriptor", "control_size", 384), {
    name: "attach_one_record",
    about: "Endpoint 2 has no record, and is not rung.",
    clauses: "fanout.peers",
    results: ["ok"],
    bytes: [bellIs(1, 1), bellIs(2, 0), bellIs(0, 1)],
  });
}
