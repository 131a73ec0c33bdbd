// The example hashes every file of a folder, in the order of their paths.

import { assertEquals, assertMatch } from "@std/assert";
import { createHash } from "node:crypto";
import { inFolder, ROOT, succeed } from "../readme_fixture.ts";

const EXAMPLE = `${ROOT}impl-zig/examples/hashes.zig`;

Deno.test("examples/hashes.zig: digests in the order of the paths", async () => {
  await inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/files/b`, { recursive: true });
    const files = ["a", "b/c", "d", "e"].map((path, index) => ({
      path,
      // Above the size of a piece, as long as one, and none.
      bytes: new Uint8Array([100_000, 65_536, 5, 0][index]!).fill(index + 1),
    }));
    for (const { path, bytes } of files) await Deno.writeFile(`${folder}/files/${path}`, bytes);
    const modules = ["--dep", "millrace", `-Mroot=${EXAMPLE}`];
    const library = `-Mmillrace=${ROOT}impl-zig/src/root.zig`;
    const output = await succeed(folder, "zig", "run", ...modules, library, "--", "files");
    const lines = output.trimEnd().split("\n");
    const digests = files.map(({ path, bytes }) =>
      `${createHash("sha256").update(bytes).digest("hex")}  ${path}`
    );
    assertEquals(lines.slice(0, 4), digests);
    assertMatch(lines[4]!, /^1 workers: 4 files, 165541 bytes, \d+ MB\/s, /);
  });
});
