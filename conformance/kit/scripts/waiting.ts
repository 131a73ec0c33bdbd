/**
 * Scripts in which the testee waits while the kit acts: what it asks for, what wakes it, and what
 * it sees of memory that changes under it.
 *
 * @module
 */

import { CLOSED, drained, message, pattern, whole } from "../../reference/builder.ts";
import { toHex } from "../../reference/bytes.ts";
import { failed, type FramePlan } from "../../reference/encode.ts";
import { changeState, recordWord } from "../peer.ts";
import { counted, listed, type Script } from "./stage.ts";
import { PAYLOAD_AT, rest, wakeAll, Watch } from "./watch.ts";

const CAPACITY = 256;
const QUARTER = CAPACITY / 4;
const LATE = 2 ** 32 - 96;
/** How long a call may wait: far longer than anything that is to wake it. */
const LONG_MS = 3_000;
/** How often all sleepers are to be woken. */
const ROUNDS = 3;

/** A message of 20 bytes, extent 48. */
function small(tag: number): FramePlan {
  return whole(pattern(20, tag), { tag });
}

function smallItem(tag: number) {
  return message({ tag, hex: counted(20, tag) });
}

export const WAITING_SCRIPTS: Script[] = [
  script(
    "reader_sleeps",
    "A reader that sleeps asks for its head + 16, and is woken by a message.",
    [
      "wait.reader_asks",
      "wait.disarm",
      "ring.release_all",
    ],
    "reader",
    readerSleeps,
  ),
  script(
    "writer_sleeps",
    "A writer that sleeps asks for what it needs, and is woken by room.",
    [
      "wait.writer_asks",
      "wait.writer_more",
      "wait.disarm",
      "ring.publish_all",
    ],
    "writer",
    writerSleeps,
  ),
  script(
    "spurious_wakes",
    "Rings for nothing: the reader waits on, for a message or until its time is up.",
    [
      "wait.loop",
      "wait.deadline",
      "wait.disarm",
    ],
    "reader",
    spuriousWakes,
  ),
  script(
    "all_sleepers",
    "All that sleep on a bell are woken, not one of them.",
    [
      "wait.ring",
      "wait.exchange",
    ],
    "writer",
    allSleepers,
  ),
  script(
    "closed_asleep",
    "The peer closes or fails while the reader sleeps.",
    [
      "pipe.close_frees",
      "segment.state_ring",
      "wait.recheck",
    ],
    "reader",
    closedAsleep,
  ),
  script(
    "supervised_asleep",
    "A supervisor closes or fails the reader itself while it sleeps.",
    [
      "pipe.close_frees",
      "segment.own_state",
    ],
    "reader",
    supervisedAsleep,
  ),
  script(
    "writer_closed_asleep",
    "The reader leaves while the writer sleeps for room.",
    [
      "pipe.peer_gone",
      "pipe.close_frees",
    ],
    "writer",
    writerClosedAsleep,
  ),
  script(
    "payload_first",
    "Whoever sees `tail` sees the payload behind it.",
    [
      "ring.publish",
      "frame.header",
    ],
    "writer",
    payloadFirst,
  ),
  script(
    "copied_first",
    "Room is given back when the payload was copied, and not before.",
    [
      "ring.release",
      "ring.head_owner",
    ],
    "reader",
    copiedFirst,
  ),
  script(
    "flipped_size",
    "A size that changes all the time: the one that was checked is the one used.",
    [
      "frame.check",
      "ring.fault",
      "ring.fault_stop",
    ],
    "reader",
    flippedSize,
  ),
];

function script(
  id: string,
  about: string,
  clauses: string[],
  role: "reader" | "writer",
  play: Script["play"],
): Script {
  return { id: `scripted/${id}`, about, clauses, role, play };
}

type Arena = Parameters<Script["play"]>[0];

async function readerSleeps(arena: Arena): Promise<void> {
  await Watch.with(arena, "reader", { capacity: CAPACITY, start: LATE }, async (watch) => {
    for (let tag = 0; tag < 3; tag++) {
      watch.step = `message ${tag}: `;
      const reading = watch.session.read(LONG_MS);
      await watch.asked("reader_wants");
      watch.controlIs("[wait.reader_asks]", "reader_wants", (watch.tail + 16 | 1) >>> 0);
      watch.place(whole(pattern(8, tag), { tag }));
      watch.publish();
      const item = message({ tag, hex: counted(8, tag) });
      watch.expect(listed(await reading), { items: [item] }, "read");
      watch.controlIs("[wait.disarm]", "reader_wants", 0);
    }
  });
}

