/**
 * Scripts for a writer: the kit is a slow reader, a reader that leaves, and one that lies.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, endFrame, firstOf, message } from "../../reference/builder.ts";
import { part, pattern, pipe, text, utf8, VACANT, whole } from "../../reference/builder.ts";
import { writersPipe } from "../../reference/builder.ts";
import { fromHex, toHex } from "../../reference/bytes.ts";
import type { Drained, Item, Payload } from "../../reference/case.ts";
import { extentOf, failed } from "../../reference/encode.ts";
import { valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { RICH, SHARED } from "./cbor.ts";
import { changeState } from "../peer.ts";
import { readAll, type ReadingWay, readingWays } from "./races.ts";
import { counted, listed, type Script, Stage } from "./stage.ts";
import { statesOf, Watch } from "./watch.ts";

const CAPACITY = 256;
const RESERVE = 16;
const LATE = 2 ** 32 - 96;
const STARTS = [0, LATE];

/** A message of bytes that count up from its tag. */
function bytesOf(size: number, tag: number): Payload {
  return { tag, hex: counted(size, tag) };
}

function onStage(
  arena: Parameters<Script["play"]>[0],
  start: number,
  play: (stage: Stage) => Promise<void>,
  states = [VACANT, ATTACHED],
): Promise<void> {
  const pipe = writersPipe({ capacity: CAPACITY, start, states });
  return Stage.with(arena, "writer", pipe, {}, play);
}

/** Whether a frame fits, as ring.md says, and the pad that it needs. */
function spanOf(tail: number, size: number): { pad: number; extent: number } {
  const extent = extentOf(size);
  const toEnd = CAPACITY - tail % CAPACITY;
  return { pad: extent > toEnd ? toEnd : 0, extent };
}

export const WRITER_SCRIPTS: Script[] = [
  {
    id: "scripted/slow_reader",
    about: "A reader that gives back 16 bytes at a time: each write is done exactly when it fits.",
    clauses: ["ring.room", "ring.pad", "pipe.try_write", "ring.publish"],
    role: "writer",
    mayDecline: ["chunk_sizes"],
    async play(arena) {
      for (const start of STARTS) await onStage(arena, start, slowReader);
    },
  },
  {
    id: "scripted/sizes",
    about: "Messages of every size at every place of the area: what comes out is what went in.",
    clauses: ["frame.multipart", "frame.preamble", "frame.part", "frame.extent", "pipe.try_never"],
    role: "writer",
    async play(arena) {
      for (const start of STARTS) await onStage(arena, start, everySize);
    },
  },
  {
    id: "scripted/parts_anywhere",
    about: "A message in parts, from every place of the area: none of them is empty.",
    clauses: ["frame.part", "frame.multipart", "ring.pad"],
    role: "writer",
    async play(arena) {
      for (let start = 0; start < CAPACITY; start += 16) await onStage(arena, start, inParts);
    },
  },
  {
    id: "scripted/reader_asks",
    about:
      "A reader that asks at every distance: it is rung when `tail` gets there, and only then.",
    clauses: ["wait.exchange", "wait.ring", "wait.store_order"],
    role: "writer",
    mayDecline: ["chunk_sizes"],
    async play(arena) {
      for (const start of STARTS) await onStage(arena, start, readerAsks);
    },
  },
  {
    id: "scripted/end_at_every_step",
    about: "`end` behind any number of messages, in a full ring too; nothing follows it.",
    clauses: ["pipe.end", "pipe.end_now", "frame.end", "pipe.first_answer"],
    role: "writer",
    async play(arena) {
      for (let count = 0; count <= 7; count++) {
        await onStage(arena, LATE, (stage) => endBehind(stage, count));
      }
    },
  },
  {
    id: "scripted/writer_closes_at_every_step",
    about: "A close behind any number of messages: they stay, and nothing is added.",
    clauses: [
      "pipe.close",
      "pipe.close_stores",
      "segment.state_change",
      "segment.state_tries",
      "segment.state_ring",
    ],
    role: "writer",
    async play(arena) {
      for (let count = 0; count <= 7; count++) {
        await onStage(arena, 0, (stage) => closeBehind(stage, count));
      }
    },
  },
  {
    id: "scripted/reader_leaves_at_every_step",
    about: "A reader that closes, or fails, behind any number of messages: no more are placed.",
    clauses: ["pipe.peer_gone", "pipe.failed_reason", "pipe.end_closed"],
    role: "writer",
    async play(arena) {
      for (let count = 0; count <= 7; count++) {
        await onStage(arena, 0, (stage) => leftBehind(stage, count, CLOSED));
        await onStage(arena, 0, (stage) => leftBehind(stage, count, failed("peer.lost")));
      }
    },
  },
  {
    id: "scripted/gives_up_at_every_step",
    about: "A write that runs out of time in a ring of any fill: cancelled, or not begun at all.",
    clauses: ["pipe.owed", "frame.cancel", "pipe.owed_end", "pipe.order"],
    role: "writer",
    async play(arena) {
      for (const start of STARTS) { // from one of them, no room is left for a cancel
        for (let count = 0; count <= 7; count++) {
          await onStage(arena, start, (stage) => giveUp(stage, count, false));
          await onStage(arena, start, (stage) => giveUp(stage, count, true));
        }
      }
    },
  },
  {
    id: "scripted/lying_reader",
    about: "Every kind of bad `head`: the reader is marked, and nothing more is stored.",
    clauses: ["ring.cursor", "ring.fault", "ring.fault_stop", "pipe.fault"],
    role: "writer",
    async play(arena) {
      for (const start of STARTS) {
        // Above `tail`, below what was seen, between two frames, and half the numbers away.
        for (const lie of [16, -272, -512, -4, 2 ** 31, "back"] as const) {
          await onStage(arena, start, (stage) => lyingReader(stage, lie));
        }
      }
    },
  },
];

