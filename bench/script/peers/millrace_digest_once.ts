/** Our own, as one call that makes its result. @module */
import { sha1 } from "../../../impl-ts/src/digest/digest.ts";
import { digestPeer } from "../play_digest.ts";

export default digestPeer(() => sha1);
