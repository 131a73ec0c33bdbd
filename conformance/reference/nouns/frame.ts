/** The cases of `spec/frame.md`. @module */

import { bytesOf, Cases, drained, endFrame, extended, faults, field, firstOf } from "../builder.ts";
import { member, message, pad, part, pattern, pipe, type PipePlan, reading } from "../builder.ts";
import { reads, text, utf8, whole, writersPipe, writing } from "../builder.ts";
import type { Change, Expectation } from "../case.ts";
import { flagOf, fromChapter, limitOf, place } from "../layout.ts";
import { buildExtension, CANCEL, FIRST, type FramePlan, kindOf, LAST, put } from "../encode.ts";
import { TOTAL_UNKNOWN, WHOLE } from "../encode.ts";

const HI = text("hi", 5);
const JSON_CODEC = 2;
const BATCH = 3;

/** All cases of this noun. */
export function frameCases(): Cases {
  const cases = new Cases("frame");
  addExample(cases);
  addSequence(cases);
  addTotals(cases);
  addSizes(cases);
  addPads(cases);
  addEnds(cases);
  addExtensions(cases);
  addCancel(cases);
  addWrites(cases);
  addChecks(cases);
  addExtended(cases);
  return cases;
}

/** Adds an invalid case whose reader gets `items` and then finds a fault. */
function adder(cases: Cases, from: string, at: number) {
  return (
    name: string,
    about: string,
    key: string,
    value: number,
    code: string,
    clauses = "frame.check",
    expect: Expectation = faults([], code),
  ) =>
    cases.invalid(from, field(at, "frame_header", key, value), { name, about, clauses, ...expect });
}

const EXAMPLE: PipePlan = {
  frames: [
    whole("hi", { tag: 5 }),
    firstOf(5, utf8("[1,"), { codec: JSON_CODEC }),
    part(utf8("2]"), { codec: JSON_CODEC }),
    endFrame(),
  ],
};

function addExample(cases: Cases): void {
  const plan = pipe(EXAMPLE);
  const json = message({ codec: JSON_CODEC, text: "[1,2]" });
  cases.valid(reading(plan), {
    name: "example",
    about: "The example of the chapter: a text, a JSON message in two parts, `end`.",
    clauses: "frame.check frame.whole frame.multipart frame.preamble frame.part " +
      "frame.header frame.extent " +
      "frame.contiguous frame.end pipe.order pipe.fault",
    ...reads([HI, json], "ended"),
  });
  const add = adder(cases, "frame/example", plan.at[0]!);
  for (const kind of [0, 7, 127]) {
    add(`kind_${kind}`, "A kind that no frame has.", "kind", kind, "frame.kind");
  }
  const header = "frame.check frame.header";
  add("reserved", "The reserved byte is not 0.", "reserved", 1, "frame.reserved", header);
  for (const flags of [4, 5, 7, 12, 13, 15, 16, 0x83]) {
    const clauses = "frame.check frame.whole frame.header";
    add(`flags_${flags}`, "Flags that no message has.", "flags", flags, "frame.flags", clauses);
  }
  add("size_most", "A size that overflows.", "size", 0xffffffff, "frame.size");
  add("size_overflow", "A size whose extent is 2^32.", "size", 0xfffffff0, "frame.size");
  add("size_unpublished", "It ends behind what was published.", "size", 113, "frame.size");
  const batch = "frame.check frame.batch_whole";
  const broken = adder(cases, "frame/example", plan.at[1]!);
  const behind = faults([HI], "frame.flags");
  broken("batch_first", "A batch in parts.", "codec", BATCH, "frame.flags", batch, behind);
}

function addSequence(cases: Cases): void {
  const { at } = pipe(EXAMPLE);
  const lone = adder(cases, "frame/example", at[0]!);
  const whole = "frame.check frame.multipart frame.whole";
  lone("middle_alone", "A part of no message.", "flags", 0, "frame.sequence", whole);
  lone("last_alone", "The last part of no message.", "flags", LAST, "frame.sequence", whole);
  lone("first_short", "No room for a preamble.", "flags", FIRST, "frame.size", "frame.preamble");
  const add = adder(cases, "frame/example", at[2]!);
  const after = faults([HI], "frame.sequence");
  const clauses = "frame.check frame.multipart frame.contiguous pipe.order pipe.fault";
  const same = "frame.check frame.multipart";
  add("inside", "A message inside another.", "flags", WHOLE, "", clauses, after);
  add("other_kind", "A part of another kind.", "kind", kindOf("call"), "", same, after);
  add("other_codec", "A part of another codec.", "codec", 1, "", same, after);
  add("other_tag", "A part with another tag.", "tag", 1, "", same, after);
  const size = faults([HI], "frame.size");
  add("first_twice", "A second `first`, too short for one.", "flags", FIRST, "", same, size);
  const long = pipe({ frames: [firstOf(24, pattern(4)), part(pattern(20, 4))] });
  cases.valid(reading(long), {
    name: "long_part",
    about: "A last part that is long enough for a preamble.",
    clauses: "frame.multipart frame.check",
    ...reads([message(bytesOf(24))]),
  });
  const second = adder(cases, "frame/long_part", long.at[1]!);
  second("first_again", "A second `first`.", "flags", FIRST, "frame.sequence", same);
  add("cancel_sized", "A cancel with a payload.", "flags", 6, "", "frame.cancel frame.check", size);
}

