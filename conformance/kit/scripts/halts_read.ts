/**
 * What a reader does between two accesses of one word.
 *
 * @module
 */

import { drained, firstOf, message, part, pattern, type Pipe } from "../../reference/builder.ts";
import { pipe, text, utf8, whole } from "../../reference/builder.ts";
import { toHex } from "../../reference/bytes.ts";
import type { Item } from "../../reference/case.ts";
import { buildFrame, type FramePlan } from "../../reference/encode.ts";
import { valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { changeState, controlWord, recordWord } from "../peer.ts";
import { Cannot } from "../racer.ts";
import { halted, whileHalted } from "./halts.ts";
import { CURSOR, type Flipping, FLIPPINGS, memoryOf, oddIn } from "./races_flip.ts";
import { type Ending, ENDINGS, readAll } from "./races_read.ts";
import { pipeWithSkipped, type ReadingWay, readingWays, skippedSize } from "./race.ts";
import { listed, type Script } from "./stage.ts";
import { statesOf, Watch } from "./watch.ts";

const CAPACITY = 4096;
const LONG_MS = 3_000;
/** How long a call waits that has something to read. */
const WAIT_MS = 30;

export const READING_HALTS: Script[] = [
  script(
    "halt_header",
    "A field of a header that changes whenever it is loaded: what is checked is used.",
    ["frame.check", "pipe.limit", "pipe.total_trust", "pipe.unknown_kind"],
    async (arena) => {
      for (const flipping of FLIPPINGS) await flips(arena, flipping);
    },
  ),
  script(
    "halt_tail",
    "A `tail` that changes whenever it is loaded, into one that cannot be.",
    ["ring.cursor"],
    (arena) => flips(arena, CURSOR),
  ),
  script(
    "halt_final_state",
    "A state becomes final just behind the last message, between two loads of any call.",
    ["pipe.look_again", "pipe.drain", "pipe.end_once"],
    async (arena) => {
      const memory = pipe({ capacity: CAPACITY, states: statesOf("reader") });
      const ways = await waysOf(arena, LONG_MS);
      let nth = 0;
      for (const way of ways) {
        for (const word of ["tail", "own", "other"] as const) {
          for (const at of [0, 1, 2]) {
            const ending = ENDINGS[nth++ % ENDINGS.length]!;
            await finalState(arena, memory, ending, way, word, at);
          }
        }
      }
    },
  ),
  script(
    "halt_one_load",
    "A `tail` that moves on whenever it is loaded: a call that does not wait comes to an end.",
    ["ring.one_load"],
    async (arena) => {
      for (const way of await waysOf(arena, 0)) await moreAtEachLoad(arena, way);
    },
  ),
  script(
    "halt_release",
    "What is given back is overwritten at once: it was copied before.",
    ["ring.release", "ring.head_owner"],
    async (arena) => {
      for (const way of await waysOf(arena, WAIT_MS)) await overwritten(arena, way);
    },
  ),
  {
    ...script(
      "halt_text",
      "A text that is none any more when it is loaded again: decoded is what was checked.",
      ["codec.copy"],
      async (arena) => {
        for (const way of await waysOf(arena, WAIT_MS)) {
          for (const spoilt of SPOILT) if (way.values) await spoil(arena, spoilt, way);
        }
      },
    ),
    mayDecline: ["values"],
  },
];

function script(
  id: string,
  about: string,
  clauses: string[],
  play: (arena: Arena) => Promise<void>,
): Script {
  return halted({ id: `scripted/${id}`, about, clauses, role: "reader", play });
}

/** The ways in which a testee reads: those that wait do so for so long. */
async function waysOf(arena: Arena, waitMs: number): Promise<ReadingWay[]> {
  const ways = readingWays((await arena.connect(0)).hello, waitMs);
  return ways.filter((way) => way.waitMs === (way.wait === "poll" ? 0 : waitMs));
}

/** A change at every load; and one, at one load of a few, for whoever loads it three times. */
const CHANGES: readonly (number | undefined)[] = [undefined, 0, 1, 2, 3];

async function flips(arena: Arena, flipping: Flipping): Promise<void> {
  const memory = memoryOf(flipping, 1024);
  let loads = 0;
  for (const way of await waysOf(arena, WAIT_MS)) {
    if (flipping.isDecoded && !way.values) continue;
    for (const first of [0, 1]) {
      for (const at of CHANGES) loads += await flip(arena, memory, flipping, way, first, at);
    }
  }
  // A word that nobody is seen to load shows nothing.
  if (loads === 0) throw new Cannot(`${flipping.about}: the kit does not see the testee load it`);
}

/** Gives how often the word was loaded. */
async function flip(
  arena: Arena,
  memory: Pipe,
  flipping: Flipping,
  way: ReadingWay,
  first: number,
  change: number | undefined,
): Promise<number> {
  const { unit, at, values, limit = 4096, clause } = flipping;
  const opening = { role: "reader", values: way.values, limit } as const;
  let loads = 0;
  await Watch.on(arena, memory, opening, async (watch) => {
    watch.step = `${flipping.about} (${way.about}): `;
    watch.setControl("tail", 3 * unit);
    const tail = controlWord(watch.field, 0, "tail");
    // The middle one of three changes, or the cursor.
    const index = at === undefined ? tail : watch.pipe.data + unit + at >> 2;
    const both = values ?? [3 * unit, 3 * unit + 2 ** 30];
    const turn = { index, values: [both.at(first)!, both.at(first - 1)!] };
    Atomics.store(watch.field.words(), index, turn.values[0]!);
    const move = { word: 0, ...change !== undefined && { at: change }, steps: [{ turn }] };
    // Whoever takes the wrong cursor for a right one finds frames behind the last.
    const count = at === undefined ? 6 : 3;
    const reading = () => watch.session.readMany(count, way.waitMs, way.wait);
    const plan = { words: [index], moves: [move] };
    const { got, counts: [seen = 0] } = await whileHalted(watch.field, plan, reading);
    loads = seen;
    const odd = oddIn(got, flipping);
    watch.demand(odd === undefined, `[${clause}] ${odd}`);
    const { length } = got.items;
    watch.demand(length <= 3, `[${clause}] ${length} messages came of 3 that were published`);
  });
  return loads;
}

/** Publishes and closes behind one of the loads of a word in a call. */
async function finalState(
  arena: Arena,
  memory: Pipe,
  ending: Ending,
  { about, values, wait, waitMs }: ReadingWay,
  word: "tail" | "own" | "other",
  at: number,
): Promise<void> {
  await Watch.on(arena, memory, { role: "reader", values }, async (watch) => {
    const { field, session, own, other } = watch;
    const which = word === "tail" ? "`tail`" : `the state of ${word === "own" ? own : other}`;
    watch.step = `a writer that ${ending.about}, at load ${at} of ${which} (${about}): `;
    watch.place(...ending.before ?? []);
    watch.setControl("tail", watch.tail);
    watch.place(...ending.frames);
    const endpoint = ending.isOwn ? other : own;
    const tail = controlWord(field, 0, "tail");
    const stateAt = recordWord(endpoint, "state");
    const stores: [number, number][] = [[tail, watch.tail], [stateAt, ending.state]];
    const index = word === "tail" ? tail : recordWord(word === "own" ? own : other, "state");
    const plan = { words: [index], moves: [{ word: 0, at, steps: [{ store: stores }] }] };
    const { got: first } = await whileHalted(field, plan, async () => {
      const reading = session.read(waitMs, wait);
      // A call that waits is woken when it has come to that, or when it has slept for long enough.
      const isFinal = () => watch.record(endpoint, "state") === ending.state;
      if (waitMs > 0) await watch.until(isFinal, 20);
      if (waitMs > 0 && !isFinal()) finish();
      if (isFinal()) changeState(field, endpoint, ending.state);
      return await reading;
    });
    // Such a load there was not.
    if (watch.record(endpoint, "state") !== ending.state) finish();
    function finish(): void {
      for (const [index, value] of stores) Atomics.store(field.words(), index, value);
    }
    changeState(field, endpoint, ending.state);
    const must = drained(ending.items, ending.end, ending.reason);
    watch.expect(await readAll(watch, first, wait), must, "[pipe.look_again] read");
  });
}

/** More loads than any call needs, and what it may have gone over then. */
const LOADS = 60;
const GONE_OVER = 5;

async function moreAtEachLoad(arena: Arena, { about, values, wait }: ReadingWay): Promise<void> {
  const memory = pipeWithSkipped({ capacity: CAPACITY, states: statesOf("reader") }, LOADS + 2);
  await Watch.on(arena, memory, { role: "reader", values }, async (watch) => {
    watch.step = `${about}: `;
    watch.setControl("tail", skippedSize(1));
    const tail = controlWord(watch.field, 0, "tail");
    const moves = Array.from({ length: LOADS }, (_, at) => ({
      word: 0,
      at,
      steps: [{ add: [tail, skippedSize(1)] as [number, number] }],
    }));
    const reading = () => watch.session.read(0, wait);
    await whileHalted(watch.field, { words: [tail], moves }, reading);
    const count = watch.control("head") / skippedSize(1);
    watch.demand(
      count <= GONE_OVER,
      `[ring.one_load] one call went over ${count} frames, each published at another load`,
    );
  });
}

async function overwritten(arena: Arena, { about, values, wait, waitMs }: ReadingWay) {
  for (const [size, isInParts] of [[20, false], [500, false], [500, true]] as const) {
    const payload = pattern(size, 7);
    const half = size / 2;
    const parts = [
      firstOf(size, payload.slice(0, half), { tag: 5 }),
      part(payload.slice(half), { tag: 5 }),
    ];
    const frames = isInParts ? parts : [whole(payload, { tag: 5 })];
    const memory = pipe({ capacity: CAPACITY, states: statesOf("reader"), frames });
    await Watch.on(arena, memory, { role: "reader", values }, async (watch) => {
      watch.step = `${size} bytes${isInParts ? " in two parts" : ""} (${about}): `;
      const [data, tail] = [watch.pipe.data >> 2, watch.control("tail")];
      const fill = { from: data, to: data + (tail >> 2), value: 0x5a5a5a5a };
      const plan = {
        words: [controlWord(watch.field, 0, "head")],
        stores: true,
        moves: [{ word: 0, equals: tail, steps: [{ fill }] }],
      };
      const reading = () => watch.session.read(waitMs, wait);
      const { got } = await whileHalted(watch.field, plan, reading);
      const item = message({ tag: 5, hex: toHex(payload) });
      watch.expect(listed(got), { items: [item] }, "[ring.release] read");
    });
  }
}

/** A message of which four bytes change into some that are no text. */
interface Spoilt {
  about: string;
  frame: FramePlan;
  /** Where in the payload they begin, a multiple of 4. */
  at: number;
  items: Item[];
  report: string;
}

/** So long that nobody takes it in at once, and so that the bytes are far from both ends. */
const LETTERS = "abcdefghijklmnop".repeat(20);
const JSON_CODEC = valueOf("codec", "json");
const BATCH = valueOf("codec", "json_batch");

const SPOILT: Spoilt[] = [
  {
    about: "a text",
    frame: whole(utf8(LETTERS), { codec: valueOf("codec", "text") }),
    at: 160,
    items: [text(LETTERS)],
    report: "message.text",
  },
  {
    about: "a JSON text",
    frame: whole(utf8(JSON.stringify([LETTERS])), { codec: JSON_CODEC }),
    at: 160,
    items: [message({ codec: JSON_CODEC, json: [LETTERS] })],
    report: "message.text",
  },
  {
    about: "a batch",
    frame: whole(utf8(JSON.stringify([LETTERS, 1])), { codec: BATCH }),
    at: 160,
    items: [
      message({ codec: JSON_CODEC, json: LETTERS }),
      message({ codec: JSON_CODEC, json: 1 }),
    ],
    report: "message.text",
  },
];

async function spoil(
  arena: Arena,
  { about, frame, at, items, report }: Spoilt,
  way: ReadingWay,
): Promise<void> {
  const memory = pipe({ capacity: CAPACITY, states: statesOf("reader"), frames: [frame] });
  await Watch.on(arena, memory, { role: "reader", values: true }, async (watch) => {
    watch.step = `${about} (${way.about}): `;
    const index = watch.pipe.data + buildFrame({ kind: 1 }).length + at >> 2;
    // From the first load on it is none; so is whatever is made of both.
    const plan = {
      words: [index],
      moves: [{ word: 0, at: 0, steps: [{ store: [[index, -1]] as [number, number][] }] }],
    };
    const reading = () => watch.session.readMany(items.length, way.waitMs, way.wait);
    const { got } = await whileHalted(watch.field, plan, reading);
    const isLost = got.items.some((item) => "report" in item);
    const must = isLost ? [{ report }] : items;
    watch.expect({ items: got.items }, { items: must }, "[codec.copy] read");
  });
}
