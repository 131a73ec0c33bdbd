/** The cases of `spec/mailbox.md`. @module */

import { Cases, drained, member, utf8 } from "../builder.ts";
import { AREA, DISPOSED, HEADER, json, MAY_READ, nextPart, reading } from "../builder_mailbox.ts";
import { set, store, whole, wordIs, writing } from "../builder_mailbox.ts";
import { fromHex, toHex, toImage, word } from "../bytes.ts";
import type { Expectation, Item, Operation, Result, Setting } from "../case.ts";
import { buildMailbox } from "../encode.ts";

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
  cases.valid(reading(whole('["hello",[1,2,3]]', 64)), {
    name: "whole",
    about: "A payload of two messages in one part; the reader gives the byte area back.",
    clauses:
      "mailbox.check mailbox.section mailbox.payload mailbox.parts mailbox.signal_exchange " +
      `mailbox.limit ${NO_CLOSE}`,
    ...taken,
  });
  cases.valid(
    reading({ ...whole('["hello",[1,2,3]]', 64), reserved: new Uint8Array(12).fill(255) }),
    {
      name: "reserved_words",
      about: "The reserved words are not read.",
      clauses: "mailbox.check mailbox.fault",
      ...taken,
    },
  );
  const blank = reading({ size: 33 });
  cases.valid(blank, {
    name: "blank",
    about: "Blank memory, a byte area of one.",
    clauses: "mailbox.section",
    results: [drained([])],
    unchanged: true,
  });
  const size = { result: "mailbox.size", unchanged: true } as const;
  const short = "No byte area at all.";
  const shorter = member("image.size", 32);
  cases.invalid("mailbox/blank", shorter, {
    name: "too_short",
    about: short,
    clauses: "mailbox.section",
    ...size,
  });
  const odd = "It begins between two words.";
  const change = member("memory_offset", 2);
  cases.invalid("mailbox/blank", change, {
    name: "misaligned",
    about: odd,
    clauses: "mailbox.section",
    ...size,
  });
}

function addWords(cases: Cases): void {
  const add = (name: string, about: string, key: string, value: number, code: string) =>
    cases.invalid("mailbox/whole", set(key, value), {
      name,
      about,
      clauses: key === "signal" || key === "status"
        ? "mailbox.check mailbox.fault mailbox.turn"
        : "mailbox.check mailbox.fault mailbox.parts",
      ...ends([], code),
    });
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
  cases.invalid("mailbox/whole", set("signal", 0), {
    name: "not_yet",
    about: "The byte area is the writer's: nothing is read.",
    clauses: "mailbox.signal_exchange",
    ...ends([], "nothing"),
    unchanged: true,
  });
}

function addPayloads(cases: Cases): void {
  const content = '["gr\u00fcn"]';
  const next = nextPart("[7]", 0, 1);
  const setting = reading(whole(content), [{ read: true }, next, { read: true }]);
  const clauses = "mailbox.bad_payload mailbox.payload";
  cases.valid(setting, {
    name: "text",
    about: "A text that is not ASCII.",
    clauses,
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
      "mailbox/text",
      { at: 0, structure: HEADER, field: "payload", hex: toHex(bytes) },
      {
        name,
        about: `${about} It costs this payload alone.`,
        clauses,
        results: [drained([{ report: code }]), "ok", drained(json(7))],
      },
    );
  }
}

