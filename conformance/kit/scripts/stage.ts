/**
 * What scripts are written with: one end that a testee has opened, and the kit as the other one,
 * which does every step by itself.
 *
 * @module
 */

import { compare, type Problem, within } from "../../static/difference.ts";
import { type PeerMemory, type Read, Taker } from "../../static/driver.ts";
import { openRemote, RemoteSession } from "../../static/remote.ts";
import { little, number, type Run, toHex, toImage, word } from "../../reference/bytes.ts";
import type { Drained, Result as Came, Setting } from "../../reference/case.ts";
import { pad, type Pipe } from "../../reference/builder.ts";
import { buildFrame, type FramePlan, recordAt } from "../../reference/encode.ts";
import { fieldOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import type { Hello, Offer } from "../protocol.ts";
import { lacksCarrier, lacksNoun, lacksOption, lacksRole } from "../static_level.ts";
import { type KitCase, PASS, type Result, Wrong } from "../verdict.ts";
import type { Optional } from "../../reference/case.ts";

/** A script, as it is written down. */
export interface Script {
  id: string;
  about: string;
  clauses: string[];
  role: Setting["role"];
  /** The chapter that a testee must offer; where none is said, that of the role. */
  noun?: string;
  /** Whether it is played with calls that block. */
  blocks?: true;
  /** Names of `may_decline`, as in the static cases. */
  mayDecline?: Optional[];
  /** Parts of the protocol that may be left out, and that it takes. */
  offers?: Offer[];
  /** Whether a file is opened as memory. */
  isMapped?: boolean;
  /** Plays it, or says why the kit cannot here; throws `Wrong` where other comes than must. */
  play(arena: Arena): Promise<string | void>;
}

/** A script on memory that only commands reach. */
export function scriptCase(script: Script): KitCase<Arena> {
  const { id, about, clauses } = script;
  return {
    id,
    about,
    clauses,
    declinedBy: (hello) => lacksScript(hello, script) ?? lacksCarrier(hello, "bytes"),
    async run(arena) {
      return played(await script.play(arena));
    },
  };
}

/** What came of a script that has not failed. */
export function played(why: string | void): Result {
  return why === undefined ? PASS : { status: "unshown", why: [why] };
}

/** What a script takes. */
type Needs = Pick<Script, "role" | "noun" | "blocks" | "mayDecline" | "offers" | "isMapped">;

/** Why a testee need not play a script. */
export function lacksScript(
  hello: Hello,
  { role, noun: named, blocks, mayDecline = [], offers = [], isMapped = false }: Needs,
): string | undefined {
  const noun = named ?? (role.startsWith("mailbox") ? "mailbox" : "pipe");
  const missing = offers.find((each) => !hello.offers?.includes(each));
  return lacksNoun(hello, noun) ?? lacksRole(hello, role) ?? lacksOption(hello, mayDecline) ??
    (blocks ? lacksBlocking(hello) : undefined) ??
    (isMapped ? lacksCarrier(hello, "mapped") : undefined) ??
    (missing === undefined ? undefined : `does not offer ${missing}`);
}

/** Why a testee need not play a script in which it waits in a call. */
export function lacksBlocking({ waits }: Hello): string | undefined {
  return waits.includes("block") ? undefined : "does not block";
}

/** One end, opened by the testee on memory of its own; the kit is the peer. */
export class Stage {
  readonly session: RemoteSession;
  readonly memory: PeerMemory;
  readonly pipe: Pipe;
  /** Where the kit, as the writer, goes on. */
  tail: number;
  /** What stands in error messages: where in the script this is. */
  step = "";
  #taker: Taker | undefined;

  private constructor(session: RemoteSession, memory: PeerMemory, pipe: Pipe) {
    this.session = session;
    this.memory = memory;
    this.pipe = pipe;
    this.tail = number(pipe.bytes.slice(pipe.control, pipe.control + 4));
  }

  /** Opens an end of a pipe, lets the script go on with it, and drops it. */
  static async with(
    arena: Arena,
    role: "reader" | "writer",
    pipe: Pipe,
    more: Partial<Setting>,
    play: (stage: Stage) => Promise<void>,
  ): Promise<void> {
    const image = toImage(pipe.bytes);
    const setting: Setting = { kind: "read", image, role, channel: 0, ...more };
    const opened = await openRemote(await arena.connect(0), setting, pipe.bytes);
    if (opened.session === undefined) throw new Wrong(`attaching gave ${opened.result}, not ok`);
    try {
      await play(new Stage(opened.session as RemoteSession, opened.memory, pipe));
      await opened.drop();
    } catch (error) {
      await arena.kill(0); // in whatever state that is
      throw error;
    }
  }

  /** Throws unless a call gave what it must. */
  expect(got: Came, must: Came, what: string): void {
    throwProblems(`${this.step}${what}`, compare(got, must));
  }

  /** Throws unless a fact holds; the text begins with a clause, in brackets. */
  demand(holds: boolean, fact: string, got?: Uint8Array): void {
    if (!holds) throw new Wrong(`${this.step}${fact}`, got);
  }

  /** A word of the ring's control area. */
  async control(name: string): Promise<number> {
    return number(await this.memory.dump(this.#controlAt(name), 4));
  }

  /** Throws unless a word of the ring's control area is this; the clause comes in brackets. */
  async controlIs(clause: string, name: string, must: number): Promise<void> {
    await this.#wordIs(`${clause} ${name}`, this.#controlAt(name), must);
  }

  /** Throws unless the state of an endpoint is this. */
  async stateIs(clause: string, endpoint: number, must: number): Promise<void> {
    const { offset } = fieldOf("endpoint_record", "state");
    await this.#wordIs(`${clause} state of ${endpoint}`, recordAt(endpoint) + offset, must);
  }

  async #wordIs(what: string, offset: number, must: number): Promise<void> {
    requireWord(`${this.step}${what}`, await this.memory.dump(), offset, must);
  }

  #controlAt(name: string): number {
    return this.pipe.control + fieldOf("ring_control", name).offset;
  }

  /** A word of an endpoint's record. */
  async record(endpoint: number, name: string): Promise<number> {
    const { offset } = fieldOf("endpoint_record", name);
    return number(await this.memory.dump(recordAt(endpoint) + offset, 4));
  }

  async setControl(name: string, value: number): Promise<void> {
    const { offset } = fieldOf("ring_control", name);
    await this.memory.patch([{ offset: this.pipe.control + offset, hex: word(value) }]);
  }

  async setState(endpoint: number, state: number): Promise<void> {
    const { offset } = fieldOf("endpoint_record", "state");
    await this.memory.patch([{ offset: recordAt(endpoint) + offset, hex: word(state) }]);
  }

  /** Places frames, with pads where they are needed; nobody sees them before `publish`. */
  async place(...frames: FramePlan[]): Promise<void> {
    const { capacity } = this.pipe.channels[0]!;
    const runs: Run[] = [];
    const add = (bytes: Uint8Array) => {
      const offset = this.pipe.data + this.tail % capacity;
      runs.push({ offset, hex: toHex(bytes) });
      this.tail = (this.tail + bytes.length) % 2 ** 32;
    };
    for (const frame of frames) {
      const bytes = buildFrame(frame);
      const toEnd = capacity - this.tail % capacity;
      if (bytes.length > toEnd) add(buildFrame(pad(toEnd)));
      add(bytes);
    }
    await this.memory.patch(runs);
  }

  /** Stores `tail`. */
  async publish(): Promise<void> {
    await this.setControl("tail", this.tail);
  }

  /** The strict reader of what the testee writes; `clause`, in brackets, is what it may find. */
  async take(clause?: string): Promise<Came> {
    this.#taker ??= await Taker.make({ role: "writer", channel: 0 }, this.memory);
    return await strictly(() => this.#taker!.take(), clause);
  }

  /** Gives back so much that `size` bytes are free. */
  async room(size: number): Promise<void> {
    this.#taker ??= await Taker.make({ role: "writer", channel: 0 }, this.memory);
    await strictly(() => this.#taker!.room(size));
  }
}

/** Throws what differs, if anything does; `where` may name the clause, in brackets. */
export function throwProblems(where: string, problems: Problem[]): void {
  if (problems.length > 0) throw new Wrong(within(where, problems));
}

/** Throws unless a word of a memory is this, with both memories. */
export function requireWord(what: string, memory: Uint8Array, offset: number, must: number): void {
  const got = number(memory.slice(offset, offset + 4));
  if (got === must) return;
  const wanted = memory.slice();
  wanted.set(little(must, 4), offset);
  throw new Wrong(`${what}: expected ${must}, got ${got}`, memory, wanted);
}

/** What a strict reader finds is what the testee did wrong: it names its own clause, too. */
export async function strictly<T>(call: () => Promise<T>, clause?: string): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const { message } = error as Error;
    if (!message.startsWith("[")) throw error;
    throw new Wrong(clause === undefined ? message : `${clause} what was written: ${message}`);
  }
}

/** What one read gave, as a list. */
export function listed(got: Read): Drained {
  return "item" in got ? { items: [got.item] } : { items: [], ...got };
}

/** Bytes that count up from a number, as hexadecimal. */
export function counted(size: number, from: number): string {
  return toHex(Uint8Array.from({ length: size }, (_, index) => from + index & 255));
}
