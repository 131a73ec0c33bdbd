/**
 * What is needed to halt a testee between two of its accesses, where it is a process on a file.
 * What happens in between is then not a matter of luck.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, firstOf, message, part } from "../../reference/builder.ts";
import { pattern, type Pipe, pipe, text, utf8, VACANT, whole } from "../../reference/builder.ts";
import { gives, property, SLOT_COUNT, type SlotPlan } from "../../reference/builder_many.ts";
import { text as textProperty } from "../../reference/builder_many.ts";
import { toHex } from "../../reference/bytes.ts";
import type { Item } from "../../reference/case.ts";
import { buildFrame, buildSegment, type FramePlan, put, recordAt } from "../../reference/encode.ts";
import { fieldOf, limitOf, valueOf } from "../../reference/layout.ts";
import type { Arena, Field } from "../arena.ts";
import { changeState, controlWord, recordWord } from "../peer.ts";
import type { Hello, Wait } from "../protocol.ts";
import type { Halt, Move, Step, Store } from "../race/orders.ts";
import { Cannot } from "../race/racer.ts";
import { Wrong } from "../verdict.ts";
import { CURSOR, type Ending, ENDINGS, type Flipping, FLIPPINGS, memoryOf } from "./races.ts";
import { oddIn, pipeWithSkipped, readAll, type ReadingWay, readingWays } from "./races.ts";
import { skippedSize } from "./races.ts";
import { followed, followOrder, judgeFollowed } from "./races_store.ts";
import { BLANK, counted, FORMATTING, GEOMETRY, Ground, LARGE, LEFT_OVER, listed } from "./stage.ts";
import { READY, READY_AT, RIVAL_AGENT, RIVAL_WAKES, type Script } from "./stage.ts";
import { statesOf, Watch } from "./watch.ts";

/** What to halt at, and what to do then; words that are stored only, where it says so. */
type Plan = Pick<Halt, "moves" | "follow" | "isLate"> & {
  words: number[];
  stores?: boolean;
};

/** A script that is declined where the kit cannot halt a testee. */
export function halted(script: Script): Script {
  return {
    ...script,
    async play(arena) {
      try {
        return await script.play(arena);
      } catch (error) {
        if (error instanceof Cannot) return error.message;
        throw error;
      }
    },
  };
}

/**
 * Has the testee halted whenever it touches certain words, for as long as something takes. Gives
 * that, how often it touched each of them, and what the moves have found.
 */
export async function whileHalted<T>(
  field: Field,
  { words, stores = false, ...plan }: Plan,
  act: () => Promise<T>,
): Promise<{ got: T; counts: number[]; found: number[] }> {
  const access = stores ? "store" : "load";
  const list = words.map((index) => ({ index, access } as const));
  const racing = field.race({ do: "halt", words: list, ...plan });
  await racing.begun;
  const got = await act();
  const found = await racing.stop();
  return { got, counts: found.slice(0, words.length), found: found.slice(words.length) };
}

// What a creator and an endpoint do between a look at a word and its change; and what stands there
// when a segment is said to be ready.

export const SEGMENT_HALTS: Script[] = [
  script(
    "halt_claim",
    "A rival claims the memory behind a look at `ready`: the testee does not format it.",
    ["segment.claim", "segment.await"],
    async (arena) => {
      for (const at of [0, 1, 2]) await rivalClaims(arena, at);
    },
  ),
  script(
    "halt_ready",
    "A segment is looked at as soon as `ready` says so: everything is there.",
    ["segment.publish", "segment.write"],
    readyAtOnce,
  ),
  script(
    "halt_attach",
    "A rival takes the endpoint behind a look at its state: the loser stores nothing.",
    ["segment.attach", "segment.agent", "segment.state_change", "segment.state_tries"],
    async (arena) => {
      for (const role of ["reader", "writer"] as const) {
        for (const at of [0, 1, 2]) await rivalAttaches(arena, role, at);
      }
    },
  ),
];

function script(
  id: string,
  about: string,
  clauses: string[],
  play: (arena: Arena) => Promise<void>,
): Script {
  return halted({ id: `scripted/${id}`, about, clauses, role: "reader", isMapped: true, play });
}

