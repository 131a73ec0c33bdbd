/**
 * What Deno and browsers have in common: the workers of the web.
 *
 * @module
 */
import type { Gear, Order, Report } from "./peer.ts";
import type { Player, Starter } from "./place.ts";
import type { StartNote } from "./start_worker.ts";
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

/** Starts a worker of this module for `start`. */
export function startWebStarter(url: string | URL): Starter {
  const worker = new Worker(url, { type: "module" });
  return {
    run: (order, transfer, ms) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(lateError(order.what, ms)), ms);
        worker.onmessage = ({ data }: MessageEvent<StartNote>) => {
          clearTimeout(timer);
          if ("error" in data) reject(new Error(`In ${order.what}: ${data.error}`));
          else resolve(data);
        };
        worker.onerror = (event) => {
          event.preventDefault();
          clearTimeout(timer);
          reject(new Error(`In ${order.what}: ${event.message}`));
        };
        worker.postMessage(order, [...transfer]);
      }),
    close: () => worker.terminate(),
  };
}

/** What is said of a program that does not end. */
export function lateError(what: string, ms: number): Error {
  return new Error(`In ${what}: nothing came for ${ms} ms`);
}