async function slowReader(stage: Stage): Promise<void> {
  let head = stage.tail;
  let tail = head;
  let taken = 0;
  for (let tag = 0; tag < 24;) {
    const size = [0, 20, 100, 47, 112, 1, 64][tag % 7]!;
    const { pad, extent } = spanOf(tail, size);
    const fits = tail - head + pad + extent <= CAPACITY - RESERVE;
    stage.step = `message ${tag} of ${size} bytes: `;
    const got = await stage.session.write(bytesOf(size, tag), false);
    stage.expect(got, fits ? "ok" : "full", "write");
    if (fits) {
      tail += pad + extent;
      tag++;
      await stage.controlIs("[ring.publish]", "tail", tail % 2 ** 32);
      continue;
    }
    await stage.room(CAPACITY - (tail - head) + 16);
    head += 16;
    taken++;
  }
  stage.demand(taken > 0, "the ring was never full");
  const items = Array.from({ length: 24 }, (_, tag) => {
    const size = [0, 20, 100, 47, 112, 1, 64][tag % 7]!;
    return message({ tag, hex: counted(size, tag) });
  });
  stage.step = "";
  stage.expect(await stage.take(), drained(items), "what was written");
}

async function everySize(stage: Stage): Promise<void> {
  let refused = false;
  for (let size = 0; size < 2 * CAPACITY; size += size < 40 ? 1 : 13) {
    stage.step = `a message of ${size} bytes: `;
    const got = await stage.session.write(bytesOf(size, size), false);
    // How large a message can be placed at once depends on how the port cuts; a frame always can.
    refused = got === "refused" && size > CAPACITY / 2 - 16;
    stage.expect(got, refused ? "refused" : "ok", "write into an empty ring");
    const items = refused ? [] : [message({ tag: size, hex: counted(size, size) })];
    stage.expect(await stage.take(), drained(items), "what was written");
  }
  stage.step = "";
  stage.demand(refused, "[pipe.try_never] a message of twice the capacity was placed at once");
}

/** More than one frame can take, and less than all of the ring, however a port cuts. */
const PARTS_SIZE = 120;