function addTotals(cases: Cases): void {
  const plan = pipe(EXAMPLE);
  const preamble = plan.at[1]! + 16;
  const add = (name: string, about: string, key: string, value: number, expect: Expectation) =>
    cases.invalid("frame/example", field(preamble, "message_preamble", key, value), {
      name,
      about,
      clauses: name === "total_limit"
        ? "frame.check_total pipe.limit"
        : "frame.check frame.preamble",
      ...expect,
    });
  const total = faults([HI], "frame.total");
  add("total_more", "The parts are less than the total.", "total", 6, total);
  add("total_less", "The parts are more than the total.", "total", 4, total);
  add("total_first", "The first part is more than the total.", "total", 2, total);
  add("preamble_reserved", "Not 0.", "reserved", 2 ** 40, faults([HI], "frame.reserved"));
  const dropped = reads([HI, { report: "message.size" }], "ended");
  add("total_limit", "Above the limit: dropped, its sum not compared.", "total", 5000, dropped);
  cases.valid(reading(plan, { limit: 5 }), {
    name: "total_known",
    about: "A message that the reader takes: the sum of its parts is compared.",
    clauses: "frame.check_total frame.check",
    ...reads([HI, message({ codec: JSON_CODEC, text: "[1,2]" })], "ended"),
  });
}

function addSizes(cases: Cases): void {
  const half = pipe({ frames: [whole(pattern(112)), whole("hi", { tag: 5 })] });
  cases.valid(reading(half), {
    name: "half",
    about: "The largest frame: half the capacity.",
    clauses: "frame.extent frame.check",
    ...reads([message(bytesOf(112)), HI]),
  });
  const clauses = "frame.extent frame.check";
  const big = adder(cases, "frame/half", half.at[0]!);
  big("above_half", "A byte more than half.", "size", 113, "frame.size", clauses);
  cases.invalid("frame/half", field(half.at[1]!, "frame_header", "size", 17), {
    name: "size_beyond_tail",
    about: "It ends behind what was published, though not behind the byte area.",
    clauses: "frame.check ring.publish",
    ...faults([message(bytesOf(112))], "frame.size"),
  });
  const edge = pipe({ start: 192, frames: [whole(pattern(48)), whole("hi", { tag: 5 })] });
  cases.valid(reading(edge), {
    name: "to_the_end",
    about: "A frame that reaches exactly to the end of the byte area.",
    clauses: "frame.extent frame.check ring.pad",
    ...reads([message(bytesOf(48)), HI]),
  });
  const over = adder(cases, "frame/to_the_end", edge.at[0]!);
  over("beyond_the_end", "A byte beyond the byte area.", "size", 49, "frame.size", clauses);
  const least = pipe({ frames: [firstOf(1, utf8("")), part(utf8("x")), whole("")] });
  cases.valid(reading(least), {
    name: "empty_parts",
    about: "A first part and a whole message may be empty.",
    clauses: "frame.part frame.preamble frame.check",
    ...reads([message({ text: "x" }), text("")]),
  });
  const parts = "frame.part frame.check";
  adder(cases, "frame/empty_parts", least.at[0]!)(
    "preamble_short",
    "A first frame that is a byte shorter than a preamble.",
    "size",
    15,
    "frame.size",
    "frame.preamble frame.check",
  );
  const stamped = pipe({ frames: [whole("hi", { tag: 5, time: 0xffffffff })] });
  const timed = reads([HI]);
  cases.valid(reading(stamped), {
    name: "time",
    about: "A frame may say when.",
    clauses: "frame.check",
    ...timed,
  });
  const cancel = pipe({ frames: cancelled() });
  const last = adder(cases, "frame/cancel", cancel.at[1]!);
  last("last_empty", "A last part of size 0.", "flags", LAST, "frame.size", parts);
  last("middle_empty", "A middle part of size 0.", "flags", 0, "frame.size", parts);
}

function addPads(cases: Cases): void {
  const plan = pipe({ start: 192, frames: [pad(64), whole("hi", { tag: 5 })] });
  cases.valid(reading(plan), {
    name: "pad",
    about: "A pad up to the end of the byte area is skipped.",
    clauses: "frame.pad frame.skip frame.check ring.pad",
    ...reads([HI]),
  });
  const add = adder(cases, "frame/pad", plan.at[0]!);
  const clauses = "frame.pad frame.check";
  const skip = "frame.pad frame.skip frame.check ring.pad";
  add("pad_short", "It ends before the byte area does.", "size", 32, "frame.pad", skip);
  add("pad_beyond", "It ends behind the byte area.", "size", 49, "frame.size", clauses);
  add("pad_flags", "A pad has no flags.", "flags", 1, "frame.flags", clauses);
  add("pad_reserved", "Its reserved byte is not 0.", "reserved", 1, "frame.reserved", clauses);
  const odd = { ...pad(64), codec: 77, tag: 0xffffffff, time: 9 };
  cases.valid(reading(pipe({ start: 192, frames: [odd, whole("hi", { tag: 5 })] })), {
    name: "pad_fields",
    about: "Other fields of a pad are not checked.",
    clauses: "frame.check frame.skip",
    ...reads([HI]),
  });
  cases.valid(reading(pipe({ start: 96, frames: [pad(160), whole("hi", { tag: 5 })] })), {
    name: "pad_long",
    about: "A pad may take more than half the capacity.",
    clauses: "frame.check frame.skip",
    ...reads([HI]),
  });
  const inside = [firstOf(4, utf8("ab")), pad(32), part(utf8("cd"))];
  cases.valid(reading(pipe({ start: 176, frames: inside })), {
    name: "pad_inside",
    about: "A pad between the frames of one message.",
    clauses: "frame.contiguous frame.skip",
    ...reads([message({ text: "abcd" })]),
  });
}

