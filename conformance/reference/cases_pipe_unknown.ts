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
  const from = cases.valid(reading(plan, { limit: 6 }), {
    name: "unknown_at_limit",
    about: "A message of unknown size that becomes exactly as large as the limit.",
    clauses: `${UNKNOWN} pipe.limit pipe.total_trust`,
    ...reads([message({ text: "abcdef" }), HI]),
  });
  const add = (limit: number, where: string) =>
    cases.invalid(from, member("limit", limit), {
      name: `unknown_above_${limit}`,
      about: `It is above the limit with its ${where} frame: reported once, and the rest skipped.`,
      clauses: `${UNKNOWN} pipe.report_once pipe.total_trust`,
      ...reads([SIZE, HI]),
    });
  add(5, "last");
  add(4, "middle");
  add(2, "first");
  cases.valid(
    reading(pipe({ frames: [...unknown(["", "x"]), whole("y", { codec: 0 })] }), { limit: 1 }),
    {
      name: "unknown_one",
      about: "A message that turns out to be one byte, to a reader that takes no more.",
      clauses: UNKNOWN,
      ...reads([message({ text: "x" }), message({ text: "y" })]),
    },
  );
  const none = pipe({ frames: [...unknown(["", "x"]), whole("")] });
  cases.valid(reading(none, { limit: 0 }), {
    name: "unknown_limit_0",
    about: "A reader that takes nothing but empty messages.",
    clauses: `${UNKNOWN} pipe.limit`,
    ...reads([SIZE, text("")]),
  });
}

/** What has come so far is enough to tell. */
function addAtOnce(cases: Cases): void {
  const frames = unknown(["abc", "de", "f"]);
  const begun = [
    ["first", frames.slice(0, 1), 3],
    ["middle", frames.slice(0, 2), 5],
  ] as const;
  for (const [name, some, size] of begun) {
    const from = cases.valid(reading(pipe({ frames: [...some] }), { limit: size }), {
      name: `unknown_${name}`,
      about: `A message of unknown size of which ${size} bytes have come, as many as the limit.`,
      clauses: `${UNKNOWN} pipe.keep_parts`,
      ...reads([]),
    });
    cases.invalid(from, member("limit", size - 1), {
      name: `unknown_${name}_above`,
      about: "One more than the limit: it is reported at once.",
      clauses: UNKNOWN,
      ...reads([SIZE]),
    });
  }
}

/** What follows of a message that was dropped in its middle. */
function addDropped(cases: Cases): void {
  const frames = [...unknown(["abc", "de", "f"]), whole("hi")];
  const plan = pipe({ frames });
  const clauses = `${UNKNOWN} frame.check_total frame.check`;
  const from = cases.valid(reading(plan, { limit: 4 }), {
    name: "unknown_dropped",
    about: "A message that is dropped at its second frame: the third is skipped.",
    clauses,
    ...reads([SIZE, HI]),
  });
  const add = (name: string, about: string, key: string, value: number, code: string) =>
    cases.invalid(from, field(plan.at[2]!, "frame_header", key, value), {
      name: `unknown_dropped_${name}`,
      about,
      clauses,
      ...faults([SIZE], code),
    });
  add("tag", "The third has another tag.", "tag", 9, "frame.sequence");
  add("size", "The third is empty.", "size", 0, "frame.size");
  add("inside", "The third begins a message.", "flags", 3, "frame.sequence");
  const cancel = part(utf8(""), { flags: LAST + CANCEL });
  const once = `${UNKNOWN} pipe.report_once`;
  const cancelled = pipe({ frames: [...frames.slice(0, 2), cancel, whole("hi")] });
  const given = cases.valid(reading(cancelled, { limit: 5 }), {
    name: "unknown_cancelled",
    about: "A message within the limit is given up: that is reported.",
    clauses: `${UNKNOWN} pipe.cancelled`,
    ...reads([{ report: "message.cancelled" }, HI]),
  });
  cases.invalid(given, member("limit", 4), {
    name: "unknown_cancel_skipped",
    about: "It was dropped before: the cancel is not reported.",
    clauses: `${once} pipe.cancelled`,
    ...reads([SIZE, HI]),
  });
  const ended = pipe({ frames: [...frames.slice(0, 2), endFrame()] });
  const cut = cases.valid(reading(ended, { limit: 5 }), {
    name: "unknown_truncated",
    about: "The stream ends in the middle of a message of unknown size.",
    clauses: `${UNKNOWN} pipe.truncated`,
    ...reads([{ report: "message.truncated" }], "ended"),
  });
  cases.invalid(cut, member("limit", 4), {
    name: "unknown_truncated_dropped",
    about: "It was dropped before: its end is not reported.",
    clauses: `${once} pipe.truncated`,
    ...reads([SIZE], "ended"),
  });
}

function addKind(cases: Cases): void {
  const kind = kindOf("call");
  const frames = [...unknown(["abc", "def"], { kind }), whole("hi")];
  const from = cases.valid(reading(pipe({ frames }), { calls: true, limit: 5 }), {
    name: "unknown_call",
    about: "A call of unknown size, above the limit.",
    clauses: `${UNKNOWN} pipe.unknown_kind`,
    ...reads([SIZE, HI]),
  });
  cases.invalid(from, member("calls", false), {
    name: "unknown_call_kind",
    about: "To a reader that offers no calls its kind is what counts, and only that.",
    clauses: `${UNKNOWN} pipe.unknown_kind pipe.report_once`,
    ...reads([{ report: "message.kind" }, HI]),
  });
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
  const from = cases.valid(reading(plan, { kind: "decode" }), {
    name: "unknown_codecs",
    about: "A text that is cut within a character, and a JSON message, both of unknown size.",
    clauses: `${UNKNOWN} codec.bad_text codec.bad_json`,
    ...reads([text("grün"), message({ codec: json, json: [1, { a: 2 }] })]),
  });
  const payload = plan.at[1]! + 16;
  cases.invalid(
    from,
    { at: payload - 16, structure: "frame_header", field: "payload", hex: "78" },
    {
      name: "unknown_text_bad",
      about: "The second half of the character is missing.",
      clauses: `${UNKNOWN} codec.bad_text`,
      ...reads([{ report: "message.text" }, message({ codec: json, json: [1, { a: 2 }] })]),
    },
  );
}

function addLent(cases: Cases): void {
  const plan = pipe({ frames: [firstOf(TOTAL_UNKNOWN, pattern(2)), part(pattern(1, 2))] });
  const chunk = (hex: string) => ({ items: [message({ hex })] });
  cases.valid(
    reading(plan, {
      limit: 1,
      operations: [{ peek: true }, { release: true }, { peek: true }, { release: true }],
    }),
    {
      name: "unknown_lent",
      about: "The chunks of a message of unknown size are borrowed one by one, above any limit.",
      clauses: "pipe.lend_check pipe.lend",
      results: [chunk("00 01"), "ok", chunk("02"), "ok"],
    },
  );
  const close = pipe({ frames: unknown(["abc", "d"]).slice(0, 1), states: [2, 0] });
  cases.valid(reading(close), {
    name: "unknown_closed",
    about: "The writer has closed in the middle of a message of unknown size.",
    clauses: `${UNKNOWN} pipe.drain`,
    results: [drained([], "peer.closed")],
  });
}
