/**
 * Scripts for a reader: the kit is a slow writer, one that leaves, and one that lies.
 *
 * @module
 */

import { inspect } from "../../inspect/mod.ts";
import { ATTACHED, CLOSED, drained, endFrame, extended, firstOf } from "../../reference/builder.ts";
import { message, pad, part, pattern, pipe, VACANT, whole } from "../../reference/builder.ts";
import { writersPipe } from "../../reference/builder.ts";
import { toHex } from "../../reference/bytes.ts";
import type { Result as Came } from "../../reference/case.ts";
import { buildFrame, extentOf, failed, type FramePlan } from "../../reference/encode.ts";
import { TOTAL_UNKNOWN } from "../../reference/encode.ts";
import { limitOf } from "../../reference/layout.ts";
import { perform } from "../../static/driver.ts";
import type { Arena } from "../arena.ts";
import { Random } from "../live/workload.ts";
import { counted, type Script, Stage } from "./stage.ts";

const CAPACITY = 256;
const LATE = 2 ** 32 - 96;
const STARTS = [0, LATE];
const SIZE = 24;
const EXTENSION: FramePlan = { kind: 200, flags: 7, payload: pattern(20) };

function onStage(
  arena: Parameters<Script["play"]>[0],
  start: number,
  play: (stage: Stage) => Promise<void>,
  capacity = CAPACITY,
): Promise<void> {
  const memory = pipe({ capacity, start, states: [ATTACHED, VACANT] });
  return Stage.with(arena, "reader", memory, { limit: 4096 }, play);
}

/** Reads until nothing comes, and twice then. */
function drain(stage: Stage): Promise<Came> {
  return perform({ read: true }, stage.session, stage.memory, undefined);
}

function small(tag: number, size = 20): FramePlan {
  return whole(Uint8Array.from({ length: size }, (_, index) => tag + index & 255), { tag });
}

function smallItem(tag: number, size = 20) {
  return message({ tag, hex: counted(size, tag) });
}

export const READER_SCRIPTS: Script[] = [
  {
    id: "scripted/slow_writer",
    about: "A writer that publishes one message at a time, twice around the area and around 2^32.",
    clauses: ["ring.release_all", "ring.head_owner", "ring.acquire", "frame.skip"],
    role: "reader",
    async play(arena) {
      for (const start of STARTS) await onStage(arena, start, slowWriter);
    },
  },
  {
    id: "scripted/split_everywhere",
    about:
      "A message cut at every byte, published at once, frame by frame, and with others between.",
    clauses: ["frame.multipart", "pipe.keep_parts", "pipe.drop_parts", "frame.skip", "frame.check"],
    role: "reader",
    async play(arena) {
      await onStage(arena, LATE, splitEverywhere, 1024);
    },
  },
  {
    id: "scripted/writer_asks",
    about:
      "A writer that asks at every distance: it is rung when `head` gets there, and only then.",
    clauses: ["wait.exchange", "wait.ring", "ring.release_all"],
    role: "reader",
    async play(arena) {
      for (const start of STARTS) await onStage(arena, start, writerAsks);
    },
  },
  {
    id: "scripted/writer_leaves_at_every_step",
    about:
      "A writer that ends, closes or fails behind any number of messages: all of them are read.",
    clauses: ["pipe.drain", "pipe.end_once", "pipe.look_again", "pipe.failed_reason"],
    role: "reader",
    async play(arena) {
      for (let count = 0; count <= 6; count++) {
        for (const how of ["end", "close", "fail"] as const) {
          await onStage(arena, LATE, (stage) => leaves(stage, count, how));
        }
      }
    },
  },
  {
    id: "scripted/reader_closes_at_every_step",
    about: "The reader closes behind any number of messages: it stores nothing any more.",
    clauses: ["pipe.close", "pipe.close_stores", "pipe.first_answer", "ring.head_owner"],
    role: "reader",
    async play(arena) {
      for (let count = 0; count <= 4; count++) {
        await onStage(arena, 0, (stage) => closes(stage, count));
      }
    },
  },
  {
    id: "scripted/cancel_at_every_step",
    about: "A message that is given up behind any number of its parts, or cut short by `end`.",
    clauses: ["pipe.cancelled", "pipe.truncated", "pipe.report_once"],
    role: "reader",
    async play(arena) {
      for (let parts = 1; parts <= 4; parts++) {
        await onStage(arena, LATE, (stage) => givenUp(stage, parts), 1024);
      }
    },
  },
  {
    id: "scripted/lying_writer",
    about: "Every kind of bad `tail`: the writer is marked, and `head` is not stored any more.",
    clauses: ["ring.cursor", "ring.fault", "ring.fault_stop", "pipe.fault"],
    role: "reader",
    async play(arena) {
      for (const start of STARTS) {
        for (const lie of [272, -16, 4, 2 ** 31, 256 + 2]) {
          await onStage(arena, start, (stage) => lyingWriter(stage, lie));
        }
      }
    },
  },
];

