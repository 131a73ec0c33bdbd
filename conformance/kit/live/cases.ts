/**
 * The live runs that every pair of testees must do.
 *
 * @module
 */

import { message, text, utf8 } from "../../reference/builder.ts";
import { fromHex, toHex } from "../../reference/bytes.ts";
import type { Item, MessageCase } from "../../reference/case.ts";
import { buildSegment } from "../../reference/encode.ts";
import { limitOf, valueOf } from "../../reference/layout.ts";
import { compare, type Problem } from "../../static/difference.ts";
import { answerOf, RemoteSession } from "../../static/remote.ts";
import type { Arena, Field } from "../arena.ts";
import { RICH, SHARED } from "../scripts/cbor.ts";
import type { Hello, Opening } from "../protocol.ts";
import { lacksNoun, lacksRole } from "../static_level.ts";
import { together } from "../together.ts";
import { failed, type KitCase, PASS, Wrong } from "../verdict.ts";
import { liveCase } from "./level.ts";
import { type LivePlan, type Part, treeCount, type Trees } from "./plan.ts";

/** Just below 2^32, so that both cursors wrap within the first messages. */
const LATE_START = 2 ** 32 - 128;

const writes: Part = { role: "write", wait: "block", then: "end", end: "done", got: "all" };
const reads: Part = { role: "read", wait: "block", then: "stay", end: "ended", got: "all" };
const drives: Part = { role: "drive", wait: "block", then: "stay", end: "ended", got: "all" };
const echoes: Part = { role: "echo", wait: "block", then: "end", end: "ended", got: "all" };
const polling = { wait: "poll" } as const;
const waiting = { wait: "event" } as const;
/** Often enough to be in the way, seldom enough to be done soon. */
const slowly = { delay_us: 500, delay_every: 8 };
/** More than anybody can write before it is stopped. */
const ENDLESS = 1_000_000;

const STREAM = ["pipe.order", "ring.publish", "ring.acquire", "frame.multipart"];
const PARKED = ["wait.store_order", "wait.recheck", "wait.mechanism", "ring.publish_all"];
const BOTH_WAYS = ["port.layout", "port.find", "port.publish_both", "ring.release_all"];

/** A seed for each, counted up. */
let seeds = 0;

