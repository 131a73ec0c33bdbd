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
  const from = cases.valid(
    "returned",
    "A call and its answer.",
    "call.match call.once call.values call.message call.id call.unmatched call.bad_answer",
    answered([good]),
    settles(returned({ json: 12 })),
  );
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
    cases.invalid(
      `returned_${name}`,
      about,
      clauses,
      from,
      sent(plan),
      settles({ outcome: code }),
    );
  }
  cases.invalid(
    "returned_other",
    "The answer has the id of another call.",
    "call.match call.unmatched call.id",
    from,
    sent({ ...good, tag: 2 }),
    settles({ outcome: "pending" }, ["call.answer"]),
  );
  cases.invalid(
    "returned_item",
    "An item, where one result was asked for: the call is given up.",
    "call.too_many call.give_up call.match",
    from,
    sent({ ...good, tag: 1 + MORE }),
    settles({ outcome: "call.items" }, [], [wrote("call", 1 + CANCELS)]),
  );
  cases.valid(
    "returned_two",
    "An answer of two values.",
    bad,
    answered([frame("return", 1, { json: 1 }, { json: 2 })]),
    settles({ outcome: "call.form" }),
  );
  cases.valid(
    "returned_throw_long",
    "The name of an error has 255 bytes at most.",
    bad,
    answered(cut(frame("throw", 1, { text: "x".repeat(256) }, { text: "" }), 160)),
    settles({ outcome: "call.form" }),
  );
  cases.valid(
    "returned_nothing",
    "An absent result.",
    "call.match call.message",
    answered([frame("return", 1)]),
    settles(returned()),
  );
  const large = cut(frame("return", 1, { hex: "bb ".repeat(400).trim() }), 300);
  cases.valid(
    "returned_too_large",
    "An answer above the limit ends its call, and no other is lost.",
    "call.bad_answer pipe.limit",
    answered(large, { limit: 200 }),
    settles({ outcome: "message.size" }),
  );
  const twice = calling([CALL, TAKE, sends([good, good]), READ, { outcome: 0 }]);
  const second = { results: ["ok", drained([ASKED]), "ok", read("call.answer")] as Wanted[] };
  cases.valid(
    "returned_twice",
    "A second answer belongs to no call.",
    "call.once call.unmatched",
    twice,
    { results: [...second.results, returned({ json: 12 })] },
  );
  const absent = { call: { name: "ask", values: [{ json: 1 }, {}, { hex: "00 ff" }] } };
  const whole = cases.valid(
    "arguments_absent",
    "An absent argument stands before bytes.",
    "call.values_encoded call.values call.message",
    calling([absent, TAKE]),
    { results: ["ok", drained([wrote("call", 1, { text: "ask" }, ...absent.call.values)])] },
  );
  const none: Value[] = [{ json: 1 }, { json: null }, { hex: "00 ff" }];
  cases.invalid(
    "arguments_null",
    "Which is another thing than null.",
    "call.values_encoded",
    whole,
    { member: "operations.0.call.values", value: none },
    { results: ["ok", drained([wrote("call", 1, { text: "ask" }, ...none)])] },
  );
}

function addThrows(cases: Cases): void {
  const thrown = (name: string) => frame("throw", 1, { text: name }, { text: "no" }, { json: 7 });
  const error = (name: string) => ({ name, text: "no", data: { json: 7 } });
  const codes = ["form", "limit", "depth", "method", "arguments", "result", "cancelled"];
  const from = cases.valid(
    "thrown",
    "An error of the method.",
    "call.thrown call.match call.message",
    answered([thrown("call.metho")]),
    settles({ outcome: "call.thrown", error: error("call.metho") }),
  );
  cases.invalid(
    "thrown_peer",
    "The name of a code that does not speak of a call.",
    "call.thrown",
    from,
    sent(thrown("pipe.ended")),
    settles({ outcome: "call.thrown", error: error("pipe.ended") }),
  );
  for (const code of codes) {
    cases.valid(
      `thrown_${code}`,
      "A refusal: the name of the error is the code.",
      "call.thrown",
      answered([thrown(`call.${code}`)]),
      settles({ outcome: `call.${code}` }),
    );
  }
  cases.invalid(
    "thrown_refusal",
    "The name of a refusal, as long as the other.",
    "call.thrown",
    from,
    sent(thrown("call.limit")),
    settles({ outcome: "call.limit" }),
  );
}

