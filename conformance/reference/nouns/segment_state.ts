/** What endpoints do with `state` words: cases of `spec/segment.md`. @module */

import { ATTACHED, bellIsNot, Cases, CLOSED, controlIs, drained, field } from "../builder.ts";
import { member, pipe, reading, recordIs, setState, stateAt, stateIs, store } from "../builder.ts";
import { text, VACANT, whole, writersPipe, writing } from "../builder.ts";
import { toImage, word } from "../bytes.ts";
import type { Operation, Reason, Setting, Wanted } from "../case.ts";
import { failed, recordAt } from "../encode.ts";

const HI = text("hi");
const RECORD = "endpoint_record";
const BELL = 0x10;
/** Both bells, as the peer stores them, and as they must not be any more. */
const bells = [0, 1].map((index) => ({ offset: recordAt(index), hex: word(BELL) }));
const rung = [0, 1].map((index) => bellIsNot(index, BELL));
const read: Operation = { read: true };

/** Adds them to the cases of the segment. */
export function addStates(cases: Cases): void {
  addPeerStates(cases);
  addFinalState(cases);
  addInvalid(cases);
  addFault(cases);
  addOwnState(cases);
  addBits(cases);
}

function addPeerStates(cases: Cases): void {
  const from = cases.valid(reading(pipe({ frames: [whole("hi")] })), {
    name: "peer_attached",
    about: "While the peer is attached, a reader that has read everything waits.",
    clauses: "segment.state_invalid segment.state_low",
    results: [drained([HI])],
    bytes: [stateIs(0, ATTACHED)],
  });
  const add = (name: string, about: string, state: number, end: string, reason?: Reason) =>
    cases.invalid(from, field(recordAt(0), RECORD, "state", state), {
      name,
      about,
      clauses: end === "peer.failed"
        ? "segment.state_invalid segment.state_low"
        : "segment.state_low",
      results: [drained([HI], end, reason)],
      bytes: [stateIs(0, state)],
    });
  add("attached_with_bits", "The bits above attached are ignored.", 0x123401, "nothing");
  add("vacant_with_bits", "The bits above vacant are ignored.", 0xffffff00, "nothing");
  add("closed_with_bits", "The bits above closed are ignored.", 0x123402, "peer.closed");
  add("state_four", "No endpoint stores 4.", 4, "peer.failed", "segment.state");
  add("state_255", "No endpoint stores 255.", 0x1ff, "peer.failed", "segment.state");
}

function addFinalState(cases: Cases): void {
  const plan = pipe({ frames: [whole("hi")], states: [CLOSED, VACANT] });
  const gone = drained([HI], "peer.closed");
  const from = cases.valid(reading(plan, { operations: [read, setState(1, ATTACHED), read] }), {
    name: "final",
    about: "A peer that has closed stays closed.",
    clauses: "segment.state_invalid",
    results: [gone, "ok", drained([], "peer.closed")],
    bytes: [stateIs(0, CLOSED)],
  });
  const add = (name: string, value: number) => {
    const either: Wanted = {
      one_of: [drained([], "peer.closed"), drained([], "peer.failed", "segment.state")],
    };
    cases.invalid(from, member("operations.1", setState(0, value)), {
      name: `final_${name}`,
      about: "A final state word has changed: a fault, to a reader that looks at it again.",
      clauses: "segment.state_invalid",
      results: [gone, "ok", either],
      bytes: [stateIs(0, value)],
    });
  };
  add("attached", ATTACHED);
  add("failed", failed("peer.lost"));
  add("bits", 0x100 + CLOSED);
}

