/**
 * Scripts of streams: nobody sends beyond the credit, who reads gives it, and two that both wait
 * for something take in what arrives.
 *
 * @module
 */

import { reasonOf } from "../../reference/layout.ts";
import { fromHex, toHex } from "../../reference/bytes.ts";
import { drained } from "../../reference/builder.ts";
import type { MessageCase } from "../../reference/case.ts";
import { extentOf, kindOf, LAST, withPreamble } from "../../reference/encode.ts";
import { FIRST } from "../../reference/encode.ts";
import { bytes, count, credit, fail, frame } from "../../stream/builder.ts";
import { CLOSED, END, message, report } from "../../stream/builder.ts";
import { SMALL, stated } from "../../stream/builder.ts";
import type { Sizes } from "../../stream/case.ts";
import type { Arena } from "../arena.ts";
import { listed } from "../scripts/stage.ts";
import { Random } from "../live/workload.ts";
import { during, numbered, patience, sleep, type StreamScript, streamScript } from "./stage.ts";
import { StreamStage, within } from "./stage.ts";

/** More than a socket takes that nobody reads, and a window that takes all of it. */
const FLOOD_SIZE = 650_000;
const WIDE = { largest: 65_536, window: 1 << 20 };
const SMALLEST = { largest: 128, window: 128 };
/** More than a socket takes, too, and no more of it than that needs. */
const TAKEN = { largest: 65_536, window: 1 << 19 };

export const CREDIT_SCRIPTS: StreamScript[] = [
  streamScript(
    "credit_kept",
    "A writer goes as far as its credit, and on when it gets more.",
    "stream.credit_kept stream.credit_check stream.frames",
    creditKept,
  ),
  streamScript(
    "end_free",
    "`end` and a close take no credit: they go out behind a window that is used up.",
    "stream.credit_kept stream.close",
    endFree,
  ),
  streamScript(
    "largest",
    "Messages around the largest frame of the peer, and of many of its windows.",
    "stream.largest stream.credit_kept",
    largest,
  ),
  streamScript(
    "credit_told",
    "Who reads gives credit before it waits: a writer that waits for it always gets some.",
    "stream.credit_told stream.given_back",
    creditTold,
  ),
  streamScript(
    "credit_untold",
    "As long as nobody reads, nothing is given back.",
    "stream.given_back",
    creditUntold,
  ),
  streamScript(
    "one_credit",
    "Credits that are due while the transport takes nothing: the last one takes their place.",
    "stream.one_credit stream.credit_told",
    oneCredit,
  ),
  streamScript(
    "credit_multipart",
    "A message of many windows: its reader gives back part after part.",
    "stream.credit_told stream.whole",
    creditMultipart,
  ),
  streamScript(
    "credit_exceeded",
    "A peer that goes beyond its credit, at once and behind some that was given back.",
    "stream.check stream.fault stream.fail",
    creditExceeded,
  ),
  streamScript(
    "write_deadline",
    "A write for which there is no credit ends in time, and is cancelled when there is.",
    "wait.deadline pipe.owed stream.credit_kept",
    writeDeadline,
  ),
  streamScript(
    "takes_in",
    "A transport that takes nothing: who waits for it takes in all that it has given credit for.",
    "stream.takes_in",
    takesIn,
  ),
  streamScript(
    "takes_close",
    "A writer that waits for its transport, or for credit, sees the peer close, and fail.",
    "stream.takes_in stream.closed stream.failed",
    takesClose,
  ),
  streamScript(
    "unhindered",
    "A fault is answered in the middle of a message that waits for credit.",
    "stream.unhindered stream.fail",
    unhindered,
  ),
  streamScript(
    "unhindered_part",
    "A credit is due while the transport has taken a part of a frame.",
    "stream.unhindered stream.frames",
    unhinderedPart,
    { declinedBy: (hello) => hello.offers?.includes("inbox") ? undefined : "offers no inbox" },
  ),
  streamScript(
    "between",
    "Credits in the middle of the peer's messages and behind its `end`, and own ones likewise.",
    "stream.between stream.credit_check stream.credit_told",
    between,
  ),
];

