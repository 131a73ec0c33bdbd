/**
 * Scripts for the caller: ids, cancels that are owed, what comes late, and how many calls there
 * are.
 *
 * @module
 */

import { CLOSED, drained } from "../../reference/builder.ts";
import { calls, CANCELS, frame, MORE, refuses, returns } from "../../reference/builder_call.ts";
import { wrote } from "../../reference/builder_call.ts";
import type { Item, MessageCase, Payload } from "../../reference/case.ts";
import { extentOf, failed, type FramePlan } from "../../reference/encode.ts";
import { limitOf, valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { changeState } from "../peer.ts";
import { Random } from "../live/workload.ts";
import { callScript, CallStage, counted, MOMENT_MS, plainItem, type Script } from "./stage.ts";
import { write } from "./stage.ts";
import { rest, Watch } from "./watch.ts";

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

// Scripts for what a writer asks for when it waits, and what it leaves behind when it does no more.

const CAPACITY = 256;
const QUARTER = CAPACITY / 4;
const RESERVE = limitOf("ring_reserve");
/** At the beginning of the area too, so that the same fits. */
const LATE = 2 ** 32 - CAPACITY;
const LONG_MS = 3_000;
const BRIEF_MS = 5;
const BATCH = valueOf("codec", "json_batch");

/** A ring that is filled by messages of these sizes, and what is to be written then. */
interface Full {
  about: string;
  sizes: number[];
  payload: Payload;
  size: number;
}

/** Nobody can cut a message without a byte, and nobody may cut a batch. */
const EMPTY: Payload = { hex: "" };
/** A batch of one text that takes so many bytes. */
const batch = (size: number): Payload => ({
  codec: BATCH,
  text: JSON.stringify(["x".repeat(size - 4)]),
});

const FULL: Full[] = [
  { about: "an empty message", sizes: [112, 96], payload: EMPTY, size: 0 },
  { about: "a batch", sizes: [112, 80], payload: batch(60), size: 60 },
  { about: "a batch behind a pad", sizes: [80, 80], payload: batch(80), size: 80 },
  { about: "a pad and a batch of all the ring", sizes: [112, 0], payload: batch(112), size: 112 },
];

export const ASKING_SCRIPTS: Script[] = [
  {
    id: "scripted/writer_asks_room",
    about: "What a writer asks for: the head at which pad and frame fit, and not 16 bytes less.",
    clauses: ["wait.writer_asks", "wait.writer_more", "ring.room"],
    role: "writer",
    mayDecline: ["chunk_sizes"],
    async play(arena) {
      const lacks = (await arena.connect(0)).hello.lacks;
      for (const start of [0, LATE]) {
        for (const full of FULL) {
          if (full.payload.codec === BATCH && lacks.includes("batches")) continue;
          await asks(arena, full, start);
        }
      }
    },
  },
  {
    id: "scripted/writer_disarms",
    about: "A writer that does not wait any more asks for nothing, however its wait has ended.",
    clauses: ["wait.disarm", "pipe.close_frees", "pipe.peer_gone"],
    role: "writer",
    play: disarms,
  },
];

async function asks(arena: Arena, full: Full, start: number): Promise<void> {
  await Watch.with(arena, "writer", { capacity: CAPACITY, start }, async (watch) => {
    const { session } = watch;
    watch.step = `${full.about}, from ${start}: `;
    let tail = start;
    const spanOf = (size: number) => {
      const toEnd = CAPACITY - tail % CAPACITY;
      return (extentOf(size) > toEnd ? toEnd : 0) + extentOf(size);
    };
    for (const [tag, size] of full.sizes.entries()) {
      watch.expect(await session.write({ tag, hex: counted(size, tag) }, false), "ok", "write");
      tail = (tail + spanOf(size)) % 2 ** 32;
    }
    const found = watch.control("tail");
    watch.demand(found === tail, `[ring.pad] tail is ${found}, not ${tail}`);
    const exact = (tail + spanOf(full.size) + RESERVE - CAPACITY + 2 ** 32) % 2 ** 32;
    // The first wait of an endpoint may be about other things first, such as who is still alive.
    const first = await session.write({ ...full.payload, tag: 8 }, true, BRIEF_MS);
    watch.expect(first, "wait.timeout", "a first write");
    const writing = session.write({ ...full.payload, tag: 9 }, true, LONG_MS);
    const seen = new Set<number>([await watch.asked("writer_wants")]);
    // Whatever it asks for, for a while: a little more at first, and then what it needs.
    const isExact = await watch.until(() => {
      const wants = watch.control("writer_wants");
      if (wants !== 0) seen.add(wants);
      return wants === (exact | 1) >>> 0;
    });
    const most = Math.min(QUARTER, tail - exact + (tail < exact ? 2 ** 32 : 0));
    for (const wants of seen) {
      const more = (wants & ~1) - exact | 0;
      const isGood = (wants & 1) === 1 && more % 16 === 0 && more >= 0;
      const fact = `writer_wants is ${wants}, and ${exact} is needed`;
      watch.demand(isGood, `[wait.writer_asks] ${fact}`);
      watch.demand(more <= most, `[wait.writer_more] ${fact}, and at most ${most} more`);
    }
    const never = `writer_wants is never ${exact}, which is needed`;
    watch.demand(isExact, `[wait.writer_asks] [wait.writer_more] ${never}`);
    // One frame less than that is not enough, and that is.
    if (exact !== (start + 16) % 2 ** 32) watch.release((exact - 16 + 2 ** 32) % 2 ** 32);
    watch.ringOther();
    await rest(3);
    watch.demand(watch.control("tail") === tail, "[ring.room] it was written without room for it");
    watch.release(exact);
    watch.expect(await writing, "ok", "write");
    const left = watch.control("writer_wants");
    watch.demand(left === 0, `[wait.disarm] writer_wants is still ${left}`);
  });
}

/** How a wait for room ends: what the kit does, and what the write must then give. */
const ENDS: [string, (watch: Watch) => void, unknown][] = [
  ["its time is up", () => {}, "wait.timeout"],
  ["room comes, and a ring that nobody asked for", (watch) => {
    // As if somebody else had rung: the request stands as it was.
    watch.setControl("head", watch.control("tail"));
    watch.ringOther();
  }, "ok"],
  ["the reader closes", (watch) => changeState(watch.field, watch.own, CLOSED), "peer.closed"],
  ["the writer is closed", (watch) => changeState(watch.field, watch.other, CLOSED), "pipe.closed"],
  ["the writer is marked", (watch) => {
    changeState(watch.field, watch.other, failed("peer.terminated"));
  }, { code: "pipe.failed", reason: "peer.terminated" }],
];

async function disarms(arena: Arena): Promise<void> {
  const { hello } = await arena.connect(0);
  const waits = hello.offers?.includes("ways")
    ? hello.waits.filter((wait) => wait !== "poll")
    : [undefined];
  for (const wait of waits) {
    for (const [about, act, must] of ENDS) {
      await Watch.with(arena, "writer", { capacity: CAPACITY }, async (watch) => {
        watch.step = `${wait ?? "block"}, ${about}: `;
        for (let tag = 0; tag < 2; tag++) {
          watch.expect(await watch.session.write({ hex: counted(96, tag) }, false), "ok", "write");
        }
        const waitMs = must === "wait.timeout" ? 40 : LONG_MS;
        const writing = watch.session.write({ hex: counted(96, 9) }, true, waitMs, wait);
        await watch.asked("writer_wants");
        act(watch);
        watch.expect(await writing, must as string, "[pipe.close_frees] write");
        const left = watch.control("writer_wants");
        watch.demand(left === 0, `[wait.disarm] writer_wants is still ${left}`);
      });
    }
  }
}

// A script of calls by chance: whatever the peer writes, each call gets one answer, and each fault
// of the peer one report.

const SEED = 20;
const ROUNDS = 30;
/** Ids that a round may use, each once: a method that is told may answer somewhat later. */
const IDS = 6;

export const RANDOM_CALLS: Script[] = [
  callScript(
    "call_random",
    "Calls, cancels, notices and strays by chance: one answer to each call, and no other.",
    "call.answer call.duplicate call.crossed call.refused call.stray call.unmatched call.cancelled",
    play,
    { mayDecline: ["later"] },
  ),
];

/** What a peer writes about one id, and what must come of it. */
class Peer {
  readonly #random = new Random(SEED);
  readonly #held = new Set<number>();
  frames: FramePlan[] = [];
  answers: Item[] = [];
  reports: string[] = [];

  /** Something about each id. */
  round(): void {
    [this.frames, this.answers, this.reports] = [[], [], []];
    for (let id = 1; id <= IDS; id++) this.#about(id);
  }

  #about(id: number): void {
    const isHeld = this.#held.has(id);
    const make = (plan: FramePlan, answer: Item | undefined) => {
      this.frames.push(plan);
      if (isHeld) this.reports.push("call.duplicate");
      else if (answer !== undefined) this.answers.push(answer);
      else this.#held.add(id);
    };
    switch (this.#random.next() % 9) {
      case 0:
        return make(calls(id, "add", { json: id }, { json: 1 }), returns(id, { json: id + 1 }));
      case 1:
      case 2:
        return make(calls(id, "hold"), undefined);
      case 3:
        return make(calls(id, "none"), refuses(id, "call.method"));
      case 4:
      case 5:
        this.frames.push(write.cancel(id));
        if (this.#held.delete(id)) this.answers.push(refuses(id, "call.cancelled"));
        return;
      case 6:
        this.frames.push(write.more(id), calls(0, "none"));
        this.reports.push("call.method");
        return;
      case 7:
        this.frames.push(write.answer(id, { json: id }));
        this.reports.push("call.answer");
        return;
      default:
        this.frames.push(frame("throw", id + CANCELS));
        this.reports.push("call.form");
    }
  }
}

async function play(arena: Arena): Promise<void> {
  await CallStage.with(arena, { inward: 16_384, outward: 8_192 }, async (stage) => {
    const peer = new Peer();
    for (let round = 0; round < ROUNDS; round++) {
      peer.round();
      stage.step = `round ${round}: `;
      await stage.send(...peer.frames);
      const reports = peer.reports.map((report) => ({ report }));
      await stage.drains("[call.duplicate] [call.stray] [call.unmatched] the reports", reports);
      const { items } = await stage.taken();
      stage.port.expect(
        { items: byTag(items) },
        { items: byTag(peer.answers) },
        "[call.answer] [call.crossed] the answers",
      );
    }
  });
}

function byTag(items: Item[]): Item[] {
  const tag = (item: Item) => (item as MessageCase).tag;
  return items.toSorted((a, b) => tag(a) - tag(b));
}