async function inParts(stage: Stage): Promise<void> {
  stage.step = `from ${stage.tail}: `;
  const payload = bytesOf(PARTS_SIZE, 1);
  const got = await stage.session.write(payload, false);
  if (got === "refused") return;
  stage.expect(got, "ok", "write into an empty ring");
  stage.expect(await stage.take(), drained([message(payload)]), "what was written");
}

async function readerAsks(stage: Stage): Promise<void> {
  let tail = stage.tail;
  for (let distance = 16; distance <= 96; distance += 16) {
    const wanted = (tail + distance) % 2 ** 32;
    await stage.setControl("reader_wants", wanted + 1);
    let isArmed = true;
    for (let index = 0; index < 4; index++) {
      stage.step = `asked for ${wanted}, at ${tail % 2 ** 32}: `;
      const before = await stage.record(1, "bell");
      // Half of them near the end of the area, where a pad goes before them.
      const size = [16, 0, 33, 7][index]!;
      const { pad, extent } = spanOf(tail, size);
      stage.expect(await stage.session.write(bytesOf(size, index), false), "ok", "write");
      tail += pad + extent;
      const isReached = isArmed && (tail - wanted | 0) >= 0;
      const rung = await stage.record(1, "bell") - before;
      const rings = isReached ? "rings once" : "does not ring";
      stage.demand(
        rung === Number(isReached),
        `[wait.exchange] the bell moved by ${rung}: ${rings}`,
      );
      if (isReached) isArmed = false;
      const must = isArmed ? (wanted + 1) % 2 ** 32 : 0;
      await stage.controlIs("[wait.exchange]", "reader_wants", must);
      stage.expect(
        await stage.take(),
        drained([message({ tag: index, hex: counted(size, index) })]),
        "what was written",
      );
    }
  }
}

/** Writes so many messages as fit, at most `count`, and returns what they are. */
async function fillWith(stage: Stage, count: number) {
  const items = [];
  for (let tag = 0; tag < count; tag++) {
    const got = await stage.session.write(bytesOf(20, tag), false);
    if (got === "full") break;
    stage.expect(got, "ok", "write");
    items.push(message({ tag, hex: counted(20, tag) }));
  }
  return items;
}

async function endBehind(stage: Stage, count: number): Promise<void> {
  stage.step = `behind ${count} messages: `;
  const items = await fillWith(stage, count);
  stage.expect(await stage.session.end(), "ok", "[pipe.end_now] end");
  stage.expect(await stage.session.write(bytesOf(1, 1), false), "pipe.ended", "write");
  stage.expect(await stage.session.end(), "ok", "[pipe.end_again] a second end");
  stage.expect(await stage.take(), drained(items, "ended"), "what was written");
}

async function closeBehind(stage: Stage, count: number): Promise<void> {
  stage.step = `behind ${count} messages: `;
  const items = await fillWith(stage, count);
  const before = [await stage.record(0, "bell"), await stage.record(1, "bell")];
  stage.expect(await stage.session.close(), "ok", "close");
  await stage.stateIs("[pipe.close]", 0, CLOSED);
  for (const index of [0, 1]) {
    const isRung = await stage.record(index, "bell") !== before[index];
    stage.demand(isRung, `[segment.state_ring] the bell of endpoint ${index} was not rung`);
  }
  stage.expect(await stage.session.write(bytesOf(1, 1), false), "pipe.closed", "write");
  stage.expect(await stage.take(), drained(items), "what was written");
}

async function leftBehind(stage: Stage, count: number, state: number): Promise<void> {
  stage.step = `behind ${count} messages: `;
  await fillWith(stage, count);
  const tail = await stage.control("tail");
  await stage.setState(1, state);
  const answer = state === CLOSED ? "peer.closed" : { code: "peer.failed", reason: "peer.lost" };
  stage.expect(await stage.session.write(bytesOf(1, 1), false), answer, "write");
  stage.expect(await stage.session.end(), "ok", "[pipe.end_closed] end");
  await stage.controlIs("[pipe.peer_gone]", "tail", tail);
}

