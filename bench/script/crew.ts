/**
 * The threads that play one peer in one scenario. They stay from one repetition to the next, and
 * with them the code that their engine has compiled; nobody else ever plays in them.
 *
 * @module
 */
import type { Request, Result, Scenario } from "../contract.ts";
import { Control, controlMemory } from "./control.ts";
import { isAlone, type Order, type Peer, type Report, type Role } from "./peer.ts";
import type { Place, Player } from "./place.ts";
import { playRole } from "./role.ts";

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
