/**
 * The values of `values`: a record, a hundred of them, typed arrays, and what JSON cannot carry.
 *
 * @module
 */
import { makeMove, type Move } from "./payload.ts";

const ROWS = 100;

/** One value with a number in `id`, and what the other end looks at to see that it is one. */
export interface Sample {
  readonly value: { id: number };
  /** Whether JSON can carry it. */
  readonly isPlain: boolean;
  isWhole(value: never): boolean;
}

interface Records {
  id: number;
  rows: { index: number; name: string; price: number; tags: string[]; isOpen: boolean }[];
}

interface Arrays {
  id: number;
  points: Float64Array;
  pixels: Uint8Array;
  indices: Uint32Array;
}

interface Rich {
  id: number;
  born: Date;
  seen: Map<string, bigint>;
  groups: Set<string>;
  rates: number[];
}

const SAMPLES: Readonly<Record<string, () => Sample>> = {
  "value-record": () => ({
    value: makeMove(118),
    isPlain: true,
    isWhole: ({ from, to, name }: Move) => from.x === 12.25 && to.y === 3.125 && name.length === 15,
  }),
  "value-records": () => ({
    value: { id: 0, rows: Array.from({ length: ROWS }, (_, index) => makeRow(index)) },
    isPlain: true,
    isWhole: ({ rows }: Records) => rows.length === ROWS && rows.at(-1)!.tags[1] === "b",
  }),
  "value-arrays": () => ({
    value: {
      id: 0,
      points: Float64Array.from({ length: 256 }, (_, index) => index / 8),
      pixels: Uint8Array.from({ length: 1024 }, (_, index) => index),
      indices: Uint32Array.from({ length: 64 }, (_, index) => index * index),
    },
    isPlain: false,
    isWhole: ({ points, pixels, indices }: Arrays) =>
      points instanceof Float64Array && points[255] === 255 / 8 &&
      pixels.length === 1024 && indices[63] === 3969,
  }),
  "value-rich": () => ({
    value: {
      id: 0,
      born: new Date(1_700_000_000_000),
      seen: new Map(Array.from({ length: 16 }, (_, index) => [`user ${index}`, 1n << 60n])),
      groups: new Set(["admin", "editor", "guest"]),
      rates: [1.5, NaN, Infinity, 2],
    },
    isPlain: false,
    isWhole: ({ born, seen, groups, rates }: Rich) =>
      born instanceof Date && seen.get("user 15") === 1n << 60n &&
      groups.has("guest") && Number.isNaN(rates[1]),
  }),
};

/** The value of a payload. */
export function sampleOf(payload: string): Sample {
  const make = SAMPLES[payload];
  if (make === undefined) throw new Error(`Cannot make ${payload}: there is no such value`);
  return make();
}

function makeRow(index: number): Records["rows"][number] {
  const price = index * 1.25;
  return { index, name: `row ${index}`, price, tags: ["a", "b"], isOpen: index % 2 === 0 };
}
