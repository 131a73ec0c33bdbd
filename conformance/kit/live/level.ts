/**
 * Runs a live plan with two testees, and judges what each of them reports and what they leave.
 *
 * @module
 */

import { buildSegment, failed as failedState } from "../../reference/encode.ts";
import { sizeOf, valueOf } from "../../reference/layout.ts";
import type { Problem } from "../../static/difference.ts";
import { type Arena, type Field, snapshot } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { changeState, controlWord, recordWord, stateOf, type Words } from "../peer.ts";
import type { Hello, Opening, Ran, Task, TreeTask, Wait } from "../protocol.ts";
import { lacksNoun, lacksOption, lacksRole } from "../static_level.ts";
import { together } from "../together.ts";
import { failed, type KitCase, PASS, type Result, Trouble, Wrong } from "../verdict.ts";
import { judgePart, type LivePlan, type Part, treeCount } from "./plan.ts";
import { Random } from "./workload.ts";

/** Bounds each wait of a task, and so, with some grace, the task. */
export const TIMEOUT_MS = 10_000;
/** Largest message of a workload, in capacities. */
const SIZE_MAX = 3;

/** So many late wakes, or such a share of all sleeps, may be the doing of a busy machine. */
const LATE_WAKES_MAX = 2;
const LATE_SHARE = 0.05;

/** Makes a case of the kit. `death` is what a survivor learns on this carrier. */
export function liveCase(plan: LivePlan, death: string): KitCase<Arena> {
  const { id, about, clauses } = plan;
  return {
    id,
    about,
    clauses,
    declinedBy: (hello, index) => whyNot(plan, hello, index),
    run: (arena) => runLive(plan, arena, death),
  };
}

function whyNot(plan: LivePlan, hello: Hello, index: number): string | undefined {
  const { role, wait } = index === 0 ? plan.first : plan.second;
  if (!hello.levels.includes("live")) return "does not run live";
  return lacksNoun(hello, plan.on) ?? lacksRole(hello, roleOf(plan, role)) ??
    (hello.waits.includes(wait) ? undefined : `does not wait by ${wait}`) ??
    // Without an inbox, two that both write can fill both rings and wait for one another.
    (plan.on === "port" || plan.on === "call" ? lacksOption(hello, ["inbox"]) : undefined) ??
    (plan.on === "call" ? lacksOption(hello, ["later"]) : undefined);
}

function roleOf({ on }: LivePlan, role: Part["role"]): Opening["role"] {
  if (on === "port" || on === "call") return "port";
  const isWriter = role === "write";
  if (on === "mailbox") return isWriter ? "mailbox_writer" : "mailbox_reader";
  return isWriter ? "writer" : "reader";
}

/** Runs it. The first testee makes the segment, the second finds it. */
async function runLive(plan: LivePlan, arena: Arena, death: string): Promise<Result> {
  const geometry = geometryOf(plan);
  const isMailbox = plan.on === "mailbox";
  const image = isMailbox
    ? new Uint8Array(sizeOf("mailbox_header") + plan.capacity)
    : buildSegment(geometry).bytes;
  const field = await arena.field({ size: image.length, ...(isMailbox && { image }) });
  try {
    const ends: End[] = [];
    for (const [index, part] of [plan.first, plan.second].entries()) {
      ends.push(await openEnd(plan, part, index, arena, field));
    }
    const running = ends.map((end, index) => runPart(plan, index, end, TIMEOUT_MS));
    // One that fails before it is waited for is still told of then.
    for (const part of running) part.catch(() => {});
    if (plan.kills !== undefined) await killOne(plan, plan.kills, arena, field, death);
    const rans = await together(running);
    const problems = judgeParts(plan, rans, death);
    problems.push(...parksProblems(plan, rans));
    const waker = plan.on === "mailbox" ? "mailbox.notify" : "wait.exchange";
    if (plan.kills === undefined) problems.push(...lateProblems(rans, waker));
    let left = new Left(snapshot(field));
    if (problems.length === 0) left.judgeRings(plan);
    for (const [index, { connection, handle }] of ends.entries()) {
      if (index !== plan.kills) await connection.must({ command: "drop", handle });
    }
    if (problems.length + left.problems.length === 0) {
      left = new Left(snapshot(field));
      left.judgeStates(plan);
    }
    problems.push(...left.problems);
    if (problems.length === 0) return PASS;
    const differs = left.problems.length > 0 ? [left.got, left.must] : [];
    return { ...failed(plan.clauses, problems, ...differs), saved: savedOf(plan, rans, left.got) };
  } finally {
    field.release();
  }
}

