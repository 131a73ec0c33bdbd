// What meters of Zig report is what the schema of those of TypeScript describes.

import { assert, assertEquals } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import { type Estimate, estimate, type MeterSnapshot } from "../impl-ts/src/meter/meter.ts";
import { snapshotSchema } from "../impl-ts/src/meter/meter.ts";
import { Port } from "../impl-ts/src/mod.ts";

/** Tests of Zig compare these files with what it writes. */
const ESTIMATE = new URL("./src/meter/estimate.jsonl", import.meta.url);
const REPORTS = new URL("./src/meter/snapshot.jsonl", import.meta.url);

Deno.test("meter: [meter.report] JSON of Zig is by the schema of TypeScript", async () => {
  const validate = new Ajv2020().compile(snapshotSchema);
  const lines = (await Deno.readTextFile(REPORTS)).trimEnd().split("\n");
  assertEquals(lines.length, 2);
  for (const line of lines) {
    const report = JSON.parse(line) as MeterSnapshot;
    assert(validate(report), JSON.stringify(validate.errors));
    // The check sees what is missing, at every depth.
    assert(!validate({ ...report, endpoint: { ...report.endpoint, sleeps: undefined } }));
    assert(!validate({ ...report, incoming: { ...report.incoming, wait: 1 } }));
  }
});

Deno.test("estimate: JSON of Zig has what a result of TypeScript has", async () => {
  const found = JSON.parse(await Deno.readTextFile(ESTIMATE)) as Estimate;
  using here = Port.create<number>();
  using there = Port.attach<number>(here.memory);
  here.write(1);
  const own = await estimate(there, () => {}, { count: 1 });
  assertEquals(Object.keys(found).sort(), Object.keys(own).sort());
  assertEquals(Object.keys(found.service).sort(), Object.keys(own.service).sort());
  const edges = ({ service }: Estimate) => service.buckets.map(([edge]) => edge);
  assertEquals(edges(found), edges(own));
  assertEquals(found.frequency, found.count / found.elapsed * 1e6);
});
