/**
 * The part of a driver that is the same in all places: plays requests, one at a time, with the
 * threads of each peer.
 *
 * @module
 */
import type { Answer, Request, Result, Scenario } from "../contract.ts";
import { Control, controlMemory } from "./control.ts";
import { isAlone, type Order, type Peer, type Report, type Role } from "./peer.ts";
import { loadPeer } from "./peers.ts";
import type { Place, Player } from "./place.ts";
import { declineStart, playStart } from "./plays/start.ts";
import { playRole } from "./role.ts";

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

/** One peer's threads. The main thread, where it plays a role, is the same for all. */
export class Crew {
  readonly #peer: Peer;
  readonly #place: Place;
  readonly #players = new Map<Role, Player>();
  #hasPlayed = false;

  constructor(peer: Peer, place: Place) {
    this.#peer = peer;
    this.#place = place;
  }

  /** Plays one repetition, in new memory. After an error, the crew can only be closed. */
  async play({ peer: name, scenario }: Request): Promise<Result> {
    const peer = this.#peer;
    const control = controlMemory();
    const gears = await peer.prepare(scenario, this.#place);
    const isNew = !this.#hasPlayed;
    const isPair = !isAlone(peer, scenario) && scenario.ends !== "worker";
    const resolved: Scenario = isNew
      ? scenario
      : { ...scenario, warmup_ms: scenario.again_ms ?? scenario.warmup_ms };
    const start = async (role: Role): Promise<Report> => {
      const { value, transfer = [] } = gears[role];
      const order: Order = { peer: name, role, scenario: resolved, gear: value, isNew, control };
      if (role === "b" || scenario.ends === "workers" || scenario.ends === "worker") {
        const player = await this.#playerOf(role);
        return await player.play(order, { value, transfer });
      }
      // Starting a worker needs this thread, which may be busy as soon as it plays.
      if (isPair) await new Control(control).waitUntilHere(1);
      return await playRole(order, this.#place);
    };
    const b = isPair ? start("b") : undefined;
    const [reportA, reportB = {}] = await Promise.all([start("a"), b]);
    this.#hasPlayed = true;
    return merge(reportA, reportB);
  }

  /** Ends the threads. */
  close(): void {
    for (const player of this.#players.values()) player.close();
    this.#players.clear();
  }

  async #playerOf(role: Role): Promise<Player> {
    const found = this.#players.get(role);
    if (found !== undefined) return found;
    const player = await this.#peer.startPlayer?.(this.#place) ?? this.#place.startPlayer();
    this.#players.set(role, player);
    return player;
  }
}

/** What both roles have to say; counts are of the one that measured. */
function merge(a: Report, b: Report): Result {
  const merged = { ...b, ...a } as { -readonly [Key in keyof Result]: Result[Key] };
  if (a.sleeps !== undefined || b.sleeps !== undefined) {
    merged.sleeps = (a.sleeps ?? 0) + (b.sleeps ?? 0);
  }
  if (a.bytes_allocated !== undefined || b.bytes_allocated !== undefined) {
    merged.bytes_allocated = (a.bytes_allocated ?? 0) + (b.bytes_allocated ?? 0);
  }
  const notes = [...a.notes ?? [], ...b.notes ?? []];
  if (notes.length > 0) merged.notes = notes;
  return merged;
}
