/**
 * Says on stderr what is being built, and for how long: the first native build takes minutes.
 *
 * @module
 */

const TICK_MS = 1_000;
/** A step that was shorter than this needs no line of its own behind it. */
const SHORT_MS = 2_000;
const CLEAR = "\r\x1b[2K";

/** Says what a step does, does it, and says how long that took. In a terminal the time goes on. */
export async function step<Value>(what: string, work: () => Promise<Value>): Promise<Value> {
  const isLive = Deno.stderr.isTerminal();
  const start = performance.now();
  const elapsed = () => performance.now() - start;
  const seconds = () => `${Math.floor(elapsed() / 1000)} s`;
  write(isLive ? `${what} ...` : `${what} ...\n`);
  const timer = isLive
    ? setInterval(() => write(`${CLEAR}${what} ... ${seconds()}`), TICK_MS)
    : undefined;
  try {
    return await work();
  } finally {
    clearInterval(timer);
    if (isLive) write(CLEAR);
    if (elapsed() >= SHORT_MS) write(`${what}: ${seconds()}\n`);
  }
}

function write(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}
