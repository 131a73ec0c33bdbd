/**
 * Writes each value of the table in `guide/values.md` by each codec, and compares what a reader
 * gets with what the table says. `deno run -A impl-ts/places/values_test.ts` writes the table anew.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { cbor } from "../src/codec/cbor.ts";
import { json } from "../src/codec/json.ts";
import { type Codec, type CodecName, Port } from "../src/mod.ts";

const PAGE = new URL("../guide/values.md", import.meta.url);

/** By the heads of the columns. */
const CODECS: Record<string, CodecName | Codec> = {
  '"json"': "json",
  "json({ strict: true })": json({ strict: true }),
  '"text"': "text",
  '"bytes"': "bytes",
  cbor,
};

/** What a reader gets of a value. */
function outcome(head: string, value: unknown): string {
  try {
    if (head === "structuredClone") return same(value, structuredClone(value));
  } catch (error) {
    if (error instanceof DOMException) return "refused";
    throw error;
  }
  const codec = CODECS[head]!;
  using here = Port.create<unknown>({ codec });
  using there = Port.attach<unknown>(here.memory, { codec });
  try {
    here.write(value);
  } catch (error) {
    if (error instanceof TypeError) return "refused";
    throw error;
  }
  return same(value, there.read({ timeout: 1000 }));
}

/** Whether it is the same, of the same class and with as many objects; or what it is. */
function same(value: unknown, got: unknown): string {
  const isSame = typeof value === typeof got && classOf(value) === classOf(got) &&
    Object.is(value, -0) === Object.is(got, -0) && identities(value) === identities(got) &&
    isEqual(got, value);
  return isSame ? "same" : `\`${shown(got)}\``;
}

function isEqual(got: unknown, value: unknown): boolean {
  try {
    assertEquals(got, value);
    return true;
  } catch {
    return false;
  }
}

function classOf(value: unknown): unknown {
  return typeof value === "object" && value !== null ? value.constructor : undefined;
}

/** How many objects an array has, and which of its places are filled; and what else is not seen. */
function identities(value: unknown): string {
  if (value instanceof Error) return `${value.message} ${value.cause} ${value.stack}`;
  if (value instanceof ArrayBuffer || value instanceof DataView) return `${value.byteLength}`;
  if (!Array.isArray(value)) return "";
  return `${new Set(value).size} ${Object.keys(value)} ${value.indexOf(value)}`;
}

function shown(value: unknown): string {
  return Object.is(value, -0) ? "-0" : JSON.stringify(value)!.replaceAll('":', '": ');
}

/** The table as it must be, from the values in its first column. */
function made(text: string): string {
  let heads: string[] = [];
  return text.replaceAll(/^\|.*\|$/gm, (line) => {
    const cells = line.slice(2, -2).split(" | ").map((cell) => cell.trim());
    if (cells[0] === "value") {
      heads = cells.slice(1).map((cell) => cell.replaceAll("`", ""));
      return line;
    }
    const source = /^`(.*)`/.exec(cells[0]!)?.[1];
    if (source === undefined) return line;
    // The table's own values, as its reader would type them.
    const value: unknown = new Function(`return (${source});`)();
    return `| \`${source}\` | ${heads.map((head) => outcome(head, value)).join(" | ")} |`;
  });
}

Deno.test("guide/values.md: the table says what becomes of each value", async () => {
  const text = await Deno.readTextFile(PAGE);
  assertEquals(made(text).split("\n"), text.split("\n"));
  const rows = text.match(/^\| `.*\|$/gm)!;
  assert(rows.length > 25 && rows.every((row) => row.split(" | ").length === 7));
  // It is no list of one answer.
  for (const answer of ["same", "refused", "`{}`"]) {
    assert(rows.filter((row) => row.includes(` ${answer} `)).length > 2, answer);
  }
});

if (import.meta.main) await Deno.writeTextFile(PAGE, made(await Deno.readTextFile(PAGE)));
