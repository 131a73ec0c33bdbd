/**
 * The live runs of a crowd that every testee must do that offers properties or fanouts.
 *
 * @module
 */

import type { Problem } from "../../static/difference.ts";
import type { Arena } from "../arena.ts";
import { crc32, NO_MESSAGE, Transcript } from "../crc32.ts";
import { fill, Workload } from "../live/workload.ts";
import type { Ran, Task, Wait } from "../protocol.ts";
import { isAll } from "../streams/stage.ts";
import type { KitCase } from "../verdict.ts";
import { answersCase, crowdCase } from "./level.ts";

// Live runs of a crowd: one testee writes a property or a fanout, and several others read it at
// the same time. What is written are the messages of a seed, so that the kit knows what stands
// after every version and every tag that a reader reports.

/** One live run, for a writer and any number of readers. */
export interface CrowdPlan {
  id: string;
  about: string;
  clauses: string[];
  /** What carries it: a property, or a fanout in one of its modes. */
  on: "property" | "hold" | "lose";
  /** Bytes of the byte area. */
  area: number;
  /** From which the sizes of the workload follow: its largest message has three times as many. */
  capacity: number;
  /** Of a fanout, the position at which it begins; of a property, the version that is there. */
  start?: number;
  /** Microseconds to spin; 0 makes every wait a sleep. */
  spin: number;
  seed: number;
  count: number;
  writer: Role;
  /** What the readers do, in turns. */
  readers: Role[];
  /** What the last reader does in place of that. */
  last?: Role;
  /** Who is killed in the middle. */
  kills?: "writer" | "last";
}

/** What one of them does. */
export interface Role {
  /** By calls that block, where the testee does not wait so. */
  wait: Wait;
  then: Task["then"];
  /** Of the reader of a fanout: messages to read at most; without it, until the end. */
  count?: number;
  delay_us?: number;
  delay_every?: number;
  /** How it must end. */
  end: string;
  /** Beside `peer.failed`: that of the carrier where it is `death`. */
  reason?: "death";
  /** How much it must have written or read: all, a beginning, or so many messages. */
  got: "all" | "some" | number;
  /** Of the reader of a fanout: leaves it then, joins it again, and reads until the end. */
  rejoins?: true;
  /** It begins at any message from that one on. */
  from?: number;
}

/** A message as it stands in a transcript: its tag, its size, and the CRC-32 of its payload. */
type Entry = [number, number, number];

/** It may be the reader's fault or the writer's. */
const TORN = "[property.whole] [property.publish]";

/** Versions wrap to this: the slots still take turns, and 0 says that nothing was ever set. */
const AROUND = 4;

/** The version that follows on another. [property.next] */
export function nextVersion(version: number): number {
  return (version + 1) % 2 ** 32 || AROUND;
}

/** The messages of a seed, each as long as somebody asks for it. */
export class Expected {
  readonly #workload: Workload;
  readonly #scratch: Uint8Array;
  readonly #payloads: Uint8Array[] = [];

  constructor({ seed, capacity }: Pick<CrowdPlan, "seed" | "capacity">) {
    this.#workload = new Workload(seed, capacity);
    this.#scratch = new Uint8Array(this.#workload.sizeMax);
  }

  /** The payload of the message of this number, counted from 0. */
  payload(index: number): Uint8Array {
    while (this.#payloads.length <= index) {
      this.#payloads.push(fill(this.#workload.next(), this.#scratch).slice());
    }
    return this.#payloads[index]!;
  }
}

/** Says how the writer went other than it must. Its transcript is that of any writer. */
export function judgeWriter(plan: CrowdPlan, ran: Ran, expected: Expected): Problem[] {
  const facts = endFacts(plan.writer, ran, "");
  if (plan.writer.got === "all" && ran.count !== plan.count) {
    facts.push(`messages: expected ${plan.count}, got ${ran.count}`);
  }
  if (ran.count <= plan.count) {
    const transcript = new Transcript();
    for (let index = 0; index < ran.count; index++) {
      transcript.add(index, expected.payload(index));
    }
    if (!isSame(transcript, ran)) facts.push("its transcript is not that of the messages");
  }
  return told("the writer", facts);
}

/** Says how a reader went other than it must; `left` is the last version in the memory. */
export function judgeReader(
  plan: CrowdPlan,
  role: Role,
  who: string,
  ran: Ran,
  expected: Expected,
  death: string,
  left: number,
): Problem[] {
  const facts = endFacts(role, ran, death);
  const { record } = ran;
  if (record === undefined || record.length !== ran.count) {
    return told(who, [...facts, "its record does not list what it has counted"]);
  }
  const found = plan.on === "property"
    ? propertyFacts(plan, record, expected, left)
    : plan.on === "hold"
    ? heldFacts(plan, role, record, expected)
    : lossyFacts(plan, role, ran, record, expected);
  facts.push(...found.facts);
  if (facts.length === 0 && !isSame(found.transcript, ran)) {
    facts.push("its transcript is not that of what its record lists");
  }
  return told(who, facts);
}

/** What is wrong with a record, and the transcript that goes with it where nothing is. */
interface Found {
  facts: string[];
  transcript: Transcript;
}

function endFacts({ end, reason }: Role, ran: Ran, death: string): string[] {
  if (ran.end !== end) {
    const beside = ran.reason === undefined ? "" : ` (${ran.reason})`;
    return [`end: expected ${end}, got ${ran.end}${beside}`];
  }
  if (reason === undefined || ran.reason === death) return [];
  return [`the reason beside ${end}: expected ${death}, got ${ran.reason ?? "none"}`];
}

