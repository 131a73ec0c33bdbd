/**
 * What a run of the benchmarks leaves behind, and the figures in it. A host may move its
 * processors, so ratios are of repetitions that belong together: README.md says which.
 *
 * @module
 */
import { build, type JsHistogram } from "hdr-histogram-js";
import type { Histogram, Result } from "../contract.ts";
import type { Machine } from "./machine.ts";
import type { Figure, PlaceName, Task } from "./scenarios.ts";

/** The version of the file's form. */
export const RESULTS_VERSION = 2;

/** Percentiles in nanoseconds. */
export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** One repetition. */
export interface Repetition {
  readonly count: number;
  readonly elapsed_ns: number;
  /** What the scenario is measured by, in the unit of its figure. */
  readonly figure: number;
  /** When it was over, in milliseconds since the run began. */
  readonly at_ms: number;
  /** The ping-pong of words before it and after it. */
  readonly ping_ns?: readonly [number, number];
  readonly sleeps?: number;
}

/** A ratio that was measured once for each repetition. */
export interface Ratio {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly pairs: number;
  /** Whether the pairs are of one state of the machine. */
  readonly steady: boolean;
}

/** A result, and when it came. */
export type Played = Result & Pick<Repetition, "at_ms">;

/** What came of one peer in one scenario and place. */
export interface Row {
  readonly scenario: string;
  readonly place: PlaceName;
  readonly driver: string;
  readonly peer: string;
  readonly repetitions: readonly Repetition[];
  /** The median of the repetitions, their smallest and their largest. */
  readonly median?: number;
  readonly min?: number;
  readonly max?: number;
  /** How many times slower than the floor, and faster than the rival, in this run. */
  readonly over_floor?: Ratio;
  readonly times_rival?: Ratio;
  /** Sleeps for each round trip or message. */
  readonly sleeps?: number;
  /** Of all repetitions together. */
  readonly latency?: Percentiles;
  readonly waiting?: Percentiles;
  readonly service?: Percentiles;
  readonly notes?: readonly string[];
  /** Why there is nothing: it cannot, or it failed. */
  readonly declined?: string;
  readonly failed?: string;
}

/** What the tables and the report need of a scenario. */
export interface ScenarioInfo {
  readonly id: string;
  readonly title: string;
  readonly figure: Figure;
  readonly size: number;
  readonly floor?: string;
  readonly rival?: string;
  /** Of a part of a scenario: which one, and of which. */
  readonly part?: string;
  readonly group?: string;
}

/** A whole run. */
export interface Results {
  readonly version: number;
  readonly started: string;
  readonly effort: string;
  readonly machine: Machine;
  readonly drivers: readonly { name: string; place: string; version: string }[];
  readonly complete: boolean;
  readonly seconds: number;
  /** Of these, before anything was measured. Not in older files. */
  readonly building_seconds?: number;
  readonly scenarios: readonly ScenarioInfo[];
  readonly rows: readonly Row[];
}

/** Whether this repository answers for a peer; all others are rivals. */
export function isOurs(peer: string): boolean {
  return peer.startsWith("millrace") || peer.startsWith("floor-");
}

/** Whether more is better. */
export function risesWith(figure: Figure): boolean {
  return figure === "rate";
}

/** The figure of one result, in its unit: ns, messages per second, per cent, or bytes. */
export function figureOf({ figure }: Pick<Task, "figure">, result: Result): number {
  const { count, elapsed_ns } = result;
  if (count === 0) return NaN;
  switch (figure) {
    case "round-trip":
      return result.latency === undefined
        ? elapsed_ns / count
        : percentilesOf([result.latency]).p50;
    case "time":
      return elapsed_ns / count;
    case "rate":
      return count / (elapsed_ns / 1e9);
    case "waiting":
      return result.waiting === undefined ? NaN : percentilesOf([result.waiting]).p99;
    case "processor":
      return 100 * (result.cpu_ms ?? NaN) / (elapsed_ns / 1e6);
    case "size":
      return result.bytes ?? NaN;
    case "allocation":
      return (result.bytes_allocated ?? NaN) / count;
  }
}

