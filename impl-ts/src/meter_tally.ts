/**
 * How often each time was seen: counted in a few nanoseconds, and handed out as a histogram of the
 * library hdr-histogram-js. See `spec/meter.md`.
 *
 * @module
 */

import { build, encodeIntoCompressedBase64, type JsHistogram } from "hdr-histogram-js";

/**
 * Digits that are kept: of those of the library that have as many, the buckets are the same. With
 * three of them, the counts are ten times as many, more than the nearest cache has room for.
 */
const DIGITS = 2;
/** Times below this have a bucket each; above, half as many buckets for each power of two. */
const EXACT = 256;
const HALF_BITS = 7;
/** 32 less the bits of a time that has a bucket of its own. */
const EXACT_ZEROS = 24;
/** The longest time, in units; what is longer counts as that. */
const LONGEST = 0x7fffffff;
const BUCKET_COUNT = ((EXACT_ZEROS - 1) << HALF_BITS) + EXACT;
/** Upper bounds, in microseconds, of the counts of a distribution: 1, 2, 5, 10 and so on. */
export const BOUNDS: readonly number[] = /* @__PURE__ */ boundsUpTo(10_000_000);

/**
 * How times are distributed, in microseconds; all of them are 0 where there are none.
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
  /** How many there were. */
  readonly count: number;
  /** The arithmetic mean. */
  readonly mean: number;
  /** The shortest. */
  readonly least: number;
  /** The longest. */
  readonly most: number;
  /** Half of them took as long as this or less, to two digits. */
  readonly p50: number;
  /** 90 % of them. */
  readonly p90: number;
  /** 99 % of them. */
  readonly p99: number;
  /** 99.9 % of them. */
  readonly p999: number;
  /** How many took as long as this or less: `[microseconds, count]`, from 1 to 10 seconds. */
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

  /** Makes a tally that keeps so many units of a microsecond apart. */
  constructor(scale: number) {
    this.#scale = scale;
  }

  /** Counts a time, in microseconds, so many times. */
  record(time: number, count: number): void {
    const scaled = time * this.#scale;
    const units = scaled < LONGEST ? scaled | 0 : LONGEST;
    // The library takes ten times as long for what is here (measured: Deno 2.9).
    const shift = units < EXACT ? 0 : EXACT_ZEROS - Math.clz32(units);
    this.#counts[(shift << HALF_BITS) + (units >> shift)]! += count;
    this.count += count;
    this.#sum += units * count;
    if (units < this.#least) this.#least = units;
    if (units > this.#most) this.#most = units;
  }

  /** Forgets all of them. */
  clear(): void {
    this.#counts.fill(0);
    this.count = this.#sum = this.#most = 0;
    this.#least = LONGEST;
  }

  /** All of them as a text that the libraries of other languages read, in nanoseconds. */
  encode(): string {
    return encodeIntoCompressedBase64(this.#histogram());
  }

  /** A copy as a histogram of the library, in nanoseconds. */
  #histogram(): JsHistogram {
    const histogram = build({ numberOfSignificantValueDigits: DIGITS }) as JsHistogram;
    histogram.autoResize = true;
    const nanoseconds = 1000 / this.#scale;
    this.#each((units, count) => histogram.recordValueWithCount(units * nanoseconds, count));
    return histogram;
  }

  /** How they are distributed up to now. */
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

  /** Tells of each bucket that is not empty, by the least of its times. */
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
