/** The cases of `spec/fanout.md`: mode `lose`. @module */

import { ATTACHED, bytesOf, type Cases, CLOSED, drained, endFrame, field } from "../builder.ts";
import { member, message, pattern, stateIs, text, VACANT, whole } from "../builder.ts";
import { controlIs, fanout, joined, numbered, publishes, reads, stores } from "../builder_many.ts";
import { texts, writes } from "../builder_many.ts";
import { fromHex, type Run, toHex, word } from "../bytes.ts";
import type { MessageCase, Operation } from "../case.ts";
import { fromChapter } from "../layout.ts";
import { failed, type FramePlan, kindOf, recordAt } from "../encode.ts";

const STATES = [VACANT, ATTACHED, ATTACHED];
const read: Operation = { read: true };
const take: Operation = { take: true };

/** Adds them. */
export function addFanoutLoss(cases: Cases): void {
  addNumbers(cases);
  addFloor(cases);
  addScribbled(cases);
  addReader(cases);
  addBegin(cases);
  addOverrun(cases);
  addEra(cases);
  addExample(cases);
}

function lose(plan: Parameters<typeof fanout>[0] = {}) {
  return fanout({ lose: true, ...plan });
}

function write(content: string): Operation {
  return { write: { codec: 1, text: content } };
}

/** What a writer puts before each message. */
function addNumbers(cases: Cases): void {
  const plan = lose({ states: STATES, heads: [joined(0)] });
  const operations: Operation[] = [
    write("a"),
    write("b"),
    { write: bytesOf(32) },
    { end: true },
    take,
  ];
  const got = [text("a"), text("b"), message(bytesOf(32))];
  const extension = (at: number, number: number) => ({
    offset: plan.data + at + 16,
    hex: `10 00 00 00 01 00 00 00 ${word(number)} 00 00 00 00`,
    about: `number ${number}`,
  });
  const from = cases.valid(writes(plan, operations), {
    name: "numbers",
    about: "Each message has its number, and the largest is a quarter of the capacity.",
    clauses: "fanout.number fanout.size fanout.writer fanout.ended fanout.whole fanout.never_waits",
    results: ["ok", "ok", "ok", "ok", drained(got, "ended")],
    bytes: [
      extension(0, 0),
      extension(48, 1),
      extension(96, 2),
      controlIs(plan, "tail", 176),
      controlIs(plan, "ended", 177),
    ],
  });
  cases.invalid(from, field(512, "channel_descriptor", "start", 0), {
    name: "numbers_none",
    about: "In mode `hold` there are none.",
    clauses: "fanout.number",
    results: ["ok", "ok", "ok", "ok", drained(got, "ended")],
    bytes: [controlIs(plan, "tail", 128), { offset: plan.data + 16, hex: "61" }],
  });
  cases.invalid(from, member("operations.1", { write: bytesOf(33) }), {
    name: "numbers_large",
    about: "One byte more is refused, and has no number.",
    clauses: "fanout.size fanout.number",
    results: ["ok", "message.size", "ok", "ok", drained([got[0]!, got[2]!], "ended")],
    bytes: [extension(48, 1)],
  });
}

/** How far the writer moves the floor, and that it asks nobody. */
function addFloor(cases: Cases): void {
  const plan = lose({ states: STATES, heads: [joined(0), joined(0)] });
  const small = ["a", "b", "c", "d"].map(write);
  const operations = [...small, write("e"), take];
  const got = ["b", "c", "d", "e"].map((content) => text(content));
  // 240 bytes would be used, and that is what may be.
  const from = cases.valid(writes(plan, operations), {
    name: "floor_stays",
    about: "Five messages fit: nothing is overwritten.",
    clauses: "fanout.floor fanout.floor_step fanout.never_waits",
    results: ["ok", "ok", "ok", "ok", "ok", drained([text("a"), ...got])],
    bytes: [controlIs(plan, "floor", 0), controlIs(plan, "tail", 240)],
  });
  cases.invalid(from, member("operations.4", { write: bytesOf(32) }), {
    name: "floor_step",
    about: "The fifth is larger: the first is overwritten.",
    clauses: "fanout.floor fanout.floor_step fanout.never_waits",
    results: [
      "ok",
      "ok",
      "ok",
      "ok",
      "ok",
      drained([...got.slice(0, 3), message(bytesOf(32))]),
    ],
    bytes: [controlIs(plan, "floor", 48), controlIs(plan, "tail", 256)],
  });
}

