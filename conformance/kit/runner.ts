/**
 * Runs cases one after the other, and gives each its verdict.
 *
 * @module
 */

import type { Arena } from "./arena.ts";
import type { CarrierKind, Hello, Level } from "./protocol.ts";
import { type KitCase, type Result, resultOf, Trouble, type Verdict } from "./verdict.ts";

/** Cases of one level for one or two testees in one place. */
export interface Group {
  level: Level;
  carrier: string;
  /** What `start` calls the carrier. */
  kind: CarrierKind;
  /** Names of the testees, in order. */
  testees: string[];
  /** How each of them is started: who does not start in one way may still in another. */
  ways: string[];
  cases: KitCase<Arena>[];
  /** Starts the place; the group's cases share it. */
  open(): Promise<Arena>;
  /** Why there is nothing to run: an empty cell of the matrix. */
  empty?: string;
}

/** What time goes into beside the cases: builds, starts of testees and places, and their ends. */
export type Spending = "builds" | "starts" | "ends";

/** What a runner tells while it works. */
export interface Watcher {
  spent(on: Spending, seconds: number): void;
  begin(group: Group): void;
  verdict(verdict: Verdict, group: Group): void;
  /** What a testee said of itself. */
  hello(name: string, hello: Hello): void;
  /** Why nothing is run after all, as the testees themselves say. */
  empty(why: string): void;
}

/** Runs groups one after the other, and starts nobody again who has not started. */
export class Runner {
  readonly #watcher: Watcher;
  readonly #stopped: () => boolean;
  /** Ways in which a testee does not start. */
  readonly #unstarted = new Set<string>();

  /** Stops between two cases where `stopped` says so. */
  constructor(watcher: Watcher, stopped: () => boolean = () => false) {
    this.#watcher = watcher;
    this.#stopped = stopped;
  }

