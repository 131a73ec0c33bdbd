/**
 * What the kit and a testee say to one another. `conformance/protocol/README.md` tells what it
 * means, and the schemas beside it say the same to other programs.
 *
 * @module
 */

import type { Run } from "../reference/bytes.ts";
import type { MessageCase, Optional, Reason, Role, Setting } from "../reference/case.ts";

/** Which version of the protocol this kit speaks. */
export const PROTOCOL = 1;

export type Level = "static" | "scripted" | "live" | "stress" | "mailbox";
export type CarrierKind = "bytes" | "file" | "shared";
export type Wait = "block" | "poll" | "event";

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
}

/** Which memory to open, and how to come to it. */
export type Place =
  | { carrier: "bytes"; memory: { size: number; bytes: Run[] }; memory_offset?: number }
  | { carrier: "file"; path: string }
  | { carrier: "shared"; name: string };

/** How to open it. */
export interface Opening {
  kind: "attach" | "create";
  geometry?: Setting["geometry"];
  sole_owner?: boolean;
  role: Role;
  endpoint?: number;
  channel?: number;
  limit?: number;
  calls?: boolean;
  values?: boolean;
  spin_us?: number;
  /** With carrier `file`: how long to wait for others that open or replace the same file. */
  timeout_ms?: number;
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
  role: "write" | "read" | "echo" | "drive";
  seed: number;
  capacity: number;
  count?: number;
  wait: Wait;
  then: "end" | "close" | "stay";
  delay_us?: number;
  delay_every?: number;
  record?: boolean;
}

/** A command, without the `id` that it gets when it is sent. */
export type Command =
  | { command: "start"; protocol: number }
  | { command: "open"; handle: number } & Place & Opening
  | { command: "read"; handle: number; timeout_ms: number }
  | {
    command: "peek" | "release" | "abandon" | "publish" | "end" | "close" | "vacate" | "drop";
    handle: number;
  }
  | { command: "write"; handle: number; message: Outgoing; timeout_ms?: number }
  | {
    command: "claim";
    handle: number;
    message: Outgoing;
    size: number;
    abandon: boolean;
    open?: true;
  }
  | { command: "finish"; handle: number; message: Outgoing }
  | { command: "resume"; handle: number; timeout_ms: number }
  | { command: "patch"; handle: number; bytes: Run[] }
  | { command: "dump"; handle: number; from?: number; size?: number }
  | { command: "run"; handle: number; task: Task; timeout_ms: number };

/** What went wrong in the port. */
export interface Failed {
  code: string;
  reason?: Reason;
  message?: string;
}

/** What a call gives that reads nothing. */
export interface Done {
  outcome: "ok" | "full" | "refused";
}

/** What a read gives. */
export type Taken = { item: MessageCase } | { end: "nothing" | "ended" };

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
  record?: [number, number, number][];
}

/** A reply, without its `id`. */
export type Reply = { result: object } | { error: Failed } | { decline: string };
