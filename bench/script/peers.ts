/**
 * The peers by their names, in the order in which they take turns. A thread loads only the file of
 * the peer that it plays.
 *
 * @module
 */
import type { Peer } from "./peer.ts";

const PEERS: Readonly<Record<string, () => Promise<{ peers: Readonly<Record<string, Peer>> }>>> = {
  "millrace": () => import("./peers/millrace.ts"),
  "millrace-call": () => import("./peers/millrace_call.ts"),
  "millrace-lent": () => import("./peers/millrace_verbs.ts"),
  "millrace-many": () => import("./peers/millrace_verbs.ts"),
  "millrace-drop-in": () => import("./peers/sab_message_port.ts"),
  "millrace-drop-in-mw": () => import("./peers/sab_message_port.ts"),
  "millrace-metered": () => import("./peers/millrace_verbs.ts"),
  "millrace-fanout": () => import("./peers/fanouts.ts"),
  "millrace-hub": () => import("./peers/fanouts.ts"),
  "millrace-property": () => import("./peers/millrace_property.ts"),
  "millrace-zig": () => import("./peers/millrace_zig.ts"),
  "millrace-cbor": () => import("./peers/codecs.ts"),
  "messageport": () => import("./peers/messageport.ts"),
  "messageport-each": () => import("./peers/fanouts.ts"),
  "broadcast-channel": () => import("./peers/fanouts.ts"),
  "messageport-transfer": () => import("./peers/messageport.ts"),
  "sab-message-port": () => import("./peers/sab_message_port.ts"),
  "sab-message-port-mw": () => import("./peers/sab_message_port.ts"),
  "ringbuf": () => import("./peers/ringbuf.ts"),
  "comlink": () => import("./peers/callers.ts"),
  "coincident": () => import("./peers/callers.ts"),
  "millrace-pool": () => import("./peers/pools.ts"),
  "millrace-pool-one": () => import("./peers/pools.ts"),
  "piscina": () => import("./peers/pools.ts"),
  "piscina-many": () => import("./peers/pools.ts"),
  "workerpool": () => import("./peers/pools.ts"),
  "synckit": () => import("./peers/callers.ts"),
  "thread-stream": () => import("./peers/thread_stream.ts"),
  "millrace-digest": () => import("./peers/digests.ts"),
  "millrace-digest-once": () => import("./peers/digests.ts"),
  "textbook-sha1": () => import("./peers/digests.ts"),
  "noble-hashes": () => import("./peers/digests.ts"),
  "hash-wasm": () => import("./peers/digests.ts"),
  "node-crypto": () => import("./peers/digests.ts"),
  "json": () => import("./peers/codecs.ts"),
  "msgpackr": () => import("./peers/codecs.ts"),
  "structured-clone": () => import("./peers/codecs.ts"),
  "floor-atomics-spin": () => import("./peers/floor_words.ts"),
  "floor-atomics-wait": () => import("./peers/floor_words.ts"),
  "floor-codec": () => import("./peers/codecs.ts"),
  "floor-frame": () => import("./peers/floor_words.ts"),
  "floor-json": () => import("./peers/floor_words.ts"),
  "floor-memcpy": () => import("./peers/codecs.ts"),
  "floor-text": () => import("./peers/floor_text.ts"),
  "floor-text-nap": () => import("./peers/floor_text.ts"),
  "floor-text-park": () => import("./peers/floor_text.ts"),
  "floor-turn": () => import("./peers/sab_message_port.ts"),
  "floor-turn-park": () => import("./peers/sab_message_port.ts"),
};

/** The names of all peers. */
export const PEER_NAMES: readonly string[] = Object.keys(PEERS);

/** Loads a peer. */
export async function loadPeer(name: string): Promise<Peer> {
  const peer = (await PEERS[name]?.())?.peers[name];
  if (peer === undefined) throw new Error(`Cannot play ${name}: there is no such peer`);
  return peer;
}
