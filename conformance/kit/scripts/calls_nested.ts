/**
 * Scripts for calls within calls, and for what comes beside an answer: how deep, what is set aside,
 * and what does not reach the next owner of an endpoint.
 *
 * @module
 */

import { ATTACHED, CLOSED, endFrame, stateAt } from "../../reference/builder.ts";
import { pattern, setRecord, whole } from "../../reference/builder.ts";
import { calls, CANCELS, refuses, returns, wrote } from "../../reference/builder_call.ts";
import type { Item } from "../../reference/case.ts";
import { limitOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import type { Script } from "./stage.ts";
import { callScript, CallStage, IN, OUT, plain, plainItem, write } from "./stage_call.ts";

const DEPTH = limitOf("call_depth_max");
const [SMALL, LARGE] = [256, 65_536];

export const NESTED_SCRIPTS: Script[] = [
  callScript(
    "call_while_asking",
    "While a port waits for its answer it begins what arrives, in order.",
    "call.serve_waiting call.answer call.match",
    whileAsking,
  ),
  callScript(
    "call_nested",
    "Calls that call back, and are called by those: each gets its own answer.",
    "call.serve_waiting call.match call.answer",
    nested,
  ),
  callScript(
    "call_depth",
    "As many methods on one stack as may be, and one more.",
    "call.depth call.refused",
    deep,
    { blocks: true },
  ),
  callScript(
    "call_set_aside",
    "Plain messages and reports before an answer: they come later, in order.",
    "call.set_aside call.serve_waiting",
    setAside,
    { blocks: true },
  ),
  callScript(
    "call_inbox_full",
    "More of them than the inbox holds: the call is given up, and no message is lost.",
    "call.set_aside call.give_up call.late",
    inboxFull,
    { blocks: true, offers: ["inbox"] },
  ),
  callScript(
    "call_lost_while_asking",
    "The peer ends its stream while a port waits for its answer: behind it, or in its place.",
    "call.lost call.once call.serve_waiting",
    lostWhileAsking,
  ),
  callScript(
    "call_lost_many",
    "Several calls when the peer is gone: each ends once, and no further one is made.",
    "call.lost call.once call.give_up",
    lostMany,
  ),
  callScript(
    "call_vacated",
    "What was called, served and owed does not reach the next owner.",
    "call.vacated pipe.vacated pipe.vacated_rest",
    vacated,
    { mayDecline: ["vacating", "later"] },
  ),
];

const ADD = [{ json: 1 }, { json: 2 }];
const SUM = { json: 3 };

function called(id: number): Item {
  return wrote("call", id, { text: "far" });
}

async function whileAsking(arena: Arena): Promise<void> {
  await CallStage.with(arena, {}, async (stage) => {
    await stage.send(
      calls(0, "note", { json: 1 }),
      calls(1, "add", ...ADD),
      calls(2, "noted"),
      calls(3, "none"),
      write.answer(1, { json: "there" }),
    );
    const must = { outcome: "returned", value: { json: "there" } };
    await stage.asks("[call.match] the answer behind calls", must);
    const answers = [returns(1, SUM), returns(2, { json: [1] }), refuses(3, "call.method")];
    await stage.takes("[call.serve_waiting] what was answered before", called(1), ...answers);
  });
}

/** `ask` of the peer, which calls back. */
function asking(id: number) {
  return calls(id, "ask", { text: "far" });
}

async function nested(arena: Arena): Promise<void> {
  await CallStage.with(arena, {}, async (stage) => {
    // Three methods call back; the answers come in another order than that of the calls.
    await stage.send(asking(1), asking(2), calls(3, "add", ...ADD), asking(4));
    await stage.send(
      write.answer(2, { json: "two" }),
      write.answer(3, { json: "three" }),
      write.answer(1, { json: "one" }),
    );
    await stage.drains("calls that call back");
    const { items } = await stage.taken();
    const must = [
      ...[called(1), called(2), called(3), returns(3, SUM)],
      ...[returns(1, { json: "one" }), returns(2, { json: "two" }), returns(4, { json: "three" })],
    ];
    stage.port.expect(
      { items: sorted(items) },
      { items: sorted(must) },
      "[call.match] [call.serve_waiting] what was called and answered",
    );
  });
}

/** By kind and tag: methods that do not wait for one another may answer in any order. */
function sorted(items: Item[]): Item[] {
  const key = (item: Item) => "kind" in item ? item.kind * 2 ** 32 + item.tag : -1;
  return items.toSorted((a, b) => key(a) - key(b));
}

async function deep(arena: Arena): Promise<void> {
  await CallStage.with(arena, { inward: LARGE, outward: LARGE }, async (stage) => {
    const ids = Array.from({ length: DEPTH }, (_, index) => index + 1);
    await stage.send(
      ...ids.map(asking),
      calls(DEPTH + 1, "add", ...ADD),
      calls(DEPTH + 2, "none"),
      calls(0, "add", ...ADD),
      ...ids.toReversed().map((id) => write.answer(id, { json: id })),
      calls(DEPTH + 3, "add", ...ADD),
    );
    await stage.drains("[call.depth] a notice too deep", [{ report: "call.depth" }]);
    const { items } = await stage.taken();
    const must = [
      ...ids.map(called),
      ...ids.map((id) => returns(id, { json: id })),
      refuses(DEPTH + 1, "call.depth"),
      refuses(DEPTH + 2, "call.depth"),
      returns(DEPTH + 3, SUM),
    ];
    stage.port.expect(
      { items: sorted(items) },
      { items: sorted(must) },
      "[call.depth] [call.refused] what was called and answered",
    );
  });
}

async function setAside(arena: Arena): Promise<void> {
  await CallStage.with(arena, { inward: 16_384, limit: 1_000 }, async (stage) => {
    await stage.send(
      plain(1),
      whole(pattern(1_001), { tag: 2 }),
      calls(1, "add", ...ADD),
      plain(3),
      write.answer(77),
      write.answer(1, { json: 1 }),
      plain(4),
    );
    const must = { outcome: "returned", value: { json: 1 } };
    await stage.asks("[call.set_aside] an answer behind messages", must);
    await stage.takes("[call.serve_waiting] what was answered", called(1), returns(1, SUM));
    const items = [
      ...[plainItem(1), { report: "message.size" }, plainItem(3), { report: "call.answer" }],
      plainItem(4),
    ];
    await stage.drains("[call.set_aside] the messages", items);
  });
}

async function inboxFull(arena: Arena): Promise<void> {
  const tags = Array.from({ length: 40 }, (_, index) => index);
  await CallStage.with(arena, { inward: 8192, inbox: 200 }, async (stage) => {
    await stage.send(...tags.map(plain), write.answer(1));
    await stage.asks("[call.set_aside] an answer behind too many messages", "call.inbox");
    await stage.takes("[call.give_up] what was written", called(1), wrote("call", 1 + CANCELS));
    await stage.drains("[call.set_aside] [call.late] the messages", tags.map(plainItem));
  });
}

async function lostWhileAsking(arena: Arena): Promise<void> {
  for (const isAnswered of [true, false]) {
    await CallStage.with(arena, {}, async (stage) => {
      stage.step = isAnswered ? "answered: " : "unanswered: ";
      const answer = isAnswered ? [write.answer(1, { json: 1 })] : [];
      await stage.send(calls(5, "add", ...ADD), ...answer, endFrame());
      const returned = { outcome: "returned", value: { json: 1 } };
      await stage.asks("[call.lost] the call", isAnswered ? returned : "call.ended");
      await stage.takes("[call.serve_waiting] what was written", called(1), returns(5, SUM));
      await stage.drains("a read", [], "ended");
      const got = await stage.session.calls.call({ name: "far", values: [] }, false);
      stage.port.expect(got, "call.ended", "[call.lost] a call behind it");
      await stage.takes("[call.lost] what was written for it");
    });
  }
}

async function lostMany(arena: Arena): Promise<void> {
  await CallStage.with(arena, {}, async (stage) => {
    for (const items of [false, false, true, false]) await stage.calls("far", [], items);
    await stage.givesUp(1);
    const cancel = wrote("call", 2 + CANCELS);
    await stage.takes("calls", ...[1, 2, 3, 4].map(called), cancel);
    await stage.send(write.item(3, 7), write.answer(4, { json: "in time" }));
    await stage.setState(CLOSED);
    await stage.drains("a read", [], "peer.closed");
    const inTime = { outcome: "returned", value: { json: "in time" } };
    const outcomes = ["peer.closed", "wait.aborted", undefined, inTime];
    for (let again = 0; again < 2; again++) {
      for (const [call, must] of outcomes.entries()) {
        if (must !== undefined) await stage.outcome(call, must, `[call.lost] call ${call}`);
      }
      // Who gives up what has ended changes nothing.
      for (const call of [0, 1, 2, 3]) await stage.givesUp(call);
    }
    const got = await stage.session.calls.call({ name: "far", values: [] }, false);
    stage.port.expect(got, "peer.closed", "[call.lost] a call behind it");
    await stage.takes("[call.once] [call.lost] what was written behind it");
  });
}

async function vacated(arena: Arena): Promise<void> {
  for (const isRead of [true, false]) await vacatedOnce(arena, isRead);
}

/** With the loss read by the testee before it vacates the kit's endpoint, or not. */
async function vacatedOnce(arena: Arena, isRead: boolean): Promise<void> {
  await CallStage.with(arena, { outward: SMALL }, async (stage) => {
    stage.step = isRead ? "" : "without a read: ";
    const next = async (times: number) => {
      await stage.setState(CLOSED);
      if (isRead) await stage.drains("a read", [], "peer.closed");
      stage.port.expect(await stage.session.vacate(), "ok", "vacate");
      await stage.port.restart(IN);
      await stage.port.restart(OUT);
      const attached = setRecord(0, { state: stateAt(ATTACHED, times), wakes: 1 });
      await stage.port.memory.patch("set" in attached ? attached.set : []);
    };
    await stage.calls();
    await stage.calls();
    await stage.send(calls(5, "hold"), calls(6, "hold"));
    await stage.drains("calls that are held");
    await stage.fills();
    await stage.givesUp(1);
    await next(1);
    const told = await stage.session.told();
    stage.demand(told === 2, `[call.vacated] ${told} methods of the last owner were told, not 2`);
    await stage.outcome(0, "peer.closed", "[call.vacated] a call of the last owner");
    await stage.send(write.answer(1), calls(5, "held"), calls(6, "hold"));
    const must = [{ report: "call.answer" }];
    await stage.drains("[call.vacated] an answer to nobody, and ids of the last owner", must);
    await stage.writes(7);
    await stage.calls();
    const items = [returns(5, { json: 0 }), plainItem(7), called(1)];
    await stage.takes("[call.vacated] what the next owner gets", ...items);
  });
}