/** Who has seen a state that nobody stores does not trust the word again. */
function addInvalid(cases: Cases): void {
  const plan = pipe({ frames: [whole("hi")], states: [9, VACANT] });
  const operations: Operation[] = [read, setState(1, ATTACHED), read];
  const end = ["peer.failed", "segment.state"] as const;
  const results = [drained([HI], ...end), "ok", drained([], ...end)];
  const from = cases.valid(reading(plan, { operations }), {
    name: "invalid",
    about: "The peer's state is one that nobody stores.",
    clauses: "segment.state_invalid",
    results,
    bytes: [stateIs(0, 9)],
  });
  for (const [name, value] of [["attached", ATTACHED], ["closed", CLOSED]] as const) {
    cases.invalid(from, member("operations.1", setState(0, value)), {
      name: `invalid_${name}`,
      about: "It changes to one that an endpoint may store: the peer has failed all the same.",
      clauses: "segment.state_invalid",
      results,
      bytes: [stateIs(0, value)],
    });
  }
}

function addFault(cases: Cases): void {
  const plan = (state: number) => pipe({ frames: [whole("hi")], states: [state, VACANT] });
  const clauses =
    "segment.state_change segment.state_tries segment.state_reason segment.state_ring ring.fault";
  const operations: Operation[] = [
    { set: [...bells, store(plan(0), "tail", 33)] },
    read,
  ];
  const results = ["ok", drained([], "ring.cursor")];
  const marked = [stateIs(0, failed("ring.cursor")), ...rung];
  const from = cases.valid(reading(plan(ATTACHED), { operations }), {
    name: "fault_marks_peer",
    about: "A fault marks the peer with its reason, here 03 10 00 00, and rings both bells.",
    clauses,
    results,
    bytes: marked,
  });
  for (const [name, state] of [["vacant", VACANT], ["with_bits", 0x7701]] as const) {
    cases.valid(reading(plan(state), { operations }), {
      name: `fault_marks_${name}`,
      about: "A peer that is still vacant, or attached with bits above it, is marked the same way.",
      clauses: `${clauses} segment.state_low`,
      results,
      bytes: marked,
    });
  }
  const add = (name: string, about: string, state: number) =>
    cases.invalid(from, field(recordAt(0), RECORD, "state", state), {
      name: `fault_after_${name}`,
      about: `${about} stays as it is, and both bells are rung all the same.`,
      clauses,
      results,
      bytes: [stateIs(0, state), ...rung],
    });
  add("close", "The state of a peer that has closed already", CLOSED);
  add("failure", "The state of a peer that is marked already", failed("peer.lost"));
  add("invalid", "A state that nobody stores", 9);
  addWriterFault(cases, clauses);
}

/** The same of a writer, whose reader is marked: the bell of a reader's peer is the writer's. */
function addWriterFault(cases: Cases, clauses: string): void {
  const plan = writersPipe();
  const results = ["ok", "ok", "ok", "ring.cursor"];
  const operations: Operation[] = [
    { write: { count: 112 } },
    { write: { count: 80 } },
    { set: [...bells, store(plan, "head", 129)] },
    { write: { count: 80 } },
  ];
  const from = cases.valid(writing(plan, { operations }), {
    name: "fault_marks_reader",
    about: "A writer that finds a fault marks the reader, and rings both bells.",
    clauses,
    results,
    bytes: [stateIs(1, failed("ring.cursor")), ...rung],
  });
  cases.invalid(from, member("operations.2.set.2", store(plan, "head", 128)), {
    name: "fault_marks_no_reader",
    about: "A `head` of 128 is in order: nobody is marked.",
    clauses,
    results: ["ok", "ok", "ok", "ok"],
    bytes: [stateIs(1, ATTACHED)],
  });
}

