/**
 * Runs a case against an implementation and says in what it differs from what must come. All
 * expectations are interpreted here, whatever the implementation is written in.
 *
 * @module
 */

import { fromHex, toHex } from "../reference/bytes.ts";
import type {
  Drained,
  Expected,
  Failure,
  Item,
  MessageCase,
  Operation,
  Optional,
  Payload,
  Reason,
  Result,
  Setting,
  Wanted,
} from "../reference/case.ts";
import { get, MailboxTaker, ringPlace, RingTaker } from "../reference/decode.ts";
import { descriptorAt } from "../reference/encode.ts";
import type { Resolved } from "./load.ts";

/** An implementation, as far as the static cases need it. */
export interface Testee {
  name: string;
  /** What it does not offer: the cases that say so in `may_decline` are declined, and no others. */
  lacks: readonly Optional[];
  /** Puts the image into memory of its own, and attaches or creates. */
  open(setting: Setting, image: Uint8Array): Opened;
}

/** What came of attaching: `ok` with a session, where the role has one, or a reason code. */
export interface Opened {
  memory: Uint8Array;
  result: string;
  session?: Session;
}

/** One thing that a read gives, or how it ended. */
export type Read = { item: Item } | { end: string; reason?: Reason };

/** What a call gives: `ok`, `full`, `refused`, or a reason code, alone or with the reason. */
export type Answer = string | Failure;

/** An endpoint that was attached. */
export interface Session {
  read(): Read;
  /** Borrows the next frame. */
  peek(): Read;
  /** Gives back what was borrowed. */
  release(): Answer;
  write(payload: Uint8Array, message: MessageCase, wait: boolean): Answer;
  claim(payload: Uint8Array, message: MessageCase, size: number, abandon: boolean): Answer;
  /** Goes on with a write that timed out. */
  resume(): Answer;
  publish(): Answer;
  end(): Answer;
  close(): Answer;
}

/** The kit as the peer. */
interface Taker {
  take(): Drained;
  room(size: number): void;
}

/** More messages than any case has: a testee that never stops fails and does not hang. */
const ITEMS_MAX = 1000;

/** What an implementation lacks of what a case needs: it declines the case, and does not fail. */
export function declined({ mayDecline }: Resolved, { lacks }: Testee): Optional | undefined {
  return mayDecline.find((name) => lacks.includes(name));
}

/** Runs a case; the lines say what differs. */
export function runCase({ setting, memory: image, expect }: Resolved, testee: Testee): string[] {
  const { memory, result, session } = testee.open(setting, image);
  const must = expect.result ?? "ok";
  if (result !== must) return [`attaching gave ${result}, not ${must}`];
  const problems: string[] = [];
  try {
    const operations = session === undefined ? [] : setting.operations ?? [];
    const taker = operations.some((operation) => "take" in operation || "room" in operation)
      ? makeTaker(setting, memory)
      : undefined;
    operations.forEach((operation, index) => {
      const got = perform(operation, session!, memory, taker);
      const fact = compare(got, expect.results?.[index] ?? "ok");
      if (fact === undefined) return;
      problems.push(`operation ${index}, ${Object.keys(operation)[0]}: ${fact}`);
    });
    // Before the session is closed, which changes states and bells.
    problems.push(...compareBytes(memory, expect.bytes ?? []));
    if (expect.unchanged) problems.push(...compareAll(memory, image));
  } finally {
    session?.close();
  }
  return problems;
}

function perform(
  operation: Operation,
  session: Session,
  memory: Uint8Array,
  taker: Taker | undefined,
): Result {
  if ("read" in operation) {
    return operation.read === true ? drain(session) : readSome(session, operation.read);
  }
  if ("peek" in operation) {
    const got = session.peek();
    return "item" in got ? { items: [got.item] } : { items: [], ...got };
  }
  if ("release" in operation) return session.release();
  if ("write" in operation) {
    return session.write(toBytes(operation.write), toMessage(operation.write), !!operation.wait);
  }
  if ("claim" in operation) {
    const { claim, size, abandon = false } = operation;
    return session.claim(toBytes(claim), toMessage(claim), size, abandon);
  }
  if ("resume" in operation) return session.resume();
  if ("publish" in operation) return session.publish();
  if ("end" in operation) return session.end();
  if ("close" in operation) return session.close();
  if ("set" in operation) {
    for (const { offset, hex } of operation.set) memory.set(fromHex(hex), offset);
    return "ok";
  }
  if ("room" in operation) {
    taker!.room(operation.room);
    return "ok";
  }
  return taker!.take();
}