/** Runs over a ring or a port. */
export const LIVE_PLANS: LivePlan[] = [
  stream("stream_spinning", "A stream while both spin, around 2^32.", STREAM, {
    capacity: 4096,
    start: LATE_START,
    spin: 50,
    count: 1_500,
  }),
  stream("stream_parked", "A stream in which every wait is a sleep.", PARKED, {
    capacity: 4096,
    start: LATE_START,
    count: 400,
  }),
  stream("small_ring_spinning", "The smallest ring; most messages are of many frames.", STREAM, {
    start: LATE_START,
    spin: 50,
    count: 1_000,
  }),
  stream("small_ring_parked", "The smallest ring, asleep at every turn.", PARKED, { count: 300 }),
  stream("large_ring", "Messages of up to three times 64 KiB.", STREAM, {
    capacity: 65_536,
    start: LATE_START,
    count: 60,
  }),
  stream("slow_reader", "A reader that is often away: the writer waits for room.", [
    "wait.writer_asks",
    "ring.room",
    "pipe.order",
  ], { count: 300, second: { ...reads, ...slowly } }),
  stream("slow_writer", "A writer that is often away: the reader waits for more.", [
    "wait.reader_asks",
    "wait.disarm",
    "pipe.order",
  ], { count: 300, first: { ...writes, ...slowly } }),
  stream("poll", "Calls that do not wait, on both sides.", ["pipe.try_write", "pipe.order"], {
    capacity: 4096,
    count: 200,
    first: { ...writes, ...polling },
    second: { ...reads, ...polling },
  }),
  stream("event_to_block", "An event loop writes to a reader that blocks.", PARKED, {
    capacity: 4096,
    count: 200,
    first: { ...writes, ...waiting },
  }),
  stream("block_to_event", "A writer that blocks, and an event loop that reads.", PARKED, {
    capacity: 4096,
    count: 200,
    second: { ...reads, ...waiting },
  }),
  port("echo_spinning", "There and back while both spin.", BOTH_WAYS, {
    start: LATE_START,
    spin: 50,
    count: 600,
  }),
  port("echo_parked", "There and back, asleep at every turn.", [...BOTH_WAYS, ...PARKED], {
    capacity: 1024,
    count: 200,
  }),
  port("echo_event", "There and back between two event loops.", BOTH_WAYS, {
    capacity: 1024,
    count: 100,
    first: { ...drives, ...waiting },
    second: { ...echoes, ...waiting },
  }),
  port("echo_event_to_block", "There and back between an event loop and one that blocks.", PARKED, {
    capacity: 1024,
    count: 100,
    first: { ...drives, ...waiting },
  }),
  stream("writer_closes", "The writer leaves without an `end`: all that it published is read.", [
    "pipe.drain",
    "pipe.look_again",
    "pipe.close",
    "pipe.close_stores",
  ], {
    capacity: 1024,
    count: 50,
    first: { ...writes, then: "close" },
    second: { ...reads, end: "peer.closed" },
  }),
  stream("reader_closes", "The reader leaves in the middle: the writer is not left waiting.", [
    "pipe.peer_gone",
    "pipe.close",
    "pipe.close_stores",
    "segment.state_ring",
  ], {
    capacity: 1024,
    count: 2_000,
    first: { ...writes, end: "peer.closed", got: "some" },
    second: { ...reads, count: 20, then: "close", end: "done", got: 20 },
  }),
  stream("writer_killed", "The writer dies in the middle: what is read is a beginning, whole.", [
    "pipe.supervisor",
    "pipe.drain",
    "ring.publish",
    "wait.liveness",
  ], {
    capacity: 1024,
    count: ENDLESS,
    first: { ...writes, ...slowly, end: "", got: "some" },
    second: { ...reads, end: "peer.failed", reason: "death", got: "some" },
    kills: 0,
  }),
  stream("reader_killed", "The reader dies in the middle: the writer is not left waiting.", [
    "pipe.supervisor",
    "pipe.peer_gone",
    "wait.liveness",
  ], {
    capacity: 1024,
    count: ENDLESS,
    first: { ...writes, ...slowly, end: "peer.failed", reason: "death", got: "some" },
    second: { ...reads, end: "", got: "some" },
    kills: 1,
  }),
];

/** Runs over a mailbox, where the language has atomics. */
export const MAILBOX_PLANS: LivePlan[] = [
  mailbox("live_block", "A stream of messages between two that block.", ["mailbox.copy"], {}),
  mailbox("live_small", "A byte area so small that most messages take many parts.", [
    "mailbox.parts",
    "mailbox.write_all",
    "mailbox.recheck",
  ], { capacity: 64, count: 100 }),
  mailbox("live_poll", "Calls that do not wait, on both sides.", ["mailbox.turn"], {
    count: 60,
    first: { ...writes, ...polling, then: "stay" },
    second: { ...reads, ...polling, count: 60, end: "done" },
  }),
  mailbox("live_event", "Between two event loops.", ["mailbox.one_waiter", "mailbox.notify"], {
    count: 60,
    first: { ...writes, ...waiting, then: "stay" },
    second: { ...reads, ...waiting, count: 60, end: "done" },
  }),
  mailbox("live_reader_closes", "The reader leaves: the writer is not left waiting.", [
    "mailbox.close",
    "mailbox.closed",
  ], {
    count: 2_000,
    first: { ...writes, then: "stay", end: "peer.closed", got: "some" },
    second: { ...reads, count: 20, then: "close", end: "done", got: 20 },
  }),
];

type Some = Partial<LivePlan>;

function stream(id: string, about: string, clauses: string[], some: Some): LivePlan {
  return {
    id: `live/${id}`,
    about,
    clauses,
    on: "pipe",
    capacity: 256,
    spin: 0,
    seed: ++seeds,
    count: 0,
    first: writes,
    second: reads,
    ...some,
  };
}

