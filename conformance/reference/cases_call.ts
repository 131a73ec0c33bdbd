/** The cases of `spec/call.md`. @module */

import { Cases, field, payload } from "./builder.ts";
import { answers, calls, CANCELS, cut, FIRST_AT, frame, MORE, port } from "./builder_call.ts";
import { refuses, returns, serving, VALUES, wrote } from "./builder_call.ts";
import type { Change, Value } from "./case.ts";
import { addCallerCases } from "./cases_call_caller.ts";
import { fromChapter, mustHold } from "./chapter.ts";
import { CANCEL, type FramePlan, kindOf, LAST } from "./encode.ts";
import { fieldOf, limitOf } from "./layout.ts";
import { entryAt } from "./values.ts";

/** All cases of this noun. */
export function callCases(): Cases {
  const cases = new Cases("call");
  addList(cases);
  addListSizes(cases);
  addNames(cases);
  addStrays(cases);
  addAnswers(cases);
  addDropped(cases);
  addLater(cases);
  addItems(cases);
  addCallerCases(cases);
  return cases;
}

/** A change in the list of the first frame. */
function inList(at: number, structure: string, name: string, value: number): Change {
  return field(FIRST_AT + 16 + at, structure, name, value);
}

const ADD = calls(1, "add", { json: 1 }, { json: 2 });

function addList(cases: Cases): void {
  const segment = port([ADD]);
  mustHold(
    segment.bytes,
    FIRST_AT,
    fromChapter("call", [
      "00  31 00 00 00  03 03 04 00  01 00 00 00  00 00 00 00",
      "10  03 00 00 00  00 00 00 00  03 00 00 00  01 00 00 00",
      "20  01 00 00 00  02 00 00 00  01 00 00 00  02 00 00 00",
      "30  61 64 64 ..  .. .. .. ..  31 .. .. ..  .. .. .. ..",
      "40  32",
    ]),
  );
  const from = cases.valid(
    "add",
    "The example of the chapter: a call, and its answer.",
    "call.values_check call.values call.message call.answer call.refused call.stray",
    serving(segment),
    answers([returns(1, { json: 3 })]),
  );
  const list = "call.values_check call.refused";
  const bad: [string, string, Change, string][] = [
    [
      "count_none",
      "A list of no values has no header.",
      inList(0, "values_header", "count", 0),
      "",
    ],
    ["count_257", "Too many values.", inList(0, "values_header", "count", 257), ""],
    ["count_more", "A text taken for an entry.", inList(0, "values_header", "count", 4), ""],
    [
      "count_less",
      "Something stands behind the last value.",
      inList(0, "values_header", "count", 2),
      "",
    ],
    ["reserved", "A reserved byte of the header.", inList(0, "values_header", "reserved", 1), ""],
    [
      "entry_reserved",
      "A reserved byte of an entry.",
      inList(entryAt(2), "value_entry", "reserved", 2 ** 16),
      "",
    ],
    ["size_less", "The last value is absent.", inList(entryAt(2), "value_entry", "size", 0), ""],
    ["size_more", "It ends behind the payload.", inList(entryAt(2), "value_entry", "size", 2), ""],
    [
      "size_overflow",
      "A size that would wrap around.",
      inList(entryAt(1), "value_entry", "size", 2 ** 32 - 8),
      "",
    ],
    ["entry_batch", "No value is a batch.", inList(entryAt(2), "value_entry", "codec", 3), ""],
    ["entry_values", "No value is a list.", inList(entryAt(2), "value_entry", "codec", 4), ""],
    [
      "entry_unknown",
      "A codec that nobody knows.",
      inList(entryAt(2), "value_entry", "codec", 100),
      "message.codec",
    ],
    ["name_json", "A name is a text, not JSON.", inList(entryAt(0), "value_entry", "codec", 2), ""],
    [
      "name_bytes",
      "A name is a text, not bytes.",
      inList(entryAt(0), "value_entry", "codec", 0),
      "call.form",
    ],
    [
      "arguments",
      "A text is no number.",
      inList(entryAt(1), "value_entry", "codec", 1),
      "call.arguments",
    ],
    [
      "codec",
      "A call of another codec.",
      field(FIRST_AT, "frame_header", "codec", 2),
      "message.codec",
    ],
  ];
  for (const [name, about, change, code] of bad) {
    const wanted = name === "name_json" ? "message.json" : code || "message.values";
    const clauses = name === "codec" ? "call.refused call.message" : list;
    cases.invalid(name, about, clauses, from, change, answers([refuses(1, wanted)]));
  }
  const broken = (at: number, byte: number) => {
    const bytes = (ADD.payload as Uint8Array).slice();
    bytes[at] = byte;
    return payload(FIRST_AT, bytes.slice(0, at + 1));
  };
  const inside: [string, string, number, number, string][] = [
    ["text", "A name that is not UTF-8.", 32, 0xff, "message.text"],
    ["json", "An argument that is no JSON.", 48, 0x78, "message.json"],
    ["json_text", "JSON that is not UTF-8.", 48, 0xff, "message.text"],
    ["method", "A method that is not served.", 34, 0x65, "call.method"],
  ];
  for (const [name, about, at, byte, code] of inside) {
    cases.invalid(name, about, list, from, broken(at, byte), answers([refuses(1, code)]));
  }
  cases.invalid(
    "size_around",
    "A size around which the rest adds up, if its end is computed in 32 bits.",
    list,
    from,
    payload(FIRST_AT, around()),
    answers([refuses(1, "message.values")]),
  );
  cases.invalid(
    "entry_values_late",
    "No value is a list, whatever is wrong with those before it.",
    list,
    from,
    payload(FIRST_AT, listBehindText()),
    answers([refuses(1, "message.values")]),
  );
  cases.invalid(
    "sum",
    "Another argument.",
    "call.values_check call.values",
    from,
    broken(48, 0x37),
    answers([returns(1, { json: 8 })]),
  );
  const tag = (value: number) => field(FIRST_AT, "frame_header", "tag", value);
  cases.invalid("notice", "No id: nobody answers.", "call.answer", from, tag(0), answers([]));
  const strays: [string, string, Change, string][] = [
    ["both_marks", "A call with both marks.", tag(1 + CANCELS + MORE), "call.form"],
    ["cancel_payload", "A cancel with values.", tag(1 + CANCELS), "call.form"],
    ["more_payload", "A `more` with values.", tag(1 + MORE), "call.form"],
    ["notice_mark", "A mark without an id.", tag(MORE), "call.form"],
  ];
  for (const [name, about, change, code] of strays) {
    cases.invalid(name, about, "call.stray call.message", from, change, answers([], [code]));
  }
  for (const kind of ["return", "throw"]) {
    cases.invalid(
      `no_${kind}`,
      "An answer where nothing was called.",
      "call.unmatched call.match",
      from,
      field(FIRST_AT, "frame_header", "kind", kindOf(kind)),
      answers([], ["call.answer"]),
    );
  }
}