/** A testee, and what it has opened. */
export interface End {
  connection: Connection;
  handle: number;
}

/** The largest message that a testee takes, for a workload of this capacity. */
export function limitOf(capacity: number): number {
  return SIZE_MAX * capacity + 64;
}

/** What is wrong with what each testee reports, except the testee that was killed. */
export function judgeParts(
  plan: LivePlan,
  rans: readonly (Ran | undefined)[],
  death: string,
): Problem[] {
  return rans.flatMap((ran, index) => {
    if (index === plan.kills) return [];
    return judgePart(plan, index === 0 ? plan.first : plan.second, ran!, death);
  });
}

function geometryOf({ on, capacity, start = 0 }: LivePlan) {
  const ring = (writer: number) => ({ writer, reader: 1 - writer, capacity, label: 0, start });
  return { endpoints: 2, channels: on === "pipe" ? [ring(0)] : [ring(0), ring(1)] };
}

async function openEnd(
  plan: LivePlan,
  part: Part,
  index: number,
  arena: Arena,
  field: Field,
): Promise<End> {
  const connection = await arena.connect(index);
  const handle = connection.newHandle();
  const creates = index === 0 && plan.on !== "mailbox";
  const reply = await connection.send({
    command: "open",
    handle,
    ...field.place(index),
    kind: creates ? "create" : "attach",
    ...(creates && { geometry: geometryOf(plan) }),
    role: roleOf(plan, part.role),
    ...(plan.on !== "mailbox" && { endpoint: index }),
    limit: limitOf(plan.capacity),
    calls: plan.on === "call",
    values: plan.on === "call",
    ...(plan.on === "call" && { serves: true }),
    spin_us: plan.spin,
  });
  if ("result" in reply) return { connection, handle };
  const why = "error" in reply ? reply.error.code : `declined: ${reply.decline}`;
  throw new Wrong(`testee ${index + 1} cannot open its end: ${why}`);
}

/** Has a testee do its part; undefined for one that was killed. */
export async function runPart(
  plan: LivePlan,
  index: number,
  { connection, handle }: End,
  timeout_ms: number,
): Promise<Ran | undefined> {
  const part = index === 0 ? plan.first : plan.second;
  const task = part.role === "tree" ? treeTaskOf(plan, part) : taskOf(plan, part, part.role);
  try {
    // A task of many waits may take longer than any one of them.
    const reply = await connection.send({ command: "run", handle, task, timeout_ms }, 60_000);
    if ("result" in reply) return reply.result as Ran;
    const why = "error" in reply ? reply.error.code : `declined: ${reply.decline}`;
    throw new Wrong(`testee ${index + 1} does not run: ${why}`);
  } catch (error) {
    if (index === plan.kills && error instanceof Trouble) return undefined;
    throw error;
  }
}

/** The task of a part that moves messages. */
function taskOf(plan: LivePlan, part: Part, role: Task["role"]): Task {
  const { wait, then, count, delay_us, delay_every } = part;
  const isSource = role === "write" || role === "drive";
  return {
    role,
    seed: plan.seed,
    capacity: plan.capacity,
    ...(isSource ? { count: plan.count } : count !== undefined && { count }),
    wait,
    then,
    ...(delay_us !== undefined && { delay_us, delay_every: delay_every! }),
    record: true,
  };
}

/** The task of a part that makes trees of calls. */
function treeTaskOf({ capacity }: LivePlan, part: Part): TreeTask {
  const { wait, then, count, trees } = part;
  return { role: "tree", capacity, count: count!, wait, then, ...trees!, record: true };
}

