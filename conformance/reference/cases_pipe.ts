/** The cases of `spec/pipe.md`. @module */

import {
  ATTACHED,
  bytesOf,
  Cases,
  CLOSED,
  controlIs,
  controlIsOneOf,
  drained,
  endFrame,
  field,
} from "./builder.ts";
import { firstOf, member, message, pad, part, pattern, pipe, reading, reads } from "./builder.ts";
import { stateIs, store, text, utf8, whole, writersPipe, writing } from "./builder.ts";
import { toHex, word } from "./bytes.ts";
import type { Drained, Item, Operation } from "./case.ts";
import { addAnswers } from "./cases_pipe_answer.ts";
import { addFinding } from "./cases_pipe_find.ts";
import { addLending } from "./cases_pipe_lend.ts";
import { addTries } from "./cases_pipe_try.ts";
import { addUnknown } from "./cases_pipe_unknown.ts";
import { addVacated } from "./cases_vacated.ts";
import { fromChapter, mustHold } from "./chapter.ts";
import { buildFrame, CANCEL, failed, type FramePlan, kindOf, LAST, recordAt } from "./encode.ts";

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
  cases.valid(
    "open",
    "Everything is read, and more may come.",
    "pipe.drain pipe.supervisor",
    reading(open),
    { results: [drained(items)], bytes: [controlIs(open, "head", 64)] },
  );
  const add = (name: string, about: string, value: number, end: string, reason?: string) =>
    cases.invalid(
      name,
      about,
      reason ? "pipe.drain pipe.supervisor" : "pipe.drain",
      "pipe/open",
      state(value),
      { results: [drained(items, end, reason)], bytes: [stateIs(0, value)] },
    );
  add("closed", "The writer has closed: what it published comes first.", CLOSED, "peer.closed");
  for (const reason of ["peer.terminated", "peer.lost", "ring.cursor"]) {
    const name = reason.replace(".", "_");
    add(name, `The writer is marked: ${reason}.`, failed(reason), "peer.failed", reason);
  }
  const ended = pipe({ frames: [whole("hi"), endFrame()] });
  cases.valid(
    "ended",
    "The stream has ended.",
    "pipe.end_once pipe.end",
    reading(ended),
    reads([HI], "ended"),
  );
  const closed = pipe({ frames: [whole("hi"), endFrame()], states: [CLOSED, 0] });
  cases.valid(
    "ended_and_closed",
    "The stream has ended, and the writer has closed: the end counts.",
    "pipe.end_once pipe.drain",
    reading(closed),
    { results: [drained([HI], "ended")], bytes: [stateIs(0, CLOSED)] },
  );
  cases.invalid(
    "closed_without_end",
    "An extension frame stands in place of the `end`.",
    "pipe.end_once pipe.drain",
    "pipe/ended_and_closed",
    field(closed.at[1]!, "frame_header", "kind", 200),
    { results: [drained([HI], "peer.closed")] },
  );
}

function addTruncated(cases: Cases): void {
  const cut = pipe({ frames: [firstOf(9, utf8("abc")), endFrame()] });
  cases.valid(
    "truncated",
    "The stream ends in the middle of a message.",
    "pipe.truncated",
    reading(cut),
    reads([{ report: "message.truncated" }], "ended"),
  );
  cases.invalid(
    "truncated_dropped",
    "The message was dropped at its first frame: it is not reported again.",
    "pipe.truncated pipe.report_once pipe.limit",
    "pipe/truncated",
    member("limit", 8),
    reads([{ report: "message.size" }], "ended"),
  );
  const plan = pipe({ frames: [firstOf(6, utf8("abc")), part(utf8("def")), endFrame()] });
  cases.valid(
    "complete",
    "The stream ends behind the last part.",
    "pipe.truncated",
    reading(plan),
    reads([message({ text: "abcdef" })], "ended"),
  );
  cases.invalid(
    "last_missing",
    "The last part is an extension frame.",
    "pipe.truncated",
    "pipe/complete",
    field(plan.at[1]!, "frame_header", "kind", 128),
    reads([{ report: "message.truncated" }], "ended"),
  );
  const closed = pipe({ frames: [firstOf(6, utf8("abc"))], states: [CLOSED, 0] });
  cases.valid(
    "closed_inside",
    "The writer has closed in the middle of a message: nothing more will come of it.",
    "pipe.drain",
    reading(closed),
    reads([], "peer.closed"),
  );
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
  cases.valid(
    "calls",
    "A reader that offers calls gets calls, returns and throws.",
    "pipe.unknown_kind",
    reading(pipe({ frames }), { calls: true }),
    reads([...calls, HI]),
  );
  const reports = calls.map(() => ({ report: "message.kind" }));
  cases.invalid(
    "no_calls",
    "One that does not reports each once, also one of several frames.",
    "pipe.unknown_kind pipe.report_once",
    "pipe/calls",
    member("calls", false),
    reads([...reports, HI]),
  );
  const large = [firstOf(9, utf8("abcd"), { kind: kinds[0]! }), part(utf8("efghi"), { kind: 3 })];
  cases.valid(
    "call_above_limit",
    "A call above the limit, to a reader that offers calls.",
    "pipe.limit pipe.unknown_kind",
    reading(pipe({ frames: [...large, whole("hi")] }), { calls: true, limit: 8 }),
    reads([{ report: "message.size" }, HI]),
  );
  cases.invalid(
    "kind_before_size",
    "The kind is looked at before the size.",
    "pipe.limit pipe.unknown_kind",
    "pipe/call_above_limit",
    member("calls", false),
    reads([{ report: "message.kind" }, HI]),
  );
}

