/** What endpoints do with `state` words: cases of `spec/segment.md`. @module */

import { ATTACHED, bellIsNot, Cases, CLOSED, controlIs, drained, field } from "./builder.ts";
import { member, pipe, reading, setState, stateIs, store, text, VACANT } from "./builder.ts";
import { whole, writersPipe, writing } from "./builder.ts";
import { toImage, word } from "./bytes.ts";
import type { Operation, Reason, Wanted } from "./case.ts";
import { failed, recordAt } from "./encode.ts";

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
  const from = cases.valid(
    "peer_attached",
    "While the peer is attached, a reader that has read everything waits.",
    "segment.state_invalid segment.state_low",
    reading(pipe({ frames: [whole("hi")] })),
    { results: [drained([HI])], bytes: [stateIs(0, ATTACHED)] },
  );
  const add = (name: string, about: string, state: number, end: string, reason?: Reason) =>
    cases.invalid(
      name,
      about,
      end === "peer.failed" ? "segment.state_invalid segment.state_low" : "segment.state_low",
      from,
      field(recordAt(0), RECORD, "state", state),
      { results: [drained([HI], end, reason)], bytes: [stateIs(0, state)] },
    );
  add("attached_with_bits", "The bits above attached are ignored.", 0x123401, "nothing");
  add("vacant_with_bits", "The bits above vacant are ignored.", 0xffffff00, "nothing");
  add("closed_with_bits", "The bits above closed are ignored.", 0x123402, "peer.closed");
  add("state_four", "No endpoint stores 4.", 4, "peer.failed", "segment.state");
  add("state_255", "No endpoint stores 255.", 0x1ff, "peer.failed", "segment.state");
}

