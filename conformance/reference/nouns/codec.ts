/** The cases of `spec/codec.md`. @module */

import { Cases, faults, field, firstOf, member, message, part, pattern } from "../builder.ts";
import { payload, pipe, reading, reads, text, utf8, whole, writersPipe } from "../builder.ts";
import { writing } from "../builder.ts";
import { fromHex, toHex } from "../bytes.ts";
import type { Item } from "../case.ts";
import { formOfCbor } from "../cbor.ts";
import { limitOf, valueOf } from "../layout.ts";

const TEXT = valueOf("codec", "text");
const JSON_TEXT = valueOf("codec", "json");
const BATCH = valueOf("codec", "json_batch");
/** After every message under test: what is lost must cost that message alone. */
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

/** A message and the one after it, to be read as values. */
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

// The cases of codec `cbor` in `spec/codec.md`.

const CBOR = valueOf("codec", "cbor");
const DEPTH_MAX = limitOf("cbor_depth_max");
const MEMORY = "codec.cbor codec.cbor_memory";

/** Name, what it shows, a payload; after some, a clause that it shows beside those of all. */
type Good = [string, string, string, string?];

const GOOD: Good[] = [
  ["integers", "Integers, of every length.", "87 00 17 18 18 19 0100 1a 00010000 20 3a ffffffff"],
  [
    "integers_long",
    "Integers in more bytes than they need.",
    "83 18 00 19 0001 3b 0000000000000000",
  ],
  [
    "floats",
    "Floats of two, four and eight bytes.",
    "84 f9 3c00 f9 0001 fa 47c35000 fb 3ff199999999999a",
  ],
  ["floats_odd", "What is no finite number, and -0.", "84 f9 7e00 f9 fc00 fa 7f800000 f9 8000"],
  ["floats_small", "The smallest floats of two and four bytes.", "83 f9 0001 f9 83ff fa 00000001"],
  ["texts", "Texts, one of them in parts.", "83 60 63 e282ac 7f 61 61 62 c3bc ff"],
  ["text_far", "A character of four bytes.", "64 f09f9880"],
  ["text_marked", "U+FEFF, a character like any other.", "82 64 efbbbf61 7f 63 efbbbf 60 ff"],
  ["bytes", "Byte strings, one of them in parts.", "83 40 43 0102ff 5f 41 01 42 0203 ff"],
  ["bytes_parts", "A byte string in parts, before a number.", "82 5f 41 01 41 ff ff 00"],
  [
    "lengths_long",
    "Lengths of eight bytes.",
    "82 5b 0000000000000001 01 9b 0000000000000001 02",
    "codec.cbor_memory",
  ],
  ["empty_all", "What has nothing in it.", "88 80 9f ff a0 bf ff 40 5f ff 7f ff d9 0102 80"],
  ["words", "`false`, `true`, `null` and `undefined`.", "84 f4 f5 f6 f7"],
  ["indefinite", "An array and a map of indefinite length.", "9f 01 bf 61 61 9f ff 61 62 02 ff ff"],
  ["array_within", "An array within another.", "82 82 01 02 03"],
  ["map_within", "A map that has no length, before two numbers.", "83 bf 61 61 01 ff 00 01"],
  ["map_keys", "A map that has other keys than texts.", "a3 01 61 61 f4 61 62 61 6b 61 63"],
  ["map_keys_parts", "A key in parts.", "bf 7f 61 61 61 62 ff 01 ff"],
  ["itself", "The tag that says that this is CBOR.", "d9d9f7 82 01 02"],
  ["itself_within", "The same within an array that has no length.", "82 9f d9d9f7 01 ff 00"],
  [
    "dates",
    "Dates, as a text and as numbers.",
    "83 c0 74 323031332d30332d32315432303a30343a30305a c1 1a514b67b0 c1 fb 41d452d9ec200000",
  ],
  ["dates_short", "Dates of a second each.", "82 c1 00 c1 20"],
  ["date_none", "A date that is none.", "c1 f9 7e00"],
  [
    "big",
    "Integers of any size, below 0 too.",
    "83 c2 49 010000000000000000 c3 49 010000000000000000 c2 40",
  ],
  [
    "class",
    "An error with its cause, and a buffer.",
    "82 d8 1b 83 69 547970654572726f72 62 6e6f a1 65 6361757365 01 d8 1b 82 6b " +
    "4172726179427566666572 42 0102",
  ],
  ["class_bare", "An error whose text is empty.", "83 d8 1b 82 65 4572726f72 60 00 01"],
  [
    "typed",
    "Arrays of numbers of one type, in both orders of bytes.",
    "86 d8 40 42 01ff d8 41 44 0001 0002 d8 45 44 0100 0200 d8 55 44 0000803f d8 52 " +
    "48 3ff8000000000000 d8 48 42 80 7f",
  ],
  [
    "typed_large",
    "Elements of eight bytes.",
    "82 d8 47 48 ffffffffffffffff d8 4b 48 8000000000000000",
  ],
  ["typed_pair", "Two floats of eight bytes.", "d8 52 50 3ff8000000000000 8000000000000000"],
  ["set", "A set.", "d9 0102 83 01 62 6162 f6"],
  ["map", "A map with keys of several types.", "d9 0103 a2 01 61 61 61 31 61 62"],
  ["map_texts", "A map that has texts alone for keys.", "d9 0103 a1 61 61 01"],
  ["regular_expression", "A regular expression with flags.", "d9 524a 82 63 612b62 62 6769"],
  ["regular_in_list", "The same beside a text.", "82 d9 524a 82 61 61 61 67 61 69"],
  [
    "tags_long",
    "Tags in more bytes than they need.",
    "84 db 0000000000000001 01 d9 001c 81 02 da 00000102 80 d9 001d 19 0000",
    "codec.cbor_shared",
  ],
  [
    "tags_parts",
    "Tags around what has no length.",
    "85 c2 5f 41 01 41 00 ff d8 45 5f 41 01 41 00 ff d9 0102 9f 01 ff d9 0103 bf 01 02 ff " +
    "c0 7f 6a 323031332d30332d3231 6a 5432303a30343a30305a ff",
  ],
  ["shared", "Two places for one value.", "83 d8 1c 81 01 d8 1d 00 81 01", "codec.cbor_shared"],
  [
    "shared_two",
    "Two values, numbered as they begin.",
    "84 d8 1c 81 d8 1c a1 61 61 01 d8 1d 01 d8 1d 00 d8 1d 01",
    "codec.cbor_shared",
  ],
  ["shared_bare", "Three items, of which one has a number.", "83 d8 1c 80 d8 1d 00 19 0000"],
  ["shared_short", "An array that nobody refers to.", "82 d8 1c 82 01 02 03"],
  ["shared_other", "Two that nobody refers to.", "82 d8 1c 80 d8 1c 82 01 00"],
  [
    "shared_spare",
    "A number in more bytes than it needs.",
    "82 d8 1c 80 d8 1d 18 00",
    "codec.cbor_shared",
  ],
  [
    "shared_wide",
    "A number of eight bytes.",
    "82 d8 1c 80 d8 1d 1b 0000000000000000",
    "codec.cbor_shared",
  ],
  [
    "shared_class",
    "Two places for one error.",
    "82 d8 1c d8 1b 82 65 4572726f72 62 6e6f d8 1d 00",
    "codec.cbor_shared",
  ],
  [
    "shared_itself",
    "An array and an object that contain themselves, and each other.",
    "d8 1c 82 d8 1d 00 d8 1c a2 61 61 d8 1d 01 61 62 d8 1d 00",
    "codec.cbor_shared",
  ],
];

