/** The cases of `spec/call.md`. @module */

import { Cases, CLOSED, drained, endFrame, field, payload, setState } from "../builder.ts";
import { answers, calls, CANCELS, cut, FIRST_AT, frame, MORE, port } from "../builder_call.ts";
import { refuses, returns, sends, serving, VALUES, wrote } from "../builder_call.ts";
import { toHex } from "../bytes.ts";
import type { Change, Item, Operation, Setting, Settled, Value, Wanted } from "../case.ts";
import { fieldOf, fromChapter, limitOf, mustHold, reasonOf } from "../layout.ts";
import { buildFrame, CANCEL, type FramePlan, kindOf, LAST } from "../encode.ts";
import { entryAt } from "../values.ts";

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
  const from = cases.valid(serving(segment), {
    name: "add",
    about: "The example of the chapter: a call, and its answer.",
    clauses: "call.values_check call.values call.message call.answer call.refused call.stray",
    ...answers([returns(1, { json: 3 })]),
  });
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
    cases.invalid(from, change, { name, about, clauses, ...answers([refuses(1, wanted)]) });
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
    cases.invalid(from, broken(at, byte), {
      name,
      about,
      clauses: list,
      ...answers([refuses(1, code)]),
    });
  }
  cases.invalid(from, payload(FIRST_AT, around()), {
    name: "size_around",
    about: "A size around which the rest adds up, if its end is computed in 32 bits.",
    clauses: list,
    ...answers([refuses(1, "message.values")]),
  });
  cases.invalid(from, payload(FIRST_AT, listBehindText()), {
    name: "entry_values_late",
    about: "No value is a list, whatever is wrong with those before it.",
    clauses: list,
    ...answers([refuses(1, "message.values")]),
  });
  cases.invalid(from, broken(48, 0x37), {
    name: "sum",
    about: "Another argument.",
    clauses: "call.values_check call.values",
    ...answers([returns(1, { json: 8 })]),
  });
  const tag = (value: number) => field(FIRST_AT, "frame_header", "tag", value);
  cases.invalid(from, tag(0), {
    name: "notice",
    about: "No id: nobody answers.",
    clauses: "call.answer",
    ...answers([]),
  });
  const strays: [string, string, Change, string][] = [
    ["both_marks", "A call with both marks.", tag(1 + CANCELS + MORE), "call.form"],
    ["cancel_payload", "A cancel with values.", tag(1 + CANCELS), "call.form"],
    ["more_payload", "A `more` with values.", tag(1 + MORE), "call.form"],
    ["notice_mark", "A mark without an id.", tag(MORE), "call.form"],
  ];
  for (const [name, about, change, code] of strays) {
    cases.invalid(from, change, {
      name,
      about,
      clauses: "call.stray call.message",
      ...answers([], [code]),
    });
  }
  for (const kind of ["return", "throw"]) {
    cases.invalid(from, field(FIRST_AT, "frame_header", "kind", kindOf(kind)), {
      name: `no_${kind}`,
      about: "An answer where nothing was called.",
      clauses: "call.unmatched call.match",
      ...answers([], ["call.answer"]),
    });
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
    cases.valid(serving(port([calls(1, "identity", ...values)])), {
      name,
      about,
      clauses: "call.values_check call.values call.values_encoded call.answer",
      ...answers([returns(1, ...result)]),
    });
  const bytes = { hex: "00 01 02 ff" };
  const from = echo("bytes", "Bytes cross as bytes.", [bytes], [bytes]);
  cases.invalid(from, inList(entryAt(1), "value_entry", "codec", 1), {
    name: "bytes_text",
    about: "The same bytes as a text, which they are not.",
    clauses: "call.values_check call.values_encoded",
    ...answers([refuses(1, "message.text")]),
  });
  echo("empty_bytes", "No bytes are a value.", [{ hex: "" }], [{ hex: "" }]);
  echo("empty_text", "Nor is an empty text absent.", [{ text: "" }], [{ text: "" }]);
  const absent = echo("absent", "An absent value: a return of none.", [{}], []);
  cases.invalid(absent, inList(entryAt(1), "value_entry", "codec", 1), {
    name: "absent_text",
    about: "An empty text in its place.",
    clauses: "call.values_encoded call.values",
    ...answers([returns(1, { text: "" })]),
  });
  echo("absent_first", "An absent value stands before others.", [{}, { json: 1 }], []);
  const many = Array.from({ length: limitOf("values_count_max") - 1 }, () => ({}));
  const most = port(cut(calls(1, "identity", ...many), 400), 8192);
  cases.valid(serving(most), {
    name: "count_256",
    about: "As many values as a list may have, in a message of several frames.",
    clauses: "call.values_check",
    ...answers([returns(1)]),
  });
}

