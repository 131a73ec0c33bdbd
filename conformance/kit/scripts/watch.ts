/**
 * What watched scripts are written with: the kit sees the memory while the testee is in a call, and
 * acts as its peer meanwhile.
 *
 * @module
 */

import { ATTACHED, type Pipe, pipe, type PipePlan, VACANT } from "../../reference/builder.ts";
import type { Result as Came } from "../../reference/case.ts";
import { get } from "../../reference/decode.ts";
import { buildFrame, type FramePlan } from "../../reference/encode.ts";
import { sizeOf } from "../../reference/layout.ts";
import { compare, differentBytes } from "../../static/difference.ts";
import { answerOf, RemoteSession } from "../../static/remote.ts";
import { type Arena, type Field, snapshot } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { controlWord, recordWord, ring } from "../peer.ts";
import type { Hello, Opening, Ran, Task } from "../protocol.ts";
import { type KitCase, Wrong } from "../verdict.ts";
import { lacksBlocking, lacksScript, played, requireWord, type Script } from "./stage.ts";
import { throwProblems } from "./stage.ts";

/** A script on memory that the kit sees at any time, for testees that block. */
export function watchedCase(script: Script): KitCase<Arena> {
  return watched(script, lacksBlocking);
}

/** The same for testees on a thread that must not. */
export function forbiddenCase(script: Script): KitCase<Arena> {
  const why = "its thread may block";
  return watched(script, ({ offers }) => offers?.includes("no_block") ? undefined : why);
}

function watched(script: Script, unfit: (hello: Hello) => string | undefined): KitCase<Arena> {
  const { id, about, clauses } = script;
  return {
    id,
    about,
    clauses,
    isTimed: true,
    declinedBy: (hello) => lacksScript(hello, script) ?? unfit(hello),
    async run(arena) {
      return played(await script.play(arena));
    },
  };
}

/** How long the kit waits for what must come at once, on a machine that does other things, too. */
const PATIENCE_MS = 5_000;

/** One end that a testee has opened on memory which the kit has in view. */
export class Watch {
  readonly session: RemoteSession;
  readonly field: Field;
  readonly pipe: Pipe;
  readonly #connection: Connection;
  readonly #handle: number;
  /** The endpoint of the kit, and that of the testee. */
  readonly own: number;
  readonly other: number;
  tail: number;
  step = "";
  /** The threads in which the testee may run, where the kit can tell. */
  readonly threads: () => number[];

  private constructor(
    session: RemoteSession,
    arena: Arena,
    connection: Connection,
    handle: number,
    field: Field,
    pipe: Pipe,
    own: number,
  ) {
    this.threads = () => arena.threads?.(0) ?? [];
    this.#connection = connection;
    this.#handle = handle;
    this.session = session;
    this.field = field;
    this.pipe = pipe;
    this.own = own;
    this.other = 1 - own;
    this.tail = pipe.channels[0]!.start;
  }

  /** Opens an end of a new pipe, lets the script go on with it, and drops it. */
  static async with(
    arena: Arena,
    role: "reader" | "writer",
    plan: PipePlan & { spin?: number; wakes?: number },
    play: (watch: Watch) => Promise<void>,
  ): Promise<void> {
    const { spin = 0, wakes, ...rest } = plan;
    const memory = pipe({ states: statesOf(role), ...rest });
    await Watch.on(arena, memory, { role, spin_us: spin }, play, wakes);
  }

  /** The same with a segment that stands already, in which the kit has all other endpoints. */
  static async on(
    arena: Arena,
    memory: Pipe,
    opening: Partial<Opening> & Pick<Opening, "role">,
    play: (watch: Watch) => Promise<void>,
    wakes?: number,
  ): Promise<void> {
    const { endpoint = opening.role === "writer" ? 0 : 1 } = opening;
    const own = 1 - endpoint;
    const image = memory.bytes;
    const count = get(image, 0, "segment_header", "endpoint_count");
    const others = [...Array(count).keys()].filter((each) => each !== endpoint);
    const field = await arena.field({ size: image.length, image, own: others });
    try {
      for (const each of others) {
        Atomics.store(field.words(), recordWord(each, "wakes"), wakes ?? field.wakes);
      }
      const connection = await arena.connect(0);
      const handle = connection.newHandle();
      const usual = { kind: "attach", limit: 4096, calls: false, values: false } as const;
      const place = field.place(0);
      const order = { ...usual, endpoint, spin_us: 0, ...opening };
      const opened = answerOf(
        await connection.send({ command: "open", handle, ...place, ...order }),
      );
      if (opened !== "ok") throw new Wrong(`attaching gave ${JSON.stringify(opened)}, not ok`);
      const session = new RemoteSession(connection, handle, order.role);
      await play(new Watch(session, arena, connection, handle, field, memory, own));
      await connection.must({ command: "drop", handle });
    } catch (error) {
      await field.halt();
      await arena.kill(0); // it may still be in a call
      throw error;
    } finally {
      await field.halt();
      field.release();
    }
  }

