/**
 * What a run of the benchmarks leaves behind, and the figures in it.
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
  /** The ping-pong of words before it and behind it. */
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
