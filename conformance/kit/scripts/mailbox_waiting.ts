/**
 * Scripts of how the sides of a mailbox wake one another, and how soon one looks that nobody wakes.
 *
 * @module
 */

import { flagOf, limitOf, sizeOf } from "../../reference/layout.ts";
import { answerOf, RemoteSession } from "../../static/remote.ts";
import type { Arena, Field } from "../arena.ts";
import type { Connection } from "../connection.ts";
import type { Ran, Task } from "../protocol.ts";
import { Wrong } from "../verdict.ts";
import { judgePolling } from "./pacer.ts";
import { wakeAll } from "./sleepers.ts";
import type { Script } from "./stage.ts";
import { rest } from "./watch.ts";
import { DISPOSED, wordOf } from "./watch_mailbox.ts";

type Role = "mailbox_reader" | "mailbox_writer";

/** Any message of the testee's work is one part in it. */
const CAPACITY = 1024;
const WORK_CAPACITY = 64;
const ENDLESS = 1_000_000_000;
/** One message, as those of a task are. */
const PAYLOAD = new TextEncoder().encode('[[1,"x"]]');
/** How often all sleepers are to be woken. */
const ROUNDS = 3;
const LONG_MS = 3_000;
/** What a wait of a task may take: it never comes to that. */
const WAIT_MS = 60_000;
/** Until the first message of a task is there. */
const BEGIN_MS = 5_000;
/** What a sleep may last beyond its slice, on a machine that does other things, too. */
const SOON_MS = 400;
/** A slice that is late twice is not the machine's doing. */
const TURNS = 4;

export const MAILBOX_WAITING_SCRIPTS: Script[] = [
  ...both("notifies", "Who passes the turn notifies all that sleep on it.", [
    "mailbox.notify",
  ], notifies),
  ...both("polls", "A turn that is passed is found at once, or at the next look of who polls.", [
    "mailbox.mechanism",
    "wait.poll",
  ], polls),
  ...both("unwoken", "A turn of which nobody tells is found within a slice.", [
    "mailbox.recheck",
  ], unwoken),
];

type Play = (side: Side) => Promise<string | void>;

function both(id: string, about: string, clauses: string[], play: Play): Script[] {
  return (["mailbox_reader", "mailbox_writer"] as const).map((role) => ({
    id: `scripted/mailbox_${id}_${role === "mailbox_reader" ? "reader" : "writer"}`,
    about,
    clauses,
    role,
    play: (arena) => withSide(arena, role, play),
  }));
}

async function withSide(arena: Arena, role: Role, play: Play): Promise<string | void> {
  const { hello } = await arena.connect(0);
  let why: string | undefined;
  for (const wait of hello.waits.filter((each) => each !== "poll")) {
    const image = new Uint8Array(sizeOf("mailbox_header") + CAPACITY);
    const field = await arena.field({ size: image.length, image });
    try {
      const side = await Side.open(arena, field, role, wait);
      why = await play(side) ?? why;
      await side.drop();
    } catch (error) {
      await arena.kill(0); // it may still be in a call
      throw error;
    } finally {
      field.release();
    }
  }
  return why;
}

/** One side, which the testee has opened; the kit is the other one. */
class Side {
  readonly session: RemoteSession;
  readonly field: Field;
  readonly reads: boolean;
  readonly wait: Task["wait"];
  readonly #connection: Connection;
  readonly #handle: number;

  private constructor(
    connection: Connection,
    handle: number,
    field: Field,
    role: Role,
    wait: Task["wait"],
  ) {
    this.#connection = connection;
    this.#handle = handle;
    this.session = new RemoteSession(connection, handle, role);
    this.field = field;
    this.reads = role === "mailbox_reader";
    this.wait = wait;
  }

  static async open(arena: Arena, field: Field, role: Role, wait: Task["wait"]): Promise<Side> {
    const connection = await arena.connect(0);
    const handle = connection.newHandle();
    const reply = await connection.send({
      command: "open",
      handle,
      ...field.place(0),
      kind: "attach",
      role,
      limit: CAPACITY,
      calls: false,
      values: false,
      spin_us: 0,
    });
    const opened = answerOf(reply);
    if (opened !== "ok") throw new Wrong(`attaching gave ${JSON.stringify(opened)}, not ok`);
    return new Side(connection, handle, field, role, wait);
  }

