/** The floor of a port whose event loops stand still for a moment before they sleep. @module */
import { textPeer } from "./floor_text.ts";

/** That of `millrace-nap`. */
const NAP_MS = 4;

export default textPeer({ looks: false, nap: NAP_MS });
