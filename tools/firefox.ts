/** What all that starts Firefox has in common. @module */
import { findProgram } from "./programs.ts";

/** The program, by the names that distributions give it; `undefined` if there is none. */
export function findFirefox(): Promise<string | undefined> {
  return findProgram(["firefox-esr", "firefox"]);
}
