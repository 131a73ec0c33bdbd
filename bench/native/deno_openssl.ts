/**
 * What `openssl speed` says of SHA-1, with the instructions that the processor has for it.
 *
 * @module
 */
import { findProgram } from "../../tools/programs.ts";
import type { Result, Scenario } from "../contract.ts";

/** The name of the peer. */
export const OPENSSL = "openssl-speed";
/** It takes no fractions. */
const SECONDS = 1;
const TIMEOUT_MS = 20_000;

/** Has it measure for a second, or returns why not. */
export async function playOpenssl({ name, size }: Scenario): Promise<{ result: Result } | string> {
  if (name !== "sha1") return "of digests only";
  const program = await findProgram(["openssl"]);
  if (program === undefined) return "there is no openssl";
  const { success, stdout, stderr } = await new Deno.Command(program, {
    // By the clock, as all else is measured here; it would take the processor's time.
    args: ["speed", "-elapsed", "-seconds", `${SECONDS}`, "-bytes", `${size}`, "-evp", "sha1"],
    signal: AbortSignal.timeout(TIMEOUT_MS),
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  // `sha1  1886263.02k`: thousands of bytes in a second.
  const thousands = /^sha1\s+([\d.]+)k$/mi.exec(new TextDecoder().decode(stdout))?.[1];
  if (thousands === undefined) throw new Error("Cannot read what openssl speed says");
  const count = Math.round(Number(thousands) * 1000 * SECONDS / size);
  return { result: { count, elapsed_ns: SECONDS * 1e9, bytes: count * size } };
}
