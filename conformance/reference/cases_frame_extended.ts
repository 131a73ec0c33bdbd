/** Header extensions, and messages of unknown size: cases of `spec/frame.md`. @module */

import { Cases, drained, endFrame, extended, faults, field, firstOf, member } from "./builder.ts";
import { message, pad, part, pattern, pipe, reading, reads, text, utf8 } from "./builder.ts";
import { whole } from "./builder.ts";
import type { Change } from "./case.ts";
import { fromChapter, place } from "./chapter.ts";
import {
  buildExtension,
  CANCEL,
  FIRST,
  type FramePlan,
  kindOf,
  LAST,
  put,
  TOTAL_UNKNOWN,
  WHOLE,
} from "./encode.ts";
import { flagOf, limitOf } from "./layout.ts";

const HI = text("hi", 5);
const HEADER = "frame_header";
const EXTENDED = flagOf("frame_flag", "extended");
const CANCELLED = LAST + CANCEL;
const APPLICATION = limitOf("extension_application_min");
const ALL = "frame.extension frame.skip_extension frame.check";

/** Adds them to the cases of the frame. */
export function addExtended(cases: Cases): void {
  addWhole(cases);
  addSizes(cases);
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
function addSizes(cases: Cases): void {
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
