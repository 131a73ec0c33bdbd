/** The cases of `spec/pipe.md`. @module */

import { ATTACHED, bytesOf, Cases, CLOSED, controlIs, controlIsOneOf } from "../builder.ts";
import { drained, endFrame, field, firstOf, member, message, pad, part } from "../builder.ts";
import { pattern, pipe, reading, reads, setState, stateIs, store, text, utf8 } from "../builder.ts";
import { VACANT, whole, writersPipe, writing } from "../builder.ts";
import { toHex, toImage, word } from "../bytes.ts";
import type { Drained, Item, Operation, Setting } from "../case.ts";
import { fromChapter, mustHold } from "../layout.ts";
import { buildFrame, buildSegment, CANCEL, type ChannelPlan, descriptorAt } from "../encode.ts";
import { failed, fillRing, type FramePlan, kindOf, LAST, recordAt } from "../encode.ts";
import { addAnswers, addUnknown } from "./pipe_answer.ts";
import { addLending } from "./pipe_lend.ts";
import { addVacated } from "./vacate.ts";

const HI = text("hi");

/** All cases of this noun. */
export function pipeCases(): Cases {
  const cases = new Cases("pipe");
  addPeerStates(cases);
  addTruncated(cases);
  addKinds(cases);
  addLimits(cases);
  addParts(cases);
  addDroppedParts(cases);
  addOwnStates(cases);
  addWrites(cases);
  addOwed(cases);
  addPeerGone(cases);
  addAtOnce(cases);
  addAnswers(cases);
  addFinding(cases);
  addTries(cases);
  addUnknown(cases);
  addLending(cases);
  addVacated(cases);
  return cases;
}

function addPeerStates(cases: Cases): void {
  const state = (value: number) => field(recordAt(0), "endpoint_record", "state", value);
  const open = pipe({ frames: [whole("hi"), whole("last")] });
  const items = [HI, text("last")];
  cases.valid(reading(open), {
    name: "open",
    about: "Everything is read, and more may come.",
    clauses: "pipe.drain pipe.supervisor",
    results: [drained(items)],
    bytes: [controlIs(open, "head", 64)],
  });
  const add = (name: string, about: string, value: number, end: string, reason?: string) =>
    cases.invalid("pipe/open", state(value), {
      name,
      about,
      clauses: reason ? "pipe.drain pipe.supervisor" : "pipe.drain",
      results: [drained(items, end, reason)],
      bytes: [stateIs(0, value)],
    });
  add("closed", "The writer has closed: what it published comes first.", CLOSED, "peer.closed");
  for (const reason of ["peer.terminated", "peer.lost", "ring.cursor"]) {
    const name = reason.replace(".", "_");
    add(name, `The writer is marked: ${reason}.`, failed(reason), "peer.failed", reason);
  }
  const ended = pipe({ frames: [whole("hi"), endFrame()] });
  cases.valid(reading(ended), {
    name: "ended",
    about: "The stream has ended.",
    clauses: "pipe.end_once pipe.end",
    ...reads([HI], "ended"),
  });
  const closed = pipe({ frames: [whole("hi"), endFrame()], states: [CLOSED, 0] });
  cases.valid(reading(closed), {
    name: "ended_and_closed",
    about: "The stream has ended, and the writer has closed: the end counts.",
    clauses: "pipe.end_once pipe.drain",
    results: [drained([HI], "ended")],
    bytes: [stateIs(0, CLOSED)],
  });
  cases.invalid("pipe/ended_and_closed", field(closed.at[1]!, "frame_header", "kind", 200), {
    name: "closed_without_end",
    about: "An extension frame stands in place of the `end`.",
    clauses: "pipe.end_once pipe.drain",
    results: [drained([HI], "peer.closed")],
  });
}

