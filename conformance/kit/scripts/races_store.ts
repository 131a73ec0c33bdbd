/**
 * Races for memory and for endpoints: the kit takes them at the same time as the testee, again and
 * again, and looks at what is formatted as soon as it is said to be ready.
 *
 * @module
 */

import { ATTACHED, pipe, utf8, VACANT } from "../../reference/builder.ts";
import { buildSegment, put, recordAt } from "../../reference/encode.ts";
import type { Arena } from "../arena.ts";
import { controlWord, recordWord } from "../peer.ts";
import type { Ran, Wait } from "../protocol.ts";
import { Flaw, type Follow, type Order, type Step, type Store } from "../race/orders.ts";
import { Wrong } from "../verdict.ts";
import { Workload } from "../live/workload.ts";
import { AREA, closeStores, MailboxWatch, wordOf } from "./mailbox.ts";
import { Aim, tries } from "./races.ts";
import { BLANK, counted, FORMATTING, GEOMETRY, Ground, LARGE, LEFT_OVER, READY } from "./stage.ts";
import { READY_AT, RIVAL_AGENT, RIVAL_WAKES, type Script } from "./stage.ts";
import { rest, statesOf, Watch } from "./watch.ts";

const TRIES = 60;
const TRIES_MS = 50;
export const SEGMENT_RACES: Script[] = [
  {
    id: "scripted/race_claim",
    about: "Two that create on blank memory: one formats, and the other leaves it alone.",
    clauses: ["segment.claim", "segment.await"],
    role: "segment",
    async play(arena) {
      for (const _ of tries(TRIES, TRIES_MS)) await claims(arena);
    },
  },
  {
    id: "scripted/race_create",
    about: "Two that create the same: the testee finds what the kit has formatted, and uses it.",
    clauses: ["segment.claim", "segment.same_geometry", "segment.await"],
    role: "reader",
    play: findsFormatted,
  },
  {
    id: "scripted/race_attach",
    about: "Two that take one endpoint: one of them has it, and the other stores nothing.",
    clauses: ["segment.attach", "segment.agent", "segment.state_change", "segment.state_tries"],
    role: "reader",
    async play(arena) {
      for (const attempt of tries(TRIES, TRIES_MS)) await attaches(arena, attempt % 2);
    },
  },
  {
    id: "scripted/race_ready",
    about: "A segment is looked at as soon as `ready` says so: everything is there.",
    clauses: ["segment.publish", "segment.write"],
    role: "segment",
    async play(arena) {
      for (const attempt of tries(24, TRIES_MS)) await formats(arena, attempt);
    },
  },
];

async function claims(arena: Arena): Promise<void> {
  const image = new Uint8Array(buildSegment(GEOMETRY).bytes.length).fill(LEFT_OVER);
  put(image, 0, "segment_header", "ready", BLANK);
  await Ground.with(arena, image, async (ground) => {
    // Where the kit has claimed it, nobody else writes there: the size, a record, a cursor.
    const places = [16, recordAt(0), recordAt(1) + 4, 512].map((at) => at >> 2);
    const watched = places.map((index): Store => [index, ground.load(index)]);
    const order: Order = {
      do: "toggle",
      word: READY_AT,
      free: BLANK,
      taken: FORMATTING,
      watched,
    };
    const opening = { kind: "create", geometry: GEOMETRY, role: "segment" } as const;
    const { answer, found: [how, value] } = await ground.open(opening, order);
    const isClaimed = how === 1;
    if (how === 2 || how === 3) {
      throw new Wrong(
        `[segment.claim] the kit had claimed the memory, and ${
          how === 2 ? `\`ready\` became ${value}` : "the testee wrote to it"
        }`,
      );
    }
    const must = isClaimed ? "ok" : "segment.unready";
    if (answer !== must) {
      const who = isClaimed ? "the testee" : "the kit";
      throw new Wrong(
        `[segment.claim] ${who} has claimed the memory, and create gave ` +
          `${JSON.stringify(answer)}, not ${must}`,
      );
    }
    if (isClaimed && ground.load(READY_AT) !== READY) {
      throw new Wrong(`[segment.publish] created, and \`ready\` is ${ground.load(READY_AT)}`);
    }
  });
}

