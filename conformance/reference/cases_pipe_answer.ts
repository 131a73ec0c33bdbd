/** What a call answers first: the table of `spec/pipe.md`, row against row. @module */

import { ATTACHED, bellIsNot, bytesOf, Cases, CLOSED, controlIs, drained } from "./builder.ts";
import { endFrame, field, member, message, pipe, reading, setState, stateIs } from "./builder.ts";
import { store, text, utf8, VACANT, whole, writersPipe, writing } from "./builder.ts";
import { word } from "./bytes.ts";
import type { Expected, Item, Operation, Reason, Wanted } from "./case.ts";
import { failed, type FramePlan, kindOf, recordAt } from "./encode.ts";
import { valueOf } from "./layout.ts";

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
