/**
 * Tests the kit itself: a small port is broken in one place at a time, and each time a case that
 * cites the clause must find it, and name that clause as what is broken. Unbroken, the port must
 * pass, also where a fault's window is held open.
 *
 * @module
 */

import { small } from "../testees/broken/adapter.ts";
import { breakPort, type Fault, FAULTS } from "../testees/broken/faults.ts";
import type { Arena, Program } from "./arena.ts";
import { deno } from "./carriers/deno.ts";
import { Connection } from "./connection.ts";
import { crowdCases } from "./crowds/cases.ts";
import type { Command } from "./protocol.ts";
import { SCRIPTS, WATCHED } from "./scripts/mod.ts";
import { patience } from "./scripts/windows.ts";
import { loadStaticCases, staticCases } from "./static_level.ts";
import { type KitCase, type Result, resultOf, type Status } from "./verdict.ts";
import { LocalLink } from "./worker_link.ts";

/** Which case has caught a fault, and what it said. */
export interface Catch {
  fault: Fault;
  /** The first case that failed; none where no case did. */
  caught?: Caught;
}

/** A case that failed, and the clauses that it names as broken. */
export interface Caught {
  id: string;
  why: string;
  broken: string[];
}

/** The port with a window held open and no fault: what has failed all the same. */
export interface Control {
  window: string;
  passed: number;
  failed: string[];
}

const HELD_SWEEP_MS = 100;

/** One that writes, and the least number of readers that makes them several. */
const CROWD = 3;
/** How often a crowd gathers before a fault counts as one that nobody sees. */
const CROWD_ROUNDS = 5;

/** The cases in which the port meets itself: one writes, and several read. */
function crowds(): KitCase<Arena>[] {
  return crowdCases(deno.death, CROWD);
}

/** The cases that need nothing but commands, and so run in this thread. */
function localCases(): KitCase<Arena>[] {
  return [...staticCases(loadStaticCases()), ...SCRIPTS];
}

/** Tries every fault, or those that are named. */
export async function* catchFaults(faults: readonly Fault[] = FAULTS): AsyncGenerator<Catch> {
  const local = localCases();
  for (const fault of faults) {
    // A fault that takes a window is one of time, and found where the kit sees the memory.
    const isLocal = fault.window === undefined;
    const first = isLocal ? await firstFailure(local, fault, localArena(fault)) : undefined;
    const setup = { fault: fault.name };
    const second = first ?? await firstFailure(WATCHED, fault, await workerArena(setup));
    const caught = second ?? await catchInCrowd(fault);
    yield caught === undefined ? { fault } : { fault, caught };
  }
  breakPort(undefined, undefined);
}

/**
 * The first live case of a crowd that catches a fault, all of whom have it. What a crowd shows is
 * up to when its threads run, so it gathers more than once before it says that nobody sees it.
 */
export async function catchInCrowd(fault: Fault): Promise<Caught | undefined> {
  for (let round = 0; round < CROWD_ROUNDS; round++) {
    const arena = await workerArena({ fault: fault.name }, CROWD);
    const caught = await firstFailure(crowds(), fault, arena);
    if (caught !== undefined) return caught;
  }
  return undefined;
}

/** Runs everything against the port without a fault, with each window held open. */
export async function* checkGood(): AsyncGenerator<Control> {
  breakPort(undefined, undefined);
  yield await control("none", localCases(), localArena(undefined));
  yield await control("none", crowds(), await workerArena({}, CROWD));
  const windows = new Set(FAULTS.map(({ window }) => window ?? "none"));
  for (const window of windows) {
    const setup = window === "none" ? {} : { window };
    // Who is held up for longer than it may pause does look too late.
    const isHeld = window !== "none";
    const cases = WATCHED.filter(({ clauses }) => !isHeld || !clauses.includes("wait.poll"));
    yield await hurried(isHeld, async () => control(window, cases, await workerArena(setup)));
  }
}

/** Who is held up comes to few tries of a sweep, however long that is: it may be short then. */
async function hurried<T>(isHeld: boolean, play: () => Promise<T>): Promise<T> {
  const before = { ...patience };
  if (isHeld) Object.assign(patience, { sweepMs: HELD_SWEEP_MS, orderSweepMs: HELD_SWEEP_MS });
  try {
    return await play();
  } finally {
    Object.assign(patience, before);
  }
}

/** Runs cases; what has failed is all that matters of it. */
export async function control(
  window: string,
  cases: readonly KitCase<Arena>[],
  arena: Arena,
): Promise<Control> {
  const failed: string[] = [];
  let passed = 0;
  for (const entry of cases) {
    const { status, why } = await runOne(entry, arena);
    if (status === "pass") passed++;
    else if (isPlayed(status)) failed.push(`${entry.id}: ${why.join("; ")}`);
  }
  await arena.close();
  return { window, passed, failed };
}

/** Runs the cases that cite the clause of a fault until one fails. */
export async function firstFailure(
  cases: readonly KitCase<Arena>[],
  { clause }: Fault,
  arena: Arena,
): Promise<Caught | undefined> {
  try {
    for (const entry of cases.filter(({ clauses }) => clauses.includes(clause))) {
      // Of a testee that breaks down, nobody can say more than what the case is about.
      const { status, why, broken = entry.clauses } = await runOne(entry, arena);
      if (isPlayed(status) && status !== "pass") {
        return { id: entry.id, why: why.join("; "), broken };
      }
    }
    return undefined;
  } finally {
    await arena.close();
  }
}

function isPlayed(status: Status): boolean {
  return status !== "declined" && status !== "unshown";
}

async function runOne(entry: KitCase<Arena>, arena: Arena): Promise<Result> {
  try {
    const { hello } = await arena.connect(0);
    const why = entry.declinedBy(hello, 0);
    if (why !== undefined) return { status: "declined", why: [why], by: 0 };
    return await entry.run(arena);
  } catch (error) {
    await arena.kill(0);
    return resultOf(error, entry.clauses);
  }
}

/** The port in this thread, broken. */
function localArena(fault: Fault | undefined): Arena {
  breakPort(fault?.name, undefined);
  const link = () => fault?.isInstant ? new InstantLink(small) : new LocalLink(small);
  let connection: Promise<Connection> | undefined;
  return {
    connect: () => connection ??= Connection.start(link()),
    field: () => Promise.reject(new Error("there is no memory to share")),
    kill: () => Promise.resolve(void (connection = undefined)),
    close: () => Promise.resolve(),
  };
}

/** While a port in this thread waits, nobody does anything: here its reads do not wait. */
class InstantLink extends LocalLink {
  override send(command: Command): void {
    super.send(command.command === "read" ? { ...command, timeout_ms: 0 } : command);
  }
}

/** The port in workers of their own. */
function workerArena(setup: { fault?: string; window?: string }, count = 1): Promise<Arena> {
  const worker = new URL("../testees/broken/worker.ts", import.meta.url);
  const program = { name: "small", worker, first: () => Promise.resolve({ setup }) };
  return deno.open(Array<Program>(count).fill(program));
}
