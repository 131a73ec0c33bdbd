/** What a call answers first: the table of `spec/pipe.md`, row against row. @module */

import { ATTACHED, bellIsNot, bytesOf, Cases, CLOSED, controlIs, drained } from "../builder.ts";
import { endFrame, faults, field, firstOf, member, message, part, pattern } from "../builder.ts";
import { pipe, reading, reads, setState, stateIs, store, text, utf8, VACANT } from "../builder.ts";
import { whole, writersPipe, writing } from "../builder.ts";
import { word } from "../bytes.ts";
import type { Expected, Item, Operation, Reason, Wanted } from "../case.ts";
import { CANCEL, failed, type FramePlan, kindOf, LAST, recordAt } from "../encode.ts";
import { TOTAL_UNKNOWN } from "../encode.ts";
import { valueOf } from "../layout.ts";

const FIRST_ANSWER = "pipe.first_answer";
const [ONE, TWO] = [text("one"), text("two")];
const LOST = failed("peer.lost");
const BROKEN = failed("frame.kind");
const read: Operation = { read: true };
const close: Operation = { close: true };
/** Changes nothing: the place where the changed cases do something. */
const still = setState(1, ATTACHED);

/** Adds them to the cases of the pipe. */
export function addAnswers(cases: Cases): void {
  addReadMessage(cases);
  addReadBatch(cases);
  addReadFault(cases);
  addReadEnd(cases);
  addReadPeer(cases);
  addWrite(cases);
  addEndClosed(cases);
  addWriteEnded(cases);
  addWriteFault(cases);
  addClosing(cases);
  addReasons(cases);
}

/** Adds a case in which something else happens before the call under test. */
function adder(cases: Cases, from: string, at: number, before: Wanted[], count = 1) {
  return (
    name: string,
    about: string,
    operation: Operation,
    results: Wanted[],
    bytes: Expected[] = [],
    clauses = FIRST_ANSWER,
  ) =>
    cases.invalid(from, member(`operations.${at}`, operation), {
      name,
      about,
      clauses,
      results: [...before, ...Array(count).fill("ok"), ...results],
      ...(bytes.length > 0 && { bytes }),
    });
}

function addReadMessage(cases: Cases): void {
  const lost = whole("x", { kind: kindOf("call") });
  const plan = pipe({ frames: [lost, whole("one"), whole("two")] });
  const items: Item[] = [{ report: "message.kind" }, ONE, TWO];
  const from = cases.valid(reading(plan, { operations: [still, read] }), {
    name: "answer_message",
    about: "Messages and the report of a lost one, to a reader that is attached.",
    clauses: `${FIRST_ANSWER} pipe.failed_reason`,
    results: ["ok", drained(items)],
    bytes: [stateIs(1, ATTACHED)],
  });
  const add = adder(cases, from, 0, []);
  const state = (name: string, value: number, end: string, reason?: Reason) =>
    add(
      `answer_message_${name}`,
      "What is in the ring comes before the own state.",
      setState(1, value),
      [drained(items, end, reason)],
      [stateIs(1, value)],
      reason === undefined ? FIRST_ANSWER : `${FIRST_ANSWER} pipe.failed_reason pipe.close_frees`,
    );
  state("closed", CLOSED, "pipe.closed");
  state("failed", BROKEN, "pipe.failed", "frame.kind");
  state("failed_bare", failedBy(0), "pipe.failed", "none");
  state("failed_later", failedBy(0xabcdef), "pipe.failed", 0xabcdef);
  add(
    "answer_message_own_close",
    "The own close comes before all.",
    close,
    [
      drained([], "pipe.closed"),
    ],
    [stateIs(1, CLOSED), controlIs(plan, "head", 0)],
    `${FIRST_ANSWER} pipe.close`,
  );
}

