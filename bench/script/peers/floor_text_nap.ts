/** The floor of a port whose event loops stand still for a moment before they sleep. @module */
import { textPeer } from "./floor_text.ts";

/** A tick of the system's clock: a sleep with a shorter limit has a timer set for it. */
const NAP_MS = 4;

export default textPeer({ looks: false, nap: NAP_MS });
