/**
 * Scripts for ports and hubs: what a port takes in while it waits for room, and what one of a
 * hub's ports does for the others.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, firstOf, message, part } from "../../reference/builder.ts";
import { pattern, pipe, VACANT, whole } from "../../reference/builder.ts";
import { fromHex, number } from "../../reference/bytes.ts";
import type { Item } from "../../reference/case.ts";
import { failed, type FramePlan, type SegmentPlan } from "../../reference/encode.ts";
import { valueOf } from "../../reference/layout.ts";
import { type PeerMemory, Taker } from "../../static/driver.ts";
import type { Arena } from "../arena.ts";
import { letters } from "../live/workload.ts";
import { controlWord, ring } from "../peer.ts";
import type { Hello, Mixing, Task } from "../protocol.ts";
import { counted, listed, PortStage, type Script, strictly } from "./stage.ts";
import { rest, statesOf, Watch } from "./watch.ts";

/** What arrives at endpoint 1, and what it writes. */
const [IN, OUT] = [0, 1];
const PORT: SegmentPlan = {
  endpoints: 2,
  channels: [
    { writer: 0, reader: 1, capacity: 2048 },
    { writer: 1, reader: 0, capacity: 256 },
  ],
  states: [ATTACHED, VACANT],
};
const SIZE = 20;
const COUNT = 40;
/** Bytes that a port is told to take in, at most. */
const INBOXES = [0, 200, 100_000];
/** Payload that stands in the inbox beyond its limit, where the limit is looked at before. */
const BEYOND = SIZE;

function small(tag: number): FramePlan {
  return whole(pattern(SIZE, tag), { tag });
}

function smallItem(tag: number): Item {
  return message({ tag, hex: counted(SIZE, tag) });
}

export const PORT_SCRIPTS: Script[] = [
  {
    id: "scripted/inbox_limits",
    about:
      "An inbox of a size that is chosen: no more is taken in, and all of it is read in order.",
    clauses: ["port.inbox", "port.inbox_order"],
    role: "port",
    mayDecline: ["inbox"],
    offers: ["inbox"],
    async play(arena) {
      let most = 0;
      for (const inbox of INBOXES) most = Math.max(most, await countTakenIn(arena, inbox));
      return most > 0 ? undefined : "it takes nothing in, which it should";
    },
  },
  {
    id: "scripted/inbox_errors",
    about: "Lost messages among those that are taken in: each is reported in its place.",
    clauses: ["port.inbox_fault", "port.inbox_order", "pipe.report_once"],
    role: "port",
    mayDecline: ["inbox", "calls"],
    play: errorsInside,
  },
  {
    id: "scripted/gives_back_waiting",
    about: "A write waits after one of several messages was read: its room is given back first.",
    clauses: ["port.publish_both", "ring.release_all"],
    role: "port",
    offers: ["inbox"],
    play: givesBack,
  },
  {
    id: "scripted/hub_publish",
    about: "A wait for one client of a hub: nothing is held back from the others.",
    clauses: ["port.hub_publish", "ring.publish_all", "ring.release_all"],
    role: "port",
    offers: ["hub"],
    async play(arena) {
      await publishesForAll(arena, (await arena.connect(0)).hello);
    },
  },
  {
    id: "scripted/hub_leave",
    about:
      "A hub gives one client up: its state is changed, nothing is stored, and the rest go on.",
    clauses: [
      "port.hub_leave",
      "segment.state_change",
      "segment.state_tries",
      "segment.state_ring",
    ],
    role: "port",
    offers: ["hub"],
    async play(arena) {
      await leaves(arena, ATTACHED, CLOSED);
      await leaves(arena, VACANT, failed("peer.terminated"));
    },
  },
];

/** Fills what the port writes, so that its next write waits for room. */
async function fillOut(stage: PortStage): Promise<void> {
  for (let tag = 0; tag < 20; tag++) {
    const got = await stage.session().write({ tag, hex: counted(SIZE, tag) }, false);
    if (got === "full") return;
    stage.expect(got, "ok", "write");
  }
  stage.demand(false, "[ring.room] the ring is never full");
}

