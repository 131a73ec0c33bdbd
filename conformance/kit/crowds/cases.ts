/**
 * The live runs of a crowd that every testee must do that offers properties or fanouts.
 *
 * @module
 */

import { isAll } from "../streams/script.ts";
import type { CrowdPlan, Role } from "./plan.ts";

/** Just below 2^32, so that positions wrap within the first messages. */
const LATE_START = 2 ** 32 - 256;
/** The same of versions. */
const LATE_VERSION = 2 ** 32 - 100;
/** More than is written before somebody is killed, and no more than fits the reply of a reader. */
const MANY = 8_000;
/** With `--all`, what goes by luck is tried so much longer. */
const SCALE = isAll() ? 5 : 1;

const writes: Role = { wait: "block", then: "end", end: "done", got: "all" };
const reads: Role = { wait: "block", then: "stay", end: "ended", got: "all" };
const polls: Role = { ...reads, wait: "poll" };
const turns: Role = { ...reads, wait: "event" };
/** Pauses between bursts at full speed: others come to their turns. */
const inBursts = { delay_us: 500, delay_every: 256 };
const slowly = { delay_us: 500, delay_every: 8 };
const dies: Role = { ...reads, end: "", got: "some" };
/** Who is killed late has written all, and is there still. */
const victim: Role = { ...writes, then: "stay", end: "", got: "some" };
const orphan: Role = { ...reads, end: "peer.failed", reason: "death", got: "some" };

const WHOLE = ["property.whole", "property.version", "property.sequence", "property.publish"];
const AWAKE = ["property.watch", "property.changed", "property.wake", "property.unwatch"];
const HELD = ["fanout.room", "fanout.reader", "fanout.join", "fanout.release"];
const LOST = ["fanout.overrun", "fanout.validate", "fanout.floor", "fanout.number"];

/** A seed for each, counted up. */
let seeds = 700;

