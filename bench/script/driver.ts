/**
 * The part of a driver that is the same in all places: plays requests, one at a time.
 *
 * @module
 */
import type { Answer, Request, Result, Scenario } from "../contract.ts";
import { Crew } from "./crew.ts";
import { loadPeer } from "./peers.ts";
import type { Place } from "./place.ts";
import { declineStart, playStart } from "./play_start.ts";

/** Beside warm-up and duration, for what a run by count takes, and to start and end. */
const SLACK_MS = 20_000;

/** Plays the requests of one driver. */
export class Stage {
  readonly #place: Place;
  /** The crews of the scenario that is being played, by the names of their peers. */
  readonly #crews = new Map<string, Crew>();
  #scenario = "";

  constructor(place: Place) {
    this.#place = place;
  }

  /** Plays one request. Whatever goes wrong becomes an answer too. */
  async play(request: Request): Promise<Answer> {
    const { id, peer: name, scenario } = request;
    try {
      this.#prepareFor(scenario);
      if (scenario.name === "start") return { id, ...await this.#start(name, scenario) };
      if (scenario.name === "size") return { id, ...await this.#measureSizes() };
      const peer = await loadPeer(name);
      const decline = peer.decline(scenario, this.#place) ?? declineOf(scenario, this.#place);
      if (decline !== undefined) return { id, decline };
      const crew = this.#crews.get(name) ?? new Crew(peer, this.#place);
      this.#crews.set(name, crew);
      const result = await within(crew.play(request), scenario);
      // What a whole process costs shall not have the threads of others in it.
      if (scenario.name === "idle") this.#dismiss(name);
      return { id, result };
    } catch (error) {
      this.#dismiss(name);
      return { id, error: textOf(error) };
    }
  }

  /** Plays what needs no crew: whatever it starts, it starts anew. */
  async #start(
    name: string,
    scenario: Scenario,
  ): Promise<{ decline: string } | { result: Result }> {
    const decline = declineStart(name, scenario, this.#place);
    if (decline !== undefined) return { decline };
    return { result: await within(playStart(name, scenario, this.#place), scenario) };
  }

  /** What is of no thread. */
  async #measureSizes(): Promise<{ decline: string } | { result: Result }> {
    const sizes = await this.#place.measureSizes?.();
    if (sizes === undefined) return { decline: "measured in Deno" };
    const parts = Object.entries(sizes).map(([name, bytes]): [string, Result] => {
      return [name, { count: 1, elapsed_ns: 1, bytes }];
    });
    return { result: { count: 1, elapsed_ns: 1, parts: Object.fromEntries(parts) } };
  }

  /** Closes the crews of another scenario. */
  #prepareFor(scenario: Scenario): void {
    const text = JSON.stringify(scenario);
    if (text === this.#scenario) return;
    for (const name of [...this.#crews.keys()]) this.#dismiss(name);
    this.#scenario = text;
  }

  #dismiss(name: string): void {
    this.#crews.get(name)?.close();
    this.#crews.delete(name);
  }
}

/** What one line of text says about an error. */
export function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** What this place cannot measure, whatever the peer. */
function declineOf({ name, ends }: Scenario, place: Place): string | undefined {
  if (ends === "threads" || ends === "processes") return `${place.name} has workers`;
  if (name === "memory" && place.heapUsed() === undefined) return "this place does not tell";
  if (name === "idle" && place.processorTime() === undefined) return "this place does not tell";
  return undefined;
}

/** Bounds a run: a worker that blocks for ever says nothing. */
function within<Value>(promise: Promise<Value>, scenario: Scenario): Promise<Value> {
  const ms = scenario.warmup_ms + scenario.duration_ms + SLACK_MS;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`It did not end in ${ms} ms`)), ms);
    promise.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