function addNames(cases: Cases): void {
  const of = (name: string, id: string, about: string, code: string) =>
    cases.valid(serving(port([calls(1, name)])), {
      name: id,
      about,
      clauses: "call.refused call.served_only",
      ...answers([refuses(1, code)]),
    });
  of("n".repeat(255), "name_255", "As long as a name may be; nobody serves it.", "call.method");
  of("n".repeat(256), "name_256", "A name that is too long.", "call.form");
  of("", "name_none", "A name of no characters.", "call.form");
  of("__proto__", "name_proto", "What every object of JavaScript has.", "call.method");
  const from = of("toString", "name_language", "Another such name.", "call.method");
  cases.invalid(from, payload(FIRST_AT, calls(1, "identity").payload as Uint8Array), {
    name: "name_served",
    about: "A name of the same length that is served.",
    clauses: "call.served_only",
    ...answers([returns(1)]),
  });
  cases.valid(serving(port([frame("call", 1)])), {
    name: "no_name",
    about: "A call without any value.",
    clauses: "call.refused call.message",
    ...answers([refuses(1, "call.form")]),
  });
}

function addStrays(cases: Cases): void {
  const from = cases.valid(serving(port([frame("call", 7 + CANCELS), frame("call", 7 + MORE)])), {
    name: "crossed",
    about: "A cancel and a `more` that come too late: nothing comes of them.",
    clauses: "call.crossed call.stray",
    ...answers([]),
  });
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
    cases.invalid(from, change, {
      name,
      about,
      clauses: "call.stray call.message",
      ...answers([], ["call.form"]),
    });
  }
  cases.invalid(from, field(at + 16, "frame_header", "kind", kindOf("return")), {
    name: "item_unmatched",
    about: "An item that no call of the port waits for.",
    clauses: "call.unmatched call.crossed",
    ...answers([], ["call.answer"]),
  });
}

function addAnswers(cases: Cases): void {
  const tagged = (tag: number) => field(FIRST_AT, "frame_header", "tag", tag);
  const error: Value[] = [{ text: "Oops" }, { text: "it broke" }, { json: { at: 3 } }];
  const from = cases.valid(serving(port([calls(5, "fail", ...error)])), {
    name: "fail",
    about: "A method that fails: name, text and data cross.",
    clauses: "call.throw call.message call.answer",
    ...answers([wrote("throw", 5, ...error)]),
  });
  const thrown = answers([], ["call.thrown"]);
  cases.invalid(from, tagged(0), {
    name: "fail_notice",
    about: "The same of a notice.",
    clauses: "call.throw",
    ...thrown,
  });
  const long: Value[] = [{ text: "é".repeat(128) }, { text: "é".repeat(2049) }];
  cases.valid(
    serving(port(cut(calls(5, "fail", ...long), 400), 8192), undefined, { limit: 8192 }),
    {
      name: "fail_long",
      about: "A name and a text that are too long, cut at a character.",
      clauses: "call.throw",
      ...answers([wrote("throw", 5, { text: "é".repeat(127) }, { text: "é".repeat(2048) })]),
    },
  );
  cases.valid(serving(port([calls(5, "fail", { text: "" }, { text: "" })])), {
    name: "fail_nameless",
    about: "An error without a name.",
    clauses: "call.throw",
    ...answers([wrote("throw", 5, { text: "Error" }, { text: "" })]),
  });
  const odd = cases.valid(serving(port([calls(5, "odd")])), {
    name: "odd",
    about: "A result that no codec of a list can carry.",
    clauses: "call.result",
    ...answers([refuses(5, "call.result")]),
  });
  const nothing = answers([]);
  cases.invalid(odd, tagged(0), {
    name: "odd_notice",
    about: "Nobody wants its result.",
    clauses: "call.result",
    ...nothing,
  });
  const notes = [{ json: 1 }, { json: 2 }, { json: 3 }].map((note) => calls(0, "note", note));
  const order = cases.valid(serving(port([...notes, calls(1, "noted")])), {
    name: "order",
    about: "Notices and a call, in the order in which they were written.",
    clauses: "call.order call.answer",
    ...answers([returns(1, { json: [1, 2, 3] })]),
  });
  const other = calls(0, "note", { json: 9 }).payload as Uint8Array;
  cases.invalid(order, payload(FIRST_AT, other), {
    name: "order_other",
    about: "The first of them says something else.",
    clauses: "call.order",
    ...answers([returns(1, { json: [9, 2, 3] })]),
  });
}