function addLimits(cases: Cases): void {
  const parts = [firstOf(6, utf8("abc")), part(utf8("def"))];
  const plan = pipe({ frames: [whole("sixsix"), ...parts, whole("hi")] });
  const clauses = "pipe.limit pipe.total_trust pipe.report_once";
  cases.valid(
    "at_limit",
    "Messages as large as the limit.",
    clauses,
    reading(plan, { limit: 6 }),
    reads([text("sixsix"), message({ text: "abcdef" }), HI]),
  );
  const size = { report: "message.size" };
  cases.invalid(
    "above_limit",
    "Messages that are a byte larger than the limit.",
    "pipe.limit pipe.report_once",
    "pipe/at_limit",
    member("limit", 5),
    reads([size, size, HI]),
  );
  for (const total of [7, 2 ** 32, 2 ** 53 - 1]) {
    cases.invalid(
      `total_${total.toString(16)}`,
      "The preamble states more than the limit.",
      `${clauses} frame.check_total`,
      "pipe/at_limit",
      field(plan.at[1]! + 16, "message_preamble", "total", total),
      reads([text("sixsix"), size, HI]),
    );
  }
  const middle = pipe({
    frames: [
      firstOf(30, utf8("abc")),
      part(utf8("def"), { flags: 0 }),
      part(utf8(""), { flags: LAST + CANCEL }),
      whole("hi"),
    ],
  });
  cases.valid(
    "cancelled_behind_parts",
    "The parts of a message that was given up are dropped.",
    "pipe.cancelled pipe.report_once",
    reading(middle),
    reads([{ report: "message.cancelled" }, HI]),
  );
}

