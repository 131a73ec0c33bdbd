/**
 * What the inspector and `top` print.
 *
 * @module
 */

/** Writes all of a text, or as much as a reader that goes away early wants. */
export function write(text: string): void {
  const bytes = new TextEncoder().encode(text);
  try {
    for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}
