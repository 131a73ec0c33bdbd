/**
 * What races are written with. What is to come between two loads of a testee has nanoseconds for
 * that; so the kit gives the testee work in that place, as much as it likes, acts from a thread of
 * its own (`race/orders.ts`), and tries at every offset in time.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, endFrame, firstOf, message } from "../../reference/builder.ts";
import { part, pattern, type Pipe, pipe, type PipePlan, text } from "../../reference/builder.ts";
import { utf8, whole } from "../../reference/builder.ts";
import { toHex } from "../../reference/bytes.ts";
import type { Drained, Item, Optional, Reason } from "../../reference/case.ts";
import { buildFrame, extentOf, failed, type FramePlan, put } from "../../reference/encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "../../reference/layout.ts";
import { compare } from "../../static/difference.ts";
import type { Read } from "../../static/driver.ts";
import type { Arena } from "../arena.ts";
import { Transcript } from "../crc32.ts";
import { changeState, controlWord, recordWord } from "../peer.ts";
import type { Hello, Ran, Wait } from "../protocol.ts";
import type { Flip, Step } from "../race/orders.ts";
import { counted, listed, type Script } from "./stage.ts";
import { statesOf, Watch } from "./watch.ts";

/** The smallest frame, and a kind that every reader skips. */
const SKIPPED_SIZE = limitOf("frame_align");
const SKIPPED_KIND = 200;

/** A pipe whose ring begins with so many frames that a reader skips, all of them published. */
export function pipeWithSkipped(plan: PipePlan & { capacity: number }, count: number): Pipe {
  const memory = pipe(plan);
  const { bytes, data, control } = memory;
  const kindAt = data + fieldOf("frame_header", "kind").offset;
  for (let index = 0; index < count; index++) bytes[kindAt + index * SKIPPED_SIZE] = SKIPPED_KIND;
  put(bytes, control, "ring_control", "tail", count * SKIPPED_SIZE);
  return memory;
}

/** Bytes of so many frames that are skipped. */
export function skippedSize(count: number): number {
  return count * SKIPPED_SIZE;
}

/**
 * Finds out when to act, so that it is in the middle of what a testee does: how long that takes is
 * nobody's to know, and changes with what else the machine does.
 */
export class Aim {
  #us: number;
  readonly #least: number;

  constructor(us: number, least = 5) {
    this.#us = us;
    this.#least = least;
  }

  /** When to act, from the beginning of a call on. */
  next(): number {
    return this.#us * (0.5 + Math.random());
  }

  /** Says how the last one was: -1 too early, 1 too late. */
  tell(how: number): void {
    const us = how < 0 ? this.#us * 1.3 : how > 0 ? this.#us / 1.25 : this.#us;
    this.#us = Math.min(Math.max(us, this.#least), 20_000);
  }
}

/** Counts tries up to a number; fewer where they take long, for the machine does other things. */
export function* tries(most: number, ms: number): Generator<number> {
  const least = most / 6;
  const deadline = performance.now() + ms;
  for (let index = 0; index < most; index++) {
    if (index >= least && performance.now() >= deadline) return;
    yield index;
  }
}

/** A way to read: as values or as they are, by which calls, and for how long. */
export interface ReadingWay {
  about: string;
  values: boolean;
  wait: Wait | undefined;
  waitMs: number;
  /** Whether a task can read in this way, and go on after a message that is lost. */
  canLose: boolean;
  /** Whether one command reads many messages. */
  isManyAtOnce: boolean;
}

/** Every way to read that a testee offers; `longMs` is how long a call waits that may. */
export function readingWays(hello: Hello, longMs: number): ReadingWay[] {
  const knowsWays = hello.offers?.includes("ways");
  const canLose = hello.offers?.includes("lossy") === true;
  const isManyAtOnce = hello.offers?.includes("read_many") === true;
  const waits = knowsWays ? hello.waits : [undefined];
  const kinds = hello.lacks.includes("values")
    ? [false]
    : hello.lacks.includes("bytes")
    ? [true]
    : [false, true];
  return kinds.flatMap((values) =>
    waits.flatMap((wait) =>
      (wait === "poll" ? [0] : [0, longMs]).map((waitMs) => {
        const how = [values ? "values" : "bytes", wait, waitMs === 0 && "without waiting"];
        return {
          about: how.filter(Boolean).join(", "),
          values,
          wait,
          waitMs,
          canLose,
          isManyAtOnce,
        };
      })
    )
  );
}