function port(id: string, about: string, clauses: string[], some: Some): LivePlan {
  return {
    ...stream(id, about, clauses, some),
    on: "port",
    first: drives,
    second: echoes,
    ...some,
  };
}

function mailbox(id: string, about: string, clauses: string[], some: Some): LivePlan {
  const count = some.count ?? 150;
  return {
    ...stream(id, about, clauses, some),
    id: `mailbox/${id}`,
    on: "mailbox",
    capacity: 1024,
    count,
    // Nothing in a mailbox says that it was the last one.
    first: { ...writes, then: "stay" },
    second: { ...reads, count, end: "done" },
    ...some,
  };
}

// The live runs that every pair of testees must do that offers calls: both make trees of calls at
// once, which call back, fail and are given up, and serve those of the other.

/** More than anybody makes before it is stopped. */
const CALLS_ENDLESS = 100_000;
/** Calls that stand within one another, from each of the two sides. */
const DEEP = 64;

const WAITING = ["call.serve_waiting", "call.takes_in", "wait.mechanism", "wait.recheck"];
const ANSWERS = ["call.answer", "call.match", "call.once", "call.refused", "call.thrown"];
const GIVEN_UP = ["call.give_up", "call.cancelled", "call.late"];

/** A seed for each part, counted up. */
let seedsCalls = 100;

/** Runs over a port that offers calls. */
export const CALL_PLANS: LivePlan[] = [
  both(
    "call_trees",
    "Trees of calls beside plain messages, asleep at every turn.",
    [
      ...ANSWERS,
      ...GIVEN_UP,
      ...WAITING,
      "call.set_aside",
    ],
    { capacity: 1024 },
    { count: 10, depth: 4, width: 3, plain: true },
  ),
  both(
    "call_trees_spinning",
    "Trees of calls while both spin, around 2^32.",
    [
      ...ANSWERS,
      ...GIVEN_UP,
    ],
    { capacity: 4096, start: LATE_START, spin: 50 },
    { count: 8, depth: 4, width: 3 },
  ),
  both(
    "call_trees_small",
    "Trees of calls in the smallest rings, beside plain messages.",
    [
      ...ANSWERS,
      ...WAITING,
      "call.cancel_owed",
      "call.whole_first",
    ],
    { capacity: 256, start: LATE_START },
    { count: 6, depth: 4, width: 3, plain: true },
  ),
  both(
    "call_deep",
    "Calls within calls, from both sides at once, as deep as few programs go.",
    [
      ...WAITING,
      "call.depth",
    ],
    { capacity: 256 },
    { count: 2, depth: DEEP - 1, width: 1 },
  ),
  both(
    "call_one_way",
    "One side makes trees of calls; the other calls only back.",
    [
      ...ANSWERS,
      "call.serve_waiting",
    ],
    { capacity: 1024 },
    { count: 10, depth: 4, width: 3 },
    { second: { count: 0 } },
  ),
  both(
    "call_event",
    "Trees of calls between two event loops.",
    [...ANSWERS, ...GIVEN_UP],
    {
      capacity: 1024,
    },
    { count: 10, depth: 4, width: 3, plain: true },
    {
      first: { wait: "event" },
      second: { wait: "event" },
    },
  ),
  both(
    "call_event_to_block",
    "Trees of calls between an event loop and one that blocks.",
    [
      ...ANSWERS,
      ...WAITING,
    ],
    { capacity: 1024 },
    { count: 10, depth: 4, width: 3, plain: true },
    {
      first: { wait: "event" },
    },
  ),
  killed(),
];

type Wish = Omit<Trees, "seed"> & { count: number };

