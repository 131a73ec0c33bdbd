/**
 * Scripts of streams: how a side stops, and what it still does then.
 *
 * @module
 */

import { calls, CANCELS, frame as callFrame } from "../../reference/builder_call.ts";
import { frame as frameOf, MORE, refuses } from "../../reference/builder_call.ts";
import { fromHex, toHex } from "../../reference/bytes.ts";
import type { Item, MessageCase } from "../../reference/case.ts";
import { buildFrame, extentOf, FIRST, kindOf, LAST, withPreamble } from "../../reference/encode.ts";
import { limitOf } from "../../reference/layout.ts";
import { bytes, CLOSED, credit, END, frame, HI, message, SMALL } from "../../stream/builder.ts";
import { stated, text } from "../../stream/builder.ts";
import type { Sent } from "../../stream/case.ts";
import type { Arena } from "../arena.ts";
import type { Hello } from "../protocol.ts";
import { lacksNoun } from "../static_level.ts";
import type { KitCase } from "../verdict.ts";
import { ARRIVAL_SCRIPTS } from "./arrival.ts";
import { CREDIT_SCRIPTS } from "./credit.ts";
import { numbered, patience, sleep, streamCase, type StreamScript, streamScript } from "./stage.ts";
import { StreamStage, within } from "./stage.ts";

const LINGER_MS = limitOf("stream_linger_ms");

const STOPPING_SCRIPTS: StreamScript[] = [
  streamScript(
    "transports",
    "Over everything that it can connect by: there, back, the end, and a close.",
    "stream.frames stream.close stream.hang_up",
    transports,
  ),
  streamScript(
    "close_drains",
    "What was written before a close goes out, as credit comes, and then the close.",
    "stream.close stream.credit_kept",
    closeDrains,
  ),
  streamScript(
    "lingers",
    "Who has closed takes in what still comes, and its peer reads all of it: no reset.",
    "stream.linger stream.close",
    lingers,
    { transport: "tcp" },
  ),
  streamScript(
    "linger_ends",
    "A peer that goes on for ever: who has closed gives the transport up in time.",
    "stream.linger",
    lingerEnds,
  ),
  streamScript(
    "hang_up",
    "A peer that closes in the middle of a message: nothing more is written.",
    "stream.hang_up stream.closed",
    hangUp,
  ),
  streamScript(
    "hang_up_silent",
    "A peer that closes: what it wrote before is read, and given back, and no credit tells it so.",
    "stream.hang_up stream.closed pipe.end_closed",
    hangUpSilent,
  ),
  streamScript(
    "read_fault",
    "A fault that shows when a frame is read: its own code, and a fail.",
    "stream.check stream.fail",
    readFault,
  ),
  streamScript(
    "broken",
    "A transport that takes nothing any more: what has arrived says why.",
    "stream.broken stream.closed",
    (arena) => broken(arena, true),
    { transport: "fifo" },
  ),
  streamScript(
    "broken_silent",
    "A transport that takes nothing any more, and nothing comes: the peer is lost, in time.",
    "stream.broken",
    (arena) => broken(arena, false),
    { transport: "fifo" },
  ),
  streamScript(
    "dropped",
    "Who lets go of a port has closed it; a close behind a close says nothing more.",
    "stream.close stream.control",
    dropped,
  ),
  streamScript(
    "call_served",
    "A call that arrives is answered over the stream.",
    "stream.frames call.answer",
    callServed,
    { declinedBy: (hello: Hello) => lacksNoun(hello, "call") },
  ),
  streamScript(
    "call_lost",
    "A call whose answer cannot come any more fails.",
    "call.lost stream.lost",
    callLost,
    { declinedBy: (hello: Hello) => lacksNoun(hello, "call") },
  ),
];

async function transports(arena: Arena): Promise<void> {
  const { streams } = (await arena.connect(0)).hello;
  for (const transport of streams!.transports) {
    await StreamStage.with(arena, { transport }, async (stage) => {
      stage.step = `${transport}: `;
      await stage.ready();
      await stage.sends(text("hi", 5), END);
      await stage.reads("[stream.frames] read", [HI], "ended");
      await stage.writes("[stream.frames] write", { codec: 1, tag: 5, text: "hi" });
      const sent = [stated(), { ...HI, hex: "68 69" }, { close: true } as const];
      await stage.closes("[stream.close] behind a message", sent);
    });
    await StreamStage.with(arena, { transport }, async (stage) => {
      stage.step = `${transport}: `;
      await stage.ready();
      await stage.sends(text("hi", 5), CLOSED);
      await stage.reads("[stream.closed] read", [HI], "peer.closed");
      await stage.takes("[stream.hang_up] behind a close", [stated()], { ends: true });
    });
  }
}

