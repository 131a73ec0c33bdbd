/**
 * In what something differs from what must come: field by field, what was expected and what
 * came, and which clauses each difference may be about.
 *
 * @module
 */

import { fromHex, toHex } from "../reference/bytes.ts";
import { formOfCbor } from "../reference/cbor.ts";
import type { Drained, Expected, Item, MessageCase, Payload, Value } from "../reference/case.ts";
import type { Result, Settled, Wanted } from "../reference/case.ts";
import { buildValues, formOf, readValues } from "../reference/values.ts";
import { aboutCode, aboutField, aboutMissing, aboutReason, aboutTaken } from "./blame.ts";

/** One thing that is not as it must be. */
export interface Problem {
  /** What it is; it may name its clause in brackets. */
  text: string;
  /** Clauses that it may be about, the likeliest first; none where that cannot be said. */
  clauses: readonly string[];
}

/** Who has read what is compared: the testee, or the kit, what the testee has written. */
export type By = "testee" | "kit";

/** What another value of CBOR than was written may be about; */
const CBOR_CLAUSES = ["codec.cbor_shared", "codec.bad_cbor"];
/** and what a value that was encoded anew, and is no CBOR. */
const NO_CBOR_CLAUSES = ["codec.cbor", "codec.cbor_tags"];
/** Bytes of a payload that are shown of each side. */
const SHOWN = 16;
/** Characters of a JSON text that are shown, from shortly before the first difference. */
const TEXT_SHOWN = 60;

/** The payload of a message, encoded. */
export function toBytes(payload: Payload): Uint8Array {
  if (payload.count !== undefined) return Uint8Array.from({ length: payload.count }, (_, i) => i);
  if (payload.hex !== undefined) return fromHex(payload.hex);
  if (payload.values !== undefined) return buildValues(payload.values);
  const text = payload.text ?? JSON.stringify(payload.json);
  return new TextEncoder().encode(text);
}

/** Says how a result differs from the one that must come, or from the nearest of several. */
export function compare(got: Result, must: Wanted, by: By = "testee"): Problem[] {
  if (typeof must !== "object" || !("one_of" in must)) return compareOne(got, must, by);
  const each = must.one_of.map((wanted) => compareOne(got, wanted, by));
  const [nearest] = each.toSorted((a, b) => a.length - b.length);
  if (nearest!.length === 0) return [];
  const others = must.one_of.length - 1;
  return nearest!.map(({ text, clauses }) =>
    problem(`${text} (or one of ${others} others)`, clauses)
  );
}

function compareOne(got: Result, must: Result, by: By): Problem[] {
  if (isSettled(must)) {
    const [is, wanted] = [isSettled(got) ? shownOutcome(got) : JSON.stringify(got), must];
    if (is === shownOutcome(wanted)) return [];
    return [problem(`expected ${shownOutcome(wanted)}, got ${is}`)];
  }
  const [is, wanted] = [partsOf(got), partsOf(must)];
  const problems = compareItems(is, wanted.items, by);
  if (is.end !== wanted.end) {
    const reads = typeof must === "object" && "items" in must;
    const text = `expected ${wanted.end ?? "no end"}, got ${is.end ?? "no end"}`;
    const clauses = by === "kit"
      ? aboutTaken(wanted.end, is.end)
      : aboutCode(wanted.end, is.end, reads);
    problems.push(problem(reads ? `end: ${text}` : text, clauses));
  }
  if (is.version !== wanted.version) {
    const text = `version: expected ${wanted.version ?? "none"}, got ${is.version ?? "none"}`;
    problems.push(problem(text, ["property.version", "property.changed"]));
  }
  // A reason only where the case states one.
  if (wanted.reason !== undefined && is.reason !== wanted.reason) {
    const text = `reason: expected ${wanted.reason}, got ${is.reason ?? "nothing"}`;
    problems.push(problem(text, aboutReason));
  }
  return problems;
}

/** A result as far as it is compared. */
function partsOf(result: Result): Drained {
  if (typeof result === "string") return { items: [], end: result };
  if ("code" in result) return { items: [], end: result.code, reason: result.reason };
  if (isSettled(result)) return { items: [], end: shownOutcome(result) };
  return result;
}