function addEnds(cases: Cases): void {
  const plan = pipe({ frames: [whole("hi", { tag: 5 }), endFrame(), whole("more")] });
  cases.valid(reading(plan), {
    name: "after_end",
    about: "What stands behind `end` is not read.",
    clauses: "frame.after_end frame.end pipe.end",
    ...reads([HI], "ended"),
  });
  const end = adder(cases, "frame/after_end", plan.at[1]!);
  const ends = "frame.end frame.check";
  const size = faults([HI], "frame.size");
  end("end_sized", "An `end` has no payload.", "size", 1, "", ends, size);
  const flags = faults([HI], "frame.flags");
  end("end_flags", "An `end` has no flags.", "flags", 3, "", ends, flags);
  const reserved = faults([HI], "frame.reserved");
  end("end_reserved", "Its reserved byte is not 0.", "reserved", 1, "", ends, reserved);
  const other = field(plan.at[1]!, "frame_header", "kind", 128);
  const skipped = reads([HI, text("more")]);
  const about = "With an extension in its place, reading goes on.";
  cases.invalid("frame/after_end", other, {
    name: "no_end",
    about,
    clauses: "frame.after_end pipe.end",
    ...skipped,
  });
  const odd = { ...endFrame(), codec: 9, tag: 8, time: 7 };
  cases.valid(reading(pipe({ frames: [odd] })), {
    name: "end_fields",
    about: "Codec, tag and time of an `end` are not checked.",
    clauses: "frame.check",
    ...reads([], "ended"),
  });
}

function addExtensions(cases: Cases): void {
  const extension = (kind: number): FramePlan => ({
    kind,
    flags: 0xff,
    codec: 200,
    reserved: 9,
    tag: 1,
    time: 2,
    payload: pattern(20),
  });
  const frames = [extension(128), firstOf(4, utf8("ab")), extension(255), part(utf8("cd"))];
  const plan = pipe({ frames });
  cases.valid(reading(plan), {
    name: "extension",
    about: "Extension frames are skipped wherever they stand.",
    clauses: "frame.skip frame.contiguous frame.check",
    ...reads([message({ text: "abcd" })]),
  });
  const add = adder(cases, "frame/extension", plan.at[0]!);
  const clauses = "frame.skip frame.check";
  add("extension_size", "It is above half the capacity.", "size", 113, "frame.size", clauses);
  add("not_extension", "127 is not skipped.", "kind", 127, "frame.kind", clauses);
  const inside = adder(cases, "frame/extension", plan.at[2]!);
  inside("end_inside", "No `end`: it has flags.", "kind", 2, "frame.reserved", "frame.check");
}

function cancelled(): FramePlan[] {
  return [
    firstOf(9, utf8("abc"), { tag: 4 }),
    part(utf8(""), { flags: LAST + CANCEL, tag: 4 }),
    whole("hi", { tag: 5 }),
  ];
}

function addCancel(cases: Cases): void {
  const plan = pipe({ frames: cancelled() });
  cases.valid(reading(plan), {
    name: "cancel",
    about: "A writer gave up in the middle of a message.",
    clauses: "frame.cancel pipe.cancelled frame.check pipe.owed",
    ...reads([{ report: "message.cancelled" }, HI]),
  });
  const add = adder(cases, "frame/cancel", plan.at[1]!);
  const clauses = "frame.cancel frame.check pipe.cancelled pipe.owed";
  const skipped = "The cancel is skipped as an extension: the next message comes inside.";
  add("cancel_missing", skipped, "kind", 128, "frame.sequence", clauses);
  add("cancel_codec", "Another codec.", "codec", 1, "frame.sequence", clauses);
  add("cancel_tag", "Another tag.", "tag", 5, "frame.sequence", clauses);
  add("cancel_kind", "Another kind.", "kind", 5, "frame.sequence", clauses);
  add("cancel_alone", "Only with `last`.", "flags", 4, "frame.flags", "frame.check");
  cases.invalid("frame/cancel", member("limit", 8), {
    name: "cancel_skipped",
    about: "The cancel of a message that was dropped before is not reported.",
    clauses: "pipe.cancelled pipe.report_once pipe.limit",
    ...reads([{ report: "message.size" }, HI]),
  });
}

