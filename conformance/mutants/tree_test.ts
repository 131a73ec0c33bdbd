import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { type Mutant, parseMutant } from "./mutant.ts";
import { misfit, Tree } from "./tree.ts";

const PATH = "impl-ts/src/ring/ring.ts";

function mutantOf(before: string, after: string): Mutant {
  return parseMutant(
    "one",
    `clause: ring.publish\nfault: a word\n
diff --git a/${PATH} b/${PATH}
--- a/${PATH}
+++ b/${PATH}
@@ -1,3 +1,3 @@
 one
-${before}
+${after}
 three
`,
  );
}

/** A repository of one file. */
async function withRepository(act: (root: string) => Promise<void>): Promise<void> {
  const root = await Deno.makeTempDir();
  try {
    await new Deno.Command("git", { args: ["init", "--quiet"], cwd: root }).output();
    await Deno.mkdir(`${root}/impl-ts/src/ring`, { recursive: true });
    await Deno.writeTextFile(`${root}/${PATH}`, "one\ntwo\nthree\n");
    await act(root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

Deno.test("Tree: a mutant is planted in the copy alone, and taken out again", async () => {
  await withRepository(async (root) => {
    const tree = await Tree.copy(root);
    try {
      const read = () => Deno.readTextFile(`${tree.root}/${PATH}`);
      const planted = await tree.with(mutantOf("two", "2"), read);
      assertEquals(planted, "one\n2\nthree\n");
      assertEquals(await read(), "one\ntwo\nthree\n");
      assertEquals(await Deno.readTextFile(`${root}/${PATH}`), "one\ntwo\nthree\n");
      await assertRejects(() => tree.with(mutantOf("two", "2"), () => Promise.reject(Error("x"))));
      assertEquals(await read(), "one\ntwo\nthree\n");
    } finally {
      await tree.remove();
    }
    await assertRejects(() => Deno.stat(tree.root), Deno.errors.NotFound);
  });
});

Deno.test("Tree: a patch that does not fit is an error, and changes nothing", async () => {
  await withRepository(async (root) => {
    const tree = await Tree.copy(root);
    try {
      const stale = mutantOf("zwei", "2");
      await assertRejects(() => tree.with(stale, () => Promise.resolve()), Error, "does not apply");
      assertEquals(await Deno.readTextFile(`${tree.root}/${PATH}`), "one\ntwo\nthree\n");
      assertMatch(await misfit(tree.root, stale.patch) ?? "fits", /patch does not apply/);
      assertEquals(await misfit(tree.root, mutantOf("two", "2").patch), undefined);
      // Within a repository as well, of which `git apply` must not skip a file in silence.
      assertMatch(await misfit(root, stale.patch) ?? "fits", /patch does not apply/);
    } finally {
      await tree.remove();
    }
  });
});