async function writerSleeps(arena: Arena): Promise<void> {
  await Watch.with(arena, "writer", { capacity: CAPACITY }, async (watch) => {
    const { session } = watch;
    const payload = { hex: counted(80, 0) };
    // Three of extent 96, and the pad before the third, do not fit 256 with the reserve.
    for (let tag = 0; tag < 2; tag++) {
      watch.expect(await session.write(payload, false), "ok", "write");
    }
    const writing = session.write(payload, true, LONG_MS);
    // What the third needs, if it is not cut; and a quarter of the ring more, but for no longer.
    const exact = 192 + 64 + 96 + 16 - CAPACITY;
    const isKnown = (wants: number) =>
      wants % 16 === 1 && wants >= 17 && wants <= exact + QUARTER + 1;
    const first = await watch.asked("writer_wants");
    watch.demand(isKnown(first), `[wait.writer_asks] writer_wants is ${first}, ${exact} is needed`);
    const isLess = await watch.until(() => {
      const wants = watch.control("writer_wants");
      return wants !== 0 && wants <= exact + 1;
    });
    watch.demand(isLess, `[wait.writer_more] writer_wants stays above ${exact}, which is needed`);
    const tail = watch.control("tail");
    watch.demand(tail >= 192, `[ring.publish_all] tail is ${tail}, not 192`);
    watch.release(192);
    watch.expect(await writing, "ok", "write");
    watch.controlIs("[wait.disarm]", "writer_wants", 0);
  });
}

async function spuriousWakes(arena: Arena): Promise<void> {
  await Watch.with(arena, "reader", { capacity: CAPACITY }, async (watch) => {
    // A wait that a ring for nothing has ended says `nothing`, and not what comes later.
    const reading = watch.session.read(LONG_MS);
    for (let index = 0; index < 10; index++) {
      await rest(5);
      watch.ringOther();
    }
    watch.place(small(0));
    watch.publish();
    watch.expect(listed(await reading), { items: [smallItem(0)] }, "[wait.loop] read");
    watch.expect(listed(await watch.session.read(20)), drained([]), "the next read");
    watch.controlIs("[wait.disarm]", "reader_wants", 0);
  });
}

async function allSleepers(arena: Arena): Promise<string | void> {
  let why: string | undefined;
  await Watch.with(arena, "writer", { capacity: CAPACITY }, async (watch) => {
    const bell = recordWord(watch.own, "bell");
    for (let round = 0; round < ROUNDS && why === undefined; round++) {
      why = await wakeAll(watch.field, bell, "[wait.ring]", async () => {
        watch.setControl("reader_wants", watch.control("tail") + 16 | 1);
        watch.expect(await watch.session.write({ hex: "00" }, false), "ok", "write");
        watch.release(watch.control("tail"));
      });
    }
  });
  return why;
}

async function closedAsleep(arena: Arena): Promise<void> {
  for (const state of [CLOSED, failed("peer.terminated")]) {
    await Watch.with(arena, "reader", { capacity: CAPACITY }, async (watch) => {
      watch.step = `state ${state}: `;
      const reading = watch.session.read(LONG_MS);
      await watch.asked("reader_wants");
      watch.place(small(0));
      watch.setControl("tail", watch.tail); // the last word of a writer that rings no more
      changeState(watch.field, watch.own, state);
      watch.expect(listed(await reading), { items: [smallItem(0)] }, "read");
      const end = state === CLOSED
        ? drained([], "peer.closed")
        : drained([], "peer.failed", "peer.terminated");
      const next = listed(await watch.session.read(LONG_MS));
      watch.expect(next, end, "the next read");
    });
  }
}