/** The list of `add(1, 2)`, whose name is no UTF-8, and whose last value says that it is a list. */
function listBehindText(): Uint8Array {
  const bytes = (ADD.payload as Uint8Array).slice();
  bytes[32] = 0xff;
  bytes[entryAt(2) + fieldOf("value_entry", "codec").offset] = VALUES;
  return bytes;
}

/** The list of `add(1, 2)`, whose second value ends 8 bytes before it begins. */
function around(): Uint8Array {
  const bytes = (ADD.payload as Uint8Array).slice();
  const at = (index: number) => new DataView(bytes.buffer).getUint32(entryAt(index), true);
  const set = (index: number, size: number) =>
    new DataView(bytes.buffer).setUint32(entryAt(index), size, true);
  set(1, 2 ** 32 - 8);
  set(2, at(2) + 16);
  return bytes;
}

function addListSizes(cases: Cases): void {
  const echo = (name: string, about: string, values: Value[], result: Value[]) =>
    cases.valid(
      name,
      about,
      "call.values_check call.values call.values_encoded call.answer",
      serving(port([calls(1, "identity", ...values)])),
      answers([returns(1, ...result)]),
    );
  const bytes = { hex: "00 01 02 ff" };
  const from = echo("bytes", "Bytes cross as bytes.", [bytes], [bytes]);
  cases.invalid(
    "bytes_text",
    "The same bytes as a text, which they are not.",
    "call.values_check call.values_encoded",
    from,
    inList(entryAt(1), "value_entry", "codec", 1),
    answers([refuses(1, "message.text")]),
  );
  echo("empty_bytes", "No bytes are a value.", [{ hex: "" }], [{ hex: "" }]);
  echo("empty_text", "Nor is an empty text absent.", [{ text: "" }], [{ text: "" }]);
  const absent = echo("absent", "An absent value: a return of none.", [{}], []);
  cases.invalid(
    "absent_text",
    "An empty text in its place.",
    "call.values_encoded call.values",
    absent,
    inList(entryAt(1), "value_entry", "codec", 1),
    answers([returns(1, { text: "" })]),
  );
  echo("absent_first", "An absent value stands before others.", [{}, { json: 1 }], []);
  const many = Array.from({ length: limitOf("values_count_max") - 1 }, () => ({}));
  const most = port(cut(calls(1, "identity", ...many), 400), 8192);
  cases.valid(
    "count_256",
    "As many values as a list may have, in a message of several frames.",
    "call.values_check",
    serving(most),
    answers([returns(1)]),
  );
}

