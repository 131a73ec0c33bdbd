/**
 * The words of the clauses, for who reads a failed case.
 *
 * @module
 */

import { loadClauses } from "../static/coverage.ts";

let texts: Map<string, string> | undefined;

/** The sentence of a clause; nothing where there is no such clause, or no specification. */
export function clauseText(id: string): string | undefined {
  texts ??= load();
  return texts.get(id);
}

function load(): Map<string, string> {
  try {
    return new Map(loadClauses().map(({ id, body }) => [id, body]));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return new Map();
    throw error;
  }
}