/** What stands at the floor may have been changed by anybody. */
function addScribbled(cases: Cases): void {
  const plan = lose({ states: STATES });
  const small = ["a", "b", "c", "d", "e"].map(write);
  const size = (value: number): Operation => ({
    set: [{ offset: plan.data, hex: word(value) }],
  });
  const from = cases.valid(writes(plan, [...small, size(17), write("f")]), {
    name: "floor_passes",
    about: "The first message is overwritten by the sixth.",
    clauses: "fanout.floor_check fanout.floor_step",
    results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "floor", 96), controlIs(plan, "tail", 304)],
  });
  const broken = (name: string, about: string, value: number) =>
    cases.invalid(from, member("operations.5.set.0.hex", word(value)), {
      name,
      about,
      clauses: "fanout.floor_check",
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "floor", 240), controlIs(plan, "tail", 304)],
    });
  broken("floor_huge", "Its size was made as large as can be.", 0xffffffff);
  broken("floor_beyond", "Its size reaches beyond what is published.", 240);
}

function addReader(cases: Cases): void {
  const start = 0xffffff00;
  const plan = lose({ capacity: 512, start });
  const frames = texts("one", "two");
  const publish = (...more: FramePlan[]) => publishes(plan, start, frames[0]!, ...more);
  const from = cases.valid({ ...reads(plan), operations: [publish(frames[1]!), read] }, {
    name: "lose",
    about: "Two messages with their numbers.",
    clauses:
      "fanout.frame_check fanout.expected fanout.reader fanout.tail fanout.begin fanout.validate",
    results: ["ok", drained([text("one"), text("two")])],
    bytes: [stateIs(0, ATTACHED), controlIs(plan, "readers_want", 0)],
  });
  const fault = (name: string, about: string, code: string, frame: FramePlan, more = "") =>
    cases.invalid(from, member("operations.0", publish(frame)), {
      name,
      about,
      clauses: `fanout.frame_check${more}`,
      results: ["ok", drained([text("one")], code)],
      bytes: [stateIs(0, failed(code))],
    });
  const two = (number: number) => numbered("two", number, { codec: 1 });
  const expects = " fanout.expected";
  fault("number_again", "The number of the first again.", "fanout.number", two(0), expects);
  fault("number_ahead", "A number is left out.", "fanout.number", two(2), expects);
  fault("number_high", "Its upper half is 1.", "fanout.number", two(2 ** 32 + 1), expects);
  fault("number_none", "A message without a number.", "frame.extension", whole("two"));
  const other = numbered("two", 1);
  other.extension![4] = 2;
  fault("number_other", "An extension of another kind.", "frame.extension", other);
  const long = numbered("two", 1);
  long.extension = Uint8Array.of(...long.extension!, ...new Uint8Array(16));
  long.extension[0] = 32;
  fault("number_long", "An extension of 32 bytes.", "frame.extension", long);
  const large = numbered(pattern(97), 1);
  fault("number_large", "A frame above a quarter.", "frame.size", large);
  fault("number_unknown", "A frame of an unknown kind.", "frame.kind", { ...two(1), kind: 9 });
  const call = { ...two(1), kind: kindOf("call") };
  cases.invalid(
    from,
    member("operations.0", publish(call, numbered("three", 2, { codec: 1 }), endFrame())),
    {
      name: "number_call",
      about: "The second is a call, and has a number as well.",
      clauses: "fanout.reader fanout.expected",
      results: [
        "ok",
        drained([text("one"), { report: "message.kind" }, text("three")], "ended"),
      ],
    },
  );
  for (
    const [name, value] of [["odd", start + 8], ["beyond", 0x110], ["back", start - 16]] as const
  ) {
    cases.invalid(from, member("operations.0.set.2.hex", word(value)), {
      name: `lose_tail_${name}`,
      about: `\`tail\` is ${value.toString(16)}.`,
      clauses: "fanout.tail fanout.floor_odd fanout.reader",
      results: ["ok", drained([], "ring.cursor")],
      bytes: [stateIs(0, failed("ring.cursor"))],
    });
  }
  cases.invalid(from, field(recordAt(0), "endpoint_record", "state", CLOSED), {
    name: "lose_drained",
    about: "The writer has closed.",
    clauses: "fanout.first_answer fanout.reader",
    results: ["ok", drained([text("one"), text("two")], "peer.closed")],
  });
}