function addReadBatch(cases: Cases): void {
  const codec = valueOf("codec", "json_batch");
  const frames = [whole(utf8("[1,2,3]"), { codec }), whole("one")];
  const plan = pipe({ frames });
  const json = (...values: number[]): Item[] =>
    values.map((value) => message({ codec: valueOf("codec", "json"), json: value }));
  const first: Wanted = { items: json(1) };
  const setting = reading(plan, { kind: "decode", operations: [{ read: 1 }, still, read] });
  const from = cases.valid(setting, {
    name: "answer_batch",
    about: "The rest of a batch, and what is behind it.",
    clauses: FIRST_ANSWER,
    results: [first, "ok", drained([...json(2, 3), ONE])],
  });
  const add = adder(cases, from, 1, [first]);
  const rest = [...json(2, 3), ONE];
  add(
    "answer_batch_own_close",
    "The own close drops the rest.",
    close,
    [
      drained([], "pipe.closed"),
    ],
    [],
    `${FIRST_ANSWER} pipe.close`,
  );
  add("answer_batch_own_failed", "Failed meanwhile.", setState(1, BROKEN), [
    drained(rest, "pipe.failed", "frame.kind"),
  ]);
  add("answer_batch_own_closed", "Closed meanwhile by a supervisor.", setState(1, CLOSED), [
    drained(rest, "pipe.closed"),
  ]);
  add("answer_batch_peer_closed", "The peer has closed meanwhile.", setState(0, CLOSED), [
    drained(rest, "peer.closed"),
  ]);
  cases.invalid(from, field(plan.at[1]!, "frame_header", "kind", 7), {
    name: "answer_batch_fault",
    about: "The frame behind the batch is broken: the batch comes first.",
    clauses: FIRST_ANSWER,
    results: [first, "ok", drained(json(2, 3), "frame.kind")],
    bytes: [stateIs(0, BROKEN)],
  });
}

function addReadFault(cases: Cases): void {
  const plan = pipe({ frames: [whole("one"), whole("two", { kind: 7 })] });
  const broken = drained([], "frame.kind");
  const found = drained([ONE], "frame.kind");
  const from = cases.valid(reading(plan, { operations: [read, still, read] }), {
    name: "answer_fault",
    about: "A fault is reported again by every later call.",
    clauses: `${FIRST_ANSWER} pipe.fault`,
    results: [found, "ok", broken],
    bytes: [stateIs(0, BROKEN), stateIs(1, ATTACHED)],
  });
  const add = adder(cases, from, 1, [found]);
  const clauses = `${FIRST_ANSWER} pipe.fault`;
  add(
    "answer_fault_own_close",
    "Until the endpoint closes.",
    close,
    [
      drained([], "pipe.closed"),
    ],
    [],
    clauses,
  );
  add(
    "answer_fault_own_failed",
    "It comes before the own state.",
    setState(1, LOST),
    [
      broken,
    ],
    [stateIs(1, LOST)],
    clauses,
  );
  add(
    "answer_fault_peer_closed",
    "It comes before the peer's state.",
    setState(0, CLOSED),
    [
      broken,
    ],
    [stateIs(0, CLOSED)],
    clauses,
  );
}

function addReadEnd(cases: Cases): void {
  const plan = pipe({ frames: [whole("one"), endFrame()] });
  const [ended, no] = [drained([ONE], "ended"), drained([], "ended")];
  const from = cases.valid(reading(plan, { operations: [read, still, read] }), {
    name: "answer_end",
    about: "Behind `end` nothing comes.",
    clauses: `${FIRST_ANSWER} pipe.end_once`,
    results: [ended, "ok", no],
    bytes: [stateIs(1, ATTACHED)],
  });
  const add = adder(cases, from, 1, [ended]);
  const clauses = `${FIRST_ANSWER} pipe.end_once`;
  add("answer_end_own_close", "The own close comes before it.", close, [
    drained([], "pipe.closed"),
  ]);
  const own = "It comes before the own state.";
  add("answer_end_own_failed", own, setState(1, LOST), [no], [stateIs(1, LOST)], clauses);
  add("answer_end_own_closed", own, setState(1, CLOSED), [no], [stateIs(1, CLOSED)], clauses);
  const peer = "It comes before the peer's state.";
  add("answer_end_peer_closed", peer, setState(0, CLOSED), [no], [stateIs(0, CLOSED)], clauses);
  add("answer_end_peer_failed", peer, setState(0, LOST), [no], [stateIs(0, LOST)], clauses);
  add(
    "answer_end_tail",
    "Nothing behind it is looked at.",
    { set: [store(plan, "tail", 65)] },
    [
      no,
    ],
    [controlIs(plan, "tail", 65), stateIs(0, ATTACHED)],
    `${clauses} frame.after_end`,
  );
}

