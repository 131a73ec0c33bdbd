import { assert } from "@std/assert";
import { printedApart } from "./fixture.ts";

/**
 * Bytes for each message, of a million: far below an object. Some hundred kilobytes in all are the
 * runtime's own, and a megabyte on a machine that is busy.
 */
const MOST = 4;
/** The least that an object takes. */
const OBJECT = 16;

Deno.test("moving a million messages as bytes, or where they lie, allocates nothing", async () => {
  const flags = ["--expose-gc", "--min-semi-space-size=64", "--max-semi-space-size=64"];
  const printed = await printedApart("testing/allocation_fixture.ts", {
    flags,
    timeoutMs: 180_000,
  });
  const rows = Object.entries(JSON.parse(printed) as Record<string, number>);
  for (const [verb, bytes] of rows) console.log(`  ${verb}: ${bytes.toFixed(3)} bytes a message`);
  const canaries = rows.filter(([verb]) => verb.startsWith("canary"));
  const verbs = rows.filter((row) => !canaries.includes(row));
  assert(verbs.length === 7 && canaries.length === 3);
  for (const [verb, bytes] of canaries) assert(bytes >= OBJECT, `${verb} is not seen: ${bytes}`);
  for (const [verb, bytes] of verbs) assert(bytes < MOST, `${verb} allocates ${bytes} a message`);
});
