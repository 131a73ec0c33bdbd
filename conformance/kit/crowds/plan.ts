/**
 * Live runs of a crowd: one testee writes a property or a fanout, and several others read it at
 * the same time. What is written are the messages of a seed, so that the kit knows what stands
 * behind every version and every tag that a reader reports.
 *
 * @module
 */

import type { Problem } from "../../static/difference.ts";
import { crc32, NO_MESSAGE, Transcript } from "../crc32.ts";
import type { Ran, Task, Wait } from "../protocol.ts";
import { fill, Workload } from "../workload.ts";

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
  // Behind 2^32 - 1 comes 4.
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
