/**
 * Cases of streams: prefaces, and frames that arrive.
 *
 * @module
 */

import { fromChapter } from "../reference/chapter.ts";
import { kindOf, LAST } from "../reference/encode.ts";
import { flagOf, limitOf, reasonOf } from "../reference/layout.ts";
import {
  arrive,
  at,
  BEHIND,
  bytes,
  chunks,
  CLOSED,
  drained,
  END,
  field,
  frame,
  HI,
  message,
  preface,
  read,
  report,
  SMALL,
  stated,
  type StreamCases,
  take,
  taken,
  text,
  upTo,
} from "./builder.ts";
import type { StreamCase } from "./case.ts";
import { CLOSE, CREDIT, FAIL } from "./taker.ts";

/** Where the frame behind "hi" begins. */
const SECOND = BEHIND + 32;

export function arrivalCases(cases: StreamCases): void {
  example(cases);
  prefaces(cases);
  headers(cases);
  parts(cases);
}

/** What the chapter shows of one direction. */
const SHOWN = fromChapter("stream", [
  "00  4d 49 4c 4c  ff 0d 0a 0a  01 00 00 00  00 10 00 00   magic",
  "10  00 40 00 00  00 00 00 00  00 00 00 00  00 00 00 00   window 16384",
  "20  02 00 00 00  01 03 01 00  05 00 00 00  00 00 00 00   size 2, data, first|last, text",
  '30  68 69 00 00  00 00 00 00  00 00 00 00  00 00 00 00   "hi"',
  "40  00 00 00 00  02 00 00 00  00 00 00 00  00 00 00 00   end",
  "50  00 00 00 00  11 00 00 00  00 00 00 00  00 00 00 00   close",
]);
const FAIL_SHOWN = fromChapter("stream", [
  "50  00 00 00 00  12 00 00 00  22 00 00 00  00 00 00 00   fail",
]);

function example(cases: StreamCases): void {
  const shown = cases.valid(
    "example",
    "The example of the chapter: a message, `end`, and a close.",
    "stream.frames stream.pieces stream.closed stream.hang_up",
    SMALL,
    [
      take(stated()),
      arrive(SHOWN.map(({ hex }) => hex)),
      read([HI], "ended"),
      [{ take: true }, taken([], { ends: true })],
    ],
  );
  cases.invalid(
    "example_fail",
    "Its peer has found a fault instead.",
    "stream.failed stream.hang_up",
    shown,
    {
      member: "operations.1.arrive",
      value: [...SHOWN, ...FAIL_SHOWN].map(({ hex }) => hex).toSpliced(4, 2),
    },
    2,
    drained([HI], "pipe.failed", "frame.reserved"),
  );
}

