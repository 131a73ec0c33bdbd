/**
 * Cases of streams: credit, and how a side ends.
 *
 * @module
 */

import { reasonOf } from "../reference/layout.ts";
import {
  arrive,
  at,
  BEHIND,
  bytes,
  chunks,
  CLOSED,
  credit,
  drained,
  END,
  fail,
  field,
  frame,
  HI,
  message,
  preface,
  read,
  SMALL,
  stated,
  type StreamCases,
  take,
  taken,
  text,
  upTo,
} from "./builder.ts";

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
