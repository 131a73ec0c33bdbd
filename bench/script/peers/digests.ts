/**
 * Peers that take the SHA-1 of bytes on one thread: no message, no wait.
 *
 * @module
 */
import { sha1 as nobleSha1 } from "@noble/hashes/legacy.js";
import { createSHA1 } from "hash-wasm";
import { Sha1, sha1 } from "../../../impl-ts/src/digest/digest.ts";
import { Meter } from "../meter.ts";
import { lonePeer, type Order, type Peer, type Report } from "../peer.ts";
import { reportOf } from "../play_echo.ts";
import { textbookSha1 } from "./textbook_sha1.ts";

/** Returns the SHA-1 of bytes, which may be shared. */
type Hash = (bytes: Uint8Array<ArrayBufferLike>) => Uint8Array;

/**
 * A peer that takes digests. `make` prepares what it does before the first; of shared bytes, a peer
 * that does not read them gets a copy each time.
 */
function digestPeer(make: () => Hash | Promise<Hash>, copies = false): Peer {
  return lonePeer(
    ({ name }) => name === "sha1" ? undefined : "of digests only",
    async (order) => await playDigest(await make(), order, copies),
  );
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

/** The peers of this file. */
export const peers = {
  /** One digest that is reset, into one array. */
  "millrace-digest": digestPeer(() => {
    const digest = new Sha1();
    const result = new Uint8Array(digest.size);
    return (bytes) => {
      digest.reset().update(bytes).digestInto(result);
      return result;
    };
  }),
  /** One call that makes its result. */
  "millrace-digest-once": digestPeer(() => sha1),
  "textbook-sha1": digestPeer(() => (bytes) => Uint8Array.from(textbookSha1(bytes))),
  /** In JavaScript alone. */
  "noble-hashes": digestPeer(() => (bytes) => nobleSha1(bytes as Uint8Array<ArrayBuffer>)),
  /** One hasher that begins anew, which is its fastest way. */
  "hash-wasm": digestPeer(async () => {
    const hasher = await createSHA1();
    return (bytes) => {
      hasher.init();
      hasher.update(bytes);
      return hasher.digest("binary");
    };
  }),
  /** The runtime's own, which refuses shared memory: for orientation. */
  "node-crypto": digestPeer(async () => {
    const { createHash } = await import("node:crypto");
    return (bytes) => createHash("sha1").update(bytes).digest();
  }, true),
};
