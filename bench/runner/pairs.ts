/**
 * Ratios of repetitions that belong together.
 *
 * A virtual machine may move its processors: for a while a cache line takes 0.1 us there and back,
 * then 0.5 us, each for between a twentieth of a second and half a minute. A ratio of two medians
 * may therefore be one of two states of the machine. So each repetition has its own ratio: to the
 * ping-pong of words just before and just behind it, or to the repetition of the other peer that is
 * nearest in time among those of the same state. What counts is their median.
 *
 * @module
 */
import { medianOf, type Ratio, type Repetition, round, type Row, slower } from "./results.ts";
import type { Figure, Task } from "./scenarios.ts";

/** The floors that are a ping-pong of words, which the drivers also measure around each run. */
const PING_PEERS: readonly string[] = ["floor-atomics-spin", "floor-cacheline"];

/** Two ping-pongs are of one state if none takes so many times as long as the other. */
const SAME_MAX = 1.5;

/** What takes so many times as long as a ping-pong hardly depends on it. */
const SLOW = 20;

/**
 * How many times slower one peer is than another, repetition by repetition; `undefined` where one
 * of them has measured nothing.
 */
export function ratioOf(figure: Figure, own: Row, other: Row): Ratio | undefined {
  if (figure === "round-trip" && PING_PEERS.includes(other.peer)) {
    const found = ratioToPing(own);
    if (found !== undefined) return found;
  }
  const steady = own.repetitions.flatMap((one) => {
    const others = other.repetitions.filter((each) => belongTogether(figure, one, each));
    return ratiosToNearest(figure, one, others);
  });
  if (steady.length > 0) return spreadOf(steady, true);
  const all = own.repetitions.flatMap((one) => ratiosToNearest(figure, one, other.repetitions));
  return all.length === 0 ? undefined : spreadOf(all, false);
}

/** The other way round: how many times faster instead of slower. */
export function inverse({ median, min, max, ...rest }: Ratio): Ratio {
  return { ...rest, median: round(1 / median), min: round(1 / max), max: round(1 / min) };
}

/** Adds the ratios to the floor and to the rival that were measured in the same place. */
export function withRatios(tasks: readonly Task[], rows: readonly Row[]): Row[] {
  return rows.map((row) => {
    const task = tasks.find(({ id }) => id === row.scenario);
    if (task === undefined || row.median === undefined) return row;
    const find = (peer: string | undefined) =>
      rows.find((other) =>
        other.peer === peer && other.scenario === row.scenario && other.place === row.place
      );
    const [floor, rival] = [find(task.floor), find(task.rival)];
    const over = floor && ratioOf(task.figure, row, floor);
    const times = rival && ratioOf(task.figure, row, rival);
    return {
      ...row,
      ...over === undefined ? {} : { over_floor: over },
      ...times === undefined ? {} : { times_rival: inverse(times) },
    };
  });
}

function ratioToPing({ repetitions }: Row): Ratio | undefined {
  const chosen = repetitions.filter((each) =>
    each.figure > 0 && each.ping_ns !== undefined && isSteady(each)
  );
  if (chosen.length === 0) return undefined;
  return spreadOf(chosen.map((each) => each.figure / pingOf(each)!), true);
}

/** None, where there is no other one, or nothing to divide by. */
function ratiosToNearest(
  figure: Figure,
  one: Repetition,
  others: readonly Repetition[],
): number[] {
  const distance = ({ at_ms }: Repetition) => Math.abs(at_ms - one.at_ms);
  const [nearest] = others.toSorted((a, b) => distance(a) - distance(b));
  if (nearest === undefined) return [];
  // A moment in Chromium, and a parked end, may have the figure 0.
  if (!(one.figure > 0 && nearest.figure > 0)) return [];
  return [slower(figure, one.figure, nearest.figure)];
}

function spreadOf(ratios: readonly number[], steady: boolean): Ratio {
  return {
    median: round(medianOf(ratios)),
    min: round(Math.min(...ratios)),
    max: round(Math.max(...ratios)),
    pairs: ratios.length,
    steady,
  };
}

function pingOf({ ping_ns }: Repetition): number | undefined {
  return ping_ns === undefined ? undefined : (ping_ns[0] + ping_ns[1]) / 2;
}

/** Whether the machine was the same before a repetition as behind it, as far as that is known. */
function isSteady({ ping_ns }: Repetition): boolean {
  return ping_ns === undefined || isSame(...ping_ns);
}

/** Whether two figures are of one state of the machine, or one of them does not depend on it. */
function belongTogether(figure: Figure, a: Repetition, b: Repetition): boolean {
  if (!depends(figure, a) || !depends(figure, b)) return true;
  return isSteady(a) && isSteady(b) && areAlike(a, b);
}

function depends(figure: Figure, { figure: value, ping_ns }: Repetition): boolean {
  if (ping_ns === undefined || figure !== "round-trip" && figure !== "rate") return false;
  const ns = figure === "rate" ? 1e9 / value : value;
  return ns < SLOW * Math.max(...ping_ns);
}

function areAlike(a: Repetition, b: Repetition): boolean {
  const [ping, other] = [pingOf(a), pingOf(b)];
  return ping === undefined || other === undefined || isSame(ping, other);
}

function isSame(a: number, b: number): boolean {
  return Math.max(a, b) <= SAME_MAX * Math.min(a, b);
}
