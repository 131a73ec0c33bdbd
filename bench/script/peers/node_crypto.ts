/** The runtime's own, which refuses shared memory: for orientation. @module */
import { digestPeer, type Hash } from "../play_digest.ts";

export default digestPeer(async () => {
  const { createHash } = await import("node:crypto");
  return ((bytes) => createHash("sha1").update(bytes).digest()) satisfies Hash;
}, true);