function addReadPeer(cases: Cases): void {
  const open = pipe({ frames: [whole("one")], states: [CLOSED, VACANT] });
  const from = cases.valid(reading(open, { operations: [still, read] }), {
    name: "answer_peer",
    about: "The peer has closed, and this endpoint is attached.",
    clauses: FIRST_ANSWER,
    results: ["ok", drained([ONE], "peer.closed")],
  });
  const add = adder(cases, from, 0, []);
  const about = "The own state comes before the peer's.";
  add("answer_peer_own_failed", about, setState(1, BROKEN), [
    drained([ONE], "pipe.failed", "frame.kind"),
  ]);
  add("answer_peer_own_closed", about, setState(1, CLOSED), [drained([ONE], "pipe.closed")]);
  const plan = pipe({ frames: [whole("one"), whole("two")], states: [CLOSED, VACANT] });
  const behind: [string, string, FramePlan, string][] = [
    ["still_end", "An `end`", endFrame(), "ended"],
    ["still_fault", "A fault", whole("two", { kind: 7 }), "frame.kind"],
  ];
  for (const [name, what, frame, end] of behind) {
    const waiting = pipe({ frames: [whole("one"), frame] });
    const results = ["ok", drained([ONE], end)];
    const valid = cases.valid(reading(waiting, { operations: [still, read] }), {
      name: `answer_${name}`,
      about: `${what} is in the ring, and both ends are attached.`,
      clauses: FIRST_ANSWER,
      results,
      bytes: [stateIs(1, ATTACHED)],
    });
    cases.invalid(valid, member("operations.0", setState(1, LOST)), {
      name: `answer_${name}_own`,
      about: `${what} that is still in the ring comes before the own state.`,
      clauses: FIRST_ANSWER,
      results,
      bytes: [stateIs(1, LOST)],
    });
  }
  const [early, late] = [32, 64].map((tail) => ({ set: [store(plan, "tail", tail)] }));
  const again = cases.valid(reading(plan, { operations: [still, early!, read, late!, read] }), {
    name: "answer_again",
    about: "The peer's state is no answer for ever: what it has published since comes first.",
    clauses: `${FIRST_ANSWER} pipe.drain`,
    results: ["ok", "ok", drained([ONE], "peer.closed"), "ok", drained([TWO], "peer.closed")],
  });
  const results = ["ok", "ok", drained([ONE], "pipe.failed"), "ok", drained([TWO], "pipe.failed")];
  cases.invalid(again, member("operations.0", setState(1, LOST)), {
    name: "answer_again_own",
    about: "Nor is the own state.",
    clauses: FIRST_ANSWER,
    results,
  });
}

function addWrite(cases: Cases): void {
  const plan = writersPipe();
  const operations: Operation[] = [still, { write: { text: "a" } }, { end: true }, { take: true }];
  const from = cases.valid(writing(plan, { operations }), {
    name: "answer_write",
    about: "Both ends are attached.",
    clauses: `${FIRST_ANSWER} pipe.failed_reason pipe.peer_gone`,
    results: ["ok", "ok", "ok", drained([message({ text: "a" })], "ended")],
  });
  const add = adder(cases, from, 0, []);
  const nothing = drained([]);
  const both = (name: string, operation: Operation, code: string, reason?: Reason) => {
    const answer = reason === undefined ? code : { code, reason };
    const isPeer = code.startsWith("peer.");
    const isState = operation !== close;
    const clauses = [
      FIRST_ANSWER,
      ...(isPeer ? ["pipe.peer_gone"] : []),
      ...(isState ? ["pipe.end_closed"] : []),
      ...(reason === undefined ? [] : ["pipe.failed_reason"]),
    ].join(" ");
    const about = (isPeer ? "The reader has gone." : "This endpoint is no longer attached.") +
      (isState ? " To end does nothing." : "");
    add(`answer_write_${name}`, about, operation, [answer, isState ? "ok" : answer, nothing], [
      controlIs(plan, "tail", 0),
    ], clauses);
  };
  both("own_close", close, "pipe.closed");
  both("own_closed", setState(0, CLOSED), "pipe.closed");
  both("own_failed", setState(0, BROKEN), "pipe.failed", "frame.kind");
  both("own_failed_later", setState(0, failedBy(99)), "pipe.failed", 99);
  both("peer_closed", setState(1, CLOSED), "peer.closed");
  both("peer_failed", setState(1, LOST), "peer.failed", "peer.lost");
  both("peer_failed_bare", setState(1, failedBy(0)), "peer.failed", "none");
  both("peer_invalid", setState(1, 200), "peer.failed", "segment.state");
  const gone = writersPipe({ states: [VACANT, CLOSED] });
  const alone = cases.valid(
    writing(gone, {
      operations: [setState(0, ATTACHED), { write: { text: "a" } }, { end: true }],
    }),
    {
      name: "answer_write_peer",
      about: "The reader has closed, and this endpoint is attached: to end does nothing.",
      clauses: `${FIRST_ANSWER} pipe.end_closed`,
      results: ["ok", "peer.closed", "ok"],
      bytes: [controlIs(gone, "tail", 0)],
    },
  );
  const failure = { code: "pipe.failed", reason: "peer.lost" };
  const about = "The own state comes before the peer's.";
  const bytes = [controlIs(gone, "tail", 0)];
  const ahead = adder(cases, alone, 0, []);
  const clauses = `${FIRST_ANSWER} pipe.end_closed`;
  ahead("answer_write_both_failed", about, setState(0, LOST), [failure, "ok"], bytes, clauses);
  const closed = ["pipe.closed", "ok"];
  ahead("answer_write_both_closed", about, setState(0, CLOSED), closed, bytes, clauses);
}