function isSettled(result: Result): result is Settled {
  return typeof result === "object" && "outcome" in result;
}

/** What has come of a call, in one form. */
function shownOutcome({ outcome, value, error }: Settled): string {
  const thrown = error && [error.name, error.text].map((each) => JSON.stringify(each)).join(": ");
  const data = error?.data && formOf(error.data);
  return [outcome, value && formOf(value), thrown, data].filter(Boolean).join(", ");
}

function problem(text: string, clauses: readonly string[] = []): Problem {
  return { text, clauses };
}

/** The same problems, and where they were found. */
export function within(where: string, problems: readonly Problem[]): Problem[] {
  return problems.map(({ text, clauses }) => problem(`${where}, ${text}`, clauses));
}

function compareItems({ items: got, end }: Drained, must: Item[], by: By): Problem[] {
  const problems: Problem[] = [];
  for (let index = 0; index < Math.max(got.length, must.length); index++) {
    const [is, wanted] = [got[index], must[index]];
    const found = compareItem(is, wanted, by, end);
    problems.push(...found.map(({ text, clauses }) => problem(`item ${index}${text}`, clauses)));
    // One too many or too few shifts all that follow.
    if (found.length > 0 && got.length !== must.length) break;
  }
  if (got.length !== must.length) {
    problems.push(
      problem(`items: expected ${must.length}, got ${got.length}`, problems[0]!.clauses),
    );
  }
  return problems;
}

function compareItem(
  got: Item | undefined,
  must: Item | undefined,
  by: By,
  end: string | undefined,
): Problem[] {
  const isMessage = (item: Item | undefined) => item !== undefined && !("report" in item);
  if (!isMessage(got) || !isMessage(must)) {
    if (JSON.stringify(got) === JSON.stringify(must)) return [];
    const code = must !== undefined && "report" in must ? must.report : undefined;
    const clauses = by === "kit"
      ? aboutTaken(code, end)
      : got === undefined && code === undefined
      ? aboutMissing(end)
      : aboutCode(code, undefined);
    return [problem(`: expected ${shownItem(must)}, got ${shownItem(got)}`, clauses)];
  }
  return compareMessage(got as MessageCase, must as MessageCase);
}

function compareMessage(got: MessageCase, must: MessageCase): Problem[] {
  const problems: Problem[] = [];
  for (const field of ["kind", "codec", "tag"] as const) {
    if (got[field] === must[field]) continue;
    problems.push(problem(`, ${field}: expected ${must[field]}, got ${got[field]}`));
  }
  // One without any payload is not compared by it.
  if (!hasPayload(must)) return problems;
  if (must.values !== undefined) {
    const fact = differentValues(got, must.values);
    if (fact !== undefined) problems.push(problem(`, ${fact}`, ["call.message", "call.values"]));
    return problems;
  }
  if (must.cbor !== undefined) {
    const different = differentCbor(got, must.cbor);
    if (different !== undefined) problems.push(different);
    return problems;
  }
  if (got.json !== undefined || must.json !== undefined) {
    // JSON values are compared as values, their keys in order.
    const [is, wanted] = [got, must].map((each) => JSON.stringify(each.json) ?? "no JSON");
    if (is !== wanted) problems.push(problem(`, value: ${differentText(is!, wanted!)}`));
    return problems;
  }
  // Text and bytes are the same bytes.
  const fact = differentBytes(toBytes(got), toBytes(must));
  if (fact !== undefined) problems.push(problem(`, payload${fact}`));
  return problems;
}

function hasPayload({ hex, count, text, json, values, cbor }: MessageCase): boolean {
  return [hex, count, text, json, values, cbor].some((form) => form !== undefined);
}

/** Says in what a list that was written differs from the values that it must hold. */
function differentValues(got: MessageCase, must: readonly Value[]): string | undefined {
  let values: Value[];
  try {
    values = readValues(toBytes(got));
  } catch (error) {
    return (error as Error).message;
  }
  const wanted = must.map(formOf).join(", ");
  const is = values.map((value, index) => formOf(isAny(must[index]) ? must[index] : value))
    .join(", ");
  return is === wanted ? undefined : `values: ${differentText(is, wanted)}`;
}