function addNames(cases: Cases): void {
  const of = (name: string, id: string, about: string, code: string) =>
    cases.valid(
      id,
      about,
      "call.refused call.served_only",
      serving(port([calls(1, name)])),
      answers([refuses(1, code)]),
    );
  of("n".repeat(255), "name_255", "As long as a name may be; nobody serves it.", "call.method");
  of("n".repeat(256), "name_256", "A name that is too long.", "call.form");
  of("", "name_none", "A name of no characters.", "call.form");
  of("__proto__", "name_proto", "What every object of JavaScript has.", "call.method");
  const from = of("toString", "name_language", "Another such name.", "call.method");
  cases.invalid(
    "name_served",
    "A name of the same length that is served.",
    "call.served_only",
    from,
    payload(FIRST_AT, calls(1, "identity").payload as Uint8Array),
    answers([returns(1)]),
  );
  cases.valid(
    "no_name",
    "A call without any value.",
    "call.refused call.message",
    serving(port([frame("call", 1)])),
    answers([refuses(1, "call.form")]),
  );
}

function addStrays(cases: Cases): void {
  const from = cases.valid(
    "crossed",
    "A cancel and a `more` that come too late: nothing comes of them.",
    "call.crossed call.stray",
    serving(port([frame("call", 7 + CANCELS), frame("call", 7 + MORE)])),
    answers([]),
  );
  const at = FIRST_AT;
  const changes: [string, string, Change][] = [
    ["cancel_codec", "A cancel of another codec.", field(at, "frame_header", "codec", 0)],
    [
      "return_cancel",
      "A cancel is no return.",
      field(at, "frame_header", "kind", kindOf("return")),
    ],
    ["throw_cancel", "A cancel is no throw.", field(at, "frame_header", "kind", kindOf("throw"))],
    [
      "throw_more",
      "A throw is the last message.",
      field(at + 16, "frame_header", "kind", kindOf("throw")),
    ],
    ["cancel_notice", "No id.", field(at, "frame_header", "tag", CANCELS)],
    ["cancel_more", "Both marks.", field(at, "frame_header", "tag", 7 + CANCELS + MORE)],
  ];
  for (const [name, about, change] of changes) {
    cases.invalid(name, about, "call.stray call.message", from, change, answers([], ["call.form"]));
  }
  cases.invalid(
    "item_unmatched",
    "An item that no call of the port waits for.",
    "call.unmatched call.crossed",
    from,
    field(at + 16, "frame_header", "kind", kindOf("return")),
    answers([], ["call.answer"]),
  );
}

function addAnswers(cases: Cases): void {
  const tagged = (tag: number) => field(FIRST_AT, "frame_header", "tag", tag);
  const error: Value[] = [{ text: "Oops" }, { text: "it broke" }, { json: { at: 3 } }];
  const from = cases.valid(
    "fail",
    "A method that fails: name, text and data cross.",
    "call.throw call.message call.answer",
    serving(port([calls(5, "fail", ...error)])),
    answers([wrote("throw", 5, ...error)]),
  );
  const thrown = answers([], ["call.thrown"]);
  cases.invalid("fail_notice", "The same of a notice.", "call.throw", from, tagged(0), thrown);
  const long: Value[] = [{ text: "é".repeat(128) }, { text: "é".repeat(2049) }];
  cases.valid(
    "fail_long",
    "A name and a text that are too long, cut at a character.",
    "call.throw",
    serving(port(cut(calls(5, "fail", ...long), 400), 8192), undefined, { limit: 8192 }),
    answers([wrote("throw", 5, { text: "é".repeat(127) }, { text: "é".repeat(2048) })]),
  );
  cases.valid(
    "fail_nameless",
    "An error without a name.",
    "call.throw",
    serving(port([calls(5, "fail", { text: "" }, { text: "" })])),
    answers([wrote("throw", 5, { text: "Error" }, { text: "" })]),
  );
  const odd = cases.valid(
    "odd",
    "A result that no codec of a list can carry.",
    "call.result",
    serving(port([calls(5, "odd")])),
    answers([refuses(5, "call.result")]),
  );
  const nothing = answers([]);
  cases.invalid("odd_notice", "Nobody wants its result.", "call.result", odd, tagged(0), nothing);
  const notes = [{ json: 1 }, { json: 2 }, { json: 3 }].map((note) => calls(0, "note", note));
  const order = cases.valid(
    "order",
    "Notices and a call, in the order in which they were written.",
    "call.order call.answer",
    serving(port([...notes, calls(1, "noted")])),
    answers([returns(1, { json: [1, 2, 3] })]),
  );
  const other = calls(0, "note", { json: 9 }).payload as Uint8Array;
  cases.invalid(
    "order_other",
    "The first of them says something else.",
    "call.order",
    order,
    payload(FIRST_AT, other),
    answers([returns(1, { json: [9, 2, 3] })]),
  );
}

