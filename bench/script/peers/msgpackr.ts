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
const OPTIONS: object = { structuredClone: true, moreTypes: true };
/** Made late, since pages load this module without the library. */
let packr: Packr | undefined;

export default codecPeer({
  code: CODE,
  encode: (value) => (packr ??= new Packr(OPTIONS)).pack(value),
  decode: (bytes) => (packr ??= new Packr(OPTIONS)).unpack(bytes),
});
