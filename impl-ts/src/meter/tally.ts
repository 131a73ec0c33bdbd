/**
 * Counts how often each time was seen, in a few nanoseconds, and exports the counts as a histogram
 * of the library hdr-histogram-js. See `spec/meter.md`.
 *
 * @module
 */

import { build, encodeIntoCompressedBase64, type JsHistogram } from "hdr-histogram-js";

/**
 * The significant digits that are kept. The buckets are those of the library's histograms with as
 * many digits. Three digits would need ten times as many counts, more than fit the nearest cache.
 */
const DIGITS = 2;
/** Each time below this has its own bucket; above, each power of two has half as many buckets. */
const EXACT = 256;
const HALF_BITS = 7;
/** 32 minus the number of bits of the times that have their own bucket. */
const EXACT_ZEROS = 24;
/** The longest time, in units; longer times count as this one. */
const LONGEST = 0x7fffffff;
const BUCKET_COUNT = ((EXACT_ZEROS - 1) << HALF_BITS) + EXACT;
/** The upper bounds in microseconds of a distribution's buckets: 1, 2, 5, 10 and so on. */
export const BOUNDS: readonly number[] = /* @__PURE__ */ boundsUpTo(10_000_000);

/**
 * A distribution of times, in microseconds. All its numbers are 0 if no time was recorded.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type Distribution, meter } from "@millrace/millrace/meter";
 *
 * using here = Port.create<string>();
 * using there = Port.attach<string>(here.memory); // usually in another thread
 * using _writing = meter(here);
 * using reading = meter(there);
 * here.write("hello");
 * there.read();
 * const { count, p50, most }: Distribution = reading.snapshot().incoming!.waiting;
 * console.log(count, p50 <= most); // 1 true
 * ```
 */
export interface Distribution {
  /** The number of times recorded. */
  readonly count: number;
  /** The arithmetic mean. */
  readonly mean: number;
  /** The shortest time. */
  readonly least: number;
  /** The longest time. */
  readonly most: number;
  /** Half of the times were this long or shorter, to two digits. */
  readonly p50: number;
  /** 90 % of the times were this long or shorter. */
  readonly p90: number;
  /** 99 % of the times were this long or shorter. */
  readonly p99: number;
  /** 99.9 % of the times were this long or shorter. */
  readonly p999: number;
  /** How many were this long or shorter: `[microseconds, count]`, from 1 µs to 10 s. */
  readonly buckets: readonly (readonly [most: number, count: number])[];
}

/** Counts times. */
export class Tally {
  count = 0;
  readonly #counts = new Uint32Array(BUCKET_COUNT);
  /** Units in a microsecond. */
  readonly #scale: number;
  #sum = 0;
  #least = LONGEST;
  #most = 0;

  /** Makes a tally whose resolution is `scale` units in a microsecond. */
  constructor(scale: number) {
    this.#scale = scale;
  }

  /** Counts a time in microseconds, `count` times. */
  record(time: number, count: number): void {
    const scaled = time * this.#scale;
    const units = scaled < LONGEST ? scaled | 0 : LONGEST;
    // The library takes ten times as long for this (measured: Deno 2.9).
    const shift = units < EXACT ? 0 : EXACT_ZEROS - Math.clz32(units);
    this.#counts[(shift << HALF_BITS) + (units >> shift)]! += count;
    this.count += count;
    this.#sum += units * count;
    if (units < this.#least) this.#least = units;
    if (units > this.#most) this.#most = units;
  }

  /** Forgets all times. */
  clear(): void {
    this.#counts.fill(0);
    this.count = this.#sum = this.#most = 0;
    this.#least = LONGEST;
  }

  /** Encodes all times, in nanoseconds, as a text that all HdrHistogram libraries read. */
  encode(): string {
    return encodeIntoCompressedBase64(this.#histogram());
  }

  /** Copies the counts into a histogram of the library, in nanoseconds. */
  #histogram(): JsHistogram {
    const histogram = build({ numberOfSignificantValueDigits: DIGITS }) as JsHistogram;
    histogram.autoResize = true;
    const nanoseconds = 1000 / this.#scale;
    this.#each((units, count) => histogram.recordValueWithCount(units * nanoseconds, count));
    return histogram;
  }

  /** The distribution of the times so far. */
  distribution(): Distribution {
    const { count } = this;
    const histogram = this.#histogram();
    const at = (percent: number) =>
      Math.min(histogram.getValueAtPercentile(percent) / 1000, this.#most / this.#scale);
    const buckets = BOUNDS.map((most): [number, number] => [most, 0]);
    let index = 0;
    this.#each((units, more) => {
      while (index < buckets.length && units > buckets[index]![0] * this.#scale) index++;
      if (index < buckets.length) buckets[index]![1] += more;
    });
    let sum = 0;
    for (const bucket of buckets) bucket[1] = sum += bucket[1];
    return {
      count,
      mean: count === 0 ? 0 : this.#sum / count / this.#scale,
      least: count === 0 ? 0 : this.#least / this.#scale,
      most: this.#most / this.#scale,
      p50: at(50),
      p90: at(90),
      p99: at(99),
      p999: at(99.9),
      buckets,
    };
  }

  /** Calls `tell` for each bucket that is not empty, with the lower bound of its times. */
  #each(tell: (units: number, count: number) => void): void {
    const counts = this.#counts;
    for (let index = 0; index < counts.length; index++) {
      const count = counts[index]!;
      if (count === 0) continue;
      const shift = index < EXACT ? 0 : (index >> HALF_BITS) - 1;
      tell((index - (shift << HALF_BITS)) * 2 ** shift, count);
    }
  }
}

function boundsUpTo(most: number): number[] {
  const bounds: number[] = [];
  for (let power = 1; power <= most; power *= 10) {
    bounds.push(...[1, 2, 5].map((digit) => digit * power).filter((bound) => bound <= most));
  }
  return bounds;
}