function addEndClosed(cases: Cases): void {
  const write: Operation = { write: { text: "a" } };
  const operations: Operation[] = [{ end: true }, write, { end: true }, { take: true }];
  for (const [name, state] of [["closed", CLOSED], ["failed", LOST]] as const) {
    const plan = writersPipe({ states: [VACANT, state] });
    const tail = "the stream ends without a frame, and nothing can be written behind it.";
    cases.valid(writing(plan, { operations }), {
      name: `end_${name}`,
      about: `The reader has ${name}: ${tail}`,
      clauses: "pipe.end_closed pipe.first_answer pipe.peer_gone",
      results: ["ok", "pipe.ended", "ok", drained([])],
      bytes: [controlIs(plan, "tail", 0)],
    });
  }
}

function addWriteEnded(cases: Cases): void {
  const plan = writersPipe();
  const write: Operation = { write: { text: "a" } };
  const end: Operation = { end: true };
  const from = cases.valid(
    writing(plan, { operations: [end, still, write, end, { take: true }] }),
    {
      name: "answer_ended",
      about: "Nothing can be written behind `end`, and ending again does nothing.",
      clauses: `${FIRST_ANSWER} pipe.end pipe.end_again`,
      results: ["ok", "ok", "pipe.ended", "ok", drained([], "ended")],
      bytes: [stateIs(1, 1)],
    },
  );
  const add = adder(cases, from, 1, ["ok"]);
  const rest = ["pipe.ended", "ok", drained([], "ended")];
  const clauses = `${FIRST_ANSWER} pipe.end pipe.end_again`;
  const about = "The own close comes first; ending again does nothing.";
  const closed = ["pipe.closed", "ok", drained([], "ended")];
  add("answer_ended_own_close", about, close, closed, [stateIs(0, CLOSED)], clauses);
  const own = "Its end comes before the own state.";
  add("answer_ended_own_failed", own, setState(0, LOST), rest, [stateIs(0, LOST)], clauses);
  const peer = "Its end comes before the reader's state.";
  add("answer_ended_peer_closed", peer, setState(1, CLOSED), rest, [stateIs(1, CLOSED)], clauses);
  add("answer_ended_peer_failed", peer, setState(1, LOST), rest, [stateIs(1, LOST)], clauses);
}

