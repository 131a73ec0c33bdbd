/**
 * Scripts for the caller: ids, cancels that are owed, what comes late, and how many calls there
 * are.
 *
 * @module
 */

import { CANCELS, MORE, wrote } from "../../reference/builder_call.ts";
import { drained } from "../../reference/builder.ts";
import type { Item } from "../../reference/case.ts";
import { limitOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import type { Script } from "./stage.ts";
import { callScript, CallStage, MOMENT_MS, plainItem, write } from "./stage_call.ts";

const MOST = limitOf("call_under_way_max");
const GRANT = limitOf("call_grant");
/** The smallest ring; and one that holds as many calls as there may be. */
const [SMALL, LARGE] = [256, 131_072];

export const CALLER_SCRIPTS: Script[] = [
  callScript(
    "call_ids",
    "A call behind an answer takes the next id, and not the one that became free.",
    "call.id call.match",
    idsGoOn,
  ),
  callScript(
    "call_many",
    "As many calls as may wait for their answers; and one more when one was answered.",
    "call.under_way call.id",
    many,
  ),
  callScript(
    "call_given_up_many",
    "Calls that are given up and never answered hold up no other, up to as many again.",
    "call.gives_room call.unanswered call.under_way call.id",
    givenUpMany,
  ),
  callScript(
    "call_given_up_late",
    "A call that has ended is not given up any more; the late items and answers are nobody's.",
    "call.once call.late call.give_up",
    late,
  ),
  callScript(
    "call_deadline",
    "Nobody answers in time: a cancel follows, once, and the late answer is dropped.",
    "call.give_up call.late call.message",
    deadline,
  ),
  callScript(
    "call_in_part",
    "A call whose deadline passes when a part of it is written was never made.",
    "pipe.owed frame.cancel call.message",
    inPart,
  ),
  callScript(
    "call_cancel_owed",
    "A cancel without room: nobody waits for it, and it comes before the next message.",
    "call.cancel_owed call.give_up",
    cancelOwed,
  ),
  callScript(
    "call_cancel_left_out",
    "A cancel that was still owed when the answer came is left out.",
    "call.cancel_owed call.late",
    cancelLeftOut,
  ),
  callScript(
    "call_more_owed",
    "A `more` without room comes before the next message, or not at all behind the answer.",
    "call.cancel_owed call.grant",
    moreOwed,
  ),
  callScript(
    "call_more_unplaced",
    "A `more` without room allows nothing: who sends items all the same was not allowed to.",
    "call.granted call.too_many",
    moreUnplaced,
  ),
  callScript(
    "call_items_granted",
    "Items up to what was allowed, again and again; and one beyond that.",
    "call.too_many call.grant call.give_up",
    itemsGranted,
  ),
];

/** A call in what the kit takes. */
function called(id: number): Item {
  return wrote("call", id, { text: "far" });
}

function cancelled(id: number): Item {
  return wrote("call", id + CANCELS);
}

async function idsGoOn(arena: Arena): Promise<void> {
  await CallStage.with(arena, {}, async (stage) => {
    for (const id of [1, 2, 3]) {
      await stage.calls();
      await stage.takes("[call.id] what was called", called(id));
      await stage.send(write.answer(id, { json: id }));
      await stage.drains("an answer");
      const must = { outcome: "returned", value: { json: id } };
      await stage.outcome(id - 1, must, "[call.match] the outcome");
    }
  });
}

async function many(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: LARGE }, async (stage) => {
    const made = async () => {
      const got = await stage.session.calls.call({ name: "far", values: [] }, false);
      stage.demand(
        got === "ok" || got === "call.limit",
        `[call.under_way] a call beyond the limit gave ${JSON.stringify(got)}`,
      );
    };
    for (let index = 0; index < MOST; index++) await stage.calls();
    await made();
    const ids = async () => (await stage.taken()).items.map((item) => "tag" in item ? item.tag : 0);
    const first = await ids();
    stage.demand(first.length === MOST, `[call.under_way] ${first.length} calls are under way`);
    const isInOrder = first.every((id, index) => id === index + 1);
    stage.demand(isInOrder, "[call.id] the ids do not count up from 1");
    await stage.send(write.answer(1));
    await stage.drains("an answer");
    await made();
    const next = await ids();
    stage.demand(next.length === 1, `[call.under_way] ${next.length} calls were made behind it`);
    stage.demand(next[0] === MOST + 1, `[call.id] the next one has the id ${next[0]}`);
  });
}

