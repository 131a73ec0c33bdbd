/**
 * Races for a mailbox: it is closed, and overwritten, while the testee is in a call.
 *
 * @module
 */

import { utf8 } from "../../reference/builder.ts";
import type { Arena } from "../arena.ts";
import type { Step } from "../race_orders.ts";
import { Aim, tries } from "./race.ts";
import type { Script } from "./stage.ts";
import { AREA, closeStores, MailboxWatch, wordOf } from "./watch_mailbox.ts";

/** A part that takes a while to be copied. */
const CAPACITY = 262_144;
const VALUE = "abcdefghijklmnop".repeat(CAPACITY / 16 - 2);
const PAYLOAD = utf8(JSON.stringify([VALUE]));
const WAIT_MS = 2_000;
const TRIES = 24;
const TRIES_MS = 80;
/** What a call takes at first guess, until the command has got there. */
const CALL_US = 200;
const GARBAGE = 0x5a5a5a5a;

export const MAILBOX_RACES: Script[] = [
  {
    id: "mailbox/race_reader_closed",
    about:
      "A close at any moment of a read: a part is whole, or there is none; what is taken counts.",
    clauses: [
      "mailbox.read_status",
      "mailbox.signal_exchange",
      "mailbox.complete",
      "mailbox.closed",
    ],
    role: "mailbox_reader",
    async play(arena) {
      const aim = new Aim(CALL_US);
      for (const attempt of tries(TRIES, TRIES_MS)) {
        await readerClosed(arena, aim, attempt % 2 === 0);
      }
    },
  },
  {
    id: "mailbox/race_writer_closed",
    about: "A close at any moment of a write: it stays.",
    clauses: ["mailbox.signal_exchange", "mailbox.closed"],
    role: "mailbox_writer",
    async play(arena) {
      const aim = new Aim(CALL_US);
      for (const attempt of tries(TRIES, TRIES_MS)) {
        await writerClosed(arena, aim, attempt % 2 === 0);
      }
    },
  },
  {
    id: "mailbox/race_copied",
    about: "The area is overwritten as soon as the turn is given back: the part was copied before.",
    clauses: ["mailbox.copy"],
    role: "mailbox_reader",
    async play(arena) {
      for (const _ of tries(12, TRIES_MS)) await overwritten(arena);
    },
  },
];

async function readerClosed(arena: Arena, aim: Aim, isOriginal: boolean): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_reader", CAPACITY, async (watch) => {
    const { field, session } = watch;
    watch.put(PAYLOAD);
    const signal = wordOf("signal");
    const steps: Step[] = [
      { pauseUs: aim.next() },
      { load: signal },
      { store: closeStores(isOriginal) },
    ];
    const racing = field.race({ do: "steps", steps });
    const reading = session.read(WAIT_MS);
    const [before] = await racing.done;
    field.notify(signal);
    aim.tell(before === 1 ? -1 : 1);
    const first = await reading;
    if ("item" in first) {
      const isWhole = "json" in first.item && first.item.json === VALUE;
      watch.demand(isWhole, "[mailbox.copy] read gave another value than was written");
    }
    watch.demand(
      "item" in first || before === 1,
      `[mailbox.complete] the part was taken, and read gave ${JSON.stringify(first)}`,
    );
    const last = "item" in first ? await session.read(WAIT_MS) : first;
    watch.expect(
      { items: [], ...last },
      { items: [], end: "peer.closed" },
      "[mailbox.read_status] read",
    );
    watch.demandClosed();
  });
}

async function writerClosed(arena: Arena, aim: Aim, isOriginal: boolean): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_writer", CAPACITY, async (watch) => {
    const signal = wordOf("signal");
    const steps: Step[] = [
      { pauseUs: aim.next() },
      { load: signal },
      { store: closeStores(isOriginal) },
    ];
    const racing = watch.field.race({ do: "steps", steps });
    const writing = watch.session.write({ json: [VALUE] }, true, WAIT_MS);
    const [before] = await racing.done;
    watch.field.notify(signal);
    aim.tell(before === 0 ? -1 : 1);
    const got = await writing;
    const must = before === 1 ? ["ok"] : ["ok", "peer.closed"];
    watch.demand(
      typeof got === "string" && must.includes(got),
      `[mailbox.closed] write gave ${JSON.stringify(got)}, not ${must.join(" or ")}`,
    );
    watch.demandClosed();
  });
}

async function overwritten(arena: Arena): Promise<void> {
  await MailboxWatch.with(arena, "mailbox_reader", CAPACITY, async (watch) => {
    watch.put(PAYLOAD);
    const area = AREA >> 2;
    const steps: Step[] = [
      { while: [wordOf("signal"), 1] },
      { fill: { from: area, to: area + CAPACITY / 4, value: GARBAGE } },
    ];
    const racing = watch.field.race({ do: "steps", steps });
    await racing.begun;
    const got = await watch.session.read(WAIT_MS);
    await racing.stop();
    const isWhole = "item" in got && "json" in got.item && got.item.json === VALUE;
    watch.demand(isWhole, "[mailbox.copy] read gave another value than was written");
  });
}
