// What the demo prints: a progress bar while it runs, and a table at the end.

const BAR_WIDTH = 30;
const clear = "\r\x1b[2K";

/** A bar on stderr that redraws itself on a terminal, and prints every tenth step elsewhere. */
export class ProgressBar {
  readonly #total: number;
  readonly #label: string;
  readonly #live = Deno.stderr.isTerminal();
  readonly #start = performance.now();
  #tenth = -1;

  /** @param total What `update` counts up to, in bytes. */
  constructor(label: string, total: number) {
    this.#label = label;
    this.#total = total;
  }

  /** Shows that `done` bytes are through. */
  update(done: number): void {
    const part = this.#total === 0 ? 1 : Math.min(1, done / this.#total);
    const tenth = Math.floor(part * 10);
    if (!this.#live && tenth === this.#tenth) return;
    this.#tenth = tenth;
    const full = Math.round(part * BAR_WIDTH);
    const bar = "#".repeat(full) + ".".repeat(BAR_WIDTH - full);
    const seconds = (performance.now() - this.#start) / 1000;
    const left = part > 0 && part < 1 ? `, ${(seconds / part - seconds).toFixed(1)} s left` : "";
    const line = `${this.#label} [${bar}] ${Math.floor(part * 100)} %, ${bytes(done)}${left}`;
    write(this.#live ? clear + line : line + "\n");
  }

  /** Ends the line of the bar. */
  finish(): void {
    if (this.#live) write("\n");
  }
}

/** Shows a step that has no measure of its own, for instance a build. */
export function showStep(text: string): void {
  write(`${text}\n`);
}

function write(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}

/** Formats a count of bytes with a decimal unit. */
export function bytes(count: number): string {
  if (count < 1e3) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  return `${(count / 1e6).toFixed(1)} MB`;
}

/** Formats a time in microseconds. */
export function microseconds(value: number): string {
  return value < 1000 ? `${value.toFixed(2)} us` : `${(value / 1000).toFixed(2)} ms`;
}

/** Formats rows of two columns, the first one padded. */
export function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join("\n");
}

/** The value below which `part` of the sorted samples lie. Asserts that there are samples. */
export function percentile(sorted: Float64Array, part: number): number {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
  if (value === undefined) throw new Error("Cannot take a percentile: no samples");
  return value;
}