function addDropped(cases: Cases): void {
  const long = calls(1, "identity", { hex: "aa ".repeat(400).trim() });
  const frames = cut(long, 300);
  const from = cases.valid(serving(port(frames)), {
    name: "parts",
    about: "A call of two frames.",
    clauses: "call.refused call.answer",
    ...answers([returns(1, { hex: "aa ".repeat(400).trim() })]),
  });
  cases.invalid(from, { member: "limit", value: 200 }, {
    name: "too_large",
    about: "It is above the limit: its caller is told, once it has come.",
    clauses: "call.refused pipe.limit",
    ...answers([refuses(1, "message.size")]),
  });
  const first = frames[0] as FramePlan;
  const taken = { ...first, flags: LAST + CANCEL, payload: new Uint8Array(0) };
  cases.valid(serving(port([first, taken])), {
    name: "taken_back",
    about: "A call that was taken back in the middle has never been made.",
    clauses: "call.refused call.answer pipe.cancelled",
    ...answers([], ["message.cancelled"]),
  });
  cases.valid(serving(port([first, taken]), undefined, { limit: 200 }), {
    name: "taken_back_too_large",
    about: "The same above the limit: nothing is reported twice, and nobody is answered.",
    clauses: "call.refused pipe.report_once",
    ...answers([]),
  });
}

function addLater(cases: Cases): void {
  const tagged = (index: number, tag: number) =>
    field(FIRST_AT + index * 48, "frame_header", "tag", tag);
  const hold = (tag: number) => calls(tag, "hold");
  const twice = cases.valid(serving(port([hold(1), hold(2), calls(3, "held")])), {
    name: "two_held",
    about: "Two calls that are not answered yet.",
    clauses: "call.duplicate call.answer",
    ...answers([returns(3, { json: 2 })]),
  });
  cases.invalid(twice, tagged(1, 1), {
    name: "duplicate",
    about: "The second has the id of the first.",
    clauses: "call.duplicate",
    ...answers([returns(3, { json: 1 })], ["call.duplicate"]),
  });
  const cancel = cases.valid(serving(port([hold(1), frame("call", 1 + CANCELS)])), {
    name: "cancelled",
    about: "A method is told, and its call is answered all the same.",
    clauses: "call.cancelled call.answer",
    ...answers([refuses(1, "call.cancelled")]),
  });
  cases.invalid(cancel, tagged(1, 2 + CANCELS), {
    name: "cancelled_other",
    about: "The cancel is of a call that nobody makes.",
    clauses: "call.cancelled call.crossed",
    ...answers([]),
  });
}

function addItems(cases: Cases): void {
  const items = (count: number) =>
    Array.from({ length: count }, (_, index) => returns(1 + MORE, { json: index }));
  const three = cases.valid(serving(port([calls(1, "count", { json: 3 })])), {
    name: "items",
    about: "A result in three pieces, and the answer behind them.",
    clauses: "call.message call.window call.answer",
    ...answers([...items(3), returns(1, { json: 3 })]),
  });
  cases.invalid(three, payload(FIRST_AT, calls(1, "count", { json: 0 }).payload as Uint8Array), {
    name: "items_none",
    about: "A result in no pieces.",
    clauses: "call.message",
    ...answers([returns(1, { json: 0 })]),
  });
  const more = cases.valid(
    serving(port([calls(1, "count", { json: 20 }), frame("call", 1 + MORE)])),
    {
      name: "window",
      about: "Twenty pieces, and room for 24 of them.",
      clauses: "call.window call.crossed",
      ...answers([...items(20), returns(1, { json: 20 })]),
    },
  );
  cases.invalid(more, field(FIRST_AT + 64, "frame_header", "tag", 2 + MORE), {
    name: "window_other",
    about: "The `more` is of another call: there is room for 16.",
    clauses: "call.window call.crossed",
    ...answers(items(16)),
  });
}