function addBegin(cases: Cases): void {
  const plan = lose({ frames: texts("a", "b", "c") });
  const more = publishes(plan, 144, numbered("d", 3, { codec: 1 }));
  const from = cases.valid({ ...reads(plan), operations: [read, more, read] }, {
    name: "begin_tail",
    about: "A reader begins at the tail.",
    clauses: "fanout.begin fanout.expected",
    results: [drained([]), "ok", drained([text("d")])],
  });
  const all = ["a", "b", "c"].map((content) => text(content));
  cases.invalid(from, member("oldest", true), {
    name: "begin_oldest",
    about: "It begins at the oldest message.",
    clauses: "fanout.begin",
    results: [drained(all), "ok", drained([text("d")])],
  });
  const ended = lose({ frames: [...texts("a", "b", "c"), endFrame()], ended: 161 });
  const late = cases.valid({ ...reads(ended), operations: [read] }, {
    name: "begin_ended",
    about: "It begins at the tail when the writer has ended: it is told.",
    clauses: "fanout.late fanout.begin",
    results: [drained([], "ended")],
    bytes: [stateIs(0, ATTACHED)],
  });
  cases.invalid(late, member("oldest", true), {
    name: "begin_ended_oldest",
    about: "It begins at the oldest message, and reads up to `end`.",
    clauses: "fanout.late fanout.begin",
    results: [drained(all, "ended")],
  });
  const later = lose({ frames: texts("a", "b", "c"), floor: 48 });
  cases.valid({ ...reads(later), oldest: true, operations: [read] }, {
    name: "begin_floor",
    about: "The oldest message is the second, and nothing counts as lost.",
    clauses: "fanout.begin fanout.expected",
    results: [drained(all.slice(1))],
    bytes: [stateIs(0, ATTACHED)],
  });
}

