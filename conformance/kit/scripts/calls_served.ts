/**
 * Scripts for the callee: what it refuses and why, what it begins and when, and whom it tells.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, endFrame, pattern } from "../../reference/builder.ts";
import { setRecord, stateAt, whole } from "../../reference/builder.ts";
import { calls, CANCELS, frame, MORE, refuses, returns } from "../../reference/builder_call.ts";
import { wrote } from "../../reference/builder_call.ts";
import type { Item } from "../../reference/case.ts";
import { failed } from "../../reference/encode.ts";
import { limitOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { callScript, CallStage, IN, OUT, plain, plainItem, type Script, write } from "./stage.ts";

const MOST = limitOf("call_under_way_max");
const WINDOW = limitOf("call_window");
const GRANT = limitOf("call_grant");
/** The smallest ring; and one for as many calls as there may be. */
const [SMALL, LARGE] = [256, 131_072];

/** What languages add to their objects, modules, functions and promises, and nobody hands out. */
const NAMES = [
  ...["toString", "valueOf", "constructor", "hasOwnProperty", "isPrototypeOf", "toLocaleString"],
  ...["__proto__", "__defineGetter__", "prototype", "length", "name", "call", "apply", "bind"],
  ...[
    "then",
    "catch",
    "finally",
    "toJSON",
    "0",
    "Identity",
    "identity ",
    "identity\0",
    "undefined",
  ],
  ...["__init__", "__class__", "deinit", "self", "return", "throw", "cancel", "default", "export"],
];

export const CALLEE_SCRIPTS: Script[] = [
  callScript(
    "call_offered",
    "A port that serves no method answers all the same.",
    "call.offer call.answer call.refused",
    offers,
  ),
  callScript(
    "call_names",
    "Names that a language adds to every object, and others that look like one that is served.",
    "call.served_only call.refused",
    names,
  ),
  callScript(
    "call_served_many",
    "As many calls served as may be: one more is refused, whatever else is wrong with it.",
    "call.refused call.answer call.cancelled",
    servedMany,
    { mayDecline: ["later"] },
  ),
  callScript(
    "call_taken_back",
    "A call and its cancel, read while a message is half written: it is answered, and not begun.",
    "call.stops call.whole_first call.answer call.takes_in",
    takenBack,
  ),
  callScript(
    "call_taken_in_order",
    "Calls, notices and a call of the same id, taken in while a message waits for room.",
    "call.order call.duplicate call.takes_in",
    takenInOrder,
  ),
  callScript(
    "call_whole_first",
    "A message in parts, in rings of any fill: no answer stands between its parts.",
    "call.whole_first call.answer",
    wholeFirst,
  ),
  callScript(
    "call_told_between",
    "A call is given up while a message is half written: its answer stands behind that.",
    "call.whole_first call.cancelled call.answer",
    toldBetween,
    { mayDecline: ["later"] },
  ),
  callScript(
    "call_given_up_between",
    "A call ends by an item that is too many while a message is half written: its cancel waits.",
    "call.give_up call.cancel_owed frame.contiguous",
    givenUpBetween,
  ),
  callScript(
    "call_answers_taken_in",
    "Answers and cancels that come while a message waits for room reach their calls.",
    "call.takes_in call.match",
    answersTakenIn,
  ),
  callScript(
    "call_small_inbox",
    "The same with an inbox of no size: one call fits, and what is behind it comes through.",
    "call.takes_in call.stops",
    smallInbox,
    { offers: ["inbox"] },
  ),
  callScript(
    "call_pieces",
    "A result in pieces: as many as were allowed, and none behind its cancel.",
    "call.window call.stops call.cancelled call.message call.answer",
    pieces,
    { mayDecline: ["later"] },
  ),
  callScript(
    "call_pieces_unread",
    "Room for thousands of items, and nobody who reads them: no more are made than fit.",
    "call.next_item call.window call.cancelled",
    piecesUnread,
    { mayDecline: ["later"] },
  ),
  callScript(
    "call_lent",
    "To lend is to read: calls before a message are begun, and those behind it when it is back.",
    "call.serve_waiting call.lent call.whole_first",
    lent,
    { mayDecline: ["lending"] },
  ),
  callScript(
    "call_ended_peer",
    "A peer that has ended its stream still reads: what it called is answered.",
    "call.answer call.lost",
    endedPeer,
  ),
  callScript(
    "call_told",
    "Whoever serves a call learns that nobody waits any more, and nothing is written.",
    "call.told call.cancelled",
    told,
    { mayDecline: ["later"] },
  ),
];

const ADD = [{ json: 1 }, { json: 2 }];
const SUM = { json: 3 };