async function closeDrains(arena: Arena): Promise<void> {
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    const written = [numbered(0, 50)];
    await stage.writes("[stream.credit_kept] write", written[0]!);
    for (let index = 1; index < 40; index++) {
      const payload = numbered(index, 50);
      if (await stage.session.write(payload, false) !== "ok") break;
      written.push(payload);
    }
    stage.demand(written.length > 2, "[stream.credit_kept] its credit is not used");
    const closing = stage.leaves();
    const sent: Sent[] = [];
    let given = 0;
    const isOver = () => sent.some((each) => "close" in each);
    for (let left = 100; left > 0 && !isOver(); left--) {
      const taken = await stage.collects((each) => each.length > 0, 20);
      sent.push(...taken.sent.filter((each) => !("preface" in each)));
      if (stage.taken > given) await stage.sends(credit(given = stage.taken));
    }
    await stage.wire.end();
    stage.expect(await closing, "ok", "close");
    stage.demand(isOver(), "[stream.close] no close, although there is credit");
    const items = sent.filter((each): each is Item => "kind" in each || "report" in each);
    stage.expect({ items }, { items: written }, "[stream.close] what was written before");
    await stage.takes("[stream.close] behind the close", [], { ends: true });
  });
}

async function lingers(arena: Arena): Promise<void> {
  const own = { largest: 4096, window: 1 << 16 };
  await StreamStage.with(arena, { own, peer: own, transport: "tcp" }, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated(own)]);
    stage.pause();
    const written = Array.from({ length: 12 }, (_, index) => numbered(index, 4_000));
    for (const payload of written) await stage.writes("[stream.close] write", payload);
    const closing = stage.leaves();
    // Bytes that nobody reads, or that come after a close of the socket, are answered by a reset.
    for (let index = 0; index < 10; index++) {
      await stage.sends(text("still here"));
      await sleep(4);
    }
    stage.resume();
    const what = "[stream.linger] [stream.close] all of it";
    await stage.takes(what, [...written, { close: true }], { ends: true });
    await stage.wire.end();
    stage.expect(await closing, "ok", "close");
  });
}

async function lingerEnds(arena: Arena): Promise<void> {
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    const begun = performance.now();
    const closing = stage.leaves();
    await stage.takes("[stream.close] a close", [stated(), { close: true }], { ends: true });
    const hasEnded = await stage.goneWithin(LINGER_MS + patience.soonMs);
    const took = performance.now() - begun;
    stage.expect(await closing, "ok", "close");
    stage.demand(hasEnded, `[stream.linger] the transport is there behind ${took.toFixed()} ms`);
    stage.demand(took > LINGER_MS / 2, `[stream.linger] given up behind ${took.toFixed()} ms`);
  });
}

async function hangUp(arena: Arena): Promise<void> {
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated()]);
    const writing = stage.posts(message({ count: 5_000 }), 2 * patience.longMs);
    if (!await stage.isWaiting(20)) return;
    // What has not come yet must not be given back: on a busy machine, it may take a while.
    if (!await stage.comesTo(() => stage.taken >= 128, patience.longMs)) return;
    await stage.sends(credit(128), CLOSED, credit(240));
    const isOver = await stage.hasReturned(patience.soonMs);
    stage.demand(isOver, "[stream.closed] the write goes on waiting");
    stage.expect(await writing, "peer.closed", "[stream.closed] the write");
    await stage.takes("[stream.hang_up] behind a close", [], { ends: true });
    const fact = `[stream.hang_up] ${stage.taken} bytes, with a window of ${SMALL.window} and 128`;
    stage.demand(stage.taken <= SMALL.window + 128, fact);
  });
}

/** A window and a largest frame for which a credit is due for each frame that was read. */
const SMALLEST = { largest: 128, window: 128 };
const READ = 8;

