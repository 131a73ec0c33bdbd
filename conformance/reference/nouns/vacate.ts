/** Giving an endpoint back whose owner is dead: cases of `spec/segment.md`. @module */

import { ATTACHED, bellIs, bellIsNot, bytesOf, Cases, CLOSED, controlIs } from "../builder.ts";
import { drained, endFrame, field, firstOf, member, message, pipe, reading } from "../builder.ts";
import { recordIs, rungBits, rungIs, setRecord, setState, stateAt, stateIs } from "../builder.ts";
import { store, text, utf8, VACANT, whole, writersPipe, writing } from "../builder.ts";
import { attaches, DEAD, GENERATION, leaves, next, portOf, read, still } from "../builder_call.ts";
import { take, using, vacate } from "../builder_call.ts";
import type { Expected, Operation, Wanted } from "../case.ts";
import { type ChannelPlan, descriptorAt, failed, type FramePlan, NOBODY } from "../encode.ts";
import { type Placed, put, recordAt } from "../encode.ts";
import { valueOf } from "../layout.ts";

const RECORD = "endpoint_record";
const BELL = 0x30;
const GIVEN = stateAt(VACANT, GENERATION + 1);
const VACATE = "segment.vacate_words segment.vacate_count segment.vacate_state";

/** Adds them to the cases of the segment. */
export function addVacate(cases: Cases): void {
  addWords(cases);
  addSides(cases);
  addStates(cases);
  addGenerations(cases);
  addOwn(cases);
  addPeers(cases);
  addUnread(cases);
}

/** Nobody has rung so far. */
const quiet: Operation[] = [0, 1].map((index) =>
  setRecord(index, { bell: BELL, rung: rungBits(index, 9) })
);

/** The words of the record of endpoint 0, when it was given back. */
function given(generation = GENERATION + 1, state = stateAt(VACANT, generation)): Expected[] {
  return [
    stateIs(0, state),
    recordIs(0, "generation", generation),
    ...["wakes", "agent", "features"].map((name) => recordIs(0, name, 0)),
  ];
}

/** They are as they were. */
function kept(state = DEAD, generation = GENERATION): Expected[] {
  return [
    stateIs(0, state),
    recordIs(0, "generation", generation),
    recordIs(0, "wakes", 3),
    recordIs(0, "agent", 77),
    recordIs(0, "features", 5),
  ];
}

function addWords(cases: Cases): void {
  const plan = portOf([whole("one"), whole("two")]);
  const { inward, outward } = plan;
  const wants: Operation = {
    set: [store(inward, "writer_wants", 0x7001), store(outward, "reader_wants", 0x7001)],
  };
  const operations: Operation[] = [
    { write: { text: "lost" } },
    wants,
    leaves(),
    read,
    ...quiet,
    vacate,
  ];
  const gone = drained([text("one"), text("two")], "peer.closed");
  const cursors = (ring: Placed, position: number) => [
    controlIs(ring, "tail", position),
    controlIs(ring, "head", position),
  ];
  const from = cases.valid(using(plan, operations), {
    name: "vacate",
    about:
      "What endpoint 0 wrote is read, and what it has not read is dropped: both rings begin anew.",
    clauses: `${VACATE} segment.vacate_peer segment.vacate_read segment.state_ring wait.rung ` +
      "ring.tail_owner ring.head_owner",
    results: ["ok", "ok", "ok", gone, "ok", "ok", "ok"],
    bytes: [
      ...given(),
      ...cursors(inward, 64),
      ...cursors(outward, 0x60),
      controlIs(inward, "writer_wants", 0),
      controlIs(outward, "reader_wants", 0),
      stateIs(1, ATTACHED),
      bellIsNot(0, BELL),
      bellIsNot(1, BELL),
      rungIs(0, 0, 9),
      rungIs(1, 0, 1, 9),
    ],
  });
  cases.invalid(from, member("operations.6", still), {
    name: "vacate_not",
    about: "Nobody vacates it: all stays as it is.",
    clauses:
      `${VACATE} segment.vacate_peer segment.vacate_read ring.tail_owner ring.head_owner wait.rung`,
    results: ["ok", "ok", "ok", gone, "ok", "ok", "ok"],
    bytes: [
      ...kept(),
      ...cursors(inward, 64),
      controlIs(outward, "tail", 0x60),
      controlIs(outward, "head", 0x40),
      controlIs(inward, "writer_wants", 0x7001),
      controlIs(outward, "reader_wants", 0x7001),
      bellIs(0, BELL),
      bellIs(1, BELL),
      rungIs(0, 0, 9),
      rungIs(1, 1, 9),
    ],
  });
  const twice: Operation[] = [leaves(), read, vacate, vacate];
  cases.valid(using(plan, twice), {
    name: "vacate_twice",
    about: "It is vacant: there is nothing to give back.",
    clauses: "segment.vacate_peer segment.vacate_state",
    results: ["ok", gone, "ok", "refused"],
    bytes: given(),
  });
}

