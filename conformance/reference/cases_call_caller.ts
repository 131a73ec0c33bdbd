/** The cases of `spec/call.md` in which the port under test calls. @module */

import { type Cases, CLOSED, drained, endFrame, setState } from "./builder.ts";
import { CANCELS, cut, frame, MORE, port } from "./builder_call.ts";
import { sends, serving, wrote } from "./builder_call.ts";
import { toHex } from "./bytes.ts";
import type { Change, Item, Operation, Setting, Settled, Value, Wanted } from "./case.ts";
import { buildFrame, type FramePlan, kindOf } from "./encode.ts";
import { limitOf, reasonOf } from "./layout.ts";

/** Adds the cases. */
export function addCallerCases(cases: Cases): void {
  addResults(cases);
  addThrows(cases);
  addIds(cases);
  addGivenUp(cases);
  addItems(cases);
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

function addItems(cases: Cases): void {
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