function addWriteFault(cases: Cases): void {
  const plan = writersPipe();
  const write: Operation = { write: bytesOf(80) };
  const fill: Operation[] = [{ write: bytesOf(112) }, write, { set: [store(plan, "head", 129)] }];
  const before = ["ok", "ok", "ok", "ring.cursor"];
  const bad = failed("ring.cursor");
  const from = cases.valid(
    writing(plan, { operations: [...fill, write, setState(0, ATTACHED), write, { end: true }] }),
    {
      name: "answer_write_fault",
      about: "A fault is reported again by every later call, `end` included.",
      clauses: `${FIRST_ANSWER} pipe.fault ring.fault`,
      results: [...before, "ok", "ring.cursor", "ring.cursor"],
      bytes: [controlIs(plan, "tail", 224), stateIs(1, bad), stateIs(0, ATTACHED)],
    },
  );
  const add = adder(cases, from, 4, before);
  const clauses = `${FIRST_ANSWER} pipe.fault ring.fault`;
  const same = ["ring.cursor", "ring.cursor"];
  const tail = controlIs(plan, "tail", 224);
  add(
    "answer_write_fault_own_close",
    "Until the endpoint closes.",
    close,
    [
      "pipe.closed",
      "pipe.closed",
    ],
    [tail],
    clauses,
  );
  const own = "It comes before the own state.";
  add("answer_write_fault_failed", own, setState(0, LOST), same, [tail, stateIs(0, LOST)], clauses);
}

function addClosing(cases: Cases): void {
  const plan = writersPipe();
  const bells = [0, 1].map((index) => ({ offset: recordAt(index), hex: word(0x50) }));
  const set = (value: number): Operation => ({
    set: [{ offset: recordAt(0) + 4, hex: word(value) }, ...bells],
  });
  const rung = [0, 1].map((index) => bellIsNot(index, 0x50));
  const operations: Operation[] = [set(ATTACHED), close, { write: { text: "a" } }, close];
  const results = ["ok", "ok", "pipe.closed", "ok"];
  const clauses = `${FIRST_ANSWER} pipe.close segment.state_change segment.state_ring`;
  const from = cases.valid(writing(plan, { operations }), {
    name: "answer_closing",
    about: "An endpoint closes, rings both bells, and answers that it is closed.",
    clauses,
    results,
    bytes: [stateIs(0, CLOSED), ...rung],
  });
  const add = (name: string, about: string, value: number) =>
    cases.invalid(from, member("operations.0.set.0.hex", word(value)), {
      name: `answer_closing_${name}`,
      about: `${about} its state stays as it is, and both bells are rung all the same.`,
      clauses,
      results,
      bytes: [stateIs(0, value), ...rung],
    });
  add("failed", "An endpoint that was marked failed closes:", LOST);
  add("vacant", "From vacant there is no way to closed:", 0);
  add("invalid", "From a state that nobody stores there is no way to closed:", 4);
  const held: Operation[] = [{ claim: { text: "a" }, size: 4 }, { publish: true }, { take: true }];
  const published = cases.valid(writing(plan, { operations: held }), {
    name: "close_published",
    about: "A message is finished and published.",
    clauses: "pipe.close pipe.close_stores",
    results: ["ok", "ok", drained([message({ text: "a" })])],
  });
  cases.invalid(published, member("operations.1", close), {
    name: "close_finished",
    about: "A close drops what is finished and not published.",
    clauses: "pipe.close pipe.close_stores",
    results: ["ok", "ok", drained([])],
    bytes: [controlIs(plan, "tail", 0)],
  });
}

function addReasons(cases: Cases): void {
  const plan = pipe({ frames: [whole("one")], states: [LOST, VACANT] });
  const from = cases.valid(reading(plan), {
    name: "reason",
    about: "The reason in the peer's state stands beside `peer.failed`.",
    clauses: "pipe.failed_reason",
    results: [drained([ONE], "peer.failed", "peer.lost")],
    bytes: [stateIs(0, LOST)],
  });
  const add = (name: string, about: string, reason: number, shown: Reason) =>
    cases.invalid(from, field(recordAt(0), "endpoint_record", "state", failedBy(reason)), {
      name,
      about,
      clauses: "pipe.failed_reason",
      results: [drained([ONE], "peer.failed", shown)],
    });
  add("reason_none", "There is none.", 0, "none");
  add("reason_later", "One that this version does not have is a number.", 0x7fff, 0x7fff);
  add("reason_most", "The largest number.", 0xffffff, 0xffffff);
}

/** A failed state with any number as its reason. */
function failedBy(reason: number): number {
  return 3 + 256 * reason;
}

// Messages of unknown size, and how large they may become: cases of `spec/pipe.md`.

const HI = text("hi");
const UNKNOWN = "pipe.limit_unknown";
const SIZE: Item = { report: "message.size" };

