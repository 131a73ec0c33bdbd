/** Our own: one digest that is reset, into one array. @module */
import { Sha1 } from "../../../impl-ts/src/digest/digest.ts";
import { digestPeer } from "../play_digest.ts";

export default digestPeer(() => {
  const digest = new Sha1();
  const result = new Uint8Array(digest.size);
  return (bytes) => {
    digest.reset().update(bytes).digestInto(result);
    return result;
  };
});
