/**
 * What a side of a mailbox does between two accesses of one word.
 *
 * @module
 */

import { ATTACHED, drained, endFrame, pattern, text, utf8 } from "../../reference/builder.ts";
import { VACANT, whole } from "../../reference/builder.ts";
import { fanout, joined, JOINING, numbered } from "../../reference/builder_many.ts";
import { failed } from "../../reference/encode.ts";
import { limitOf, valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { recordWord } from "../peer.ts";
import type { Move } from "../race/orders.ts";
import { halted, whileHalted } from "./halts.ts";
import { AREA, closeStores, DISPOSED, MailboxWatch, wordOf } from "./mailbox.ts";
import { FanoutWatch } from "./many.ts";
import { listed, type Script } from "./stage.ts";

const CAPACITY = 256;
const WAIT_MS = 100;
const AGAIN_MS = 2;
const VALUE = "abcdefghijklmnop".repeat(8);
const PAYLOAD = utf8(JSON.stringify([VALUE]));
const ITEM = { kind: 1, codec: 2, tag: 0, json: VALUE };
/** In the middle of the part. */
const INSIDE = AREA + 64 >> 2;
const GARBAGE = 0x5a5a5a5a;

export const MAILBOX_HALTS: Script[] = [
  script(
    "halt_reader_closed",
    "A close between any two loads of a reader: a part is whole, or there is none.",
    ["mailbox.read_status", "mailbox.closed", "mailbox.closed_part", "mailbox.turn"],
    "mailbox_reader",
    async (arena) => {
      for (const isOriginal of [true, false]) {
        for (const name of ["signal", "status", "length", "part_count", "part_index"]) {
          for (const at of [0, 1]) await readerClosed(arena, name, at, isOriginal);
        }
      }
    },
  ),
  script(
    "halt_taken_closed",
    "A close while a part is copied, or just when it was: it is delivered, and the close stays.",
    ["mailbox.complete", "mailbox.signal_exchange"],
    "mailbox_reader",
    async (arena) => {
      for (const isOriginal of [true, false]) {
        await takenClosed(arena, { word: 0, at: 0 }, isOriginal);
        await takenClosed(arena, { word: 1, equals: 0 }, isOriginal);
      }
    },
  ),
  script(
    "halt_copied",
    "The area is overwritten as soon as the turn is given back: the part was copied before.",
    ["mailbox.copy"],
    "mailbox_reader",
    copied,
  ),
  script(
    "halt_writer_closed",
    "A close between any two loads of a writer: it stays, and the write learns of it.",
    ["mailbox.signal_exchange", "mailbox.closed", "mailbox.turn"],
    "mailbox_writer",
    async (arena) => {
      for (const isOriginal of [true, false]) {
        for (const index of [wordOf("signal"), wordOf("status"), wordOf("length"), INSIDE]) {
          for (const at of [0, 1]) await writerClosed(arena, index, at, isOriginal);
        }
      }
    },
  ),
  script(
    "halt_written",
    "All of a part stands there when `signal` says so.",
    ["mailbox.write", "mailbox.metadata"],
    "mailbox_writer",
    written,
  ),
  script(
    "halt_turn_reader",
    "The turn is taken away while a part is copied: it is delivered, and both words say closed.",
    ["mailbox.lost_turn", "mailbox.complete"],
    "mailbox_reader",
    turnOfReader,
  ),
  script(
    "halt_turn_writer",
    "The turn is taken away while a part is written: the write fails, and both words say closed.",
    ["mailbox.lost_turn"],
    "mailbox_writer",
    turnOfWriter,
  ),
  ...(["reader", "writer"] as const).map((side) =>
    script(
      `halt_close_${side}`,
      "A close, as soon as `signal` says so: `status` has said it before.",
      ["mailbox.close"],
      `mailbox_${side}`,
      (arena) => closes(arena, `mailbox_${side}`),
    )
  ),
];

function script(
  id: string,
  about: string,
  clauses: string[],
  role: "mailbox_reader" | "mailbox_writer",
  play: (arena: Arena) => Promise<void>,
): Script {
  return halted({ id: `mailbox/${id}`, about, clauses, role, play });
}

/** A first read, and what a second one gives: that it is closed, or nothing yet. */
async function readTwice({ session }: MailboxWatch) {
  const first = await session.read(WAIT_MS);
  return [first, "item" in first ? await session.read(AGAIN_MS) : first] as const;
}

async function readerClosed(
  arena: Arena,
  name: string,
  at: number,
  isOriginal: boolean,
): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_reader", CAPACITY, async (watch) => {
    const how = isOriginal ? "in all words" : "in two words";
    watch.step = `closed ${how} at load ${at} of ${name}: `;
    watch.put(PAYLOAD);
    const move: Move = { word: 0, at, steps: [{ store: closeStores(isOriginal) }] };
    const plan = { words: [wordOf(name)], moves: [move] };
    const { got: [first, last], counts } = await whileHalted(
      watch.field,
      plan,
      () => readTwice(watch),
    );
    if ("item" in first) watch.expect({ items: [first.item] }, { items: [ITEM] }, "read");
    // It was closed if there was such a load, and the next read must have found that.
    const must = counts[0]! > at ? "peer.closed" : "nothing";
    watch.demand(
      "end" in last && last.end === must,
      `[mailbox.read_status] read gave ${JSON.stringify(last)}, not ${must}`,
    );
    if (counts[0]! > at) watch.demandClosed();
  });
}

