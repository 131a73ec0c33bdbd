/** The files of the repository, as git sees them. @module */

/** Text files with their content, by path from the root. */
export interface TextFile {
  path: string;
  text: string;
}

/**
 * Every file that is tracked, or would be if it were added now: the house rules must hold before a
 * commit and not only after it. Sorted, with `/` between folders.
 */
export async function listFiles(root: string): Promise<string[]> {
  const { success, stdout, stderr } = await new Deno.Command("git", {
    args: ["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    cwd: root,
  }).output();
  if (!success) {
    throw new Error(`Cannot list files with git: ${new TextDecoder().decode(stderr).trim()}`);
  }
  const paths = new TextDecoder().decode(stdout).split("\0").filter((path) => path !== "");
  // A tracked file that was just deleted is still in git's list.
  const present = await Promise.all(paths.map((path) => isFile(`${root}/${path}`)));
  return paths.filter((_, index) => present[index]).sort();
}

/** Reads the files as UTF-8; a file that holds a zero byte is no text, and left out. */
export async function readTexts(root: string, paths: string[]): Promise<TextFile[]> {
  const files = await Promise.all(paths.map(async (path) => {
    const bytes = await Deno.readFile(`${root}/${path}`);
    return bytes.includes(0) ? undefined : { path, text: new TextDecoder().decode(bytes) };
  }));
  return files.filter((file) => file !== undefined);
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await Deno.lstat(path)).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