/** Makes so many calls, fewer when one gives nothing. */
function readSome(session: Session, count: number): Drained {
  const items: Item[] = [];
  while (items.length < count) {
    const got = session.read();
    if ("end" in got) return { items, ...got };
    items.push(got.item);
  }
  return { items };
}

/** Reads until there is nothing more; what ended it must come again when asked again. */
function drain(session: Session): Drained {
  const items: Item[] = [];
  for (;;) {
    const first = session.read();
    if ("item" in first) {
      items.push(first.item);
      if (items.length > ITEMS_MAX) return { items: [], end: "reads for ever" };
      continue;
    }
    const again = session.read();
    if (JSON.stringify(first) !== JSON.stringify(again)) {
      return { items, end: `${JSON.stringify(first)}, and then ${JSON.stringify(again)}` };
    }
    return { items, ...first };
  }
}

/** The kit as the reader of what the testee writes. */
function makeTaker(setting: Setting, memory: Uint8Array): Taker {
  if (setting.role === "mailbox_writer") return new MailboxTaker(memory);
  const endpoints = get(memory, 0, "segment_header", "endpoint_count");
  const place = ringPlace(memory, descriptorAt(endpoints, setting.channel ?? 0));
  return new RingTaker(memory, place);
}

/** The payload of a message, encoded. */
export function toBytes(payload: Payload): Uint8Array {
  if (payload.count !== undefined) return Uint8Array.from({ length: payload.count }, (_, i) => i);
  if (payload.hex !== undefined) return fromHex(payload.hex);
  const text = payload.text ?? JSON.stringify(payload.json);
  return new TextEncoder().encode(text);
}

function toMessage({ kind = 1, codec = 0, tag = 0 }: Payload): MessageCase {
  return { kind, codec, tag };
}

/** Says how a result differs, or nothing. */
function compare(got: Result, must: Wanted): string | undefined {
  if (typeof must === "object" && "one_of" in must) {
    const facts = must.one_of.map((wanted) => compare(got, wanted));
    return facts.includes(undefined) ? undefined : facts.join("; ");
  }
  const [a, b] = [normal(got, must), normal(must, must)].map((value) => JSON.stringify(value));
  return a === b ? undefined : `gave ${a}, not ${b}`;
}

/** A result as far as it is compared: a reason only where the case states one. */
function normal(result: Result, must: Result): unknown {
  if (typeof result === "string") return result;
  const isStated = typeof must === "object" && must.reason !== undefined;
  if ("code" in result) return isStated ? result : result.code;
  const { items, end, reason } = result;
  const wanted = typeof must === "object" && "items" in must ? must.items : [];
  const compared = items.map((item, index) => normalItem(item, wanted[index]));
  return { items: compared, end, ...(isStated && { reason }) };
}

/** Text and bytes are the same bytes; JSON values are compared as values, their keys in order. */
function normalItem(item: Item, wanted: Item | undefined): unknown {
  if ("report" in item) return item;
  const { kind, codec, tag, json } = item;
  const isAny = wanted !== undefined && "kind" in wanted && !hasPayload(wanted);
  if (isAny) return { kind, codec, tag };
  if (json !== undefined) return { kind, codec, tag, json };
  return { kind, codec, tag, hex: toHex(toBytes(item)) };
}

function hasPayload({ hex, count, text, json }: MessageCase): boolean {
  return hex !== undefined || count !== undefined || text !== undefined || json !== undefined;
}

function compareBytes(memory: Uint8Array, expected: Expected[]): string[] {
  return expected.flatMap(({ offset, hex, zero, not, about }) => {
    const stated = zero === undefined ? fromHex((hex ?? not) as string) : new Uint8Array(zero);
    const got = toHex(memory.slice(offset, offset + stated.length));
    const must = toHex(stated);
    const isGood = (got === must) === (not === undefined);
    const wanted = not === undefined ? must : `other than ${must}`;
    return isGood ? [] : [`bytes at ${offset}${about ? ` (${about})` : ""}: ${got}, not ${wanted}`];
  });
}

function compareAll(memory: Uint8Array, image: Uint8Array): string[] {
  const at = image.findIndex((byte, index) => byte !== memory[index]);
  return at < 0 ? [] : [`byte ${at} has changed to ${toHex(memory.slice(at, at + 1))}`];
}