function prefaces(cases: StreamCases): void {
  const own = cases.valid(
    "preface",
    "A side states what it takes, without waiting for its peer.",
    "stream.preface",
    SMALL,
    [take(stated())],
  );
  cases.invalid(
    "preface_window",
    "Another window.",
    "stream.preface",
    own,
    { member: "own.window", value: 4096 },
    0,
    taken([stated({ largest: 128, window: 4096 })]),
  );
  const both = cases.valid(
    "preface_both",
    "The peer states what it takes, and writes at once.",
    "stream.preface_check",
    SMALL,
    [arrive(preface(), text("hi", 5)), read([HI]), take(stated())],
  );
  const largest = limitOf("stream_largest_min");
  const most = limitOf("stream_window_max");
  const failures: [string, string, string, number, number][] = [
    ["magic", "stream.magic", "magic", 0x4c4c494e, 4],
    ["major", "stream.version", "version_major", 2, 2],
    ["feature", "stream.feature", "required_features", 1, 4],
    ["feature_last", "stream.feature", "required_features", 0x80000000, 4],
    ["largest_small", "stream.preface", "largest", largest - 16, 4],
    ["largest_odd", "stream.preface", "largest", largest + 8, 4],
    ["largest_zero", "stream.preface", "largest", 0, 4],
    ["largest_above", "stream.preface", "largest", SMALL.window + 16, 4],
    ["window_small", "stream.preface", "window", largest - 16, 4],
    ["window_odd", "stream.preface", "window", 260, 4],
    ["window_large", "stream.preface", "window", most + 16, 4],
  ];
  for (const [name, code, of, value, size] of failures) {
    cases.invalid(
      `preface_${name}`,
      `The preface of the peer: \`${of}\` is ${value}.`,
      "stream.preface_check stream.fault stream.fail",
      both,
      field(0, 0, "stream_preface", of, value, size),
      1,
      drained([], "peer.failed", code),
      taken([stated(), { fail: code }], { ends: true }),
    );
  }
  cases.invalid(
    "preface_line_ends",
    "A transport that changes line ends.",
    "stream.preface_check",
    both,
    {
      operation: 0,
      at: 0,
      structure: "stream_preface",
      field: "magic",
      hex: "4d 49 4c 4c ff 0a 0a 01",
    },
    1,
    drained([], "peer.failed", "stream.magic"),
    taken([stated(), { fail: "stream.magic" }], { ends: true }),
  );
  const ignored: [string, string, number, number][] = [
    ["minor", "version_minor", 7, 2],
    ["optional", "optional_features", 0x80000000, 4],
    ["reserved", "reserved", 1, 4],
    ["most", "window", most, 4],
  ];
  for (const [name, of, value, size] of ignored) {
    cases.invalid(
      `preface_${name}`,
      `What does no harm in a preface: \`${of}\` is ${value}.`,
      "stream.preface_check",
      both,
      field(0, 0, "stream_preface", of, value, size),
      1,
      drained([HI]),
    );
  }
}

function headers(cases: StreamCases): void {
  const two = cases.valid(
    "frames",
    "Two messages, the second without fill, and `end`.",
    "stream.frames stream.check stream.pieces stream.fault stream.fail stream.control",
    SMALL,
    [arrive(preface(), text("hi", 5), bytes(16), END), read([HI, message({ count: 16 })], "ended")],
  );
  const clauses = "stream.check stream.pieces stream.fault";
  const rows: [string, string, string, string, number, number][] = [
    ["kind_zero", "A frame of kind 0.", "frame.kind", "kind", 0, 1],
    ["kind_pad", "A pad.", "frame.kind", "kind", kindOf("pad"), 1],
    ["kind_low", "A kind that is unknown.", "frame.kind", "kind", 15, 1],
    ["kind_high", "The kind behind the last.", "frame.kind", "kind", 19, 1],
    ["reserved", "The reserved byte is not 0.", "frame.reserved", "reserved", 1, 1],
    ["flags", "An unknown flag.", "frame.flags", "flags", 16, 1],
    ["flags_cancel", "A cancel without `last`.", "frame.flags", "flags", 4, 1],
    ["flags_credit", "A credit with flags.", "frame.flags", "kind", 16, 1],
    ["size_large", "A frame above the own `largest`.", "frame.size", "size", 113, 4],
    ["size_huge", "A size of 2^32 - 1.", "frame.size", "size", 0xffffffff, 4],
  ];
  for (const [name, about, code, of, value, size] of rows) {
    cases.invalid(
      name,
      about,
      `${clauses}${name === "size_large" ? " stream.largest" : ""}`,
      two,
      field(0, SECOND, "frame_header", of, value, size),
      1,
      drained([HI], "peer.failed", code),
    );
  }
  cases.invalid(
    "fill",
    "A byte of the fill is not 0.",
    "stream.check stream.frames",
    two,
    { operation: 0, at: BEHIND, structure: "frame_header", field: "payload", hex: "68 69 00 01" },
    1,
    drained([], "peer.failed", "frame.reserved"),
  );
  const last = `68 69 ${"00 ".repeat(13)}01`;
  cases.invalid(
    "fill_last",
    "The last byte of the fill is not 0.",
    "stream.check stream.frames",
    two,
    { operation: 0, at: BEHIND, structure: "frame_header", field: "payload", hex: last },
    1,
    drained([], "peer.failed", "frame.reserved"),
  );
  const third = SECOND + 32;
  for (const [of, value, size] of [["size", 1, 4], ["flags", 3, 1], ["reserved", 1, 1]] as const) {
    cases.invalid(
      `end_${of}`,
      `The \`${of}\` of \`end\` is not 0.`,
      "stream.check",
      two,
      field(0, third, "frame_header", of, value, size),
      1,
      drained([HI, message({ count: 16 })], "peer.failed", `frame.${of}`),
    );
  }
  behindEnd(cases);
  controls(cases);
}

