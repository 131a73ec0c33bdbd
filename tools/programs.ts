/** What tools have in common that are programs, or look for some. @module */

/** The first of these programs on the path, outside of a folder; `undefined` if there is none. */
export async function findProgram(names: string[], outside?: string): Promise<string | undefined> {
  const folders = (Deno.env.get("PATH") ?? "").split(":").filter((folder) => folder !== outside);
  for (const name of names) {
    for (const folder of folders) {
      const info = await Deno.stat(`${folder}/${name}`).catch(() => undefined);
      if (info?.isFile) return `${folder}/${name}`;
    }
  }
  return undefined;
}

/** Whether somebody wants to know what a program is good for. */
export function asksForHelp(args: readonly string[]): boolean {
  return args.some((arg) => arg === "-h" || arg === "--help");
}

/**
 * A folder in the caches of this user, for all checkouts: `./millrace` says where they are. What
 * runs without it keeps them in this checkout.
 */
export function cacheFolder(name: string): string {
  return `${Deno.env.get("MILLRACE_CACHE") ?? `${import.meta.dirname}/../.zig-cache`}/${name}`;
}
