/**
 * The TypeScript implementation as a process: `deno run -A conformance/testees/typescript/main.ts`.
 *
 * @module
 */

import { serveLines } from "../server.ts";
import { typescript } from "./adapter.ts";
import { mapFile, openFile } from "./files.ts";

const { hello } = typescript;
await serveLines({
  ...typescript,
  hello: { ...hello, carriers: ["bytes", "file", "mapped"] },
  openFile,
  mapFile,
});
