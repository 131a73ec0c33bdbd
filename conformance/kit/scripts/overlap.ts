/**
 * Scripts in which more than one thing is under way at once: a testee that is closed while it
 * waits, one that reads and writes in one wait, and one whose thread must not wait at all.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, message, pattern, pipe } from "../../reference/builder.ts";
import { VACANT, whole } from "../../reference/builder.ts";
import { fromHex } from "../../reference/bytes.ts";
import { flagOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { Transcript } from "../crc32.ts";
import { controlWord, recordWord, ring } from "../peer.ts";
import type { Hello, Wait } from "../protocol.ts";
import { Wrong } from "../verdict.ts";
import { counted, listed, type Script } from "./stage.ts";
import { rest, statesOf, Watch } from "./watch.ts";

const CAPACITY = 256;
const LONG_MS = 3_000;
/** When an endpoint is closed under a wait. */
const CLOSE_MS = 30;
/** Less than a slice among endpoints that are attached; who is woken is faster in one of three. */
const SOON_MS = 500;
const TRIES = 3;
const SPIN_MS = 400;
/** A sleep of the kit: it ends by a ring long before. */
const SLEEP_MS = 900;
/** Messages of a task that fill the ring several times over. */
const COUNT = 8;
/** The ring that a port writes. */
const OUT = 1;

export const OVERLAP_SCRIPTS: Script[] = [
  closing(
    "reader_closed_waiting",
    "A reader is closed by its own program while it waits.",
    "reader",
  ),
  closing(
    "writer_closed_waiting",
    "A writer is closed by its own program while it waits.",
    "writer",
  ),
  {
    id: "scripted/inbox_wake",
    about: "A read waits while a write of the same port takes its message into the inbox.",
    clauses: ["port.inbox_wake", "port.inbox", "wait.async_one", "wait.disarm"],
    role: "port",
    offers: ["cross"],
    async play(arena) {
      const { hello } = await arena.connect(0);
      for (const wait of hello.waits.filter((each) => each !== "poll")) {
        const fact = await crosses(arena, wait);
        if (fact !== undefined) return fact;
      }
      return undefined;
    },
  },
  {
    id: "scripted/rings_as_said",
    about: "What a testee says that it can ring, it rings.",
    clauses: ["wait.wakes", "wait.ring"],
    role: "writer",
    play: ringsAsSaid,
  },
];

/** Where the thread of a testee must not block. */
export const FORBIDDEN_SCRIPTS: Script[] = [
  {
    id: "scripted/no_block",
    about: "Calls that would have to block, where that is forbidden: they say so, and go on.",
    clauses: ["wait.no_block", "wait.disarm"],
    role: "reader",
    async play(arena) {
      await readsForbidden(arena);
      await writesForbidden(arena);
    },
  },
];

function closing(id: string, about: string, role: "reader" | "writer"): Script {
  return {
    id: `scripted/${id}`,
    about,
    clauses: [
      "pipe.close_frees",
      "pipe.close",
      "pipe.close_stores",
      "segment.state_ring",
      "wait.disarm",
    ],
    role,
    offers: ["close_ms"],
    async play(arena) {
      await closes(arena, role, closedWait((await arena.connect(0)).hello));
    },
  };
}

/** The wait under which a testee can close: on an event loop, or else on another thread. */
function closedWait({ waits }: Hello): Wait {
  return waits.includes("event") ? "event" : "block";
}