/** What is owed comes before the next message, or before the end. */
async function giveUp(stage: Stage, count: number, ends: boolean): Promise<void> {
  stage.step = `behind ${count} messages${ends ? ", before the end" : ""}: `;
  const items = await fillWith(stage, count);
  stage.expect(await stage.session.write(bytesOf(600, 99), true), "wait.timeout", "write");
  // Nothing is free; what is owed is written when there is room, and before anything else.
  const first = await stage.take();
  const begun = typeof first === "object" && "items" in first ? first.items.length : 0;
  const cancelled = { report: "message.cancelled" };
  if (begun > items.length) stage.expect(first, drained([...items, cancelled]), "what was written");
  else stage.expect(first, drained(items), "what was written");
  if (ends) stage.expect(await stage.session.end(), "ok", "end");
  else stage.expect(await stage.session.write(bytesOf(5, 7), false), "ok", "the next write");
  const next = ends ? [] : [message({ tag: 7, hex: counted(5, 7) })];
  const second = await stage.take(ends ? "[pipe.owed_end]" : "[pipe.owed]");
  // Not begun at all, or cancelled before, or cancelled now.
  const owed = typeof second === "object" && "items" in second && second.items.length > next.length;
  stage.demand(!owed || begun <= items.length, "[pipe.report_once] cancelled twice");
  const must = drained(owed ? [cancelled, ...next] : next, ends ? "ended" : "nothing");
  stage.expect(second, must, "what was written then");
}

async function lyingReader(stage: Stage, lie: number | "back"): Promise<void> {
  stage.step = `head ${lie} from tail: `;
  // Around the area, so that the writer has seen `head` move; and then full, so that it looks.
  for (let tag = 0; tag < 4; tag++) {
    stage.expect(await stage.session.write(bytesOf(80, tag), false), "ok", "write");
    await stage.take();
  }
  for (let tag = 0; await stage.session.write(bytesOf(20, tag), false) !== "full"; tag++) {
    stage.demand(tag < 16, "[ring.room] the ring is never full");
  }
  const [tail, head] = [await stage.control("tail"), await stage.control("head")];
  const wrong = lie === "back" ? head - 16 : tail + lie;
  await stage.setControl("head", (wrong + 2 ** 33) % 2 ** 32);
  stage.expect(await stage.session.write(bytesOf(20, 0), false), "ring.cursor", "write");
  await stage.stateIs("[ring.fault]", 1, failed("ring.cursor"));
  await stage.setControl("head", tail);
  const next = await stage.session.write(bytesOf(1, 1), false);
  stage.expect(next, "ring.cursor", "[pipe.fault] the next write");
  stage.expect(await stage.session.end(), "ring.cursor", "[pipe.fault] end");
  await stage.controlIs("[ring.fault]", "tail", tail);
}

// Scripts that are played by every way to read that a testee offers: as values or as bytes, by
// calls that block, that do not wait, and by those of an event loop.

const WAYS_CAPACITY = 2048;
const LONG_MS = 3_000;
const BATCH = valueOf("codec", "json_batch");
const CBOR = valueOf("codec", "cbor");
const JSON_TEXT = valueOf("codec", "json");
const ELEMENTS = [{ a: 1 }, "zwei", [3], null];

export const WAY_SCRIPTS: Script[] = [
  script(
    "ways_woken",
    "A message comes while a call waits, behind one that is lost and one that is cut.",
    [
      "wait.reader_asks",
      "wait.disarm",
      "ring.release_all",
      "pipe.limit",
      "pipe.keep_parts",
      "pipe.drop_parts",
    ],
    woken,
  ),
  script(
    "ways_batch",
    "The elements of a batch, one by one, between other messages.",
    ["codec.batch_read", "codec.batch", "pipe.order"],
    batches,
  ),
  script(
    "ways_codecs",
    "Messages of all codecs, in a frame and in several, and between them CBOR that is none.",
    ["codec.bad_cbor", "codec.cbor", "codec.bad_text", "frame.multipart", "pipe.order"],
    codecs,
  ),
  script(
    "ways_ended",
    "The stream ends, the peer closes or fails, or somebody closes the reader while it waits.",
    ["pipe.close_frees", "pipe.end_once", "pipe.failed_reason", "wait.disarm"],
    ended,
  ),
];

