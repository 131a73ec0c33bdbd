/** Prints how many timers were set with a delay that no timer accepts, which fire at once. */

const delays: number[] = [];
const { setTimeout: set } = globalThis;
globalThis.setTimeout = ((callback: () => void, ms = 0) => {
  if (!(ms <= 0x7fffffff)) delays.push(ms);
  return set(callback, ms);
}) as typeof setTimeout;

// After that, as a module may keep the functions that it finds when it is loaded.
const { Pool } = await import("./pool.ts");
const { openStream } = await import("../stream/stream.ts");

const url = new URL("./worker_fixture.ts", import.meta.url);
const states: unknown[] = [];
for (const ms of [2 ** 31, 2 ** 32, 2 ** 40, Infinity]) {
  const times = { patience: ms, idle: ms, grace: ms, startTimeout: ms };
  const pool = new Pool(url, { least: 0, most: 2, ahead: 0, ...times });
  await pool.run(1, { name: "later" });
  // One task runs, and is given up; the other one waits.
  const stop = new AbortController();
  const running = pool.run(200, { name: "later", signal: stop.signal });
  const waiting = pool.run(1, { name: "later" });
  await new Promise((resolve) => set(resolve, 50));
  stop.abort();
  await Promise.allSettled([running, waiting]);
  await new Promise((resolve) => set(resolve, 50));
  const { restarted, workers } = pool.stats();
  states.push(restarted, workers.map(({ state }) => state).join());
  await pool.close();
}
for (const timeout of [2 ** 31, 2 ** 40]) {
  const silent = { readable: new ReadableStream<Uint8Array>(), writable: new WritableStream() };
  const stop = new AbortController();
  const opening = openStream(silent, { timeout, signal: stop.signal });
  set(() => stop.abort("nobody answers"), 50);
  states.push(await opening.catch(String));
}
console.log(JSON.stringify({ delays, states }));
Deno.exit();
