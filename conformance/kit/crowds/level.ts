/**
 * Runs a crowd: the first testee writes, all others read, and who does not offer it is left out.
 *
 * @module
 */

import { ATTACHED, VACANT } from "../../reference/builder.ts";
import { property, recordOf } from "../../reference/builder_many.ts";
import { fromHex, toHex } from "../../reference/bytes.ts";
import { buildSegment, failed as failedState, NOBODY } from "../../reference/encode.ts";
import { fieldOf, limitOf, valueOf } from "../../reference/layout.ts";
import type { Problem } from "../../static/difference.ts";
import { type Arena, type Field, snapshot } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { lateProblems } from "../live/level.ts";
import { changeState, recordWord, stateOf } from "../peer.ts";
import type { Bare, Command, Gotten, Hello, Opening, Place, Ran, Task } from "../protocol.ts";
import { lacksCarrier, lacksNoun, lacksRole } from "../static_level.ts";
import { together } from "../together.ts";
import { failed, type KitCase, PASS, type Result, Trouble, Wrong } from "../verdict.ts";
import { type CrowdPlan, Expected, judgeReader, judgeWriter, nextVersion } from "./cases.ts";
import { type Role, STARTED } from "./cases.ts";

// What a testee of a crowd has opened.

/** Bounds each wait of a task. */
const TIMEOUT_MS = 10_000;

/** A testee that takes part, and its place in the arena. */
interface Seated {
  index: number;
  connection: Connection;
}

/** One end, of one testee. */
export class End {
  readonly endpoint: number;
  readonly #connection: Connection;
  readonly #handle: number;
  readonly #who: string;

  constructor({ index, connection }: Seated, endpoint: number) {
    this.endpoint = endpoint;
    this.#connection = connection;
    this.#handle = connection.newHandle();
    this.#who = `testee ${index + 1}`;
  }

  get hello(): Hello {
    return this.#connection.hello;
  }

  async open(opening: Place & Opening): Promise<void> {
    await this.#send({ command: "open", handle: this.#handle, ...opening }, "open its end");
  }