async function slowWriter(stage: Stage): Promise<void> {
  for (let tag = 0; tag < 24; tag++) {
    const size = [0, 20, 100, 47, 112, 1, 64][tag % 7]!;
    stage.step = `message ${tag} of ${size} bytes: `;
    await stage.place(small(tag, size));
    await stage.publish();
    const got = await drain(stage);
    stage.expect(got, drained([smallItem(tag, size)]), "read");
    await stage.controlIs("[ring.release_all]", "head", stage.tail);
  }
}

async function splitEverywhere(stage: Stage): Promise<void> {
  const whole = pattern(SIZE, 5);
  const item = message({ tag: 3, hex: toHex(whole) });
  const tag = { tag: 3 };
  for (let cut = 0; cut < SIZE; cut++) {
    const first = firstOf(SIZE, whole.slice(0, cut), tag);
    const last = part(whole.slice(cut), tag);
    for (const how of ["at once", "frame by frame", "with an extension between"]) {
      stage.step = `cut at ${cut}, ${how}: `;
      await stage.place(first);
      if (how === "frame by frame") {
        await stage.publish();
        stage.expect(await drain(stage), drained([]), "read of the first part");
      }
      if (how === "with an extension between") await stage.place(EXTENSION);
      await stage.place(last);
      await stage.publish();
      stage.expect(await drain(stage), drained([item]), "read");
    }
  }
  // In as many parts as it has bytes.
  stage.step = "cut at every byte at once: ";
  await stage.place(firstOf(SIZE, new Uint8Array(0), tag));
  for (let at = 0; at < SIZE; at++) {
    await stage.place(part(whole.slice(at, at + 1), { ...tag, flags: at === SIZE - 1 ? 2 : 0 }));
    await stage.publish();
    const items = at === SIZE - 1 ? [item] : [];
    stage.expect(await drain(stage), drained(items), `read of part ${at}`);
  }
}

async function writerAsks(stage: Stage): Promise<void> {
  for (let distance = 16; distance <= 112; distance += 16) {
    const wanted = (stage.tail + distance) % 2 ** 32;
    await stage.setControl("writer_wants", wanted + 1);
    let isArmed = true;
    for (let tag = 0; tag < 4; tag++) {
      stage.step = `asked for ${wanted}, at ${stage.tail}: `;
      await stage.place(small(tag));
      await stage.publish();
      const before = await stage.record(0, "bell");
      stage.expect(await drain(stage), drained([smallItem(tag)]), "read");
      const isReached = isArmed && (stage.tail - wanted | 0) >= 0;
      const rung = await stage.record(0, "bell") - before;
      const rings = isReached ? "rings once" : "does not ring";
      stage.demand(
        rung === Number(isReached),
        `[wait.exchange] the bell moved by ${rung}: ${rings}`,
      );
      if (isReached) isArmed = false;
      const must = isArmed ? (wanted + 1) % 2 ** 32 : 0;
      await stage.controlIs("[wait.exchange]", "writer_wants", must);
    }
  }
}

