/**
 * Scripts for what is lent: claims that fit exactly, frames that are borrowed, and when room comes
 * back.
 *
 * @module
 */

import { ATTACHED, drained, firstOf, message, part, pattern } from "../../reference/builder.ts";
import { pipe, VACANT, whole, writersPipe } from "../../reference/builder.ts";
import { extentOf, type FramePlan } from "../../reference/encode.ts";
import { limitOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { counted, type Script, Stage } from "./stage.ts";

const CAPACITY = 256;
const RESERVE = limitOf("ring_reserve");
const HEADER = 16;
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
        const got = await stage.session.claim({ hex: "" }, extent - HEADER, "finish");
        stage.expect(got, "ok", "a claim that fits");
        // It is finished smaller than it was claimed, as whoever claims may.
        await stage.session.publish();
        left -= HEADER;
      }
      const tail = await stage.control("tail");
      stage.demand(tail === used, `[ring.publish] tail is ${tail}, not ${used}`);
      const [toEnd, free] = [CAPACITY - used, CAPACITY - RESERVE - used];
      // The largest that fits before the end; there is no room behind a pad that is not free.
      const most = Math.min(HALF, free, toEnd) - HEADER;
      if (most < HALF - HEADER) {
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
      const empties = Array.from({ length: used / HEADER }, () => message({ hex: "" }));
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
