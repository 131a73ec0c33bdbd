/** The cases of `spec/mailbox.md`. @module */

import { Cases, drained, member, utf8 } from "./builder.ts";
import {
  AREA,
  DISPOSED,
  HEADER,
  json,
  MAY_READ,
  nextPart,
  reading,
  set,
  store,
  whole,
  wordIs,
  writing,
} from "./builder_mailbox.ts";
import { fromHex, toHex, word } from "./bytes.ts";
import { addMailboxAnswers } from "./cases_mailbox_answer.ts";
import type { Expectation, Item, Operation } from "./case.ts";

const NO_CLOSE = "mailbox.turn mailbox.closed mailbox.closed_part mailbox.read_status";

/** All cases of this noun. */
export function mailboxCases(): Cases {
  const cases = new Cases("mailbox");
  addReads(cases);
  addWords(cases);
  addPayloads(cases);
  addParts(cases);
  addLimit(cases);
  addClosed(cases);
  addWrites(cases);
  addBegun(cases);
  addWriterFaults(cases);
  addClose(cases);
  addMailboxAnswers(cases);
  return cases;
}

const ends = (items: Item[], end: string): Expectation => ({ results: [drained(items, end)] });

function addReads(cases: Cases): void {
  const taken = { results: [drained(json("hello", [1, 2, 3]))], bytes: [wordIs("signal", 0)] };
  cases.valid(
    "whole",
    "A payload of two messages in one part; the reader gives the byte area back.",
    "mailbox.check mailbox.section mailbox.payload mailbox.parts mailbox.signal_exchange " +
      `mailbox.limit ${NO_CLOSE}`,
    reading(whole('["hello",[1,2,3]]', 64)),
    taken,
  );
  cases.valid(
    "reserved_words",
    "The reserved words are not read.",
    "mailbox.check mailbox.fault",
    reading({ ...whole('["hello",[1,2,3]]', 64), reserved: new Uint8Array(12).fill(255) }),
    taken,
  );
  const blank = reading({ size: 33 });
  cases.valid("blank", "Blank memory, a byte area of one.", "mailbox.section", blank, {
    results: [drained([])],
    unchanged: true,
  });
  const size = { result: "mailbox.size", unchanged: true } as const;
  const short = "No byte area at all.";
  const shorter = member("image.size", 32);
  cases.invalid("too_short", short, "mailbox.section", "mailbox/blank", shorter, size);
  const odd = "It begins between two words.";
  const change = member("memory_offset", 2);
  cases.invalid("misaligned", odd, "mailbox.section", "mailbox/blank", change, size);
}

function addWords(cases: Cases): void {
  const add = (name: string, about: string, key: string, value: number, code: string) =>
    cases.invalid(
      name,
      about,
      key === "signal" || key === "status"
        ? "mailbox.check mailbox.fault mailbox.turn"
        : "mailbox.check mailbox.fault mailbox.parts",
      "mailbox/whole",
      set(key, value),
      ends([], code),
    );
  add("signal_two", "A signal that nobody stores.", "signal", 2, "mailbox.signal");
  add("signal_minus_two", "A signal that nobody stores.", "signal", -2, "mailbox.signal");
  add("status_one", "A status that nobody stores.", "status", 1, "mailbox.signal");
  add("length_zero", "An empty part.", "length", 0, "mailbox.length");
  add("length_above", "A byte more than the area has.", "length", 33, "mailbox.length");
  add("length_most", "A length that is negative to the original.", "length", -1, "mailbox.length");
  add("count_zero", "A payload of no parts.", "part_count", 0, "mailbox.part");
  add("count_most", "More parts than 2^31 - 1.", "part_count", -(2 ** 31), "mailbox.part");
  add("index_one", "The second part comes first.", "part_index", 1, "mailbox.part");
  add("index_most", "A part before the first.", "part_index", -1, "mailbox.part");
  cases.invalid(
    "not_yet",
    "The byte area is the writer's: nothing is read.",
    "mailbox.signal_exchange",
    "mailbox/whole",
    set("signal", 0),
    { ...ends([], "nothing"), unchanged: true },
  );
}