async function givenUpMany(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: LARGE }, async (stage) => {
    const make = async (count: number, from: number) => {
      for (let index = 0; index < count; index++) await stage.calls();
      const made = Array.from({ length: count }, (_, index) => called(from + index));
      await stage.takes("[call.gives_room] calls beside those that were given up", ...made);
    };
    const refuses = async () => {
      const got = await stage.session.calls.call({ name: "far", values: [] }, false);
      if (got === "ok") {
        await stage.outcome(made++, "call.limit", "[call.unanswered] a call beyond all limits");
      } else {
        made++;
        stage.port.expect(got, "call.limit", "[call.unanswered] a call beyond all limits");
      }
    };
    let made = 2 * MOST;
    await make(MOST, 1);
    for (let index = 0; index < MOST; index++) await stage.givesUp(index);
    const cancels = Array.from({ length: MOST }, (_, index) => cancelled(1 + index));
    await stage.takes("[call.give_up] their cancels", ...cancels);
    await make(MOST, MOST + 1);
    await refuses();
    await stage.givesUp(MOST);
    await stage.takes("[call.give_up] one more cancel", cancelled(MOST + 1));
    await refuses();
    // An answer to any of them makes room for one.
    await stage.send(write.answer(1));
    await stage.drains("[call.late] a late answer");
    await stage.calls();
    await stage.takes("[call.id] [call.unanswered] a call behind it", called(2 * MOST + 1));
    await stage.send(write.answer(2 * MOST + 1, { json: 5 }));
    await stage.drains("its answer");
    const must = { outcome: "returned", value: { json: 5 } };
    await stage.outcome(made, must, "[call.match] what came of it");
  });
}

async function late(arena: Arena): Promise<void> {
  await CallStage.with(arena, {}, async (stage) => {
    await stage.calls();
    await stage.takes("call", called(1));
    await stage.send(write.answer(1, { json: 5 }));
    await stage.drains("the answer");
    await stage.givesUp(0);
    const must = { outcome: "returned", value: { json: 5 } };
    await stage.outcome(0, must, "[call.once] a call that is given up behind its answer");
    await stage.takes("[call.once] nothing is cancelled any more");
    await stage.calls("far", [], true);
    await stage.takes("call", called(2));
    await stage.send(write.item(2, 0));
    await stage.drains("an item");
    await stage.givesUp(1);
    await stage.takes("[call.give_up] its cancel", cancelled(2));
    await stage.send(write.item(2, 1), write.item(2, 2), write.answer(2));
    await stage.drains("[call.late] the items and the answer that come late");
    await stage.outcome(1, "wait.aborted", "[call.late] the call that was given up");
    await stage.send(write.answer(2));
    await stage.drains("[call.once] a second answer", [{ report: "call.answer" }]);
  });
}

async function deadline(arena: Arena): Promise<void> {
  await CallStage.with(arena, {}, async (stage) => {
    await stage.asks("[call.give_up] a call that nobody answers", "wait.timeout", MOMENT_MS);
    const clause = "[call.give_up] [call.message] what was written";
    await stage.takes(clause, called(1), cancelled(1));
    await stage.send(write.answer(1, { json: 1 }));
    await stage.drains("[call.late] the late answer");
    await stage.send(write.answer(2, { json: 2 }));
    const answered = { outcome: "returned", value: { json: 2 } };
    await stage.asks("[call.match] the next call", answered);
    await stage.takes("[call.id] what was written for it", called(2));
  });
}

async function inPart(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: SMALL }, async (stage) => {
    const values = [{ hex: "bb ".repeat(200).trim() }];
    const got = await stage.session.ask({ name: "far", values }, MOMENT_MS);
    stage.port.expect(got, { outcome: "wait.timeout" }, "a call without room");
    // The cancel comes before the next message: with it, or as soon as there is room.
    const { items } = await stage.taken();
    await stage.writes(7);
    items.push(...(await stage.taken()).items);
    const must = [{ report: "message.cancelled" }, plainItem(7)];
    const what = "[call.message] it is taken back, and no cancel names its id";
    stage.port.expect(drained(items), drained(must), what);
  });
}

