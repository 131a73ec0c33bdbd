/**
 * Says on stderr how far a run is, and what is being built: the first native build takes minutes.
 *
 * @module
 */

const WIDTH = 24;
const CLEAR = "\r\x1b[2K";

/** Shows how far a run is. */
export class Progress {
  readonly #live = Deno.stderr.isTerminal();
  readonly #start = performance.now();
  #total: number;
  #done = 0;
  #tenth = 0;

  /** @param total Runs that will be played. */
  constructor(total: number) {
    this.#total = total;
  }

  /** One more run is done. */
  step(what: string): void {
    this.#done++;
    const part = Math.min(1, this.#done / this.#total);
    const tenth = Math.floor(10 * part);
    if (!this.#live && tenth === this.#tenth) return;
    this.#tenth = tenth;
    const full = Math.round(part * WIDTH);
    const seconds = (performance.now() - this.#start) / 1000;
    const left = Math.ceil(seconds / part - seconds);
    const bar = `[${"#".repeat(full)}${".".repeat(WIDTH - full)}]`;
    const text = `${bar} ${Math.floor(100 * part)} %, ${time(left)} left: ${what}`;
    write(this.#live ? `${CLEAR}${text.slice(0, 100)}` : `${text}\n`);
  }

  /** Takes the bar away, for what is printed next. */
  clear(): void {
    if (this.#live) write(CLEAR);
  }
}

function time(seconds: number): string {
  const rest = String(seconds % 60).padStart(2, "0");
  return `${Math.floor(seconds / 60)}:${rest}`;
}

const TICK_MS = 1_000;
/** A step that was shorter than this needs no line of its own after it. */
const SHORT_MS = 2_000;

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