// Races over words that change all the time: what a reader has checked is what it uses. The ring
// holds the same frames in every unit of its area, for ever, so that the testee reads as long as it
// is told to; one word of each unit takes two values in turn.

const CAPACITY = 65_536;
/** Messages of a task, and of the commands that give messages. */
const COUNT = 10_000;
const GIVEN = 300;
const AT_ONCE = 100;
/** The same where each takes a command of its own. */
const ONE_BY_ONE = 10;
/** How long a call waits for the kit, whose thread may have to wait for a processor. */
const WAIT_MS = 10;
/** Long enough for everything to be found without a sleep. */
const SPIN_US = 1_000;
/** How long the tries of one kind may take, where the machine does other things. */
const TRIES_MS = 40;
/** The kit rings nobody here: where its thread has to wait for a processor, the testee polls. */
const POLLED = 0;
/** The rest of a unit. */
const EXTENSION = 200;

/** Something in a unit that changes. */
export interface Flipping {
  about: string;
  clause: string;
  unit: number;
  frames: FramePlan[];
  /**
   * Which word of the unit, and the values that it takes, which differ in one byte: a port may load
   * the bytes of a header one by one. Nothing where it is `tail`.
   */
  at?: number;
  values?: number[];
  /** Of the reader. */
  limit?: number;
  /** The message that may come, and the report that may come in its place. */
  item: Item;
  report?: string;
  /** What may end it: the fault that one of the values is. */
  fault?: string;
  /** Whether the messages must be looked at one by one; the other ones, where they differ. */
  others?: Item[];
  isDecoded?: boolean;
  times: number;
}

// With its header it takes all of a unit.
const PAYLOAD = pattern(48, 9);
// What stands after the message where it is the short one.
PAYLOAD.set(buildFrame({ kind: EXTENSION, payload: pattern(16) }), 16);
const [SHORT, FULL] = [12, 48].map((size) =>
  message({ tag: 9, hex: toHex(PAYLOAD.slice(0, size)) })
) as [Item, Item];
const WHOLE: FramePlan = whole(PAYLOAD, { tag: 9 });
const CHUNKS = [firstOf(16, pattern(8, 3), { tag: 3 }), part(pattern(8, 11), { tag: 3 })];
const CHUNKED = message({ tag: 3, hex: toHex(pattern(16, 3)) });
const LARGE = 2 ** 20;

const SIZE_AT = 0;
const SECOND_AT = 4;
const TAG_AT = 8;
const TOTAL_AT = 16;
/** A header's second word: kind, flags, codec. */
const second = (kind: number, flags: number, codec = 0) => kind + 256 * flags + 65_536 * codec;
/** The right value most of the time. */
const mostly = (right: number, wrong: number) => [right, right, right, right, wrong];

/** What costs one message at most: the testee reads on. */
const MILD: Flipping[] = [
  {
    clause: "frame.check",
    about: "a size below and above the limit",
    unit: 64,
    frames: [WHOLE],
    at: SIZE_AT,
    values: [48, 12],
    limit: 20,
    item: SHORT,
    report: "message.size",
    times: 6,
  },
  {
    clause: "frame.check",
    about: "a total below and above the limit",
    unit: 128,
    frames: CHUNKS,
    at: TOTAL_AT,
    values: [16, 16 + LARGE],
    item: CHUNKED,
    report: "message.size",
    times: 6,
  },
];

/** The same where a message has to be looked at. */
const TOLD: Flipping[] = [{
  clause: "frame.check",
  about: "a kind that is offered, and one that is not",
  unit: 64,
  frames: [WHOLE],
  at: SECOND_AT,
  values: [second(1, 3), second(3, 3)],
  item: FULL,
  others: [],
  report: "message.kind",
  times: 6,
}];

