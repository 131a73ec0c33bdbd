/**
 * Runs a case against an implementation and says in what it differs from what must come. All
 * expectations are interpreted here, whatever the implementation is written in.
 *
 * @module
 */

import { fromHex, type Run, toHex } from "../reference/bytes.ts";
import type {
  Drained,
  Expectation,
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
  open(setting: Setting, image: Uint8Array): Opened | Promise<Opened>;
}

/** What came of attaching: `ok` with a session, where the role has one, or a reason code. */
export interface Opened {
  result: string;
  session?: Session;
  memory: PeerMemory;
  /** Closes what is open, and lets go of the memory. */
  drop(): void | Promise<void>;
}

/** The memory, as the kit sees it, which is the peer. */
export interface PeerMemory {
  /** All bytes, or some of them. */
  dump(from?: number, size?: number): Uint8Array | Promise<Uint8Array>;
  patch(runs: Run[]): void | Promise<void>;
}

/** What a case has shown. */
export interface Outcome {
  /** What differs; nothing where all is as it must be. */
  problems: string[];
  /** The memory at the end, and as it must be, where that is stated and differs. */
  got?: Uint8Array;
  must?: Uint8Array;
}

/** One thing that a read gives, or how it ended. */
export type Read = { item: Item } | { end: string; reason?: Reason };

/** What a call gives: `ok`, `full`, `refused`, or a reason code, alone or with the reason. */
export type Answer = string | Failure;

/** An endpoint that was attached. */
export interface Session {
  read(): MaybePromise<Read>;
  /** Borrows the next frame. */
  peek(): MaybePromise<Read>;
  /** Gives back what was borrowed. */
  release(): MaybePromise<Answer>;
  write(payload: Payload, wait: boolean): MaybePromise<Answer>;
  claim(payload: Payload, size: number, abandon: boolean): MaybePromise<Answer>;
  /** Goes on with a write that timed out. */
  resume(): MaybePromise<Answer>;
  publish(): MaybePromise<Answer>;
  end(): MaybePromise<Answer>;
  close(): MaybePromise<Answer>;
}

type MaybePromise<T> = T | Promise<T>;

/** The kit as the reader of what the testee writes, on a copy of the memory. */
export class Taker {
  readonly #memory: PeerMemory;
  readonly #copy: Uint8Array;
  readonly #taker: RingTaker | MailboxTaker;

  private constructor(memory: PeerMemory, copy: Uint8Array, taker: RingTaker | MailboxTaker) {
    this.#memory = memory;
    this.#copy = copy;
    this.#taker = taker;
  }

  static async make(setting: Pick<Setting, "role" | "channel">, memory: PeerMemory) {
    const copy = (await memory.dump()).slice();
    if (setting.role === "mailbox_writer") return new Taker(memory, copy, new MailboxTaker(copy));
    const endpoints = get(copy, 0, "segment_header", "endpoint_count");
    const place = ringPlace(copy, descriptorAt(endpoints, setting.channel ?? 0));
    return new Taker(memory, copy, new RingTaker(copy, place));
  }

  async take(): Promise<Drained> {
    const before = await this.#load();
    const drained = this.#taker.take();
    await this.#store(before);
    return drained;
  }

  async room(size: number): Promise<void> {
    const before = await this.#load();
    this.#taker.room(size);
    await this.#store(before);
  }

  async #load(): Promise<Uint8Array> {
    this.#copy.set(await this.#memory.dump());
    return this.#copy.slice();
  }

  /** Stores what the taker has changed, and nothing else. */
  async #store(before: Uint8Array): Promise<void> {
    const runs = differences(before, this.#copy);
    if (runs.length > 0) await this.#memory.patch(runs);
  }
}

/** Where one piece of memory differs from another, in aligned words. */
export function differences(before: Uint8Array, after: Uint8Array): Run[] {
  const runs: Run[] = [];
  for (let offset = 0; offset < after.length; offset += 4) {
    const word = after.subarray(offset, offset + 4);
    if (word.every((byte, index) => byte === before[offset + index])) continue;
    runs.push({ offset, hex: toHex(word) });
  }
  return runs;
}

/** More messages than any case has: a testee that never stops fails and does not hang. */
const ITEMS_MAX = 1000;

/** What an implementation lacks of what a case needs: it declines the case, and does not fail. */
export function declined(
  { mayDecline }: { mayDecline: readonly Optional[] },
  { lacks }: Pick<Testee, "lacks">,
): Optional | undefined {
  return mayDecline.find((name) => lacks.includes(name));
}

/** Runs a case. */
export async function runCase(
  { setting, memory: image, expect }: Resolved,
  testee: Testee,
): Promise<Outcome> {
  const opened = await testee.open(setting, image);
  // Not behind an error: what broke down cannot close, and would only say something else.
  const outcome = await runOpened(opened, setting, image, expect);
  await opened.drop();
  return outcome;
}

