/**
 * Scripts of a testee at one end of a fanout, which waits or copies while the kit acts at all
 * others.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, message, pattern } from "../../reference/builder.ts";
import { text, VACANT, whole } from "../../reference/builder.ts";
import { fanout, joined } from "../../reference/builder_fanout.ts";
import { toHex } from "../../reference/bytes.ts";
import { failed } from "../../reference/encode.ts";
import { valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { changeState, recordWord } from "../peer.ts";
import { Aim, tries } from "./race.ts";
import { counted, listed, type Script } from "./stage.ts";
import { FanoutWatch } from "./watch_fanout.ts";

const CAPACITY = 256;
const QUARTER = CAPACITY / 4;
/** How long a call may wait: far longer than anything that is to wake it. */
const LONG_MS = 3_000;
const READER = 1;
const STATES = [VACANT, ATTACHED, ATTACHED];
const TEXT = valueOf("codec", "text");
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
async function filled(arena: Arena, play: (fanout: FanoutWatch) => Promise<void>): Promise<void> {
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
    const writing = watch.session.write({ tag: 2, hex: counted(80, 2) }, true, LONG_MS);
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
      const writing = watch.session.write({ tag: 2, hex: counted(80, 2) }, true, LONG_MS);
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
    const reading = watch.session.read(LONG_MS);
    for (let round = 0; round < 3; round++) {
      watch.step = `round ${round}: `;
      await asked();
      Atomics.and(watch.field.words(), word, OTHER);
      watch.ringOther(); // and nothing has come
    }
    await asked();
    const tail = fanout.place(0, whole("one", { codec: TEXT }));
    Atomics.and(watch.field.words(), word, OTHER);
    fanout.store(fanout.control("tail"), tail);
    watch.ringOther();
    watch.step = "behind the ring: ";
    watch.expect(listed(await reading), { items: [text("one")] }, "[fanout.ask] read");
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
      const got = await watch.session.read(LONG_MS);
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
        // Behind its beginning too, the message that stands there is another one.
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
