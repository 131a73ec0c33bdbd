/**
 * Plays scenarios for a moment, so that neither they nor the peers can rot. All of them in Deno; in
 * Node and Chromium those in which every peer that works there has a part. The native drivers have
 * their own test.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";
import { findProgram } from "../tools/programs.ts";
import { run } from "../tools/run.ts";
import { requiresAll } from "../tools/test_counts.ts";
import type { PlaceName } from "./runner/scenarios.ts";
import { readResults } from "./runner/results_file.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
// Twenty times what it takes on a machine that is not busy: only a hang gets there.
const TIMEOUT_MS = 10 * 60_000;
const chromium = await findProgram(["chromium", "chromium-browser", "google-chrome"]);

addSmoke("deno", ["*"], [
  "coincident",
  "comlink",
  "messageport",
  "millrace",
  "millrace-lent",
  "millrace-many",
  "millrace-zig",
  "ringbuf",
  "synckit",
]);
addSmoke("node", ["echo/*/free", "stream/*", "memory/*"], ["synckit", "thread-stream"]);
addSmoke("chromium", ["echo/*/free", "large/*"], ["coincident", "millrace-lent"]);

/** Adds the test of a place. The peers named must have measured something. */
function addSmoke(place: PlaceName, globs: readonly string[], peers: readonly string[]): void {
  const ignore = place === "chromium" && chromium === undefined && !requiresAll();
  Deno.test({ name: `${place} plays the scenarios of the benchmarks`, ignore }, async () => {
    const folder = await Deno.makeTempDir({ prefix: "millrace-smoke-" });
    const json = `${folder}/results.json`;
    try {
      const only = globs.flatMap((glob) => ["--only", glob]);
      const command = [Deno.execPath(), "run", "-A", MAIN, "--smoke", "--place", place];
      const { code, output } = await run(
        [...command, ...only, "--json", json],
        { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false },
      );
      assertEquals(code, 0, output);
      const { rows, scenarios, complete } = await readResults(json);
      assert(complete);
      for (const { id } of scenarios) {
        const own = rows.filter((row) => row.scenario === id && row.place === place);
        // Where a place cannot tell something, everybody declines.
        assert(own.length > 0, `${id} has no rows`);
      }
      const working = new Set(
        rows.filter((row) => row.median !== undefined).map((row) => row.peer),
      );
      assertEquals(peers.filter((peer) => !working.has(peer)), []);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
