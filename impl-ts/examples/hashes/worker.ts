/** The worker of the example: hashes one file. @module */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { work } from "millrace/pool";

/** What has come of one file. */
export interface Hashed {
  readonly hash: string;
  readonly size: number;
  /** Milliseconds that it took. */
  readonly ms: number;
}

export default work((path: string): Hashed => {
  const began = performance.now();
  const bytes = readFileSync(path);
  const hash = createHash("sha256").update(bytes).digest("hex");
  return { hash, size: bytes.length, ms: performance.now() - began };
});
