/**
 * Scripts of a state that becomes final while a testee is about to sleep: it may be asleep already,
 * or have looked for the last time before it asks to be rung.
 *
 * @module
 */

import { CLOSED, drained } from "../../reference/builder.ts";
import type { Result as Came } from "../../reference/case.ts";
import { failed } from "../../reference/encode.ts";
import type { Arena } from "../arena.ts";
import { changeState, controlWord, recordWord } from "../peer.ts";
import type { Move } from "../race_orders.ts";
import { halted, whileHalted } from "./halts.ts";
import { counted, listed, type Script } from "./stage.ts";
import { rest, settles, Watch } from "./watch.ts";

type Role = "reader" | "writer";

const CAPACITY = 256;
/** How long a call may wait, in memory and on a file: far longer than the slices there. */
const LONG_MS = 2_500;
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
const SOON_MS = 600;
/** A machine may stand still for so long once; so often it does not. */
const TRIES = 3;

async function sleepsOver(arena: Arena, role: Role): Promise<void> {
  for (const ending of ENDINGS) {
    for (const delay of DELAYS_MS) {
      let isSoon = false;
      for (let time = 0; time < TRIES && !isSoon; time++) {
        await Watch.with(arena, role, { capacity: CAPACITY }, async (watch) => {
          watch.step = `${stepOf(ending)}, ${delay} ms after the call began: `;
          const came = (await begin(watch, role, LONG_MS))();
          await rest(delay);
          changeState(watch.field, ending.isOwn ? watch.other : watch.own, ending.state);
          isSoon = await settles(came, SOON_MS);
          const got = await came;
          if (isSoon) watch.expect(got, expected(ending, role), "the call");
          const fact = `[wait.recheck] it slept over that for ${SOON_MS} ms, ${TRIES} times`;
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
