/**
 * The worker of the drivers where workers are those of the web: it plays one role after the other.
 *
 * It listens before anything is loaded: a worker of Deno loses what comes earlier.
 *
 * @module
 */
import { scope } from "../../tools/worker_scope.ts";
import type { Order } from "./peer.ts";
import type { Place } from "./place.ts";

/** What a worker says after each role. */
export type Note = { readonly report: object } | { readonly error: string };

/** Plays the roles that are posted to this worker, in the place that is loaded meanwhile. */
export function listen(place: () => Promise<Place>): void {
  let loaded: Promise<Place> | undefined;
  scope.onmessage = async ({ data }: MessageEvent<Order>) => {
    let note: Note;
    try {
      const { playRole } = await import("./role.ts");
      loaded ??= place();
      note = { report: await playRole(data, await loaded) };
    } catch (error) {
      note = { error: error instanceof Error ? error.stack ?? error.message : String(error) };
    }
    scope.postMessage(note);
  };
}