/** The runs. */
export const CROWD_PLANS: CrowdPlan[] = [
  property(
    "latest",
    "A writer at full speed: who gets, polls or waits finds whole values, and the last one.",
    [...WHOLE, "property.changed", "property.next"],
    { count: 4_000 * SCALE, writer: { ...writes, ...inBursts }, readers: [polls, turns, reads] },
  ),
  property(
    "large",
    "Values of up to 12 KiB at full speed, got all the time.",
    [...WHOLE, "property.bounds", "property.write", "property.changed"],
    {
      area: 65_536,
      capacity: 4096,
      count: 1_500 * SCALE,
      writer: { ...writes, delay_us: 500, delay_every: 64 },
      readers: [polls],
    },
  ),
  property("waited", "Every wait is a sleep, and every reader is rung.", [
    ...AWAKE,
    "property.whole",
    "wait.mechanism",
  ], { count: 100, writer: { ...writes, delay_us: 200, delay_every: 1 }, readers: [reads, turns] }),
  property("around", "A writer goes on from another's version, and versions wrap.", [
    "property.begin",
    "property.next",
    "property.whole",
    "property.version",
    "property.changed",
  ], {
    start: LATE_VERSION,
    count: 300,
    writer: { ...writes, ...slowly },
    readers: [reads, turns],
  }),
  property("closes", "The writer closes: who waits is told, and has the last value.", [
    "property.close",
    "property.gone",
    "property.stays",
    "property.changed",
  ], {
    count: 100,
    writer: { ...writes, ...slowly, then: "close" },
    readers: [reads, turns].map((role) => ({ ...role, end: "peer.closed", got: "some" })),
  }),
  property(
    "killed",
    "The writer dies in the middle of a set: its last whole value stays.",
    [...WHOLE, "property.stays", "property.gone", "property.slice", "property.changed"],
    {
      area: 65_536,
      capacity: 4096,
      count: MANY,
      writer: { ...victim, delay_us: 500, delay_every: 64 },
      readers: [orphan, { ...orphan, wait: "event" }],
      kills: "writer",
    },
  ),
  fanout(
    "hold_parked",
    "Every reader gets every message, asleep at every turn.",
    [...HELD, "fanout.wake", "fanout.ask", "fanout.writer_asks"],
    { count: 200, readers: [reads, polls, turns] },
  ),
  fanout("hold_spinning", "The same while all spin, around 2^32.", [...HELD, "fanout.head"], {
    area: 4096,
    capacity: 512,
    start: LATE_START,
    spin: 50,
    count: 600 * SCALE,
    readers: [reads],
  }),
  fanout("hold_slow", "A reader that is often away holds the writer back.", [
    ...HELD,
    "fanout.writer_asks",
  ], { count: 200, readers: [reads, turns], last: { ...reads, ...slowly } }),
  fanout("hold_leaves", "A reader leaves in the middle, and joins again.", [
    ...HELD,
    "fanout.leave",
    "fanout.count",
  ], {
    count: 300,
    writer: { ...writes, ...slowly },
    readers: [reads],
    last: { ...reads, count: 40, end: "done", got: 40, rejoins: true },
  }),
  fanout("hold_closes", "A reader closes in the middle: the writer and the others go on.", [
    ...HELD,
    "fanout.gone",
    "fanout.no_readers",
    "segment.state_ring",
  ], {
    count: 300,
    readers: [reads],
    last: { ...reads, count: 20, then: "close", end: "done", got: 20 },
  }),
  fanout("hold_reader_killed", "A reader dies: the writer is not held back for ever.", [
    ...HELD,
    "fanout.gone",
    "pipe.supervisor",
    "wait.liveness",
  ], { count: 400, writer: { ...writes, ...slowly }, readers: [reads], last: dies, kills: "last" }),
  fanout("hold_killed", "The writer dies: what is read is a beginning, whole.", [
    ...HELD,
    "fanout.first_answer",
    "pipe.supervisor",
    "wait.liveness",
  ], {
    count: MANY,
    writer: { ...victim, ...slowly },
    readers: [orphan],
    kills: "writer",
  }),
  fanout("hold_drained", "The writer closes without an `end`: all that it published is read.", [
    ...HELD,
    "fanout.first_answer",
  ], {
    count: 100,
    writer: { ...writes, then: "close" },
    readers: [reads, turns].map((role) => ({ ...role, end: "peer.closed" })),
  }),
  lossy("lose", "A writer that waits for nobody: what is not read is told, to the message.", LOST, {
    count: 3_000 * SCALE,
    writer: { ...writes, ...inBursts },
    readers: [reads, polls],
    last: { ...turns, delay_us: 1_000, delay_every: 16 },
  }),
  lossy("lose_around", "The same in a small ring, where positions pass 2^32 and `era` counts.", [
    ...LOST,
    "fanout.tail",
    "fanout.floor_odd",
    "fanout.floor_step",
  ], {
    area: 1024,
    capacity: 64,
    start: LATE_START,
    count: 1_000 * SCALE,
    writer: { ...writes, ...inBursts },
    readers: [reads, { ...reads, ...slowly }],
  }),
  lossy("lose_killed", "The writer dies: what is read is whole, and what was lost was told.", [
    ...LOST,
    "fanout.first_answer",
    "wait.liveness",
  ], {
    count: MANY,
    writer: { ...victim, ...inBursts },
    readers: [orphan, { ...orphan, wait: "event" }],
    kills: "writer",
  }),
];

type Some = Partial<CrowdPlan>;

function property(name: string, about: string, clauses: string[], some: Some): CrowdPlan {
  return {
    id: `live/property_${name}`,
    about,
    clauses,
    on: "property",
    area: 4096,
    capacity: 256,
    spin: 0,
    seed: ++seeds,
    count: 0,
    writer: writes,
    readers: [reads],
    ...some,
  };
}

function fanout(name: string, about: string, clauses: string[], some: Some): CrowdPlan {
  const plan = property(name, about, clauses, { area: 1024, capacity: 128, ...some });
  return { ...plan, id: `live/fanout_${name}`, on: "hold" };
}

function lossy(name: string, about: string, clauses: string[], some: Some): CrowdPlan {
  const plan = property(name, about, clauses, some);
  return { ...plan, id: `live/fanout_${name}`, on: "lose" };
}
