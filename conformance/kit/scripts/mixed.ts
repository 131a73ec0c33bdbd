/**
 * Scripts of a port that writes by several kinds of calls in one job: some wait, some do not, and
 * what they have accepted waits in one queue.
 *
 * @module
 */

import { pipe } from "../../reference/builder.ts";
import { fromHex, number } from "../../reference/bytes.ts";
import { valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { type PeerMemory, Taker } from "../../static/driver.ts";
import { letters } from "../letters.ts";
import { controlWord, ring } from "../peer.ts";
import type { Mixing, Task } from "../protocol.ts";
import { type Script, strictly } from "./stage.ts";
import { rest, statesOf, Watch } from "./watch.ts";

const CAPACITY = 512;
const LONG_MS = 3_000;
/** The ring that the testee writes. */
const OUT = 1;
/** A text that fits a frame beside others, and one that the ring cannot take at once. */
const SIZES = [3, 600];
/** One that has no room where the last one has, which must not come first. */
const UNEVEN = [[600], [200], [3]];
const WAYS: readonly Mixing[] = ["post", "promise", "block"];
/** Messages of one job. */
const COUNT = 3;
const [JSON_TEXT, BATCH] = [valueOf("codec", "json"), valueOf("codec", "json_batch")];

export const MIXED_SCRIPTS: Script[] = [{
  id: "scripted/mixed_writes",
  about:
    "Posts, promises, blocking writes of one job, short and long, in every order: so they arrive.",
  clauses: ["pipe.order", "pipe.end", "codec.json", "codec.batch", "port.posted"],
  role: "port",
  blocks: true,
  offers: ["mixed"],
  async play(arena) {
    await withPort(arena, async (watch, taker) => {
      for (const order of [...orders(Array(COUNT).fill(SIZES)), ...orders(UNEVEN)]) {
        watch.step = `${order.map(([way, size]) => `${way} of ${size}`).join(", ")}: `;
        await mixes(watch, taker, order);
      }
    });
    for (const order of orders([[600], [3]])) {
      await withPort(arena, async (watch, taker) => {
        watch.step = `${order.map(([way, size]) => `${way} of ${size}`).join(", ")}, and the end: `;
        await mixes(watch, taker, order, "end");
      });
    }
  },
}];

async function withPort(
  arena: Arena,
  play: (watch: Watch, taker: Taker) => Promise<void>,
): Promise<void> {
  const two = (writer: number) => ({ writer, reader: 1 - writer, capacity: CAPACITY });
  const memory = pipe({ states: statesOf("reader"), segment: { channels: [two(0), two(1)] } });
  const opening = { role: "port", endpoint: 1, mixed: true } as const;
  await Watch.on(arena, memory, opening, async (watch) => {
    await play(watch, await Taker.make({ role: "writer", channel: OUT }, memoryOf(watch)));
  });
}

type Order = NonNullable<Task["order"]>;

/** All that can be done in one job with messages of these sizes. */
function orders(sizes: number[][]): Order[] {
  if (sizes.length === 0) return [[]];
  const steps = WAYS.flatMap((way) => sizes.at(-1)!.map((size): Order[number] => [way, size]));
  return orders(sizes.slice(0, -1)).flatMap((rest) => steps.map((step) => [...rest, step]));
}

/** Has the testee do one job, and reads what comes meanwhile. */
async function mixes(
  watch: Watch,
  taker: Taker,
  order: Order,
  then: "stay" | "end" = "stay",
): Promise<void> {
  const { field, session, own, other } = watch;
  const wants = controlWord(field, OUT, "writer_wants");
  const task = {
    role: "mixed",
    seed: 1,
    capacity: CAPACITY,
    wait: "event",
    record: true,
    order,
  } as const;
  let isDone = false;
  const running = session.run({ ...task, then }, LONG_MS).finally(() => isDone = true);
  const got: unknown[] = [];
  let last: string | undefined;
  for (let left = 1; left >= 0; left -= Number(isDone)) {
    const { items, end } = await strictly(() => taker.take(), "[pipe.order] [pipe.end]");
    last = end;
    got.push(...items.flatMap((item) => "report" in item ? [item] : valuesOf(item)));
    if (Atomics.exchange(field.words(), wants, 0) !== 0) ring(field, other, own);
    await rest(0);
  }
  const ran = await running;
  watch.demand(ran.end === "done", `[port.posted] it ended with ${ran.end}, not done`);
  const written = (ran.record ?? []).map(([index]) => index);
  const left = order.findIndex((_, index) => !written.includes(index) && !isFree(order, index));
  watch.demand(left < 0, `[port.posted] message ${left} was refused`);
  const must = written.map((first) => {
    const size = order[first]![1];
    return [
      first,
      new TextDecoder().decode(letters({ tag: 0, size, first }, new Uint8Array(size))),
    ];
  });
  const about = (all: unknown[]) => JSON.stringify(all).replace(/"(.{8})[^"]+"/g, '"$1…"');
  watch.demand(
    JSON.stringify(got) === JSON.stringify(must),
    `[pipe.order] [codec.json] it wrote ${about(must)}, and this came: ${about(got)}`,
  );
  const isOver = (last === "ended") === (then === "end");
  watch.demand(isOver, `[pipe.end] behind it came ${last}, and the port was to ${then}`);
}

/** Whether a port may refuse a message: a call that waits, where it waits for a promise already. */
function isFree(order: Order, index: number): boolean {
  return order[index]![0] === "block" &&
    order.slice(0, index).some(([way]) => way === "promise");
}

/** The values of a message: one, or the elements of a batch. */
function valuesOf({ codec, hex = "" }: { codec: number; hex?: string }): unknown[] {
  if (codec !== JSON_TEXT && codec !== BATCH) return [{ codec, hex }];
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(fromHex(hex)));
    return codec === BATCH ? value as unknown[] : [value];
  } catch {
    return [{ codec, hex }];
  }
}

/** The memory that both see, for the strict reader; cursors are stored whole. */
function memoryOf(watch: Watch): PeerMemory {
  return {
    dump: (from = 0, size = watch.bytes().length - from) => watch.bytes().slice(from, from + size),
    patch(runs) {
      for (const { offset, hex } of runs) {
        Atomics.store(watch.field.words(), offset >> 2, number(fromHex(hex)) | 0);
      }
    },
  };
}