function addWrites(cases: Cases): void {
  const plan = writersPipe();
  const hex = "80 81 82 83 84";
  const frames = "frame.header frame.whole frame.extent ring.publish ring.tail_owner";
  cases.valid(
    writing(plan, {
      operations: [{ write: { kind: 3, codec: 200, tag: 0xfedcba98, hex } }, { take: true }],
    }),
    {
      name: "write_whole",
      about: "One frame: 5 bytes, kind 3, codec 200, tag 0xfedcba98.",
      clauses: `${frames} segment.little_endian`,
      results: ["ok", drained([{ kind: 3, codec: 200, tag: 0xfedcba98, hex }])],
      bytes: [
        { offset: plan.data, hex: "05 00 00 00 03 03 c8 00 98 ba dc fe" },
        { offset: plan.data + 16, hex },
      ],
    },
  );
  cases.valid(writing(plan, { operations: [{ write: { codec: 1, text: "hi" } }, { end: true }] }), {
    name: "write_end",
    about: "`end` after a message.",
    clauses: "frame.end pipe.end frame.header",
    results: ["ok", "ok"],
    bytes: [{
      offset: plan.data + 32,
      hex: "00 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00",
      about: "end",
    }],
  });
  const large = writersPipe({ capacity: 512 });
  const long = bytesOf(300);
  cases.valid(
    writing(large, {
      operations: [
        { write: { ...long, codec: 200, tag: 6 }, wait: true },
        { write: { text: "" } },
        { take: true },
      ],
    }),
    {
      name: "write_parts",
      about: "A message that is too large for one frame; how it is cut is the writer's choice.",
      clauses: "frame.multipart frame.preamble frame.part frame.contiguous frame.extent",
      results: [
        "ok",
        "ok",
        drained([message({ ...long, codec: 200, tag: 6 }), message({ hex: "" })]),
      ],
    },
  );
  const late = writersPipe({ start: 0xffffffc0 });
  cases.valid(writing(late, { operations: [{ write: bytesOf(64) }, { take: true }] }), {
    name: "write_pad",
    about: "A frame of extent 80 does not fit the 64 bytes that are left: a pad fills them.",
    clauses: "frame.pad ring.pad frame.extent",
    results: ["ok", drained([message(bytesOf(64))])],
    bytes: [
      {
        offset: late.data + 192,
        hex: "30 00 00 00 06 00 00 00 00 00 00 00 00 00 00 00",
        about: "pad",
      },
      { offset: late.control, hex: "50 00 00 00", about: "tail" },
    ],
  });
  cases.invalid("frame/write_pad", member("operations.0.write.count", 48), {
    name: "write_no_pad",
    about: "A frame of extent 64 fits exactly: no pad.",
    clauses: "frame.pad ring.pad",
    results: ["ok", drained([message(bytesOf(48))])],
    bytes: [
      { offset: late.data + 192, hex: "30 00 00 00 01 03 00 00", about: "header" },
      { offset: late.control, hex: "00 00 00 00", about: "tail" },
    ],
  });
}

// The order of a frame's checks, and the examples of `spec/frame.md` as printed.

const HEADER = "frame_header";

/** Adds them to the cases of the frame. */
function addChecks(cases: Cases): void {
  addOrder(cases);
  addDropped(cases);
  addExamples(cases);
}

/** For each check a frame that fails it and those after it. */
function addOrder(cases: Cases): void {
  const all: FramePlan = { kind: 0, reserved: 1, flags: 0, size: 0xfffffff0, codec: 3 };
  const extension = buildExtension(0, pattern(8));
  const frames: [string, string, FramePlan][] = [
    ["kind", "frame.kind", all],
    ["reserved", "frame.reserved", { ...all, kind: 1 }],
    ["flags", "frame.flags", { ...all, kind: 1, reserved: 0 }],
    ["size", "frame.size", { ...all, kind: 1, reserved: 0, codec: 0 }],
    ["size_first", "frame.size", { kind: 1, flags: 1, size: 15, payload: new Uint8Array(15) }],
    ["size_middle", "frame.size", { kind: 1, flags: 0, size: 0 }],
    ["extended_cancel", "frame.flags", { kind: 1, flags: 14, size: 0xfffffff0 }],
    ["extended_size", "frame.size", { kind: 1, flags: 8, size: 0xfffffff0 }],
    ["extension", "frame.extension", { kind: 1, flags: 9, payload: new Uint8Array(16) }],
    ["extension_none", "frame.extension", { kind: 1, flags: 8, size: 0 }],
    ["extended_middle", "frame.size", { kind: 1, flags: 8, extension }],
    ["extended_sequence", "frame.sequence", { kind: 1, flags: 8, extension, payload: utf8("x") }],
    ["sequence", "frame.sequence", { kind: 1, flags: 0, payload: utf8("x") }],
    ["preamble", "frame.reserved", {
      ...firstOf(0, utf8("abc")),
      payload: Uint8Array.of(1, ...new Uint8Array(14), 1, 2, 3),
    }],
    ["total", "frame.total", firstOf(1, utf8("abc"), { kind: 3 })],
    ["pad_flags", "frame.flags", { kind: 6, flags: 1, size: 0xfffffff0 }],
    ["pad_size", "frame.size", { kind: 6, size: 0xfffffff0 }],
    ["end_reserved", "frame.reserved", { kind: 2, reserved: 1, flags: 3, size: 0xfffffff0 }],
    ["end_flags", "frame.flags", { kind: 2, flags: 3, size: 0xfffffff0 }],
  ];
  for (const [name, code, frame] of frames) {
    cases.valid(reading(pipe({ frames: [frame] }), { limit: 0 }), {
      name: `order_${name}`,
      about: `The check for ${code} fails, and some behind it: the first counts.`,
      clauses: "frame.check",
      ...faults([], code),
    });
  }
  const { at } = pipe({ frames: [all] });
  cases.invalid("frame/order_kind", field(at[0]!, HEADER, "kind", 128), {
    name: "order_last",
    about: "The same frame as an extension is above half the capacity.",
    clauses: "frame.check",
    ...faults([], "frame.size"),
  });
}

