/** The `MWChannel` of our own library. @module */
import { DROP_IN } from "./millrace_drop_in.ts";
import { mwPeer } from "./sab_message_port_mw.ts";

export default mwPeer(DROP_IN);
