/**
 * What is sent: bytes or JSON of a size, with a number in it that the other end checks.
 *
 * Of bytes, the number stands in the first byte of every 64: so the sender makes, and the receiver
 * touches, every cache line of the payload, whatever brings it there, and neither does more.
 *
 * @module
 */
import type { Scenario } from "../contract.ts";

const LINE = 64;
const ID = 1_234_000;
/** The code of the letter that stands for 0. */
const LETTER_0 = 97;

/** A message as programs send them; of 118 bytes without `path`, which fills it up. */
export interface Move {
  id: number;
  kind: string;
  from: { x: number; y: number };
  to: { x: number; y: number };
  name: string;
  ok: boolean;
  path?: { x: number; y: number }[];
}

/** Writes the number into bytes. */
export function stamp(area: Uint8Array, offset: number, size: number, number: number): void {
  const end = offset + size;
  for (let at = offset; at < end; at += LINE) area[at] = number;
}

/** Reads the number of bytes; throws unless every line has it. */
export function readStamp(area: Uint8Array, offset: number, size: number): number {
  const number = area[offset] as number;
  const end = offset + size;
  let difference = 0;
  for (let at = offset + LINE; at < end; at += LINE) difference |= (area[at] as number) ^ number;
  if (difference !== 0) throw new Error("A message has the parts of another");
  return number;
}

/** The object of a size in JSON: points, as many as there is room for, then a longer name. */
export function makeMove(size: number): Move {
  const move: Move = {
    id: ID,
    kind: "move",
    from: { x: 12.25, y: -7.5 },
    to: { x: 14.75, y: 3.125 },
    name: "a millrace whee",
    ok: true,
  };
  const sizeOf = () => JSON.stringify(move).length;
  if (size > sizeOf()) {
    move.path = [];
    while (true) {
      move.path.push({ x: 12.25, y: -7.5 });
      if (sizeOf() <= size) continue;
      move.path.pop();
      break;
    }
    move.name += ".".repeat(size - sizeOf());
  }
  if (sizeOf() !== size) throw new RangeError(`Cannot make JSON of ${size} bytes`);
  return move;
}

/** Puts the number into the object, whose text keeps its length. */
export function number(move: Move, value: number): Move {
  move.id = ID + (value & 255);
  return move;
}

/** Reads the number of an object that came; throws if it is another. */
export function numberOf(move: unknown): number {
  const value = (move as Pick<Move, "id">).id - ID;
  if (!(value >= 0 && value < 256)) throw new Error("A message is another than was sent");
  return value;
}

/** A value of either format, for peers that send values: writes and reads the number. */
export interface Values {
  /** The value to send, made anew only where the peer keeps it. */
  with(number: number): unknown;
  numberOf(value: unknown): number;
}

/** An object of a number and a text, whose JSON has so many bytes. */
export function makeRecord(size: number): { id: number; data: string } {
  const record = { id: ID, data: "" };
  const rest = size - JSON.stringify(record).length;
  if (rest < 0) throw new RangeError(`Cannot make JSON of ${size} bytes`);
  record.data = "d".repeat(rest);
  return record;
}

/** A text of so many letters, with the number in the last two. */
function makeText(size: number, value: number): string {
  const letters = [value >> 4, value & 15].map((digit) => String.fromCharCode(LETTER_0 + digit));
  return "t".repeat(size - 2) + letters.join("");
}

function digitAt(text: string, index: number): number {
  return text.charCodeAt(index) - LETTER_0;
}

function sampleValues(payload: string): Values {
  const { value, isWhole } = sampleOf(payload);
  return {
    with(number) {
      value.id = ID + (number & 255);
      return value;
    },
    numberOf(value) {
      if (!isWhole(value as never)) throw new Error("A value is not what was sent");
      return numberOf(value);
    },
  };
}

/** The values of a scenario. */
export function valuesOf({ payload, format, size }: Scenario): Values {
  if (payload.startsWith("data-")) {
    const { data } = makeRecord(size);
    return { with: (value) => ({ id: ID + (value & 255), data }), numberOf };
  }
  if (format === "text") {
    const texts = Array.from({ length: 256 }, (_, value) => makeText(size, value));
    return {
      with: (value) => texts[value & 255],
      numberOf(value) {
        const text = value as string;
        if (text.length !== size) throw new Error(`A text has ${text.length} characters`);
        return 16 * digitAt(text, size - 2) + digitAt(text, size - 1);
      },
    };
  }
  if (payload.startsWith("value-")) return sampleValues(payload);
  if (payload.startsWith("number-")) {
    return { with: (value) => ID + (value & 255), numberOf: (id) => numberOf({ id }) };
  }
  if (format === "json") {
    const move = makeMove(size);
    return { with: (value) => number(move, value), numberOf };
  }
  const bytes = new Uint8Array(size);
  return {
    with(value) {
      stamp(bytes, 0, size, value);
      return bytes;
    },
    numberOf(value) {
      const { length } = value as Uint8Array;
      if (length !== size) throw new Error(`A message has ${length} bytes, and not ${size}`);
      return readStamp(value as Uint8Array, 0, size);
    },
  };
}

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