/** A message that is dropped at its first frame keeps the structure that all have. */
function addDropped(cases: Cases): void {
  const kind = kindOf("call");
  const frames = [firstOf(6, utf8("abc"), { kind }), part(utf8("def"), { kind }), whole("hi")];
  const plan = pipe({ frames });
  const report = { report: "message.kind" };
  const clauses = "frame.check_total frame.check pipe.unknown_kind";
  cases.valid(reading(plan), {
    name: "dropped",
    about: "A call, to a reader that does not offer calls.",
    clauses,
    ...reads([report, text("hi")]),
  });
  const add = (name: string, about: string, at: number, key: string, value: number, code: string) =>
    cases.invalid("frame/dropped", field(plan.at[at]!, HEADER, key, value), {
      name: `dropped_${name}`,
      about,
      clauses,
      ...faults([report], code),
    });
  add(
    "flags",
    "A frame behind the first has flags that no frame has.",
    1,
    "flags",
    5,
    "frame.flags",
  );
  add("empty", "A frame behind the first is empty.", 1, "size", 0, "frame.size");
  add("tag", "A frame behind the first has another tag.", 1, "tag", 1, "frame.sequence");
  add("inside", "A message inside it.", 1, "flags", 3, "frame.sequence");
  cases.invalid("frame/dropped", field(plan.at[0]! + 16, "message_preamble", "total", 2), {
    name: "dropped_first",
    about: "The first frame is checked like any other, its sum included.",
    clauses,
    ...faults([], "frame.total"),
  });
  cases.invalid("frame/dropped", field(plan.at[0]! + 16, "message_preamble", "reserved", 2 ** 40), {
    name: "dropped_preamble",
    about: "The last bytes of its preamble are not 0.",
    clauses,
    ...faults([], "frame.reserved"),
  });
  const large = pipe({ frames: [firstOf(6, utf8("abc")), part(utf8("def")), whole("hi")] });
  cases.valid(reading(large, { limit: 2 }), {
    name: "dropped_for_size",
    about: "A message above the limit.",
    clauses: "frame.check_total frame.check pipe.limit",
    ...reads([{ report: "message.size" }, text("hi")]),
  });
  cases.invalid(
    "frame/dropped_for_size",
    field(large.at[0]! + 16, "message_preamble", "total", 2),
    {
      name: "dropped_for_size_first",
      about: "Its first part alone is above the total, which is above the limit.",
      clauses: "frame.check_total frame.check pipe.limit",
      ...faults([], "frame.total"),
    },
  );
  const cancel = part(utf8(""), { kind, flags: LAST + CANCEL });
  const cut = pipe({ frames: [frames[0]!, cancel, whole("hi")] });
  cases.valid(reading(cut), {
    name: "dropped_cancelled",
    about: "A call that is dropped, and then cancelled: it is reported once.",
    clauses: `${clauses} pipe.report_once`,
    ...reads([report, text("hi")]),
  });
  cases.invalid("frame/dropped_cancelled", field(cut.at[1]!, HEADER, "codec", 1), {
    name: "dropped_cancel_codec",
    about: "A cancel of another codec.",
    clauses,
    ...faults([report], "frame.sequence"),
  });
}

function addExamples(cases: Cases): void {
  const first = fromChapter("frame", [
    "00  02 00 00 00  01 03 01 00  05 00 00 00  00 00 00 00",
    "10  68 69 .. .. .. .. .. ..   .. .. .. .. .. .. .. ..",
    "20  13 00 00 00  01 01 02 00  00 00 00 00  00 00 00 00",
    "30  05 00 00 00 00 00 00 00   00 00 00 00 00 00 00 00",
    "40  5b 31 2c .. .. .. .. ..   .. .. .. .. .. .. .. ..",
    "50  02 00 00 00  01 02 02 00  00 00 00 00  00 00 00 00",
    "60  32 5d .. .. .. .. .. ..   .. .. .. .. .. .. .. ..",
    "70  00 00 00 00  02 00 00 00  00 00 00 00  00 00 00 00",
  ]);
  const codec = 2;
  const printed = pipe();
  place(printed.bytes, printed.data, first);
  put(printed.bytes, printed.control, "ring_control", "tail", 0x80);
  const json = message({ codec, text: "[1,2]" });
  cases.valid(reading(printed), {
    name: "example_printed",
    about: "The first example of the chapter as it is printed, its fill not cleared.",
    clauses: "frame.check frame.header frame.extent frame.end",
    ...reads([HI, json], "ended"),
  });
  const second = fromChapter("frame", [
    "00  30 00 00 00  01 01 00 00  09 00 00 00  00 00 00 00",
    "10  2c 01 00 00 00 00 00 00   00 00 00 00 00 00 00 00",
    "20  .. .. .. .. .. .. .. ..   .. .. .. .. .. .. .. ..",
    "40  00 00 00 00  01 06 00 00  09 00 00 00  00 00 00 00",
  ]);
  const cancelled = pipe();
  place(cancelled.bytes, cancelled.data, second);
  put(cancelled.bytes, cancelled.control, "ring_control", "tail", 0x50);
  cases.valid(reading(cancelled), {
    name: "cancel_printed",
    about: "The second example of the chapter as it is printed: a message that was given up.",
    clauses: "frame.cancel frame.check pipe.cancelled",
    ...reads([{ report: "message.cancelled" }]),
  });
  const at = cancelled.data + 0x40;
  cases.invalid("frame/cancel_printed", field(at, HEADER, "tag", 8), {
    name: "cancel_printed_tag",
    about: "The cancel has another tag.",
    clauses: "frame.cancel frame.check",
    ...faults([], "frame.sequence"),
  });
}

