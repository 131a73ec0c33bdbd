/**
 * Has the drivers play the tasks: one session for each place and way to start it, and in a session
 * the repetitions of all peers of a scenario in turn, A B C A B C, so that what slows the machine
 * down for a while slows all of them. A native driver does not tell how far its processors are from
 * one another: the runner asks between all runs.
 *
 * @module
 */
import type { Scenario } from "../contract.ts";
import { type Driver, type DriverKind, makeDriver } from "./drivers.ts";
import { partOf, percentilesOf, type Played, type Row, rowOf } from "./results.ts";
import { partsOf, type PlaceName, type Task } from "./scenarios.ts";

/** What may be left out, and who is told how far it is. */
export interface MeasureOptions {
  readonly kinds: readonly DriverKind[];
  /** Whether a peer is wanted in a scenario. */
  wants(peer: string, task: Task): boolean;
  /**
   * Whether a process that has only declined may play the next peer, fresh as that is to be: where
   * the figures mean nothing. It has loaded the code of who declined.
   */
  readonly sharesDeclined?: boolean;
  /** Whether somebody has asked to stop. */
  stopped(): boolean;
  /** Called when a session begins, with all that it may play. */
  onSession(label: string, runs: number): void;
  /** Called for each run that was played, or will not be. */
  onRun(what: string): void;
  /** Called with the rows of each scenario that is done. */
  onRows(task: Task, place: PlaceName, rows: readonly Row[]): void;
  /** Called with what each driver says of itself. */
  onDriver(driver: { name: string; place: string; version: string }): void;
}

interface Session {
  readonly place: PlaceName;
  readonly pinned: boolean;
  /** The scenario that has a driver of its own, if it does. */
  readonly own: string;
  readonly tasks: Task[];
}

/** One peer of one scenario at work. */
interface Contest {
  readonly peer: string;
  readonly driver: string;
  readonly results: Played[];
  declined?: string;
  failed?: string;
}

/** What is asked between native runs of two that spin. */
const PING: Scenario = {
  name: "echo",
  payload: "bytes-8",
  size: 8,
  format: "bytes",
  ends: "threads",
  wait: "spin",
  pin: "free",
  duration_ms: 10,
  warmup_ms: 2,
};
const PING_PEER = "floor-cacheline";

/**
 * Scenarios with drivers of their own: `memory`, since its engine is to collect garbage seldom; and
 * `idle`, where an engine's late work on what it has played before would count: in Node, 0.15 to
 * 0.3 per cent of a processor, five times what is to be measured.
 */
const OWN = ["memory", "idle"];

/** The tasks by place and by how the driver is started. */
function sessionsOf(tasks: readonly Task[], places: ReadonlySet<PlaceName>): Session[] {
  const sessions: Session[] = [];
  for (const place of ["deno", "node", "chromium", "native"] as const) {
    if (!places.has(place)) continue;
    for (const task of tasks) {
      if (!task.places.includes(place)) continue;
      const pinned = task.scenario.pin === "one-core";
      const own = OWN.includes(task.scenario.name) ? task.scenario.name : "";
      const found = sessions.find((each) =>
        each.place === place && each.pinned === pinned && each.own === own
      );
      if (found === undefined) sessions.push({ place, pinned, own, tasks: [task] });
      else found.tasks.push(task);
    }
  }
  return sessions;
}

/** How many runs the tasks have in all, as far as that is known before the drivers are asked. */
export function countRuns(tasks: readonly Task[], places: ReadonlySet<PlaceName>): number {
  return tasks.reduce(
    (sum, task) => sum + task.places.filter((place) => places.has(place)).length * task.repetitions,
    0,
  );
}

/** Plays all tasks. */
export async function measure(
  tasks: readonly Task[],
  places: ReadonlySet<PlaceName>,
  options: MeasureOptions,
): Promise<void> {
  for (const session of sessionsOf(tasks, places)) {
    if (options.stopped()) return;
    await playSession(session, options);
  }
}