/** The kit has claimed the memory, formats it, and is found at it, and ready. */
async function findsFormatted(arena: Arena): Promise<void> {
  const must = buildSegment({ ...GEOMETRY, states: [ATTACHED] }).bytes;
  await Ground.with(arena, new Uint8Array(must.length).fill(LEFT_OVER), async (ground) => {
    const { field } = ground;
    const words = field.words();
    const bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
    Atomics.store(words, READY_AT, FORMATTING);
    const opening = { kind: "create", geometry: GEOMETRY, role: "reader", endpoint: 1 } as const;
    for (const upTo of [0, 64, 512, must.length]) {
      bytes.set(must.subarray(0, Math.min(upTo, 8)));
      bytes.set(must.subarray(12, Math.max(12, upTo)), 12);
      const before = bytes.slice();
      const { answer } = await ground.open(opening);
      const where = `while the kit formats, up to byte ${upTo}: `;
      if (answer !== "segment.unready") {
        throw new Wrong(`${where}[segment.await] create gave ${JSON.stringify(answer)}`);
      }
      const at = bytes.findIndex((byte, index) => byte !== before[index]);
      if (at >= 0) throw new Wrong(`${where}[segment.claim] byte ${at} has changed`);
    }
    Atomics.store(words, READY_AT, READY);
    field.notify(READY_AT);
    const { answer } = await ground.open(opening);
    if (answer !== "ok") {
      throw new Wrong(`[segment.claim] ready, and create gave ${JSON.stringify(answer)}, not ok`);
    }
    const state = ground.load(recordWord(1, "state"));
    if (state !== ATTACHED) throw new Wrong(`[segment.attach] the state is ${state}, not attached`);
  });
}

async function attaches(arena: Arena, endpoint: number): Promise<void> {
  const states = [ATTACHED, ATTACHED];
  states[endpoint] = VACANT;
  await Ground.with(arena, pipe({ states }).bytes, async (ground) => {
    const [state, wakes, agent] = ["state", "wakes", "agent"].map((name) =>
      recordWord(endpoint, name)
    ) as [number, number, number];
    const words = ground.field.words();
    Atomics.store(words, wakes, RIVAL_WAKES);
    Atomics.store(words, agent, RIVAL_AGENT);
    const watched: Store[] = [[wakes, RIVAL_WAKES], [agent, RIVAL_AGENT]];
    const order: Order = { do: "toggle", word: state, free: VACANT, taken: ATTACHED, watched };
    const role = endpoint === 0 ? "writer" : "reader";
    const opening = { kind: "attach", role, endpoint } as const;
    const { answer, found: [how, value] } = await ground.open(opening, order);
    if (how === 2 || how === 3) {
      const what = how === 2 ? `the state became ${value}` : `a word of it became ${value}`;
      throw new Wrong(`[segment.attach] the kit had the endpoint, and ${what}`);
    }
    const must = how === 1 ? "ok" : "segment.endpoint";
    if (answer === must) return;
    const who = how === 1 ? "the testee" : "the kit";
    throw new Wrong(
      `[segment.attach] ${who} has the endpoint, and attaching gave ${JSON.stringify(answer)}`,
    );
  });
}

/** Has a large segment made, and looks at its words at the moment at which it is ready. */
async function formats(arena: Arena, attempt: number): Promise<void> {
  const segment = buildSegment(LARGE);
  const must = new Int32Array(segment.bytes.buffer, 0, segment.bytes.length >> 2);
  const image = new Uint8Array(segment.bytes.length).fill(LEFT_OVER);
  put(image, 0, "segment_header", "ready", BLANK);
  await Ground.with(arena, image, async (ground) => {
    // All but the byte areas, which stay as they are, from the end on.
    const first = segment.channels[0]!.control >> 2;
    const indices = [
      ...Array.from({ length: first }, (_, index) => index),
      ...segment.channels.flatMap(({ control }) => [control >> 2, control + 128 >> 2]),
    ].reverse();
    const order: Order = {
      do: "formed",
      afterUs: attempt % 3 === 0 ? 0 : 100 * (attempt % 8),
      ready: [READY_AT, READY],
      words: indices.map((index): Store => [index, must[index]!]),
    };
    const { answer, found: [wrong, value] } = await ground.open(
      { kind: "create", geometry: LARGE, role: "segment" },
      order,
    );
    if (answer !== "ok") throw new Wrong(`create gave ${JSON.stringify(answer)}, not ok`);
    if (wrong === -1) return;
    throw new Wrong(
      `[segment.publish] ready, and word ${wrong} was ${value}, not ${must[wrong!]! >>> 0}`,
    );
  });
}