function addParts(cases: Cases): void {
  const first = '["\u20ac'; // Its last character is cut: the part ends after its first byte.
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
  const from = cases.valid(reading(plan, operations), {
    name: "parts",
    about: "Three parts, cut in the middle of a character, are kept from read to read.",
    clauses,
    results: [nothing, "ok", nothing, "ok", drained(json("\u20ac", [1]))],
    bytes: [wordIs("signal", 0)],
  });
  const add = (name: string, about: string, path: string, value: number) =>
    cases.invalid(from, member(path, word(value)), {
      name,
      about,
      clauses,
      results: [nothing, "ok", drained([], "mailbox.part"), "ok", drained([], "mailbox.part")],
    });
  add("count_changes", "The second part states another count.", "operations.1.set.2.hex", 4);
  add("index_again", "The first part comes twice.", "operations.1.set.3.hex", 0);
  add("index_skipped", "The second part is missing.", "operations.1.set.3.hex", 2);
  cases.invalid(from, member("operations.1.set.1.hex", word(0)), {
    name: "part_empty",
    about: "The second part is empty.",
    clauses: "mailbox.parts mailbox.check mailbox.fault",
    results: [nothing, "ok", drained([], "mailbox.length"), "ok", drained([], "mailbox.length")],
  });
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
  const from = cases.valid({ ...reading(plan, operations), limit: 17 }, {
    name: "example",
    about:
      "The example of the chapter, to a reader with just enough room; another payload behind it.",
    clauses: "mailbox.limit mailbox.keep_parts",
    results: [drained([]), "ok", drained(json("hello", [1, 2, 3])), "ok", one],
  });
  const report = drained([{ report: "message.size" }]);
  cases.invalid(from, member("limit", 16), {
    name: "above_limit",
    about: "A byte too much: the second part goes beyond the limit.",
    clauses: "mailbox.limit",
    results: [drained([]), "ok", report, "ok", one],
  });
  cases.invalid(from, member("limit", 15), {
    name: "above_limit_early",
    about: "The first part goes beyond the limit; the rest is dropped without another word.",
    clauses: "mailbox.limit",
    results: [report, "ok", drained([]), "ok", one],
  });
}

function addClosed(cases: Cases): void {
  const add = (name: string, about: string, key: string) =>
    cases.invalid("mailbox/whole", set(key, DISPOSED), {
      name,
      about: `${about} A part that lies there is not read.`,
      clauses: NO_CLOSE,
      ...ends([], "peer.closed"),
      unchanged: true,
    });
  add("closed_status", "Only `status` says that the peer has closed.", "status");
  add("closed_signal", "Only `signal` says that the peer has closed.", "signal");
  const original = { ...whole("[1]"), length: -1, part_count: -1, part_index: -1 };
  const from = cases.valid(reading({ ...original, status: DISPOSED }), {
    name: "original_closing",
    about: "The original is storing -1 in all words; `signal` is the last that it reaches here.",
    clauses: `mailbox.read_status mailbox.closed mailbox.closed_part`,
    ...ends([], "peer.closed"),
  });
  cases.invalid(from, set("status", 0), {
    name: "not_closing",
    about: "The same words while `status` is active: a peer that broke the mailbox.",
    clauses: "mailbox.read_status mailbox.check mailbox.fault",
    ...ends([], "mailbox.length"),
  });
}

function addWrites(cases: Cases): void {
  const values = ["hello", [1, 2, 3]];
  const operations: Operation[] = [{ write: { json: values }, wait: true }, { take: true }];
  cases.valid(writing({ size: 128 }, operations), {
    name: "write",
    about: "Two messages in one part.",
    clauses: "mailbox.payload mailbox.parts mailbox.write mailbox.signal_exchange",
    results: ["ok", drained(json(...values))],
  });
  cases.invalid("mailbox/write_once", set("signal", MAY_READ), {
    name: "write_waits",
    about: "The byte area is the reader's: nothing of it is touched.",
    clauses: "mailbox.write mailbox.signal_exchange",
    results: ["wait.timeout"],
    unchanged: true,
  });
  cases.valid(writing({ size: 64 }, [{ write: { json: [1] }, wait: true }]), {
    name: "write_once",
    about: "One message, into blank memory.",
    clauses: "mailbox.write mailbox.parts",
    results: ["ok"],
    bytes: [
      wordIs("signal", MAY_READ),
      wordIs("part_count", 1),
      wordIs("part_index", 0),
      wordIs("status", 0),
    ],
  });
  const parts: Operation[] = [
    { write: { json: ["x".repeat(40)] }, wait: true },
    { take: true },
    { resume: true },
    { take: true },
    { resume: true },
    { take: true },
  ];
  cases.valid(writing({ size: 48 }, parts.slice(0, 1)), {
    name: "write_full",
    about: "A message of 44 bytes: the first of three parts fills the byte area.",
    clauses: "mailbox.full_parts mailbox.parts",
    results: ["wait.timeout"],
    bytes: [wordIs("length", 16), wordIs("part_count", 3), wordIs("part_index", 0)],
  });
  const large = cases.valid(writing({ size: 48 }, parts), {
    name: "write_parts",
    about: "A message of 44 bytes in parts of at most 16: each waits for the one before.",
    clauses: "mailbox.parts mailbox.write_all mailbox.write mailbox.begun",
    results: [
      "wait.timeout",
      drained([]),
      "wait.timeout",
      drained([]),
      "ok",
      drained(json("x".repeat(40))),
    ],
  });
  cases.invalid(large, member("image.size", 64), {
    name: "write_two_parts",
    about: "With parts of at most 32, two are enough.",
    clauses: "mailbox.parts mailbox.write_all mailbox.begun",
    results: [
      "wait.timeout",
      drained([]),
      "ok",
      drained(json("x".repeat(40))),
      "ok",
      drained([]),
    ],
  });
}

