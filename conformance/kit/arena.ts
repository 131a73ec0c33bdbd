/**
 * Where testees meet: memory that they and the kit see at the same time. Each kind of place is a
 * carrier, one file in `carriers/`.
 *
 * @module
 */

import type { Connection } from "./connection.ts";
import type { CarrierKind, Hello, Level, Place } from "./protocol.ts";
import type { Order } from "./race/orders.ts";
import type { Race } from "./race/racer.ts";
import type { KitCase, Result } from "./verdict.ts";

/** A program that can be run as a testee, in one or more ways. */
export interface Program {
  /** As it stands in the report. */
  name: string;
  /** A command line for the shell: a process that speaks on standard input and output. */
  command?: string;
  /** A module for a worker, which speaks in messages. */
  worker?: URL;
  /** What the worker is posted before anything else, such as the module that it runs. */
  first?: () => Promise<object>;
  /** It is known to have no carrier `file`, or none `stream`. */
  mapsNoFile?: boolean;
  hasNoStreams?: boolean;
  /** Builds it, before it is first started. */
  prepare?: () => Promise<void>;
  /** How other carriers start it; each knows its own. */
  ways?: Record<string, unknown>;
}

/** A kind of place. */
export interface Carrier {
  /** What `start` calls it; `shared` where it is left out. */
  kind?: CarrierKind;
  /** As it stands in the report. */
  name: string;
  /** Why a program cannot be here, alone or together with the other one, or nothing. */
  refuses(program: Program, others: readonly Program[]): string | undefined;
  /** How it starts a program where others start it so as well; without it, in its own way. */
  starts?(program: Program): "process" | "worker";
  /** Makes a place for one or two programs, which are started when they are first asked for. */
  open(programs: Program[]): Promise<Arena>;
  /** What a survivor learns of a peer that was killed: beside `peer.failed`. */
  death: "peer.lost" | "peer.terminated";
  /** Whether more than two programs can be here. */
  hasRoom?: true;
  /** Programs of the kit that are here beside the others, where there are many. */
  own?: Program[];
  /** Ends what its places share, such as a browser; the next place starts it again. */
  end?(): Promise<void>;
}

/** One or two testees that can be given the same memory, again and again. */
export interface Arena {
  /** Starts what all its cases need, such as a browser; what fails there, a case will say. */
  begin?(): Promise<void>;
  /** The testee, running; started again where it was killed or broke down. */
  connect(index: number): Promise<Connection>;
  /** Memory for the next case. */
  field(plan: FieldPlan): Promise<Field>;
  /** The threads in which a testee may run, where the kit can tell; see `setApart`. */
  threads?(index: number): number[];
  /** Ends a testee at once, in the middle of whatever it does. */
  kill(index: number): Promise<void>;
  /** Where files of its testees can be, if they share files. */
  readonly folder?: string;
  /** Plays a case where the memory is, in another program; without it, the kit does from here. */
  play?(entry: KitCase<Arena>, level: Level): Promise<Played>;
  close(): Promise<void>;
}

/** What comes back of a case that was played elsewhere. */
export interface Played {
  result: Result;
  /** What the testees said of themselves, as far as it came to that. */
  hellos: Hello[];
}

/** Which memory a case needs. */
export interface FieldPlan {
  size: number;
  /** What stands in it; without it, a testee makes it what it is to be. */
  image?: Uint8Array;
  /** The endpoints that are the kit's own: the kit lives, as far as others can find out. */
  own?: readonly number[];
}

/** How a sleep ended: it was woken, the word was another one at once, or the time was up. */
export type Slept = "ok" | "not-equal" | "timed-out";

/** Memory that the kit sees while testees work on it. */
export interface Field {
  /** How the testee at this place opens it. */
  place(index: number): Place;
  /** How a testee comes to it as to memory, with no more to it; nothing where `place` says that. */
  mapped?(): Place;
  /** The bytes, live. There are none before a testee has made the file. */
  words(): Int32Array;
  /** Wakes all that sleep on a word. */
  notify(index: number): number;
  /** Sleeps on a word while it holds a value, in the background; none where that cannot be. */
  sleep?(index: number, value: number, timeoutMs: number): Promise<Slept>;
  /** The same in this thread, below 1 s; none where it may not block, or nobody could wake it. */
  sleepHere?: ((index: number, value: number, timeoutMs: number) => Slept) | undefined;
  /** Has the kit's second thread do something to the bytes, and stops it. */
  race(order: Order): Race;
  halt(): Promise<void>;
  /** What the kit rings: the word `wakes` of its own endpoint. */
  wakes: number;
  release(): void;
}

/** A copy of the bytes as they are now. */
export function snapshot(field: Field): Uint8Array {
  const words = field.words();
  const copy = new Int32Array(words.length);
  for (let index = 0; index < words.length; index++) copy[index] = Atomics.load(words, index);
  return new Uint8Array(copy.buffer);
}
