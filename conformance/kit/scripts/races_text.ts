/**
 * A race with a reader that decodes: a long text in which a few letters change all the time, into
 * bytes that are no text, and back. What is delivered is what was checked.
 *
 * @module
 */

import { pipe, utf8, whole } from "../../reference/builder.ts";
import type { Item } from "../../reference/case.ts";
import { sizeOf, valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import type { Flip } from "../race_orders.ts";
import { type ReadingWay, readingWays, tries } from "./race.ts";
import type { Script } from "./stage.ts";
import { statesOf, Watch } from "./watch.ts";

const CAPACITY = 65_536;
/** Twelve kilobytes: long enough for something to happen in the middle. */
const LETTERS = "abcdefghijklmnop".repeat(768);
const COUNT = 4;
const WAIT_MS = 20;
const TRIES = 8;
const TRIES_MS = 40;
const [TEXT, JSON_TEXT] = [valueOf("codec", "text"), valueOf("codec", "json")];
/** Words of each text that change, and how far they are apart. */
const WORDS = 64;
const STEP = 40;
/** `0xff` is nowhere in UTF-8. */
const SPOILT = -1;

export const TEXT_RACES: Script[] = [{
  id: "scripted/race_text",
  about: "Texts that change all the time, into some that are none: decoded is what was checked.",
  clauses: ["codec.copy"],
  role: "reader",
  mayDecline: ["values"],
  async play(arena) {
    const ways = readingWays((await arena.connect(0)).hello, WAIT_MS);
    const some = ways.filter(({ values, wait, waitMs }) =>
      values && (wait === "poll" || waitMs > 0)
    );
    for (const codec of [TEXT, JSON_TEXT]) {
      for (const attempt of tries(TRIES, TRIES_MS)) {
        await spoilt(arena, codec, some[attempt % some.length]!);
      }
    }
  },
}];

async function spoilt(arena: Arena, codec: number, way: ReadingWay): Promise<void> {
  const text = codec === TEXT ? LETTERS : JSON.stringify(LETTERS);
  const frames = Array.from({ length: COUNT }, () => whole(utf8(text), { codec }));
  const memory = pipe({ capacity: CAPACITY, states: statesOf("reader"), frames });
  const opening = { role: "reader", values: true, limit: CAPACITY } as const;
  await Watch.on(arena, memory, opening, async (watch) => {
    watch.step = `codec ${codec} (${way.about}): `;
    // In the middle of one of them; the others are as they were.
    const index = memory.at[1]! + sizeOf("frame_header") + 4096 >> 2;
    const flip: Flip = {
      do: "flip",
      index,
      count: WORDS,
      step: STEP,
      values: [SPOILT, Atomics.load(watch.field.words(), index)],
    };
    const racing = watch.field.race(flip);
    await racing.begun;
    const got = await watch.session.readMany(COUNT, way.waitMs, way.wait);
    await racing.stop();
    const odd = got.items.findIndex((item) => !isGood(item));
    const count = got.items.length;
    watch.demand(odd < 0, `[codec.copy] message ${odd} of ${count} is not what anybody wrote`);
    watch.demand(count === COUNT, `${count} messages were read, not ${COUNT}`);
  });
}

/** A text of the letters that stand there at some time, or the report that it was none. */
function isGood(item: Item): boolean {
  if ("report" in item) return item.report === "message.text";
  return (item.text ?? item.json) === LETTERS;
}