/** What came before the close is read, and given back, and written to: all of that in silence. */
async function hangUpSilent(arena: Arena): Promise<void> {
  const items = Array.from({ length: READ }, (_, tag) => message({ tag, count: 0 }));
  await StreamStage.with(arena, { own: SMALLEST }, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated(SMALLEST)]);
    await stage.sends(...items.map(({ tag }) => bytes(0, tag)), CLOSED);
    await stage.reads("[stream.closed] read", items, "peer.closed");
    const got = await stage.session.write(message({ count: 3 }), false);
    stage.expect(got, "peer.closed", "[stream.closed] a write");
    stage.expect(await stage.session.end(), "ok", "[pipe.end_closed] end");
    const clause = "[stream.hang_up] behind a close";
    await stage.takes(clause, [], { ends: true });
    stage.demand(stage.credits === 0, `${clause}: ${stage.credits} credits are written`);
  });
}

async function readFault(arena: Arena): Promise<void> {
  const data = kindOf("data");
  const first = withPreamble(10, Uint8Array.of(1, 2, 3));
  const rest = [1, 2].map((part) =>
    frame({ kind: data, flags: part === 2 ? LAST : 0, payload: Uint8Array.of(part) })
  );
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    await stage.sends(text("hi", 5), frame({ kind: data, flags: FIRST, payload: first }), ...rest);
    await stage.reads("[stream.check] a sum that is not the total", [HI], "frame.total");
    const sent = [stated(), { fail: "frame.total" }];
    await stage.takes("[stream.fail] a fault of a message", sent, { ends: true });
  });
}

async function broken(arena: Arena, closes: boolean): Promise<void> {
  const order = { transport: "fifo", peer: { largest: 128, window: 8192 } } as const;
  await StreamStage.with(arena, order, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated()]);
    await stage.wire.deaf!();
    const begun = performance.now();
    // The first ones may still be taken.
    let code: unknown = "ok";
    for (let left = 40; left > 0 && code === "ok"; left--) {
      code = await stage.session.write(message({ count: 3 }), false);
      await sleep(5);
    }
    if (closes) {
      await stage.reads("[stream.broken] read, before anything comes", [], "nothing");
      await stage.sends(text("hi", 5), CLOSED);
      await stage.reads("[stream.broken] [stream.closed] read", [HI], "peer.closed");
      return;
    }
    const got = await stage.read(LINGER_MS + patience.soonMs);
    const must = { items: [], end: "peer.failed", reason: "peer.lost" };
    const is = "item" in got ? { items: [got.item] } : { items: [], ...got };
    stage.expect(is, must, "[stream.broken] read");
    const took = performance.now() - begun;
    const fact = `[stream.broken] ${took.toFixed()} ms for a transport that takes nothing`;
    stage.demand(took < LINGER_MS + patience.soonMs, fact);
  });
}

async function dropped(arena: Arena): Promise<void> {
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    await stage.closes("[stream.close] [stream.control] close", [stated(), { close: true }]);
    stage.expect(await stage.session.close(), "ok", "[stream.close] a close behind a close");
  });
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    const dropping = stage.drop();
    const what = "[stream.close] who lets go";
    await stage.takes(what, [stated(), { close: true }], { ends: true });
    await stage.wire.end();
    await dropping;
  });
}

const SERVING = { calls: true, values: true, serves: true } as const;
const LARGE = { largest: 4096, window: 16_384 };

async function callServed(arena: Arena): Promise<void> {
  const order = { ...SERVING, own: LARGE, peer: LARGE };
  await StreamStage.with(arena, order, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated(LARGE)]);
    const call = callFrame("call", 1, { text: "add" }, { json: 1 }, { json: 2 });
    await stage.sends(toHex(buildFrame(call)));
    await stage.reads("read", [], "nothing");
    const { sent } = await stage.collects((each) => each.length > 0);
    const [answer] = sent as MessageCase[];
    const isAnswer = answer?.kind === kindOf("return") && answer.tag === 1;
    stage.demand(isAnswer, `[call.answer] sent ${JSON.stringify(sent).slice(0, 200)}`);
    const bytes = extentOf(fromHex(answer!.hex!).length);
    await stage.sends(credit(bytes));
  });
}

