/** The order of a frame's checks, and the examples of `spec/frame.md` as printed. @module */

import { Cases, faults, field, firstOf, message, part, pipe, reading, reads } from "./builder.ts";
import { pattern, text, utf8, whole } from "./builder.ts";
import { fromChapter, place } from "./chapter.ts";
import { buildExtension, CANCEL, type FramePlan, kindOf, LAST, put } from "./encode.ts";

const HI = text("hi", 5);
const HEADER = "frame_header";

/** Adds them to the cases of the frame. */
export function addChecks(cases: Cases): void {
  addOrder(cases);
  addDropped(cases);
  addExamples(cases);
}

/** For each check a frame that fails it and those behind it. */
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