function behindEnd(cases: StreamCases): void {
  const ended = cases.valid(
    "behind_end",
    "Credits, extension frames and a close may stand behind `end`.",
    "stream.check stream.closed",
    SMALL,
    [
      arrive(preface(), text("hi", 5), END, frame({ kind: 200, payload: new Uint8Array(3) })),
      read([HI], "ended"),
      take(stated()),
    ],
  );
  for (const [name, kind] of [["message", kindOf("data")], ["end", kindOf("end")]] as const) {
    cases.invalid(
      `behind_end_${name}`,
      `Behind \`end\` stands ${name === "end" ? "another" : "a message"}.`,
      "stream.check",
      ended,
      {
        member: "operations.0.arrive.3",
        value: name === "end" ? END : frame({ kind, flags: 3 }),
      },
      1,
      drained([HI], "ended"),
      taken([stated(), { fail: "frame.sequence" }], { ends: true }),
    );
  }
}

/** A frame without a payload, with one field that is not 0. */
function controls(cases: StreamCases): void {
  const closed = cases.valid(
    "close_read",
    "A close behind a message.",
    "stream.closed stream.control stream.behind",
    SMALL,
    [
      arrive(preface(), text("hi", 5), CLOSED),
      read([HI], "peer.closed"),
      [{ write: message({ count: 1 }) }, "peer.closed"],
    ],
  );
  cases.invalid(
    "close_flags",
    "A close with a flag.",
    "stream.check stream.control",
    closed,
    field(0, SECOND, "frame_header", "flags", 2, 1),
    1,
    drained([HI], "peer.failed", "frame.flags"),
    { code: "peer.failed", reason: "frame.flags" },
  );
  cases.invalid(
    "close_size",
    "A close with a payload.",
    "stream.check stream.control",
    closed,
    field(0, SECOND, "frame_header", "size", 16),
    1,
    drained([HI], "peer.failed", "frame.size"),
    { code: "peer.failed", reason: "frame.size" },
  );
  reservedBytes(cases, closed);
  cases.invalid(
    "close_time",
    "Nobody looks at the time of a close.",
    "stream.check",
    closed,
    field(0, SECOND, "frame_header", "time", 9),
    1,
    drained([HI], "peer.closed"),
  );
  cases.invalid(
    "close_behind",
    "Whatever stands behind a close, nobody looks at it.",
    "stream.behind",
    closed,
    { member: "operations.0.arrive.3", value: "ff ff ff ff ff" },
    1,
    drained([HI], "peer.closed"),
  );
  cases.invalid(
    "close_behind_message",
    "A message behind a close is none.",
    "stream.behind",
    closed,
    { member: "operations.0.arrive.3", value: bytes(20, 7) },
    1,
    drained([HI], "peer.closed"),
  );
  cases.invalid(
    "close_none",
    "The close is missing.",
    "stream.closed",
    closed,
    { member: "operations.0.arrive", value: [preface(), text("hi", 5)] },
    1,
    drained([HI]),
    "ok",
  );
}