async function offers(arena: Arena): Promise<void> {
  await CallStage.with(arena, { methods: false }, async (stage) => {
    await stage.send(calls(1, "add", ...ADD), calls(2, "toString"), frame("call", 3));
    await stage.drains("calls");
    const items = [refuses(1, "call.method"), refuses(2, "call.method"), refuses(3, "call.form")];
    await stage.takes("[call.offer] the answers of who serves nothing", ...items);
  });
}

async function names(arena: Arena): Promise<void> {
  await CallStage.with(arena, { inward: 8192, outward: 8192 }, async (stage) => {
    await stage.send(...NAMES.map((name, index) => calls(index + 1, name)));
    await stage.drains("calls of what is not served");
    const items = NAMES.map((_, index) => refuses(index + 1, "call.method"));
    await stage.takes("[call.served_only] the answers", ...items);
  });
}

async function servedMany(arena: Arena): Promise<void> {
  await CallStage.with(arena, { inward: LARGE }, async (stage) => {
    await stage.send(...Array.from({ length: MOST }, (_, index) => calls(index + 1, "hold")));
    await stage.drains("as many calls as there may be");
    await stage.takes("[call.refused] nobody is refused, and nobody answered");
    await stage.send(calls(MOST + 1, "none"), calls(5, "hold"));
    await stage.drains("two more", [{ report: "call.duplicate" }]);
    const refused = refuses(MOST + 1, "call.limit");
    await stage.takes("[call.refused] one more than may be served", refused);
    await stage.send(write.cancel(5));
    await stage.drains("a cancel");
    await stage.takes("[call.cancelled] the one that is cancelled", refuses(5, "call.cancelled"));
    await stage.send(calls(MOST + 1, "add", ...ADD));
    await stage.drains("a call");
    await stage.takes("[call.refused] its answer has made room", returns(MOST + 1, SUM));
  });
}

/** A message of several frames for which there is never room enough. */
const LONG = 600;

async function takenBack(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: SMALL }, async (stage) => {
    await stage.send(
      calls(5, "note", { json: "begun" }),
      write.cancel(5),
      calls(6, "note", { json: "kept" }),
    );
    await stage.waitsForRoom(LONG);
    const items = await takenBehind(stage);
    const clause = "[call.stops] [call.answer] [call.takes_in] what was answered behind it";
    const must = [{ report: "message.cancelled" }, refuses(5, "call.cancelled"), returns(6)];
    stage.port.expect(drained(items), drained(must), clause);
    await stage.send(calls(7, "noted"));
    await stage.drains("a call");
    const noted = returns(7, { json: ["kept"] });
    await stage.takes("[call.stops] [call.whole_first] the calls that were begun", noted);
  });
}

async function takenInOrder(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: SMALL }, async (stage) => {
    await stage.fills();
    const notes = [1, 2, 3].map((json) => calls(0, "note", { json }));
    await stage.send(calls(1, "noted"), ...notes, calls(1, "noted"), calls(2, "noted"));
    await stage.waitsForRoom();
    await stage.taken();
    await stage.drains("[call.duplicate] the same id twice", [{ report: "call.duplicate" }]);
    const must = [returns(1, { json: [] }), returns(2, { json: [1, 2, 3] })];
    await stage.takes("[call.order] the answers", ...must);
  });
}

/**
 * Takes what stands in the ring after the parts of a message that was given up: first its cancel,
 * which may come as soon as there is room, or only before the next message.
 */
async function takenBehind(stage: CallStage): Promise<Item[]> {
  const { items } = await stage.port.take(OUT, "[call.whole_first]");
  await stage.drains("a read behind it");
  items.push(...(await stage.port.take(OUT, "[call.whole_first]")).items);
  return items;
}

/** Plays with rings of which more and more is in use, in a size that holds few frames. */
async function withFills(
  arena: Arena,
  play: (stage: CallStage, rest: () => Promise<Item[]>) => Promise<void>,
): Promise<void> {
  for (let used = 0; used <= 384; used += 64) {
    await CallStage.with(arena, { outward: 1024 }, async (stage) => {
      stage.step = `${used} bytes in use: `;
      for (let left = used; left > 0; left -= 32) {
        const got = await stage.session.write({ hex: "00".repeat(16) }, false);
        stage.port.expect(got, "ok", "write");
      }
      // Takes what is there after those.
      await play(stage, async () => (await takenBehind(stage)).slice(used / 32));
    });
  }
}

async function wholeFirst(arena: Arena): Promise<void> {
  await withFills(arena, async (stage, rest) => {
    await stage.send(calls(1, "add", ...ADD));
    await stage.waitsForRoom(2_000);
    const must = [{ report: "message.cancelled" }, returns(1, SUM)];
    const what = "[call.whole_first] what came behind its parts";
    stage.port.expect(drained(await rest()), drained(must), what);
  });
}