function addDropped(cases: Cases): void {
  const long = calls(1, "identity", { hex: "aa ".repeat(400).trim() });
  const frames = cut(long, 300);
  const from = cases.valid(
    "parts",
    "A call of two frames.",
    "call.refused call.answer",
    serving(port(frames)),
    answers([returns(1, { hex: "aa ".repeat(400).trim() })]),
  );
  cases.invalid(
    "too_large",
    "It is above the limit: its caller is told, once it has come.",
    "call.refused pipe.limit",
    from,
    { member: "limit", value: 200 },
    answers([refuses(1, "message.size")]),
  );
  const first = frames[0] as FramePlan;
  const taken = { ...first, flags: LAST + CANCEL, payload: new Uint8Array(0) };
  cases.valid(
    "taken_back",
    "A call that was taken back in the middle has never been made.",
    "call.refused call.answer pipe.cancelled",
    serving(port([first, taken])),
    answers([], ["message.cancelled"]),
  );
  cases.valid(
    "taken_back_too_large",
    "The same above the limit: nothing is reported twice, and nobody is answered.",
    "call.refused pipe.report_once",
    serving(port([first, taken]), undefined, { limit: 200 }),
    answers([]),
  );
}

function addLater(cases: Cases): void {
  const tagged = (index: number, tag: number) =>
    field(FIRST_AT + index * 48, "frame_header", "tag", tag);
  const hold = (tag: number) => calls(tag, "hold");
  const twice = cases.valid(
    "two_held",
    "Two calls that are not answered yet.",
    "call.duplicate call.answer",
    serving(port([hold(1), hold(2), calls(3, "held")])),
    answers([returns(3, { json: 2 })]),
  );
  cases.invalid(
    "duplicate",
    "The second has the id of the first.",
    "call.duplicate",
    twice,
    tagged(1, 1),
    answers([returns(3, { json: 1 })], ["call.duplicate"]),
  );
  const cancel = cases.valid(
    "cancelled",
    "A method is told, and its call is answered all the same.",
    "call.cancelled call.answer",
    serving(port([hold(1), frame("call", 1 + CANCELS)])),
    answers([refuses(1, "call.cancelled")]),
  );
  cases.invalid(
    "cancelled_other",
    "The cancel is of a call that nobody makes.",
    "call.cancelled call.crossed",
    cancel,
    tagged(1, 2 + CANCELS),
    answers([]),
  );
}

function addItems(cases: Cases): void {
  const items = (count: number) =>
    Array.from({ length: count }, (_, index) => returns(1 + MORE, { json: index }));
  const three = cases.valid(
    "items",
    "A result in three pieces, and the answer behind them.",
    "call.message call.window call.answer",
    serving(port([calls(1, "count", { json: 3 })])),
    answers([...items(3), returns(1, { json: 3 })]),
  );
  cases.invalid(
    "items_none",
    "A result in no pieces.",
    "call.message",
    three,
    payload(FIRST_AT, calls(1, "count", { json: 0 }).payload as Uint8Array),
    answers([returns(1, { json: 0 })]),
  );
  const more = cases.valid(
    "window",
    "Twenty pieces, and room for 24 of them.",
    "call.window call.crossed",
    serving(port([calls(1, "count", { json: 20 }), frame("call", 1 + MORE)])),
    answers([...items(20), returns(1, { json: 20 })]),
  );
  cases.invalid(
    "window_other",
    "The `more` is of another call: there is room for 16.",
    "call.window call.crossed",
    more,
    field(FIRST_AT + 64, "frame_header", "tag", 2 + MORE),
    answers(items(16)),
  );
}
