/**
 * The small port as a process: `deno run -A broken.ts [--fault NAME] [--window NAME]`. Without a
 * fault it is a good testee; with one, the kit must catch it.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { serveLines } from "../server.ts";
import { small } from "./adapter.ts";
import { breakPort } from "./faults.ts";

const { values } = parseArgs({
  options: { fault: { type: "string" }, window: { type: "string" } },
});
breakPort(values.fault, values.window);
await serveLines({ ...small, hello: { ...small.hello, carriers: ["bytes"] } });
