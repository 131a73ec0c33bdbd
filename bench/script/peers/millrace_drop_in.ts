/** Our own library of that interface, which takes the place of `sab-message-port`. @module */
import { MWChannel, SABMessagePort } from "../../../impl-ts/src/compat/sab_message_port.ts";
import { type SabLibrary, sabPeer, type SabSource } from "./sab_message_port.ts";

/** It is always there. */
export const DROP_IN: SabSource = {
  decline: () => undefined,
  load: () => Promise.resolve({ MWChannel, SABMessagePort } as unknown as SabLibrary),
};

export default sabPeer(DROP_IN);
