/** How the rings go on when an endpoint was given back: cases of `spec/pipe.md`. @module */

import { ATTACHED, bytesOf, Cases, CLOSED, controlIs, drained, endFrame } from "./builder.ts";
import { firstOf, member, message, pipe, reading, setRecord, setState } from "./builder.ts";
import { stateAt, stateIs, store, text, utf8, VACANT, whole } from "./builder.ts";
import { writersPipe, writing } from "./builder.ts";
import { attaches, GENERATION, leaves, next, portOf, read, still } from "./builder_vacate.ts";
import { take, using, vacate } from "./builder_vacate.ts";
import type { Operation, Wanted } from "./case.ts";
import type { FramePlan } from "./encode.ts";
import { valueOf } from "./layout.ts";

const VACATED = "pipe.vacated";
const HI = text("hi");
/** What the kit as the next owner gets of a message of this endpoint. */
const wrote = (content: string) => drained([message({ text: content })]);

/** Adds them to the cases of the pipe. */
export function addVacated(cases: Cases): void {
  addBoth(cases);
  addReading(cases);
  addTakenBefore(cases);
  addWriting(cases);
  addOwed(cases);
  addClaims(cases);
  addWriterFault(cases);
}

/** The next generation, both ways. */
function addBoth(cases: Cases): void {
  const plan = portOf([whole("one")]);
  const { inward, outward } = plan;
  const gone = drained([text("one")], "peer.closed");
  const operations: Operation[] = [
    { write: { text: "lost" } },
    leaves(),
    read,
    vacate,
    { write: { text: "early" } },
    attaches(),
    next(inward, 32, [whole("hi")]),
    read,
    { write: { text: "back" } },
    take,
  ];
  const answers = drained([message({ text: "early" }), message({ text: "back" })]);
  const from = cases.valid(using(plan, operations), {
    name: "vacated",
    about: "What is written for the next owner before it comes, and when it has, it gets; no more.",
    clauses: `${VACATED} segment.vacate_words segment.vacate_state`,
    results: ["ok", "ok", gone, "ok", "ok", "ok", "ok", drained([HI]), "ok", answers],
    bytes: [
      controlIs(inward, "head", 64),
      controlIs(outward, "tail", 0x40 + 96),
      stateIs(0, stateAt(ATTACHED, GENERATION + 1)),
    ],
  });
  const none = drained([], "peer.closed");
  cases.invalid(from, member("operations.3", still), {
    name: "vacated_not",
    about: "The endpoint is not given back: nobody can be written to.",
    clauses: `${VACATED} pipe.peer_gone`,
    // The kit stores a next state all the same: a final word that changes may be a fault.
    results: [
      "ok",
      "ok",
      gone,
      "ok",
      "peer.closed",
      "ok",
      "ok",
      {
        one_of: [drained([HI], "peer.closed"), drained([HI], "peer.failed")],
      },
      { one_of: ["peer.closed", "peer.failed"] },
      wrote("lost"),
    ],
  });
  const again: Operation[] = [
    leaves(),
    read,
    vacate,
    attaches(),
    next(inward, 32, [whole("hi"), endFrame()]),
    leaves(stateAt(CLOSED, GENERATION + 1)),
    read,
    vacate,
    { write: { text: "third" } },
    attaches(2),
    next(inward, 80, [whole("hi")]),
    read,
    take,
  ];
  cases.valid(using(plan, again), {
    name: "vacated_again",
    about: "The next owner dies, too, and the one behind it comes.",
    clauses: `${VACATED} segment.vacate_state`,
    results: [
      "ok",
      gone,
      "ok",
      "ok",
      "ok",
      "ok",
      drained([HI], "ended"),
      "ok",
      "ok",
      "ok",
      "ok",
      drained([HI]),
      wrote("third"),
    ],
    bytes: [stateIs(0, stateAt(ATTACHED, GENERATION + 2))],
  });
  cases.valid(using(plan, [leaves(), read, vacate, read, setState(0, stateAt(CLOSED, 7)), read]), {
    name: "vacated_gone",
    about: "The next owner closes: that is reported as it was of the first.",
    clauses: `${VACATED} pipe.first_answer`,
    results: ["ok", gone, "ok", drained([]), "ok", none],
    bytes: [stateIs(1, ATTACHED)],
  });
}

