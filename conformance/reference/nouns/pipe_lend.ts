/** Lending out of turn, and publishing nothing: cases of `spec/pipe.md`. @module */

import { ATTACHED, bellIs, bytesOf, Cases, controlIs, drained, extended } from "../builder.ts";
import { field, firstOf, member, message, part, pipe, reading, setRecord } from "../builder.ts";
import { setState, stateIs, store, text, utf8, whole, writersPipe, writing } from "../builder.ts";
import { toImage } from "../bytes.ts";
import type { Drained, Operation } from "../case.ts";
import { buildSegment, failed, fillRing } from "../encode.ts";

const peek: Operation = { peek: true };
const release: Operation = { release: true };
const publish: Operation = { publish: true };
const take: Operation = { take: true };
const close: Operation = { close: true };
/** Changes nothing: the place where the changed cases do something. */
const still = setState(1, ATTACHED);
/** What a read gives where a read is the caller's mistake. */
const REFUSED: Drained = { items: [], end: "refused" };
/** What the own close answers, or that there is nothing to give back: whichever comes first. */
const CLOSED_OR_REFUSED = { one_of: ["pipe.closed", "refused"] };

/** Adds them to the cases of the pipe. */
export function addLending(cases: Cases): void {
  addExtended(cases);
  addLendOne(cases);
  addLendClosed(cases);
  addBothWays(cases);
  addClaimOne(cases);
  addNoClaim(cases);
  addClaimClosed(cases);
  addPublishNone(cases);
}

function addExtended(cases: Cases): void {
  const frames = [
    extended(whole("hi")),
    extended(firstOf(3, utf8("a"))),
    extended(part(utf8("bc"))),
  ];
  const lend = [peek, release];
  const chunk = (content: string) => ({ items: [message({ text: content })] });
  const plan = pipe({ frames });
  const from = cases.valid(reading(plan, { operations: [...lend, ...lend, ...lend] }), {
    name: "lend_extended",
    about: "What is lent begins behind the header extension, and behind the preamble.",
    clauses: "pipe.lend_check frame.skip_extension",
    results: [{ items: [text("hi")] }, "ok", chunk("a"), "ok", chunk("bc"), "ok"],
    bytes: [stateIs(0, ATTACHED)],
  });
  const fault: Drained = { items: [], end: "frame.extension" };
  const again = { one_of: ["refused", "frame.extension"] };
  cases.invalid(from, field(plan.at[1]! + 16, "header_extension", "size", 48), {
    name: "lend_extended_broken",
    about: "The extension of the second frame reaches beyond it.",
    clauses: "pipe.lend_check frame.extension",
    results: [{ items: [text("hi")] }, "ok", fault, again, fault, again],
    bytes: [stateIs(0, failed("frame.extension"))],
  });
}

function addLendOne(cases: Cases): void {
  const contents = ["one", "two", "three"];
  const plan = pipe({ frames: contents.map((content) => whole(content)) });
  const lent = (content: string) => ({ items: [text(content)] });
  const rest = (from: number) => drained(contents.slice(from).map((content) => text(content)));
  const clauses = "pipe.lend_one pipe.lend";
  const head = [controlIs(plan, "head", 96)];
  const from = cases.valid(reading(plan, { operations: [peek, still, release, { read: true }] }), {
    name: "lend_in_turn",
    about: "A frame is lent and taken back, and what is behind it is read.",
    clauses,
    results: [lent("one"), "ok", "ok", rest(1)],
    bytes: head,
  });
  const while_lent: [string, string, Operation][] = [
    ["lend_twice", "Another is to be lent meanwhile: the caller's mistake.", peek],
    ["lend_and_read", "The next is to be read meanwhile: the caller's mistake.", { read: 1 }],
    ["lend_and_read_all", "All are to be read meanwhile: the same.", { read: true }],
  ];
  for (const [name, about, operation] of while_lent) {
    cases.invalid(from, member("operations.1", operation), {
      name,
      about: `${about} Nothing is lost by it.`,
      clauses,
      results: [lent("one"), REFUSED, "ok", rest(1)],
      bytes: head,
    });
  }
  cases.invalid(from, member("operations.1", release), {
    name: "release_twice",
    about: "It is taken back twice: the second time is the caller's mistake.",
    clauses,
    results: [lent("one"), "ok", "refused", rest(1)],
    bytes: head,
  });
  cases.invalid(from, member("operations.0", still), {
    name: "release_nothing",
    about: "Nothing was lent.",
    clauses,
    results: ["ok", "ok", "refused", rest(0)],
    bytes: head,
  });
  cases.invalid(from, member("operations.0", { read: 1 }), {
    name: "release_read",
    about: "What was read is not to be taken back.",
    clauses,
    results: [lent("one"), "ok", "refused", rest(1)],
    bytes: head,
  });
  const none = pipe();
  cases.valid(reading(none, { operations: [peek, release] }), {
    name: "release_none",
    about: "There was nothing to lend.",
    clauses: "pipe.lend_one",
    results: [drained([]), "refused"],
    bytes: [controlIs(none, "head", 0)],
  });
}

