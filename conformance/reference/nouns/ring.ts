/** The cases of `spec/ring.md`. @module */

import { ATTACHED, bytesOf, Cases, controlIs, drained, endFrame, faults } from "../builder.ts";
import { field, member, message, pattern, type Pipe, pipe, reading, reads } from "../builder.ts";
import { recordIs, stateAt, stateIs, store, text, VACANT, whole, writersPipe } from "../builder.ts";
import { writing } from "../builder.ts";
import { fromHex, type Run, toHex, toImage, word } from "../bytes.ts";
import type { Operation } from "../case.ts";
import { fromChapter, place } from "../layout.ts";
import { buildSegment, failed, fillRing, type Placed, put, recordAt } from "../encode.ts";

const CONTROL = "ring_control";

/** All cases of this noun. */
export function ringCases(): Cases {
  const cases = new Cases("ring");
  addReads(cases);
  addTailFaults(cases);
  addHeadFaults(cases);
  addRoom(cases);
  addClaims(cases);
  addFault(cases);
  addExamples(cases);
  addAgain(cases);
  return cases;
}

function addReads(cases: Cases): void {
  const seen = [message(bytesOf(100)), text("hello")];
  const example = pipe({ start: 0xffffff80, frames: [whole(pattern(100)), whole("hello")] });
  cases.valid(reading(example), {
    name: "wrap",
    about: "A ring that starts at 0xffffff80: the cursors pass 2^32.",
    clauses: "ring.start ring.cursor ring.release ring.release_all ring.head_owner ring.fault",
    ...reads(seen, "nothing", [
      controlIs(example, "head", 0x20),
      controlIs(example, "tail", 0x20),
      stateIs(0, 1),
    ]),
  });
  const add = (name: string, about: string, value: number) =>
    cases.invalid("ring/wrap", field(example.control, CONTROL, "tail", value), {
      name,
      about,
      clauses:
        "ring.cursor ring.fault ring.fault_stop ring.release ring.release_all ring.head_owner",
      results: [drained([], "ring.cursor")],
      bytes: [stateIs(0, failed("ring.cursor")), controlIs(example, "head", 0xffffff80)],
    });
  add("tail_odd", "`tail` stands between two frames' places.", 0x28);
  add("tail_ahead", "`tail` is more than the capacity ahead.", 0x90);
  add("tail_behind", "`tail` is behind the head.", 0xffffff70);
  add("tail_far", "`tail` is half of all positions ahead.", 0x7fffff80);
  const full = pipe({ frames: [whole(pattern(112)), whole(pattern(96)), endFrame()] });
  cases.valid(reading(full), {
    name: "full",
    about: "All of the capacity is used, the reserve by `end`.",
    clauses: "ring.cursor ring.room",
    ...reads([message(bytesOf(112)), message(bytesOf(96))], "ended"),
  });
  cases.invalid("ring/wrap", field(384, "channel_descriptor", "start", 0x80000000), {
    name: "start_differs",
    about: "The descriptor states another start than the writer began at.",
    clauses: "ring.start",
    ...faults([], "ring.cursor"),
  });
  const exact = pipe({ start: 128, frames: [whole(pattern(112)), whole("hi")] });
  cases.valid(reading(exact), {
    name: "no_pad",
    about: "A frame that ends with the byte area needs no pad.",
    clauses: "ring.pad",
    ...reads([message(bytesOf(112)), text("hi")]),
  });
}

function addTailFaults(cases: Cases): void {
  const plan = pipe({ frames: [whole("one"), whole("two")] });
  const store48 = (
    value: number,
  ) => [{ set: [store(plan, "tail", value)] }, { read: true as const }];
  const one = text("one");
  const two = text("two");
  const from = cases.valid({
    ...reading(plan),
    operations: [{ set: [store(plan, "tail", 32)] }, { read: true }, ...store48(64)],
  }, {
    name: "tail_advances",
    about: "A second look at `tail` shows a second message.",
    clauses: "ring.cursor ring.release_all ring.head_owner",
    results: ["ok", drained([one]), "ok", drained([two])],
    bytes: [controlIs(plan, "head", 64), controlIs(plan, "reader_wants", 0)],
  });
  const clauses =
    "ring.cursor ring.fault ring.fault_stop pipe.fault ring.release_all ring.tail_owner";
  for (const [name, value] of [["back", 16], ["odd", 63], ["beyond", 304]] as const) {
    cases.invalid(from, member("operations.2.set.0.hex", word(value)), {
      name: `tail_later_${name}`,
      about: `\`tail\` moves from 32 to ${value}.`,
      clauses,
      results: ["ok", drained([one]), "ok", drained([], "ring.cursor")],
      bytes: [stateIs(0, failed("ring.cursor")), controlIs(plan, "head", 32)],
    });
  }
}

