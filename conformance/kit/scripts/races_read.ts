/**
 * Races with a reader: what the kit publishes, closes and overwrites while the testee is in a call.
 *
 * @module
 */

import { CLOSED, drained, endFrame, firstOf, message } from "../../reference/builder.ts";
import { part, pattern, type Pipe, whole } from "../../reference/builder.ts";
import type { Drained, Item, Reason } from "../../reference/case.ts";
import { failed, type FramePlan } from "../../reference/encode.ts";
import type { Read } from "../../static/driver.ts";
import type { Arena } from "../arena.ts";
import { changeState, controlWord, recordWord } from "../peer.ts";
import type { Step } from "../race_orders.ts";
import { Aim, pipeWithSkipped, type ReadingWay, readingWays, skippedSize, tries } from "./race.ts";
import { counted, listed, type Script } from "./stage.ts";
import { statesOf, Watch } from "./watch.ts";

/** From the largest on; a testee gets one through which it comes in time. */
const CAPACITIES = [524_288, 32_768, 2_048, 512];
/** What a call over all that is skipped may take, and what else there is to a command. */
const CALL_MAX_MS = 25;
/** How long a call may wait. */
const LONG_MS = 3_000;
/** What a call over all that is skipped takes at first guess, until the message has got there. */
const CALL_US = 300;

/** Tries of each way to read, and how long they may take. */
const TRIES = 12;
const TRIES_MS = 60;

/** One way in which a stream comes to an end behind its last message. */
export interface Ending {
  about: string;
  /** What is published at the last moment. */
  frames: FramePlan[];
  /** What stands there already, behind the frames that are skipped. */
  before?: FramePlan[];
  state: number;
  /** Whether it is the testee's own state. */
  isOwn?: boolean;
  items: Item[];
  end: string;
  reason?: Reason;
}

const LAST = whole(pattern(20, 7), { tag: 7 });
const LAST_ITEM = message({ tag: 7, hex: counted(20, 7) });

export const ENDINGS: readonly Ending[] = [
  { about: "closes", frames: [LAST], state: CLOSED, items: [LAST_ITEM], end: "peer.closed" },
  {
    about: "ends and closes",
    frames: [LAST, endFrame()],
    state: CLOSED,
    items: [LAST_ITEM],
    end: "ended",
  },
  { about: "only ends, and closes", frames: [endFrame()], state: CLOSED, items: [], end: "ended" },
  {
    about: "closes behind the last part",
    before: [firstOf(40, pattern(20, 3), { tag: 3 })],
    frames: [part(pattern(20, 23), { tag: 3 })],
    state: CLOSED,
    items: [message({ tag: 3, hex: counted(40, 3) })],
    end: "peer.closed",
  },
  {
    about: "is marked failed",
    frames: [LAST],
    state: failed("peer.terminated"),
    items: [LAST_ITEM],
    end: "peer.failed",
    reason: "peer.terminated",
  },
  {
    about: "goes on, and the reader itself is closed by a supervisor",
    frames: [LAST],
    state: CLOSED,
    isOwn: true,
    items: [LAST_ITEM],
    end: "pipe.closed",
  },
];

export const READING_RACES: Script[] = [
  {
    id: "scripted/race_final_state",
    about: "A state becomes final just behind the last message, while a call is at work.",
    clauses: ["pipe.look_again", "pipe.drain", "pipe.end_once"],
    role: "reader",
    async play(arena) {
      const memory = await skippedBy(arena);
      let nth = 0;
      for (const way of readingWays((await arena.connect(0)).hello, LONG_MS)) {
        const aim = new Aim(CALL_US);
        for (const attempt of tries(TRIES, TRIES_MS)) {
          const ending = ENDINGS[nth++ % ENDINGS.length]!;
          await finalState(arena, memory, ending, way, when(aim, attempt));
        }
      }
    },
  },
  {
    id: "scripted/race_one_load",
    about: "More is published while a call that does not wait is at work: it is left to the next.",
    clauses: ["ring.one_load", "ring.release_all"],
    role: "reader",
    async play(arena) {
      const memory = await skippedBy(arena);
      let seen = 0;
      for (const way of readingWays((await arena.connect(0)).hello, 0)) {
        const aim = new Aim(CALL_US);
        for (const attempt of tries(TRIES, TRIES_MS)) {
          seen += await moreMeanwhile(arena, memory, way, when(aim, attempt));
        }
      }
      // Who gives room back at the end of a call only does not show how far it is.
      return seen > 0 ? undefined : "`head` was never seen to move within a call";
    },
  },
];

/** Three quarters of a ring: a reader gives some of it back before it is through. */
function skippedIn(capacity: number): number {
  return 3 * capacity / 4 / skippedSize(1);
}

