/**
 * Keeps what searches of models have found, for later runs.
 *
 * A search goes through all states, in one thread and in one order: what it finds follows from the
 * checker and from what that is asked. So the key of a verdict covers the sources that Spin makes
 * of the model, the compiler, its flags and its target, the arguments and the variant; whoever
 * changes one of them has the states searched anew.
 *
 * @module
 */

import type { Result } from "./checker.ts";

/** The verdicts in a folder. */
export class Verdicts {
  /** How many were asked for, and how many of them another run had found. */
  asked = 0;
  kept = 0;
  readonly #folder: string;
  readonly #takes: boolean;

  /** Where it does not take what is kept, all is searched, and then kept. */
  constructor(folder: string, takes: boolean) {
    this.#folder = folder;
    this.#takes = takes;
  }

  /** What was kept, if it may be taken. */
  async find(key: string): Promise<Result | undefined> {
    if (!this.#takes) return undefined;
    try {
      const { error, report } = JSON.parse(await Deno.readTextFile(`${this.#folder}/${key}.json`));
      if (typeof report !== "string") return undefined;
      return typeof error === "string" ? { error, report } : { report };
    } catch {
      return undefined; // there is none, or one that was cut short
    }
  }

  /** What was kept, or what a search finds. One that fails is not kept. */
  async get(key: string, search: () => Promise<Result>): Promise<Result> {
    this.asked++;
    const found = await this.find(key);
    if (found !== undefined) {
      this.kept++;
      return found;
    }
    const result = await search();
    await Deno.mkdir(this.#folder, { recursive: true });
    // Under another name first: others may be looking for it.
    const unique = `${this.#folder}/${key}-${crypto.randomUUID()}`;
    await Deno.writeTextFile(unique, JSON.stringify(result));
    await Deno.rename(unique, `${this.#folder}/${key}.json`);
    return result;
  }
}

/** What stands for these texts. */
export async function digestOf(texts: readonly string[]): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(texts));
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}
