/**
 * Scripts of the moments in which a wake can be lost: between a look and a request, between a
 * request and a sleep, between a cursor and the look at who asks. Each is some nanoseconds wide;
 * the kit acts in it some of many thousand times.
 *
 * @module
 */

import type { Hello, Wait } from "../protocol.ts";
import { setApart } from "../race/processors.ts";
import { Wrong } from "../verdict.ts";
import type { Script } from "./stage.ts";
import { Dial, Tight } from "./tight.ts";
import { Watch } from "./watch.ts";

type Arena = Parameters<Script["play"]>[0];
type Role = "reader" | "writer";

/** Some messages of the testee's work; a writer fills it soon. */
const CAPACITY = 1024;
/**
 * A sweep is over when so many tries were too early and so many too late for the moment: a fault
 * takes a fifth of them at most, measured. Or else after so many tries, or so long; few show
 * nothing.
 */
const EACH_SIDE = 1_000;
const TRIES = 12_000;
const TRIES_MIN = 100;
/** Rings of the sweep that gives nothing; a fault takes a thousand or two. */
const RINGS = 20_000;
const RINGS_STEP = 500;
/**
 * What is lost so often may be the machine's doing, a thread that stood still for 80 ms just there;
 * a third time it is not, for that is a moment of less than a microsecond. So who has lost one or
 * two is swept once more, and so is who has shown nothing.
 */
const FEW = 2;
/** So much longer, if it has lost something: on a busy machine each takes half a second. */
const LONGER = 4;
/** What the order of stores alone shows is wrong at once, and takes more tries to be seen. */
const ORDER_EACH_SIDE = 3_000;
const ORDER_TRIES = 20_000;
/**
 * How long the kit sleeps for a ring that comes within microseconds, and by how much that may be
 * longer: who is kept from running after it may find a ring that came meanwhile.
 */
const NAP_MS = 20;
const NAP_LATE_MS = 2;

/** Milliseconds of a sweep, and of one for the order of stores; a test may have less time. */
export const patience: Patience = { sweepMs: 1_000, orderSweepMs: 2_000 };

/** How long sweeps may take where a thousand tries on each side do not end them before. */
export interface Patience {
  sweepMs: number;
  orderSweepMs: number;
}

/** That of a brief run: on a machine that is not busy, enough for nearly all tries. */
export const BRIEF: Patience = { sweepMs: 250, orderSweepMs: 500 };

export const WINDOW_SCRIPTS: Script[] = [
  ...both(
    "asked_too_late",
    "What the peer gives between the look and the asking is not slept over.",
    ["wait.recheck", "wait.store_order"],
    askedTooLate,
  ),
  ...both(
    "rung_too_early",
    "A ring between the asking and the sleep ends that sleep.",
    ["wait.bell_first", "wait.recheck"],
    rungTooEarly,
  ),
  ...both(
    "looked_too_early",
    "Who asks just when the cursor is stored is rung.",
    ["wait.store_order", "wait.exchange"],
    lookedTooEarly,
  ),
  ...both(
    "notified_too_early",
    "Who goes to sleep just when the bell is rung is woken.",
    ["wait.ring"],
    notifiedTooEarly,
  ),
];

/** What a sweep has found. */
interface Found {
  /** What is wrong if it came more than a few times, and how often it did. */
  fact: string;
  count: number;
  tries: number;
  /** How often it may come. */
  few?: number;
  /** Whether the testee may have seen more of these than the kit, at the end of its slice. */
  isSlept?: boolean;
  dial?: Dial;
}

/** Sweeps, so many times as long as else, or says why that cannot be. */
type Play = (tight: Tight, watch: Watch, longer: number) => Promise<Found | string>;

/** For who reads and for who writes. */
function both(id: string, about: string, clauses: string[], play: Play): Script[] {
  return (["reader", "writer"] as const).map((role) => ({
    id: `scripted/${id}_${role}`,
    about,
    clauses,
    role,
    play: (arena) => sweep(arena, role, play),
  }));
}

async function sweep(arena: Arena, role: Role, play: Play): Promise<string | void> {
  const { hello } = await arena.connect(0);
  let why: string | undefined;
  for (const wait of waitsOf(hello)) {
    await Watch.with(arena, role, { capacity: CAPACITY }, async (watch) => {
      watch.step = `${wait}: `;
      const tight = await Tight.begin(watch, role, wait);
      const together = setApart(watch.threads());
      let found: Found | string;
      try {
        found = await playTwice(tight, watch, play);
      } finally {
        together();
      }
      const { late_wakes = 0 } = await tight.end();
      const limit = typeof found === "string" ? found : judge(found, late_wakes, watch.step);
      if (limit !== undefined) why = `${watch.step}${limit}`;
    });
  }
  return why;
}