// Header extensions, and messages of unknown size: cases of `spec/frame.md`.

const EXTENDED = flagOf("frame_flag", "extended");
const CANCELLED = LAST + CANCEL;
const APPLICATION = limitOf("extension_application_min");
const ALL = "frame.extension frame.skip_extension frame.check";

/** Adds them to the cases of the frame. */
function addExtended(cases: Cases): void {
  addWhole(cases);
  addSizesExtended(cases);
  addNone(cases);
  addChunks(cases);
  addLimits(cases);
  addPrinted(cases);
  addUnknownTotal(cases);
}

function addWhole(cases: Cases): void {
  const kinds = [APPLICATION + 1, 0, 1, 0xffffffff];
  const frames = [
    ...kinds.map((kind) => extended(whole(utf8("hi")), buildExtension(kind, pattern(24)))),
    endFrame(),
  ];
  const plan = pipe({ capacity: 1024, frames });
  const hi = message({ text: "hi" });
  const from = cases.valid(reading(plan), {
    name: "extended",
    about: "Messages with a header extension of 32 bytes; a reader knows none of their kinds.",
    clauses: ALL,
    ...reads([hi, hi, hi, hi], "ended"),
  });
  cases.invalid(from, field(plan.at[0]!, HEADER, "flags", WHOLE), {
    name: "not_extended",
    about: "Without the flag, the same bytes are the payload.",
    clauses: ALL,
    ...reads(
      [
        message({
          hex: "20 00 00 00 01 00 00 80 00 01 02 03 04 05 06 07 " +
            "08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17 68 69",
        }),
        hi,
        hi,
        hi,
      ],
      "ended",
    ),
  });
  const call = extended(whole("hi", { tag: 5, kind: kindOf("call") }));
  cases.valid(reading(pipe({ frames: [call, whole("hi", { tag: 5 })] })), {
    name: "extended_call",
    about: "A call with a header extension, and none offered.",
    clauses: `${ALL} pipe.unknown_kind`,
    ...reads([{ report: "message.kind" }, HI]),
  });
  const [json, list] = [2, 3];
  const values = [
    extended(whole("grün")),
    extended(whole(utf8("[1,2]"), { codec: json })),
    extended(whole(utf8("[1,2]"), { codec: list }), buildExtension(7, pattern(40))),
    extended(whole(utf8(""), { codec: 1 })),
  ];
  const decoded = (value: unknown) => message({ codec: json, json: value });
  cases.valid(reading(pipe({ capacity: 512, frames: values }), { kind: "decode" }), {
    name: "extended_values",
    about: "Texts, JSON and a batch with header extensions, read as values.",
    clauses: `${ALL} codec.batch_read`,
    ...reads([text("grün"), decoded([1, 2]), decoded(1), decoded(2), text("")]),
  });
  const batch = extended(whole(utf8("[1]"), { codec: 3 }));
  const batches = pipe({ frames: [batch] });
  const good = cases.valid(reading(batches), {
    name: "extended_batch",
    about: "A batch of one frame may be extended.",
    clauses: `${ALL} frame.batch_whole`,
    ...reads([message({ codec: 3, text: "[1]" })]),
  });
  for (const flags of [EXTENDED, FIRST + EXTENDED, LAST + EXTENDED]) {
    cases.invalid(good, field(batches.at[0]!, HEADER, "flags", flags), {
      name: `extended_batch_flags_${flags}`,
      about: "A batch in parts, extended or not.",
      clauses: "frame.check frame.batch_whole",
      ...faults([], "frame.flags"),
    });
  }
}