/** In the place of a close; nothing else is wrong with these frames. */
function reservedBytes(cases: StreamCases, closed: StreamCase): void {
  const reserved: [string, number, number][] = [
    ["close", CLOSE, 0],
    ["credit", CREDIT, at(0)],
    ["fail", FAIL, reasonOf("frame.size")],
  ];
  for (const [name, kind, tag] of reserved) {
    cases.invalid(
      `${name}_reserved`,
      `The reserved byte of a ${name} is not 0.`,
      "stream.check stream.control",
      closed,
      { member: "operations.0.arrive.2", value: frame({ kind, reserved: 1, tag }) },
      1,
      drained([HI], "peer.failed", "frame.reserved"),
      { code: "peer.failed", reason: "frame.reserved" },
    );
  }
}

function parts(cases: StreamCases): void {
  const whole = cases.valid(
    "multipart",
    "A message of three chunks, and the byte stream ends.",
    "stream.whole stream.lost stream.pieces",
    SMALL,
    [
      arrive(preface(), chunks(4, 5, 6)),
      [{ cut: true }, "ok"],
      read([message({ count: 15 })], "peer.failed", "peer.lost"),
    ],
  );
  cases.invalid(
    "multipart_cut",
    "The last byte is missing, which is one of the fill.",
    "stream.whole stream.lost",
    whole,
    { member: "operations.0.arrive.3", value: upTo(31, chunks(4, 5, 6)[2]!) },
    2,
    drained([], "peer.failed", "peer.lost"),
  );
  const judged = cases.valid(
    "read_fault",
    "A message of two chunks.",
    "stream.check stream.fail",
    SMALL,
    [
      arrive(preface(), text("hi", 5), chunks(4, 5)),
      [{ read: true }, drained([HI, message({ count: 9 })])],
      take(stated()),
    ],
  );
  cases.invalid(
    "read_fault_total",
    "Its parts do not add up, which shows when it is read.",
    "stream.check stream.fail",
    judged,
    field(0, SECOND + 16, "message_preamble", "total", 10, 8),
    1,
    drained([HI], "frame.total"),
    taken([stated(), { fail: "frame.total" }], { ends: true }),
  );
  cases.invalid(
    "read_fault_sequence",
    "Its second chunk has another tag.",
    "stream.check stream.fail",
    judged,
    field(0, SECOND + 48, "frame_header", "tag", 7),
    1,
    drained([HI], "frame.sequence"),
    taken([stated(), { fail: "frame.sequence" }], { ends: true }),
  );
  cases.invalid(
    "cancelled",
    "Its second chunk is a cancel.",
    "stream.check",
    judged,
    {
      member: "operations.0.arrive.3",
      value: frame({ kind: kindOf("data"), flags: LAST + flagOf("frame_flag", "cancel") }),
    },
    1,
    drained([HI, report("message.cancelled")]),
  );
  cut(cases);
}

/** The byte stream ends at an odd place. */
function cut(cases: StreamCases): void {
  const begun = cases.valid(
    "cut_header",
    "The byte stream ends behind a header whose payload is missing.",
    "stream.lost stream.whole",
    SMALL,
    [
      arrive(preface(), text("hi", 5), upTo(16, bytes(16))),
      [{ cut: true }, "ok"],
      [{ read: true }, drained([HI], "peer.failed", "peer.lost")],
      [{ write: message({ count: 1 }) }, { code: "peer.failed", reason: "peer.lost" }],
    ],
  );
  cases.invalid(
    "cut_fault",
    "A header that is at fault is one also where nothing follows.",
    "stream.whole stream.lost stream.fault",
    begun,
    field(0, SECOND, "frame_header", "kind", 9, 1),
    2,
    drained([HI], "peer.failed", "frame.kind"),
    { code: "peer.failed", reason: "frame.kind" },
  );
  cases.invalid(
    "cut_not",
    "It does not end: what is missing may still come.",
    "stream.lost stream.whole",
    begun,
    { member: "operations.1", value: { arrive: [] } },
    2,
    drained([HI]),
    "ok",
  );
  cases.valid(
    "cut_preface",
    "The byte stream ends in the middle of the preface.",
    "stream.lost",
    SMALL,
    [
      arrive(upTo(20, preface())),
      [{ cut: true }, "ok"],
      [{ read: true }, drained([], "peer.failed", "peer.lost")],
    ],
  );
}
