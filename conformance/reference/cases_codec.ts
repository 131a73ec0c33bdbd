/** The cases of `spec/codec.md`. @module */

import { Cases, faults, field, firstOf, member, message, part, payload, pipe } from "./builder.ts";
import { reading, reads } from "./builder.ts";
import { pattern, text, utf8, whole, writersPipe, writing } from "./builder.ts";
import { fromHex, toHex } from "./bytes.ts";
import type { Item } from "./case.ts";
import { addCbor } from "./cases_codec_cbor.ts";
import { valueOf } from "./layout.ts";

const TEXT = valueOf("codec", "text");
const JSON_TEXT = valueOf("codec", "json");
const BATCH = valueOf("codec", "json_batch");
/** Behind every message under test: what is lost must cost that message alone. */
const NEXT = text("next");

/** All cases of this noun. */
export function codecCases(): Cases {
  const cases = new Cases("codec");
  addTexts(cases);
  addJson(cases);
  addBatches(cases);
  addUnknown(cases);
  addUnknownParts(cases);
  addWrites(cases);
  addCbor(cases);
  return cases;
}

function json(value: unknown, tag = 0): Item {
  return message({ codec: JSON_TEXT, tag, json: value });
}

/** A message and the one behind it, to be read as values. */
function decoding(content: Uint8Array, codec: number, tag = 0) {
  const plan = pipe({
    capacity: 512,
    frames: [whole(content, { codec, tag }), whole("next")],
  });
  return { plan, setting: reading(plan, { kind: "decode" }) };
}

function addTexts(cases: Cases): void {
  const content = "\ufeffgr\u00fcn \u20ac \u{10ffff}";
  const { plan, setting } = decoding(utf8(content), TEXT, 3);
  cases.valid(setting, {
    name: "text",
    about: "Text of one to four bytes a character, U+FEFF in front.",
    clauses: "codec.text codec.bad_text",
    ...reads([text(content, 3), NEXT]),
  });
  const wrong: [string, string, string][] = [
    ["stray_byte", "A byte that no UTF-8 has.", "ff"],
    ["lone_continuation", "A continuation without a beginning.", "80"],
    ["cut_character", "A character that ends early.", "e2 82 20"],
    ["overlong", "Two bytes for what one can say.", "c0 af"],
    ["surrogate", "Half of a surrogate pair.", "ed a0 80"],
    ["too_high", "A character above U+10FFFF.", "f4 90 80 80"],
  ];
  for (const [name, about, hex] of wrong) {
    cases.invalid("codec/text", payload(plan.at[0]!, fromHex(hex)), {
      name,
      about,
      clauses: "codec.bad_text codec.text",
      ...reads([{ report: "message.text" }, NEXT]),
    });
  }
  const empty = decoding(utf8(""), TEXT);
  cases.valid(empty.setting, {
    name: "empty_text",
    about: "An empty text.",
    clauses: "codec.bad_text codec.bad_json",
    ...reads([text(""), NEXT]),
  });
  for (const [name, codec] of [["json", JSON_TEXT], ["batch", BATCH]] as const) {
    cases.invalid("codec/empty_text", field(empty.plan.at[0]!, "frame_header", "codec", codec), {
      name: `empty_${name}`,
      about: "Nothing is no JSON.",
      clauses: "codec.bad_json codec.json",
      ...reads([{ report: "message.json" }, NEXT]),
    });
  }
  const bytes = decoding(fromHex("ff c0 80 00"), 0);
  cases.valid(bytes.setting, {
    name: "bytes",
    about: "Bytes may be any.",
    clauses: "codec.bad_text codec.text",
    ...reads([message({ hex: "ff c0 80 00" }), NEXT]),
  });
  cases.invalid("codec/bytes", field(bytes.plan.at[0]!, "frame_header", "codec", TEXT), {
    name: "bytes_as_text",
    about: "As text, the same bytes are not well-formed.",
    clauses: "codec.bad_text codec.text",
    ...reads([{ report: "message.text" }, NEXT]),
  });
}

