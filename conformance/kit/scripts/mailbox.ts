/**
 * Scripts for a mailbox: the kit is the other side, one part at a time.
 *
 * @module
 */

import { little, toHex, toImage, word } from "../../reference/bytes.ts";
import type { Result as Came, Setting } from "../../reference/case.ts";
import { fieldOf, flagOf, limitOf, sizeOf } from "../../reference/layout.ts";
import { compare } from "../../static/difference.ts";
import { type PeerMemory, perform, Taker } from "../../static/driver.ts";
import { answerOf, openRemote, RemoteSession } from "../../static/remote.ts";
import type { Arena, Field } from "../arena.ts";
import type { Connection } from "../connection.ts";
import type { Opening, Ran, Task } from "../protocol.ts";
import type { Store } from "../race/orders.ts";
import { Wrong } from "../verdict.ts";
import { requireWord, type Script, strictly, throwProblems } from "./stage.ts";
import { judgePolling } from "./tight.ts";
import { rest, settles, wakeAll } from "./watch.ts";

const CAPACITY = 32;
const HEADER = 32;
const VALUES = ["aü", [1, { b: null }], 0];
const PAYLOAD = new TextEncoder().encode(JSON.stringify(VALUES));
const ITEMS = VALUES.map((json) => ({ kind: 1, codec: 2, tag: 0, json }));
const CLOSED = 0xffff_ffff;

interface Mailbox {
  session: RemoteSession;
  memory: PeerMemory;
}

export const MAILBOX_SCRIPTS: Script[] = [
  {
    id: "mailbox/scripted_split_everywhere",
    about: "A payload cut at every byte, in the middle of a character too, and into single bytes.",
    clauses: [
      "mailbox.keep_parts",
      "mailbox.copy",
      "mailbox.signal_exchange",
      "mailbox.check",
      "mailbox.fault",
    ],
    role: "mailbox_reader",
    mayDecline: ["elements"],
    play: (arena) => withMailbox(arena, "mailbox_reader", splitEverywhere),
  },
  {
    id: "mailbox/scripted_slow_reader",
    about: "A reader that takes one part at a time: the writer goes on where its time was up.",
    clauses: ["mailbox.begun", "mailbox.write_all", "mailbox.parts", "mailbox.write"],
    role: "mailbox_writer",
    async play(arena) {
      for (const size of [1, 27, 28, 29, 90, 200]) {
        await withMailbox(arena, "mailbox_writer", (box) => slowReader(box, size));
      }
    },
  },
  {
    id: "mailbox/scripted_writer_leaves",
    about: "A writer that closes behind each part: what was whole is read, the rest is gone.",
    clauses: ["mailbox.closed", "mailbox.closed_part", "mailbox.first_answer"],
    role: "mailbox_reader",
    mayDecline: ["elements"],
    async play(arena) {
      for (const taken of [0, 1, 2]) {
        await withMailbox(arena, "mailbox_reader", (box) => writerLeaves(box, taken));
      }
    },
  },
  {
    id: "mailbox/scripted_hostile",
    about: "Every word of a part with every kind of wrong value: its code, and the mailbox closed.",
    clauses: ["mailbox.check", "mailbox.fault", "mailbox.close"],
    role: "mailbox_reader",
    async play(arena) {
      for (const [field, value, code] of HOSTILE) {
        await withMailbox(arena, "mailbox_reader", (box) => hostile(box, field, value, code));
      }
    },
  },
];

/** Words of a first part that no writer may store. */
const HOSTILE: [string, number, string][] = [
  ["status", 1, "mailbox.signal"],
  ["status", 0x8000_0000, "mailbox.signal"],
  ["signal", 2, "mailbox.signal"],
  ["signal", 0xffff_fffe, "mailbox.signal"],
  ["length", 0, "mailbox.length"],
  ["length", CAPACITY + 1, "mailbox.length"],
  ["length", 0xffff_ffff, "mailbox.length"],
  ["part_count", 0, "mailbox.part"],
  ["part_count", 0x8000_0000, "mailbox.part"],
  ["part_index", 1, "mailbox.part"],
  ["part_index", 0xffff_ffff, "mailbox.part"],
];

async function withMailbox(
  arena: Arena,
  role: Setting["role"],
  play: (box: Mailbox) => Promise<void>,
): Promise<void> {
  const memory = new Uint8Array(HEADER + CAPACITY);
  const setting: Setting = { kind: "read", image: toImage(memory), role };
  const opened = await openRemote(await arena.connect(0), setting, memory);
  if (opened.session === undefined) throw new Wrong(`attaching gave ${opened.result}, not ok`);
  try {
    await play({ session: opened.session as RemoteSession, memory: opened.memory });
    await opened.drop();
  } catch (error) {
    await arena.kill(0);
    throw error;
  }
}