/** What a reader had found before does not count any more. */
function addReading(cases: Cases): void {
  const add = (name: string, about: string, frames: FramePlan[], came: Wanted, size: number) => {
    const plan = portOf(frames);
    const operations: Operation[] = [
      leaves(),
      read,
      vacate,
      read,
      attaches(),
      next(plan.inward, size, [whole("hi")]),
      read,
    ];
    return [
      plan,
      cases.valid(using(plan, operations), {
        name,
        about,
        clauses: VACATED,
        results: ["ok", came, "ok", drained([]), "ok", "ok", drained([HI])],
      }),
    ] as const;
  };
  const ended = drained([text("one")], "ended");
  const [plan, from] = add(
    "vacated_end",
    "The stream of the last owner has ended; that of the next one has not.",
    [whole("one"), endFrame()],
    ended,
    48,
  );
  cases.invalid(from, member("operations.2", still), {
    name: "vacated_end_kept",
    about: "The endpoint is not given back, and its stream has ended for ever.",
    clauses: `${VACATED} pipe.end_once`,
    results: ["ok", ended, "ok", drained([], "ended"), "ok", "ok", drained([], "ended")],
    bytes: [controlIs(plan.inward, "head", 48)],
  });
  const fault = drained([text("one")], "frame.kind");
  add(
    "vacated_fault",
    "A fault of the last owner is not one of the next.",
    [whole("one"), whole("two", { kind: 7 })],
    fault,
    32,
  );
  const inside = "A message of the last owner is in progress, and the next owner begins one.";
  const gone = drained([], "peer.closed");
  add("vacated_inside", inside, [firstOf(9, utf8("abc"))], gone, 48);
  const large = drained([{ report: "message.size" }], "peer.closed");
  const dropped = "The same of a message that was dropped.";
  add("vacated_inside_dropped", dropped, [firstOf(9999, utf8("abc"))], large, 48);
}

/** What was taken out of the ring before comes first. */
function addTakenBefore(cases: Cases): void {
  const codec = valueOf("codec", "json_batch");
  const plan = pipe({
    states: [stateAt(ATTACHED, GENERATION), VACANT],
    frames: [whole(utf8("[1,2,3]"), { codec })],
    segment: { records: [{ generation: GENERATION }] },
  });
  const json = (...values: number[]) =>
    values.map((value) => message({ codec: valueOf("codec", "json"), json: value }));
  const operations: Operation[] = [
    { read: 1 },
    leaves(),
    vacate,
    attaches(),
    next(plan.channels[0]!, 32, [whole("hi")]),
    read,
  ];
  const from = cases.valid(reading(plan, { kind: "decode", operations }), {
    name: "vacated_batch",
    about: "The rest of a batch is delivered, and then what the next owner writes.",
    clauses: `${VACATED} pipe.vacated_rest`,
    results: [{ items: json(1) }, "ok", "ok", "ok", "ok", drained([...json(2, 3), HI])],
  });
  cases.invalid(from, member("operations.3", { close: true }), {
    name: "vacated_batch_closed",
    about: "But not when this endpoint closes.",
    clauses: `${VACATED} pipe.vacated_rest pipe.close`,
    results: [{ items: json(1) }, "ok", "ok", "ok", "ok", drained([], "pipe.closed")],
  });
  const segment = portOf([whole("one"), whole("two")]);
  const filling: Operation[] = [
    { write: bytesOf(112) },
    { write: bytesOf(48) },
    { write: bytesOf(64), wait: true },
    leaves(),
    vacate,
    attaches(),
    next(segment.inward, 64, [whole("hi")]),
    { write: bytesOf(100) },
    read,
    take,
  ];
  cases.valid(using(segment, filling), {
    name: "vacated_inbox",
    about: "So is what stands in the inbox; and there is room again.",
    clauses: `${VACATED} pipe.vacated_rest`,
    results: [
      "ok",
      "ok",
      "wait.timeout",
      "ok",
      "ok",
      "ok",
      "ok",
      "ok",
      drained([text("one"), text("two"), HI]),
      drained([message(bytesOf(100))]),
    ],
  });
}

/** A pipe to a reader that goes. */
function writers() {
  return writersPipe({
    states: [VACANT, stateAt(ATTACHED, GENERATION)],
    segment: { records: [{}, { generation: GENERATION }] },
  });
}

const readerLeaves = setState(1, stateAt(CLOSED, GENERATION));
const readerComes = setRecord(1, { state: stateAt(ATTACHED, GENERATION + 1) });