async function leaves(
  stage: Stage,
  count: number,
  how: "end" | "close" | "fail",
): Promise<void> {
  stage.step = `${how} behind ${count} messages: `;
  for (let tag = 0; tag < Math.min(count, 4); tag++) {
    await stage.place(small(tag));
  }
  // The rest is published when the reader has read once.
  if (count > 0) await stage.publish();
  const items = Array.from({ length: Math.min(count, 4) }, (_, tag) => smallItem(tag));
  if (count > 4) {
    stage.expect(await drain(stage), drained(items.splice(0)), "the first read");
    for (let tag = 4; tag < count; tag++) {
      await stage.place(small(tag));
      items.push(smallItem(tag));
    }
    await stage.publish();
  }
  if (how === "end") {
    await stage.place(endFrame());
    await stage.publish();
  } else await stage.setState(0, how === "close" ? CLOSED : failed("peer.terminated"));
  const end = { end: "ended", close: "peer.closed", fail: "peer.failed" }[how];
  const reason = how === "fail" ? "peer.terminated" : undefined;
  stage.expect(await drain(stage), drained(items, end, reason), "read");
  // After `end` nobody asks how the writer is.
  if (how === "end") {
    await stage.setState(0, CLOSED);
    stage.expect(await drain(stage), drained([], "ended"), "read when the writer has closed");
  }
}

async function closes(stage: Stage, count: number): Promise<void> {
  stage.step = `behind ${count} messages: `;
  for (let tag = 0; tag < count; tag++) {
    await stage.place(small(tag));
    await stage.publish();
    stage.expect(await drain(stage), drained([smallItem(tag)]), "read");
  }
  await stage.place(small(9));
  await stage.publish();
  const head = await stage.control("head");
  stage.expect(await stage.session.close(), "ok", "close");
  stage.expect(await drain(stage), drained([], "pipe.closed"), "[pipe.first_answer] read");
  await stage.controlIs("[pipe.close]", "head", head);
  await stage.stateIs("[pipe.close]", 1, CLOSED);
}

async function givenUp(stage: Stage, parts: number): Promise<void> {
  stage.step = `behind ${parts} parts: `;
  const total = 100;
  const begin = async () => {
    await stage.place(firstOf(total, pattern(8), { tag: 4 }));
    for (let index = 1; index < parts; index++) {
      await stage.place(part(pattern(8), { tag: 4, flags: 0 }));
    }
    await stage.publish();
  };
  await begin();
  stage.expect(await drain(stage), drained([]), "read of the parts");
  await stage.place({ kind: 1, flags: 6, tag: 4 }, small(1));
  await stage.publish();
  const cancelled = [{ report: "message.cancelled" }, smallItem(1)];
  stage.expect(await drain(stage), drained(cancelled), "read of the cancel");
  await begin();
  await stage.place(endFrame());
  await stage.publish();
  const truncated = [{ report: "message.truncated" }];
  stage.expect(await drain(stage), drained(truncated, "ended"), "read of the end");
}

async function lyingWriter(stage: Stage, lie: number): Promise<void> {
  stage.step = `tail ${lie} from head: `;
  for (let tag = 0; tag < 2; tag++) {
    await stage.place(small(tag));
    await stage.publish();
    stage.expect(await drain(stage), drained([smallItem(tag)]), "read");
  }
  const head = await stage.control("head");
  await stage.setControl("tail", (stage.tail + lie + 2 ** 32) % 2 ** 32);
  stage.expect(await drain(stage), drained([], "ring.cursor"), "read");
  await stage.controlIs("[ring.fault]", "head", head);
  await stage.stateIs("[ring.fault]", 0, failed("ring.cursor"));
  await stage.publish();
  const again = drained([], "ring.cursor");
  stage.expect(await drain(stage), again, "[pipe.fault] read of a good tail");
}

// A hostile writer: good frames in which one byte of a header is wrong, by seed. What must come of
// it is what the inspector finds, which reads the bytes as the chapters say and shares nothing with
// any port.

const HOSTILE_CAPACITY = 1024;
const COUNT = 150;