function addTruncated(cases: Cases): void {
  const cut = pipe({ frames: [firstOf(9, utf8("abc")), endFrame()] });
  cases.valid(reading(cut), {
    name: "truncated",
    about: "The stream ends in the middle of a message.",
    clauses: "pipe.truncated",
    ...reads([{ report: "message.truncated" }], "ended"),
  });
  cases.invalid("pipe/truncated", member("limit", 8), {
    name: "truncated_dropped",
    about: "The message was dropped at its first frame: it is not reported again.",
    clauses: "pipe.truncated pipe.report_once pipe.limit",
    ...reads([{ report: "message.size" }], "ended"),
  });
  const plan = pipe({ frames: [firstOf(6, utf8("abc")), part(utf8("def")), endFrame()] });
  cases.valid(reading(plan), {
    name: "complete",
    about: "The stream ends behind the last part.",
    clauses: "pipe.truncated",
    ...reads([message({ text: "abcdef" })], "ended"),
  });
  cases.invalid("pipe/complete", field(plan.at[1]!, "frame_header", "kind", 128), {
    name: "last_missing",
    about: "The last part is an extension frame.",
    clauses: "pipe.truncated",
    ...reads([{ report: "message.truncated" }], "ended"),
  });
  const closed = pipe({ frames: [firstOf(6, utf8("abc"))], states: [CLOSED, 0] });
  cases.valid(reading(closed), {
    name: "closed_inside",
    about: "The writer has closed in the middle of a message: nothing more will come of it.",
    clauses: "pipe.drain",
    ...reads([], "peer.closed"),
  });
}

function addKinds(cases: Cases): void {
  const kinds = ["call", "return", "throw"].map(kindOf);
  const frames = [
    ...kinds.map((kind) => whole("x", { kind, tag: kind })),
    firstOf(3, utf8("ab"), { kind: kinds[0]! }),
    part(utf8("c"), { kind: kinds[0]! }),
    whole("hi"),
  ];
  const calls: Item[] = [
    ...kinds.map((kind) => message({ kind, codec: 1, tag: kind, text: "x" })),
    message({ kind: kinds[0]!, text: "abc" }),
  ];
  cases.valid(reading(pipe({ frames }), { calls: true }), {
    name: "calls",
    about: "A reader that offers calls gets calls, returns and throws.",
    clauses: "pipe.unknown_kind",
    ...reads([...calls, HI]),
  });
  const reports = calls.map(() => ({ report: "message.kind" }));
  cases.invalid("pipe/calls", member("calls", false), {
    name: "no_calls",
    about: "One that does not reports each once, also one of several frames.",
    clauses: "pipe.unknown_kind pipe.report_once",
    ...reads([...reports, HI]),
  });
  const large = [firstOf(9, utf8("abcd"), { kind: kinds[0]! }), part(utf8("efghi"), { kind: 3 })];
  cases.valid(reading(pipe({ frames: [...large, whole("hi")] }), { calls: true, limit: 8 }), {
    name: "call_above_limit",
    about: "A call above the limit, to a reader that offers calls.",
    clauses: "pipe.limit pipe.unknown_kind",
    ...reads([{ report: "message.size" }, HI]),
  });
  cases.invalid("pipe/call_above_limit", member("calls", false), {
    name: "kind_before_size",
    about: "The kind is looked at before the size.",
    clauses: "pipe.limit pipe.unknown_kind",
    ...reads([{ report: "message.kind" }, HI]),
  });
}

function addLimits(cases: Cases): void {
  const parts = [firstOf(6, utf8("abc")), part(utf8("def"))];
  const plan = pipe({ frames: [whole("sixsix"), ...parts, whole("hi")] });
  const clauses = "pipe.limit pipe.total_trust pipe.report_once";
  cases.valid(reading(plan, { limit: 6 }), {
    name: "at_limit",
    about: "Messages as large as the limit.",
    clauses,
    ...reads([text("sixsix"), message({ text: "abcdef" }), HI]),
  });
  const size = { report: "message.size" };
  cases.invalid("pipe/at_limit", member("limit", 5), {
    name: "above_limit",
    about: "Messages that are a byte larger than the limit.",
    clauses: "pipe.limit pipe.report_once",
    ...reads([size, size, HI]),
  });
  for (const total of [7, 2 ** 32, 2 ** 53 - 1]) {
    cases.invalid("pipe/at_limit", field(plan.at[1]! + 16, "message_preamble", "total", total), {
      name: `total_${total.toString(16)}`,
      about: "The preamble states more than the limit.",
      clauses: `${clauses} frame.check_total`,
      ...reads([text("sixsix"), size, HI]),
    });
  }
  const middle = pipe({
    frames: [
      firstOf(30, utf8("abc")),
      part(utf8("def"), { flags: 0 }),
      part(utf8(""), { flags: LAST + CANCEL }),
      whole("hi"),
    ],
  });
  cases.valid(reading(middle), {
    name: "cancelled_behind_parts",
    about: "The parts of a message that was given up are dropped.",
    clauses: "pipe.cancelled pipe.report_once",
    ...reads([{ report: "message.cancelled" }, HI]),
  });
}

