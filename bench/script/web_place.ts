/**
 * What Deno and browsers have in common: the workers of the web.
 *
 * @module
 */
import type { Gear, Order, Report } from "./peer.ts";
import type { Player } from "./place.ts";
import type { Note } from "./web_worker.ts";

/** Starts a worker of this module. */
export function startWebPlayer(url: string | URL): Player {
  const worker = new Worker(url, { type: "module" });
  return {
    play: (order: Order, gear: Gear) =>
      new Promise<Report>((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<Note>) => {
          if ("report" in data) resolve(data.report);
          else reject(new Error(`In role ${order.role}: ${data.error}`));
        };
        worker.onerror = (event) => {
          event.preventDefault();
          reject(new Error(`In role ${order.role}: ${event.message}`));
        };
        worker.postMessage(order, [...gear.transfer ?? []]);
      }),
    close: () => worker.terminate(),
  };
}
