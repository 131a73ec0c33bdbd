/** The library @noble/hashes: in JavaScript alone. @module */
import { sha1 } from "@noble/hashes/legacy.js";
import { digestPeer } from "../play_digest.ts";

export default digestPeer(() => (bytes) => sha1(bytes as Uint8Array<ArrayBuffer>));