// The cases of `spec/call.md` in which the port under test calls.

/** Adds the cases. */
function addCallerCases(cases: Cases): void {
  addResults(cases);
  addThrows(cases);
  addIds(cases);
  addGivenUp(cases);
  addItemsCaller(cases);
  addLost(cases);
}

const ARGUMENTS: Value[] = [{ json: 1 }, { text: "two" }];
const CALL: Operation = { call: { name: "ask", values: ARGUMENTS } };
const ASKED = wrote("call", 1, { text: "ask" }, ...ARGUMENTS);
const READ: Operation = { read: true };
const TAKE: Operation = { take: true };
const NOTHING = drained([]);

/** An endpoint that calls, whatever its peer does then. */
function calling(operations: Operation[], more: Partial<Setting> = {}): Setting {
  return serving(port(), operations, more);
}

function read(...reports: string[]): Wanted {
  return drained(reports.map((report) => ({ report })));
}

/** A call, what the peer sends, and what has come of it; and what was written meanwhile. */
function answered(frames: FramePlan[], more: Partial<Setting> = {}): Setting {
  return calling([CALL, TAKE, sends(frames), READ, { outcome: 0 }, TAKE], more);
}

function settles(settled: Settled, reports: string[] = [], written: Item[] = []) {
  const results: Wanted[] = ["ok", drained([ASKED]), "ok", read(...reports), settled];
  return { results: [...results, drained(written)] };
}

/** Another frame in place of the one that the peer sends: as many bytes as that had. */
function sent(frame: FramePlan): Change {
  return { member: "operations.2.set.0.hex", value: toHex(buildFrame(frame)) };
}

function returned(value?: Value): Settled {
  return { outcome: "returned", ...(value && { value }) };
}

function addResults(cases: Cases): void {
  const good = frame("return", 1, { json: 12 });
  const from = cases.valid(answered([good]), {
    name: "returned",
    about: "A call and its answer.",
    clauses: "call.match call.once call.values call.message call.id call.unmatched call.bad_answer",
    ...settles(returned({ json: 12 })),
  });
  const bad = "call.bad_answer call.once";
  const broken = (at: number, byte: number): FramePlan => {
    const list = (good.payload as Uint8Array).slice();
    list[at] = byte;
    return { ...good, payload: list };
  };
  const changes: [string, string, string, FramePlan, string][] = [
    ["list", "Its list is broken.", bad, broken(0, 2), "message.values"],
    ["json", "Its value is no JSON.", bad, broken(16, 0x78), "message.json"],
    ["codec_unknown", "A codec that nobody knows.", bad, broken(12, 100), "message.codec"],
    ["codec", "An answer of another codec.", bad, { ...good, codec: 2 }, "message.codec"],
    [
      "throw_short",
      "A throw needs a name and a text.",
      bad,
      { ...good, kind: kindOf("throw") },
      "call.form",
    ],
  ];
  for (const [name, about, clauses, plan, code] of changes) {
    cases.invalid(from, sent(plan), {
      name: `returned_${name}`,
      about,
      clauses,
      ...settles({ outcome: code }),
    });
  }
  cases.invalid(from, sent({ ...good, tag: 2 }), {
    name: "returned_other",
    about: "The answer has the id of another call.",
    clauses: "call.match call.unmatched call.id",
    ...settles({ outcome: "pending" }, ["call.answer"]),
  });
  cases.invalid(from, sent({ ...good, tag: 1 + MORE }), {
    name: "returned_item",
    about: "An item, where one result was asked for: the call is given up.",
    clauses: "call.too_many call.give_up call.match",
    ...settles({ outcome: "call.items" }, [], [wrote("call", 1 + CANCELS)]),
  });
  cases.valid(answered([frame("return", 1, { json: 1 }, { json: 2 })]), {
    name: "returned_two",
    about: "An answer of two values.",
    clauses: bad,
    ...settles({ outcome: "call.form" }),
  });
  cases.valid(answered(cut(frame("throw", 1, { text: "x".repeat(256) }, { text: "" }), 160)), {
    name: "returned_throw_long",
    about: "The name of an error has 255 bytes at most.",
    clauses: bad,
    ...settles({ outcome: "call.form" }),
  });
  cases.valid(answered([frame("return", 1)]), {
    name: "returned_nothing",
    about: "An absent result.",
    clauses: "call.match call.message",
    ...settles(returned()),
  });
  const large = cut(frame("return", 1, { hex: "bb ".repeat(400).trim() }), 300);
  cases.valid(answered(large, { limit: 200 }), {
    name: "returned_too_large",
    about: "An answer above the limit ends its call, and no other is lost.",
    clauses: "call.bad_answer pipe.limit",
    ...settles({ outcome: "message.size" }),
  });
  const twice = calling([CALL, TAKE, sends([good, good]), READ, { outcome: 0 }]);
  const second = { results: ["ok", drained([ASKED]), "ok", read("call.answer")] as Wanted[] };
  cases.valid(twice, {
    name: "returned_twice",
    about: "A second answer belongs to no call.",
    clauses: "call.once call.unmatched",
    results: [...second.results, returned({ json: 12 })],
  });
  const absent = { call: { name: "ask", values: [{ json: 1 }, {}, { hex: "00 ff" }] } };
  const whole = cases.valid(calling([absent, TAKE]), {
    name: "arguments_absent",
    about: "An absent argument stands before bytes.",
    clauses: "call.values_encoded call.values call.message",
    results: ["ok", drained([wrote("call", 1, { text: "ask" }, ...absent.call.values)])],
  });
  const none: Value[] = [{ json: 1 }, { json: null }, { hex: "00 ff" }];
  cases.invalid(whole, { member: "operations.0.call.values", value: none }, {
    name: "arguments_null",
    about: "Which is another thing than null.",
    clauses: "call.values_encoded",
    results: ["ok", drained([wrote("call", 1, { text: "ask" }, ...none)])],
  });
}

