/**
 * Scripts for what a writer asks for when it waits, and what it leaves behind when it does no more.
 *
 * @module
 */

import { CLOSED } from "../../reference/builder.ts";
import type { Payload } from "../../reference/case.ts";
import { extentOf, failed } from "../../reference/encode.ts";
import { limitOf, valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { changeState } from "../peer.ts";
import { counted, type Script } from "./stage.ts";
import { rest, Watch } from "./watch.ts";

const CAPACITY = 256;
const QUARTER = CAPACITY / 4;
const RESERVE = limitOf("ring_reserve");
/** At the beginning of the area too, so that the same fits. */
const LATE = 2 ** 32 - CAPACITY;
const LONG_MS = 3_000;
const BRIEF_MS = 5;
const BATCH = valueOf("codec", "json_batch");

/** A ring that is filled by messages of these sizes, and what is to be written then. */
interface Full {
  about: string;
  sizes: number[];
  payload: Payload;
  size: number;
}

/** Nobody can cut a message without a byte, and nobody may cut a batch. */
const EMPTY: Payload = { hex: "" };
/** A batch of one text that takes so many bytes. */
const batch = (size: number): Payload => ({
  codec: BATCH,
  text: JSON.stringify(["x".repeat(size - 4)]),
});

const FULL: Full[] = [
  { about: "an empty message", sizes: [112, 96], payload: EMPTY, size: 0 },
  { about: "a batch", sizes: [112, 80], payload: batch(60), size: 60 },
  { about: "a batch behind a pad", sizes: [80, 80], payload: batch(80), size: 80 },
  { about: "a pad and a batch of all the ring", sizes: [112, 0], payload: batch(112), size: 112 },
];

export const ASKING_SCRIPTS: Script[] = [
  {
    id: "scripted/writer_asks_room",
    about: "What a writer asks for: the head at which pad and frame fit, and not 16 bytes less.",
    clauses: ["wait.writer_asks", "wait.writer_more", "ring.room"],
    role: "writer",
    mayDecline: ["chunk_sizes"],
    async play(arena) {
      const lacks = (await arena.connect(0)).hello.lacks;
      for (const start of [0, LATE]) {
        for (const full of FULL) {
          if (full.payload.codec === BATCH && lacks.includes("batches")) continue;
          await asks(arena, full, start);
        }
      }
    },
  },
  {
    id: "scripted/writer_disarms",
    about: "A writer that does not wait any more asks for nothing, however its wait has ended.",
    clauses: ["wait.disarm", "pipe.close_frees", "pipe.peer_gone"],
    role: "writer",
    play: disarms,
  },
];

async function asks(arena: Arena, full: Full, start: number): Promise<void> {
  await Watch.with(arena, "writer", { capacity: CAPACITY, start }, async (watch) => {
    const { session } = watch;
    watch.step = `${full.about}, from ${start}: `;
    let tail = start;
    const spanOf = (size: number) => {
      const toEnd = CAPACITY - tail % CAPACITY;
      return (extentOf(size) > toEnd ? toEnd : 0) + extentOf(size);
    };
    for (const [tag, size] of full.sizes.entries()) {
      watch.expect(await session.write({ tag, hex: counted(size, tag) }, false), "ok", "write");
      tail = (tail + spanOf(size)) % 2 ** 32;
    }
    const found = watch.control("tail");
    watch.demand(found === tail, `[ring.pad] tail is ${found}, not ${tail}`);
    const exact = (tail + spanOf(full.size) + RESERVE - CAPACITY + 2 ** 32) % 2 ** 32;
    // The first wait of an endpoint may be about other things first, such as who is still alive.
    const first = await session.write({ ...full.payload, tag: 8 }, true, BRIEF_MS);
    watch.expect(first, "wait.timeout", "a first write");
    const writing = session.write({ ...full.payload, tag: 9 }, true, LONG_MS);
    const seen = new Set<number>([await watch.asked("writer_wants")]);
    // Whatever it asks for, for a while: a little more at first, and then what it needs.
    const isExact = await watch.until(() => {
      const wants = watch.control("writer_wants");
      if (wants !== 0) seen.add(wants);
      return wants === (exact | 1) >>> 0;
    });
    const most = Math.min(QUARTER, tail - exact + (tail < exact ? 2 ** 32 : 0));
    for (const wants of seen) {
      const more = (wants & ~1) - exact | 0;
      const isGood = (wants & 1) === 1 && more % 16 === 0 && more >= 0;
      const fact = `writer_wants is ${wants}, and ${exact} is needed`;
      watch.demand(isGood, `[wait.writer_asks] ${fact}`);
      watch.demand(more <= most, `[wait.writer_more] ${fact}, and at most ${most} more`);
    }
    const never = `writer_wants is never ${exact}, which is needed`;
    watch.demand(isExact, `[wait.writer_asks] [wait.writer_more] ${never}`);
    // One frame less than that is not enough, and that is.
    if (exact !== (start + 16) % 2 ** 32) watch.release((exact - 16 + 2 ** 32) % 2 ** 32);
    watch.ringOther();
    await rest(3);
    watch.demand(watch.control("tail") === tail, "[ring.room] it was written without room for it");
    watch.release(exact);
    watch.expect(await writing, "ok", "write");
    const left = watch.control("writer_wants");
    watch.demand(left === 0, `[wait.disarm] writer_wants is still ${left}`);
  });
}

/** How a wait for room ends: what the kit does, and what the write must then give. */
const ENDS: [string, (watch: Watch) => void, unknown][] = [
  ["its time is up", () => {}, "wait.timeout"],
  ["room comes, and a ring that nobody asked for", (watch) => {
    // As if somebody else had rung: the request stands as it was.
    watch.setControl("head", watch.control("tail"));
    watch.ringOther();
  }, "ok"],
  ["the reader closes", (watch) => changeState(watch.field, watch.own, CLOSED), "peer.closed"],
  ["the writer is closed", (watch) => changeState(watch.field, watch.other, CLOSED), "pipe.closed"],
  ["the writer is marked", (watch) => {
    changeState(watch.field, watch.other, failed("peer.terminated"));
  }, { code: "pipe.failed", reason: "peer.terminated" }],
];

async function disarms(arena: Arena): Promise<void> {
  const { hello } = await arena.connect(0);
  const waits = hello.offers?.includes("ways")
    ? hello.waits.filter((wait) => wait !== "poll")
    : [undefined];
  for (const wait of waits) {
    for (const [about, act, must] of ENDS) {
      await Watch.with(arena, "writer", { capacity: CAPACITY }, async (watch) => {
        watch.step = `${wait ?? "block"}, ${about}: `;
        for (let tag = 0; tag < 2; tag++) {
          watch.expect(await watch.session.write({ hex: counted(96, tag) }, false), "ok", "write");
        }
        const waitMs = must === "wait.timeout" ? 40 : LONG_MS;
        const writing = watch.session.write({ hex: counted(96, 9) }, true, waitMs, wait);
        await watch.asked("writer_wants");
        act(watch);
        watch.expect(await writing, must as string, "[pipe.close_frees] write");
        const left = watch.control("writer_wants");
        watch.demand(left === 0, `[wait.disarm] writer_wants is still ${left}`);
      });
    }
  }
}
