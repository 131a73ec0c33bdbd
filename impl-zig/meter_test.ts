// What meters of Zig report is what the schema of those of TypeScript describes.

import { assert, assertEquals } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import { type MeterSnapshot, snapshotSchema } from "../impl-ts/src/meter.ts";

/** A test of Zig compares this file with what it writes. */
const REPORTS = new URL("./src/meter_snapshot.jsonl", import.meta.url);

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