/** What the extension states of its size, and the frame of its own. */
function addSizesExtended(cases: Cases): void {
  const frame = extended(whole("", { tag: 5 }), buildExtension(APPLICATION, pattern(24)));
  const plan = pipe({ frames: [{ ...frame, payload: pattern(16) }, whole("hi", { tag: 5 })] });
  const count = (size: number) => message({ codec: 1, tag: 5, count: size });
  const from = cases.valid(reading(plan), {
    name: "extension_32",
    about: "A frame of 48 bytes, of which 32 are the header extension.",
    clauses: ALL,
    ...reads([count(16), HI]),
  });
  const add = (size: number, about: string) =>
    cases.invalid(from, field(plan.at[0]! + 16, "header_extension", "size", size), {
      name: `extension_${size.toString(16)}`,
      about,
      clauses: ALL,
      ...faults([], "frame.extension"),
    });
  add(0, "An extension of no bytes.");
  add(8, "One of 8 bytes, less than its own first fields.");
  add(15, "A byte less than the smallest.");
  add(24, "No multiple of 16.");
  add(33, "A byte more than a multiple of 16.");
  add(64, "It reaches 16 bytes beyond its frame.");
  add(2 ** 31, "Negative, to whom takes it for signed.");
  add(2 ** 32 - 16, "The largest multiple of 16.");
  cases.invalid(from, field(plan.at[0]! + 16, "header_extension", "size", 48), {
    name: "extension_all",
    about: "It takes all of the frame: the message is empty.",
    clauses: ALL,
    ...reads([count(0), HI]),
  });
  const least = pipe({ frames: [extended(whole("", { tag: 5 })), whole("hi", { tag: 5 })] });
  const empty = cases.valid(reading(least), {
    name: "extended_least",
    about: "The smallest extended frame: 16 bytes, and no payload.",
    clauses: ALL,
    ...reads([count(0), HI]),
  });
  for (const size of [15, 1, 0]) {
    cases.invalid(empty, field(least.at[0]!, HEADER, "size", size), {
      name: `extended_size_${size}`,
      about: "A frame that has no room for the extension that its flag promises.",
      clauses: ALL,
      ...faults([], "frame.extension"),
    });
  }
  const half = pipe({ frames: [extended(whole(pattern(96), { codec: 1, tag: 5 }))] });
  const largest = cases.valid(reading(half), {
    name: "extended_half",
    about: "The largest extended frame: the extension counts to the half of the capacity.",
    clauses: `${ALL} frame.extent`,
    ...reads([count(96)]),
  });
  cases.invalid(largest, field(half.at[0]!, HEADER, "size", 113), {
    name: "extended_above_half",
    about: "A byte more.",
    clauses: `${ALL} frame.extent`,
    ...faults([], "frame.size"),
  });
}

/** What cannot be extended. */
function addNone(cases: Cases): void {
  const clauses = "frame.extension frame.check";
  const frames = [firstOf(9, utf8("abc")), part(utf8(""), { flags: CANCELLED }), whole("hi")];
  const plan = pipe({ frames });
  const from = cases.valid(reading(plan), {
    name: "cancel_plain",
    about: "A cancel.",
    clauses: `${clauses} frame.cancel`,
    ...reads([{ report: "message.cancelled" }, text("hi")]),
  });
  for (const flags of [CANCELLED + EXTENDED, CANCEL + EXTENDED, FIRST + CANCEL + EXTENDED]) {
    cases.invalid(from, field(plan.at[1]!, HEADER, "flags", flags), {
      name: `cancel_flags_${flags}`,
      about: "No cancel is extended.",
      clauses: `${clauses} frame.cancel`,
      ...faults([], "frame.flags"),
    });
  }
  const rest = pipe({ start: 192, frames: [pad(64), endFrame()] });
  const special = cases.valid(reading(rest), {
    name: "pad_and_end",
    about: "A pad and an `end`.",
    clauses: `${clauses} frame.pad frame.end`,
    ...reads([], "ended"),
  });
  for (const [index, name] of ["pad", "end"].entries()) {
    cases.invalid(special, field(rest.at[index]!, HEADER, "flags", EXTENDED), {
      name: `${name}_extended`,
      about: "Neither is extended.",
      clauses: `${clauses} frame.${name}`,
      ...faults([], "frame.flags"),
    });
  }
}

/** Each chunk of a message may have an extension of its own. */
const CHUNKS: FramePlan[] = [
  extended(firstOf(2, utf8(""))),
  extended(part(utf8("a"), { flags: 0 })),
  extended(part(utf8("b"))),
];

function addChunks(cases: Cases): void {
  const plan = pipe({ frames: [...CHUNKS, whole("hi", { tag: 5 })] });
  const ab = message({ text: "ab" });
  const from = cases.valid(reading(plan), {
    name: "extended_chunks",
    about: "Each chunk of a message is extended: the preamble stands behind the first extension.",
    clauses: `${ALL} frame.preamble frame.part frame.multipart`,
    ...reads([ab, HI]),
  });
  const add = (name: string, about: string, change: Change, code: string, clauses = ALL) =>
    cases.invalid(from, change, { name: `extended_${name}`, about, clauses, ...faults([], code) });
  const [first, middle, last] = plan.at as [number, number, number];
  const size = (at: number, value: number) => field(at, HEADER, "size", value);
  add("first_short", "The preamble is a byte short.", size(first, 31), "frame.size");
  add("first_none", "There is no room for a preamble.", size(first, 16), "frame.size");
  add("middle_empty", "Its part has no byte.", size(middle, 16), "frame.size");
  add("middle_short", "Nor its extension 16.", size(middle, 15), "frame.extension");
  add("last_empty", "Its part has no byte.", size(last, 16), "frame.size");
  add("last_short", "Nor its extension 16.", size(last, 15), "frame.extension");
  const preamble = (key: string, value: number) =>
    field(first + 32, "message_preamble", key, value);
  const total = `${ALL} frame.preamble`;
  add("total", "The extensions do not count.", preamble("total", 50), "frame.total", total);
  add("total_less", "Less than its parts.", preamble("total", 1), "frame.total", total);
  add("preamble", "Not 0.", preamble("reserved", 2 ** 40), "frame.reserved", total);
  const large = pipe({ frames: [extended(firstOf(2, utf8("a"))), part(utf8("b"))] });
  const small = cases.valid(reading(large), {
    name: "extension_and_preamble",
    about: "Behind an extension of 16 bytes stand the preamble and a part.",
    clauses: `${ALL} frame.preamble`,
    ...reads([ab]),
  });
  cases.invalid(small, field(large.at[0]! + 16, "header_extension", "size", 32), {
    name: "extension_over_preamble",
    about: "One of 32 takes the preamble, and leaves a byte.",
    clauses: ALL,
    ...faults([], "frame.size"),
  });
}

