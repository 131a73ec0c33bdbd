/**
 * Scripts of a testee that waits for a property, of which the kit is the writer.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, message, pattern, type Pipe } from "../../reference/builder.ts";
import { text as textFanouts, VACANT, whole } from "../../reference/builder.ts";
import { type Fanout, fanout, gives, joined, type Property } from "../../reference/builder_many.ts";
import { property, recordOf, sets, text } from "../../reference/builder_many.ts";
import { fromHex, toHex } from "../../reference/bytes.ts";
import type { Result } from "../../reference/case.ts";
import { buildFrame, failed, type FramePlan } from "../../reference/encode.ts";
import { fieldOf, limitOf, valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { changeState, recordWord, ring } from "../peer.ts";
import type { Opening } from "../protocol.ts";
import { Aim, tries } from "./races.ts";
import { counted, listed, type Script } from "./stage.ts";
import { settles, Watch } from "./watch.ts";

/** How long a call may wait: far longer than any slice. */
const LONG_MS = 5_000;
/** What a wake may take on a machine that does other things, too; below every slice. */
const SOON_MS = 600;
/** The longest slice, and as much. */
const SLICE_MS = 1_000 + SOON_MS;
const TEXT = valueOf("codec", "text");
const READER = 1;

const COMMON = { role: "property_reader", noun: "property", blocks: true } as const;

export const PROPERTY_SCRIPTS: Script[] = [
  {
    ...COMMON,
    id: "scripted/property_rung",
    about: "A reader that waits has its bit set, and again behind each ring that was in vain.",
    clauses: ["property.watch", "property.changed", "property.unwatch"],
    play: rung,
  },
  {
    ...COMMON,
    id: "scripted/property_marked",
    about: "The writer is marked during a wait by somebody who rings nobody: found in a slice.",
    clauses: ["property.slice", "property.gone", "property.stays"],
    play: marked,
  },
  {
    ...COMMON,
    id: "scripted/property_stopped",
    about:
      "The writer stops behind each store of a set: the value before it, and then the new one.",
    clauses: ["property.whole", "property.stays", "property.fault"],
    play: stopped,
  },
];

/** A property that was set once, whose reader is the testee. */
async function play(
  arena: Arena,
  script: (watch: Watch, plan: Property) => Promise<void>,
): Promise<void> {
  const plan = property({
    states: [ATTACHED, VACANT],
    version: 1,
    slots: { 1: { sequence: 1, codec: TEXT, value: "one" } },
  });
  // A watch takes the places of a pipe, of which it needs the bytes alone.
  const memory: Pipe = { ...plan, at: [] };
  await Watch.on(arena, memory, { role: "property_reader", channel: 0 }, async (watch) => {
    watch.expect(await get(watch), gives(1, text("one")), "the first value");
    await script(watch, plan);
  });
}

function get(watch: Watch): Promise<Result> {
  return Promise.resolve(watch.session.register.get());
}

/** Where the bit of the testee is, and what is left when it is taken out. */
function watchers(plan: Property): number {
  return (plan.control + fieldOf("property_control", "watchers").offset) >> 2;
}

/** Waits until the testee asks to be rung. */
async function watched(watch: Watch, plan: Property): Promise<void> {
  const index = watchers(plan);
  const isSet = await watch.until(() =>
    (Atomics.load(watch.field.words(), index) & 1 << READER) !== 0
  );
  watch.demand(isSet, "[property.watch] the bit of the testee is not set");
}

/** Stores what a set stores, or the first of it, in order. */
function store(watch: Watch, plan: Property, version: number, value: string, steps = 5): void {
  const [slot, number] = (sets(plan, version, { codec: TEXT, value }) as {
    set: { offset: number; hex: string }[];
  }).set as [{ offset: number; hex: string }, { offset: number }];
  const bytes = fromHex(slot.hex);
  const words = watch.field.words();
  // The sequence, the rest of the header, half of the value, all of it, and the version.
  const parts = [4, 16, 16 + (value.length >> 1), bytes.length];
  let from = 0;
  for (const to of parts.slice(0, steps)) {
    watch.bytes().set(bytes.subarray(from, to), slot.offset + from);
    from = to;
  }
  if (steps > parts.length) Atomics.store(words, number.offset >> 2, version);
}

