/** The runtime's JSON, to bytes and back. @module */
import { alonePeer } from "../codec_peer.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export default alonePeer({
  encode: (value) => encoder.encode(JSON.stringify(value)),
  decode: (bytes: Uint8Array) => JSON.parse(decoder.decode(bytes)),
}, true);