/** Good frames up to the end of the area, a pad, and some after it. */
const FRAMES: FramePlan[] = [
  whole(pattern(20)),
  firstOf(60, pattern(16), { tag: 3 }),
  part(pattern(24, 16), { tag: 3, flags: 0 }),
  { kind: 200, payload: pattern(8) },
  part(pattern(20, 40), { tag: 3 }),
  whole(pattern(0), { kind: 3, tag: 7 }),
  firstOf(500, pattern(32), { tag: 4 }),
  { kind: 1, flags: 6, tag: 4 },
  whole(pattern(112), { codec: 200 }),
  extended(whole(pattern(20))),
  extended(firstOf(TOTAL_UNKNOWN, pattern(5))),
  extended(part(pattern(5, 5))),
];

/** All but `time`, which has no wrong value. */
const HEADER = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
/** What is reserved, and the lowest byte of `total`: a large one would only be above the limit. */
const PREAMBLE = [0, 8, 9, 12, 15];
/** The size of an extension; its kind may be any. */
const HOSTILE_EXTENSION = [0, 1, 2, 3, 4];
const VALUES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 31, 64, 127, 128, 199, 255];

export const HOSTILE_SCRIPTS: Script[] = [{
  id: "scripted/hostile_frames",
  about: `Rings (${COUNT}) in which one byte of a header is wrong: the fault, and no other.`,
  clauses: [
    "frame.check",
    "frame.check_total",
    "frame.extension",
    "frame.skip",
    "frame.skip_extension",
    "ring.fault",
    "ring.fault_stop",
  ],
  role: "reader",
  mayDecline: ["calls", "bytes"],
  async play(arena) {
    for (let seed = 1; seed <= COUNT; seed++) {
      const { memory, fault, what } = spoil(seed);
      const more = { limit: 4096, calls: true };
      await Stage.with(arena, "reader", memory, more, async (stage) => {
        stage.step = `ring ${seed}, ${what}: `;
        const got = await perform({ read: true }, stage.session, stage.memory, undefined);
        const end = typeof got === "object" && "items" in got ? got.end ?? "" : "";
        const isFault = /^(frame|ring)\./.test(end);
        const isSame = fault === undefined ? !isFault : end === fault;
        const must = fault ?? "no fault";
        stage.demand(isSame, `[frame.check] read ended with ${end}, not ${must}`);
        if (fault === undefined) return;
        const state = await stage.record(0, "state");
        const mark = failed(fault);
        stage.demand(state === mark, `[ring.fault] the writer's state is ${state}, not ${mark}`);
      });
    }
  },
}];

/** A ring with one wrong byte, and the fault that it makes. */
function spoil(seed: number) {
  const random = new Random(seed * 2_654_435_761 >>> 0 || 1);
  for (let index = 0; index < 8; index++) random.next();
  // So that a pad is in the middle: after some of the frames the area ends.
  const cut = random.next() % FRAMES.length;
  const before = FRAMES.slice(0, cut).reduce((sum, frame) => sum + buildFrame(frame).length, 0);
  const start = 2 ** 32 - before - 64;
  const frames = [...FRAMES.slice(0, cut), pad(64), ...FRAMES.slice(cut), endFrame()];
  const memory = pipe({ capacity: HOSTILE_CAPACITY, start, states: [ATTACHED, VACANT], frames });
  const index = random.next() % frames.length;
  const { flags = 0, extension = [], payload = [] } = frames[index]!;
  // A size that is not known is not to become one, which would be above the limit.
  const preamble = payload[0] === 0xff ? PREAMBLE.slice(1) : PREAMBLE;
  const behind = (at: number, bytes: number[]) => bytes.map((byte) => at + byte);
  const places = [
    ...HEADER,
    ...(extension.length > 0 ? behind(16, HOSTILE_EXTENSION) : []),
    ...((flags & 3) === 1 ? behind(16 + extension.length, preamble) : []),
  ];
  const byte = places[random.next() % places.length]!;
  const at = memory.at[index]! + byte;
  const value = VALUES[random.next() % VALUES.length]!;
  memory.bytes[at] = value;
  const code = inspect(memory.bytes, { as: "segment", limit: 1 }).fault?.code;
  const fault = code !== undefined && /^(frame|ring)\./.test(code) ? code : undefined;
  return { memory, fault, what: `frame ${index}, byte ${byte} is ${value}` };
}

