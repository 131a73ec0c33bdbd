/**
 * What the kit and a testee say to one another. `conformance/protocol/README.md` tells what it
 * means, and the schemas beside it say the same to other programs.
 *
 * @module
 */

import type { Run } from "../reference/bytes.ts";
import type { MessageCase, Optional, Reason, Role, Setting } from "../reference/case.ts";
import type { Value } from "../reference/case.ts";

/** Which version of the protocol this kit speaks. */
export const PROTOCOL = 1;

export type Level = "static" | "scripted" | "live" | "stress" | "mailbox";
export type CarrierKind = "bytes" | "file" | "shared" | "mapped" | "stream";
export type Wait = "block" | "poll" | "event";
export type OpenRole = Role | "hub";
/** What carries the bytes of a stream. */
export type TransportKind = "unix" | "tcp" | "fifo";

/** What a testee says of itself. */
export interface Hello {
  protocol: number;
  name: string;
  version: string;
  language: string;
  levels: Level[];
  nouns: string[];
  /** All of them, where it is left out. */
  roles?: Role[];
  carriers: CarrierKind[];
  waits: Wait[];
  lacks: Optional[];
  /** What it knows of the parts of the protocol that are left to it; none where left out. */
  offers?: Offer[];
  /** With carrier `stream`: over what, and how its streams wait, in the usual way first. */
  streams?: { transports: TransportKind[]; waits: Wait[] };
}

/** Parts of the protocol that a testee may leave out; `protocol/README.md` says what they are. */
export type Offer =
  | "read_many"
  | "ways"
  | "inbox"
  | "lossy"
  | "close_ms"
  | "cross"
  | "mixed"
  | "hub"
  | "no_block"
  | "encodes";

/** Which memory to open, and how to come to it. */
export type Place =
  | { carrier: "bytes"; memory: { size: number; bytes: Run[] }; memory_offset?: number }
  | { carrier: "file" | "mapped"; path: string }
  | { carrier: "shared"; name: string }
  | { carrier: "stream" } & Transport;

/** How the testee comes to the bytes of a stream; the kit is at the other end. */
export type Transport =
  | { transport: "unix"; path: string }
  | { transport: "tcp"; tcp_port: number }
  /** Reads from `path`, and writes to `path_out`. */
  | { transport: "fifo"; path: string; path_out: string };

/** How to open it. */
export interface Opening {
  kind: "attach" | "create";
  geometry?: Setting["geometry"];
  sole_owner?: boolean;
  role: OpenRole;
  endpoint?: number;
  channel?: number;
  limit?: number;
  calls?: boolean;
  values?: boolean;
  /** Whether what is written of codec `cbor` is given to the port as a value. */
  encodes?: boolean;
  /** Whether the port writes values as JSON, for tasks that are `mixed`. */
  mixed?: boolean;
  spin_us?: number;
  /**
   * With carrier `file`: how long to wait for others that open or replace the same file; with
   * carrier `stream`: for the peer's preface.
   */
  timeout_ms?: number;
  /** With carrier `stream`: what its preface states. */
  largest?: number;
  window?: number;
  inbox?: number;
  /** Whether it serves the kit's methods; and the id of its first call. */
  serves?: boolean;
  first_id?: number;
  /** With `serves`: whether it serves any method; it does where it is left out. */
  methods?: boolean;
  /** The name by which a property is looked for. */
  property?: string;
  /** Whether the reader of a fanout in mode `lose` begins at the oldest message. */
  oldest?: boolean;
}

/** A message to write: its encoded payload, and for a mailbox the values too. */
export interface Outgoing {
  kind: number;
  codec: number;
  tag: number;
  hex: string;
  json?: unknown[];
}

/** A part of a live run. */
export interface Task {
  role: "write" | "read" | "echo" | "drive" | "cross" | "mixed";
  seed: number;
  capacity: number;
  count?: number;
  wait: Wait;
  then: "end" | "close" | "stay";
  delay_us?: number;
  delay_every?: number;
  close_ms?: number;
  lossy?: boolean;
  record?: boolean;
  /** With `mixed`: by which call each message is written, and how many letters it has. */
  order?: [way: Mixing, size: number][];
}

/** A call that writes: one that returns at once, one that gives a promise, one that waits. */
export type Mixing = "post" | "promise" | "block";

/** The part of a live run that makes trees of calls, and serves those of the other. */
export interface TreeTask extends Pick<Task, "seed" | "capacity" | "wait" | "then" | "record"> {
  role: "tree";
  count: number;
  depth: number;
  width: number;
  /** Whether a plain message is written before each tree. */
  plain?: boolean;
}

/** By which calls, and, of a hub, for which client. */
export interface Way {
  wait?: Wait;
  client?: number;
}

/** A call that takes nothing with it. */
export type Bare =
  | "peek"
  | "release"
  | "abandon"
  | "publish"
  | "end"
  | "close"
  | "vacate"
  | "clear"
  | "leave"
  | "join";

/** A command, without the `id` that it gets when it is sent. */
export type Command =
  | { command: "start"; protocol: number }
  | { command: "open"; handle: number } & Place & Opening
  | { command: "read"; handle: number; timeout_ms: number; count?: number } & Way
  | { command: Bare; handle: number; client?: number }
  | { command: "drop"; handle: number }
  | { command: "write"; handle: number; message: Outgoing; timeout_ms?: number } & Way
  | Claim
  | { command: "finish"; handle: number; message: Outgoing; client?: number }
  | { command: "resume"; handle: number; timeout_ms: number }
  | MakeCall
  | { command: "notify"; handle: number; name: string; values: Value[] } & Way
  | { command: "give_up" | "outcome" | "item"; handle: number; call: number } & Way
  | { command: "get"; handle: number }
  | { command: "changed"; handle: number; timeout_ms: number }
  | { command: "told"; handle: number; client?: number }
  | { command: "patch"; handle: number; bytes: Run[] }
  | { command: "dump"; handle: number; from?: number; size?: number }
  | { command: "run"; handle: number; task: Task | TreeTask; timeout_ms: number };

/** A call; with a deadline, the testee waits for its answer. */
export interface MakeCall extends Way {
  command: "call";
  handle: number;
  name: string;
  values: Value[];
  items: boolean;
  timeout_ms?: number;
}

/** A claim that is filled in, and finished or given up. */
export interface Claim {
  command: "claim";
  handle: number;
  message: Outgoing;
  size: number;
  abandon: boolean;
  /** Leaves it open, for `finish` or `abandon`. */
  open?: true;
  client?: number;
}

/** What went wrong in the port. */
export interface Failed {
  code: string;
  reason?: Reason;
  /** Beside `message.lost`. */
  count?: number;
  message?: string;
}

/** What a call gives that reads nothing. */
export interface Done {
  outcome: "ok" | "full" | "refused";
}

/** What a read gives. */
export type Taken = { item: MessageCase } | { end: "nothing" | "ended" };

/** What many reads give: what came, and what ended it where not as much came as was asked for. */
export interface TakenMany {
  items: (MessageCase | { report: string })[];
  end?: string;
  reason?: Reason;
}

/** The value of a property, none without an item, and its version. */
export interface Gotten {
  version: number;
  item?: MessageCase;
}

/** How a task went. */
export interface Ran {
  count: number;
  size: number;
  crc32: number;
  end: string;
  reason?: Reason;
  parks?: number;
  wakes?: number;
  /** Sleeps that nothing ended but their slice, with something there to be done. */
  late_wakes?: number;
  lost?: number;
  record?: [number, number, number][];
}

/** A reply, without its `id`. */
export type Reply = { result: object } | { error: Failed } | { decline: string };