async function playSession(session: Session, options: MeasureOptions): Promise<void> {
  const { place, pinned, own, tasks } = session;
  const kinds = options.kinds.filter((kind) => kind.place === place && kind.missing === undefined);
  const drivers = new Map<string, Driver>();
  const peers: { driver: string; peer: string }[] = [];
  try {
    for (const kind of kinds) {
      const driver = makeDriver(kind, pinned, own === "memory");
      const hello = await driver.hello();
      drivers.set(kind.name, driver);
      options.onDriver({ name: kind.name, place, version: hello.version });
      for (const peer of hello.peers) peers.push({ driver: kind.name, peer });
    }
    const label = `${place}${pinned ? " on one core" : ""}`;
    options.onSession(label, tasks.reduce((sum, task) => sum + task.repetitions, 0));
    for (const task of tasks) {
      if (options.stopped()) return;
      await playTask(task, place, peers, drivers, options);
    }
  } finally {
    await Promise.all([...drivers.values()].map((driver) => driver.stop()));
  }
}

async function playTask(
  task: Task,
  place: PlaceName,
  peers: readonly { driver: string; peer: string }[],
  drivers: ReadonlyMap<string, Driver>,
  options: MeasureOptions,
): Promise<void> {
  const contests: Contest[] = peers
    .filter(({ peer }) => options.wants(peer, task))
    .map((each) => ({ ...each, results: [] }));
  const pinger = pingerOf(task, peers, drivers);
  let id = 0;
  for (let repetition = 0; repetition < task.repetitions; repetition++) {
    let before = await ping(pinger);
    for (const contest of contests) {
      if (options.stopped()) break;
      if (contest.declined !== undefined || contest.failed !== undefined) continue;
      const request = { id: id++, peer: contest.peer, scenario: task.scenario, repetition };
      const driver = drivers.get(contest.driver)!;
      const answer = await driver.ask(request);
      const isSpoilt = !("decline" in answer && options.sharesDeclined);
      if (task.scenario.fresh && isSpoilt) await driver.stop();
      if ("result" in answer) {
        const at_ms = performance.now();
        const after = await ping(pinger);
        const beside = before === undefined || after === undefined
          ? {}
          : { ping_ns: [before, after] as const };
        contest.results.push({ ...beside, ...answer.result, at_ms });
        before = after;
      } else if ("decline" in answer) contest.declined = answer.decline;
      else contest.failed = answer.error;
    }
    options.onRun(`${place} ${task.id}`);
  }
  const rows = partsOf(task).flatMap((part) =>
    contests.flatMap((contest) => rowsOf(part, place, contest))
  );
  options.onRows(task, place, rows);
}

/** The row of a peer, if there is anything to say. */
function rowsOf(task: Task, place: PlaceName, contest: Contest): Row[] {
  const { peer, driver, declined, failed } = contest;
  const head = { place, driver, peer };
  const empty = { scenario: task.id, ...head, repetitions: [] };
  if (declined !== undefined) return [{ ...empty, declined }];
  if (failed !== undefined) return [{ ...empty, failed }];
  const results = contest.results.flatMap((result) => partOf(task, result) ?? []);
  return results.length === 0 ? [] : [rowOf(task, head, results)];
}

/** Who tells how far the processors are from one another, where the driver of the run does not. */
function pingerOf(
  { scenario: { wait, pin } }: Task,
  peers: readonly { driver: string; peer: string }[],
  drivers: ReadonlyMap<string, Driver>,
): Driver | undefined {
  if (wait !== "spin" || pin !== "free") return undefined;
  const found = peers.find(({ peer }) => peer === PING_PEER);
  return found === undefined ? undefined : drivers.get(found.driver);
}

async function ping(driver: Driver | undefined): Promise<number | undefined> {
  const answer = await driver?.ask({ id: -1, peer: PING_PEER, scenario: PING, repetition: 0 });
  if (answer === undefined || !("result" in answer)) return undefined;
  const { latency } = answer.result;
  return latency === undefined ? undefined : percentilesOf([latency]).p50;
}