async function toldBetween(arena: Arena): Promise<void> {
  await withFills(arena, async (stage, rest) => {
    await stage.send(calls(1, "hold"));
    await stage.drains("a call that is held");
    await stage.send(write.cancel(1));
    await stage.waitsForRoom(2_000);
    const items = await rest();
    const must: Item[] = [{ report: "message.cancelled" }, refuses(1, "call.cancelled")];
    // Who has read the cancel before the first part answers before it.
    if (items[0] !== undefined && !("report" in items[0])) must.reverse();
    stage.port.expect(drained(items), drained(must), "[call.whole_first] what was written");
  });
}

/** The testee gives its own call up, while it waits for room. */
async function givenUpBetween(arena: Arena): Promise<void> {
  await withFills(arena, async (stage, rest) => {
    await stage.calls();
    await stage.send(write.item(1, 0));
    await stage.waitsForRoom(2_000);
    const [call, ...items] = await rest();
    const must: Item[] = [{ report: "message.cancelled" }, wrote("call", 1 + CANCELS)];
    // Who has read the item before the first part gives the call up before it.
    if (items[0] !== undefined && !("report" in items[0])) must.reverse();
    const what = "[frame.contiguous] [call.give_up] what was written";
    stage.port.expect(
      drained([call!, ...items]),
      drained([wrote("call", 1, { text: "far" }), ...must]),
      what,
    );
  });
}

/** Two calls of the testee, whose answers come while it waits for room. */
async function answersTakenIn(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: SMALL }, async (stage) => {
    await callsTwo(stage);
    await stage.send(write.answer(2, { json: 2 }), calls(0, "note", { json: 1 }));
    await stage.send(write.answer(1, { json: 1 }));
    await stage.waitsForRoom();
    for (const [call, json] of [[0, 1], [1, 2]] as const) {
      const must = { outcome: "returned", value: { json } };
      await stage.outcome(call, must, "[call.takes_in] an answer that came meanwhile");
    }
    await stage.taken();
    await stage.drains("a read");
  });
}

async function callsTwo(stage: CallStage): Promise<void> {
  await stage.calls();
  await stage.calls();
  await stage.taken();
  await stage.fills();
}

async function smallInbox(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: 1024, inbox: 0 }, async (stage) => {
    await callsTwo(stage);
    const stopped = [1, 2, 3].flatMap((id) => [calls(id, "note", { json: id }), write.cancel(id)]);
    await stage.send(...stopped, calls(4, "noted"), write.answer(2), plain(8));
    await stage.waitsForRoom();
    const clause = "[call.takes_in] [call.stops] an answer behind a call that fills the inbox";
    await stage.outcome(1, "returned", clause);
    await stage.taken();
    await stage.drains("[port.inbox_order] the plain message", [plainItem(8)]);
    const refused = [1, 2, 3].map((id) => refuses(id, "call.cancelled"));
    await stage.takes("[call.stops] the answers", ...refused, returns(4, { json: [] }));
  });
}

async function pieces(arena: Arena): Promise<void> {
  const items = (from: number, count: number): Item[] =>
    Array.from({ length: count }, (_, index) => returns(1 + MORE, { json: from + index }));
  await CallStage.with(arena, {}, async (stage) => {
    await stage.send(calls(1, "count", { json: 40 }));
    await stage.drains("a call");
    await stage.takes("[call.window] the first items", ...items(0, WINDOW));
    await stage.send(write.more(1));
    await stage.drains("room for more");
    await stage.takes("[call.window] more of them", ...items(WINDOW, GRANT));
    await stage.send(write.cancel(1));
    await stage.drains("a cancel");
    await stage.takes("[call.stops] behind the cancel", refuses(1, "call.cancelled"));
    const few = WINDOW - 1;
    await stage.send(write.more(1), write.cancel(1), calls(2, "count", { json: few }));
    await stage.drains("what comes too late");
    const all = items(0, few).map((item) => ({ ...item, tag: 2 + MORE }));
    const last = returns(2, { json: few });
    await stage.takes("[call.answer] fewer than may come unasked", ...all, last);
  });
}

/** Bytes of the ring that an item takes whose value is a number of up to four digits. */
const ITEM_EXTENT = 48;
/** Rounds in which the kit takes what is there, until an answer must have come. */
const ROUNDS = 64;

