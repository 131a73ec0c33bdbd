/**
 * Makes the reference that Zig's own generator writes fit for the file system: its page fetches a
 * module of WebAssembly and an archive of sources, which browsers allow from a server only.
 *
 * @module
 */

/** A public name of the module, and the first sentence of what is said of it, if anything is. */
export interface ZigName {
  name: string;
  about: string;
}

const DECLARATION = /^( *)pub (?:inline |noinline )?(?:const|fn|var) (@"\w+"|\w+)/;
const IMPORT = /= (?:@import\("([\w/]+\.zig)"\)|(\w+))(?:\.(\w+))?;$/;

/**
 * The names that `root.zig` offers, each followed by those in it: what a search for them needs, by
 * the indentation that `zig fmt` gives them. `texts` has the sources by their names.
 */
export function zigNames(texts: ReadonlyMap<string, string>): ZigName[] {
  const root = (texts.get("root.zig") ?? "").split("\n");
  return declared(root, 0).flatMap(({ name, about, line }) => {
    const [, file, own, inner] = IMPORT.exec(line) ?? [];
    // One that is handed on from a file that is named above it, such as `layout.Reason`.
    const source = file ?? (own === undefined ? undefined : fileOf(root, own));
    const lines = source === undefined ? [] : (texts.get(source) ?? "").split("\n");
    if (inner === undefined) {
      const members = source === undefined || file === undefined ? [] : declared(lines, 0);
      return [{ name, about: about || heading(lines) }, ...named(name, members)];
    }
    const all = declared(lines, 0);
    const found = all.find((each) => each.name === inner);
    if (found === undefined) return [{ name, about }];
    const body = lines.slice(found.at + 1);
    const end = body.findIndex((each) => /^[^ \n]/.test(each));
    const isType = /= (?:extern |packed )?(?:struct|enum|union)\b.*\{$/.test(found.line);
    const members = isType ? declared(body.slice(0, end), 4) : [];
    return [{ name, about: about || found.about }, ...named(name, members)];
  });
}

/** The file that a name of `root.zig` stands for. */
function fileOf(root: readonly string[], name: string): string | undefined {
  const line = root.find((each) => each.startsWith(`pub const ${name} = `)) ?? "";
  return IMPORT.exec(line)?.[1];
}

function named(owner: string, members: readonly ZigName[]): ZigName[] {
  return members.map(({ name, about }) => ({ name: `${owner}.${name}`, about }));
}

/** What is public in some lines at this depth. */
function declared(
  lines: readonly string[],
  depth: number,
): (ZigName & { line: string; at: number })[] {
  return lines.flatMap((line, at) => {
    const [, indentation, name] = DECLARATION.exec(line) ?? [];
    if (indentation?.length !== depth) return [];
    let first = at;
    while (/^ *\/\/\/ /.test(lines[first - 1] ?? "")) first--;
    const words = lines.slice(first, at).map((each) => each.replace(/^ *\/\/\/ /, ""));
    return [{ name: name!, about: sentence(words), line, at }];
  });
}

/** What stands at the top of a file. */
function heading(lines: readonly string[]): string {
  const end = lines.findIndex((each) => !each.startsWith("//! "));
  return sentence(lines.slice(0, Math.max(end, 0)).map((each) => each.slice(4)));
}

function sentence(words: readonly string[]): string {
  return /^.*?[.:](?= |$)/.exec(words.join(" "))?.[0] ?? words.join(" ");
}

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
    // The format has the first part of a long path after the rest.
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