function addPayloads(cases: Cases): void {
  const content = '["gr\u00fcn"]';
  const next = nextPart("[7]", 0, 1);
  const setting = reading(whole(content), [{ read: true }, next, { read: true }]);
  const clauses = "mailbox.bad_payload mailbox.payload";
  cases.valid("text", "A text that is not ASCII.", clauses, setting, {
    results: [drained(json("gr\u00fcn")), "ok", drained(json(7))],
  });
  const wrong: [string, string, Uint8Array, string][] = [
    ["not_utf8", "Not well-formed UTF-8.", fromHex("5b 22 ff"), "message.text"],
    ["surrogate", "Half of a surrogate pair.", fromHex("5b 22 ed a0 80"), "message.text"],
    ["not_json", "It does not parse.", utf8('[["g'), "message.json"],
    ["mark", "U+FEFF before it.", utf8("\ufeff[ 1  ]"), "message.json"],
    ["no_array", "No array.", utf8('"gr\u00fcn1" '), "message.json"],
    ["no_element", "An array without an element.", utf8("[       ]"), "message.json"],
  ];
  for (const [name, about, bytes, code] of wrong) {
    cases.invalid(
      name,
      `${about} It costs this payload alone.`,
      clauses,
      "mailbox/text",
      { at: 0, structure: HEADER, field: "payload", hex: toHex(bytes) },
      { results: [drained([{ report: code }]), "ok", drained(json(7))] },
    );
  }
}

function addParts(cases: Cases): void {
  const first = '["\u20ac'; // Its last character is cut: the part ends behind its first byte.
  const bytes = utf8(`${first}",[1]]`);
  const plan = { ...whole(bytes.slice(0, 3)), part_count: 3 };
  const later = (from: number, to: number, index: number): Operation => ({
    set: [
      { offset: AREA, hex: toHex(bytes.slice(from, to)) },
      store("length", to - from),
      store("part_count", 3),
      store("part_index", index),
      store("signal", MAY_READ),
    ],
  });
  const operations: Operation[] = [
    { read: true },
    later(3, 8, 1),
    { read: true },
    later(8, bytes.length, 2),
    { read: true },
  ];
  const nothing = drained([]);
  const clauses = "mailbox.keep_parts mailbox.parts mailbox.check mailbox.fault mailbox.write_all";
  const from = cases.valid(
    "parts",
    "Three parts, cut in the middle of a character, are kept from read to read.",
    clauses,
    reading(plan, operations),
    {
      results: [nothing, "ok", nothing, "ok", drained(json("\u20ac", [1]))],
      bytes: [wordIs("signal", 0)],
    },
  );
  const add = (name: string, about: string, path: string, value: number) =>
    cases.invalid(name, about, clauses, from, member(path, word(value)), {
      results: [nothing, "ok", drained([], "mailbox.part"), "ok", drained([], "mailbox.part")],
    });
  add("count_changes", "The second part states another count.", "operations.1.set.2.hex", 4);
  add("index_again", "The first part comes twice.", "operations.1.set.3.hex", 0);
  add("index_skipped", "The second part is missing.", "operations.1.set.3.hex", 2);
  cases.invalid(
    "part_empty",
    "The second part is empty.",
    "mailbox.parts mailbox.check mailbox.fault",
    from,
    member("operations.1.set.1.hex", word(0)),
    {
      results: [nothing, "ok", drained([], "mailbox.length"), "ok", drained([], "mailbox.length")],
    },
  );
}

function addLimit(cases: Cases): void {
  const plan = { ...whole('["hello",[1,2,3]'), part_count: 2 };
  const operations: Operation[] = [
    { read: true },
    nextPart("]", 1, 2),
    { read: true },
    nextPart("[1]", 0, 1),
    { read: true },
  ];
  const one = drained(json(1));
  const from = cases.valid(
    "example",
    "The example of the chapter, to a reader with just enough room; another payload behind it.",
    "mailbox.limit mailbox.keep_parts",
    { ...reading(plan, operations), limit: 17 },
    { results: [drained([]), "ok", drained(json("hello", [1, 2, 3])), "ok", one] },
  );
  const report = drained([{ report: "message.size" }]);
  cases.invalid(
    "above_limit",
    "A byte too much: the second part goes beyond the limit.",
    "mailbox.limit",
    from,
    member("limit", 16),
    { results: [drained([]), "ok", report, "ok", one] },
  );
  cases.invalid(
    "above_limit_early",
    "The first part goes beyond the limit; the rest is dropped without another word.",
    "mailbox.limit",
    from,
    member("limit", 15),
    { results: [report, "ok", drained([]), "ok", one] },
  );
}

