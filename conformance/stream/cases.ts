/**
 * Cases of streams: prefaces, and frames that arrive.
 *
 * @module
 */

import { flagOf, fromChapter, limitOf, reasonOf } from "../reference/layout.ts";
import { kindOf, LAST } from "../reference/encode.ts";
import { arrive, at, BEHIND, bytes, chunks, CLOSED, credit, drained, END } from "./builder.ts";
import { fail, field, frame, HI, message, preface, read, report, SMALL } from "./builder.ts";
import { stated, type StreamCases, take, taken, text, upTo } from "./builder.ts";
import type { StreamCase } from "./case.ts";
import { CLOSE, CREDIT, FAIL } from "./taker.ts";

/** Where the frame after "hi" begins. */
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

// Cases of streams: credit, and how a side ends.

/** A frame that takes half of a small window. */
const HALF = bytes(112);
const HALF_READ = message({ count: 112 });
const BIG = { largest: 4096, window: 16_384 };

export function creditCases(cases: StreamCases): void {
  writes(cases);
  tells(cases);
  bounds(cases);
  stops(cases);
}

function writes(cases: StreamCases): void {
  const small = cases.valid(
    "write",
    "A message, `end`, and nothing else.",
    "stream.frames stream.credit_kept",
    SMALL,
    [
      arrive(preface()),
      [{ write: message({ codec: 1, tag: 5, text: "hi" }) }, "ok"],
      [{ end: true }, "ok"],
      take(stated(), HI, { end: true }),
    ],
  );
  cases.invalid(
    "write_text",
    "Without fill.",
    "stream.frames",
    small,
    { member: "operations.1.write.text", value: "sixteen letters." },
    3,
    taken([stated(), message({ codec: 1, tag: 5, text: "sixteen letters." }), { end: true }]),
  );
  cases.valid(
    "preface_late",
    "The preface of the peer comes in two pieces; nothing is sent meanwhile but the own one.",
    "stream.credit_kept stream.preface_check",
    SMALL,
    [
      arrive(upTo(31, preface())),
      read([]),
      take(stated()),
      arrive("00"),
      [{ write: message({ count: 3 }) }, "ok"],
      take(message({ count: 3 })),
    ],
  );
  const large = cases.valid(
    "largest",
    "A message that is larger than a frame of the peer's, and fits its window.",
    "stream.largest stream.credit_kept",
    SMALL,
    [
      arrive(preface()),
      [{ post: message({ count: 150 }) }, "ok"],
      take(stated(), message({ count: 150 })),
    ],
  );
  cases.invalid(
    "largest_window",
    "The peer takes frames of 128 bytes, and has a window for one.",
    "stream.largest stream.credit_kept",
    large,
    field(0, 0, "stream_preface", "window", 128),
    2,
    taken([stated()]),
  );
  const more = cases.valid(
    "credit",
    "A message larger than the window goes on when the peer gives something back.",
    "stream.credit_kept stream.credit_check stream.largest",
    SMALL,
    [
      arrive(preface({ largest: 128, window: 128 })),
      [{ post: message({ count: 96 }) }, "ok"],
      [{ post: message({ count: 100 }) }, "ok"],
      take(stated(), message({ count: 96 })),
      arrive(credit(112)),
      take(message({ count: 100 })),
    ],
  );
  const wrong = (name: string, about: string, position: number) =>
    cases.invalid(
      `credit_${name}`,
      about,
      "stream.credit_check stream.fail",
      more,
      field(4, 0, "frame_header", "tag", at(position)),
      5,
      taken([{ fail: "stream.credit" }], { ends: true }),
    );
  wrong("odd", "A credit that is no multiple of 16.", 104);
  wrong("beyond", "A credit beyond what was written.", 128);
  wrong("before", "A credit that lies before the beginning.", -16);
  cases.invalid(
    "credit_nothing",
    "A credit that gives nothing back.",
    "stream.credit_check stream.credit_kept",
    more,
    field(4, 0, "frame_header", "tag", at(0)),
    5,
    taken([]),
  );
}

