/** Giving an endpoint back whose owner is dead: cases of `spec/segment.md`. @module */

import { ATTACHED, bellIs, bellIsNot, Cases, CLOSED, controlIs, drained } from "./builder.ts";
import { endFrame, field, firstOf, member, pipe, reading, recordIs, rungBits } from "./builder.ts";
import { rungIs, setRecord, setState, stateAt, stateIs, store, text, utf8 } from "./builder.ts";
import { VACANT, whole, writersPipe, writing } from "./builder.ts";
import { DEAD, GENERATION, leaves, portOf, read, still, using, vacate } from "./builder_vacate.ts";
import type { Expected, Operation, Wanted } from "./case.ts";
import { type ChannelPlan, descriptorAt, failed, NOBODY, type Placed } from "./encode.ts";
import { put, recordAt } from "./encode.ts";

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
