/**
 * Races over words that change all the time: what a reader has checked is what it uses. The ring
 * holds the same frames in every unit of its area, for ever, so that the testee reads as long as it
 * is told to; one word of each unit takes two values in turn.
 *
 * @module
 */

import { ATTACHED, firstOf, message, part, pattern, type Pipe } from "../../reference/builder.ts";
import { pipe, text, whole } from "../../reference/builder.ts";
import { toHex } from "../../reference/bytes.ts";
import type { Drained, Item, Optional } from "../../reference/case.ts";
import { buildFrame, extentOf, type FramePlan } from "../../reference/encode.ts";
import { compare } from "../../static/difference.ts";
import type { Arena } from "../arena.ts";
import { Transcript } from "../crc32.ts";
import { controlWord, recordWord } from "../peer.ts";
import type { Ran } from "../protocol.ts";
import type { Flip } from "../race_orders.ts";
import { type ReadingWay, readingWays, tries } from "./race.ts";
import { type Script } from "./stage.ts";
import { statesOf, Watch } from "./watch.ts";

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
// What stands behind the message where it is the short one.
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

/** A ring full of units, each with these frames and one that is skipped behind them. */
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

/** Has the messages read by commands that give them. Says which is none of those that may come. */
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
