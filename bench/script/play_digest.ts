/**
 * SHA-1 of bytes on one thread: no message, no wait.
 *
 * @module
 */
import type { Scenario } from "../contract.ts";
import { Meter } from "./meter.ts";
import type { Order, Peer, Report } from "./peer.ts";
import { reportOf } from "./play_echo.ts";

/** Returns the SHA-1 of bytes, which may be shared. */
export type Hash = (bytes: Uint8Array<ArrayBufferLike>) => Uint8Array;

/**
 * A peer that takes digests. `make` prepares what it does before the first; of shared bytes, a peer
 * that does not read them gets a copy each time.
 */
export function digestPeer(make: () => Hash | Promise<Hash>, copies = false): Peer {
  return {
    decline: ({ name }: Scenario) => name === "sha1" ? undefined : "of digests only",
    prepare: () => ({ a: { value: undefined }, b: { value: undefined } }),
    open() {
      throw new Error("Cannot open: there is nobody else");
    },
    play: async (order) => await playDigest(await make(), order, copies),
    alone: true,
  };
}

async function playDigest(hash: Hash, { scenario }: Order, copies: boolean): Promise<Report> {
  const { size, payload } = scenario;
  const isShared = payload.startsWith("shared-");
  const bytes = new Uint8Array(isShared ? new SharedArrayBuffer(size) : new ArrayBuffer(size));
  for (let at = 0; at < size; at++) bytes[at] = at * 7 + (at >> 8);
  const copy = new Uint8Array(size);
  const given = isShared && copies ? copy : bytes;
  const meter = new Meter(scenario);
  let result: Uint8Array;
  let count = 0;
  do {
    bytes[0] = count++;
    if (given === copy) copy.set(bytes);
    result = hash(given);
  } while (meter.turn());
  // A digest that was not taken would be the fastest.
  const must = new Uint8Array(await crypto.subtle.digest("SHA-1", Uint8Array.from(bytes)));
  if (must.join() !== result.join()) throw new Error(`The SHA-1 is ${must}, and not ${result}`);
  return reportOf(meter, undefined);
}