  /** Runs a group. */
  async run(group: Group): Promise<void> {
    const { cases, empty, ways } = group;
    this.#watcher.begin(group);
    if (empty !== undefined || cases.length === 0) return;
    if (ways.some((way) => this.#unstarted.has(way))) return this.#skip(cases, group);
    const begun = performance.now();
    const arena = await group.open();
    try {
      await arena.begin?.();
      const first = await look(group, arena);
      this.#watcher.spent("starts", secondsSince(begun));
      if (typeof first === "string") return this.#watcher.empty(first);
      await this.#play(group, arena, first);
    } finally {
      const ending = performance.now();
      await arena.close();
      this.#watcher.spent("ends", secondsSince(ending));
    }
  }

  /** Plays the cases; the verdict of the first may be there already. */
  async #play(group: Group, arena: Arena, known: Result | undefined): Promise<void> {
    const { cases } = group;
    let first = known;
    for (const [index, entry] of cases.entries()) {
      if (this.#stopped()) return;
      const begun = performance.now();
      const result = first ?? await play(entry, group, arena, this.#watcher);
      first = undefined;
      this.#tell(entry, group, result, secondsSince(begun));
      if (!result.unstarted) continue;
      this.#unstarted.add(group.ways[result.by ?? 0]!);
      return this.#skip(cases.slice(index + 1), group);
    }
  }

  /** The cases of a testee that does not start: that was said once, where it was found. */
  #skip(cases: KitCase<Arena>[], group: Group): void {
    const by = group.ways.findIndex((way) => this.#unstarted.has(way));
    for (const entry of cases) {
      this.#tell(entry, group, { status: "not_run", why: ["does not start"], by }, 0);
    }
  }

  #tell(entry: KitCase<Arena>, group: Group, result: Result, seconds: number): void {
    const { id, about, clauses } = entry;
    const { level, carrier, testees } = group;
    this.#watcher.verdict(
      { id, about, clauses, level, carrier, testees, seconds, ...result },
      group,
    );
  }
}

/**
 * Starts the testees. Says why one of them need not run a single case here, by what it says of
 * itself; or, as the verdict of the first case, that it does not start.
 */
async function look(
  { level, kind, testees }: Group,
  arena: Arena,
): Promise<string | Result | undefined> {
  if (arena.play !== undefined) return undefined; // the program there says it case by case
  const levels: Level[] = level === "stress" ? ["live"] : [level];
  if (level === "mailbox" && testees.length > 1) levels.push("live");
  // Of a crowd, a case leaves out the readers that do not offer it.
  const needed = testees.length > 2 ? testees.slice(0, 1) : testees;
  for (const [index, name] of needed.entries()) {
    try {
      const { hello } = await arena.connect(index);
      const missing = levels.find((each) => !hello.levels.includes(each));
      if (missing !== undefined) return `${name} does not offer the level ${missing}`;
      if (!hello.carriers.includes(kind)) return `${name} has no carrier ${kind}`;
    } catch (error) {
      return unstarted(error, index);
    }
  }
  return undefined;
}

/** The verdict of whoever does not start. */
function unstarted(error: unknown, by: number): Result {
  const { status, why } = resultOf(error, []);
  return { status, why: why.map((fact) => `does not start: ${fact}`), by, unstarted: true };
}

function secondsSince(begun: number): number {
  return (performance.now() - begun) / 1000;
}

/** Has it judged there, where the arena is one in another program. */
async function play(
  entry: KitCase<Arena>,
  { level, testees }: Group,
  arena: Arena,
  watcher: Watcher,
): Promise<Result> {
  if (arena.play === undefined) return await judge(entry, testees, arena, watcher);
  try {
    const { result, hellos } = await arena.play(entry, level);
    for (const [index, hello] of hellos.entries()) watcher.hello(testees[index]!, hello);
    return result;
  } catch (error) {
    await arena.kill(0);
    return resultOf(error, entry.clauses);
  }
}

/** How often a case that goes by moments is played again before a failure of it is passed over. */
const REPLAYS = 2;

/**
 * Runs a case, and makes a verdict of whatever ends it.
 *
 * The moment that a case waits for can be the machine's: a thread that stood still, of the kit or
 * of the testee, looks like one that slept over a ring. So who fails such a case plays it again,
 * and has failed if it does so a second time; else the case has not shown anything.
 */
export async function judge(
  entry: KitCase<Arena>,
  testees: readonly string[],
  arena: Arena,
  watcher: Pick<Watcher, "hello">,
): Promise<Result> {
  const first = await judgeOnce(entry, testees, arena, watcher);
  if (entry.isTimed === undefined || !hasFailed(first)) return first;
  for (let replay = 0; replay < REPLAYS; replay++) {
    const again = await judgeOnce(entry, testees, arena, watcher);
    if (hasFailed(again)) return again;
  }
  const why = `failed once and not again in ${REPLAYS} more plays: ${first.why.join("; ")}`;
  return { status: "unshown", why: [why] };
}

/** Whether it ended otherwise than it must. */
function hasFailed({ status, unstarted }: Result): boolean {
  return status === "fail" || status === "timeout" && unstarted === undefined;
}

async function judgeOnce(
  entry: KitCase<Arena>,
  testees: readonly string[],
  arena: Arena,
  watcher: Pick<Watcher, "hello">,
): Promise<Result> {
  const hellos: Hello[] = [];
  for (const [index, name] of testees.entries()) {
    try {
      const { hello } = await arena.connect(index);
      hellos.push(hello);
      watcher.hello(name, hello);
    } catch (error) {
      return unstarted(error, index);
    }
  }
  for (const [by, hello] of hellos.entries()) {
    const why = entry.declinedBy(hello, by);
    if (why !== undefined) return { status: "declined", why: [why], by };
  }
  try {
    return await entry.run(arena);
  } catch (error) {
    // Whoever has broken down, or what it was doing, must not reach into the next case.
    if (error instanceof Trouble) { for (const index of testees.keys()) await arena.kill(index); }
    return resultOf(error, entry.clauses);
  }
}
