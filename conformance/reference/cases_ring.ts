/** The cases of `spec/ring.md`. @module */

import { bytesOf, Cases, controlIs, drained, endFrame, faults, field, member } from "./builder.ts";
import { message, pattern, pipe, reading, reads, stateIs, store, text } from "./builder.ts";
import { whole, writersPipe, writing } from "./builder.ts";
import { fromHex, type Run, toHex, word } from "./bytes.ts";
import type { Operation } from "./case.ts";
import { addAgain } from "./cases_ring_again.ts";
import { fromChapter, place } from "./chapter.ts";
import { failed, recordAt } from "./encode.ts";

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
