/** Endpoints that come back, and where they begin: cases of `spec/ring.md`. @module */

import { ATTACHED, bytesOf, Cases, controlIs, drained, field, message } from "./builder.ts";
import { type Pipe, pipe, reading, recordIs, stateAt, stateIs, store } from "./builder.ts";
import { text, VACANT, whole, writersPipe, writing } from "./builder.ts";
import { toImage } from "./bytes.ts";
import type { Operation } from "./case.ts";
import { buildSegment, failed, fillRing, type Placed, put, recordAt } from "./encode.ts";

const AGAIN = "ring.start_again segment.again";
const RECORD = "endpoint_record";

/** Adds them to the cases of the ring. */
export function addAgain(cases: Cases): void {
  addReader(cases);
  addWriter(cases);
  addGenerations(cases);
  addPort(cases);
}

/** A pipe whose reader, endpoint 1, was vacated once when both cursors stood at `from`. */
function readersPipe(from: number, start = 0, contents = ["one", "two"]): Pipe {
  return pipe({
    start,
    from,
    states: [ATTACHED, stateAt(VACANT, 1)],
    segment: { records: [{}, { generation: 1 }] },
    frames: contents.map((content) => whole(content)),
  });
}

function addReader(cases: Cases): void {
  const items = [text("one"), text("two")];
  const attached = stateIs(1, stateAt(ATTACHED, 1));
  const plan = readersPipe(96);
  const from = cases.valid(reading(plan), {
    name: "again_reader",
    about: "A reader that comes back begins at `head` as it stands, in the middle of the ring.",
    clauses: AGAIN,
    results: [drained(items)],
    bytes: [controlIs(plan, "head", 160), attached],
  });
  const low = readersPipe(96);
  put(low.bytes, low.control, "ring_control", "head", 96 + 15);
  cases.valid(reading(low), {
    name: "again_reader_low",
    about: "The four low bits of `head` are set: they count as 0.",
    clauses: AGAIN,
    results: [drained(items)],
    bytes: [controlIs(low, "head", 160), attached, stateIs(0, ATTACHED)],
  });
  cases.invalid(from, field(plan.control, "ring_control", "head", 128), {
    name: "again_reader_second",
    about: "`head` stands at the second message: nothing is read of the first.",
    clauses: AGAIN,
    results: [drained(items.slice(1))],
    bytes: [controlIs(plan, "head", 160)],
  });
  cases.invalid(from, field(plan.control, "ring_control", "head", 160), {
    name: "again_reader_all",
    about: "`head` stands at `tail`: there is nothing to read.",
    clauses: AGAIN,
    results: [drained([])],
    bytes: [controlIs(plan, "head", 160), stateIs(0, ATTACHED)],
  });
  cases.invalid(from, field(plan.control, "ring_control", "head", 176), {
    name: "again_reader_ahead",
    about: "`head` stands ahead of `tail`: a fault, found at the first look.",
    clauses: `${AGAIN} ring.cursor`,
    results: [drained([], "ring.cursor")],
    bytes: [stateIs(0, failed("ring.cursor"))],
  });
  cases.invalid(from, field(plan.control, "ring_control", "head", 112), {
    name: "again_reader_between",
    about: "`head` stands in the middle of a frame: its bytes are checked like any.",
    clauses: `${AGAIN} frame.check`,
    results: [drained([], "frame.kind")],
    bytes: [stateIs(0, failed("frame.kind"))],
  });
  for (const position of [0xffffffe0, 0x7fffffe0]) {
    const wrapped = readersPipe(position, 0x1230);
    cases.valid(reading(wrapped), {
      name: `again_reader_${position.toString(16)}`,
      about: "The cursors stand far from `start`, and pass a boundary of their words.",
      clauses: AGAIN,
      results: [drained(items)],
      bytes: [controlIs(wrapped, "head", (position + 64) % 2 ** 32)],
    });
  }
}

/** A pipe whose writer, endpoint 0, was vacated; what was in the ring lies there still. */
function writerBack(tail: number, head = tail, start = 0): Pipe {
  const plan = writersPipe({
    start,
    from: tail,
    states: [stateAt(VACANT, 1), ATTACHED],
    segment: { records: [{ generation: 1 }] },
  });
  plan.bytes.fill(0xee, plan.data, plan.data + 256);
  put(plan.bytes, plan.control, "ring_control", "head", head);
  return plan;
}

function addWriter(cases: Cases): void {
  const write: Operation[] = [{ write: { text: "one" } }, { write: bytesOf(64) }, { take: true }];
  const taken = drained([message({ text: "one" }), message(bytesOf(64))]);
  const results = ["ok", "ok", taken];
  const plan = writerBack(0x50);
  const header = { offset: plan.data + 0x50, hex: "03 00 00 00 01 03 00 00 00 00 00 00" };
  cases.valid(writing(plan, { operations: write }), {
    name: "again_writer",
    about: "A writer that comes back begins at `tail` as it stands, over whatever lies there.",
    clauses: `${AGAIN} frame.header`,
    results,
    bytes: [
      { ...header, about: "the header of the first frame" },
      controlIs(plan, "tail", 0x50 + 32 + 80),
      stateIs(0, stateAt(ATTACHED, 1)),
    ],
  });
  const low = writerBack(0x50);
  put(low.bytes, low.control, "ring_control", "tail", 0x5f);
  cases.valid(writing(low, { operations: write }), {
    name: "again_writer_low",
    about: "The four low bits of `tail` are set: they count as 0.",
    clauses: AGAIN,
    results,
    bytes: [header, controlIs(low, "tail", 0x50 + 32 + 80)],
  });
  const near = writerBack(0xffffffe0, 0xffffffe0, 0x40);
  cases.valid(writing(near, { operations: write }), {
    name: "again_writer_wraps",
    about: "It begins 32 bytes before 2^32 and the end of the area.",
    clauses: `${AGAIN} ring.pad`,
    results,
    bytes: [controlIs(near, "tail", 80)],
  });
  const end = writerBack(0x50);
  const fill: Operation[] = [112, 32, 48, 0].map((size) => ({ write: bytesOf(size) }));
  const all = cases.valid(writing(end, { operations: fill }), {
    name: "again_writer_room",
    about: "All of the ring but the reserve is its own: the reader has given back up to there.",
    clauses: `${AGAIN} ring.room`,
    results: ["ok", "ok", "ok", "full"],
    bytes: [controlIs(end, "tail", 0x50 + 240), stateIs(1, ATTACHED)],
  });
  const early = { one_of: ["ok", "ring.cursor"] };
  cases.invalid(all, field(end.control, "ring_control", "head", 0x40), {
    name: "again_writer_head",
    about:
      "`head` lies behind where the writer begins: it has gone back, which shows when it is loaded.",
    clauses: `${AGAIN} ring.cursor`,
    results: [early, early, early, "ring.cursor"],
    bytes: [stateIs(1, failed("ring.cursor"))],
  });
}

