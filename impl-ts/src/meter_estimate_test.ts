import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Estimate, estimate, meter } from "./meter.ts";
import { stopClock } from "./meter_fixture.ts";
import { Port } from "./port.ts";

function pair<T>(): [Port<T>, Port<T>] {
  const here = Port.create<T>();
  return [here, Port.attach<T>(here.memory)];
}

Deno.test("estimate tells of the start, then all messages, then the finish", async () => {
  const [here, there] = pair<number>();
  const [results, output] = pair<Estimate>();
  here.writeMany([1, 2, 3, 4]); // before anybody begins
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
  assertEquals(await there.readAsync(), 4); // the rest is for others
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

Deno.test("meter and estimate agree with a handler of known cost within 5 %", async () => {
  const COUNT = 21;
  // What it took by the same clock, whatever else the machine does; of all, the one in the middle,
  // since the kernel may take the processor away just before or behind one of them.
  const busy = (spent: number[]) => () => {
    const from = performance.now();
    while (performance.now() - from < 1);
    spent.push((performance.now() - from) * 1000);
  };
  const middle = (spent: number[]) => spent.toSorted((a, b) => a - b)[COUNT >> 1]!;
  const near = (found: number, real: number, what: string) =>
    assert(Math.abs(found - real) <= real * 0.05, `${what}: ${found}, not ${real} us`);

  const [here, there] = pair<number>();
  for (let n = 0; n < COUNT; n++) here.write(n);
  const alone: number[] = [];
  const { service, frequency } = await estimate(there, busy(alone), { count: COUNT });
  near(service.p50, middle(alone), "service by estimate");
  assert(frequency > 0 && frequency <= 1000, `${frequency} in a second`);

  using writing = meter(here);
  using reading = meter(there);
  const waited: number[] = [];
  const served: number[] = [];
  const work = busy(served);
  const written: number[] = [];
  const play = (count: number, work: () => void) => {
    [written.length, waited.length] = [0, 0];
    for (let n = 0; n < count; n++) {
      here.write(n);
      written.push(performance.now());
    }
    return new Promise<void>((resolve) => {
      there.onmessage = ({ data }) => {
        waited.push((performance.now() - written[data]!) * 1000);
        work();
        if (data === count - 1) resolve();
      };
    });
  };
  // Code that is not compiled yet takes a tenth of a millisecond beside the handler.
  for (let round = 0; round < 3; round++) await play(500, () => {});
  reading.reset();
  writing.reset();
  await play(COUNT, work);
  there.onmessage = null;
  const { incoming } = reading.snapshot();
  near(incoming!.service.p50, middle(served), "service by meter");
  near(incoming!.waiting.p50, middle(waited), "waiting");
  assertEquals(writing.snapshot().outgoing?.messages, COUNT);
  here.close();
  there.close();
});