/** A pipe has one ring, of which one side is left. */
function addSides(cases: Cases): void {
  const record = { generation: GENERATION, wakes: 1 };
  const wrote = pipe({
    states: [stateAt(ATTACHED, GENERATION), VACANT],
    frames: [whole("one")],
    segment: { records: [record] },
  });
  const asks: Operation = { set: [store(wrote, "writer_wants", 0x7001)] };
  cases.valid(reading(wrote, { operations: [asks, leaves(), read, vacate] }), {
    name: "vacate_writer",
    about: "A reader gives its writer's endpoint back.",
    clauses: VACATE,
    results: ["ok", "ok", drained([text("one")], "peer.closed"), "ok"],
    bytes: [
      ...given(),
      controlIs(wrote, "tail", 32),
      controlIs(wrote, "head", 32),
      controlIs(wrote, "writer_wants", 0),
    ],
  });
  const plan = writersPipe({
    states: [VACANT, stateAt(ATTACHED, GENERATION)],
    segment: { records: [{}, record] },
  });
  const wants: Operation = { set: [store(plan, "reader_wants", 0x7001)] };
  const write: Operation = { write: { text: "lost" } };
  cases.valid(writing(plan, { operations: [write, wants, setState(1, DEAD), vacate] }), {
    name: "vacate_reader",
    about: "A writer gives its reader's endpoint back.",
    clauses: VACATE,
    results: ["ok", "ok", "ok", "ok"],
    bytes: [
      stateIs(1, GIVEN),
      recordIs(1, "generation", GENERATION + 1),
      recordIs(1, "wakes", 0),
      controlIs(plan, "tail", 32),
      controlIs(plan, "head", 32),
      controlIs(plan, "reader_wants", 0),
    ],
  });
}

function addStates(cases: Cases): void {
  const plan = portOf([whole("one")]);
  const one = (end: string, reason?: string) => drained([text("one")], end, reason);
  const from = cases.valid(using(plan, [leaves(), read, vacate]), {
    name: "vacate_closed",
    about: "The other endpoint has closed.",
    clauses: `segment.vacate_peer ${VACATE}`,
    results: ["ok", one("peer.closed"), "ok"],
    bytes: given(),
  });
  const add = (name: string, about: string, state: number, came: Wanted, isGiven = false) =>
    cases.invalid(from, member("operations.0", leaves(state)), {
      name: `vacate_${name}`,
      about,
      clauses: "segment.vacate_peer segment.vacate_state",
      results: ["ok", came, isGiven ? "ok" : "refused"],
      bytes: isGiven ? given() : kept(state),
    });
  const lost = failed("peer.lost");
  const about = "A supervisor has marked it: the generation takes the place of the reason.";
  add("failed", about, lost, one("peer.failed", "peer.lost"), true);
  cases.valid(using(plan, [leaves(0x123402), read, vacate]), {
    name: "vacate_closed_bits",
    about: "It has closed, with other bits above its state than its generation.",
    clauses: `segment.vacate_peer ${VACATE}`,
    results: ["ok", one("peer.closed"), "ok"],
    bytes: given(),
  });
  const wait = one("nothing");
  add("attached", "It is attached.", stateAt(ATTACHED, GENERATION), wait);
  add("vacant", "It is vacant.", stateAt(VACANT, GENERATION), wait);
  const invalid = "Its state is one that nobody stores, which is not final.";
  add("invalid", invalid, 9, one("peer.failed", "segment.state"));
}

