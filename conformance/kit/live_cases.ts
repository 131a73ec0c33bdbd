/**
 * The live runs that every pair of testees must do.
 *
 * @module
 */

import type { LivePlan, Part } from "./live_plan.ts";

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
