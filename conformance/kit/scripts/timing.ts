/**
 * Scripts of how long a testee sleeps or pauses at a time, where nothing wakes it.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, firstOf, message, part } from "../../reference/builder.ts";
import { pattern, VACANT, whole } from "../../reference/builder.ts";
import type { Result as Came } from "../../reference/case.ts";
import { failed, type FramePlan } from "../../reference/encode.ts";
import { limitOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { changeState, controlWord, recordWord } from "../peer.ts";
import type { Wait } from "../protocol.ts";
import type { Move } from "../race/orders.ts";
import { Wrong } from "../verdict.ts";
import { halted, whileHalted } from "./halts.ts";
import { counted, listed, type Script } from "./stage.ts";
import { judgePolling } from "./tight.ts";
import { rest, settles, Watch } from "./watch.ts";

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

// Scripts of a state that becomes final while a testee is about to sleep: it may be asleep already,
// or have looked for the last time before it asks to be rung.

type Role = "reader" | "writer";

const CAPACITY = 256;
/** How long a call may wait, in memory and on a file: far longer than the slices there. */
const STATES_LONG_MS = 2_500;
const LONG_ON_FILE_MS = 800;
const CLAUSES = ["wait.recheck", "pipe.close_frees"];
const ABOUT = "A state that becomes final before a sleep is not slept over.";

/** In memory that is handed over, the kit goes by the clock. */
export const STATE_RACES: Script[] = both("state_asleep", ABOUT, sleepsOver);
/** On a file, it acts at each load of a word. */
export const STATE_HALTS: Script[] = both("halt_state", ABOUT, haltsAtLoads).map(halted);

function both(
  id: string,
  about: string,
  play: (arena: Arena, role: Role) => Promise<void>,
): Script[] {
  return (["reader", "writer"] as const).map((role) => ({
    id: `scripted/${id}_${role}`,
    about,
    clauses: CLAUSES,
    role,
    play: (arena) => play(arena, role),
  }));
}

/** Whose state it is, and what the call must give. */
interface Ending {
  isOwn: boolean;
  state: number;
  /** Of a write, and, where it differs in nothing but its form, of a read. */
  must: string | { code: string; reason: "peer.terminated" };
}

const TERMINATED = failed("peer.terminated");
const ENDINGS: Ending[] = [
  { isOwn: false, state: CLOSED, must: "peer.closed" },
  { isOwn: false, state: TERMINATED, must: { code: "peer.failed", reason: "peer.terminated" } },
  { isOwn: true, state: TERMINATED, must: { code: "pipe.failed", reason: "peer.terminated" } },
];

/** Begins a call that has to wait: there is nothing to read, or no room to write. */
async function begin(
  { session }: Watch,
  role: Role,
  waitMs: number,
): Promise<() => Promise<Came>> {
  if (role === "reader") return async () => listed(await session.read(waitMs));
  for (let tag = 0; tag < 2; tag++) await session.write({ tag, hex: counted(80, tag) }, false);
  return () => session.write({ tag: 2, hex: counted(80, 2) }, true, waitMs);
}

function expected({ must }: Ending, role: Role): Came {
  if (role === "writer") return must;
  return typeof must === "string" ? drained([], must) : drained([], must.code, must.reason);
}

/** When the kit acts, from the beginning of the call on. */
const DELAYS_MS = [0, 4, 8];
/** What a wake may take on a machine that does other things, too; below every slice here. */
const STATES_SOON_MS = 600;
/** A machine may stand still for so long once; so often it does not. */
const TRIES = 3;

async function sleepsOver(arena: Arena, role: Role): Promise<void> {
  for (const ending of ENDINGS) {
    for (const delay of DELAYS_MS) {
      let isSoon = false;
      for (let time = 0; time < TRIES && !isSoon; time++) {
        await Watch.with(arena, role, { capacity: CAPACITY }, async (watch) => {
          watch.step = `${stepOf(ending)}, ${delay} ms after the call began: `;
          const came = (await begin(watch, role, STATES_LONG_MS))();
          await rest(delay);
          changeState(watch.field, ending.isOwn ? watch.other : watch.own, ending.state);
          isSoon = await settles(came, STATES_SOON_MS);
          const got = await came;
          if (isSoon) watch.expect(got, expected(ending, role), "the call");
          const fact = `[wait.recheck] it slept over that for ${STATES_SOON_MS} ms, ${TRIES} times`;
          watch.demand(isSoon || time < TRIES - 1, fact);
        });
      }
    }
  }
}

function stepOf({ isOwn, state }: Ending): string {
  return `${isOwn ? "its own" : "the peer's"} state ${state}`;
}

/** Loads of a word within the first round of a wait, at most. */
const LOADS = 6;
/** Within that, a call has come to all of them; and shorter than a slice. */
const ROUND_MS = 50;
/** Who sleeps over it does so to the end of its slice each time, which nobody else needs. */
const SLEPT_MS = 60;
const HALT_TRIES = 6;

async function haltsAtLoads(arena: Arena, role: Role): Promise<void> {
  for (const ending of ENDINGS) {
    for (const word of ["cursor", "own", "peer"] as const) {
      for (let at = 0; at < LOADS; at++) {
        if (!await haltsAtLoad(arena, role, ending, word, at)) break;
      }
    }
  }
}

/** Returns whether there is such a load. */
async function haltsAtLoad(
  arena: Arena,
  role: Role,
  ending: Ending,
  word: "cursor" | "own" | "peer",
  at: number,
): Promise<boolean> {
  let isThere = true;
  let isSoon = false;
  for (let time = 0; time < HALT_TRIES && isThere && !isSoon; time++) {
    await Watch.with(arena, role, { capacity: CAPACITY }, async (watch) => {
      const { field, own, other } = watch;
      watch.step = `${stepOf(ending)}, at load ${at} of ${nameOf(word)}: `;
      const call = await begin(watch, role, LONG_ON_FILE_MS);
      const endpoint = ending.isOwn ? other : own;
      const state = recordWord(endpoint, "state");
      const cursor = controlWord(field, 0, role === "reader" ? "tail" : "head");
      const index = word === "cursor" ? cursor : recordWord(word === "own" ? other : own, "state");
      const steps: Move["steps"] = [
        { store: [[state, ending.state]] },
        { add: [recordWord(other, "bell"), 1] },
      ];
      const isFinal = () => watch.record(endpoint, "state") === ending.state;
      let ms = 0;
      const plan = { words: [index], moves: [{ word: 0, at, steps }] };
      const { got } = await whileHalted(field, plan, async () => {
        const came = call();
        isThere = await watch.until(isFinal, ROUND_MS);
        const begun = performance.now();
        if (!isThere) changeState(field, endpoint, ending.state);
        const result = await came;
        ms = performance.now() - begun;
        return result;
      });
      isSoon = ms < SLEPT_MS;
      if (isSoon) watch.expect(got, expected(ending, role), "the call");
      const isLast = time === HALT_TRIES - 1 && isThere;
      const fact = `[wait.recheck] it slept over that, ${HALT_TRIES} times`;
      watch.demand(isSoon || !isLast, fact);
    });
  }
  return isThere;
}

function nameOf(word: "cursor" | "own" | "peer"): string {
  return word === "cursor"
    ? "the peer's cursor"
    : `${word === "own" ? "its own" : "the peer's"} state`;
}
