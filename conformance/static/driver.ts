/**
 * Runs a case against an implementation and says in what it differs from what must come. All
 * expectations are interpreted here, whatever the implementation is written in.
 *
 * @module
 */

import { annotate } from "../inspect/mod.ts";
import { fromHex, type Run, toHex } from "../reference/bytes.ts";
import type {
  Calling,
  Drained,
  Expectation,
  Failure,
  Item,
  Operation,
  Optional,
  Payload,
  Reason,
  Result,
  Setting,
  Settled,
} from "../reference/case.ts";
import { FanoutTaker, get, MailboxTaker, ringPlace, RingTaker } from "../reference/decode.ts";
import { descriptorAt } from "../reference/encode.ts";
import { compare, compareAll, compareBytes, type Problem, within } from "./difference.ts";
import type { Resolved } from "./load.ts";

/** An implementation, as far as the static cases need it. */
export interface Testee {
  name: string;
  /** What it does not offer: the cases that say so in `may_decline` are declined, and no others. */
  lacks: readonly Optional[];
  /** The chapters that it offers: the cases of others are no business of its. */
  nouns: readonly string[];
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
  problems: Problem[];
  /** The memory at the end, and as it must be, where that is stated and differs. */
  got?: Uint8Array;
  must?: Uint8Array;
}

/** One thing that a read gives, or how it ended; `refused` where the caller must not ask. */
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
  claim(payload: Payload, size: number, then: AfterClaim): MaybePromise<Answer>;
  /** Finishes, or gives up, a claim that was left open. */
  finish(payload: Payload): MaybePromise<Answer>;
  abandon(): MaybePromise<Answer>;
  /** Goes on with a write that timed out. */
  resume(): MaybePromise<Answer>;
  publish(): MaybePromise<Answer>;
  end(): MaybePromise<Answer>;
  close(): MaybePromise<Answer>;
  /** Gives the peer's endpoint back. */
  vacate(): MaybePromise<Answer>;
  /** Leaves a fanout, and joins it again. */
  leave(): MaybePromise<Answer>;
  join(): MaybePromise<Answer>;
  /** What a port has that offers calls. */
  calls?: Calls;
  /** What an end of a property has beside `write` and `close`. */
  register?: Register;
}

/** An end of a property. */
export interface Register {
  get(): MaybePromise<Drained | Answer>;
  clear(): MaybePromise<Answer>;
  /** Waits for a version other than the last that was got. */
  changed(timeoutMs?: number): MaybePromise<Answer>;
}

/** The calls of a port: those that it makes, counted from 0. */
export interface Calls {
  /** Makes the next call, and does not wait for its answer. */
  call(calling: Calling, items: boolean): MaybePromise<Answer>;
  notify(calling: Calling): MaybePromise<Answer>;
  giveUp(call: number): MaybePromise<Answer>;
  /** What has come of a call; or its next item. */
  settled(call: number, item: boolean): MaybePromise<Settled>;
}

/** What becomes of a claim. */
export type AfterClaim = "finish" | "abandon" | "open";

type MaybePromise<T> = T | Promise<T>;

type AnyTaker = RingTaker | MailboxTaker | FanoutTaker;

/** The kit as the reader of what the testee writes, on a copy of the memory. */
export class Taker {
  readonly #memory: PeerMemory;
  readonly #copy: Uint8Array;
  readonly #begin: () => AnyTaker;
  #taker: AnyTaker;

  private constructor(memory: PeerMemory, copy: Uint8Array, begin: () => AnyTaker) {
    this.#memory = memory;
    this.#copy = copy;
    this.#begin = begin;
    this.#taker = begin();
  }

  static async make(setting: Pick<Setting, "role" | "channel">, memory: PeerMemory) {
    const copy = (await memory.dump()).slice();
    if (setting.role === "mailbox_writer") {
      return new Taker(memory, copy, () => new MailboxTaker(copy));
    }
    const endpoints = get(copy, 0, "segment_header", "endpoint_count");
    const at = descriptorAt(endpoints, setting.channel ?? 0);
    if (setting.role === "fanout_writer") {
      return new Taker(memory, copy, () => new FanoutTaker(copy, at));
    }
    const place = ringPlace(copy, at);
    return new Taker(memory, copy, () => new RingTaker(copy, place));
  }

  /** Begins anew, where `head` stands now, as whoever attaches to an endpoint that was vacated. */
  async restart(): Promise<void> {
    await this.#load();
    this.#taker = this.#begin();
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
  // Not after an error: what broke down cannot close, and would only say something else.
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
  const refused = compare(result, must);
  if (refused.length > 0) return { problems: within("attaching", refused) };
  const operations = session === undefined ? [] : setting.operations ?? [];
  const taker = operations.some((operation) => "take" in operation || "room" in operation)
    ? await Taker.make(setting, memory)
    : undefined;
  const problems: Problem[] = [];
  for (const [index, operation] of operations.entries()) {
    const got = await perform(operation, session!, memory, taker);
    const name = Object.keys(operation)[0]!;
    const found = compare(got, expect.results?.[index] ?? "ok", name === "take" ? "kit" : "testee");
    problems.push(...within(`operation ${index}, ${name}`, found));
  }
  // Before the session is closed, which changes states and bells.
  const got = await memory.dump();
  const wanted = expected(got, image, expect);
  const wrong = [
    ...compareBytes(got, expect.bytes ?? [], setting.role, (at) => fieldAt(wanted, at, setting)),
    ...(expect.unchanged ? compareAll(got, image) : []),
  ];
  if (wrong.length === 0) return { problems };
  return { problems: [...problems, ...wrong], got, must: wanted };
}

/** What stands at an offset: a field, by its name, or a part of a pad or an `end`. */
function fieldAt(memory: Uint8Array, offset: number, { role }: Setting): string {
  const lines = annotate(memory, { as: role.startsWith("mailbox") ? "mailbox" : "segment" });
  const found = lines.find((line) => line.offset <= offset && offset < line.offset + line.size);
  const kind = lines.find(({ place, field }) => place === found?.place && field === "kind")?.value;
  return kind === "pad" || kind === "end" ? kind : found?.field ?? "";
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
    const { claim, size } = operation;
    const isOpen = "open" in operation;
    const isGivenUp = "abandon" in operation && operation.abandon;
    return await session.claim(claim, size, isOpen ? "open" : isGivenUp ? "abandon" : "finish");
  }
  if ("finish" in operation) return await session.finish(operation.finish);
  if ("abandon" in operation) return await session.abandon();
  if ("resume" in operation) return await session.resume();
  if ("publish" in operation) return await session.publish();
  if ("end" in operation) return await session.end();
  if ("close" in operation) return await session.close();
  if ("vacate" in operation) {
    const answer = await session.vacate();
    // The rings begin anew, and the kit is whoever comes next.
    if (answer === "ok") await taker?.restart();
    return answer;
  }
  if ("leave" in operation) return await session.leave();
  if ("join" in operation) return await session.join();
  if ("call" in operation) return await session.calls!.call(operation.call, !!operation.items);
  if ("notify" in operation) return await session.calls!.notify(operation.notify);
  if ("give_up" in operation) return await session.calls!.giveUp(operation.give_up);
  if ("outcome" in operation) return await session.calls!.settled(operation.outcome, false);
  if ("item" in operation) return await session.calls!.settled(operation.item, true);
  if ("get" in operation) return await session.register!.get();
  if ("clear" in operation) return await session.register!.clear();
  if ("changed" in operation) return await session.register!.changed();
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
