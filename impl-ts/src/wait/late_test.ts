/** `lateWakes`: slices that end with something there, for which nobody rang. */

import { assertEquals } from "@std/assert";
import { pipeSegment, watched } from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { MailboxReader, MailboxWriter } from "../mailbox/mailbox.ts";
import { Reader, statsOf, Writer } from "../pipe/ends.ts";
import { agentMechanism, type Mechanism } from "./mechanism.ts";

/** Longer than any slice, and shorter than one. */
const LONG = { timeout: 5_000 };
const SHORT = { timeout: 50 };

/** Sleeps that end as is told, and with whatever happens meanwhile. */
function ending(isRung: boolean, act: () => void): Mechanism {
  return {
    ...watched(() => {}),
    sleep() {
      act();
      return isRung;
    },
  };
}

/** A reader whose first sleep ends so, when a message is there. */
function readerThatWakes(isRung: boolean, options: { timeout: number }): number {
  const segment = pipeSegment();
  const writer = Writer.attach<number>(segment);
  const mechanism = ending(isRung, () => writer.write(1));
  const reader = Reader.attach<number>(segment, { spin: 0, mechanism });
  assertEquals(reader.read(options), 1);
  return statsOf(reader).lateWakes;
}

Deno.test("Stats.lateWakes counts slices that end with a message there, and nothing else", () => {
  assertEquals(readerThatWakes(false, LONG), 1);
  assertEquals(readerThatWakes(true, LONG), 0);
  assertEquals(readerThatWakes(false, SHORT), 0, "the deadline has ended it");
});

Deno.test("Stats.lateWakes leaves out slices that find nothing", () => {
  const segment = pipeSegment();
  Writer.attach(segment);
  let sleeps = 0;
  const mechanism = ending(false, () => sleeps++);
  const reader = Reader.attach(segment, { spin: 0, mechanism });
  assertEquals([reader.read({ timeout: 20 }), statsOf(reader).lateWakes], [undefined, 0]);
  assertEquals(sleeps > 0, true);
});

/** A reader in an event loop, for which a message comes, with a ring or without one. */
async function readerInLoop(isRung: boolean): Promise<number> {
  const segment = pipeSegment();
  const writer = Writer.attach<number>(segment);
  // Who watches its peers has short slices.
  const mechanism = { ...watched(() => {}), checkPeers: () => {} };
  const reader = Reader.attach<number>(segment, { spin: 0, mechanism });
  const reading = reader.readAsync(LONG);
  const wants = segment.words(512, 512);
  if (!isRung) Atomics.store(wants, layout.RING_READER_WANTS_WORD, 0);
  writer.write(1);
  assertEquals(await reading, 1);
  return statsOf(reader).lateWakes;
}

Deno.test("Stats.lateWakes counts those of asynchronous calls", async () => {
  assertEquals([await readerInLoop(false), await readerInLoop(true)], [1, 0]);
});

/** A mailbox's reader whose first sleep ends so, when a part is there. */
function mailboxThatWakes(isRung: boolean, options: { timeout: number }): number {
  const memory = new SharedArrayBuffer(64);
  const writer = MailboxWriter.attach<number>(memory);
  const mechanism = ending(isRung, () => writer.write(1));
  const reader = MailboxReader.attach<number>(memory, { spin: 0, mechanism });
  assertEquals(reader.read(options), 1);
  assertEquals(reader.stats.parks, 1);
  return reader.stats.lateWakes;
}

Deno.test("MailboxReader.stats counts slices that end with a part there", () => {
  assertEquals(mailboxThatWakes(false, LONG), 1);
  assertEquals(mailboxThatWakes(true, LONG), 0);
  assertEquals(mailboxThatWakes(false, SHORT), 0, "the deadline has ended it");
});

Deno.test("MailboxWriter.stats counts those of asynchronous calls", async () => {
  for (const isRung of [false, true]) {
    const agent = agentMechanism();
    const memory = new SharedArrayBuffer(64);
    const writer = MailboxWriter.attach<number>(memory, { spin: 0 });
    writer.write(1);
    const writing = writer.writeAsync(2, LONG);
    // What the peer stores, and the wake that it owes, or does not give.
    const words = new Int32Array(memory);
    await new Promise((resolve) => setTimeout(resolve, 5));
    Atomics.store(words, 1, 0);
    if (isRung) agent.notify(words, 1);
    await writing;
    assertEquals(writer.stats.lateWakes, isRung ? 0 : 1);
  }
});