  /** Has the testee do a task; the kit may act as its peer until that is done. */
  async run(task: Task, timeout_ms: number): Promise<Ran> {
    const command = { command: "run", handle: this.#handle, task, timeout_ms } as const;
    const reply = await this.#connection.send(command);
    if ("result" in reply) return reply.result as Ran;
    const why = "error" in reply ? reply.error.code : `declined: ${reply.decline}`;
    throw new Wrong(`${this.step}the testee does not run: ${why}`);
  }

  expect(got: Came, must: Came, what: string): void {
    throwProblems(`${this.step}${what}`, compare(got, must));
  }

  demand(holds: boolean, fact: string): void {
    if (!holds) throw new Wrong(`${this.step}${fact}`);
  }

  /** A control word, as it is now. */
  control(name: string): number {
    return Atomics.load(this.field.words(), controlWord(this.field, 0, name)) >>> 0;
  }

  setControl(name: string, value: number): void {
    Atomics.store(this.field.words(), controlWord(this.field, 0, name), value | 0);
  }

  /** Throws unless a control word is this; the clause comes in brackets. */
  controlIs(clause: string, name: string, must: number): void {
    const offset = 4 * controlWord(this.field, 0, name);
    requireWord(`${this.step}${clause} ${name}`, snapshot(this.field), offset, must);
  }

  /** Throws unless two memories are the same. */
  same(what: string, got: Uint8Array, must: Uint8Array): void {
    const fact = differentBytes(got, must);
    if (fact !== undefined) throw new Wrong(`${this.step}${what}${fact}`, got, must);
  }

  record(endpoint: number, name: string): number {
    return Atomics.load(this.field.words(), recordWord(endpoint, name)) >>> 0;
  }

  setState(endpoint: number, state: number): void {
    Atomics.store(this.field.words(), recordWord(endpoint, "state"), state);
  }

  /** Rings the testee. */
  ringOther(): void {
    ring(this.field, this.other, this.own);
  }

  /** All bytes, live. */
  bytes(): Uint8Array {
    const words = this.field.words();
    return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
  }

  /** Places frames at the tail; they must fit before the end of the area. */
  place(...frames: FramePlan[]): void {
    for (const frame of frames) {
      const bytes = buildFrame(frame);
      const { capacity } = this.pipe.channels[0]!;
      this.bytes().set(bytes, this.pipe.data + this.tail % capacity);
      this.tail = (this.tail + bytes.length) % 2 ** 32;
    }
  }

  /** Stores `tail` and wakes the reader if it asks. [wait.exchange] */
  publish(): void {
    this.setControl("tail", this.tail);
    this.#wake("reader_wants", this.tail);
  }

  /** Stores `head` and wakes the writer if it asks. */
  release(head: number): void {
    this.setControl("head", head);
    this.#wake("writer_wants", head);
  }

  /** Wakes the writer if it asks, for somebody else who has stored `head`. */
  wakeWriter(): void {
    this.#wake("writer_wants", this.control("head"));
  }

  #wake(name: string, cursor: number): void {
    const index = controlWord(this.field, 0, name);
    const wants = Atomics.load(this.field.words(), index) >>> 0;
    if (wants === 0 || (cursor - (wants & ~1) | 0) < 0) return;
    if (Atomics.exchange(this.field.words(), index, 0) !== 0) this.ringOther();
  }

  /** Waits until something holds; returns whether it came to that. */
  async until(holds: () => boolean, ms = PATIENCE_MS): Promise<boolean> {
    const deadline = performance.now() + ms;
    while (!holds()) {
      if (performance.now() >= deadline) return false;
      await rest(0);
    }
    return true;
  }

  /** Waits until the testee has asked to be rung, and returns what it has asked for. */
  async asked(name: "reader_wants" | "writer_wants"): Promise<number> {
    let wants = 0; // as it was seen: who looks once more by itself takes it back meanwhile
    const isArmed = await this.until(() => (wants = this.control(name)) !== 0);
    this.demand(isArmed, `[wait.recheck] ${name} stays 0: the testee never asks to be rung`);
    return wants;
  }
}

/** The states of a pipe in which the kit has attached, and the testee has not. */
export function statesOf(role: "reader" | "writer"): number[] {
  return role === "reader" ? [ATTACHED, VACANT] : [VACANT, ATTACHED];
}

/** Lets others work. */
export function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Whether a promise settles within a time. */
export async function settles(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const isInTime = await Promise.race([promise.then(() => true, () => true), late]);
  clearTimeout(timer);
  return isInTime;
}

/** Where the payload of the first frame stands. */
export const PAYLOAD_AT: number = sizeOf("frame_header");

// The kit asleep, several times over: what a testee that rings must wake.

const COUNT = 3;
/** Far longer than it takes to be woken. */
const SLEEP_MS = 800;
/** After so long all sleep; where they are threads they have to be started, which can take long. */
const SETTLE_MS = [5, 20, 100, 300];

/**
 * Has some threads sleep on a word and the testee do what must wake them. Throws where one sleeps
 * on, and says why it cannot be tried.
 */
export async function wakeAll(
  field: Field,
  index: number,
  clause: string,
  act: () => Promise<void>,
): Promise<string | undefined> {
  const { sleep } = field;
  if (sleep === undefined) return "the kit cannot sleep here several times over";
  for (const ms of SETTLE_MS) {
    const value = Atomics.load(field.words(), index);
    const sleeps = Array.from({ length: COUNT }, () => sleep.call(field, index, value, SLEEP_MS));
    await rest(ms);
    await act();
    const ends = await Promise.all(sleeps);
    const count = ends.filter((how) => how !== "timed-out").length;
    if (count < COUNT) throw new Wrong(`${clause} ${count} of ${COUNT} sleepers were woken`);
    if (!ends.includes("not-equal")) return undefined;
  }
  return "the kit's threads come to no sleep";
}
