import { assertEquals, assertRejects } from "@std/assert";
import type { Mutant } from "./mutant.ts";
import { Tree } from "./tree.ts";

const PATH = "impl-ts/src/ring/ring.ts";

function mutantOf(...pairs: [before: string, after: string][]): Mutant {
  return {
    name: "one",
    implementation: "typescript",
    clause: "ring.publish",
    fault: "a word",
    isRace: false,
    changes: pairs.map(([before, after]) => ({ file: PATH, before: [before], after: [after] })),
  };
}

/** A copy of a repository of one file, and a function that reads that file in the copy. */
async function withTree(act: (tree: Tree, read: () => Promise<string>) => Promise<void>) {
  const root = await Deno.makeTempDir();
  try {
    await new Deno.Command("git", { args: ["init", "--quiet"], cwd: root }).output();
    await Deno.mkdir(`${root}/impl-ts/src/ring`, { recursive: true });
    await Deno.writeTextFile(`${root}/${PATH}`, "one\ntwo\nthree\n");
    const tree = await Tree.copy(root);
    try {
      await act(tree, () => Deno.readTextFile(`${tree.root}/${PATH}`));
    } finally {
      await tree.remove();
    }
    await assertRejects(() => Deno.stat(tree.root), Deno.errors.NotFound);
    assertEquals(await Deno.readTextFile(`${root}/${PATH}`), "one\ntwo\nthree\n");
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

Deno.test("Tree: a mutant is planted in the copy alone, and taken out again", async () => {
  await withTree(async (tree, read) => {
    assertEquals(await tree.with(mutantOf(["two", "2"], ["three", "3"]), read), "one\n2\n3\n");
    assertEquals(await read(), "one\ntwo\nthree\n");
    await assertRejects(() => tree.with(mutantOf(["two", "2"]), () => Promise.reject(Error("x"))));
    assertEquals(await read(), "one\ntwo\nthree\n");
  });
});

Deno.test("Tree: a mutant that does not fit is an error, and changes nothing", async () => {
  await withTree(async (tree, read) => {
    const stale = mutantOf(["two", "2"], ["drei", "3"]);
    await assertRejects(() => tree.with(stale, read), Error, `found 0 times in ${PATH}: drei`);
    assertEquals(await read(), "one\ntwo\nthree\n");
  });
});