function addThrows(cases: Cases): void {
  const thrown = (name: string) => frame("throw", 1, { text: name }, { text: "no" }, { json: 7 });
  const error = (name: string) => ({ name, text: "no", data: { json: 7 } });
  const codes = ["form", "limit", "depth", "method", "arguments", "result", "cancelled"];
  const from = cases.valid(answered([thrown("call.metho")]), {
    name: "thrown",
    about: "An error of the method.",
    clauses: "call.thrown call.match call.message",
    ...settles({ outcome: "call.thrown", error: error("call.metho") }),
  });
  cases.invalid(from, sent(thrown("pipe.ended")), {
    name: "thrown_peer",
    about: "The name of a code that does not speak of a call.",
    clauses: "call.thrown",
    ...settles({ outcome: "call.thrown", error: error("pipe.ended") }),
  });
  for (const code of codes) {
    cases.valid(answered([thrown(`call.${code}`)]), {
      name: `thrown_${code}`,
      about: "A refusal: the name of the error is the code.",
      clauses: "call.thrown",
      ...settles({ outcome: `call.${code}` }),
    });
  }
  cases.invalid(from, sent(thrown("call.limit")), {
    name: "thrown_refusal",
    about: "The name of a refusal, as long as the other.",
    clauses: "call.thrown",
    ...settles({ outcome: "call.limit" }),
  });
}

function addIds(cases: Cases): void {
  const id = (number: number) => wrote("call", number, { text: "ask" }, ...ARGUMENTS);
  const from = cases.valid(
    calling([CALL, CALL, TAKE, sends([frame("return", 1)]), READ, CALL, TAKE]),
    {
      name: "ids",
      about: "Ids count up from 1, whatever was answered meanwhile.",
      clauses: "call.id call.under_way",
      results: ["ok", "ok", drained([id(1), id(2)]), "ok", read(), "ok", drained([id(3)])],
    },
  );
  cases.invalid(from, {
    member: "operations.3.set.0.hex",
    value: toHex(buildFrame(frame("return", 5))),
  }, {
    name: "ids_unanswered",
    about: "An answer to nobody changes nothing of that.",
    clauses: "call.id call.unmatched",
    results: ["ok", "ok", drained([id(1), id(2)]), "ok", read("call.answer"), "ok"].concat(
      [drained([id(3)])] as never[],
    ) as Wanted[],
  });
  const last = limitOf("call_id_max");
  const wraps = cases.valid(calling([CALL, CALL, CALL, TAKE], { first_id: last - 1 }), {
    name: "ids_wrap",
    about: "Behind the last id comes 1.",
    clauses: "call.id",
    results: ["ok", "ok", "ok", drained([id(last - 1), id(last), id(1)])],
  });
  cases.invalid(wraps, { member: "first_id", value: last }, {
    name: "ids_first",
    about: "The user has chosen another first id.",
    clauses: "call.id",
    results: ["ok", "ok", "ok", drained([id(last), id(1), id(2)])],
  });
  const notify: Operation = { notify: { name: "ask", values: ARGUMENTS } };
  cases.valid(calling([notify, CALL, TAKE]), {
    name: "notify",
    about: "A notice has the id 0, and takes none.",
    clauses: "call.message call.id",
    results: ["ok", "ok", drained([id(0), id(1)])],
  });
}

