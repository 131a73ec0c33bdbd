/**
 * Makes the reference that Zig's own generator writes fit for the file system: its page fetches a
 * module of WebAssembly and an archive of sources, which browsers allow from a server only.
 *
 * @module
 */

/** The files that the page fetches, with the types that it expects. */
const FETCHED = { "main.wasm": "application/wasm", "sources.tar": "application/x-tar" };
const BLOCK = 512;

/** Writes the page from what `zig build docs` made in a folder; one link leads to the site. */
export async function writeZigReference(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  const files: Record<string, { type: string; base64: string }> = {};
  for (const [name, type] of Object.entries(FETCHED)) {
    const bytes = await Deno.readFile(`${from}/${name}`);
    const kept = name.endsWith(".tar") ? entriesBelow("millrace/", bytes) : bytes;
    files[name] = { type, base64: kept.toBase64() };
  }
  await Deno.writeTextFile(`${to}/files.js`, script(files));
  await Deno.copyFile(`${from}/main.js`, `${to}/main.js`);
  await Deno.writeTextFile(`${to}/index.html`, page(await Deno.readTextFile(`${from}/index.html`)));
}

/** Answers from itself what the generator's own script fetches. */
function script(files: Record<string, { type: string; base64: string }>): string {
  return `const FILES = ${JSON.stringify(files)};
window.fetch = async (name) => {
  const bytes = Uint8Array.from(atob(FILES[name].base64), (each) => each.charCodeAt(0));
  return new Response(bytes, { headers: { "content-type": FILES[name].type } });
};
`;
}

/** The generator's page, with that script before its own, and a way back. */
export function page(html: string): string {
  const own = '<script src="main.js"></script>';
  const body = /<body[^>]*>/.exec(html)?.[0];
  if (!html.includes(own) || body === undefined) {
    throw new Error("Cannot adapt the reference of Zig: its page is another one");
  }
  const back = '<p style="margin: 0.5em"><a href="../index.html">Millrace</a></p>';
  return html.replace(/^.*<link rel="preload".*\n/gm, "")
    .replace(own, `<script src="files.js"></script>${own}`)
    .replace(body, `${body}${back}`);
}

/** The archive without what lies elsewhere: the standard library is 20 times as long as ours. */
export function entriesBelow(folder: string, archive: Uint8Array): Uint8Array<ArrayBuffer> {
  const decoder = new TextDecoder();
  const parts: Uint8Array[] = [];
  for (let at = 0; at + BLOCK <= archive.length && archive[at] !== 0;) {
    const text = (offset: number, size: number) =>
      decoder.decode(archive.subarray(at + offset, at + offset + size)).split("\0")[0]!;
    const size = parseInt(text(124, 12), 8);
    const end = at + BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    // The format has the first part of a long path behind the rest.
    const path = [text(345, 155), text(0, 100)].filter((part) => part !== "").join("/");
    if (path.startsWith(folder)) parts.push(archive.subarray(at, end));
    at = end;
  }
  // Two blocks of zeros end it.
  const kept = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 2 * BLOCK));
  let filled = 0;
  for (const part of parts) {
    kept.set(part, filled);
    filled += part.length;
  }
  return kept;
}