function addGenerations(cases: Cases): void {
  const plan = portOf([]);
  const most = 0xffffffff;
  const gone = drained([], "peer.closed");
  const setting = (generation: number) => {
    const bytes = plan.bytes.slice();
    put(bytes, recordAt(0), RECORD, "generation", generation);
    return using({ bytes }, [leaves(stateAt(CLOSED, generation)), read, vacate]);
  };
  const clauses = VACATE;
  for (const generation of [0, 0xfffffe, 0xffffff]) {
    const next = generation + 1;
    cases.valid(setting(generation), {
      name: `vacate_at_${generation.toString(16)}`,
      about: `The generation becomes 0x${
        next.toString(16)
      }, and its low 24 bits stand in the state.`,
      clauses,
      results: ["ok", gone, "ok"],
      bytes: given(next),
    });
  }
  const from = cases.valid(setting(most - 1), {
    name: "vacate_at_fffffffe",
    about: "The last time: the generation becomes 2^32 - 1.",
    clauses,
    results: ["ok", gone, "ok"],
    bytes: given(most),
  });
  cases.invalid(from, field(recordAt(0), RECORD, "generation", most), {
    name: "vacate_at_ffffffff",
    about: "It is that already: the endpoint is not given back any more.",
    clauses,
    results: ["ok", gone, "refused"],
    bytes: kept(stateAt(CLOSED, most - 1), most),
  });
}

/** Who may not vacate: an endpoint that is itself gone. */
function addOwn(cases: Cases): void {
  const plan = portOf([]);
  const from = cases.valid(using(plan, [leaves(), setState(1, ATTACHED), vacate]), {
    name: "vacate_own_attached",
    about: "The own state is attached.",
    clauses: "segment.vacate_peer",
    results: ["ok", "ok", "ok"],
    bytes: given(),
  });
  const add = (name: string, about: string, operation: Operation, code: string) =>
    cases.invalid(from, member("operations.1", operation), {
      name: `vacate_own_${name}`,
      about,
      clauses: "segment.vacate_peer",
      results: ["ok", "ok", { one_of: ["refused", code] }],
      bytes: kept(),
    });
  add("close", "This endpoint has closed.", { close: true }, "pipe.closed");
  add("closed", "A supervisor has closed it.", setState(1, CLOSED), "pipe.closed");
  add("failed", "It is marked.", setState(1, failed("peer.lost")), "pipe.failed");
  add("replaced", "It has another owner.", setState(1, stateAt(ATTACHED, 1)), "pipe.failed");
}

/** The endpoint must have no other peer, and no channel that is no ring. */
function addPeers(cases: Cases): void {
  const clauses = "segment.vacate_peer";
  const operations = [leaves(), read, vacate];
  const gone = drained([], "peer.closed");
  const other: ChannelPlan = { writer: 1, reader: 2, capacity: 128, control_size: 0, kind: 9 };
  const plan = portOf([], [other, { ...other, writer: NOBODY, reader: NOBODY }], 3);
  const from = cases.valid(using(plan, operations), {
    name: "vacate_among_three",
    about: "A third endpoint has nothing to do with the first one.",
    clauses,
    results: ["ok", gone, "ok"],
    bytes: given(),
  });
  const add = (name: string, about: string, index: number, key: string, value: number) =>
    cases.invalid(from, field(descriptorAt(3, index), "channel_descriptor", key, value), {
      name: `vacate_${name}`,
      about,
      clauses,
      results: ["ok", gone, "refused"],
      bytes: kept(),
    });
  add("third_unknown", "A channel of an unknown kind joins it with the third.", 2, "writer", 0);
  add("both_unknown", "Another channel of such a kind joins the two.", 2, "reader", 0);
  add("nobody_unknown", "One is from it to nobody, or to everybody.", 3, "writer", 0);
  add("unknown_nobody", "One is from nobody, or from everybody, to it.", 3, "reader", 0);
  const ring: ChannelPlan = { writer: 1, reader: 2, capacity: 256 };
  const rings = portOf([], [ring, { ...ring, writer: 2, reader: 1 }], 3);
  const two = cases.valid(using(rings, operations), {
    name: "vacate_of_two_peers",
    about: "This endpoint has two peers, and the first one only this.",
    clauses,
    results: ["ok", gone, "ok"],
    bytes: given(),
  });
  for (const [index, key] of [[2, "writer"], [3, "reader"]] as const) {
    cases.invalid(two, field(descriptorAt(3, index), "channel_descriptor", key, 0), {
      name: `vacate_third_${key}`,
      about: "A ring joins it with the third.",
      clauses,
      results: ["ok", gone, "refused"],
      bytes: kept(),
    });
  }
}