/** A payload that is begun comes first; one that is not is forgotten when its write times out. */
function addBegun(cases: Cases): void {
  const write = (...values: unknown[]): Operation => ({ write: { json: values }, wait: true });
  const [take, resume]: Operation[] = [{ take: true }, { resume: true }];
  const nothing = drained([]);
  const unbegun = cases.valid(
    writing(whole('["old"]', 64), [write("a"), take!, write("b"), take!, resume!, take!]),
    {
      name: "write_unbegun",
      about: "A write times out before its first part is written: the next one stands alone.",
      clauses: "mailbox.begun mailbox.write_all",
      results: ["wait.timeout", drained(json("old")), "ok", drained(json("b")), "ok", nothing],
      bytes: [wordIs("signal", 0)],
    },
  );
  cases.invalid(unbegun, set("signal", 0), {
    name: "write_unbegun_not",
    about:
      "The byte area is the writer's: the first write is done, and the second waits for its turn.",
    clauses: "mailbox.begun mailbox.write",
    results: ["ok", drained(json("a")), "ok", drained(json("b")), "ok", nothing],
    bytes: [wordIs("signal", 0)],
  });
  const large = "x".repeat(40);
  const done = ["ok", drained(json(large)), "ok", nothing];
  const rest = [resume!, take!, resume!, take!];
  const begun = cases.valid(writing({ size: 64 }, [write(large), take!, resume!, ...rest]), {
    name: "write_begun",
    about: "A payload of two parts is begun, and its rest written when there is room for it.",
    clauses: "mailbox.begun mailbox.write_all",
    results: ["wait.timeout", nothing, "ok", ...done],
  });
  cases.invalid(begun, member("operations.2", write("b")), {
    name: "write_begun_other",
    about:
      "Another payload instead: refused, or behind the rest, and forgotten when it finds no room.",
    clauses: "mailbox.begun mailbox.write_all",
    results: ["wait.timeout", nothing, { one_of: ["refused", "wait.timeout"] }, ...done],
  });
}

function addWriterFaults(cases: Cases): void {
  const add = (name: string, about: string, key: string, value: number, code: string) =>
    cases.invalid("mailbox/write_once", set(key, value), {
      name,
      about,
      clauses: code === "peer.closed"
        ? "mailbox.closed mailbox.write"
        : "mailbox.check mailbox.fault mailbox.write",
      results: [code],
      ...(code !== "peer.closed" &&
        { bytes: [wordIs("status", DISPOSED), wordIs("signal", DISPOSED)] }),
    });
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
    const from = cases.valid({ ...reading(plan, [{ close: true }]), role }, {
      name: `close_${name}`,
      about: "A close stores -1 in two words, and leaves the others alone.",
      clauses: "mailbox.close mailbox.closed",
      results: ["ok"],
      bytes: [...closed, ...rest],
    });
    cases.invalid(from, set("length", 7), {
      name: `close_${name}_length`,
      about: "Another length: it stays as it is.",
      clauses: "mailbox.close",
      results: ["ok"],
      bytes: [...closed, wordIs("length", 7), ...rest.slice(1)],
    });
  }
  cases.valid(reading(whole("[1]"), [{ close: true }, { read: true }]), {
    name: "closed_here",
    about: "A side that has closed the mailbox itself says so.",
    clauses: "mailbox.closed mailbox.close",
    results: ["ok", drained([], "pipe.closed")],
  });
  const operations: Operation[] = [{ close: true }, { write: { json: [1] }, wait: true }];
  cases.valid(writing({ size: 64 }, operations), {
    name: "write_closed_here",
    about: "A side that has closed the mailbox itself writes nothing.",
    clauses: "mailbox.closed mailbox.close",
    results: ["ok", "pipe.closed"],
    bytes: closed,
  });
}

// Whose turn it is, and what a side of a mailbox answers: cases of `spec/mailbox.md`.

/** Adds them to the cases of the mailbox. */
function addMailboxAnswers(cases: Cases): void {
  addTurns(cases);
  addFault(cases);
  addAnswers(cases);
  addRest(cases);
  addCloseAgain(cases);
}