async function creditKept(arena: Arena): Promise<void> {
  await StreamStage.with(arena, { peer: SMALL }, async (stage) => {
    await stage.ready();
    const random = new Random(7);
    const all = Array.from({ length: 24 }, (_, index) => numbered(index, random.next() % 100));
    let given = 0;
    let got = 0;
    const give = async () => {
      const { sent } = await stage.collects((each) => each.length > 0);
      for (const item of sent.filter((each) => "kind" in each)) {
        stage.demand(got < all.length, "[stream.credit_kept] a message too many");
        same(stage, "[stream.frames] [stream.credit_kept]", item, all[got++]!);
        given += extentOf(sizeOf(item));
      }
      await stage.sends(credit(given));
    };
    for (const payload of all) {
      const writing = stage.posts(payload);
      while (!await stage.hasReturned(5)) await give();
      stage.expect(await writing, "ok", "[stream.credit_kept] a write");
    }
    const deadline = performance.now() + patience.longMs;
    while (got < all.length && performance.now() < deadline) await give();
    stage.demand(got === all.length, `[stream.credit_check] ${got} of ${all.length} messages`);
  });
}

async function endFree(arena: Arena): Promise<void> {
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    const half = message({ count: 112 });
    await stage.writes("[stream.credit_kept] the first half of the window", half);
    await stage.writes("[stream.credit_kept] the other half", half);
    stage.expect(await stage.session.end(), "ok", "[stream.credit_kept] end");
    const sent = [stated(), half, half, { end: true } as const];
    await stage.takes("[stream.credit_kept] `end` without credit", sent);
    await stage.closes("[stream.close] a close without credit", [{ close: true }]);
  });
}

/** Bytes of the payload of a message that was sent. */
function sizeOf({ hex = "" }: MessageCase): number {
  return fromHex(hex).length;
}

function same(stage: StreamStage, what: string, got: MessageCase, must: MessageCase): void {
  stage.expect({ items: [got] }, { items: [must] }, what);
}

async function largest(arena: Arena): Promise<void> {
  const peers: Sizes[] = [SMALLEST, { largest: 144, window: 1024 }, {
    largest: 4096,
    window: 8192,
  }];
  for (const peer of peers) {
    await StreamStage.with(arena, { own: WIDE, peer }, async (stage) => {
      stage.step = `largest ${peer.largest}, window ${peer.window}: `;
      await stage.ready();
      const most = peer.largest - 16;
      let given = 0;
      for (const size of [0, most - 1, most, most + 1, 2 * most + 7, 600]) {
        const payload = numbered(size, size);
        const writing = stage.posts(payload);
        // Credit for all that may have come, again and again, until the message is there.
        const sent: MessageCase[] = [];
        for (let left = 200; left > 0 && sent.length === 0; left--) {
          const taken = await stage.collects((each) => each.length > 0, 10);
          sent.push(...taken.sent.filter((each) => "kind" in each));
          if (stage.taken > given) await stage.sends(credit(given = stage.taken));
        }
        stage.demand(sent.length === 1, `[stream.largest] a message of ${size} bytes`);
        same(stage, "[stream.largest]", sent[0]!, payload);
        stage.expect(await writing, "ok", "[stream.largest] a write");
      }
    });
  }
}

async function creditTold(arena: Arena): Promise<void> {
  for (const own of [SMALL, SMALLEST, { largest: 256, window: 1024 }]) {
    await StreamStage.with(arena, { own }, async (stage) => {
      stage.step = `largest ${own.largest}, window ${own.window}: `;
      await stage.ready();
      const random = new Random(own.window);
      for (let index = 0; index < 30; index++) {
        const payload = numbered(index, random.next() % (own.largest - 15));
        const size = sizeOf(payload);
        const reading = stage.session.read(patience.longMs);
        const isFree = () => stage.ahead + extentOf(size) <= own.window;
        const clause = "[stream.credit_told] a reader that waits";
        const fact = `${clause} leaves its writer ${own.window - stage.ahead} bytes of credit`;
        stage.demand(await stage.comesTo(isFree, patience.soonMs), fact);
        await stage.sends(
          frame({ kind: kindOf("data"), flags: FIRST + LAST, payload: of(payload) }),
        );
        const got = await reading;
        same(stage, "[stream.credit_told] read", itemOf(stage, got), payload);
      }
    });
  }
}