/** Throws unless these words are as they were left. */
function demandAsLeft(ground: Ground, where: string, words: Store[]): void {
  for (const [index, value] of words) {
    const found = ground.load(index);
    if (found === value) continue;
    throw new Wrong(`${where} word ${index} became ${found}, where the kit had left ${value}`);
  }
}

async function rivalClaims(arena: Arena, at: number): Promise<void> {
  const image = new Uint8Array(buildSegment(GEOMETRY).bytes.length).fill(LEFT_OVER);
  put(image, 0, "segment_header", "ready", BLANK);
  await Ground.with(arena, image, async (ground) => {
    const places = [16, recordAt(0), recordAt(1) + 4, 512].map((place) => place >> 2);
    const left = places.map((index): Store => [index, ground.load(index)]);
    const steps: Step[] = [{ change: [READY_AT, BLANK, FORMATTING] }];
    const moves = [{ word: 0, at, equals: BLANK, steps }];
    const opening = { kind: "create", geometry: GEOMETRY, role: "segment" } as const;
    const { got, found } = await whileHalted(
      ground.field,
      { words: [READY_AT], moves, isLate: true },
      () => ground.open(opening, undefined, true),
    );
    const isOurs = found.length > 0;
    const must = isOurs ? "segment.unready" : "ok";
    if (got.answer !== must) {
      const what = JSON.stringify(got.answer);
      throw new Wrong(
        `[segment.claim] a rival came first behind look ${at}: create gave ${what}, not ${must}`,
      );
    }
    if (!isOurs) return;
    demandAsLeft(ground, "[segment.claim]", [[READY_AT, FORMATTING], ...left]);
  });
}

async function readyAtOnce(arena: Arena): Promise<void> {
  const segment = buildSegment(LARGE);
  const must = new Int32Array(segment.bytes.buffer, 0, segment.bytes.length >> 2);
  const image = new Uint8Array(segment.bytes.length).fill(LEFT_OVER);
  put(image, 0, "segment_header", "ready", BLANK);
  await Ground.with(arena, image, async (ground) => {
    // All but the byte areas, which stay as they are.
    const indices = [
      ...Array.from({ length: segment.channels[0]!.control >> 2 }, (_, index) => index),
      ...segment.channels.flatMap(({ control }) =>
        Array.from({ length: 128 }, (_, index) => (control >> 2) + index)
      ),
    ];
    const steps = indices.map((load) => ({ load }));
    const moves = [{ word: 0, equals: READY, steps }];
    const opening = { kind: "create", geometry: LARGE, role: "segment" } as const;
    const { got, found } = await whileHalted(
      ground.field,
      { words: [READY_AT], stores: true, moves, isLate: true },
      () => ground.open(opening, undefined, true),
    );
    if (got.answer !== "ok") throw new Wrong(`create gave ${JSON.stringify(got.answer)}, not ok`);
    const wrong = indices.findIndex((index, nth) => found[nth] !== must[index]! >>> 0);
    if (wrong < 0) return;
    throw new Wrong(
      `[segment.publish] ready, and word ${indices[wrong]} was ${found[wrong]}, not ` +
        `${must[indices[wrong]!]! >>> 0}`,
    );
  });
}

async function rivalAttaches(arena: Arena, role: "reader" | "writer", at: number): Promise<void> {
  const endpoint = role === "reader" ? 1 : 0;
  await Ground.with(arena, pipe({ states: statesOf(role) }).bytes, async (ground) => {
    const [state, wakes, agent] = ["state", "wakes", "agent"].map((name) =>
      recordWord(endpoint, name)
    ) as [number, number, number];
    const rival: Store[] = [[wakes, RIVAL_WAKES], [agent, RIVAL_AGENT]];
    // As a rival does it, who has come first if anybody can tell.
    const steps: Step[] = [{ change: [state, VACANT, ATTACHED] }, { store: rival }];
    const moves = [{ word: 0, at, equals: VACANT, steps }];
    const opening = { kind: "attach", role, endpoint } as const;
    const { got, found } = await whileHalted(
      ground.field,
      { words: [state], moves, isLate: true },
      () => ground.open(opening, undefined, true),
    );
    const must = found.length === 0 ? "ok" : "segment.endpoint";
    const where = `a ${role}, with a rival behind look ${at} at the state: [segment.attach]`;
    if (got.answer !== must) {
      throw new Wrong(`${where} attaching gave ${JSON.stringify(got.answer)}, not ${must}`);
    }
    if (found.length > 0) demandAsLeft(ground, where, [[state, ATTACHED], ...rival]);
  });
}