function addIds(cases: Cases): void {
  const id = (number: number) => wrote("call", number, { text: "ask" }, ...ARGUMENTS);
  const from = cases.valid(
    "ids",
    "Ids count up from 1, whatever was answered meanwhile.",
    "call.id call.under_way",
    calling([CALL, CALL, TAKE, sends([frame("return", 1)]), READ, CALL, TAKE]),
    { results: ["ok", "ok", drained([id(1), id(2)]), "ok", read(), "ok", drained([id(3)])] },
  );
  cases.invalid(
    "ids_unanswered",
    "An answer to nobody changes nothing of that.",
    "call.id call.unmatched",
    from,
    { member: "operations.3.set.0.hex", value: toHex(buildFrame(frame("return", 5))) },
    {
      results: ["ok", "ok", drained([id(1), id(2)]), "ok", read("call.answer"), "ok"].concat(
        [drained([id(3)])] as never[],
      ) as Wanted[],
    },
  );
  const last = limitOf("call_id_max");
  const wraps = cases.valid(
    "ids_wrap",
    "Behind the last id comes 1.",
    "call.id",
    calling([CALL, CALL, CALL, TAKE], { first_id: last - 1 }),
    { results: ["ok", "ok", "ok", drained([id(last - 1), id(last), id(1)])] },
  );
  cases.invalid(
    "ids_first",
    "The user has chosen another first id.",
    "call.id",
    wraps,
    { member: "first_id", value: last },
    { results: ["ok", "ok", "ok", drained([id(last), id(1), id(2)])] },
  );
  const notify: Operation = { notify: { name: "ask", values: ARGUMENTS } };
  cases.valid(
    "notify",
    "A notice has the id 0, and takes none.",
    "call.message call.id",
    calling([notify, CALL, TAKE]),
    { results: ["ok", "ok", drained([id(0), id(1)])] },
  );
}

function addGivenUp(cases: Cases): void {
  const operations: Operation[] = [CALL, TAKE, { give_up: 0 }, { outcome: 0 }, TAKE];
  const aborted: Settled = { outcome: "wait.aborted" };
  const begun: Wanted[] = ["ok", drained([ASKED]), "ok", aborted];
  const cancel = drained([wrote("call", 1 + CANCELS)]);
  const late = [sends([frame("return", 1, { json: 1 })]), READ, { outcome: 0 }] as Operation[];
  const from = cases.valid(
    "given_up",
    "A call that is given up: a cancel, and the answer that comes late is dropped.",
    "call.give_up call.late call.once call.unmatched call.match",
    calling([...operations, ...late]),
    { results: [...begun, cancel, "ok", read(), aborted] },
  );
  const change = (plan: FramePlan): Change => ({
    member: "operations.5.set.0.hex",
    value: toHex(buildFrame(plan)),
  });
  cases.invalid(
    "given_up_other",
    "The late answer is that of another call.",
    "call.late call.unmatched",
    from,
    change(frame("return", 2, { json: 1 })),
    { results: [...begun, cancel, "ok", read("call.answer"), aborted] },
  );
  const held = calling([CALL, { give_up: 0 }, CALL, TAKE]);
  const second = wrote("call", 2, { text: "ask" }, ...ARGUMENTS);
  const before = cases.valid(
    "given_up_held",
    "Its id is not used again before the answer, and the cancel comes before the next call.",
    "call.id call.give_up call.cancel_owed",
    held,
    { results: ["ok", "ok", "ok", drained([ASKED, wrote("call", 1 + CANCELS), second])] },
  );
  cases.invalid(
    "given_up_second",
    "The second call is given up, and nothing else is there.",
    "call.give_up",
    before,
    { member: "operations.2", value: { outcome: 0 } },
    { results: ["ok", "ok", aborted, drained([ASKED, wrote("call", 1 + CANCELS)])] },
  );
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
  const from = cases.valid(
    "granted",
    "Behind the eighth item that was taken, room for eight more.",
    "call.grant call.match call.too_many",
    calling([call, TAKE, sends(items(9)), READ, ...next(8), TAKE]),
    granted(8, [wrote("call", 1 + MORE)]),
  );
  cases.invalid(
    "not_granted",
    "Seven were taken.",
    "call.grant",
    from,
    { member: "operations.11", value: { take: true } },
    {
      results: [
        ...["ok", drained([ASKED]), "ok", read(), ...taken(7)] as Wanted[],
        NOTHING,
        NOTHING,
      ],
    },
  );
  cases.valid(
    "granted_ended",
    "Nobody grants anything behind the answer.",
    "call.grant",
    calling([call, TAKE, sends([...items(8), frame("return", 1)]), READ, ...next(9), TAKE]),
    {
      results: [
        ...["ok", drained([ASKED]), "ok", read(), ...taken(8)] as Wanted[],
        returned(),
        NOTHING,
      ],
    },
  );
  const spoilt = frame("return", 1 + MORE, { json: 12 });
  spoilt.payload[16] = 0x78;
  cases.valid(
    "item_json",
    "An item that is no JSON ends the call.",
    "call.bad_answer call.give_up",
    calling([call, TAKE, sends([spoilt]), READ, { outcome: 0 }, TAKE]),
    {
      results: [
        ...["ok", drained([ASKED]), "ok", read(), { outcome: "message.json" }] as Wanted[],
        drained([wrote("call", 1 + CANCELS)]),
      ],
    },
  );
  const many = (count: number) =>
    calling([call, TAKE, sends(items(count)), READ, { outcome: 0 }, TAKE]);
  cases.valid(
    "items_16",
    "As many as may come unasked.",
    "call.too_many",
    many(16),
    { results: ["ok", drained([ASKED]), "ok", read(), { outcome: "pending" }, NOTHING] },
  );
  cases.valid(
    "items_17",
    "One more ends the call.",
    "call.too_many call.give_up",
    many(17),
    {
      results: [
        ...["ok", drained([ASKED]), "ok", read(), { outcome: "call.items" }] as Wanted[],
        drained([wrote("call", 1 + CANCELS)]),
      ],
    },
  );
}