// Scripts for what is lent: claims that fit exactly, frames that are borrowed, and when room comes
// back.

const RESERVE = limitOf("ring_reserve");
const LENDING_HEADER = 16;
const HALF = CAPACITY / 2;

export const LENDING_SCRIPTS: Script[] = [
  {
    id: "scripted/claim_exact",
    about:
      "A claim of all that is free, in a ring of any fill: it fits, and one byte more does not.",
    clauses: ["ring.room", "ring.pad", "frame.extent"],
    role: "writer",
    mayDecline: ["lending"],
    async play(arena) {
      for (let used = 0; used <= CAPACITY - RESERVE; used += 16) await claimAll(arena, used);
    },
  },
  {
    id: "scripted/lent_step_by_step",
    about: "Frames that are borrowed one after the other: no room comes back of what is lent.",
    clauses: ["pipe.lend", "pipe.lend_check", "ring.head_owner"],
    role: "reader",
    mayDecline: ["lending"],
    play: lentOneByOne,
  },
  {
    id: "scripted/release_early",
    about: "A reader of many messages: room comes back with each quarter of the ring.",
    clauses: ["ring.release_early"],
    role: "reader",
    play: releasedEarly,
  },
  {
    id: "scripted/release_asked",
    about:
      "A writer that asks for room at every distance, and a reader that takes one message at a " +
      "time: the room of each comes back at once.",
    clauses: ["ring.release_asked"],
    role: "reader",
    async play(arena) {
      for (const start of [0, 2 ** 32 - 128]) {
        for (let asked = 1; asked <= 4; asked++) await releasedAsked(arena, start, asked);
      }
    },
  },
];

async function claimAll(arena: Arena, used: number): Promise<void> {
  const states = [VACANT, ATTACHED];
  await Stage.with(
    arena,
    "writer",
    writersPipe({ capacity: CAPACITY, states }),
    {},
    async (stage) => {
      stage.step = `${used} bytes in use: `;
      for (let left = used; left > 0;) {
        const extent = Math.min(left, HALF - 16);
        const got = await stage.session.claim({ hex: "" }, extent - LENDING_HEADER, "finish");
        stage.expect(got, "ok", "a claim that fits");
        // It is finished smaller than it was claimed, as whoever claims may.
        await stage.session.publish();
        left -= LENDING_HEADER;
      }
      const tail = await stage.control("tail");
      stage.demand(tail === used, `[ring.publish] tail is ${tail}, not ${used}`);
      const [toEnd, free] = [CAPACITY - used, CAPACITY - RESERVE - used];
      // The largest that fits before the end; there is no room after a pad that is not free.
      const most = Math.min(HALF, free, toEnd) - LENDING_HEADER;
      if (most < HALF - LENDING_HEADER) {
        const got = await stage.session.claim({ hex: "" }, Math.max(0, most + 1), "finish");
        stage.expect(got, "full", `a claim of ${most + 1} bytes`);
      }
      if (most < 0) return;
      const payload = { tag: 7, hex: counted(most, 7) };
      stage.expect(
        await stage.session.claim(payload, most, "finish"),
        "ok",
        `a claim of ${most} bytes`,
      );
      await stage.session.publish();
      const end = await stage.control("tail");
      const must = used + extentOf(most);
      stage.demand(end === must, `[ring.room] tail is ${end}, not ${must}`);
      const empties = Array.from({ length: used / LENDING_HEADER }, () => message({ hex: "" }));
      const items = [...empties, message(payload)];
      stage.expect(await stage.take(), drained(items), "what was written");
    },
  );
}