function addGivenUp(cases: Cases): void {
  const operations: Operation[] = [CALL, TAKE, { give_up: 0 }, { outcome: 0 }, TAKE];
  const aborted: Settled = { outcome: "wait.aborted" };
  const begun: Wanted[] = ["ok", drained([ASKED]), "ok", aborted];
  const cancel = drained([wrote("call", 1 + CANCELS)]);
  const late = [sends([frame("return", 1, { json: 1 })]), READ, { outcome: 0 }] as Operation[];
  const from = cases.valid(calling([...operations, ...late]), {
    name: "given_up",
    about: "A call that is given up: a cancel, and the answer that comes late is dropped.",
    clauses: "call.give_up call.late call.once call.unmatched call.match",
    results: [...begun, cancel, "ok", read(), aborted],
  });
  const change = (plan: FramePlan): Change => ({
    member: "operations.5.set.0.hex",
    value: toHex(buildFrame(plan)),
  });
  cases.invalid(from, change(frame("return", 2, { json: 1 })), {
    name: "given_up_other",
    about: "The late answer is that of another call.",
    clauses: "call.late call.unmatched",
    results: [...begun, cancel, "ok", read("call.answer"), aborted],
  });
  const held = calling([CALL, { give_up: 0 }, CALL, TAKE]);
  const second = wrote("call", 2, { text: "ask" }, ...ARGUMENTS);
  const before = cases.valid(held, {
    name: "given_up_held",
    about: "Its id is not used again before the answer, and the cancel comes before the next call.",
    clauses: "call.id call.give_up call.cancel_owed",
    results: ["ok", "ok", "ok", drained([ASKED, wrote("call", 1 + CANCELS), second])],
  });
  cases.invalid(before, { member: "operations.2", value: { outcome: 0 } }, {
    name: "given_up_second",
    about: "The second call is given up, and nothing else is there.",
    clauses: "call.give_up",
    results: ["ok", "ok", aborted, drained([ASKED, wrote("call", 1 + CANCELS)])],
  });
}