  /** The code with which it cannot be opened, or that it was. */
  async tryOpen(opening: Place & Opening): Promise<string> {
    const command = { command: "open", handle: this.#handle, ...opening } as const;
    const reply = await this.#connection.send(command);
    return "error" in reply ? reply.error.code : "decline" in reply ? "declined" : "ok";
  }

  run(task: Task, taskMs: number): Promise<Ran> {
    const command = { command: "run", handle: this.#handle, task, timeout_ms: TIMEOUT_MS } as const;
    return this.#send(command, "run", taskMs);
  }

  /** A call that must not fail. */
  must<T = void>(name: Bare | "get"): Promise<T> {
    return this.#send({ command: name, handle: this.#handle }, name);
  }

  write(hex: string): Promise<void> {
    const message = { kind: 1, codec: 0, tag: 0, hex };
    return this.#send({ command: "write", handle: this.#handle, message }, "write");
  }

  /** May be called long before anybody waits for it: what fails until then is still told of. */
  changed(timeoutMs: number): Promise<void> {
    const command = { command: "changed", handle: this.#handle, timeout_ms: timeoutMs } as const;
    const change = this.#send<void>(command, "wait for a change", 2 * timeoutMs);
    change.catch(() => {});
    return change;
  }

  async drop(): Promise<void> {
    await this.#connection.must({ command: "drop", handle: this.#handle });
  }

  async #send<T>(command: Command, what: string, timeoutMs?: number): Promise<T> {
    const reply = await this.#connection.send(command, timeoutMs);
    if ("result" in reply) return reply.result as T;
    const why = "error" in reply ? reply.error.code : `declined: ${reply.decline}`;
    throw new Wrong(`${this.#who} cannot ${what}: ${why}`);
  }
}

/** A crowd writes so much before somebody is killed, in byte areas or values. */
const FLOWED = 4;
const FLOWED_VERSIONS = 50;
/** A worker has stopped that has written nothing for so many times so long. */
const LAST_STEPS = 3;
const LAST_STEPS_MS = 20;
/** One that went on all the same makes a run unfair; so many may be, before it is judged. */
const UNFAIR_MAX = 4;
/** A task of many waits may take longer than any one of them. */
const TASK_MS = 60_000;

/** Makes a case of the kit, for so many testees. `death` is what a survivor learns there. */
export function crowdCase(plan: CrowdPlan, death: string, seats: number): KitCase<Arena> {
  const { id, about, clauses } = plan;
  return {
    id,
    about,
    clauses,
    // Readers that do not offer it are left out, as long as there is one.
    declinedBy: (hello, index) => index === 0 ? whyNot(plan, hello, true) : undefined,
    run: (arena) => runCrowd(plan, arena, death, seats),
  };
}

/** Why a testee takes no part. */
function whyNot({ on }: CrowdPlan, hello: Hello, isWriter: boolean): string | undefined {
  if (!hello.levels.includes("live")) return "does not run live";
  const noun = on === "property" ? "property" : "fanout";
  return lacksNoun(hello, noun) ?? lacksRole(hello, roleOf(noun, isWriter));
}

function roleOf(noun: "property" | "fanout", isWriter: boolean): Opening["role"] {
  return `${noun}_${isWriter ? "writer" : "reader"}`;
}

/** Those that take part, the writer first; where it or every reader is missing, why. */
export async function gather(
  arena: Arena,
  seats: number,
  why: (hello: Hello, isWriter: boolean) => string | undefined,
): Promise<Seated[] | Result> {
  const seated: Seated[] = [];
  const reasons: string[] = [];
  for (let index = 0; index < seats; index++) {
    const connection = await arena.connect(index);
    const { hello } = connection;
    const reason = why(hello, index === 0) ??
      (arena.folder === undefined ? undefined : lacksCarrier(hello, "file"));
    if (reason === undefined) seated.push({ index, connection });
    else if (index === 0) return { status: "declined", why: [reason], by: 0 };
    else reasons.push(reason);
  }
  if (seated.length > 1) return seated;
  return { status: "declined", why: [reasons[0] ?? "there is no reader"], by: 1 };
}

/** Runs it, again where a run was unfair. */
async function runCrowd(
  plan: CrowdPlan,
  arena: Arena,
  death: string,
  seats: number,
): Promise<Result> {
  for (let unfair = 0;; unfair++) {
    const seated = await gather(arena, seats, (hello, isWriter) => whyNot(plan, hello, isWriter));
    if (!Array.isArray(seated)) return seated;
    const crowd = new Crowd(plan, arena, death, seated);
    const counts = () => crowd.isFair || unfair === UNFAIR_MAX;
    try {
      const problems = await crowd.run();
      if (problems.length === 0) return PASS;
      if (counts()) return { ...failed(plan.clauses, problems), saved: crowd.saved };
    } catch (error) {
      if (!(error instanceof Wrong) || counts()) throw error;
    }
  }
}

/** One run of a plan. */
class Crowd {
  readonly saved = new Map<string, string>();
  readonly #plan: CrowdPlan;
  readonly #arena: Arena;
  readonly #death: string;
  readonly #seated: Seated[];
  readonly #ends: End[] = [];
  readonly #expected: Expected;
  #field!: Field;
  /** Where the control area of the channel begins. */
  #control = 0;
  /** What the counter was when the writer was declared dead. */
  #stood?: number;
  #isFair = true;

  constructor(plan: CrowdPlan, arena: Arena, death: string, seated: Seated[]) {
    this.#plan = plan;
    this.#arena = arena;
    this.#death = death;
    this.#seated = seated;
    this.#expected = new Expected(plan);
    this.saved.set("plan.json", JSON.stringify(plan, null, 2));
  }

  async run(): Promise<Problem[]> {
    const { bytes, control, image } = this.#build();
    this.#control = control;
    this.#field = await this.#arena.field({ size: bytes, ...(image && { image }) });
    try {
      for (const endpoint of this.#seated.keys()) await this.#open(endpoint, image === undefined);
      const running = this.#ends.toReversed().map((end) => this.#do(end)).toReversed();
      // One that fails before it is waited for is still told of then.
      for (const part of running) part.catch(() => {});
      const killed = await this.#kill();
      const rans = await together(running);
      for (const [index, ran] of rans.entries()) {
        this.saved.set(`testee_${index + 1}.json`, JSON.stringify(ran));
      }
      const problems = rans.flatMap((some, endpoint) =>
        endpoint === killed ? [] : this.#judge(endpoint, some)
      );
      const waker = this.#isProperty ? "property.wake" : "fanout.wake";
      if (killed === undefined) problems.push(...lateProblems(rans.map((some) => some[0]), waker));
      if (problems.length === 0) problems.push(...await this.#judgeLeft(killed));
      for (const end of this.#ends) if (end.endpoint !== killed) await end.drop();
      if (problems.length === 0) problems.push(...this.#judgeStates(killed));
      if (problems.length > 0) this.saved.set("image.hex", hexOf(snapshot(this.#field)));
      return problems;
    } finally {
      this.#isFair = this.#stood === undefined || this.#stood === this.#word(this.#counter);
      this.#field.release();
    }
  }

  /** False where a writer wrote after it was declared dead: a worker may, on a busy machine. */
  get isFair(): boolean {
    return this.#isFair;
  }

  get #isProperty(): boolean {
    return this.#plan.on === "property";
  }

  /** The segment as its creator makes it; as an image where somebody has written before. */
  #build() {
    const { start = 0 } = this.#plan;
    const geometry = this.#geometry();
    const { bytes, channels } = buildSegment(geometry);
    const { control } = channels[0]!;
    if (!this.#isProperty || start === 0) return { bytes: bytes.length, control };
    const { area } = this.#plan;
    const slots = { [start % limitOf("property_slot_count")]: { sequence: start, value: STARTED } };
    const image = property({
      endpoints: geometry.endpoints,
      states: [VACANT],
      channel: { capacity: area, name: NAME },
      version: start,
      slots,
    });
    return { bytes: image.bytes.length, control: image.control, image: image.bytes };
  }

  #geometry() {
    const { area: capacity, start = 0, on } = this.#plan;
    const endpoints = this.#seated.length;
    const common = { writer: 0, reader: NOBODY, capacity, label: 0 };
    const channel = this.#isProperty
      ? { ...common, kind: valueOf("channel_kind", "property"), name: NAME, start: 0 }
      : { ...common, readers: endpoints - 1, start: start + (on === "lose" ? LOSE : 0) };
    return { endpoints, channels: [channel] };
  }

  async #open(endpoint: number, creates: boolean): Promise<void> {
    const { spin, capacity } = this.#plan;
    const isWriter = endpoint === 0;
    const end = new End(this.#seated[endpoint]!, endpoint);
    this.#ends.push(end);
    await end.open({
      ...this.#field.place(this.#seated[endpoint]!.index),
      kind: isWriter && creates ? "create" : "attach",
      ...(isWriter && creates && { geometry: this.#geometry() }),
      role: roleOf(this.#isProperty ? "property" : "fanout", isWriter),
      endpoint,
      channel: 0,
      limit: 3 * capacity + 64,
      spin_us: spin,
    });
  }

  #roleOf(endpoint: number): Role {
    const { writer, readers, last } = this.#plan;
    if (endpoint === 0) return writer;
    if (endpoint === this.#ends.length - 1 && last !== undefined) return last;
    return readers[(endpoint - 1) % readers.length]!;
  }

  /** Has a testee do its part, and more where it joins again; nothing comes of who was killed. */
  async #do(end: End): Promise<Ran[]> {
    const role = this.#roleOf(end.endpoint);
    const { count, ...task } = this.#taskOf(end, role);
    try {
      const ran = await end.run({ ...task, ...(count !== undefined && { count }) }, TASK_MS);
      if (!role.rejoins || ran.end !== role.end) return [ran];
      await end.must("leave");
      await end.must("join");
      return [ran, await end.run(task, TASK_MS)];
    } catch (error) {
      if (end.endpoint === this.#victim && error instanceof Trouble) return [];
      throw error;
    }
  }

  #taskOf(end: End, { wait, then, count, delay_us, delay_every }: Role): Task {
    const { seed, capacity, kills, on } = this.#plan;
    const isWriter = end.endpoint === 0;
    // Readers of a property end at a version, unless nobody knows which one is the last.
    const until = this.#isProperty && kills === undefined && this.#roleEnds(end)
      ? this.#last
      : count;
    return {
      role: isWriter ? "write" : "read",
      seed,
      capacity,
      ...(isWriter ? { count: this.#plan.count } : until !== undefined && { count: until }),
      wait: end.hello.waits.includes(wait) ? wait : "block",
      then,
      ...(delay_us !== undefined && { delay_us, delay_every: delay_every! }),
      ...(on === "lose" && !isWriter && { lossy: true }),
      record: !isWriter,
    };
  }

  /** Whether that reader is to end at the last version; otherwise it waits for the writer's end. */
  #roleEnds({ endpoint }: End): boolean {
    return this.#roleOf(endpoint).end === "ended";
  }

  /** The version of the last value. */
  get #last(): number {
    const { start = 0, count } = this.#plan;
    let version = start;
    for (let index = 0; index < count; index++) version = nextVersion(version);
    return version;
  }

  /** The endpoint of who is killed. */
  get #victim(): number | undefined {
    const { kills } = this.#plan;
    return kills === undefined ? undefined : kills === "writer" ? 0 : this.#seated.length - 1;
  }

  /** Waits until something flows, and ends one of them in the middle of its task. */
  async #kill(): Promise<number | undefined> {
    const victim = this.#victim;
    if (victim === undefined) return undefined;
    const { start = 0, area } = this.#plan;
    const least = this.#isProperty ? FLOWED_VERSIONS : FLOWED * area;
    let deadline = performance.now() + TIMEOUT_MS;
    const flowed = () => this.#word(this.#counter) - start >>> 0;
    while (flowed() < least && performance.now() < deadline) await sleep(2);
    await this.#arena.kill(this.#seated[victim]!.index);
    deadline = performance.now() + TIMEOUT_MS;
    // A worker that has ended may go on to the end of a call, or of a turn of its loop.
    for (let before = -1, still = 0; still < LAST_STEPS && performance.now() < deadline;) {
      await sleep(LAST_STEPS_MS);
      const now = this.#word(this.#counter);
      still = victim !== 0 || now === before ? still + 1 : 0;
      before = now;
    }
    if (victim === 0) this.#stood = this.#word(this.#counter);
    // Where the death of a peer leaves no trace, a supervisor says so. [pipe.supervisor]
    const isSupervised = this.#death === "peer.terminated";
    if (isSupervised && stateOf(this.#field, victim) === ATTACHED) {
      changeState(this.#field, victim, failedState("peer.terminated"));
    }
    return victim;
  }

  #judge(endpoint: number, rans: Ran[]): Problem[] {
    const role = this.#roleOf(endpoint);
    const left = this.#word(this.#counter);
    return rans.flatMap((ran, index) => {
      if (endpoint === 0) return judgeWriter(this.#plan, ran, this.#expected);
      const again: Role = { ...role, end: "ended", got: "all", from: role.count ?? 0 };
      const judged = index === 0 ? role : again;
      const who = `reader ${endpoint}`;
      return judgeReader(this.#plan, judged, who, ran, this.#expected, this.#death, left);
    });
  }

  /** What stands in the memory when all have done their parts, and none has closed. */
  async #judgeLeft(killed: number | undefined): Promise<Problem[]> {
    const facts: string[] = [];
    const mustBe = (index: number, must: number, what: string) => {
      const got = this.#word(index);
      if (got !== must) facts.push(`${what}: expected ${must}, got ${got}`);
    };
    const asks = this.#isProperty ? ["property_control", "watchers"] : [CONTROL, "readers_want"];
    const [structure, name] = asks as [string, string];
    // The dead leaves what it had asked for.
    if (killed === undefined || killed === 0) {
      const clause = this.#isProperty ? "property.unwatch" : "fanout.ask";
      mustBe(this.#at(structure, name), 0, `[${clause}] ${name}`);
    }
    if (this.#isProperty) {
      if (killed === 0) facts.push(...await this.#judgeDead());
    } else if (this.#plan.on === "hold" && killed === undefined) {
      const tail = this.#word(this.#counter);
      for (let reader = 0; reader < this.#ends.length - 1; reader++) {
        if (this.#roleOf(reader + 1).then === "close") continue;
        const at = (name: string) =>
          recordOf({ control: this.#control }, reader) + fieldOf("fanout_reader", name).offset >> 2;
        mustBe(at("head"), (tail | 1) >>> 0, `[fanout.release] head of reader ${reader + 1}`);
        mustBe(at("writer_wants"), 0, `[wait.disarm] writer_wants of reader ${reader + 1}`);
      }
    }
    return facts.map((text) => ({ text, clauses: [] }));
  }

  /** The writer is dead: each reader gets the last value, twice, and nobody takes its place. */
  async #judgeDead(): Promise<string[]> {
    const version = this.#word(this.#counter);
    const payload = this.#expected.payload(version - 1);
    const facts: string[] = [];
    for (const end of this.#ends.slice(1).flatMap((end) => [end, end])) {
      const got = await end.must<Gotten>("get");
      const bytes = got.item && fromHex(got.item.hex!);
      const isSame = payload.length === 0
        ? bytes === undefined
        : bytes !== undefined && `${bytes}` === `${payload}`;
      if (got.version === version && isSame) continue;
      facts.push(`[property.stays] reader ${end.endpoint} gets another value than the last`);
    }
    const seated = this.#seated.at(-1)!;
    const heir = new End(seated, 0);
    const code = await heir.tryOpen({
      ...this.#field.place(seated.index),
      kind: "attach",
      role: "property_writer",
      endpoint: 0,
      channel: 0,
    });
    if (code !== "segment.endpoint") {
      facts.push(
        `[segment.attach] the dead writer's endpoint: expected segment.endpoint, got ${code}`,
      );
    }
    return facts;
  }

  /** Whoever lives has closed by now. */
  #judgeStates(killed: number | undefined): Problem[] {
    const closed = valueOf("endpoint_state", "closed");
    return this.#ends.flatMap(({ endpoint }) => {
      if (endpoint === killed || stateOf(this.#field, endpoint) === closed) return [];
      const got = this.#word(recordWord(endpoint, "state"));
      const text = `[pipe.close] endpoint ${endpoint}, state: expected ${closed}, got ${got}`;
      return [{ text, clauses: [] }];
    });
  }

  /** The word that counts what was written. */
  get #counter(): number {
    return this.#isProperty ? this.#at("property_control", "version") : this.#at(CONTROL, "tail");
  }

  #at(structure: string, name: string): number {
    return this.#control + fieldOf(structure, name).offset >> 2;
  }

  #word(index: number): number {
    return Atomics.load(this.#field.words(), index) >>> 0;
  }
}

const CONTROL = "fanout_control";
const NAME = "value";
const LOSE = limitOf("fanout_lose");

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function hexOf(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A drop box: one testee sets an order, and each of the others acknowledges it by setting none in a
// property of its own, for which the first one waits before it sets the next.

const ROUNDS = 20;
const AREA = 512;
const ID = "live/property_answered";
const CLAUSES = [
  "property.write",
  "property.wake",
  "property.changed",
  "property.watch",
  "property.next",
];

/** Makes the case, for so many testees. */
export function answersCase(seats: number): KitCase<Arena> {
  return {
    id: ID,
    about: "A drop box: each value is acknowledged by none, before the next one comes.",
    clauses: CLAUSES,
    declinedBy: (hello, index) => index === 0 ? whyNotAnswers(hello) : undefined,
    async run(arena) {
      const seated = await gather(arena, seats, whyNotAnswers);
      return Array.isArray(seated) ? await runAnswers(arena, seated) : seated;
    },
  };
}

/** Each of them reads and writes. */
function whyNotAnswers(hello: Hello): string | undefined {
  if (!hello.levels.includes("live")) return "does not run live";
  return lacksNoun(hello, "property") ?? lacksRole(hello, "property_reader") ??
    lacksRole(hello, "property_writer");
}

/** Who has written an order and read the answers, or the other way round. */
interface Side {
  order: End;
  answer: End;
}

async function runAnswers(arena: Arena, seated: Seated[]): Promise<Result> {
  const others = seated.slice(1);
  // The order is written by endpoint 0; of each reader, one endpoint reads that, one writes the
  // answer, and one of the first testee's reads it.
  const endpoints = 1 + 3 * others.length;
  const kind = valueOf("channel_kind", "property");
  const property = (writer: number, name: string) => ({
    ...{ kind, writer, reader: NOBODY, capacity: AREA, label: 0, start: 0, name },
  });
  const answers = others.map((_, index) => property(3 * index + 2, `answer ${index}`));
  const geometry = { endpoints, channels: [property(0, "order"), ...answers] };
  const field = await arena.field({ size: buildSegment(geometry).bytes.length });
  const open = async (seat: Seated, endpoint: number, role: Opening["role"], name: string) => {
    const end = new End(seat, endpoint);
    const creates = endpoint === 0;
    await end.open({
      ...field.place(seat.index),
      kind: creates ? "create" : "attach",
      ...(creates && { geometry }),
      ...{ role, endpoint, property: name, spin_us: 0 },
    });
    return end;
  };
  try {
    const first = seated[0]!;
    const order = await open(first, 0, "property_writer", "order");
    const sides: Side[] = [];
    const readers: End[] = [];
    for (const [index, seat] of others.entries()) {
      const name = `answer ${index}`;
      sides.push({
        order: await open(seat, 3 * index + 1, "property_reader", "order"),
        answer: await open(seat, 3 * index + 2, "property_writer", name),
      });
      readers.push(await open(first, 3 * index + 3, "property_reader", name));
    }
    const facts = await play(order, sides, readers);
    for (const end of [order, ...readers]) await end.drop();
    for (const side of sides) {
      await side.order.drop();
      await side.answer.drop();
    }
    if (facts.length === 0) return PASS;
    return failed(CLAUSES, facts.map((text) => ({ text, clauses: [] })));
  } finally {
    field.release();
  }
}

/** Every wait begins before what it waits for, as far as one testee does one thing at a time. */
async function play(order: End, sides: Side[], readers: End[]): Promise<string[]> {
  const facts: string[] = [];
  for (let round = 1; round <= ROUNDS && facts.length === 0; round++) {
    const hex = toHex(new TextEncoder().encode(`order ${round}`)).replaceAll(" ", "");
    const waits = sides.map((side) => side.order.changed(TIMEOUT_MS));
    await order.write(hex);
    await together(waits);
    for (const [index, side] of sides.entries()) {
      const got = await side.order.must<Gotten>("get");
      const isRight = got.version === round && got.item?.hex === hex;
      if (!isRight) {
        facts.push(`[property.next] reader ${index + 1} has another order than ${round}`);
      }
      const waiting = readers[index]!.changed(TIMEOUT_MS);
      await side.answer.must("clear");
      await waiting;
      const answer = await readers[index]!.must<Gotten>("get");
      const isNone = answer.version === round && answer.item === undefined;
      if (!isNone) facts.push(`[property.write] the answer of reader ${index + 1} is not none`);
    }
  }
  return facts;
}