/** The percentiles of several histograms together. */
export function percentilesOf(histograms: readonly Histogram[]): Percentiles {
  const all = build({ numberOfSignificantValueDigits: 3 }) as JsHistogram;
  all.autoResize = true;
  for (const { values, counts } of histograms) {
    for (const [index, value] of values.entries()) {
      all.recordValueWithCount(value, counts[index] as number);
    }
  }
  const at = (percentile: number) => all.getValueAtPercentile(percentile);
  return { p50: at(50), p90: at(90), p99: at(99), p999: at(99.9), max: all.maxValue };
}

/** The median of numbers; `NaN` of none. */
export function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle] as number;
  return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/** What of a result is of this task: all, or that of a part; `undefined` if the peer has none. */
export function partOf(
  { part }: Pick<Task, "part">,
  { parts, ...rest }: Played,
): Played | undefined {
  if (part === undefined) return rest;
  const own = parts?.[part.name];
  return own && { ...own, at_ms: rest.at_ms };
}

/** Puts the repetitions of one peer together. */
export function rowOf(
  task: Task,
  head: Pick<Row, "place" | "driver" | "peer">,
  results: readonly Played[],
): Row {
  // One that was too slow to get anywhere has measured nothing.
  const useful = results.filter((result) => Number.isFinite(figureOf(task, result)));
  if (useful.length === 0) {
    const why = results.flatMap(({ notes = [] }) => notes).join(", ");
    return { scenario: task.id, ...head, repetitions: [], failed: `measured nothing: ${why}` };
  }
  const repetitions = useful.map((result): Repetition => ({
    count: result.count,
    elapsed_ns: result.elapsed_ns,
    figure: round(figureOf(task, result)),
    at_ms: Math.round(result.at_ms),
    ...result.ping_ns === undefined ? {} : { ping_ns: result.ping_ns },
    ...result.sleeps === undefined ? {} : { sleeps: result.sleeps },
  }));
  const figures = repetitions.map(({ figure }) => figure);
  const counts = repetitions.reduce((sum, { count }) => sum + count, 0);
  const sleeps = repetitions.every(({ sleeps }) => sleeps !== undefined)
    ? repetitions.reduce((sum, { sleeps = 0 }) => sum + sleeps, 0)
    : undefined;
  const notes = [...new Set(results.flatMap(({ notes = [] }) => notes))];
  return {
    scenario: task.id,
    ...head,
    repetitions,
    median: round(medianOf(figures)),
    min: Math.min(...figures),
    max: Math.max(...figures),
    ...sleeps === undefined || counts === 0 ? {} : { sleeps: round(sleeps / counts) },
    ...together("latency", results),
    ...together("waiting", results),
    ...together("service", results),
    ...notes.length === 0 ? {} : { notes },
  };
}

/** How many times slower `a` is than `b`. */
export function slower(figure: Figure, a: number, b: number): number {
  return risesWith(figure) ? b / a : a / b;
}

/** Four digits are more than any of it is worth. */
export function round(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(4)) : value;
}

function together(
  name: "latency" | "waiting" | "service",
  results: readonly Result[],
): Partial<Row> {
  const histograms = results.flatMap((result) => result[name] ?? []);
  return histograms.length === 0 ? {} : { [name]: percentilesOf(histograms) };
}

/** Above these, a run is worth little. */
const BUSY_MAX = 10;
const STEAL_MAX = 2;

/** What makes the figures of a run doubtful, one line each. */
export function machineWarnings({ busy_percent, steal_percent, processors }: Machine): string[] {
  const warnings: string[] = [];
  if (busy_percent > BUSY_MAX) {
    warnings.push(`other programs used ${busy_percent} % of the processors before the run`);
  }
  if (steal_percent > STEAL_MAX) {
    warnings.push(`the host took away ${steal_percent} % of the processors during the run`);
  }
  if (processors < 2) warnings.push("there is one processor: nothing can spin");
  return warnings;
}

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

/** Whether the machine was the same before a repetition as after it, as far as that is known. */
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