/** Once more where the first leaves a doubt. */
async function playTwice(tight: Tight, watch: Watch, play: Play): Promise<Found | string> {
  const found = await play(tight, watch, 1);
  if (typeof found === "string" || !isDoubtful(found)) return found;
  const again = await play(tight, watch, found.count > 0 ? LONGER : 1);
  if (typeof again === "string") return again;
  return { ...again, count: found.count + again.count, tries: found.tries + again.tries };
}

/** Whether it may have been the machine's doing, that something was lost or that nothing shows. */
function isDoubtful(found: Found): boolean {
  const { count, few = FEW } = found;
  return count <= few && (count > 0 || limitOf(found) !== undefined);
}

function waitsOf({ waits }: Hello): Wait[] {
  return waits.filter((wait) => wait !== "poll");
}

async function askedTooLate(tight: Tight, _: Watch, longer: number): Promise<Found> {
  const dial = new Dial();
  let late = 0;
  const tries = await tight.repeat(TRIES, longer * patience.sweepMs, () => {
    tight.askNext(); // its ring takes the testee so long that the kit is there before it looks
    tight.giveOne();
    dial.pass();
    dial.note(!tight.giveNext());
    if (!tight.awaitTaken()) late++;
    tight.unask();
    return late > FEW || dial.hasSeen(EACH_SIDE);
  });
  const fact = "[wait.recheck] it slept though there was something for it";
  return { fact, count: late, tries, isSlept: true, dial };
}

async function rungTooEarly(tight: Tight, _: Watch, longer: number): Promise<Found> {
  let [late, rings] = [0, 0];
  await tight.repeat(RINGS / RINGS_STEP, longer * patience.sweepMs, () => {
    for (let round = 0; round < RINGS_STEP; round++) {
      if (tight.ring()) {
        rings++;
        continue;
      }
      tight.giveNext();
      if (!tight.awaitTaken()) late++;
      break;
    }
    return late > FEW;
  });
  return {
    fact: "[wait.bell_first] it slept over a ring",
    count: late,
    tries: rings,
    isSlept: true,
  };
}

async function lookedTooEarly(tight: Tight, _: Watch, longer: number): Promise<Found> {
  const dial = new Dial();
  let missed = 0;
  const tries = await tight.repeat(ORDER_TRIES, longer * patience.orderSweepMs, () => {
    const bell = tight.prepare(false);
    dial.pass();
    const { isDone, isOver } = tight.ask();
    dial.note(!isDone);
    if (isOver) tight.awaitIdle();
    else if (!tight.awaitRing(bell)) missed++;
    return missed > 0 || dial.hasSeen(ORDER_EACH_SIDE);
  });
  const fact = "[wait.store_order] it did not ring who had asked before it stored";
  return { fact, count: missed, few: 0, tries, dial };
}

async function notifiedTooEarly(
  tight: Tight,
  { field }: Watch,
  longer: number,
): Promise<Found | string> {
  if (field.sleepHere === undefined) return "the kit may not block here";
  const dial = new Dial();
  let missed = 0;
  const tries = await tight.repeat(TRIES, longer * patience.sweepMs, () => {
    const bell = tight.prepare(true);
    dial.pass();
    const begun = performance.now();
    const slept = tight.sleep(bell, NAP_MS);
    // Who has moved the bell and was then kept from running notifies later, and is not idle yet.
    const isOver = tight.isIdle && performance.now() - begun < NAP_MS + NAP_LATE_MS;
    if (slept !== "timed-out") dial.note(slept === "ok");
    else if (isOver && tight.bell() !== bell) missed++;
    tight.awaitIdle();
    return missed > FEW || dial.hasSeen(EACH_SIDE);
  });
  const fact = "[wait.ring] its peer's bell had moved and nobody was woken";
  return { fact, count: missed, tries, dial };
}

/** Throws where it came more than a few times; says where that would not have shown. */
function judge(found: Found, lateWakes: number, step: string): string | undefined {
  const { fact, few = FEW, tries, isSlept } = found;
  const count = found.count + (isSlept ? lateWakes : 0);
  if (count > few) throw new Wrong(`${step}${fact}: ${count} of ${tries} times`);
  return limitOf(found);
}

/** Why nothing shows where nothing was lost. */
function limitOf({ tries, dial }: Found): string | undefined {
  if (tries < TRIES_MIN) return `this machine is too slow for it: ${tries} tries`;
  if (dial?.isThere === false) return `the kit never comes close to that moment here`;
  return undefined;
}