/** Stores a part as a writer does, `signal` last. */
async function putPart(
  { memory }: Mailbox,
  part: Uint8Array,
  index: number,
  count: number,
): Promise<void> {
  await memory.patch([
    { offset: HEADER, hex: toHex(part) },
    { offset: fieldOf("mailbox_header", "length").offset, hex: toHex(little(part.length, 4)) },
    { offset: fieldOf("mailbox_header", "part_count").offset, hex: word(count) },
    { offset: fieldOf("mailbox_header", "part_index").offset, hex: word(index) },
  ]);
  await memory.patch([{ offset: fieldOf("mailbox_header", "signal").offset, hex: word(1) }]);
}

/** Throws unless a word of the header is this. */
async function wordIs(
  { memory }: Mailbox,
  what: string,
  field: string,
  must: number,
): Promise<void> {
  const { offset } = fieldOf("mailbox_header", field);
  requireWord(`${what}, ${field}`, await memory.dump(), offset, must);
}

function drain({ session, memory }: Mailbox) {
  return perform({ read: true }, session, memory, undefined);
}

async function splitEverywhere(box: Mailbox): Promise<void> {
  for (let cut = 1; cut < PAYLOAD.length; cut++) {
    await putPart(box, PAYLOAD.subarray(0, cut), 0, 2);
    throwProblems(
      `cut at ${cut}, first part`,
      compare(await drain(box), { items: [], end: "nothing" }),
    );
    await wordIs(box, `[mailbox.signal_exchange] cut at ${cut}`, "signal", 0);
    await putPart(box, PAYLOAD.subarray(cut), 1, 2);
    throwProblems(`cut at ${cut}`, compare(await drain(box), { items: ITEMS, end: "nothing" }));
  }
  for (let index = 0; index < PAYLOAD.length; index++) {
    await putPart(box, PAYLOAD.subarray(index, index + 1), index, PAYLOAD.length);
    const items = index === PAYLOAD.length - 1 ? ITEMS : [];
    throwProblems(`byte ${index} alone`, compare(await drain(box), { items, end: "nothing" }));
  }
}

async function slowReader(box: Mailbox, size: number): Promise<void> {
  const { session, memory } = box;
  const taker = await Taker.make({ role: "mailbox_writer" }, memory);
  const where = `a text of ${size} letters`;
  const isWhole = size + 4 <= CAPACITY; // with its quotes, in an array
  const got = await session.write({ json: ["x".repeat(size)] }, true);
  throwProblems(`${where}, write`, compare(got, isWhole ? "ok" : "wait.timeout"));
  for (let tries = 0; tries < 20; tries++) {
    const taken = await strictly(() => taker.take());
    if (taken.items.length > 0) {
      const json = "x".repeat(size);
      const items = [{ kind: 1, codec: 2, tag: 0, json }];
      return throwProblems(where, compare(taken, { items, end: "nothing" }));
    }
    const resumed = await session.resume();
    if (resumed !== "ok" && resumed !== "wait.timeout") {
      throwProblems(`${where}, resume`, compare(resumed, "ok"));
    }
  }
  throw new Wrong(`${where}: [mailbox.write_all] the last part never came`);
}

async function writerLeaves(box: Mailbox, taken: number): Promise<void> {
  const third = Math.ceil(PAYLOAD.length / 3);
  const parts = [0, 1, 2].map((index) => PAYLOAD.subarray(index * third, (index + 1) * third));
  const where = `behind ${taken} parts`;
  for (let index = 0; index < taken; index++) {
    await putPart(box, parts[index]!, index, 3);
    throwProblems(where, compare(await drain(box), { items: [], end: "nothing" }));
  }
  await putPart(box, parts[taken]!, taken, 3);
  const words = ["status", "signal"].map((field) => fieldOf("mailbox_header", field).offset);
  await box.memory.patch(words.map((offset) => ({ offset, hex: word(CLOSED) })));
  throwProblems(where, compare(await drain(box), { items: [], end: "peer.closed" }));
}

async function hostile(box: Mailbox, field: string, value: number, code: string): Promise<void> {
  await putPart(box, PAYLOAD, 0, 1);
  await box.memory.patch([{ offset: fieldOf("mailbox_header", field).offset, hex: word(value) }]);
  const where = `${field} ${value}`;
  throwProblems(where, compare(await drain(box), { items: [], end: code }));
  for (const name of ["status", "signal"]) {
    await wordIs(box, `[mailbox.close] ${where}`, name, CLOSED);
  }
}

// What watched scripts of a mailbox are written with: the kit sees the memory while the testee is
// in a call, and is the other side meanwhile.