/** Short texts that many parsers take for JSON, and a neighbour of each that is. */
function addScalars(cases: Cases): void {
  const right: [string, string, string, unknown][] = [
    ["json_number", "A number with all that it may have.", "-0.1e+2", -10],
    ["json_zero", "A number that is zero, behind a sign.", "-0     ", -0],
    ["json_string", "A string in which a tab stands as an escape.", '"a\\tb" ', "a\tb"],
    ["json_list", "A list of two.", "[1 ,2 ]", [1, 2]],
  ];
  for (const [name, about, content, value] of right) {
    const { setting } = decoding(utf8(content), JSON_TEXT);
    cases.valid(setting, {
      name,
      about,
      clauses: "codec.json codec.bad_json",
      ...reads([json(value), NEXT]),
    });
  }
  const wrong: [string, string, string, string][] = [
    ["json_zeros", "A number that begins with two digits, the first one 0.", "01", "json_number"],
    ["json_zeros_below", "The same behind a sign.", "-01", "json_number"],
    ["json_point", "A number that ends with a point.", "1.", "json_number"],
    ["json_fraction", "A number that begins with a point.", ".5", "json_number"],
    ["json_plus", "A number with a sign that it must not have.", "+1", "json_number"],
    ["json_exponent", "A number whose exponent has no digit.", "1e+", "json_number"],
    ["json_hexadecimal", "A number in hexadecimal.", "0x10", "json_number"],
    ["json_minus", "A sign and no number.", "-", "json_zero"],
    ["json_infinity", "`Infinity` is no number of JSON.", "-Infin", "json_zero"],
    ["json_feed", "White space that JSON does not have.", "\f1", "json_zero"],
    ["json_space", "White space of Unicode.", "\u00a01", "json_zero"],
    ["json_tab", "A string in which a tab stands as it is.", '"a\tb"', "json_string"],
    ["json_unicode", "An escape with three digits.", '"\\u12"', "json_string"],
    ["json_comma", "A list that ends with a comma.", "[1,2,]", "json_list"],
    ["json_comma_first", "A list that begins with a comma.", "[,1,2]", "json_list"],
    ["json_sparse", "A list with a gap.", "[1,,2]", "json_list"],
  ];
  for (const [name, about, content, from] of wrong) {
    const { plan } = decoding(utf8("       "), JSON_TEXT);
    cases.invalid(
      `codec/${from}`,
      payload(plan.at[0]!, utf8(content.padEnd(7 - (utf8(content).length - content.length)))),
      {
        name,
        about,
        clauses: "codec.bad_json codec.json",
        ...reads([{ report: "message.json" }, NEXT]),
      },
    );
  }
}

function addJson(cases: Cases): void {
  const { plan, setting } = decoding(utf8(' {"a":[1,"\u00fc",null]}\n'), JSON_TEXT, 7);
  cases.valid(setting, {
    name: "json",
    about: "A JSON text with white space around it.",
    clauses: "codec.json codec.bad_json codec.text",
    ...reads([json({ a: [1, "\u00fc", null] }, 7), NEXT]),
  });
  const wrong: [string, string, string][] = [
    ["json_open", "It does not end.", "[[{"],
    ["json_two", "Two JSON texts.", "1 {"],
    ["json_word", "No JSON at all.", " nul"],
    ["json_mark", "U+FEFF before it.", "\ufeff1"],
    ["json_nan", "`NaN` is no number of JSON.", ' [1,NaN ,3,"123"]\n'],
    ["json_comment", "JSON has no comments.", " 1/*2*/"],
    ["json_quote", "A name in other quotes.", " {'a':1}"],
  ];
  for (const [name, about, content] of wrong) {
    cases.invalid("codec/json", payload(plan.at[0]!, utf8(content)), {
      name,
      about,
      clauses: "codec.bad_json codec.json",
      ...reads([{ report: "message.json" }, NEXT]),
    });
  }
  addScalars(cases);
  cases.invalid("codec/json", payload(plan.at[0]!, fromHex("22 ff 22")), {
    name: "json_not_utf8",
    about: "A JSON text that is not well-formed UTF-8.",
    clauses: "codec.bad_text codec.text",
    ...reads([{ report: "message.text" }, NEXT]),
  });
  const word = decoding(utf8("null"), JSON_TEXT);
  cases.valid(word.setting, {
    name: "json_null",
    about: "`null` is a message like any other.",
    clauses: "codec.json codec.bad_json",
    ...reads([json(null), NEXT]),
  });
  const escape = decoding(utf8('"\\ud800"'), JSON_TEXT, 4);
  cases.valid(escape.setting, {
    name: "json_surrogate",
    about:
      "An escape of half a surrogate pair is JSON; what becomes of it is the language's affair.",
    clauses: "codec.bad_json",
    ...reads([message({ codec: JSON_TEXT, tag: 4 }), NEXT]),
  });
  cases.invalid("codec/json_surrogate", payload(escape.plan.at[0]!, utf8('"\\xd800"')), {
    name: "json_escape",
    about: "An escape that JSON does not have.",
    clauses: "codec.bad_json",
    ...reads([{ report: "message.json" }, NEXT]),
  });
  const frames = [
    firstOf(5, utf8("[1,"), { codec: JSON_TEXT }),
    part(utf8("2]"), { codec: JSON_TEXT }),
    whole("next"),
  ];
  const parts = pipe({ frames });
  cases.valid(reading(parts, { kind: "decode" }), {
    name: "json_parts",
    about: "A JSON text in two parts.",
    clauses: "codec.json",
    ...reads([json([1, 2]), NEXT]),
  });
}