async function closes(arena: Arena, role: "reader" | "writer", wait: Wait): Promise<void> {
  let soonest = Infinity;
  for (let attempt = 0; attempt < TRIES && soonest > SOON_MS; attempt++) {
    await Watch.with(arena, role, { capacity: CAPACITY }, async (watch) => {
      const { field, own, other } = watch;
      const bells = [own, other].map((index) => watch.record(index, "bell"));
      const task = {
        role: role === "reader" ? "read" : "write",
        seed: 1,
        capacity: CAPACITY,
        count: COUNT,
        wait,
        then: "stay",
        close_ms: CLOSE_MS,
      } as const;
      const begun = performance.now();
      const ran = await watch.session.run(task, LONG_MS);
      soonest = Math.min(soonest, performance.now() - begun - CLOSE_MS);
      watch.demand(
        ran.end === "pipe.closed",
        `[pipe.close_frees] closed while it waits, and it ended with ${ran.end}, not pipe.closed`,
      );
      const state = watch.record(other, "state");
      watch.demand(state === CLOSED, `[pipe.close] the state is ${state}, not closed`);
      for (const [index, endpoint] of [own, other].entries()) {
        // Whoever closes may be another thread, and still at it.
        const isRung = await watch.until(() => watch.record(endpoint, "bell") !== bells[index]);
        watch.demand(isRung, `[segment.state_ring] the bell of endpoint ${endpoint} was not rung`);
      }
      const name = role === "reader" ? "reader_wants" : "writer_wants";
      const left = Atomics.load(field.words(), controlWord(field, 0, name));
      watch.demand(left === 0, `[wait.disarm] ${name} is still ${left}`);
    });
  }
  if (soonest <= SOON_MS) return;
  throw new Wrong(`[pipe.close_frees] in every try the wait ended ${soonest | 0} ms later or more`);
}

/** A port of two rings, of which endpoint 1 is the testee. */
function portMemory() {
  const ring = (writer: number) => ({ writer, reader: 1 - writer, capacity: CAPACITY });
  return pipe({ states: statesOf("reader"), segment: { channels: [ring(0), ring(1)] } });
}

/** Has it read and write at once. Says why that shows nothing. */
async function crosses(arena: Arena, wait: Wait): Promise<string | undefined> {
  let soonest = Infinity;
  let why: string | undefined;
  for (let attempt = 0; attempt < TRIES && soonest > SOON_MS && why === undefined; attempt++) {
    // A call that blocks looks for as long as it spins, and needs no ring to find something.
    const spin_us = wait === "block" ? 1000 * SPIN_MS : 0;
    const opening = { role: "port", endpoint: 1, spin_us } as const;
    await Watch.on(arena, portMemory(), opening, async (watch) => {
      const { field, session, own, other } = watch;
      watch.step = `a write that waits by ${wait}: `;
      const words = field.words();
      const [tail, head, wants] = ["tail", "head", "writer_wants"].map((name) =>
        controlWord(field, OUT, name)
      ) as [number, number, number];
      const task = { role: "cross", seed: 1, capacity: CAPACITY, count: COUNT, wait } as const;
      let isDone = false;
      const running = session.run({ ...task, then: "stay" }, LONG_MS).finally(() => isDone = true);
      // Room is wanted when what was written stays as it is; then both wait.
      await stands(() => Atomics.load(words, tail));
      watch.demand(!isDone, "[ring.room] all was written, and there is no room for that");
      const sleepers = wait === "event" ? field.notify(recordWord(other, "bell")) : 0;
      watch.place(whole(pattern(20, 7), { tag: 7 }));
      // As a writer that dies before it rings: only the wait for room, which spins, finds it.
      if (wait === "block") watch.setControl("tail", watch.tail);
      else watch.publish();
      const isTaken = await watch.until(() => watch.control("head") === watch.tail, 200);
      const begun = performance.now();
      while (!isDone) {
        const seen = Atomics.load(words, tail);
        Atomics.store(words, head, seen);
        if (Atomics.exchange(words, wants, 0) !== 0) ring(field, other, own);
        await rest(1);
      }
      const ran = await running;
      soonest = performance.now() - begun;
      const must = new Transcript();
      must.add(7, Uint8Array.from(fromHex(counted(20, 7))));
      watch.demand(
        ran.end === "done" && ran.count === 1 && ran.crc32 === must.crc32,
        `[port.inbox_wake] it ended with ${ran.end}, and ${ran.count} messages read, not 1`,
      );
      const left = watch.control("reader_wants");
      watch.demand(left === 0, `[wait.disarm] reader_wants is still ${left}`);
      watch.demand(watch.record(own, "state") === ATTACHED, "the kit's state has changed");
      // It should; nobody has to.
      if (!isTaken) why = "it takes nothing in while it writes, which it should";
      if (sleepers > 1) why = `[wait.async_one] ${sleepers} sleep on the bell, which should be one`;
    });
  }
  if (why !== undefined || soonest <= SOON_MS) return why;
  throw new Wrong(
    `[port.inbox_wake] in every try the read ended more than ${soonest | 0} ms after the write`,
  );
}

