/**
 * Counts, times and weighs what a play does, with as little in its loop as possible.
 *
 * The clock is read once a lap. A lap is as many turns as take well longer than the clock's
 * resolution and its cost, so that a round trip of 300 ns can be told from one of 310; a turn that
 * takes longer than that is a lap of its own, and the percentiles are then those of single turns.
 *
 * @module
 */
import { build, type JsHistogram } from "hdr-histogram-js";
import type { Histogram, Scenario } from "../contract.ts";
import { collectGarbage, type Place } from "./place.ts";

const LAP_MS = 0.02;
const RESOLUTIONS = 20;
const LAPS_MAX = 1 << 18;
const TURNS_MAX = 1 << 16;
/**
 * Of a lap in which allocations are counted: reading the clock makes numbers, which took 90 bytes a
 * lap where the engine had not compiled this yet, 1.4 for each message in laps of 64.
 */
const MEMORY_TURNS = 4_096;

/** What is told of each turn of a run. */
export interface Turns {
  /** To be called after each turn. False: it is enough. */
  turn(): boolean;
}

/** Times the turns of one run. */
export class Meter implements Turns {
  /** Turns that were measured. */
  count = 0;
  elapsedMs = 0;
  /** Turns of a lap. */
  turns = 1;
  readonly #lapMs: number;
  readonly #adapts: boolean = true;
  readonly #limit: number;
  readonly #duration: number;
  readonly #onStart: () => void;
  readonly #samples: Float64Array;
  #laps = 0;
  #inLap = 0;
  #lapStart = 0;
  #start = 0;
  #measures = false;
  #warmUntil: number;

  /** Begins to warm up at once. `onStart` is called when the measuring begins. */
  constructor(scenario: Scenario, onStart: () => void = () => {}, single = false) {
    this.#limit = scenario.count ?? Infinity;
    this.#duration = scenario.duration_ms;
    this.#onStart = onStart;
    // A run by count has as many laps as it likes, but not more than turns.
    this.#lapMs = single ? 0 : Math.max(LAP_MS, RESOLUTIONS * clockResolution());
    if (scenario.name === "memory") {
      this.turns = MEMORY_TURNS;
      this.#adapts = false;
    }
    this.#samples = new Float64Array(LAPS_MAX);
    this.#lapStart = performance.now();
    this.#warmUntil = this.#lapStart + scenario.warmup_ms;
  }

  /** To be called after each turn. False: it is enough. */
  turn(): boolean {
    if (++this.#inLap < this.turns) return true;
    return this.#lap();
  }

  /** The turns, by how long they took. */
  histogram(): Histogram {
    return histogramOf(this.#samples.subarray(0, Math.min(this.#laps, LAPS_MAX)));
  }

  #lap(): boolean {
    const now = performance.now();
    const ms = now - this.#lapStart;
    if (!this.#measures) return this.#warm(now, ms);
    this.#samples[this.#laps++ % LAPS_MAX] = ms / this.turns;
    this.count += this.turns;
    this.#inLap = 0;
    this.#lapStart = now;
    if (
      this.count < this.#limit && (this.#limit < Infinity || now - this.#start < this.#duration)
    ) {
      return true;
    }
    this.elapsedMs = now - this.#start;
    return false;
  }

  #warm(now: number, ms: number): boolean {
    if (this.#adapts) {
      if (ms < this.#lapMs && this.turns < TURNS_MAX) this.turns *= 2;
      else if (ms > 4 * this.#lapMs && this.turns > 1) this.turns /= 2;
    }
    this.#inLap = 0;
    if (now >= this.#warmUntil) {
      this.#measures = true;
      this.#onStart();
      this.#start = now = performance.now();
    }
    this.#lapStart = now;
    return true;
  }
}

/** A histogram of milliseconds, in nanoseconds with three digits. */
export function histogramOf(milliseconds: Iterable<number>): Histogram {
  const histogram = build({ numberOfSignificantValueDigits: 3 }) as JsHistogram;
  histogram.autoResize = true;
  for (const ms of milliseconds) histogram.recordValue(Math.max(0, Math.round(ms * 1e6)));
  const values: number[] = [];
  const counts: number[] = [];
  for (let index = 0; index < histogram.countsArrayLength; index++) {
    const count = histogram.getCountAtIndex(index);
    if (count === 0) continue;
    values.push(histogram.medianEquivalentValue(histogram.valueFromIndex(index)));
    counts.push(count);
  }
  return { unit: "ns", values, counts };
}

/** The smallest step of this thread's clock, in milliseconds. */
function clockResolution(): number {
  let smallest = Infinity;
  for (let round = 0; round < 5; round++) {
    const start = performance.now();
    let now = start;
    while (now === start) now = performance.now();
    smallest = Math.min(smallest, now - start);
  }
  return smallest;
}

const LOOK_EVERY = 5_000;

/** The heap of one thread. */
export class HeapMeter {
  readonly #place: Place;
  #allocated = 0;
  #turns = 0;
  #before = 0;

  readonly #counts: () => boolean;

  /** Counts nothing while `counts` returns false. */
  constructor(place: Place, counts: () => boolean) {
    this.#place = place;
    this.#counts = counts;
    this.begin();
  }

  /** Forgets what was counted. */
  begin(): void {
    collectGarbage();
    this.#allocated = 0;
    this.#before = this.#place.heapUsed() ?? 0;
  }

  /** To be called after each message. */
  turn(): void {
    if (++this.#turns % LOOK_EVERY === 0) this.#look();
  }

  /** Bytes since the beginning. */
  get allocated(): number {
    this.#look();
    return this.#allocated;
  }

  #look(): void {
    const now = this.#place.heapUsed() ?? 0;
    if (this.#counts()) this.#allocated += Math.max(0, now - this.#before);
    this.#before = now;
  }
}
