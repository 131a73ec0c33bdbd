/** What all that starts Chromium has in common. @module */
import { findProgram } from "./programs.ts";

/** The program, by the names that distributions give it; `undefined` if there is none. */
export function findChromium(): Promise<string | undefined> {
  return findProgram(["chromium", "chromium-browser", "google-chrome"]);
}

/** How it is started: for pages of our own, and quietly. */
export const CHROMIUM_ARGUMENTS: readonly string[] = [
  // Root, in a container, has no sandbox to enter; the pages are ours.
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The headers that give a page and its workers shared memory. */
export const ISOLATION: Readonly<Record<string, string>> = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};
