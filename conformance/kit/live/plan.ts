/**
 * Live runs: two testees on one memory at the same time. The messages are those of a seed, so that
 * the kit knows every byte that must arrive, and a digest of them is all that has to come back.
 *
 * @module
 */

import { little } from "../../reference/bytes.ts";
import type { Problem } from "../../static/difference.ts";
import { Transcript } from "../crc32.ts";
import type { Ran, Task, Wait } from "../protocol.ts";
import { fill, folded, grow, letters, Random, Workload } from "./workload.ts";

/** One live run, for any two testees. */
export interface LivePlan {
  id: string;
  about: string;
  clauses: string[];
  /** What carries it: a ring one way, a port, a port that offers calls, or a mailbox. */
  on: "pipe" | "port" | "call" | "mailbox";
  capacity: number;
  start?: number;
  /** Microseconds to spin; 0 makes every wait a sleep. */
  spin: number;
  seed: number;
  count: number;
  /** What each of the two does; the first is the writer, or drives. */
  first: Part;
  second: Part;
  /** Who is killed in the middle. */
  kills?: 0 | 1;
}

/** What one of the two does. */
export interface Part {
  role: Task["role"] | "tree";
  wait: Wait;
  then: Task["then"];
  /** Messages to read at most; without it, until the end. */
  count?: number;
  delay_us?: number;
  delay_every?: number;
  /** Of trees of calls: those that this one makes, so many as `count` says. */
  trees?: Trees;
  /** How it must end. */
  end: string;
  /** Beside `peer.failed`: that of the carrier where it is `death`. */
  reason?: "death";
  /** How many messages must be in its transcript: all, a beginning of them, or so many. */
  got: "all" | "some" | number;
}

/** Trees of calls, as `protocol/README.md` describes them. */
export interface Trees {
  seed: number;
  depth: number;
  width: number;
  /** Whether a plain message is written before each of them. */
  plain?: boolean;
}

/**
 * The digest of the first messages of a seed, as a part has them in its transcript; `keeps` says
 * whether with the record of each.
 */
export function digest(plan: LivePlan, part: Part, count: number, keeps = false): Transcript {
  if (part.role === "tree") return treeDigest(part, count, keeps);
  const { seed, capacity, on } = plan;
  const workload = new Workload(seed, capacity);
  const scratch = new Uint8Array(workload.sizeMax);
  const make = on === "mailbox" ? letters : fill;
  const isTagged = hasTags(plan, part);
  const transcript = new Transcript(keeps);
  for (let index = 0; index < count; index++) {
    const message = workload.next();
    transcript.add(isTagged ? message.tag : 0, make(message, scratch));
  }
  return transcript;
}

/** The values of its own trees, and then the plain messages of the other one. */
function treeDigest(part: Part, count: number, keeps: boolean): Transcript {
  const transcript = new Transcript(keeps);
  const { seed, depth, width } = part.trees!;
  const own = Math.min(count, part.count!);
  const random = new Random(seed);
  for (let index = 0; index < own; index++) {
    transcript.add(index, word(folded(grow(random.next(), depth, width))));
  }
  for (let index = own; index < count; index++) transcript.add(0, word(index - own));
  return transcript;
}

/** How many messages are in the transcript of a part that makes trees. */
export function treeCount(part: Part, other: Part): number {
  return part.count! + (other.trees!.plain ? other.count! : 0);
}

function word(value: number): Uint8Array {
  return little(value, 4);
}

/** What an event loop writes has no tags, but in a mailbox, where they are in the message. */
function hasTags({ on, first, second }: LivePlan, { role }: Part): boolean {
  if (on === "mailbox") return true;
  const isTagged = first.wait !== "event";
  return role === "drive" ? isTagged && second.wait !== "event" : isTagged;
}

/** Says how a part went other than it must. */
export function judgePart(plan: LivePlan, part: Part, ran: Ran, death: string): Problem[] {
  const facts: string[] = [];
  if (ran.end !== part.end) {
    const beside = ran.reason === undefined ? "" : ` (${ran.reason})`;
    facts.push(`end: expected ${part.end}, got ${ran.end}${beside}`);
  } else if (part.reason !== undefined && ran.reason !== death) {
    facts.push(`the reason beside ${ran.end}: expected ${death}, got ${ran.reason ?? "none"}`);
  }
  const wanted = part.got === "all" ? plan.count : part.got;
  if (typeof wanted === "number" && ran.count !== wanted) {
    facts.push(`messages: expected ${wanted}, got ${ran.count}`);
  }
  if (ran.count <= plan.count) facts.push(...transcriptFacts(plan, part, ran));
  const who = part === plan.first ? "the first testee" : "the second testee";
  return facts.map((fact) => ({ text: `${who}, ${part.role}, ${fact}`, clauses: [] }));
}

/** In what the messages of a transcript are not those of the seed. */
function transcriptFacts(plan: LivePlan, part: Part, ran: Ran): string[] {
  const { size, crc32 } = digest(plan, part, ran.count);
  if (ran.size === size && ran.crc32 === crc32) return [];
  const { record } = digest(plan, part, ran.count, true);
  const facts = recordFacts(record!, ran.record ?? []);
  if (facts.length > 0) return facts;
  // Of a testee that keeps no record, or whose record is not what it has counted.
  return [
    `its ${ran.count} messages: expected ${size} bytes, CRC-32 ${hex(crc32)}, ` +
    `got ${ran.size} bytes, CRC-32 ${hex(ran.crc32)}`,
  ];
}

/** The first message that differs, and how. */
function recordFacts(must: Entry[], got: Entry[]): string[] {
  // One that does not go with its own count says nothing of single messages.
  if (got.length !== must.length) return [];
  const same = (a: Entry | undefined, b: Entry | undefined) => `${a}` === `${b}`;
  const differing = got.filter((entry, index) => !same(entry, must[index])).length;
  const at = got.findIndex((entry, index) => !same(entry, must[index]));
  if (at < 0) return [];
  const [is, wanted] = [got[at]!, must[at]!];
  const where = `message ${at}`;
  const facts: string[] = [];
  if (same(is, must[at + 1])) facts.push(`${where} is missing: the next stands in its place`);
  else if (same(is, must[at - 1])) facts.push(`${where}: the one before comes again`);
  for (const [index, name] of ["tag", "size", "CRC-32 of the payload"].entries()) {
    if (is[index] === wanted[index]) continue;
    const shown = (value: number) => index === 2 ? hex(value) : `${value}`;
    facts.push(`${where}, ${name}: expected ${shown(wanted[index]!)}, got ${shown(is[index]!)}`);
  }
  return [...facts, `${differing} of ${got.length} messages differ`];
}

/** A message of a record: its tag, its size, and the CRC-32 of its payload. */
type Entry = [number, number, number];

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