async function lentOneByOne(arena: Arena): Promise<void> {
  const frames: FramePlan[] = [
    whole(pattern(20, 1), { tag: 1 }),
    { kind: 200, payload: pattern(4) },
    whole(pattern(8, 2), { tag: 2 }),
    firstOf(24, pattern(8, 3), { tag: 3 }),
    part(pattern(16, 11), { tag: 3 }),
    whole(pattern(40, 5), { tag: 5 }),
  ];
  const lent = [
    message({ tag: 1, hex: counted(20, 1) }),
    message({ tag: 2, hex: counted(8, 2) }),
    message({ tag: 3, hex: counted(8, 3) }),
    message({ tag: 3, hex: counted(16, 11) }),
    message({ tag: 5, hex: counted(40, 5) }),
  ];
  const memory = pipe({ capacity: 1024, states: [ATTACHED, VACANT], frames });
  const begins = [0, 2, 3, 4, 5].map((index) => memory.at[index]! - memory.data);
  await Stage.with(arena, "reader", memory, {}, async (stage) => {
    for (const [index, item] of lent.entries()) {
      stage.step = `frame ${index}: `;
      const got = await stage.session.peek();
      stage.expect("item" in got ? { items: [got.item] } : got.end, { items: [item] }, "peek");
      const head = await stage.control("head");
      stage.demand(
        head <= begins[index]!,
        `[pipe.lend] head is ${head}, and from ${begins[index]} on it is lent`,
      );
      stage.expect(await stage.session.release(), "ok", "release");
    }
    const got = await stage.session.peek();
    stage.expect("end" in got ? got.end : "an item", "nothing", "the last peek");
    const [head, tail] = [await stage.control("head"), await stage.control("tail")];
    stage.demand(head === tail, `[ring.release_all] head is ${head}, not ${tail}`);
  });
}

async function releasedEarly(arena: Arena): Promise<string | void> {
  const COUNT = 12;
  const frames = Array.from({ length: COUNT }, (_, tag) => whole(pattern(48, tag), { tag }));
  const memory = pipe({ capacity: 1024, states: [ATTACHED, VACANT], frames });
  let held = 0;
  await Stage.with(arena, "reader", memory, {}, async (stage) => {
    for (let tag = 0; tag < COUNT; tag++) {
      const got = await stage.session.read(0);
      const item = message({ tag, hex: counted(48, tag) });
      stage.expect("item" in got ? { items: [got.item] } : got.end, { items: [item] }, "read");
      const released = (tag + 1) * extentOf(48) - await stage.control("head");
      held = Math.max(held, tag === COUNT - 1 ? 4 * released : released);
    }
  });
  // It should: nobody has to.
  if (held > memory.channels[0]!.capacity / 4) return `up to ${held} bytes were kept back`;
}

/**
 * A writer asks for what the first `asked` of several messages take, twice, and then for nothing:
 * less than a quarter of the ring.
 */
async function releasedAsked(arena: Arena, start: number, asked: number): Promise<void> {
  const EXTENT = extentOf(16);
  const COUNT = 2 * asked + 2;
  const frames = Array.from({ length: COUNT }, (_, tag) => whole(pattern(16, tag), { tag }));
  const memory = pipe({ capacity: 1024, start, states: [ATTACHED, VACANT], frames });
  await Stage.with(arena, "reader", memory, {}, async (stage) => {
    for (let tag = 0; tag < COUNT; tag++) {
      const [round, at] = [Math.floor(tag / asked), tag % asked];
      const position = (count: number) => (start + count * EXTENT) % 2 ** 32;
      const wanted = position((round + 1) * asked);
      const isAsked = round < 2;
      if (isAsked && at === 0) await stage.setControl("writer_wants", wanted + 1);
      const before = await stage.record(0, "bell");
      stage.step = `message ${tag}, asked for ${isAsked ? wanted : "nothing"}: `;
      const got = await stage.session.read(0);
      const item = message({ tag, hex: counted(16, tag) });
      stage.expect("item" in got ? { items: [got.item] } : got.end, { items: [item] }, "read");
      const isReached = isAsked && at === asked - 1;
      if (isAsked) {
        await stage.controlIs("[ring.release_asked]", "head", position(tag + 1));
        await stage.controlIs("[wait.exchange]", "writer_wants", isReached ? 0 : wanted + 1);
      }
      const rung = await stage.record(0, "bell") - before;
      stage.demand(rung === Number(isReached), `[wait.exchange] the bell moved by ${rung}`);
    }
  });
}
