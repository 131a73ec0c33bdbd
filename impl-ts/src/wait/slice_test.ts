/** How long a sleep may last: short slices only where their end has something to find. */

import { assertEquals } from "@std/assert";
import { pipeSegment, sliceTimers, watched } from "../testing/fixture.ts";
import { Hub } from "../more/hub.ts";
import { layout } from "../memory/layout.ts";
import { Reader, statsOf, Writer } from "../pipe/ends.ts";
import { Port } from "../port/port.ts";
import { until } from "../port/fixture.ts";
import { select, selectAsync } from "../more/select.ts";
import { agentMechanism, type Mechanism } from "./mechanism.ts";

/** How a peer can be, and the longest sleep that it allows. */
const CASES = [
  { peer: "attached", watches: false, slice: layout.WAIT_SLICE_ATTACHED_MS },
  { peer: "vacant", watches: false, slice: layout.WAIT_SLICE_MS },
  { peer: "attached", watches: true, slice: layout.WAIT_SLICE_MS },
] as const;

/** Acts when it sleeps, of either kind, and tells how long; `watches` looks whether peers live. */
function noting(onSleep: (ms: number) => void, watches = false): Mechanism {
  const agent = agentMechanism();
  return {
    ...watched(onSleep),
    sleepAsync(words, index, expected, ms) {
      const sleep = agent.sleepAsync(words, index, expected, ms);
      onSleep(ms);
      return sleep;
    },
    ...watches ? { checkPeers: () => {} } : {},
  };
}

for (const { peer, watches, slice } of CASES) {
  const what = `whose peer is ${peer}${watches ? ", and could be found dead," : ""}`;

  for (const verb of ["read", "readAsync"] as const) {
    Deno.test(`[wait.slice] a ${verb} ${what} sleeps ${slice} ms at most`, async () => {
      const sleeps: number[] = [];
      const segment = pipeSegment();
      const attach = () => Writer.attach<number>(segment);
      let writer = peer === "attached" ? attach() : undefined;
      const mechanism = noting((ms) => {
        sleeps.push(ms);
        (writer ??= attach()).write(1);
      }, watches);
      const reader = Reader.attach<number>(segment, { spin: 0, mechanism });
      await sliceTimers(async ({ ms }) => {
        assertEquals(await reader[verb](), 1);
        // An event loop sleeps without a limit, and a timer ends its slices.
        if (verb === "read") assertEquals([sleeps, ms], [[slice], []]);
        else assertEquals([sleeps, ms], [[Infinity], [slice]]);
      });
    });
  }

  for (const verb of [select<Port<number>>, selectAsync<Port<number>>]) {
    Deno.test(`[wait.slice] a ${verb.name} ${what} sleeps ${slice} ms at most`, async () => {
      const sleeps: number[] = [];
      const mechanism = noting((ms) => {
        sleeps.push(ms);
        first.write(1);
      }, watches);
      const hub = Hub.create<number>(2, { capacity: 256, spin: 0, mechanism });
      const first = Port.attach<number>(hub.memory, { endpoint: 1 });
      if (peer === "attached") Port.attach(hub.memory, { endpoint: 2 });
      await sliceTimers(async ({ ms }) => {
        const ready = await verb(hub.ports, { timeout: 5000 });
        // The time between the deadline of a slice and its sleep is no part of the sleep.
        const slices = verb === select ? sleeps.map((ms) => Math.ceil(ms / 100) * 100) : [...ms];
        assertEquals([ready?.read(), slices], [1, [slice]]);
      });
    });
  }
}

Deno.test("[wait.slice] the timer of a port's events follows its peer", async () => {
  await sliceTimers(async (timers) => {
    using here = Port.create<number>();
    const got: number[] = [];
    here.onmessage = ({ data }) => got.push(data);
    await until(() => statsOf(here).parks > 0);
    assertEquals(timers.ms, [layout.WAIT_SLICE_MS]);
    using there = Port.attach<number>(here.memory); // its ring is what the events wake by
    await until(() => timers.ms.length === 2);
    there.write(1);
    await until(() => got.length === 1);
    there.write(2);
    await until(() => got.length === 2);
    assertEquals(timers.ms, [layout.WAIT_SLICE_MS, layout.WAIT_SLICE_ATTACHED_MS]);
    assertEquals(timers.stopped, 1);
  });
});