function addItemsCaller(cases: Cases): void {
  const call: Operation = { call: { name: "ask", values: ARGUMENTS }, items: true };
  const items = (count: number) =>
    Array.from({ length: count }, (_, index) => frame("return", 1 + MORE, { json: index }));
  const item = (index: number): Settled => ({ outcome: "item", value: { json: index } });
  const next = (count: number) => Array.from({ length: count }, (): Operation => ({ item: 0 }));
  const taken = (count: number) => Array.from({ length: count }, (_, index) => item(index));
  const granted = (count: number, written: Item[]) => ({
    results: ["ok", drained([ASKED]), "ok", read(), ...taken(count), drained(written)] as Wanted[],
  });
  const from = cases.valid(calling([call, TAKE, sends(items(9)), READ, ...next(8), TAKE]), {
    name: "granted",
    about: "Behind the eighth item that was taken, room for eight more.",
    clauses: "call.grant call.match call.too_many",
    ...granted(8, [wrote("call", 1 + MORE)]),
  });
  cases.invalid(from, { member: "operations.11", value: { take: true } }, {
    name: "not_granted",
    about: "Seven were taken.",
    clauses: "call.grant",
    results: [
      ...["ok", drained([ASKED]), "ok", read(), ...taken(7)] as Wanted[],
      NOTHING,
      NOTHING,
    ],
  });
  cases.valid(
    calling([call, TAKE, sends([...items(8), frame("return", 1)]), READ, ...next(9), TAKE]),
    {
      name: "granted_ended",
      about: "Nobody grants anything behind the answer.",
      clauses: "call.grant",
      results: [
        ...["ok", drained([ASKED]), "ok", read(), ...taken(8)] as Wanted[],
        returned(),
        NOTHING,
      ],
    },
  );
  const spoilt = frame("return", 1 + MORE, { json: 12 });
  spoilt.payload[16] = 0x78;
  cases.valid(calling([call, TAKE, sends([spoilt]), READ, { outcome: 0 }, TAKE]), {
    name: "item_json",
    about: "An item that is no JSON ends the call.",
    clauses: "call.bad_answer call.give_up",
    results: [
      ...["ok", drained([ASKED]), "ok", read(), { outcome: "message.json" }] as Wanted[],
      drained([wrote("call", 1 + CANCELS)]),
    ],
  });
  const many = (count: number) =>
    calling([call, TAKE, sends(items(count)), READ, { outcome: 0 }, TAKE]);
  cases.valid(many(16), {
    name: "items_16",
    about: "As many as may come unasked.",
    clauses: "call.too_many",
    results: ["ok", drained([ASKED]), "ok", read(), { outcome: "pending" }, NOTHING],
  });
  cases.valid(many(17), {
    name: "items_17",
    about: "One more ends the call.",
    clauses: "call.too_many call.give_up",
    results: [
      ...["ok", drained([ASKED]), "ok", read(), { outcome: "call.items" }] as Wanted[],
      drained([wrote("call", 1 + CANCELS)]),
    ],
  });
}

function addLost(cases: Cases): void {
  const call: Wanted[] = ["ok", drained([ASKED]), "ok"];
  const ended = cases.valid(
    calling([CALL, TAKE, sends([endFrame()]), READ, { outcome: 0 }, CALL]),
    {
      name: "ended",
      about: "The peer ends its stream: no answer can come.",
      clauses: "call.lost",
      results: [...call, drained([], "ended"), { outcome: "call.ended" }, "call.ended"],
    },
  );
  cases.invalid(ended, {
    member: "operations.2.set.0.hex",
    value: toHex(buildFrame({ kind: kindOf("data"), flags: 3 })),
  }, {
    name: "ended_not",
    about: "It writes a plain message in its place.",
    clauses: "call.lost",
    results: [
      ...call,
      drained([{ kind: 1, codec: 0, tag: 0, hex: "" }]),
      { outcome: "pending" },
      "ok",
    ],
  });
  cases.valid(
    calling([CALL, TAKE, sends([frame("return", 1), endFrame()]), READ, { outcome: 0 }]),
    {
      name: "ended_behind",
      about: "What was published before counts.",
      clauses: "call.lost call.once",
      results: [...call, drained([], "ended"), returned()],
    },
  );
  cases.valid(calling([CALL, TAKE, setState(0, CLOSED), READ, { outcome: 0 }, CALL]), {
    name: "closed",
    about: "The peer closes.",
    clauses: "call.lost",
    results: [...call, drained([], "peer.closed"), { outcome: "peer.closed" }, "peer.closed"],
  });
  const failed = 3 + 256 * reasonOf("peer.lost");
  cases.valid(calling([CALL, TAKE, setState(0, failed), READ, { outcome: 0 }]), {
    name: "failed",
    about: "The peer is found dead.",
    clauses: "call.lost",
    results: [...call, drained([], "peer.failed", "peer.lost"), { outcome: "peer.failed" }],
  });
  cases.valid(calling([CALL, TAKE, sends([{ kind: 99 }]), READ, { outcome: 0 }]), {
    name: "fault",
    about: "A frame that is none.",
    clauses: "call.lost pipe.fault",
    results: [...call, drained([], "frame.kind"), { outcome: "frame.kind" }],
  });
  cases.valid(calling([CALL, TAKE, { close: true }, READ, { outcome: 0 }, CALL]), {
    name: "own_close",
    about: "The port closes itself.",
    clauses: "call.lost call.once",
    results: [...call, drained([], "pipe.closed"), { outcome: "pipe.closed" }, "pipe.closed"],
  });
}
