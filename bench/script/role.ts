/**
 * Plays one role on the thread that calls it.
 *
 * @module
 */
import { Control } from "./control.ts";
import { isAlone, type Order, type Peer, type Report } from "./peer.ts";
import { loadPeer } from "./peers.ts";
import type { Place } from "./place.ts";
import { playCalls } from "./plays/calls.ts";
import { playOf } from "./plays/plays.ts";

/** How long the two threads of a run play ping-pong before it and after it. */
const PING_MS = 3;
/** So that the code of the ping-pong is compiled before it counts, as far as there is a warm-up. */
const NEW_GAMES = 20;
const NEW_MS = 1;

/** Loads the peer, makes its end and plays. */
export async function playRole(order: Order, place: Place): Promise<Report> {
  const peer = await loadPeer(order.peer);
  const control = new Control(order.control);
  control.addHere();
  if (!isPinged(order, peer)) return await playEnd(peer, order, place, control);
  // Where both threads sleep or wait on their loops, they are nevertheless two processors.
  if (order.isNew) {
    // Each loads for as long as a tenth of a second, and a game spins until the other plays.
    await control.waitUntilHere(2);
    const games = Math.min(NEW_GAMES, Math.ceil(order.scenario.warmup_ms / NEW_MS));
    for (let game = 0; game < games; game++) ping(order, control, NEW_MS);
  }
  const before = ping(order, control);
  const report = await playEnd(peer, order, place, control);
  const after = ping(order, control);
  if (before === undefined || after === undefined) return report;
  return { ...report, ping_ns: [before, after] };
}

/** Whether there are two threads of ours that run at once, and that may be warm. */
function isPinged({ scenario }: Order, peer: Peer): boolean {
  const { name, pin, fresh = false, ends } = scenario;
  const isPair = peer.startPlayer === undefined && !isAlone(peer, scenario) && ends !== "worker";
  return pin === "free" && isPair && !fresh && name !== "idle" && name !== "memory";
}

function ping({ role, scenario }: Order, control: Control, ms = PING_MS): number | undefined {
  if (role === "a") return control.ping(Math.min(ms, scenario.duration_ms / 10));
  control.pong();
  return undefined;
}

async function playEnd(
  peer: Peer,
  order: Order,
  place: Place,
  control: Control,
): Promise<Report> {
  const { role, scenario } = order;
  const own = peer.play?.(order, place);
  if (own !== undefined) {
    // It knows its end without us.
    control.addReady();
    control.addDone();
    return await own;
  }
  // What the other loads may need this thread, which may be busy as soon as it plays.
  if (role === "a" && scenario.ends !== "workers") await control.waitUntilReady(1);
  const end = await peer.open(order, place);
  control.addReady();
  // The end that the library has itself: who waits for both is not to wait for it.
  if (isAlone(peer, scenario)) control.addReady();
  try {
    const report = end.kind === "calls"
      ? await playCalls(end, order)
      : await playOf(scenario)(end, order, place);
    control.addDone();
    if (!isAlone(peer, scenario)) await control.waitUntilBothDone();
    return report;
  } finally {
    await end.close();
  }
}