/** Without an inbox, nothing but the read has anything given back. */
async function givesBack(arena: Arena): Promise<void> {
  await PortStage.with(arena, PORT, { role: "port", endpoint: 1, inbox: 0 }, async (stage) => {
    await fillOut(stage);
    const frames = Array.from({ length: 3 }, (_, tag) => small(tag));
    await stage.send(IN, ...frames);
    stage.expect(listed(await stage.session().read(0)), { items: [smallItem(0)] }, "read");
    const payload = { tag: 99, hex: counted(SIZE, 9) };
    stage.expect(await stage.session().write(payload, true, 20), "wait.timeout", "write");
    const [head, must] = [await stage.control(IN, "head"), stage.sent(IN) / frames.length];
    stage.demand(head === must, `[port.publish_both] head is ${head} after the wait, not ${must}`);
  });
}

/** Has the port wait for room; returns how many messages it took in. */
async function countTakenIn(arena: Arena, inbox: number): Promise<number> {
  let taken = 0;
  await PortStage.with(arena, PORT, { role: "port", endpoint: 1, inbox }, async (stage) => {
    stage.step = `an inbox of ${inbox} bytes: `;
    await fillOut(stage);
    const frames = Array.from({ length: COUNT }, (_, tag) => small(tag));
    await stage.send(IN, ...frames);
    const payload = { tag: 99, hex: counted(SIZE, 9) };
    stage.expect(await stage.session().write(payload, true, 20), "wait.timeout", "write");
    taken = await stage.control(IN, "head") / (stage.sent(IN) / COUNT);
    stage.demand(
      inbox > 0 || taken === 0,
      `[port.inbox] ${taken} messages were taken in, though there is no inbox`,
    );
    stage.demand(
      taken * SIZE <= inbox + BEYOND,
      `[port.inbox] ${taken} messages of ${SIZE} bytes were taken in`,
    );
    const items = frames.map((_, tag) => smallItem(tag));
    stage.expect(await stage.drain(), drained(items), "[port.inbox_order] reading");
    // What has not been written is not there, and the port goes on.
    await stage.take(OUT);
    stage.expect(await stage.session().write(payload, false), "ok", "the next write");
  });
  return taken;
}

async function errorsInside(arena: Arena): Promise<void> {
  const opening = { role: "port", endpoint: 1, limit: 100 } as const;
  await PortStage.with(arena, PORT, opening, async (stage) => {
    await fillOut(stage);
    await stage.send(
      IN,
      small(1),
      whole(pattern(101), { tag: 2 }),
      small(3),
      whole(pattern(8), { kind: 3, tag: 4 }),
      firstOf(60, pattern(8), { tag: 5 }),
      { kind: 1, flags: 6, tag: 5 },
      small(6),
      firstOf(40, pattern(20, 7), { tag: 7 }),
    );
    const payload = { tag: 99, hex: counted(SIZE, 9) };
    stage.expect(await stage.session().write(payload, true, 20), "wait.timeout", "write");
    await stage.send(IN, part(pattern(20, 27), { tag: 7 }), small(8));
    stage.expect(await stage.session().write(payload, true, 20), "wait.timeout", "write");
    const items: Item[] = [
      smallItem(1),
      { report: "message.size" },
      smallItem(3),
      { report: "message.kind" },
      { report: "message.cancelled" },
      smallItem(6),
      message({ tag: 7, hex: counted(40, 7) }),
      smallItem(8),
    ];
    stage.expect(await stage.drain(), drained(items), "[port.inbox_fault] reading");
  });
}

/** A hub with two clients; client i is endpoint i + 1. */
function hubPlan(states: number[]): SegmentPlan {
  const pair = (client: number) => [
    { writer: 0, reader: client + 1, capacity: 1024 },
    { writer: client + 1, reader: 0, capacity: 1024 },
  ];
  return { endpoints: 3, channels: [...pair(0), ...pair(1)], states };
}

/** The rings to a client and from it. */
const to = (client: number) => 2 * client;
const from = (client: number) => 2 * client + 1;
const HUB = { role: "hub", endpoint: 0 } as const;