function both(
  id: string,
  about: string,
  clauses: string[],
  more: Partial<LivePlan>,
  { count, ...trees }: Wish,
  parts: { first?: Partial<Part>; second?: Partial<Part> } = {},
): LivePlan {
  const part = (own: Partial<Part> = {}): Part => ({
    role: "tree",
    wait: "block",
    then: "end",
    count,
    trees: { seed: ++seedsCalls, ...trees },
    end: "ended",
    got: "all",
    ...own,
  });
  const [first, second] = [part(parts.first), part(parts.second)];
  first.got = treeCount(first, second);
  second.got = treeCount(second, first);
  return {
    id: `live/${id}`,
    about,
    clauses,
    on: "call",
    capacity: 256,
    spin: 0,
    seed: seedsCalls,
    count: 2 * count,
    first,
    second,
    ...more,
  };
}

/** One of the two dies among its calls. */
function killed(): LivePlan {
  const about = "A side dies among calls within calls: the other one is not left waiting.";
  const clauses = ["call.lost", "pipe.supervisor", "wait.liveness", "call.answer"];
  const trees = { count: CALLS_ENDLESS, depth: 4, width: 3 };
  const plan = both("call_killed", about, clauses, { capacity: 1024, kills: 1 }, trees, {
    first: { end: "peer.failed" },
    second: { end: "" },
  });
  plan.first.got = "some";
  plan.second.got = "some";
  return plan;
}

// Live runs of codec `cbor`: one testee writes values, by its own encoder where it has one, between
// messages of other codecs, and another hands them out, encoded anew or as they came. What arrives
// must mean what was to be written.

/** How long each call may wait. */
export const CALL_MS = 5_000;
/** Larger than any of the messages. */
export const VALUE_LIMIT = 8192;
/** Most of the messages are of several frames of such a ring. */
const CAPACITY = 1024;

const CBOR = valueOf("codec", "cbor");
const JSON_TEXT = valueOf("codec", "json");
export const VALUE_CLAUSES = [
  "codec.cbor",
  "codec.cbor_tags",
  "codec.cbor_shared",
  "codec.bad_cbor",
  "pipe.order",
  "frame.multipart",
];

/** A text of 3,000 bytes, of characters of three, which frames cut anywhere. */
const LONG_TEXT = `79 0bb8 ${"e282ac ".repeat(1000)}`;
/** 500 floats of eight bytes. */
const LONG_TYPED = `d8 56 59 0fa0 ${"182d4454fb210940 ".repeat(500)}`;
/** 200 pairs. */
const LONG_MAP = `d9 0103 b8 c8 ${
  Array.from(
    { length: 200 },
    (_, index) => `19 ${hex16(1000 + index)} 61 ${hexOf(97 + index % 26)}`,
  )
    .join(" ")
}`;
/** As deep as every thread can write it: a worker of Chromium has stack for some 900 levels. */
const VALUES_DEEP = `${"81 ".repeat(limitOf("cbor_depth_max") / 2)} 82 01 02`;

/** What is written. */
export const VALUES: readonly MessageCase[] = [
  text("first"),
  cbor(RICH),
  message({ codec: JSON_TEXT, json: { a: [1, null] } }),
  cbor(SHARED),
  cbor(LONG_TEXT),
  message({ count: 20 }),
  cbor(LONG_TYPED),
  cbor(LONG_MAP),
  cbor(VALUES_DEEP),
  text("last"),
];

/** The case over a ring; `live_values` of streams has the other one. */
function liveValues(): KitCase<Arena> {
  return {
    id: "live/cbor",
    about: "Values of codec cbor between other messages, through a ring that most do not fit.",
    clauses: VALUE_CLAUSES,
    declinedBy: (hello, index) =>
      lacksNoun(hello, "pipe") ?? lacksRole(hello, index === 0 ? "writer" : "reader") ??
        (hello.waits.includes("block") ? undefined : "does not wait by block") ??
        lacksValues(hello, index),
    async run(arena) {
      const problems = await runRing(arena);
      return problems.length === 0 ? PASS : failed(VALUE_CLAUSES, problems);
    },
  };
}

