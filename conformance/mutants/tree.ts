/**
 * A copy of the tree, in which mutants are planted one after the other. The checkout itself is
 * never touched.
 *
 * @module
 */

import { dirname } from "node:path";
import { listFiles } from "../../tools/files.ts";
import { run } from "../../tools/run.ts";
import type { Mutant } from "./mutant.ts";

// Ten times what each takes; only a hang gets there.
const APPLY_MS = 30_000;
const BUILD_MS = 10 * 60_000;

/** Whether a patch fits the tree in this folder; what `git` says where it does not. */
export async function misfit(root: string, patch: string): Promise<string | undefined> {
  return await apply(root, patch, "--check");
}

async function apply(root: string, patch: string, ...options: string[]) {
  const file = await Deno.makeTempFile({ suffix: ".patch" });
  try {
    await Deno.writeTextFile(file, patch);
    // Within a repository, `git apply` takes paths from its top, and skips those of other folders.
    const above = `GIT_CEILING_DIRECTORIES=${dirname(root)}`;
    const command = ["env", above, "git", "apply", "--whitespace=nowarn", ...options, file];
    const { code, output } = await run(command, { cwd: root, timeoutMs: APPLY_MS, echo: false });
    return code === 0 ? undefined : output.trim();
  } finally {
    await Deno.remove(file);
  }
}

/** Files of the repository in a folder of their own, with whatever is built of them. */
export class Tree {
  readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  /** Copies what git sees of the repository. */
  static async copy(from: string): Promise<Tree> {
    const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "millrace-mutants-" }));
    for (const path of await listFiles(from)) {
      await Deno.mkdir(dirname(`${root}/${path}`), { recursive: true });
      await Deno.copyFile(`${from}/${path}`, `${root}/${path}`);
    }
    return new Tree(root);
  }

  /** Plants a mutant, does something, and takes it out again. Throws where it does not apply. */
  async with<T>({ files, patch }: Mutant, act: () => Promise<T>): Promise<T> {
    const texts = new Map<string, string>();
    for (const path of files) texts.set(path, await Deno.readTextFile(`${this.root}/${path}`));
    const why = await apply(this.root, patch);
    if (why !== undefined) throw new Error(`does not apply: ${why}`);
    try {
      return await act();
    } finally {
      for (const [path, text] of texts) await Deno.writeTextFile(`${this.root}/${path}`, text);
    }
  }

  /**
   * Runs a step of build.zig, in the mode that takes a second and not half a minute; what is wrong
   * where that fails.
   */
  async build(step: string): Promise<string | undefined> {
    const command = ["zig", "build", step, "-Doptimize=debug"];
    const options = { cwd: this.root, timeoutMs: BUILD_MS, echo: false };
    const { code, output } = await run(command, options);
    return code === 0 ? undefined : /^.*: error: .*$/m.exec(output)?.[0] ?? output.trim();
  }

  async remove(): Promise<void> {
    await Deno.remove(this.root, { recursive: true });
  }
}