function of({ hex = "" }: MessageCase): Uint8Array {
  return fromHex(hex);
}

function itemOf(stage: StreamStage, got: Awaited<ReturnType<StreamStage["read"]>>): MessageCase {
  stage.demand("item" in got, `expected a message, got ${JSON.stringify(got)}`);
  return (got as { item: MessageCase }).item;
}

async function creditUntold(arena: Arena): Promise<void> {
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    await stage.sends(bytes(112, 1), bytes(112, 2));
    const clause = "[stream.given_back] before anybody reads";
    await stage.takes(clause, [stated()]);
    await stage.takes(clause, [], { credit: "none" });
    const items = [1, 2].map((tag) => message({ tag, count: 112 }));
    await stage.reads("[stream.given_back] read", items, "nothing");
    const told = "[stream.given_back] [stream.credit_told] behind two frames";
    stage.demand(await stage.comesTo(() => stage.ahead <= 128, patience.soonMs), told);
  });
}

/** Frames that are read while the transport is full; with this window, a credit is due for each. */
const READ = 8;

async function oneCredit(arena: Arena): Promise<string | void> {
  let why: string | undefined;
  await StreamStage.with(arena, { own: SMALLEST, peer: WIDE }, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated(SMALLEST)]);
    stage.pause();
    const payload = message({ count: 16_000 });
    // A side that waits for nothing when it is opened may not have seen the preface yet.
    await stage.writes("a first write", payload);
    let written = 16_016;
    // What it accepts goes as far as its transport and its own queue have room.
    while (written < FLOOD_SIZE && await stage.session.write(payload, false) === "ok") {
      written += 16_016;
      await sleep(1);
    }
    if (written >= FLOOD_SIZE) {
      why = "its own queue takes more than a transport does";
      return;
    }
    for (let tag = 0; tag < READ; tag++) {
      await stage.sends(bytes(0, tag));
      await stage.reads("read", [message({ tag, count: 0 })], "nothing");
    }
    const before = stage.credits;
    stage.resume();
    const deadline = performance.now() + patience.longMs;
    // Who takes nothing in between its calls writes in its calls as well.
    while (stage.ahead > 0 && performance.now() < deadline) {
      stage.expect(listed(await stage.read(10)), drained([]), "a read of nothing");
    }
    await stage.judge("[stream.credit_told] what was written");
    stage.demand(stage.ahead === 0, "[stream.credit_told] no credit for frames that were read");
    const came = stage.credits - before;
    stage.demand(came <= 1, `[stream.one_credit] ${came} credits, none of which was on its way`);
  });
  return why;
}

async function creditMultipart(arena: Arena): Promise<void> {
  const [size, part] = [3_000, 100];
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    const all = numbered(3, size);
    const payload = of(all);
    const reading = stage.session.read(2 * patience.longMs);
    for (let from = 0; from < size; from += part) {
      const piece = payload.slice(from, from + part - (from === 0 ? 16 : 0));
      if (from === 0) from -= 16;
      const isLast = from + part >= size;
      const flags = (from < 0 ? FIRST : 0) + (isLast ? LAST : 0);
      const content = from < 0 ? withPreamble(size, piece) : piece;
      const hex = frame({ kind: kindOf("data"), flags, payload: content });
      const fact = `[stream.credit_told] byte ${from}: no credit for the next part`;
      const isFree = () => stage.ahead + 128 <= SMALL.window;
      stage.demand(await stage.comesTo(isFree, patience.soonMs), fact);
      await stage.sends(hex);
    }
    same(stage, "[stream.whole] read", itemOf(stage, await reading), all);
  });
}

