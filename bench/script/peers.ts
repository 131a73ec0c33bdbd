/**
 * The peers by their names. A thread loads only the one that it plays.
 *
 * @module
 */
import type { Peer } from "./peer.ts";

const PEERS: Readonly<Record<string, () => Promise<{ default: Peer }>>> = {
  "millrace": () => import("./peers/millrace.ts"),
  "millrace-call": () => import("./peers/millrace_call.ts"),
  "millrace-lent": () => import("./peers/millrace_lent.ts"),
  "millrace-many": () => import("./peers/millrace_many.ts"),
  "millrace-drop-in": () => import("./peers/millrace_drop_in.ts"),
  "millrace-drop-in-mw": () => import("./peers/millrace_drop_in_mw.ts"),
  "millrace-metered": () => import("./peers/millrace_metered.ts"),
  "millrace-fanout": () => import("./peers/millrace_fanout.ts"),
  "millrace-hub": () => import("./peers/millrace_hub.ts"),
  "millrace-property": () => import("./peers/millrace_property.ts"),
  "millrace-zig": () => import("./peers/millrace_zig.ts"),
  "millrace-cbor": () => import("./peers/millrace_cbor.ts"),
  "messageport": () => import("./peers/messageport.ts"),
  "messageport-each": () => import("./peers/messageport_each.ts"),
  "broadcast-channel": () => import("./peers/broadcast_channel.ts"),
  "messageport-transfer": () => import("./peers/messageport_transfer.ts"),
  "sab-message-port": () => import("./peers/sab_message_port.ts"),
  "sab-message-port-mw": () => import("./peers/sab_message_port_mw.ts"),
  "ringbuf": () => import("./peers/ringbuf.ts"),
  "comlink": () => import("./peers/comlink.ts"),
  "coincident": () => import("./peers/coincident.ts"),
  "millrace-pool": () => import("./peers/millrace_pool.ts"),
  "millrace-pool-one": () => import("./peers/millrace_pool_one.ts"),
  "piscina": () => import("./peers/piscina.ts"),
  "piscina-many": () => import("./peers/piscina_many.ts"),
  "workerpool": () => import("./peers/workerpool.ts"),
  "synckit": () => import("./peers/synckit.ts"),
  "thread-stream": () => import("./peers/thread_stream.ts"),
  "millrace-digest": () => import("./peers/millrace_digest.ts"),
  "millrace-digest-once": () => import("./peers/millrace_digest_once.ts"),
  "textbook-sha1": () => import("./peers/textbook_sha1.ts"),
  "noble-hashes": () => import("./peers/noble_hashes.ts"),
  "hash-wasm": () => import("./peers/hash_wasm.ts"),
  "node-crypto": () => import("./peers/node_crypto.ts"),
  "json": () => import("./peers/json.ts"),
  "msgpackr": () => import("./peers/msgpackr.ts"),
  "structured-clone": () => import("./peers/structured_clone.ts"),
  "floor-atomics-spin": () => import("./peers/floor_atomics_spin.ts"),
  "floor-atomics-wait": () => import("./peers/floor_atomics_wait.ts"),
  "floor-codec": () => import("./peers/floor_codec.ts"),
  "floor-frame": () => import("./peers/floor_frame.ts"),
  "floor-json": () => import("./peers/floor_json.ts"),
  "floor-memcpy": () => import("./peers/floor_memcpy.ts"),
  "floor-text": () => import("./peers/floor_text.ts"),
  "floor-text-nap": () => import("./peers/floor_text_nap.ts"),
  "floor-text-park": () => import("./peers/floor_text_park.ts"),
  "floor-turn": () => import("./peers/floor_turn.ts"),
  "floor-turn-park": () => import("./peers/floor_turn_park.ts"),
};

/** The names of all peers. */
export const PEER_NAMES: readonly string[] = Object.keys(PEERS);

/** Loads a peer. */
export async function loadPeer(name: string): Promise<Peer> {
  const load = PEERS[name];
  if (load === undefined) throw new Error(`Cannot play ${name}: there is no such peer`);
  return (await load()).default;
}