function addFinalState(cases: Cases): void {
  const plan = pipe({ frames: [whole("hi")], states: [CLOSED, VACANT] });
  const gone = drained([HI], "peer.closed");
  const from = cases.valid(
    "final",
    "A peer that has closed stays closed.",
    "segment.state_invalid",
    reading(plan, { operations: [read, setState(1, ATTACHED), read] }),
    { results: [gone, "ok", drained([], "peer.closed")], bytes: [stateIs(0, CLOSED)] },
  );
  const add = (name: string, value: number) => {
    const either: Wanted = {
      one_of: [drained([], "peer.closed"), drained([], "peer.failed", "segment.state")],
    };
    cases.invalid(
      `final_${name}`,
      "A final state word has changed: a fault, to a reader that looks at it again.",
      "segment.state_invalid",
      from,
      member("operations.1", setState(0, value)),
      { results: [gone, "ok", either], bytes: [stateIs(0, value)] },
    );
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
  const from = cases.valid(
    "invalid",
    "The peer's state is one that nobody stores.",
    "segment.state_invalid",
    reading(plan, { operations }),
    { results, bytes: [stateIs(0, 9)] },
  );
  for (const [name, value] of [["attached", ATTACHED], ["closed", CLOSED]] as const) {
    cases.invalid(
      `invalid_${name}`,
      "It changes to one that an endpoint may store: the peer has failed all the same.",
      "segment.state_invalid",
      from,
      member("operations.1", setState(0, value)),
      { results, bytes: [stateIs(0, value)] },
    );
  }
}

function addFault(cases: Cases): void {
  const plan = (state: number) => pipe({ frames: [whole("hi")], states: [state, VACANT] });
  const clauses = "segment.state_change segment.state_reason segment.state_ring ring.fault";
  const operations: Operation[] = [
    { set: [...bells, store(plan(0), "tail", 33)] },
    read,
  ];
  const results = ["ok", drained([], "ring.cursor")];
  const marked = [stateIs(0, failed("ring.cursor")), ...rung];
  const from = cases.valid(
    "fault_marks_peer",
    "A fault marks the peer with its reason, here 03 10 00 00, and rings both bells.",
    clauses,
    reading(plan(ATTACHED), { operations }),
    { results, bytes: marked },
  );
  for (const [name, state] of [["vacant", VACANT], ["with_bits", 0x7701]] as const) {
    cases.valid(
      `fault_marks_${name}`,
      "A peer that is still vacant, or attached with bits above it, is marked the same way.",
      `${clauses} segment.state_low`,
      reading(plan(state), { operations }),
      { results, bytes: marked },
    );
  }
  const add = (name: string, about: string, state: number) =>
    cases.invalid(
      `fault_after_${name}`,
      `${about} stays as it is, and both bells are rung all the same.`,
      clauses,
      from,
      field(recordAt(0), RECORD, "state", state),
      { results, bytes: [stateIs(0, state), ...rung] },
    );
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
  const from = cases.valid(
    "fault_marks_reader",
    "A writer that finds a fault marks the reader, and rings both bells.",
    clauses,
    writing(plan, { operations }),
    { results, bytes: [stateIs(1, failed("ring.cursor")), ...rung] },
  );
  cases.invalid(
    "fault_marks_no_reader",
    "A `head` of 128 is in order: nobody is marked.",
    clauses,
    from,
    member("operations.2.set.2", store(plan, "head", 128)),
    { results: ["ok", "ok", "ok", "ok"], bytes: [stateIs(1, ATTACHED)] },
  );
}

function addOwnState(cases: Cases): void {
  const plan = pipe({ frames: [whole("hi")] });
  const from = cases.valid(
    "own_state",
    "While the own state is attached, reading goes on.",
    "segment.own_state segment.state_low",
    reading(plan, { operations: [read, setState(1, ATTACHED), read] }),
    { results: [drained([HI]), "ok", drained([])], bytes: [stateIs(1, ATTACHED)] },
  );
  const add = (name: string, about: string, value: number, end: string, reason?: Reason) =>
    cases.invalid(
      `own_state_${name}`,
      about,
      "segment.own_state segment.state_low",
      from,
      member("operations.1", setState(1, value)),
      { results: [drained([HI]), "ok", drained([], end, reason)], bytes: [stateIs(1, value)] },
    );
  add("bits", "Bits above attached are ignored.", 0x501, "nothing");
  add("closed_bits", "Bits above closed are ignored.", 0x502, "pipe.closed");
  const about = "No state that an endpoint may have found: as if it were marked, with no reason.";
  add("vacant", about, 0, "pipe.failed", "none");
  add("vacant_bits", about, 0x500, "pipe.failed", "none");
  add("invalid", about, 0x4204, "pipe.failed", "none");
  const writer = writersPipe();
  const write: Operation = { write: { text: "a" } };
  const wrote = cases.valid(
    "own_state_write",
    "While the own state is attached, writing goes on.",
    "segment.own_state segment.state_low",
    writing(writer, { operations: [setState(0, ATTACHED), write] }),
    { results: ["ok", "ok"], bytes: [controlIs(writer, "tail", 32)] },
  );
  cases.invalid(
    "own_state_write_vacant",
    "Vacant again: as if it were marked, with no reason.",
    "segment.own_state pipe.failed_reason",
    wrote,
    member("operations.0", setState(0, VACANT)),
    {
      results: ["ok", { code: "pipe.failed", reason: "none" }],
      bytes: [controlIs(writer, "tail", 0)],
    },
  );
}

function addBits(cases: Cases): void {
  const writer = writersPipe();
  const operations = (value: number): Operation[] => [setState(0, value), { close: true }];
  const about = "An endpoint closes";
  cases.valid(
    "close",
    `${about}.`,
    "segment.state_change segment.state_reason pipe.close port.close",
    writing(writer, { operations: operations(ATTACHED) }),
    { results: ["ok", "ok"], bytes: [stateIs(0, CLOSED)] },
  );
  const from = cases.valid(
    "close_with_bits",
    `${about} whose state has bits above attached: they are gone.`,
    "segment.state_change segment.state_reason segment.state_low pipe.close port.close",
    writing(writer, { operations: operations(0x4201) }),
    { results: ["ok", "ok"], bytes: [stateIs(0, CLOSED)] },
  );
  cases.invalid(
    "close_after_failure",
    `${about} that was marked failed: it stays so.`,
    "segment.state_change segment.state_reason segment.state_low pipe.close port.close",
    from,
    member("operations.0", setState(0, failed("peer.terminated"))),
    { results: ["ok", "ok"], bytes: [stateIs(0, failed("peer.terminated"))] },
  );
  const reader = pipe();
  const closing: Operation[] = [{ set: bells }, { close: true }];
  const closed = cases.valid(
    "close_reader",
    "A reader closes, and rings its own bell and its writer's.",
    "segment.state_change segment.state_ring pipe.close",
    reading(reader, { operations: closing }),
    { results: ["ok", "ok"], bytes: [stateIs(1, CLOSED), ...rung] },
  );
  cases.invalid(
    "close_reader_not",
    "It reads instead: no state changes.",
    "segment.state_change segment.state_ring pipe.close",
    closed,
    member("operations.1", read),
    { results: ["ok", drained([])], bytes: [stateIs(1, ATTACHED)] },
  );
  const { bytes } = pipe({ states: [0x500, VACANT] });
  bytes.fill(0xff, recordAt(0) + 8, recordAt(0) + 12);
  const attach = cases.valid(
    "attach_with_bits",
    "Bits above vacant are ignored, and gone; `wakes` is stored, whatever stood there.",
    "segment.attach segment.state_low segment.state_reason",
    { kind: "attach", image: toImage(bytes), role: "writer", channel: 0 },
    {
      bytes: [
        stateIs(0, ATTACHED),
        { offset: recordAt(0) + 8, not: "ff ff ff ff", about: "wakes" },
      ],
    },
  );
  cases.invalid(
    "attach_taken_bits",
    "Bits above attached do not make it vacant.",
    "segment.attach segment.state_low segment.check",
    attach,
    field(recordAt(0), RECORD, "state", 0x501),
    { result: "segment.endpoint", unchanged: true },
  );
}
