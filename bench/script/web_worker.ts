/**
 * The worker of the drivers where workers are those of the web: it plays one role.
 *
 * It listens before anything is loaded: a worker of Deno loses what comes earlier.
 *
 * @module
 */
import { scope } from "../../tools/worker_scope.ts";
import type { Order } from "./peer.ts";
import type { Place } from "./place.ts";

/** What a worker says in the end. */
export type Note = { readonly report: object } | { readonly error: string };

/** Plays the role that is posted to this worker, in the place that is loaded meanwhile. */
export function listen(place: () => Promise<Place>): void {
  scope.onmessage = async ({ data }: MessageEvent<Order>) => {
    scope.onmessage = null;
    let note: Note;
    try {
      const { playRole } = await import("./role.ts");
      note = { report: await playRole(data, await place()) };
    } catch (error) {
      note = { error: error instanceof Error ? error.stack ?? error.message : String(error) };
    }
    scope.postMessage(note);
    (globalThis as unknown as { close(): void }).close();
  };
}