function addOwnState(cases: Cases): void {
  const plan = pipe({ frames: [whole("hi")] });
  const from = cases.valid(reading(plan, { operations: [read, setState(1, ATTACHED), read] }), {
    name: "own_state",
    about: "While the own state is attached, reading goes on.",
    clauses: "segment.own_state segment.state_low",
    results: [drained([HI]), "ok", drained([])],
    bytes: [stateIs(1, ATTACHED)],
  });
  const add = (name: string, about: string, value: number, end: string, reason?: Reason) =>
    cases.invalid(from, member("operations.1", setState(1, value)), {
      name: `own_state_${name}`,
      about,
      clauses: "segment.own_state segment.state_low",
      results: [drained([HI]), "ok", drained([], end, reason)],
      bytes: [stateIs(1, value)],
    });
  add("closed_bits", "Bits above closed are ignored.", 0x502, "pipe.closed");
  const about = "Not the word by which it attached: as if it were marked, with no reason.";
  add("bits", about, 0x501, "pipe.failed", "none");
  add("vacant", about, 0, "pipe.failed", "none");
  add("vacant_bits", about, 0x500, "pipe.failed", "none");
  add("invalid", about, 0x4204, "pipe.failed", "none");
  addGeneration(cases);
  const writer = writersPipe();
  const write: Operation = { write: { text: "a" } };
  const wrote = cases.valid(writing(writer, { operations: [setState(0, ATTACHED), write] }), {
    name: "own_state_write",
    about: "While the own state is attached, writing goes on.",
    clauses: "segment.own_state segment.state_low",
    results: ["ok", "ok"],
    bytes: [controlIs(writer, "tail", 32)],
  });
  for (const [name, state] of [["vacant", VACANT], ["other", stateAt(ATTACHED, 1)]] as const) {
    cases.invalid(wrote, member("operations.0", setState(0, state)), {
      name: `own_state_write_${name}`,
      about: "Given away, to somebody or to nobody yet: as if it were marked, with no reason.",
      clauses: "segment.own_state pipe.failed_reason",
      results: ["ok", { code: "pipe.failed", reason: "none" }],
      bytes: [controlIs(writer, "tail", 0), stateIs(0, state)],
    });
  }
}

/** The own state of an endpoint that was vacated five times before. */
function addGeneration(cases: Cases): void {
  const own = (state: number) => stateAt(state, 5);
  const plan = pipe({
    frames: [whole("hi")],
    states: [ATTACHED, own(VACANT)],
    segment: { records: [{}, { generation: 5 }] },
  });
  const from = cases.valid(
    reading(plan, { operations: [read, setState(1, own(ATTACHED)), read] }),
    {
      name: "own_generation",
      about: "The own state has the generation above it: reading goes on.",
      clauses: "segment.own_state segment.again",
      results: [drained([HI]), "ok", drained([])],
      bytes: [stateIs(1, own(ATTACHED))],
    },
  );
  const add = (name: string, about: string, value: number, end: string, reason?: Reason) =>
    cases.invalid(from, member("operations.1", setState(1, value)), {
      name: `own_generation_${name}`,
      about,
      clauses: "segment.own_state segment.again",
      results: [drained([HI]), "ok", drained([], end, reason)],
      bytes: [stateIs(1, value)],
    });
  add("closed", "A supervisor closes it.", own(CLOSED), "pipe.closed");
  add("failed", "It is marked.", failed("peer.lost"), "pipe.failed", "peer.lost");
  const replaced = "It was given to another owner: as if it were marked, with no reason.";
  add("next", replaced, stateAt(ATTACHED, 6), "pipe.failed", "none");
  add("vacant", "The next owner has not come yet.", stateAt(VACANT, 6), "pipe.failed", "none");
  const first = "Attached, and not as it attached itself.";
  add("first", first, ATTACHED, "pipe.failed", "none");
  add("far", first, own(ATTACHED) + 0x80000000, "pipe.failed", "none");
}