/** The valid payload from which it differs, which is as long, or longer where nothing follows. */
type Bad = [string, string, string, string, string?];

const BAD: Bad[] = [
  ["reserved", "integers", "A head that nobody may write.", "87 1c"],
  ["reserved_bytes", "bytes", "The same of bytes.", "83 5c"],
  ["reserved_text", "texts", "The same of a text.", "83 7d"],
  ["reserved_array", "empty_all", "The same of an array.", "88 9e"],
  ["reserved_map", "empty_all", "The same of a map.", "88 80 9f ff bd"],
  ["cut", "integers", "An array that wants more than there is.", "98 18"],
  ["length", "integers", "An array that wants four thousand million items.", "9a ffffffff", MEMORY],
  [
    "length_long",
    "integers",
    "A byte string that wants 2^63 bytes.",
    "5b 8000000000000000",
    MEMORY,
  ],
  [
    "length_wrapped",
    "lengths_long",
    "A length of which the lower half would do.",
    "82 5b 0000000100000001",
  ],
  [
    "count_wrapped",
    "lengths_long",
    "A number of items of which the lower half would do.",
    "82 5b 0000000000000001 01 9b 0000000100000001",
  ],
  ["behind", "integers", "A second item behind the first.", "86"],
  ["break", "array_within", "A break in an array of known length.", "82 82 01 ff"],
  ["indefinite_integer", "integers", "An integer of indefinite length.", "87 1f"],
  ["break_in_tag", "itself_within", "A break in place of what a tag is around.", "82 9f d9d9f7 ff"],
  ["map_length", "map_keys", "A map that wants more than there is.", "bb 0fffffffffffffff", MEMORY],
  ["map_odd", "map_within", "A key without a value.", "84 bf 61 61 ff 05"],
  ["never_ends", "indefinite", "An array without its end.", "9f 01 bf 61 61 9f ff 61 62 02 ff 00"],
  ["not_utf8", "texts", "A text that is not well-formed UTF-8.", "83 60 63 e282 ff"],
  ["not_utf8_key", "indefinite", "A key that is not well-formed UTF-8.", "9f 01 bf 61 ff"],
  ["overlong", "texts", "A character in more bytes than it takes.", "83 60 63 e08080"],
  ["surrogate", "texts", "Half of a surrogate pair.", "83 60 63 eda080"],
  ["beyond", "text_far", "A character above U+10FFFF.", "64 f4908080"],
  [
    "cut_character",
    "texts",
    "A character that is cut by the end of a part.",
    "83 60 63 e282ac 7f 61 c3 62 bc61 ff",
  ],
  ["text_part", "texts", "Bytes as a part of a text.", "83 60 63 e282ac 7f 41"],
  ["bytes_part", "bytes", "A text as a part of bytes.", "83 40 43 0102ff 5f 61"],
  ["part_in_part", "bytes_parts", "Parts within a part.", "82 5f 5f 40 40"],
  ["simple", "words", "A simple value without a meaning.", "84 f3"],
  ["simple_form", "words", "A simple value in a form that it has not.", "83 f8 14"],
  ["simple_long", "words", "One of two bytes, without a meaning.", "83 f8 ff"],
  ["tag", "itself", "A tag that nobody knows.", "d9d9f6", "codec.cbor_tags"],
  [
    "tag_wrapped",
    "tags_long",
    "A tag of which the lower half is known.",
    "84 db 0000000100000001",
    "codec.cbor_tags",
  ],
  [
    "date",
    "dates",
    "A date that is none, as a text.",
    "83 c0 74 333031332d31332d32315432303a30343a30305a",
    "codec.cbor_tags",
  ],
  ["date_text", "date_none", "A text in place of a number of seconds.", "c1 62", "codec.cbor_tags"],
  ["date_word", "dates_short", "`true` in place of a number.", "82 c1 f5", "codec.cbor_tags"],
  ["date_big", "dates_short", "A date of a large integer.", "82 c1 c2 40", "codec.cbor_tags"],
  ["big_text", "big", "A large integer in a text.", "83 c2 69 30", "codec.cbor_tags"],
  ["class_bytes", "class", "A class that is named by bytes.", "82 d8 1b 83 49", "codec.cbor_tags"],
  [
    "class_none",
    "class_bare",
    "A class that has no name.",
    "85 d8 1b 80",
    "codec.cbor_tags",
  ],
  ["typed_second", "typed_large", "A second kind of `int8`.", "82 d8 4c", "codec.cbor_tags"],
  ["typed_16", "typed_pair", "A float of sixteen bytes.", "d8 53", "codec.cbor_tags"],
  [
    "typed_cut",
    "typed",
    "Half of an element.",
    "87 d8 40 42 01ff d8 41 43 000100 02",
    "codec.cbor_tags",
  ],
  ["typed_text", "typed", "A text in place of bytes.", "86 d8 40 62 6161", "codec.cbor_tags"],
  ["set_map", "set", "A set of a map.", "d9 0102 a1 01 43 6162f6", "codec.cbor_tags"],
  [
    "set_shared",
    "set",
    "A set of what has a number.",
    "d9 0102 d8 1c 83 01 02",
    "codec.cbor_tags",
  ],
  ["map_array", "map", "A map of an array.", "d9 0103 84", "codec.cbor_tags"],
  [
    "regular_bytes",
    "regular_expression",
    "A pattern that is no text.",
    "d9 524a 82 43",
    "codec.cbor_tags",
  ],
  [
    "regular_three",
    "regular_in_list",
    "Something behind the flags.",
    "81 d9 524a 83",
    "codec.cbor_tags",
  ],
  [
    "regular_flags",
    "regular_in_list",
    "Flags that are no text.",
    "82 d9 524a 82 61 61 41",
    "codec.cbor_tags",
  ],
  [
    "shared_none",
    "shared",
    "A number that nothing has.",
    "83 d8 1c 81 01 d8 1d 01",
    "codec.cbor_shared",
  ],
  [
    "shared_early",
    "shared",
    "A reference before what it refers to.",
    "84 d8 1d 00 d8 1c 01 00",
    "codec.cbor_shared",
  ],
  [
    "shared_twice",
    "shared_short",
    "A tag 28 around another one.",
    "82 d8 1c d8 1c 02 03",
    "codec.cbor_tags",
  ],
  [
    "shared_again",
    "shared_other",
    "A tag 28 around a tag 29.",
    "82 d8 1c 80 d8 1c d8 1d 00",
    "codec.cbor_tags",
  ],
  [
    "shared_float",
    "shared_bare",
    "A number that is a float.",
    "83 d8 1c 80 d8 1d f9 0000 00",
    "codec.cbor_tags",
  ],
  [
    "shared_big",
    "shared_spare",
    "A number that is an integer of any size.",
    "82 d8 1c 80 d8 1d c2 40",
    "codec.cbor_tags",
  ],
  [
    "shared_wrapped",
    "shared_wide",
    "A number of which the lower half would do.",
    "82 d8 1c 80 d8 1d 1b 0000000100000000",
    "codec.cbor_shared",
  ],
  [
    "shared_text",
    "shared",
    "A number that is a text.",
    "83 d8 1c 81 01 d8 1d 60",
    "codec.cbor_tags",
  ],
];

