import { assertEquals, assertRejects } from "@std/assert";
import { type Estimate, estimate, meter } from "./meter.ts";
import { stopClock } from "./fixture.ts";
import { writeMany } from "../more/many.ts";
import { Port } from "../port/port.ts";

function pair<T>(): [Port<T>, Port<T>] {
  const here = Port.create<T>();
  return [here, Port.attach<T>(here.memory)];
}

Deno.test("estimate tells of the start, then all messages, then the finish", async () => {
  const [here, there] = pair<number>();
  const [results, output] = pair<Estimate>();
  writeMany(here, [1, 2, 3, 4]); // before the estimate begins
  const order: unknown[] = [];
  const found = await estimate(there, {
    start: async () => {
      await new Promise((resolve) => setTimeout(resolve));
      order.push("start");
    },
    message: (value) => order.push(value),
    finish: () => order.push("finish", results.tryRead()?.count),
  }, { count: 3, output });
  assertEquals(order, ["start", 1, 2, 3, "finish", 3]);
  assertEquals([found.count, found.service.count], [3, 3]);
  assertEquals(await there.readAsync(), 4); // the rest stays for other readers
  for (const port of [here, there, results, output]) port.close();
});

Deno.test("estimate measures the handler, and not what it waits for", async () => {
  using clock = stopClock();
  const [here, there] = pair<number>();
  for (const work of [100, 300, 200]) here.write(work);
  const { elapsed, frequency, service } = await estimate(there, (work) => clock.pass(work), {
    count: 3,
  });
  assertEquals([elapsed, frequency, service.mean], [600, 5000, 200]);
  assertEquals([service.least, service.most], [100, 300]);
  here.close();
  there.close();
});

Deno.test("estimate awaits what the handler promises, as part of the service", async () => {
  using clock = stopClock();
  const [here, there] = pair<number>();
  here.write(1);
  const slow = async () => {
    await new Promise((resolve) => setTimeout(resolve));
    clock.pass(700);
  };
  assertEquals((await estimate(there, slow, { count: 1 })).service.mean, 700);
  here.close();
  there.close();
});

Deno.test("estimate ends with the stream, and with its signal, and refuses no count", async () => {
  const [here, there] = pair<number>();
  here.write(1);
  here.end();
  const { count, service } = await estimate(there, () => {}, { count: 5 });
  assertEquals([count, service.count], [1, 1]);
  await assertRejects(() => estimate(there, () => {}, { count: 0 }), RangeError);
  const [other, open] = pair<number>();
  const signal = AbortSignal.abort("enough");
  const given = await estimate(open, () => {}, { count: 1, signal }).catch((reason) => reason);
  assertEquals(given, "enough");
  for (const port of [here, there, other, open]) port.close();
});

Deno.test("meter and estimate agree with a handler of known cost", async () => {
  using clock = stopClock();
  const [here, there] = pair<number>();
  const costs = [100, 300, 200, 900];
  const send = () => costs.forEach((cost) => here.write(cost));

  send();
  const alone = await estimate(there, (cost) => clock.pass(cost), { count: costs.length });
  assertEquals([alone.service.least, alone.service.mean, alone.service.most], [100, 375, 900]);

  using writing = meter(here);
  using reading = meter(there);
  send();
  await new Promise<void>((resolve) => {
    there.onmessage = ({ data }) => {
      clock.pass(data);
      if (data === costs.at(-1)) resolve();
    };
  });
  there.onmessage = null;
  const { service, waiting } = reading.snapshot().incoming!;
  assertEquals(service, alone.service);
  // All messages were written at one time: each waits until those before it are handled.
  assertEquals([waiting.least, waiting.mean, waiting.most], [0, (0 + 100 + 400 + 600) / 4, 600]);
  assertEquals(writing.snapshot().outgoing?.messages, costs.length);
  here.close();
  there.close();
});