async function callLost(arena: Arena): Promise<void> {
  const order = { ...SERVING, own: LARGE, peer: LARGE };
  await StreamStage.with(arena, order, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated(LARGE)]);
    const asking = stage.session.ask({ name: "far", values: [] }, 2 * patience.longMs);
    const { sent } = await stage.collects((each) => each.length > 0);
    stage.demand(sent.length > 0, "[stream.frames] the call is not sent");
    await stage.wire.end();
    const got = await within(asking, patience.soonMs);
    stage.demand(got !== undefined, "[call.lost] [stream.lost] the call goes on waiting");
    stage.expect(got!, { outcome: "peer.failed" }, "[call.lost] the call");
  });
}

// Scripts of streams: what a side keeps that serves calls, for a peer that reads nothing.

/** What the side under test states: so that many short messages can be on their way to it. */
const OWN = { largest: 128, window: 2048 };
const OPENING = { own: OWN, peer: SMALL, calls: true, values: true, serves: true } as const;
/** Bytes of the frame of an item: its list has one number of a few digits. */
const ITEM_EXTENT = extentOf(8 + 8 + 4);
/** Bytes of the largest message that the peer takes in one frame. */
const FULL_SIZE = SMALL.largest - 16;
/** A queue of more than so many bytes is not filled by items in a reasonable time. */
const QUEUE_MAX = 1 << 20;

const CALL_SCRIPTS: StreamScript[] = [
  streamScript(
    "pieces_unread",
    "Room for thousands of items, and no credit: no more are made than the side accepts.",
    "call.next_item call.cancelled stream.credit_kept",
    piecesUnread,
    { declinedBy },
  ),
];

function declinedBy({ nouns, lacks = [] }: Hello): string | undefined {
  if (!nouns.includes("call")) return "does not offer call";
  return lacks.includes("later") ? "lacks later" : undefined;
}

/** How many bytes the side accepts for which there is no credit. */
async function acceptedBy(arena: Arena): Promise<number> {
  let accepted = 0;
  await StreamStage.with(arena, OPENING, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated(OWN)]);
    const payload = { hex: "00 ".repeat(FULL_SIZE).trim() };
    // A side that waits for nothing when it is opened may not have seen what its peer states.
    await stage.writes("a first write", payload);
    let isFull = false;
    while (!isFull && accepted < QUEUE_MAX) {
      isFull = await stage.session.write(payload, false) !== "ok";
      accepted += SMALL.largest;
    }
  });
  return accepted;
}

async function piecesUnread(arena: Arena): Promise<string | void> {
  const accepted = await acceptedBy(arena);
  if (accepted >= QUEUE_MAX) return "it accepts more than items fill in a reasonable time";
  const most = Math.ceil((accepted + SMALL.window) / ITEM_EXTENT) + 2;
  await StreamStage.with(arena, OPENING, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated(OWN)]);
    const send = async (plan: ReturnType<typeof calls>) => {
      const hex = frame(plan);
      const isFree = () => stage.ahead + hex.length / 2 <= OWN.window;
      for (let left = 100; left > 0 && !isFree(); left--) await stage.read(1);
      await stage.sends(hex);
    };
    await send(calls(1, "count", { json: 4 * most }));
    const grants = Math.ceil(2 * most / limitOf("call_grant"));
    for (let count = 0; count < grants; count++) await send(frameOf("call", 1 + MORE));
    await stage.read(1);
    await send(frameOf("call", 1 + CANCELS));
    let items = 0;
    let answer: Item | undefined;
    let given = 0;
    const deadline = performance.now() + 2 * patience.longMs;
    while (answer === undefined && items <= most && performance.now() < deadline) {
      await stage.read(1);
      const { sent } = await stage.collects((each) => each.length > 0, 10);
      for (const each of sent) {
        if (!("kind" in each)) continue;
        if (each.kind === kindOf("return") && each.tag === 1 + MORE) items++;
        else answer = each;
      }
      if (stage.taken > given) await stage.sends(credit(given = stage.taken));
    }
    const fact = `${items} items came of a side that accepts ${accepted} bytes`;
    stage.demand(items <= most, `[call.next_item] ${fact}`);
    const got = { items: answer === undefined ? [] : [answer] };
    stage.expect(got, { items: [refuses(1, "call.cancelled")] }, "[call.cancelled] the answer");
  });
}

// All scripts of streams, as cases.

/** In the order in which they are played: who cannot read is not asked to stop. */
export const STREAMS: KitCase<Arena>[] = [
  ...ARRIVAL_SCRIPTS,
  ...CREDIT_SCRIPTS,
  ...CALL_SCRIPTS,
  ...STOPPING_SCRIPTS,
].map(streamCase);
