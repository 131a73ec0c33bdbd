/**
 * A copy of the tree, in which mutants are planted one after the other. The checkout itself is
 * never touched.
 *
 * @module
 */

import { dirname } from "node:path";
import { listFiles } from "../../tools/files.ts";
import { run } from "../../tools/run.ts";
import { type Mutant, plant } from "./mutant.ts";

// Ten times what it takes; only a hang gets there.
const BUILD_MS = 10 * 60_000;

/** The files that a mutant changes, as they become. Throws if one of its changes does not fit. */
export async function plantedIn(root: string, { changes }: Mutant): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const change of changes) {
    const text = texts.get(change.file) ?? await Deno.readTextFile(`${root}/${change.file}`);
    texts.set(change.file, plant(text, change));
  }
  return texts;
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

  /** Plants a mutant, does something, and takes it out again. Throws if it does not fit. */
  async with<T>(mutant: Mutant, act: () => Promise<T>): Promise<T> {
    const planted = await plantedIn(this.root, mutant);
    const before = new Map<string, string>();
    for (const path of planted.keys()) {
      before.set(path, await Deno.readTextFile(`${this.root}/${path}`));
    }
    try {
      await this.#write(planted);
      return await act();
    } finally {
      await this.#write(before);
    }
  }

  async #write(texts: Map<string, string>): Promise<void> {
    for (const [path, text] of texts) await Deno.writeTextFile(`${this.root}/${path}`, text);
  }

  /**
   * Runs a step of build.zig, in the mode that takes a second and not half a minute; what is wrong
   * if that fails.
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
