/**
 * A bar with the time left, on stderr; where that is no terminal, a line every tenth.
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
    this.#write(this.#live ? `${CLEAR}${text.slice(0, 100)}` : `${text}\n`);
  }

  /** Takes the bar away, for what is printed next. */
  clear(): void {
    if (this.#live) this.#write(CLEAR);
  }

  #write(text: string): void {
    Deno.stderr.writeSync(new TextEncoder().encode(text));
  }
}

function time(seconds: number): string {
  const rest = String(seconds % 60).padStart(2, "0");
  return `${Math.floor(seconds / 60)}:${rest}`;
}