/** `signal` is looked at first, then `status`; the first that is not in order decides. */
function addTurns(cases: Cases): void {
  const read = reading({ ...whole("[1]"), status: DISPOSED });
  const write = writing({ size: 64, status: DISPOSED }, [{ write: { json: [1] }, wait: true }]);
  const sides = [
    ["reader", read, drained([], "peer.closed"), drained([], "mailbox.signal")],
    ["writer", write, "peer.closed", "mailbox.signal"],
  ] as const;
  for (const [name, setting, closed, broken] of sides) {
    const from = cases.valid(setting, {
      name: `turn_${name}`,
      about: "`signal` is in order, and `status` says closed.",
      clauses: "mailbox.turn mailbox.closed",
      results: [closed],
    });
    cases.invalid(from, set("signal", 5), {
      name: `turn_${name}_signal`,
      about: "`signal` is broken, and `status` says closed: the first decides.",
      clauses: "mailbox.turn",
      results: [broken],
    });
    cases.invalid(from, set("status", 7), {
      name: `turn_${name}_status`,
      about: "`signal` is in order, and `status` is broken.",
      clauses: "mailbox.turn",
      results: [broken],
    });
    const torn = cases.valid({
      ...setting,
      image: toImage(buildMailbox({ size: 64, signal: DISPOSED, status: 7 })),
    }, {
      name: `turn_${name}_closing`,
      about: "`signal` says closed, and `status` is broken: the first decides.",
      clauses: "mailbox.turn mailbox.closed",
      results: [closed],
    });
    cases.invalid(torn, set("signal", 2), {
      name: `turn_${name}_both`,
      about: "Both are broken.",
      clauses: "mailbox.turn",
      results: [broken],
    });
  }
}

/** The second example of the chapter: a part that is longer than the byte area. */
function addFault(cases: Cases): void {
  const before = printed("writer: wrong part", "00000000  01000000  11000000  02000000  00000000");
  const after = printed("reader: refuses it", "ffffffff  ffffffff  11000000  02000000  00000000");
  const bytes = buildMailbox({ size: 48, part: utf8('["hello",[1,2,3]') });
  bytes.set(before);
  const image = toImage(bytes);
  const from = cases.valid({
    kind: "read",
    image,
    role: "mailbox_reader",
    limit: 4096,
    operations: [{ read: true }],
  }, {
    name: "fault",
    about:
      "The second example of the chapter: the reader refuses the part, and closes the mailbox.",
    clauses: "mailbox.check mailbox.fault mailbox.close",
    results: [drained([], "mailbox.length")],
    bytes: [{ offset: 0, hex: toHex(after), about: "all five words" }],
  });
  const closing = [wordIs("status", DISPOSED), wordIs("signal", DISPOSED)];
  cases.invalid(from, set("status", 1), {
    name: "fault_status",
    about: "A broken `status` is found before the part, and is closed as well.",
    clauses: "mailbox.check mailbox.fault mailbox.close mailbox.turn",
    results: [drained([], "mailbox.signal")],
    bytes: [...closing, wordIs("length", 17)],
  });
  cases.invalid(from, set("length", 16), {
    name: "no_fault",
    about: "A length of 16: the part is the first of two.",
    clauses: "mailbox.check mailbox.fault mailbox.close",
    results: [drained([])],
    bytes: [wordIs("status", 0), wordIs("signal", 0), wordIs("length", 16)],
  });
}

/** The five words of a line of the chapter's table, which must be there. */
function printed(step: string, words: string): Uint8Array {
  const chapter = Deno.readTextFileSync(new URL("../../../spec/mailbox.md", import.meta.url));
  if (!new RegExp(`${step} +${words}`).test(chapter)) throw new Error(`not printed: ${step}`);
  return fromHex(words);
}

