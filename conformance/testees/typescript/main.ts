/**
 * The TypeScript implementation as a process: `deno run -A conformance/testees/typescript/main.ts`.
 *
 * @module
 */

import { serveLines } from "../server.ts";
import { typescript } from "./adapter.ts";
import { mapFile, openFile } from "./files.ts";
import { open as openStream, streams } from "./streams.ts";

const { hello } = typescript;
await serveLines({
  ...typescript,
  hello: {
    ...hello,
    nouns: [...hello.nouns, "stream"],
    carriers: ["bytes", "file", "mapped", "stream"],
    streams,
  },
  openFile,
  mapFile,
  openStream,
});
