/**
 * What a case of a stream is. `cases.schema.json` says the same to other programs.
 *
 * @module
 */

import { fromHex, toHex } from "../reference/bytes.ts";
import type { Item, Payload, Result } from "../reference/case.ts";
import { fieldOf, sizeOf } from "../reference/layout.ts";

/** What a side states in its preface. */
export interface Sizes {
  largest: number;
  window: number;
}

/**
 * What happens to the endpoint under test: its transport brings bytes or ends, its user calls, or
 * its transport takes all that there is to be sent (`take`).
 */
export type Operation =
  | { arrive: string[] }
  | { cut: true }
  /** Until nothing comes, or so many calls. */
  | { read: true | number }
  /** Without waiting. */
  | { write: Payload }
  /** Waits for credit for as long as it takes, while the case goes on. */
  | { post: Payload }
  | { end: true }
  | { close: true }
  | { take: true };

/** One thing that the endpoint has sent. A message appears with its last frame. */
export type Sent =
  | Item
  | { preface: Sizes }
  | { end: true }
  | { close: true }
  | { fail: string };

/** What the transport was given. */
export interface Taken {
  sent: Sent[];
  /**
   * The position that was told. Where an expectation leaves it out, any will do that may be told;
   * with `none`, nothing may be told.
   */
  credit?: number | "none";
  /** Whether the byte stream ends after it. */
  ends?: true;
}

export type StreamResult = Result | Taken;

/** The single difference between an invalid case and the valid one. */
export type Change = BytesChange | { member: string; value: unknown };

/**
 * A field of a structure that begins at byte `at` of what arrives in an operation; `payload` is
 * what stands after a frame's header.
 */
interface BytesChange {
  operation: number;
  at: number;
  structure: string;
  field: string;
  hex: string;
}

/** Everything that can be stated of a case, and so changed in an invalid one. */
export interface Setting {
  own: Sizes;
  /** Largest message that the reader takes; 4096 when left out. */
  limit?: number;
  operations: Operation[];
}

interface Common {
  id: string;
  about: string;
  clauses: string[];
  expect: { results: StreamResult[] };
}

export type ValidCase = Common & Setting;

export interface InvalidCase extends Common {
  from: string;
  change: Change;
}

export type StreamCase = ValidCase | InvalidCase;

export function isInvalid(entry: StreamCase): entry is InvalidCase {
  return "from" in entry;
}

/** The setting of a case, its change made. Throws where that changes nothing. */
export function settingOf(entry: StreamCase, cases: Map<string, StreamCase>): Setting {
  const base = isInvalid(entry) ? cases.get(entry.from) : entry;
  if (base === undefined || isInvalid(base)) throw new Error(`${entry.id}: there is no valid case`);
  const { own, limit, operations } = base;
  const setting: Setting = structuredClone({
    own,
    ...limit !== undefined && { limit },
    operations,
  });
  if (!isInvalid(entry)) return setting;
  const before = JSON.stringify(setting);
  const { change } = entry;
  if ("member" in change) changeMember(setting, change.member, change.value);
  else changeBytes(setting, change);
  if (JSON.stringify(setting) === before) throw new Error(`${entry.id}: no change`);
  return setting;
}

function changeMember(setting: Setting, path: string, value: unknown): void {
  const keys = path.split(".");
  const last = keys.pop()!;
  let target = setting as unknown as Record<string, unknown>;
  for (const key of keys) target = target[key] as Record<string, unknown>;
  target[last] = value;
}

function changeBytes(setting: Setting, change: BytesChange): void {
  const operation = setting.operations[change.operation]!;
  if (!("arrive" in operation)) throw new Error("only bytes that arrive can be changed");
  const { offset, size } = change.field === "payload"
    ? { offset: sizeOf("frame_header"), size: Infinity }
    : fieldOf(change.structure, change.field);
  const bytes = fromHex(change.hex);
  if (bytes.length > size) throw new Error(`${change.field} has ${size} bytes`);
  const all = fromHex(operation.arrive.join(""));
  all.set(bytes, change.at + offset);
  operation.arrive = [toHex(all)];
}
