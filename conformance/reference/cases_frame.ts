/** The cases of `spec/frame.md`. @module */

import { member, message, pad, part, pipe, type PipePlan, reading } from "./builder.ts";
import { bytesOf, Cases, drained, endFrame, faults, field, firstOf, pattern } from "./builder.ts";
import { reads, text, utf8, whole, writersPipe, writing } from "./builder.ts";
import type { Expectation } from "./case.ts";
import { addChecks } from "./cases_frame_check.ts";
import { addExtended } from "./cases_frame_extended.ts";
import { CANCEL, FIRST, type FramePlan, kindOf, LAST, WHOLE } from "./encode.ts";

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
    clauses:
      "frame.check frame.whole frame.multipart frame.preamble frame.part frame.header frame.extent " +
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
    about: "`end` behind a message.",
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