const DECODED: Flipping[] = [{
  clause: "frame.check",
  about: "a codec that is that of a text, or of JSON",
  unit: 32,
  frames: [whole("17", { tag: 4 })],
  at: SECOND_AT,
  values: [second(1, 3, 1), second(1, 3, 2)],
  item: text("17", 4),
  others: [message({ codec: 2, tag: 4, json: 17 })],
  isDecoded: true,
  times: 6,
}];

/** What a reader may find to be a fault, and then reads no more. */
const FATAL: Flipping[] = [
  {
    clause: "frame.check",
    about: "a size far beyond what is published",
    unit: 64,
    frames: [WHOLE],
    at: SIZE_AT,
    values: mostly(48, 48 + LARGE),
    item: FULL,
    fault: "frame.size",
    times: 9,
  },
  {
    clause: "frame.check",
    about: "flags that nobody may write",
    unit: 64,
    frames: [WHOLE],
    at: SECOND_AT,
    values: mostly(second(1, 3), second(1, 7)),
    item: FULL,
    fault: "frame.flags",
    times: 9,
  },
  {
    clause: "frame.check",
    about: "the tag of a later chunk",
    unit: 128,
    frames: CHUNKS,
    at: extentOf(CHUNKS[0]!.payload!.length) + TAG_AT,
    values: mostly(3, 4),
    item: CHUNKED,
    fault: "frame.sequence",
    times: 12,
  },
];

export const CURSOR: Flipping = {
  about: "a `tail` that now and then is none",
  clause: "ring.cursor",
  unit: 64,
  frames: [WHOLE],
  item: FULL,
  fault: "ring.cursor",
  times: 9,
};

/** Everything in a header. */
export const FLIPPINGS: readonly Flipping[] = [...MILD, ...TOLD, ...DECODED, ...FATAL];

export const FLIPPING_RACES: Script[] = [
  race(
    "race_header",
    "Sizes around the limit that change all the time: what is checked is used.",
    [
      "frame.check",
      "pipe.limit",
      "pipe.total_trust",
    ],
    MILD,
    ["bytes"],
  ),
  race(
    "race_kind",
    "A kind that changes all the time: it is offered, or it is not.",
    [
      "frame.check",
      "pipe.unknown_kind",
    ],
    TOLD,
    ["bytes"],
  ),
  race(
    "race_codec",
    "A codec that changes all the time: a message is of one or the other.",
    [
      "frame.check",
    ],
    DECODED,
    ["values"],
  ),
  race(
    "race_fault",
    "Fields that now and then are wrong: refused then, and harmless otherwise.",
    [
      "frame.check",
      "ring.fault",
      "ring.fault_stop",
    ],
    FATAL,
    ["bytes"],
  ),
  race(
    "race_tail",
    "A `tail` that now and then is none: it is loaded once, and then checked.",
    [
      "ring.cursor",
    ],
    [CURSOR],
    ["bytes"],
  ),
];

function race(
  id: string,
  about: string,
  clauses: string[],
  list: Flipping[],
  mayDecline: Optional[],
): Script {
  return {
    id: `scripted/${id}`,
    about,
    clauses,
    role: "reader",
    mayDecline,
    async play(arena) {
      const all = readingWays((await arena.connect(0)).hello, WAIT_MS);
      for (const flipping of list) {
        const memory = memoryOf(flipping, CAPACITY);
        const ways = all.filter(({ wait, waitMs, values }) =>
          (wait === "poll" || waitMs > 0) && (values || !flipping.isDecoded)
        );
        for (const time of tries(flipping.times, TRIES_MS)) {
          await flipOnce(arena, memory, flipping, ways[time % ways.length]!);
        }
      }
    },
  };
}

