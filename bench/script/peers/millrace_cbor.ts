/** Our codec `cbor`. @module */
import { cbor } from "../../../impl-ts/src/codec/cbor.ts";
import { codecPeer } from "../codec_peer.ts";

export default codecPeer(cbor);