function tells(cases: StreamCases): void {
  const told = cases.valid(
    "told",
    "Who has read more than a window less the largest frame, tells it.",
    "stream.credit_told stream.given_back stream.one_credit",
    SMALL,
    [
      arrive(preface(), bytes(16), HALF),
      take(stated()),
      read([message({ count: 16 }), HALF_READ]),
      [{ take: true }, taken([], { credit: at(160) })],
    ],
  );
  cases.invalid(
    "told_not",
    "It is not told as long as nobody has read it.",
    "stream.given_back stream.credit_told",
    told,
    { member: "operations.2", value: { arrive: [] } },
    2,
    "ok",
    taken([], { credit: "none" }),
  );
  const skipped = frame({ kind: 200, payload: new Uint8Array(112) });
  const behind = cases.valid(
    "told_behind_end",
    "Frames that nobody reads, behind `end`, are given back as well.",
    "stream.credit_told stream.past_end",
    SMALL,
    [
      arrive(preface(), END, skipped, skipped),
      take(stated()),
      read([], "ended"),
      [{ take: true }, taken([], { credit: at(256) })],
    ],
  );
  cases.invalid(
    "told_behind_end_not",
    "There is one of them, which a window less a frame has room for.",
    "stream.credit_told stream.past_end",
    behind,
    { member: "operations.0.arrive", value: [preface(), END, skipped] },
    3,
    taken([], { credit: "none" }),
  );
  const twice = cases.valid(
    "told_once",
    "Two credits are due before the transport takes any: the later one is sent.",
    "stream.one_credit stream.credit_told",
    SMALL,
    [
      arrive(preface(), HALF, HALF),
      take(stated()),
      [{ read: 1 }, { items: [HALF_READ] }],
      read([HALF_READ]),
      [{ take: true }, taken([], { credit: at(256) })],
    ],
  );
  cases.invalid(
    "told_twice",
    "Of one of them there is none to be told: a window less a frame is not exceeded.",
    "stream.one_credit",
    twice,
    { member: "operations.0.arrive", value: [preface(), HALF] },
    3,
    drained([]),
    taken([]),
  );
  const middle = cases.valid(
    "told_middle",
    "A credit goes out though an own message waits for credit, and a close is seen.",
    "stream.unhindered stream.takes_in",
    SMALL,
    [
      arrive(preface({ largest: 128, window: 128 }), bytes(16), HALF),
      [{ post: message({ count: 200 }) }, "ok"],
      read([message({ count: 16 }), HALF_READ]),
      [{ take: true }, taken([stated()], { credit: at(160) })],
      arrive(CLOSED),
      read([], "peer.closed"),
    ],
  );
  cases.invalid(
    "told_middle_open",
    "The same, and the peer does not close.",
    "stream.unhindered stream.takes_in",
    middle,
    { member: "operations.4.arrive", value: [] },
    5,
    drained([]),
  );
}

function bounds(cases: StreamCases): void {
  const full = cases.valid(
    "window",
    "The window is filled to its last byte; `end` takes no credit, nor does a credit.",
    "stream.check stream.given_back",
    SMALL,
    [arrive(preface(), HALF, HALF, credit(0), END), read([HALF_READ, HALF_READ], "ended")],
  );
  cases.invalid(
    "window_exceeded",
    "A frame of 16 bytes more.",
    "stream.check stream.fault",
    full,
    { member: "operations.0.arrive.3", value: bytes(0) },
    1,
    drained([HALF_READ, HALF_READ], "peer.failed", "stream.credit"),
  );
  cases.invalid(
    "window_skipped",
    "A frame that nobody reads takes credit as well.",
    "stream.check",
    full,
    field(0, BEHIND + 256, "frame_header", "kind", 255, 1),
    1,
    drained([HALF_READ, HALF_READ], "peer.failed", "stream.credit"),
  );
  const order = cases.valid(
    "in_order",
    "A credit counts though the messages before it are not read.",
    "stream.takes_in stream.credit_kept",
    SMALL,
    [
      arrive(preface({ largest: 128, window: 128 })),
      [{ post: message({ count: 96 }) }, "ok"],
      [{ post: message({ count: 96 }) }, "ok"],
      take(stated(), message({ count: 96 })),
      arrive(HALF, HALF, credit(112)),
      take(message({ count: 96 })),
    ],
  );
  cases.invalid(
    "in_order_none",
    "There is none behind them.",
    "stream.takes_in stream.credit_kept",
    order,
    { member: "operations.4.arrive", value: [HALF, HALF] },
    5,
    taken([]),
  );
  cases.valid(
    "large",
    "A message of many windows, read while it comes.",
    "stream.pieces stream.credit_told",
    SMALL,
    [
      arrive(preface(), chunks(96, 112, 100).slice(0, 2)),
      read([]),
      [{ take: true }, taken([stated()], { credit: at(256) })],
      arrive(chunks(96, 112, 100)[2]!, text("hi", 5)),
      read([message({ count: 308 }), HI]),
    ],
  );
}