/** Why a testee need not move these values. */
export function lacksValues({ levels, lacks }: Hello, index: number): string | undefined {
  if (!levels.includes("live")) return "does not run live";
  // Whoever decodes all that it reads drops what it does not know.
  const drops = index === 1 && lacks.includes("bytes") && lacks.includes("cbor");
  return drops ? "decodes all that it reads, and not cbor" : undefined;
}

/** How a testee opens its end: as a writer or reader of values, where it can. */
export function openingOf(hello: Hello, index: number): Partial<Opening> {
  if (index === 1) return { values: decodes(hello) };
  return { values: false, ...(hello.offers?.includes("encodes") && { encodes: true }) };
}

/** Whether a testee hands out what CBOR means. */
function decodes({ lacks }: Hello): boolean {
  return !lacks.includes("values") && !lacks.includes("cbor");
}

/** What a testee must read. */
export function expected(hello: Hello): Item[] {
  if (decodes(hello)) return [...VALUES];
  return VALUES.map((each) => each.cbor === undefined ? encoded(each) : each);
}

/** A message with its payload as bytes; of CBOR, bytes that mean its value. */
export function encoded({ cbor, json, ...rest }: MessageCase): MessageCase {
  if (cbor !== undefined) return { ...rest, hex: cbor };
  return json === undefined ? rest : { ...rest, hex: toHex(utf8(JSON.stringify(json))) };
}

async function runRing(arena: Arena): Promise<Problem[]> {
  const channel = { writer: 0, reader: 1, capacity: CAPACITY, label: 0, start: 0 };
  const geometry = { endpoints: 2, channels: [channel] };
  const field = await arena.field({ size: buildSegment(geometry).bytes.length });
  try {
    const writer = await open(arena, field, 0, { kind: "create", geometry, role: "writer" });
    const reader = await open(arena, field, 1, { kind: "attach", role: "reader" });
    const [, got] = await together([
      write(writer.session),
      reader.session.readMany(VALUES.length + 1, CALL_MS),
    ]);
    for (const { drop } of [writer, reader]) await drop();
    return compare(got!, { items: expected(reader.hello), end: "ended" });
  } finally {
    field.release();
  }
}

async function open(
  arena: Arena,
  field: Field,
  index: number,
  opening: Pick<Opening, "kind" | "geometry" | "role">,
) {
  const connection = await arena.connect(index);
  const { hello } = connection;
  const handle = connection.newHandle();
  const answer = answerOf(
    await connection.send({
      command: "open",
      handle,
      ...field.place(index),
      ...opening,
      endpoint: index,
      limit: VALUE_LIMIT,
      calls: false,
      spin_us: 0,
      ...openingOf(hello, index),
    }),
  );
  if (answer !== "ok") {
    throw new Wrong(`testee ${index + 1} cannot open its end: ${JSON.stringify(answer)}`);
  }
  const session = new RemoteSession(connection, handle, opening.role);
  return { hello, session, drop: () => connection.must({ command: "drop", handle }) };
}

async function write(session: RemoteSession): Promise<undefined> {
  for (const [index, each] of VALUES.entries()) {
    const answer = await session.write(encoded(each), true, CALL_MS);
    if (answer !== "ok") throw new Wrong(`message ${index}: write gave ${JSON.stringify(answer)}`);
  }
  const answer = await session.end();
  if (answer !== "ok") throw new Wrong(`end gave ${JSON.stringify(answer)}`);
}

function cbor(hex: string): MessageCase {
  return message({ codec: CBOR, cbor: toHex(fromHex(hex)) });
}

function hex16(value: number): string {
  return value.toString(16).padStart(4, "0");
}

function hexOf(value: number): string {
  return value.toString(16).padStart(2, "0");
}

// All live cases.

/** The cases of the level live; `death` is what a survivor learns in that place. */
export function liveCases(death: string): KitCase<Arena>[] {
  return [...[...LIVE_PLANS, ...CALL_PLANS].map((plan) => liveCase(plan, death)), liveValues()];
}

/** Those of the track of the mailbox. */
export function liveMailboxes(death: string): KitCase<Arena>[] {
  return MAILBOX_PLANS.map((plan) => liveCase(plan, death));
}
