/**
 * What a testee did wrong as a program, whatever its port does.
 *
 * @module
 */

/** A testee that crashed, replied what is no reply (`error`), or not in time (`timeout`). */
export class Trouble extends Error {
  override readonly name = "Trouble";
  readonly verdict: "error" | "timeout";
  /** What the testee was to do, where somebody can say; it may name a clause in brackets. */
  during?: string;

  constructor(verdict: "error" | "timeout", message: string) {
    super(message);
    this.verdict = verdict;
  }
}

/**
 * Goes on where a testee breaks down while nobody waits for its reply: a script that does something
 * meanwhile finds that out when it asks for the reply, or with the next command.
 */
export function outliveTrouble(): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    if (event.reason instanceof Trouble) event.preventDefault();
  });
}

/** A text as part of a message: short, and on one line. */
export function shown(text: string, limit = 120): string {
  const line = JSON.stringify(text);
  return line.length <= limit ? line : `${line.slice(0, limit)}… (${text.length} characters)`;
}