/** A message and the one after it, to be read as values. */
function decodingCbor(content: Uint8Array) {
  const frames = [whole(content, { codec: CBOR, tag: 3 }), whole("next")];
  const plan = pipe({ capacity: 8192, frames });
  return { plan, setting: reading(plan, { kind: "decode" }) };
}

/** Adds all of them. */
function addCbor(cases: Cases): void {
  const all = new Map(GOOD.map(([name, about, hex, clause]) => {
    const clauses = `codec.bad_cbor codec.cbor codec.cbor_tags ${clause ?? ""}`.trim();
    return [name, addGood(cases, name, about, fromHex(hex), clauses)];
  }));
  for (const [name, base, about, hex, clause = "codec.cbor"] of BAD) {
    addBad(cases, name, about, base, all.get(base)!, fromHex(hex), clause);
  }
  const deep = nested(DEPTH_MAX - 1, 0x82, 1, 2);
  const base = addGood(cases, "deep", "As deep as it may be.", deep, "codec.bad_cbor codec.cbor");
  const deeper = nested(DEPTH_MAX - 1, 0x81, 0x81, 2);
  addBad(cases, "too_deep", "Deeper by one array.", "deep", base, deeper, "codec.cbor");
  const claims = Uint8Array.from({ length: 5 * CLAIMS }, (_, at) => CLAIM[at % CLAIM.length]!);
  const about = "Arrays in one another that want sixteen million items each.";
  addBad(cases, "length_nested", about, "deep", base, claims, MEMORY);
  addDeep(cases);
  addEmpty(cases);
  addMoved(cases);
}