// What a reader does between two accesses of one word.

const CAPACITY = 4096;
const LONG_MS = 3_000;
/** How long a call waits that has something to read. */
const WAIT_MS = 30;

export const READING_HALTS: Script[] = [
  scriptRead(
    "halt_header",
    "A field of a header that changes whenever it is loaded: what is checked is used.",
    ["frame.check", "pipe.limit", "pipe.total_trust", "pipe.unknown_kind"],
    async (arena) => {
      for (const flipping of FLIPPINGS) await flips(arena, flipping);
    },
  ),
  scriptRead(
    "halt_tail",
    "A `tail` that changes whenever it is loaded, into one that cannot be.",
    ["ring.cursor"],
    (arena) => flips(arena, CURSOR),
  ),
  scriptRead(
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
  scriptRead(
    "halt_one_load",
    "A `tail` that moves on whenever it is loaded: a call that does not wait comes to an end.",
    ["ring.one_load"],
    async (arena) => {
      for (const way of await waysOf(arena, 0)) await moreAtEachLoad(arena, way);
    },
  ),
  scriptRead(
    "halt_release",
    "What is given back is overwritten at once: it was copied before.",
    ["ring.release", "ring.head_owner"],
    async (arena) => {
      for (const way of await waysOf(arena, WAIT_MS)) await overwritten(arena, way);
    },
  ),
  {
    ...scriptRead(
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

function scriptRead(
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
    // Whoever takes the wrong cursor for a right one finds frames after the last.
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

/** Publishes and closes after one of the loads of a word in a call. */
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

// What a writer does between two accesses of one word.

/** Messages of a task. */
const COUNT = 60;
/** Long enough to find room without a sleep, since the kit rings a little late. */
const SPIN_US = 100_000;

export const WRITING_HALTS: Script[] = [
  scriptWrite(
    "halt_publish",
    "The ring is looked at as soon as `tail` is stored: all is there, and a message as a whole.",
    ["ring.publish", "frame.header", "pipe.try_write", "ring.tail_owner"],
    async (arena) => {
      for (const wait of waitsOf((await arena.connect(0)).hello)) await publishes(arena, wait);
    },
  ),
  scriptWrite(
    "halt_head",
    "A `head` that changes whenever it is loaded, into one that cannot be: nothing is overwritten.",
    ["ring.cursor", "ring.room"],
    async (arena) => {
      for (const first of [0, 1]) {
        for (const waitMs of [undefined, 30]) await flippedHead(arena, first, waitMs);
      }
    },
  ),
  scriptWrite(
    "halt_room",
    "A `head` that moves on when it was loaded: a call that does not wait acts on one load.",
    ["ring.one_load"],
    roomAtEachLoad,
  ),
  scriptWrite(
    "halt_peer_gone",
    "A reader that closes or fails: once that was loaded, no message is published.",
    ["pipe.peer_gone"],
    async (arena) => {
      for (const at of [0, 1, 2, 3, 4, 5]) {
        for (const waitMs of [undefined, LONG_MS]) await peerGone(arena, at, waitMs);
      }
    },
  ),
  scriptWrite(
    "halt_rung",
    "A reader that is rung finds in `rung` by whom, as soon as its bell has moved.",
    ["wait.rung"],
    rung,
  ),
];

function scriptWrite(
  id: string,
  about: string,
  clauses: string[],
  play: (arena: Arena) => Promise<void>,
): Script {
  return halted({ id: `scripted/${id}`, about, clauses, role: "writer", play });
}

/** How a task can write. */
function waitsOf({ waits, levels }: Hello): Wait[] {
  return levels.includes("live") ? waits : [];
}

async function publishes(arena: Arena, wait: Wait): Promise<void> {
  const memory = pipe({ capacity: CAPACITY, states: statesOf("writer") });
  const opening = { role: "writer", spin_us: SPIN_US } as const;
  await Watch.on(arena, memory, opening, async (watch) => {
    watch.step = `calls that ${wait}: `;
    const follow = followOrder(watch, wait, COUNT);
    const plan = { words: [follow.tail], stores: true, moves: [], follow };
    const { got, found } = await whileHalted(
      watch.field,
      plan,
      () => followed(watch, wait, COUNT),
    );
    await judgeFollowed(watch, found, got, wait, COUNT);
  });
}

/** Flips `head` in a ring that is full of messages which nobody reads. */
async function flippedHead(arena: Arena, first: number, waitMs: number | undefined): Promise<void> {
  const memory = pipe({ capacity: 256, states: statesOf("writer") });
  await Watch.on(arena, memory, { role: "writer" }, async (watch) => {
    const { field, session } = watch;
    const way = waitMs === undefined ? "without waiting" : "waiting";
    watch.step = `${way}: `;
    for (let tag = 0; tag < 3; tag++) {
      watch.expect(await session.write({ tag, hex: counted(40, tag) }, false), "ok", "write");
    }
    const before = watch.bytes().slice(watch.pipe.data, watch.pipe.data + 256);
    const tail = watch.control("tail");
    const head = controlWord(field, 0, "head");
    // As it is, or beyond what is published: then everything would seem to be free.
    const both = [0, tail + 16];
    const turn = { index: head, values: [both.at(first)!, both.at(first - 1)!] };
    Atomics.store(field.words(), head, turn.values[0]!);
    const plan = { words: [head], moves: [{ word: 0, steps: [{ turn }] }] };
    const writing = () =>
      session.write({ tag: 9, hex: counted(60, 9) }, waitMs !== undefined, waitMs);
    const { got } = await whileHalted(field, plan, writing);
    const none = waitMs === undefined ? "full" : "wait.timeout";
    const answers = [none, "ring.cursor"];
    watch.demand(
      typeof got === "string" && answers.includes(got),
      `[ring.cursor] write gave ${JSON.stringify(got)}, not one of ${answers.join(", ")}`,
    );
    const after = watch.bytes().slice(watch.pipe.data, watch.pipe.data + tail);
    const at = after.findIndex((byte, index) => byte !== before[index]);
    watch.demand(at < 0, `[ring.room] byte ${at} of the ring was overwritten, and not read yet`);
  });
}

/** Gives room for a part of a message at each load of `head`, and never for all of it at once. */
async function roomAtEachLoad(arena: Arena): Promise<void> {
  const memory = pipe({ capacity: CAPACITY, states: statesOf("writer") });
  await Watch.on(arena, memory, { role: "writer" }, async (watch) => {
    const { field, session } = watch;
    for (const [tag, size] of [1008, 1008, 1008, 992].entries()) {
      watch.expect(await session.write({ tag, hex: counted(size, tag) }, false), "ok", "write");
    }
    watch.setControl("head", 2048);
    const head = controlWord(field, 0, "head");
    const moves: Move[] = [{ word: 0, at: 0, steps: [{ add: [head, 1024] }] }];
    const { got } = await whileHalted(
      field,
      { words: [head], moves },
      () => session.write({ tag: 9, hex: counted(2500, 9) }, false),
    );
    watch.expect(got, "full", "[ring.one_load] write");
  });
}

/**
 * Closes after some load of the reader's state, and gives room after the next one, which shows
 * that it is closed: nobody may write then, however little was looked at since. The halts are
 * counted: what a load gave cannot be seen any more when the kit is at it.
 */
async function peerGone(arena: Arena, at: number, waitMs: number | undefined): Promise<void> {
  const memory = pipe({ capacity: 256, states: statesOf("writer") });
  await Watch.on(arena, memory, { role: "writer" }, async (watch) => {
    const { field, session, own } = watch;
    watch.step = `closed at load ${at} of its state: `;
    // Two of three fit.
    for (let tag = 0; tag < 2; tag++) await session.write({ tag, hex: counted(80, tag) }, false);
    const state = recordWord(own, "state");
    const [tail, head] = [controlWord(field, 0, "tail"), controlWord(field, 0, "head")];
    const moves: Move[] = [
      { word: 0, at, steps: [{ store: [[state, CLOSED]] }] },
      { word: 0, at: at + 1, steps: [{ load: tail }, { store: [[head, 192]] }] },
    ];
    const { got, found: [seen] } = await whileHalted(field, { words: [state], moves }, async () => {
      const writing = session.write({ tag: 9, hex: counted(80, 9) }, waitMs !== undefined, waitMs);
      if (waitMs === undefined) return await writing;
      await watch.until(() => watch.record(own, "state") === CLOSED, 20);
      changeState(field, own, CLOSED);
      return await writing;
    });
    if (seen === undefined) return; // there was no look at it any more
    const after = watch.control("tail");
    watch.demand(seen === after, `[pipe.peer_gone] tail moved from ${seen} to ${after}`);
    const isTold = got === "peer.closed" || waitMs === undefined && got === "full";
    watch.demand(isTold, `[pipe.peer_gone] write gave ${JSON.stringify(got)}, not peer.closed`);
  });
}

async function rung(arena: Arena): Promise<void> {
  const memory = pipe({ capacity: 256, states: statesOf("writer") });
  await Watch.on(arena, memory, { role: "writer" }, async (watch) => {
    const { field, session, own, other } = watch;
    const [bell, bits] = [recordWord(own, "bell"), recordWord(own, "rung")];
    Atomics.store(field.words(), bits, 0); // that it attached, has rung as well
    watch.setControl("reader_wants", watch.control("tail") + 16 | 1);
    const moves: Move[] = [{ word: 0, steps: [{ load: bits }] }];
    const plan = { words: [bell], stores: true, moves };
    const { got, found } = await whileHalted(
      field,
      plan,
      () => session.write({ hex: "00" }, false),
    );
    watch.expect(got, "ok", "write");
    watch.demand(found.length > 0, "[wait.rung] the bell of a reader that asked did not move");
    const isSet = ((found[0] ?? 0) >> other & 1) === 1;
    watch.demand(isSet, `[wait.rung] rung was ${found[0]} when the bell moved, without ${other}`);
  });
}

// What a reader of a property does when the writer is faster, each time.

const VALUE = { codec: valueOf("codec", "text"), value: "the same in each slot" };
/** So many times it is overtaken at least, before it may say that it is `property.busy`. */
const TIMES = limitOf("property_tries_min") - 1;

export const PROPERTY_HALTS: Script[] = [
  halted({
    id: "scripted/halt_property",
    about:
      "A reader is overtaken each time that it has loaded `version`, as often as it must bear.",
    clauses: ["property.again", "property.whole", "property.fault"],
    role: "property_reader",
    noun: "property",
    play: overtaken,
  }),
];

/**
 * Overtakes at each load of `version`: the slot that is read next is that of another version by
 * then. A reader that loads `version` twice for each of its tries begins half as often.
 */
async function overtaken(arena: Arena): Promise<void> {
  const slots: Record<number, SlotPlan> = {};
  for (let version = 1; version <= SLOT_COUNT; version++) {
    slots[version % SLOT_COUNT] = { ...VALUE, sequence: version };
  }
  const plan = property({ states: [ATTACHED, VACANT], version: 1, slots });
  const memory: Pipe = { ...plan, at: [] };
  const version = plan.control + fieldOf("property_control", "version").offset >> 2;
  const sequence = fieldOf("property_slot", "sequence").offset;
  const moves = Array.from({ length: TIMES }, (_, at): Move => {
    const read = at + 1;
    const slot = plan.slots[read % SLOT_COUNT]! + sequence >> 2;
    const steps: Step[] = [{ store: [[slot, read + SLOT_COUNT], [version, read + 1]] }];
    return { word: 0, at, steps };
  });
  await Watch.on(arena, memory, { role: "property_reader", channel: 0 }, async (watch) => {
    const getting = async () => await watch.session.register.get();
    const { got, counts } = await whileHalted(watch.field, { words: [version], moves }, getting);
    if (counts[0] === 0) throw new Cannot("the kit does not see the testee load `version`");
    const must = gives(TIMES + 1, textProperty(VALUE.value));
    watch.expect(got, must, `[property.again] a value that was overtaken ${TIMES} times`);
  });
}
