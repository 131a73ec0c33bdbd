/**
 * Several things to wait for, as one. See `spec/wait.md`.
 *
 * @module
 */

import type { Waitable } from "./wait.ts";
import type { Endpoint } from "./wait_endpoint.ts";

/** Waits for whichever of several comes first; they are woken by the bell of one endpoint. */
export class Several implements Waitable {
  /** Of the peers, the one that demands the most of a sleep; found out when it is armed. */
  peer: number;
  readonly #endpoint: Endpoint;
  readonly parts: readonly Waitable[];

  /** Joins what can be waited for by this endpoint; one at least. */
  constructor(endpoint: Endpoint, parts: readonly Waitable[]) {
    this.#endpoint = endpoint;
    this.parts = parts;
    this.peer = parts[0]!.peer;
  }

  /** Whether one has come, or the state of a peer is final. */
  look(): boolean {
    for (const part of this.parts) {
      if (part.look() || this.#endpoint.isGone(part.peer)) return true;
    }
    return false;
  }

  arm(): void {
    for (const part of this.parts) part.arm();
    this.#choosePeer();
  }

  stayArmed(): void {
    for (const part of this.parts) part.stayArmed();
    this.#choosePeer();
  }

  disarm(): void {
    for (const part of this.parts) part.disarm();
  }

  /**
   * Takes one that cannot ring this endpoint, which then polls, if there is one; else one for which
   * its slices are the shortest. [wait.mechanism] [wait.slice]
   */
  #choosePeer(): void {
    const endpoint = this.#endpoint;
    for (const { peer } of this.parts) {
      if (endpoint.isVacant(peer)) this.peer = peer;
      else if (!endpoint.wakeable(peer)) {
        this.peer = peer;
        return;
      }
    }
  }
}
