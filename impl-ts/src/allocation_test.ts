import { assert } from "@std/assert";

/**
 * Bytes for each message, of a million: far below an object. Some hundred kilobytes in all are the
 * runtime's own, and a megabyte on a machine that is busy.
 */
const MOST = 4;
/** The least that an object takes. */
const OBJECT = 16;

Deno.test("moving a million messages as bytes, or where they lie, allocates nothing", async () => {
  const flags = ["--expose-gc", "--min-semi-space-size=64", "--max-semi-space-size=64"];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", `--v8-flags=${flags.join()}`, "-A", "allocation_fixture.ts"],
    cwd: import.meta.dirname!,
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  assert(code === 0, text(stderr));
  const rows = Object.entries(JSON.parse(text(stdout)) as Record<string, number>);
  for (const [verb, bytes] of rows) console.log(`  ${verb}: ${bytes.toFixed(3)} bytes a message`);
  const canaries = rows.filter(([verb]) => verb.startsWith("canary"));
  const verbs = rows.filter((row) => !canaries.includes(row));
  assert(verbs.length === 7 && canaries.length === 3);
  for (const [verb, bytes] of canaries) assert(bytes >= OBJECT, `${verb} is not seen: ${bytes}`);
  for (const [verb, bytes] of verbs) assert(bytes < MOST, `${verb} allocates ${bytes} a message`);
});