/** A ring that takes a while to be gone through, but no longer than the kit has time for. */
async function skippedBy(arena: Arena): Promise<Pipe> {
  let usPerFrame = 0;
  for (const capacity of CAPACITIES.toReversed()) {
    const count = skippedIn(capacity);
    const memory = pipeWithSkipped({ capacity, states: statesOf("reader") }, count);
    if (capacity === CAPACITIES[0]) return memory;
    await Watch.on(arena, memory, { role: "reader" }, async ({ session }) => {
      const begun = performance.now();
      await session.read(0);
      usPerFrame = 1000 * (performance.now() - begun) / count;
    });
    const larger = CAPACITIES[CAPACITIES.indexOf(capacity) - 1]!;
    if (usPerFrame * skippedIn(larger) > 1000 * CALL_MAX_MS) return memory;
  }
  throw new Error("there is a largest one");
}

/** When the kit acts: how its thread waits for that, and what is to be learned from how it was. */
interface Moment {
  steps(head: number): Step[];
  tell(how: number): void;
}

/** By turns: as soon as it is seen that a reader is on its way, or when it probably is. */
function when(aim: Aim, attempt: number): Moment {
  if (attempt % 2 === 0) return { steps: (head) => [{ advance: [head, 0] }], tell: () => {} };
  return { steps: () => [{ pauseUs: aim.next() }], tell: (how) => aim.tell(how) };
}

/** Publishes and closes, in the middle of a call that is on its way over what it skips. */
async function finalState(
  arena: Arena,
  memory: Pipe,
  ending: Ending,
  { about, values, wait, waitMs }: ReadingWay,
  moment: Moment,
): Promise<void> {
  await Watch.on(arena, memory, { role: "reader", values }, async (watch) => {
    const { field, session, own, other } = watch;
    watch.step = `a writer that ${ending.about} (${about}): `;
    watch.tail = watch.control("tail");
    watch.place(...ending.before ?? []);
    watch.setControl("tail", watch.tail);
    const begun = watch.tail;
    watch.place(...ending.frames);
    const endpoint = ending.isOwn ? other : own;
    const race = field.race({
      do: "steps",
      steps: [
        ...moment.steps(controlWord(field, 0, "head")),
        { load: controlWord(field, 0, "head") },
        {
          store: [
            [controlWord(field, 0, "tail"), watch.tail],
            [recordWord(endpoint, "state"), ending.state],
          ],
        },
      ],
    });
    const reading = session.read(waitMs, wait);
    const [head] = await race.done;
    moment.tell(head === 0 ? -1 : head! >= begun ? 1 : 0);
    changeState(field, endpoint, ending.state);
    const must = drained(ending.items, ending.end, ending.reason);
    const got = await readAll(watch, await reading, wait);
    watch.expect(got, must, "[pipe.look_again] read");
  });
}

/** Everything from a first read on, until nothing more is to come. */
export async function readAll(
  { session }: Watch,
  first: Read,
  wait: ReadingWay["wait"],
): Promise<Drained> {
  const items: Item[] = [];
  let last = first;
  for (let reads = 0; reads < 8; reads++) {
    if ("item" in last) items.push(last.item);
    else if (last.end !== "nothing") break;
    last = await session.read(LONG_MS, wait);
  }
  return "end" in last ? { items, ...last } : { items };
}

/** Publishes more in the middle of a call. Returns 1 where that was behind the call's load. */
async function moreMeanwhile(
  arena: Arena,
  memory: Pipe,
  { about, values, wait, waitMs }: ReadingWay,
  moment: Moment,
): Promise<number> {
  let isBehind = false;
  await Watch.on(arena, memory, { role: "reader", values }, async (watch) => {
    const { field, session } = watch;
    watch.step = `${about}: `;
    watch.tail = watch.control("tail");
    const begun = watch.tail;
    watch.place(LAST);
    const race = field.race({
      do: "steps",
      steps: [
        ...moment.steps(controlWord(field, 0, "head")),
        { load: controlWord(field, 0, "head") },
        { store: [[controlWord(field, 0, "tail"), watch.tail]] },
      ],
    });
    const reading = session.read(waitMs, wait);
    const [head] = await race.done;
    moment.tell(head === 0 ? -1 : head! >= begun ? 1 : 0);
    const first = await reading;
    // Something was given back already, so `tail` had been loaded; and the call was not over.
    isBehind = head! > 0 && head! < begun;
    if (isBehind) watch.expect(listed(first), drained([]), "[ring.one_load] the call");
    const second = "item" in first ? first : await session.read(LONG_MS, wait);
    watch.expect(listed(second), { items: [LAST_ITEM] }, "the next read");
  });
  return Number(isBehind);
}
