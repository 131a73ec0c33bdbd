// The example passes, and reads what the codec for TypeScript writes.

import { assert, assertEquals } from "@std/assert";
import { cbor } from "../../impl-ts/src/codec/cbor.ts";
import { inFolder, ROOT, succeed } from "../readme_fixture.ts";

const EXAMPLE = `${ROOT}impl-zig/examples/cbor.zig`;

Deno.test("examples/cbor.zig: its test passes", async () => {
  await inFolder(async (folder) => {
    const modules = ["--dep", "millrace", `-Mroot=${EXAMPLE}`];
    const library = `-Mmillrace=${ROOT}impl-zig/src/root.zig`;
    const output = await succeed(folder, "zig", "test", ...modules, library);
    assert(output.includes("All 1 tests passed."), output);
  });
});

Deno.test("examples/cbor.zig: what it reads is what the codec for TypeScript writes", async () => {
  const text = await Deno.readTextFile(EXAMPLE);
  const [, value, payload] = /\/\/ (\{.*\})\n\s*const payload = (".*");/.exec(text)!;
  const bytes = payload!.slice(1, -1).replaceAll(/\\x(..)/g, (_, hex) => `\\u00${hex}`);
  const must = Uint8Array.from(
    JSON.parse(`"${bytes}"`) as string,
    (unit: string) => unit.charCodeAt(0),
  );
  assertEquals(cbor.encode(new Function(`return (${value});`)()), must);
});