async function creditExceeded(arena: Arena): Promise<void> {
  for (const before of [0, 3]) {
    await StreamStage.with(arena, {}, async (stage) => {
      stage.step = `behind ${before} messages: `;
      await stage.ready();
      for (let index = 0; index < before; index++) {
        await stage.sends(bytes(112, index));
        await stage.reads("read", [message({ tag: index, count: 112 })], "nothing");
      }
      const free = SMALL.window - stage.ahead;
      const items = [message({ tag: 50, count: 0 })];
      await stage.sends(bytes(0, 50));
      let used = 16;
      for (; used + 128 <= free; used += 128) {
        await stage.sends(bytes(112, 51));
        items.push(message({ tag: 51, count: 112 }));
      }
      await stage.sends(bytes(112, 52));
      const what = "[stream.check] [stream.fault] beyond its credit";
      await stage.reads(what, items, "peer.failed", "stream.credit");
      const { sent } = await stage.collects((each) => each.some((one) => "fail" in one));
      const fact = `[stream.fail] no fail: ${JSON.stringify(sent)}`;
      stage.demand(sent.some((one) => "fail" in one && one.fail === "stream.credit"), fact);
    });
  }
}

async function writeDeadline(arena: Arena): Promise<void> {
  const [waitMs, size] = [60, 20_000];
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    const begun = performance.now();
    const writing = during("[wait.deadline] a write", stage.posts(numbered(1, size), waitMs));
    const got = await writing;
    const took = performance.now() - begun;
    stage.expect(got, "wait.timeout", "[wait.deadline] a write without credit");
    const isInTime = took >= waitMs - 2 && took < waitMs + patience.soonMs;
    stage.demand(isInTime, `[wait.deadline] a write of ${waitMs} ms took ${took.toFixed()} ms`);
    const next = stage.posts(message({ count: 3 }));
    let given = 0;
    const sent: unknown[] = [];
    for (let left = 400; left > 0 && sent.length < 2; left--) {
      const taken = await stage.collects((each) => each.length > 0, 10, "[pipe.owed]");
      sent.push(...taken.sent.filter((each) => !("preface" in each)));
      if (stage.taken > given) await stage.sends(credit(given = stage.taken));
    }
    stage.expect(await next, "ok", "[pipe.owed] the next write");
    const must = [report("message.cancelled"), message({ hex: toHex(count(3)) })];
    const fact = `[pipe.owed] [stream.credit_kept] sent ${JSON.stringify(sent)}`;
    stage.demand(JSON.stringify(sent) === JSON.stringify(must), fact);
  });
}

async function takesIn(arena: Arena): Promise<void> {
  await StreamStage.with(arena, { own: TAKEN, peer: WIDE, limit: 2 << 20 }, async (stage) => {
    await stage.ready();
    stage.pause();
    const writing = stage.posts(message({ count: FLOOD_SIZE }));
    if (!await stage.isWaiting(60)) return;
    const size = TAKEN.largest - 16;
    const flood = bytes(size).repeat(Math.floor(TAKEN.window / extentOf(size)));
    const flooding = stage.sends(flood).then(() => true);
    const isTaken = await within(flooding, patience.longMs);
    stage.demand(isTaken === true, "[stream.takes_in] it takes nothing in while it writes");
    stage.resume();
    stage.expect(await writing, "ok", "[stream.takes_in] the write");
    const { sent } = await stage.collects((each) => each.length > 1);
    const item = sent.find((each): each is MessageCase => "kind" in each);
    stage.demand(item !== undefined, "[stream.takes_in] the message does not come");
    stage.demand(stage.taken > FLOOD_SIZE, "[stream.takes_in] the message is cut");
  });
}

