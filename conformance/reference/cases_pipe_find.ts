/** Finding a ring, lending, and what a writer owes: cases of `spec/pipe.md`. @module */

import {
  ATTACHED,
  bytesOf,
  Cases,
  controlIs,
  drained,
  field,
  firstOf,
  member,
  part,
  utf8,
} from "./builder.ts";
import { message, pipe, reading, setState, stateIs, text, VACANT } from "./builder.ts";
import { whole, writersPipe } from "./builder.ts";
import { writing } from "./builder.ts";
import { toImage, word } from "./bytes.ts";
import type { Operation, Setting } from "./case.ts";
import {
  buildSegment,
  type ChannelPlan,
  descriptorAt,
  failed,
  fillRing,
  recordAt,
} from "./encode.ts";

const FIND = "pipe.find pipe.find_none";
const DESCRIPTOR = "channel_descriptor";

/** Adds them to the cases of the pipe. */
export function addFinding(cases: Cases): void {
  addRings(cases);
  addOwnRing(cases);
  addLending(cases);
  addLendingChecks(cases);
  addOwed(cases);
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

function addLending(cases: Cases): void {
  const plan = pipe({ frames: [whole("one"), whole("two"), whole("three")] });
  const lent = (content: string) => ({ items: [text(content)] });
  const lend: Operation[] = [{ peek: true }, { release: true }];
  const before = [lent("one"), "ok", lent("two"), "ok"];
  const clauses = "pipe.lend ring.release ring.release_all ring.head_owner";
  const from = cases.valid(reading(plan, { operations: [...lend, ...lend, { read: true }] }), {
    name: "lend",
    about:
      "Two messages are borrowed and given back, the third is read: all room is the writer's again.",
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

function addOwed(cases: Cases): void {
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
