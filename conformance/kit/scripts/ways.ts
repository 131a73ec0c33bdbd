/**
 * Scripts that are played by every way to read that a testee offers: as values or as bytes, by
 * calls that block, that do not wait, and by those of an event loop.
 *
 * @module
 */

import { CLOSED, drained, endFrame, firstOf, message, part } from "../../reference/builder.ts";
import { pattern, pipe, text, utf8, whole } from "../../reference/builder.ts";
import { fromHex, toHex } from "../../reference/bytes.ts";
import type { Drained, Item } from "../../reference/case.ts";
import { failed } from "../../reference/encode.ts";
import { valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { RICH, SHARED } from "../cbor_values.ts";
import { changeState } from "../peer.ts";
import { type ReadingWay, readingWays } from "./race.ts";
import { readAll } from "./races_read.ts";
import { counted, listed, type Script } from "./stage.ts";
import { statesOf, Watch } from "./watch.ts";

const CAPACITY = 2048;
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
  const memory = pipe({ capacity: CAPACITY, states: statesOf("reader") });
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
    capacity: CAPACITY,
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
    capacity: CAPACITY,
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
  const memory = pipe({ capacity: CAPACITY, states: statesOf("reader") });
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