function stops(cases: StreamCases): void {
  const closes = cases.valid(
    "close",
    "A side writes, ends and closes: all of it goes out, and then its byte stream ends.",
    "stream.close stream.control",
    SMALL,
    [
      arrive(preface(BIG)),
      [{ write: message({ count: 3 }) }, "ok"],
      [{ end: true }, "ok"],
      [{ close: true }, "ok"],
      [
        { take: true },
        taken([stated(), message({ count: 3 }), { end: true }, { close: true }], {
          ends: true,
        }),
      ],
      [{ write: message({ count: 3 }) }, "pipe.closed"],
    ],
  );
  cases.invalid(
    "close_unsaid",
    "It does not close: its byte stream goes on behind `end`.",
    "stream.close",
    closes,
    { member: "operations.3", value: { end: true } },
    4,
    taken([stated(), message({ count: 3 }), { end: true }]),
    "pipe.ended",
  );
  cases.valid(
    "close_early",
    "A side closes before the preface of its peer has come.",
    "stream.close",
    SMALL,
    [
      [{ close: true }, "ok"],
      [{ take: true }, taken([stated(), { close: true }], { ends: true })],
    ],
  );
  const reason = reasonOf("frame.size");
  const failed = cases.valid(
    "fail",
    "The peer has found a fault: what came before is delivered.",
    "stream.failed stream.hang_up stream.control",
    SMALL,
    [
      take(stated()),
      arrive(preface(), text("hi", 5)),
      [{ write: message({ count: 3 }) }, "ok"],
      arrive(fail(reason)),
      read([HI], "pipe.failed", "frame.size"),
      [{ write: message({ count: 3 }) }, { code: "pipe.failed", reason: "frame.size" }],
      [{ take: true }, taken([], { ends: true })],
    ],
  );
  cases.invalid(
    "fail_unknown",
    "For a reason that nobody knows.",
    "stream.failed",
    failed,
    field(3, 0, "frame_header", "tag", 0xfffff0),
    4,
    drained([HI], "pipe.failed", 0xfffff0),
    { code: "pipe.failed", reason: 0xfffff0 },
  );
  cases.invalid(
    "fail_close",
    "It has closed instead.",
    "stream.failed stream.hang_up stream.closed",
    failed,
    { member: "operations.3.arrive", value: [CLOSED] },
    4,
    drained([HI], "peer.closed"),
    "peer.closed",
  );
  cases.invalid(
    "fail_behind",
    "Bytes behind it mean nothing.",
    "stream.behind",
    failed,
    { member: "operations.3.arrive", value: [fail(reason), text("hi", 5)] },
    4,
    drained([HI], "pipe.failed", "frame.size"),
  );
  cases.invalid(
    "fail_not",
    "Nothing of that: the message goes out.",
    "stream.hang_up",
    failed,
    { member: "operations.3.arrive", value: [] },
    4,
    drained([HI]),
    "ok",
    taken([message({ count: 3 }), message({ count: 3 })]),
  );
}