function addClosed(cases: Cases): void {
  const add = (name: string, about: string, key: string) =>
    cases.invalid(
      name,
      `${about} A part that lies there is not read.`,
      NO_CLOSE,
      "mailbox/whole",
      set(key, DISPOSED),
      { ...ends([], "peer.closed"), unchanged: true },
    );
  add("closed_status", "Only `status` says that the peer has closed.", "status");
  add("closed_signal", "Only `signal` says that the peer has closed.", "signal");
  const original = { ...whole("[1]"), length: -1, part_count: -1, part_index: -1 };
  const from = cases.valid(
    "original_closing",
    "The original is storing -1 in all words; `signal` is the last that it reaches here.",
    `mailbox.read_status mailbox.closed mailbox.closed_part`,
    reading({ ...original, status: DISPOSED }),
    ends([], "peer.closed"),
  );
  cases.invalid(
    "not_closing",
    "The same words while `status` is active: a peer that broke the mailbox.",
    "mailbox.read_status mailbox.check mailbox.fault",
    from,
    set("status", 0),
    ends([], "mailbox.length"),
  );
}

function addWrites(cases: Cases): void {
  const values = ["hello", [1, 2, 3]];
  const operations: Operation[] = [{ write: { json: values }, wait: true }, { take: true }];
  cases.valid(
    "write",
    "Two messages in one part.",
    "mailbox.payload mailbox.parts mailbox.write mailbox.signal_exchange",
    writing({ size: 128 }, operations),
    { results: ["ok", drained(json(...values))] },
  );
  cases.invalid(
    "write_waits",
    "The byte area is the reader's: nothing of it is touched.",
    "mailbox.write mailbox.signal_exchange",
    "mailbox/write_once",
    set("signal", MAY_READ),
    { results: ["wait.timeout"], unchanged: true },
  );
  cases.valid(
    "write_once",
    "One message, into blank memory.",
    "mailbox.write mailbox.parts",
    writing({ size: 64 }, [{ write: { json: [1] }, wait: true }]),
    {
      results: ["ok"],
      bytes: [
        wordIs("signal", MAY_READ),
        wordIs("part_count", 1),
        wordIs("part_index", 0),
        wordIs("status", 0),
      ],
    },
  );
  const parts: Operation[] = [
    { write: { json: ["x".repeat(40)] }, wait: true },
    { take: true },
    { resume: true },
    { take: true },
    { resume: true },
    { take: true },
  ];
  cases.valid(
    "write_full",
    "A message of 44 bytes: the first of three parts fills the byte area.",
    "mailbox.full_parts mailbox.parts",
    writing({ size: 48 }, parts.slice(0, 1)),
    {
      results: ["wait.timeout"],
      bytes: [wordIs("length", 16), wordIs("part_count", 3), wordIs("part_index", 0)],
    },
  );
  const large = cases.valid(
    "write_parts",
    "A message of 44 bytes in parts of at most 16: each waits for the one before.",
    "mailbox.parts mailbox.write_all mailbox.write mailbox.begun",
    writing({ size: 48 }, parts),
    {
      results: [
        "wait.timeout",
        drained([]),
        "wait.timeout",
        drained([]),
        "ok",
        drained(json("x".repeat(40))),
      ],
    },
  );
  cases.invalid(
    "write_two_parts",
    "With parts of at most 32, two are enough.",
    "mailbox.parts mailbox.write_all mailbox.begun",
    large,
    member("image.size", 64),
    {
      results: [
        "wait.timeout",
        drained([]),
        "ok",
        drained(json("x".repeat(40))),
        "ok",
        drained([]),
      ],
    },
  );
}

