/** Two event loops in two threads: no wake is lost, and a peer that dies is found. */

import { assertEquals } from "@std/assert";
import { random } from "../testing/fixture.ts";
import { Port } from "../port/port.ts";
import { held } from "../port/fixture.ts";
import { waitForPeerAsync } from "../more/peer.ts";
import { supervise } from "../more/supervise.ts";
import { converse, OPTIONS, type Seen, type Task } from "./loops_fixture.ts";

/** A worker with the other end of a port. */
function started(port: Port<number>, task: Task): { worker: Worker; seen: Promise<Seen> } {
  const url = new URL("./loops_fixture.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  const seen = new Promise<Seen>((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
  });
  worker.postMessage(port.handoff(task));
  return { worker, seen };
}

/** What both ends of a conversation have seen. */
async function conversed(seed: number): Promise<[Seen, Seen]> {
  using port = Port.create<number>(OPTIONS);
  const task = { seed, count: 3000 };
  const { worker, seen } = started(port, task);
  try {
    const own = converse(port, { ...task, seed: seed + 100 });
    return await held(Promise.all([own, seen]));
  } finally {
    worker.terminate();
  }
}

for (const seed of [1, 2, 3, 4]) {
  Deno.test(`[wait.recheck] two event loops lose no wake, seed ${seed}`, async () => {
    // On a busy machine a message may come just as a slice ends by itself, which looks the same: if
    // wakes are lost, they are in each of some conversations.
    const all: [Seen, Seen][] = [];
    const isGood = ([own, other]: [Seen, Seen]) =>
      own.late + other.late === 0 && own.parks + other.parks > 100;
    while (all.length < 5 && !all.some(isGood)) all.push(await conversed(seed));
    assertEquals(all.some(isGood), true, JSON.stringify(all));
  });
}

Deno.test("[pipe.supervisor] a peer that dies while two loops converse is found", async () => {
  const next = random(5);
  for (let round = 0; round < 6; round++) {
    using port = Port.create<number>(OPTIONS);
    const task = { seed: round, count: 1e9 };
    const { worker, seen } = started(port, task);
    seen.catch(() => {}); // it may still find that it was ended
    using supervision = supervise(worker, port);
    const conversation = converse(port, task);
    await waitForPeerAsync(port, { timeout: 20_000 });
    await new Promise((resolve) => setTimeout(resolve, next() % 32));
    await supervision.terminate();
    assertEquals((await held(port.closed))?.code, "peer.failed");
    await conversation;
  }
});