function addHeadFaults(cases: Cases): void {
  const plan = writersPipe();
  const full = [{ write: bytesOf(112) }, { write: bytesOf(80) }] as const;
  const from = cases.valid(
    writing(plan, {
      operations: [...full, { set: [store(plan, "head", 128)] }, { write: bytesOf(80) }],
    }),
    {
      name: "head_advances",
      about: "The reader has given back the first frame: the next fits, behind a pad.",
      clauses: "ring.cursor ring.room ring.pad ring.tail_owner ring.publish",
      results: ["ok", "ok", "ok", "ok"],
      bytes: [
        { offset: plan.data + 224, hex: "10 00 00 00 06 00 00 00 00 00 00 00 00 00 00 00" },
        { offset: plan.data, hex: "50 00 00 00 01 03 00 00 00 00 00 00" },
        controlIs(plan, "tail", 352),
        stateIs(1, 1),
      ],
    },
  );
  const fault = {
    results: ["ok", "ok", "ok", "ring.cursor"],
    bytes: [controlIs(plan, "tail", 224), stateIs(1, failed("ring.cursor"))],
  };
  const values: [string, number][] = [["odd", 129], ["ahead", 240], ["behind", 0xfffffff0]];
  for (const [name, value] of values) {
    cases.invalid(from, member("operations.2.set.0.hex", word(value)), {
      name: `head_${name}`,
      about: `\`tail\` is 224, and \`head\` moves from 0 to ${value}.`,
      clauses: "ring.cursor ring.fault ring.fault_stop pipe.fault ring.tail_owner ring.publish",
      ...fault,
    });
  }
  cases.invalid(from, member("operations.2.set.0.hex", word(0)), {
    name: "head_stays",
    about: "The reader has given nothing back: there is no room.",
    clauses: "ring.room",
    results: ["ok", "ok", "ok", "full"],
    bytes: [controlIs(plan, "tail", 224), { offset: plan.data, hex: "70 00 00 00" }],
  });
  const again = cases.valid(
    writing(plan, {
      operations: [
        ...full,
        { set: [store(plan, "head", 128)] },
        { write: bytesOf(48) },
        { set: [store(plan, "head", 224)] },
        { write: bytesOf(112) },
      ],
    }),
    {
      name: "head_advances_twice",
      about: "`head` goes on from where it was.",
      clauses: "ring.cursor",
      results: ["ok", "ok", "ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "tail", 448)],
    },
  );
  cases.invalid(again, member("operations.4.set.0.hex", word(112)), {
    name: "head_back",
    about: "`head` goes back.",
    clauses: "ring.cursor ring.fault ring.fault_stop",
    results: ["ok", "ok", "ok", "ok", "ok", "ring.cursor"],
    bytes: [stateIs(1, failed("ring.cursor"))],
  });
}

function addRoom(cases: Cases): void {
  const plan = writersPipe();
  const from = cases.valid(
    writing(plan, {
      operations: [
        { write: bytesOf(112) },
        { write: bytesOf(80) },
        { write: { hex: "" } },
        { end: true },
        { take: true },
      ],
    }),
    {
      name: "reserve",
      about: "Messages may take all but 16 bytes, and `end` takes those.",
      clauses: "ring.room pipe.end_now frame.end pipe.end",
      results: [
        "ok",
        "ok",
        "ok",
        "ok",
        drained([message(bytesOf(112)), message(bytesOf(80)), message({ hex: "" })], "ended"),
      ],
      bytes: [controlIs(plan, "tail", 256)],
    },
  );
  cases.invalid(from, member("operations.2.write.hex", "00"), {
    name: "reserve_kept",
    about: "A message of one byte would take the last 16 bytes.",
    clauses: "ring.room",
    results: [
      "ok",
      "ok",
      "full",
      "ok",
      drained([message(bytesOf(112)), message(bytesOf(80))], "ended"),
    ],
    bytes: [controlIs(plan, "tail", 240)],
  });
  cases.invalid(from, member("operations.3", { write: { hex: "" } }), {
    name: "reserve_for_end",
    about: "What `end` may take, an empty message may not.",
    clauses: "ring.room pipe.end_now",
    results: [
      "ok",
      "ok",
      "ok",
      "full",
      drained([message(bytesOf(112)), message(bytesOf(80)), message({ hex: "" })]),
    ],
    bytes: [controlIs(plan, "tail", 240)],
  });
}

/** The peer, which never does that, puts `head` back, to show who stores it once more. */
function addFault(cases: Cases): void {
  const frames = ["one", "two", "three", "four"].map((content) => whole(content));
  const plan = pipe({ capacity: 4096, frames });
  const three = ["one", "two", "three"].map((content) => text(content));
  const back: Operation = { set: [store(plan, "head", 0)] };
  const from = cases.valid(reading(plan, { operations: [{ read: 3 }, back, { read: true }] }), {
    name: "released_later",
    about: "Three messages are read, then a fourth: all room is the writer's again.",
    clauses: "ring.fault ring.fault_stop ring.release_all ring.head_owner",
    results: [{ items: three }, "ok", drained([text("four")])],
    bytes: [controlIs(plan, "head", 128)],
  });
  cases.invalid(from, member("operations.2", { close: true }), {
    name: "close_stores_nothing",
    about: "The reader closes: `head` is not stored any more.",
    clauses: "pipe.close pipe.close_stores ring.release_all",
    results: [{ items: three }, "ok", "ok"],
    bytes: [controlIs(plan, "head", 0)],
  });
  cases.invalid(from, field(plan.at[3]!, "frame_header", "kind", 7), {
    name: "fault_stores_nothing",
    about: "The fourth is broken: `head` is not stored any more, for the three before it neither.",
    clauses: "ring.fault ring.fault_stop ring.release_all ring.head_owner",
    results: [{ items: three }, "ok", drained([], "frame.kind")],
    bytes: [controlIs(plan, "head", 0), stateIs(0, failed("frame.kind"))],
  });
}

/** The example of the chapter as it is printed. */
function addExamples(cases: Cases): void {
  const hello = fromChapter("ring", [
    "00          05 00 00 00  01 03 00 00  00 00 00 00  00 00 00 00",
    "10          68 65 6c 6c 6f",
  ]);
  const [pad, next] = fromChapter("ring", [
    "c0          30 00 00 00  06 00 00 00  00 00 00 00  00 00 00 00",
    "00          70 00 00 00  01 03 00 00  00 00 00 00  00 00 00 00",
  ]) as [Run, Run];
  const printed = pipe({ start: 0xffffff80, frames: [whole(pattern(112))] });
  place(printed.bytes, printed.data, hello);
  const published = { set: [store(printed, "tail", 0x20)] };
  cases.valid(reading(printed, { operations: [{ read: true }, published, { read: true }] }), {
    name: "example_read",
    about: "The example of the chapter: 128 bytes are read, then the frame behind 2^32.",
    clauses: "ring.cursor ring.release_all ring.start",
    results: [
      drained([message(bytesOf(112))]),
      "ok",
      drained([message({ text: "hello" })]),
    ],
    bytes: [controlIs(printed, "head", 0x20)],
  });
  const plan = writersPipe({ start: 0xffffff80 });
  const at = ({ offset, hex }: Run) => ({ offset: plan.data + offset, hex });
  // The last field of a header is the time, which a writer may store.
  const timeless = (run: Run) => at({ ...run, hex: toHex(fromHex(run.hex).slice(0, 12)) });
  const write: Operation = { write: { text: "hello" } };
  const bell = (value: number) => ({ offset: recordAt(1), hex: word(value) });
  const asked: Operation = { set: [store(plan, "reader_wants", 0x11), bell(0x40)] };
  const from = cases.valid(
    writing(plan, { operations: [{ write: bytesOf(112) }, { take: true }, asked, write] }),
    {
      name: "example_write",
      about: "The example of the chapter: the frame that the reader asked for is published.",
      clauses: "ring.publish ring.tail_owner ring.start frame.header wait.exchange",
      results: ["ok", drained([message(bytesOf(112))]), "ok", "ok"],
      bytes: [
        timeless(hello[0]!),
        at(hello[1]!),
        controlIs(plan, "tail", 0x20),
        controlIs(plan, "head", 0),
        controlIs(plan, "reader_wants", 0),
        { ...bell(0x41), about: "bell of 1" },
      ],
    },
  );
  cases.invalid(from, member("operations.2.set.0.hex", word(0)), {
    name: "example_nobody_asks",
    about: "The reader asks for nothing.",
    clauses: "wait.exchange",
    results: ["ok", drained([message(bytesOf(112))]), "ok", "ok"],
    bytes: [controlIs(plan, "tail", 0x20), { ...bell(0x40), about: "bell of 1" }],
  });
  const zero = writersPipe();
  const around: Operation[] = [{ write: bytesOf(112) }, { write: bytesOf(48) }, { take: true }];
  const before = ["ok", "ok", drained([message(bytesOf(112)), message(bytesOf(48))])];
  const wrapped = cases.valid(
    writing(zero, { operations: [...around, { write: bytesOf(112) }, { take: true }] }),
    {
      name: "example_wrap",
      about: "The same chapter: at position 192 a frame of 112 bytes stands behind a pad.",
      clauses: "ring.pad frame.pad frame.extent",
      results: [...before, "ok", drained([message(bytesOf(112))])],
      bytes: [{ ...at(pad), about: "pad" }, timeless(next), controlIs(zero, "tail", 384)],
    },
  );
  cases.invalid(wrapped, member("operations.3", { write: bytesOf(48) }), {
    name: "example_no_wrap",
    about: "One of 48 bytes fits before the end.",
    clauses: "ring.pad frame.pad",
    results: [...before, "ok", drained([message(bytesOf(48))])],
    bytes: [controlIs(zero, "tail", 256)],
  });
}

function addClaims(cases: Cases): void {
  const plan = writersPipe();
  const held: Operation[] = [
    { claim: bytesOf(112), size: 112 },
    { claim: bytesOf(80), size: 80 },
    { write: bytesOf(48), wait: true },
    { take: true },
  ];
  const full = cases.valid(writing(plan, { operations: held }), {
    name: "publish_before_wait",
    about: "Two messages are finished; a write that waits for room publishes them first.",
    clauses: "ring.publish_all ring.publish",
    results: [
      "ok",
      "ok",
      "wait.timeout",
      drained([message(bytesOf(112)), message(bytesOf(80))]),
    ],
  });
  cases.invalid(full, member("operations.1", { claim: bytesOf(80), size: 80, abandon: true }), {
    name: "publish_no_wait",
    about: "One was given up: there is room, and one store publishes all.",
    clauses: "ring.publish_all ring.publish",
    results: ["ok", "ok", "ok", drained([message(bytesOf(112)), message(bytesOf(48))])],
  });
  cases.valid(
    writing(plan, {
      operations: [
        { claim: { text: "a" }, size: 40 },
        { claim: { text: "b", tag: 2 }, size: 1 },
        { take: true },
        { publish: true },
        { take: true },
      ],
    }),
    {
      name: "batch",
      about: "Two messages are finished in their places, and made visible by one store.",
      clauses: "ring.publish ring.batch",
      results: [
        "ok",
        "ok",
        drained([]),
        "ok",
        drained([message({ text: "a" }), message({ text: "b", tag: 2 })]),
      ],
      bytes: [controlIs(plan, "tail", 64)],
    },
  );
  cases.valid(
    writing(plan, {
      operations: [
        { claim: { text: "a" }, size: 100, abandon: true },
        { write: { text: "b" } },
        { take: true },
      ],
    }),
    {
      name: "abandon",
      about: "A claim that is given up leaves no trace.",
      clauses: "ring.tail_owner",
      results: ["ok", "ok", drained([message({ text: "b" })])],
      bytes: [controlIs(plan, "tail", 32)],
    },
  );
}

// Endpoints that come back, and where they begin: cases of `spec/ring.md`.

const AGAIN = "ring.start_again segment.again";
const RECORD = "endpoint_record";

/** Adds them to the cases of the ring. */
function addAgain(cases: Cases): void {
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
    about: "`head` lies behind where the writer begins: it has gone back, which " +
      "shows when it is loaded.",
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