function addAtOnce(cases: Cases): void {
  const plan = pipe({ frames: [firstOf(6, utf8("abc"), { kind: kindOf("call") })] });
  const from = cases.valid(reading(plan, { calls: true, limit: 6 }), {
    name: "begun",
    about: "The first part of a call; the rest has not come.",
    clauses: "pipe.keep_parts pipe.drop_parts pipe.limit pipe.unknown_kind",
    ...reads([]),
  });
  const add = (name: string, key: string, value: unknown, report: string, clauses: string) =>
    cases.invalid(from, member(key, value), {
      name,
      about: "What is lost is reported at once, before the rest has come.",
      clauses,
      ...reads([{ report }]),
    });
  add("begun_too_large", "limit", 5, "message.size", "pipe.limit pipe.report_once");
  add("begun_unknown", "calls", false, "message.kind", "pipe.unknown_kind pipe.report_once");
}

function addParts(cases: Cases): void {
  const first = pipe({
    frames: [firstOf(200, pattern(96)), part(pattern(96, 96), { flags: 0 })],
  });
  const operations: Operation[] = [
    { read: true },
    {
      set: [
        { offset: first.data + 240, hex: toHex(buildFrame(pad(16))) },
        { offset: first.data, hex: toHex(buildFrame(part(pattern(8, 192)))) },
        store(first, "tail", 288),
      ],
    },
    { read: true },
  ];
  const after = pipe({ start: 240, frames: [pad(16), part(pattern(8, 192))] });
  const top = ["00  70 00 00 00 01 01 00 00", "80  60 00 00 00 01 00 00 00"];
  mustHold(first.bytes, first.data, fromChapter("pipe", top));
  const behind = ["f0  00 00 00 00 06 00 00 00", "00  08 00 00 00 01 02 00 00"];
  mustHold(after.bytes, after.data, fromChapter("pipe", behind));
  cases.valid(reading(first, { operations }), {
    name: "example",
    about: "The example of the chapter: the parts are kept between two reads, and " +
      "their space given back.",
    clauses: "pipe.keep_parts pipe.drop_parts ring.release_all pipe.order frame.preamble",
    results: [drained([]), "ok", drained([message(bytesOf(200))])],
    bytes: [controlIs(first, "head", 288), controlIs(first, "reader_wants", 0)],
  });
  cases.invalid("pipe/example", field(first.at[0]! + 16, "message_preamble", "total", 201), {
    name: "kept_and_total",
    about: "The parts that were kept count: the total is one more.",
    clauses: "pipe.keep_parts pipe.drop_parts ring.release_all frame.preamble",
    results: [drained([]), "ok", drained([], "frame.total")],
    // Whether the pad before the fault was given back is the reader's own choice.
    bytes: [
      controlIsOneOf(first, "head", [240, 256]),
      stateIs(0, failed("frame.total")),
    ],
  });
}

/** What is left of a message whose parts were dropped with the report of its writer's state. */
function addDroppedParts(cases: Cases): void {
  const clauses = "pipe.keep_parts pipe.drop_parts pipe.report_once";
  const about = "The peer has closed inside a message, which counts as reported:";
  const add = (name: string, fact: string, rest: FramePlan[], last: Drained) => {
    const plan = pipe({ frames: [firstOf(6, utf8("abc")), ...rest], states: [CLOSED, 0] });
    const all = 48 + 32 * (rest.length - 1) + (rest[0]?.payload?.length ? 32 : 16);
    const operations: Operation[] = [
      { set: [store(plan, "tail", 48)] },
      { read: true },
      { set: [store(plan, "tail", all)] },
      { read: true },
    ];
    const setting = reading(plan, { operations });
    return [
      plan,
      cases.valid(setting, {
        name,
        about: `${about} ${fact}`,
        clauses,
        results: ["ok", drained([], "peer.closed"), "ok", last],
      }),
    ] as const;
  };
  const gone = drained([HI], "peer.closed");
  const [plan, from] = add(
    "parts_dropped",
    "what still comes of it is skipped.",
    [part(utf8("def")), whole("hi")],
    gone,
  );
  cases.invalid(from, field(plan.at[1]!, "frame_header", "flags", 3), {
    name: "parts_dropped_inside",
    about: "What still comes of it is checked all the same.",
    clauses: `${clauses} frame.check`,
    results: ["ok", drained([], "peer.closed"), "ok", drained([], "frame.sequence")],
  });
  for (const [name, total] of [["less", 5], ["more", 7]] as const) {
    cases.invalid(from, field(plan.at[0]! + 16, "message_preamble", "total", total), {
      name: `parts_dropped_${name}`,
      about:
        `Its parts are 6 bytes and its total is ${total}: that they add up is checked as well.`,
      clauses: `${clauses} frame.check frame.check_total`,
      results: ["ok", drained([], "peer.closed"), "ok", drained([], "frame.total")],
    });
  }
  const cancel = part(utf8(""), { flags: LAST + CANCEL });
  add("parts_dropped_cancel", "its cancel is skipped.", [cancel, whole("hi")], gone);
  add("parts_dropped_end", "`end` reports nothing.", [endFrame()], drained([], "ended"));
}