async function takenClosed(
  arena: Arena,
  when: Pick<Move, "word" | "at" | "equals">,
  isOriginal: boolean,
): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_reader", CAPACITY, async (watch) => {
    watch.step = when.word === 0 ? "closed while it is copied: " : "closed when it was taken: ";
    watch.put(PAYLOAD);
    const move: Move = { ...when, steps: [{ store: closeStores(isOriginal) }] };
    const plan = { words: [INSIDE, wordOf("signal")], moves: [move] };
    const { got: [first, last] } = await whileHalted(watch.field, plan, () => readTwice(watch));
    const items = "item" in first ? [first.item] : [];
    watch.expect({ items }, { items: [ITEM] }, "[mailbox.complete] read");
    watch.demand("end" in last && last.end === "peer.closed", "the next read is not peer.closed");
    watch.demandClosed();
  });
}

async function copied(arena: Arena): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_reader", CAPACITY, async (watch) => {
    watch.put(PAYLOAD);
    const area = AREA >> 2;
    const fill = { from: area, to: area + CAPACITY / 4, value: GARBAGE };
    const move: Move = { word: 0, equals: 0, steps: [{ fill }] };
    const plan = { words: [wordOf("signal")], stores: true, moves: [move] };
    const reading = () => watch.session.read(WAIT_MS);
    const { got } = await whileHalted(watch.field, plan, reading);
    const listed = "item" in got ? { items: [got.item] } : { items: [], ...got };
    watch.expect(listed, { items: [ITEM] }, "[mailbox.copy] read");
  });
}

async function writerClosed(
  arena: Arena,
  index: number,
  at: number,
  isOriginal: boolean,
): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_writer", CAPACITY, async (watch) => {
    watch.step = `closed at access ${at} of word ${index}: `;
    const signal = wordOf("signal");
    // What is written when the part was handed over is a close after it.
    const move: Move = {
      word: 0,
      at,
      steps: [{ load: signal }, { store: closeStores(isOriginal) }],
    };
    const plan = { words: [index], moves: [move] };
    const { got, found } = await whileHalted(
      watch.field,
      plan,
      () => watch.session.write({ json: [VALUE] }, true, WAIT_MS),
    );
    if (found.length === 0) return; // such an access there was not
    const must = found[0] === 1 ? "ok" : "peer.closed";
    watch.demand(got === must, `[mailbox.closed] write gave ${JSON.stringify(got)}, not ${must}`);
    watch.demandClosed();
  });
}

async function written(arena: Arena): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_writer", CAPACITY, async (watch) => {
    const [length, count, index] = ["length", "part_count", "part_index"].map(wordOf);
    const last = AREA + PAYLOAD.length - 4 >> 2;
    const loads = [length, count, index, INSIDE, last].map((each) => ({ load: each! }));
    const move: Move = { word: 0, equals: 1, steps: loads };
    const plan = { words: [wordOf("signal")], stores: true, moves: [move] };
    const { got, found } = await whileHalted(
      watch.field,
      plan,
      () => watch.session.write({ json: [VALUE] }, true, WAIT_MS),
    );
    watch.expect(got, "ok", "write");
    const image = new Uint8Array(AREA + CAPACITY);
    image.set(PAYLOAD, AREA);
    const words = new Uint32Array(image.buffer);
    const must = [PAYLOAD.length, 1, 0, words[INSIDE]!, words[last]!];
    watch.demand(
      found.join() === must.join(),
      `[mailbox.write] when signal was 1, the words of the part were ${found}, not ${must}`,
    );
    watch.demand(watch.load("signal") !== DISPOSED, "the mailbox is closed");
  });
}

/** Stores another turn at the first access to the part. */
function takesTurn(turn: number) {
  const store: [number, number][] = [[wordOf("signal"), turn]];
  return { words: [INSIDE], moves: [{ word: 0, at: 0, steps: [{ store }] }] };
}

function demandLost(watch: MailboxWatch): void {
  for (const name of ["status", "signal"]) {
    const found = watch.load(name);
    watch.demand(found === DISPOSED, `[mailbox.lost_turn] ${name} is ${found}, not ${DISPOSED}`);
  }
}

async function turnOfReader(arena: Arena): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_reader", CAPACITY, async (watch) => {
    watch.put(PAYLOAD);
    const { got: first } = await whileHalted(
      watch.field,
      takesTurn(0),
      () => watch.session.read(WAIT_MS),
    );
    const items = "item" in first ? [first.item] : [];
    watch.expect({ items }, { items: [ITEM] }, "[mailbox.complete] read");
    demandLost(watch);
  });
}