function addWriting(cases: Cases): void {
  const plan = writers();
  const write: Operation = { write: { text: "x" } };
  const operations: Operation[] = [
    { end: true },
    write,
    readerLeaves,
    vacate,
    readerComes,
    write,
    { end: true },
    take,
  ];
  const from = cases.valid(writing(plan, { operations }), {
    name: "vacated_ended",
    about: "The writer has ended its stream; to the next reader it writes again, and ends again.",
    clauses: VACATED,
    results: [
      "ok",
      "pipe.ended",
      "ok",
      "ok",
      "ok",
      "ok",
      "ok",
      drained([message({ text: "x" })], "ended"),
    ],
    bytes: [controlIs(plan, "tail", 64)],
  });
  cases.invalid(from, member("operations.2", still), {
    name: "vacated_ended_kept",
    about: "Its reader is not gone, and cannot be given back.",
    clauses: `${VACATED} segment.vacate_peer pipe.end`,
    results: [
      "ok",
      "pipe.ended",
      "ok",
      "refused",
      "ok",
      "pipe.ended",
      "ok",
      drained([], "ended"),
    ],
    bytes: [controlIs(plan, "tail", 16)],
  });
  const closed = writers();
  cases.valid(
    writing(closed, {
      operations: [readerLeaves, { end: true }, vacate, readerComes, write, { end: true }, take],
    }),
    {
      name: "vacated_end_closed",
      about: "It has ended when its reader had closed, without a frame; the next reader gets one.",
      clauses: `${VACATED} pipe.end_closed`,
      results: ["ok", "ok", "ok", "ok", "ok", "ok", drained([message({ text: "x" })], "ended")],
    },
  );
  const room: Operation[] = [
    { write: bytesOf(112) },
    { write: bytesOf(96) },
    write,
    readerLeaves,
    vacate,
    { write: bytesOf(112) },
    readerComes,
    take,
  ];
  cases.valid(writing(writers(), { operations: room }), {
    name: "vacated_room",
    about: "What the last reader had not read is dropped: all of the ring is free.",
    clauses: `${VACATED} segment.vacate_words ring.room`,
    results: ["ok", "ok", "full", "ok", "ok", "ok", "ok", drained([message(bytesOf(112))])],
  });
}

/** A message that was begun for the last reader. */
function addOwed(cases: Cases): void {
  const plan = writers();
  const operations: Operation[] = [
    { write: { ...bytesOf(400), tag: 9 }, wait: true },
    readerLeaves,
    vacate,
    readerComes,
    { write: { text: "x" } },
    take,
  ];
  const from = cases.valid(writing(plan, { operations }), {
    name: "vacated_owed",
    about: "Of a message that was given up the next reader gets nothing, its cancel neither.",
    clauses: `${VACATED} pipe.owed`,
    results: ["wait.timeout", "ok", "ok", "ok", "ok", wrote("x")],
  });
  cases.invalid(from, member("operations.4", { end: true }), {
    name: "vacated_owed_end",
    about: "Nor when the stream ends.",
    clauses: `${VACATED} pipe.owed_end`,
    results: ["wait.timeout", "ok", "ok", "ok", "ok", drained([], "ended")],
  });
}

/** What was claimed, or finished and not published. */
function addClaims(cases: Cases): void {
  const plan = writers();
  const a: Operation = { claim: { text: "a" }, size: 1, open: true };
  const finish: Operation = { finish: { text: "a" } };
  const publish: Operation = { publish: true };
  const before: [string, string, Operation[]][] = [
    ["finished", "What was finished for the last reader is dropped.", [a, finish]],
    ["claimed", "So is what was only claimed.", [a]],
  ];
  for (const [name, about, operations] of before) {
    const all = [...operations, readerLeaves, vacate, readerComes, publish];
    cases.valid(writing(plan, { operations: [...all, { write: { text: "x" } }, take] }), {
      name: `vacated_${name}`,
      about: `${about} To publish does nothing, and there is no claim any more.`,
      clauses: `${VACATED} pipe.publish_none pipe.claim_one`,
      results: [...all.map(() => "ok"), "ok", wrote("x")],
    });
  }
  const open: Operation[] = [a, readerLeaves, vacate, readerComes, finish, publish, take];
  cases.valid(writing(plan, { operations: open }), {
    name: "vacated_finish",
    about: "Nor can it be finished.",
    clauses: `${VACATED} pipe.claim_one`,
    results: ["ok", "ok", "ok", "ok", "refused", "ok", drained([])],
  });
}

function addWriterFault(cases: Cases): void {
  const plan = writers();
  const write: Operation = { write: bytesOf(80) };
  const operations: Operation[] = [
    { write: bytesOf(112) },
    write,
    { set: [store(plan, "head", 129)] },
    write,
    vacate,
    readerComes,
    write,
  ];
  const from = cases.valid(writing(plan, { operations }), {
    name: "vacated_cursor",
    about: "A fault of the last reader is not one of the next: both cursors are the writer's own.",
    clauses: `${VACATED} ring.fault segment.vacate_words`,
    results: ["ok", "ok", "ok", "ring.cursor", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 352), stateIs(1, stateAt(ATTACHED, GENERATION + 1))],
  });
  cases.invalid(from, member("operations.4", still), {
    name: "vacated_cursor_kept",
    about: "It is not given back: the fault stays.",
    clauses: `${VACATED} pipe.fault`,
    results: ["ok", "ok", "ok", "ring.cursor", "ok", "ok", "ring.cursor"],
    bytes: [controlIs(plan, "tail", 224)],
  });
}
