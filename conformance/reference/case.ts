/**
 * What a case is. `cases.schema.json` says the same to other programs.
 *
 * @module
 */

import type { Image, Run } from "./bytes.ts";
import type { ChannelPlan } from "./encode.ts";

/**
 * A value of a list: a text, JSON, bytes of a codec, 0 where none is said; or absent. In an
 * expectation, `any` is any value.
 */
export type Value =
  | { any: true }
  | { text: string }
  | { json: unknown }
  | { hex: string; codec?: number }
  | Record<string, never>;

/** What is called: a method, and its arguments. */
export interface Calling {
  name: string;
  values: Value[];
}

/**
 * A message, with its payload in one of six forms; `json`, `values` and `cbor` are compared as
 * values. In an expectation without any of them, any payload will do.
 */
export interface MessageCase {
  kind: number;
  codec: number;
  tag: number;
  hex?: string;
  /** So many bytes: 00 01 02 and so on, 00 after ff. */
  count?: number;
  text?: string;
  json?: unknown;
  /** A list, in codec `values`. */
  values?: Value[];
  /** In an expectation: the payload, or any other that means the same, in codec `cbor`. */
  cbor?: string;
}

/** One thing that a read gives. */
export type Item = MessageCase | Report;

/** A message that was lost; with `count`, so many that the reader of a fanout was overrun by. */
export interface Report {
  report: string;
  count?: number;
}

/** What stands beside `pipe.failed` and `peer.failed`: a number where it has no name. */
export type Reason = string | number;

/** What reading gives, and why there is no more. */
export interface Drained {
  items: Item[];
  /**
   * `nothing` yet, `ended`, `refused` (the caller's mistake), or a reason code; absent when as much
   * came as was asked for.
   */
  end?: string;
  reason?: Reason;
  /** Of a value of a property: its version. */
  version?: number;
}

/** A call that fails, and the reason beside its code. */
export interface Failure {
  code: string;
  reason: Reason;
}

/**
 * What the endpoint under test does; or what its peer does, which is the kit: `set` stores bytes,
 * `take` reads the channel as a strict reader does and gives all space back, `room` gives back only
 * as much as makes so many bytes free.
 */
export type Operation =
  /** Until nothing comes, or so many calls. */
  | { read: true | number }
  /** Borrows the next frame, a whole message, where it lies; and gives it back. */
  | { peek: true }
  | { release: true }
  /** Without waiting; or, with `wait`, for a few milliseconds. */
  | { write: Payload; wait?: true }
  /** Goes on with the write to a mailbox that timed out after its first part. */
  | { resume: true }
  /** Claims, fills and finishes or abandons; nothing is visible before `publish`. */
  | { claim: Payload; size: number; abandon?: boolean }
  /** Claims and leaves the claim open, until it is finished or given up. */
  | { claim: Payload; size: number; open: true }
  | { finish: Payload }
  | { abandon: true }
  | { publish: true }
  | { end: true }
  | { close: true }
  /** Gives the peer's endpoint back, whose owner is dead, so that another may attach. */
  | { vacate: true }
  /** As the reader of a fanout in mode `hold`, which has joined when it was opened. */
  | { leave: true }
  | { join: true }
  /** Makes a call, and does not wait for its answer; calls are counted from 0. */
  | { call: Calling; items?: true }
  | { notify: Calling }
  /** Gives a call up, as by a signal. */
  | { give_up: number }
  /** What has come of a call; the next item of one. */
  | { outcome: number }
  | { item: number }
  /** The value of a property now, as the one item, or none. */
  | { get: true }
  /** Takes the value of a property back. */
  | { clear: true }
  /** Waits a few milliseconds for a version other than the last that was got; 0 at first. */
  | { changed: true }
  | { set: Run[] }
  | { take: true }
  | { room: number };

/** A message to write: its payload; kind 1, codec 0 and tag 0 when left out. */
export type Payload = Partial<MessageCase>;