/** Says in what CBOR that was read, and encoded anew, differs from what it must mean. */
function differentCbor({ hex = "" }: MessageCase, must: string): Problem | undefined {
  const wanted = formOfCbor(fromHex(must));
  try {
    const is = formOfCbor(fromHex(hex));
    if (is === wanted) return undefined;
    return problem(`, value: ${differentText(is, wanted)}`, CBOR_CLAUSES);
  } catch (error) {
    const why = (error as Error).message;
    return problem(`, value: expected ${wanted}, got no CBOR: ${why}`, NO_CBOR_CLAUSES);
  }
}

function isAny(value: Value | undefined): value is { any: true } {
  return value !== undefined && "any" in value;
}

function shownItem(item: Item | undefined): string {
  if (item === undefined) return "none";
  if ("report" in item) return `the report ${item.report}${item.count ? `, ${item.count}` : ""}`;
  const { kind, codec, tag } = item;
  const payload = item.values !== undefined
    ? `values ${item.values.map(formOf).join(", ").slice(0, TEXT_SHOWN)}`
    : item.cbor !== undefined
    ? `CBOR ${formOfCbor(fromHex(item.cbor)).slice(0, TEXT_SHOWN)}`
    : item.json !== undefined
    ? JSON.stringify(item.json).slice(0, TEXT_SHOWN)
    : hasPayload(item)
    ? `${toBytes(item).length} bytes ${toHex(toBytes(item).slice(0, SHOWN))}`
    : "any payload";
  return `a message of kind ${kind}, codec ${codec}, tag ${tag}: ${payload}`;
}

/** Says from where on bytes differ, and shows both from there; nothing where they are the same. */
export function differentBytes(got: Uint8Array, must: Uint8Array): string | undefined {
  const size = Math.max(got.length, must.length);
  let at = 0;
  while (at < size && got[at] === must[at]) at++;
  if (at === size) return undefined;
  const shown = (bytes: Uint8Array) => {
    const part = toHex(bytes.slice(at, at + SHOWN));
    const rest = at + SHOWN < bytes.length ? " …" : "";
    return part === "" ? `the end, at ${bytes.length}` : part + rest;
  };
  return ` from byte ${at} on: expected ${shown(must)}, got ${shown(got)}`;
}

function differentText(got: string, must: string): string {
  let at = 0;
  while (got[at] === must[at]) at++;
  const from = Math.max(0, at - TEXT_SHOWN / 3);
  const shown = (text: string) =>
    (from > 0 ? "…" : "") + text.slice(from, from + TEXT_SHOWN) +
    (from + TEXT_SHOWN < text.length ? "…" : "");
  return `expected ${shown(must)}, got ${shown(got)}`;
}

/** Says which of the bytes that are stated a testee in this role has not left there. */
export function compareBytes(
  memory: Uint8Array,
  expected: Expected[],
  role: string,
  fieldAt: (offset: number) => string,
): Problem[] {
  return expected.flatMap(({ offset, hex, one_of, zero, not, about }) => {
    const stated = zero === undefined
      ? (one_of ?? [(hex ?? not) as string]).map(fromHex)
      : [new Uint8Array(zero)];
    const got = toHex(memory.slice(offset, offset + stated[0]!.length));
    const must = stated.map(toHex);
    if (must.includes(got) === (not === undefined)) return [];
    const wanted = (not === undefined ? "" : "anything but ") + must.join(" or ");
    const where = `bytes at ${offset}${about ? ` (${about})` : ""}`;
    return [
      problem(`${where}: expected ${wanted}, got ${got}`, aboutField(fieldAt(offset), role)),
    ];
  });
}

/** Says where memory that must be as it was is not. */
export function compareAll(memory: Uint8Array, image: Uint8Array): Problem[] {
  const fact = differentBytes(memory, image);
  return fact === undefined ? [] : [problem(`the memory has changed${fact}`)];
}