export const AREA = sizeOf("mailbox_header");
/** What closes a mailbox, as a number and as its bytes say. */
export const DISPOSED = -1;

/** Index of a word. */
export function wordOf(name: string): number {
  return fieldOf("mailbox_header", name).offset >> 2;
}

/** A close as a chapter says, or as the original does it: in all eight words. */
export function closeStores(isOriginal: boolean): Store[] {
  const names = ["status", "signal"];
  const indices = isOriginal ? Array.from({ length: AREA >> 2 }, (_, at) => at) : names.map(wordOf);
  return indices.map((index): Store => [index, DISPOSED]);
}

/** One side of a mailbox that a testee has opened on memory which the kit has in view. */
export class MailboxWatch {
  readonly session: RemoteSession;
  readonly field: Field;
  readonly capacity: number;
  step = "";

  private constructor(session: RemoteSession, field: Field, capacity: number) {
    this.session = session;
    this.field = field;
    this.capacity = capacity;
  }

  /** Opens a side of a blank mailbox, lets the script go on with it, and drops it. */
  static async with(
    arena: Arena,
    role: "mailbox_reader" | "mailbox_writer",
    capacity: number,
    play: (watch: MailboxWatch) => Promise<void>,
    opening: Partial<Opening> = {},
  ): Promise<void> {
    const image = new Uint8Array(AREA + capacity);
    const field = await arena.field({ size: image.length, image });
    try {
      const connection = await arena.connect(0);
      const handle = connection.newHandle();
      const usual = { kind: "attach", role, limit: 2 * capacity, calls: false } as const;
      const order = { ...usual, values: true, spin_us: 0, ...opening };
      const place = field.place(0);
      const opened = answerOf(
        await connection.send({ command: "open", handle, ...place, ...order }),
      );
      if (opened !== "ok") throw new Wrong(`attaching gave ${JSON.stringify(opened)}, not ok`);
      await play(new MailboxWatch(new RemoteSession(connection, handle, role), field, capacity));
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

  expect(got: Came, must: Came, what: string): void {
    throwProblems(`${this.step}${what}`, compare(got, must));
  }

  demand(holds: boolean, fact: string): void {
    if (!holds) throw new Wrong(`${this.step}${fact}`);
  }

  load(name: string): number {
    return Atomics.load(this.field.words(), wordOf(name));
  }

  /** Stores a part, and `signal` last; nobody is woken. */
  put(part: Uint8Array, index = 0, count = 1): void {
    this.prepare(part, index, count);
    Atomics.store(this.field.words(), wordOf("signal"), 1);
  }

  /** Does everything that `put` does, except to set `signal`. */
  prepare(part: Uint8Array, index = 0, count = 1): void {
    this.area().set(part);
    const words = this.field.words();
    Atomics.store(words, wordOf("length"), part.length);
    Atomics.store(words, wordOf("part_count"), count);
    Atomics.store(words, wordOf("part_index"), index);
  }

  /** Stores words in their order, and wakes whoever sleeps. */
  store(stores: Store[]): void {
    for (const [index, value] of stores) Atomics.store(this.field.words(), index, value);
    this.field.notify(wordOf("signal"));
  }

  /** The byte area, live. */
  area(): Uint8Array {
    const words = this.field.words();
    return new Uint8Array(words.buffer, words.byteOffset + AREA, this.capacity);
  }

  /** Throws unless the mailbox is closed, and stays so. */
  demandClosed(): void {
    for (const name of ["status", "signal"]) {
      const found = this.load(name);
      this.demand(found === DISPOSED, `[mailbox.signal_exchange] ${name} is ${found}, not -1`);
    }
  }
}

// Scripts of how the sides of a mailbox wake one another, and how soon one looks that nobody wakes.

type Role = "mailbox_reader" | "mailbox_writer";

/** Any message of the testee's work is one part in it. */
const WAITING_CAPACITY = 1024;
const WORK_CAPACITY = 64;
const ENDLESS = 1_000_000_000;
/** One message, as those of a task are. */
const WAITING_PAYLOAD = new TextEncoder().encode('[[1,"x"]]');
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
    const image = new Uint8Array(sizeOf("mailbox_header") + WAITING_CAPACITY);
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
      limit: WAITING_CAPACITY,
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
      new Uint8Array(words.buffer, at, WAITING_PAYLOAD.length).set(WAITING_PAYLOAD);
      Atomics.store(words, wordOf("length"), WAITING_PAYLOAD.length);
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

// Scripts for a mailbox whose words the kit changes while the testee is in a call.

/** So much that its copy takes a while; but white space, so that what comes of it is short. */
const WATCHED_CAPACITY = 1_000_000;
const WATCHED_PAYLOAD = new TextEncoder().encode(`[1${" ".repeat(WATCHED_CAPACITY - 3)}]`);
const ITEM = { kind: 1, codec: 2, tag: 0, json: 1 };
/** The testee stays awake for so long, and the kit tries as long as that. */
const SPIN_US = 500_000;
const TRIES_MS = 2_000;
/** What a copy and a reply take, at most as a rule; who takes longer is waited for again. */
const REPLY_MS = 3;
/** The kit takes the turn away so many milliseconds after it has given it: of each size, often. */
const LEAST_MS = 0.01;

export const MAILBOX_WATCHED_SCRIPTS: Script[] = [{
  id: "scripted/mailbox_lost_turn",
  about:
    "The turn is taken away from a reader that copies: it delivers, and both words say closed.",
  clauses: ["mailbox.lost_turn", "mailbox.signal_exchange", "mailbox.complete"],
  role: "mailbox_reader",
  async play(arena) {
    const image = new Uint8Array(sizeOf("mailbox_header") + WATCHED_CAPACITY);
    image.set(WATCHED_PAYLOAD, sizeOf("mailbox_header"));
    const field = await arena.field({ size: image.length, image });
    try {
      return await lostTurn(arena, field);
    } catch (error) {
      await arena.kill(0); // it may still be in a call
      throw error;
    } finally {
      field.release();
    }
  },
}];

/** Opens the reading side, and plays with it. */
async function lostTurn(arena: Arena, field: Field): Promise<string | void> {
  const connection = await arena.connect(0);
  const handle = connection.newHandle();
  const reply = await connection.send({
    command: "open",
    handle,
    ...field.place(0),
    kind: "attach",
    role: "mailbox_reader",
    limit: WATCHED_CAPACITY,
    calls: false,
    values: false,
    spin_us: SPIN_US,
  });
  const opened = answerOf(reply);
  if (opened !== "ok") throw new Wrong(`attaching gave ${JSON.stringify(opened)}, not ok`);
  const session = new RemoteSession(connection, handle, "mailbox_reader");
  const isSeen = await takeAway(session, field);
  if (isSeen) await expectClosed(session, field.words());
  await connection.must({ command: "drop", handle });
  return isSeen ? undefined : "never seen between its look and its exchange";
}

/**
 * Gives the turn to the reader and takes it away again, until a message comes although the kit had
 * the turn at last: then its part was copied in between. Returns whether it came to that.
 */
async function takeAway(session: RemoteSession, field: Field): Promise<boolean> {
  const words = field.words();
  const signal = wordOf("signal");
  let reading: ReturnType<RemoteSession["read"]> | undefined;
  let isTaken = false;
  for (const end = performance.now() + TRIES_MS; performance.now() < end;) {
    reading ??= session.read(LONG_MS);
    await rest(1);
    Atomics.store(words, wordOf("length"), WATCHED_CAPACITY);
    Atomics.store(words, wordOf("part_count"), 1);
    Atomics.store(words, wordOf("part_index"), 0);
    // Not where a reader that is slow to reply has closed the mailbox meanwhile.
    if (Atomics.compareExchange(words, signal, 0, 1) === 0) {
      field.notify(signal);
      const delay = LEAST_MS * (REPLY_MS / LEAST_MS) ** Math.random();
      for (const from = performance.now(); performance.now() - from < delay;);
      // Where it is closed by now, that is because the turn before had been taken away.
      isTaken = Atomics.compareExchange(words, signal, 1, 0) !== 0;
      if (isTaken && !await settles(reading, REPLY_MS)) continue; // it has not looked yet
    }
    const got = await reading;
    reading = undefined;
    if ("end" in got && got.end === "nothing") continue;
    const items = "item" in got ? { items: [got.item] } : { items: [], ...got };
    throwProblems("[mailbox.complete] read", compare(items, { items: [ITEM] }));
    if (isTaken) return true;
  }
  Atomics.store(words, wordOf("status"), DISPOSED);
  Atomics.store(words, signal, DISPOSED);
  field.notify(signal);
  await reading;
  return false;
}

async function expectClosed(session: RemoteSession, words: Int32Array): Promise<void> {
  for (const name of ["status", "signal"]) {
    const found = Atomics.load(words, wordOf(name));
    if (found === DISPOSED) continue;
    const header = words.slice(0, sizeOf("mailbox_header") / 4);
    const got = new Uint8Array(header.buffer);
    throw new Wrong(`[mailbox.lost_turn] ${name} is ${found}, not ${DISPOSED}`, got);
  }
  const next = await session.read(0);
  const end = "end" in next ? next.end : "a message";
  throwProblems("[mailbox.signal_exchange] the next read", compare(end, "peer.closed"));
}