async function turnOfWriter(arena: Arena): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_writer", CAPACITY, async (watch) => {
    const { got } = await whileHalted(
      watch.field,
      takesTurn(1),
      () => watch.session.write({ json: [VALUE] }, true, WAIT_MS),
    );
    watch.expect(got, "peer.closed", "[mailbox.lost_turn] write");
    demandLost(watch);
  });
}

async function closes(arena: Arena, role: "mailbox_reader" | "mailbox_writer"): Promise<void> {
  await MailboxWatch.with(arena, role, CAPACITY, async (watch) => {
    const move: Move = { word: 0, equals: DISPOSED, steps: [{ load: wordOf("status") }] };
    const plan = { words: [wordOf("signal")], stores: true, moves: [move] };
    const { got, found } = await whileHalted(watch.field, plan, () => watch.session.close());
    watch.expect(got, "ok", "close");
    watch.demandClosed();
    const status = found[0] === undefined ? "never seen" : found[0] | 0;
    watch.demand(
      status === DISPOSED,
      `[mailbox.close] status was ${status} when signal was ${DISPOSED}`,
    );
  });
}

// What an end of a fanout does between two accesses of one word.

const FANOUT_CAPACITY = 4096;
const READER = 1;
const STATES = [ATTACHED, VACANT];
const TEXT = valueOf("codec", "text");
const TERMINATED = failed("peer.terminated");
/** How long a call waits that has something to read, and one that has not. */
const FANOUT_WAIT_MS = 300;

export const FANOUT_HALTS: Script[] = [
  scriptFanout(
    "halt_fanout_held",
    "A reader is marked while it copies a message: it does not deliver it.",
    ["fanout.held", "fanout.first_answer"],
    "fanout_reader",
    async (arena) => {
      for (const at of [0, 16, 200, 496]) {
        for (const waitMs of [0, FANOUT_WAIT_MS]) await held(arena, at, waitMs);
      }
    },
  ),
  scriptFanout(
    "halt_fanout_copied",
    "A message is overwritten while it is copied: none of its bytes are delivered.",
    ["fanout.validate", "fanout.overrun"],
    "fanout_reader",
    async (arena) => {
      for (const at of [0, 16, 200, 496]) {
        for (const waitMs of [0, FANOUT_WAIT_MS]) await copiedFanout(arena, at, waitMs);
      }
    },
  ),
  scriptFanout(
    "halt_fanout_join",
    "A reader that joins: its `head` is 2 when it loads the `tail` at which it begins.",
    ["fanout.join"],
    "fanout_reader",
    joins,
  ),
  scriptFanout(
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
  scriptFanout(
    "halt_fanout_ended",
    "A writer that ends has stored `ended` when it stores `tail`.",
    ["fanout.ended"],
    "fanout_writer",
    ends,
  ),
  scriptFanout(
    "halt_fanout_floor",
    "At each store over a message, `floor` is beyond it; `era` follows `floor`.",
    ["fanout.floor"],
    "fanout_writer",
    floors,
  ),
];

function scriptFanout(
  id: string,
  about: string,
  clauses: string[],
  role: "fanout_reader" | "fanout_writer",
  play: (arena: Arena) => Promise<void>,
): Script {
  return halted({ id: `scripted/${id}`, about, clauses, role, noun: "fanout", play });
}

/** Marks the reader at its first access to a word of the message, `at` bytes after its header. */
async function held(arena: Arena, at: number, waitMs: number): Promise<void> {
  const plan = fanout({ capacity: FANOUT_CAPACITY, endpoints: 2, states: STATES });
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
async function copiedFanout(arena: Arena, at: number, waitMs: number): Promise<void> {
  const plan = fanout({ capacity: FANOUT_CAPACITY, lose: true, endpoints: 2, states: STATES });
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
  const plan = fanout({ capacity: FANOUT_CAPACITY, endpoints: 2, states: STATES });
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
      listed(await watch.session.read(FANOUT_WAIT_MS)),
      { items: [item] },
      "[fanout.join] read",
    );
  });
}

async function endsWhileJoining(arena: Arena, word: string, at: number): Promise<void> {
  const plan = fanout({ capacity: FANOUT_CAPACITY, endpoints: 2, states: STATES });
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
    const read = listed(await watch.session.read(FANOUT_WAIT_MS));
    watch.expect(read, drained([], "ended"), "[fanout.late] read");
  });
}

async function ends(arena: Arena): Promise<void> {
  const plan = fanout({ capacity: FANOUT_CAPACITY, endpoints: 2, states: [VACANT, ATTACHED] });
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
  const start = ERA_SIZE - 2 * FANOUT_CAPACITY;
  const plan = fanout({
    capacity: FANOUT_CAPACITY,
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
      const least = start + (index / 4 - 1) * FANOUT_CAPACITY + EXTENT;
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
    const last = fanout.load(tail) === start + (LAPS - 1) * FANOUT_CAPACITY + USED;
    watch.demand(last, `[fanout.floor] tail is ${fanout.load(tail)}`);
  });
}
