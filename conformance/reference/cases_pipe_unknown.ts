/** Messages of unknown size, and how large they may become: cases of `spec/pipe.md`. @module */

import { Cases, drained, endFrame, faults, field, firstOf, member, message } from "./builder.ts";
import { part, pattern, pipe, reading, reads, text, utf8, whole } from "./builder.ts";
import type { Item } from "./case.ts";
import { CANCEL, type FramePlan, kindOf, LAST, TOTAL_UNKNOWN } from "./encode.ts";
import { valueOf } from "./layout.ts";

const HI = text("hi");
const UNKNOWN = "pipe.limit_unknown";
const SIZE: Item = { report: "message.size" };

/** Adds them to the cases of the pipe. */
export function addUnknown(cases: Cases): void {
  addLimit(cases);
  addAtOnce(cases);
  addDropped(cases);
  addKind(cases);
  addCodecs(cases);
  addLent(cases);
}

/** A message of unknown size: these parts, the last of them with `last`. */
function unknown(parts: string[], more: Partial<FramePlan> = {}): FramePlan[] {
  const [first = "", ...rest] = parts;
  return [
    firstOf(TOTAL_UNKNOWN, utf8(first), more),
    ...rest.map((content, index) =>
      part(utf8(content), { flags: index === rest.length - 1 ? LAST : 0, ...more })
    ),
  ];
}

function addLimit(cases: Cases): void {
  const plan = pipe({ frames: [...unknown(["abc", "de", "f"]), whole("hi")] });
  const from = cases.valid(
    "unknown_at_limit",
    "A message of unknown size that becomes exactly as large as the limit.",
    `${UNKNOWN} pipe.limit pipe.total_trust`,
    reading(plan, { limit: 6 }),
    reads([message({ text: "abcdef" }), HI]),
  );
  const add = (limit: number, where: string) =>
    cases.invalid(
      `unknown_above_${limit}`,
      `It is above the limit with its ${where} frame: reported once, and the rest skipped.`,
      `${UNKNOWN} pipe.report_once pipe.total_trust`,
      from,
      member("limit", limit),
      reads([SIZE, HI]),
    );
  add(5, "last");
  add(4, "middle");
  add(2, "first");
  cases.valid(
    "unknown_one",
    "A message that turns out to be one byte, to a reader that takes no more.",
    UNKNOWN,
    reading(pipe({ frames: [...unknown(["", "x"]), whole("y", { codec: 0 })] }), { limit: 1 }),
    reads([message({ text: "x" }), message({ text: "y" })]),
  );
  const none = pipe({ frames: [...unknown(["", "x"]), whole("")] });
  cases.valid(
    "unknown_limit_0",
    "A reader that takes nothing but empty messages.",
    `${UNKNOWN} pipe.limit`,
    reading(none, { limit: 0 }),
    reads([SIZE, text("")]),
  );
}

/** What has come so far is enough to tell. */
function addAtOnce(cases: Cases): void {
  const frames = unknown(["abc", "de", "f"]);
  const begun = [
    ["first", frames.slice(0, 1), 3],
    ["middle", frames.slice(0, 2), 5],
  ] as const;
  for (const [name, some, size] of begun) {
    const from = cases.valid(
      `unknown_${name}`,
      `A message of unknown size of which ${size} bytes have come, as many as the limit.`,
      `${UNKNOWN} pipe.keep_parts`,
      reading(pipe({ frames: [...some] }), { limit: size }),
      reads([]),
    );
    cases.invalid(
      `unknown_${name}_above`,
      "One more than the limit: it is reported at once.",
      UNKNOWN,
      from,
      member("limit", size - 1),
      reads([SIZE]),
    );
  }
}

