import { assert, assertEquals } from "@std/assert";
import { createHash } from "node:crypto";
import { printedApart } from "../testing/fixture.ts";

/**
 * The most bytes allocated by a call: less than an object. Some kilobytes in all are the runtime's.
 */
const MOST = 8;
/** The smallest size of an object. */
const OBJECT = 16;

/** Runs the fixture in a process of its own. Returns what it prints. */
async function play(args: string[], flags: string[] = []): Promise<unknown> {
  return JSON.parse(await printedApart("digest/core_fixture.ts", { args, flags }));
}

function expectedHex(): string[] {
  const bytes = Uint8Array.from({ length: 200_000 }, (_, at) => at * 7 + (at >> 8));
  return ["sha1", "sha256", "sha1", "sha256"].map((name) =>
    createHash(name).update(bytes).digest("hex")
  );
}

Deno.test("digest: a thread that has taken 16 MiB makes the core, and not before", async () => {
  assertEquals(await play([]), { core: [false, false, true], hex: expectedHex() });
});

Deno.test("digest: where WebAssembly refuses the core, TypeScript goes on", async () => {
  assertEquals(await play(["refuse"]), { core: [false, false, false], hex: expectedHex() });
});

Deno.test("digest: where there is no WebAssembly, TypeScript goes on", async () => {
  const outcome = await play([], ["--jitless"]);
  assertEquals(outcome, { core: [false, false, false], hex: expectedHex() });
});

Deno.test("digest: updates and digestInto allocate nothing", async () => {
  const flags = ["--expose-gc", "--min-semi-space-size=64", "--max-semi-space-size=64"];
  const rows = Object.entries(await play(["allocate"], flags) as Record<string, number>);
  for (const [verb, bytes] of rows) console.log(`  ${verb}: ${bytes.toFixed(3)} bytes`);
  assertEquals(rows.length, 5);
  for (const [verb, bytes] of rows) {
    if (verb.startsWith("canary")) assert(bytes >= OBJECT, `${verb} is not seen: ${bytes}`);
    else assert(bytes < MOST, `${verb} allocates ${bytes}`);
  }
});
