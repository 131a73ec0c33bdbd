/**
 * Live runs: two testees on one memory at the same time. The messages are those of a seed, so that
 * the kit knows every byte that must arrive, and a digest of them is all that has to come back.
 *
 * @module
 */

import { fill, Workload } from "./workload.ts";
import { Transcript } from "./crc32.ts";
import { letters } from "./letters.ts";
import type { Ran, Task, Wait } from "./protocol.ts";

/** One live run, for any two testees. */
export interface LivePlan {
  id: string;
  about: string;
  clauses: string[];
  /** What carries it: a ring one way, a port, or a mailbox. */
  on: "pipe" | "port" | "mailbox";
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
  /** Whether the testees list what they write and read. */
  record?: boolean;
}

/** What one of the two does. */
export interface Part {
  role: Task["role"];
  wait: Wait;
  then: Task["then"];
  /** Messages to read at most; without it, until the end. */
  count?: number;
  delay_us?: number;
  delay_every?: number;
  /** How it must end. */
  end: string;
  /** Beside `peer.failed`: that of the carrier where it is `death`. */
  reason?: "death";
  /** How many messages must be in its transcript: all, a beginning of them, or so many. */
  got: "all" | "some" | number;
}

/** The digest of the first messages of a seed, as a part has them in its transcript. */
export function digest(plan: LivePlan, part: Part, count: number): Transcript {
  const { seed, capacity, on } = plan;
  const workload = new Workload(seed, capacity);
  const scratch = new Uint8Array(workload.sizeMax);
  const make = on === "mailbox" ? letters : fill;
  const isTagged = hasTags(plan, part);
  const transcript = new Transcript();
  for (let index = 0; index < count; index++) {
    const message = workload.next();
    transcript.add(isTagged ? message.tag : 0, make(message, scratch));
  }
  return transcript;
}

/** What an event loop writes has no tags, but in a mailbox, where they are in the message. */
function hasTags({ on, first, second }: LivePlan, { role }: Part): boolean {
  if (on === "mailbox") return true;
  const isTagged = first.wait !== "event";
  return role === "drive" ? isTagged && second.wait !== "event" : isTagged;
}

/** Says how a part went other than it must. */
export function judgePart(plan: LivePlan, part: Part, ran: Ran, death: string): string[] {
  const problems: string[] = [];
  const who = part === plan.first ? "the first testee" : "the second testee";
  if (ran.end !== part.end) {
    const beside = ran.reason === undefined ? "" : ` (${ran.reason})`;
    problems.push(`${who}, ${part.role}: ended with ${ran.end}${beside}, not ${part.end}`);
  } else if (part.reason !== undefined && ran.reason !== death) {
    problems.push(`${who}: the reason beside ${ran.end} is ${ran.reason}, not ${death}`);
  }
  const wanted = part.got === "all" ? plan.count : part.got;
  if (typeof wanted === "number" && ran.count !== wanted) {
    problems.push(`${who}, ${part.role}: ${ran.count} messages, not ${wanted}`);
  }
  if (ran.count > plan.count) return problems;
  const must = digest(plan, part, ran.count);
  if (ran.size !== must.size || ran.crc32 !== must.crc32) {
    problems.push(
      `${who}, ${part.role}: the ${ran.count} messages of its transcript are not those of ` +
        `seed ${plan.seed}: ${ran.size} bytes, digest ${hex(ran.crc32)}, ` +
        `not ${must.size} bytes, ${hex(must.crc32)}`,
    );
  }
  return problems;
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
