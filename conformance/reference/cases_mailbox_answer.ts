/** Whose turn it is, and what a side of a mailbox answers: cases of `spec/mailbox.md`. @module */

import { Cases, drained, member, utf8 } from "./builder.ts";
import {
  DISPOSED,
  json,
  MAY_READ,
  reading,
  set,
  store,
  whole,
  wordIs,
  writing,
} from "./builder_mailbox.ts";
import { fromHex, toHex, toImage } from "./bytes.ts";
import type { Operation, Result, Setting } from "./case.ts";
import { buildMailbox } from "./encode.ts";

/** Adds them to the cases of the mailbox. */
export function addMailboxAnswers(cases: Cases): void {
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
  const chapter = Deno.readTextFileSync(new URL("../../spec/mailbox.md", import.meta.url));
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