async function runOpened(
  { memory, result, session }: Opened,
  setting: Setting,
  image: Uint8Array,
  expect: Expectation,
): Promise<Outcome> {
  const must = expect.result ?? "ok";
  if (result !== must) return { problems: [`attaching gave ${result}, not ${must}`] };
  const operations = session === undefined ? [] : setting.operations ?? [];
  const taker = operations.some((operation) => "take" in operation || "room" in operation)
    ? await Taker.make(setting, memory)
    : undefined;
  const problems: string[] = [];
  for (const [index, operation] of operations.entries()) {
    const got = await perform(operation, session!, memory, taker);
    const fact = compare(got, expect.results?.[index] ?? "ok");
    if (fact === undefined) continue;
    problems.push(`operation ${index}, ${Object.keys(operation)[0]}: ${fact}`);
  }
  // Before the session is closed, which changes states and bells.
  const got = await memory.dump();
  const wrong = [
    ...compareBytes(got, expect.bytes ?? []),
    ...(expect.unchanged ? compareAll(got, image) : []),
  ];
  if (wrong.length === 0) return { problems };
  return { problems: [...problems, ...wrong], got, must: expected(got, image, expect) };
}

/** The memory that was found, with what was expected in the places where that is stated. */
function expected(got: Uint8Array, image: Uint8Array, expect: Expectation): Uint8Array {
  const must = (expect.unchanged ? image : got).slice();
  for (const { offset, hex, zero } of expect.bytes ?? []) {
    if (hex !== undefined) must.set(fromHex(hex), offset);
    else if (zero !== undefined) must.fill(0, offset, offset + zero);
  }
  return must;
}

/** Does one operation of a case. */
export async function perform(
  operation: Operation,
  session: Session,
  memory: PeerMemory,
  taker: Taker | undefined,
): Promise<Result> {
  if ("read" in operation) {
    return await (operation.read === true ? drain(session) : readSome(session, operation.read));
  }
  if ("peek" in operation) {
    const got = await session.peek();
    return "item" in got ? { items: [got.item] } : { items: [], ...got };
  }
  if ("release" in operation) return await session.release();
  if ("write" in operation) return await session.write(operation.write, !!operation.wait);
  if ("claim" in operation) {
    const { claim, size, abandon = false } = operation;
    return await session.claim(claim, size, abandon);
  }
  if ("resume" in operation) return await session.resume();
  if ("publish" in operation) return await session.publish();
  if ("end" in operation) return await session.end();
  if ("close" in operation) return await session.close();
  if ("set" in operation) {
    await memory.patch(operation.set);
    return "ok";
  }
  try {
    if ("take" in operation) return await taker!.take();
    await taker!.room(operation.room);
    return "ok";
  } catch (error) {
    // What the strict reader finds begins with the clause that was broken.
    const { message } = error as Error;
    if (!message.startsWith("[")) throw error;
    return { items: [], end: message };
  }
}

/** Makes so many calls, fewer when one gives nothing. */
async function readSome(session: Session, count: number): Promise<Drained> {
  const items: Item[] = [];
  while (items.length < count) {
    const got = await session.read();
    if ("end" in got) return { items, ...got };
    items.push(got.item);
  }
  return { items };
}

/** Reads until there is nothing more; what ended it must come again when asked again. */
async function drain(session: Session): Promise<Drained> {
  const items: Item[] = [];
  for (;;) {
    const first = await session.read();
    if ("item" in first) {
      items.push(first.item);
      if (items.length > ITEMS_MAX) return { items: [], end: "reads for ever" };
      continue;
    }
    const again = await session.read();
    if (JSON.stringify(first) !== JSON.stringify(again)) {
      return { items, end: `${JSON.stringify(first)}, and then ${JSON.stringify(again)}` };
    }
    return { items, ...first };
  }
}

/** The payload of a message, encoded. */
export function toBytes(payload: Payload): Uint8Array {
  if (payload.count !== undefined) return Uint8Array.from({ length: payload.count }, (_, i) => i);
  if (payload.hex !== undefined) return fromHex(payload.hex);
  const text = payload.text ?? JSON.stringify(payload.json);
  return new TextEncoder().encode(text);
}

/** Says how a result differs, or nothing. */
export function compare(got: Result, must: Wanted): string | undefined {
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

/** Says which of the bytes that are stated do not stand there. */
export function compareBytes(memory: Uint8Array, expected: Expected[]): string[] {
  return expected.flatMap(({ offset, hex, one_of, zero, not, about }) => {
    const stated = zero === undefined
      ? (one_of ?? [(hex ?? not) as string]).map(fromHex)
      : [new Uint8Array(zero)];
    const got = toHex(memory.slice(offset, offset + stated[0]!.length));
    const must = stated.map(toHex);
    const isGood = must.includes(got) === (not === undefined);
    const wanted = (not === undefined ? "" : "other than ") + must.join(" or ");
    return isGood ? [] : [`bytes at ${offset}${about ? ` (${about})` : ""}: ${got}, not ${wanted}`];
  });
}

function compareAll(memory: Uint8Array, image: Uint8Array): string[] {
  const at = image.findIndex((byte, index) => byte !== memory[index]);
  return at < 0 ? [] : [`byte ${at} has changed to ${toHex(memory.slice(at, at + 1))}`];
}