/** Waits until messages flow, and ends one of the two in the middle of its task. */
async function killOne(
  plan: LivePlan,
  index: number,
  arena: Arena,
  field: Field,
  death: string,
): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  const tail = controlWord(field, 0, "tail");
  const start = plan.start ?? 0;
  const flowed = () => (Atomics.load(field.words(), tail) - start >>> 0) > 4 * plan.capacity;
  while (!flowed() && performance.now() < deadline) await sleep(2);
  await arena.kill(index);
  await sleep(20); // a worker's last steps
  // Where the death of a peer leaves no trace, a supervisor says so. [pipe.supervisor]
  const isSupervised = death === "peer.terminated";
  if (isSupervised && stateOf(field, index) === valueOf("endpoint_state", "attached")) {
    changeState(field, index, failedState("peer.terminated"));
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Without spinning somebody must have slept, or the run has not tried waking at all. */
function parksProblems(plan: LivePlan, rans: (Ran | undefined)[]): Problem[] {
  if (plan.spin > 0 || plan.kills !== undefined || plan.on === "mailbox") return [];
  if ([plan.first, plan.second].some(({ wait }) => wait !== "block")) return [];
  const parks = rans.map((ran) => ran?.parks);
  if (parks.includes(undefined) || parks.some((count) => count! > 0)) return [];
  return [{ text: "nobody slept, though nobody was to spin", clauses: [] }];
}

/** Sleeps that nobody has ended in time, though there was a reason. */
export function lateProblems(rans: readonly (Ran | undefined)[], clause: string): Problem[] {
  return rans.flatMap((ran, index) => {
    const { parks = 0, late_wakes = 0 } = ran ?? {};
    if (late_wakes <= Math.max(LATE_WAKES_MAX, parks * LATE_SHARE)) return [];
    const what = `slept ${late_wakes} of ${parks} times to the end of its slice`;
    const text = `testee ${index + 1} ${what} with something there, and nobody rang it`;
    return [{ text: `[${clause}] ${text}`, clauses: [] }];
  });
}

/** What two testees have left in their memory, and what they must have. */
class Left {
  readonly problems: Problem[] = [];
  readonly got: Uint8Array;
  readonly must: Uint8Array;
  readonly #got: Words;
  readonly #must: Int32Array;

  constructor(got: Uint8Array) {
    this.got = got;
    this.must = got.slice();
    const words = new Int32Array(got.buffer, got.byteOffset, got.byteLength >> 2);
    this.#got = { words: () => words };
    this.#must = new Int32Array(this.must.buffer);
  }

  /** Of the rings, before they close. */
  judgeRings({ on, second }: LivePlan): void {
    if (on === "mailbox" || second.end !== "ended") return;
    for (let channel = 0; channel < (on === "pipe" ? 1 : 2); channel++) {
      const word = (name: string) => controlWord(this.#got, channel, name);
      const where = `channel ${channel}`;
      const tail = this.#got.words()[word("tail")]!;
      this.#expect(word("head"), tail, `[ring.release_all] ${where}, head`);
      for (const name of ["reader_wants", "writer_wants"]) {
        this.#expect(word(name), 0, `[wait.disarm] ${where}, ${name}`);
      }
    }
  }

  /** Of the endpoints, when they have closed. */
  judgeStates({ on, kills }: LivePlan): void {
    if (on === "mailbox") return;
    const closed = valueOf("endpoint_state", "closed");
    for (const index of [0, 1].filter((each) => each !== kills)) {
      if (stateOf(this.#got, index) === closed) continue;
      this.#expect(recordWord(index, "state"), closed, `[pipe.close] endpoint ${index}, state`);
    }
  }

  #expect(index: number, must: number, what: string): void {
    const got = this.#got.words()[index]!;
    if (got === must) return;
    this.#must[index] = must;
    const text = `${what}: expected ${must >>> 0}, got ${got >>> 0}`;
    this.problems.push({ text, clauses: [] });
  }
}

/** What is worth keeping of a run that failed. */
function savedOf(
  plan: LivePlan,
  rans: (Ran | undefined)[],
  left: Uint8Array,
): Map<string, string> {
  const saved = new Map([["plan.json", JSON.stringify(plan, null, 2)]]);
  for (const [index, ran] of rans.entries()) {
    saved.set(`testee_${index + 1}.json`, JSON.stringify(ran ?? null));
  }
  return saved.set(
    "image.hex",
    [...left].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
  );
}

// Live runs with random work and delays, for as long as is asked for. A failed run is saved.

const CAPACITIES = [256, 1024, 4096, 65_536];
const WAITS: Wait[] = ["block", "block", "block", "poll", "event"];

/** The one case of the level: runs by seed, one after the other. */
export function stressCases(seed: number, seconds: number, death: string): KitCase<Arena>[] {
  return [{
    id: "stress/random",
    about: `Random work and delays for ${seconds} s, from seed ${seed}.`,
    clauses: ["pipe.order", "wait.store_order", "ring.room"],
    stress: { seed, seconds },
    declinedBy: () => undefined,
    async run(arena) {
      const hellos = [(await arena.connect(0)).hello, (await arena.connect(1)).hello];
      const deadline = performance.now() + seconds * 1000;
      for (let next = seed; performance.now() < deadline; next++) {
        const entry = liveCase(randomPlan(next), death);
        if (hellos.some((hello, at) => entry.declinedBy(hello, at) !== undefined)) continue;
        const result = await entry.run(arena);
        if (result.status !== "pass") {
          return { ...result, why: [`seed ${next}: run again with --seed ${next}`, ...result.why] };
        }
      }
      return PASS;
    },
  }];
}

/** What a seed stands for. */
export function randomPlan(seed: number): LivePlan {
  const random = new Random(seed * 2_654_435_761 >>> 0 || 1);
  for (let index = 0; index < 8; index++) random.next(); // small seeds begin alike
  const pick = <T>(list: readonly T[]): T => list[random.next() % list.length]!;
  const capacity = pick(CAPACITIES);
  const on = pick(["pipe", "pipe", "port", "call"] as const);
  const isLate = random.next() % 2 === 0;
  const plan: LivePlan = {
    id: `stress/${seed}`,
    about: `Random work and delays of seed ${seed}.`,
    clauses: ["pipe.order"],
    on,
    capacity,
    start: isLate ? 2 ** 32 - 16 * (1 + random.next() % 64) : 0,
    spin: pick([0, 0, 50]),
    seed,
    count: 50 + random.next() % Math.max(50, Math.floor(400_000 / capacity)),
    first: on === "call" ? trees() : part(on === "port" ? "drive" : "write"),
    second: on === "call" ? trees() : part(on === "port" ? "echo" : "read"),
  };
  if (on !== "call") return plan;
  plan.first.got = treeCount(plan.first, plan.second);
  plan.second.got = treeCount(plan.second, plan.first);
  return { ...plan, count: plan.first.count! + plan.second.count! };

  function trees(): Part {
    const width = 1 + random.next() % 4;
    const depth = width === 1 ? random.next() % 64 : random.next() % 5;
    const order = { seed: random.next(), depth, width, plain: random.next() % 2 === 0 };
    const wait = pick(["block", "block", "event"] as const);
    const count = random.next() % 30;
    return { role: "tree", wait, then: "end", count, trees: order, end: "ended", got: "all" };
  }

  function part(role: Part["role"]): Part {
    const delays = random.next() % 3 === 0
      ? { delay_us: 50 + random.next() % 2000, delay_every: 4 + random.next() % 60 }
      : {};
    return {
      role,
      // Calls that do not wait take nothing in meanwhile: two of them can block one another.
      wait: pick(on === "port" ? WAITS.filter((wait) => wait !== "poll") : WAITS),
      then: role === "read" || role === "drive" ? "stay" : "end",
      end: role === "write" ? "done" : "ended",
      got: "all",
      ...delays,
    };
  }
}
