/**
 * Plays every scenario and every peer for a moment, so that neither can rot: in Deno most of them,
 * and in Node and Chromium those that are of these places, or of which one place is enough. The
 * native drivers have their own test.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";
import { findChromium } from "../tools/chromium.ts";
import { run } from "../tools/run.ts";
import { requiresAll } from "../tools/test_counts.ts";
import { isOurs } from "./runner/results.ts";
import { EFFORTS, loadTasks, type PlaceName } from "./runner/scenarios.ts";
import { readResults } from "./runner/results_file.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
// Twenty times what it takes on a machine that is not busy: only a hang gets there.
const TIMEOUT_MS = 10 * 60_000;
const globs: string[] = [];
const chromium = await findChromium();

addSmoke(
  "deno",
  `
  echo/* large/* calls/*/main-worker/spin/free/up calls/*/async/spin/free/nested
  calls/*/workers/own/free/down/fresh values/*/worker/* idle/* pool/*/10us memory/* dropbox/*
  fanout/*/2r meter/* stream/json-500/*/free start/*/worker/* arrays/* codec/text-500/* sha1/*
  size/* cold/*/workers/own/free/fresh
`,
  `
  broadcast-channel coincident comlink floor-frame floor-json floor-text floor-text-park
  floor-turn floor-turn-park hash-wasm json messageport messageport-each messageport-transfer
  millrace millrace-call millrace-cbor millrace-digest millrace-digest-once millrace-drop-in
  millrace-drop-in-mw millrace-fanout millrace-hub millrace-lent millrace-many millrace-metered
  millrace-pool millrace-pool-one millrace-property millrace-zig msgpackr noble-hashes node-crypto
  ringbuf structured-clone synckit textbook-sha1
`,
);
addSmoke(
  "node",
  `
  echo/json-118/*/free stream/bytes-* stream/json-* stream/data-500/async/own/one-core/fresh
  cold/*/async/own/one-core/fresh burst/bytes-64/* burst/data-500/*/own/free/up/fresh load/*
  dropbox/* fanout/bytes-64/*/2r pool/*/10us start/*/main/* calls/*/workers/spin/free/nested
  values/*/workers/*
`,
  `
  broadcast-channel comlink floor-frame floor-json floor-text floor-text-nap floor-turn
  messageport messageport-each millrace millrace-call millrace-cbor millrace-fanout millrace-hub
  millrace-lent millrace-many millrace-pool millrace-pool-one millrace-property millrace-zig
  msgpackr piscina piscina-many ringbuf synckit thread-stream workerpool
`,
);
addSmoke(
  "chromium",
  "echo/json-118/*/free large/* calls/*/main-worker/spin/free/nested",
  `
  coincident floor-json messageport millrace millrace-call millrace-lent millrace-zig
`,
);

Deno.test("all scenarios are among those that are played", async () => {
  const names = new Set((await loadTasks(EFFORTS.smoke)).map(({ scenario }) => scenario.name));
  const played = [...names].filter((name) => globs.some((glob) => glob.startsWith(`${name}/`)));
  assertEquals(played, [...names]);
});

/**
 * Adds the test of a place. The peers named must have played, and ours must have measured: what a
 * rival could not do is shown, and fails nothing.
 */
function addSmoke(place: PlaceName, scenarios: string, names: string): void {
  const [only, peers] = [scenarios, names].map((words) => words.trim().split(/\s+/)) as [
    string[],
    string[],
  ];
  globs.push(...only);
  const ignore = place === "chromium" && chromium === undefined && !requiresAll();
  Deno.test({ name: `${place} plays the scenarios of the benchmarks`, ignore }, async () => {
    const folder = await Deno.makeTempDir({ prefix: "millrace-smoke-" });
    const json = `${folder}/results.json`;
    try {
      const options = only.flatMap((glob) => ["--only", glob]);
      const command = [Deno.execPath(), "run", "-A", MAIN, "--smoke", "--place", place];
      const { code, output } = await run(
        [...command, ...options, "--json", json],
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
      for (const { scenario, peer, failed } of rows) {
        if (failed === undefined) continue;
        assert(!isOurs(peer), `${scenario}: ${peer}: ${failed}`);
        console.warn(`${scenario} in ${place}: ${peer}: FAILED: ${failed}`);
      }
      const played = new Set(
        rows.filter(({ declined }) => declined === undefined).map(({ peer }) => peer),
      );
      assertEquals(peers.filter((peer) => !played.has(peer)), []);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