/** The own close takes back what was lent, so that its answer is the only one. */
function addLendClosed(cases: Cases): void {
  const plan = pipe({ frames: [whole("one"), whole("two")] });
  const one = { items: [text("one")] };
  const gone = drained([], "pipe.closed");
  const from = cases.valid(
    reading(plan, { operations: [peek, close, { read: true }, peek, release] }),
    {
      name: "lend_and_close",
      about:
        "A frame is lent when the reader closes: from then on that is what every call answers.",
      clauses: "pipe.lend_one pipe.lend pipe.close pipe.close_stores pipe.first_answer",
      results: [one, "ok", gone, gone, CLOSED_OR_REFUSED],
      bytes: [controlIs(plan, "head", 0), stateIs(1, 2)],
    },
  );
  cases.invalid(from, member("operations.1", still), {
    name: "lend_and_stay",
    about: "It does not close.",
    clauses: "pipe.lend_one pipe.lend pipe.close pipe.close_stores",
    results: [one, "ok", REFUSED, REFUSED, "ok"],
    bytes: [stateIs(1, ATTACHED)],
  });
}

/** What is lent in one direction of a port does not stand in the way of the other. */
function addBothWays(cases: Cases): void {
  const segment = buildSegment({
    endpoints: 2,
    channels: [{ writer: 0, reader: 1, capacity: 256 }, { writer: 1, reader: 0, capacity: 256 }],
    states: [ATTACHED, 0],
  });
  fillRing(segment, 0, [whole("one"), whole("two")]);
  const claim: Operation = { claim: { text: "a" }, size: 8, open: true };
  const operations: Operation[] = [
    peek,
    { write: { text: "x" } },
    claim,
    release,
    { read: true },
    { finish: { text: "a" } },
    { end: true },
    take,
  ];
  const one = { items: [text("one")] };
  const from = cases.valid({
    kind: "read",
    image: toImage(segment.bytes),
    role: "port",
    endpoint: 1,
    channel: 1,
    limit: 4096,
    operations,
  }, {
    name: "lend_and_claim",
    about:
      "A port writes while a frame is lent, and gives it back and reads while a claim is open.",
    clauses: "pipe.lend_one pipe.claim_one",
    results: [
      one,
      "ok",
      "ok",
      "ok",
      drained([text("two")]),
      "ok",
      "ok",
      drained([message({ text: "x" }), message({ text: "a" })], "ended"),
    ],
  });
  cases.invalid(from, member("operations.3", { write: { text: "y" } }), {
    name: "lend_and_claim_out_of_turn",
    about: "It is to write while the claim is open, and to read while the frame is lent.",
    clauses: "pipe.lend_one pipe.claim_one",
    results: [
      one,
      "ok",
      "ok",
      "refused",
      REFUSED,
      "ok",
      "ok",
      drained([message({ text: "x" }), message({ text: "a" })], "ended"),
    ],
  });
}