async function publishesForAll(arena: Arena, { lacks }: Hello): Promise<void> {
  const states = [VACANT, ATTACHED, ATTACHED];
  for (const how of ["read", "write"] as const) {
    await PortStage.with(arena, hubPlan(states), HUB, async (stage) => {
      stage.step = `a ${how} of client 1: `;
      const [one, other] = [stage.session(0), stage.session(1)];
      // One of two is read, and what it took may be kept back; a message is finished.
      await stage.send(from(0), small(1), small(2));
      const got = await one.read(0);
      stage.expect(listed(got), { items: [smallItem(1)] }, "the first read");
      const isFinished = !lacks.includes("finishing") && !lacks.includes("lending");
      if (isFinished) {
        stage.expect(await one.claim({ tag: 3, hex: counted(8, 3) }, 8, "finish"), "ok", "claim");
      }
      if (how === "read") {
        stage.expect(listed(await other.read(5)), drained([]), "the read that waits");
      } else {
        for (let tag = 0; await other.write({ hex: counted(400, tag) }, false) !== "full"; tag++) {
          stage.demand(tag < 8, "[ring.room] the ring is never full");
        }
        const late = await other.write({ hex: counted(400, 9) }, true, 5);
        stage.expect(late, "wait.timeout", "the write that waits");
      }
      const head = await stage.control(from(0), "head");
      const must = stage.sent(from(0)) / 2;
      stage.demand(head === must, `[port.hub_publish] head of client 0 is ${head}, not ${must}`);
      if (!isFinished) return;
      const item = message({ tag: 3, hex: counted(8, 3) });
      stage.expect(await stage.take(to(0)), drained([item]), "[port.hub_publish] client 0 reads");
    });
  }
}

async function leaves(arena: Arena, state: number, must: number): Promise<void> {
  await PortStage.with(arena, hubPlan([VACANT, state, ATTACHED]), HUB, async (stage) => {
    stage.step = `a client whose state is ${state}: `;
    const [one, other] = [stage.session(0), stage.session(1)];
    stage.expect(await one.write({ tag: 1, hex: counted(8, 1) }, false), "ok", "write");
    if (state === ATTACHED) await stage.send(from(0), small(2));
    const bells = [await stage.record(0, "bell"), await stage.record(1, "bell")];
    stage.expect(await one.close(), "ok", "close");
    const found = await stage.record(1, "state");
    stage.demand(found === must, `[port.hub_leave] the client's state is ${found}, not ${must}`);
    const own = await stage.record(0, "state");
    stage.demand(own === ATTACHED, `[port.hub_leave] the hub's own state is ${own}`);
    for (const index of [0, 1]) {
      const isRung = await stage.record(index, "bell") !== bells[index];
      stage.demand(isRung, `[segment.state_ring] the bell of endpoint ${index} was not rung`);
    }
    const words = async () => [
      await stage.control(to(0), "tail"),
      await stage.control(from(0), "head"),
    ];
    const before = await words();
    stage.expect(await one.write({ hex: "00" }, false), "pipe.closed", "a write behind it");
    stage.expect(listed(await one.read(0)), drained([], "pipe.closed"), "a read behind it");
    // The other one goes on, also with a wait, in which nothing of the first is settled.
    await stage.send(from(1), small(4));
    stage.expect(listed(await other.read(5)), { items: [smallItem(4)] }, "a read of the other");
    stage.expect(listed(await other.read(5)), drained([]), "a read of the other that waits");
    stage.expect(await other.write({ tag: 5, hex: counted(8, 5) }, false), "ok", "a write");
    const item = message({ tag: 5, hex: counted(8, 5) });
    stage.expect(await stage.take(to(1)), drained([item]), "the other client reads");
    const after = await words();
    stage.demand(
      after.join() === before.join(),
      `[port.hub_leave] tail and head of the client went from ${before} to ${after}`,
    );
  });
}

// Scripts of a port that writes by several kinds of calls in one job: some wait, some do not, and
// what they have accepted waits in one queue.

const CAPACITY = 512;
const LONG_MS = 3_000;
/** The ring that the testee writes. */
const MIXED_OUT = 1;
/** A text that fits a frame beside others, and one that the ring cannot take at once. */
const SIZES = [3, 600];
/** One that has no room where the last one has, which must not come first. */
const UNEVEN = [[600], [200], [3]];
const WAYS: readonly Mixing[] = ["post", "promise", "block"];
/** Messages of one job. */
const MIXED_COUNT = 3;
const [JSON_TEXT, BATCH] = [valueOf("codec", "json"), valueOf("codec", "json_batch")];

export const MIXED_SCRIPTS: Script[] = [{
  id: "scripted/mixed_writes",
  about:
    "Posts, promises, blocking writes of one job, short and long, in every order: so they arrive.",
  clauses: ["pipe.order", "pipe.end", "codec.json", "codec.batch", "port.posted"],
  role: "port",
  blocks: true,
  offers: ["mixed"],
  async play(arena) {
    await withPort(arena, async (watch, taker) => {
      for (const order of [...orders(Array(MIXED_COUNT).fill(SIZES)), ...orders(UNEVEN)]) {
        watch.step = `${order.map(([way, size]) => `${way} of ${size}`).join(", ")}: `;
        await mixes(watch, taker, order);
      }
    });
    for (const order of orders([[600], [3]])) {
      await withPort(arena, async (watch, taker) => {
        watch.step = `${order.map(([way, size]) => `${way} of ${size}`).join(", ")}, and the end: `;
        await mixes(watch, taker, order, "end");
      });
    }
  },
}];