/**
 * What has come of a call: `pending`, an `item`, `returned`, or a reason code. A value that is
 * absent is left out.
 */
export interface Settled {
  outcome: string;
  value?: Value;
  /** Beside `call.thrown`. */
  error?: { name: string; text: string; data?: Value };
}

/**
 * `ok`, `full` (there is no room now), `refused` (the caller's mistake), a reason code, alone or
 * with the reason beside it, what reading gave, or what has come of a call.
 */
export type Result = string | Failure | Drained | Settled;

/** A result that must come, or several of which one must. */
export type Wanted = Result | { one_of: Result[] };

/** Bytes that must result: these, one of these, so many of 0, or, with `not`, any others. */
export interface Expected {
  offset: number;
  hex?: string;
  one_of?: string[];
  zero?: number;
  not?: string;
  about?: string;
}

/** The single difference between an invalid case and the valid one. */
export type Change =
  | { at: number; structure: string; field: string; hex: string }
  | { member: string; value: unknown };

export type Role =
  | "segment"
  | "reader"
  | "writer"
  | "port"
  | "mailbox_reader"
  | "mailbox_writer"
  | "property_reader"
  | "property_writer"
  | "fanout_reader"
  | "fanout_writer";

export interface Expectation {
  /** Of attaching or creating: `ok` when left out. */
  result?: string;
  /** One for each operation, where there are any. */
  results?: Wanted[];
  bytes?: Expected[];
  /** The memory must be as it was. */
  unchanged?: true;
}

/** Everything that can be stated of a case, and so changed in an invalid one. */
export interface Setting {
  kind: "attach" | "create" | "read" | "write" | "decode" | "call";
  image: Image;
  /** Where the memory begins, beyond a multiple of 128. */
  memory_offset?: number;
  role: Role;
  endpoint?: number;
  channel?: number;
  /** Largest message that the reader takes. */
  limit?: number;
  /** Whether the reader of a fanout in mode `lose` begins at the oldest message. */
  oldest?: boolean;
  /** Whether the reader offers calls. */
  calls?: boolean;
  /** For `call`: the id of the first call; 1 where it is left out. */
  first_id?: number;
  /** For `create`: what to make; and whether as the memory's only owner. */
  geometry?: { endpoints: number; channels: ChannelPlan[] };
  /** The name of the property to open; otherwise it is that of `channel`. */
  property?: string;
  sole_owner?: boolean;
  operations?: Operation[];
}

/** Something that a port need not offer; `README.md` says what each of them is. */
export type Optional =
  | "alignment"
  | "word_alignment"
  | "endpoint"
  | "calls"
  | "values"
  | "bytes"
  | "elements"
  | "unknown_codec"
  | "cbor"
  | "application_codec"
  | "batches"
  | "lending"
  | "vacating"
  | "finishing"
  | "inbox"
  | "chunk_sizes"
  | "release"
  | "surrogates"
  | "first_id"
  | "later";

interface Common {
  id: string;
  about: string;
  clauses: string[];
  /** A port that does not offer one of these may decline the case; no other port may. */
  may_decline?: Optional[];
  expect: Expectation;
}

/** A case that stands on its own. */
export type ValidCase = Common & Setting;

/** A case that differs from a valid one in one thing. */
export interface InvalidCase extends Common {
  from: string;
  change: Change;
}

export type Case = ValidCase | InvalidCase;

export function isInvalid(entry: Case): entry is InvalidCase {
  return "from" in entry;
}

/** Replaces one member of a setting, given by its path. Throws where that changes nothing. */
export function changeMember(id: string, setting: Setting, path: string, value: unknown): void {
  const keys = path.split(".");
  const last = keys.pop() as string;
  let target = setting as unknown as Record<string, unknown>;
  for (const key of keys) target = target[key] as Record<string, unknown>;
  if (target === undefined) throw new Error(`${id}: there is no member ${path}`);
  if (JSON.stringify(target[last]) === JSON.stringify(value)) throw new Error(`${id}: no change`);
  target[last] = value;
}