/** What the other has published must have been taken out. */
function addUnread(cases: Cases): void {
  const clauses = "segment.vacate_read";
  const plan = portOf([whole("one"), whole("two")]);
  const items = [text("one"), text("two")];
  const from = cases.valid(using(plan, [leaves(), read, vacate, read]), {
    name: "vacate_read",
    about: "All is read.",
    clauses,
    results: ["ok", drained(items, "peer.closed"), "ok", drained([])],
    bytes: given(),
  });
  const add = (name: string, about: string, operation: Operation, came: Wanted, count: number) =>
    cases.invalid(from, member("operations.1", operation), {
      name: `vacate_${name}`,
      about,
      clauses,
      results: ["ok", came, "refused", drained(items.slice(count), "peer.closed")],
      bytes: kept(),
    });
  add("unread", "Nothing is read: it is refused, and nothing is lost.", still, "ok", 0);
  add("half_read", "One of two is read.", { read: 1 }, { items: items.slice(0, 1) }, 1);
  const since: Operation[] = [
    { set: [store(plan.inward, "tail", 32)] },
    read,
    { set: [store(plan.inward, "tail", 64)] },
    leaves(),
    vacate,
    read,
    vacate,
  ];
  cases.valid(using(plan, since), {
    name: "vacate_published_since",
    about: "The last message came behind the last look, and before the end of its writer.",
    clauses,
    results: [
      "ok",
      drained(items.slice(0, 1)),
      "ok",
      "ok",
      "refused",
      drained(items.slice(1), "peer.closed"),
      "ok",
    ],
    bytes: given(),
  });
  cases.valid(using(plan, [read, leaves(), vacate]), {
    name: "vacate_unasked",
    about: "All was read before: that there is no more `vacate` sees for itself.",
    clauses,
    results: [drained(items), "ok", "ok"],
    bytes: given(),
  });
  const lent: Operation[] = [{ read: 1 }, { peek: true }, leaves(), vacate, { release: true }];
  const both = items.map((item) => ({ items: [item] }));
  cases.valid(using(plan, [...lent, vacate]), {
    name: "vacate_lent",
    about: "The last frame is lent: its bytes are in use.",
    clauses: `${clauses} pipe.lend`,
    results: [...both, "ok", "refused", "ok", "ok"],
    bytes: given(),
  });
  addUnreadEnds(cases, clauses);
}

/** What counts as all that was published. */
function addUnreadEnds(cases: Cases, clauses: string): void {
  const behind = whole("never read");
  const ended = portOf([whole("one"), endFrame(), behind]);
  const one = [text("one")];
  const from = cases.valid(using(ended, [leaves(), read, vacate]), {
    name: "vacate_ended",
    about: "Up to an `end`: what stands behind it nobody reads.",
    clauses: `${clauses} segment.vacate_words`,
    results: ["ok", drained(one, "ended"), "ok"],
    bytes: [
      ...given(),
      controlIs(ended.inward, "tail", 48),
      controlIs(ended.inward, "head", 48),
    ],
  });
  cases.invalid(from, member("operations.0", still), {
    name: "vacate_ended_attached",
    about: "The stream has ended, and its writer is there.",
    clauses: "segment.vacate_peer",
    results: ["ok", drained(one, "ended"), "refused"],
    bytes: kept(stateAt(ATTACHED, GENERATION)),
  });
  const broken = portOf([whole("one"), whole("two", { kind: 7 }), behind]);
  cases.valid(using(broken, [read, vacate]), {
    name: "vacate_fault",
    about: "Up to a fault: the endpoint is marked for it, and given back.",
    clauses: `${clauses} segment.vacate_words ring.fault`,
    results: [drained(one, "frame.kind"), "ok"],
    bytes: [
      ...given(),
      controlIs(broken.inward, "tail", 32),
      controlIs(broken.inward, "head", 32),
    ],
  });
  const cursor: Operation = { set: [store(broken.inward, "tail", 33)] };
  cases.valid(using(broken, [cursor, read, vacate]), {
    name: "vacate_cursor",
    about: "A fault of its cursor: both are made equal to the own one.",
    clauses: `${clauses} segment.vacate_words ring.fault`,
    results: ["ok", drained([], "ring.cursor"), "ok"],
    bytes: [...given(), controlIs(broken.inward, "tail", 0), controlIs(broken.inward, "head", 0)],
  });
  const half = portOf([firstOf(9, utf8("abc"))]);
  cases.valid(using(half, [leaves(), read, vacate]), {
    name: "vacate_inside",
    about: "It died in the middle of a message: nothing more will come of it.",
    clauses: `${clauses} segment.vacate_words`,
    results: ["ok", drained([], "peer.closed"), "ok"],
    bytes: [...given(), controlIs(half.inward, "head", 48), controlIs(half.inward, "tail", 48)],
  });
}

// How the rings go on when an endpoint was given back: cases of `spec/pipe.md`.

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
