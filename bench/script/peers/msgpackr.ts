/**
 * `msgpackr`, told to carry all values; between threads it is the codec of our port, since it has
 * no way of its own.
 *
 * @module
 */
import { Packr } from "msgpackr";
import { codecPeer } from "../codec_peer.ts";

const CODE = 200;
// Typed arrays and others by its extensions; without, an array of numbers comes back.
const packr = new Packr({ structuredClone: true, moreTypes: true } as object);

export default codecPeer({
  code: CODE,
  encode: (value) => packr.pack(value),
  decode: (bytes) => packr.unpack(bytes),
});