function addClaimOne(cases: Cases): void {
  const plan = writersPipe();
  const claim: Operation = { claim: { text: "a" }, size: 20, open: true };
  const finish: Operation = { finish: { text: "a" } };
  const a = message({ text: "a" });
  const clauses = "pipe.claim_one";
  const from = cases.valid(writing(plan, { operations: [claim, still, finish, publish, take] }), {
    name: "claim_open",
    about: "A place is claimed, filled in, finished and published.",
    clauses: `${clauses} ring.publish`,
    results: ["ok", "ok", "ok", "ok", drained([a])],
    bytes: [controlIs(plan, "tail", 32)],
  });
  const add = (name: string, about: string, operation: Operation) =>
    cases.invalid(from, member("operations.1", operation), {
      name,
      about: `${about} while the claim is open: the caller's mistake, and the claim stays.`,
      clauses,
      results: ["ok", "refused", "ok", "ok", drained([a])],
      bytes: [controlIs(plan, "tail", 32)],
    });
  add("claim_twice", "Another place is to be claimed", { claim: { text: "b" }, size: 1 });
  add("claim_and_write", "Something else is to be written", { write: { text: "b" } });
  add("claim_and_wait", "The same, by a call that may wait,", { write: { text: "b" }, wait: true });
  add("claim_and_end", "The stream is to end", { end: true });
  cases.invalid(from, member("operations.1", { abandon: true }), {
    name: "claim_given_up",
    about: "The claim is given up, and to finish it then is the caller's mistake.",
    clauses,
    results: ["ok", "ok", "refused", "ok", drained([])],
    bytes: [controlIs(plan, "tail", 0)],
  });
  const most = cases.valid(
    writing(plan, { operations: [claim, { abandon: true }, { write: { text: "b" } }, take] }),
    {
      name: "claim_abandoned",
      about: "A place is claimed and given up: what is written then stands there.",
      clauses: `${clauses} ring.tail_owner`,
      results: ["ok", "ok", "ok", drained([message({ text: "b" })])],
      bytes: [controlIs(plan, "tail", 32)],
    },
  );
  cases.invalid(most, member("operations.2", { end: true }), {
    name: "claim_abandoned_and_ended",
    about: "Or `end` does.",
    clauses: `${clauses} pipe.end`,
    results: ["ok", "ok", "ok", drained([], "ended")],
    bytes: [controlIs(plan, "tail", 16)],
  });
}

function addNoClaim(cases: Cases): void {
  const plan = writersPipe();
  const claim: Operation = { claim: { text: "a" }, size: 1, open: true };
  const finish: Operation = { finish: { text: "a" } };
  const abandon: Operation = { abandon: true };
  const operations: Operation[] = [claim, finish, publish, { write: { text: "b" } }, take];
  const [a, b] = [message({ text: "a" }), message({ text: "b" })];
  const from = cases.valid(writing(plan, { operations }), {
    name: "claim_and_then_write",
    about: "Behind a claim that is finished and published, a message is written.",
    clauses: "pipe.claim_one",
    results: ["ok", "ok", "ok", "ok", drained([a, b])],
  });
  const add = (name: string, about: string, at: number, operation: Operation) => {
    const results = ["ok", "ok", "ok", "ok"].map((ok, index) => index === at ? "refused" : ok);
    const items = at === 3 ? [a] : [a, b];
    cases.invalid(from, member(`operations.${at}`, operation), {
      name,
      about: `${about}: the caller's mistake.`,
      clauses: "pipe.claim_one",
      results: [...results, drained(items)],
    });
  };
  add("finish_twice", "It is finished again behind its publish", 3, finish);
  add("abandon_finished", "It is given up behind its publish", 3, abandon);
  for (const [name, operation] of [["finish", finish], ["abandon", abandon]] as const) {
    cases.valid(writing(plan, { operations: [operation, { write: { text: "b" } }, take] }), {
      name: `${name}_nothing`,
      about: "Nothing is claimed.",
      clauses: "pipe.claim_one",
      results: ["refused", "ok", drained([b])],
      bytes: [controlIs(plan, "tail", 32)],
    });
  }
  const full: Operation[] = [
    { write: bytesOf(112) },
    { write: bytesOf(80) },
    { claim: bytesOf(64), size: 64, open: true },
    { finish: bytesOf(64) },
  ];
  cases.valid(writing(plan, { operations: full }), {
    name: "finish_no_room",
    about: "There was no room for the claim, so that there is nothing to finish.",
    clauses: "pipe.claim_one ring.room",
    results: ["ok", "ok", "full", "refused"],
    bytes: [controlIs(plan, "tail", 224)],
  });
}