/** Versions rise, and each has the value that was set as that. */
function propertyFacts(
  { start = 0, count }: CrowdPlan,
  record: Entry[],
  expected: Expected,
  left: number,
): Found {
  const facts: string[] = [];
  const transcript = new Transcript();
  const indexes = new Map<number, number>();
  let before = -1;
  for (const entry of record) {
    const [version] = entry;
    const index = start === version ? -1 : indexOf(version, start);
    indexes.set(version, index);
    const isKnown = index < count && (index >= 0 || start !== 0);
    if (!isKnown) {
      facts.push(`[property.version] version ${version} was never set`);
      break;
    }
    const isAgain = index === before && transcript.count > 0;
    if (index < before) facts.push(`[property.version] version ${version} came behind a later one`);
    if (isAgain) facts.push(`${TORN} version ${version} was got twice, and differs`);
    const payload = index < 0 ? STARTED : expected.payload(index);
    if (payload.length > 0) transcript.add(version, payload);
    else transcript.addNone(version);
    const must = entryOf(version, payload);
    if (`${must}` !== `${entry}`) {
      facts.push(
        `${TORN} version ${version}: expected ${shown(must)}, got ${shown(entry)}`,
      );
    }
    if (facts.length > 0) break;
    before = index;
  }
  const last = record.at(-1)?.[0];
  if (facts.length === 0 && last !== left) {
    facts.push(`[property.changed] the last version: expected ${left}, got ${last ?? "none"}`);
  }
  return { facts, transcript };
}

/** What a property has, whose versions do not begin with the first. */
export const STARTED: Uint8Array = new TextEncoder().encode("of a writer before");

/** Which message is that version's. Those before the start are none. */
function indexOf(version: number, start: number): number {
  if (version === 0) return Infinity;
  const distance = (version - start) >>> 0;
  // After 2^32 - 1 comes 4.
  return version < start ? distance - 1 - AROUND : distance - 1;
}

/** Every message comes, in order. */
function heldFacts({ count }: CrowdPlan, role: Role, record: Entry[], expected: Expected): Found {
  const facts: string[] = [];
  const transcript = new Transcript();
  let due = role.from === undefined ? 0 : Math.max(record[0]?.[0] ?? count, role.from);
  const first = due;
  for (const entry of record) {
    const [tag] = entry;
    if (tag !== due || tag >= count) {
      facts.push(`[fanout.room] message ${tag} of ${count} stands where ${due} was due`);
      break;
    }
    const payload = expected.payload(due++);
    transcript.add(tag, payload);
    const must = messageOf(tag, payload);
    if (`${must}` === `${entry}`) continue;
    facts.push(`[fanout.room] message ${tag}: expected ${shown(must)}, got ${shown(entry)}`);
    break;
  }
  const wanted = role.got === "all" ? count : role.got;
  if (facts.length === 0 && typeof wanted === "number") {
    const got = record.length;
    const must = wanted - first;
    if (got !== must) facts.push(`[fanout.reader] messages: expected ${must}, got ${got}`);
  }
  return { facts, transcript };
}

/** Every message comes, in order, or is told as lost in its place. */
function lossyFacts(
  { count }: CrowdPlan,
  role: Role,
  ran: Ran,
  record: Entry[],
  expected: Expected,
): Found {
  const facts: string[] = [];
  const transcript = new Transcript();
  let [due, lost] = [0, 0];
  for (const entry of record) {
    const [tag, size] = entry;
    if (size === NO_MESSAGE) {
      transcript.addNone(tag);
      due += tag;
      lost += tag;
      continue;
    }
    if (tag !== due || tag >= count) {
      const place = `message ${tag} of ${count} stands where ${due} was due`;
      facts.push(`[fanout.overrun] ${place}, and ${lost} were told as lost`);
      break;
    }
    const payload = expected.payload(due++);
    transcript.add(tag, payload);
    const must = messageOf(tag, payload);
    if (`${must}` === `${entry}`) continue;
    facts.push(`[fanout.validate] message ${tag}: expected ${shown(must)}, got ${shown(entry)}`);
    break;
  }
  if (facts.length === 0 && (role.got === "all" ? due !== count : due > count)) {
    facts.push(`[fanout.overrun] read and lost: expected ${count}, got ${due}`);
  }
  if (facts.length === 0 && ran.lost !== lost) {
    facts.push(`[fanout.overrun] lost: ${lost} in its record, ${ran.lost ?? "none"} as it counts`);
  }
  return { facts, transcript };
}

/** A message without a payload is set as none. */
function entryOf(tag: number, payload: Uint8Array): Entry {
  return payload.length > 0 ? messageOf(tag, payload) : [tag, NO_MESSAGE, 0];
}

function messageOf(tag: number, payload: Uint8Array): Entry {
  return [tag, payload.length, crc32(payload)];
}

function shown([, size, crc]: Entry): string {
  if (size === NO_MESSAGE) return "none";
  return `${size} bytes of CRC-32 ${crc.toString(16).padStart(8, "0")}`;
}

function isSame(transcript: Transcript, { count, size, crc32 }: Ran): boolean {
  return transcript.count === count && transcript.size === size && transcript.crc32 === crc32;
}

/** Facts name their clauses. */
function told(who: string, facts: string[]): Problem[] {
  return facts.map((fact) => {
    const [clauses] = /^(?:\[.*?\] )*/.exec(fact)!;
    return { text: `${clauses}${who}: ${fact.slice(clauses.length)}`, clauses: [] };
  });
}

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

// All live cases of crowds.

/** Those of so many testees; `death` is what a survivor learns in that place. */
export function crowdCases(death: string, seats: number): KitCase<Arena>[] {
  return [...CROWD_PLANS.map((plan) => crowdCase(plan, death, seats)), answersCase(seats)];
}
