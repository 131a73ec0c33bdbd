import { metrics } from "@opentelemetry/api";
import { assert, assertEquals } from "@std/assert";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { Metered, stopClock } from "./fixture.ts";
import { observe } from "./opentelemetry.ts";

/** A collector: what each instrument shows, by its name and its attributes except `pipe`. */
function collector() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  metrics.setGlobalMeterProvider(provider);
  return {
    async collect(): Promise<Record<string, number>> {
      exporter.reset();
      await provider.forceFlush();
      const found: Record<string, number> = {};
      for (const { scopeMetrics } of exporter.getMetrics()) {
        for (const { descriptor, dataPoints } of scopeMetrics.flatMap(({ metrics: all }) => all)) {
          for (const { attributes: { pipe, ...others }, value } of dataPoints) {
            assertEquals(pipe, "frames");
            found[[descriptor.name, ...Object.values(others)].join(" ")] = value as number;
          }
        }
      }
      return found;
    },
    stop() {
      metrics.disable();
      return provider.shutdown();
    },
  };
}

Deno.test("observe shows the figures of a snapshot, until it is ended", async () => {
  const { collect, stop } = collector();
  const clock = stopClock();
  const pipe = new Metered<string>();
  for (const wait of [3, 40, 500]) {
    pipe.here.write("hello");
    clock.pass(wait);
    pipe.there.tryRead();
    pipe.there.tryRead();
  }
  pipe.here.write("not read");
  clock[Symbol.dispose]();
  const end = observe(pipe.reading, { attributes: { pipe: "frames" } });
  const found = await collect();
  const { waiting } = pipe.incoming;
  assertEquals(found["millrace.messages in"], 3);
  assertEquals(found["millrace.values"], 3);
  assertEquals(found["millrace.queue.messages in"], 1);
  assertEquals(found["millrace.waiting.count"], 3);
  assertEquals(found["millrace.waiting.sum"], 543);
  const buckets = ["2", "5", "50", "200", "500", "+Inf"];
  const counts = buckets.map((le) => found[`millrace.waiting.bucket ${le}`]);
  assertEquals(counts, [0, 1, 2, 2, 3, 3]);
  assertEquals(found["millrace.waiting.quantile 0.5"], waiting.p50);
  assert(found["millrace.waiting.quantile 1"] === 500);
  assertEquals(found["millrace.stalls"], 0);
  const more = async () => {
    pipe.there.tryRead();
    pipe.here.write("more");
    return (await collect())["millrace.messages in"];
  };
  assertEquals(await more(), 4);
  end();
  assertEquals(await more(), 4);
  pipe[Symbol.dispose]();
  await stop();
});