type Play = (arena: Arena, way: ReadingWay) => Promise<void>;

function script(id: string, about: string, clauses: string[], play: Play): Script {
  return {
    id: `scripted/${id}`,
    about,
    clauses,
    role: "reader",
    async play(arena) {
      const ways = readingWays((await arena.connect(0)).hello, LONG_MS);
      for (const way of ways.filter(({ wait, waitMs }) => wait === "poll" || waitMs > 0)) {
        await play(arena, way);
      }
    },
  };
}

/** Reads until as much has come as is expected; a call that does not wait is made again. */
async function readUntil(watch: Watch, count: number, way: ReadingWay): Promise<Item[]> {
  const items: Item[] = [];
  await watch.until(() => true);
  const deadline = performance.now() + LONG_MS;
  while (items.length < count && performance.now() < deadline) {
    const got = await watch.session.read(way.waitMs, way.wait);
    if ("item" in got) items.push(got.item);
    else if (got.end !== "nothing") break;
  }
  return items;
}

async function woken(arena: Arena, way: ReadingWay): Promise<void> {
  const memory = pipe({ capacity: WAYS_CAPACITY, states: statesOf("reader") });
  const opening = { role: "reader", values: way.values, limit: 100 } as const;
  await Watch.on(arena, memory, opening, async (watch) => {
    watch.step = `${way.about}: `;
    const reading = readUntil(watch, 3, way);
    // Asleep, if it is one that sleeps; then something comes that it does not take.
    if (way.waitMs > 0) await watch.until(() => watch.control("reader_wants") !== 0, 20);
    watch.place(whole(pattern(101), { tag: 1 }), firstOf(40, pattern(16, 3), { tag: 2 }));
    watch.publish();
    if (way.waitMs > 0) await watch.until(() => watch.control("reader_wants") !== 0, 20);
    watch.place(part(pattern(24, 19), { tag: 2 }), whole(pattern(8, 5), { tag: 3 }));
    watch.publish();
    const items = [
      { report: "message.size" },
      message({ tag: 2, hex: counted(40, 3) }),
      message({ tag: 3, hex: counted(8, 5) }),
    ];
    watch.expect({ items: await reading }, { items }, "reading");
    // The space comes back with the last of them, or with the next call that finds nothing.
    watch.expect(listed(await watch.session.read(0, way.wait)), drained([]), "the next read");
    const [head, wants] = [watch.control("head"), watch.control("reader_wants")];
    watch.demand(head === watch.tail, `[ring.release_all] head is ${head}, not ${watch.tail}`);
    watch.demand(wants === 0, `[wait.disarm] reader_wants is still ${wants}`);
  });
}

async function batches(arena: Arena, way: ReadingWay): Promise<void> {
  const batch = utf8(JSON.stringify(ELEMENTS));
  const memory = pipe({
    capacity: WAYS_CAPACITY,
    states: statesOf("reader"),
    frames: [
      whole("eins", { tag: 1 }),
      whole(batch, { codec: BATCH, tag: 2 }),
      whole(utf8("4"), { codec: JSON_TEXT, tag: 3 }),
      endFrame(),
    ],
  });
  await Watch.on(arena, memory, { role: "reader", values: way.values }, async (watch) => {
    watch.step = `${way.about}: `;
    const elements = ELEMENTS.map((json) => message({ codec: JSON_TEXT, tag: 2, json }));
    const items: Item[] = way.values
      ? [text("eins", 1), ...elements, message({ codec: JSON_TEXT, tag: 3, json: 4 })]
      : [
        message({ codec: valueOf("codec", "text"), tag: 1, hex: toHex(utf8("eins")) }),
        message({ codec: BATCH, tag: 2, hex: toHex(batch) }),
        message({ codec: JSON_TEXT, tag: 3, hex: toHex(utf8("4")) }),
      ];
    watch.expect({ items: await readUntil(watch, items.length, way) }, { items }, "reading");
    const got = await watch.session.read(way.waitMs, way.wait);
    watch.expect(listed(got), drained([], "ended"), "the next read");
  });
}

