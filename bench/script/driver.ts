/**
 * The part of a driver that is the same in all places: plays requests, one at a time.
 *
 * @module
 */
import type { Answer, Request, Result, Scenario } from "../contract.ts";
import { Control, controlMemory } from "./control.ts";
import type { Order, Peer, Report, Role } from "./peer.ts";
import { loadPeer } from "./peers.ts";
import type { Place } from "./place.ts";
import { playRole } from "./role.ts";

/** Beside warm-up and duration, for what a run by count takes, and to start and end. */
const SLACK_MS = 40_000;

/** Plays one request. Whatever goes wrong becomes an answer too. */
export async function play(request: Request, place: Place): Promise<Answer> {
  const { id, peer: name, scenario } = request;
  try {
    const peer = await loadPeer(name);
    const decline = peer.decline(scenario, place) ?? declineOf(scenario, place);
    if (decline !== undefined) return { id, decline };
    return { id, result: await within(run(peer, request, place), scenario) };
  } catch (error) {
    return { id, error: textOf(error) };
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

async function run(peer: Peer, request: Request, place: Place): Promise<Result> {
  const { peer: name, scenario } = request;
  const control = controlMemory();
  const gears = await peer.prepare(scenario, place);
  const start = async (role: Role): Promise<Report> => {
    const { value, transfer = [] } = gears[role];
    const order: Order = { peer: name, role, scenario, gear: value, control };
    const hosted = peer.host?.(order, place);
    if (hosted !== undefined) return await hosted;
    if (role === "b" || scenario.ends === "workers") {
      return await place.startWorker(order, { value, transfer });
    }
    // Starting a worker needs this thread, which may be busy as soon as it plays.
    await new Control(control).waitUntilReady(1);
    return await playRole(order, place);
  };
  const b = peer.alone ? undefined : start("b");
  const [reportA, reportB = {}] = await Promise.all([start("a"), b]);
  return merge(reportA, reportB);
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

/** Bounds a run: a worker that blocks for ever says nothing. */
function within<Value>(promise: Promise<Value>, scenario: Scenario): Promise<Value> {
  const ms = scenario.warmup_ms + scenario.duration_ms + SLACK_MS;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`It did not end in ${ms} ms`)), ms);
    promise.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
