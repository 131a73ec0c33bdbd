/**
 * Scripts of a port that writes by several kinds of calls in one job: some wait, some do not, and
 * what they have accepted waits in one queue.
 *
 * @module
 */

import { pipe } from "../../reference/builder.ts";
import { fromHex, number } from "../../reference/bytes.ts";
import { valueOf } from "../../reference/layout.ts";
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
  clauses: ["pipe.order", "codec.json", "codec.batch", "port.posted"],
  role: "port",
  blocks: true,
  offers: ["mixed"],
  async play(arena) {
    const two = (writer: number) => ({ writer, reader: 1 - writer, capacity: CAPACITY });
    const memory = pipe({ states: statesOf("reader"), segment: { channels: [two(0), two(1)] } });
    const opening = { role: "port", endpoint: 1, mixed: true } as const;
    await Watch.on(arena, memory, opening, async (watch) => {
      const peer = memoryOf(watch);
      const taker = await Taker.make({ role: "writer", channel: OUT }, peer);
      for (const order of [...orders(Array(COUNT).fill(SIZES)), ...orders(UNEVEN)]) {
        watch.step = `${order.map(([way, size]) => `${way} of ${size}`).join(", ")}: `;
        await mixes(watch, taker, order);
      }
    });
  },
}];

type Order = NonNullable<Task["order"]>;

/** All that can be done in one job with messages of these sizes. */
function orders(sizes: number[][]): Order[] {
  if (sizes.length === 0) return [[]];
  const steps = WAYS.flatMap((way) => sizes.at(-1)!.map((size): Order[number] => [way, size]));
  return orders(sizes.slice(0, -1)).flatMap((rest) => steps.map((step) => [...rest, step]));
}

/** Has the testee do one job, and reads what comes meanwhile. */
async function mixes(watch: Watch, taker: Taker, order: Order): Promise<void> {
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
  const running = session.run({ ...task, then: "stay" }, LONG_MS).finally(() => isDone = true);
  const got: unknown[] = [];
  for (let left = 1; left >= 0; left -= Number(isDone)) {
    const { items } = await strictly(() => taker.take(), "[pipe.order]");
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