async function rung(arena: Arena): Promise<void> {
  await play(arena, async (watch, plan) => {
    const words = watch.field.words();
    const index = watchers(plan);
    const waiting = watch.session.register.changed(LONG_MS);
    for (let round = 0; round < 3; round++) {
      watch.step = `round ${round}, `;
      await watched(watch, plan);
      Atomics.exchange(words, index, 0);
      watch.ringOther(); // and nothing has changed
    }
    await watched(watch, plan);
    store(watch, plan, 2, "two");
    Atomics.exchange(words, index, 0);
    watch.ringOther();
    watch.step = "behind the ring, ";
    watch.demand(
      await settles(Promise.resolve(waiting), SOON_MS),
      "[property.watch] the wait goes on",
    );
    watch.expect(await waiting, "ok", "the wait");
    const left = Atomics.load(words, index);
    watch.demand(left === 0, "[property.unwatch] the bit of the testee is still set");
    watch.expect(await get(watch), gives(2, text("two")), "the second value");
  });
}

async function marked(arena: Arena): Promise<void> {
  await play(arena, async (watch, plan) => {
    const waiting = watch.session.register.changed(LONG_MS);
    await watched(watch, plan);
    watch.setState(0, failed("peer.lost"));
    watch.demand(
      await settles(Promise.resolve(waiting), SLICE_MS),
      "[property.slice] the wait goes on, and the writer is marked failed",
    );
    watch.expect(await waiting, { code: "peer.failed", reason: "peer.lost" }, "the wait");
    watch.expect(await get(watch), gives(1, text("one")), "the value that stays");
  });
}

async function stopped(arena: Arena): Promise<void> {
  await play(arena, async (watch, plan) => {
    let before = { version: 1, value: "one" };
    for (let version = 2; version < 12; version++) {
      const value = `the value ${version}`;
      for (let steps = 1; steps <= 5; steps++) {
        watch.step = `version ${version}, ${steps} of 5 stores, `;
        store(watch, plan, version, value, steps);
        const now = steps < 5 ? before : { version, value };
        watch.expect(await get(watch), gives(now.version, text(now.value)), "the value");
      }
      before = { version, value };
    }
  });
}

// What scripts of fanouts are written with: the kit has all endpoints but one, and sees the memory
// while the testee is in a call.

const WRITER = 0;
const ARMED = limitOf("wants_armed");

/** The end of a fanout that a testee has opened, and the kit at all others. */
export class FanoutWatch {
  readonly watch: Watch;
  readonly plan: Fanout;

  private constructor(watch: Watch, plan: Fanout) {
    this.watch = watch;
    this.plan = plan;
  }

  /** Opens it as endpoint 0, which writes, or as endpoint 1; goes on with it, and drops it. */
  static async with(
    arena: Arena,
    role: "fanout_reader" | "fanout_writer",
    plan: Fanout,
    play: (watch: FanoutWatch) => Promise<void>,
    more: Partial<Opening> & { wakes?: number } = {},
  ): Promise<void> {
    const { wakes, ...rest } = more;
    const endpoint = role === "fanout_writer" ? WRITER : 1;
    const opening = { role, endpoint, channel: 0, ...rest };
    const go = (watch: Watch) => play(new FanoutWatch(watch, plan));
    await Watch.on(arena, plan, opening, go, wakes);
  }

  /** Index of a word of the control area. */
  control(name: string): number {
    return this.plan.control + fieldOf("fanout_control", name).offset >> 2;
  }

  /** Index of a word of a reader's record. */
  record(reader: number, name: string): number {
    return recordOf(this.plan, reader) + fieldOf("fanout_reader", name).offset >> 2;
  }

  /** Index of the word of the byte area so many bytes after its beginning. */
  area(offset: number): number {
    return this.plan.data + offset >> 2;
  }

  load(index: number): number {
    return Atomics.load(this.watch.field.words(), index) >>> 0;
  }

  store(index: number, value: number): void {
    Atomics.store(this.watch.field.words(), index, value | 0);
  }

