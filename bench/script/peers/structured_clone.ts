/** The runtime's `structuredClone`, which writes and reads at once. @module */
import { alonePeer } from "../codec_peer.ts";

export default alonePeer({ encode: (value) => structuredClone(value), decode: (value) => value });
