/**
 * What a writer does between two accesses of one word.
 *
 * @module
 */

import { CLOSED, pipe } from "../../reference/builder.ts";
import type { Arena } from "../arena.ts";
import { changeState, controlWord, recordWord } from "../peer.ts";
import type { Hello, Wait } from "../protocol.ts";
import type { Move } from "../race_orders.ts";
import { halted, whileHalted } from "./halts.ts";
import { followed, followOrder, judgeFollowed } from "./races_write.ts";
import { counted, type Script } from "./stage.ts";
import { statesOf, Watch } from "./watch.ts";

const CAPACITY = 4096;
/** Messages of a task. */
const COUNT = 60;
const LONG_MS = 3_000;
/** Long enough to find room without a sleep, since the kit rings a little late. */
const SPIN_US = 100_000;

export const WRITING_HALTS: Script[] = [
  script(
    "halt_publish",
    "The ring is looked at as soon as `tail` is stored: all is there, and a message as a whole.",
    ["ring.publish", "frame.header", "pipe.try_write", "ring.tail_owner"],
    async (arena) => {
      for (const wait of waitsOf((await arena.connect(0)).hello)) await publishes(arena, wait);
    },
  ),
  script(
    "halt_head",
    "A `head` that changes whenever it is loaded, into one that cannot be: nothing is overwritten.",
    ["ring.cursor", "ring.room"],
    async (arena) => {
      for (const first of [0, 1]) {
        for (const waitMs of [undefined, 30]) await flippedHead(arena, first, waitMs);
      }
    },
  ),
  script(
    "halt_room",
    "A `head` that moves on when it was loaded: a call that does not wait acts on one load.",
    ["ring.one_load"],
    roomAtEachLoad,
  ),
  script(
    "halt_peer_gone",
    "A reader that closes or fails: once that was loaded, no message is published.",
    ["pipe.peer_gone"],
    async (arena) => {
      for (const at of [0, 1, 2, 3, 4, 5]) {
        for (const waitMs of [undefined, LONG_MS]) await peerGone(arena, at, waitMs);
      }
    },
  ),
  script(
    "halt_rung",
    "A reader that is rung finds in `rung` by whom, as soon as its bell has moved.",
    ["wait.rung"],
    rung,
  ),
];

function script(
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
 * Closes behind some load of the reader's state, and gives room behind the next one, which shows
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