async function cancelOwed(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: SMALL }, async (stage) => {
    await stage.calls();
    await stage.takes("call", called(1));
    await stage.fills();
    await stage.givesUp(0);
    await stage.outcome(0, "wait.aborted", "[call.give_up] the call");
    await stage.taken();
    await stage.writes(7);
    const clause = "[call.cancel_owed] what is written when there is room";
    await stage.takes(clause, cancelled(1), plainItem(7));
    // The same before a notice and before a call.
    await stage.calls();
    await stage.takes("call", called(2));
    await stage.fills();
    await stage.givesUp(1);
    await stage.taken();
    await stage.calls();
    await stage.takes(clause, cancelled(2), called(3));
  });
}

async function cancelLeftOut(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: SMALL }, async (stage) => {
    await stage.calls();
    await stage.takes("call", called(1));
    await stage.fills();
    await stage.givesUp(0);
    await stage.send(write.answer(1));
    await stage.drains("[call.late] the answer");
    await stage.taken();
    await stage.writes(7);
    await stage.takes("[call.cancel_owed] no cancel behind the answer", plainItem(7));
  });
}

async function moreOwed(arena: Arena): Promise<void> {
  for (const isAnswered of [false, true]) {
    await CallStage.with(arena, { outward: SMALL }, async (stage) => {
      stage.step = isAnswered ? "behind the answer: " : "";
      await stage.calls("far", [], true);
      await stage.takes("call", called(1));
      await stage.send(...itemsFrom(0, GRANT));
      await stage.drains("items");
      await stage.fills();
      await takesItems(stage, 0, GRANT);
      if (isAnswered) {
        await stage.send(write.answer(1));
        await stage.drains("the answer");
      }
      await stage.taken();
      await stage.writes(7);
      const more = isAnswered ? [] : [wrote("call", 1 + MORE)];
      await stage.takes("[call.cancel_owed] what is written then", ...more, plainItem(7));
    });
  }
}

async function moreUnplaced(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: SMALL }, async (stage) => {
    await stage.calls("far", [], true);
    await stage.takes("call", called(1));
    await stage.fills();
    const window = limitOf("call_window");
    await stage.send(...itemsFrom(0, window));
    await stage.drains("items");
    await takesItems(stage, 0, window);
    await stage.outcome(0, "pending", "[call.too_many] as many as may be");
    await stage.send(write.item(1, window));
    await stage.drains("one more");
    await stage.outcome(0, "call.items", "[call.granted] an item for which a `more` is owed");
  });
}

function itemsFrom(first: number, count: number) {
  return Array.from({ length: count }, (_, index) => write.item(1, first + index));
}

/** The user of a call takes items. */
async function takesItems(stage: CallStage, first: number, count: number): Promise<void> {
  for (let index = first; index < first + count; index++) {
    const must = { outcome: "item", value: { json: index } };
    stage.port.expect(await stage.session.calls.settled(0, true), must, `item ${index}`);
  }
}

async function itemsGranted(arena: Arena): Promise<void> {
  await CallStage.with(arena, { inward: 8192 }, async (stage) => {
    await stage.calls("far", [], true);
    await stage.takes("call", called(1));
    let sent = limitOf("call_window");
    await stage.send(...itemsFrom(0, sent));
    for (let round = 0; round < 3; round++) {
      await stage.drains("[call.too_many] items that are allowed");
      await takesItems(stage, round * GRANT, GRANT);
      await stage.takes("[call.grant] behind the eighth", wrote("call", 1 + MORE));
      await stage.send(...itemsFrom(sent, GRANT));
      sent += GRANT;
    }
    await stage.drains("[call.too_many] items that are allowed");
    await stage.outcome(0, "pending", "[call.too_many] as many as may be");
    await stage.send(write.item(1, sent));
    await stage.drains("one more");
    await stage.outcome(0, "call.items", "[call.too_many] one more");
    await stage.takes("[call.give_up] its cancel", cancelled(1));
  });
}
