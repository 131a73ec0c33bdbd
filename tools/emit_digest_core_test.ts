import { assert, assertEquals } from "@std/assert";
import { CORE } from "../impl-ts/src/digest/core_module.ts";
import { compileDigestCore, DIGEST_CORE, emitDigestCore, originsOf } from "./emit_digest_core.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);

Deno.test("the module within the digests is what the compiler makes of its sources", async () => {
  assertEquals((await compileDigestCore(ROOT)).toBase64(), CORE);
});

Deno.test("emitDigestCore: compiles anew what has another source", async () => {
  const root = await Deno.makeTempDir();
  try {
    for (const path of [...await originsOf(ROOT), DIGEST_CORE]) {
      await Deno.mkdir(`${root}/${path.slice(0, path.lastIndexOf("/"))}`, { recursive: true });
      await Deno.copyFile(`${ROOT}/${path}`, `${root}/${path}`);
    }
    const before = await Deno.readTextFile(`${root}/${DIGEST_CORE}`);
    assertEquals(await emitDigestCore(root), before);
    const source = `${root}/impl-zig/src/digest/blocks.zig`;
    const constants = await Deno.readTextFile(source);
    await Deno.writeTextFile(source, constants.replace("0x5a827999", "0x5a827998"));
    const after = await emitDigestCore(root);
    const core = (text: string) => /"(AGFzb[^"]+)"/.exec(text)![1]!;
    assert(core(after) !== core(before));
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