/** What follows of a message that was dropped in its middle. */
function addDropped(cases: Cases): void {
  const frames = [...unknown(["abc", "de", "f"]), whole("hi")];
  const plan = pipe({ frames });
  const clauses = `${UNKNOWN} frame.check_total frame.check`;
  const from = cases.valid(
    "unknown_dropped",
    "A message that is dropped at its second frame: the third is skipped.",
    clauses,
    reading(plan, { limit: 4 }),
    reads([SIZE, HI]),
  );
  const add = (name: string, about: string, key: string, value: number, code: string) =>
    cases.invalid(
      `unknown_dropped_${name}`,
      about,
      clauses,
      from,
      field(plan.at[2]!, "frame_header", key, value),
      faults([SIZE], code),
    );
  add("tag", "The third has another tag.", "tag", 9, "frame.sequence");
  add("size", "The third is empty.", "size", 0, "frame.size");
  add("inside", "The third begins a message.", "flags", 3, "frame.sequence");
  const cancel = part(utf8(""), { flags: LAST + CANCEL });
  const once = `${UNKNOWN} pipe.report_once`;
  const cancelled = pipe({ frames: [...frames.slice(0, 2), cancel, whole("hi")] });
  const given = cases.valid(
    "unknown_cancelled",
    "A message within the limit is given up: that is reported.",
    `${UNKNOWN} pipe.cancelled`,
    reading(cancelled, { limit: 5 }),
    reads([{ report: "message.cancelled" }, HI]),
  );
  cases.invalid(
    "unknown_cancel_skipped",
    "It was dropped before: the cancel is not reported.",
    `${once} pipe.cancelled`,
    given,
    member("limit", 4),
    reads([SIZE, HI]),
  );
  const ended = pipe({ frames: [...frames.slice(0, 2), endFrame()] });
  const cut = cases.valid(
    "unknown_truncated",
    "The stream ends in the middle of a message of unknown size.",
    `${UNKNOWN} pipe.truncated`,
    reading(ended, { limit: 5 }),
    reads([{ report: "message.truncated" }], "ended"),
  );
  cases.invalid(
    "unknown_truncated_dropped",
    "It was dropped before: its end is not reported.",
    `${once} pipe.truncated`,
    cut,
    member("limit", 4),
    reads([SIZE], "ended"),
  );
}

function addKind(cases: Cases): void {
  const kind = kindOf("call");
  const frames = [...unknown(["abc", "def"], { kind }), whole("hi")];
  const from = cases.valid(
    "unknown_call",
    "A call of unknown size, above the limit.",
    `${UNKNOWN} pipe.unknown_kind`,
    reading(pipe({ frames }), { calls: true, limit: 5 }),
    reads([SIZE, HI]),
  );
  cases.invalid(
    "unknown_call_kind",
    "To a reader that offers no calls its kind is what counts, and only that.",
    `${UNKNOWN} pipe.unknown_kind pipe.report_once`,
    from,
    member("calls", false),
    reads([{ report: "message.kind" }, HI]),
  );
}

function addCodecs(cases: Cases): void {
  const json = valueOf("codec", "json");
  const [a, b] = [utf8("grün").slice(0, 3), utf8("grün").slice(3)];
  const cut = [
    firstOf(TOTAL_UNKNOWN, a, { codec: 1 }),
    part(b, { codec: 1 }),
    ...unknown(["[1,", "{", '"a":2}', "]"], { codec: json }),
  ];
  const plan = pipe({ frames: cut });
  const from = cases.valid(
    "unknown_codecs",
    "A text that is cut within a character, and a JSON message, both of unknown size.",
    `${UNKNOWN} codec.bad_text codec.bad_json`,
    reading(plan, { kind: "decode" }),
    reads([text("grün"), message({ codec: json, json: [1, { a: 2 }] })]),
  );
  const payload = plan.at[1]! + 16;
  cases.invalid(
    "unknown_text_bad",
    "The second half of the character is missing.",
    `${UNKNOWN} codec.bad_text`,
    from,
    { at: payload - 16, structure: "frame_header", field: "payload", hex: "78" },
    reads([{ report: "message.text" }, message({ codec: json, json: [1, { a: 2 }] })]),
  );
}

function addLent(cases: Cases): void {
  const plan = pipe({ frames: [firstOf(TOTAL_UNKNOWN, pattern(2)), part(pattern(1, 2))] });
  const chunk = (hex: string) => ({ items: [message({ hex })] });
  cases.valid(
    "unknown_lent",
    "The chunks of a message of unknown size are borrowed one by one, above any limit.",
    "pipe.lend_check pipe.lend",
    reading(plan, {
      limit: 1,
      operations: [{ peek: true }, { release: true }, { peek: true }, { release: true }],
    }),
    { results: [chunk("00 01"), "ok", chunk("02"), "ok"] },
  );
  const close = pipe({ frames: unknown(["abc", "d"]).slice(0, 1), states: [2, 0] });
  cases.valid(
    "unknown_closed",
    "The writer has closed in the middle of a message of unknown size.",
    `${UNKNOWN} pipe.drain`,
    reading(close),
    { results: [drained([], "peer.closed")] },
  );
}