async function codecs(arena: Arena, way: ReadingWay): Promise<void> {
  const { lacks } = (await arena.connect(0)).hello;
  if (way.values && lacks.includes("cbor")) return; // it may report it, or hand it out
  const rich = fromHex(RICH);
  const cut = rich.subarray(0, -1);
  const isBad = [false, true, true, false];
  const payloads = [rich, cut, Uint8Array.from([...rich, 0]), fromHex(SHARED)];
  const json = { codec: JSON_TEXT, tag: 3 };
  const memory = pipe({
    capacity: WAYS_CAPACITY,
    states: statesOf("reader"),
    frames: [
      whole("eins", { tag: 1 }),
      ...payloads.flatMap((payload, index) => [
        whole(payload, { codec: CBOR, tag: 2 }),
        whole(utf8(`[${index}]`), json),
      ]),
      // The same two, each cut in the middle.
      ...[cut, rich].flatMap((payload) => [
        firstOf(payload.length, payload.slice(0, 80), { codec: CBOR, tag: 4 }),
        part(payload.slice(80), { codec: CBOR, tag: 4 }),
      ]),
      endFrame(),
    ],
  });
  await Watch.on(arena, memory, { role: "reader", values: way.values }, async (watch) => {
    watch.step = `${way.about}: `;
    const item = (payload: Uint8Array, tag: number, isWrong: boolean): Item =>
      way.values && isWrong ? { report: "message.codec" } : message({
        codec: CBOR,
        tag,
        ...(way.values ? { cbor: toHex(payload) } : hexOf(payload)),
      });
    const other = (codec: number, tag: number, content: string, value: object) =>
      message({ codec, tag, ...(way.values ? value : hexOf(utf8(content))) });
    const items: Item[] = [
      other(valueOf("codec", "text"), 1, "eins", { text: "eins" }),
      ...payloads.flatMap((payload, index) => [
        item(payload, 2, isBad[index]!),
        other(JSON_TEXT, 3, `[${index}]`, { json: [index] }),
      ]),
      item(cut, 4, true),
      item(rich, 4, false),
    ];
    watch.expect({ items: await readUntil(watch, items.length, way) }, { items }, "reading");
    const got = await watch.session.read(way.waitMs, way.wait);
    watch.expect(listed(got), drained([], "ended"), "the next read");
  });
}

function hexOf(payload: Uint8Array): { hex: string } {
  return { hex: toHex(payload) };
}

async function ended(arena: Arena, way: ReadingWay): Promise<void> {
  const memory = pipe({ capacity: WAYS_CAPACITY, states: statesOf("reader") });
  const terminated = failed("peer.terminated");
  const ways: [string, number, boolean, Drained][] = [
    ["the stream ends", 0, false, drained([], "ended")],
    ["the writer closes", CLOSED, false, drained([], "peer.closed")],
    ["the writer fails", terminated, false, drained([], "peer.failed", "peer.terminated")],
    ["the reader is closed", CLOSED, true, drained([], "pipe.closed")],
    ["the reader is marked", terminated, true, drained([], "pipe.failed", "peer.terminated")],
  ];
  for (const [about, state, isOwn, must] of ways) {
    await Watch.on(arena, memory, { role: "reader", values: way.values }, async (watch) => {
      watch.step = `${about} (${way.about}): `;
      const reading = watch.session.read(way.waitMs, way.wait);
      if (way.waitMs > 0) await watch.until(() => watch.control("reader_wants") !== 0, 20);
      if (state === 0) {
        watch.place(endFrame());
        watch.publish();
      } else changeState(watch.field, isOwn ? watch.other : watch.own, state);
      watch.expect(await readAll(watch, await reading, way.wait), must, "[pipe.close_frees] read");
      const wants = watch.control("reader_wants");
      watch.demand(wants === 0, `[wait.disarm] reader_wants is still ${wants}`);
    });
  }
}
