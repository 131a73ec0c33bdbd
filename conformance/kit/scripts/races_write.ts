/**
 * Races with a writer: the kit reads what is published at the moment at which it sees it.
 *
 * @module
 */

import { pipe } from "../../reference/builder.ts";
import type { Arena } from "../arena.ts";
import { controlWord } from "../peer.ts";
import type { Ran, Wait } from "../protocol.ts";
import { Flaw, type Follow } from "../race_follow.ts";
import { Workload } from "../workload.ts";
import { counted, type Script } from "./stage.ts";
import { rest, statesOf, Watch } from "./watch.ts";

/** Frames of up to half of it take a while to be copied. */
const CAPACITY = 262_144;
const COUNT = 60;
const SEED = 11;
const LONG_MS = 5_000;
/** Long enough to find room without a sleep, since the kit rings a little late. */
const SPIN_US = 100_000;

export const WRITING_RACES: Script[] = [{
  id: "scripted/race_publish",
  about: "Large messages, looked at from their end as soon as `tail` covers them: all is there.",
  clauses: ["ring.publish", "frame.header", "pipe.try_write", "ring.tail_owner"],
  role: "writer",
  async play(arena) {
    const { waits, levels } = (await arena.connect(0)).hello;
    if (!levels.includes("live")) return "does not run live";
    for (const wait of waits) await publishes(arena, wait);
    return undefined;
  },
}];

async function publishes(arena: Arena, wait: Wait): Promise<void> {
  const memory = pipe({ capacity: CAPACITY, states: statesOf("writer") });
  const opening = { role: "writer", spin_us: SPIN_US } as const;
  await Watch.on(arena, memory, opening, async (watch) => {
    watch.step = `calls that ${wait}: `;
    const racing = watch.field.race(followOrder(watch, wait, COUNT));
    await racing.begun;
    const ran = await followed(watch, wait, COUNT);
    await judgeFollowed(watch, await racing.stop(), ran, wait, COUNT);
  });
}

/** Sizes of the workload, so that its largest messages fit the ring at once, in several frames. */
function sizesOf(capacity: number): number {
  return 5 * capacity / 16;
}

/** How to follow a testee that writes so many messages. */
export function followOrder(watch: Watch, wait: Wait, count: number): Follow {
  const { field, pipe: { data, channels } } = watch;
  const { capacity } = channels[0]!;
  return {
    do: "follow",
    tail: controlWord(field, 0, "tail"),
    head: controlWord(field, 0, "head"),
    data,
    capacity,
    seed: SEED,
    sizes: sizesOf(capacity),
    count,
    // What is written by events has no tags.
    isTagged: wait !== "event",
  };
}

/** Has the testee write them; the kit rings it when it asks, and reads elsewhere. */
export async function followed(watch: Watch, wait: Wait, count: number): Promise<Ran> {
  const { capacity } = watch.pipe.channels[0]!;
  const task = { role: "write", seed: SEED, capacity: sizesOf(capacity), count, wait } as const;
  let isDone = false;
  const running = watch.session.run({ ...task, then: "stay" }, LONG_MS)
    .finally(() => isDone = true);
  while (!isDone) {
    await rest(1);
    watch.wakeWriter();
  }
  return await running;
}

/** Throws where the messages were not there when they should have been. */
export async function judgeFollowed(
  watch: Watch,
  [flaw, tag, offset, ...parted]: number[],
  ran: Ran,
  wait: Wait,
  count: number,
): Promise<void> {
  watch.demand(
    flaw !== Flaw.header,
    `[frame.header] tail covers a frame of message ${tag} whose header is not that of one`,
  );
  watch.demand(
    flaw !== Flaw.none_yet,
    `[ring.publish] tail covers a frame of message ${tag}, and its header is not there`,
  );
  watch.demand(
    flaw !== Flaw.tail,
    `[ring.tail_owner] tail stands in the middle of a frame, of message ${tag}`,
  );
  watch.demand(
    flaw !== Flaw.payload,
    `[ring.publish] tail covers message ${tag}, and its byte ${offset} is not there`,
  );
  watch.demand(ran.end === "done", `writing ended with ${ran.end}, not done`);
  if (wait !== "poll") return;
  const { capacity } = watch.pipe.channels[0]!;
  const workload = new Workload(SEED, sizesOf(capacity));
  const sizes = Array.from({ length: count }, () => workload.next().size);
  for (const size of new Set(parted.map((each) => sizes[each]!))) {
    // What could never be placed at once is written by a call that waits, in pieces.
    const got = await watch.session.write({ hex: counted(size, 0) }, false);
    watch.demand(
      got === "refused",
      `[pipe.try_write] a part of a message of ${size} bytes was published without the rest`,
    );
  }
}