async function piecesUnread(arena: Arena): Promise<void> {
  await CallStage.with(arena, { outward: SMALL }, async (stage) => {
    await stage.send(calls(1, "count", { json: 9_000 }));
    await stage.drains("a call");
    for (let round = 0; round < 16; round++) {
      await stage.send(...Array.from({ length: 32 }, () => write.more(1)));
      await stage.drains("room for more");
    }
    await stage.send(write.cancel(1));
    await stage.drains("a cancel");
    const items: Item[] = [];
    const isOver = () => {
      const last = items.at(-1);
      return last !== undefined && "tag" in last && last.tag === 1;
    };
    for (let round = 0; round < ROUNDS && !isOver(); round++) {
      items.push(...(await stage.port.take(OUT, "[call.next_item]")).items);
      await stage.drains("a read behind them");
    }
    const last = items.pop();
    const must = items.map((_, index) => returns(1 + MORE, { json: index }));
    stage.port.expect(drained(items), drained(must), "[call.window] the items before the answer");
    // One that has no room may come after those that are there.
    const most = Math.floor(SMALL / ITEM_EXTENT) + 1;
    const text = `[call.next_item] ${items.length} items came, and ${most} at most have room`;
    stage.demand(items.length <= most, text);
    const answer = drained(last === undefined ? [] : [last]);
    const refused = drained([refuses(1, "call.cancelled")]);
    stage.port.expect(answer, refused, "[call.cancelled] the answer");
  });
}

async function lent(arena: Arena): Promise<void> {
  await CallStage.with(arena, {}, async (stage) => {
    await stage.send(calls(1, "add", ...ADD), plain(8), calls(2, "add", ...ADD));
    const got = await stage.session.peek();
    stage.port.expect("item" in got ? { items: [got.item] } : { items: [], ...got }, {
      items: [plainItem(8)],
    }, "[call.lent] what is lent");
    await stage.takes("[call.serve_waiting] [call.whole_first] what was begun", returns(1, SUM));
    await stage.writes(7);
    await stage.takes("[call.whole_first] while a frame is lent", plainItem(7));
    stage.port.expect(await stage.session.release(), "ok", "release");
    await stage.drains("the rest");
    await stage.takes("[call.answer] the call behind it", returns(2, SUM));
  });
}

async function endedPeer(arena: Arena): Promise<void> {
  await CallStage.with(arena, {}, async (stage) => {
    await stage.send(calls(1, "add", ...ADD), calls(2, "add", ...ADD), endFrame());
    await stage.drains("calls, and the end", [], "ended");
    await stage.takes("[call.answer] their answers", returns(1, SUM), returns(2, SUM));
  });
}

async function told(arena: Arena): Promise<void> {
  const held = [1, 2, 3].map((id) => calls(id, "hold"));
  const ways: [string, (stage: CallStage) => Promise<void>][] = [
    ["the peer closes", async (stage) => {
      await stage.setState(CLOSED);
      await stage.drains("a read", [], "peer.closed");
    }],
    ["the peer is lost", async (stage) => {
      await stage.setState(failed("peer.lost"));
      await stage.drains("a read", [], "peer.failed");
    }],
    ["a fault of the peer", async (stage) => {
      await stage.send({ kind: 99 });
      await stage.drains("a read", [], "frame.kind");
    }],
    ["its own end", async (stage) => {
      stage.port.expect(await stage.session.end(), "ok", "end");
    }],
    ["its own close", async (stage) => {
      stage.port.expect(await stage.session.close(), "ok", "close");
    }],
  ];
  for (const [what, leave] of ways) {
    await CallStage.with(arena, {}, async (stage) => {
      stage.step = `${what}: `;
      await stage.send(...held, write.cancel(2));
      await stage.drains("calls that are held");
      await stage.takes("[call.cancelled] the one that is cancelled", refuses(2, "call.cancelled"));
      const before = await stage.session.told();
      stage.demand(before === 1, `[call.cancelled] ${before} methods were told, not 1`);
      await leave(stage);
      const behind = await stage.session.told();
      stage.demand(behind === 3, `[call.told] ${behind} methods were told, not 3`);
      const end = what === "its own end" ? "ended" : "nothing";
      const must = { items: [], end };
      stage.port.expect(
        await stage.port.take(OUT, "[call.told]"),
        must,
        "[call.told] what follows",
      );
    });
  }
}

// Scripts for calls within calls, and for what comes beside an answer: how deep, what is set aside,
// and what does not reach the next owner of an endpoint.

const DEPTH = limitOf("call_depth_max");
const [NESTED_SMALL, NESTED_LARGE] = [256, 65_536];

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
  await CallStage.with(arena, { inward: NESTED_LARGE, outward: NESTED_LARGE }, async (stage) => {
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
  await CallStage.with(arena, { outward: NESTED_SMALL }, async (stage) => {
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