/** Which word says that an endpoint comes back, and which does not. */
function addGenerations(cases: Cases): void {
  const items = [text("one"), text("two")];
  const plan = readersPipe(96);
  const read: Operation[] = [{ read: true }];
  const add = (generation: number) => {
    const bytes = plan.bytes.slice();
    const state = stateAt(VACANT, generation);
    put(bytes, recordAt(1), RECORD, "generation", generation);
    put(bytes, recordAt(1), RECORD, "state", state);
    return cases.valid(reading({ ...plan, bytes }, { operations: read }), {
      name: `again_${generation.toString(16)}`,
      about: `The generation is 0x${generation.toString(16)}: its low 24 bits stand in the state.`,
      clauses: AGAIN,
      results: [drained(items)],
      bytes: [
        stateIs(1, stateAt(ATTACHED, generation)),
        recordIs(1, "generation", generation),
        controlIs(plan, "head", 160),
      ],
    });
  };
  add(0x1000000);
  add(0xffffff);
  add(0xffffffff);
  const from = add(0x80000005);
  cases.invalid(from, field(recordAt(1), RECORD, "generation", 0), {
    name: "again_bits_only",
    about: "The generation is 0: it begins at `start`, whatever the state has above it.",
    clauses: `${AGAIN} ring.start`,
    results: [drained([], "frame.kind")],
    bytes: [stateIs(1, stateAt(ATTACHED, 5)), stateIs(0, failed("frame.kind"))],
  });
  cases.invalid(from, field(recordAt(1), RECORD, "state", stateAt(VACANT, 0x1234)), {
    name: "again_other_bits",
    about: "The state has other bits than the generation: the word counts, and the bits stay.",
    clauses: AGAIN,
    results: [drained(items)],
    bytes: [stateIs(1, stateAt(ATTACHED, 0x1234)), recordIs(1, "generation", 0x80000005)],
  });
  const first = pipe({ from: 96 });
  put(first.bytes, first.control, "ring_control", "tail", 0);
  cases.valid(reading(first), {
    name: "again_never",
    about: "An endpoint that was never vacated does not look at its own cursor.",
    clauses: `${AGAIN} ring.start`,
    results: [drained([])],
    bytes: [stateIs(0, ATTACHED)],
  });
  const late = readersPipe(96);
  const later: Operation[] = [
    { set: [store(late, "head", 128)] },
    { read: 1 },
    { read: true },
  ];
  cases.valid(reading(late, { operations: later }), {
    name: "again_loaded_once",
    about: "Its own cursor is loaded when it attaches, and never again.",
    clauses: AGAIN,
    results: ["ok", { items: [text("one")] }, drained([text("two")])],
  });
}

/** Endpoint 1 of a port that was vacated: both of its rings go on where they stand. */
function addPort(cases: Cases): void {
  const segment = buildSegment({
    endpoints: 2,
    channels: [
      { writer: 0, reader: 1, capacity: 256 },
      { writer: 1, reader: 0, capacity: 256, start: 0x40 },
    ],
    states: [ATTACHED, stateAt(VACANT, 3)],
    records: [{}, { generation: 3 }],
  });
  const [inward, outward] = segment.channels as [Placed, Placed];
  fillRing(segment, 0, [whole("hi")], 0xc0);
  put(segment.bytes, inward.control, "ring_control", "head", 0xc0);
  put(segment.bytes, outward.control, "ring_control", "tail", 0xfffffff0);
  put(segment.bytes, outward.control, "ring_control", "head", 0xfffffff0);
  const from = cases.valid({
    kind: "read",
    image: toImage(segment.bytes),
    role: "port",
    endpoint: 1,
    channel: 1,
    limit: 4096,
    operations: [{ read: true }, { write: bytesOf(32) }, { take: true }],
  }, {
    name: "again_port",
    about: "A port that comes back begins both of its rings where they stand.",
    clauses: AGAIN,
    results: [drained([text("hi")]), "ok", drained([message(bytesOf(32))])],
    bytes: [
      controlIs(inward, "head", 0xe0),
      controlIs(outward, "tail", 0x30),
      stateIs(1, stateAt(ATTACHED, 3)),
    ],
  });
  cases.invalid(from, field(recordAt(1), RECORD, "generation", 0), {
    name: "again_port_not",
    about: "It was never vacated: both begin at `start`.",
    clauses: `${AGAIN} ring.start`,
    results: [drained([], "frame.kind"), "peer.failed", drained([])],
  });
}