  /** Whether it is the kit's turn. */
  get isOurs(): boolean {
    return this.signal === (this.reads ? 0 : 1);
  }

  get signal(): number {
    return Atomics.load(this.field.words(), wordOf("signal"));
  }

  /** Waits for the kit's turn; returns whether it came. */
  async comes(ms: number): Promise<boolean> {
    const deadline = performance.now() + ms;
    while (!this.isOurs && performance.now() < deadline) await rest(0);
    return this.isOurs;
  }

  /** Gives the testee the turn, and what it may read. Wakes nobody. */
  pass(): void {
    const words = this.field.words();
    if (this.reads) {
      const at = words.byteOffset + sizeOf("mailbox_header");
      new Uint8Array(words.buffer, at, PAYLOAD.length).set(PAYLOAD);
      Atomics.store(words, wordOf("length"), PAYLOAD.length);
      Atomics.store(words, wordOf("part_count"), 1);
      Atomics.store(words, wordOf("part_index"), 0);
    }
    Atomics.store(words, wordOf("signal"), this.reads ? 1 : 0);
  }

  notify(): void {
    this.field.notify(wordOf("signal"));
  }

  async run(): Promise<Ran> {
    const task: Task = {
      role: this.reads ? "read" : "write",
      seed: 1,
      capacity: WORK_CAPACITY,
      count: ENDLESS,
      wait: this.wait,
      then: "stay",
    };
    const command = { command: "run", handle: this.#handle, task, timeout_ms: WAIT_MS } as const;
    const reply = await this.#connection.send(command);
    if ("result" in reply) return reply.result as Ran;
    const why = "error" in reply ? reply.error.code : `declined: ${reply.decline}`;
    throw new Wrong(`${this.wait}: the testee does not run: ${why}`);
  }

  /** Closes the mailbox, as the kit's own side does. [mailbox.close] */
  close(): void {
    Atomics.store(this.field.words(), wordOf("status"), DISPOSED);
    Atomics.store(this.field.words(), wordOf("signal"), DISPOSED);
    this.notify();
  }

  async drop(): Promise<void> {
    await this.#connection.must({ command: "drop", handle: this.#handle });
  }
}

async function notifies(side: Side): Promise<string | void> {
  const { field, reads, session } = side;
  if (field.wakes === flagOf("wake_mechanism", "futex")) {
    return "of a mailbox in a file nobody knows by what the other side sleeps, so both poll";
  }
  side.pass();
  for (let round = 0; round < ROUNDS; round++) {
    const why = await wakeAll(field, wordOf("signal"), "[mailbox.notify]", async () => {
      if (reads) await session.read(LONG_MS);
      else await session.write({ json: [1] }, false);
      if (!side.isOurs) {
        throw new Wrong(`[mailbox.notify] signal is ${side.signal} behind the call`);
      }
      side.pass();
    });
    if (why !== undefined) return why;
  }
}

async function polls(side: Side): Promise<string | void> {
  const running = side.run();
  running.catch(() => {}); // what it says is said below
  await side.comes(BEGIN_MS);
  const why = await judgePolling(`${side.wait}: [wait.poll]`, () => {
    side.pass();
    side.notify();
    return () => side.isOurs;
  });
  side.close();
  const { end } = await running;
  if (end !== "peer.closed") throw new Wrong(`${side.wait}: the task: ${end}, not peer.closed`);
  return why;
}

async function unwoken(side: Side): Promise<void> {
  const sliceMs = limitOf("wait_slice_ms");
  const running = side.run();
  running.catch(() => {}); // what it says is said below
  let late = 0;
  for (let turn = 0; turn < TURNS + late && late < 2; turn++) {
    const isHere = await side.comes(BEGIN_MS);
    if (!isHere) throw new Wrong(`${side.wait}: [mailbox.recheck] the turn is never found`);
    await rest(20); // it sleeps by then
    side.pass();
    if (!await side.comes(sliceMs + SOON_MS)) late++;
  }
  side.close();
  await running;
  if (late < 2) return;
  const fact = `twice the turn was found after more than ${sliceMs} ms`;
  throw new Wrong(`${side.wait}: [mailbox.recheck] ${fact}`);
}