/** Adds them to the cases of the pipe. */
export function addUnknown(cases: Cases): void {
  addLimit(cases);
  addAtOnce(cases);
  addDropped(cases);
  addKind(cases);
  addCodecs(cases);
  addLent(cases);
}

/** A message of unknown size: these parts, the last of them with `last`. */
function unknown(parts: string[], more: Partial<FramePlan> = {}): FramePlan[] {
  const [first = "", ...rest] = parts;
  return [
    firstOf(TOTAL_UNKNOWN, utf8(first), more),
    ...rest.map((content, index) =>
      part(utf8(content), { flags: index === rest.length - 1 ? LAST : 0, ...more })
    ),
  ];
}

function addLimit(cases: Cases): void {
  const plan = pipe({ frames: [...unknown(["abc", "de", "f"]), whole("hi")] });
  const from = cases.valid(reading(plan, { limit: 6 }), {
    name: "unknown_at_limit",
    about: "A message of unknown size that becomes exactly as large as the limit.",
    clauses: `${UNKNOWN} pipe.limit pipe.total_trust`,
    ...reads([message({ text: "abcdef" }), HI]),
  });
  const add = (limit: number, where: string) =>
    cases.invalid(from, member("limit", limit), {
      name: `unknown_above_${limit}`,
      about: `It is above the limit with its ${where} frame: reported once, and the rest skipped.`,
      clauses: `${UNKNOWN} pipe.report_once pipe.total_trust`,
      ...reads([SIZE, HI]),
    });
  add(5, "last");
  add(4, "middle");
  add(2, "first");
  cases.valid(
    reading(pipe({ frames: [...unknown(["", "x"]), whole("y", { codec: 0 })] }), { limit: 1 }),
    {
      name: "unknown_one",
      about: "A message that turns out to be one byte, to a reader that takes no more.",
      clauses: UNKNOWN,
      ...reads([message({ text: "x" }), message({ text: "y" })]),
    },
  );
  const none = pipe({ frames: [...unknown(["", "x"]), whole("")] });
  cases.valid(reading(none, { limit: 0 }), {
    name: "unknown_limit_0",
    about: "A reader that takes nothing but empty messages.",
    clauses: `${UNKNOWN} pipe.limit`,
    ...reads([SIZE, text("")]),
  });
}

/** What has come so far is enough to tell. */
function addAtOnce(cases: Cases): void {
  const frames = unknown(["abc", "de", "f"]);
  const begun = [
    ["first", frames.slice(0, 1), 3],
    ["middle", frames.slice(0, 2), 5],
  ] as const;
  for (const [name, some, size] of begun) {
    const from = cases.valid(reading(pipe({ frames: [...some] }), { limit: size }), {
      name: `unknown_${name}`,
      about: `A message of unknown size of which ${size} bytes have come, as many as the limit.`,
      clauses: `${UNKNOWN} pipe.keep_parts`,
      ...reads([]),
    });
    cases.invalid(from, member("limit", size - 1), {
      name: `unknown_${name}_above`,
      about: "One more than the limit: it is reported at once.",
      clauses: UNKNOWN,
      ...reads([SIZE]),
    });
  }
}