/** A ring full of units, each with these frames and one that is skipped after them. */
export function memoryOf({ unit, frames }: Flipping, capacity: number): Pipe {
  const one = frames.map(buildFrame);
  const used = one.reduce((sum, { length }) => sum + length, 0);
  if (used < unit) {
    one.push(buildFrame({ kind: EXTENSION, payload: new Uint8Array(unit - used - 16) }));
  }
  const memory = pipe({ capacity, states: statesOf("reader") });
  for (let at = 0; at < capacity;) {
    for (const bytes of one) {
      memory.bytes.set(bytes, memory.data + at);
      at += bytes.length;
    }
  }
  return memory;
}

async function flipOnce(
  arena: Arena,
  memory: Pipe,
  flipping: Flipping,
  way: ReadingWay,
): Promise<void> {
  const { unit, at, values = [0], limit = 4096 } = flipping;
  const order = { role: "reader", spin_us: SPIN_US, values: way.values, limit } as const;
  await Watch.on(arena, memory, order, async (watch) => {
    const { field, own, pipe: { data } } = watch;
    const [tail, head] = [controlWord(field, 0, "tail"), controlWord(field, 0, "head")];
    const ahead = CAPACITY - unit; // the reserve is kept
    watch.step = `${flipping.about} (${way.about}): `;
    const flip: Flip = {
      do: "flip",
      index: data + (at ?? 0) >> 2,
      count: at === undefined ? 0 : CAPACITY / unit,
      step: unit >> 2,
      values,
      feed: { tail, head, unit, ahead, ...(at === undefined && { wrong: CAPACITY }) },
      // A fault marks the kit.
      while: [recordWord(own, "state"), ATTACHED],
    };
    const racing = field.race(flip);
    await racing.begun;
    const fact = flipping.others === undefined && way.canLose
      ? await runThrough(watch, flipping, way)
      : await readThrough(watch, flipping, way);
    await racing.stop();
    watch.demand(fact === undefined, `[${flipping.clause}] ${fact}`);
  }, POLLED);
}

/** Has the messages read by a task, which gives a digest. Says what is wrong with it. */
async function runThrough(
  { session }: Watch,
  { item, report, fault }: Flipping,
  { wait = "block" }: ReadingWay,
): Promise<string | undefined> {
  const task = { role: "read", seed: 1, capacity: CAPACITY, count: COUNT, wait } as const;
  const ran = await session.run({ ...task, then: "stay", lossy: true }, WAIT_MS);
  const ends = ["done", "wait.timeout", ...fault === undefined ? [] : [fault]];
  if (!ends.includes(ran.end)) return `reading ended with ${ran.end}, not ${ends.join(" or ")}`;
  if (report === undefined && (ran.lost ?? 0) > 0) {
    return `reading reported ${ran.lost} lost messages, of which there is none`;
  }
  return isSame(ran, item) ? undefined : `${ran.count} messages were read, not all as written`;
}

/** Whether a digest is that of the same message again and again. */
function isSame({ count, size, crc32 }: Ran, item: Item): boolean {
  const transcript = new Transcript();
  const { tag, hex } = item as { tag: number; hex: string };
  const payload = Uint8Array.from(hex.split(/ +/), (pair) => parseInt(pair, 16));
  for (let index = 0; index < count; index++) transcript.add(tag, payload);
  return transcript.size === size && transcript.crc32 === crc32;
}

/** Has the messages read by commands that give them. Says which message is none that may come. */
async function readThrough(
  { session }: Watch,
  flipping: Flipping,
  { wait, waitMs, isManyAtOnce }: ReadingWay,
): Promise<string | undefined> {
  const atOnce = isManyAtOnce ? AT_ONCE : ONE_BY_ONE;
  const deadline = performance.now() + 2 * WAIT_MS;
  for (let count = 0; count < GIVEN && performance.now() < deadline;) {
    const got = await session.readMany(atOnce, waitMs, wait);
    count += got.items.length;
    const odd = oddIn(got, flipping);
    if (odd !== undefined) return odd;
    if (got.end === flipping.fault) break;
  }
  return undefined;
}