function addLost(cases: Cases): void {
  const call: Wanted[] = ["ok", drained([ASKED]), "ok"];
  const ended = cases.valid(
    "ended",
    "The peer ends its stream: no answer can come.",
    "call.lost",
    calling([CALL, TAKE, sends([endFrame()]), READ, { outcome: 0 }, CALL]),
    {
      results: [...call, drained([], "ended"), { outcome: "call.ended" }, "call.ended"],
    },
  );
  cases.invalid(
    "ended_not",
    "It writes a plain message in its place.",
    "call.lost",
    ended,
    {
      member: "operations.2.set.0.hex",
      value: toHex(buildFrame({ kind: kindOf("data"), flags: 3 })),
    },
    {
      results: [
        ...call,
        drained([{ kind: 1, codec: 0, tag: 0, hex: "" }]),
        { outcome: "pending" },
        "ok",
      ],
    },
  );
  cases.valid(
    "ended_behind",
    "What was published before counts.",
    "call.lost call.once",
    calling([CALL, TAKE, sends([frame("return", 1), endFrame()]), READ, { outcome: 0 }]),
    { results: [...call, drained([], "ended"), returned()] },
  );
  cases.valid(
    "closed",
    "The peer closes.",
    "call.lost",
    calling([CALL, TAKE, setState(0, CLOSED), READ, { outcome: 0 }, CALL]),
    {
      results: [...call, drained([], "peer.closed"), { outcome: "peer.closed" }, "peer.closed"],
    },
  );
  const failed = 3 + 256 * reasonOf("peer.lost");
  cases.valid(
    "failed",
    "The peer is found dead.",
    "call.lost",
    calling([CALL, TAKE, setState(0, failed), READ, { outcome: 0 }]),
    { results: [...call, drained([], "peer.failed", "peer.lost"), { outcome: "peer.failed" }] },
  );
  cases.valid(
    "fault",
    "A frame that is none.",
    "call.lost pipe.fault",
    calling([CALL, TAKE, sends([{ kind: 99 }]), READ, { outcome: 0 }]),
    { results: [...call, drained([], "frame.kind"), { outcome: "frame.kind" }] },
  );
  cases.valid(
    "own_close",
    "The port closes itself.",
    "call.lost call.once",
    calling([CALL, TAKE, { close: true }, READ, { outcome: 0 }, CALL]),
    { results: [...call, drained([], "pipe.closed"), { outcome: "pipe.closed" }, "pipe.closed"] },
  );
}
