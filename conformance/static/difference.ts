/**
 * In what something differs from what must come: field by field, what was expected and what
 * came, and which clauses each difference may be about.
 *
 * @module
 */

import { fromHex, toHex } from "../reference/bytes.ts";
import type { Drained, Expected, Item, MessageCase, Payload, Result } from "../reference/case.ts";
import type { Settled, Value, Wanted } from "../reference/case.ts";
import { formOfCbor } from "../reference/cbor.ts";
import { buildValues, formOf, readValues } from "../reference/values.ts";

// Which clauses speak of an expectation that has failed. A case cites all that it shows; of what
// failed, those are named whose word or code it was.

/** Of what a call of the testee must give, by the code that was expected; most likely first. */
const CODES: Readonly<Record<string, readonly string[]>> = {
  "segment.unready": ["segment.await", "segment.claim"],
  "segment.geometry": ["segment.same_geometry", "segment.check"],
  "segment.endpoint": ["segment.attach", "segment.check", "segment.file_lock"],
  "segment.channel": ["segment.check", "pipe.find_none", "port.find_none"],
  "segment.file": ["segment.file_own", "segment.file_replace"],
  "ring.cursor": ["ring.cursor"],
  "frame.total": ["frame.check_total", "frame.check"],
  "message.size": ["pipe.limit", "mailbox.limit"],
  "message.kind": ["pipe.unknown_kind"],
  "message.cancelled": ["pipe.cancelled"],
  "message.truncated": ["pipe.truncated"],
  "message.codec": ["codec.unknown", "codec.bad_cbor"],
  "message.text": ["codec.bad_text"],
  "message.json": ["codec.bad_json", "mailbox.bad_payload"],
  "pipe.ended": ["pipe.end", "pipe.end_again", "pipe.first_answer"],
  "pipe.closed": ["pipe.first_answer", "segment.own_state", "pipe.close_frees", "pipe.close"],
  "pipe.failed": ["pipe.first_answer", "segment.own_state", "pipe.close_frees"],
  "property.size": ["property.size"],
  "property.slot": ["property.fault", "property.bounds"],
  ended: ["pipe.end_once", "frame.after_end", "pipe.truncated", "pipe.first_answer"],
  full: ["ring.room", "ring.pad", "pipe.try_write"],
};

/** The same for calls that read nothing. */
const WRITTEN: Readonly<Record<string, readonly string[]>> = {
  "peer.closed": ["pipe.peer_gone", "pipe.end_closed", "pipe.first_answer"],
  "peer.failed": ["pipe.peer_gone", "pipe.end_closed", "pipe.first_answer"],
};

/** The same for the codes of a noun that have no line of their own. */
const NOUNS: Readonly<Record<string, readonly string[]>> = {
  segment: ["segment.check"],
  frame: ["frame.check", "frame.check_total", "frame.after_end"],
  mailbox: ["mailbox.check"],
  property: ["property.open", "property.find"],
};

/** Of what the kit has read of the testee's writing. */
const TAKEN: Readonly<Record<string, readonly string[]>> = {
  "message.cancelled": ["pipe.owed", "frame.cancel", "pipe.owed_end"],
  ended: ["pipe.end", "frame.end"],
};

/** Clauses about what a call of the testee gave, by the code that must come. */
function aboutCode(
  must: string | undefined,
  got: string | undefined,
  reads = true,
): readonly string[] {
  if (must === undefined) return [];
  // Somebody waits for room that the clauses give at once, or takes room that is not there.
  if (must === "ok" && got === "full") return CODES["full"]!;
  if (must === "ok" && got === "wait.timeout") return ["pipe.end_now"];
  const noun = must.split(".")[0]!;
  const own = (reads ? undefined : WRITTEN[must]) ?? CODES[must] ?? NOUNS[noun] ?? [];
  // A fault that was reported once is reported again, whatever its mark says since.
  const isFault = noun === "ring" || noun === "frame";
  const hasFailed = got === "peer.failed" || got === "pipe.failed";
  return isFault && hasFailed ? ["pipe.fault", "pipe.first_answer", ...own] : own;
}

/** Clauses about a message that was not read, by how the reading ended. */
function aboutMissing(end: string | undefined): readonly string[] {
  return end?.startsWith("peer.") ? ["pipe.drain", "pipe.look_again"] : [];
}

/** Clauses about what the testee has written. A strict reader names its own in brackets. */
function aboutTaken(must: string | undefined, got: string | undefined): readonly string[] {
  if (got?.startsWith("[") || must === undefined) return [];
  return TAKEN[must] ?? [];
}

/** Clauses about the reason that stands beside a code. */
const aboutReason: readonly string[] = [
  "pipe.failed_reason",
  "segment.state_reason",
  "segment.state_invalid",
];

/** Clauses about a field in shared memory that a testee in this role has left. */
function aboutField(field: string, role: string): readonly string[] {
  switch (field) {
    case "bell":
      return [
        ...["segment.state_ring", "wait.exchange", "wait.ring", "ring.fault"],
        "pipe.publish_none",
      ];
    case "state":
      return [
        ...["ring.fault", "segment.state_change", "segment.state_reason", "segment.attach"],
        ...["segment.state_invalid", "segment.own_state", "segment.state_low", "pipe.close"],
      ];
    case "wakes":
      return ["segment.attach", "wait.wakes"];
    case "agent":
      return ["segment.agent"];
    case "reader_wants":
      return role === "reader" ? ["wait.disarm"] : ["wait.exchange", "pipe.publish_none"];
    case "writer_wants":
      return [role === "writer" ? "wait.disarm" : "wait.exchange"];
    case "pad":
      return ["frame.pad", "ring.pad"];
    case "end":
      return ["frame.end", "pipe.end", "pipe.end_now"];
    default:
      return [];
  }
}

const CLAUSE = /\[([a-z]+\.[a-z_]+)\]/g;

/**
 * The clauses that problems name: each its own; else those of the case that it may be about; or
 * all of the case, and, where it cites none of them, the likeliest before.
 */
export function namedBy(
  clauses: readonly string[],
  problems: readonly Problem[],
): string[] {
  const named = problems.flatMap(({ text, clauses: about }) => {
    const own = [...text.matchAll(CLAUSE)].map(([, clause]) => clause!);
    if (own.length > 0) return own;
    const cited = about.filter((clause) => clauses.includes(clause));
    return cited.length > 0 ? cited : [...about.slice(0, 1), ...clauses];
  });
  return [...new Set(named)];
}

/** One thing that is not as it must be. */
export interface Problem {
  /** What it is; it may name its clause in brackets. */
  text: string;
  /** Clauses that it may be about, the likeliest first; none where that cannot be said. */
  clauses: readonly string[];
}

/** Who has read what is compared: the testee, or the kit, what the testee has written. */
type By = "testee" | "kit";

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