/** The writer has overwritten what a reader had still to read. */
function addOverrun(cases: Cases): void {
  const plan = lose({ frames: texts("a") });
  const rest = texts("a", "b", "c", "d", "e").slice(1);
  const more = publishes(plan, 48, ...rest);
  const got = (...contents: string[]): MessageCase[] => contents.map((each) => text(each));
  const operations = [{ read: 1 } as Operation, more, stores(plan, { floor: 48 }), read];
  const from = cases.valid({ ...reads(plan), oldest: true, operations }, {
    name: "not_overrun",
    about: "What was overwritten has been read.",
    clauses: "fanout.overrun fanout.validate",
    results: [{ items: got("a") }, "ok", "ok", drained(got("b", "c", "d", "e"))],
  });
  const lost = (count: number) => ({ report: "message.lost", count });
  for (const [floor, count] of [[96, 1], [144, 2], [192, 3]] as const) {
    cases.invalid(from, member("operations.2", stores(plan, { floor })), {
      name: `overrun_${count}`,
      about: `It was overrun by ${count}.`,
      clauses: "fanout.overrun fanout.validate",
      results: [
        { items: got("a") },
        "ok",
        "ok",
        drained([lost(count), ...got("b", "c", "d", "e").slice(count)]),
      ],
      bytes: [stateIs(0, ATTACHED)],
    });
  }
  cases.invalid(
    from,
    member("operations.2", {
      set: [
        { offset: plan.data + 96 + 24, hex: word(0) },
        { offset: plan.control + 4, hex: word(96) },
      ],
    }),
    {
      name: "overrun_back",
      about: "The message at the floor has a number that came before.",
      clauses: "fanout.overrun fanout.frame_check",
      results: [{ items: got("a") }, "ok", "ok", drained([], "fanout.number")],
      bytes: [stateIs(0, failed("fanout.number"))],
    },
  );
  cases.invalid(from, member("operations.2", stores(plan, { floor: 256 })), {
    name: "overrun_beyond",
    about: "The floor lies beyond the tail.",
    clauses: "fanout.tail fanout.floor_odd fanout.overrun",
    results: [{ items: got("a") }, "ok", "ok", drained([], "ring.cursor")],
    bytes: [stateIs(0, failed("ring.cursor"))],
  });
  cases.invalid(from, member("operations.2", stores(plan, { floor: 100 })), {
    name: "overrun_odd",
    about: "The floor is no multiple of 16.",
    clauses: "fanout.tail fanout.floor_odd fanout.overrun",
    results: [{ items: got("a") }, "ok", "ok", drained([], "ring.cursor")],
    bytes: [stateIs(0, failed("ring.cursor"))],
  });
  const empty = lose();
  const first = publishes(empty, 0, ...texts("a", "b", "c", "d", "e"));
  const unread = cases.valid({
    ...reads(empty),
    operations: [first, stores(empty, { floor: 96 }), read],
  }, {
    name: "overrun_unread",
    about: "A reader that began where nothing was written has lost the first two messages.",
    clauses: "fanout.overrun fanout.expected fanout.begin",
    results: ["ok", "ok", drained([lost(2), ...got("c", "d", "e")])],
  });
  cases.invalid(unread, member("operations.1", stores(empty, { floor: 0 })), {
    name: "overrun_none",
    about: "Nothing was overwritten.",
    clauses: "fanout.overrun fanout.expected",
    results: ["ok", "ok", drained(got("a", "b", "c", "d", "e"))],
  });
  const unknown = lose({ frames: texts("a") });
  const two = publishes(unknown, 48, ...rest);
  cases.valid({ ...reads(unknown), operations: [two, stores(unknown, { floor: 96 }), read] }, {
    name: "overrun_unknown",
    about: "A reader that began behind messages does not know how many came before its first.",
    clauses: "fanout.expected fanout.overrun",
    results: ["ok", "ok", drained(got("c", "d", "e"))],
    bytes: [stateIs(0, ATTACHED)],
  });
}