/** An array of 2^24 items; so many of them would take gigabytes. */
const CLAIM = fromHex("9a 01000000");
const CLAIMS = 200;

/** The deepest level in other ways than by arrays with an item in each. */
function addDeep(cases: Cases): void {
  const empty = nested(DEPTH_MAX - 1, 0x83, 0x80, 0x9f, 0xff, 0xa0);
  const clauses = "codec.bad_cbor codec.cbor";
  addGood(cases, "deep_empty", "What is empty at the deepest level.", empty, clauses);
  // Three levels each: an array, a tag 28, and a map.
  const around = fromHex("81 d8 1c a1 60 ".repeat((DEPTH_MAX - 1) / 3) + "81");
  const mixed = Uint8Array.from([...around, ...fromHex("18 01")]);
  const about = "As deep as it may be, of arrays, maps and tags.";
  const base = addGood(cases, "deep_mixed", about, mixed, clauses);
  const deeper = Uint8Array.from([...around, ...fromHex("81 01")]);
  addBad(
    cases,
    "too_deep_mixed",
    "The same, deeper by one.",
    "deep_mixed",
    base,
    deeper,
    "codec.cbor",
  );
}

/** Nothing is no item. */
function addEmpty(cases: Cases): void {
  const plan = pipe({ capacity: 8192, frames: [whole(""), whole("next")] });
  const clauses = "codec.bad_cbor codec.cbor";
  const change = field(plan.at[0]!, "frame_header", "codec", CBOR);
  const report = reads([{ report: "message.codec" }, NEXT]);
  cases.invalid("codec/empty_text", change, {
    name: "cbor_empty",
    about: "Nothing is no item.",
    clauses,
    ...report,
  });
}