/** What was found once, a fault or a close, is the answer from then on. */
function addAnswers(cases: Cases): void {
  const closing = [store("status", DISPOSED), store("signal", DISPOSED)];
  const again = [store("status", 0), store("signal", MAY_READ), store("length", 3)];
  const clauses = "mailbox.first_answer mailbox.check mailbox.fault";
  const add = (name: string, about: string, setting: Setting, before: Result, after: Result) => {
    const from = cases.valid(setting, {
      name: `answer_${name}`,
      about,
      clauses,
      results: [before, "ok", after],
      bytes: [wordIs("status", DISPOSED)],
    });
    cases.invalid(from, member("operations.1", { set: again }), {
      name: `answer_${name}_restored`,
      about: `${about} The words are in order again: the answer stays.`,
      clauses,
      results: [before, "ok", after],
      bytes: [wordIs("status", 0)],
    });
    cases.invalid(from, member("operations.1", { close: true }), {
      name: `answer_${name}_own_close`,
      about: `${about} The own close comes first.`,
      clauses: `${clauses} mailbox.closed`,
      results: [before, "ok", typeof after === "string" ? "pipe.closed" : closed],
      bytes: [wordIs("status", DISPOSED)],
    });
  };
  const closed = drained([], "pipe.closed");
  const read: Operation[] = [{ read: true }, { set: closing }, { read: true }];
  const [bad, gone] = [drained([], "mailbox.length"), drained([], "peer.closed")];
  add("fault", "A part is too long.", reading({ ...whole("[1]"), length: 99 }, read), bad, bad);
  const left = reading({ ...whole("[1]"), status: DISPOSED }, read);
  add("closed", "The peer has closed.", left, gone, gone);
  const write: Operation = { write: { json: [1] }, wait: true };
  const wrong = writing({ size: 64, signal: 77 }, [write, { set: closing }, write]);
  add("write_fault", "A signal is broken.", wrong, "mailbox.signal", "mailbox.signal");
}

/** What is left of a payload that was read. */
function addRest(cases: Cases): void {
  const operations: Operation[] = [{ read: 1 }, { set: [store("length", 7)] }, { read: true }];
  const first = { items: json(1) };
  const from = cases.valid(reading(whole("[1,2,3]"), operations), {
    name: "rest",
    about: "The messages of one payload are asked for one after the other.",
    clauses: "mailbox.closed mailbox.first_answer",
    results: [first, "ok", drained(json(2, 3))],
  });
  cases.invalid(from, member("operations.1", { close: true }), {
    name: "rest_own_close",
    about: "The own close drops the rest.",
    clauses: "mailbox.closed mailbox.first_answer",
    results: [first, "ok", drained([], "pipe.closed")],
  });
  cases.invalid(from, member("operations.1", { set: [store("signal", 5)] }), {
    name: "rest_fault",
    about: "The rest comes before a fault.",
    clauses: "mailbox.first_answer",
    results: [first, "ok", drained(json(2, 3), "mailbox.signal")],
  });
  cases.invalid(
    from,
    member("operations.1", { set: [store("status", DISPOSED), store("signal", DISPOSED)] }),
    {
      name: "rest_peer_closed",
      about: "The peer's close does not.",
      clauses: "mailbox.closed mailbox.first_answer",
      results: [first, "ok", drained(json(2, 3), "peer.closed")],
    },
  );
}

/** A close stores its two words, whoever or whatever has closed the mailbox before. */
function addCloseAgain(cases: Cases): void {
  const over: Operation = { set: [store("signal", MAY_READ)] };
  const close: Operation = { close: true };
  const write: Operation = { write: { json: [1] }, wait: true };
  const both = [wordIs("status", DISPOSED), wordIs("signal", DISPOSED)];
  const plan = { size: 64, status: DISPOSED, signal: DISPOSED };
  const sides = [
    ["reader", reading, { read: true }, (code: string) => drained([], code)],
    ["writer", writing, write, (code: string) => code],
  ] as const;
  for (const [name, setting, call, answer] of sides) {
    const closed = answer("peer.closed");
    const from = cases.valid(setting(plan, [call, over, close]), {
      name: `close_again_${name}`,
      about:
        "The peer has closed, and a plain store has overwritten it: the own close stores -1 again.",
      clauses: "mailbox.close",
      results: [closed, "ok", "ok"],
      bytes: both,
    });
    cases.invalid(from, set("signal", 5), {
      name: `close_again_${name}_broken`,
      about: "The same on a mailbox that a fault has closed.",
      clauses: "mailbox.close mailbox.check mailbox.fault",
      results: [answer("mailbox.signal"), "ok", "ok"],
      bytes: both,
    });
    cases.invalid(from, member("operations.2", call), {
      name: `close_again_${name}_not`,
      about: "A call in place of the close answers as before, and stores nothing.",
      clauses: "mailbox.close mailbox.first_answer",
      results: [closed, "ok", closed],
      bytes: [wordIs("status", DISPOSED), wordIs("signal", MAY_READ)],
    });
  }
}
