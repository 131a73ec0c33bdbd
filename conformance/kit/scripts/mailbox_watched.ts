/**
 * Scripts for a mailbox whose words the kit changes while the testee is in a call.
 *
 * @module
 */

import { sizeOf } from "../../reference/layout.ts";
import { compare } from "../../static/difference.ts";
import { answerOf, RemoteSession } from "../../static/remote.ts";
import type { Arena, Field } from "../arena.ts";
import { Wrong } from "../verdict.ts";
import { type Script, throwProblems } from "./stage.ts";
import { rest, settles } from "./watch.ts";
import { DISPOSED, wordOf } from "./watch_mailbox.ts";

/** So much that its copy takes a while; but white space, so that what comes of it is short. */
const CAPACITY = 1_000_000;
const PAYLOAD = new TextEncoder().encode(`[1${" ".repeat(CAPACITY - 3)}]`);
const ITEM = { kind: 1, codec: 2, tag: 0, json: 1 };
/** The testee stays awake for so long, and the kit tries as long as that. */
const SPIN_US = 500_000;
const TRIES_MS = 2_000;
const LONG_MS = 3_000;
/** What a copy and a reply take, at most as a rule; who takes longer is waited for again. */
const REPLY_MS = 3;
/** The kit takes the turn away so many milliseconds after it has given it: of each size, often. */
const LEAST_MS = 0.01;

export const MAILBOX_WATCHED_SCRIPTS: Script[] = [{
  id: "scripted/mailbox_lost_turn",
  about:
    "The turn is taken away from a reader that copies: it delivers, and both words say closed.",
  clauses: ["mailbox.lost_turn", "mailbox.signal_exchange", "mailbox.complete"],
  role: "mailbox_reader",
  async play(arena) {
    const image = new Uint8Array(sizeOf("mailbox_header") + CAPACITY);
    image.set(PAYLOAD, sizeOf("mailbox_header"));
    const field = await arena.field({ size: image.length, image });
    try {
      return await lostTurn(arena, field);
    } catch (error) {
      await arena.kill(0); // it may still be in a call
      throw error;
    } finally {
      field.release();
    }
  },
}];

/** Opens the reading side, and plays with it. */
async function lostTurn(arena: Arena, field: Field): Promise<string | void> {
  const connection = await arena.connect(0);
  const handle = connection.newHandle();
  const reply = await connection.send({
    command: "open",
    handle,
    ...field.place(0),
    kind: "attach",
    role: "mailbox_reader",
    limit: CAPACITY,
    calls: false,
    values: false,
    spin_us: SPIN_US,
  });
  const opened = answerOf(reply);
  if (opened !== "ok") throw new Wrong(`attaching gave ${JSON.stringify(opened)}, not ok`);
  const session = new RemoteSession(connection, handle, "mailbox_reader");
  const isSeen = await takeAway(session, field);
  if (isSeen) await expectClosed(session, field.words());
  await connection.must({ command: "drop", handle });
  return isSeen ? undefined : "never seen between its look and its exchange";
}

/**
 * Gives the turn to the reader and takes it away again, until a message comes although the kit had
 * the turn at last: then its part was copied in between. Returns whether it came to that.
 */
async function takeAway(session: RemoteSession, field: Field): Promise<boolean> {
  const words = field.words();
  const signal = wordOf("signal");
  let reading: ReturnType<RemoteSession["read"]> | undefined;
  let isTaken = false;
  for (const end = performance.now() + TRIES_MS; performance.now() < end;) {
    reading ??= session.read(LONG_MS);
    await rest(1);
    Atomics.store(words, wordOf("length"), CAPACITY);
    Atomics.store(words, wordOf("part_count"), 1);
    Atomics.store(words, wordOf("part_index"), 0);
    // Not where a reader that is slow to reply has closed the mailbox meanwhile.
    if (Atomics.compareExchange(words, signal, 0, 1) === 0) {
      field.notify(signal);
      const delay = LEAST_MS * (REPLY_MS / LEAST_MS) ** Math.random();
      for (const from = performance.now(); performance.now() - from < delay;);
      // Where it is closed by now, that is because the turn before had been taken away.
      isTaken = Atomics.compareExchange(words, signal, 1, 0) !== 0;
      if (isTaken && !await settles(reading, REPLY_MS)) continue; // it has not looked yet
    }
    const got = await reading;
    reading = undefined;
    if ("end" in got && got.end === "nothing") continue;
    const items = "item" in got ? { items: [got.item] } : { items: [], ...got };
    throwProblems("[mailbox.complete] read", compare(items, { items: [ITEM] }));
    if (isTaken) return true;
  }
  Atomics.store(words, wordOf("status"), DISPOSED);
  Atomics.store(words, signal, DISPOSED);
  field.notify(signal);
  await reading;
  return false;
}

async function expectClosed(session: RemoteSession, words: Int32Array): Promise<void> {
  for (const name of ["status", "signal"]) {
    const found = Atomics.load(words, wordOf(name));
    if (found === DISPOSED) continue;
    const header = words.slice(0, sizeOf("mailbox_header") / 4);
    const got = new Uint8Array(header.buffer);
    throw new Wrong(`[mailbox.lost_turn] ${name} is ${found}, not ${DISPOSED}`, got);
  }
  const next = await session.read(0);
  const end = "end" in next ? next.end : "a message";
  throwProblems("[mailbox.signal_exchange] the next read", compare(end, "peer.closed"));
}
