/** The library hash-wasm: one hasher that begins anew, which is its fastest way. @module */
import { createSHA1 } from "hash-wasm";
import { digestPeer } from "../play_digest.ts";

export default digestPeer(async () => {
  const hasher = await createSHA1();
  return (bytes) => {
    hasher.init();
    hasher.update(bytes);
    return hasher.digest("binary");
  };
});