/** What follows of a message that was dropped in its middle. */
function addDropped(cases: Cases): void {
  const frames = [...unknown(["abc", "de", "f"]), whole("hi")];
  const plan = pipe({ frames });
  const clauses = `${UNKNOWN} frame.check_total frame.check`;
  const from = cases.valid(reading(plan, { limit: 4 }), {
    name: "unknown_dropped",
    about: "A message that is dropped at its second frame: the third is skipped.",
    clauses,
    ...reads([SIZE, HI]),
  });
  const add = (name: string, about: string, key: string, value: number, code: string) =>
    cases.invalid(from, field(plan.at[2]!, "frame_header", key, value), {
      name: `unknown_dropped_${name}`,
      about,
      clauses,
      ...faults([SIZE], code),
    });
  add("tag", "The third has another tag.", "tag", 9, "frame.sequence");
  add("size", "The third is empty.", "size", 0, "frame.size");
  add("inside", "The third begins a message.", "flags", 3, "frame.sequence");
  const cancel = part(utf8(""), { flags: LAST + CANCEL });
  const once = `${UNKNOWN} pipe.report_once`;
  const cancelled = pipe({ frames: [...frames.slice(0, 2), cancel, whole("hi")] });
  const given = cases.valid(reading(cancelled, { limit: 5 }), {
    name: "unknown_cancelled",
    about: "A message within the limit is given up: that is reported.",
    clauses: `${UNKNOWN} pipe.cancelled`,
    ...reads([{ report: "message.cancelled" }, HI]),
  });
  cases.invalid(given, member("limit", 4), {
    name: "unknown_cancel_skipped",
    about: "It was dropped before: the cancel is not reported.",
    clauses: `${once} pipe.cancelled`,
    ...reads([SIZE, HI]),
  });
  const ended = pipe({ frames: [...frames.slice(0, 2), endFrame()] });
  const cut = cases.valid(reading(ended, { limit: 5 }), {
    name: "unknown_truncated",
    about: "The stream ends in the middle of a message of unknown size.",
    clauses: `${UNKNOWN} pipe.truncated`,
    ...reads([{ report: "message.truncated" }], "ended"),
  });
  cases.invalid(cut, member("limit", 4), {
    name: "unknown_truncated_dropped",
    about: "It was dropped before: its end is not reported.",
    clauses: `${once} pipe.truncated`,
    ...reads([SIZE], "ended"),
  });
}

function addKind(cases: Cases): void {
  const kind = kindOf("call");
  const frames = [...unknown(["abc", "def"], { kind }), whole("hi")];
  const from = cases.valid(reading(pipe({ frames }), { calls: true, limit: 5 }), {
    name: "unknown_call",
    about: "A call of unknown size, above the limit.",
    clauses: `${UNKNOWN} pipe.unknown_kind`,
    ...reads([SIZE, HI]),
  });
  cases.invalid(from, member("calls", false), {
    name: "unknown_call_kind",
    about: "To a reader that offers no calls its kind is what counts, and only that.",
    clauses: `${UNKNOWN} pipe.unknown_kind pipe.report_once`,
    ...reads([{ report: "message.kind" }, HI]),
  });
}

function addCodecs(cases: Cases): void {
  const json = valueOf("codec", "json");
  const [a, b] = [utf8("grün").slice(0, 3), utf8("grün").slice(3)];
  const cut = [
    firstOf(TOTAL_UNKNOWN, a, { codec: 1 }),
    part(b, { codec: 1 }),
    ...unknown(["[1,", "{", '"a":2}', "]"], { codec: json }),
  ];
  const plan = pipe({ frames: cut });
  const from = cases.valid(reading(plan, { kind: "decode" }), {
    name: "unknown_codecs",
    about: "A text that is cut within a character, and a JSON message, both of unknown size.",
    clauses: `${UNKNOWN} codec.bad_text codec.bad_json`,
    ...reads([text("grün"), message({ codec: json, json: [1, { a: 2 }] })]),
  });
  const payload = plan.at[1]! + 16;
  cases.invalid(
    from,
    { at: payload - 16, structure: "frame_header", field: "payload", hex: "78" },
    {
      name: "unknown_text_bad",
      about: "The second half of the character is missing.",
      clauses: `${UNKNOWN} codec.bad_text`,
      ...reads([{ report: "message.text" }, message({ codec: json, json: [1, { a: 2 }] })]),
    },
  );
}

function addLent(cases: Cases): void {
  const plan = pipe({ frames: [firstOf(TOTAL_UNKNOWN, pattern(2)), part(pattern(1, 2))] });
  const chunk = (hex: string) => ({ items: [message({ hex })] });
  cases.valid(
    reading(plan, {
      limit: 1,
      operations: [{ peek: true }, { release: true }, { peek: true }, { release: true }],
    }),
    {
      name: "unknown_lent",
      about: "The chunks of a message of unknown size are borrowed one by one, above any limit.",
      clauses: "pipe.lend_check pipe.lend",
      results: [chunk("00 01"), "ok", chunk("02"), "ok"],
    },
  );
  const close = pipe({ frames: unknown(["abc", "d"]).slice(0, 1), states: [2, 0] });
  cases.valid(reading(close), {
    name: "unknown_closed",
    about: "The writer has closed in the middle of a message of unknown size.",
    clauses: `${UNKNOWN} pipe.drain`,
    results: [drained([], "peer.closed")],
  });
}