// Races with a writer: the kit reads what is published at the moment at which it sees it.

/** Frames of up to half of it take a while to be copied. */
const CAPACITY = 262_144;
const COUNT = 60;
const SEED = 11;
const LONG_MS = 5_000;
/** Long enough to find room without a sleep, since the kit rings a little late. */
const SPIN_US = 100_000;

export const WRITING_RACES: Script[] = [{
  id: "scripted/race_publish",
  about: "Large messages, looked at from their end as soon as `tail` covers them: all is there.",
  clauses: ["ring.publish", "frame.header", "pipe.try_write", "ring.tail_owner"],
  role: "writer",
  async play(arena) {
    const { waits, levels } = (await arena.connect(0)).hello;
    if (!levels.includes("live")) return "does not run live";
    for (const wait of waits) await publishes(arena, wait);
    return undefined;
  },
}];

async function publishes(arena: Arena, wait: Wait): Promise<void> {
  const memory = pipe({ capacity: CAPACITY, states: statesOf("writer") });
  const opening = { role: "writer", spin_us: SPIN_US } as const;
  await Watch.on(arena, memory, opening, async (watch) => {
    watch.step = `calls that ${wait}: `;
    const racing = watch.field.race(followOrder(watch, wait, COUNT));
    await racing.begun;
    const ran = await followed(watch, wait, COUNT);
    await judgeFollowed(watch, await racing.stop(), ran, wait, COUNT);
  });
}

/** Sizes of the workload, so that its largest messages fit the ring at once, in several frames. */
function sizesOf(capacity: number): number {
  return 5 * capacity / 16;
}

/** How to follow a testee that writes so many messages. */
export function followOrder(watch: Watch, wait: Wait, count: number): Follow {
  const { field, pipe: { data, channels } } = watch;
  const { capacity } = channels[0]!;
  return {
    do: "follow",
    tail: controlWord(field, 0, "tail"),
    head: controlWord(field, 0, "head"),
    data,
    capacity,
    seed: SEED,
    sizes: sizesOf(capacity),
    count,
    // What is written by events has no tags.
    isTagged: wait !== "event",
  };
}

/** Has the testee write them; the kit rings it when it asks, and reads elsewhere. */
export async function followed(watch: Watch, wait: Wait, count: number): Promise<Ran> {
  const { capacity } = watch.pipe.channels[0]!;
  const task = { role: "write", seed: SEED, capacity: sizesOf(capacity), count, wait } as const;
  let isDone = false;
  const running = watch.session.run({ ...task, then: "stay" }, LONG_MS)
    .finally(() => isDone = true);
  while (!isDone) {
    await rest(1);
    watch.wakeWriter();
  }
  return await running;
}

/** Throws where the messages were not there when they should have been. */
export async function judgeFollowed(
  watch: Watch,
  [flaw, tag, offset, ...parted]: number[],
  ran: Ran,
  wait: Wait,
  count: number,
): Promise<void> {
  watch.demand(
    flaw !== Flaw.header,
    `[frame.header] tail covers a frame of message ${tag} whose header is not that of one`,
  );
  watch.demand(
    flaw !== Flaw.none_yet,
    `[ring.publish] tail covers a frame of message ${tag}, and its header is not there`,
  );
  watch.demand(
    flaw !== Flaw.tail,
    `[ring.tail_owner] tail stands in the middle of a frame, of message ${tag}`,
  );
  watch.demand(
    flaw !== Flaw.payload,
    `[ring.publish] tail covers message ${tag}, and its byte ${offset} is not there`,
  );
  watch.demand(ran.end === "done", `writing ended with ${ran.end}, not done`);
  if (wait !== "poll") return;
  const { capacity } = watch.pipe.channels[0]!;
  const workload = new Workload(SEED, sizesOf(capacity));
  const sizes = Array.from({ length: count }, () => workload.next().size);
  for (const size of new Set(parted.map((each) => sizes[each]!))) {
    // What could never be placed at once is written by a call that waits, in pieces.
    const got = await watch.session.write({ hex: counted(size, 0) }, false);
    watch.demand(
      got === "refused",
      `[pipe.try_write] a part of a message of ${size} bytes was published without the rest`,
    );
  }
}

// Races for a mailbox: it is closed, and overwritten, while the testee is in a call.

