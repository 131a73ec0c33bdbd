/** The floor of a port whose ends sleep at once, where each has a processor. @module */
import { textPeer } from "./floor_text.ts";

export default textPeer({ looks: false });