/** Positions have 63 bits. */
function addEra(cases: Cases): void {
  const start = 0x7fffff80;
  const plan = lose({ start, states: STATES });
  const large: Operation = { write: bytesOf(32) };
  const from = cases.valid(writes(plan, [large, large, large, large, large]), {
    name: "era",
    about: "The floor passes 2^31.",
    clauses: "fanout.floor fanout.floor_step",
    results: ["ok", "ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "floor", 0x80000000), controlIs(plan, "era", 1)],
  });
  cases.invalid(from, member("operations.4", write("")), {
    name: "era_stays",
    about: "The last message is a small one: the floor stays below.",
    clauses: "fanout.floor fanout.floor_step",
    results: ["ok", "ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "floor", 0x7fffffc0), controlIs(plan, "era", 0)],
  });
  const words = { floor: 0, era: 2 };
  const again = lose({ frames: texts("a") });
  const next = numbered("z", 89478486, { codec: 1 });
  const wrapped: Operation = {
    set: [...setOf(publishes(again, 0, next)), ...setOf(stores(again, words))],
  };
  const overrun = cases.valid({
    ...reads(again),
    oldest: true,
    operations: [{ read: 1 }, wrapped, read],
  }, {
    name: "era_overrun",
    about: "While a reader slept, 2^32 bytes were written: what it sees is not what it expects.",
    clauses: "fanout.validate fanout.overrun fanout.tail fanout.floor_odd",
    results: [
      { items: [text("a")] },
      "ok",
      drained([{ report: "message.lost", count: 89478485 }, text("z")]),
    ],
  });
  cases.invalid(
    overrun,
    member("operations.1", {
      set: [
        ...setOf(publishes(again, 0x80000000, numbered("z", 44739243, { codec: 1 }))),
        ...setOf(stores(again, { floor: 0x80000000, era: 0 })),
      ],
    }),
    {
      name: "era_between",
      about:
        "The writer is between its stores of `floor` and `era`: 2^31 bytes, and no number between.",
      clauses: "fanout.validate fanout.overrun",
      results: [
        { items: [text("a")] },
        "ok",
        drained([{ report: "message.lost", count: 44739242 }, text("z")]),
      ],
    },
  );
}

function setOf(operation: Operation): Run[] {
  return "set" in operation ? operation.set : [];
}

/** The example of the chapter as it is printed. */
function addExample(cases: Cases): void {
  const lines = fromChapter("fanout", [
    "00   2c 00 00 00  01 0b 00 00  00 00 00 00  00 00 00 00",
    "10   10 00 00 00  01 00 00 00  04 00 00 00  00 00 00 00",
    "20   00 01 02 03",
    "60   11 00 00 00  01 0b 01 00  00 00 00 00  00 00 00 00",
    "70   10 00 00 00  01 00 00 00  02 00 00 00  00 00 00 00",
    "80   63",
    "d0   20 00 00 00  06 00 00 00  00 00 00 00  00 00 00 00",
  ]);
  const [control] = fromChapter("fanout", ["000  40 01 00 00  60 00 00 00  00 00 00 00"]);
  const plan = lose({ states: [VACANT, ATTACHED], endpoints: 2 });
  // The last field of a header is the time, which a writer may store.
  const shown = lines.map(({ offset, hex }) => ({
    offset: plan.data + offset,
    hex: [0, 0x60].includes(offset) ? toHex(fromHex(hex).slice(0, 12)) : hex,
  }));
  const operations = [...["a", "b", "c"].map(write), { write: bytesOf(28) }, {
    write: bytesOf(28),
  }];
  cases.valid(writes(plan, operations), {
    name: "example_write",
    about: "The example of the chapter, as its writer leaves it.",
    clauses: "fanout.number fanout.floor fanout.floor_step fanout.writer",
    results: operations.map(() => "ok"),
    bytes: [...shown, { offset: plan.control, hex: control!.hex }],
  });
  const reader = lose({ endpoints: 2, states: [ATTACHED], frames: texts("a", "b", "c") });
  const set: Run[] = [
    ...setOf(publishes(reader, 144, numbered(pattern(28), 3))),
    ...lines.map(({ offset, hex }) => ({ offset: reader.data + offset, hex })),
    { offset: reader.data + 0x20, hex: toHex(pattern(28)) },
    { offset: reader.control, hex: control!.hex },
  ];
  cases.valid({ ...reads(reader), oldest: true, operations: [{ read: 1 }, { set }, read] }, {
    name: "example_read",
    about: "And its reader, which has read the first message and lost the second.",
    clauses: "fanout.overrun fanout.validate fanout.expected",
    results: [
      { items: [text("a")] },
      "ok",
      drained([
        { report: "message.lost", count: 1 },
        text("c"),
        message(bytesOf(28)),
        message(bytesOf(28)),
      ]),
    ],
  });
}