const VALUE = "abcdefghijklmnop".repeat(CAPACITY / 16 - 2);
const PAYLOAD = utf8(JSON.stringify([VALUE]));
const WAIT_MS = 2_000;
const MAILBOX_TRIES = 24;
const MAILBOX_TRIES_MS = 80;
/** What a call takes at first guess, until the command has got there. */
const CALL_US = 200;
const GARBAGE = 0x5a5a5a5a;

export const MAILBOX_RACES: Script[] = [
  {
    id: "mailbox/race_reader_closed",
    about:
      "A close at any moment of a read: a part is whole, or there is none; what is taken counts.",
    clauses: [
      "mailbox.read_status",
      "mailbox.signal_exchange",
      "mailbox.complete",
      "mailbox.closed",
    ],
    role: "mailbox_reader",
    async play(arena) {
      const aim = new Aim(CALL_US);
      for (const attempt of tries(MAILBOX_TRIES, MAILBOX_TRIES_MS)) {
        await readerClosed(arena, aim, attempt % 2 === 0);
      }
    },
  },
  {
    id: "mailbox/race_writer_closed",
    about: "A close at any moment of a write: it stays.",
    clauses: ["mailbox.signal_exchange", "mailbox.closed"],
    role: "mailbox_writer",
    async play(arena) {
      const aim = new Aim(CALL_US);
      for (const attempt of tries(MAILBOX_TRIES, MAILBOX_TRIES_MS)) {
        await writerClosed(arena, aim, attempt % 2 === 0);
      }
    },
  },
  {
    id: "mailbox/race_copied",
    about: "The area is overwritten as soon as the turn is given back: the part was copied before.",
    clauses: ["mailbox.copy"],
    role: "mailbox_reader",
    async play(arena) {
      for (const _ of tries(12, MAILBOX_TRIES_MS)) await overwritten(arena);
    },
  },
];

async function readerClosed(arena: Arena, aim: Aim, isOriginal: boolean): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_reader", CAPACITY, async (watch) => {
    const { field, session } = watch;
    watch.put(PAYLOAD);
    const signal = wordOf("signal");
    const steps: Step[] = [
      { pauseUs: aim.next() },
      { load: signal },
      { store: closeStores(isOriginal) },
    ];
    const racing = field.race({ do: "steps", steps });
    const reading = session.read(WAIT_MS);
    const [before] = await racing.done;
    field.notify(signal);
    aim.tell(before === 1 ? -1 : 1);
    const first = await reading;
    if ("item" in first) {
      const isWhole = "json" in first.item && first.item.json === VALUE;
      watch.demand(isWhole, "[mailbox.copy] read gave another value than was written");
    }
    watch.demand(
      "item" in first || before === 1,
      `[mailbox.complete] the part was taken, and read gave ${JSON.stringify(first)}`,
    );
    const last = "item" in first ? await session.read(WAIT_MS) : first;
    watch.expect(
      { items: [], ...last },
      { items: [], end: "peer.closed" },
      "[mailbox.read_status] read",
    );
    watch.demandClosed();
  });
}

async function writerClosed(arena: Arena, aim: Aim, isOriginal: boolean): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_writer", CAPACITY, async (watch) => {
    const signal = wordOf("signal");
    const steps: Step[] = [
      { pauseUs: aim.next() },
      { load: signal },
      { store: closeStores(isOriginal) },
    ];
    const racing = watch.field.race({ do: "steps", steps });
    const writing = watch.session.write({ json: [VALUE] }, true, WAIT_MS);
    const [before] = await racing.done;
    watch.field.notify(signal);
    aim.tell(before === 0 ? -1 : 1);
    const got = await writing;
    const must = before === 1 ? ["ok"] : ["ok", "peer.closed"];
    watch.demand(
      typeof got === "string" && must.includes(got),
      `[mailbox.closed] write gave ${JSON.stringify(got)}, not ${must.join(" or ")}`,
    );
    watch.demandClosed();
  });
}

async function overwritten(arena: Arena): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_reader", CAPACITY, async (watch) => {
    watch.put(PAYLOAD);
    const area = AREA >> 2;
    const steps: Step[] = [
      { while: [wordOf("signal"), 1] },
      { fill: { from: area, to: area + CAPACITY / 4, value: GARBAGE } },
    ];
    const racing = watch.field.race({ do: "steps", steps });
    await racing.begun;
    const got = await watch.session.read(WAIT_MS);
    await racing.stop();
    const isWhole = "item" in got && "json" in got.item && got.item.json === VALUE;
    watch.demand(isWhole, "[mailbox.copy] read gave another value than was written");
  });
}
