/**
 * Runs cases one after the other, and gives each its verdict.
 *
 * @module
 */

import type { Arena } from "./arena.ts";
import type { CarrierKind, Hello, Level } from "./protocol.ts";
import { Trouble } from "./trouble.ts";
import { type KitCase, type Result, resultOf, type Verdict } from "./verdict.ts";

/** Cases of one level for one or two testees in one place. */
export interface Group {
  level: Level;
  carrier: string;
  /** What `start` calls the carrier. */
  kind: CarrierKind;
  /** Names of the testees, in order. */
  testees: string[];
  cases: KitCase<Arena>[];
  /** Starts the place; the group's cases share it. */
  open(): Promise<Arena>;
  /** Why there is nothing to run: an empty cell of the matrix. */
  empty?: string;
}

/** What a runner tells while it works. */
export interface Watcher {
  begin(group: Group): void;
  verdict(verdict: Verdict, group: Group): void;
  /** What a testee said of itself. */
  hello(name: string, hello: Hello): void;
  /** Why nothing is run after all, as the testees themselves say. */
  empty(why: string): void;
}

/** Runs a group. Stops between two cases where `stopped` says so. */
export async function runGroup(
  group: Group,
  watcher: Watcher,
  stopped: () => boolean,
): Promise<void> {
  watcher.begin(group);
  if (group.empty !== undefined || group.cases.length === 0) return;
  const arena = await group.open();
  try {
    const why = await whyNothing(group, arena);
    if (why !== undefined) return watcher.empty(why);
    for (const entry of group.cases) {
      if (stopped()) return;
      const begun = performance.now();
      const result = await play(entry, group, arena, watcher);
      const { id, about, clauses } = entry;
      const { level, carrier, testees } = group;
      const seconds = (performance.now() - begun) / 1000;
      watcher.verdict({ id, about, clauses, level, carrier, testees, seconds, ...result }, group);
    }
  } finally {
    await arena.close();
  }
}

/** Why a testee need not run a single case here, by what it says of itself. */
async function whyNothing(
  { level, kind, testees }: Group,
  arena: Arena,
): Promise<string | undefined> {
  if (arena.play !== undefined) return undefined; // the program there says it case by case
  const levels: Level[] = level === "stress" ? ["live"] : [level];
  if (level === "mailbox" && testees.length > 1) levels.push("live");
  for (const [index, name] of testees.entries()) {
    try {
      const { hello } = await arena.connect(index);
      const missing = levels.find((each) => !hello.levels.includes(each));
      if (missing !== undefined) return `${name} does not offer the level ${missing}`;
      if (!hello.carriers.includes(kind)) return `${name} has no carrier ${kind}`;
    } catch (error) {
      if (!(error instanceof Trouble)) throw error; // every case will say it
      return undefined;
    }
  }
  return undefined;
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
    return resultOf(error);
  }
}

/** Runs a case, and makes a verdict of whatever ends it. */
export async function judge(
  entry: KitCase<Arena>,
  testees: readonly string[],
  arena: Arena,
  watcher: Pick<Watcher, "hello">,
): Promise<Result> {
  try {
    const hellos: Hello[] = [];
    for (const [index, name] of testees.entries()) {
      const { hello } = await arena.connect(index);
      hellos.push(hello);
      watcher.hello(name, hello);
    }
    const why = entry.declinedBy(hellos);
    if (why !== undefined) return { status: "declined", why: [why] };
    return await entry.run(arena);
  } catch (error) {
    // Whoever has broken down, or what it was doing, must not reach into the next case.
    if (error instanceof Trouble) { for (const index of testees.keys()) await arena.kill(index); }
    return resultOf(error);
  }
}
