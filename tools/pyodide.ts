/** Python for browsers. @module */
import { dirname } from "node:path";
import { findPinned } from "./pinned.ts";

/** 14 MB. */
const PACKAGE = "npm:pyodide@314.0.7";

/** The folder with all that a page loads of it. */
export async function findPyodide(): Promise<string | undefined> {
  const path = await findPinned("pyodide", PACKAGE, "package.json");
  return path === undefined ? undefined : dirname(path);
}
