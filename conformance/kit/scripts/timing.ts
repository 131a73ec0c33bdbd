/**
 * Scripts of how long a testee sleeps or pauses at a time, where nothing wakes it.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, firstOf, message, part } from "../../reference/builder.ts";
import { pattern, VACANT, whole } from "../../reference/builder.ts";
import type { FramePlan } from "../../reference/encode.ts";
import { limitOf } from "../../reference/layout.ts";
import { changeState, recordWord } from "../peer.ts";
import type { Wait } from "../protocol.ts";
import { Wrong } from "../verdict.ts";
import { counted, listed, type Script } from "./stage.ts";
import { judgePolling } from "./pacer.ts";
import { rest, settles, Watch } from "./watch.ts";

type Arena = Parameters<Script["play"]>[0];

/** How long a call may wait: far longer than any slice. */
const LONG_MS = 3_000;
/** What a sleep may last beyond its slice, on a machine that does other things, too. */
const SOON_MS = 400;
/** The timeout of a call to which something comes all the time, and how long that goes on. */
const TIMEOUT_MS = 100;
const PARTS_MS = 1_200;
const PART_SIZE = 16;
const PARTS = 60;

export const TIMING_SCRIPTS: Script[] = [
  {
    id: "scripted/lost_wake",
    about: "A writer that dies between its store and its ring: found within a slice.",
    clauses: ["wait.slice", "wait.slice_short"],
    role: "reader",
    play: lostWake,
  },
  {
    id: "scripted/late_writer",
    about: "A writer that cannot ring comes while the reader sleeps: found within a short slice.",
    clauses: ["wait.slice", "wait.slice_short", "wait.vacant"],
    role: "reader",
    play: lateWriter,
  },
  {
    id: "scripted/no_ringer",
    about: "A writer that cannot ring: the reader does not sleep, it polls.",
    clauses: ["wait.mechanism", "wait.poll"],
    role: "reader",
    play: noRinger,
  },
  {
    id: "scripted/deadline_of_call",
    about: "Parts of a message come all the time: the timeout is that of the call, not of a wait.",
    clauses: ["wait.deadline"],
    role: "reader",
    play: deadlineOfCall,
  },
];

/** A message of 20 bytes, extent 48. */
function small(tag: number): FramePlan {
  return whole(pattern(20, tag), { tag });
}

/** Waits for what a read gives, and says whether it was late. */
async function isLate(
  watch: Watch,
  reading: ReturnType<Watch["session"]["read"]>,
  tag: number,
  ms: number,
): Promise<boolean> {
  const isSoon = await settles(reading, ms);
  const item = message({ tag, hex: counted(20, tag) });
  watch.expect(listed(await reading), { items: [item] }, "read");
  return !isSoon;
}

/** A slice that is late once may be the machine's doing; so each late one is tried again. */
async function judge(sliceMs: number, tries: number, play: (attempt: number) => Promise<boolean>) {
  let late = 0;
  for (let attempt = 0; attempt < tries + late && late < 2; attempt++) {
    if (await play(attempt)) late++;
  }
  if (late < 2) return;
  throw new Wrong(`[wait.slice] twice the message was found after more than ${sliceMs} ms`);
}

async function lostWake(arena: Arena): Promise<void> {
  const sliceMs = limitOf("wait_slice_attached_ms");
  await Watch.with(arena, "reader", { capacity: 1024 }, async (watch) => {
    await judge(sliceMs, 1, async (attempt) => {
      const reading = watch.session.read(LONG_MS);
      await watch.asked("reader_wants");
      watch.place(small(attempt));
      watch.setControl("tail", watch.tail); // and no ring
      return await isLate(watch, reading, attempt, sliceMs + SOON_MS);
    });
  });
}

async function lateWriter(arena: Arena): Promise<void> {
  const plan = { capacity: 256, states: [VACANT, VACANT], wakes: 0 };
  const sliceMs = limitOf("wait_slice_ms");
  await judge(sliceMs, 4, async (attempt) => {
    let wasLate = false;
    await Watch.with(arena, "reader", plan, async (watch) => {
      const reading = watch.session.read(LONG_MS);
      await watch.asked("reader_wants");
      await rest(5);
      // A wait that has begun again after a ring for nothing has slices like any other.
      if (attempt % 2 === 1) watch.ringOther();
      await rest(5);
      watch.setState(watch.own, ATTACHED);
      // All that whoever cannot ring does to ring.
      const words = watch.field.words();
      Atomics.or(words, recordWord(watch.other, "rung") + (watch.own >> 5), 1 << (watch.own & 31));
      Atomics.add(words, recordWord(watch.other, "bell"), 1);
      watch.place(small(attempt));
      watch.setControl("tail", watch.tail);
      wasLate = await isLate(watch, reading, attempt, sliceMs + SOON_MS);
    });
    return wasLate;
  });
}

async function noRinger(arena: Arena): Promise<string | void> {
  let why: string | undefined;
  const { waits } = (await arena.connect(0)).hello;
  for (const wait of waits.filter((each): each is Wait => each !== "poll")) {
    await Watch.with(arena, "reader", { capacity: 1024, wakes: 0 }, async (watch) => {
      watch.step = `${wait}: `;
      const task = { role: "read", seed: 1, capacity: 64, wait, then: "stay" } as const;
      const running = watch.run(task, LONG_MS);
      running.catch(() => {}); // what it says is said below
      await watch.until(() => watch.control("head") === watch.tail);
      const limit = await judgePolling(`${watch.step}[wait.mechanism] [wait.poll]`, () => {
        watch.place(whole(pattern(16)));
        watch.setControl("tail", watch.tail);
        return () => watch.control("head") === watch.tail;
      });
      if (limit !== undefined) why = limit;
      changeState(watch.field, watch.own, CLOSED);
      await running;
    });
  }
  return why;
}

async function deadlineOfCall(arena: Arena): Promise<void> {
  const { waits, offers } = (await arena.connect(0)).hello;
  const ways = offers?.includes("ways") ? waits.filter((wait) => wait !== "poll") : [undefined];
  for (const wait of ways) {
    await Watch.with(arena, "reader", { capacity: 4096 }, async (watch) => {
      watch.step = `${wait ?? "block"}: `;
      watch.place(firstOf(PART_SIZE * PARTS, pattern(PART_SIZE), { tag: 7 }));
      watch.publish();
      const reading = watch.session.read(TIMEOUT_MS, wait);
      let isOver = false;
      for (let index = 1; index < PARTS - 1; index++) {
        isOver = await settles(reading, PARTS_MS / PARTS);
        if (isOver) break;
        watch.place(part(pattern(PART_SIZE, index), { tag: 7, flags: 0 }));
        watch.publish();
      }
      const fact = `a call of ${TIMEOUT_MS} ms has not ended after ${PARTS_MS}`;
      watch.demand(isOver, `[wait.deadline] ${fact}`);
      watch.expect(listed(await reading), drained([]), "read");
    });
  }
}