function addBits(cases: Cases): void {
  const writer = writersPipe();
  const closing = (value: number): Operation[] => [
    { set: [{ offset: recordAt(0) + 4, hex: word(value) }, ...bells] },
    { close: true },
    { write: { text: "a" } },
  ];
  const results = ["ok", "ok", "pipe.closed"];
  const about = "An endpoint closes";
  const clauses = "segment.state_change segment.state_reason segment.state_ring pipe.close " +
    "port.close";
  cases.valid(writing(writer, { operations: closing(ATTACHED) }), {
    name: "close",
    about: `${about}.`,
    clauses,
    results,
    bytes: [stateIs(0, CLOSED), ...rung],
  });
  const own = (state: number) => stateAt(state, 0x42);
  const again = writersPipe({ states: [own(VACANT), ATTACHED] });
  const from = cases.valid(writing(again, { operations: closing(own(ATTACHED)) }), {
    name: "close_with_bits",
    about: `${about} that has attached to a word with bits above vacant: they stay.`,
    clauses: `${clauses} segment.again`,
    results,
    bytes: [stateIs(0, own(CLOSED)), ...rung],
  });
  const add = (name: string, fact: string, value: number) =>
    cases.invalid(from, member("operations.0.set.0.hex", word(value)), {
      name: `close_${name}`,
      about: `${about} ${fact} stays as it is, and both bells are rung all the same.`,
      clauses,
      results,
      bytes: [stateIs(0, value), ...rung],
    });
  add("after_failure", "that was marked failed: it", failed("peer.terminated"));
  add("replaced", "that was given to another owner: the other's state", stateAt(ATTACHED, 0x43));
  add("given_back", "that was given back, to nobody yet: vacant", stateAt(VACANT, 0x43));
  add("other", "whose state has lost its bits: a word that it did not store", ATTACHED);
  const reader = pipe();
  const leaving: Operation[] = [{ set: bells }, { close: true }];
  const closed = cases.valid(reading(reader, { operations: leaving }), {
    name: "close_reader",
    about: "A reader closes, and rings its own bell and its writer's.",
    clauses:
      "segment.state_change segment.state_tries segment.state_ring pipe.close pipe.close_stores",
    results: ["ok", "ok"],
    bytes: [stateIs(1, CLOSED), ...rung],
  });
  cases.invalid(closed, member("operations.1", read), {
    name: "close_reader_not",
    about: "It reads instead: no state changes.",
    clauses:
      "segment.state_change segment.state_tries segment.state_ring pipe.close pipe.close_stores",
    results: ["ok", drained([])],
    bytes: [stateIs(1, ATTACHED)],
  });
  addAttachBits(cases);
}

function addAttachBits(cases: Cases): void {
  const ones = 0xffffffff;
  const { bytes } = pipe({
    states: [0x500, VACANT],
    segment: { records: [{ wakes: ones, features: ones, agent: ones }] },
  });
  const clauses = "segment.attach segment.state_low segment.state_reason segment.features";
  const attaching: Setting = {
    kind: "attach",
    image: toImage(bytes),
    role: "writer",
    channel: 0,
  };
  const attach = cases.valid(attaching, {
    name: "attach_with_bits",
    about: "Bits above vacant stay; `wakes` and `features` are stored, whatever stood there.",
    clauses: `${clauses} segment.again`,
    bytes: [
      stateIs(0, 0x501),
      recordIs(0, "features", 0),
      { offset: recordAt(0) + 8, not: word(ones), about: "wakes" },
      recordIs(0, "generation", 0),
    ],
  });
  for (const state of [0x501, 0x502, 0x503, 0x504]) {
    cases.invalid(attach, field(recordAt(0), RECORD, "state", state), {
      name: `attach_taken_bits_${state & 255}`,
      about: "Bits above another state do not make it vacant, and nothing is stored.",
      clauses: `${clauses} segment.check`,
      result: "segment.endpoint",
      unchanged: true,
    });
  }
  const peers = pipe({ frames: [whole("hi")], segment: { records: [{ features: ones }] } });
  const from = cases.valid(reading(peers, { operations: [read] }), {
    name: "features_unknown",
    about: "A peer understands more than this version has.",
    clauses: "segment.features",
    results: [drained([HI])],
    bytes: [recordIs(0, "features", ones), recordIs(1, "features", 0)],
  });
  cases.invalid(from, field(recordAt(0), RECORD, "features", 0), {
    name: "features_none",
    about: "Or no more.",
    clauses: "segment.features",
    results: [drained([HI])],
    bytes: [recordIs(0, "features", 0), recordIs(1, "features", 0)],
  });
}