function addLimits(cases: Cases): void {
  const clauses = `${ALL} pipe.limit`;
  const chunks = [extended(firstOf(6, utf8("abc"))), extended(part(utf8("def")))];
  const plan = pipe({ frames: [extended(whole("sixsix")), ...chunks] });
  const six = [text("sixsix"), message({ text: "abcdef" })];
  const from = cases.valid(reading(plan, { limit: 6 }), {
    name: "extended_at_limit",
    about: "The limit of a reader does not count the extensions.",
    clauses,
    ...reads(six),
  });
  const size = { report: "message.size" };
  cases.invalid(from, member("limit", 5), {
    name: "extended_above_limit",
    about: "Messages that are a byte larger.",
    clauses,
    ...reads([size, size]),
  });
  const kind = kindOf("call");
  const call = [extended(firstOf(2, utf8("a"), { kind })), extended(part(utf8("b"), { kind }))];
  const dropped = pipe({ frames: [...call, whole("hi", { tag: 5 })] });
  const skipped = cases.valid(reading(dropped), {
    name: "extended_dropped",
    about: "A call that is not offered: what is skipped is extended as well.",
    clauses: `${ALL} frame.check_total`,
    ...reads([{ report: "message.kind" }, HI]),
  });
  cases.invalid(skipped, field(dropped.at[1]! + 16, "header_extension", "size", 48), {
    name: "extended_dropped_size",
    about: "What is skipped is checked.",
    clauses: `${ALL} frame.check_total`,
    ...faults([{ report: "message.kind" }], "frame.extension"),
  });
}

function addPrinted(cases: Cases): void {
  const lines = fromChapter("frame", [
    "00  12 00 00 00  01 0b 01 00  05 00 00 00  00 00 00 00",
    "10  10 00 00 00  01 00 00 80  .. .. .. ..  .. .. .. ..",
    "20  68 69 .. .. .. .. .. ..   .. .. .. .. .. .. .. ..",
  ]);
  const printed = pipe();
  place(printed.bytes, printed.data, lines);
  put(printed.bytes, printed.control, "ring_control", "tail", 0x30);
  cases.valid(reading(printed), {
    name: "extended_printed",
    about: "The third example of the chapter as it is printed.",
    clauses: ALL,
    ...reads([HI]),
  });
}

function addUnknownTotal(cases: Cases): void {
  const clauses = "frame.preamble frame.check";
  const abc = message({ codec: 1, text: "abcdef" });
  const codec = 1;
  const frames = [
    firstOf(TOTAL_UNKNOWN, utf8("ab"), { codec }),
    part(utf8("c"), { codec, flags: 0 }),
    part(utf8("def"), { codec }),
    whole("hi", { tag: 5 }),
  ];
  const plan = pipe({ frames });
  const from = cases.valid(reading(plan), {
    name: "total_unknown",
    about: "A message whose size its writer did not know: the frame with `last` ends it.",
    clauses: `${clauses} pipe.limit_unknown frame.multipart`,
    ...reads([abc, HI]),
  });
  const preamble = plan.at[0]! + 16;
  const total = (name: string, about: string, hex: string) =>
    cases.invalid(from, { at: preamble, structure: "message_preamble", field: "total", hex }, {
      name: `total_unknown_${name}`,
      about,
      clauses: `${clauses} pipe.limit`,
      ...reads([{ report: "message.size" }, HI]),
    });
  const ff = "ff ff ff ff";
  total("less", "One less is a size like any other, above every limit.", `fe ff ff ff ${ff}`);
  total("low", "The lower half alone is a size, too.", `${ff} 00 00 00 00`);
  total("high", "And so is the upper half alone.", `00 00 00 00 ${ff}`);
  const add = (name: string, about: string, change: Change, code: string) =>
    cases.invalid(from, change, {
      name: `total_unknown_${name}`,
      about,
      clauses,
      ...faults([], code),
    });
  const second = plan.at[1]!;
  add("empty", "An empty part.", field(second, HEADER, "size", 0), "frame.size");
  add("tag", "A part with another tag.", field(second, HEADER, "tag", 1), "frame.sequence");
  const reserved = field(preamble, "message_preamble", "reserved", 1);
  add("reserved", "Its preamble's last bytes are not 0.", reserved, "frame.reserved");
  add("inside", "A message inside it.", field(second, HEADER, "flags", WHOLE), "frame.sequence");
  cases.invalid(from, field(plan.at[2]!, HEADER, "flags", 0), {
    name: "total_unknown_open",
    about: "The frame with `last` has none: the message goes on, and the next begins inside it.",
    clauses,
    ...faults([], "frame.sequence"),
  });
  const cancel = part(utf8(""), { codec, flags: CANCELLED });
  cases.valid(
    reading(pipe({ frames: [frames[0]!, frames[1]!, cancel, whole("hi", { tag: 5 })] })),
    {
      name: "total_unknown_cancel",
      about: "A message of unknown size that was given up.",
      clauses: "frame.cancel frame.check pipe.cancelled",
      results: [drained([{ report: "message.cancelled" }, HI])],
    },
  );
}