  /** Places frames from a position on, without publishing them; returns the position after. */
  place(position: number, ...frames: FramePlan[]): number {
    for (const frame of frames) {
      const bytes = buildFrame(frame);
      this.watch.bytes().set(bytes, this.plan.data + position % this.plan.capacity);
      position = (position + bytes.length) % 2 ** 32;
    }
    return position;
  }

  /** The writer publishes, and rings the readers that ask for it. [fanout.wake] */
  publish(tail: number): void {
    this.store(this.control("tail"), tail);
    const { field } = this.watch;
    const bits = Atomics.exchange(field.words(), this.control("readers_want"), 0);
    for (let bit = 0; bit < 32; bit++) {
      if ((bits >>> bit & 1) !== 0) ring(field, WRITER + 1 + bit, WRITER);
    }
  }

  /** A reader gives back what stands before a position, and rings the writer that asks for it. */
  release(reader: number, position: number): void {
    this.store(this.record(reader, "head"), joined(position));
    const wants = this.load(this.record(reader, "writer_wants"));
    const isMet = wants !== 0 && (position - (wants & ~ARMED) | 0) >= 0;
    if (isMet) this.#take(reader);
  }

  /** A reader leaves. [fanout.leave] */
  leave(reader: number): void {
    this.store(this.record(reader, "head"), 0);
    this.#take(reader);
  }

  #take(reader: number): void {
    const { field } = this.watch;
    const wants = Atomics.exchange(field.words(), this.record(reader, "writer_wants"), 0);
    if (wants !== 0) ring(field, WRITER, WRITER + 1 + reader);
  }
}

// Scripts of a testee at one end of a fanout, which waits or copies while the kit acts at all
// others.

const CAPACITY = 256;
const QUARTER = CAPACITY / 4;
/** How long a call may wait: far longer than anything that is to wake it. */
const FANOUTS_LONG_MS = 3_000;
const STATES = [VACANT, ATTACHED, ATTACHED];
const FANOUTS_TEXT = valueOf("codec", "text");
const TERMINATED = failed("peer.terminated");

type Role = "fanout_reader" | "fanout_writer";

/** Played wherever the kit sees the memory. */
export const FANOUT_SCRIPTS: Script[] = [
  script(
    "fanout_writer_sleeps",
    "A writer that sleeps for room asks the reader that holds it for what it needs.",
    ["fanout.writer_asks", "fanout.room", "fanout.count", "wait.disarm"],
    "fanout_writer",
    writerSleeps,
  ),
  script(
    "fanout_writer_freed",
    "The reader that holds a writer leaves, closes or fails while it sleeps: it goes on.",
    ["fanout.count", "fanout.gone", "fanout.no_readers", "fanout.writer_asks"],
    "fanout_writer",
    writerFreed,
  ),
  script(
    "fanout_reader_sleeps",
    "A reader that sleeps has its bit set, again behind a ring in vain, and no other bit.",
    ["fanout.ask", "wait.loop", "wait.disarm"],
    "fanout_reader",
    readerSleeps,
  ),
];

/** In memory that is handed over, where the kit's thread is as quick as the testee. */
export const FANOUT_RACES: Script[] = [
  script(
    "fanout_race_held",
    "A reader is marked while it copies, and its bytes are overwritten: it delivers none of them.",
    ["fanout.held", "fanout.first_answer"],
    "fanout_reader",
    raceHeld,
  ),
  script(
    "fanout_race_floor",
    "Whoever sees a message overwritten sees a `floor` beyond it.",
    ["fanout.floor", "fanout.floor_step"],
    "fanout_writer",
    raceFloor,
  ),
];

function script(
  id: string,
  about: string,
  clauses: string[],
  role: Role,
  play: (arena: Arena) => Promise<void>,
): Script {
  return { id: `scripted/${id}`, about, clauses, role, noun: "fanout", play };
}

