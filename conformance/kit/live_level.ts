/**
 * Runs a live plan with two testees, and judges what each of them reports and what they leave.
 *
 * @module
 */

import { changeState, controlWord, stateOf } from "./peer.ts";
import type { Arena, Field } from "./arena.ts";
import { snapshot } from "./arena.ts";
import type { Connection } from "./connection.ts";
import { judgePart, type LivePlan, type Part } from "./live_plan.ts";
import type { Hello, Opening, Ran, Task } from "./protocol.ts";
import { lacksNoun, lacksOption, lacksRole } from "./static_level.ts";
import { Trouble } from "./trouble.ts";
import { failed, type KitCase, PASS, type Result, Wrong } from "./verdict.ts";
import { buildSegment, failed as failedState } from "../reference/encode.ts";
import { sizeOf, valueOf } from "../reference/layout.ts";

/** Bounds each wait of a task, and so, with some grace, the task. */
const TIMEOUT_MS = 10_000;
/** Largest message of a workload, in capacities. */
const SIZE_MAX = 3;

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
    (plan.on === "port" ? lacksOption(hello, ["inbox"]) : undefined);
}

function roleOf({ on }: LivePlan, role: Task["role"]): Opening["role"] {
  if (on === "port") return "port";
  const isWriter = role === "write";
  if (on === "mailbox") return isWriter ? "mailbox_writer" : "mailbox_reader";
  return isWriter ? "writer" : "reader";
}

/** Runs it. The first testee makes the segment, the second finds it. */
export async function runLive(plan: LivePlan, arena: Arena, death: string): Promise<Result> {
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
    const running = ends.map((end, index) => runPart(plan, index, end));
    if (plan.kills !== undefined) await killOne(plan, plan.kills, arena, field, death);
    const rans = await Promise.all(running);
    const problems = rans.flatMap((ran, index) => {
      if (index === plan.kills) return [];
      return judgePart(plan, index === 0 ? plan.first : plan.second, ran!, death);
    });
    problems.push(...parksProblems(plan, rans));
    const left = snapshot(field);
    if (problems.length === 0) problems.push(...leftProblems(plan, field));
    for (const [index, { connection, handle }] of ends.entries()) {
      if (index !== plan.kills) await connection.must({ command: "drop", handle });
    }
    if (problems.length === 0) problems.push(...closedProblems(plan, field));
    if (problems.length === 0) return PASS;
    return { ...failed(problems), saved: savedOf(plan, rans, left) };
  } finally {
    field.release();
  }
}

interface End {
  connection: Connection;
  handle: number;
}

function geometryOf({ on, capacity, start = 0 }: LivePlan) {
  const ring = (writer: number) => ({ writer, reader: 1 - writer, capacity, label: 0, start });
  return { endpoints: 2, channels: on === "port" ? [ring(0), ring(1)] : [ring(0)] };
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
    limit: SIZE_MAX * plan.capacity + 64,
    calls: false,
    values: false,
    spin_us: plan.spin,
  });
  if ("result" in reply) return { connection, handle };
  const why = "error" in reply ? reply.error.code : `declined: ${reply.decline}`;
  throw new Wrong(`testee ${index + 1} cannot open its end: ${why}`);
}

async function runPart(plan: LivePlan, index: number, end: End): Promise<Ran | undefined> {
  const part = index === 0 ? plan.first : plan.second;
  const { role, wait, then, count, delay_us, delay_every } = part;
  const isSource = role === "write" || role === "drive";
  const task: Task = {
    role,
    seed: plan.seed,
    capacity: plan.capacity,
    ...(isSource ? { count: plan.count } : count !== undefined && { count }),
    wait,
    then,
    ...(delay_us !== undefined && { delay_us, delay_every: delay_every! }),
    ...(plan.record && { record: true }),
  };
  const { connection, handle } = end;
  try {
    const timeout_ms = TIMEOUT_MS;
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
function parksProblems(plan: LivePlan, rans: (Ran | undefined)[]): string[] {
  if (plan.spin > 0 || plan.kills !== undefined || plan.on === "mailbox") return [];
  if ([plan.first, plan.second].some(({ wait }) => wait !== "block")) return [];
  const parks = rans.map((ran) => ran?.parks);
  if (parks.includes(undefined) || parks.some((count) => count! > 0)) return [];
  return ["nobody slept, though nobody was to spin"];
}

/** What both have left, before they close. */
function leftProblems(plan: LivePlan, field: Field): string[] {
  if (plan.on === "mailbox" || plan.second.end !== "ended") return [];
  const problems: string[] = [];
  const load = (channel: number, name: string) =>
    Atomics.load(field.words(), controlWord(field, channel, name)) >>> 0;
  for (let channel = 0; channel < (plan.on === "port" ? 2 : 1); channel++) {
    const [tail, head] = [load(channel, "tail"), load(channel, "head")];
    if (tail !== head) {
      problems.push(`[ring.release_all] channel ${channel}: tail is ${tail}, head still ${head}`);
    }
    for (const name of ["reader_wants", "writer_wants"]) {
      const wants = load(channel, name);
      if (wants === 0) continue;
      problems.push(`[wait.disarm] channel ${channel}: ${name} is still ${wants}`);
    }
  }
  return problems;
}

/** What they have left when they have closed. */
function closedProblems(plan: LivePlan, field: Field): string[] {
  if (plan.on === "mailbox") return [];
  const closed = valueOf("endpoint_state", "closed");
  return [0, 1].filter((index) => index !== plan.kills && stateOf(field, index) !== closed)
    .map((index) => `[pipe.close] the state of endpoint ${index} is ${stateOf(field, index)}`);
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