function addBatches(cases: Cases): void {
  const content = '[{"a":1},null,[2,3],"x,]"]';
  const { plan, setting } = decoding(utf8(content), BATCH, 9);
  const values = JSON.parse(content);
  cases.valid(setting, {
    name: "batch",
    about: "A batch is as many messages as it has elements, each of codec `json` with its tag.",
    clauses: "codec.batch codec.batch_read codec.bad_json frame.batch_whole",
    ...reads([...values.map((value: unknown) => json(value, 9)), NEXT]),
  });
  cases.invalid("codec/batch", field(plan.at[0]!, "frame_header", "codec", JSON_TEXT), {
    name: "batch_as_json",
    about: "The same payload as one JSON message.",
    clauses: "codec.batch_read",
    ...reads([json(values, 9), NEXT]),
  });
  cases.invalid("codec/batch", payload(plan.at[0]!, utf8("[,")), {
    name: "batch_open",
    about: "An array that does not parse.",
    clauses: "codec.bad_json codec.batch",
    ...reads([{ report: "message.json" }, NEXT]),
  });
  const one = decoding(utf8("[0]"), BATCH);
  cases.valid(one.setting, {
    name: "batch_of_one",
    about: "The smallest batch.",
    clauses: "codec.batch codec.bad_json",
    ...reads([json(0), NEXT]),
  });
  const wrong: [string, string, string][] = [
    ["batch_of_none", "An array without an element.", "[ ]"],
    ["batch_no_array", "No array.", "{ }"],
    ["batch_number", "A number.", "123"],
  ];
  for (const [name, about, text] of wrong) {
    cases.invalid("codec/batch_of_one", payload(one.plan.at[0]!, utf8(text)), {
      name,
      about,
      clauses: "codec.bad_json codec.batch",
      ...reads([{ report: "message.json" }, NEXT]),
    });
  }
  cases.invalid("codec/batch", payload(plan.at[0]!, fromHex("5b 22 ff")), {
    name: "batch_not_utf8",
    about: "A batch that is not well-formed UTF-8.",
    clauses: "codec.bad_text codec.text",
    ...reads([{ report: "message.text" }, NEXT]),
  });
  cases.invalid(
    "codec/batch",
    payload(plan.at[0]!, Uint8Array.of(...utf8('[{"a":1},null,[2,3],"x'), 0xff)),
    {
      name: "batch_ends_not_utf8",
      about: "Its last element is not well-formed UTF-8: none is delivered.",
      clauses: "codec.bad_text codec.text",
      ...reads([{ report: "message.text" }, NEXT]),
    },
  );
  cases.invalid("codec/batch", payload(plan.at[0]!, utf8('[{"a":1},null,[2,3],"x,[""')), {
    name: "batch_ends_open",
    about: "Its last element does not parse: none is delivered.",
    clauses: "codec.bad_json codec.batch",
    ...reads([{ report: "message.json" }, NEXT]),
  });
  const call = pipe({
    capacity: 512,
    frames: [whole(utf8("[1,2]"), { kind: 3, codec: BATCH, tag: 9 }), whole("next")],
  });
  const asCall = (value: unknown) => message({ kind: 3, codec: JSON_TEXT, tag: 9, json: value });
  cases.valid(reading(call, { kind: "decode", calls: true }), {
    name: "batch_of_calls",
    about: "The elements have the kind of the batch.",
    clauses: "codec.batch_read",
    ...reads([asCall(1), asCall(2), NEXT]),
  });
  cases.invalid("codec/batch_of_calls", field(call.at[0]!, "frame_header", "kind", 4), {
    name: "batch_of_returns",
    about: "Another kind.",
    clauses: "codec.batch_read",
    ...reads([{ ...asCall(1), kind: 4 }, { ...asCall(2), kind: 4 }, NEXT]),
  });
  const raw = pipe({ capacity: 512, frames: [whole(utf8(content), { codec: BATCH, tag: 9 })] });
  cases.valid(reading(raw), {
    name: "batch_moved",
    about: "To an endpoint that only moves bytes, a batch is one message.",
    clauses: "codec.batch",
    ...reads([message({ codec: BATCH, tag: 9, text: content })]),
  });
}