/** A fanout of 256 bytes in which both readers have joined, and two messages of extent 96. */
async function filled(
  arena: Arena,
  play: (fanout: FanoutWatch) => Promise<void>,
): Promise<void> {
  const plan = fanout({ capacity: CAPACITY, states: STATES, heads: [joined(0), joined(0)] });
  await FanoutWatch.with(arena, "fanout_writer", plan, async (watch) => {
    for (let tag = 0; tag < 2; tag++) {
      const written = await watch.watch.session.write({ tag, hex: counted(80, tag) }, false);
      watch.watch.expect(written, "ok", "write");
    }
    watch.release(0, 192);
    await play(watch);
  });
}

/** What the second reader must have read, that a third message and the pad before it fit. */
const NEEDED = 192 + 64 + 96 + 16 - CAPACITY;

/** Begins the third write, and waits until the second reader is asked for its room. */
async function asks(fanout: FanoutWatch, isEnough: (wants: number) => boolean, fact: string) {
  const asked = fanout.record(1, "writer_wants");
  let wants = 0;
  const isAsked = await fanout.watch.until(() => isEnough(wants = fanout.load(asked)));
  fanout.watch.demand(isAsked, `[fanout.writer_asks] writer_wants of record 1 ${fact}`);
  return wants;
}

async function writerSleeps(arena: Arena): Promise<void> {
  await filled(arena, async (fanout) => {
    const { watch } = fanout;
    const writing = watch.session.write({ tag: 2, hex: counted(80, 2) }, true, FANOUTS_LONG_MS);
    const first = await asks(fanout, (wants) => wants !== 0, "stays 0: the writer never asks");
    // A quarter more at most, and that for no longer than a moment. [wait.writer_more]
    const isKnown = first % 16 === 1 && first > NEEDED && first <= NEEDED + QUARTER + 1;
    watch.demand(isKnown, `[fanout.writer_asks] writer_wants is ${first}, ${NEEDED} is needed`);
    const isExact = (wants: number) => wants === NEEDED + 1;
    await asks(fanout, isExact, `does not come to ${NEEDED}, which is needed`);
    const tail = fanout.load(fanout.control("tail"));
    watch.demand(tail === 192, `[fanout.room] tail is ${tail}, not 192`);
    fanout.release(1, 192);
    watch.expect(await writing, "ok", "[fanout.writer_asks] write");
    for (const record of [0, 1]) {
      const left = fanout.load(fanout.record(record, "writer_wants"));
      watch.demand(left === 0, `[wait.disarm] writer_wants of record ${record} is ${left}`);
    }
  });
}

async function writerFreed(arena: Arena): Promise<void> {
  for (const state of [undefined, CLOSED, TERMINATED]) {
    await filled(arena, async (fanout) => {
      const { watch } = fanout;
      watch.step = state === undefined ? "left: " : `state ${state}: `;
      const writing = watch.session.write({ tag: 2, hex: counted(80, 2) }, true, FANOUTS_LONG_MS);
      await asks(fanout, (wants) => wants !== 0, "stays 0: the writer never asks");
      if (state === undefined) fanout.leave(1);
      else changeState(watch.field, 2, state);
      const clause = state === undefined ? "fanout.count" : "fanout.gone";
      watch.expect(await writing, "ok", `[${clause}] write`);
    });
  }
}

async function readerSleeps(arena: Arena): Promise<void> {
  const OTHER = 2;
  const plan = fanout({ capacity: CAPACITY, readersWant: OTHER });
  await FanoutWatch.with(arena, "fanout_reader", plan, async (fanout) => {
    const { watch } = fanout;
    const word = fanout.control("readers_want");
    const asked = async () => {
      const isSet = await watch.until(() => (fanout.load(word) & 1) !== 0);
      watch.demand(isSet, "[fanout.ask] the bit of the testee is not set");
      const isOther = (fanout.load(word) & OTHER) !== 0;
      watch.demand(isOther, "[fanout.ask] it has cleared the bit of the other reader");
    };
    const reading = watch.session.read(FANOUTS_LONG_MS);
    for (let round = 0; round < 3; round++) {
      watch.step = `round ${round}: `;
      await asked();
      Atomics.and(watch.field.words(), word, OTHER);
      watch.ringOther(); // and nothing has come
    }
    await asked();
    const tail = fanout.place(0, whole("one", { codec: FANOUTS_TEXT }));
    Atomics.and(watch.field.words(), word, OTHER);
    fanout.store(fanout.control("tail"), tail);
    watch.ringOther();
    watch.step = "behind the ring: ";
    watch.expect(listed(await reading), { items: [textFanouts("one")] }, "[fanout.ask] read");
    const left = fanout.load(word);
    watch.demand(left === OTHER, `[fanout.ask] readers_want is ${left}, not ${OTHER}`);
  });
}

