/**
 * Plays one role on the thread that calls it.
 *
 * @module
 */
import { Control } from "./control.ts";
import type { Order, Report } from "./peer.ts";
import { loadPeer } from "./peers.ts";
import type { Place } from "./place.ts";
import { playOf } from "./plays.ts";

/** Loads the peer, makes its end and plays. */
export async function playRole(order: Order, place: Place): Promise<Report> {
  const peer = await loadPeer(order.peer);
  const control = new Control(order.control);
  const own = peer.play?.(order, place);
  if (own !== undefined) {
    // It knows its end without us.
    control.addReady();
    control.addDone();
    return await own;
  }
  const end = await peer.open(order, place);
  control.addReady();
  try {
    const report = await playOf(order.scenario)(end, order, place);
    control.addDone();
    if (!peer.alone) await control.waitUntilBothDone();
    return report;
  } finally {
    await end.close();
  }
}