async function withPort(
  arena: Arena,
  play: (watch: Watch, taker: Taker) => Promise<void>,
): Promise<void> {
  const two = (writer: number) => ({ writer, reader: 1 - writer, capacity: CAPACITY });
  const memory = pipe({ states: statesOf("reader"), segment: { channels: [two(0), two(1)] } });
  const opening = { role: "port", endpoint: 1, mixed: true } as const;
  await Watch.on(arena, memory, opening, async (watch) => {
    await play(watch, await Taker.make({ role: "writer", channel: MIXED_OUT }, memoryOf(watch)));
  });
}

type Order = NonNullable<Task["order"]>;

/** All that can be done in one job with messages of these sizes. */
function orders(sizes: number[][]): Order[] {
  if (sizes.length === 0) return [[]];
  const steps = WAYS.flatMap((way) => sizes.at(-1)!.map((size): Order[number] => [way, size]));
  return orders(sizes.slice(0, -1)).flatMap((rest) => steps.map((step) => [...rest, step]));
}

/** Has the testee do one job, and reads what comes meanwhile. */
async function mixes(
  watch: Watch,
  taker: Taker,
  order: Order,
  then: "stay" | "end" = "stay",
): Promise<void> {
  const { field, session, own, other } = watch;
  const wants = controlWord(field, MIXED_OUT, "writer_wants");
  const task = {
    role: "mixed",
    seed: 1,
    capacity: CAPACITY,
    wait: "event",
    record: true,
    order,
  } as const;
  let isDone = false;
  const running = session.run({ ...task, then }, LONG_MS).finally(() => isDone = true);
  const got: unknown[] = [];
  let last: string | undefined;
  for (let left = 1; left >= 0; left -= Number(isDone)) {
    const { items, end } = await strictly(() => taker.take(), "[pipe.order] [pipe.end]");
    last = end;
    got.push(...items.flatMap((item) => "report" in item ? [item] : valuesOf(item)));
    if (Atomics.exchange(field.words(), wants, 0) !== 0) ring(field, other, own);
    await rest(0);
  }
  const ran = await running;
  watch.demand(ran.end === "done", `[port.posted] it ended with ${ran.end}, not done`);
  const written = (ran.record ?? []).map(([index]) => index);
  const left = order.findIndex((_, index) => !written.includes(index) && !isFree(order, index));
  watch.demand(left < 0, `[port.posted] message ${left} was refused`);
  const must = written.map((first) => {
    const size = order[first]![1];
    return [
      first,
      new TextDecoder().decode(letters({ tag: 0, size, first }, new Uint8Array(size))),
    ];
  });
  const about = (all: unknown[]) => JSON.stringify(all).replace(/"(.{8})[^"]+"/g, '"$1…"');
  watch.demand(
    JSON.stringify(got) === JSON.stringify(must),
    `[pipe.order] [codec.json] it wrote ${about(must)}, and this came: ${about(got)}`,
  );
  const isOver = (last === "ended") === (then === "end");
  watch.demand(isOver, `[pipe.end] behind it came ${last}, and the port was to ${then}`);
}

/** Whether a port may refuse a message: a call that waits, where it waits for a promise already. */
function isFree(order: Order, index: number): boolean {
  return order[index]![0] === "block" &&
    order.slice(0, index).some(([way]) => way === "promise");
}

/** The values of a message: one, or the elements of a batch. */
function valuesOf({ codec, hex = "" }: { codec: number; hex?: string }): unknown[] {
  if (codec !== JSON_TEXT && codec !== BATCH) return [{ codec, hex }];
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(fromHex(hex)));
    return codec === BATCH ? value as unknown[] : [value];
  } catch {
    return [{ codec, hex }];
  }
}

/** The memory that both see, for the strict reader; cursors are stored whole. */
function memoryOf(watch: Watch): PeerMemory {
  return {
    dump: (from = 0, size = watch.bytes().length - from) => watch.bytes().slice(from, from + size),
    patch(runs) {
      for (const { offset, hex } of runs) {
        Atomics.store(watch.field.words(), offset >> 2, number(fromHex(hex)) | 0);
      }
    },
  };
}
