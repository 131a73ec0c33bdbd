/** How long a sleep may last: short slices only where their end has something to find. */

import { assertEquals } from "@std/assert";
import { pipeSegment, sliceTimers, watched } from "../testing/fixture.ts";
import { Hub } from "../more/hub.ts";
import { WAIT_SLICE_ATTACHED_MS, WAIT_SLICE_MS } from "../memory/layout.ts";
import { Reader } from "../pipe/reader.ts";
import { Writer } from "../pipe/writer.ts";
import { Port } from "../port/port.ts";
import { until } from "../port/fixture.ts";
import { select, selectAsync } from "../more/select.ts";
import { agentMechanism, type Mechanism } from "./wait.ts";

/** How a peer can be, and the longest sleep that it allows. */
const CASES = [
  { peer: "attached", watches: false, slice: WAIT_SLICE_ATTACHED_MS },
  { peer: "vacant", watches: false, slice: WAIT_SLICE_MS },
  { peer: "attached", watches: true, slice: WAIT_SLICE_MS },
] as const;

/** Tells how long each sleep may last, of either kind; `watches` looks whether the peers live. */
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
      assertEquals([await reader[verb](), sleeps], [1, [slice]]);
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
      const ready = await verb(hub.ports, { timeout: 5000 });
      // The time between the deadline of a slice and its sleep is no part of the sleep.
      assertEquals([ready?.read(), sleeps.map((ms) => Math.ceil(ms / 100) * 100)], [1, [slice]]);
    });
  }
}

Deno.test("[wait.slice] the timer of a port's events follows its peer", async () => {
  await sliceTimers(async (timers) => {
    using here = Port.create<number>();
    const got: number[] = [];
    here.onmessage = ({ data }) => got.push(data);
    await until(() => here.stats.parks > 0);
    assertEquals(timers.ms, [WAIT_SLICE_MS]);
    using there = Port.attach<number>(here.memory); // its ring is what the events wake by
    await until(() => timers.ms.length === 2);
    there.write(1);
    await until(() => got.length === 1);
    there.write(2);
    await until(() => got.length === 2);
    assertEquals(timers.ms, [WAIT_SLICE_MS, WAIT_SLICE_ATTACHED_MS]);
    assertEquals(timers.stopped, 1);
  });
});
