/**
 * What Deno and browsers have in common: the workers of the web.
 *
 * @module
 */
import type { Gear, Order, Report } from "./peer.ts";
import type { Note } from "./web_worker.ts";

/** Starts a worker of this module and resolves with its report. */
export function startWebWorker(url: string | URL, order: Order, gear: Gear): Promise<Report> {
  const worker = new Worker(url, { type: "module" });
  worker.postMessage(order, [...gear.transfer ?? []]);
  return new Promise<Report>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Note>) => {
      if ("report" in data) resolve(data.report);
      else reject(new Error(`In role ${order.role}: ${data.error}`));
    };
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(`In role ${order.role}: ${event.message}`));
    };
  });
}