/** A payload that is begun comes first; one that is not is forgotten when its write times out. */
function addBegun(cases: Cases): void {
  const write = (...values: unknown[]): Operation => ({ write: { json: values }, wait: true });
  const [take, resume]: Operation[] = [{ take: true }, { resume: true }];
  const nothing = drained([]);
  const unbegun = cases.valid(
    "write_unbegun",
    "A write times out before its first part is written: the next one stands alone.",
    "mailbox.begun mailbox.write_all",
    writing(whole('["old"]', 64), [write("a"), take!, write("b"), take!, resume!, take!]),
    {
      results: ["wait.timeout", drained(json("old")), "ok", drained(json("b")), "ok", nothing],
      bytes: [wordIs("signal", 0)],
    },
  );
  cases.invalid(
    "write_unbegun_not",
    "The byte area is the writer's: the first write is done, and the second waits for its turn.",
    "mailbox.begun mailbox.write",
    unbegun,
    set("signal", 0),
    {
      results: ["ok", drained(json("a")), "ok", drained(json("b")), "ok", nothing],
      bytes: [wordIs("signal", 0)],
    },
  );
  const large = "x".repeat(40);
  const done = ["ok", drained(json(large)), "ok", nothing];
  const rest = [resume!, take!, resume!, take!];
  const begun = cases.valid(
    "write_begun",
    "A payload of two parts is begun, and its rest written when there is room for it.",
    "mailbox.begun mailbox.write_all",
    writing({ size: 64 }, [write(large), take!, resume!, ...rest]),
    { results: ["wait.timeout", nothing, "ok", ...done] },
  );
  cases.invalid(
    "write_begun_other",
    "Another payload instead: refused, or behind the rest, and forgotten when it finds no room.",
    "mailbox.begun mailbox.write_all",
    begun,
    member("operations.2", write("b")),
    { results: ["wait.timeout", nothing, { one_of: ["refused", "wait.timeout"] }, ...done] },
  );
}

function addWriterFaults(cases: Cases): void {
  const add = (name: string, about: string, key: string, value: number, code: string) =>
    cases.invalid(
      name,
      about,
      code === "peer.closed"
        ? "mailbox.closed mailbox.write"
        : "mailbox.check mailbox.fault mailbox.write",
      "mailbox/write_once",
      set(key, value),
      {
        results: [code],
        ...(code !== "peer.closed" &&
          { bytes: [wordIs("status", DISPOSED), wordIs("signal", DISPOSED)] }),
      },
    );
  add("write_signal", "A signal that nobody stores.", "signal", 77, "mailbox.signal");
  add("write_status", "A status that nobody stores.", "status", 1, "mailbox.signal");
  add("write_to_closed", "The reader has closed.", "signal", DISPOSED, "peer.closed");
  add("write_overwritten", "Only `status` still says so.", "status", DISPOSED, "peer.closed");
}

function addClose(cases: Cases): void {
  const plan = { size: 48, length: 5, part_count: 9, part_index: 8 };
  const closed = [wordIs("status", DISPOSED), wordIs("signal", DISPOSED)];
  const rest = [wordIs("length", 5), wordIs("part_count", 9), wordIs("part_index", 8)];
  for (
    const [name, role] of [["reader", "mailbox_reader"], ["writer", "mailbox_writer"]] as const
  ) {
    const from = cases.valid(
      `close_${name}`,
      "A close stores -1 in two words, and leaves the others alone.",
      "mailbox.close mailbox.closed",
      { ...reading(plan, [{ close: true }]), role },
      { results: ["ok"], bytes: [...closed, ...rest] },
    );
    cases.invalid(
      `close_${name}_length`,
      "Another length: it stays as it is.",
      "mailbox.close",
      from,
      set("length", 7),
      { results: ["ok"], bytes: [...closed, wordIs("length", 7), ...rest.slice(1)] },
    );
  }
  cases.valid(
    "closed_here",
    "A side that has closed the mailbox itself says so.",
    "mailbox.closed mailbox.close",
    reading(whole("[1]"), [{ close: true }, { read: true }]),
    { results: ["ok", drained([], "pipe.closed")] },
  );
  const operations: Operation[] = [{ close: true }, { write: { json: [1] }, wait: true }];
  cases.valid(
    "write_closed_here",
    "A side that has closed the mailbox itself writes nothing.",
    "mailbox.closed mailbox.close",
    writing({ size: 64 }, operations),
    { results: ["ok", "pipe.closed"], bytes: closed },
  );
}