/** Says what there is among what was read that may not come of it. */
export function oddIn(got: Drained, { item, others = [], report, fault }: Flipping) {
  const items = [item, ...others, ...report === undefined ? [] : [{ report }]];
  const ends = [undefined, "nothing", ...fault === undefined ? [] : [fault]];
  const isEqual = (one: Item, other: Item) =>
    compare({ items: [one] }, { items: [other] }).length === 0;
  const odd = got.items.find((each) => !items.some((good) => isEqual(each, good)));
  if (odd === undefined && ends.includes(got.end)) return undefined;
  const what = JSON.stringify(odd ?? got.end);
  return `reading gave ${what}, not one of ${JSON.stringify([...items, ...ends])}`;
}

// Races with a reader: what the kit publishes, closes and overwrites while the testee is in a call.

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
const READ_TRIES_MS = 60;

/** One way in which a stream comes to an end after its last message. */
export interface Ending {
  about: string;
  /** What is published at the last moment. */
  frames: FramePlan[];
  /** What stands there already, after the frames that are skipped. */
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
        for (const attempt of tries(TRIES, READ_TRIES_MS)) {
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
        for (const attempt of tries(TRIES, READ_TRIES_MS)) {
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

/** Publishes more in the middle of a call. Returns 1 where that was after the call's load. */
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

// A race with a reader that decodes: a long text in which a few letters change all the time, into
// bytes that are no text, and back. What is delivered is what was checked.

/** Twelve kilobytes: long enough for something to happen in the middle. */
const LETTERS = "abcdefghijklmnop".repeat(768);
const TEXT_COUNT = 4;
const TEXT_WAIT_MS = 20;
const TEXT_TRIES = 8;
const [TEXT, JSON_TEXT] = [valueOf("codec", "text"), valueOf("codec", "json")];
/** Words of each text that change, and how far they are apart. */
const WORDS = 64;
const STEP = 40;
/** `0xff` is nowhere in UTF-8. */
const SPOILT = -1;

export const TEXT_RACES: Script[] = [{
  id: "scripted/race_text",
  about: "Texts that change all the time, into some that are none: decoded is what was checked.",
  clauses: ["codec.copy"],
  role: "reader",
  mayDecline: ["values"],
  async play(arena) {
    const ways = readingWays((await arena.connect(0)).hello, TEXT_WAIT_MS);
    const some = ways.filter(({ values, wait, waitMs }) =>
      values && (wait === "poll" || waitMs > 0)
    );
    for (const codec of [TEXT, JSON_TEXT]) {
      for (const attempt of tries(TEXT_TRIES, TRIES_MS)) {
        await spoilt(arena, codec, some[attempt % some.length]!);
      }
    }
  },
}];

async function spoilt(arena: Arena, codec: number, way: ReadingWay): Promise<void> {
  const text = codec === TEXT ? LETTERS : JSON.stringify(LETTERS);
  const frames = Array.from({ length: TEXT_COUNT }, () => whole(utf8(text), { codec }));
  const memory = pipe({ capacity: CAPACITY, states: statesOf("reader"), frames });
  const opening = { role: "reader", values: true, limit: CAPACITY } as const;
  await Watch.on(arena, memory, opening, async (watch) => {
    watch.step = `codec ${codec} (${way.about}): `;
    // In the middle of one of them; the others are as they were.
    const index = memory.at[1]! + sizeOf("frame_header") + 4096 >> 2;
    const flip: Flip = {
      do: "flip",
      index,
      count: WORDS,
      step: STEP,
      values: [SPOILT, Atomics.load(watch.field.words(), index)],
    };
    const racing = watch.field.race(flip);
    await racing.begun;
    const got = await watch.session.readMany(TEXT_COUNT, way.waitMs, way.wait);
    await racing.stop();
    const odd = got.items.findIndex((item) => !isGood(item));
    const count = got.items.length;
    watch.demand(odd < 0, `[codec.copy] message ${odd} of ${count} is not what anybody wrote`);
    watch.demand(count === TEXT_COUNT, `${count} messages were read, not ${TEXT_COUNT}`);
  });
}

/** A text of the letters that stand there at some time, or the report that it was none. */
function isGood(item: Item): boolean {
  if ("report" in item) return item.report === "message.text";
  return (item.text ?? item.json) === LETTERS;
}