/** Waits until a word that has changed changes no more. */
async function stands(word: () => number): Promise<void> {
  const deadline = performance.now() + LONG_MS;
  for (let last = 0, since = 0; since < 4 && performance.now() < deadline; since++) {
    const next = word();
    if (next === 0 || next !== last) since = 0;
    last = next;
    await rest(2);
  }
}

async function ringsAsSaid(arena: Arena): Promise<string | void> {
  const names = ["agent", "futex", "wasmtime"];
  const known = names.reduce((bits, name) => bits | flagOf("wake_mechanism", name), 0);
  let why: string | undefined;
  await Watch.with(arena, "writer", { capacity: CAPACITY }, async (watch) => {
    const { field, own, other } = watch;
    const wakes = watch.record(other, "wakes");
    watch.demand((wakes & ~known) === 0, `[wait.wakes] wakes is ${wakes}: nobody knows that bit`);
    const futex = flagOf("wake_mechanism", "futex");
    // The memory of an engine is its own: by its mechanism nobody sleeps on a file.
    const isMore = field.wakes === futex && (wakes & ~futex) !== 0;
    watch.demand(!isMore, `[wait.wakes] wakes is ${wakes}, in a file, where futex is ${futex}`);
    if ((wakes & field.wakes) === 0) {
      why = "it rings nobody here, and says so";
      return;
    }
    for (let tries = 1; tries <= TRIES; tries++) {
      const bell = watch.record(own, "bell");
      const asleep = field.sleep?.(recordWord(own, "bell"), bell, SLEEP_MS);
      if (asleep === undefined) {
        why = "the kit cannot sleep here";
        return;
      }
      await rest(tries * 10); // the sleep may begin in another thread
      watch.setControl("reader_wants", watch.control("tail") + 1);
      watch.expect(await watch.session.write({ hex: "00" }, false), "ok", "write");
      const how = await asleep;
      if (how === "ok") return;
      watch.demand(how !== "timed-out", `[wait.wakes] wakes is ${wakes}, and nothing woke the kit`);
    }
    why = "it rings before the kit is asleep";
  });
  return why;
}

async function readsForbidden(arena: Arena): Promise<void> {
  await Watch.with(arena, "reader", { capacity: CAPACITY }, async (watch) => {
    const forbidden = drained([], "wait.forbidden");
    for (let tag = 0; tag < 3; tag++) {
      watch.step = `message ${tag}: `;
      const got = await watch.session.read(LONG_MS);
      watch.expect(listed(got), forbidden, "[wait.no_block] a read of nothing");
      const wants = watch.control("reader_wants");
      watch.demand(wants === 0, `[wait.disarm] reader_wants is ${wants}`);
      watch.place(whole(pattern(20, tag), { tag }));
      watch.publish();
      const item = message({ tag, hex: counted(20, tag) });
      watch.expect(listed(await watch.session.read(LONG_MS)), { items: [item] }, "a read");
    }
  });
}

async function writesForbidden(arena: Arena): Promise<void> {
  const plan = { capacity: CAPACITY, states: [VACANT, ATTACHED] };
  await Watch.with(arena, "writer", plan, async (watch) => {
    const payload = { hex: counted(96, 0) };
    for (let round = 0; round < 3; round++) {
      watch.step = `round ${round}: `;
      watch.expect(await watch.session.write(payload, true, LONG_MS), "ok", "a write with room");
      while (await watch.session.write(payload, false) === "ok");
      const got = await watch.session.write(payload, true, LONG_MS);
      watch.expect(got, "wait.forbidden", "[wait.no_block] a write without room");
      const wants = watch.control("writer_wants");
      watch.demand(wants === 0, `[wait.disarm] writer_wants is ${wants}`);
      watch.setControl("head", watch.control("tail"));
    }
  });
}