function addOwnStates(cases: Cases): void {
  const plan = pipe({ frames: [whole("hi")] });
  const offset = recordAt(1) + 4;
  const operations: Operation[] = [
    { read: true },
    { set: [{ offset, hex: word(ATTACHED) }] },
    { read: true },
  ];
  const from = cases.valid(reading(plan, { operations }), {
    name: "own_attached",
    about: "The reader's own state is attached.",
    clauses: "pipe.close_frees",
    results: [drained([HI]), "ok", drained([])],
  });
  const ends = [
    [CLOSED, "pipe.closed", "closed"],
    [failed("frame.kind"), "pipe.failed", "failed"],
  ] as const;
  for (const [state, code, name] of ends) {
    cases.invalid(from, member("operations.1.set.0.hex", word(state)), {
      name: `own_${name}`,
      about: `A supervisor, or the peer, has marked this endpoint ${name}.`,
      clauses: "pipe.close_frees",
      results: [drained([HI]), "ok", drained([], code)],
      bytes: [stateIs(1, state)],
    });
  }
}

function addWrites(cases: Cases): void {
  const plan = writersPipe();
  const two = [message({ text: "one" }), message({ text: "two" })];
  const from = cases.valid(
    writing(plan, {
      operations: [{ write: { text: "one" } }, { write: { text: "two" } }, { take: true }],
    }),
    {
      name: "write_two",
      about: "Two messages, in order.",
      clauses: "pipe.order pipe.end ring.publish",
      results: ["ok", "ok", drained(two)],
      bytes: [controlIs(plan, "tail", 64)],
    },
  );
  cases.invalid(from, member("operations.0", { end: true }), {
    name: "write_after_end",
    about: "Nothing is written behind `end`.",
    clauses: "pipe.end",
    results: ["ok", "pipe.ended", drained([], "ended")],
    bytes: [controlIs(plan, "tail", 16)],
  });
  cases.invalid(from, member("operations.0", { close: true }), {
    name: "write_after_close",
    about: "Nothing is written once the endpoint is closed.",
    clauses: "pipe.close pipe.close_stores pipe.close_frees",
    results: ["ok", "pipe.closed", drained([])],
    bytes: [stateIs(0, CLOSED)],
  });
  const long = bytesOf(120);
  const placed = cases.valid(
    writing(plan, { operations: [{ write: { hex: "" } }, { write: long }, { take: true }] }),
    {
      name: "try_write_parts",
      about: "There is room for all frames of a message that is too large for one.",
      clauses: "pipe.try_write",
      results: ["ok", "ok", drained([message({ hex: "" }), message(long)])],
    },
  );
  cases.invalid(placed, member("operations.0.write", bytesOf(112)), {
    name: "try_write_none",
    about: "There is room for some of them: none is placed.",
    clauses: "pipe.try_write",
    results: ["ok", "full", drained([message(bytesOf(112))])],
    bytes: [controlIs(plan, "tail", 128)],
  });
}

function addOwed(cases: Cases): void {
  const plan = writersPipe();
  const long = bytesOf(400);
  const operations: Operation[] = [
    { write: { ...long, codec: 200, tag: 9 }, wait: true },
    { room: 256 },
    { write: { text: "next" } },
    { take: true },
  ];
  const next = message({ text: "next" });
  const cancelled = { report: "message.cancelled" };
  const from = cases.valid(writing(plan, { operations }), {
    name: "owed",
    about: "A write that times out behind its first frame is cancelled before the next message.",
    clauses: "pipe.owed frame.cancel ring.publish_all pipe.cancelled",
    results: ["wait.timeout", "ok", "ok", drained([cancelled, next])],
    bytes: [controlIs(plan, "writer_wants", 0)],
  });
  cases.invalid(from, member("operations.0.write.count", 100), {
    name: "not_owed",
    about: "A message that fits is not given up.",
    clauses: "pipe.owed frame.cancel ring.publish_all",
    results: [
      "ok",
      "ok",
      "ok",
      drained([message({ ...bytesOf(100), codec: 200, tag: 9 }), next]),
    ],
  });
  const waiting: Operation[] = [...operations];
  waiting[2] = { write: { text: "next" }, wait: true };
  cases.valid(writing(plan, { operations: waiting }), {
    name: "owed_by_waiting",
    about: "The same, when the next write may wait.",
    clauses: "pipe.owed frame.cancel",
    results: ["wait.timeout", "ok", "ok", drained([cancelled, next])],
  });
  cases.invalid(from, member("operations.2", { end: true }), {
    name: "owed_and_ended",
    about: "`end` takes the place of the next message.",
    clauses: "pipe.owed pipe.end",
    results: ["wait.timeout", "ok", "ok", drained([cancelled], "ended")],
  });
}

