/**
 * What an end of a fanout does between two accesses of one word.
 *
 * @module
 */

import { ATTACHED, drained, endFrame, pattern } from "../../reference/builder.ts";
import { text, VACANT, whole } from "../../reference/builder.ts";
import { fanout, joined, JOINING, numbered } from "../../reference/builder_fanout.ts";
import { failed } from "../../reference/encode.ts";
import { limitOf, valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { recordWord } from "../peer.ts";
import type { Move } from "../race_orders.ts";
import { halted, whileHalted } from "./halts.ts";
import { listed, type Script } from "./stage.ts";
import { FanoutWatch } from "./watch_fanout.ts";

const CAPACITY = 4096;
const READER = 1;
const STATES = [ATTACHED, VACANT];
const TEXT = valueOf("codec", "text");
const TERMINATED = failed("peer.terminated");
const GARBAGE = 0x5a5a5a5a;
/** How long a call waits that has something to read, and one that has not. */
const WAIT_MS = 300;

export const FANOUT_HALTS: Script[] = [
  script(
    "halt_fanout_held",
    "A reader is marked while it copies a message: it does not deliver it.",
    ["fanout.held", "fanout.first_answer"],
    "fanout_reader",
    async (arena) => {
      for (const at of [0, 16, 200, 496]) {
        for (const waitMs of [0, WAIT_MS]) await held(arena, at, waitMs);
      }
    },
  ),
  script(
    "halt_fanout_copied",
    "A message is overwritten while it is copied: none of its bytes are delivered.",
    ["fanout.validate", "fanout.overrun"],
    "fanout_reader",
    async (arena) => {
      for (const at of [0, 16, 200, 496]) {
        for (const waitMs of [0, WAIT_MS]) await copied(arena, at, waitMs);
      }
    },
  ),
  script(
    "halt_fanout_join",
    "A reader that joins: its `head` is 2 when it loads the `tail` at which it begins.",
    ["fanout.join"],
    "fanout_reader",
    joins,
  ),
  script(
    "halt_fanout_late",
    "The writer ends between two loads of a reader that joins: it reads the end, or is told of it.",
    ["fanout.late", "fanout.join"],
    "fanout_reader",
    async (arena) => {
      for (const word of ["tail", "ended"]) {
        for (const at of [0, 1]) await endsWhileJoining(arena, word, at);
      }
    },
  ),
  script(
    "halt_fanout_ended",
    "A writer that ends has stored `ended` when it stores `tail`.",
    ["fanout.ended"],
    "fanout_writer",
    ends,
  ),
  script(
    "halt_fanout_floor",
    "At each store over a message, `floor` is beyond it; `era` follows `floor`.",
    ["fanout.floor"],
    "fanout_writer",
    floors,
  ),
];

function script(
  id: string,
  about: string,
  clauses: string[],
  role: "fanout_reader" | "fanout_writer",
  play: (arena: Arena) => Promise<void>,
): Script {
  return halted({ id: `scripted/${id}`, about, clauses, role, noun: "fanout", play });
}

/** Marks the reader at its first access to a word of the message, `at` bytes behind its header. */
async function held(arena: Arena, at: number, waitMs: number): Promise<void> {
  const plan = fanout({ capacity: CAPACITY, endpoints: 2, states: STATES });
  await FanoutWatch.with(arena, "fanout_reader", plan, async (fanout) => {
    const { watch } = fanout;
    watch.step = `marked at byte ${at} of its frame (${waitMs} ms): `;
    fanout.publish(fanout.place(0, whole(pattern(500, 7))));
    const store: [number, number][] = [[recordWord(READER, "state"), TERMINATED]];
    const moves: Move[] = [{ word: 0, at: 0, steps: [{ store }] }];
    const reading = () => watch.session.read(waitMs);
    const { got, counts } = await whileHalted(
      watch.field,
      { words: [fanout.area(at)], moves },
      reading,
    );
    if (counts[0] === 0) return; // nobody looks at that word alone
    const must = drained([], "pipe.failed", "peer.terminated");
    watch.expect(listed(got), must, "[fanout.held] read");
  });
}

/** Overwrites a message at the first access to a word of it, as the writer of the next ones. */
async function copied(arena: Arena, at: number, waitMs: number): Promise<void> {
  const plan = fanout({ capacity: CAPACITY, lose: true, endpoints: 2, states: STATES });
  await FanoutWatch.with(arena, "fanout_reader", plan, async (fanout) => {
    const { watch } = fanout;
    watch.step = `overwritten at byte ${at} of its frame (${waitMs} ms): `;
    const second = fanout.place(0, numbered(pattern(500, 7), 0));
    const tail = fanout.place(second, numbered("two", 1, { codec: TEXT }));
    fanout.publish(tail);
    const moves: Move[] = [{
      word: 0,
      at: 0,
      steps: [
        { store: [[fanout.control("floor"), second]] },
        { fill: { from: fanout.area(0), to: fanout.area(second), value: GARBAGE } },
      ],
    }];
    const plan = { words: [fanout.area(at)], moves };
    const { got, counts } = await whileHalted(watch.field, plan, async () => [
      await watch.session.read(waitMs),
      await watch.session.read(waitMs),
    ]);
    if (counts[0] === 0) return;
    const items = [{ report: "message.lost", count: 1 }, text("two")];
    const came = got.flatMap((each) => listed(each).items);
    watch.expect({ items: came }, { items }, "[fanout.validate] read");
  });
}

/** At each load of `tail`, the next message is published. */
async function joins(arena: Arena): Promise<void> {
  const COUNT = 24;
  const plan = fanout({ capacity: CAPACITY, endpoints: 2, states: STATES });
  await FanoutWatch.with(arena, "fanout_reader", plan, async (fanout) => {
    const { watch } = fanout;
    watch.expect(await watch.session.leave(), "ok", "leave");
    const extent = fanout.place(0, whole("0", { codec: TEXT }));
    for (let index = 1; index < COUNT; index++) {
      fanout.place(index * extent, whole(`${index}`, { codec: TEXT }));
    }
    const [tail, head] = [fanout.control("tail"), fanout.record(0, "head")];
    const moves: Move[] = Array.from({ length: COUNT - 2 }, (_, at) => ({
      word: 0,
      at,
      steps: [{ load: head }, { load: tail }, { add: [tail, extent] as [number, number] }],
    }));
    const plan = { words: [tail], moves };
    const { got, found } = await whileHalted(watch.field, plan, () => watch.session.join());
    watch.expect(got, "ok", "join");
    const begins = fanout.load(head) - joined(0);
    const loads = found.flatMap((value, index) =>
      index % 2 === 0 ? [[value, found[index + 1]]] : []
    );
    const isRight = loads.some(([was, at]) => was === JOINING && at === begins);
    const seen = loads.map(([was, at]) => `${at} while it was ${was}`).join(", ");
    watch.demand(
      isRight,
      `[fanout.join] it begins at ${begins}, and its head was not 2 when it loaded that: ${seen}`,
    );
    const item = text(`${begins / extent}`);
    watch.expect(
      listed(await watch.session.read(WAIT_MS)),
      { items: [item] },
      "[fanout.join] read",
    );
  });
}

async function endsWhileJoining(arena: Arena, word: string, at: number): Promise<void> {
  const plan = fanout({ capacity: CAPACITY, endpoints: 2, states: STATES });
  await FanoutWatch.with(arena, "fanout_reader", plan, async (fanout) => {
    const { watch } = fanout;
    watch.step = `ended at load ${at} of ${word}: `;
    watch.expect(await watch.session.leave(), "ok", "leave");
    const tail = fanout.place(0, endFrame());
    const [tailAt, endedAt] = [fanout.control("tail"), fanout.control("ended")];
    const store: [number, number][] = [[endedAt, joined(tail)], [tailAt, tail]];
    const moves: Move[] = [{ word: 0, at, steps: [{ store }] }];
    const plan = { words: [fanout.control(word)], moves };
    const joining = () => watch.session.join();
    const { got, counts } = await whileHalted(watch.field, plan, joining);
    watch.expect(got, "ok", "join");
    if (counts[0]! <= at) return; // such a load there was not
    const read = listed(await watch.session.read(WAIT_MS));
    watch.expect(read, drained([], "ended"), "[fanout.late] read");
  });
}

async function ends(arena: Arena): Promise<void> {
  const plan = fanout({ capacity: CAPACITY, endpoints: 2, states: [VACANT, ATTACHED] });
  await FanoutWatch.with(arena, "fanout_writer", plan, async (fanout) => {
    const { watch } = fanout;
    watch.expect(await watch.session.write({ codec: TEXT, text: "one" }, false), "ok", "write");
    const before = fanout.load(fanout.control("tail"));
    const [tail, ended] = [fanout.control("tail"), fanout.control("ended")];
    const moves: Move[] = [{ word: 0, steps: [{ load: tail }, { load: ended }] }];
    const plan = { words: [tail], stores: true, moves };
    const { found } = await whileHalted(watch.field, plan, () => watch.session.end());
    const must = joined(before + 16);
    const isRight = found.some((value, index) =>
      index % 2 === 0 && value === must - 1 && found[index + 1] === must
    );
    watch.demand(isRight, `[fanout.ended] at the stores of tail, it and ended were ${found}`);
  });
}

/** Four of these and a pad fill the area; the fifth has to make its room. */
const EXTENT = 944;
const USED = 4 * EXTENT;
const LAPS = 6;
const ERA_SIZE = limitOf("fanout_era_size");

async function floors(arena: Arena): Promise<void> {
  // It passes the first multiple of 2^31 in the third lap.
  const start = ERA_SIZE - 2 * CAPACITY;
  const plan = fanout({
    capacity: CAPACITY,
    lose: true,
    start,
    endpoints: 2,
    states: [VACANT, ATTACHED],
  });
  await FanoutWatch.with(arena, "fanout_writer", plan, async (fanout) => {
    const { watch } = fanout;
    const [tail, floor] = [fanout.control("tail"), fanout.control("floor")];
    const era = fanout.control("era");
    const looks: Move["steps"] = [{ load: tail }, { load: floor }];
    const words = [era, fanout.area(0), fanout.area(32), fanout.area(600)];
    const moves: Move[] = [
      { word: 0, steps: [{ load: era }, { load: floor }] },
      ...[1, 2, 3].map((word): Move => ({ word, steps: looks })),
    ];
    let isOver = 0;
    for (let index = 0; index < 4 * LAPS; index++) {
      watch.step = `message ${index}: `;
      const writing = () => watch.session.write({ count: EXTENT - 32 }, false);
      const plan = { words, stores: true, moves };
      const { got, found } = await whileHalted(watch.field, plan, writing);
      watch.expect(got, "ok", "write");
      const isOne = index % 4 === 0 && index > 0;
      // The first of a lap is written over the first of the lap before.
      const least = start + (index / 4 - 1) * CAPACITY + EXTENT;
      for (let at = 0; at < found.length; at += 2) {
        const [first, second] = [found[at]!, found[at + 1]!];
        if (first < ERA_SIZE / 2) {
          const isBehind = (first & 1) === Math.floor(second / ERA_SIZE) % 2;
          watch.demand(isBehind, `[fanout.floor] era was ${first} before floor was ${second}`);
        } else if (isOne) {
          isOver++;
          const what = `bytes before ${least} are overwritten, and floor is ${second}`;
          watch.demand(second >= least, `[fanout.floor] ${what}`);
        }
      }
    }
    watch.demand(isOver > 0, "[fanout.floor] no store over a message was seen");
    const last = fanout.load(tail) === start + (LAPS - 1) * CAPACITY + USED;
    watch.demand(last, `[fanout.floor] tail is ${fanout.load(tail)}`);
  });
}