function addAtOnce(cases: Cases): void {
  const plan = pipe({ frames: [firstOf(6, utf8("abc"), { kind: kindOf("call") })] });
  const from = cases.valid(
    "begun",
    "The first part of a call; the rest has not come.",
    "pipe.keep_parts pipe.drop_parts pipe.limit pipe.unknown_kind",
    reading(plan, { calls: true, limit: 6 }),
    reads([]),
  );
  const add = (name: string, key: string, value: unknown, report: string, clauses: string) =>
    cases.invalid(
      name,
      "What is lost is reported at once, before the rest has come.",
      clauses,
      from,
      member(key, value),
      reads([{ report }]),
    );
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
  cases.valid(
    "example",
    "The example of the chapter: the parts are kept between two reads, and their space given back.",
    "pipe.keep_parts pipe.drop_parts ring.release_all pipe.order frame.preamble",
    reading(first, { operations }),
    {
      results: [drained([]), "ok", drained([message(bytesOf(200))])],
      bytes: [controlIs(first, "head", 288), controlIs(first, "reader_wants", 0)],
    },
  );
  cases.invalid(
    "kept_and_total",
    "The parts that were kept count: the total is one more.",
    "pipe.keep_parts pipe.drop_parts ring.release_all frame.preamble",
    "pipe/example",
    field(first.at[0]! + 16, "message_preamble", "total", 201),
    {
      results: [drained([]), "ok", drained([], "frame.total")],
      // Whether the pad before the fault was given back is the reader's own choice.
      bytes: [
        controlIsOneOf(first, "head", [240, 256]),
        stateIs(0, failed("frame.total")),
      ],
    },
  );
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
      cases.valid(name, `${about} ${fact}`, clauses, setting, {
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
  cases.invalid(
    "parts_dropped_inside",
    "What still comes of it is checked all the same.",
    `${clauses} frame.check`,
    from,
    field(plan.at[1]!, "frame_header", "flags", 3),
    { results: ["ok", drained([], "peer.closed"), "ok", drained([], "frame.sequence")] },
  );
  for (const [name, total] of [["less", 5], ["more", 7]] as const) {
    cases.invalid(
      `parts_dropped_${name}`,
      `Its parts are 6 bytes and its total is ${total}: that they add up is checked as well.`,
      `${clauses} frame.check frame.check_total`,
      from,
      field(plan.at[0]! + 16, "message_preamble", "total", total),
      { results: ["ok", drained([], "peer.closed"), "ok", drained([], "frame.total")] },
    );
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
  const from = cases.valid(
    "own_attached",
    "The reader's own state is attached.",
    "pipe.close_frees",
    reading(plan, { operations }),
    { results: [drained([HI]), "ok", drained([])] },
  );
  const ends = [
    [CLOSED, "pipe.closed", "closed"],
    [failed("frame.kind"), "pipe.failed", "failed"],
  ] as const;
  for (const [state, code, name] of ends) {
    cases.invalid(
      `own_${name}`,
      `A supervisor, or the peer, has marked this endpoint ${name}.`,
      "pipe.close_frees",
      from,
      member("operations.1.set.0.hex", word(state)),
      { results: [drained([HI]), "ok", drained([], code)], bytes: [stateIs(1, state)] },
    );
  }
}

function addWrites(cases: Cases): void {
  const plan = writersPipe();
  const two = [message({ text: "one" }), message({ text: "two" })];
  const from = cases.valid(
    "write_two",
    "Two messages, in order.",
    "pipe.order pipe.end ring.publish",
    writing(plan, {
      operations: [{ write: { text: "one" } }, { write: { text: "two" } }, { take: true }],
    }),
    { results: ["ok", "ok", drained(two)], bytes: [controlIs(plan, "tail", 64)] },
  );
  cases.invalid(
    "write_after_end",
    "Nothing is written behind `end`.",
    "pipe.end",
    from,
    member("operations.0", { end: true }),
    { results: ["ok", "pipe.ended", drained([], "ended")], bytes: [controlIs(plan, "tail", 16)] },
  );
  cases.invalid(
    "write_after_close",
    "Nothing is written once the endpoint is closed.",
    "pipe.close pipe.close_stores pipe.close_frees",
    from,
    member("operations.0", { close: true }),
    { results: ["ok", "pipe.closed", drained([])], bytes: [stateIs(0, CLOSED)] },
  );
  const long = bytesOf(120);
  const placed = cases.valid(
    "try_write_parts",
    "There is room for all frames of a message that is too large for one.",
    "pipe.try_write",
    writing(plan, { operations: [{ write: { hex: "" } }, { write: long }, { take: true }] }),
    { results: ["ok", "ok", drained([message({ hex: "" }), message(long)])] },
  );
  cases.invalid(
    "try_write_none",
    "There is room for some of them: none is placed.",
    "pipe.try_write",
    placed,
    member("operations.0.write", bytesOf(112)),
    {
      results: ["ok", "full", drained([message(bytesOf(112))])],
      bytes: [controlIs(plan, "tail", 128)],
    },
  );
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
  const from = cases.valid(
    "owed",
    "A write that times out behind its first frame is cancelled before the next message.",
    "pipe.owed frame.cancel ring.publish_all pipe.cancelled",
    writing(plan, { operations }),
    {
      results: ["wait.timeout", "ok", "ok", drained([cancelled, next])],
      bytes: [controlIs(plan, "writer_wants", 0)],
    },
  );
  cases.invalid(
    "not_owed",
    "A message that fits is not given up.",
    "pipe.owed frame.cancel ring.publish_all",
    from,
    member("operations.0.write.count", 100),
    {
      results: [
        "ok",
        "ok",
        "ok",
        drained([message({ ...bytesOf(100), codec: 200, tag: 9 }), next]),
      ],
    },
  );
  const waiting: Operation[] = [...operations];
  waiting[2] = { write: { text: "next" }, wait: true };
  cases.valid(
    "owed_by_waiting",
    "The same, when the next write may wait.",
    "pipe.owed frame.cancel",
    writing(plan, { operations: waiting }),
    { results: ["wait.timeout", "ok", "ok", drained([cancelled, next])] },
  );
  cases.invalid(
    "owed_and_ended",
    "`end` takes the place of the next message.",
    "pipe.owed pipe.end",
    from,
    member("operations.2", { end: true }),
    { results: ["wait.timeout", "ok", "ok", drained([cancelled], "ended")] },
  );
}

function addPeerGone(cases: Cases): void {
  const plan = writersPipe();
  const offset = recordAt(1) + 4;
  const operations: Operation[] = [
    { write: { text: "one" } },
    { set: [{ offset, hex: word(ATTACHED) }] },
    { write: { text: "two" } },
  ];
  const from = cases.valid(
    "reader_attached",
    "The reader is there.",
    "pipe.peer_gone",
    writing(plan, { operations }),
    { results: ["ok", "ok", "ok"], bytes: [controlIs(plan, "tail", 64)] },
  );
  const add = (name: string, state: number, code: string) =>
    cases.invalid(
      name,
      "The reader has gone: nothing is written any more.",
      code === "peer.closed" ? "pipe.peer_gone" : "pipe.peer_gone segment.state_invalid",
      from,
      member("operations.1.set.0.hex", word(state)),
      { results: ["ok", "ok", code], bytes: [controlIs(plan, "tail", 32), stateIs(1, state)] },
    );
  add("reader_closed", CLOSED, "peer.closed");
  add("reader_failed", failed("peer.lost"), "peer.failed");
  add("reader_invalid", 200, "peer.failed");
}