async function supervisedAsleep(arena: Arena): Promise<void> {
  for (const state of [CLOSED, failed("peer.terminated")]) {
    await Watch.with(arena, "reader", { capacity: CAPACITY }, async (watch) => {
      watch.step = `state ${state}: `;
      const reading = watch.session.read(LONG_MS);
      await watch.asked("reader_wants");
      changeState(watch.field, watch.other, state);
      const end = state === CLOSED
        ? drained([], "pipe.closed")
        : drained([], "pipe.failed", "peer.terminated");
      watch.expect(listed(await reading), end, "read");
    });
  }
}

async function writerClosedAsleep(arena: Arena): Promise<void> {
  for (const state of [CLOSED, failed("peer.terminated")]) {
    await Watch.with(arena, "writer", { capacity: CAPACITY }, async (watch) => {
      watch.step = `state ${state}: `;
      const payload = { hex: counted(80, 0) };
      for (let tag = 0; tag < 2; tag++) await watch.session.write(payload, false);
      const writing = watch.session.write(payload, true, LONG_MS);
      await watch.asked("writer_wants");
      changeState(watch.field, watch.own, state);
      const end = state === CLOSED
        ? "peer.closed"
        : { code: "peer.failed", reason: "peer.terminated" };
      watch.expect(await writing, end, "write");
      const tail = watch.control("tail");
      await rest(5);
      watch.controlIs("[pipe.peer_gone]", "tail", tail);
    });
  }
}

async function payloadFirst(arena: Arena): Promise<void> {
  await Watch.with(arena, "writer", { capacity: CAPACITY }, async (watch) => {
    for (let tag = 1; tag <= 10; tag++) {
      watch.step = `message ${tag}: `;
      const payload = pattern(64, tag);
      const at = watch.pipe.data + watch.control("tail") % CAPACITY;
      const toEnd = CAPACITY - watch.control("tail") % CAPACITY;
      const place = toEnd < 80 ? watch.pipe.data : at;
      const before = watch.control("tail");
      const writing = watch.session.write({ tag, hex: toHex(payload) }, true, LONG_MS);
      await watch.until(() => watch.control("tail") !== before);
      const seen = watch.bytes().slice();
      const wanted = seen.slice();
      wanted.set(payload, place + PAYLOAD_AT);
      watch.same("[ring.publish] tail had moved before the payload was there", seen, wanted);
      watch.expect(await writing, "ok", "write");
      watch.release(watch.control("tail"));
      watch.bytes().fill(0, watch.pipe.data, watch.pipe.data + CAPACITY);
    }
  });
}

async function copiedFirst(arena: Arena): Promise<void> {
  await Watch.with(arena, "reader", { capacity: CAPACITY }, async (watch) => {
    for (let tag = 0; tag < 3; tag++) {
      watch.step = `message ${tag}: `;
      const at = watch.pipe.data + watch.tail % CAPACITY;
      watch.place(whole(pattern(64, tag), { tag }));
      watch.publish();
      const head = watch.control("head");
      const reading = watch.session.read(LONG_MS);
      await watch.until(() => watch.control("head") !== head);
      // It is the writer's again.
      watch.bytes().fill(0xee, at, at + 80);
      const item = message({ tag, hex: counted(64, tag) });
      watch.expect(listed(await reading), { items: [item] }, "[ring.release] read");
    }
  });
}

async function flippedSize(arena: Arena): Promise<void> {
  const item = message({ hex: counted(40, 0) });
  for (let attempt = 0; attempt < 24; attempt++) {
    await Watch.with(arena, "reader", { capacity: CAPACITY }, async (watch) => {
      watch.step = `attempt ${attempt}: `;
      watch.place(whole(pattern(40)));
      const size = watch.pipe.data >> 2;
      const words = watch.field.words();
      watch.publish();
      const reading = watch.session.read(LONG_MS);
      let isDone = false;
      const done = reading.finally(() => isDone = true);
      while (!isDone) {
        // As fast as it goes, with a look now and then at whether somebody has replied; and either
        // value stands there while nobody flips.
        const flips = 2_000 + Math.floor(2 * Math.random());
        for (let flip = 0; flip < flips; flip++) Atomics.store(words, size, flip % 2 ? 2_000 : 40);
        await rest(0);
      }
      const got = listed(await done);
      // Either what was checked and good, or what was checked and refused.
      const isRefused = "end" in got && got.end === "frame.size";
      if (!isRefused) watch.expect(got, { items: [item] }, "[frame.check] read");
    });
  }
}
