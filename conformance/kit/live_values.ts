/**
 * Live runs of codec `cbor`: one testee writes values, by its own encoder where it has one, between
 * messages of other codecs, and another hands them out, encoded anew or as they came. What arrives
 * must mean what was to be written.
 *
 * @module
 */

import { compare, type Problem } from "../static/difference.ts";
import { answerOf, RemoteSession } from "../static/remote.ts";
import { message, text, utf8 } from "../reference/builder.ts";
import { fromHex, toHex } from "../reference/bytes.ts";
import type { Item, MessageCase } from "../reference/case.ts";
import { buildSegment } from "../reference/encode.ts";
import { limitOf, valueOf } from "../reference/layout.ts";
import { RICH, SHARED } from "./cbor_values.ts";
import type { Arena, Field } from "./arena.ts";
import type { Hello, Opening } from "./protocol.ts";
import { lacksNoun, lacksRole } from "./static_level.ts";
import { together } from "./together.ts";
import { failed, type KitCase, PASS, Wrong } from "./verdict.ts";

/** How long each call may wait. */
export const CALL_MS = 5_000;
/** Larger than any of the messages. */
export const VALUE_LIMIT = 8192;
/** Most of the messages are of several frames of such a ring. */
const CAPACITY = 1024;

const CBOR = valueOf("codec", "cbor");
const JSON_TEXT = valueOf("codec", "json");
export const VALUE_CLAUSES = [
  "codec.cbor",
  "codec.cbor_tags",
  "codec.cbor_shared",
  "codec.bad_cbor",
  "pipe.order",
  "frame.multipart",
];

/** A text of 3,000 bytes, of characters of three, which frames cut anywhere. */
const LONG_TEXT = `79 0bb8 ${"e282ac ".repeat(1000)}`;
/** 500 floats of eight bytes. */
const LONG_TYPED = `d8 56 59 0fa0 ${"182d4454fb210940 ".repeat(500)}`;
/** 200 pairs. */
const LONG_MAP = `d9 0103 b8 c8 ${
  Array.from(
    { length: 200 },
    (_, index) => `19 ${hex16(1000 + index)} 61 ${hexOf(97 + index % 26)}`,
  )
    .join(" ")
}`;
/** As deep as every thread can write it: a worker of Chromium has stack for some 900 levels. */
const DEEP = `${"81 ".repeat(limitOf("cbor_depth_max") / 2)} 82 01 02`;

/** What is written. */
export const VALUES: readonly MessageCase[] = [
  text("first"),
  cbor(RICH),
  message({ codec: JSON_TEXT, json: { a: [1, null] } }),
  cbor(SHARED),
  cbor(LONG_TEXT),
  message({ count: 20 }),
  cbor(LONG_TYPED),
  cbor(LONG_MAP),
  cbor(DEEP),
  text("last"),
];

/** The case over a ring; `live_values` of streams has the other one. */
export function liveValues(): KitCase<Arena> {
  return {
    id: "live/cbor",
    about: "Values of codec cbor between other messages, through a ring that most do not fit.",
    clauses: VALUE_CLAUSES,
    declinedBy: (hello, index) =>
      lacksNoun(hello, "pipe") ?? lacksRole(hello, index === 0 ? "writer" : "reader") ??
        (hello.waits.includes("block") ? undefined : "does not wait by block") ??
        lacksValues(hello, index),
    async run(arena) {
      const problems = await runRing(arena);
      return problems.length === 0 ? PASS : failed(VALUE_CLAUSES, problems);
    },
  };
}

/** Why a testee need not move these values. */
export function lacksValues({ levels, lacks }: Hello, index: number): string | undefined {
  if (!levels.includes("live")) return "does not run live";
  // Whoever decodes all that it reads drops what it does not know.
  const drops = index === 1 && lacks.includes("bytes") && lacks.includes("cbor");
  return drops ? "decodes all that it reads, and not cbor" : undefined;
}

/** How a testee opens its end: as a writer or reader of values, where it can. */
export function openingOf(hello: Hello, index: number): Partial<Opening> {
  if (index === 1) return { values: decodes(hello) };
  return { values: false, ...(hello.offers?.includes("encodes") && { encodes: true }) };
}

/** Whether a testee hands out what CBOR means. */
function decodes({ lacks }: Hello): boolean {
  return !lacks.includes("values") && !lacks.includes("cbor");
}

/** What a testee must read. */
export function expected(hello: Hello): Item[] {
  if (decodes(hello)) return [...VALUES];
  return VALUES.map((each) => each.cbor === undefined ? encoded(each) : each);
}

/** A message with its payload as bytes; of CBOR, bytes that mean its value. */
export function encoded({ cbor, json, ...rest }: MessageCase): MessageCase {
  if (cbor !== undefined) return { ...rest, hex: cbor };
  return json === undefined ? rest : { ...rest, hex: toHex(utf8(JSON.stringify(json))) };
}

async function runRing(arena: Arena): Promise<Problem[]> {
  const channel = { writer: 0, reader: 1, capacity: CAPACITY, label: 0, start: 0 };
  const geometry = { endpoints: 2, channels: [channel] };
  const field = await arena.field({ size: buildSegment(geometry).bytes.length });
  try {
    const writer = await open(arena, field, 0, { kind: "create", geometry, role: "writer" });
    const reader = await open(arena, field, 1, { kind: "attach", role: "reader" });
    const [, got] = await together([
      write(writer.session),
      reader.session.readMany(VALUES.length + 1, CALL_MS),
    ]);
    for (const { drop } of [writer, reader]) await drop();
    return compare(got!, { items: expected(reader.hello), end: "ended" });
  } finally {
    field.release();
  }
}

async function open(
  arena: Arena,
  field: Field,
  index: number,
  opening: Pick<Opening, "kind" | "geometry" | "role">,
) {
  const connection = await arena.connect(index);
  const { hello } = connection;
  const handle = connection.newHandle();
  const answer = answerOf(
    await connection.send({
      command: "open",
      handle,
      ...field.place(index),
      ...opening,
      endpoint: index,
      limit: VALUE_LIMIT,
      calls: false,
      spin_us: 0,
      ...openingOf(hello, index),
    }),
  );
  if (answer !== "ok") {
    throw new Wrong(`testee ${index + 1} cannot open its end: ${JSON.stringify(answer)}`);
  }
  const session = new RemoteSession(connection, handle, opening.role);
  return { hello, session, drop: () => connection.must({ command: "drop", handle }) };
}

async function write(session: RemoteSession): Promise<undefined> {
  for (const [index, each] of VALUES.entries()) {
    const answer = await session.write(encoded(each), true, CALL_MS);
    if (answer !== "ok") throw new Wrong(`message ${index}: write gave ${JSON.stringify(answer)}`);
  }
  const answer = await session.end();
  if (answer !== "ok") throw new Wrong(`end gave ${JSON.stringify(answer)}`);
}

function cbor(hex: string): MessageCase {
  return message({ codec: CBOR, cbor: toHex(fromHex(hex)) });
}

function hex16(value: number): string {
  return value.toString(16).padStart(4, "0");
}

function hexOf(value: number): string {
  return value.toString(16).padStart(2, "0");
}