function addClaimClosed(cases: Cases): void {
  const plan = writersPipe();
  const claim: Operation = { claim: { text: "a" }, size: 1, open: true };
  const operations: Operation[] = [
    claim,
    close,
    { write: { text: "b" } },
    claim,
    { finish: { text: "a" } },
    { abandon: true },
    publish,
    { end: true },
    take,
  ];
  const from = cases.valid(writing(plan, { operations }), {
    name: "claim_and_close",
    about: "A claim is open when the writer closes: that is what every call answers from then on.",
    clauses: "pipe.claim_one pipe.publish_none pipe.close pipe.close_stores pipe.first_answer",
    results: [
      "ok",
      "ok",
      "pipe.closed",
      "pipe.closed",
      CLOSED_OR_REFUSED,
      CLOSED_OR_REFUSED,
      "ok",
      "pipe.closed",
      drained([]),
    ],
    bytes: [controlIs(plan, "tail", 0), stateIs(0, 2)],
  });
  cases.invalid(from, member("operations.1", still), {
    name: "claim_and_stay",
    about: "It does not close.",
    clauses: "pipe.claim_one pipe.close pipe.close_stores",
    results: [
      "ok",
      "ok",
      "refused",
      "refused",
      "ok",
      "refused",
      "ok",
      "ok",
      drained([message({ text: "a" })], "ended"),
    ],
  });
}

function addPublishNone(cases: Cases): void {
  const clauses = "pipe.publish_none";
  const plan = writersPipe();
  const asks: Operation = { set: [store(plan, "reader_wants", 1)] };
  const bell = setRecord(1, { bell: 0x20 });
  const quiet = [controlIs(plan, "tail", 0), controlIs(plan, "reader_wants", 1), bellIs(1, 0x20)];
  const held: Operation = { claim: { text: "a" }, size: 1 };
  const nothing: [string, string, Operation][] = [
    ["nothing", "Nothing is finished: nothing is stored, and nobody is rung.", still],
    ["given_up", "Nor is what was given up.", { claim: { text: "a" }, size: 1, abandon: true }],
  ];
  for (const [name, about, operation] of nothing) {
    cases.valid(writing(plan, { operations: [operation, asks, bell, publish, take] }), {
      name: `publish_${name}`,
      about,
      clauses: `${clauses} wait.exchange`,
      results: ["ok", "ok", "ok", "ok", drained([])],
      bytes: quiet,
    });
  }
  const finished = cases.valid(
    writing(plan, { operations: [held, asks, bell, still, publish, take] }),
    {
      name: "publish_finished",
      about: "A message is finished, and becomes visible: its reader is rung.",
      clauses: `${clauses} wait.exchange ring.publish`,
      results: ["ok", "ok", "ok", "ok", "ok", drained([message({ text: "a" })])],
      bytes: [
        controlIs(plan, "tail", 32),
        controlIs(plan, "reader_wants", 0),
        bellIs(1, 0x21),
      ],
    },
  );
  cases.invalid(finished, member("operations.3", close), {
    name: "publish_closed",
    about: "The close has dropped it: nothing is stored, and to publish is no error.",
    clauses: `${clauses} pipe.close`,
    results: ["ok", "ok", "ok", "ok", "ok", drained([])],
    bytes: [
      controlIs(plan, "tail", 0),
      controlIs(plan, "reader_wants", 1),
      stateIs(0, 2),
    ],
  });
  addPublishFault(cases);
}

/** The kit, which no reader ever does, puts `tail` back, to show who stores it once more. */
function addPublishFault(cases: Cases): void {
  const plan = writersPipe();
  const back = store(plan, "tail", 128);
  const operations: Operation[] = [
    { write: bytesOf(112) },
    { claim: bytesOf(16), size: 16 },
    { set: [store(plan, "head", 128)] },
    { write: bytesOf(96) },
    { set: [back] },
    publish,
    { end: true },
  ];
  const from = cases.valid(writing(plan, { operations }), {
    name: "publish_before_end",
    about: "A writer finishes, writes what needs a look at `head`, and ends.",
    clauses: "pipe.publish_none ring.fault ring.fault_stop",
    results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok"],
    bytes: [stateIs(1, ATTACHED)],
  });
  cases.invalid(from, member("operations.2.set.0.hex", "81 00 00 00"), {
    name: "publish_fault",
    about: "`head` is broken: what was finished is dropped, and to publish does nothing.",
    clauses: "pipe.publish_none ring.fault ring.fault_stop pipe.fault",
    results: ["ok", "ok", "ok", "ring.cursor", "ok", "ok", "ring.cursor"],
    bytes: [{ ...back, about: "tail" }, stateIs(1, failed("ring.cursor"))],
  });
}