const LARGE = 2 ** 18;
/** Half of that, the largest message; it takes some ten microseconds to copy. */
const PAYLOAD = pattern(LARGE / 2 - 16, 3);
const GARBAGE = 0x5a5a5a5a;
/** Long enough for all to be found without a sleep: the kit's thread rings nobody. */
const SPIN_US = 1_000;
const POLLED = 0;
const HELD_TRIES = 40;
const HELD_MS = 600;

async function raceHeld(arena: Arena): Promise<void> {
  const plan = fanout({ capacity: LARGE, endpoints: 2, states: [ATTACHED, VACANT] });
  const item = message({ hex: toHex(PAYLOAD) });
  const aim = new Aim(10, 1);
  for (const _ of tries(HELD_TRIES, HELD_MS)) {
    await FanoutWatch.with(arena, "fanout_reader", plan, async (fanout) => {
      const { watch } = fanout;
      const tail = fanout.place(0, whole(PAYLOAD));
      const racing = watch.field.race({
        do: "steps",
        steps: [
          { pauseUs: 300 },
          { store: [[fanout.control("tail"), tail]] },
          { pauseUs: aim.next() },
          { store: [[recordWord(READER, "state"), TERMINATED]] },
          { fill: { from: fanout.area(16), to: fanout.area(tail), value: GARBAGE } },
        ],
      });
      await racing.begun;
      const got = await watch.session.read(FANOUTS_LONG_MS);
      await racing.done;
      const isGiven = "item" in got && "hex" in got.item;
      aim.tell(isGiven ? 1 : -1);
      if (!isGiven) {
        const must = drained([], "pipe.failed", "peer.terminated");
        return watch.expect(listed(got), must, "[fanout.first_answer] read");
      }
      const { hex } = got.item as { hex: string };
      const isWhole = hex.replaceAll(" ", "") === (item.hex as string).replaceAll(" ", "");
      watch.demand(isWhole, "[fanout.held] bytes were delivered that came when it was marked");
    }, { spin_us: SPIN_US, wakes: POLLED, limit: LARGE });
  }
}

/** Four of these and a pad fill the area; the fifth has to make its room. */
const EXTENT = LARGE * 59 / 256;
const OVERHEAD = 32;
const LAPS = 6;

async function raceFloor(arena: Arena): Promise<void> {
  const plan = fanout({
    capacity: LARGE,
    lose: true,
    endpoints: 2,
    states: [VACANT, ATTACHED],
    heads: [joined(0)],
  });
  await FanoutWatch.with(arena, "fanout_writer", plan, async (fanout) => {
    const { watch } = fanout;
    const place = fanout.area(OVERHEAD);
    const floor = fanout.control("floor");
    for (let lap = 0; lap < LAPS; lap++) {
      for (let index = 0; index < 4; index++) {
        const payload = pattern(EXTENT - OVERHEAD, 4 * lap + index);
        // After its beginning too, the message that stands there is another one.
        const steps = [{ while: [place, Atomics.load(watch.field.words(), place)] }, {
          load: floor,
        }];
        const racing = lap > 0 && index === 0
          ? watch.field.race({ do: "steps", steps: steps as never })
          : undefined;
        await racing?.begun;
        const written = await watch.session.write({ hex: toHex(payload) }, false);
        watch.expect(written, "ok", "write");
        if (racing === undefined) continue;
        const [seen = 0] = await racing.stop();
        const least = (lap - 1) * LARGE + EXTENT;
        const fact = `[fanout.floor] floor was ${seen} when bytes before ${least} were overwritten`;
        watch.demand(seen >= least, `lap ${lap}: ${fact}`);
      }
    }
  });
}