/** Adds a case that is read, and gives the payload and where its frame stands. */
function addGood(cases: Cases, name: string, about: string, content: Uint8Array, clauses: string) {
  formOfCbor(content); // the strict reader takes it
  const { plan, setting } = decodingCbor(content);
  const item = message({ codec: CBOR, tag: 3, cbor: toHex(content) });
  cases.valid(setting, { name: `cbor_${name}`, about, clauses, ...reads([item, NEXT]) });
  return { content, at: plan.at[0]! };
}

/** Adds one that differs in its first bytes, and is dropped. */
function addBad(
  cases: Cases,
  name: string,
  about: string,
  base: string,
  { content, at }: { content: Uint8Array; at: number },
  bytes: Uint8Array,
  clause: string,
): void {
  const changed = content.slice();
  changed.set(bytes);
  if (refusal(changed) === undefined) throw new Error(`cbor_${name}: the strict reader takes it`);
  const clauses = `codec.bad_cbor ${clause}`;
  const report = reads([{ report: "message.codec" }, NEXT]);
  cases.invalid(`codec/cbor_${base}`, payload(at, bytes), {
    name: `cbor_${name}`,
    about,
    clauses,
    ...report,
  });
}

function refusal(content: Uint8Array): string | undefined {
  try {
    formOfCbor(content);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** So many arrays of one element, and what is in the innermost. */
function nested(count: number, ...rest: number[]): Uint8Array {
  return Uint8Array.from([...new Array<number>(count).fill(0x81), ...rest]);
}

function addMoved(cases: Cases): void {
  const hex = "d8 1c a2 61 74 c1 f9 3e 00 61 6d d8 1d 00";
  const { setting } = decodingCbor(fromHex(hex));
  cases.valid({ ...setting, kind: "read" }, {
    name: "cbor_moved",
    about: "To an endpoint that only moves bytes, it is a message like any other.",
    clauses: "codec.cbor",
    ...reads([message({ codec: CBOR, tag: 3, hex }), NEXT]),
  });
  const plan = writersPipe();
  cases.valid(writing(plan, { operations: [{ write: { codec: CBOR, hex } }] }), {
    name: "cbor_example",
    about: "The example of the chapter: a map that contains itself, and a date.",
    clauses: "codec.cbor codec.cbor_tags",
    results: ["ok"],
    bytes: [
      { offset: plan.data, hex: "0e 00 00 00  01 03 05 00  00 00 00 00" },
      { offset: plan.data + 16, hex },
    ],
  });
}
