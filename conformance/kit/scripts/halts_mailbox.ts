/**
 * What a side of a mailbox does between two accesses of one word.
 *
 * @module
 */

import { utf8 } from "../../reference/builder.ts";
import type { Arena } from "../arena.ts";
import type { Move } from "../race_orders.ts";
import { halted, whileHalted } from "./halts.ts";
import type { Script } from "./stage.ts";
import { AREA, closeStores, DISPOSED, MailboxWatch, wordOf } from "./watch_mailbox.ts";

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
    // What is written when the part was handed over is a close behind it.
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