function addUnknown(cases: Cases): void {
  const { plan, setting } = decoding(pattern(5), 0, 2);
  cases.valid(setting, {
    name: "known",
    about: "A codec that every reader knows.",
    clauses: "codec.unknown",
    ...reads([message({ tag: 2, hex: toHex(pattern(5)) }), NEXT]),
  });
  for (const codec of [64, 127, 128, 255]) {
    cases.invalid("codec/known", field(plan.at[0]!, "frame_header", "codec", codec), {
      name: `unknown_${codec}`,
      about: `Codec ${codec} is not known.`,
      clauses: "codec.unknown",
      ...reads([{ report: "message.codec" }, NEXT]),
    });
  }
}

function addUnknownParts(cases: Cases): void {
  const codec = 200;
  const parts = [firstOf(6, utf8("abc"), { codec }), part(utf8("def"), { codec }), whole("next")];
  const plan = pipe({ frames: parts });
  const decode = { kind: "decode", limit: 6 } as const;
  cases.valid(reading(plan, decode), {
    name: "unknown_parts",
    about: "A message of several frames is dropped, and reported once.",
    clauses: "codec.unknown",
    ...reads([{ report: "message.codec" }, NEXT]),
  });
  cases.invalid("codec/unknown_parts", member("limit", 5), {
    name: "unknown_too_large",
    about: "It is above the limit, which is found first.",
    clauses: "codec.unknown pipe.limit pipe.report_once",
    ...reads([{ report: "message.size" }, NEXT]),
  });
  cases.invalid("codec/unknown_parts", field(plan.at[0]! + 16, "message_preamble", "total", 5), {
    name: "unknown_total",
    about: "Its parts do not add up.",
    clauses: "codec.unknown frame.check",
    ...faults([], "frame.total"),
  });
  const cancel = part(utf8(""), { codec, flags: 6 });
  const cut = pipe({ frames: [parts[0]!, cancel, whole("next")] });
  cases.valid(reading(cut, decode), {
    name: "unknown_cancelled",
    about: "It is cancelled before it is complete.",
    clauses: "codec.unknown pipe.cancelled",
    ...reads([{ report: "message.cancelled" }, NEXT]),
  });
  cases.valid(reading(pipe({ frames: [parts[0]!] }), decode), {
    name: "unknown_begun",
    about: "It is not complete yet: nothing is reported.",
    clauses: "codec.unknown",
    ...reads([]),
  });
}

function addWrites(cases: Cases): void {
  const plan = writersPipe();
  const content = '[{"a":1},null]';
  cases.valid(writing(plan, { operations: [{ write: { codec: BATCH, text: content } }] }), {
    name: "example",
    about: "The example of the chapter: a batch of two messages.",
    clauses: "codec.batch frame.batch_whole codec.text",
    results: ["ok"],
    bytes: [
      { offset: plan.data, hex: "0e 00 00 00  01 03 03 00  00 00 00 00" },
      { offset: plan.data + 16, hex: "5b 7b 22 61 22 3a 31 7d 2c 6e 75 6c 6c 5d" },
    ],
  });
}
