/**
 * The floor of `sab-message-port` with ends that sleep at once, where each has a processor.
 *
 * @module
 */
import { turnPeer } from "./floor_turn.ts";

export default turnPeer({ looks: false });