/** The transport stands in the middle of a frame when a credit is due: it is not cut in two. */
async function unhinderedPart(arena: Arena): Promise<void> {
  const order = { own: TAKEN, peer: WIDE, limit: 2 << 20, inbox: 2 * TAKEN.window };
  await StreamStage.with(arena, order, async (stage) => {
    await stage.ready();
    stage.pause();
    const writing = stage.posts(message({ count: FLOOD_SIZE }));
    if (!await stage.isWaiting(60)) return;
    const size = TAKEN.largest - 16;
    await stage.sends(bytes(size).repeat(Math.floor(TAKEN.window / extentOf(size))));
    await sleep(20);
    stage.resume();
    const what = "[stream.unhindered] a credit, while its transport takes nothing";
    const { sent } = await stage.collects((each) => each.length > 1, patience.longMs, what);
    stage.expect(await writing, "ok", "the write");
    stage.demand(sent.some((each) => "kind" in each), `${what}: the message does not come`);
    stage.demand(stage.taken > FLOOD_SIZE, `${what}: the message is cut`);
  });
}

async function takesClose(arena: Arena): Promise<void> {
  const reason = reasonOf("frame.size");
  const ends: [string, string, string, string | undefined][] = [
    ["[stream.closed]", CLOSED, "peer.closed", undefined],
    ["[stream.failed]", fail(reason), "pipe.failed", "frame.size"],
  ];
  for (const [clause, hex, code, beside] of ends) {
    for (const peer of code === "peer.closed" ? [SMALL, WIDE] : [SMALL]) {
      await StreamStage.with(arena, { peer, own: WIDE }, async (stage) => {
        stage.step = `waiting for ${peer === WIDE ? "its transport" : "credit"}: `;
        await stage.ready();
        if (peer === WIDE) stage.pause();
        const size = peer === WIDE ? FLOOD_SIZE : 5_000;
        const writing = stage.posts(message({ count: size }), 2 * patience.longMs);
        if (!await stage.isWaiting(40)) return;
        await stage.sends(hex);
        const isOver = await stage.hasReturned(patience.soonMs);
        stage.demand(isOver, `[stream.takes_in] ${clause} the write goes on waiting`);
        const must = beside === undefined ? code : { code, reason: beside };
        const got = await writing;
        // A transport and a queue that have taken all of it meanwhile show nothing.
        if (peer === SMALL || got !== "ok") stage.expect(got, must, clause);
      });
    }
  }
}

async function unhindered(arena: Arena): Promise<void> {
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    const writing = stage.posts(message({ count: 5_000 }), 2 * patience.longMs);
    if (!await stage.isWaiting(20)) return;
    await stage.sends(frame({ kind: 99 }));
    const lost = { code: "peer.failed", reason: "frame.kind" };
    const isOver = await stage.hasReturned(patience.soonMs);
    stage.demand(isOver, "[stream.takes_in] the write goes on waiting");
    stage.expect(await writing, lost, "[stream.fault] the write");
    const what = "[stream.unhindered] [stream.fail] in the middle of a message";
    await stage.takes(what, [stated(), { fail: "frame.kind" }], { ends: true });
  });
}

async function between(arena: Arena): Promise<void> {
  await StreamStage.with(arena, {}, async (stage) => {
    await stage.ready();
    const [first, rest] = [withPreamble(120, count(60)), count(60, 60)];
    const data = kindOf("data");
    const give = credit(0);
    const one = frame({ kind: data, flags: FIRST, payload: first });
    const other = frame({ kind: data, flags: LAST, payload: rest });
    await stage.sends(give, one, give, give, other, give, END, give);
    await stage.reads("[stream.between] read", [message({ count: 120 })], "ended");
    const told = "[stream.between] [stream.credit_told] a credit behind the peer's `end`";
    stage.demand(await stage.comesTo(() => stage.ahead <= 128, patience.soonMs), told);
    stage.expect(await stage.session.end(), "ok", "end");
    await stage.takes("[stream.between] `end`", [stated(), { end: true }]);
    await stage.sends(CLOSED);
    await stage.takes("[stream.hang_up] behind a close", [], { ends: true });
  });
}