function addPeerGone(cases: Cases): void {
  const plan = writersPipe();
  const offset = recordAt(1) + 4;
  const operations: Operation[] = [
    { write: { text: "one" } },
    { set: [{ offset, hex: word(ATTACHED) }] },
    { write: { text: "two" } },
  ];
  const from = cases.valid(writing(plan, { operations }), {
    name: "reader_attached",
    about: "The reader is there.",
    clauses: "pipe.peer_gone",
    results: ["ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 64)],
  });
  const add = (name: string, state: number, code: string) =>
    cases.invalid(from, member("operations.1.set.0.hex", word(state)), {
      name,
      about: "The reader has gone: nothing is written any more.",
      clauses: code === "peer.closed" ? "pipe.peer_gone" : "pipe.peer_gone segment.state_invalid",
      results: ["ok", "ok", code],
      bytes: [controlIs(plan, "tail", 32), stateIs(1, state)],
    });
  add("reader_closed", CLOSED, "peer.closed");
  add("reader_failed", failed("peer.lost"), "peer.failed");
  add("reader_invalid", 200, "peer.failed");
}

// Finding a ring, lending, and what a writer owes: cases of `spec/pipe.md`.

const FIND = "pipe.find pipe.find_none";
const DESCRIPTOR = "channel_descriptor";

/** Adds them to the cases of the pipe. */
function addFinding(cases: Cases): void {
  addRings(cases);
  addOwnRing(cases);
  addLendingFind(cases);
  addLendingChecks(cases);
  addOwedFind(cases);
}

function addRings(cases: Cases): void {
  const ring: ChannelPlan = { writer: 0, reader: 1, capacity: 256 };
  const segment = buildSegment({
    endpoints: 2,
    channels: [{ ...ring, kind: 9 }, ring, ring],
    states: [ATTACHED, VACANT],
  });
  fillRing(segment, 1, [whole("second")]);
  fillRing(segment, 2, [whole("third")]);
  const setting: Setting = {
    kind: "read",
    image: toImage(segment.bytes),
    role: "reader",
    channel: 2,
    operations: [{ read: true }],
  };
  const named = cases.valid(setting, {
    name: "find_named",
    about: "The caller names channel 2, the second ring.",
    clauses: FIND,
    results: [drained([text("third")])],
    bytes: [stateIs(1, ATTACHED)],
  });
  const refused = { result: "segment.channel", unchanged: true } as const;
  cases.invalid(named, member("channel", 0), {
    name: "find_other_kind",
    about: "Channel 0 is no ring.",
    clauses: FIND,
    ...refused,
  });
  cases.invalid(named, member("channel", 3), {
    name: "find_beyond",
    about: "There is no channel 3.",
    clauses: FIND,
    ...refused,
  });
  const { channel: _, ...unnamed } = setting;
  const first = cases.valid(unnamed, {
    name: "find_first",
    about: "The caller names none: the first ring, behind a channel of another kind.",
    clauses: FIND,
    results: [drained([text("second")])],
  });
  cases.invalid(first, field(descriptorAt(2, 1), DESCRIPTOR, "kind", 2), {
    name: "find_next",
    about: "The first ring has become a channel of another kind: the next one.",
    clauses: FIND,
    results: [drained([text("third")])],
  });
  const alone = pipe({ states: [ATTACHED, VACANT] });
  const { operations: __, channel: ___, ...attaching } = reading(alone);
  const only = cases.valid({ ...attaching, kind: "attach" }, {
    name: "find_only",
    about: "The only ring.",
    clauses: FIND,
    bytes: [stateIs(1, ATTACHED)],
  });
  cases.invalid(only, field(descriptorAt(2, 0), DESCRIPTOR, "kind", 0), {
    name: "find_none",
    about: "The only channel is of another kind: there is no ring, and no state changes.",
    clauses: FIND,
    ...refused,
  });
}

function addOwnRing(cases: Cases): void {
  const ring: ChannelPlan = { writer: 0, reader: 1, capacity: 256 };
  const segment = buildSegment({
    endpoints: 3,
    channels: [ring, { ...ring, writer: 2 }],
    states: [VACANT, ATTACHED, VACANT],
  });
  const [zero, two] = [segment.channels[0]!, segment.channels[1]!];
  const setting: Setting = {
    kind: "write",
    image: toImage(segment.bytes),
    role: "writer",
    endpoint: 2,
    operations: [{ write: { text: "a" } }],
  };
  const from = cases.valid(setting, {
    name: "find_own",
    about: "Endpoint 2 writes to the first ring of which it is the writer.",
    clauses: FIND,
    results: ["ok"],
    bytes: [controlIs(zero, "tail", 0), controlIs(two, "tail", 32)],
  });
  cases.invalid(from, member("endpoint", 0), {
    name: "find_own_first",
    about: "Endpoint 0 writes to another.",
    clauses: FIND,
    results: ["ok"],
    bytes: [controlIs(zero, "tail", 32), controlIs(two, "tail", 0)],
  });
  cases.invalid(from, member("channel", 0), {
    name: "find_of_others",
    about: "The caller of endpoint 2 names the ring of others.",
    clauses: FIND,
    result: "segment.channel",
    unchanged: true,
  });
  const free = buildSegment({ endpoints: 3, channels: [ring], states: [] });
  const none = cases.valid({ ...setting, image: toImage(free.bytes) }, {
    name: "find_own_none",
    about: "Endpoint 2 is vacant and writes no ring.",
    clauses: "pipe.find_none",
    result: "segment.channel",
    unchanged: true,
  });
  cases.invalid(none, field(recordAt(2), "endpoint_record", "state", ATTACHED), {
    name: "find_own_taken",
    about: "It is not vacant either, which is found first.",
    clauses: "pipe.find_none segment.check",
    result: "segment.endpoint",
    unchanged: true,
  });
}

function addLendingFind(cases: Cases): void {
  const plan = pipe({ frames: [whole("one"), whole("two"), whole("three")] });
  const lent = (content: string) => ({ items: [text(content)] });
  const lend: Operation[] = [{ peek: true }, { release: true }];
  const before = [lent("one"), "ok", lent("two"), "ok"];
  const clauses = "pipe.lend ring.release ring.release_all ring.head_owner";
  const from = cases.valid(reading(plan, { operations: [...lend, ...lend, { read: true }] }), {
    name: "lend",
    about: "Two messages are borrowed and given back, the third is read: all room " +
      "is the writer's again.",
    clauses,
    results: [...before, drained([text("three")])],
    bytes: [controlIs(plan, "head", 96)],
  });
  cases.invalid(from, member("operations.4", { peek: true }), {
    name: "lent",
    about: "The third is borrowed and not given back: its room is the reader's.",
    clauses,
    results: [...before, lent("three")],
    bytes: [{ offset: controlIs(plan, "head", 0).offset, not: word(96), about: "head" }],
  });
  const none: Operation[] = [...lend, { peek: true }];
  const single = pipe({ frames: [whole("one")] });
  const empty = cases.valid(reading(single, { operations: none }), {
    name: "lend_nothing",
    about: "There is nothing more to borrow, and the room of the first is the writer's again.",
    clauses: "pipe.lend ring.release_all",
    results: [lent("one"), "ok", { items: [], end: "nothing" }],
    bytes: [controlIs(single, "head", 32)],
  });
  cases.invalid(empty, field(recordAt(0), "endpoint_record", "state", 2), {
    name: "lend_closed",
    about: "And nothing will come.",
    clauses: "pipe.lend pipe.first_answer",
    results: [lent("one"), "ok", { items: [], end: "peer.closed" }],
  });
}

function addLendingChecks(cases: Cases): void {
  const chunks = [firstOf(6, utf8("abc")), part(utf8("def")), whole("hi")];
  const plan = pipe({ frames: chunks });
  const peek: Operation = { peek: true };
  const release: Operation = { release: true };
  const chunk = (content: string) => ({ items: [message({ text: content })] });
  cases.valid(reading(plan, { operations: [peek, release, peek, release, { read: true }] }), {
    name: "lend_chunks",
    about:
      "The chunks of a message are borrowed one after the other, the first without its preamble.",
    clauses: "pipe.lend_check pipe.lend",
    results: [chunk("abc"), "ok", chunk("def"), "ok", drained([text("hi")])],
  });
  const call = pipe({ frames: [whole("a", { kind: 3 }), whole("hi")] });
  const judged = cases.valid(reading(call, { operations: [peek, { read: true }] }), {
    name: "lend_judged",
    about: "A call, to a reader that does not offer calls, is reported and not lent.",
    clauses: "pipe.lend_check pipe.unknown_kind",
    results: [{ items: [{ report: "message.kind" }] }, drained([text("hi")])],
  });
  cases.invalid(judged, field(call.at[0]!, "frame_header", "kind", 7), {
    name: "lend_broken",
    about: "A kind that no frame has.",
    clauses: "pipe.lend_check frame.check",
    results: [{ items: [], end: "frame.kind" }, drained([], "frame.kind")],
    bytes: [stateIs(0, failed("frame.kind"))],
  });
  const cut = pipe({ frames: [firstOf(9, utf8("abc")), part(utf8(""), { flags: 6 })] });
  cases.valid(reading(cut, { operations: [peek, release, peek] }), {
    name: "lend_cancelled",
    about: "A message that was given up behind its first chunk.",
    clauses: "pipe.lend_check pipe.cancelled",
    results: [chunk("abc"), "ok", { items: [{ report: "message.cancelled" }] }],
  });
}

function addOwedFind(cases: Cases): void {
  const plan = writersPipe();
  const long: Operation = { write: { ...bytesOf(400), tag: 9 }, wait: true };
  const cancelled = { report: "message.cancelled" };
  const room: Operation = { room: 32 };
  const next: Operation = { write: bytesOf(112) };
  const owed = cases.valid(writing(plan, { operations: [long, room, next, { take: true }] }), {
    name: "owed_no_room",
    about: "There is room for the cancel of the message before, and none for the next.",
    clauses: "pipe.owed frame.cancel",
    results: ["wait.timeout", "ok", "full", drained([cancelled])],
  });
  const claim: Operation = { claim: bytesOf(16), size: 16, abandon: true };
  cases.valid(writing(plan, { operations: [long, { room: 256 }, claim, { take: true }] }), {
    name: "owed_claim_given_up",
    about: "What is claimed behind the cancel is given up again: the cancel has come all the same.",
    clauses: "pipe.owed frame.cancel",
    results: ["wait.timeout", "ok", "ok", drained([cancelled])],
  });
  cases.invalid(owed, member("operations.2", { end: true }), {
    name: "owed_not_next",
    about: "`end` takes the place of the next message, and has room.",
    clauses: "pipe.owed pipe.owed_end",
    results: ["wait.timeout", "ok", "ok", drained([cancelled], "ended")],
  });
  const ends = drained([cancelled], "ended");
  const from = cases.valid(
    writing(plan, { operations: [long, room, { end: true }, { take: true }] }),
    {
      name: "owed_end",
      about: "There is room for the cancel and for `end`: both come.",
      clauses: "pipe.owed_end pipe.end",
      results: ["wait.timeout", "ok", "ok", ends],
    },
  );
  cases.invalid(from, member("operations.0.write.count", 100), {
    name: "owed_end_nothing",
    about: "A message that fits owes nothing.",
    clauses: "pipe.owed_end pipe.end",
    results: ["ok", "ok", "ok", drained([message({ ...bytesOf(100), tag: 9 })], "ended")],
  });
  const before = message(bytesOf(32));
  const either = {
    one_of: [
      drained([before, { report: "message.truncated" }], "ended"),
      drained([before, cancelled], "ended"),
    ],
  };
  cases.valid(
    writing(plan, { operations: [{ write: bytesOf(32) }, long, { end: true }, { take: true }] }),
    {
      name: "owed_end_alone",
      about:
        "Nothing is given back. Where there is no room for the cancel, which depends on how the " +
        "writer cuts, `end` comes alone; the peer sees whether there was.",
      clauses: "pipe.owed_end pipe.end pipe.end_now",
      results: ["ok", "wait.timeout", "ok", either],
    },
  );
  const gone: Operation[] = [long, setState(1, ATTACHED), { end: true }, { take: true }];
  const there = cases.valid(writing(plan, { operations: gone }), {
    name: "owed_there",
    about: "The reader is there, and has read nothing.",
    clauses: "pipe.owed_end",
    results: ["wait.timeout", "ok", "ok", {
      one_of: [drained([{ report: "message.truncated" }], "ended"), ends],
    }],
  });
  cases.invalid(there, member("operations.1", setState(1, 2)), {
    name: "owed_gone",
    about:
      "To a reader that is gone nothing is owed; the call that gave up may have cancelled already.",
    clauses: "pipe.owed_end pipe.peer_gone pipe.end_closed",
    results: ["wait.timeout", "ok", "ok", {
      one_of: [drained([]), drained([cancelled])],
    }],
  });
}

// How large a message can be placed at once: cases of `spec/pipe.md`.

/** Adds them to the cases of the pipe. */
function addTries(cases: Cases): void {
  addNever(cases);
  addBounds(cases);
  addNeverFull(cases);
  addPartly(cases);
}

function addNever(cases: Cases): void {
  const plan = writersPipe();
  const from = cases.valid(
    writing(plan, { operations: [{ write: { ...bytesOf(100), tag: 5 } }, { take: true }] }),
    {
      name: "try_small",
      about: "A message that an empty ring can take at once, whatever its position.",
      clauses: "pipe.try_never frame.batch_whole",
      results: ["ok", drained([message({ ...bytesOf(100), tag: 5 })])],
    },
  );
  cases.invalid(from, member("operations.0.write.count", 240), {
    name: "try_never",
    about: "One that it could never take at once: the caller's mistake, and nothing is written.",
    clauses: "pipe.try_never",
    results: ["refused", drained([])],
    bytes: [controlIs(plan, "tail", 0)],
  });
  cases.invalid(from, member("operations.0.write", { codec: 3, text: `["${"x".repeat(120)}"]` }), {
    name: "batch_never",
    about: "A batch that is too large for one frame: the caller's mistake, and nothing is written.",
    clauses: "frame.batch_whole",
    results: ["refused", drained([])],
    bytes: [controlIs(plan, "tail", 0)],
  });
}

/** Up to which size a writer should be able to place what it is given, and from which it cannot. */
function addBounds(cases: Cases): void {
  for (const capacity of [256, 1024]) {
    const [should, never] = [Math.max(capacity / 2 - 16, capacity - 128), capacity - 80 + 1];
    for (const start of [0, 16, 48, capacity / 2, 2 ** 32 - 16]) {
      const plan = writersPipe({ capacity, start });
      const size = bytesOf(should);
      const from = cases.valid(writing(plan, { operations: [{ write: size }, { take: true }] }), {
        name: `try_size_${capacity}_${start.toString(16)}`,
        about: `${should} bytes, into an empty ring of ${capacity} at position ${start}.`,
        clauses: "pipe.try_size pipe.try_never pipe.try_write",
        results: ["ok", drained([message(size)])],
      });
      cases.invalid(from, member("operations.0.write.count", never), {
        name: `try_beyond_${capacity}_${start.toString(16)}`,
        about: `${never} bytes, for which there is not always room, however a writer cuts.`,
        clauses: "pipe.try_never",
        results: ["refused", drained([])],
        bytes: [controlIs(plan, "tail", start)],
      });
    }
  }
}

/** A message of several frames, of which some have room. */
function addPartly(cases: Cases): void {
  const plan = writersPipe();
  const [first, second] = [bytesOf(64), bytesOf(120)];
  const from = cases.valid(
    writing(plan, { operations: [{ write: first }, { write: second }, { take: true }] }),
    {
      name: "try_partly",
      about: "There is room for half of the ring, and not for all of a message: " +
        "nothing of it is placed.",
      clauses: "pipe.try_write",
      results: ["ok", "full", drained([message(first)])],
      bytes: [controlIs(plan, "tail", 80)],
    },
  );
  cases.invalid(from, member("operations.0.write.count", 0), {
    name: "try_wholly",
    about: "The message before it is a short one.",
    clauses: "pipe.try_write",
    results: ["ok", "ok", drained([message(bytesOf(0)), message(second)])],
  });
}

/** Between the two bounds it is the writer's to say; that there is no room it cannot say. */
function addNeverFull(cases: Cases): void {
  for (const size of [129, 160, 176]) {
    const operations: Operation[] = [];
    const results = [];
    const placed = { one_of: [drained([message(bytesOf(size))]), drained([])] };
    for (let round = 0; round < 6; round++) {
      operations.push({ write: bytesOf(size) }, { take: true }, { write: bytesOf(0) });
      operations.push({ take: true });
      results.push({ one_of: ["ok", "refused"] }, placed, "ok", drained([message(bytesOf(0))]));
    }
    cases.valid(writing(writersPipe(), { operations }), {
      name: `try_never_full_${size}`,
      about:
        `${size} bytes, into an empty ring of 256 at many positions: they go in, or are refused.`,
      clauses: "pipe.try_never",
      results,
    });
  }
}
